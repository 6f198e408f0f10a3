#!/usr/bin/env python3
"""Checks doctor's verdicts in a VM (tests/vm/doctor.sh): which turned when a setting was made wrong on purpose, and turned back.

    check_doctor.py RESULTS      RESULTS/doctor holds good.json, WRONG.json and WRONG_mended.json, and the GIDs as the kernel has them
"""

import json
import pathlib
import sys

from check_dataset import Checker

# What each wrong setting turns: (check, object), the status before, the status with it; None: no such outcome.
TURNS = {
    # 1,500 bytes leave a path MTU of 1,024.
    "mtu": {("mtu.interface", "va0"): ("ok", "warning")},
    # Without the address the link-local GID alone is left. The two interfaces have no subnet in common any more.
    "gid": {
        ("gid.rocev2", "rxe0:1"): ("ok", "warning"),
        ("gid.choice", "rxe0:1"): ("info", "unknown"),
        ("routing.rails", "va0"): ("warning", None),
        ("routing.rails", "vb0"): ("warning", None),
        ("routing.rails", "host"): (None, "not_applicable"),
    },
    # A traffic class of 0 has no DSCP, where 26 is meant.
    "tos": {("roce.tos", "rdma_cm rxe0:1"): ("ok", "warning")},
}

# The value that a check has to show for its verdict.
SEEN = {"mtu": ("mtu.interface", "1500"), "tos": ("roce.tos", "0")}

# Groups of checks that concern nothing in a VM whose interfaces are veth: these have neither DCB nor ethtool's pause.
ABSENT = ("pfc.", "pause.", "qos.", "ecn.", "cnp.")


def reading(results, name):
    """The checks and the recommended options of one reading."""
    document = json.loads((results / "doctor" / f"{name}.json").read_text())
    return {(check["id"], check["object"]): check for check in document["checks"]}, document["recommended"]


def statuses(checks):
    """Status by check and object."""
    return {key: check["status"] for key, check in checks.items()}


def check_good(checker, checks, recommended, gids):
    """The settings as they are meant to be."""
    found = statuses(checks)
    for device, interface in (("rxe0", "va0"), ("rxe1", "vb0")):
        for key in [
            ("rdma.nodes", device),
            ("port.state", f"{device}:1"),
            ("gid.rocev2", f"{device}:1"),
            ("mtu.interface", interface),
            ("roce.tos", f"rdma_cm {device}:1"),
        ]:
            checker.same(f"good: {' '.join(key)}", found.get(key), "ok")
        # The first GID of RoCE v2 that has an IPv4 address: ::ffff:a.b.c.d.
        mapped = [index for index, gid, kind in gids[device] if kind == "RoCE v2" and gid.startswith("0000:0000:0000:0000:0000:ffff:")]
        index = {entry["ib_dev"]: entry["gid_index"] for entry in recommended}
        checker.same(f"good: index of {device} that is recommended", index.get(device), min(mapped))
    there = {key[0] for key, status in found.items() if status != "not_applicable"}
    checker.same("good: checks that concern nothing here", [name for name in sorted(there) if name.startswith(ABSENT)], [])


def main():
    """Checks one run."""
    results = pathlib.Path(sys.argv[1])
    checker = Checker()
    good, recommended = reading(results, "good")
    gids = {}
    for line in (results / "doctor" / "gids.txt").read_text().splitlines():
        device, index, gid, kind = line.split(maxsplit=3)
        gids.setdefault(device, []).append((int(index), gid, kind))
    check_good(checker, good, recommended, gids)
    for name, turns in TURNS.items():
        wrong, options = reading(results, name)
        before, after = statuses(good), statuses(wrong)
        turned = {
            key: (before.get(key), after.get(key))
            for key in before.keys() | after.keys()
            if before.get(key) != after.get(key)
        }
        checker.same(f"{name}: what turned", turned, turns)
        mended, again = reading(results, f"{name}_mended")
        checker.same(f"{name}: mended", (statuses(mended), again), (before, recommended))
        if name == "gid":
            checker.same("gid: devices that are recommended", [entry["ib_dev"] for entry in options], ["rxe1"])
        if name in SEEN:
            check, value = SEEN[name]
            seen = [seen["value"] for key in turns if key[0] == check for seen in wrong[key]["seen"]]
            checker.same(f"{name}: the value is shown", value in seen, True)
    for wrong in checker.wrong:
        print(f"   WRONG: {wrong}")
    print(f"   doctor: {len(good)} outcomes, {len(TURNS)} settings wrong and mended, {checker.compared} comparisons, {len(checker.wrong)} wrong")
    sys.exit(1 if checker.wrong else 0)


if __name__ == "__main__":
    main()
