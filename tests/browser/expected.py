#!/usr/bin/env python3
"""What a report has to show, from the dataset beside it, by a reader that shares no code with what made either (DuckDB).

    expected.py FOLDER NAME...      FOLDER/NAME is a dataset; FOLDER/NAME.json is written

Times are ns since the epoch as text, ids 16 hex digits; lists hold a value for each bin, from the first that anything was seen in.
"""

import json
import pathlib
import sys

import duckdb

# Columns of the timeline that add up over flows.
SUMS = ["wire_bytes", "data_packets", "ce", "cnp", "retransmitted_packets", "lost_downstream"]
# Those of which the largest value counts.
MOST = ["ack_rtt_max_ns", "inflight_bytes_max"]
# Classes of missing packets, as events tell them.
CLASSES = ["reordered", "network_lost", "capture_lost", "ambiguous", "unresolved"]


def rows(sql):
    """The rows of a query, as dictionaries."""
    relation = duckdb.sql(sql)
    return [dict(zip(relation.columns, row, strict=True)) for row in relation.fetchall()]


def expected(dataset):
    """Everything about one dataset."""
    bin_ns = json.loads((dataset / "run.json").read_text())["run"]["bin_ns"]

    def table(name):
        return f"read_parquet('{dataset.as_posix()}/{name}/*.parquet')"

    bin_of = f"time_ns // {bin_ns}"
    counted = f"(SELECT DISTINCT flow_id, tap FROM {table('flows')} WHERE counted)"
    span = rows(
        f"SELECT min(slot) AS first, max(slot) AS last FROM (SELECT {bin_of} AS slot FROM {table('timeline')}"
        f" UNION ALL SELECT {bin_of} FROM {table('events')})"
    )[0]
    first, bins = span["first"], span["last"] - span["first"] + 1

    def by_bin(query):
        """A query for `slot` and columns, as a list for each column."""
        lists = {}
        for row in rows(query):
            slot = row.pop("slot") - first
            for name, value in row.items():
                if value is not None:
                    lists.setdefault(name, [0] * bins)[slot] = value
        return lists

    sums = ", ".join(f"sum({name})::BIGINT AS {name}" for name in SUMS)
    most = ", ".join(f"max({name}) AS {name}" for name in MOST)
    whole = by_bin(f"SELECT {bin_of} AS slot, {sums} FROM {table('timeline')} SEMI JOIN {counted} USING (flow_id, tap) GROUP BY ALL")
    whole |= by_bin(f"SELECT {bin_of} AS slot, {most} FROM {table('timeline')} GROUP BY ALL")
    whole["cnp_unattributed"] = by_bin(
        f"SELECT {bin_of} AS slot, count(*) AS n FROM {table('events')} WHERE kind = 'cnp' AND flow_id IS NULL GROUP BY ALL"
    ).get("n", [0] * bins)
    for name in CLASSES:
        whole |= by_bin(
            f"SELECT {bin_of} AS slot, sum(value)::BIGINT AS {name} FROM {table('events')} SEMI JOIN {counted} USING (flow_id, tap)"
            f" WHERE kind = 'hole' AND detail = '{name}'"
            # A retransmission that was lost again is lost by the network as well.
            f" OR kind = 'lost_again' AND '{name}' = 'network_lost' GROUP BY ALL"
        )

    flows = rows(
        f"SELECT format('{{:016x}}', flow_id) AS flow_id, tap, counted, source, destination, destination_qpn, packets, wire_bytes,"
        f" payload_bytes, data_packets, ce, cnp, retransmitted_packets, retransmitted_bytes, missing, rnr_naks, network_lost,"
        f" lost_downstream, response_network_lost, first_time_ns::VARCHAR AS first_time FROM {table('flows')}"
    )
    series = {}
    for flow in flows:
        if flow["counted"]:
            series[flow["flow_id"]] = by_bin(
                f"SELECT {bin_of} AS slot, {sums}, {most}, max(ack_rtt_p50_ns) AS ack_rtt_p50_ns FROM {table('timeline')}"
                f" WHERE format('{{:016x}}', flow_id) = '{flow['flow_id']}' AND tap = {flow['tap']} GROUP BY ALL"
            )
    senders = {
        row["destination"]: by_bin(
            f"SELECT {bin_of} AS slot, max(senders_to_destination) AS n FROM {table('timeline')} JOIN {table('flows')} USING (flow_id, tap, epoch)"
            f" WHERE destination = '{row['destination']}' GROUP BY ALL"
        ).get("n", [])
        for row in rows(f"SELECT DISTINCT destination FROM {table('flows')}")
    }
    # A change is spread evenly over the time between its two readings; `within` is its part on the axis.
    begin, end = first * int(bin_ns), (first + bins) * int(bin_ns)
    on_axis = f"greatest(0, least(time_ns, {end}) - greatest(time_ns - interval_ns, {begin})) / interval_ns"
    samples = rows(
        f"SELECT concat_ws(' ', object, counter, coalesce(priority::VARCHAR, ''), coalesce(detail, '')) AS series, sum(change) AS change,"
        f" sum(change * {on_axis}) AS within"
        f" FROM {table('samples')} GROUP BY ALL HAVING sum(change) > 0"
    )
    return {
        "samples": {row["series"]: row["change"] for row in samples},
        "within": {row["series"]: row["within"] for row in samples},
        "bin_ns": int(bin_ns),
        "begin": str(first * int(bin_ns)),
        "bins": bins,
        "whole": whole,
        "series": series,
        "senders": senders,
        "flows": flows,
        "events": rows(f"SELECT time_ns::VARCHAR AS time, kind, psn, value FROM {table('events')} ORDER BY time_ns"),
    }


def main():
    """Writes one file for each dataset."""
    folder = pathlib.Path(sys.argv[1])
    for name in sys.argv[2:]:
        (folder / f"{name}.json").write_text(json.dumps(expected(folder / name)))


if __name__ == "__main__":
    main()
