#!/usr/bin/env python3
"""Counts what happened to each packet of the captures that `cargo xtask vm-test --captures` makes, and holds it against the counters.

    check_impaired.py FOLDER              checks every run in FOLDER and prints one line for each
    check_impaired.py FOLDER --write      also writes FOLDER/taps.tsv and FOLDER/ways.tsv, which tests/command/real.rs reads

A run NAME is NAME.sender.pcap (the client's end), NAME.receiver.pcap (the server's end) and NAME.toml (commands and counters). Nothing
of the project's code is used. A transmission is one packet as its sender sent it: (source, destination, queue pair, PSN, opcode, IP
identification). It stands once in the file of its sender's end. What the other end's file has of it says its fate:

    lost          it is not there
    duplicated    it is there more than once
    overtaken     it is there behind a transmission of the same flow that was sent later

The order of sending is the order in the file of the sender's end. The IP identifications are the second witness: Linux counts them up
for each pair of addresses, by 1 and after a pause by a little more (`ip_idents_reserve` in net/ipv4/route.c), so they must rise in that
file, and whoever has the other file alone finds the same packets overtaken.

Columns of taps.tsv, a row for each flow (source, destination, queue pair) at each tap (sender, receiver):

    packets               records
    duplicates            records that repeat a transmission which the same file has before
    requests              transmissions of requests in this file
    resent                those whose PSN the sender had sent before
    missing               request PSNs that were jumped over when the highest in this file rose; none below the first in it
    reordered             missing ones whose transmission came later
    lost                  the other missing ones: the network lost every transmission that was sent before what jumped over them
    late                  requests that filled such a gap and were no resends
    responses_missing     the same as missing, of the PSNs of READ responses
    responses_lost        the same as lost
    responses_asked       READ requests sent again, each for a response that the network had lost
    naks                  transmissions of sequence NAKs that the flow carried
    runs                  times that the sender fell back to an earlier request PSN; only where the tap is at the sender's end, else -
    runs_nak              of these, those within 5 ms of a sequence NAK for this PSN; else -
    runs_timeout          of these, those that nothing else than the timer can bring about: no NAK for this PSN has come, or long ago; READ
                          requests after a silence of nearly the timer's length; else -
    runs_unclear          the others: soon after READ responses, or some time after a NAK; else -

Columns of ways.tsv, a row for each flow, from its sender's end to the other:

    sent, received, lost, duplicated, overtaken     transmissions; duplicated counts additional records

What must agree: packets in each file and tcpdump's count, which dropped none; transmissions, and packets that rxe says it sent; records
at the other end, and packets that rxe says it received; losses and netem's `dropped`; records behind netem and netem's `sent`; rxe's
`out_of_seq_request` and `duplicate_request`, and what a receiver that takes PSNs in order alone makes of the arriving requests; its
`rcvd_seq_err`, and sequence NAKs that arrive and acknowledge something; its `completer_retry_err`, and the times that the sender fell
back.
"""

import argparse
import collections
import pathlib
import struct
import sys
import tomllib

# The ends: the file's name, the Soft-RoCE device, its address.
ENDS = {"sender": ("rxe0", "10.77.0.1"), "receiver": ("rxe1", "10.77.0.2")}
OTHER = {"sender": "receiver", "receiver": "sender"}

# Opcodes of a reliable connection (IBTA 9.2).
READ_REQUEST, ACKNOWLEDGE = 0x0C, 0x11
READ_RESPONSES = range(0x0D, 0x11)
ANSWERS = range(0x0D, 0x13)

# Syndrome of a NAK for a PSN sequence error (IBTA 9.7.5.2.2).
SEQUENCE_NAK = 0x60

# Application data of a full packet, in bytes: the path MTU in the VM, whose links take 1500.
PATH_MTU = 1024

PSNS = 1 << 24

# A NAK that is answered at all is answered within some 0.05 ms; the rest is for an emulated processor that has to wait. In us.
ANSWERED = 5_000

# Less than the sender's timer, which is 67.1 ms (`-u 14`: 4.096 us << 14, IBTA 9.7.6.1.3) and in Linux a number of jiffies. In us.
TIMED_OUT = 45_000

Packet = collections.namedtuple("Packet", "time flow opcode psn span syndrome identification")


def packets(path):
    """The RoCEv2 packets of a pcap file: Ethernet, IPv4 without options. Everything in the file must be one."""
    data = path.read_bytes()
    assert struct.unpack_from("<I", data)[0] == 0xA1B2C3D4, f"{path} is no pcap file in microseconds"
    at, found = 24, []
    while at < len(data):
        seconds, micros, kept, _ = struct.unpack_from("<IIII", data, at)
        frame = data[at + 16 : at + 16 + kept]
        at += 16 + kept
        assert frame[12:15] == b"\x08\x00\x45" and frame[23] == 17 and frame[36:38] == b"\x12\xb7", f"{path}: no RoCEv2 packet"
        address = lambda bytes_: ".".join(map(str, bytes_))
        bth = frame[42:]
        opcode = bth[0]
        length = int.from_bytes(bth[24:28], "big") if opcode == READ_REQUEST else 0
        found.append(
            Packet(
                time=seconds * 10**6 + micros,
                flow=(address(frame[26:30]), address(frame[30:34]), int.from_bytes(bth[5:8], "big")),
                opcode=opcode,
                psn=int.from_bytes(bth[9:12], "big"),
                span=max(1, -(-length // PATH_MTU)),
                syndrome=bth[12] if opcode == ACKNOWLEDGE else None,
                identification=int.from_bytes(frame[18:20], "big"),
            )
        )
    return found


def is_request(packet):
    """Whether a packet asks for something."""
    return packet.opcode not in ANSWERS


def identity(packet):
    """What makes a packet one transmission: all of it but the time of capture."""
    return packet._replace(time=0)


def ahead(psn, other):
    """How far a PSN is ahead of another one, negative when it is behind."""
    return (psn - other + PSNS // 2) % PSNS - PSNS // 2


def once(records):
    """The records without those that repeat an earlier one, and how many these were."""
    seen, kept = set(), []
    for record in records:
        if identity(record) not in seen:
            seen.add(identity(record))
            kept.append(record)
    return kept, len(records) - len(kept)


def identifications_rise(records):
    """How often the IP identification of a packet is behind the one before, by source and destination."""
    last, wrong = {}, 0
    for record in records:
        addresses = record.flow[:2]
        if addresses in last:
            wrong += not 0 < (record.identification - last[addresses]) % (1 << 16) < 1 << 15
        last[addresses] = record.identification
    return wrong


def overtaken(arrivals, place):
    """The transmissions that arrive behind one of the same flow that was sent later: `place` says when each was sent."""
    highest, found = None, []
    for packet in arrivals:
        if highest is not None and place(packet, highest) < 0:
            found.append(packet)
        else:
            highest = packet
    return found


class Way:
    """One flow from its sender's end to the other."""

    def __init__(self, near, far):
        self.sent, repeated = once(near)
        assert repeated == 0, "the sender's end has a packet twice"
        self.arrivals, self.duplicated = once(far)
        order = {identity(packet): index for index, packet in enumerate(self.sent)}
        self.order = order
        strange = [packet for packet in self.arrivals if identity(packet) not in order]
        assert not strange, f"never sent: {strange}"
        arrived = {identity(packet) for packet in self.arrivals}
        self.lost = [packet for packet in self.sent if identity(packet) not in arrived]
        self.overtaken = overtaken(self.arrivals, lambda a, b: order[identity(a)] - order[identity(b)])
        self.by_identification = overtaken(
            self.arrivals, lambda a, b: (a.identification - b.identification + (1 << 15)) % (1 << 16) - (1 << 15)
        )
        self.resent = self.find_resent()

    def find_resent(self):
        """The requests with a PSN that had been sent before."""
        sent, again = set(), set()
        for packet in filter(is_request, self.sent):
            asked = {(packet.psn + index) % PSNS for index in range(packet.span)}
            if packet.psn in sent:
                again.add(identity(packet))
            sent |= asked
        return again

    def holes(self, arrivals, of):
        """What became of the PSNs that arriving packets jumped over: (missing, reordered, lost, late)."""
        sent = collections.defaultdict(list)
        for index, packet in enumerate(self.sent):
            if of(packet):
                for step in range(packet.span):
                    sent[(packet.psn + step) % PSNS].append(index)
        came = {self.order[identity(packet)] for packet in arrivals}
        missing = reordered = lost = late = 0
        expected, open_holes = None, {}
        for packet in filter(of, arrivals):
            index = self.order[identity(packet)]
            if expected is None:
                expected = packet.psn
            for step in range(ahead(packet.psn, expected)):
                psn = (expected + step) % PSNS
                before = [other for other in sent[psn] if other < index]
                assert before, "a PSN was jumped over that had never been sent"
                missing += 1
                if came & set(before):
                    reordered += 1
                else:
                    lost += 1
                open_holes[psn] = index
            end = (packet.psn + packet.span) % PSNS
            if ahead(packet.psn, expected) < 0:
                jumped = open_holes.pop(packet.psn, None)
                late += jumped is not None and index < jumped
            if ahead(end, expected) > 0:
                expected = end
        return missing, reordered, lost, late


Runs = collections.namedtuple("Runs", "packets by_nak timeouts")


def fallbacks(sent, answers):
    """The requests with which a sender fell back to an earlier PSN, and how many of them surely answer a sequence NAK or a timeout.

    Soft-RoCE leaves its timer running when what it was set for is acknowledged, so that it may run out after a short silence, too.
    """
    runs, by_nak, timeouts = [], 0, 0
    # Behind a READ request that spans many PSNs, one inside it requests the rest again.
    expected = before = None
    for packet in filter(is_request, sent):
        if expected is not None and ahead(packet.psn, expected) < 0:
            since = runs[-1].time if runs else 0
            heard = [answer for answer in answers if since < answer.time <= packet.time]
            naks = [answer.time for answer in heard if answer.syndrome == SEQUENCE_NAK and answer.psn == packet.psn]
            if naks:
                by_nak += packet.time - naks[-1] < ANSWERED
                timeouts += packet.time - naks[-1] > TIMED_OUT
            elif packet.opcode == READ_REQUEST:
                timeouts += packet.time - max([before.time] + [answer.time for answer in heard]) > TIMED_OUT
            else:
                timeouts += 1
            runs.append(packet)
        expected, before = (packet.psn + packet.span) % PSNS, packet
    return Runs(runs, by_nak, timeouts)


def responder(arrivals, expected):
    """What a receiver that takes PSNs in order alone counts: (duplicate requests, requests out of sequence that it answers by a NAK)."""
    asked, duplicates, naks = False, 0, 0
    for packet in arrivals:
        step = ahead(packet.psn, expected)
        if step < 0:
            duplicates += 1
        elif step > 0:
            naks += not asked
            asked = True
        else:
            asked = False
            expected = (packet.psn + packet.span) % PSNS
    return duplicates, naks


def requester(answers, expected):
    """How many sequence NAKs Soft-RoCE counts: those for a PSN beyond the ones that are acknowledged (`check_ack` in rxe_comp.c)."""
    counted = 0
    for packet in answers:
        if packet.syndrome == SEQUENCE_NAK:
            if ahead(packet.psn, expected) > 0:
                counted += 1
                expected = packet.psn
        elif ahead(packet.psn, expected) >= 0:
            expected = (packet.psn + 1) % PSNS
    return counted


class Run:
    """One run: its packets, what happened to them, and the counters."""

    def __init__(self, folder, name):
        self.name = name
        self.said = tomllib.loads((folder / f"{name}.toml").read_text())
        self.records = {end: packets(folder / f"{name}.{end}.pcap") for end in ENDS}
        self.wrong, self.notes = [], []
        flows = sorted({packet.flow for records in self.records.values() for packet in records})
        self.ways = {}
        for flow in flows:
            near = next(end for end, (_, address) in ENDS.items() if address == flow[0])
            of = lambda end: [packet for packet in self.records[end] if packet.flow == flow]
            self.ways[flow] = (near, Way(of(near), of(OTHER[near])))

    def same(self, what, found, expected):
        """Compares, and keeps what differs."""
        if found != expected:
            self.wrong.append(f"{what}: {found}, but {expected}")

    def counted(self, device, counter):
        """By how much a counter rose."""
        return self.said["after"][device][counter] - self.said["before"][device][counter]

    def peer(self, flow):
        """The flow of the other direction. Queue pairs pair in the order of their numbers: perftest makes them so at both ends."""
        source, destination, _ = flow
        mine = [other for other in self.ways if other[:2] == (source, destination)]
        back = [other for other in self.ways if other[:2] == (destination, source)]
        assert len(mine) == len(back)
        return back[mine.index(flow)]

    def check(self):
        """Compares the packets with every counter."""
        for end, (device, address) in ENDS.items():
            records, tcpdump = self.records[end], self.said["tcpdump"][end]
            self.same(f"{end}: tcpdump dropped", tcpdump["dropped"], 0)
            self.same(f"{end}: records, and tcpdump's count", len(records), tcpdump["captured"])
            sent = [packet for packet in records if packet.flow[0] == address]
            received = [packet for packet in records if packet.flow[1] == address]
            self.same(f"{device}: sent_pkts", self.counted(device, "sent_pkts"), len(sent))
            self.same(f"{device}: rcvd_pkts", self.counted(device, "rcvd_pkts"), len(received))
            self.same(f"{end}: IP identifications that fall while it sends", identifications_rise(sent), 0)
        for direction, end in (("netem_to_server", "receiver"), ("netem_to_client", "sender")):
            ways = [way for flow, (near, way) in self.ways.items() if near == OTHER[end]]
            lost = sum(len(way.lost) for way in ways)
            behind = sum(len(way.arrivals) + way.duplicated for way in ways)
            if direction in self.said["after"]:
                after, before = self.said["after"][direction], self.said["before"][direction]
                self.same(f"{direction}: dropped", after["dropped"] - before["dropped"], lost)
                self.same(f"{direction}: sent", after["sent_packets"] - before["sent_packets"], behind)
                arguments = self.said["impairment"][direction.removeprefix("netem_")]
            else:
                arguments = ""
            done = {
                "loss": lost,
                "duplicate": sum(way.duplicated for way in ways),
                "reorder": sum(len(way.overtaken) for way in ways),
            }
            for what, count in done.items():
                if what == "reorder" and count and what not in arguments:
                    # Two processors of the VM each carry packets through the switch, and may pass each other.
                    self.notes.append(f"{direction} '{arguments}': {count} overtaken, and netem reorders nothing")
                    continue
                self.same(f"{direction} '{arguments}': whether there is {what}, {count}", count > 0, what in arguments)
        for flow, (_, way) in self.ways.items():
            self.same(
                f"{flow}: overtaken, by the order of sending and by IP identification",
                [identity(packet) for packet in way.overtaken],
                [identity(packet) for packet in way.by_identification],
            )
        self.check_endpoints()

    def check_endpoints(self):
        """Compares what arrived with what both Soft-RoCE devices made of it."""
        for end, (device, _) in ENDS.items():
            found = collections.Counter()
            for flow, (near, way) in self.ways.items():
                requests = [packet for packet in way.sent if is_request(packet)]
                if not requests:
                    continue
                of = lambda at, which: [packet for packet in self.records[at] if packet.flow == which]
                first = requests[0].psn
                if near == end:
                    found["rcvd_seq_err"] += requester(of(end, self.peer(flow)), first)
                    found["completer_retry_err"] += len(self.fallen_back(flow).packets)
                else:
                    duplicates, naks = responder(filter(is_request, of(end, flow)), first)
                    found["duplicate_request"] += duplicates
                    found["out_of_seq_request"] += naks
            for counter in ("rcvd_seq_err", "completer_retry_err", "duplicate_request", "out_of_seq_request"):
                self.same(f"{device}: {counter}", self.counted(device, counter), found[counter])

    def fallen_back(self, flow):
        """How often the sender of a flow fell back, and why."""
        near, way = self.ways[flow]
        answers = [packet for packet in self.records[near] if packet.flow == self.peer(flow)]
        return fallbacks(way.sent, answers)

    def asked_again(self, flow):
        """READ requests that ask again for a response of this flow that the network had lost."""
        near, way = self.ways[flow]
        lost = collections.defaultdict(list)
        for packet in way.lost:
            if packet.opcode in READ_RESPONSES:
                lost[packet.psn].append(packet.time)
        asked, since = 0, {}
        for packet in self.fallen_back(self.peer(flow)).packets if lost else ():
            asked += any(since.get(packet.psn, 0) < time < packet.time for time in lost[packet.psn])
            since[packet.psn] = packet.time
        return asked

    def taps(self):
        """The rows of taps.tsv."""
        for end in ENDS:
            for flow, (near, way) in self.ways.items():
                records = [packet for packet in self.records[end] if packet.flow == flow]
                single, repeated = once(records)
                requests = [packet for packet in single if is_request(packet)]
                missing, reordered, lost, late = way.holes(single, is_request)
                gone, _, gone_lost, _ = way.holes(single, lambda packet: packet.opcode in READ_RESPONSES)
                runs = self.fallen_back(flow)
                own = lambda value: value if near == end else "-"
                yield {
                    "run": self.name,
                    "tap": end,
                    "source": flow[0],
                    "destination": flow[1],
                    "qpn": flow[2],
                    "packets": len(records),
                    "duplicates": repeated,
                    "requests": len(requests),
                    "resent": sum(identity(packet) in way.resent for packet in requests),
                    "missing": missing,
                    "reordered": reordered,
                    "lost": lost,
                    "late": late,
                    "responses_missing": gone,
                    "responses_lost": gone_lost,
                    "responses_asked": self.asked_again(flow) if near != end else 0,
                    "naks": sum(packet.syndrome == SEQUENCE_NAK for packet in single),
                    "runs": own(len(runs.packets)),
                    "runs_nak": own(runs.by_nak),
                    "runs_timeout": own(runs.timeouts),
                    "runs_unclear": own(len(runs.packets) - runs.by_nak - runs.timeouts),
                }

    def rows(self):
        """The rows of ways.tsv."""
        for flow, (near, way) in self.ways.items():
            yield {
                "run": self.name,
                "from": near,
                "to": OTHER[near],
                "source": flow[0],
                "destination": flow[1],
                "qpn": flow[2],
                "sent": len(way.sent),
                "received": len(way.arrivals),
                "lost": len(way.lost),
                "duplicated": way.duplicated,
                "overtaken": len(way.overtaken),
            }


def write(path, rows):
    """Writes rows as tab-separated values, the first line with the names."""
    lines = ["\t".join(rows[0])] + ["\t".join(map(str, row.values())) for row in rows]
    path.write_text("\n".join(lines) + "\n")


def main():
    """Checks all runs of a folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    runs = [Run(given.folder, path.stem) for path in sorted(given.folder.glob("*.toml"))]
    taps, ways, wrong = [], [], 0
    for run in runs:
        run.check()
        taps += run.taps()
        ways += run.rows()
        own = [row for row in ways if row["run"] == run.name]
        total = lambda key: sum(row[key] for row in own)
        print(
            f"{run.name}: {total('sent')} sent, {total('lost')} lost, {total('duplicated')} duplicated, "
            f"{total('overtaken')} overtaken; {len(run.wrong)} differences"
        )
        for text in run.wrong + run.notes:
            print(f"   {text}")
        wrong += len(run.wrong)
    if given.write:
        write(given.folder / "taps.tsv", taps)
        write(given.folder / "ways.tsv", ways)
    sys.exit(1 if wrong or not runs else 0)


if __name__ == "__main__":
    main()
