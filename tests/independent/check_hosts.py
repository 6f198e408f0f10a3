#!/usr/bin/env python3
"""Checks the samples of two hosts beside their merged captures (tests/vm/hosts.sh), by the driver's counters and tcpdump.

    check_hosts.py RESULTS DATASET      RESULTS/hosts holds before.txt, after.txt and what tcpdump said; DATASET is the joined run

Each host has the counters of its own device alone. Each starts at the driver's value before, ends at that behind the traffic, and its
changes add up to the difference. Each tap has the packets that tcpdump captured there.
"""

import pathlib
import re
import sys

from check_dataset import Checker, table
from check_vm import RXE, statistic

# The hosts, their devices and interfaces.
HOSTS = {"client": ("rxe0", "va0"), "server": ("rxe1", "vb0")}


def main():
    """Checks one run."""
    results, dataset = map(pathlib.Path, sys.argv[1:])
    checker = Checker()
    before, after = (statistic(results / "hosts" / f"{name}.txt") for name in ("before", "after"))
    samples = table(dataset, "samples")
    checker.same("hosts with samples", {row["node"] for row in samples}, set(HOSTS))
    for host, (device, interface) in HOSTS.items():
        own = [row for row in samples if row["node"] == host]
        checker.same(f"{host}: objects", {row["object"] for row in own}, {f"{device}:1", interface})
        checker.same(f"{host}: the driver's counters are known", set(after[device]), set(RXE))
        for name, (counter, detail) in RXE.items():
            rows = [row for row in own if (row["object"], row["counter"], row["detail"]) == (f"{device}:1", counter, detail)]
            rows.sort(key=lambda row: row["time"])
            found = [rows[0]["value"], rows[-1]["value"], sum(row["change"] or 0 for row in rows)] if len(rows) > 1 else rows
            first, last = before[device][name], after[device][name]
            checker.same(f"{host}: {name}: first and last reading, sum of changes", found, [first, last, last - first])
    rose = lambda device, name: after[device][name] - before[device][name]
    # Losses between the two: what the one sent and the other did not receive is what it counted as missing, once at least.
    checker.same("packets were lost", rose("rxe0", "sent_pkts") > rose("rxe1", "rcvd_pkts"), True)
    checker.same("the receiver counted them", rose("rxe1", "out_of_seq_request") > 0, True)
    flows, taps = table(dataset, "flows"), {row["input"]: row["tap"] for row in table(dataset, "taps")}
    for host in HOSTS:
        said = (results / "hosts" / f"{host}.tcpdump.txt").read_text()
        tap = next((tap for name, tap in taps.items() if name.endswith(f"{host}.pcap")), None)
        counted = sum(row["packets"] for row in flows if row["tap"] == tap)
        checker.same(f"{host}: packets at its tap", counted, int(re.search(r"(\d+) packets captured", said)[1]))
        checker.same(f"{host}: tcpdump dropped nothing", "0 packets dropped by kernel" in said, True)
    for wrong in checker.wrong:
        print(f"   WRONG: {wrong}")
    print(f"   two hosts: {len(samples)} samples, {checker.compared} comparisons, {len(checker.wrong)} wrong")
    sys.exit(1 if checker.wrong else 0)


if __name__ == "__main__":
    main()
