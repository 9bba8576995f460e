"""Builds that are told to be something else: a future release, a debug build, an old one, another implementation."""

import ctypes
import sys

import probe


def try_as(hexversion, flags):
    return probe.lib.probe_init(ctypes.c_uint32(hexversion), flags, b"")


assert try_as(sys.hexversion, 4) == probe.ERROR and "not CPython" in probe.message(), probe.message()
assert try_as(0x030900F0, 0) == probe.ERROR and "too old" in probe.message(), probe.message()
if sys.version_info >= (3, 13):
    assert try_as(0x031000F0, 0) == probe.PUBLIC and "3.16" in probe.message(), probe.message()
else:
    assert try_as(sys.hexversion, 2) == probe.PUBLIC and "debug" in probe.message(), probe.message()
print(probe.message())
first = probe.message()
assert probe.init() == probe.PUBLIC and probe.message() == first, "a second call returns the first result"
