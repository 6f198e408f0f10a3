#!/usr/bin/env python3
"""Checks a Perfetto trace with Perfetto's own schema: the package `perfetto` from PyPI has it, `protobuf` reads by it.

    check_perfetto.py TRACE DOCUMENT          DOCUMENT is the same run's JSON document with all flows

No field is unknown to the schema; tracks have different numbers and known parents; slices end; arrows begin and end; connections,
retransmission runs, episodes, findings and payload are those of the document. With a trace processor in `TRACE_PROCESSOR`, its
tables have the same numbers, and it reports no error of the trace.
"""

import collections
import json
import os
import sys

from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as schema

Event = schema.TrackEvent


def unknown(message):
    """True if a message has fields that the schema does not have: only those are lost when they are discarded."""
    before = message.ByteSize()
    message.DiscardUnknownFields()
    return message.ByteSize() != before


def check(path, document):
    """Compares a trace with the document; returns what is wrong."""
    trace = schema.Trace()
    with open(path, "rb") as file:
        trace.ParseFromString(file.read())
    wrong = []

    def same(what, found, expected):
        if found != expected:
            wrong.append(f"{what}: {found!r}, expected {expected!r}")

    same("unknown fields", unknown(trace), False)
    tracks, opened, begun, ended, slices = {}, collections.Counter(), set(), set(), collections.Counter()
    values = collections.defaultdict(list)
    for packet in trace.packet:
        if packet.HasField("track_descriptor"):
            track = packet.track_descriptor
            same(f"track {track.uuid} is new", track.uuid in tracks, False)
            tracks[track.uuid] = track
        if not packet.HasField("track_event"):
            continue
        event = packet.track_event
        same("clock", packet.timestamp_clock_id, schema.BUILTIN_CLOCK_REALTIME)
        opened[event.track_uuid] += {Event.TYPE_SLICE_BEGIN: 1, Event.TYPE_SLICE_END: -1}.get(event.type, 0)
        begun.update(event.flow_ids)
        ended.update(event.terminating_flow_ids)
        if event.type == Event.TYPE_COUNTER:
            values[event.track_uuid].append((packet.timestamp, event.double_counter_value))
        elif event.type != Event.TYPE_SLICE_END:
            slices[tracks[event.track_uuid].name.split(":")[0]] += 1
    parents = {track.parent_uuid for track in tracks.values() if track.HasField("parent_uuid")}
    same("parents", parents - set(tracks), set())
    same("open slices", set(opened.values()) - {0}, set())
    same("arrows", begun, ended)

    flows = [flow for flow in document["flows"] if flow["counted"]]
    connections = [track for track in tracks.values() if " QP 0x" in track.name]
    same("connections", len(connections), len({flow["flow_id"] for flow in flows}))
    same("runs", slices["retransmission runs"], sum(flow["retransmission_runs"] for flow in flows))
    same("episodes", slices["episodes"], len(document["episodes"]))
    same("findings", slices["findings"], len(document["findings"]))
    bits = 0
    for uuid, steps in values.items():
        if tracks[uuid].name == "rate":
            bits += sum(value * (after - time) / 1e9 for (time, value), (after, _) in zip(steps, steps[1:]))
    same("payload", round(bits / 8), sum(flow["payload_bytes"] for flow in flows))
    if processor := os.environ.get("TRACE_PROCESSOR"):
        from perfetto.trace_processor import TraceProcessor, TraceProcessorConfig

        with TraceProcessor(trace=path, config=TraceProcessorConfig(bin_path=processor)) as tables:
            errors = tables.query("select name, value from stats where severity = 'error' and value > 0")
            same("errors of the trace processor", [(row.name, row.value) for row in errors], [])
            found = next(iter(tables.query("select count(*) as n from slice"))).n
            same("slices in the trace processor", found, sum(slices.values()))
            found = next(iter(tables.query("select count(*) as n from counter"))).n
            same("values in the trace processor", found, sum(map(len, values.values())))
    return wrong


def main():
    """Prints what is wrong; the exit code says whether anything is."""
    with open(sys.argv[2], encoding="utf-8") as file:
        document = json.load(file)
    wrong = check(sys.argv[1], document)
    for line in wrong:
        print(line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
