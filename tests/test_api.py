"""The API's promises: keys of events, files that hold what was recorded, errors that name what is wrong."""

import pickle
import re

import pytest
from replay import is_alloc, is_free
from running import run_program

# Keys that only some events have: those of arrays, and of what an array is computed from.
OPTIONAL = [{"array", "inputs"}, {"inputs"}, set()]


@pytest.mark.parametrize("level", ["buffers", "arrays"])
def test_events_have_the_documented_keys(level):
    facts = run_program("api.py", "events", level)
    documented = set()
    for names in re.findall(r"^    ([a-z_]+(?:, [a-z_]+)*)  ", facts["documented"], re.MULTILINE):
        documented.update(names.split(", "))
    assert len(documented) == 21
    every = {frozenset(keys) for keys in facts["keys"]}
    possible = {frozenset(documented - missing) for missing in OPTIONAL}
    assert every == (possible if level == "arrays" else {frozenset(documented - OPTIONAL[0])})
    allowed = {"stream": {"int", "NoneType"}, "shape": {"tuple", "NoneType"}, "step": {"int", "NoneType"}}
    allowed |= {"annotation": {"str", "NoneType"}, "is_temporary": {"bool"}, "moved": {"bool"}}
    allowed |= dict.fromkeys(("traceback", "evaluated_at", "inputs"), {"list"})
    allowed |= dict.fromkeys(("action", "device", "memory", "thread", "primitive", "dtype"), {"str"})
    allowed |= dict.fromkeys(("index", "time_us", "address", "size", "requested", "array"), {"int"})
    for key, types in facts["types"].items():
        assert set(types) <= allowed[key], key
    for action in facts["actions"]:
        assert f'"{action}"' in facts["documented"] or action.startswith("Array"), action


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    run_program("api.py", "file", folder)
    return folder


def snapshot(path):
    return pickle.loads(path.read_bytes())


# Entries of PyTorch's snapshot for each action: formats/torch_snapshot.md.
ENTRIES = {
    "AllocNew": ["segment_alloc", "alloc"],
    "AllocReuse": ["alloc"],
    "FreeActiveToCache": ["free_requested", "free_completed"],
    "FreeActiveToOS": ["free_requested", "free_completed", "segment_free"],
    "FreeCacheToOS": ["segment_free"],
}


@pytest.mark.parametrize("name, of", [("whole.pickle", "all"), ("list.pkl", "all"), ("large.pickle", "large")])
def test_saved_file_holds_the_events(files, name, of):
    events = pickle.loads((files / "events.bin").read_bytes())[of]
    expected = [
        (
            action,
            event["address"],
            event["size"] if action.startswith("segment") else event["requested"],
            event["time_us"],
        )
        for event in events
        for action in ENTRIES.get(event["action"], [])
    ]
    (entries,) = snapshot(files / name)["device_traces"]
    found = [(entry["action"], entry["addr"], entry["size"], entry["time_us"]) for entry in entries]
    assert [entry for entry in found if entry[0] != "snapshot"] == expected
    assert len(expected) > 20


def test_saved_segments_are_what_is_left(files):
    events = pickle.loads((files / "events.bin").read_bytes())["all"]
    active = {}
    for event in events:
        if is_alloc(event):
            active[event["address"]] = event["size"]
        elif is_free(event):
            del active[event["address"]]
    segments = snapshot(files / "whole.pickle")["segments"]
    blocks = {
        segment["address"]: segment["size"]
        for segment in segments
        if segment["blocks"][0]["state"] == "active_allocated"
    }
    assert blocks == active


def test_frames_are_innermost_first(files):
    events = pickle.loads((files / "events.bin").read_bytes())["all"]
    (entries,) = snapshot(files / "whole.pickle")["device_traces"]
    allocs = [entry for entry in entries if entry["action"] == "alloc"]
    for entry, event in zip(allocs, filter(is_alloc, events), strict=True):
        frames = [(frame["filename"], frame["name"], frame["line"]) for frame in entry["frames"]]
        assert frames == event["traceback"][::-1]


def test_an_empty_list_makes_a_file(files):
    assert all(entry["action"] == "snapshot" for entry in snapshot(files / "empty.pickle")["device_traces"][0])


def test_save_errors_leave_what_was_there(tmp_path):
    (tmp_path / "folder.pickle").mkdir()
    facts = run_program("api.py", "save_errors", tmp_path)
    assert facts["same"] is True and facts["ours_is_equal"] is True
    assert min(facts["lengths"]) > 2000, "the limit must fall in the middle of the file"
    assert facts["left"] == ["closed", "folder.pickle", "there.memviz", "there.pickle"]
    for name in ("suffix", "suffix of record", "suffix of dump_snapshot"):
        kind, _, text = facts["raised"][name]
        assert kind == "ValueError"
        assert ".pickle" in text, "the choices are named"
    for name, kind in {
        "missing folder": "FileNotFoundError",
        "folder": "IsADirectoryError",
        "read-only folder": "PermissionError",
        "full disk": "OSError",
        "full disk, .memviz": "OSError",
    }.items():
        found, kinds, text = facts["raised"][name]
        assert found == kind and "OSError" in kinds, (name, found, text)
        assert (".memviz" if name.endswith(".memviz") else ".pickle") in text, "the path is named"


def test_wrong_option_values_are_named():
    facts = run_program("api.py", "options")
    choices = {
        "level": ["buffers", "arrays"],
        "context": ["all", "alloc", "state"],
        "stacks": ["python", "all"],
        "max_entries": ["at least 1"],
        "depth": ["at least 1"],
        "min_size": ["at least 0"],
    }
    for name, (kind, _, text) in facts["raised"].items():
        assert kind == "ValueError", (name, text)
        assert name in text
        assert str(facts["values"][name][name]) in text
        assert all(choice in text for choice in choices[name]), text
    assert facts["unknown"][0] == facts["positional"][0] == "TypeError"
    assert facts["hooked"] == 0
