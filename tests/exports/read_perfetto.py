"""Reads a Perfetto trace with the classes of the PyPI package `perfetto` and checks what its trace processor relies on.

usage: read_perfetto.py FILE

Checked: every packet has a sequence; every event's track is described, and so is its parent; slices of a track nest in order
of time; counters are counter tracks. Prints processes, counters and slices as one JSON line. The trace processor itself is a
binary that no package registry carries, so it is not run here.
"""

import collections
import json
import sys

from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as proto


def main() -> None:
    trace = proto.Trace()
    with open(sys.argv[1], "rb") as file:
        trace.ParseFromString(file.read())
    tracks, events = {}, collections.defaultdict(list)
    for packet in trace.packet:
        assert packet.trusted_packet_sequence_id > 0
        assert not packet.DiscardUnknownFields() and packet.ByteSize() > 0
        if packet.HasField("track_descriptor"):
            assert packet.track_descriptor.uuid not in tracks
            tracks[packet.track_descriptor.uuid] = packet.track_descriptor
        if packet.HasField("track_event"):
            events[packet.track_event.track_uuid].append((packet.timestamp, packet.track_event))
    facts = {"processes": {}, "counters": {}, "slices": {}, "events": sum(map(len, events.values()))}
    for track in tracks.values():
        assert not track.parent_uuid or track.parent_uuid in tracks
        if track.HasField("process"):
            facts["processes"][track.process.pid] = track.process.process_name
    assert len(facts["processes"]) == sum(track.HasField("process") for track in tracks.values())
    for uuid, listed in events.items():
        track = tracks[uuid]
        owner = owner_of(tracks, track)
        # As the trace processor does: by time, equal times in order of the file.
        listed.sort(key=lambda item: item[0])
        name = f"{owner}/{track.name or track.thread.thread_name}"
        if track.HasField("counter"):
            assert all(event.type == proto.TrackEvent.TYPE_COUNTER for _, event in listed)
            values = [event.counter_value for _, event in listed]
            facts["counters"][name] = {"unit": track.counter.unit, "max": max(values), "last": values[-1]}
        else:
            facts["slices"][name] = slices(listed)
    print(json.dumps(facts))


def owner_of(tracks: dict, track) -> int:
    """Process id of a track."""
    while track.parent_uuid:
        track = tracks[track.parent_uuid]
    return track.process.pid or track.thread.pid


def slices(listed: list) -> list:
    """Name, start, length and debug annotations of each slice of a track."""
    done, stack = [], []
    for time, event in listed:
        if event.type == proto.TrackEvent.TYPE_SLICE_BEGIN:
            stack.append((event.name, time, {note.name: note.uint_value for note in event.debug_annotations}))
        elif event.type == proto.TrackEvent.TYPE_SLICE_END:
            name, start, notes = stack.pop()
            done.append([name, start, time - start, notes])
        else:
            assert event.type == proto.TrackEvent.TYPE_INSTANT
    assert not stack
    return done


if __name__ == "__main__":
    main()
