#!/usr/bin/env python3
"""Samples the packets of a RoCE capture as two switches do, and writes their sFlow datagrams as a collector's capture.

    python3 tests/independent/sflow/generate.py captures/send_bw_ce_synthetic_cnp.pcap tests/data/sflow/two_switches.pcap

Written after https://sflow.org/sflow_version_5.txt alone, so that it shares no error with the decoder. `fields.sh` beside it has tshark say
what is in the result.
"""

import random
import struct
import sys


def word(*values):
    return struct.pack(f">{len(values)}I", *(value & 0xFFFFFFFF for value in values))


def opaque(data):
    return word(len(data)) + data + bytes(-len(data) % 4)


def record(form, data):
    return word(form) + opaque(data)


def raw_header(frame, wire_bytes, kept=128):
    # Protocol 1 is Ethernet; the frame's length includes the FCS, of which 4 bytes were stripped.
    return record(1, word(1, wire_bytes + 4, 4) + opaque(frame[:kept]))


def extended_switch():
    # VLAN and priority, in and out.
    return record(1001, word(100, 3, 100, 3))


def sample(form, data):
    return word(form) + opaque(data)


def flow(sequence, source, rate, pool, drops, input, output, records):
    head = word(sequence, source, rate, pool, drops, input, output, len(records))
    return sample(1, head + b"".join(records))


def expanded_flow(sequence, source, rate, pool, drops, input, output, records):
    head = word(sequence, *source, rate, pool, drops, *input, *output, len(records))
    return sample(3, head + b"".join(records))


def counters(sequence, index):
    # Generic interface counters: 19 words, two of them of 64 bits and a speed of 64 bits.
    generic = word(index, 6) + struct.pack(">Q", 400_000_000_000) + word(1, 3) + struct.pack(">Q", 1) + word(*[2] * 6)
    generic += struct.pack(">Q", 3) + word(*[4] * 5) + word(0)
    return sample(2, word(sequence, index, 1) + record(1, generic))


def datagram(agent, sub_agent, sequence, uptime, samples):
    kind = {4: 1, 16: 2}[len(agent)]
    return word(5, kind) + agent + word(sub_agent, sequence, uptime, len(samples)) + b"".join(samples)


def over_udp(source, payload):
    """Ethernet, IPv4 and UDP around a datagram, to the collector 10.255.0.9."""
    udp = struct.pack(">HHHH", 51000, 6343, 8 + len(payload), 0)
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 28 + len(payload), 0, 0, 64, 17, 0, source, bytes([10, 255, 0, 9]))
    total = sum(struct.unpack(">10H", ip))
    total = (total & 0xFFFF) + (total >> 16)
    ip = ip[:10] + struct.pack(">H", ~(total + (total >> 16)) & 0xFFFF) + ip[12:]
    return bytes([2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 1, 8, 0]) + ip + udp + payload


def read(path):
    data = open(path, "rb").read()
    magic, *_, link = struct.unpack("<IHHiIII", data[:24])
    assert magic in (0xA1B2C3D4, 0xA1B23C4D) and link == 1, hex(magic)
    unit = 1 if magic == 0xA1B23C4D else 1000
    at = 24
    while at < len(data):
        seconds, fraction, kept, wire = struct.unpack("<IIII", data[at : at + 16])
        at += 16
        yield seconds * 10**9 + fraction * unit, data[at : at + kept], wire
        at += kept


class Agent:
    """Gathers samples, and sends up to `most` of them at once."""

    def __init__(self, address, sender, sub_agent, most, out):
        self.address, self.sender, self.sub_agent, self.most, self.out = address, sender, sub_agent, most, out
        self.sequence, self.waiting = 0, []

    def add(self, time, sample):
        self.waiting.append(sample)
        if len(self.waiting) >= self.most:
            self.send(time)

    def send(self, time, times=1):
        self.sequence += 1
        data = datagram(self.address, self.sub_agent, self.sequence, time // 10**6 & 0x7FFFFFFF, self.waiting)
        for _ in range(times):
            self.out.append((time, over_udp(self.sender, data)))
        self.waiting = []


def main(source, target):
    draw = random.Random(5)
    out = []
    leaf = Agent(bytes([10, 255, 0, 1]), bytes([10, 255, 0, 1]), 0, 5, out)
    spine = Agent(bytes.fromhex("fd" + "00" * 14 + "05"), bytes([10, 255, 0, 2]), 3, 4, out)
    pool = {1: 0, 2: 0}
    number = {1: 0, 2: 0}
    passed = numbered = drops = 0
    for time, frame, wire in read(source):
        # The client is at port 1 of the leaf, the server at port 2.
        port = 1 if frame[26:30] == bytes([10, 77, 0, 1]) else 2
        other = 3 - port
        pool[port] += 1
        if draw.randrange(8) == 0:
            number[port] += 1
            records = [raw_header(frame, wire)]
            if number[port] % 3 == 0:
                records.insert(0, extended_switch())
            leaf.add(time, flow(number[port], port, 8, pool[port], 0, port, other, records))
            if number[port] % 20 == 0:
                leaf.add(time, counters(number[port] // 20, port))
            if number[port] == 30:
                # Enterprise 4413, format 7: nobody here knows it. It ends its datagram, because tshark 4.0 reads nothing behind it.
                leaf.add(time, sample(4413 << 12 | 7, b"unknown!"))
                if leaf.waiting:
                    leaf.send(time)
        # The spine sees the data alone, as they leave by its port 12, 1 in 4 and later 1 in 8.
        if port == 1:
            passed += 1
            rate = 4 if passed < 600 else 8
            if draw.randrange(rate) == 0:
                if passed > 300 and draw.randrange(10) == 0:
                    drops += 1
                    continue
                numbered += 1
                made = expanded_flow(numbered, (0, 12), rate, passed, drops, (0, 11), (0, 12), [raw_header(frame, wire)])
                spine.add(time, made)
                if not spine.waiting and spine.sequence in (9, 20):
                    # The network loses these.
                    del out[-1]
                if not spine.waiting and spine.sequence == 15:
                    # Captured twice.
                    out.append(out[-1])
    leaf.send(time)
    spine.send(time)
    # A length that is not there; a datagram of zeros; another version.
    whole = datagram(leaf.address, 0, leaf.sequence + 1, time // 10**6 & 0x7FFFFFFF, [])
    broken = whole[:-4] + word(0xFFFFFFFF) + word(1, 0xFFFFFFFF)
    for payload in (broken, bytes(64), word(4) + whole[4:]):
        out.append((time, over_udp(leaf.sender, payload)))
    with open(target, "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1))
        for time, frame in out:
            file.write(struct.pack("<IIII", time // 10**9, time % 10**9, len(frame), len(frame)) + frame)


main(*sys.argv[1:])
