"""Captures with their truth: generate.py (--seed N | --first N --count M) [--family dcqcn] -o DIR.

Each seed is a folder DIR/sNNNNN with one capture per tap and truth.json.
"""

import argparse
import json
import os
import random
import time
import traceback

from frames import CaptureWriter, pfc_frame, roce_frame
from scenario import build_network, draw_scenario
from truth import add_truth


class Tap:
    """A capture point.

    host: one link, both directions; mid: all packets in the fabric; all_in and all_out: ingress and egress of all ports.
    """

    def __init__(self, kind, host=None, direction=None):
        """`direction` (in, out) leaves the other direction of the wire out."""
        self.kind = kind
        self.host = host
        self.records = []
        self.pauses = []
        self.direction = direction

    def position(self, source, destination):
        """The position of this tap on the way of a packet, or None."""
        if self.kind == "host":
            return 0.5 if source == self.host else 3.5 if destination == self.host else None
        return {"mid": 1.5, "all_in": 0.5, "all_out": 3.5}[self.kind]

    def observe(self, packet, time, position):
        """Records a packet that passes this tap."""
        if self.position(packet.source, packet.destination) != position:
            return
        if self.direction is not None:
            # one direction of the wire: only what one of the two sides sent
            if self.kind == "host":
                if (packet.source == self.host) != (self.direction == "out"):
                    return
            elif (packet.source < packet.destination) != (self.direction == "out"):
                return
        self.records.append((time, packet, packet.ecn))

    def observe_pause(self, time, index, on):
        """Records a PFC frame to the host of this tap."""
        if self.kind == "host" and self.host == index:
            self.pauses.append((time, index, on))


CAPTURE_START_NS = 1_790_000_000 * 10**9


def simulate(seed, out, family=None):
    """Simulates one seed, writes its captures and truth to a folder below `out`, and returns the truth."""
    for attempt in range(6):
        rng = random.Random(seed)
        settings = draw_scenario(seed, rng, family)
        faults = settings["faults"]
        settings["stop_at"] = int(settings["budget"] * (0.97 if not settings["endcut"] else 10))
        network = build_network(settings, rng, 4**attempt)
        # The hosts of the taps.
        source = 0
        destination = 1 if settings["layout"] == "pair" else len(network.hosts) - 1
        if settings["layout"] == "mesh":
            source, destination = network.connections[0][0].host.index, network.connections[0][1].host.index

        def make_tap(kind):
            """The tap of a kind."""
            return (
                Tap("host", source if kind == "src" else destination, settings["oneway"])
                if kind in ("src", "dst")
                else Tap(kind, None, settings["oneway"])
            )

        network.taps = [make_tap(k) for k in (settings["tapkinds"] if settings["taps"] == 2 else [settings["tapkind"]])]
        network.run(
            lambda running, now: (settings["endcut"] and running.data_packets >= settings["budget"])
            or max(len(tap.records) for tap in running.taps) > 27000
            or now > 3e9
        )
        runs = [run for connection in network.connections for endpoint in connection for run in endpoint.runs]
        spurious = [run for run in runs if run["reason"] == "timeout"]
        if settings["healthy"] and (runs or network.lost):
            continue  # A timer was too short: run once more with longer ones.
        if (
            not settings["healthy"]
            and not ({"rand", "burst", "resend", "nak", "ack", "rreq", "rresp", "rtail", "dtail", "drop"} & set(faults))
            and spurious
        ):
            continue
        if sum(len(tap.records) for tap in network.taps) > 0:
            break
    assert not (settings["healthy"] and (runs or network.lost)), "healthy run with resends"
    check_invariants(network, settings)
    folder = os.path.join(out, "s%05d" % seed)
    os.makedirs(folder, exist_ok=True)
    for name in os.listdir(folder):
        os.unlink(os.path.join(folder, name))
    truth = dict(S=settings, seed=seed, taps=[], healthy=settings["healthy"], npk=0)
    infos = []
    for tap_number, tap in enumerate(network.taps):
        infos.append(
            write_capture(network, settings, tap, tap_number, folder, random.Random(seed * 31 + tap_number), truth)
        )
    add_truth(network, settings, infos, truth)
    with open(os.path.join(folder, "truth.json"), "w") as file:
        json.dump(truth, file, indent=0)
    return truth


def check_invariants(network, settings):
    """Invariants of the endpoints: acknowledged is not more than received, first transmissions are in PSN order, no NAK without
    loss in a network that keeps order, and no port sends faster than its rate.
    """
    for one_end, other_end in network.connections:
        for endpoint in (one_end, other_end):
            assert endpoint.unacknowledged <= endpoint.max_psn <= endpoint.posted_end
            peer = endpoint.peer
            if peer.expected_psn is not None:
                assert (
                    endpoint.unacknowledged <= peer.expected_psn <= endpoint.max_psn
                ), "acknowledged more than received"
            for work in endpoint.work_queue[: endpoint.oldest_work]:
                assert work.end_psn <= endpoint.unacknowledged
            # First transmissions leave in PSN order.
            first = [packet.psn for packet in endpoint.request_log if not packet.resend]
            assert first == sorted(first)
            if not settings["spray"]:
                # A network that keeps order and loses nothing causes no NAK.
                if not network.lost and not network.duplicates:
                    assert not [packet for packet in peer.naks if packet.category == "nak"], "NAK without loss"
    # No port sends faster than its rate.
    for tap in network.taps:
        if tap.kind != "host":
            continue
        departures = sorted(
            (moment, packet.wire_length) for moment, packet, _ in tap.records if packet.source == tap.host
        )
        for (earlier, _length), (later, length) in zip(departures, departures[1:]):
            assert later - earlier > (length + 24) * 8e9 / network.hosts[tap.host].rate - 1, "faster than the port"


def write_capture(network, settings, tap, tap_number, folder, rng, truth):
    """Writes what passed a tap, after mirroring, capture loss, clock error, stamp quantum and disorder.

    A record is [true time, packet or pause, ECN, is a copy, stamp].
    """
    records = [[moment, packet, ecn, 0] for moment, packet, ecn in tap.records]
    records.sort(key=lambda record: record[0])
    info = dict(tap=tap, lost=0)
    if settings["midflow"] and records:
        start = int(len(records) * rng.uniform(0.02, 0.4)) if tap_number == 0 else None
        capture_from = records[start][0] if start is not None else truth["t0"]
        truth["t0"] = capture_from
        if tap_number:
            capture_from += rng.uniform(-1e5, 1e5)
    else:
        capture_from = -1
    records = [record for record in records if record[0] >= capture_from]
    pauses = [[moment, (index, on), 0, 0] for moment, index, on in tap.pauses if moment >= capture_from]
    info["t0"] = capture_from
    info["passed"] = {record[1].uid for record in records}
    if settings["mirror"]:
        copies = []
        for record in records:
            copies.append([record[0] + settings["mirror_delay"] * rng.uniform(0.8, 1.2), record[1], record[2], 1])
        # The copies keep the order of a queue.
        latest = 0
        for record in copies:
            latest = max(latest + 1, record[0])
            record[0] = latest
        records = sorted(records + copies, key=lambda record: record[0])
    if settings["caploss"]:
        kept = []
        burst_left = 0
        for record in records:
            if burst_left > 0:
                burst_left -= 1
                info["lost"] += 1
                continue
            if rng.random() < settings["caploss"] / (8 if settings["capburst"] else 1):
                info["lost"] += 1
                if settings["capburst"]:
                    burst_left = rng.randint(0, 15)
                continue
            kept.append(record)
        records = kept
    records = sorted(records + pauses, key=lambda record: record[0])
    offset = settings["offset"] if tap_number == 1 else 0
    drift = settings["drift"] if tap_number == 1 else 0
    for index, record in enumerate(records):
        record.append(
            CAPTURE_START_NS + int(record[0] * (1 + drift) + offset)
        )  # An integer: floats near 1.8e18 have steps of 256.
        quantum = settings["quantum"]
        if settings["us"]:
            quantum = max(quantum, 1000)
        record[4] -= record[4] % quantum
    if settings["disorder"]:
        records = [
            record
            for _, _, record in sorted(
                (record[0] + rng.uniform(0, settings["disorder"]), index, record)
                for index, record in enumerate(records)
            )
        ]
    name = "%s.%s" % (
        ["leaf-a", "spine-x"][tap_number] if settings["seed"] % 2 else ["sender", "receiver"][tap_number],
        settings["format"],
    )
    writer = CaptureWriter(os.path.join(folder, name), settings["format"], settings["us"], settings["snap"])
    first = {}
    copies_written = 0
    frames = {}
    snap = settings["snap"]
    for index, (moment, packet, ecn, is_copy, stamp) in enumerate(records):
        if isinstance(packet, tuple):
            writer.write(stamp, *pfc_frame(packet[1]))
            continue
        position = tap.position(packet.source, packet.destination)
        ttl = 64 if position == 0.5 else 63 if position == 1.5 else 62
        if is_copy and settings["mirror_kind"] == "ttl":
            ttl -= 1
        outbound = (position == 0.5) != bool(is_copy and settings["mirror_kind"] == "ttl")
        writer.write(stamp, *roce_frame(settings, packet, ecn, snap, ttl, outbound))
        if packet.uid in first:
            copies_written += 1
        else:
            first[packet.uid] = moment
            frames[packet.uid] = index + 1
    writer.file.close()
    info["first"] = first
    info["copies"] = copies_written
    info["frames"] = frames
    info["tend"] = max((record[0] for record in records), default=0)
    truth["npk"] = max(truth["npk"], len(records))
    truth["taps"].append(
        dict(file=name, frames=len(records), copies=copies_written, caplost=info["lost"], kind=tap.kind, host=tap.host)
    )
    return info


def main():
    """Command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int)
    parser.add_argument("--count", type=int)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("-o", required=True, help="folder for the captures")
    parser.add_argument("--family", choices=["dcqcn"], help="only senders under DCQCN, half of them ignoring CNPs")
    arguments = parser.parse_args()
    os.makedirs(arguments.o, exist_ok=True)
    seeds = (
        [arguments.seed] if arguments.seed is not None else range(arguments.first, arguments.first + arguments.count)
    )
    for seed in seeds:
        started = time.time()
        try:
            truth = simulate(seed, arguments.o, arguments.family)
            print(
                seed,
                "healthy" if truth["healthy"] else ",".join(truth["S"]["faults"]),
                truth["npk"],
                "frames %.1fs" % (time.time() - started),
                flush=True,
            )
        except Exception as error:
            print(seed, "FAILED", repr(error), flush=True)
            traceback.print_exc()


if __name__ == "__main__":
    main()
