#!/usr/bin/env python3
"""Checks the ranks in a merged Perfetto trace with Perfetto's own schema: the package `perfetto` from PyPI has it.

    check_merged.py TRACE DOCUMENT          DOCUMENT is the same run's JSON document

Collectives, slowed ones, their numbers, and the arrows from episodes to them are those of the document. With a trace processor in
`TRACE_PROCESSOR`, SQL counts the same.
"""

import collections
import json
import os
import sys

from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as schema

Event = schema.TrackEvent
NUMBERS = ("network_bytes", "ce", "cnp", "retransmitted_packets", "duration_ns")


def check(path, calls):
    """Compares a trace with the collectives of the document; returns what is wrong."""
    trace = schema.Trace()
    with open(path, "rb") as file:
        trace.ParseFromString(file.read())
    wrong = []

    def same(what, found, expected):
        if found != expected:
            wrong.append(f"{what}: {found!r}, expected {expected!r}")

    slices, episodes, opened, length, ranks = [], set(), {}, 0, 0
    for packet in trace.packet:
        if packet.HasField("track_descriptor"):
            ranks += packet.track_descriptor.process.process_name.startswith("rank ")
        event = packet.track_event
        if event.type == Event.TYPE_SLICE_BEGIN:
            opened[event.track_uuid] = (packet.timestamp, list(event.categories))
            if "collective" in event.categories:
                slices.append(event)
            if "episode" in event.categories:
                episodes.update(event.flow_ids)
        elif event.type == Event.TYPE_SLICE_END:
            begin, categories = opened.pop(event.track_uuid)
            if "collective" in categories:
                length += packet.timestamp - begin
    facts = collections.Counter()
    for event in slices:
        for fact in event.debug_annotations:
            if fact.name in NUMBERS:
                facts[fact.name] += fact.uint_value or fact.int_value or round(fact.double_value)
    expected = {
        "collectives": len(calls),
        "slowed": sum(call["is_slowed"] for call in calls),
        "length": sum(int(call["end_time"]) - int(call["start_time"]) for call in calls),
        "arrows": sum(call["episode"] is not None for call in calls),
        "ranks": len({(call["trace"], call["rank"]) for call in calls}),
    }
    same("collectives", len(slices), expected["collectives"])
    same("slowed", sum(event.name.endswith("(slowed)") for event in slices), expected["slowed"])
    same("length", length, expected["length"])
    same("arrows", sum(arrow in episodes for event in slices for arrow in event.terminating_flow_ids), expected["arrows"])
    same("ranks", ranks, expected["ranks"])
    for name in NUMBERS:
        same(name, facts[name], sum(call[name] or 0 for call in calls))
    if processor := os.environ.get("TRACE_PROCESSOR"):
        from perfetto.trace_processor import TraceProcessor, TraceProcessorConfig

        with TraceProcessor(trace=path, config=TraceProcessorConfig(bin_path=processor)) as tables:

            def one(query):
                return next(iter(tables.query(query))).n

            of = "from slice where category = 'collective'"
            same("collectives in SQL", one(f"select count(*) as n {of}"), expected["collectives"])
            same("slowed in SQL", one(f"select count(*) as n {of} and name glob '*(slowed)'"), expected["slowed"])
            same("length in SQL", one(f"select sum(dur) as n {of}"), expected["length"])
            arrows = """select count(*) as n from flow join slice cause on flow.slice_out = cause.id
                join slice victim on flow.slice_in = victim.id where cause.category = 'episode' and victim.category = 'collective'"""
            same("arrows in SQL", one(arrows), expected["arrows"])
            for name in NUMBERS:
                found = one(f"select coalesce(sum(extract_arg(arg_set_id, 'debug.{name}')), 0) as n {of}")
                same(f"{name} in SQL", found, sum(call[name] or 0 for call in calls))
    return wrong


def main():
    """Prints what is wrong; the exit code says whether anything is."""
    with open(sys.argv[2], encoding="utf-8") as file:
        calls = json.load(file)["collective_calls"]
    if not calls:
        sys.exit("the document has no collectives")
    wrong = check(sys.argv[1], calls)
    for line in wrong:
        print(line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
