//! Pause frames among the frames of a capture: what they take from which flow, on any number of threads.

use std::fs;

use roce_capture::write::ByteOrder;
use roce_capture::{Container, Merge, Options as ReaderOptions, Reader};
use roce_flow::Options;
use roce_model::{Columns, EventColumns, FlowId, FlowRow, Sink, SinkError, Time, TimelineColumns};
use roce_pipeline::analyse;
use tempfile::tempdir;

use crate::captures::{Capture, Record};
use crate::variants::pcap;

const MS: u64 = 1_000_000;

/// Output to the sinks: rows as bin, flow and pause; events as words; flows.
#[derive(Default, Debug, PartialEq)]
struct Got {
    rows: Vec<(u64, FlowId, Option<u64>)>,
    events: Vec<(u64, String, Option<u32>, Option<u64>)>,
    flows: Vec<FlowRow>,
}

impl Sink for Got {
    fn timeline(&mut self, rows: &TimelineColumns) -> Result<(), SinkError> {
        for at in 0..rows.len() {
            self.rows.push((
                *rows.time.at(at).unwrap(),
                FlowId(*rows.flow_id.at(at).unwrap()),
                rows.pause_ns.at(at).copied(),
            ));
        }
        Ok(())
    }

    fn events(&mut self, rows: &EventColumns) -> Result<(), SinkError> {
        for at in 0..rows.len() {
            let kind = rows.kind.at(at).unwrap();
            if kind.starts_with("pause") {
                self.events.push((
                    *rows.time.at(at).unwrap(),
                    kind.to_string(),
                    rows.psn.at(at).copied(),
                    rows.value.at(at).copied(),
                ));
            }
        }
        Ok(())
    }

    fn flows_closed(&mut self, rows: &[FlowRow]) -> Result<(), SinkError> {
        self.flows.extend_from_slice(rows);
        Ok(())
    }
}

/// The frames with others among them, analysed at 100 Gb/s.
fn with(records: &[Record], others: &[Record], threads: u32) -> Got {
    let mut all = [records, others].concat();
    all.sort_by_key(|record| record.time);
    let folder = tempdir().unwrap();
    let path = folder.path().join("paused.pcap");
    fs::write(&path, pcap(&all, Container::PcapNanos, ByteOrder::Little)).unwrap();
    let reader = Reader::open(&path, &ReaderOptions::default()).unwrap();
    let mut got = Got::default();
    let options = Options {
        link_rate: Some(100_000_000_000),
        ..Options::default()
    };
    analyse(Merge::new(vec![reader]), threads, options, vec![&mut got]).unwrap();
    got.rows.sort_by_key(|row| (row.0, row.1.0));
    got.flows.sort_by_key(|flow| flow.flow_id.0);
    got
}

/// A PFC frame (IEEE 802.1Q 36, 802.3 31B): one priority, with its quanta.
fn pfc(time: u64, source: &[u8], priority: u8, quanta: u16) -> Record {
    let mut data = vec![0x01, 0x80, 0xc2, 0, 0, 0x01];
    data.extend(source);
    data.extend([0x88, 0x08, 0x01, 0x01, 0, 1 << priority]);
    for class in 0..8 {
        let quanta = if class == priority { quanta } else { 0 };
        data.extend(quanta.to_be_bytes());
    }
    data.resize(60, 0);
    Record {
        time: Time(time),
        original: 60,
        data,
    }
}

#[test]
fn a_receiver_that_pauses_stops_the_flow_to_it() {
    let records = Capture::named("clean_write_bw").frames();
    // A data frame from the middle: addresses, DSCP.
    let middle = &records[records.len() / 2..];
    let data = middle.iter().find(|record| record.original > 1_000).unwrap();
    let (receiver, sender) = (&data.data[..6], &data.data[6..12]);
    let priority = data.data[15] >> 5;
    let bin = data.time.0 / MS * MS;
    // 65,535 quanta of 5.12 ns: 335,539 ns.
    let to_receiver = pfc(bin + 100_000, receiver, priority, 65_535);
    let of_other = pfc(bin + 200_000, sender, (priority + 1) % 8, 65_535);
    let paused = with(&records, &[to_receiver, of_other], 1);
    assert_eq!(
        paused.events,
        [
            (bin + 100_000, "pause".to_owned(), None, Some(65_535)),
            (
                bin + 100_000,
                "pause_interval".to_owned(),
                Some(u32::from(priority)),
                Some(335_539)
            ),
            (bin + 200_000, "pause".to_owned(), None, Some(65_535)),
            (
                bin + 200_000,
                "pause_interval".to_owned(),
                Some(u32::from((priority + 1) % 8)),
                Some(335_539)
            ),
        ]
    );
    let address = |at: usize| roce_model::Address::v4(data.data[at..at + 4].try_into().unwrap());
    let flow = |source, destination| {
        let mut flows = paused
            .flows
            .iter()
            .filter(move |flow| (flow.source, flow.destination) == (source, destination));
        let flow = flows.next().unwrap();
        assert_eq!(flows.next(), None);
        flow
    };
    let there = flow(address(26), address(30));
    let back = flow(address(30), address(26));
    assert_eq!((there.pause_ns, back.pause_ns), (Some(335_539), Some(0)));
    for row in &paused.rows {
        let expected = match row.0 {
            time if time < bin => None,
            time if time == bin && row.1 == there.flow_id => Some(335_539),
            _ => Some(0),
        };
        assert_eq!(row.2, expected, "{row:?}");
    }
    for threads in [2, 3] {
        assert_eq!(
            with(
                &records,
                &[
                    pfc(bin + 100_000, receiver, priority, 65_535),
                    pfc(bin + 200_000, sender, (priority + 1) % 8, 65_535)
                ],
                threads
            ),
            paused,
            "{threads} threads"
        );
    }
}
