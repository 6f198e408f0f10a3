"""A network whose faults a case decides packet by packet, its taps, and the files and truth of one capture."""

import json
import os
import random

from dcqcn import ReactionPoint
from endpoint import CNP, READ_RESPONSES, Endpoint
from frames import CaptureWriter, in_vxlan, ip_text, pfc_frame, roce_frame
from generate import CAPTURE_START_NS, Tap
from network import Host, Network

US = 1e3
MS = 1e6
# Time of one pause quantum in bit times (IEEE 802.1Qbb).
QUANTUM_BITS = 512
LONGEST_PAUSE = 65535
# A packet's fate: lost in the fabric, behind its queue, or inside the receiver's adapter.
IN_FABRIC, LAST_LINK, IN_RECEIVER = 1, 3, 4
FATES = {
    IN_FABRIC: "in the fabric",
    2: "in a full queue",
    LAST_LINK: "on the last link",
    IN_RECEIVER: "in the receiver's adapter",
}


class LabNetwork(Network):
    """A network that asks its case about every packet."""

    def __init__(self, *arguments):
        """No faults."""
        super().__init__(*arguments)
        self.decide = lambda packet: 0
        self.corrupted = set()
        self.cnp_delay = 0.0
        self.pauses = []

    def planned_loss(self, packet):
        """The fate that the case decides."""
        return self.decide(packet)

    def pause_link(self, start, duration, host, rate, toward_switch, tap_hosts=None):
        """A pause of `duration` ns (IEEE 802.1Qbb): frames of 65,535 quanta, again at half of their time; one of zero at its end.

        `toward_switch`: the receiver stops its switch, whose queue holds the packets. Otherwise the switch stops the host.
        """
        longest = LONGEST_PAUSE * QUANTUM_BITS * 1e9 / rate
        time = start
        while time < start + duration - 1:
            left = start + duration - time
            self.schedule(time, self.pause_frame, host, True, toward_switch)
            time += min(longest / 2, left)
        self.schedule(start + duration, self.pause_frame, host, False, toward_switch)
        end = start + duration
        self.pauses.append(dict(host=host.index, start=start, end=end, paused="switch" if toward_switch else "host"))
        if toward_switch:
            self.schedule(
                start, lambda now: setattr(host, "queue_busy_until", max(host.queue_busy_until, now) + end - now)
            )
        else:
            self.schedule(start + 300, lambda now: host.pause(end + 300, now))

    def pause_frame(self, now, host, on, toward_switch):
        """One PFC frame at the taps of the host's link."""
        for tap in self.taps:
            if (
                (tap.host == host.index)
                if tap.kind == "host"
                else tap.kind == ("all_out" if toward_switch else "all_in")
            ):
                tap.pauses.append((now, host.index, on, toward_switch))

    def deliver(self, now, packet):
        """Packets of the unreliable connection have no answers."""
        if packet.opcode >> 5 == 1:
            if packet.fate == LAST_LINK:
                self.lost.append(packet)
                return
            for tap in self.taps:
                tap.observe(packet, now, 3.5)
            if packet.fate == IN_RECEIVER:
                self.lost.append(packet)
            return
        super().deliver(now, packet)

    def notification_point(self, receiver, packet, now):
        """CNPs leave a fixed time after the mark that they are for."""
        if not self.cnp_delay:
            super().notification_point(receiver, packet, now)
            return
        last = receiver.host.last_cnp.get(receiver.qpn, -1e18)
        if now - last < self.cnp_interval:
            return
        receiver.host.last_cnp[receiver.qpn] = now
        self.schedule(now + self.cnp_delay, lambda time: self.send_cnp(receiver, time))

    def send_cnp(self, receiver, now):
        """A CNP of `receiver` to its peer."""
        cnp = self.new_packet(receiver, receiver.peer)
        cnp.opcode = CNP
        cnp.psn = 0
        cnp.payload_length = 0
        cnp.category = "cnp"
        cnp.ecn = self.cnp_ecn
        cnp.sent_at = now
        self.set_wire_size(cnp)
        receiver.host.control_queue.insert(0, cnp)
        receiver.host.kick(now)
        receiver.peer.cnp_log.append(cnp)


class LabEndpoint(Endpoint):
    """A queue pair whose NAKs may come with a CNP, before or behind them."""

    def answer_read(self, request, now, again):
        """A READ that is asked for again: responses that still wait from its PSN on are made anew (IBTA 9.7.5.1.5)."""
        if again:
            stale = [
                packet
                for packet in self.response_queue
                if packet.psn >= request.psn and packet.opcode in READ_RESPONSES
            ]
            dropped = {packet.uid for packet in stale}
            self.response_queue = [packet for packet in self.response_queue if packet.uid not in dropped]
            self.response_log = [packet for packet in self.response_log if packet.uid not in dropped]
        super().answer_read(request, now, again)

    def send_nak(self, now):
        """A NAK, and the CNP of adapters that slow the sender on a loss."""
        before = self.config.get("cnp_before_nak")
        if before is not None and before > 0:
            self.net.send_cnp(self, now)
            self.nak_sent = True
            expected = self.expected_psn
            self.net.schedule(now + before, lambda time: self.late_nak(expected, time))
            return
        super().send_nak(now)
        if before is not None:
            self.net.schedule(now - before, lambda time: self.net.send_cnp(self, time))

    def late_nak(self, expected, now):
        """The NAK behind its CNP."""
        if self.expected_psn == expected:
            super().send_nak(now)


class UnreliableSender:
    """Sends WRITEs of an unreliable connection at a pace: no answers, no repeats (IBTA 9.8.2)."""

    def __init__(self, network, host, qpn, port, psn, rate, message, stop):
        """`rate` in bit/s, `message` in packets, `stop` in packets."""
        self.net, self.host, self.qpn, self.source_port = network, host, qpn, port
        self.psn, self.rate, self.message, self.stop = psn, rate, message, stop
        self.sent = 0
        self.next_departure = 0.0
        self.peer = None
        self.path = 0
        self.reaction_point = None
        self.ip_identification = random.getrandbits(16)
        self.request_log, self.response_log, self.runs, self.naks, self.cnp_log, self.ack_log = [], [], [], [], [], []

    def ready_time(self, now):
        """When the next packet may leave."""
        return self.next_departure if self.sent < self.stop else None

    def next_packet(self, now):
        """The next packet of the stream."""
        packet = self.net.new_packet(self, self.peer)
        place = self.sent % self.message
        packet.psn = self.psn + self.sent
        packet.opcode = 0x26 if place == 0 else 0x28 if place == self.message - 1 else 0x27
        packet.payload_length = self.net.mtu
        packet.category = "data"
        packet.dma_length = self.net.mtu * self.message
        packet.virtual_address = 0x7F0000000000
        packet.sent_at = now
        packet.last_of_message = place == self.message - 1
        self.net.set_wire_size(packet)
        self.sent += 1
        self.next_departure = max(now, self.next_departure) + (packet.wire_length + 24) * 8e9 / self.rate
        self.request_log.append(packet)
        return packet


class Lab:
    """One capture: what is drawn, the network, its taps and what is to be said of it."""

    def __init__(self, letter, seed, healthy):
        """Draws what all mechanisms share. Rates are those of adapters; MTUs those of IBTA 9.6; round trips 2 to 50 us."""
        self.letter, self.seed, self.healthy = letter, seed, healthy
        self.rng = random.Random("%s %d" % (letter, seed))
        # Endpoint and Host draw their first IP identifications from here.
        random.seed("%s %d identifications" % (letter, seed))
        rng = self.rng
        self.rate = rng.choice([25, 50, 100, 200, 400]) * 1e9
        self.mtu = rng.choice([1024, 2048, 4096, 4096])
        self.round_trip = rng.uniform(2, 50) * US
        self.timer_exponent = rng.randint(12, 14)
        self.snap = rng.choice([96, 128, 256])
        self.format = rng.choice(["pcap", "pcapng"])
        self.microseconds = False
        self.ipv6 = rng.random() < 0.2
        self.vlan = rng.choice([None, None, None, 100])
        self.identification = rng.choice(["host", "qp", "qp", "zero"])
        self.arguments = []
        self.files = []
        self.qpns = set()
        self.stop_at = rng.randint(3000, 6000)
        self.parameters = {}
        self.first, self.also, self.never, self.checks = None, [], [], []
        self.what = ""
        self.clock_steps = []
        self.network = None
        self.order = 0
        self.suffix = ""

    def build(self, hosts):
        """A network of so many hosts, one switch between them."""
        self.network = LabNetwork(self.rng, self.mtu, self.ipv6, self.identification)
        self.network.hosts = [Host(self.network, index, self.rate) for index in range(hosts)]
        self.network.base_delay = max(200.0, self.round_trip / 2 - 300)
        self.network.path_delays = [0.0]
        return self.network

    def timer(self):
        """The transport timer: 4.096 us x 2^N, and up to a fifth more (IBTA 9.7.6.1.3 permits four times as much)."""
        return 4096.0 * 2**self.timer_exponent * self.rng.uniform(1, 1.2)

    def new_qpn(self):
        """A queue pair number that no one uses yet."""
        while True:
            number = self.rng.choice([self.rng.randint(0x11, 0x400), self.rng.randint(2, 0xFFFFFF)])
            if number not in self.qpns:
                self.qpns.add(number)
                return number

    def connect(self, first, second, mode="gbn", **config):
        """Connects two hosts. The first end is the requester."""
        rng = self.rng
        settings = dict(window=128, max_reads=16, timeout=self.timer(), ack_every=rng.choice([4, 16]), ack_delay=0)
        settings.update(config)
        port = rng.randint(49152, 65535)
        ends = []
        for index in (first, second):
            psn = rng.getrandbits(24) + (1 << 24)
            ends.append(
                LabEndpoint(self.network, self.network.hosts[index], self.new_qpn(), port, psn, mode, dict(settings))
            )
        ends[0].peer, ends[1].peer = ends[1], ends[0]
        for end in ends:
            end.host.endpoints.append(end)
        self.network.connections.append(tuple(ends))
        return ends[0]

    def stream(self, end, length, depth, kind="write", start=0.0, gap=0.0, messages=None):
        """Messages one after another, `depth` at a time, `gap` ns after each, until the capture is long enough."""
        left = [messages]

        def post(now):
            if left[0] is not None:
                if not left[0]:
                    return
                left[0] -= 1
            if self.network.data_packets < self.stop_at and not end.dead:
                size = length if not isinstance(length, tuple) else self.rng.randint(*length)
                end.post(self.rng.choice(kind.split()), size, now)

        end.app = lambda _end, _work, now: (
            self.network.schedule(now + gap * self.rng.uniform(0.8, 1.2), post) if gap else post(now)
        )
        for _ in range(depth):
            self.network.schedule(start + self.rng.uniform(0, 10 * US), post)

    def unreliable(self, first, second, rate, message, stop):
        """A flow of the unreliable connection."""
        rng = self.rng
        port = rng.randint(49152, 65535)
        sender, receiver = (
            UnreliableSender(
                self.network,
                self.network.hosts[index],
                self.new_qpn(),
                port,
                rng.getrandbits(23),
                rate,
                message,
                amount,
            )
            for index, amount in ((first, stop), (second, 0))
        )
        sender.peer, receiver.peer = receiver, sender
        sender.host.endpoints.append(sender)
        self.network.connections.append((sender, receiver))
        self.network.schedule(0.0, lambda now: sender.host.kick(now))
        return sender

    def dcqcn(self, end, parameters="paper"):
        """The end's sender is under DCQCN."""
        end.reaction_point = ReactionPoint(self.rate, ReactionPoint.SETS[parameters])

    def tap(self, kind, host=None, name=None):
        """A capture point, whose file has this name."""
        tap = Tap("host" if kind == "link" else kind, host)
        tap.name = name or (kind if host is None else "h%d" % host)
        tap.stamp = lambda moment, packet: moment
        tap.also = None
        self.network.taps.append(tap)
        return tap

    def run(self, until=3e9):
        """Runs until nothing is left or until this time in ns."""
        self.network.run(lambda running, now: now > until)

    def say(self, what, first=None, words=None, also=(), never=(), severity="info", **parameters):
        """What happened, and what is right to say of it.

        `first` are ids of findings of which one must be first, or `words` must be in its summary; `severity` is its least.
        `also` are right, too; `never` are false.
        """
        self.what = what
        self.first = dict(findings=first or [], words=words, severity=severity) if first or words else None
        self.also, self.never = list(also), list(never)
        self.parameters.update(parameters)

    def check(self, path, least, most=None):
        """A number of the document, from `least` to `most`."""
        self.checks.append(dict(path=path, min=least, max=least if most is None else most))

    def write(self, folder):
        """Writes the captures and their truth."""
        stem = "%s-%d%s%s" % (self.letter, self.seed, "h" if self.healthy else "", self.suffix)
        seen = []
        for tap in self.network.taps:
            name = "%s-%s.%s" % (stem, tap.name, self.format)
            seen.append(self.write_tap(tap, os.path.join(folder, name)))
            self.files.append(name)
        truth = dict(
            mechanism=self.letter,
            seed=self.seed,
            healthy=self.healthy,
            files=self.files,
            arguments=self.arguments,
            what=self.what,
            first=self.first,
            also=self.also,
            never=self.never,
            checks=self.checks,
            parameters=dict(
                self.parameters,
                rate_bps=self.rate,
                mtu=self.mtu,
                round_trip_ns=self.round_trip,
                timer_exponent=self.timer_exponent,
            ),
            flows=[
                self.flow(end)
                for pair in self.network.connections
                for end in pair
                if end.request_log or end.response_log
            ],
            pauses=self.network.pauses,
            clock_steps=self.clock_steps,
            hops=self.hops(seen),
        )
        with open(os.path.join(folder, stem + ".json"), "w") as file:
            json.dump(truth, file, indent=1)
        return truth

    def write_tap(self, tap, path):
        """Writes one tap's file in the order of recording. Returns the packets seen, by uid."""
        records = [
            (tap.stamp(moment, packet), number, packet, ecn) for number, (moment, packet, ecn) in enumerate(tap.records)
        ]
        records += [(pause[0], -1, pause, 0) for pause in tap.pauses]
        records.sort(key=lambda record: record[:2])
        clock = getattr(tap, "clock", lambda moment: moment)
        lines = []
        for moment, _, packet, ecn in records:
            lines.append((clock(moment), packet, ecn, False))
            if tap.also and not isinstance(packet, tuple):
                lines.append((clock(moment) + tap.also, packet, ecn, True))
        if tap.also:
            lines.sort(key=lambda line: line[0])
        settings = dict(v6=self.ipv6, vlan=self.vlan)
        writer = CaptureWriter(path, self.format, self.microseconds, self.snap)
        for moment, packet, ecn, wrapped in lines:
            stamp = CAPTURE_START_NS + int(moment)
            if isinstance(packet, tuple):
                _, index, on, toward_switch = packet
                writer.write(stamp, *pfc_frame(on, source=index if toward_switch else None))
                continue
            position = tap.position(packet.source, packet.destination)
            ttl = 64 if position == 0.5 else 63
            only_wrapped = getattr(tap, "wrapped", False)
            inner_snap = 0 if wrapped or only_wrapped or packet.uid in self.network.corrupted else self.snap
            data, length = roce_frame(settings, packet, ecn, inner_snap, ttl, position == 0.5)
            if packet.uid in self.network.corrupted and len(data) == length:
                # A bit of the payload that flipped on the way; the ICRC no longer fits.
                data = data[:-9] + bytes([data[-9] ^ 0x10]) + data[-8:]
            if wrapped or only_wrapped:
                data, length = in_vxlan(
                    data, length, getattr(tap, "vni", 5000), packet.source, packet.destination, packet.source_port
                )
                data = data[: self.snap] if self.snap else data
            writer.write(stamp, data, length)
        writer.file.close()
        return {packet.uid: packet for _, packet, _ in tap.records}

    def flow(self, end):
        """The truth of one direction: what was lost, why it was sent again and how long it waited."""
        sent = sorted(end.request_log, key=lambda packet: packet.sent_at)
        lost = [packet for packet in self.network.lost if packet.sender is end]
        triggers = []
        for run in end.runs:
            before = [
                packet.sent_at
                for packet in sent
                if packet.sent_at < (run["first"].sent_at if run["first"] else run["time"])
            ]
            if run["first"] is None:
                continue
            triggers.append(
                dict(
                    reason=run["reason"],
                    psn=run["psn"] & 0xFFFFFF,
                    decided_ns=run["time"],
                    first_sent_ns=run["first"].sent_at,
                    silence_ns=run["first"].sent_at - max(before) if before else None,
                )
            )
        return dict(
            source=ip_text(end.host.index, self.ipv6),
            destination=ip_text(end.peer.host.index, self.ipv6),
            destination_qpn=end.peer.qpn,
            source_qpn=end.qpn,
            requests=len(sent),
            responses=len(end.response_log),
            resent=sum(packet.resend for packet in sent) + sum(packet.regenerated for packet in end.response_log),
            answers_sent=len(end.ack_log),
            cnps_received=len(end.cnp_log),
            lost=[
                dict(
                    psn=packet.psn & 0xFFFFFF,
                    kind=packet.category,
                    sent_ns=packet.sent_at,
                    where="corrupted" if packet.uid in self.network.corrupted else FATES[packet.fate],
                )
                for packet in lost
            ],
            triggers=triggers,
            waited_ns=sum(
                trigger["silence_ns"] or 0 for trigger in triggers if trigger["reason"] in ("timeout", "rnr")
            ),
            gave_up=bool(getattr(end, "dead", False)),
        )

    def hops(self, seen):
        """Packets of the first tap that the second saw, by kind, for each order of two taps."""
        if len(seen) != 2:
            return []
        result = []
        for first, second in ((0, 1), (1, 0)):
            kinds = {}
            tap = self.network.taps[first]
            for uid, packet in seen[first].items():
                other = self.network.taps[second].position(packet.source, packet.destination)
                here = tap.position(packet.source, packet.destination)
                if other is None or here >= other:
                    continue
                kind = "response" if packet.opcode in READ_RESPONSES else packet.category
                counts = kinds.setdefault(kind, dict(seen=0, matched=0, lost=0))
                counts["seen"] += 1
                counts["matched" if uid in seen[second] else "lost"] += 1
            if kinds:
                result.append({"from": tap.name, "to": self.network.taps[second].name, "kinds": kinds})
        return result


def lost_uids(network, category):
    """How many packets of a category were lost."""
    return sum(packet.category == category for packet in network.lost)


def resend_counts(lab):
    """Runs by reason of all ends."""
    counts = dict(timeout=0, nak=0, implied=0, rnr=0)
    for pair in lab.network.connections:
        for end in pair:
            for run in end.runs:
                if run["first"] is not None:
                    counts[run["reason"]] += 1
    return counts
