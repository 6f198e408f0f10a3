"""Hosts and the fabric between them: links, queues, ECN, PFC, CNPs and faults.

Positions along the way of one packet; a packet's fate is the position of its loss:
  0.5 sender's port | 1 loss in the fabric | 1.5 tap in the fabric | 2 drop by the egress queue
  3 loss on the last link | 3.5 receiver's port | 4 loss inside the receiver's NIC
"""

import heapq
import random

from endpoint import ACK, CNP, READ_FIRST, READ_LAST, READ_ONLY, READ_REQUEST, READ_RESPONSES, Packet

ETHERNET_BYTES = 14


BTH_BYTES = 12


class Host:
    """A host: one port that serves its queue pairs by turns, and the switch queue in front of it."""

    def __init__(self, network, index, rate):
        """A port with `rate` bit/s and no queue pairs."""
        self.net = network
        self.index = index
        self.rate = rate
        self.busy = 0.0
        self.control_queue = []
        self.endpoints = []
        self.round_robin = 0
        self.wake_at = None
        self.paused_until = 0.0
        self.ip_identification = random.getrandbits(16)
        self.last_cnp = {}
        self.queue_busy_until = 0.0
        self.queue_rate = rate
        self.pausing = False

    def kick(self, now):
        """Wakes the port as soon as it can send."""
        time = max(now, self.busy)
        if self.wake_at is None or time < self.wake_at - 1e-6:
            self.wake_at = time
            self.net.schedule(time, self.run, time)

    def run(self, now, tag):
        """Sends one packet: control packets first, then the queue pairs by turns; nothing but CNPs while paused (IEEE 802.1Qbb)."""
        if self.wake_at != tag:
            return
        self.wake_at = None
        if now + 1e-6 < self.busy:
            self.kick(self.busy)
            return
        if self.control_queue and (now >= self.paused_until or self.control_queue[0].category == "cnp"):
            packet = self.control_queue.pop(0)
            self.transmit(packet, now)
            self.kick(self.busy)
            return
        if now < self.paused_until:
            self.wake_at = self.paused_until
            self.net.schedule(self.paused_until, self.run, self.paused_until)
            return
        best = None
        count = len(self.endpoints)
        for step in range(count):
            index = (self.round_robin + step) % count
            endpoint = self.endpoints[index]
            time = endpoint.ready_time(now)
            if time is None:
                continue
            if time <= now:
                packet = endpoint.next_packet(now)
                if packet is None:
                    continue
                self.round_robin = (index + 1) % count
                self.transmit(packet, now)
                self.kick(self.busy)
                return
            if best is None or time < best:
                best = time
        if best is not None:
            self.wake_at = best
            self.net.schedule(best, self.run, best)

    def transmit(self, packet, now):
        """Puts a packet on the wire with its IP identification: counted by host, by queue pair, or zero."""
        network = self.net
        departure = now + (packet.wire_length + 24) * 8e9 / self.rate
        self.busy = departure
        mode = network.identification_mode
        if mode == "host":
            self.ip_identification = (self.ip_identification + 1) & 0xFFFF
            packet.ip_identification = self.ip_identification
        elif mode == "qp":
            packet.sender.ip_identification = (packet.sender.ip_identification + 1) & 0xFFFF
            packet.ip_identification = packet.sender.ip_identification
        else:
            packet.ip_identification = 0
        network.depart(packet, departure)

    def pause(self, until, now):
        """Stops sending until `until` (IEEE 802.1Qbb)."""
        self.paused_until = until
        if self.wake_at is None or self.wake_at > until or until <= now:
            self.kick(now)


class Network:
    """The event queue, the fabric between the hosts, and its faults."""

    def __init__(self, rng, mtu, v6, identification_mode):
        """A fabric without faults."""
        self.rng = rng
        self.mtu = mtu
        self.v6 = v6
        self.identification_mode = identification_mode
        self.heap = []
        self.event_number = 0
        self.uid = 0
        self.now = 0.0
        self.hosts = []
        self.taps = []
        self.loss = {}
        self.burst = None
        self.burst_left = 0
        self.path_delays = [2000.0]
        self.spray = False
        self.spray_ack = False
        self.base_delay = 1000.0
        self.mark_min = self.mark_max = None
        self.mark_probability = 0
        self.buffer_bytes = None
        self.duplicate_probability = 0
        self.duplicate_delay = (0, 0)
        self.cnp_mode = "qp"
        self.cnp_interval = 50e3
        self.cnp_ecn = 0
        self.loss_positions = [1]
        self.timer_estimate = 0.0
        self.connections = []
        self.pfc = None
        self.data_packets = 0
        self.lost = []
        self.duplicates = []
        self.max_events = 3_000_000
        # Added to a sprayed packet's delay; no scenario draws it.
        self.jitter = 0.0

    def schedule(self, time, callback, *arguments):
        """Calls `callback(time, *arguments)` at `time`; calls of one time stay in order."""
        self.event_number += 1
        heapq.heappush(self.heap, (time, self.event_number, callback, arguments))

    def new_packet(self, sender, peer):
        """A packet of `sender` to `peer`, ECT(0) (RFC 3168)."""
        packet = Packet()
        self.uid += 1
        packet.uid = self.uid
        packet.sender = sender
        packet.source = sender.host.index
        packet.destination = peer.host.index
        packet.source_port = sender.source_port
        packet.destination_qpn = peer.qpn
        packet.ack_requested = 0
        packet.syndrome = None
        packet.msn = 0
        packet.dma_length = None
        packet.virtual_address = 0
        packet.ecn = 2
        packet.ip_identification = 0
        packet.resend = False
        packet.psn_count = 1
        packet.fate = 0
        packet.duplicate_of = None
        packet.last_of_message = False
        packet.regenerated = False
        packet.category = ""
        return packet

    def set_wire_size(self, packet):
        """The length on the wire by opcode: BTH and extended headers (IBTA 9.2, annex A17), ICRC and padding."""
        size = ETHERNET_BYTES + (40 if self.v6 else 20) + 8 + BTH_BYTES + 4
        if packet.opcode == ACK or packet.opcode in (READ_FIRST, READ_LAST, READ_ONLY):
            size += 4
        # Opcodes 0x20 to 0x3F are those of the unreliable connection (IBTA 9.2.1).
        operation = packet.opcode & 0x1F if packet.opcode < 0x40 else packet.opcode
        if packet.opcode == READ_REQUEST or operation in (6, 10, 11):
            size += 16
        if operation in (3, 5, 9, 11):
            size += 4
        if packet.opcode == CNP:
            size += 16
        packet.wire_length = size + packet.payload_length + (-packet.payload_length) % 4

    def rnr_timer_ns(self, code):
        """RNR timer codes in ns (IBTA 9.7.5.2.8, table of the RNR NAK timer field)."""
        timers = [
            655.36e6,
            10e3,
            20e3,
            30e3,
            40e3,
            60e3,
            80e3,
            120e3,
            160e3,
            240e3,
            320e3,
            480e3,
            640e3,
            960e3,
            1.28e6,
            1.92e6,
            2.56e6,
            3.84e6,
            5.12e6,
            7.68e6,
            10.24e6,
        ]
        return timers[code]

    def planned_loss(self, packet):
        """Draws where this packet is lost; 0 for delivered."""
        loss = self.loss
        category = packet.category
        flow_key = (
            "resend"
            if (packet.resend or packet.regenerated) and category in ("data", "resp", "rreq") and "resend" in loss
            else category
        )
        probability = loss.get(flow_key, 0)
        if category == "resp" and packet.last_of_message:
            probability = max(probability, loss.get("rtail", 0))
        if category == "data" and packet.last_of_message:
            probability = max(probability, loss.get("dtail", 0))
        if self.burst and category in ("data", "resp", "rreq"):
            if self.burst_left > 0:
                self.burst_left -= 1
                return self.loss_position()
            if self.rng.random() < self.burst[0]:
                self.burst_left = self.rng.randint(1, self.burst[1])
                return self.loss_position()
        if probability and self.rng.random() < probability:
            return self.loss_position()
        return 0

    def loss_position(self):
        """Draws a position among those of the scenario."""
        return self.rng.choice(self.loss_positions)

    def depart(self, packet, time):
        """A packet leaves its port: taps, loss in the fabric, path (sprayed or fixed), duplication."""
        for tap in self.taps:
            tap.observe(packet, time, 0.5)
        if packet.category == "data" or packet.category == "resp":
            self.data_packets += 1
        fate = self.planned_loss(packet)
        if fate == 1:
            packet.fate = 1
            self.lost.append(packet)
            return
        packet.fate = fate
        rng = self.rng
        sprayed = self.spray and (packet.category not in ("ack", "nak", "rnr", "cnp") or self.spray_ack)
        delay = (
            self.path_delays[rng.randrange(len(self.path_delays))] + rng.random() * self.jitter
            if sprayed
            else self.path_delays[packet.sender.path % len(self.path_delays)]
        )
        self.schedule(time + self.base_delay + delay, self.fabric, packet)
        if self.duplicate_probability and packet.category != "cnp" and rng.random() < self.duplicate_probability:
            copy = Packet()
            for name in Packet.__slots__:
                setattr(copy, name, getattr(packet, name))
            self.uid += 1
            copy.uid = self.uid
            copy.duplicate_of = packet
            copy.fate = 0
            extra_delay = rng.uniform(*self.duplicate_delay)
            self.duplicates.append((copy, extra_delay))
            self.schedule(time + self.base_delay + delay + extra_delay, self.fabric, copy)

    def fabric(self, now, packet):
        """The egress queue of the receiver: drops, ECN marks between two thresholds (RFC 3168; Zhu et al. 2015, congestion point), PFC."""
        for tap in self.taps:
            tap.observe(packet, now, 1.5)
        host = self.hosts[packet.destination]
        serialisation = (packet.wire_length + 24) * 8e9 / host.queue_rate
        if packet.category == "cnp":
            self.schedule(now + serialisation + 300, self.deliver, packet)
            return
        waiting = max(0.0, host.queue_busy_until - now)
        queued_bytes = waiting * host.queue_rate / 8e9
        if self.buffer_bytes and queued_bytes > self.buffer_bytes and packet.category in ("data", "resp", "rreq"):
            packet.fate = 2
            self.lost.append(packet)
            return
        if (
            self.mark_min is not None
            and packet.ecn in (1, 2)
            and queued_bytes > self.mark_min
            and packet.category in ("data", "resp")
        ):
            probability = (
                1.0
                if queued_bytes >= self.mark_max
                else self.mark_probability * (queued_bytes - self.mark_min) / (self.mark_max - self.mark_min)
            )
            if self.rng.random() < probability:
                packet.ecn = 3
        host.queue_busy_until = max(now, host.queue_busy_until) + serialisation
        self.schedule(host.queue_busy_until + 300, self.deliver, packet)
        if self.pfc and queued_bytes > self.pfc["pause_above"] and not host.pausing:
            host.pausing = True
            self.send_pause(host, now, True)
            self.schedule(
                now + max(1e3, (queued_bytes - self.pfc["resume_below"]) * 8e9 / host.queue_rate), self.pfc_check, host
            )

    def pfc_check(self, now, host):
        """Resumes the senders when the queue has drained (IEEE 802.1Qbb)."""
        queued_bytes = max(0.0, host.queue_busy_until - now) * host.queue_rate / 8e9
        if queued_bytes <= self.pfc["resume_below"] + 1:
            host.pausing = False
            self.send_pause(host, now, False)
        else:
            self.schedule(
                now + max(1e3, (queued_bytes - self.pfc["resume_below"]) * 8e9 / host.queue_rate), self.pfc_check, host
            )

    def send_pause(self, host, now, on):
        """Sends a PFC frame with 65535 quanta, or zero, to all senders of this host (IEEE 802.1Qbb)."""
        # The switch pauses every host that sends to this one.
        sources = {e.peer.host.index for e in host.endpoints} - {host.index}
        for index in sorted(sources):
            for tap in self.taps:
                tap.observe_pause(now + 200, index, on)
            source = self.hosts[index]
            duration = 65535 * 512e9 / source.rate
            self.schedule(
                now + 500,
                lambda time, source=source, on=on, duration=duration: source.pause(
                    time + duration if on else time, time
                ),
            )

    def deliver(self, now, packet):
        """A packet reaches its receiver. CE on data is a matter of the notification point, a CNP of the reaction point."""
        if packet.fate == 3:
            self.lost.append(packet)
            return
        for tap in self.taps:
            tap.observe(packet, now, 3.5)
        if packet.fate == 4:
            self.lost.append(packet)
            return
        receiver = packet.sender.peer
        if packet.ecn == 3 and packet.category in ("data", "resp"):
            self.notification_point(receiver, packet, now)
        if packet.category == "cnp":
            if receiver.reaction_point:
                receiver.reaction_point.on_cnp(now)
                receiver.host.kick(now)
            return
        if packet.opcode == ACK:
            receiver.on_ack(packet, now)
        elif packet.opcode in READ_RESPONSES:
            receiver.on_response(packet, now)
        else:
            receiver.on_request(packet, now)

    def notification_point(self, receiver, packet, now):
        """Sends a CNP for a CE mark, at most one per interval and queue pair, address or port (IBTA annex A17.9.3; vendor modes)."""
        host = receiver.host
        key = receiver.qpn if self.cnp_mode == "qp" else packet.source if self.cnp_mode == "ip" else 0
        if now - host.last_cnp.get(key, -1e18) < self.cnp_interval:
            return
        host.last_cnp[key] = now
        cnp = self.new_packet(receiver, receiver.peer)
        cnp.opcode = CNP
        cnp.psn = 0
        cnp.payload_length = 0
        cnp.category = "cnp"
        cnp.ecn = self.cnp_ecn
        cnp.sent_at = now
        self.set_wire_size(cnp)
        host.control_queue.insert(0, cnp)
        host.kick(now)
        receiver.peer.cnp_log.append(cnp)

    def run(self, stop):
        """Runs events until `stop(network, time)` is true or the events are used up."""
        events = 0
        while self.heap:
            time, _, callback, arguments = heapq.heappop(self.heap)
            self.now = time
            callback(time, *arguments)
            events += 1
            if events & 255 == 0 and stop(self, time):
                break
            if events > self.max_events:
                break
