#!/usr/bin/env python3
"""Whether `fleet capture` of four hosts in the VM has what the incast sent: check_fleet.py RESULTS.

RESULTS/fleet is what tests/vm/fleet.sh leaves. Three devices (10.78.0.1, .3, .4) write 20 messages of 16,384 bytes to the fourth
(10.78.0.2): at least 20 * 16,384 bytes each pass the sender's port and the receiver's.
"""

import json
import sys
from pathlib import Path

RECEIVER = "10.78.0.2"
SENDERS = ["10.78.0.1", "10.78.0.3", "10.78.0.4"]
BYTES = 20 * 16_384


def main():
    """Checks one run."""
    folder = Path(sys.argv[1]) / "fleet"
    wrong = []

    def expect(what, found, wanted):
        if found != wanted:
            wrong.append(f"{what}: {found!r}, expected {wanted!r}")

    for name in ["capture", "report"]:
        expect(f"exit code of the {name}", (folder / f"{name}.code").read_text().strip(), "0")
    manifest = json.loads((folder / "fleet.json").read_text())
    expect("state", manifest["state"], "done")
    expect("exit code of the incast", manifest["command"]["exit_code"], 0)
    hosts = {host["name"]: host for host in manifest["hosts"]}
    expect("hosts", sorted(hosts), ["h1", "h2", "h3", "h4"])
    for name, host in hosts.items():
        expect(f"{name}: state", host["state"], "collected")
        expect(f"{name}: means", host["how"], "live")
        if not host["frames"]:
            wrong.append(f"{name}: no frames")
    # The receiver's port sees what all senders' ports see.
    frames = {name: host["frames"] or 0 for name, host in hosts.items()}
    if frames["h2"] < max(frames["h1"], frames["h3"], frames["h4"]):
        wrong.append(f"the receiver has fewer frames than a sender: {frames}")

    report = json.loads((folder / "report.json").read_text())
    expect("taps", sorted(tap["input"] for tap in report["taps"]), ["h1", "h2", "h3", "h4"])
    for tap in report["taps"]:
        if not tap["matched_packets"]:
            wrong.append(f"{tap['input']}: no packet that another tap saw, too")
    nodes = {sample["node"] for sample in report["samples"]}
    expect("hosts with samples", sorted(nodes & set(hosts)), ["h1", "h2", "h3", "h4"])
    for sender in SENDERS:
        sent = sum(
            int(flow["payload_bytes"])
            for flow in report["flows"]
            if flow["source"] == sender and flow["destination"] == RECEIVER
        )
        if sent < BYTES:
            wrong.append(f"{sender} wrote {sent} bytes to {RECEIVER}, and perftest at least {BYTES}")
    if wrong:
        sys.exit("fleet:\n  " + "\n  ".join(wrong))
    print(f"fleet: four hosts, {sum(frames.values())} frames, one report")


if __name__ == "__main__":
    main()
