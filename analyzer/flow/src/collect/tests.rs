use roce_model::{Active, Address, EventRow, FlowId, Groups, Qpn, Snapshot, TapId};

use super::*;
use crate::bins::Bins;
use crate::counts::Counts;
use crate::rows::{Limits, Row};
use crate::timing::latency::BinTimes;

/// Rows and events that a sink received: begin of the bin, flow, senders to its destination; times of events.
#[derive(Default)]
struct Got {
    rows: Vec<(u64, u64, u32)>,
    events: Vec<u64>,
}

impl Sink for Got {
    fn timeline(&mut self, rows: &TimelineColumns) -> Result<(), SinkError> {
        for at in 0..rows.len() {
            let senders = *rows.senders_to_destination.at(at).unwrap();
            self.rows
                .push((*rows.time.at(at).unwrap(), *rows.flow_id.at(at).unwrap(), senders));
        }
        Ok(())
    }

    fn events(&mut self, rows: &EventColumns) -> Result<(), SinkError> {
        self.events.extend(rows.time.iter().flatten());
        Ok(())
    }
}

fn settings() -> Settings {
    Settings {
        bin: Span(10),
        ..Settings::default()
    }
}

struct Broken;

impl Sink for Broken {
    fn timeline(&mut self, _: &TimelineColumns) -> Result<(), SinkError> {
        Err("the disk is full".into())
    }
}

/// Flow, destination, pair of hosts and payload of a row.
fn row(flow: u64, destination: u64, pair: u64, payload_bytes: u64) -> (Row, Groups) {
    let counts = Counts {
        packets: 1,
        payload_bytes,
        ..Counts::default()
    };
    let row = Row {
        flow_id: FlowId(flow),
        tap: TapId(0),
        epoch: 0,
        pair: 0,
        paired: false,
        times: BinTimes::default(),
        knows_cnp: false,
        counts,
        limits: Limits::default(),
        active: Active::ALL,
    };
    let groups = Groups {
        destination,
        source: 0,
        pair,
    };
    (row, groups)
}

fn bin(number: u64, rows: Vec<(Row, Groups)>, events: &[u64]) -> Bin {
    let mut bins = Bins::new(settings().bin);
    bins.advance(number);
    for (row, groups) in rows {
        let (_, pair) = bins.place_row(&mut 0, &groups, row.tap);
        bins.latest.push(Row { pair, ..row });
    }
    bins.events = events
        .iter()
        .map(|time| EventRow {
            time: Time(*time),
            ..EventRow::default()
        })
        .collect();
    bins.advance(number + 1);
    let mut bin = bins.take_done(true).unwrap();
    bin.rows.sum_up();
    bin
}

fn output(watermark: u64, bins: Vec<Bin>) -> Output {
    Output {
        bins,
        watermark,
        ..Output::default()
    }
}

#[test]
fn a_bin_waits_for_the_slowest_part() {
    let mut got = Got::default();
    let mut collector = Collector::new(2, settings(), vec![&mut got]);
    collector
        .push(
            0,
            output(
                9,
                vec![
                    bin(5, vec![row(1, 1, 1, 1)], &[]),
                    bin(7, vec![row(1, 1, 1, 1)], &[]),
                ],
            ),
        )
        .unwrap();
    assert_eq!(collector.timeline.len(), 0, "part 1 may still add to bin 5");
    collector
        .push(1, output(6, vec![bin(5, vec![row(2, 1, 2, 1)], &[])]))
        .unwrap();
    assert_eq!(collector.timeline.len(), 2, "bin 5, not 7");
    collector
        .push(1, output(6, vec![bin(6, vec![row(2, 1, 2, 1)], &[])]))
        .unwrap();
    collector.finish().unwrap();
    // Bin 5 had two senders to destination 1, one in each shard; 10 ns later both still go on.
    assert_eq!(got.rows, [(50, 1, 2), (50, 2, 2), (60, 2, 2), (70, 1, 2)]);
}

#[test]
fn senders_are_hosts_with_payload() {
    let mut got = Got::default();
    let mut collector = Collector::new(1, settings(), vec![&mut got]);
    // Flows 1 and 2 come from one host, 3 from another, 4 sends ACKs only; 5 goes elsewhere.
    let rows = vec![
        row(1, 1, 1, 9),
        row(2, 1, 1, 9),
        row(3, 1, 3, 9),
        row(4, 1, 4, 0),
        row(5, 2, 5, 9),
    ];
    collector.push(0, output(1, vec![bin(0, rows, &[])])).unwrap();
    collector.finish().unwrap();
    assert_eq!(got.rows, [(0, 1, 2), (0, 2, 2), (0, 3, 2), (0, 4, 2), (0, 5, 1)]);
}

#[test]
fn events_of_a_bin_are_in_the_order_of_time() {
    let mut got = Got::default();
    let mut collector = Collector::new(2, settings(), vec![&mut got]);
    collector
        .push(0, output(1, vec![bin(0, Vec::new(), &[4, 2])]))
        .unwrap();
    collector
        .push(1, output(1, vec![bin(0, Vec::new(), &[3])]))
        .unwrap();
    collector.finish().unwrap();
    assert_eq!(got.events, [2, 3, 4]);
}

/// The flow of an RC queue pair of host 10.0.0.9.
fn key(qpn: u32) -> FlowKey {
    FlowKey {
        source: Address::v4([10, 0, 0, 1]),
        destination: Address::v4([10, 0, 0, 9]),
        destination_qpn: Qpn::new(qpn),
        source_qpn: Qpn::default(),
        vlan: None,
        vni: None,
        service: roce_wire::Service::Rc,
    }
}

#[test]
fn only_shown_flows_reach_the_sinks_and_all_reach_the_verdicts() {
    let mut got = Got::default();
    let settings = Settings {
        shown: Some(Filter::parse("qpn 1").unwrap()),
        ..settings()
    };
    let mut collector = Collector::new(1, settings, vec![&mut got]);
    let (one, other) = (key(1).id().0, key(2).id().0);
    let bin = bin(0, vec![row(one, 1, 1, 9), row(other, 1, 2, 9)], &[4]);
    let mut output = output(1, vec![bin]);
    output.opened = vec![(key(1), None), (key(2), None)];
    output.flows = vec![FlowRow {
        flow_id: FlowId(other),
        source: key(2).source,
        destination: key(2).destination,
        destination_qpn: 2,
        service: "RC",
        counted: true,
        runs_timeout: 3,
        ..FlowRow::default()
    }];
    collector.push(0, output).unwrap();
    let verdicts = collector.finish().unwrap();
    let mut run = roce_model::RunSummary::default();
    verdicts.conclude(&mut run);
    // Two hosts send to the destination, also when one of them is shown.
    assert_eq!(got.rows, [(0, one, 2)]);
    assert_eq!(got.events, [4], "what is of no flow is shown");
    let [timeout] = <[_; 1]>::try_from(run.findings).unwrap();
    assert_eq!(
        (timeout.id, timeout.concerns_shown),
        ("retransmit.timeout", Some(false))
    );
}

#[test]
fn a_sink_that_fails_ends_it() {
    let mut broken = Broken;
    let mut collector = Collector::new(1, settings(), vec![&mut broken]);
    collector
        .push(0, output(1, vec![bin(0, vec![row(1, 1, 1, 1)], &[])]))
        .unwrap();
    assert_eq!(collector.finish().unwrap_err().to_string(), "the disk is full");
}

#[test]
fn a_part_that_there_is_not_is_no_harm() {
    let mut got = Got::default();
    let mut collector = Collector::new(1, settings(), vec![&mut got]);
    collector
        .push(3, output(9, vec![bin(0, vec![row(1, 1, 1, 1)], &[])]))
        .unwrap();
    collector.finish().unwrap();
    assert!(got.rows.is_empty());
}

/// Progress that a sink was given.
#[derive(Default)]
struct SinkProgress {
    rows: usize,
    given: Vec<(u64, usize, Option<Snapshot>)>,
}

impl Sink for SinkProgress {
    fn timeline(&mut self, rows: &TimelineColumns) -> Result<(), SinkError> {
        self.rows += rows.len();
        Ok(())
    }

    fn progress(&mut self, progress: &Progress<'_>) -> Result<(), SinkError> {
        self.given
            .push((progress.complete.0, self.rows, progress.snapshot.cloned()));
        Ok(())
    }
}

#[test]
fn behind_the_end_of_all_shards_a_run_has_come_to_its_last_bin() {
    let mut got = SinkProgress::default();
    let mut collector = Collector::new(1, settings(), vec![&mut got]);
    let bins = vec![bin(5, vec![row(1, 1, 1, 1)], &[])];
    collector.push(0, output(u64::MAX, bins)).unwrap();
    collector.progress().unwrap();
    drop(collector);
    // Bins of 10 up to number 5: an interval of the screen that ends 584 years later would never be drawn.
    assert_eq!(got.given.iter().map(|given| given.0).collect::<Vec<_>>(), [60]);
}

#[test]
fn whoever_looks_gets_what_is_complete() {
    let live = |flow: u64, timeouts| FlowRow {
        flow_id: FlowId(flow),
        counted: true,
        destination_qpn: 17,
        runs_timeout: timeouts,
        ..FlowRow::default()
    };
    let mut got = SinkProgress::default();
    let mut collector = Collector::new(2, settings(), vec![&mut got]);
    let with = |watermark, snapshot| Output {
        snapshot,
        ..output(watermark, vec![bin(5, vec![row(1, 1, 1, 1)], &[])])
    };
    collector
        .push(0, with(9, Some(LiveFlows::Rows(vec![live(1, 2)]))))
        .unwrap();
    // The other shard has given no snapshot: nothing is said of half of the run.
    collector.progress().unwrap();
    collector
        .push(1, with(7, Some(LiveFlows::Rows(vec![live(2, 3)]))))
        .unwrap();
    collector.progress().unwrap();
    collector.progress().unwrap();
    for shard in 0..2 {
        let flows = if shard == 0 {
            LiveFlows::Rows(Vec::new())
        } else {
            LiveFlows::TooMany
        };
        collector.push(shard, with(9, Some(flows))).unwrap();
    }
    collector.progress().unwrap();
    collector.finish().unwrap();
    let [none, snapshot, none_again, too_many] = <[_; 4]>::try_from(got.given).unwrap();
    assert_eq!((none.0, none.1, none.2), (0, 0, None));
    // Bins of 10 before number 7, and both rows of number 5.
    assert_eq!((snapshot.0, snapshot.1), (70, 2));
    let snapshot = snapshot.2.unwrap();
    assert_eq!(snapshot.flows, [live(1, 2), live(2, 3)]);
    let [finding] = <[_; 1]>::try_from(snapshot.findings).unwrap();
    assert_eq!(finding.id, "retransmit.timeout");
    assert!(
        finding.summary.contains("2 flows retransmitted after 5 timeouts"),
        "{}",
        finding.summary
    );
    assert_eq!(none_again.2, None, "it is given once");
    let too_many = too_many.2.unwrap();
    assert!(too_many.too_many && too_many.findings.is_empty());
}
