#!/usr/bin/env python3
"""Reads a dataset of roce-analyze and says who was congested, and by whom.

    congested.py DIR

DIR is the folder of `roce-analyze CAPTURE... -o DIR`. pyarrow is enough to read it (pip install pyarrow); so are DuckDB, pandas and polars. The columns are
described in docs/schema.md.
"""

import pathlib
import sys

import pyarrow.parquet as pq


def rows(folder, name, columns):
    """Columns of a table, row by row: every file of its folder, one batch of rows in memory at a time."""
    for path in sorted((pathlib.Path(folder) / name).glob("*.parquet")):
        for batch in pq.ParquetFile(path).iter_batches(columns=columns):
            yield from batch.to_pylist()


def congested(folder):
    """Episodes of congestion with marks at their tap, each with the flows that were marked most in its time."""
    episodes = list(rows(folder, "episodes", ["tap", "kind", "start_time_ns", "end_time_ns", "destination", "senders_max", "ce"]))
    # Another tap's view of the same traffic is not counted again.
    columns = ["flow_id", "tap", "epoch", "source", "destination", "destination_qpn", "counted"]
    flows = {(row["flow_id"], row["tap"], row["epoch"]): row for row in rows(folder, "flows", columns) if row["counted"]}
    marks = [{} for _ in episodes]
    for row in rows(folder, "timeline", ["time_ns", "flow_id", "tap", "epoch", "ce"]):
        key = (row["flow_id"], row["tap"], row["epoch"])
        if row["ce"] == 0 or key not in flows:
            continue
        for episode, marked in zip(episodes, marks):
            is_within = episode["start_time_ns"] <= row["time_ns"] < episode["end_time_ns"]
            if is_within and (row["tap"], flows[key]["destination"]) == (episode["tap"], episode["destination"]):
                marked[key] = marked.get(key, 0) + row["ce"]
    for episode, marked in zip(episodes, marks):
        worst = sorted(marked, key=lambda key: (-marked[key], key))
        if worst:
            yield episode, [(flows[key], marked[key]) for key in worst[:5]]


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    for episode, worst in congested(sys.argv[1]):
        length = (episode["end_time_ns"] - episode["start_time_ns"]) / 1e6
        print(f"{episode['kind']} into {episode['destination']}: {length:.2f} ms, {episode['senders_max']} senders, {episode['ce']} marks")
        for flow, ce in worst:
            print(f"  {flow['source']} QP {flow['destination_qpn']:#x}: {ce} marks")


if __name__ == "__main__":
    main()
