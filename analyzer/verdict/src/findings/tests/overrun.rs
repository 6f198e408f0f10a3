//! Queues that overran: losses of several senders, close to each other.

use super::super::super::rows::{MS, flow};
use super::*;
use roce_model::{EventRow, TimelineRow};

/// Senders to host 9 lose single packets at these PSNs, each of 2,000 packets of 1 KiB in 1 ms: 2 x 16 Gbit/s.
fn losses(senders: &[(u8, Vec<u32>)]) -> RunSummary {
    let mut run = TestRun::new();
    let mut rows = Vec::new();
    for (source, lost) in senders {
        let mut row = flow(*source, 9);
        let packets = lost.len() as u64;
        (row.network_lost, row.losses_proven, row.data_packets) = (packets, packets, 2_000);
        rows.push(row);
    }
    let sends: fn(&mut TimelineRow) = |row| {
        (row.data_packets, row.ect0, row.missing) = (2_000, 2_000, 1);
        (row.payload_bytes, row.wire_bytes) = (2_048_000, 2_164_000);
    };
    let did: Vec<_> = rows.iter().map(|row| (row, sends)).collect();
    let mut events = Vec::new();
    for ((_, lost), row) in senders.iter().zip(&rows) {
        events.extend(lost.iter().map(|psn| EventRow {
            psn: Some(*psn),
            ..event(EventKind::Hole, row, MS / 2, 1, "network_lost")
        }));
    }
    run.bin(0, &did, &events);
    for row in &rows {
        run.closed(row);
    }
    run.conclude()
}

/// PSNs, `count` of them, each `every` behind the one before.
fn psns(count: u32, every: u32) -> Vec<u32> {
    (0..count).map(|at| 100 + at * every).collect()
}

#[test]
fn two_senders_that_lose_every_second_packet_overran_a_queue() {
    let run = losses(&[(1, psns(20, 2)), (2, psns(20, 2))]);
    let incast = fired(&run, "incast");
    assert_eq!(
        incast.summary,
        "2 senders at once into 10.0.0.9, 40 packets lost, none marked although ECN-capable: the marking threshold is above the buffer; \
         1.00 ms in 1 episode to 1 destination"
    );
    assert_eq!(
        (incast.severity, incast.confidence),
        (Severity::Warning, Confidence::Medium)
    );
    assert!(incast.explains.has("loss.network") && incast.is_root());
    assert_eq!(run.findings[0].id, "incast");
}

#[test]
fn losses_far_from_each_other_are_a_cables() {
    // 20 of 2,000 packets are lost: two gaps within two packets are one case in 50. All are 97 packets apart.
    let run = losses(&[(1, psns(20, 97)), (2, psns(20, 97))]);
    assert!(finding(&run, "incast").is_none(), "{:?}", run.findings);
    assert!(fired(&run, "loss.network").is_root());
}

#[test]
fn one_sender_alone_overruns_no_queue_of_several() {
    let run = losses(&[(1, psns(20, 2)), (2, Vec::new())]);
    assert!(finding(&run, "incast").is_none(), "{:?}", run.findings);
    let run = losses(&[(1, psns(20, 2)), (2, psns(20, 97))]);
    assert!(finding(&run, "incast").is_none(), "{:?}", run.findings);
}

/// Four senders to host 9 that are an incast by number; only the last one loses packets, `lost` of 2,000, and sends in another class.
fn one_class(lost: u32) -> RunSummary {
    let mut run = TestRun::new();
    let mut rows: Vec<FlowRow> = (1..5).map(|source| flow(source, 9)).collect();
    for row in &mut rows {
        (row.data_packets, row.last_time) = (2_000, Time(MS));
    }
    rows[3].dscp = Some(0);
    (rows[3].ect0, rows[3].not_ect) = (0, 2_000);
    (rows[3].network_lost, rows[3].losses_proven) = (lost.into(), lost.into());
    let sends: fn(&mut TimelineRow) = |row| {
        (row.data_packets, row.ect0) = (2_000, 2_000);
        (row.payload_bytes, row.wire_bytes) = (2_048_000, 2_164_000);
    };
    let loses: fn(&mut TimelineRow) = |row| {
        (row.data_packets, row.ect0, row.not_ect, row.missing) = (2_000, 0, 2_000, 1);
        (row.payload_bytes, row.wire_bytes) = (2_048_000, 2_164_000);
    };
    let did: Vec<_> = rows
        .iter()
        .map(|row| (row, if row.network_lost > 0 { loses } else { sends }))
        .collect();
    let holes: Vec<_> = psns(lost, 97)
        .into_iter()
        .map(|psn| EventRow {
            psn: Some(psn),
            ..event(EventKind::Hole, &rows[3], MS / 2, 1, "network_lost")
        })
        .collect();
    run.bin(0, &did, &holes);
    for row in &rows {
        run.closed(row);
    }
    run.conclude()
}

#[test]
fn losses_of_one_sender_of_many_are_no_full_queue() {
    // A quarter of the data is its: one loss says nothing, 0.25^3 = 0.016 is less than 1 in 20.
    assert!(finding(&one_class(1), "incast").is_some());
    let run = one_class(3);
    assert!(finding(&run, "incast").is_none(), "{:?}", run.findings);
    let loss = fired(&run, "loss.network");
    assert!(loss.is_root(), "{loss:?}");
    assert!(
        loss.summary
            .ends_with("; only DSCP 0 lost any, sent by 10.0.0.4, and none of 6000 packets of DSCP 26"),
        "{}",
        loss.summary
    );
    assert!(
        run.sentence
            .starts_with("The network lost 3 packets from 10.0.0.4 to 10.0.0.9"),
        "{}",
        run.sentence
    );
    assert!(
        run.sentence
            .ends_with(": only DSCP 0 lost any, sent by 10.0.0.4, and none of 6000 packets of DSCP 26."),
        "{}",
        run.sentence
    );
}
