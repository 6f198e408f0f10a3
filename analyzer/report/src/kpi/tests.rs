//! Key figures of made runs; expected values are arithmetic.

use roce_model::{
    Address, CollectiveWaitRow, CreditRow, FlowRow, HopRow, Period, RunSummary, Sink as _, Span, Time, Totals,
};

use super::*;

fn host(last: u8) -> Address {
    Address::v4([10, 77, 1, last])
}

/// Four ranks, eight AllReduces of 1 MiB in a ring: each sends 1.5 MiB in 3.14 ms, over two connections.
fn run() -> RunSummary {
    let waits = (0..8).flat_map(|collective| {
        (1..=4).map(move |rank| CollectiveWaitRow {
            collective,
            address: host(rank).to_string().into(),
            // One rank begins late; a collective lasts from the first begin to the last end.
            start_time: Time(u64::from(collective) * 10_000_000 + if rank == 3 { 3_000_000 } else { 0 }),
            end_time: Time(u64::from(collective) * 10_000_000 + 3_140_000),
            ..CollectiveWaitRow::default()
        })
    });
    let credits = (1..=4).flat_map(|rank| {
        [50, 60].map(|delay| CreditRow {
            sender: host(rank),
            receiver: host(rank % 4 + 1),
            bytes: 8 * 786_432,
            cts_delay_p99_ns: Some(delay),
            credit_to_data_p99_ns: Some(1_000 + delay),
            ..CreditRow::default()
        })
    });
    let totals = Totals {
        payload_bytes: 50_331_648,
        data_packets: 10_000,
        data_ce: 25,
        retransmitted_packets: 20,
        network_lost: 1,
        ..Totals::default()
    };
    RunSummary {
        options: vec![("link_rate_bps".to_owned(), "100000000000".to_owned())],
        span: Some(Period {
            first: Time(0),
            last: Time(2_000_000_000),
        }),
        collective_waits: waits.collect(),
        credits: credits.collect(),
        totals,
        ..RunSummary::default()
    }
}

fn document(run: &RunSummary, flows: &[FlowRow]) -> serde_json::Value {
    let mut out = Vec::new();
    let mut report = KpiReport::new(&mut out, KpiForm::Json);
    report.begin(Span(1_000_000)).unwrap();
    report.flows_closed(flows).unwrap();
    report.finish(run).unwrap();
    serde_json::from_slice(&out).unwrap()
}

/// The value of a figure, and its remark.
fn figure(document: &serde_json::Value, id: &str) -> (Option<f64>, String) {
    let mut kpis = document["kpis"].as_array().unwrap().iter();
    let kpi = kpis.find(|kpi| kpi["id"] == id).unwrap_or_else(|| panic!("{id}"));
    (kpi["value"].as_f64(), kpi["remark"].as_str().unwrap().to_owned())
}

#[track_caller]
fn is(document: &serde_json::Value, id: &str, expected: f64) {
    let (value, remark) = figure(document, id);
    let value = value.unwrap_or_else(|| panic!("{id}: {remark}"));
    assert!(
        (value - expected).abs() <= expected.abs() * 1e-9,
        "{id}: {value}, {expected}"
    );
}

#[test]
fn figures_are_those_of_the_formulas() {
    let flow = |payload_bytes: u64| FlowRow {
        counted: true,
        payload_bytes,
        ack_rtt_kind: Some("rtt"),
        ack_rtt_p99_ns: Some(payload_bytes),
        ..FlowRow::default()
    };
    // The flow of 10 bytes is no data beside the others.
    let found = document(&run(), &[flow(3_000), flow(1_000), flow(10)]);
    assert_eq!(found["source"], "draft-calabria-bmwg-ai-fabric-training-bench-00");
    // 1.5 MiB in 3.14 ms are 0.5009 GB/s; at 100 Gbit/s they take 125.829 us.
    is(&found, "busbw", 1_572_864.0 / 3_140_000.0);
    is(&found, "jct_ratio", 3_140_000.0 / 125_829.12);
    // 50,331,648 bytes in 2 s.
    is(&found, "throughput", 201_326_592.0);
    is(&found, "retransmissions_per_second", 10.0);
    is(&found, "ecn_ratio", 0.0025);
    // 1 of 10,000.
    is(&found, "drop_rate", 100.0);
    is(&found, "cts_delay_p99", 60.0);
    is(&found, "credit_to_data_p99", 1_060.0);
    is(&found, "ack_delay_p99", 3_000.0);
    // (3 + 1)^2 / (2 (9 + 1)).
    is(&found, "jfi", 0.8);
    for (id, why) in [
        ("latency_p99", "no two taps"),
        ("pfc_count", "no tap saw one"),
        ("pause_time", "no pauses"),
        ("mmr", "counters of switches"),
        ("interference", "compare"),
        ("uet", "RoCEv2"),
        ("dcqcn_convergence", "no two flows"),
    ] {
        let (value, remark) = figure(&found, id);
        assert!(value.is_none() && remark.contains(why), "{id}: {remark}");
    }
}

#[test]
fn two_taps_replace_bounds() {
    let hop = |matched: u64, lost: u64, p99: f64| HopRow {
        matched,
        lost,
        delay_p99_ns: Some(p99),
        ..HopRow::default()
    };
    let run = RunSummary {
        hops: vec![hop(999_000, 1_000, 5_000.0), hop(1_000_000, 0, 7_000.0)],
        ..RunSummary::default()
    };
    let found = document(&run, &[]);
    // 1,000 of 2,000,000.
    is(&found, "drop_rate", 500.0);
    is(&found, "latency_p99", 7_000.0);
    // Without a line rate and collectives there are no such figures, and the reason is said.
    assert!(figure(&found, "jct_ratio").1.contains("no collectives"));
    assert_eq!(figure(&found, "throughput").0, None);
}

#[test]
fn the_page_has_every_figure() {
    let mut out = Vec::new();
    let mut report = KpiReport::new(&mut out, KpiForm::Html);
    report.begin(Span(1_000_000)).unwrap();
    report.finish(&run()).unwrap();
    let page = String::from_utf8(out).unwrap();
    for words in [
        "BusBW</td><td>0.501 GB/s",
        "cannot be had",
        "JCT ratio",
        "mean time",
    ] {
        assert!(page.contains(words), "{words}");
    }
}
