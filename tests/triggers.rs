//! Equal packets have equal causes of retransmission runs, whatever was captured before.

use std::fs;
use std::path::Path;

use roce_capture::write::ByteOrder;
use roce_capture::{Container, Merge, Reader};
use roce_flow::Options;
use roce_model::{FlowRow, Nanos, Sink, SinkError};

use crate::captures::{Capture, Record, frames, root};
use crate::variants::pcap;

#[derive(Default)]
struct Flows(Vec<FlowRow>);

impl Sink for Flows {
    fn flows_closed(&mut self, rows: &[FlowRow]) -> Result<(), SinkError> {
        self.0.extend_from_slice(rows);
        Ok(())
    }
}

fn flows(path: &Path) -> Vec<FlowRow> {
    let reader = Reader::open(path, &roce_capture::Options::default()).unwrap();
    let mut flows = Flows::default();
    roce_pipeline::analyse(Merge::new(vec![reader]), 1, Options::default(), vec![&mut flows]).unwrap();
    flows.0
}

/// `copies` of the frames, one after another: each begins a second after the one before.
fn repeated(records: &[Record], copies: u64) -> Vec<Record> {
    let shifted = |copy: u64| {
        let records = records.iter().cloned();
        records.map(move |record| Record {
            time: Nanos(record.time.0 + copy * Nanos::SECOND),
            ..record
        })
    };
    (0..copies).flat_map(shifted).collect()
}

#[test]
fn equal_packets_have_equal_causes_whatever_was_captured_before() {
    let records = frames(&root().join(Capture::named("write_bw_loss").path));
    let counts = |copies: u64| {
        let records = repeated(&records, copies);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("copies.pcap");
        fs::write(&path, pcap(&records, Container::PcapNanos, ByteOrder::Little)).unwrap();
        let rows = flows(&path);
        let sum = |of: fn(&FlowRow) -> u64| rows.iter().map(of).sum::<u64>();
        (
            sum(|row| row.runs_nak),
            sum(|row| row.runs_timeout),
            sum(|row| row.timeout_wait_ns),
        )
    };
    // tshark's times between the packets of 10.77.0.1 before the eight runs: 48.60, 63.99, 65.58, 47.31, 63.79, 53.57, 52.75 and 63.66 ms.
    let (naks, timeouts, waited) = counts(1);
    assert_eq!((naks, timeouts), (26, 8));
    assert!(waited.abs_diff(459_250_000) < 50_000, "{waited}");
    for copies in [2, 3, 5] {
        assert_eq!(
            counts(copies),
            (copies * naks, copies * timeouts, copies * waited)
        );
    }
}
