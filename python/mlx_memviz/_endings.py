"""How a recording ended: what the program was doing, in words and as a stack."""

from __future__ import annotations

import os
import sys
from types import FrameType, TracebackType
from typing import NamedTuple

Frames = list[tuple[str, str, int]]

_OWN_FOLDER = os.path.dirname(__file__) + os.sep
_LONGEST = 500


class Ending(NamedTuple):
    """What `_native.stop_stream` is told. kind: "stopped", "exception" or "signal"; frames are outermost first."""

    kind: str = "stopped"
    detail: str = ""
    frames: Frames = []


def of_exception(error: BaseException | None) -> Ending:
    """An exception that ends the program, or leaves the block that is recorded. To leave by `sys.exit` is no failure."""
    if error is None or isinstance(error, SystemExit):
        return Ending()
    try:
        text = str(error)
    except Exception:  # the program's own class
        text = ""
    name = type(error).__qualname__
    detail = f"{name}: {text}" if text else name
    return Ending("exception", detail[:_LONGEST], _frames_of(error.__traceback__))


def of_signal(name: str, frame: FrameType | None) -> Ending:
    """A signal that Python handles."""
    return Ending("signal", name, _shown(_callers(frame)))


def at_exit() -> Ending:
    """The exception that nobody handled, when the interpreter ends."""
    if hasattr(sys, "ps1") or sys.flags.interactive:
        # What Python remembers there is the last exception that was printed, after which the session went on.
        return Ending()
    return of_exception(getattr(sys, "last_exc", None) or getattr(sys, "last_value", None))


def _callers(frame: FrameType | None) -> Frames:
    frames: Frames = []
    while frame is not None:
        frames.append(_place(frame, frame.f_lineno))
        frame = frame.f_back
    return frames[::-1]


def _frames_of(trace: TracebackType | None) -> Frames:
    frames = _callers(trace.tb_frame.f_back) if trace is not None else []
    while trace is not None:
        frames.append(_place(trace.tb_frame, trace.tb_lineno))
        trace = trace.tb_next
    return _shown(frames)


def _place(frame: FrameType, line: int | None) -> tuple[str, str, int]:
    code = frame.f_code
    return code.co_filename, getattr(code, "co_qualname", code.co_name), line or 0


def _shown(frames: Frames) -> Frames:
    """Without our own frames, and without those of the launcher below the program."""
    shown: Frames = []
    for frame in frames:
        if frame[0].startswith(_OWN_FOLDER):
            if frame[0].endswith("_run.py"):
                shown.clear()
        else:
            shown.append(frame)
    return shown
