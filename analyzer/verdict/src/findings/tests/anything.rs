//! Anything goes in, nothing falls over, and no number is none.

use proptest::prelude::*;
use roce_model::{
    Cell, Columns, EpisodeColumns, EventRow, FlowId, Groups, MacAddress, Pause, PauseFrame, PauseKind,
    TimelineRow, Vantage,
};

use super::super::super::{Settings, Verdicts};
use super::*;
use crate::bin_rows::BinRows;
use crate::host_pairs::HostPairs;
use crate::rows::give;

#[derive(Clone, Debug)]
enum Step {
    Begin(u64),
    Row(TimelineRow, u8, u8),
    Event(EventRow),
    Pause(PauseFrame),
    End,
    Flow(Box<FlowRow>),
}

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![0..20u64, Just(u64::MAX), any::<u64>(), 0..10_000_000u64]
}

fn real() -> impl Strategy<Value = Option<f64>> {
    prop_oneof![
        Just(None),
        Just(Some(f64::NAN)),
        Just(Some(f64::INFINITY)),
        (0.0..2.0).prop_map(Some)
    ]
}

fn row() -> impl Strategy<Value = Step> {
    (prop::array::uniform12(number()), 0..4u8, 0..4u8).prop_map(|(n, source, destination)| {
        let small = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
        let row = TimelineRow {
            flow_id: FlowId(n[0] % 5),
            tap: TapId(small(n[1] % 2)),
            payload_bytes: n[2],
            data_packets: small(n[3]),
            ect0: small(n[4]),
            ce: small(n[5]),
            cnp: Some(small(n[6])),
            missing: n[7],
            retransmitted_packets: small(n[8]),
            retransmitted_bytes: n[9],
            rnr_naks: small(n[10]),
            senders_to_destination: small(n[11] % 6),
            pause_ns: Some(n[11]),
            lost_downstream: Some(small(n[10])),
            ..TimelineRow::default()
        };
        Step::Row(row, source, destination)
    })
}

fn event() -> impl Strategy<Value = Step> {
    let kinds = prop::sample::select(EventKind::ALL.to_vec());
    let details = prop::sample::select(vec!["", "timeout", "rnr", "nak", "network_lost"]);
    (kinds, details, prop::array::uniform4(number())).prop_map(|(kind, detail, n)| {
        Step::Event(EventRow {
            time: Time(n[0]),
            kind,
            tap: TapId(u32::try_from(n[1] % 2).unwrap()),
            flow_id: Some(FlowId(n[1] % 5)),
            psn: Some(u32::try_from(n[2] % 12).unwrap()),
            value: Some(n[3]),
            detail: Some(detail.into()),
            ..EventRow::default()
        })
    })
}

fn pause() -> impl Strategy<Value = Step> {
    (number(), any::<bool>(), any::<[u16; 8]>(), any::<u8>()).prop_map(|(time, link, quanta, enabled)| {
        Step::Pause(PauseFrame {
            before: 0,
            reported: true,
            time: Time(time),
            tap: TapId(0),
            pause: Pause {
                source: MacAddress::default(),
                destination: MacAddress::PAUSE,
                kind: if link {
                    PauseKind::Link
                } else {
                    PauseKind::Priority
                },
                enabled,
                quanta,
                present: 8,
            },
        })
    })
}

fn closed() -> impl Strategy<Value = Step> {
    let vantages = prop::sample::select(vec![
        None,
        Some(Vantage::Sender),
        Some(Vantage::Receiver),
        Some(Vantage::Between),
    ]);
    let closed = (
        prop::array::uniform16(number()),
        prop::array::uniform2(real()),
        vantages,
        any::<[bool; 3]>(),
    );
    closed.prop_map(|(n, reals, vantage, flags)| {
        let octet = |n: u64| u8::try_from(n % 4).unwrap();
        Step::Flow(Box::new(FlowRow {
            flow_id: FlowId(n[0] % 5),
            peer_flow_id: flags[0].then_some(FlowId(n[1] % 5)),
            tap: TapId(u32::try_from(n[1] % 2).unwrap()),
            source: host(octet(n[2])),
            destination: host(octet(n[3])),
            destination_qpn: u32::try_from(n[4] % 5).unwrap(),
            service: "RC",
            counted: flags[1],
            vantage,
            first_time: Time(n[5]),
            packets: n[6],
            payload_bytes: n[6],
            data_packets: n[7],
            not_ect: n[8],
            ce: n[9],
            cnp: flags[2].then_some(n[10]),
            cnp_after_nak: Some(n[11]),
            network_lost: n[12],
            lost_downstream: Some(n[13]),
            capture_lost: n[12],
            runs_timeout: n[13],
            rnr_naks: n[14],
            nak_invalid_request: n[15],
            wasted_bytes: Some(n[14]),
            retransmitted_bytes: n[15],
            cnp_trains: n[10],
            cnp_reaction_p50: reals[0],
            dcqcn_deviation: reals[1],
            ce_to_cnp_count: n[8],
            ce_to_cnp_p50_ns: Some(n[9]),
            cnp_interval_count: n[8],
            cnp_interval_p50_ns: Some(n[9]),
            path_mtu: Some(u32::try_from(n[10] % 5000).unwrap()),
            dscp: Some(octet(n[11])),
            dscp_values: u32::from(octet(n[12])),
            source_port: Some(u16::from(octet(n[13]))),
            source_ports: 1,
            icrc_bad: n[14],
            pause_ns: Some(n[15]),
            ..FlowRow::default()
        }))
    })
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        1 => number().prop_map(Step::Begin),
        4 => row(),
        1 => event(),
        1 => pause(),
        1 => Just(Step::End),
        1 => closed(),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]
    #[test]
    fn goes_in(steps in prop::collection::vec(step(), 0..60), looked in 0..60usize, receivers in prop::collection::vec((0..4u8, 0..4u8, number()), 0..4), totals in prop::array::uniform4(number())) {
        let (mut verdicts, mut pairs) = (Verdicts::new(Settings::default()), HostPairs::default());
        let (mut snapshot, mut rows, mut begin) = (None, BinRows::default(), Time(0));
        for (at, step) in steps.iter().cloned().enumerate() {
            if at == looked {
                // The flows that are live close later.
                let live = steps.iter().skip(at).filter_map(|step| match step {
                    Step::Flow(row) => Some(FlowRow::clone(row)),
                    _ => None,
                });
                snapshot = Some(verdicts.snapshot(Some(live.collect())));
            }
            match step {
                Step::Begin(time) => {
                    begin = Time(time);
                    verdicts.begin_bin(begin);
                }
                Step::Row(row, source, destination) => {
                    rows.add(&row, Groups::new(row.tap, host(source), host(destination)));
                }
                Step::Event(event) => verdicts.event(&event),
                Step::Pause(frame) => verdicts.pause(&frame),
                Step::End => give(core::mem::take(&mut rows), begin, &mut verdicts, &mut pairs),
                Step::Flow(row) => verdicts.flow(&row),
            }
        }
        let mut run = RunSummary {
            cnp_receivers: receivers.iter().map(|(from, to, cnp)| cnps(*from, *to, *cnp)).collect(),
            ..RunSummary::default()
        };
        (run.totals.icrc_bad, run.totals.icrc_checked) = (totals[0], totals[1]);
        (run.totals.frames_lost, run.totals.cut_by_snaplen) = (totals[2], totals[3]);
        verdicts.conclude(&mut run);
        for finding_before in snapshot.iter().flat_map(|snapshot| &snapshot.findings) {
            prop_assert!(run.findings.iter().any(|finding| finding.id == finding_before.id), "taken back: {}", finding_before.summary);
        }
        for episode in &run.episodes {
            prop_assert!(episode.start_time <= episode.end_time, "{episode:?}");
            EpisodeColumns::cells(episode, |column, cell| {
                if let Cell::F64(value) = cell {
                    assert!(value.is_finite() && (0.0..=1.0 + 1e-9).contains(&value), "{} = {value}", column.name);
                }
            });
        }
        for finding in &run.findings {
            prop_assert!(!finding.summary.is_empty() && !finding.next_step.is_empty());
            prop_assert!(!finding.next_step.contains('{'), "{}", finding.next_step);
            prop_assert!(finding.confidence != Confidence::Low || finding.severity <= Severity::Info, "{}", finding.summary);
            prop_assert!(!finding.summary.contains("NaN") && !finding.summary.contains("inf "), "{}", finding.summary);
            for (name, fact) in &finding.evidence.0 {
                if let Fact::Number(value) = fact {
                    prop_assert!(value.is_finite(), "{name}");
                }
            }
        }
    }
}
