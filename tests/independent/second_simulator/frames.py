"""Frames of packets and the capture files they are written to."""

import struct
import zlib

from endpoint import ACK, CNP, READ_FIRST, READ_LAST, READ_ONLY, READ_REQUEST


def ipv4_bytes(host):
    """IPv4 address of a host."""
    return bytes((10, 1, host >> 8, (host & 255) + 1))


def ipv6_bytes(host):
    """IPv6 address of a host."""
    return bytes.fromhex("fd00" + "00" * 12) + struct.pack(">H", host + 1)


def ip_text(host, ipv6):
    """Address of a host as text."""
    return "fd00::%x" % (host + 1) if ipv6 else "10.1.%d.%d" % (host >> 8, (host & 255) + 1)


def mac_bytes(host):
    """MAC address of a host."""
    return bytes((2, 0, 0, 0, host >> 8, host & 255))


def ip_checksum(header):
    """Header checksum of IPv4 (RFC 791)."""
    total = sum(struct.unpack(">%dH" % (len(header) // 2), header))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


ZEROS = bytes(9000)


def roce_frame(settings, packet, ecn, snap, ttl, outbound):
    """Bytes and wire length of a RoCEv2 frame (IBTA annex A17). A frame captured whole has its ICRC."""
    ipv6 = settings["v6"]
    pad = -packet.payload_length % 4
    flags = (pad << 4) | 0x40
    becn = 0x40 if packet.opcode == CNP else 0
    transport = struct.pack(
        ">BBHBBHBBH",
        packet.opcode,
        flags,
        0xFFFF,
        becn,
        packet.destination_qpn >> 16,
        packet.destination_qpn & 0xFFFF,
        0x80 if packet.ack_requested else 0,
        (packet.psn >> 16) & 255,
        packet.psn & 0xFFFF,
    )
    # Opcodes 0x20 to 0x3F are those of the unreliable connection (IBTA 9.2.1).
    operation = packet.opcode & 0x1F if packet.opcode < 0x40 else packet.opcode
    if operation in (6, 10, 11):
        transport += struct.pack(">QII", packet.virtual_address, 0x1234, packet.dma_length)
    elif packet.opcode == READ_REQUEST:
        transport += struct.pack(">QII", packet.virtual_address & (2**64 - 1), 0x1234, packet.dma_length)
    elif packet.opcode in (ACK, READ_FIRST, READ_LAST, READ_ONLY):
        transport += struct.pack(">I", (packet.syndrome << 24) | (packet.msn & 0xFFFFFF))
    elif packet.opcode == CNP:
        transport += bytes(16)
    if operation in (3, 5, 9, 11):
        transport += struct.pack(">I", 7)
    padded = packet.payload_length + pad
    udp_length = 8 + len(transport) + padded + 4
    udp = struct.pack(">HHHH", packet.source_port, 4791, udp_length, 0)
    dscp = 48 if packet.opcode == CNP else 26
    tos = dscp << 2 | ecn
    if ipv6:
        flow_label = (packet.source_port * 7) & 0xFFFFF
        ip = (
            struct.pack(">IHBB", 6 << 28 | tos << 20 | flow_label, udp_length, 17, ttl)
            + ipv6_bytes(packet.source)
            + ipv6_bytes(packet.destination)
        )
        ethertype = 0x86DD
    else:
        ip = (
            struct.pack(">BBHHHBBH", 0x45, tos, 20 + udp_length, packet.ip_identification, 0x4000, ttl, 17, 0)
            + ipv4_bytes(packet.source)
            + ipv4_bytes(packet.destination)
        )
        ip = ip[:10] + struct.pack(">H", ip_checksum(ip)) + ip[12:]
        ethertype = 0x0800
    switch_mac = b"\x02\x00\x00\x01\xff\xff"
    addresses = (switch_mac + mac_bytes(packet.source)) if outbound else (mac_bytes(packet.destination) + switch_mac)
    if settings["vlan"]:
        ethernet = addresses + struct.pack(
            ">HHH", 0x8100, ((6 if packet.opcode == CNP else 3) << 13) | settings["vlan"], ethertype
        )
    else:
        ethernet = addresses + struct.pack(">H", ethertype)
    wire_length = len(ethernet) + len(ip) + udp_length
    data = ethernet + ip + udp + transport
    if not snap or wire_length <= snap:
        payload = ZEROS[:padded]
        if ipv6:
            masked_ip = struct.pack(">I", (6 << 28) | 0x0FFFFFFF) + ip[4:7] + b"\xff" + ip[8:]
        else:
            masked_ip = ip[:1] + b"\xff" + ip[2:8] + b"\xff" + ip[9:10] + b"\xff\xff" + ip[12:]
        covered = b"\xff" * 8 + masked_ip + udp[:6] + b"\xff\xff" + transport[:4] + b"\xff" + transport[5:] + payload
        data += payload + struct.pack("<I", zlib.crc32(covered))
        return data, wire_length
    if len(data) < snap:
        data += ZEROS[: snap - len(data)]
    return data[:snap], wire_length


def in_vxlan(frame, wire_length, vni, source, destination, port):
    """The frame inside VXLAN (RFC 7348), between the tunnel endpoints of two hosts, and its wire length."""
    udp_length = 16 + wire_length
    udp = struct.pack(">HHHH", 49152 + port % 16384, 4789, udp_length, 0)
    ip = struct.pack(">BBHHHBBH", 0x45, frame_tos(frame), 20 + udp_length, 0, 0x4000, 64, 17, 0)
    ip += bytes((172, 16, source >> 8, (source & 255) + 1)) + bytes((172, 16, destination >> 8, (destination & 255) + 1))
    ip = ip[:10] + struct.pack(">H", ip_checksum(ip)) + ip[12:]
    ethernet = b"\x02\x00\x00\x02\xff\xfe" + b"\x02\x00\x00\x02" + struct.pack(">H", source) + b"\x08\x00"
    return ethernet + ip + udp + struct.pack(">II", 8 << 24, vni << 8) + frame, wire_length + 50


def frame_tos(frame):
    """DSCP and ECN of a frame of `roce_frame`, which tunnels copy to their own header (RFC 6040)."""
    at = 18 if frame[12:14] == b"\x81\x00" else 14
    return frame[at + 1] if frame[at] >> 4 == 4 else (struct.unpack(">H", frame[at : at + 2])[0] >> 4) & 0xFF


def pfc_frame(on, prio=3, source=None):
    """Bytes and wire length of a PFC frame (IEEE 802.1Qbb), of a host or of the switch."""
    quanta = [0] * 8
    if on:
        quanta[prio] = 65535
    data = (
        bytes.fromhex("0180c2000001")
        + (b"\x02\x00\x00\x01\xff\xff" if source is None else mac_bytes(source))
        + struct.pack(">HHH", 0x8808, 0x0101, 1 << prio)
        + struct.pack(">8H", *quanta)
    )
    return data + bytes(60 - len(data)), 60


class CaptureWriter:
    """Writes pcap or pcapng, in microseconds or nanoseconds."""

    def __init__(self, path, format, microseconds, snap):
        """Writes the header of the file, or of the section and its interface."""
        self.file = open(path, "wb")
        self.format = format
        self.microseconds = microseconds
        snap_length = snap or 65535
        if format == "pcap":
            self.file.write(
                struct.pack("<IHHIIII", 0xA1B2C3D4 if microseconds else 0xA1B23C4D, 2, 4, 0, 0, snap_length, 1)
            )
        else:
            self.file.write(struct.pack("<IIIHHqI", 0x0A0D0D0A, 28, 0x1A2B3C4D, 1, 0, -1, 28))
            options = struct.pack("<HHB3x", 9, 1, 6 if microseconds else 9) + struct.pack("<HH", 0, 0)
            length = 16 + len(options) + 4
            self.file.write(struct.pack("<IIHHI", 1, length, 1, 0, snap_length) + options + struct.pack("<I", length))

    def write(self, stamp, data, wire_length):
        """Writes one packet with its stamp in ns."""
        if self.format == "pcap":
            seconds, nanoseconds = divmod(stamp, 10**9)
            self.file.write(
                struct.pack(
                    "<IIII", seconds, nanoseconds // 1000 if self.microseconds else nanoseconds, len(data), wire_length
                )
                + data
            )
        else:
            ticks = stamp // 1000 if self.microseconds else stamp
            padded = len(data) + (-len(data) % 4)
            length = 32 + padded
            self.file.write(
                struct.pack("<IIIIIII", 6, length, 0, ticks >> 32, ticks & 0xFFFFFFFF, len(data), wire_length)
                + data
                + bytes(padded - len(data))
                + struct.pack("<I", length)
            )
