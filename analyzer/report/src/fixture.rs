//! Runs made by hand, small enough to know every sum.

use std::net::Ipv6Addr;

use roce_model::{
    Address, CnpReceiver, Columns, CutLimit, FlowId, FlowRow, InputSummary, Layer, Opcode, Period, Qpn,
    RunKey, RunSummary, Sink, Span, TapId, TapRow, Time, TimelineColumns, TimelineRow, Totals, Vantage,
};

mod concluded;

pub(crate) use concluded::training;

/// 2025-11-21 04:40:00 UTC.
pub(crate) const START: u64 = 1_763_700_000_000_000_000;
const MILLISECOND: u64 = 1_000_000;

/// The rows of a run and its end.
pub(crate) struct FixtureRun {
    pub(crate) timeline: TimelineColumns,
    pub(crate) flows: Vec<FlowRow>,
    pub(crate) run: RunSummary,
}

impl FixtureRun {
    pub(crate) fn feed(&self, sink: &mut impl Sink) {
        sink.begin(self.run.bin).unwrap();
        sink.timeline(&self.timeline).unwrap();
        sink.flows_closed(&self.flows).unwrap();
        sink.finish(&self.run).unwrap();
    }
}

fn run(path: &str, totals: Totals) -> RunSummary {
    let span = Period {
        first: Time(START),
        last: Time(START + 100 * MILLISECOND),
    };
    RunSummary {
        key: RunKey {
            run_id: "044165314b7e12e4".to_owned(),
            host: "h1".to_owned(),
            capture: path.to_owned(),
        },
        version: "0.1.0".to_owned(),
        started: Time(START + 3_600 * Span::SECOND.0),
        elapsed: Span(12 * MILLISECOND),
        bin: Span(MILLISECOND),
        options: vec![("bin".to_owned(), "1ms".to_owned())],
        inputs: vec![InputSummary {
            input: path.to_owned(),
            format: "pcapng".to_owned(),
            bytes: Some(181_000_000),
            frames: totals.frames,
            first_time: Some(span.first),
            last_time: Some(span.last),
            ..InputSummary::default()
        }],
        span: Some(span),
        first_frame: Some(span.first),
        taps: vec![TapRow {
            input: path.to_owned().into(),
            interface: Some("eth0".into()),
            link: "Ethernet".into(),
            frames: totals.frames,
            roce_packets: totals.roce_packets,
            ..TapRow::default()
        }],
        totals,
        ..RunSummary::default()
    }
}

/// CNPs for the first five senders of the incast: 500 in all.
const CNPS: [u64; 5] = [250, 130, 80, 30, 10];

fn incast_totals() -> Totals {
    // 780 packets in each bin; ACKs, NAKs and CNPs are 2,000 more.
    let mut totals = Totals {
        frames: 80_100,
        roce_packets: 80_000,
        roce_v2: 80_000,
        not_roce: 100,
        wire_bytes: 78_000 * 1_082 + 2_000 * 62,
        payload_bytes: 78_000 * 1_024,
        data_packets: 78_000,
        data_ce: 1_560,
        ect0: 78_440,
        ce: 1_560,
        acks: 1_499,
        naks: 1,
        cnp: 500,
        retransmitted_packets: 5,
        retransmitted_bytes: 5_120,
        retransmission_runs: 1,
        runs_nak: 1,
        missing: 2,
        network_lost: 2,
        icrc_checked: 80_000,
        flows: 12,
        ..Totals::default()
    };
    for _ in 0..10 {
        totals.opcodes.count(Opcode(0x0a));
    }
    totals.opcodes.count(Opcode(0x81));
    totals
}

/// Twelve senders, one receiver, 100 bins. Sender `n` sends 10 * (12 - n) packets of 1,024 bytes in each bin; in
/// bins 40 to 59 a tenth of them is CE; in bin 50 the first sender sends five again after two went missing.
pub(crate) fn incast() -> FixtureRun {
    let mut timeline = TimelineColumns::default();
    let mut flows: Vec<FlowRow> = (0..12_u8)
        .map(|sender| FlowRow {
            flow_id: FlowId(u64::from(sender) + 1),
            source: Address::v4([10, 0, 0, sender + 1]),
            destination: Address::v4([10, 0, 1, 1]),
            destination_qpn: 0x100 + u32::from(sender),
            service: "RC",
            carrier: "RoCEv2/IPv4",
            counted: true,
            peer_flow_id: Some(FlowId(u64::from(sender) + 0x101)),
            pairing: Some(if sender == 0 { "cm" } else { "psn" }),
            pairing_matches: (sender > 0).then_some(120),
            vantage: Some(Vantage::Receiver),
            ack_rtt_kind: Some("turnaround"),
            ack_rtt_count: 100,
            ack_rtt_p50_ns: Some(1_500 + 100 * u64::from(sender)),
            cnp: Some(CNPS.get(usize::from(sender)).copied().unwrap_or(0)),
            cnp_attribution: Some("pairing"),
            first_time: Time(START),
            last_time: Time(START + 100 * MILLISECOND),
            dscp: Some(26),
            ..FlowRow::default()
        })
        .collect();
    for bin in 0..100_u64 {
        for (sender, flow) in (0..12_u32).zip(&mut flows) {
            let packets = 10 * (12 - sender);
            let ce = if (40..60).contains(&bin) { packets / 10 } else { 0 };
            let trouble = bin == 50 && sender == 0;
            let (retransmitted, missing) = if trouble { (5, 2) } else { (0, 0) };
            timeline.push(&TimelineRow {
                time: Time(START + bin * MILLISECOND),
                flow_id: flow.flow_id,
                packets,
                wire_bytes: u64::from(packets) * 1_082,
                payload_bytes: u64::from(packets) * 1_024,
                data_packets: packets,
                ect0: packets - ce,
                ce,
                retransmitted_packets: retransmitted,
                retransmitted_bytes: u64::from(retransmitted) * 1_024,
                missing,
                ..TimelineRow::default()
            });
            flow.packets += u64::from(packets);
            flow.wire_bytes += u64::from(packets) * 1_082;
            flow.payload_bytes += u64::from(packets) * 1_024;
            flow.data_packets += u64::from(packets);
            flow.ect0 += u64::from(packets - ce);
            flow.ce += u64::from(ce);
            flow.retransmitted_packets += u64::from(retransmitted);
            flow.retransmitted_bytes += u64::from(retransmitted) * 1_024;
            flow.retransmission_runs += u64::from(trouble);
            flow.runs_nak += u64::from(trouble);
            flow.missing += missing;
            flow.network_lost += missing;
        }
    }
    let mut run = run("captures/incast.pcapng", incast_totals());
    let receiver = |host: u8, cnp: u64| CnpReceiver {
        tap: TapId(0),
        source: Address::v4([10, 0, 1, 1]),
        destination: Address::v4([10, 0, 0, host]),
        qpn: Qpn::new(0x200 + u32::from(host)),
        cnp,
        dscp: Some(48),
        pcp: None,
        first_time: Time(START + 40 * MILLISECOND),
        last_time: Time(START + 60 * MILLISECOND),
    };
    run.cnp_receivers = vec![
        receiver(1, 250),
        receiver(2, 130),
        receiver(3, 80),
        receiver(4, 30),
        receiver(5, 10),
    ];
    concluded::add_incast(&mut run);
    flows.reverse();
    FixtureRun { timeline, flows, run }
}

/// Two taps, IPv6, everything that can be wrong, and names that try to steer the terminal.
pub(crate) fn trouble() -> FixtureRun {
    let address = |host: u16| {
        Address::v6(Ipv6Addr::new(0xfd00, 0x1234, 0x5678, 0x9abc, 0, 0x7a, 0x3c01, host).octets())
    };
    let mut timeline = TimelineColumns::default();
    let mut flows = Vec::new();
    for tap in 0..2_u32 {
        for epoch in 0..2_u32 {
            let time = START + u64::from(epoch) * 50 * MILLISECOND;
            timeline.push(&TimelineRow {
                time: Time(time),
                flow_id: FlowId(0xabcd),
                tap: TapId(tap),
                epoch,
                packets: 1_000,
                wire_bytes: 4_225_000,
                payload_bytes: 4_096_000,
                data_packets: 1_000,
                not_ect: 1_000,
                missing: 3,
                ..TimelineRow::default()
            });
            flows.push(FlowRow {
                flow_id: FlowId(0xabcd),
                tap: TapId(tap),
                epoch,
                counted: tap == 0,
                source: address(1),
                destination: address(2),
                destination_qpn: 0xab_cdef,
                service: "RC",
                vlan: Some(100),
                first_time: Time(time),
                last_time: Time(time + MILLISECOND),
                packets: 1_000,
                wire_bytes: 4_225_000,
                payload_bytes: 4_096_000,
                data_packets: 1_000,
                not_ect: 1_000,
                naks: 4,
                nak_sequence: 3,
                nak_remote_access: 1,
                rnr_naks: 2,
                retransmitted_packets: 20,
                retransmitted_bytes: 81_920,
                retransmission_runs: 2,
                runs_nak: 1,
                runs_timeout: 1,
                missing: 3,
                late: 1,
                reordered: 1,
                capture_lost: 1,
                unresolved: 1,
                lost_downstream: Some(1),
                messages: 10,
                dscp: None,
                ..FlowRow::default()
            });
        }
    }
    FixtureRun {
        timeline,
        flows,
        run: troubled(),
    }
}

/// The end of the run in which everything went wrong.
fn troubled() -> RunSummary {
    let mut totals = Totals {
        frames: 6_000,
        frames_lost: 12,
        copies: 7,
        roce_packets: 4_100,
        roce_v2: 4_000,
        roce_v1: 100,
        undecodable: 9,
        fragments: 4,
        not_roce: 1_887,
        filtered: 30,
        cut_by_snaplen: 11,
        wire_bytes: 16_900_000,
        payload_bytes: 16_384_000,
        data_packets: 4_100,
        not_ect: 4_000,
        naks: 16,
        rnr_naks: 8,
        retransmitted_packets: 80,
        retransmitted_bytes: 327_680,
        retransmission_runs: 8,
        runs_nak: 4,
        runs_timeout: 4,
        missing: 12,
        reordered: 4,
        capture_lost: 4,
        unresolved: 4,
        lost_downstream: 4,
        seen_again: 2_000,
        late: 4,
        response_missing: 5,
        response_network_lost: 3,
        pause_frames: 3,
        icrc_checked: 4_000,
        icrc_bad: 1,
        flows: 4,
        evicted: 1,
        ..Totals::default()
    };
    totals.stops.insert((Layer::Bth, CutLimit::Snaplen), 9);
    totals
        .stops
        .insert((Layer::Ipv4, CutLimit::Length(Layer::Ethernet)), 2);
    let mut run = run("captures/\u{1b}[2Jevil\u{202e}.pcap", totals);
    let first = &mut run.taps[0];
    first.mirror_lost = 6;
    first.out_of_order = 2;
    first.out_of_order_max_ns = 1_500;
    first.cut_frames = 11;
    first.mirror = Some("ERSPAN 5".into());
    let second = TapRow {
        tap: TapId(1),
        interface: Some("eth1\u{7}".into()),
        ..run.taps[0].clone()
    };
    run.taps.push(second);
    concluded::add_trouble(&mut run);
    run.inputs[0].truncated = true;
    run.inputs[0].warnings = vec![
        "4 packets without a time took the time of the record before, so that their bins may be off"
            .to_owned(),
    ];
    run.inputs[0].error = Some("block at byte 181000000 claims 4 GB".to_owned());
    run
}

/// A capture without RoCE.
pub(crate) fn nothing() -> FixtureRun {
    let totals = Totals {
        frames: 5,
        not_roce: 5,
        ..Totals::default()
    };
    FixtureRun {
        timeline: TimelineColumns::default(),
        flows: Vec::new(),
        run: run("web.pcap", totals),
    }
}
