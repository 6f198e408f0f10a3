"""The truth of a run, as far as the packets of its captures decide it."""

import bisect

from dcqcn import ReactionPoint
from endpoint import READ_LAST, READ_MIDDLE
from frames import ip_text


def flow_key(settings, endpoint):
    """The flow of the packets that an endpoint sends."""
    return "%s|%s|%d" % (
        ip_text(endpoint.host.index, settings["v6"]),
        ip_text(endpoint.peer.host.index, settings["v6"]),
        endpoint.peer.qpn,
    )


def empty_flow():
    """Truth of a flow without items; a pair is [lo, hi]."""
    return dict(
        net=[0, 0],
        down=[0, 0],
        resp=[0, 0],
        respdown=0,
        cap=[0, 0],
        nak=[0, 0],
        timeout=[0, 0],
        rnr=[0, 0],
        implied=[0, 0],
        late=0,
        resplate=0,
        dup=[0, 0],
        cnp=0,
        peers=[],
        pair=0,
        n=0,
        resent=0,
        ev=[],
        ignore=0,
        lostany=0,
        ndata=0,
    )


def add_truth(network, settings, infos, truth):
    """Adds the truth per tap and flow. An item is [lo, hi]: lo is what the captured packets decide, hi all that truly happened.

    net (request lost before this tap): decided if a run of resends begins with this PSN, by a NAK or a timer. Its first transmission was not
      captured, packets before and behind it were captured before the resend, and the resend was captured. PSNs further inside a go-back-N
      window may have arrived and be sent again: not decided, right when claimed (hi). With spraying a hole that a resend fills equals a late
      packet: not decided. With capture loss a timer alone does not show which packet was lost: not decided.
    down (lost behind the tap): the transmission was captured, a captured NAK names it, and its resend was captured. Timers do not tell a lost
      packet from a lost ACK.
    resp: a READ response lost before this tap. Responses of the same READ before and behind it were captured, and the captured request that
      repeats the READ starts with it.
    runs: the first packet of the run was captured, and a packet of the same or a higher PSN before it. nak, rnr: the NAK was captured.
      timeout: both directions captured, no capture loss, stamps no coarser than a tenth of the timer. Runs inside another one are not decided.
    late: requests behind the highest captured PSN that are no resends.
    dup: copies by the network; decided with more than 1.2 ms between them in flows without resends, since closer ones equal a mirror's copies.
    cap (lost by the capture): never captured, delivered, acknowledged by a captured ACK, never sent again, hole visible.
    """
    for info, tap_truth in zip(infos, truth["taps"]):
        add_truth_of_tap(network, settings, info, tap_truth)
    if len(infos) == 2:
        truth["hops"] = truth_of_hops(network, settings, *infos)


def add_truth_of_tap(network, settings, info, tap_truth):
    """The truth of each flow at one tap, by the rules of `add_truth`."""
    skewed = settings["spray"] and settings["skew"] > 0
    tap = info["tap"]
    first = info["first"]
    capture_from = info["t0"]
    frames = info["frames"]
    flows = {}
    tap_truth["flows"] = flows
    tap_truth["tot_lost"] = 0
    tap_truth["events"] = []
    for connection in network.connections:
        for endpoint in connection:
            flow_of_endpoint = flow_key(settings, endpoint)
            position = tap.position(endpoint.host.index, endpoint.peer.host.index)
            response_position = position and (3.5 if position == 0.5 else 0.5 if position == 3.5 else 1.5)
            if tap.kind in ("all_in", "all_out", "mid"):
                response_position = position
            if position is None:
                continue
            flow = flows.setdefault(flow_of_endpoint, empty_flow())
            events = flow["ev"]
            requests = endpoint.request_log
            captured_requests = [packet for packet in requests if packet.uid in first]
            responses = endpoint.response_log
            captured_responses = [packet for packet in responses if packet.uid in first]
            acks = [packet for packet in endpoint.ack_log if packet.uid in first]
            flow["n"] += len(captured_requests) + len(captured_responses) + len(acks)
            flow["ndata"] += sum(1 for packet in captured_requests if packet.payload_length) + len(captured_responses)
            # All losses.
            for packet in requests:
                if not packet.fate:
                    continue
                flow["lostany"] += packet.sent_at >= capture_from - 1e6
                weight = packet.psn_count
                if packet.fate < position or packet.uid not in first:
                    flow["net"][1] += weight
                else:
                    flow["down"][1] += weight
            for packet in responses:
                if not packet.fate:
                    continue
                flow["lostany"] += packet.sent_at >= capture_from - 1e6
                if packet.fate < position or packet.uid not in first:
                    flow["resp"][1] += 1
                else:
                    flow["respdown"] += 1
                    flow["down"][1] += 1
            tap_truth["tot_lost"] += flow["lostany"]
            # The order of first captures.
            in_order = sorted(captured_requests, key=lambda packet: first[packet.uid])
            times = [first[packet.uid] for packet in in_order]
            highest_at = []
            highest = -1
            lowest_at = []
            lowest = 1 << 60
            for packet in in_order:
                top = packet.psn + packet.psn_count - 1
                if packet.psn < highest and not packet.resend:
                    flow["late"] += 1
                highest = max(highest, top)
                highest_at.append(highest)
                lowest = min(lowest, packet.psn)
                lowest_at.append(lowest)
            highest = -1
            for packet in sorted(captured_responses, key=lambda packet: first[packet.uid]):
                if packet.psn < highest and not packet.regenerated:
                    flow["resplate"] += 1
                highest = max(highest, packet.psn)
            flow["resent"] += sum(1 for packet in captured_requests if packet.resend)

            def before(time):
                """Highest and lowest PSN captured before `time`."""
                index = bisect.bisect_left(times, time)
                return (highest_at[index - 1], lowest_at[index - 1]) if index else (-1, 1 << 60)

            by_psn = {}
            for packet in requests:
                by_psn.setdefault(packet.psn, []).append(packet)
            responses_by_psn = {}
            for packet in endpoint.peer.response_log:
                responses_by_psn.setdefault(packet.psn, []).append(packet)
            peer_flow = flows.setdefault(flow_key(settings, endpoint.peer), empty_flow())
            done = set()
            for run in endpoint.runs:
                reason = run["reason"]
                resent_psn = run["psn"]
                first_packet = run["first"]
                flow[reason][1] += 1
                if run["time"] < capture_from or run["time"] > info["tend"]:
                    continue
                first_captured = first_packet is not None and first_packet.uid in first
                nak_captured = run["nak"] is not None and run["nak"].uid in first
                highest_before, lowest_before = before(first[first_packet.uid]) if first_captured else (-1, 1 << 60)
                # The run.
                if first_captured and not run["over"] and highest_before >= resent_psn:
                    decided = (
                        (nak_captured and first[run["nak"].uid] < first[first_packet.uid])
                        if reason in ("nak", "rnr")
                        else (reason == "implied" and settings["oneway"] is None)
                        or (
                            reason == "timeout"
                            and settings["oneway"] is None
                            and not info["lost"]
                            and max(settings["quantum"], 1000 * settings["us"]) <= network.timer_estimate / 10
                            and settings["disorder"] < network.timer_estimate / 10
                        )
                    )
                    if decided and not skewed and not network.duplicates:
                        flow[reason][0] += 1
                        events.append([reason, resent_psn & 0xFFFFFF, frames[first_packet.uid]])
                # The loss that caused it.
                earlier = [lost for lost in by_psn.get(resent_psn, ()) if lost.sent_at < run["time"] - 0.5]
                if earlier and reason in ("nak", "timeout") and resent_psn not in done:
                    lost = earlier[-1]
                    if lost.fate and not lost.resend and first_captured and not skewed:
                        if lost.fate < position:
                            if (
                                highest_before > resent_psn
                                and lowest_before < resent_psn
                                and (
                                    nak_captured and first[run["nak"].uid] < first[first_packet.uid]
                                    if reason == "nak"
                                    else not info["lost"] and settings["oneway"] is None
                                )
                                and not any(other.uid in first for other in by_psn[resent_psn] if not other.resend)
                            ):
                                flow["net"][0] += 1
                                done.add(resent_psn)
                                events.append(["net", resent_psn & 0xFFFFFF, frames[first_packet.uid]])
                        elif (
                            lost.uid in first
                            and reason == "nak"
                            and nak_captured
                            and first[lost.uid] < first[run["nak"].uid] < first[first_packet.uid]
                        ):
                            flow["down"][0] += 1
                            done.add(resent_psn)
                            events.append(["down", resent_psn & 0xFFFFFF, frames[lost.uid]])
                if reason == "implied" and first_captured and settings["oneway"] is None:
                    earlier_responses = [
                        lost for lost in responses_by_psn.get(resent_psn, ()) if lost.sent_at < run["time"]
                    ]
                    if (
                        earlier_responses
                        and earlier_responses[-1].fate
                        and not earlier_responses[-1].regenerated
                        and earlier_responses[-1].fate < response_position
                        and not skewed
                    ):
                        lost = earlier_responses[-1]
                        asked_at = first[first_packet.uid]
                        later_seen = any(
                            other.uid in first and first[other.uid] < asked_at and other.psn > resent_psn
                            for other in endpoint.peer.response_log
                            if resent_psn < other.psn < resent_psn + 600
                        )
                        previous_seen = any(
                            other.uid in first and first[other.uid] < asked_at
                            for other in responses_by_psn.get(resent_psn - 1, ())
                        ) and lost.opcode in (READ_MIDDLE, READ_LAST)
                        next_seen = any(
                            other.uid in first
                            and first[other.uid] < asked_at
                            and other.opcode in (READ_MIDDLE, READ_LAST)
                            for other in responses_by_psn.get(resent_psn + 1, ())
                        ) and lost.opcode in (READ_MIDDLE,)
                        if previous_seen and next_seen and later_seen:
                            peer_flow["resp"][0] += 1
                            peer_flow["ev"].append(["resp", resent_psn & 0xFFFFFF, frames[first_packet.uid]])
            # Lost by the capture.
            if info["lost"]:
                acknowledged = -1
                for answer in endpoint.peer.ack_log:
                    if answer.uid in first and answer.syndrome >> 5 == 0:
                        acknowledged = max(acknowledged, answer.psn)
                lowest_captured = lowest_at[-1] if lowest_at else 1 << 60
                highest_captured = highest_at[-1] if highest_at else -1
                for psn, transmissions in by_psn.items():
                    if any(other.uid in first for other in transmissions):
                        continue
                    if not any(
                        (not other.fate or other.fate > position) and other.uid in info["passed"]
                        for other in transmissions
                    ):
                        continue
                    flow["cap"][1] += transmissions[0].psn_count
                    if (
                        len(transmissions) == 1
                        and not transmissions[0].fate
                        and lowest_captured < psn < highest_captured
                        and psn <= acknowledged
                        and transmissions[0].category == "data"
                    ):
                        flow["cap"][0] += 1
            flow["peers"].append(flow_key(settings, endpoint.peer))
            # Pairing is decided by replies that name a captured request: ACKs with the PSN of a request with its AckReq bit set, and
            # first READ responses with the PSN of a READ request, each captured after it. Chance does not match 24 bits four times.
            asked = {}
            for packet in captured_requests:
                if packet.ack_requested:
                    asked.setdefault(packet.psn, first[packet.uid])
            answers = len(
                {
                    answer.psn
                    for answer in endpoint.peer.ack_log
                    if answer.uid in first and asked.get(answer.psn, 9e99) < first[answer.uid]
                }
                | {
                    answer.psn
                    for answer in endpoint.peer.response_log
                    if answer.uid in first and asked.get(answer.psn, 9e99) < first[answer.uid]
                }
            )
            flow["pair"] += answers if settings["disorder"] < 5e3 and settings["quantum"] <= 10000 else 0
            flow["cnp"] += sum(1 for other in endpoint.cnp_log if other.uid in first)
            if endpoint.config.get("ignores_cnps"):
                flow["ignore"] = 1
                if position == 0.5 and flow["pair"] >= 4:
                    flow["ign"] = ignoring_windows(endpoint, first, settings["rate"])
    add_duplicates(network, settings, info, flows)
    tap_truth["dup_close"] = sum(1 for lost, dd in network.duplicates if lost.uid in first and dd <= 1.05e6)
    tap_truth["cnp"] = sum(flow["cnp"] for flow in flows.values())
    tap_truth["acklost"] = sum(
        1 for packet in network.lost if packet.category in ("ack", "nak", "rnr") and packet.sent_at >= capture_from
    )
    for flow_of_endpoint in list(flows):
        if flows[flow_of_endpoint]["n"] == 0 and flows[flow_of_endpoint]["cnp"] == 0:
            flows[flow_of_endpoint]["empty"] = 1


def add_duplicates(network, settings, info, flows):
    """Truth of the copies that the network made."""
    first = info["first"]
    frames = info["frames"]
    for copy, delay in network.duplicates:
        endpoint = copy.sender
        flow = flows.get(flow_key(settings, endpoint))
        if flow is None or copy.uid not in first:
            continue
        flow["dup"][1] += 1
        original = copy.duplicate_of
        if original.uid in first and delay > 1.2e6 and copy.category == "data" and not endpoint.runs:
            flow["dup"][0] += 1
            flow["ev"].append(["dup", copy.psn & 0xFFFFFF, frames[copy.uid]])
        if copy.category == "rreq":
            peer_flow = flows.get(flow_key(settings, endpoint.peer))
            if peer_flow:
                peer_flow["dup"][1] += copy.psn_count


def truth_of_hops(network, settings, tap_a, tap_b):
    """Truth of two taps: what was lost between them, [lo, hi] per flow."""
    hops = {}
    for connection in network.connections:
        for endpoint in connection:
            ends = (endpoint.host.index, endpoint.peer.host.index)
            position_a = tap_a["tap"].position(*ends)
            position_b = tap_b["tap"].position(*ends)
            if position_a is None or position_b is None or position_a == position_b:
                continue
            near, far, from_tap, to_tap = (tap_a, tap_b, 0, 1) if position_a < position_b else (tap_b, tap_a, 1, 0)
            near_position, far_position = min(position_a, position_b), max(position_a, position_b)
            hop = hops.setdefault(
                flow_key(settings, endpoint), dict(fr=from_tap, to=to_tap, lost=[0, 0], ev=[], matched=0)
            )
            by_psn = {}
            for packet in endpoint.request_log:
                by_psn.setdefault(packet.psn, []).append(packet)
            far_begins = min(
                (
                    far["first"][packet.uid]
                    for packet in endpoint.request_log + endpoint.response_log
                    if packet.uid in far["first"]
                ),
                default=1e30,
            )
            for packet in endpoint.request_log + endpoint.response_log:
                hop["matched"] += packet.uid in near["first"] and packet.uid in far["first"]
                if not (near_position < packet.fate < far_position):
                    continue
                hop["lost"][1] += 1
                if packet.uid not in near["first"]:
                    continue
                if packet.category == "resp":
                    # A READ request that covers it was sent again after it, and its resend reached the second tap.
                    if (
                        not packet.regenerated
                        and not network.duplicates
                        and not (tap_a["lost"] or tap_b["lost"])
                        and any(
                            other.resend
                            and other.psn <= packet.psn < other.psn + other.psn_count
                            and other.uid in near["first"]
                            and other.sent_at > packet.sent_at
                            for other in endpoint.peer.request_log
                        )
                        and far_begins < near["first"][packet.uid]
                        and any(
                            other.psn == packet.psn and other.uid in far["first"] for other in endpoint.response_log
                        )
                    ):
                        hop["lost"][0] += 1
                        hop["ev"].append([packet.psn & 0xFFFFFF, near["frames"][packet.uid]])
                    continue
                # Decided: captured at the near tap, its resend at both, and the far tap captured before and behind.
                sent_again = any(
                    other.resend and other.sent_at > packet.sent_at and other.uid in near["first"]
                    for other in by_psn[packet.psn]
                )
                if (
                    sent_again
                    and far_begins < near["first"][packet.uid]
                    and any(
                        other.uid in far["first"] and other.sent_at > packet.sent_at for other in by_psn[packet.psn]
                    )
                    and not network.duplicates
                    and not (tap_a["lost"] or tap_b["lost"])
                ):
                    hop["lost"][0] += 1
                    hop["ev"].append([packet.psn & 0xFFFFFF, near["frames"][packet.uid]])
    return hops


def ignoring_windows(endpoint, first, rate):
    """For a sender that ignores CNPs: [windows over 1.5 times the bound, windows in which the bound is at most two thirds of its top rate].

    A window has 200 us and 64 packets. The reader may know nothing (800 Gbit/s, all sets, alpha 0 at first), the speed, or the speed and the
    set. The bound is the highest mean rate that a reaction point (Zhu et al. 2015) can have had.
    """
    data = sorted(
        (first[sent.uid], sent.wire_length)
        for sent in endpoint.request_log + endpoint.response_log
        if sent.uid in first and sent.payload_length
    )
    cnps = sorted(first[cnp.uid] for cnp in endpoint.cnp_log if cnp.uid in first)
    out = {}
    if len(data) < 200 or len(cnps) < 8:
        return {known: [0, 0] for known in ("open", "line", "paper")}
    # The windows.
    windows = []
    start = 0
    while start < len(data):
        end = start
        window_end = 0
        while end < len(data) and (data[end][0] - data[start][0] < 200e3 or end - start < 64):
            window_end += data[end][1]
            end += 1
        if end >= len(data):
            break
        windows.append((data[start][0], data[end][0], window_end * 8e9 / (data[end][0] - data[start][0]), start, end))
        start = end
    if not windows:
        return {known: [0, 0] for known in ("open", "line", "paper")}
    top_rate = max(row[2] for row in windows)
    for known in ("open", "line", "paper"):
        line_rate = 800e9 if known == "open" else rate
        bounds = [0.0] * len(windows)
        for name, parameters in ReactionPoint.SETS.items():
            if known == "paper" and name != "paper":
                continue
            reaction_point = ReactionPoint(line_rate, parameters)
            next_cnp = 0
            for window, (window_start, window_end, rate_seen, first_packet, last_packet) in enumerate(windows):
                while next_cnp < len(cnps) and cnps[next_cnp] < window_start:
                    fresh = not reaction_point.active
                    reaction_point.on_cnp(cnps[next_cnp])
                    next_cnp += 1
                    if fresh and known != "paper":
                        reaction_point.alpha = parameters["g"]
                        reaction_point.current_rate_bps = reaction_point.line
                total = 0.0
                samples = 0
                # The bound within the window, sampled at each packet.
                for packet in range(first_packet, last_packet):
                    time = data[packet][0]
                    while next_cnp < len(cnps) and cnps[next_cnp] <= time:
                        fresh = not reaction_point.active
                        reaction_point.on_cnp(cnps[next_cnp])
                        next_cnp += 1
                        if fresh and known != "paper":
                            reaction_point.alpha = parameters["g"]
                            reaction_point.current_rate_bps = reaction_point.line
                    reaction_point.on_sent(time, data[packet][1])
                    total += reaction_point.current_rate_bps
                    samples += 1
                bounds[window] = max(bounds[window], total / samples)
        telling = [(row[2], window_end) for row, window_end in zip(windows, bounds) if window_end <= top_rate * 2 / 3]
        out[known] = [sum(1 for rate_seen, window_end in telling if rate_seen > 1.5 * window_end), len(telling)]
    return out
