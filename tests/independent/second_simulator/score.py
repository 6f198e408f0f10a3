"""Compares the analyser with the truth: score.py DIR --bin BIN [--cached] [--only SEED].

DIR has the folders that generate.py made. Truth is an interval [lo, hi] (`add_truth` in truth.py). Below lo the difference is missed, above
hi it is false; min(claimed, hi) is right. Precision is right / claimed, recall is found / decided, where decided is the sum of lo.
"""

import argparse
import collections
import json
import os
import subprocess

RUN_REASONS = ("nak", "timeout", "rnr")
# Items that are decided only where the packets show which two flows belong together.
DECIDED_BY_PAIR = ("down", "resp", "nak", "timeout", "rnr", "implied", "cap", "net")
TAGS = ("spray", "reuse", "psn0", "mirror", "disorder", "us", "midflow", "caploss", "oneway", "congest")
CAUSES_OF_ERRORS = ("spray_gbn", "mirror", "reuse", "dup", "rnr", "disorder")
FINDINGS_WITHOUT_TRUTH = ("incast", "stall", "unfair", "pause.storm", "ecmp.entropy")


class Scores:
    """Counts by class, and the list of errors of each."""

    def __init__(self):
        """No captures yet."""
        self.classes = {}
        self.tags = {}
        self.confidence = collections.Counter()
        self.healthy = 0
        self.alarms = []
        self.healthy_with_alarm = 0
        self.other = collections.Counter()
        self.failures = []
        self.captures = 0

    def of_class(self, name):
        """The counts of a class."""
        return self.classes.setdefault(name, dict(claimed=0, right=0, decided=0, found=0, false=[], missed=[]))

    def count(self, name, seed, claimed, interval, where=""):
        """Compares one number with its interval of truth."""
        low, high = interval
        claimed = claimed or 0
        counts = self.of_class(name)
        counts["claimed"] += claimed
        counts["right"] += min(claimed, high)
        counts["decided"] += low
        counts["found"] += min(claimed, low)
        if claimed > high:
            counts["false"].append((claimed - high, seed, where, "tool %d > %d" % (claimed, high)))
        if claimed < low:
            counts["missed"].append((low - claimed, seed, where, "tool %d < %d" % (claimed, low)))


class Capture:
    """The truth of one seed and the analyser's document about it."""

    def __init__(self, folder, truth):
        """`truth` is the content of truth.json in `folder`."""
        self.folder = folder
        self.truth = truth
        self.settings = truth["S"]
        self.seed = truth["seed"]
        self.faults = truth["S"]["faults"]
        self.files = [os.path.join(folder, tap["file"]) for tap in truth["taps"]]
        self.options = self.tool_options()
        self.document = None
        self.tap_number = {}
        self.rows = {}
        self.key_of_row = {}

    def tool_options(self):
        """Half of the DCQCN captures state the speed of the links; some of them the paper's parameters, too."""
        settings = self.settings
        options = []
        if settings["congest"] and self.seed % 2:
            options += ["--link-rate", "%dG" % (settings["rate"] / 1e9)]
            if settings["set"] == "paper" or ("ignore" in self.faults and self.seed % 4 == 1):
                options += ["--dcqcn", "paper"]
        return options

    def analyse(self, binary, cached):
        """Runs the analyser, or takes its last document. Returns the failure, or None."""
        path = os.path.join(self.folder, "tool.json")
        if not (cached and os.path.exists(path)):
            command = [binary, "--format", "json", "--threads", "1"] + self.options + self.files
            try:
                result = subprocess.run(["nice", "-n", "10"] + command, capture_output=True, timeout=120)
            except subprocess.TimeoutExpired:
                return self.seed, "timeout"
            if result.returncode != 0:
                return self.seed, result.returncode, result.stderr[-300:]
            with open(path, "wb") as file:
                file.write(result.stdout)
        with open(path) as file:
            self.document = json.load(file)
        self.index_rows()
        return None

    def index_rows(self):
        """The analyser's flow rows by tap and by the truth's flow key."""
        names = [os.path.basename(file) for file in self.files]
        self.tap_number = {tap["tap"]: names.index(os.path.basename(tap["input"])) for tap in self.document["taps"]}
        self.rows = collections.defaultdict(lambda: collections.defaultdict(list))
        self.key_of_row = {}
        for row in self.document["flows"]:
            key = "%s|%s|%d" % (row["source"], row["destination"], row["destination_qpn"])
            self.rows[self.tap_number[row["tap"]]][key].append(row)
            self.key_of_row[row["flow_id"], row["tap"]] = key

    def tag(self):
        """A short text of what the capture has in it."""
        settings = self.settings
        words = self.faults + [name for name in TAGS if settings.get(name)]
        if settings["quantum"] > 1:
            words.append("q%d" % settings["quantum"])
        if settings["taps"] == 2:
            words.append("2taps")
        return "[" + " ".join(words + [settings["mode"]]) + "]"


class Evidence:
    """Sums over all flows of a capture, as far as findings need them."""

    def __init__(self):
        """Nothing seen."""
        self.spread_decided = False
        self.spread_possible = False
        self.any_lost = 0
        self.losses_decided = 0
        self.timeouts_decided = 0
        self.timeouts_possible = 0


def total(rows, column):
    """The sum of a column over rows."""
    return sum(row[column] or 0 for row in rows)


def score_flow(scores, capture, tap_number, key, evidence):
    """Compares one flow at one tap."""
    settings = capture.settings
    seed = capture.seed
    faults = capture.faults
    tap = capture.truth["taps"][tap_number]
    flow = tap["flows"][key]
    rows = capture.rows[tap_number].get(key, [])
    mirror = settings["mirror"]
    # Several connections that all count from PSN 0 answer with equal PSNs: the pairs are not decided.
    equal_psns = settings.get("psn0") and settings["nflows"] > 1
    if equal_psns:
        flow["pair"] = 0
    peer_answers = 0
    if not equal_psns:
        peer_answers = max([tap["flows"].get(peer, {}).get("pair", 0) for peer in flow["peers"]] + [0])
    if max(flow["pair"], peer_answers) < 4:
        for item in DECIDED_BY_PAIR:
            flow[item][0] = 0
    where = "tap%d %s ev=%s" % (tap_number, key, flow["ev"][:6])

    def count(name, column, interval):
        """Compares one column."""
        scores.count(name, seed, total(rows, column), interval, where)

    count("network lost (before tap)", "network_lost", flow["net"])
    count("lost behind tap", "lost_downstream", flow["down"])
    count("READ responses lost", "response_network_lost", flow["resp"])
    count("lost by capture", "capture_lost", (0 if faults else flow["cap"][0], flow["cap"][1]))
    for reason in RUN_REASONS:
        count("runs " + reason, "runs_" + reason, flow[reason])
    count("runs implied", "runs_implied_nak", flow["implied"])
    count("runs unknown", "runs_unknown", (0, sum(flow[reason][1] for reason in RUN_REASONS + ("implied",))))
    count("network duplicates", "duplicates_network", flow["dup"])
    late_open = (
        mirror
        or flow["resent"]
        or tap["caplost"] > 0
        or settings["quantum"] > 1
        or "dup" in faults
        or settings["disorder"] > 0
    )
    late_possible = flow["n"] if settings["us"] and settings["disorder"] else flow["late"] + flow["resent"]
    count("late", "late", (0 if late_open else int(flow["late"] * 0.9), late_possible))
    cnps_decided = flow["cnp"] if flow["pair"] >= 4 and not mirror and not settings["reuse"] else 0
    count("CNPs of the flow", "cnp", (cnps_decided, flow["cnp"] * (2 if mirror else 1)))
    if rows and flow["peers"]:
        score_pairing(scores, capture, rows, flow, where)
    plain = not faults and not mirror and not settings["disorder"] and settings["quantum"] == 1
    if flow["late"] >= 24 and not flow["resent"] and plain:
        evidence.spread_decided = True
    if flow["late"] + flow["resplate"] > 0:
        evidence.spread_possible = True
    evidence.any_lost += flow["lostany"]
    evidence.losses_decided += flow["net"][0] + flow["down"][0] + flow["resp"][0]
    evidence.timeouts_decided += flow["timeout"][0]
    evidence.timeouts_possible += flow["timeout"][1]


def score_pairing(scores, capture, rows, flow, where):
    """A pair is right if the peer's row has the key of a true peer; it is decided by four answers."""
    counts = scores.of_class("pairing")
    for row in rows:
        if row["peer_flow_id"] is None:
            continue
        peer = capture.key_of_row.get((row["peer_flow_id"], row["tap"]))
        counts["claimed"] += 1
        if peer in flow["peers"]:
            counts["right"] += 1
        else:
            counts["false"].append((1, capture.seed, where, "peer %s, true %s" % (peer, flow["peers"])))
    if flow["pair"] >= 4:
        counts["decided"] += 1
        if any(row["peer_flow_id"] is not None for row in rows):
            counts["found"] += 1
        else:
            counts["missed"].append((1, capture.seed, where, "no peer, %d replies" % flow["pair"]))


def score_copies(scores, capture, tap_number):
    """Compares the mirror's copies of one tap."""
    tap = capture.truth["taps"][tap_number]
    settings = capture.settings
    claimed = sum(row["copies"] for row in capture.document["taps"] if capture.tap_number[row["tap"]] == tap_number)
    exact = settings["mirror_kind"] == "exact"
    name = "mirror copies (exact)" if exact else "mirror copies (TTL, MAC differ)"
    interval = (tap["copies"] if settings["mirror"] else 0, tap["copies"] + tap.get("dup_close", 0) * 2)
    scores.count(name, capture.seed, claimed, interval, "tap%d" % tap_number)


def score_hops(scores, capture):
    """Compares losses between two taps, and the direction of each flow's hop."""
    for key, hop in capture.truth.get("hops", {}).items():
        rows = [
            row
            for row in capture.document["hops"]
            if key in (capture.key_of_row.get((row["flow_id"], row[side])) for side in ("from_tap", "to_tap"))
        ]
        right = [
            row
            for row in rows
            if capture.tap_number[row["from_tap"]] == hop["fr"] and capture.tap_number[row["to_tap"]] == hop["to"]
        ]
        where = "%s ev=%s" % (key, hop["ev"][:6])
        scores.count("hops: lost between taps", capture.seed, total(right, "lost"), hop["lost"], where)
        counts = scores.of_class("hops: direction")
        counts["claimed"] += len(rows)
        counts["right"] += len(right)
        if hop["matched"] >= 50:
            counts["decided"] += 1
            counts["found"] += bool(right)
            if not right:
                counts["missed"].append((1, capture.seed, key, "no hop"))
        if len(right) < len(rows):
            counts["false"].append((1, capture.seed, key, "wrong way"))


def truth_of_ignored(capture):
    """[decided, possible] of a sender that ignores CNPs.

    Decided where the tap sees what senders put on the wire and a replay of DCQCN (`ignoring_windows` in truth.py) has 12 windows over the
    bound, two thirds of those that tell. Possible if any sender ignores CNPs.
    """
    settings = capture.settings
    taps = capture.truth["taps"]
    ignoring = [flow for tap in taps for flow in tap["flows"].values() if flow["ignore"]]
    if settings["taps"] == 1:
        at_source = (taps[0]["kind"] == "host" and settings["tapkind"] == "src") or taps[0]["kind"] == "all_in"
    else:
        at_source = settings["tapkinds"][0] in ("src", "all_in")
    known = "paper" if "--dcqcn" in capture.options else "line" if capture.options else "open"
    clean = (
        settings["oneway"] is None
        and not settings["mirror"]
        and not settings["caploss"]
        and settings["quantum"] <= 1000
        and settings["disorder"] < 5e3
        and not settings["spray"]
    )
    replays = [flow.get("ign", {}).get(known, [0, 0]) for flow in ignoring]
    proven = any(over >= 12 and over * 1.5 >= telling for over, telling in replays)
    ignores = "ignore" in capture.faults
    possible = any(flow["cnp"] > 0 for flow in ignoring) or (ignores and bool(ignoring))
    return ignores and at_source and clean and proven, possible


def score_findings(scores, capture, evidence):
    """Compares the findings, and lists warnings in healthy captures."""
    truth = capture.truth
    faults = capture.faults
    taps = truth["taps"]
    findings = {finding["id"]: finding for finding in capture.document["findings"]}
    lost_in_hops = any(hop["lost"][0] for hop in truth.get("hops", {}).values())
    acks_lost = sum(tap["acklost"] for tap in taps)
    lost_by_capture = any(flow["cap"][0] for tap in taps for flow in tap["flows"].values())
    truth_of = {
        "loss.network": (evidence.losses_decided > 0 or lost_in_hops, evidence.any_lost > 0 or acks_lost > 0),
        "retransmit.timeout": (evidence.timeouts_decided > 0, evidence.timeouts_possible > 0),
        "path.spread": (evidence.spread_decided, evidence.spread_possible),
        "rnr": (False, "rnr" in faults),
        "nak.fatal": (False, False),
        "loss.capture": (lost_by_capture and not faults, any(tap["caplost"] for tap in taps)),
        "cnp.ignored": truth_of_ignored(capture),
    }
    for name, (decided, possible) in truth_of.items():
        finding = findings.get(name)
        counts = scores.of_class("finding " + name)
        if finding:
            severity = finding["severity"]
            counts["claimed"] += 1
            counts["right"] += bool(possible)
            scores.confidence[name, finding["confidence"], severity, "true" if possible else "FALSE"] += 1
            if not possible:
                weight = 1 + (severity != "info")
                how = severity + "/" + finding["confidence"]
                counts["false"].append((weight, capture.seed, how, finding["summary"]))
        if decided:
            counts["decided"] += 1
            counts["found"] += finding is not None
            if not finding:
                counts["missed"].append((1, capture.seed, ",".join(faults), "not found"))
    alarms = [finding for finding in capture.document["findings"] if finding["severity"] in ("warning", "critical")]
    if not truth["healthy"]:
        for finding in alarms:
            if finding["id"] not in truth_of and finding["id"] not in FINDINGS_WITHOUT_TRUTH:
                scores.other[finding["id"], capture.seed] += 1
        return
    scores.healthy += 1
    # Healthy runs under DCQCN are congested: many senders, unequal shares and few ports are true there.
    expected = set()
    if capture.settings["congest"]:
        expected |= {"incast", "unfair"}
    if capture.settings["fewports"]:
        expected |= {"ecmp.entropy"}
    alarms = [finding for finding in alarms if finding["id"] not in expected]
    scores.healthy_with_alarm += bool(alarms)
    for finding in alarms:
        evidence_text = json.dumps(finding["evidence"])[:300]
        columns = [finding[column] for column in ("id", "severity", "confidence", "summary")]
        scores.alarms.append((capture.seed, *columns, evidence_text))


def score_capture(scores, capture):
    """Compares all of one capture."""
    scores.captures += 1
    scores.tags[capture.seed] = capture.tag()
    evidence = Evidence()
    for tap_number, tap in enumerate(capture.truth["taps"]):
        for key in tap["flows"]:
            score_flow(scores, capture, tap_number, key, evidence)
        score_copies(scores, capture, tap_number)
    score_hops(scores, capture)
    score_findings(scores, capture, evidence)


def ratio(part, whole):
    """A ratio as text."""
    return "%.4f" % (part / whole) if whole else "-"


def print_tables(scores):
    """Prints healthy captures, precision and recall by class, and findings by confidence."""
    print(scores.captures, "captures;", "errors", scores.failures)
    print("\nhealthy captures: %d, with a warning or critical: %d" % (scores.healthy, scores.healthy_with_alarm))
    for seed, *alarm in scores.alarms:
        print("  seed", seed, scores.tags[seed], *alarm)
    header = ("class", "claimed", "right", "prec", "decided", "found", "rec")
    print("\n%-34s %9s %9s %6s   %8s %8s %6s" % header)
    for name, counts in sorted(scores.classes.items()):
        claimed, right, decided, found = (counts[column] for column in ("claimed", "right", "decided", "found"))
        row = (name, claimed, right, ratio(right, claimed), decided, found, ratio(found, decided))
        print("%-34s %9d %9d %6s   %8d %8d %6s" % row)
    print("\nfindings by confidence")
    for key, number in sorted(scores.confidence.items()):
        print("  %-20s %-7s %-8s %-5s %d" % (*key, number))
    by_finding = dict(collections.Counter(key[0] for key in scores.other))
    print("\nother warnings in unhealthy captures:", by_finding, list(scores.other)[:30])


def print_errors(scores, longest):
    """Prints the largest errors of each class, and false ones by what was in the capture."""
    print("\nworst")
    for name, counts in sorted(scores.classes.items()):
        for column in ("false", "missed"):
            errors = counts[column]
            if not errors:
                continue
            print("%s %s: %d entries" % (name, column.upper(), len(errors)))
            for size, seed, where, text in sorted(errors, key=lambda error: -error[0])[:longest]:
                print("    %5d seed %d %s %s | %s" % (size, seed, scores.tags.get(seed), text, where[:200]))
    print("\nfalse by what was in the capture (faults, mirror, spray, reuse)")
    for name, counts in sorted(scores.classes.items()):
        sizes = collections.Counter()
        seeds = collections.defaultdict(set)
        for size, seed, _where, _text in counts["false"]:
            words = scores.tags[seed].strip("[]").split()
            group = "+".join(word for word in words if word in CAUSES_OF_ERRORS)
            group = group or ("spray" if "spray" in words else "other")
            sizes[group] += size
            seeds[group].add(seed)
        if sizes:
            groups = ["%s: %d in %d captures" % (group, n, len(seeds[group])) for group, n in sizes.most_common(6)]
            print("  %-30s" % name, ", ".join(groups))


def main():
    """Command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--bin", default="target/release/roce-analyze", help="the analyser")
    parser.add_argument("--only", type=int, metavar="SEED", help="one seed alone")
    parser.add_argument("--cached", action="store_true", help="use the documents of the last run")
    arguments = parser.parse_args()
    scores = Scores()
    for name in sorted(os.listdir(arguments.folder)):
        folder = os.path.join(arguments.folder, name)
        path = os.path.join(folder, "truth.json")
        if not os.path.exists(path):
            continue
        with open(path) as file:
            capture = Capture(folder, json.load(file))
        if arguments.only is not None and capture.seed != arguments.only:
            continue
        failure = capture.analyse(arguments.bin, arguments.cached)
        if failure:
            scores.failures.append(failure)
            continue
        score_capture(scores, capture)
    print_tables(scores)
    print_errors(scores, 8 if arguments.only is None else 50)


if __name__ == "__main__":
    main()
