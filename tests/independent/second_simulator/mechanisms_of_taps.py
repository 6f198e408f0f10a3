"""Mechanisms A, B, E, G, H and K: what several taps, clocks, mirrors and encapsulations show.

Each function builds one capture on a `Lab`. `lab.healthy` asks for the look-alike, in which nothing is wrong.
"""

from laboratory import IN_FABRIC, LAST_LINK, MS, US, lost_uids
from mechanism_parts import NO_LOSS, count_checks, random_loss


def delayed_not_lost(lab):
    """A: two taps, a pause or a queue between them holds packets back for milliseconds."""
    rng = lab.rng
    lab.rate = rng.choice([25, 50, 100]) * 1e9
    lab.mtu = 4096
    # 4.096 us x 2^14 = 67 ms and more: no timer ends while packets wait.
    lab.timer_exponent = rng.randint(14, 17)
    queue = not lab.healthy and lab.seed % 3 == 0
    senders = rng.randint(6, 8) if queue else 1
    if queue:
        lab.rate = 25e9
    lab.build(senders + 1)
    receiver = senders
    held = rng.uniform(3.6, 7.2) * MS
    # The flows together ask for 3.6 to 7.2 ms of the receiver's link.
    flows = senders if queue else rng.randint(1, 3)
    window = int(held * lab.rate / 8e9 / 4200 / senders) if queue else rng.choice([256, 512]) // flows
    for flow in range(flows):
        limit = None if queue else 0.9 * lab.rate / flows
        end = lab.connect(flow % senders, receiver, window=window, rate_limit=limit, ack_every=16)
        lab.stream(end, rng.choice([65536, 262144]), 64, start=rng.uniform(0, 200 * US))
    lab.stop_at = 14000 if queue else rng.randint(5000, 9000)
    slow = not queue and lab.seed % 4 == 2
    if slow:
        # Storage traffic at a tenth of the link: some hundred packets are held back.
        for pair in lab.network.connections:
            pair[0].limit *= 0.1
    clock = rng.choice([0, 0, 20 * US, -3 * MS, 700 * MS])
    lab.tap("link", 0, "sender")
    lab.tap("link", receiver, "receiver").clock = lambda moment: moment + clock
    if lab.healthy:
        lab.say("two taps; nothing is held back")
    elif queue:
        lab.say(
            "many senders at once fill the queue in front of the receiver, which drops nothing; packets wait for milliseconds",
            also=["incast", "unfair", "stall", "ecn.not-capable"],
            never=["loss.network", "retransmit.timeout", "loss.capture", "path.spread"],
        )
    else:
        length = lab.stop_at * 4200 * 8e9 / lab.rate * (10 if slow else 1)
        lab.network.pause_link(length * rng.uniform(0.2, 0.8), held, lab.network.hosts[receiver], lab.rate, True)
        lab.say(
            "the receiver pauses its switch for some milliseconds; every packet arrives afterwards",
            first=["pause.storm", "pause.origin"],
            words="pause",
            also=["pause.storm", "pause.origin", "stall", "incast"],
            never=["loss.network", "retransmit.timeout", "loss.capture", "path.spread"],
            held_ns=held,
        )
    lab.network.run(lambda running, now: now > 3e9)
    lab.check("totals.network_lost", 0)
    lab.check("totals.runs_timeout", 0)
    lab.check("hops[].lost", 0)


def answers_lost(lab):
    """B: two taps see what one cannot: answers lost on the way back, UC packets, losses repaired by the timer."""
    rng = lab.rng
    variant = ("answers", "uc", "tail")[lab.seed % 3]
    lab.mtu = rng.choice([1024, 4096])
    lab.build(2)
    lab.stop_at = rng.randint(2000, 4000)
    if variant == "uc":
        # An unreliable stream at a fifth of the link or less; RTT of the taps is not known from answers.
        count = rng.randint(4000, 8000)
        lab.unreliable(0, 1, lab.rate * rng.uniform(0.02, 0.2), rng.choice([4, 16]), count)
        random_loss(lab, 0 if lab.healthy else rng.uniform(0.001, 0.01))
        lab.say(
            "packets of the unreliable connection are lost between the taps; nobody repeats them",
            first=["loss.network"],
            also=["loss.network"],
            never=["loss.capture", "retransmit.timeout", "incast"],
        )
    else:
        depth = 1 if variant == "answers" else rng.choice([1, 2])
        end = lab.connect(0, 1, ack_every=rng.choice([0, 4]), ack_delay=rng.choice([0, 500]), duplicates_answered=True)
        lab.stream(end, rng.choice([4096, 16384, 65536]), depth, gap=rng.choice([0, 20 * US]))
        if variant == "answers":
            lost = rng.uniform(0.03, 0.2)
            random_loss(lab, 0 if lab.healthy else lost, ("ack",), LAST_LINK if lab.seed % 2 else IN_FABRIC)
            lab.say(
                "answers are lost on the way back; the senders repeat what had arrived",
                words="answer|ACK",
                also=["loss.network", "retransmit.timeout", "stall"],
                never=["loss.capture", "incast"],
            )
            lab.parameters["data_lost"] = 0
        else:
            probability = rng.uniform(0.01, 0.05)
            lab.network.decide = lambda packet: (
                IN_FABRIC
                if packet.last_of_message
                and packet.category == "data"
                and not packet.resend
                and lab.rng.random() < probability
                else 0
            )
            if lab.healthy:
                lab.network.decide = lambda packet: 0
            lab.say(
                "last packets of messages are lost between the taps; only the timer repairs them",
                first=["loss.network"],
                also=["retransmit.timeout", "stall", "loss.network"],
                never=["loss.capture", "incast"],
            )
    lab.tap("link", 0, "sender")
    lab.tap("link", 1, "receiver")
    lab.run()
    if variant != "uc":
        count_checks(lab)
    lab.parameters.update(
        variant=variant, answers_lost=lost_uids(lab.network, "ack"), data_lost=lost_uids(lab.network, "data")
    )
    # What left the first tap and did not reach the second, in both directions: answers count as well.
    lab.check("hops[].lost", len(lab.network.lost))


def overtaking(lab):
    """E: adaptive routing, whose receivers go back or, in the look-alike, take packets in any order."""
    rng = lab.rng
    lab.build(2)
    skew = rng.uniform(1, 10) * US
    lab.network.spray = True
    lab.network.path_delays = [rng.uniform(0, skew) for _ in range(rng.choice([2, 4, 8]))] + [0.0]
    lab.timer_exponent = rng.randint(14, 17)
    # A path that is rarely slower: receivers go back often, yet the transfer goes on.
    for _ in range(rng.randint(1, 3)):
        end = lab.connect(
            0, 1, "ooo" if lab.healthy else "gbn", window=64, ack_every=8, rate_limit=lab.rate * rng.uniform(0.02, 0.2)
        )
        lab.stream(end, rng.choice([16384, 65536, 262144]), 2)
    lab.stop_at = rng.randint(5000, 8000)
    lab.tap("link", 0, "sender")
    if lab.seed % 2:
        lab.tap("link", 1, "receiver")
    if lab.healthy:
        lab.say("adaptive routing; receivers place packets in any order")
    else:
        lab.say(
            "adaptive routing lets packets overtake each other; receivers ask for them again, nothing is lost",
            first=["path.spread"],
            words="overt|out of order|adaptive|several paths|reorder",
            also=["path.spread", "stall"],
            never=["loss.network", "loss.capture", "retransmit.timeout", "incast"],
        )
    lab.run()
    lab.check("totals.network_lost", 0)
    lab.check("hops[].lost", 0)
    count_checks(lab)
    if lab.seed % 2 and not lab.healthy:
        lab.check("totals.lost_downstream", 0)


def clock_step(lab):
    """G: the clock of a capture steps. The look-alike's clock is off, and drifts by some parts per million."""
    rng = lab.rng
    lab.build(2)
    lab.timer_exponent = rng.randint(14, 16)
    for _ in range(rng.randint(1, 4)):
        end = lab.connect(0, 1)
        lab.stream(end, rng.choice([4096, 65536]), 2, gap=rng.uniform(5, 50) * US)
    lab.stop_at = rng.randint(5000, 8000)
    two = lab.seed % 3 != 0
    lab.tap("link", 0, "sender")
    if two:
        lab.tap("link", 1, "receiver")
    lab.run()
    tap = lab.network.taps[-1]
    moments = sorted(record[0] for record in tap.records)
    at = moments[int(len(moments) * rng.uniform(0.3, 0.7))]
    # A step of an NTP client that starts, or of a PTP client that changes its master.
    step = rng.choice([-300 * MS, -300 * MS, 300 * MS, -40 * US]) * rng.uniform(0.9, 1.1)
    if lab.seed % 3 == 0:
        step = -abs(step)
    offset = rng.choice([0, 5 * US, -2 * MS]) if two else 0
    drift = rng.choice([0, 1e-6, -5e-6])
    if lab.healthy:
        tap.clock = lambda moment: moment * (1 + drift) + offset
        lab.say("a clock that is off and drifts by at most 5 ppm")
    else:
        tap.clock = lambda moment: moment * (1 + drift) + offset + (step if moment >= at else 0)
        lab.clock_steps.append(dict(tap=tap.name, at_ns=at, step_ns=step))
        lab.say(
            "the clock of one capture steps; the traffic is healthy",
            words="clock|step",
            also=["capture.quality"],
            never=["path.spread", "stall", "incast", "pause.storm", *NO_LOSS],
        )
    lab.check("totals.network_lost", 0)
    lab.check("totals.runs_timeout", 0)
    if two:
        seen = sum(packet.category != "cnp" for _, packet, _ in lab.network.taps[0].records)
        lab.check("hops[].matched", int(seen * 0.98), seen)


def late_mirror(lab):
    """H: a mirror that delivers late or out of order. The traffic is healthy in any case."""
    rng = lab.rng
    lab.build(2)
    lab.timer_exponent = rng.randint(14, 16)
    lab.round_trip = rng.uniform(5, 30) * US
    for _ in range(rng.randint(1, 4)):
        end = lab.connect(0, 1)
        lab.stream(end, rng.choice([16384, 65536, 262144]), 4)
    lab.stop_at = rng.randint(5000, 8000)
    if lab.seed % 2:
        # Two ports are mirrored: the queues of the mirror delay each direction by another time, and packets at random.
        tap = lab.tap("mid", None, "mirror")
        forward, spread = rng.uniform(10, 60) * US, rng.uniform(2, 30) * US
        if not lab.healthy:
            tap.stamp = (
                lambda moment, packet: moment + (forward if packet.source == 0 else 0) + lab.rng.uniform(0, spread)
            )
        lab.say(
            "a mirror delivers packets out of order; answers come before their requests",
            also=["capture.quality"],
            never=["path.spread", "incast", "stall", *NO_LOSS],
        )
    else:
        late = rng.uniform(10, 40) * US
        lab.tap("link", 0, "sender")
        tap = lab.tap("mid", None, "mirror")
        if not lab.healthy:
            tap.stamp = lambda moment, packet: moment + late + lab.rng.uniform(0, 200)
        lab.say(
            "a mirror is stamped 10 to 40 us late, beside a tap at the sender",
            also=["capture.quality"],
            never=["path.spread", "incast", "stall", *NO_LOSS],
        )
    lab.run()
    lab.check("totals.network_lost", 0)
    lab.check("totals.capture_lost", 0)
    lab.check("totals.retransmitted_packets", 0)


def two_encapsulations(lab):
    """K: the same packets bare and in VXLAN. The look-alike has them in one form only."""
    rng = lab.rng
    lab.rate = 25e9
    lab.mtu = rng.choice([1024, 4096])
    lab.vlan = None
    lab.snap = rng.choice([160, 192, 256])
    lab.build(2)
    for _ in range(rng.randint(1, 3)):
        end = lab.connect(0, 1)
        lab.stream(end, rng.choice([65536, 262144]), 4)
    lab.stop_at = rng.randint(4000, 7000)
    lossy = not lab.healthy and lab.seed % 2
    if lossy:
        random_loss(lab, rng.uniform(0.001, 0.005), fate=LAST_LINK)
    tap = lab.tap("link", 0, "any")
    if lab.healthy:
        tap.wrapped = bool(lab.seed % 2)
    elif lab.seed % 3 == 2:
        second = lab.tap("link", 0, "vtep")
        second.wrapped = True
        delay = rng.uniform(0.3, 1.5) * US
        second.stamp = lambda moment, packet: moment + (delay if packet.source == 0 else -delay)
    else:
        tap.also = rng.uniform(0.2, 1.5) * US
    if lossy:
        lab.say(
            "bare and in VXLAN at once, and some packets are lost",
            first=["loss.network"],
            words="lost",
            also=["loss.network", "retransmit.timeout", "stall"],
            never=["loss.capture", "path.spread", "incast"],
        )
    else:
        lab.say("the same packets bare and in VXLAN; nothing is wrong", never=["incast", "path.spread", *NO_LOSS])
    lab.run()
    data = sum(packet.category == "data" for _, packet, _ in tap.records)
    lab.check("sum(flows[counted].data_packets)", data)
    lab.check("sum(flows[counted].retransmitted_packets)", sum(packet.resend for _, packet, _ in tap.records))
