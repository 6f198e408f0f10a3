"""Mechanisms C, D, F, I, J, L, M and N: what one tap shows of losses, notifications, pauses and waits.

Each function builds one capture on a `Lab`. `lab.healthy` asks for the look-alike, in which nothing is wrong.
"""

from laboratory import IN_FABRIC, IN_RECEIVER, LAST_LINK, MS, US, lost_uids, resend_counts
from mechanism_parts import NO_CONGESTION, NO_LOSS, count_checks, random_loss


def black_hole(lab):
    """C: large packets of a connection never pass, small ones do."""
    rng = lab.rng
    lab.mtu = rng.choice([2048, 4096])
    lab.timer_exponent = rng.choice([12, 12, 13])
    lab.build(2)
    end = lab.connect(0, 1, window=rng.choice([8, 16]), ack_every=rng.choice([0, 4]))
    small = lab.connect(0, 1)
    limit = rng.choice([1500, 1600, lab.mtu - 200])
    lab.stop_at = 2500
    message = lab.mtu * rng.choice([1, 1, 4, 16])
    messages = None if lab.healthy else 8
    lab.stream(end, message, rng.choice([1, 2]), gap=200 * US, messages=messages)
    # Small messages for as long as the large ones are tried: eight times the timer.
    lab.stream(
        small,
        rng.choice([64, 900]),
        1,
        gap=rng.choice([100, 300]) * US,
        messages=int(9 * 4096 * 2**lab.timer_exponent / (rng.choice([300, 600]) * US)),
    )
    if lab.healthy:
        lab.say("large and small messages to the same host")
    else:
        lab.network.decide = lambda packet: IN_FABRIC if packet.wire_length - 14 > limit else 0
        lab.say(
            "packets above the MTU of a link on the way are never delivered, small ones are; the sender gives up after 7 repeats",
            first=["mtu"],
            words="MTU|(never|nothing|no answer|not) .*(acknowledged|answer)",
            also=["mtu", "retransmit.timeout", "loss.network", "stall", "nak.fatal"],
            never=["loss.capture", "incast", "path.spread"],
            path_mtu=limit,
        )
    lab.tap("link", 0, "sender")
    lab.run()
    if lab.healthy:
        lab.check("totals.runs_timeout", 0)
    else:
        lab.check("totals.runs_timeout", resend_counts(lab)["timeout"])
        lab.check("len(steps)", 0)
    lab.check("totals.runs_unknown", 0)


def lossy_acceleration(lab):
    """D: CNPs that receivers send with their NAKs."""
    rng = lab.rng
    lab.build(2)
    lab.timer_exponent = rng.randint(12, 15)
    lab.identification = rng.choice(["qp", "host"])
    mode = rng.choice(["gbn", "sr"])
    # Between 1 us before the NAK and 2 us behind it.
    side = 0.0 if lab.healthy else rng.choice([-1, 1]) * rng.uniform(0.1, 1.5) * US
    for _ in range(rng.randint(1, 4)):
        config = {} if lab.healthy else dict(cnp_before_nak=side)
        end = lab.connect(0, 1, mode, window=128, ack_every=16, **config)
        lab.dcqcn(end, rng.choice(["nvidia", "paper"]))
        lab.stream(end, rng.choice([65536, 262144]), 4)
    lab.stop_at = rng.randint(8000, 12000)
    if lab.healthy:
        lab.say("nothing is lost, so that no NAK brings a CNP")
    else:
        random_loss(lab, rng.uniform(0.001, 0.006), fate=rng.choice([IN_FABRIC, LAST_LINK]))
        lab.say(
            "packets are lost; each NAK brings a CNP, no packet is marked",
            first=["loss.network"],
            also=["loss.network", "retransmit.timeout", "stall"],
            never=["loss.capture", "path.spread", *NO_CONGESTION],
            cnp_before_nak_ns=side,
        )
    lab.tap("link", rng.choice([0, 1]))
    lab.run()
    lab.check("totals.data_ce", 0)
    lab.check("count(episodes[kind=ecn])", 0)
    lab.check("count(episodes[kind=incast])", 0)
    count_checks(lab)


def small_flows(lab):
    """F: many small flows on fast links, with or without random losses."""
    rng = lab.rng
    lab.rate = rng.choice([100, 200, 400]) * 1e9
    lab.mtu = rng.choice([1024, 4096])
    senders = rng.randint(3, 6)
    lab.build(senders + 1)
    flows = rng.randint(12, 40)
    # All together 20 to 100 Mbit/s.
    total = rng.uniform(20e6, 100e6)
    size = rng.choice([256, 1024, 4096, 8192])
    gap = flows * size * 8e9 / total
    for flow in range(flows):
        end = lab.connect(flow % senders, senders, ack_every=0)
        lab.stream(
            end,
            (size // 2, size),
            rng.choice([1, 2, 4]),
            kind=rng.choice(["write", "send", "write send"]),
            start=rng.uniform(0, gap),
            gap=gap,
        )
    lab.stop_at = rng.randint(3000, 6000)
    if lab.healthy:
        lab.say("many small flows that use almost nothing of the link")
    else:
        random_loss(lab, rng.uniform(0.003, 0.02))
        lab.say(
            "packets of small flows are lost by chance; the links are idle",
            first=["loss.network", "retransmit.timeout"],
            words="lost",
            also=["loss.network", "retransmit.timeout", "stall"],
            never=["loss.capture", "path.spread", *NO_CONGESTION],
        )
    lab.tap("all_in", None, "senders")
    lab.run(6e9)
    lab.check("count(episodes[kind=incast])", 0)
    count_checks(lab)


def adapter_drops(lab):
    """I: the tap is on the receiver's link; the adapter drops what it saw, some of it for a wrong ICRC."""
    rng = lab.rng
    lab.build(2)
    bits = lab.seed % 2
    lab.snap = 0 if bits else lab.snap
    lab.mtu = rng.choice([1024, 4096])
    # ACKs leave 0.2 to 0.9 us behind their packet.
    for _ in range(rng.randint(1, 3)):
        end = lab.connect(0, 1, ack_delay=rng.uniform(200, 900), ack_every=rng.choice([1, 4]))
        lab.stream(end, rng.choice([16384, 65536]), 4)
    lab.stop_at = rng.randint(2500, 4000) if bits else rng.randint(5000, 8000)
    probability = 0 if lab.healthy else rng.uniform(0.001, 0.006)

    def decide(packet):
        if packet.category == "data" and lab.rng.random() < probability:
            if bits:
                lab.network.corrupted.add(packet.uid)
            return IN_RECEIVER
        return 0

    lab.network.decide = decide
    lab.tap("link", 1, "receiver")
    if lab.healthy:
        lab.say("a tap on the receiver's link; the adapter takes everything")
    elif bits:
        lab.say(
            "bits flip on the way; the receiver's adapter drops the packets with a wrong ICRC and asks for them again",
            first=["icrc.bad"],
            also=["icrc.bad", "retransmit.timeout", "stall"],
            never=["loss.capture", "path.spread", "incast"],
        )
    else:
        lab.say(
            "the receiver's adapter drops packets that reached it",
            words="receiver|adapter",
            also=["loss.network", "retransmit.timeout", "stall"],
            never=["loss.capture", "path.spread", "incast"],
        )
    lab.run()
    if bits:
        lab.check("totals.icrc_bad", len(lab.network.corrupted))
    count_checks(lab)


def late_notifications(lab):
    """J: CNPs leave 1 to 2.5 ms after the first mark of a train; in the look-alike after some microseconds."""
    rng = lab.rng
    lab.rate = rng.choice([25, 50]) * 1e9
    lab.mtu = 4096
    lab.build(2)
    lab.timer_exponent = 15
    network = lab.network
    network.hosts[1].queue_rate = lab.rate * 0.5
    network.cnp_interval = 50 * US
    network.cnp_delay = rng.uniform(2, 15) * US if lab.healthy else rng.uniform(1.0, 2.5) * MS
    # Kmin 5 us and Kmax 50 us of the link, Pmax 0.2 (the paper: 5 KB and 200 KB at 40 Gbit/s, Pmax 0.01).
    network.mark_min = lab.rate / 8 * 8e-6
    network.mark_max = network.mark_min * 4
    network.mark_probability = 0.2
    end = lab.connect(0, 1, window=1024, ack_every=16)
    lab.dcqcn(end, rng.choice(["paper", "nvidia"]))
    # Bursts of two to three milliseconds of the slower link, so that a train of marks outlasts the delay.
    burst = int(lab.rate / 2 * rng.uniform(3, 4) * 1e-3 / 8)
    bursts = 4

    def send(now):
        for _ in range(max(1, burst // (1 << 20))):
            end.post("write", 1 << 20, now)

    for index in range(bursts):
        network.schedule(10 * US + index * 12 * MS, send)
    lab.arguments = ["--link-rate", "%dG" % (lab.rate / 1e9)] if rng.random() < 0.5 else []
    lab.tap("link", 1, "receiver")
    if lab.healthy:
        lab.say("marks, and CNPs within some microseconds", also=[])
    else:
        lab.say(
            "the receiver's CNPs leave milliseconds after the marks that they are for",
            first=["cnp.pacing"],
            words="CNPs? .*(late|after|delay)",
            also=["cnp.pacing", "cnp.ignored", "ecn.threshold"],
            never=["ecn.working", *NO_LOSS],
            cnp_delay_ns=network.cnp_delay,
        )
    lab.run()


def paused_sender(lab):
    """L: a standstill that begins and ends with pause frames. The look-alikes: pauses of a microsecond, and an idle application."""
    rng = lab.rng
    lab.timer_exponent = rng.randint(14, 18)
    lab.build(2)
    host = lab.network.hosts[0]
    end = lab.connect(0, 1, window=256)
    idle = lab.healthy and lab.seed % 2
    lab.stream(end, rng.choice([262144, 1 << 20]), 4 if not idle else 1, gap=rng.uniform(0.5, 5) * MS if idle else 0)
    lab.stop_at = 3000 if idle else rng.randint(5000, 9000)
    length = lab.stop_at * (lab.mtu + 100) * 8e9 / lab.rate
    if lab.healthy and not idle:
        for index in range(3):
            lab.network.pause_link(length * (0.2 + 0.2 * index), rng.uniform(0.3, 1) * US, host, lab.rate, False)
    elif not lab.healthy:
        count = rng.randint(1, 3)
        time = length * rng.uniform(0.1, 0.3)
        for _ in range(count):
            held = rng.uniform(0.5, 6) * MS
            lab.network.pause_link(time, held, host, lab.rate, False)
            time += held + length * 0.2
    lab.tap("link", 0, "sender")
    if lab.healthy:
        lab.say(
            "an application that pauses between messages" if idle else "pauses of a microsecond, which cost nothing"
        )
    else:
        lab.say(
            "the switch pauses the sender for milliseconds",
            first=["pause.storm", "pause.origin"],
            words="pause",
            severity="warning",
            also=["pause.storm", "pause.origin", "stall"],
            never=["incast", "path.spread", *NO_LOSS],
        )
    lab.run()
    count_checks(lab)


def implied_naks(lab):
    """M: READs of slow storage, whose requester is silent for long and asks again when a response shows a gap."""
    rng = lab.rng
    lab.mtu = rng.choice([1024, 4096])
    lab.timer_exponent = rng.choice([12, 13, 14])
    lab.build(2)
    size = rng.randint(100, 400)
    # One READ takes longer than the timer would: 4.096 us x 2^12 = 16.8 ms.
    pace = size * lab.mtu * 8e9 / (rng.uniform(0.6, 2) * 4096 * 2**lab.timer_exponent)
    for _ in range(rng.randint(1, 2)):
        end = lab.connect(0, 1, max_reads=4, rate_limit=None)
        end.peer.limit = pace
        lab.stream(end, size * lab.mtu, rng.choice([2, 3]), kind="read")
    lab.stop_at = rng.randint(3000, 5000)
    probability = 0 if lab.healthy else rng.uniform(0.001, 0.004)
    lab.network.decide = lambda packet: (
        IN_FABRIC
        if packet.category == "resp"
        and not packet.regenerated
        and lab.rng.random() < probability * (20 if packet.last_of_message else 1)
        else 0
    )
    responder = lab.seed % 2
    lab.tap("link", responder, "responder" if responder else "requester")
    if lab.healthy:
        lab.say("long READs from slow storage")
    else:
        lab.say(
            "READ responses are lost; the requester, silent for long before, asks again as soon as a response shows the gap",
            first=["loss.network"],
            words="lost",
            also=["loss.network", "stall"],
            never=["retransmit.timeout", "loss.capture", "path.spread", "incast"],
        )
    lab.run(20e9)
    counts = count_checks(lab)
    if counts["timeout"] and not lab.healthy:
        lab.never.remove("retransmit.timeout")
    lab.check("sum(flows[counted].runs_implied_nak)", counts["implied"])
    if not responder:
        lab.check("totals.response_network_lost", lost_uids(lab.network, "resp"))


def equal_events(lab):
    """N: a wait for the timer and a standstill of the application's host, of the same length, in either order."""
    rng = lab.rng
    lab.timer_exponent = rng.randint(12, 13)
    lab.rate = rng.choice([25, 100]) * 1e9
    lab.build(4)
    wait = 4096.0 * 2**lab.timer_exponent * 1.1
    swapped = lab.order
    early, late = 2 * MS, 2 * MS + 3 * wait
    limit = 1e9
    pairs = [(1, 3), (0, 2)] if swapped and lab.seed % 2 else [(0, 2), (1, 3)]
    first = lab.connect(*pairs[0], timeout=wait, rate_limit=limit, ack_every=0)
    second = lab.connect(*pairs[1], timeout=64 * wait, rate_limit=limit, ack_every=0)
    for end in (first, second):
        lab.stream(end, 65536, 1, gap=100 * US)
    lab.stop_at = int(9 * wait * 2 * limit / 8e9 / lab.mtu)
    done = []
    lose_at = late if swapped else early

    def decide(packet):
        # The last packet of a message, so that only the timer repairs it.
        if (
            not done
            and packet.sender is first
            and packet.last_of_message
            and packet.category == "data"
            and lab.network.now > lose_at
        ):
            done.append(packet)
            return IN_FABRIC
        return 0

    def stand_still(now):
        if second.next_psn >= second.posted_end or (second.next_psn - second.work_queue[-1].first_psn) < 3:
            lab.network.schedule(now + 1 * US, stand_still)
            return
        second.wait_until = now + wait
        lab.network.schedule(second.wait_until + 1, lambda time: second.host.kick(time))

    if lab.healthy:
        lab.say("two quiet flows")
    else:
        lab.network.decide = decide
        lab.network.schedule(early if swapped else late, stand_still)
        lab.say(
            "one flow waits for its timer, another for its own host, equally long; the same is said first in either order",
            first=["loss.network", "retransmit.timeout"],
            words="lost",
            also=["loss.network", "retransmit.timeout", "stall"],
            never=["loss.capture", "path.spread", "incast"],
            order="standstill first" if swapped else "timeout first",
        )
    lab.tap("all_in", None, "senders")
    lab.run()
    count_checks(lab)
