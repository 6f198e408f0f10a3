//! A capture without any RoCE beside counters of RDMA bytes.

use roce_model::{Confidence, Counter, SampleRow, Severity, Span, TapId, TapRow, Time};

use super::{RunSummary, TestRun, count, finding, fired};

/// A reading of an interface that counted `change` more bytes than the one before.
fn reading(object: &'static str, counter: Counter, seconds: u64, change: Option<f64>) -> SampleRow {
    SampleRow {
        time: Time(seconds * Span::SECOND.0),
        source: "host",
        node: "gpu1".into(),
        object: object.into(),
        counter: counter.name(),
        kind: "cumulative",
        value: 5e12,
        change,
        unit: "bytes",
        ..SampleRow::default()
    }
}

/// A run that captured ens1f0np0 and ens2f0np0: frames, RoCE packets among them, and readings.
fn run(frames: u64, roce_packets: u64, readings: &[SampleRow]) -> RunSummary {
    let mut run = TestRun::new();
    run.summary.taps = ["ens1f0np0", "ens2f0np0"]
        .into_iter()
        .zip(0..)
        .map(|(name, tap)| TapRow {
            tap: TapId(tap),
            interface: Some(name.into()),
            ..TapRow::default()
        })
        .collect();
    run.summary.totals.frames = frames;
    run.summary.totals.roce_packets = roce_packets;
    for reading in readings {
        run.sample(reading);
    }
    run.conclude()
}

#[test]
fn counters_that_rise_beside_a_capture_without_roce_say_that_it_is_blind() {
    let (received, sent) = (Counter::RdmaReceivedBytes, Counter::RdmaTransmittedBytes);
    let readings = [
        // The first reading has a value of terabytes and no change.
        reading("ens1f0np0", received, 0, None),
        reading("ens1f0np0", received, 1, Some(2e9)),
        reading("ens1f0np0", sent, 1, Some(1e9)),
        reading("ens1f0np0", received, 2, Some(1e9)),
        reading("ens2f0np0", received, 2, Some(0.0)),
        // Nobody captured this one.
        reading("ens3f0np0", received, 2, Some(7e9)),
        // All packets of the interface: TCP is among them.
        reading("ens1f0np0", Counter::PriorityReceivedBytes, 2, Some(9e9)),
    ];
    let blind = run(412, 0, &readings);
    let finding_of = fired(&blind, "capture.blind");
    // 2 + 1 + 1 GB.
    assert_eq!(
        (count(finding_of, "rdma_bytes"), count(finding_of, "frames")),
        (4_000_000_000, 412)
    );
    assert_eq!(
        (finding_of.severity, finding_of.confidence),
        (Severity::Critical, Confidence::High)
    );
    assert_eq!(finding_of.first_time, Some(Time(Span::SECOND.0)));
    assert!(
        finding_of
            .summary
            .starts_with("ens1f0np0 counted 4000000000 RDMA bytes"),
        "{}",
        finding_of.summary
    );
    assert!(
        finding(&run(0, 0, &readings), "capture.blind").is_some(),
        "not one frame either"
    );
    // One RoCE packet, and the capture sees.
    assert!(finding(&run(412, 1, &readings), "capture.blind").is_none());
}

#[test]
fn what_is_no_data_or_not_captured_is_no_blindness() {
    let received = Counter::RdmaReceivedBytes;
    for readings in [
        vec![],
        // 1,000,000 is the threshold.
        vec![reading("ens1f0np0", received, 1, Some(999_999.0))],
        vec![reading("ens3f0np0", received, 1, Some(7e9))],
        vec![reading("ens1f0np0", Counter::PortReceivedPackets, 1, Some(7e9))],
        vec![reading("ens1f0np0", received, 1, None)],
    ] {
        assert!(
            finding(&run(412, 0, &readings), "capture.blind").is_none(),
            "{readings:?}"
        );
    }
    let at = [reading("ens1f0np0", received, 1, Some(1_000_000.0))];
    assert!(finding(&run(412, 0, &at), "capture.blind").is_some());
}
