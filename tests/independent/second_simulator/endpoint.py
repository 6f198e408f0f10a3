"""Packets and queue pairs of the RC transport, written from IBTA volume 1, chapter 9."""

import random

ACK = 0x11


CNP = 0x81


READ_REQUEST = 0x0C


READ_FIRST = 0x0D


READ_MIDDLE = 0x0E


READ_LAST = 0x0F


READ_ONLY = 0x10


READ_RESPONSES = (READ_FIRST, READ_MIDDLE, READ_LAST, READ_ONLY)


class Packet:
    """One packet on the wire: its headers, its fate (position of its loss, 0 if delivered) and what caused it."""

    __slots__ = (
        "uid",
        "opcode",
        "source",
        "destination",
        "sender",
        "source_port",
        "destination_qpn",
        "psn",
        "ack_requested",
        "payload_length",
        "syndrome",
        "msn",
        "dma_length",
        "virtual_address",
        "ecn",
        "ip_identification",
        "resend",
        "psn_count",
        "fate",
        "duplicate_of",
        "wire_length",
        "sent_at",
        "category",
        "last_of_message",
        "regenerated",
    )


class WorkRequest:
    """One work request of the send queue and the PSNs it takes."""

    __slots__ = (
        "kind",
        "length",
        "packets",
        "first_psn",
        "end_psn",
        "responses_received",
        "asked_again_at",
        "virtual_address",
    )


class Endpoint:
    """One queue pair of the RC transport: requester and responder (IBTA volume 1, 9.7)."""

    def __init__(self, network, host, qpn, sport, psn, mode, config):
        """Starts both halves at `psn`. Modes: gbn (go-back-N), sr (selective resend), ooo (out-of-order placement)."""
        self.net = network
        self.host = host
        self.qpn = qpn
        self.source_port = sport
        self.mode = mode
        self.config = config
        self.unacknowledged = self.next_psn = self.max_psn = self.posted_end = self.initial_psn = psn
        self.work_queue = []
        self.oldest_work = 0  # The first unfinished entry of the work queue.
        self.selective_queue = []  # PSNs to resend alone.
        self.selective_set = set()
        self.expected_psn = None
        self.nak_sent = False
        self.msn = 0
        self.out_of_order = {}
        self.ack_pending = False
        self.hole_since = None
        self.response_queue = []
        self.next_departure = 0.0
        self.limit = config.get("rate_limit")
        self.reaction_point = None
        self.runs = []
        self.request_log = []
        self.response_log = []
        self.naks = []
        self.cnp_log = []
        self.ack_log = []
        self.timer_base = 0.0
        self.timer_on = False
        self.timer_retries = 0
        self.wait_until = 0.0
        self.rnr_until = {}
        self.rnr_pending = False
        self.received_responses = set()
        self.highest_ack = psn - 1
        self.ip_identification = random.getrandbits(16)
        self.app = None
        self.current_run = None
        self.dead = False
        self.response_turn = 0
        self.path = 0
        self.peer = None
        self.buffer_address = 0x7F0000000000 + (qpn << 24)
        self.stop = False

    def post(self, kind, length, now):
        """Appends a work request. A READ takes as many PSNs as it has responses (IBTA 9.7.1)."""
        work = WorkRequest()
        work.kind = kind
        work.length = length
        mtu = self.net.mtu
        work.packets = max(1, -(-length // mtu))
        work.first_psn = self.posted_end
        work.end_psn = work.first_psn + work.packets
        self.posted_end = work.end_psn
        work.responses_received = 0
        work.asked_again_at = -1
        work.virtual_address = self.buffer_address
        self.work_queue.append(work)
        self.host.kick(now)

    def work_of(self, psn):
        """The work request that holds this PSN."""
        for index in range(self.oldest_work, len(self.work_queue)):
            if self.work_queue[index].end_psn > psn:
                return self.work_queue[index] if self.work_queue[index].first_psn <= psn else None
        return None

    def request_ready(self, now):
        """True if a request may leave: the window and the limit of outstanding READs (IBTA 9.7) permit it."""
        if now < self.wait_until:
            return False
        if self.selective_queue:
            return True
        if self.next_psn >= self.posted_end:
            return False
        if self.next_psn - self.unacknowledged >= self.config["window"]:
            return False
        if self.next_psn >= self.max_psn:
            work = self.work_of(self.next_psn)
            if work.kind == "read" and work.first_psn == self.next_psn:
                outstanding_reads = 0
                for index in range(self.oldest_work, len(self.work_queue)):
                    earlier = self.work_queue[index]
                    if earlier.first_psn >= self.next_psn:
                        break
                    if earlier.kind == "read":
                        outstanding_reads += 1
                if outstanding_reads >= self.config["max_reads"]:
                    return False
        return True

    def ready_time(self, now):
        """The earliest time at which something can leave, or None."""
        if self.response_queue:
            return self.next_departure
        if self.selective_queue or self.next_psn < self.posted_end:
            if now < self.wait_until:
                return max(self.wait_until, self.next_departure)
            if self.request_ready(now):
                return self.next_departure
        return None

    def next_packet(self, now):
        """Takes the next packet, responses and requests by turns, and advances the rate limit."""
        if self.response_queue and (self.response_turn or not self.request_ready(now)):
            self.response_turn = 0
            packet = self.response_queue.pop(0)
        elif self.request_ready(now):
            self.response_turn = 1
            packet = self.make_request(now)
            if packet is None:
                return None
        elif self.response_queue:
            packet = self.response_queue.pop(0)
        else:
            return None
        rate = self.current_rate(now)
        if rate < self.host.rate:
            self.next_departure = max(now, self.next_departure) + (packet.wire_length + 24) * 8e9 / rate
        if self.reaction_point and packet.payload_length:
            self.reaction_point.on_sent(now, packet.wire_length)
        return packet

    def current_rate(self, now):
        """The rate in bit/s: configured limit, port and, unless it ignores CNPs, DCQCN."""
        rate = self.limit or self.host.rate
        if self.reaction_point and not self.config.get("ignores_cnps"):
            self.reaction_point.advance(now)
            rate = min(rate, self.reaction_point.current_rate_bps)
        return rate

    def make_request(self, now):
        """Builds the request at the next PSN: opcode by its place in the message (IBTA 9.2.1), DMA length and AckReq."""
        selective = False
        psn = None
        while self.selective_queue:
            psn = self.selective_queue.pop(0)
            self.selective_set.discard(psn)
            if psn >= self.unacknowledged:
                selective = True
                break
            psn = None
        if psn is None:
            if self.next_psn >= self.posted_end or self.next_psn - self.unacknowledged >= self.config["window"]:
                return None
            psn = self.next_psn
        work = self.work_of(psn)
        mtu = self.net.mtu
        if work is None:
            raise AssertionError("no wqe for psn")
        index = psn - work.first_psn
        last = index == work.packets - 1
        packet = self.net.new_packet(self, self.peer)
        packet.psn = psn
        packet.resend = psn < self.max_psn
        if work.kind == "read":
            packet.opcode = READ_REQUEST
            packet.psn_count = work.end_psn - psn
            packet.dma_length = work.length - index * mtu
            packet.virtual_address = work.virtual_address + index * mtu
            packet.payload_length = 0
            packet.ack_requested = 1
            following_psn = work.end_psn
            packet.category = "rreq"
        else:
            base_opcode = 0 if work.kind in ("send", "sendimm") else 6
            immediate = work.kind.endswith("imm")
            if work.packets == 1:
                opcode = base_opcode + (5 if immediate else 4)
            elif index == 0:
                opcode = base_opcode
            elif last:
                opcode = base_opcode + (3 if immediate else 2)
            else:
                opcode = base_opcode + 1
            packet.opcode = opcode
            packet.payload_length = (work.length - index * mtu) if last else mtu
            if base_opcode == 6 and index == 0:
                packet.dma_length = work.length
                packet.virtual_address = work.virtual_address
            ack_every = self.config["ack_every"]
            packet.ack_requested = 1 if last or (ack_every and psn % ack_every == ack_every - 1) else 0
            following_psn = psn + 1
            packet.category = "data"
        packet.last_of_message = last
        self.net.set_wire_size(packet)
        if packet.resend:
            run = self.current_run
            if run is not None and run["first"] is None and psn == run["psn"]:
                run["first"] = packet
        if not selective:
            if self.next_psn == self.unacknowledged and self.max_psn == self.unacknowledged:
                self.timer_base = now
            self.next_psn = following_psn
            if following_psn > self.max_psn:
                self.max_psn = following_psn
        if not packet.resend and packet.ack_requested and self.unacknowledged == self.max_psn:
            self.timer_base = now
        packet.sent_at = now
        self.request_log.append(packet)
        self.arm_timer(now)
        return packet

    def arm_timer(self, now):
        """Starts the transport timer while requests are outstanding (IBTA 9.7.6.1.3)."""
        if not self.timer_on and self.unacknowledged < self.max_psn:
            self.timer_on = True
            due = self.timer_base + self.timeout_ns()
            self.net.schedule(due if due > now else now + self.timeout_ns(), self.on_timer)

    def timeout_ns(self):
        """The transport timer in ns, with the backoff of some NICs."""
        return self.config["timeout"] * (self.config.get("backoff", 1) ** min(self.timer_retries, 3))

    def on_timer(self, now):
        """Transport timeout: resends from the oldest unacknowledged PSN, at most seven times (IBTA 9.7.6.1.3)."""
        self.timer_on = False
        if self.unacknowledged >= self.max_psn or self.dead:
            return
        due = max(self.timer_base, self.wait_until) + self.timeout_ns()
        if now + 1 < due:
            self.timer_on = True
            self.net.schedule(due, self.on_timer)
            return
        self.timer_retries += 1
        if self.timer_retries > 7:
            self.dead = True
            return
        self.go_back(self.unacknowledged, "timeout", now, None)
        self.arm_timer(now)

    def go_back(self, psn, reason, now, nak):
        """Begins a run of resends at `psn`: all from there (go-back-N), or this packet alone (selective)."""
        over = self.next_psn < self.max_psn or bool(self.selective_queue)
        run = dict(reason=reason, psn=psn, time=now, nak=nak, first=None, over=over)
        self.runs.append(run)
        self.current_run = run
        self.timer_base = now
        if (
            self.mode == "gbn"
            or reason in ("timeout", "rnr")
            and self.config.get("timeout_resends_all", True)
            or reason == "rnr"
        ):
            self.selective_queue.clear()
            self.selective_set.clear()
            self.next_psn = psn
        else:
            work = self.work_of(psn)
            if psn not in self.selective_set and work is not None:
                self.selective_queue.append(psn)
                self.selective_set.add(psn)
        self.host.kick(now)

    def progress(self, psn, now):
        """Acknowledges all PSNs below `psn` and completes their work requests (IBTA 9.7.5.1.2: ACKs coalesce)."""
        if psn <= self.unacknowledged:
            return
        assert psn <= self.max_psn, (psn, self.max_psn)
        self.unacknowledged = psn
        self.timer_retries = 0
        self.timer_base = now
        if self.next_psn < psn:
            self.next_psn = psn
        while self.oldest_work < len(self.work_queue) and self.work_queue[self.oldest_work].end_psn <= psn:
            work = self.work_queue[self.oldest_work]
            self.oldest_work += 1
            if self.app:
                self.app(self, work, now)
        self.host.kick(now)

    def first_read_hole(self, upto):
        """The first incomplete READ that begins at or below `upto`."""
        for index in range(self.oldest_work, len(self.work_queue)):
            work = self.work_queue[index]
            if work.first_psn > upto:
                break
            if work.kind == "read" and work.first_psn + work.responses_received < work.end_psn:
                return work
        return None

    def on_ack(self, packet, now):
        """An ACK or NAK. A NAK acknowledges all before it (IBTA 9.7.5.2; RNR: 9.7.5.2.8)."""
        psn = packet.psn
        kind = packet.syndrome >> 5
        if kind == 0:
            if psn < self.unacknowledged:
                return
            self.acknowledge_to(psn, now)
        else:  # A NAK acknowledges all PSNs before its own.
            if psn < self.unacknowledged:
                return
            if psn > self.unacknowledged:
                self.acknowledge_to(psn - 1, now)
            if self.unacknowledged != psn:
                return  # An earlier READ is not complete and was requested again.
            if self.unacknowledged >= self.max_psn:
                return
            if kind == 1:
                self.wait_until = now + self.net.rnr_timer_ns(packet.syndrome & 31) * self.net.rng.uniform(1.0, 1.1)
                self.go_back(psn, "rnr", now, packet)
                self.net.schedule(self.wait_until + 1, lambda t: self.host.kick(t))
            else:
                self.go_back(psn, "nak", now, packet)

    def acknowledge_to(self, psn, now):
        """Acknowledges up to `psn`; an ACK beyond an incomplete READ implies that responses are lost (IBTA 9.7.5.1)."""
        read = self.first_read_hole(psn)
        self.highest_ack = max(self.highest_ack, psn)
        if read is None:
            self.progress(psn + 1, now)
        else:
            hole = read.first_psn + read.responses_received
            self.progress(hole, now)
            if self.mode in ("gbn", "sr"):
                self.implied_nak(read, hole, now)

    def implied_nak(self, read, hole, now):
        """Requests a answered again from its first missing response, once per hole (IBTA 9.7.5.1, implied NAK)."""
        if read.asked_again_at == hole:
            return  # It was requested again once; only the timer helps now.
        read.asked_again_at = hole
        self.go_back(hole, "implied", now, None)

    def on_response(self, packet, now):
        """A READ response: in order it acknowledges, beyond a hole it is an implied NAK (IBTA 9.7.5.1)."""
        if packet.psn < self.unacknowledged:
            return
        if self.mode == "gbn":
            read = self.first_read_hole(packet.psn)
            if read is None:
                return
            hole = read.first_psn + read.responses_received
            if packet.psn == hole:
                read.responses_received += 1
                self.progress(hole + 1, now)
            elif packet.psn > hole:
                self.progress(hole, now)
                self.implied_nak(read, hole, now)
        else:
            self.received_responses.add(packet.psn)
            moved = True
            while moved:
                moved = False
                # Any response of this READ acknowledges the WRITEs before it.
                read = self.first_read_hole(max(packet.psn, self.highest_ack))
                if read is None:
                    if self.highest_ack >= self.unacknowledged:
                        self.progress(self.highest_ack + 1, now)
                    break
                hole = read.first_psn + read.responses_received
                if hole in self.received_responses:
                    self.received_responses.discard(hole)
                    read.responses_received += 1
                    self.progress(hole + 1, now)
                    moved = True
                else:
                    self.progress(hole, now)
            if self.mode == "sr":
                read = self.first_read_hole(packet.psn)
                if read is not None and read.first_psn + read.responses_received < packet.psn:
                    self.implied_nak(read, read.first_psn + read.responses_received, now)

    def reply(self, packet, now):
        """Queues an ACK or NAK. It stays behind READ responses that are due before it (IBTA 9.7.5.1, responses in order)."""
        if self.response_queue:
            self.response_queue.append(packet)
        else:
            self.host.control_queue.append(packet)
        self.host.kick(now)

    def make_ack(self, psn, syndrome, now):
        """Builds an ACK or NAK with its AETH: syndrome and MSN (IBTA 9.3.5, 9.7.7)."""
        packet = self.net.new_packet(self, self.peer)
        packet.opcode = ACK
        packet.psn = psn
        packet.syndrome = syndrome
        packet.msn = self.msn
        packet.payload_length = 0
        packet.sent_at = now
        packet.category = "ack" if syndrome >> 5 == 0 else ("rnr" if syndrome >> 5 == 1 else "nak")
        self.net.set_wire_size(packet)
        if packet.category != "ack":
            self.naks.append(packet)
        self.ack_log.append(packet)
        return packet

    def ack_now(self, now):
        """Acknowledges the last PSN received in order."""
        self.ack_pending = False
        self.reply(self.make_ack(self.expected_psn - 1, 0x1F, now), now)

    def request_ack(self, now):
        """Sends an ACK at once or, with a delay, one for all requests that came meanwhile."""
        if self.ack_pending:
            return
        delay = self.config["ack_delay"]
        if not delay:
            self.ack_now(now)
        else:
            self.ack_pending = True
            self.net.schedule(now + delay, lambda t: self.ack_pending and self.ack_now(t))

    def send_nak(self, now):
        """Sends a NAK for a sequence error with the expected PSN (IBTA 9.7.4, 9.7.5.2)."""
        self.nak_sent = True
        self.ack_pending = False
        self.reply(self.make_ack(self.expected_psn, 0x60, now), now)

    def on_request(self, packet, now):
        """Responder: duplicates are acknowledged or answered again (IBTA 9.7.5.1), gaps get one NAK (9.7.4)."""
        if self.expected_psn is None:
            self.expected_psn = self.peer.initial_psn
        distance = packet.psn - self.expected_psn
        if distance < 0:
            if packet.opcode == READ_REQUEST:
                self.answer_read(packet, now, again=True)
            elif packet.ack_requested or self.config.get("duplicates_answered"):
                self.reply(self.make_ack(self.expected_psn - 1, 0x1F, now), now)
            return
        if self.mode == "gbn":
            if distance == 0:
                self.execute(packet, now)
            elif not self.nak_sent:
                self.send_nak(now)
            return
        if self.rnr_pending and distance > 0:
            return
        if distance > 0:
            if packet.psn in self.out_of_order:
                return
            self.out_of_order[packet.psn] = packet
            if self.mode == "sr":
                if not self.nak_sent:
                    self.send_nak(now)
            elif self.hole_since is None and self.config.get("hole_timer"):
                self.hole_since = now
                self.net.schedule(now + self.config["hole_timer"], self.on_hole_timer, self.expected_psn)
            return
        if not self.execute(packet, now):
            return
        while self.expected_psn in self.out_of_order:
            following = self.out_of_order.pop(self.expected_psn)
            if not self.execute(following, now):
                return
        self.hole_since = None
        if self.out_of_order:
            if self.mode == "sr":
                self.send_nak(now)
            elif self.config.get("hole_timer"):
                self.hole_since = now
                self.net.schedule(now + self.config["hole_timer"], self.on_hole_timer, self.expected_psn)

    def on_hole_timer(self, now, expected_psn):
        """A receiver that places out of order requests a hole that stays open."""
        if self.out_of_order and self.expected_psn == expected_psn:
            self.send_nak(now)
            self.net.schedule(now + self.config["hole_timer"] * 4, self.on_hole_timer, self.expected_psn)

    def execute(self, packet, now):
        """Executes the expected request. Returns False if the receiver is not ready (RNR NAK, IBTA 9.7.5.2.8)."""
        opcode = packet.opcode
        rnr = self.config.get("rnr")
        if rnr and opcode in (0, 4, 5, 9, 0x0B):
            if packet.psn not in self.rnr_until:
                self.rnr_until[packet.psn] = now + rnr["dur"] if self.net.rng.random() < rnr["p"] else 0
            if now < self.rnr_until[packet.psn]:
                self.nak_sent = True
                self.rnr_pending = True
                self.out_of_order.clear()
                self.ack_pending = False
                self.reply(self.make_ack(self.expected_psn, 0x20 | rnr["code"], now), now)
                return False
        self.nak_sent = False
        self.rnr_pending = False
        assert packet.psn == self.expected_psn
        if opcode == READ_REQUEST:
            if self.ack_pending:
                self.ack_now(now)
            self.expected_psn += packet.psn_count
            self.msn += 1
            self.answer_read(packet, now, again=False)
        else:
            self.expected_psn += 1
            if opcode in (2, 3, 4, 5, 8, 9, 10, 11):
                self.msn += 1
            if packet.ack_requested:
                self.request_ack(now)
        return True

    def answer_read(self, request, now, again):
        """Queues all responses of a READ request; their PSNs begin with the PSN of the request (IBTA 9.7.5.1)."""
        mtu = self.net.mtu
        count = request.psn_count
        left = request.dma_length
        for index in range(count):
            response = self.net.new_packet(self, self.peer)
            response.psn = request.psn + index
            response.payload_length = min(mtu, left)
            left -= response.payload_length
            response.opcode = (
                READ_ONLY
                if count == 1
                else READ_FIRST if index == 0 else READ_LAST if index == count - 1 else READ_MIDDLE
            )
            response.syndrome = 0x1F
            response.msn = self.msn
            response.category = "resp"
            response.last_of_message = index == count - 1
            response.regenerated = again
            response.sent_at = now
            self.net.set_wire_size(response)
            self.response_queue.append(response)
            self.response_log.append(response)
        self.host.kick(now)
