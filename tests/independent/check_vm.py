#!/usr/bin/env python3
"""Checks what a live run with the probe said of real RDMA in a VM (tests/vm/run.sh), by what else watched it.

    check_vm.py RESULTS      RESULTS holds live.json, dataset/ made of the run's recording, and what run.sh kept beside them

For each interface, tcpdump's file and the run count the same packets of each flow, and the driver's own counters agree. Flows
are paired, and their processes are those that were started. What hosts say of queue pairs (states, numbers, PSNs) is what
the packets of these processes carry. Before each run of packets sent again after a timeout, a timer of that process ran out; not
the other way round, since Soft-RoCE lets timers run out that wait for nothing. Left out are runs that a NAK had asked for, too soon
for a timer: an emulated sender that has to wait for a processor answers so late that its packets look like a timeout's. What the
kernel dropped is what one interface had and the other had not. The recording gives the tables that the run gave. A run that a
second signal ends leaves no filters. Of a full set, there were marks, timeouts, RNR NAKs, and a port that went down.
"""

import argparse
import collections
import json
import pathlib
import re
import struct
import sys

from check_dataset import Checker, check as check_dataset, table

# The interfaces and Soft-RoCE devices of the VM, and the addresses at them: of the clients, of the servers.
ENDS = {"va0": ("rxe0", "10.77.0.1"), "vb0": ("rxe1", "10.77.0.2")}
ADDRESSES = {"client": "10.77.0.1", "server": "10.77.0.2"}

# Opcodes of a reliable connection (IBTA 9.2): an acknowledgement, and all that answers (READ responses, ACKs, atomic ACKs).
ACKNOWLEDGE = 0x11
ANSWERS = range(0x0D, 0x13)

# How soon a sender sends again when its timer has run out, in ns: less than the shortest timer here (67 ms), more than an emulated
# processor takes; unless it was silent for longer, where that processor had to wait for a real one.
NEAR = 50_000_000

# The shortest timer of a sender here, in ns (code 14).
TIMER = 67_000_000

Packet = collections.namedtuple("Packet", "time source destination qpn opcode psn ce syndrome")


def packets(path):
    """The RoCEv2 packets of a pcap file with stamps in microseconds: Ethernet, IPv4 without options."""
    data = path.read_bytes()
    assert struct.unpack_from("<I", data)[0] == 0xA1B2C3D4, f"{path} is no pcap file"
    at, found = 24, []
    while at + 16 <= len(data):
        seconds, micros, kept, _ = struct.unpack_from("<IIII", data, at)
        frame = data[at + 16 : at + 16 + kept]
        at += 16 + kept
        if frame[12:15] != b"\x08\x00\x45" or frame[23] != 17 or frame[36:38] != b"\x12\xb7":
            continue
        address = lambda bytes_: ".".join(map(str, bytes_))
        bth = frame[42:]
        found.append(
            Packet(
                time=seconds * 10**9 + micros * 1000,
                source=address(frame[26:30]),
                destination=address(frame[30:34]),
                qpn=int.from_bytes(bth[5:8], "big"),
                opcode=bth[0],
                psn=int.from_bytes(bth[9:12], "big"),
                ce=frame[15] & 3 == 3,
                syndrome=bth[12] if bth[0] == ACKNOWLEDGE else None,
            )
        )
    return found


def processes(results):
    """What was started: {(scenario, role): (pid, comm)}."""
    lines = (results / "runs.txt").read_text().splitlines()
    return {(scenario, role): (int(pid), comm) for scenario, role, pid, comm in map(str.split, lines)}


def statistic(path):
    """The driver's counters, as `rdma statistic` shows them: {device: {name: value}}."""
    found = {}
    for line in path.read_text().splitlines():
        _, device, *rest = line.split()
        found[device.split("/")[0]] = {name: int(value) for name, value in zip(rest[::2], rest[1::2])}
    return found


def check_counts(checker, results, interface, seen, flows):
    """Packets of each flow at an interface: tcpdump's and the run's."""
    said = (results / f"{interface}.tcpdump.txt").read_text()
    dropped = re.search(r"(\d+) packets dropped by kernel", said)
    if not dropped or dropped[1] != "0":
        print(f"   {interface}: tcpdump does not say that it dropped nothing: counts are not compared")
        return
    count = lambda what: collections.Counter(
        (packet.source, packet.destination, packet.qpn) for packet in seen if what(packet)
    )
    expected = {
        "packets": count(lambda packet: True),
        "ce": count(lambda packet: packet.ce),
        "naks": count(lambda packet: packet.syndrome is not None and packet.syndrome >> 5 == 3),
        "rnr_naks": count(lambda packet: packet.syndrome is not None and packet.syndrome >> 5 == 1),
    }
    for column, counts in expected.items():
        found = collections.Counter()
        for flow in flows:
            found[flow["source"], flow["destination"], flow["destination_qpn"]] += flow[column]
        checker.same(f"{interface}: {column} of each flow", dict(+found), dict(+counts))
    print(f"   {interface}: {len(seen)} packets of {len(expected['packets'])} flows, as tcpdump counts them")


def check_statistic(checker, results, captured):
    """The driver's counters and the packets at its interface."""
    for interface, (device, address) in ENDS.items():
        driver = statistic(results / "statistic.txt")[device]
        sent = sum(packet.source == address for packet in captured[interface])
        received = sum(packet.destination == address for packet in captured[interface])
        checker.same(f"{device}: packets sent", sent, driver["sent_pkts"])
        checker.same(f"{device}: packets received", received, driver["rcvd_pkts"])


def check_processes(checker, started, flows):
    """Each process of a connection has a flow that it sends, whose other direction is known."""
    for (scenario, role), (pid, comm) in started.items():
        own = [flow for flow in flows if flow["pid"] == pid]
        # Who receives datagrams answers nothing.
        if (scenario, role) != ("datagram", "server"):
            checker.same(f"{scenario}: there are flows of the {role}, {comm} {pid}", bool(own), True)
        for flow in own:
            what = f"{scenario}: {role}'s flow {flow['source']} to QP {flow['destination_qpn']}"
            checker.same(f"{what}, command", flow["comm"], comm)
            checker.same(f"{what}, address", flow["source"], ADDRESSES[role])
            if flow["service"] == "RC":
                # rping's connection manager may have said it before.
                by = "cm" if comm == "rping" and flow["pairing"] == "cm" else "host"
                checker.same(f"{what}, pairing", flow["pairing"], by)
                peer = [other for other in flows if other["flow_id"] == flow["peer_flow_id"]]
                checker.same(f"{what}, its peer is a flow", bool(peer), True)


def requests_to(seen, address, qpn):
    """PSNs of what an address asks of a queue pair, in order of time."""
    return [
        packet.psn
        for packet in seen
        if packet.source == address and packet.qpn == qpn and packet.opcode not in ANSWERS
    ]


def check_queue_pairs(checker, started, events, captured):
    """States, numbers and PSNs that hosts tell of queue pairs, and those of the packets."""
    said = collections.defaultdict(list)
    for event in events:
        if event["kind"] in ("qp_created", "qp_modified", "qp_destroyed"):
            said[int(re.search(r"(\d+)\)$", event["detail"])[1])].append(event)
    number = lambda text, name: (found := re.search(rf"{name} (0x[0-9a-f]+|\d+)", text)) and int(found[1], 0)
    for (scenario, role), (pid, comm) in started.items():
        what, own = f"{scenario}: QP of the {role}, {comm} {pid}", said[pid]
        kinds = [event["kind"] for event in own]
        checker.same(f"{what}, something is told of it", bool(own), True)
        if not own:
            continue
        checker.same(f"{what}, created once and first", (kinds[:1], kinds.count("qp_created")), (["qp_created"], 1))
        checker.same(f"{what}, destroyed last", kinds[-1:], ["qp_destroyed"])
        interface = "va0" if role == "client" else "vb0"
        checker.same(f"{what}, device", {event["detail"].split(":")[0] for event in own}, {ENDS[interface][0]})
        text = " ".join(event["detail"] for event in own)
        states = list(dict.fromkeys(re.findall(r"set to (\w+)", text)))
        # A server that only answers need not become ready to send.
        least = ["init", "rtr", "rts"] if role == "client" else ["init", "rtr"]
        checker.same(f"{what}, states", states[: len(least)], least)
        other = ADDRESSES["server" if role == "client" else "client"]
        if scenario == "datagram":
            checker.same(f"{what}, type", "created, UD" in text, True)
            sends = bool(requests_to(captured["vb0"], other, own[0]["value"]))
            checker.same(f"{what}, is where datagrams go to", sends, role == "server")
            continue
        checker.same(f"{what}, type", "created, RC" in text, True)
        asked = requests_to(captured[interface], ADDRESSES[role], number(text, "to QP"))
        checker.same(f"{what}, the client asks", bool(asked) or role == "server", True)
        if asked:
            checker.same(f"{what}, SQ PSN", number(text, "SQ PSN"), asked[0])
        received = requests_to(captured["va0" if interface == "vb0" else "vb0"], other, own[0]["value"])
        if received:
            checker.same(f"{what}, RQ PSN", number(text, "RQ PSN"), received[0])


def check_trouble(checker, results, events, captured, flows, tap):
    """What the probe tells of timers and drops, and what happened to the packets. `tap` is the clients'."""
    of = lambda kind: [event for event in events if event["kind"] == kind]
    checker.same("host events lost", sum(event["value"] for event in of("host_events_lost")), 0)
    sent_by = lambda address, interface: sum(packet.source == address for packet in captured[interface])
    between = sum(abs(sent_by(address, "va0") - sent_by(address, "vb0")) for _, address in ENDS.values())
    checker.same("packets that the kernel dropped", len(of("dropped")), between)
    senders = {(flow["flow_id"], flow["tap"]): flow for flow in flows}
    timers = [(event["time"], int(re.search(r"(\d+)\)$", event["detail"])[1])) for event in of("retransmit_timer")]
    runs = [event for event in of("retransmission_run") if event["detail"] == "timeout" and event["tap"] == tap]
    late = 0
    for run in runs:
        flow = senders[run["flow_id"], tap]
        pid = flow["pid"]
        before = [
            packet.time
            for packet in captured["va0"]
            if (packet.source, packet.qpn) == (flow["source"], flow["destination_qpn"])
            and packet.opcode not in ANSWERS
            and packet.time < run["time"] - 1_000
        ]
        asked = [
            packet.time
            for packet in captured["va0"]
            if packet.destination == flow["source"]
            and packet.syndrome is not None
            and packet.syndrome >> 5 == 3
            and packet.psn == run["psn"]
            and 0 <= run["time"] - packet.time < TIMER
        ]
        if asked:
            late += 1
            continue
        silence = run["time"] - max(before, default=run["time"])
        near = [time for time, whose in timers if whose == pid and 0 <= run["time"] - time < max(NEAR, silence)]
        checker.same(f"a timer of process {pid} ran out before its run at PSN {run['psn']}", bool(near), True)
    checker.same("most runs after a timeout can be compared", late <= max(len(runs) // 2, 2), True)
    print(f"   {len(runs)} runs after a timeout, of which {late} may be a NAK's, {len(timers)} timers ran out, {between} packets dropped by the kernel")
    waited = sum(packet.syndrome is not None and packet.syndrome >> 5 == 1 for packet in captured["va0"])
    checker.same("times that a sender has waited out an RNR NAK", len(of("rnr_timer")), waited)
    return runs, waited


# All counters of Soft-RoCE (drivers/infiniband/sw/rxe/rxe_hw_counters.c), and what they are called in samples: counter and detail. Those
# without a common name keep their own.
RXE = {
    "sent_pkts": ("port_transmitted_packets", None),
    "rcvd_pkts": ("port_received_packets", None),
    "duplicate_request": ("port_duplicate_requests", None),
    "out_of_seq_request": ("port_out_of_sequence_packets", None),
    "rcvd_rnr_err": ("port_rnr_naks_received", None),
    "send_rnr_err": ("port_rnr_naks_sent", None),
    "rcvd_seq_err": ("port_packet_sequence_errors", None),
    "ack_deferred": ("port_hw_counter", "ack_deferred"),
    "retry_exceeded_err": ("port_retries_exceeded", None),
    "retry_rnr_exceeded_err": ("port_hw_counter", "retry_rnr_exceeded_err"),
    "completer_retry_err": ("port_ack_timeouts", None),
    "send_err": ("port_completion_errors", "requester,error"),
    "link_downed": ("phy_link_downs", None),
    "rdma_sends": ("port_hw_counter", "rdma_sends"),
    "rdma_recvs": ("port_requests_received", "send"),
}


def check_samples(checker, results, samples, is_full):
    """All counters of `rdma statistic` are samples. The last reading is the driver's value; all changes lead from the first to it."""
    for device, driver in statistic(results / "statistic.txt").items():
        own = [row for row in samples if row["object"] == f"{device}:1"]
        checker.same(f"{device}: counters of the driver", set(driver), set(RXE))
        checker.same(f"{device}: counters in samples", {(row["counter"], row["detail"]) for row in own}, set(RXE.values()))
        for name, counter in RXE.items():
            rows = [row for row in own if (row["counter"], row["detail"]) == counter]
            rows.sort(key=lambda row: row["time"])
            if rows:
                # In a full set a port goes down behind the driver's reading, and comes up again.
                goes_down = is_full and (device, name) == ("rxe1", "link_downed")
                checker.same(f"{device}: {name} as read last", rows[-1]["value"], driver[name] + goes_down)
                moved = sum(row["change"] or 0 for row in rows)
                checker.same(f"{device}: changes of {name}", rows[0]["value"] + moved, rows[-1]["value"])


def check_full(checker, events, captured, runs, waited):
    """That the scenarios of the full set did what they are for, and that the port was seen going down."""
    checker.same("there are marks", any(packet.ce for packet in captured["vb0"]), True)
    checker.same("there are runs after a timeout", bool(runs), True)
    checker.same("there are RNR NAKs", waited > 0, True)
    ports = [event["detail"] for event in events if event["kind"] == "async_event" and "port_" in event["detail"]]
    checker.same("ports going down", [text for text in ports if "err" in text], ["rxe1: port_err of port 1"])
    checker.same("the port is up again", "rxe1: port_active of port 1" in ports, True)


def check_second_signal(checker, results):
    """Filters of the classifier while a run watched, and after a second signal."""
    text = lambda name: (results / name).read_text()
    checker.same("ended by the second signal", re.search(r"\d+$", text("second.code.txt").strip())[0] in ("130", "143"), True)
    major, minor = map(int, text("kernel.txt").split(".")[:2])
    # Linux 6.6 and newer have links instead, which go with the process.
    has_filters = (major, minor) < (6, 6)
    for direction in ("ingress", "egress"):
        name = f"roce_{direction}"
        checker.same(f"filter {name} while it ran", name in text("filters.before.txt"), has_filters)
        checker.same(f"filter {name} afterwards", name in text("filters.after.txt"), False)


def main():
    """Checks one run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=pathlib.Path)
    results = parser.parse_args().results
    document = json.loads((results / "live.json").read_text())
    started = processes(results)
    captured = {interface: packets(results / f"{interface}.pcap") for interface in ENDS}
    taps = {tap["interface"]: tap["tap"] for tap in document["taps"]}
    events = table(results / "dataset", "events")
    flows = document["flows"]
    checker = Checker()
    checker.same("frames lost by the run", document["totals"]["frames_lost"], 0)
    for interface, seen in captured.items():
        here = [flow for flow in flows if flow["tap"] == taps[interface]]
        check_counts(checker, results, interface, seen, here)
    check_statistic(checker, results, captured)
    check_processes(checker, started, flows)
    check_queue_pairs(checker, started, events, captured)
    runs, waited = check_trouble(checker, results, events, captured, flows, taps["va0"])
    is_full = ("rnr", "client") in started
    if is_full:
        check_full(checker, events, captured, runs, waited)
    check_second_signal(checker, results)
    check_samples(checker, results, table(results / "dataset", "samples"), is_full)
    check_dataset(results / "dataset", document, {}, checker)
    for wrong in checker.wrong:
        print(f"   WRONG: {wrong}")
    print(f"   {checker.compared} comparisons, {len(checker.wrong)} wrong")
    sys.exit(1 if checker.wrong else 0)


if __name__ == "__main__":
    main()
