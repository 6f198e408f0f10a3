"""Captures of mechanisms whose first cause is known, and how often it is named first: mechanisms.py make|score DIR.

make DIR [--seeds N] [--first N] [--only A,B]   captures, their truth, and a list of them
score DIR --bin BIN [--only A,B] [-v]           runs the analyser over them
"""

import argparse
import collections
import json
import os
import re
import subprocess

import mechanisms_of_taps
import mechanisms_of_traffic
from laboratory import Lab

CASES = dict(
    A=mechanisms_of_taps.delayed_not_lost,
    B=mechanisms_of_taps.answers_lost,
    C=mechanisms_of_traffic.black_hole,
    D=mechanisms_of_traffic.lossy_acceleration,
    E=mechanisms_of_taps.overtaking,
    F=mechanisms_of_traffic.small_flows,
    G=mechanisms_of_taps.clock_step,
    H=mechanisms_of_taps.late_mirror,
    I=mechanisms_of_traffic.adapter_drops,
    J=mechanisms_of_traffic.late_notifications,
    K=mechanisms_of_taps.two_encapsulations,
    L=mechanisms_of_traffic.paused_sender,
    M=mechanisms_of_traffic.implied_naks,
    N=mechanisms_of_traffic.equal_events,
)

ORDER = ("ok", "info", "warning", "critical")
SEVERE = ("warning", "critical")


def make(arguments):
    """Writes the captures of all seeds, each with its healthy look-alike."""
    os.makedirs(arguments.folder, exist_ok=True)
    lines = ["# Captures of mechanisms", "", "| Capture | What happened | First | Never |", "|---|---|---|---|"]
    for letter in letters(arguments):
        for seed in range(arguments.first, arguments.first + arguments.seeds):
            for healthy in (False, True):
                for truth in make_one(letter, seed, healthy, arguments.folder):
                    first = truth["first"] or dict(findings=["nothing"], words=None)
                    names = ", ".join(first["findings"]) or "words: " + first["words"]
                    lines.append(
                        "| %s | %s | %s | %s |"
                        % (" ".join(truth["files"]), truth["what"], names.replace("|", "/"), " ".join(truth["never"]))
                    )
                    print(" ".join(truth["files"]), truth["what"], flush=True)
    with open(os.path.join(arguments.folder, "README.md"), "w") as file:
        file.write("\n".join(lines) + "\n")


def make_one(letter, seed, healthy, folder):
    """One capture, or for N the two orders of the same events."""
    for order in (0, 1) if letter == "N" else (0,):
        lab = Lab(letter, seed, healthy)
        lab.order = order
        CASES[letter](lab)
        if letter == "N":
            lab.suffix = "ab"[order]
        if lab.healthy:
            lab.first, lab.never, lab.also = None, [], []
            lab.what = "healthy look-alike of: " + lab.what
        yield lab.write(folder)


def letters(arguments):
    """The mechanisms asked for."""
    return arguments.only.split(",") if arguments.only else list(CASES)


def value_of(document, path):
    """The number at a path: `totals.x`, `hops[].x` (a sum), `count(episodes[kind=x])`, `len(x)`, `sum(flows[counted].x)`."""
    if match := re.fullmatch(r"count\((\w+)\[(\w+)=(\w+)\]\)", path):
        table, column, value = match.groups()
        return sum(row[column] == value for row in document[table])
    if match := re.fullmatch(r"len\((\w+)\)", path):
        return len(document[match[1]])
    if match := re.fullmatch(r"sum\((\w+)\[(\w+)\]\.(\w+)\)", path):
        table, column, value = match.groups()
        return sum(row[value] or 0 for row in document[table] if row[column])
    if match := re.fullmatch(r"(\w+)\[\]\.(\w+)", path):
        return sum(row[match[2]] or 0 for row in document[match[1]])
    value = document
    for key in path.split("."):
        value = value[key]
    return value


def judge(truth, document):
    """Whether the root cause is first, what was said that is false, and which numbers are wrong."""
    findings = document["findings"]
    first = truth["first"]
    named = True
    if first:
        top = next((finding for finding in findings), None)
        named = (
            bool(top)
            and (
                top["id"] in first["findings"]
                or bool(first["words"] and re.search(first["words"], top["summary"], re.IGNORECASE))
            )
            and ORDER.index(top["severity"]) >= ORDER.index(first["severity"])
        )
    never = set(truth["never"])
    false = [finding["id"] for finding in findings if finding["id"] in never]
    if not first:
        false += [
            f["id"]
            for f in findings
            if f["severity"] in SEVERE and f["id"] not in truth["also"] and f["id"] not in never
        ]
    wrong = []
    for check in truth["checks"]:
        value = value_of(document, check["path"])
        if not check["min"] <= value <= check["max"]:
            wrong.append("%s %s, true %s" % (check["path"], value, check["min"]))
    return named, false, wrong


def score(arguments):
    """Runs the analyser over all captures and prints a table."""
    wanted = letters(arguments)
    table = collections.OrderedDict()
    firsts = {}
    for name in sorted(os.listdir(arguments.folder)):
        if not re.fullmatch(r"[A-N]-\d+.*\.json", name) or name[0] not in wanted:
            continue
        with open(os.path.join(arguments.folder, name)) as file:
            truth = json.load(file)
        command = [
            arguments.bin,
            *truth["files"],
            *truth["arguments"],
            "--format",
            "json",
            "-q",
            "--json-flows",
            "1000",
        ]
        run = subprocess.run(command, cwd=arguments.folder, capture_output=True, check=False)
        key = truth["mechanism"] + (" healthy" if truth["healthy"] else "")
        counts = table.setdefault(key, collections.Counter())
        counts["captures"] += 1
        if run.returncode not in (0, 1) or not run.stdout:
            counts["failed"] += 1
            print(name, "FAILED", run.stderr.decode()[-300:])
            continue
        document = json.loads(run.stdout)
        named, false, wrong = judge(truth, document)
        firsts[name] = document["findings"][0]["id"] if document["findings"] else None
        counts["named"] += named
        counts["clean"] += not false
        counts["right"] += named and not false
        counts["numbers"] += not wrong
        if arguments.verbose:
            said = ["%s %s/%s" % (f["id"], f["severity"], f["confidence"]) for f in document["findings"]]
            print(
                name,
                "first" if named else "NOT FIRST",
                "false: %s" % false if false else "",
                "; ".join(wrong),
                "|",
                ", ".join(said),
            )
    print(
        "\n%-12s %8s %12s %13s %6s %8s" % ("mechanism", "captures", "named first", "nothing false", "both", "numbers")
    )
    for key, counts in table.items():
        row = (key, *(counts[column] for column in ("captures", "named", "clean", "right", "numbers")))
        print("%-12s %8d %12d %13d %6d %8d" % row)
    both = [counts for key, counts in table.items() if "healthy" not in key]
    print(
        "\nfaulty: %d of %d named first with nothing false"
        % (sum(c["right"] for c in both), sum(c["captures"] for c in both))
    )
    quiet = [counts for key, counts in table.items() if "healthy" in key]
    print(
        "healthy: %d of %d without a false word" % (sum(c["clean"] for c in quiet), sum(c["captures"] for c in quiet))
    )
    orders = [(name, other) for name in firsts if name.endswith("a.json") and (other := name[:-6] + "b.json") in firsts]
    if orders:
        print(
            "N: the same first in both orders: %d of %d" % (sum(firsts[a] == firsts[b] for a, b in orders), len(orders))
        )


def main():
    """Command line."""
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(dest="command", required=True)
    for name, run in (("make", make), ("score", score)):
        command = commands.add_parser(name)
        command.set_defaults(run=run)
        command.add_argument("folder")
        command.add_argument("--only", help="mechanisms, such as A,C")
        command.add_argument("--seeds", type=int, default=6)
        command.add_argument("--first", type=int, default=1)
        command.add_argument("--bin", default="target/release/roce-analyze")
        command.add_argument("-v", "--verbose", action="store_true")
    arguments = parser.parse_args()
    if arguments.command == "score":
        arguments.bin = os.path.abspath(arguments.bin)
    arguments.run(arguments)


if __name__ == "__main__":
    main()
