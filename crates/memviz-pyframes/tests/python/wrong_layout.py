"""A wrong layout (the argument) is refused, and the public walk takes over."""

import sys

import probe

layout = sys.argv[1]
walker = probe.init(layout)
assert walker == probe.PUBLIC, (layout, walker, probe.message())
print(f"{layout}: {probe.message()}")
hit = probe.lib.probe_make_hit()
probe.lib.probe_mode(1)


def leaf():
    hit()


leaf()
assert probe.site(probe.lib.probe_last())[1] == "leaf"
assert probe.lib.probe_matches(), probe.message()
