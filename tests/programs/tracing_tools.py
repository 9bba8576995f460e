"""A debugger, profiler or coverage tool is at work: it still gets its events, and each array its line.

tracing_tools.py settrace|setprofile|monitoring
"""

import sys
from pathlib import Path

import harness
import mlx.core as mx

import mlx_memviz

calls = []


def note(frame, kind, argument):
    if frame.f_code.co_filename == __file__ and kind in ("call", "line"):
        calls.append((frame.f_code.co_name, kind))
    return note


def turn_on(tool: str):
    if tool == "settrace":
        sys.settrace(note)
        return lambda: sys.settrace(None)
    if tool == "setprofile":
        sys.setprofile(note)
        return lambda: sys.setprofile(None)
    monitoring = sys.monitoring
    monitoring.use_tool_id(monitoring.COVERAGE_ID, "test")
    monitoring.register_callback(
        monitoring.COVERAGE_ID, monitoring.events.PY_START, lambda code, offset: calls.append((code.co_name, "call"))
    )
    monitoring.set_events(monitoring.COVERAGE_ID, monitoring.events.PY_START | monitoring.events.LINE)
    return lambda: monitoring.set_events(monitoring.COVERAGE_ID, 0)


def build(number):
    return mx.zeros((1000 + number,))  # L:build


def work():
    for number in range(50):
        mx.eval(build(number))  # L:work


# Once before recording and once after: either may come first in a program.
turn_off = turn_on(sys.argv[1])
recording = mlx_memviz.start()
work()
turn_off()
work()
turn_off = turn_on(sys.argv[1]) if sys.argv[1] != "monitoring" else turn_off
recording.stop()
turn_off()
arrays = [e for e in recording.events() if harness.is_alloc(e) and 4000 <= e["requested"] < 4200]
expected = [harness.marked_line(__file__, "work"), harness.marked_line(__file__, "build")]
lines = [[line for file, _, line in event["traceback"] if Path(file) == Path(__file__)][-2:] for event in arrays]
harness.finish(
    arrays=len(arrays),
    right=sum(pair == expected for pair in lines),
    traced=sum(name == "build" and kind == "call" for name, kind in calls),
    check=recording.check(),
)
