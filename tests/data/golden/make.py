#!/usr/bin/env python3
"""Makes the golden files: what tshark says of each capture, counted by this script and not by the project's code.

    tests/data/golden/make.py                          every capture of captures/ and tests/data/, into tests/data/golden/
    tests/data/golden/make.py --out DIR CAPTURE...     others, into DIR
    tests/data/golden/make.py --check                  writes nothing; says which golden files differ

A golden file holds comments (`# ...`, with the commands) and lines `key value`, split at the last space:

    frames, frames_cut            records; those of which fewer bytes were kept than were on the wire
    wire_bytes, captured_bytes    sums of frame.len and frame.cap_len
    first_time_ns, last_time_ns   earliest and latest frame.time_epoch, in ns
    out_of_order                  frames stamped earlier than the frame before
    roce_packets                  frames with a BTH
    opcode.0xNN                   packets by infiniband.bth.opcode
    not_ect ect1 ect0 ce          ip.dsfield.ecn of all RoCE packets but CNPs
    data_packets, data_ce         requests with payload, READ responses, everything of UC and UD (also management)
    acks, cnp, rnr_naks, naks     AETH syndromes 0x00-0x1f; opcode 0x81 or 0x80; 0x20-0x3f; 0x60-0x7f
    nak.0xNN                      NAKs by syndrome
    payload_bytes                 sum of udp.length - 8 - headers of the opcode - PadCnt - 4; a CNP has none
    payload_bytes_qp1             the part of it for queue pair 1: management datagrams
    resends                       RC requests whose (source, destination, QPN, PSN) was captured before
    skipped                       PSNs jumped over when the highest of a request stream advanced
    filled                        RC requests behind the highest whose PSN had not been captured before
    below_first                   the part of `filled` that lies before the first PSN captured
    resent_payload_bytes          payload bytes in resends
    flows                         distinct (ip.src, ip.dst, infiniband.bth.destqp), CNPs left out
    flow.SRC>DST>0xQPN.WHAT       the same counts for each of them
    cnp.SRC>DST>0xQPN             CNPs by who sent them, who shall slow down, and for which queue pair
    icrc_checked, icrc_bad        frames captured whole, over IPv4; those whose ICRC (by zlib.crc32) is wrong

The path MTU, which decides how many PSNs a READ request takes, is 1024 in every capture here.
"""

import argparse
import collections
import pathlib
import struct
import subprocess
import sys
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[3]
PATH_MTU = 1024
FIELDS = [
    "frame.time_epoch",
    "frame.len",
    "frame.cap_len",
    "ip.src",
    "ip.dst",
    "ip.dsfield.ecn",
    "udp.length",
    "infiniband.bth.opcode",
    "infiniband.bth.padcnt",
    "infiniband.bth.destqp",
    "infiniband.bth.psn",
    "infiniband.aeth.syndrome",
    "infiniband.reth.dmalen",
]

BTH, RETH, AETH, ATOMIC, ATOMIC_ACK, IMM, INV, DETH = 12, 16, 4, 28, 8, 4, 4, 8
# Bytes of the headers behind the BTH, for the opcodes that the captures have and their neighbours.
RC_UC = {
    0x00: 0, 0x01: 0, 0x02: 0, 0x03: IMM, 0x04: 0, 0x05: IMM,
    0x06: RETH, 0x07: 0, 0x08: 0, 0x09: IMM, 0x0A: RETH, 0x0B: RETH + IMM,
    0x0C: RETH, 0x0D: AETH, 0x0E: 0, 0x0F: AETH, 0x10: AETH,
    0x11: AETH, 0x12: AETH + ATOMIC_ACK, 0x13: ATOMIC, 0x14: ATOMIC, 0x16: INV, 0x17: INV,
}
UD = {0x64: DETH, 0x65: DETH + IMM}
CNPS = (0x81, 0x80)
RESPONSES = range(0x0D, 0x13)


def headers(opcode):
    """Bytes of headers behind the BTH."""
    if opcode in UD:
        return UD[opcode]
    if opcode >> 5 in (0, 1):
        return RC_UC[opcode & 0x1F]
    raise SystemExit(f"opcode {opcode:#04x}: its headers are not in the table of this script")


def is_data(opcode, payload):
    """Requests with payload, READ responses, anything of UC and UD."""
    return opcode >> 5 in (1, 3) or 0x0D <= opcode <= 0x10 or (opcode >> 5 == 0 and opcode not in RESPONSES and payload > 0)


def nanoseconds(text):
    """`1795229907.567183000` as an integer, without going through a float."""
    seconds, _, fraction = text.partition(".")
    return int(seconds) * 10**9 + int((fraction + "0" * 9)[:9])


class Stream:
    """The request PSNs of one flow."""

    def __init__(self):
        self.seen, self.first, self.next = set(), None, None

    def push(self, psn, span):
        """What a request with `span` PSNs from `psn` on is: (resends, skipped, filled, below_first)."""
        if self.next is None:
            self.first = self.next = psn
        ahead = (psn - self.next + (1 << 23)) % (1 << 24) - (1 << 23)
        again = psn in self.seen
        below = (psn - self.first + (1 << 23)) % (1 << 24) - (1 << 23) < 0
        self.seen.update((psn + i) % (1 << 24) for i in range(span))
        if ahead >= 0:
            self.next = (psn + span) % (1 << 24)
            return 0, ahead, 0, 0
        end = (psn + span - self.next + (1 << 23)) % (1 << 24) - (1 << 23)
        if end > 0:
            self.next = (psn + span) % (1 << 24)
        return (1, 0, 0, 0) if again else (0, 0, 1, int(below))


def frames(path):
    """The bytes of each record of a classic little-endian pcap file: (captured, original length)."""
    data = path.read_bytes()
    if data[:4] not in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1"):
        raise SystemExit(f"{path}: not a little-endian pcap file")
    at = 24
    while at + 16 <= len(data):
        captured, original = struct.unpack_from("<II", data, at + 8)
        yield data[at + 16 : at + 16 + captured], original
        at += 16 + captured


def icrc_good(frame):
    """Whether the ICRC of an Ethernet / IPv4 / UDP 4791 frame is right; None when there is nothing to check."""
    if frame[12:14] != b"\x08\x00" or frame[14] != 0x45 or frame[23] != 17 or frame[36:38] != struct.pack(">H", 4791):
        return None
    packet = bytearray(frame[14 : 14 + struct.unpack_from(">H", frame, 16)[0]])
    wanted = struct.unpack("<I", packet[-4:])[0]
    masked = packet[:-4]
    masked[1] = masked[8] = masked[32] = 0xFF
    masked[10:12] = masked[26:28] = b"\xff\xff"
    return zlib.crc32(b"\xff" * 8 + bytes(masked)) == wanted


def count(path, command):
    """All counts of one capture, in the order in which they are written."""
    text = subprocess.run([*command, "-r", str(path)], check=True, capture_output=True, text=True).stdout
    plain = dict.fromkeys(
        "frames frames_cut wire_bytes captured_bytes first_time_ns last_time_ns out_of_order roce_packets not_ect ect1 "
        "ect0 ce data_packets data_ce acks cnp naks rnr_naks payload_bytes payload_bytes_qp1 resends skipped filled "
        "below_first resent_payload_bytes flows icrc_checked icrc_bad".split(), 0)
    opcodes, naks, cnps = collections.Counter(), collections.Counter(), collections.Counter()
    flows, streams = {}, collections.defaultdict(Stream)
    times = []

    for line in text.splitlines():
        cell = dict(zip(FIELDS, line.split("\t"), strict=True))
        plain["frames"] += 1
        length, kept = int(cell["frame.len"]), int(cell["frame.cap_len"])
        plain["wire_bytes"] += length
        plain["captured_bytes"] += kept
        plain["frames_cut"] += kept < length
        time = nanoseconds(cell["frame.time_epoch"])
        plain["out_of_order"] += bool(times) and time < times[-1]
        times.append(time)
        if not cell["infiniband.bth.opcode"]:
            continue
        plain["roce_packets"] += 1
        opcode = int(cell["infiniband.bth.opcode"], 0)
        opcodes[opcode] += 1
        qpn, psn = int(cell["infiniband.bth.destqp"], 0), int(cell["infiniband.bth.psn"], 0)
        name = f"{cell['ip.src']}>{cell['ip.dst']}>{qpn:#08x}"
        if opcode in CNPS:
            plain["cnp"] += 1
            cnps[name] += 1
            continue
        ecn = int(cell["ip.dsfield.ecn"], 0)
        plain[("not_ect", "ect1", "ect0", "ce")[ecn]] += 1
        payload = int(cell["udp.length"]) - 8 - BTH - headers(opcode) - int(cell["infiniband.bth.padcnt"], 0) - 4
        plain["payload_bytes"] += payload
        plain["payload_bytes_qp1"] += payload if qpn == 1 else 0
        flow = flows.setdefault(name, collections.Counter())
        flow["packets"] += 1
        flow["wire_bytes"] += length
        flow["payload_bytes"] += payload
        if is_data(opcode, payload):
            plain["data_packets"] += 1
            plain["data_ce"] += ecn == 3
            flow["data_packets"] += 1
            flow["data_ce"] += ecn == 3
        if opcode == 0x11:
            syndrome = int(cell["infiniband.aeth.syndrome"], 0)
            kind = {0: "acks", 1: "rnr_naks", 3: "naks"}[syndrome >> 5]
            plain[kind] += 1
            flow[kind] += 1
            if kind == "naks":
                naks[syndrome] += 1
        if opcode >> 5 == 0 and opcode not in RESPONSES:
            span = max(1, -(-int(cell["infiniband.reth.dmalen"], 0) // PATH_MTU)) if opcode == 0x0C else 1
            result = streams[name].push(psn, span)
            for key, value in zip(("resends", "skipped", "filled", "below_first"), result, strict=True):
                plain[key] += value
                flow[key] += value
            plain["resent_payload_bytes"] += payload if result[0] else 0

    plain["first_time_ns"], plain["last_time_ns"] = min(times), max(times)
    plain["flows"] = len(flows)
    for frame, original in frames(path):
        good = icrc_good(frame) if len(frame) == original else None
        plain["icrc_checked"] += good is not None
        plain["icrc_bad"] += good is False

    yield from plain.items()
    yield from ((f"opcode.{opcode:#04x}", packets) for opcode, packets in sorted(opcodes.items()))
    yield from ((f"nak.{syndrome:#04x}", packets) for syndrome, packets in sorted(naks.items()))
    for name, counts in sorted(flows.items()):
        yield from ((f"flow.{name}.{what}", value) for what, value in counts.items() if value or what == "packets")
    yield from ((f"cnp.{name}", packets) for name, packets in sorted(cnps.items()))


def main():
    """Writes or compares the golden files."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--out", type=pathlib.Path, default=ROOT / "tests/data/golden")
    arguments.add_argument("--check", action="store_true")
    arguments.add_argument("captures", nargs="*", type=pathlib.Path)
    given = arguments.parse_args()
    captures = given.captures or sorted([*ROOT.glob("captures/*.pcap"), *ROOT.glob("tests/data/*.pcap")])

    version = subprocess.run(["tshark", "--version"], check=True, capture_output=True, text=True).stdout.splitlines()[0]
    version = version.split(" (Git")[0]
    command = ["tshark", "-n", "-T", "fields", "-E", "occurrence=f"]
    for field in FIELDS:
        command += ["-e", field]

    given.out.mkdir(parents=True, exist_ok=True)
    differ = 0
    for path in captures:
        path = path.resolve()
        shown = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path.name
        lines = [f"# {shown}: {version}, counted by tests/data/golden/make.py", f"# {' '.join(command)} -r {shown}"]
        lines += [f"{key} {value}" for key, value in count(path, command)]
        text = "\n".join(lines) + "\n"
        golden = given.out / f"{path.stem}.txt"
        if given.check:
            plain = [line for line in text.splitlines() if not line.startswith("#")]
            stored = golden.read_text().splitlines() if golden.exists() else []
            same = plain == [line for line in stored if not line.startswith("#")]
            differ += not same
            print(f"{golden.name}: {'equal' if same else 'differs'}")
        else:
            golden.write_text(text)
            print(f"{golden.name}: {len(lines) - 2} values")
    sys.exit(1 if differ else 0)


if __name__ == "__main__":
    main()
