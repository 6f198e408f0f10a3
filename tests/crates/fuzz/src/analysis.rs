//! A capture through the whole way of the data: frames, packets, flows, rows.

use std::collections::HashMap;
use std::io::Cursor;

use roce_capture::{Merge, Options as Reading, Reader};
use roce_flow::Options;
use roce_model::{FlowRow, Sink, SinkError, Span, TimelineColumns};

macro_rules! sums {
    ($($column:ident)+) => {
        #[derive(Default, Debug, PartialEq, Eq)]
        struct Sums { $($column: u64,)+ }

        impl Sums {
            fn of(row: &FlowRow) -> Self {
                Self { $($column: u64::from(row.$column),)+ }
            }

            fn add(&mut self, rows: &TimelineColumns, row: usize) {
                $(self.$column += rows.$column.at(row).map_or(0, |value| u64::from(*value));)+
            }
        }
    };
}
// The additive columns.
sums! {
    packets wire_bytes payload_bytes data_packets not_ect ect0 ect1 ce retransmitted_packets retransmitted_bytes
    missing late naks rnr_naks acks messages
}

/// A flow's name: flow, tap, epoch.
type Key = (u64, u32, u32);

#[derive(Default)]
struct Check {
    flows: HashMap<Key, Sums>,
    timeline: HashMap<Key, Sums>,
}

impl Sink for Check {
    fn timeline(&mut self, rows: &TimelineColumns) -> Result<(), SinkError> {
        for row in 0..rows.flow_id.len() {
            let (Some(flow), Some(tap), Some(epoch)) =
                (rows.flow_id.at(row), rows.tap.at(row), rows.epoch.at(row))
            else {
                panic!("a row without a key");
            };
            self.timeline
                .entry((*flow, *tap, *epoch))
                .or_default()
                .add(rows, row);
        }
        Ok(())
    }

    fn flows_closed(&mut self, rows: &[FlowRow]) -> Result<(), SinkError> {
        for row in rows {
            assert!(
                row.first_time <= row.last_time,
                "a flow that ends before it begins"
            );
            let before = self
                .flows
                .insert((row.flow_id.0, row.tap.0, row.epoch), Sums::of(row));
            assert!(before.is_none(), "two rows of one flow and epoch");
        }
        Ok(())
    }
}

/// Analyses the capture `file`. Its rows must hold the sum rule: the additive columns of a flow's timeline add up to its row.
/// Some lengths of a file run with hardly any room for flows, some on several threads.
pub fn check_analysis(file: &[u8]) {
    let max_flows = if file.len() % 4 == 0 { 4 } else { 1000 };
    let threads = if file.len() % 16 == 1 { 3 } else { 1 };
    let reading = Reading {
        block_bytes: 1 << 20,
        read_ahead: false,
        max_bytes: None,
    };
    let Ok(reader) = Reader::from_read("input", Box::new(Cursor::new(file.to_vec())), &reading) else {
        return;
    };
    let options = Options {
        bin: Span(1_000_000),
        max_flows,
        ..Options::default()
    };
    let mut check = Check::default();
    let totals = roce_pipeline::analyse(Merge::new(vec![reader]), threads, options, vec![&mut check])
        .expect("the sink takes everything");
    assert_eq!(
        check.flows, check.timeline,
        "the timeline does not add up to the flows"
    );
    let packets: u64 = check.flows.values().map(|flow| flow.packets).sum();
    assert_eq!(packets + totals.cnp, totals.roce_packets, "packets in no flow");
}
