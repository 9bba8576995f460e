"""The self-test under sys.settrace, sys.setprofile or sys.monitoring (one per process: the argument)."""

import sys

import selftest


def trace(*args):
    return trace


def ignore(*args):
    return None


mode = sys.argv[1]
if mode == "trace":
    sys.settrace(trace)
elif mode == "profile":
    sys.setprofile(ignore)
elif sys.version_info < (3, 12):
    print("SKIP sys.monitoring: needs 3.12")
    sys.exit()
else:
    monitoring = sys.monitoring
    events = monitoring.events
    watched = [events.LINE, events.CALL, events.PY_START, events.PY_RETURN, events.PY_YIELD, events.PY_RESUME]
    monitoring.use_tool_id(1, "memviz-test")
    monitoring.set_events(1, sum(watched))
    for event in watched:
        monitoring.register_callback(1, event, ignore)
selftest.crate_self_test()
selftest.main()
sys.settrace(None)
sys.setprofile(None)
print(f"{mode}: {selftest.walker}; checks {selftest.checks} mismatches {selftest.bad}")
sys.exit(selftest.bad > 0)
