"""What the answers about the test fleet have to be, from the truth that the simulator wrote."""

import json
import pathlib

import captures

# A bin of the timeline is 20 us in captures of this length.
BIN_NS = 20_000


def truth(folder, day):
    """The truth of a day."""
    return json.loads(pathlib.Path(folder, "truth", f"{day}.json").read_text())


def check(folder, answers):
    """Compares answers, lists of dictionaries by question, with the truth. Returns sentences about what differs."""
    wrong = []

    def same(what, found, expected):
        if found != expected:
            wrong.append(f"{what}: {found}, expected {expected}")

    def true(what, holds):
        if not holds:
            wrong.append(what)

    bad = truth(folder, captures.LAST)
    address = {f"h{number}": f"10.0.0.{number}" for number in range(1, 11)}
    marked = sum(flow["ce"] for flow in bad["flows"] if flow["destination"] == "h5")
    incast = next(episode for episode in bad["episodes"] if episode["kind"] == "incast")

    # Destinations: only the last day has any. h5 has all marks, h10 the losses.
    rows = answers["destinations"]
    same("congested destinations", [(row["hour"], row["host"], row["seen_at"]) for row in rows],
         [(f"{captures.LAST} 10:00", "h5", "receiver"), (f"{captures.LAST} 10:00", "h10", "receiver")])  # fmt: skip
    same("marks of h5", rows[0]["ce"], marked)
    same("senders of h5", (rows[0]["senders"], rows[0]["senders_at_once"]), (incast["senders"], incast["senders"]))

    # Incasts: the one of the truth lies within.
    rows = answers["incasts"]
    same("incasts", [(row["host"], row["destination"]) for row in rows], [("h5", address["h5"])])
    begin, end = bad["start_ns"] + incast["begin"], bad["start_ns"] + incast["end"]
    true("the incast's time", rows[0]["start_time_ns"] <= begin and end <= rows[0]["end_time_ns"])
    same("senders of the incast", rows[0]["senders"], incast["senders"])
    same("marks of the incast", rows[0]["ce"], incast["ce"])

    # Two ends: what was sent and what arrived is exact; lost is not more than the truth.
    rows = answers["ends"]
    for day in captures.DAYS:
        found = {row["flow_id"]: (row["sent"], row["arrived"]) for row in rows if row["start_second"].startswith(day)}
        expected = {
            int(flow["flow_id"], 16): (flow["packets_sent"], flow["packets_received"])
            for flow in truth(folder, day)["flows"]
            if flow["packets_received"]
        }
        same(f"packets of {day}", found, expected)
    lossy = [flow for flow in bad["flows"] if flow["packets_lost"]]
    same("flows that lost", [row["flow_id"] for row in rows if row["lost"]], [int(flow["flow_id"], 16) for flow in lossy])
    true("lost packets", 0 < rows[0]["lost"] <= lossy[0]["packets_lost"] <= rows[0]["sent"] - rows[0]["arrived"])

    # Racks: h6 of r2 is the aggressor, h1 of r1 the victim.
    rows = {(row["source_rack"], row["destination_rack"]): row for row in answers["racks"]}
    same("pairs of racks", sorted(rows), [("r1", "r1"), ("r1", "r2"), ("r2", "r1")])
    true("aggressors", rows["r2", "r1"]["aggressors"] > 0 and not rows["r1", "r1"]["aggressors"])
    true("victims", rows["r1", "r1"]["victims"] > 0 and not rows["r2", "r1"]["victims"])

    # Pairs: one is worse than its week, by retransmissions.
    worse = [(row["day"], row["source_host"], row["destination_host"], row["worse"]) for row in answers["pairs"] if row["worse_in"]]
    same("pairs worse than their week", worse, [(captures.LAST, "h5", "h10", "retransmissions")])
    # 9 pairs on 3 days with a day before.
    same("pairs with a day before", len(answers["pairs"]), 27)

    # Clocks: each is right within its bound; the bad one is found.
    for row in answers["clocks"]:
        expected = captures.offset(row["host"], row["day"]) - captures.offset(row["nearest_peer"], row["day"])
        true(f"the clock of {row['host']} on {row['day']}", abs(row["ahead_ns"] - expected) <= row["within_ns"])
    same("bad clocks", [(row["day"], row["host"]) for row in answers["clocks"] if row["is_bad"]], [(captures.LAST, captures.BAD_CLOCK[0])])

    # Jobs: the steps of the truth that took longer, within two bins each.
    slow = {(row["job"], row["day"]): (row["slow_steps"], row["slow_ns"]) for row in answers["jobs"]}
    for day in captures.DAYS:
        steps = truth(folder, day)["steps"]
        for job in captures.JOBS:
            lengths = sorted(step["end"] - step["begin"] for step in steps if step["job"] == job)
            usual = lengths[len(lengths) // 2]
            expected = [length - usual for length in lengths if length > usual * 1.2]
            count, lost = slow[job, day]
            same(f"slow steps of {job} on {day}", count, len(expected))
            true(f"time lost of {job} on {day}: {lost}, expected {sum(expected)}", abs(lost - sum(expected)) <= 2 * BIN_NS * len(expected))
    true("a job was slowed", any(count for count, _ in slow.values()))
    return wrong
