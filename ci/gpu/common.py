"""What the GPU programs share: facts of a recording, and what is around its first contradiction."""

import json
import sys

import mlx.core as mx

EVENT_KEYS = (
    "index",
    "action",
    "address",
    "size",
    "requested",
    "memory",
    "moved",
    "stream",
    "device",
    "thread",
    "primitive",
)


def is_alloc(event: dict) -> bool:
    return event["action"].startswith("Alloc") and event["size"] > 0 and not event["moved"]


def shares(events: list[dict]) -> dict:
    """How many allocations carry the line that built their array, how many at least the one that evaluated them."""
    allocs = [event for event in events if is_alloc(event)]
    own = sum(bool(event["traceback"]) and not event["is_temporary"] for event in allocs)
    either = sum(bool(event["traceback"] or event["evaluated_at"]) for event in allocs)
    return {
        "allocations": len(allocs),
        "own_stack": own,
        "by_evaluation": either - own,
        "no_stack": len(allocs) - either,
        "moves": sum(event["moved"] for event in events if event["action"] == "AllocNew"),
        "scalar_pool": sum(event["memory"] == "scalar pool" for event in allocs),
        "unified": sum(event["memory"] == "unified" for event in allocs),
        "devices": sorted({event["device"] for event in allocs}),
        "streams": sorted({str(event["stream"]) for event in allocs}),
    }


def check(trace, events: list[dict]) -> dict:
    """What `check()` found; on a contradiction, the events around it."""
    try:
        return trace.check()
    except Exception as error:
        text = str(error)
        numbers = [int(word.rstrip(":")) for word in text.split() if word.rstrip(":").isdigit()]
        at = numbers[0] if numbers else 0
        for event in events:
            if abs(event["index"] - at) <= 8:
                print({key: event.get(key) for key in EVENT_KEYS})
        addresses = {event["address"] for event in events if event["index"] == at}
        print("history of that address:")
        for event in [event for event in events if event["address"] in addresses][:20]:
            print({key: event.get(key) for key in EVENT_KEYS})
        return {"violation": text}


def facts_of(recording, **more) -> dict:
    """Facts of a recording that has stopped."""
    events = recording.events()
    stats = recording.stats()
    return {
        "mlx": mx.__version__,
        "check": check(recording.trace, events),
        "shares": shares(events),
        "lost": stats["lost"],
        "seen": stats["seen"],
        "hit_rate": stats["hit_rate"],
        "our_peak": stats["peak_active"]["bytes"],
        **more,
    }


def finish(facts: dict) -> None:
    """The facts, as the last line."""
    print(json.dumps(facts))
    sys.stdout.flush()
