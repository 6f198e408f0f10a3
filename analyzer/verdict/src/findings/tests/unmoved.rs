//! Senders that went on with their rate, whatever CNPs came.

use roce_model::{TimelineRow, Vantage};

use super::*;

/// Three senders to host 4 with marks, and CNPs; the first one sends nine in ten packets, whatever the CNPs say.
fn one_ignores(change: fn(&mut FlowRow)) -> RunSummary {
    let mut run = TestRun::new();
    let mut rows: Vec<FlowRow> = (1..4).map(|source| flow(source, 4)).collect();
    for row in &mut rows {
        (row.ce, row.ect0, row.cnp, row.vantage) = (900, 100, Some(200), Some(Vantage::Receiver));
    }
    rows[0].data_packets = 18_000;
    (rows[0].ce, rows[0].ect0, rows[0].vantage) = (0, 18_000, Some(Vantage::Between));
    change(&mut rows[0]);
    let marked: fn(&mut TimelineRow) = |row| (row.ce, row.cnp) = (9, Some(1));
    let did: Vec<_> = rows.iter().map(|row| (row, marked)).collect();
    for ms in 0..10 {
        run.bin(ms, &did, &[]);
    }
    for row in &rows {
        run.closed(row);
    }
    run.conclude()
}

#[test]
fn one_sender_that_ignores_cnps_explains_the_incast_whose_port_it_fills() {
    let run = one_ignores(|row| (row.cnp_windows, row.cnp_windows_over) = (40, 40));
    assert!(
        fired(&run, "cnp.ignored").explains.has("incast"),
        "{:?}",
        run.findings
    );
    assert!(
        run.sentence.starts_with("10.0.0.1 did not slow down after CNPs"),
        "{}",
        run.sentence
    );
    // A sender with a fiftieth of the data does not fill the port.
    let run = one_ignores(|row| {
        (row.cnp_windows, row.cnp_windows_over) = (40, 40);
        row.data_packets = 40;
    });
    assert!(!fired(&run, "cnp.ignored").explains.has("incast"));
}

#[test]
fn a_sender_that_went_on_with_its_rate_is_named() {
    // One train of CNPs, and no time below seven eighths of the best rate.
    let run = one_ignores(|row| row.time_slowed_ns = Some(0));
    assert!(
        run.sentence
            .ends_with("10.0.0.1 went on at the same rate after CNPs."),
        "{}",
        run.sentence
    );
    let working = fired(&run, "ecn.working");
    assert_eq!(count(working, "flows"), 2, "{}", working.summary);
    let run = one_ignores(|row| row.time_slowed_ns = Some(1));
    assert!(run.sentence.ends_with("ECN works."), "{}", run.sentence);
}

#[test]
fn a_tap_between_routers_before_the_queue_shows_rates() {
    let mut data = flow(1, 2);
    (data.cnp, data.vantage, data.time_slowed_ns) = (Some(40), Some(Vantage::Between), Some(0));
    let sentence = |data: &FlowRow| {
        let mut run = TestRun::new();
        (run.summary.totals.cnp, run.summary.totals.roce_packets) = (40, 1_100);
        run.closed(data).closed(&back(data));
        run.conclude().sentence
    };
    assert!(
        sentence(&data).ends_with("40 CNPs came, and 10.0.0.1 went on at the same rate."),
        "{}",
        sentence(&data)
    );
    // Behind the queue the rate is the queue's.
    data.vantage = Some(Vantage::Receiver);
    assert!(
        sentence(&data).ends_with("whether senders slowed down is not shown."),
        "{}",
        sentence(&data)
    );
}
