#!/usr/bin/env python3
"""Checks runs of traffic in a VM (tests/vm/traffic.sh): what they measured, what status saw, and that stop left nothing.

    check_traffic.py RESULTS      RESULTS/traffic holds run/run.json, status.json, stop.json, again.code.txt and left.txt
"""

import json
import pathlib
import sys

from check_dataset import Checker


def main():
    folder = pathlib.Path(sys.argv[1]) / "traffic"
    checker = Checker()
    run = json.loads((folder / "run/run.json").read_text())
    # Two sizes in each of two directions.
    states = [stream["state"] for stream in run["streams"]]
    checker.same("states of a run's streams", states, ["done"] * 4)
    checker.same("streams with results", len(run["results"]["files"]), 4)
    sizes = [file["results"][0]["size_bytes"] for file in run["results"]["files"]]
    checker.same("sizes of messages", sizes, [1024, 4096, 1024, 4096])
    for stream in run["streams"]:
        # perftest finds no processor's frequency in an emulated machine and prints rates of 0: the messages are what counts.
        log = (folder / "run" / stream["log"]).read_text()
        row = log.partition("BW average[Gb/sec]")[2].splitlines()[1].split()
        checker.same(f"stream {stream['number']} has sent messages", int(row[1]) > 0, True)

    status = json.loads((folder / "status.json").read_text())
    checker.same("states while it runs", [stream["state"] for stream in status["streams"]], ["running"] * 4)
    moved = {
        rate["device"]: rate["sent"] + rate["received"] for host in status["hosts"] for rate in host["rates"]
    }
    checker.same("devices with rates", sorted(moved), ["rxe0:1", "rxe1:1"])
    checker.same("their counters move", all(rate > 0 for rate in moved.values()), True)

    stop = json.loads((folder / "stop.json").read_text())
    # Of each of the four streams a client and a server: a shell, timeout's part and the program.
    checker.same("processes were ended", sum(host["ended"] for host in stop["hosts"]) >= 8, True)
    checker.same("left by stop", [host["left"] for host in stop["hosts"]], [[], []])
    checker.same("processes behind it", (folder / "left.txt").read_text(), "")
    checker.same("a second stop", "exit code 0" in (folder / "again.code.txt").read_text(), True)
    for wrong in checker.wrong:
        print(f"   WRONG: {wrong}")
    print(f"   traffic: {len(states)} streams, {checker.compared} comparisons, {len(checker.wrong)} wrong")
    sys.exit(1 if checker.wrong else 0)


if __name__ == "__main__":
    main()
