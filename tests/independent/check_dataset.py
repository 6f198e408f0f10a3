#!/usr/bin/env python3
"""Checks datasets with a reader that shares no code with what wrote them (DuckDB).

    check_dataset.py --golden DIR FOLDER      FOLDER holds NAME/ (a dataset) and NAME.json (the same run's document)

For each dataset: every table opens and says its schema version; its flows are those of the document, column by
column; the additive columns of the timeline add up to each flow's row (the sum rule); rows refer to flows and taps
that exist; episodes, findings, steps, vantages and hops are those of the document, a finding's evidence being an object in
both; changes of samples are differences of their values; the totals are those of the golden file NAME.txt, where there is one.
"""

import argparse
import json
import pathlib
import sys

import duckdb

TABLES = ["flows", "timeline", "events", "episodes", "findings", "steps", "taps", "vantages", "hops", "hop_timeline", "ends", "waits", "collectives", "credits", "collective_waits", "mrc_connections", "mrc_paths", "uet_traffic", "hops_inband", "samples", "run"]

# The columns that every table begins with; the document has them in `run`.
KEY = ["run_id", "host", "capture"]

# What names a row of the timeline, and is no activity of its flow.
WHOSE = ("time", "flow_id", "tap", "epoch", "senders_to_destination")

# Tables that the document has whole, row for row in the same order.
WHOLE = ["episodes", "findings", "steps", "vantages", "hops", "waits", "collectives", "credits", "collective_waits"]

# The columns of these tables that name flows and taps.
FLOWS = {"hops": ["flow_id"], "hop_timeline": ["flow_id"]}
TAPS = {"episodes": ["tap"], "steps": ["tap"], "vantages": ["tap"], "hops": ["from_tap", "to_tap"], "hop_timeline": ["from_tap", "to_tap"]}

# The columns that name a series of samples.
SERIES = ("source", "node", "object", "counter", "priority", "queue", "detail")

# Counts and bytes: over a flow's rows they add up to the flow.
ADDITIVE = (
    "packets wire_bytes payload_bytes data_packets not_ect ect0 ect1 ce cnp retransmitted_packets "
    "retransmitted_bytes missing late lost_downstream naks rnr_naks acks messages"
).split()

# Key of a golden file: keys of the document's totals, added.
GOLDEN = {
    "frames": ["frames"],
    "wire_bytes": ["wire_bytes"],
    "payload_bytes": ["payload_bytes"],
    "roce_packets": ["roce_packets"],
    "not_ect": ["not_ect"],
    "ect1": ["ect1"],
    "ect0": ["ect0"],
    "ce": ["ce"],
    "data_packets": ["data_packets"],
    "data_ce": ["data_ce"],
    "acks": ["acks"],
    "cnp": ["cnp"],
    "naks": ["naks"],
    "rnr_naks": ["rnr_naks"],
    "skipped": ["missing"],
    "resends + filled": ["retransmitted_packets", "late"],
    "icrc_checked": ["icrc_checked"],
    "icrc_bad": ["icrc_bad"],
}


class Checker:
    """Counts what was compared, and collects what is wrong."""

    def __init__(self):
        self.compared, self.wrong = 0, []

    def same(self, what, found, expected):
        """Takes note of a comparison."""
        self.compared += 1
        if found != expected:
            self.wrong.append(f"{what}: {found!r}, expected {expected!r}")


def table(dataset, name):
    """The rows of a table, as dictionaries, without the names of the run; times in ns, ids as 16 hex digits."""
    parts = (dataset / name).as_posix() + "/*.parquet"
    relation = duckdb.sql(f"SELECT * FROM read_parquet('{parts}')")
    kinds = dict(zip(relation.columns, map(str, relation.types), strict=True))
    times = [column for column, kind in kinds.items() if kind.startswith("TIMESTAMP")]
    columns = []
    for column, kind in kinds.items():
        # No column is quoted: none has a name that SQL reserves.
        is_twin = column.endswith("_ns") and column.removesuffix("_ns") in times
        if column in KEY or is_twin:
            continue
        if column in times:
            columns.append(f"{column}_ns AS {column}")
        elif column.endswith("flow_id"):
            columns.append(f"printf('%016x', {column}) AS {column}")
        else:
            columns.append(column)
    rows = duckdb.sql(f"SELECT {', '.join(columns)} FROM read_parquet('{parts}')")
    return [dict(zip(rows.columns, row, strict=True)) for row in rows.fetchall()]


def plain(value):
    """A value of either side in one form: the document writes ids and times as texts."""
    if isinstance(value, str) and value.isdigit():
        return int(value)
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    return round(value, 6) if isinstance(value, float) else value


def golden(path):
    """The values of a golden file."""
    lines = (line.rsplit(" ", 1) for line in path.read_text().splitlines() if line and not line.startswith("#"))
    return {key: int(value) for key, value in lines}


def check_samples(rows, checker):
    """That changes are differences of values: of cumulative counters alone, with 2^32 added for a wrap, from zero after a reset."""
    before = {}
    for row in sorted(rows, key=lambda row: row["time"]):
        series = tuple(row[column] for column in SERIES)
        what = f"samples {series} at {row['time']}"
        last = before.get(series)
        before[series] = row
        checker.same(f"{what}: kind", row["kind"] in ("cumulative", "gauge"), True)
        if last is None or row["kind"] == "gauge":
            checker.same(f"{what}: no change", (row["change"], row["reset"]), (None, False))
            continue
        if row["change"] is None:
            continue
        checker.same(f"{what}: interval", row["interval_ns"], row["time"] - last["time"])
        difference = row["value"] - last["value"]
        possible = [row["value"]] if row["reset"] else [difference, difference + 2**32]
        near = any(abs(row["change"] - value) <= 1e-6 * max(abs(value), 1) for value in possible)
        checker.same(f"{what}: change", near and row["change"] >= 0, True)


def check(dataset, document, expected, checker):
    """Everything about one dataset."""
    tables = {name: table(dataset, name) for name in TABLES}
    for name in TABLES:
        parts = (dataset / name).as_posix() + "/*.parquet"
        keys = duckdb.sql(f"SELECT DISTINCT key::VARCHAR FROM parquet_kv_metadata('{parts}')").fetchall()
        checker.same(f"{name}: schema version in the metadata", any("schema_version" in key for (key,) in keys), True)
        named = duckdb.sql(f"SELECT DISTINCT {', '.join(KEY)} FROM read_parquet('{parts}')").fetchall()
        expected_key = [tuple(document["run"][column] for column in KEY)] if tables[name] else []
        checker.same(f"{name}: names of the run", named, expected_key)

    key = lambda row: (plain(row["flow_id"]), plain(row["tap"]), plain(row["epoch"]))
    flows = {key(row): row for row in tables["flows"]}
    checker.same("flows: rows with distinct keys", len(flows), len(tables["flows"]))
    said = {key(row): row for row in document["flows"]}
    checker.same("flows: those of the document", sorted(flows), sorted(said))
    for name, row in flows.items():
        for column, value in row.items():
            if name in said:
                checker.same(f"flow {name}: {column}", plain(value), plain(said[name].get(column)))

    sums = {}
    for row in tables["timeline"]:
        checker.same("timeline: flow is known", key(row) in flows, True)
        said = any(row[column] for column in row if column not in WHOSE) or row["inflight_bytes_max"] is not None
        checker.same("timeline: a row says something", said, True)
        sum_row = sums.setdefault(key(row), dict.fromkeys(ADDITIVE, 0))
        for column in ADDITIVE:
            sum_row[column] += row[column] or 0
    for name, row in flows.items():
        for column in ADDITIVE:
            # Where the other direction became known later, the rows before it have none.
            found = sums.get(name, {}).get(column)
            checker.same(f"flow {name}: sum of {column}", found, found if row[column] is None and not found else row[column])

    taps = {row["tap"] for row in tables["taps"]}
    for name in ("flows", "timeline", "events"):
        checker.same(f"{name}: taps are known", {row["tap"] for row in tables[name]} <= taps, True)
    ids = {row["flow_id"] for row in tables["flows"]}
    checker.same("events: flows are known", {row["flow_id"] for row in tables["events"] if row["flow_id"]} <= ids, True)

    for name in WHOLE:
        checker.same(f"{name}: rows", len(tables[name]), len(document[name]))
        for place, (row, said) in enumerate(zip(tables[name], document[name])):
            for column, value in row.items():
                value = json.loads(value) if (name, column) == ("findings", "evidence") else value
                stated = said.get(column)
                # Names are separated by spaces in the tables.
                stated = " ".join(stated) if isinstance(stated, list) else stated
                checker.same(f"{name} {place}: {column}", plain(value), plain(stated))
            checker.same(f"{name} {place}: columns", sorted(row), sorted(said))
    for name, columns in TAPS.items():
        found = {row[column] for row in tables[name] for column in columns}
        checker.same(f"{name}: taps are known", found <= taps, True)
    for name, columns in FLOWS.items():
        found = {row[column] for row in tables[name] for column in columns}
        checker.same(f"{name}: flows are known", found <= ids, True)
    named = {flow for row in tables["episodes"] for flow in row["flow_ids"].split()}
    checker.same("episodes: flows are known", named <= ids, True)
    episodes = {row["episode"] for row in tables["episodes"]}
    checker.same("episodes: numbers are a key", len(episodes), len(tables["episodes"]))
    checker.same("steps: episodes are known", {row["episode"] for row in tables["steps"]} <= episodes | {None}, True)

    check_samples(tables["samples"], checker)
    totals = document["totals"]
    checker.same("run: rows", len(tables["run"]), len(document["run"]["inputs"]))
    checker.same("run: frames", {row["frames"] for row in tables["run"]}, {totals["frames"]})
    checker.same("flows: packets", sum(row["packets"] for row in tables["flows"]), totals["roce_packets"] - totals["cnp"])
    for column in "payload_bytes data_packets acks naks rnr_naks retransmitted_packets missing".split():
        checker.same(f"flows: {column}", sum(row[column] for row in tables["flows"]), totals[column])

    if expected:
        for keys, names in GOLDEN.items():
            found, wanted = sum(totals[name] for name in names), sum(expected[part] for part in keys.split(" + "))
            if keys == "resends + filled":
                # A packet behind the highest PSN may also be a copy that the network made, or of unknown cause.
                found += sum(row["duplicates_network"] + row["unknown_packets"] for row in tables["flows"])
            checker.same(f"totals: {' + '.join(names)}", found, wanted)
        found = {f"opcode.{opcode}": entry["packets"] for opcode, entry in totals["opcodes"].items()}
        checker.same("totals: opcodes", found, {k: v for k, v in expected.items() if k.startswith("opcode.")})


def main():
    """Checks everything in the folder."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--golden", type=pathlib.Path, required=True)
    arguments.add_argument("folder", type=pathlib.Path)
    given = arguments.parse_args()
    failed = 0
    documents = sorted(given.folder.glob("*.json"))
    for path in documents:
        checker = Checker()
        expected = given.golden / f"{path.stem}.txt"
        expected = golden(expected) if expected.exists() else None
        try:
            check(path.with_suffix(""), json.loads(path.read_text()), expected, checker)
        except (duckdb.Error, KeyError, TypeError, ValueError) as error:
            checker.wrong.append(f"{type(error).__name__}: {error}")
        print(f"   {path.stem}: {checker.compared} comparisons, {len(checker.wrong)} wrong")
        for wrong in checker.wrong[:10]:
            print(f"      {wrong}")
        failed += bool(checker.wrong)
    if not documents or failed:
        sys.exit(f"{failed} of {len(documents)} datasets are wrong")
    print(f"   {len(documents)} datasets read by DuckDB {duckdb.__version__}")


if __name__ == "__main__":
    main()
