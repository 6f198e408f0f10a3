"""Scenarios: what is drawn for a seed, and the network that follows from it."""

import math
import random

from dcqcn import ReactionPoint
from endpoint import Endpoint
from network import Host, Network

MICROSECOND = 1e3


def draw_scenario(seed, rng, family=None):
    """Draws all of a scenario: plain values only, which become the field S of the truth."""
    settings = dict(seed=seed)
    settings["healthy"] = rng.random() < 0.5
    settings["rate"] = rng.choice([10, 10, 25, 40, 50, 100, 100, 200, 400, 800]) * 1e9
    settings["rate_ign"] = rng.choice([10, 10, 10, 25, 40, 100, 400]) * 1e9
    settings["mtu"] = rng.choice([256, 512, 1024, 1024, 2048, 4096, 4096])
    settings["v6"] = rng.random() < 0.2
    settings["id"] = rng.choice(["host", "qp", "zero", "zero"])
    settings["faults"] = []
    if not settings["healthy"]:
        settings["faults"] = [
            rng.choice(
                [
                    "rand",
                    "rand",
                    "burst",
                    "resend",
                    "nak",
                    "ack",
                    "rreq",
                    "rresp",
                    "rtail",
                    "dtail",
                    "drop",
                    "rnr",
                    "spray_gbn",
                    "dup",
                    "dup",
                    "pfc",
                    "ignore",
                    "ignore",
                    "ignore",
                ]
            )
        ]
        if rng.random() < 0.2:
            settings["faults"].append(rng.choice(["rand", "ack", "nak", "dup", "resend", "rnr"]))
    faults = settings["faults"]
    if "ignore" in faults:
        settings["rate"] = settings["rate_ign"]
    if family == "dcqcn":
        faults = settings["faults"] = [] if settings["healthy"] else ["ignore"]
        settings["rate"] = settings["rate_ign"]
    settings["layout"] = rng.choice(["pair", "pair", "pair", "incast", "mesh"])
    if "drop" in faults or "pfc" in faults:
        settings["layout"] = "incast"
    settings["spray"] = rng.random() < (0.35 if settings["healthy"] else 0.12) or "spray_gbn" in faults
    settings["skew"] = (
        rng.choice([0, 1, 5, 20, 50, 100, 200, 500]) * MICROSECOND * rng.uniform(0.5, 1)
        if (settings["spray"] or rng.random() < 0.3)
        else 0
    )
    if "spray_gbn" in faults:
        settings["skew"] = max(settings["skew"], 2e3)
    if "rnr" in faults:
        settings["spray"] = False  # No document says what receivers do that place out of order and refuse with RNR.
    settings["npaths"] = rng.choice([2, 3, 4, 8, 16])
    settings["spray_ack"] = settings["spray"] and rng.random() < 0.15
    settings["mode"] = (
        "ooo" if settings["spray"] and "spray_gbn" not in faults else rng.choice(["gbn", "gbn", "gbn", "sr"])
    )
    if "spray_gbn" in faults:
        settings["mode"] = rng.choice(["gbn", "gbn", "sr"])
    settings["kinds"] = rng.choice(
        [
            ["write"],
            ["write"],
            ["send"],
            ["write", "send"],
            ["read"],
            ["read", "write"],
            ["writeimm", "write"],
            ["read", "send", "write"],
        ]
    )
    if {"rreq", "rresp", "rtail"} & set(faults):
        settings["kinds"] = rng.choice([["read"], ["read"], ["read", "write"], ["read", "send"]])
    if "rnr" in faults:
        settings["kinds"] = rng.choice([["send"], ["send", "write"], ["writeimm"]])
    settings["bidir"] = rng.random() < 0.2
    settings["congest"] = "ignore" in faults or rng.random() < 0.3 or family == "dcqcn"
    settings["budget"] = int(rng.choice([2000, 4000, 8000, 8000, 12000, 20000]) * rng.uniform(0.7, 1.3))
    settings["nflows"] = rng.choice([1, 1, 2, 2, 3, 4, 8, 16, 32, 64])
    if settings["congest"]:
        settings["budget"] = int(rng.uniform(15000, 40000))
        settings["nflows"] = min(settings["nflows"], 8)
        if settings["layout"] == "mesh":
            settings["layout"] = "incast"
    settings["depth"] = rng.choice([1, 2, 4, 16])
    settings["msg"] = rng.choice([64, 1000, 4096, 8192, 32768, 65536, 65536, 262144, 1 << 20])
    settings["msgvar"] = rng.random() < 0.5
    settings["paced"] = (not settings["congest"]) and rng.random() < 0.25
    settings["limits"] = rng.random() < 0.2
    settings["win"] = rng.choice([16, 32, 64, 128, 256, 512])
    settings["ack_every"] = rng.choice([0, 0, 4, 16])
    settings["ack_delay"] = rng.choice([0, 0, 500, 2000, 5000])
    settings["max_rd"] = rng.choice([1, 4, 16])
    settings["rto_n"] = rng.randint(0, 4)
    settings["backoff"] = rng.choice([1, 1, 2])
    settings["tmo_all"] = rng.random() < 0.6
    settings["cnp_mode"] = rng.choice(["qp", "qp", "ip", "port"])
    settings["cnp_int"] = rng.choice([4e3, 50e3, 50e3])
    settings["set"] = rng.choice(list(ReactionPoint.SETS))
    settings["cnp_ecn"] = rng.choice([0, 2, 2])
    settings["ignore_all"] = rng.random() < 0.6
    if family == "dcqcn":
        settings["depth"] = 16
        settings["msg"] = max(settings["msg"], 65536)
        settings["kinds"] = rng.choice([["write"], ["write", "send"], ["read", "write"]])
    # The capture.
    taps_draw = rng.random()
    settings["taps"] = 1
    settings["tapkind"] = rng.choice(["src", "src", "src", "dst", "dst", "mid", "all_in", "all_out"])
    if ("ignore" in faults or family) and rng.random() < 0.8:
        settings["tapkind"] = "src"
        taps_draw = max(taps_draw, 0.2) if family else taps_draw
    if taps_draw < 0.2:
        settings["taps"] = 2
        settings["tapkinds"] = rng.choice(
            [["src", "dst"], ["src", "dst"], ["src", "mid"], ["mid", "dst"], ["all_in", "all_out"], ["all_in", "mid"]]
        )
    settings["offset"] = rng.choice([0, 100, 5e3, -3e5, 2e6, 1e9, -5e7]) * rng.uniform(0.5, 1.5)
    settings["drift"] = rng.choice([0, 0, 1e-6, -5e-6])
    settings["mirror"] = settings["taps"] == 1 and rng.random() < 0.15
    settings["mirror_kind"] = rng.choice(["exact", "exact", "ttl"])
    settings["mirror_delay"] = rng.choice([300, 1e3, 5e3, 20e3, 100e3])
    settings["caploss"] = rng.choice([1e-3, 5e-3, 2e-2]) if rng.random() < (0.15 if settings["healthy"] else 0.1) else 0
    settings["capburst"] = rng.random() < 0.4
    settings["oneway"] = rng.choice(["in", "out"]) if settings["taps"] == 1 and rng.random() < 0.1 else None
    settings["quantum"] = 1
    settings["disorder"] = 0
    stamp_draw = rng.random()
    if stamp_draw < 0.15:
        settings["quantum"] = rng.choice([1000, 1000, 10_000, 1_000_000])
    elif stamp_draw < 0.28 and not settings["mirror"]:
        settings["disorder"] = rng.choice([2e3, 20e3, 100e3, 500e3])
    if settings["taps"] == 2:
        settings["quantum"] = rng.choice([1, 1, 1, 1000])
    settings["midflow"] = rng.random() < 0.3
    settings["endcut"] = rng.random() < 0.5
    settings["reuse"] = rng.random() < 0.08
    settings["psn0"] = rng.random() < (0.5 if settings["reuse"] else 0.05)  # NCCL starts at PSN 0.
    settings["fewports"] = rng.random() < 0.1
    settings["format"] = rng.choice(["pcap", "pcapng"])
    settings["us"] = rng.random() < 0.2
    settings["snap"] = rng.choice([96, 96, 128, 256, 0])
    settings["vlan"] = rng.choice([None, None, None, 100])
    if "dup" in faults:
        settings["dup"] = rng.choice([0.001, 0.01, 0.05])
        settings["dupd"] = rng.choice([(0, 1e3), (0, 1e5), (0, 1e6), (1.2e6, 1e7), (0, 1e7)])
    settings["path_dup"] = 0
    return settings


def build_network(settings, rng, timer_factor=1):
    """Builds hosts, faults and connections of a scenario. `timer_factor` lengthens the transport timers."""
    faults = settings["faults"]
    random.seed(settings["seed"] * 7919 + 1)
    network = Network(rng, settings["mtu"], settings["v6"], settings["id"])
    rate = settings["rate"]
    loss = network.loss
    probability = 10 ** rng.uniform(-3, -1.8)
    if "rand" in faults:
        loss["data"] = loss["resp"] = probability
        loss["rreq"] = probability
    if "burst" in faults:
        network.burst = (probability / 6, rng.randint(2, 30))
    if "resend" in faults:
        loss["data"] = loss["resp"] = probability
        loss["resend"] = rng.uniform(0.05, 0.3)
    if "nak" in faults:
        loss["data"] = probability
        loss["resp"] = probability
        loss["nak"] = rng.uniform(0.2, 0.7)
    if "ack" in faults:
        loss["ack"] = rng.uniform(0.02, 0.3)
    if "rreq" in faults:
        loss["rreq"] = rng.uniform(0.02, 0.15)
    if "rresp" in faults:
        loss["resp"] = probability
    if "rtail" in faults:
        loss["rtail"] = rng.uniform(0.02, 0.1)
    if "dtail" in faults:
        loss["dtail"] = rng.uniform(0.02, 0.1)
    network.loss_positions = rng.choice([[1], [1], [3], [4], [1, 3], [1, 3, 4]])
    if settings["taps"] == 2:
        network.loss_positions = rng.choice([[1], [3], [1, 3], [1, 3, 4]])
    if "dup" in faults:
        network.duplicate_probability = settings["dup"]
        network.duplicate_delay = settings["dupd"]
    network.spray = settings["spray"]
    network.spray_ack = settings["spray_ack"]
    paths = settings["npaths"]
    network.path_delays = [rng.uniform(0, settings["skew"]) for _ in range(paths)] if settings["skew"] else [0.0]
    if settings["skew"]:
        network.path_delays[0] = 0.0
        network.path_delays[-1] = settings["skew"]
    network.base_delay = rng.uniform(500, 5000)
    host_count = 2 if settings["layout"] == "pair" else rng.randint(3, 7)
    network.hosts = [Host(network, i, rate) for i in range(host_count)]
    network.cnp_mode = settings["cnp_mode"]
    network.cnp_interval = settings["cnp_int"]
    network.cnp_ecn = settings["cnp_ecn"]
    window = settings["win"]
    frame_bytes = settings["mtu"] + 82
    if settings["congest"]:
        if settings["layout"] == "pair":
            network.hosts[1].queue_rate = rate * rng.choice([0.25, 0.4, 0.5])
        bdp_us = rng.uniform(5, 30)
        network.mark_min = max(3 * frame_bytes, rate * bdp_us * 1e-6 / 8)
        network.mark_max = network.mark_min * rng.choice([2, 4, 10])
        network.mark_probability = rng.choice([0.05, 0.2, 1.0])
        window = max(window, int(2 * network.mark_max / frame_bytes))
        window = min(window, 1024)
    # The flows.
    flow_count = max(settings["nflows"], host_count - 1) if settings["layout"] == "incast" else settings["nflows"]
    if "pfc" in faults:
        flow_count = max(flow_count, 4)
    # The largest queue in front of a receiver, for the timers.
    round_trip = (
        2 * (network.base_delay + settings["skew"] + 1000)
        + flow_count
        * window
        * (frame_bytes + 24)
        * 8e9
        / (min(host.queue_rate for host in network.hosts))
        * (2 if settings["bidir"] or "read" in settings["kinds"] else 1)
        + settings["ack_delay"]
    )
    if "pfc" in faults:
        round_trip *= 3
    timer_exponent = max(5, math.ceil(math.log2(max(1, 3 * round_trip * timer_factor / 4096))))
    timeout = 4096.0 * 2 ** (timer_exponent + settings["rto_n"]) * rng.uniform(1, 2)
    network.timer_estimate = timeout
    if "drop" in faults:
        network.buffer_bytes = max(6 * frame_bytes, flow_count * window * frame_bytes * rng.uniform(0.1, 0.5))
    if "pfc" in faults:
        queued = flow_count * window * frame_bytes
        network.pfc = dict(pause_above=queued * rng.uniform(0.2, 0.5))
        network.pfc["resume_below"] = network.pfc["pause_above"] * 0.5
    ports = [rng.randint(49152, 65535) for _ in range(3)]
    used_qpns = set()

    def new_qpn(host):
        """A queue pair number that the host does not use yet."""
        while True:
            number = rng.choice([rng.randint(0x11, 0x400), rng.getrandbits(24)])
            if (host, number) not in used_qpns and number > 1:
                used_qpns.add((host, number))
                return number

    network.connections = []
    for flow in range(flow_count):
        if settings["layout"] == "pair":
            first, second = 0, 1
        elif settings["layout"] == "incast":
            first, second = flow % (host_count - 1), host_count - 1
        else:
            first, second = rng.sample(range(host_count), 2)
        config = dict(
            window=window,
            max_reads=settings["max_rd"],
            timeout=timeout,
            ack_every=(
                settings["ack_every"]
                if 0 < settings["ack_every"] < window // 2
                else 0 if settings["msg"] * 2 < window * settings["mtu"] * 0.8 else max(2, window // 4)
            ),
            ack_delay=settings["ack_delay"],
            backoff=settings["backoff"],
            timeout_resends_all=settings["tmo_all"],
        )
        if settings["mode"] == "ooo":
            config["hole_timer"] = (3 * settings["skew"] + round_trip) if rng.random() < 0.6 else None
        if "rnr" in faults:
            config["rnr"] = dict(
                p=rng.uniform(0.01, 0.1), code=rng.choice([1, 4, 8, 12, 14, 16]), dur=rng.uniform(5e3, 2e6)
            )
        if settings["limits"]:
            config["rate_limit"] = rate / max(1, flow_count) * rng.uniform(0.5, 1.5)
        if "ignore" in faults and (settings["ignore_all"] or flow % 2 == 0):
            config["ignores_cnps"] = True
        connect(network, settings, rng, first, second, config, new_qpn(first), new_qpn(second), ports, flow)
    return network


def connect(network, settings, rng, first, second, config, first_qpn, second_qpn, ports, flow, start=0.0):
    """Connects two queue pairs and starts their traffic; with reuse, their numbers are given again in the middle of the run."""
    first_host, second_host = network.hosts[first], network.hosts[second]
    first_port = rng.choice(ports) if settings["fewports"] else rng.randint(49152, 65535)
    second_port = first_port if rng.random() < 0.5 else rng.randint(49152, 65535)
    psn_mask = 0 if settings["psn0"] else 0xFFFFFF
    one_end = Endpoint(
        network,
        first_host,
        first_qpn,
        first_port,
        (rng.getrandbits(24) & psn_mask) + (1 << 24),
        settings["mode"],
        dict(config),
    )
    other_end = Endpoint(
        network,
        second_host,
        second_qpn,
        second_port,
        (rng.getrandbits(24) & psn_mask) + (1 << 24),
        settings["mode"],
        dict(config),
    )
    one_end.peer, other_end.peer = other_end, one_end
    one_end.path = rng.randrange(64)
    other_end.path = rng.randrange(64)
    for endpoint in (one_end, other_end):
        if settings["congest"]:
            endpoint.reaction_point = ReactionPoint(network.hosts[0].rate, ReactionPoint.SETS[settings["set"]])
        endpoint.host.endpoints.append(endpoint)
    network.connections.append((one_end, other_end))
    kinds = settings["kinds"]

    def length():
        """Draws the length of a message."""
        size = settings["msg"]
        if settings["msgvar"]:
            size = max(1, int(size * rng.uniform(0.2, 2)))
        return min(size, 480 * settings["mtu"])

    def post_one(endpoint, now):
        """Posts one work request."""
        kind = rng.choice(kinds)
        size = length()
        if kind == "read":
            size = min(size, 200 * settings["mtu"])
        endpoint.post(kind, size, now)

    def post_next(endpoint, _work, now):
        """Posts the next work request when one completes."""
        if network.data_packets >= settings["stop_at"] or endpoint.stop:
            return
        post_one(endpoint, now)

    posters = [one_end] + ([other_end] if settings["bidir"] else [])
    for endpoint in posters:
        if settings["paced"]:
            gap = max(5e3, min(2e6, rng.uniform(1.5, 20) * length() * 8e9 / network.hosts[0].rate * settings["nflows"]))

            def tick(now, endpoint=endpoint, gap=gap):
                """Posts work requests at a pace."""
                if network.data_packets >= settings["stop_at"] or endpoint.stop:
                    return
                if endpoint.posted_end - endpoint.unacknowledged < 2000:
                    post_one(endpoint, now)
                network.schedule(now + gap * rng.uniform(0.8, 1.2), tick)

            network.schedule(start + rng.uniform(0, gap), tick)
        else:
            endpoint.app = post_next

            def begin(now, endpoint=endpoint):
                for _ in range(settings["depth"]):
                    post_one(endpoint, now)

            network.schedule(start + rng.uniform(0, 20e3), begin)
    if settings["reuse"] and start == 0.0 and flow < 3:
        # The connection ends in the middle of the run. Its queue pairs are used again with other PSNs, perhaps another QPN.
        def swap(now):
            """Connects again when both ends have drained."""
            if not (
                one_end.unacknowledged == one_end.max_psn
                and other_end.unacknowledged == other_end.max_psn
                and one_end.unacknowledged == one_end.posted_end
                and other_end.unacknowledged == other_end.posted_end
            ):
                one_end.stop = other_end.stop = True
                network.schedule(now + 50e3, swap)
                return
            next_qpn = first_qpn if rng.random() < 0.5 else (first_qpn ^ 0x155) & 0xFFFFFF
            connect(
                network,
                settings,
                rng,
                first,
                second,
                config,
                next_qpn,
                second_qpn,
                ports,
                flow,
                start=now + rng.uniform(2e5, 3e6),
            )

        def wait_for_half(now):
            """Waits for about half of the run."""
            if network.data_packets < settings["budget"] * 0.4:
                network.schedule(now + 20e3, wait_for_half)
            else:
                one_end.stop = other_end.stop = True
                swap(now)

        network.schedule(1e3, wait_for_half)
