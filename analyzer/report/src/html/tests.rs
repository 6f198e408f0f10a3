//! The page as a whole: contents of its blocks, and no markup in them.

use std::collections::BTreeMap;
use std::io::Read;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::read::ZlibDecoder;
use roce_model::{Counter, EventKind, EventRow, SampleRow, Span, TapId, Time};
use serde_json::Value;

use super::*;
use crate::fixture::{self, FixtureRun};

fn page(made: &FixtureRun) -> String {
    let mut report = HtmlReport::new(Vec::new());
    made.feed(&mut report);
    String::from_utf8(report.into_inner()).unwrap()
}

/// The blocks of a page, inflated.
fn blocks(page: &str) -> BTreeMap<String, Vec<u8>> {
    let mut blocks = BTreeMap::new();
    for block in page
        .split("<script type=\"application/octet-stream\" id=\"data-")
        .skip(1)
    {
        let (name, rest) = block.split_once("\">").unwrap();
        let (text, _) = rest.split_once("</script>").unwrap();
        let mut bytes = Vec::new();
        ZlibDecoder::new(STANDARD.decode(text).unwrap().as_slice())
            .read_to_end(&mut bytes)
            .unwrap();
        blocks.insert(name.to_owned(), bytes);
    }
    blocks
}

fn json(page: &str, name: &str) -> Value {
    serde_json::from_slice(&blocks(page)[name]).unwrap()
}

/// Reads the series as `data.js` does: of each, its sums by metric.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn number(&mut self) -> u64 {
        let (mut value, mut shift) = (0, 0);
        loop {
            let (byte, rest) = self.0.split_first().unwrap();
            self.0 = rest;
            value |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                return value;
            }
        }
    }

    fn sums(&mut self) -> BTreeMap<&'static str, u64> {
        let metrics = self.number();
        (0..metrics)
            .map(|_| {
                let metric = usize::try_from(self.number()).unwrap();
                let (values, _) = (self.number(), self.number());
                (0..values).for_each(|_| _ = self.number());
                (METRICS[metric].0, (0..values).map(|_| self.number()).sum())
            })
            .collect()
    }
}

#[test]
fn the_document_is_that_of_the_run_without_its_flows() {
    let made = fixture::incast();
    let mut document = Vec::new();
    json::document(&made.run, &[], &mut document).unwrap();
    // The page counts in its own words the flows that it leaves out.
    let document = String::from_utf8(document).unwrap();
    let document = document.replace("  \"flows_left_out\": 0,\n", "");
    let page = blocks(&page(&made));
    assert_eq!(str::from_utf8(&page["document"]).unwrap(), document);
}

#[test]
fn what_is_drawn_adds_up_to_the_rows() {
    let made = fixture::incast();
    let page = page(&made);
    let head = json(&page, "head");
    // 100 bins of 1 ms; twelve flows, all with a series.
    assert_eq!(head["slots"], 100);
    assert_eq!(head["width"], 1_000_000);
    assert_eq!((&head["series"], &head["flows_seen"]), (&12.into(), &12.into()));
    let blocks = blocks(&page);
    let mut reader = Reader(&blocks["series"]);
    assert_eq!((reader.number(), reader.number()), (1, 0), "one tap, of number 0");
    let tap = reader.sums();
    // 10 * (12 + 11 + ... + 1) packets in a bin; a tenth of them is CE in 20 bins; see the fixture.
    assert_eq!(tap["data_packets"], 780 * 100);
    assert_eq!(tap["wire_bytes"], 780 * 100 * 1_082);
    assert_eq!(tap["ce"], 78 * 20);
    assert_eq!(tap["retransmitted_bytes"], 5_120);
    assert_eq!(reader.number(), 12);
    // The largest flow first: flow 1, with 120 packets in a bin.
    let (id, rest) = reader.0.split_at(8);
    assert_eq!(id, 1_u64.to_le_bytes());
    reader = Reader(rest);
    assert_eq!(
        (reader.number(), reader.number()),
        (0, 0),
        "its tap; nothing of it is missing"
    );
    assert_eq!(reader.sums()["data_packets"], 120 * 100);
}

#[test]
fn losses_are_drawn_by_what_became_of_them() {
    let mut report = HtmlReport::new(Vec::new());
    report.begin(Span(1_000)).unwrap();
    let mut events = EventColumns::default();
    for (kind, flow, value, detail) in [
        (EventKind::Hole, Some(7), 3, "network_lost"),
        (EventKind::Hole, Some(7), 2, "reordered"),
        (EventKind::LostAgain, Some(7), 1, ""),
        (EventKind::ResponseHole, Some(7), 5, "network_lost"),
        (EventKind::Cnp, None, 4, "somebody"),
        (EventKind::Cnp, Some(7), 9, "counted by the timeline"),
    ] {
        events.push(&EventRow {
            time: Time(5_500),
            kind,
            tap: TapId(2),
            flow_id: flow.map(FlowId),
            value: Some(value),
            detail: Some(detail.into()),
            ..EventRow::default()
        });
    }
    report.events(&events).unwrap();
    report.finish(&RunSummary::default()).unwrap();
    let page = String::from_utf8(report.into_inner()).unwrap();
    let blocks = blocks(&page);
    let mut reader = Reader(&blocks["series"]);
    assert_eq!((reader.number(), reader.number()), (1, 2));
    let expected = [
        ("cnp_unattributed", 4),
        ("network_lost", 3 + 1),
        ("reordered", 2),
        ("response_network_lost", 5),
    ];
    assert_eq!(reader.sums(), BTreeMap::from(expected));
    assert_eq!(json(&page, "head")["events_seen"], 6);
}

#[test]
fn nothing_of_a_capture_is_markup() {
    const EVIL: &str = "</script><script>alert(1)</script><img src=x onerror=alert(2)>{{script}}";
    let mut made = fixture::trouble();
    made.run.inputs[0].input = EVIL.to_owned();
    made.run.inputs[0].warnings.push(EVIL.to_owned());
    made.run.taps[0].interface = Some(EVIL.into());
    made.run.options.push((EVIL.to_owned(), EVIL.to_owned()));
    for row in &mut made.flows {
        row.comm = Some(EVIL.into());
    }
    let page = page(&made);
    assert!(!page.contains("alert("), "it is in the data alone");
    assert_eq!(
        page.matches("<script").count(),
        6,
        "five blocks of data, one script"
    );
    assert_eq!(page.matches("</script>").count(), 6);
    // There it is whole.
    let blocks = blocks(&page);
    assert!(
        blocks["tables"]
            .windows(EVIL.len())
            .any(|part| part == EVIL.as_bytes())
    );
    assert_eq!(json(&page, "document")["run"]["inputs"][0]["input"], EVIL);
}

/// Samples of CNPs that a port called `object` sent: 10 in the second before `time`.
fn samples(object: &'static str, time: Time) -> SampleColumns {
    let mut rows = SampleColumns::default();
    rows.push(&SampleRow {
        time,
        source: "host",
        node: object.into(),
        object: object.into(),
        counter: Counter::PortCnpSent.name(),
        kind: "cumulative",
        value: 10.0,
        change: Some(10.0),
        interval_ns: Some(Span::SECOND.0),
        unit: "packets",
        ..SampleRow::default()
    });
    rows
}

#[test]
fn samples_alone_have_an_axis_and_no_markup() {
    const EVIL: &str = "</script><script>alert(1)</script>\u{1b}[2J";
    let mut report = HtmlReport::new(Vec::new());
    report.begin(Span(Span::SECOND.0)).unwrap();
    let times = [5, 6, 9].map(|second| Time(second * Span::SECOND.0));
    for time in times {
        report.samples(&samples(EVIL, time)).unwrap();
    }
    report.finish(&RunSummary::default()).unwrap();
    let page = String::from_utf8(report.into_inner()).unwrap();
    assert!(!page.contains("alert("), "it is in the data alone");
    let head = json(&page, "head");
    // Seconds 5 to 9.
    assert_eq!((&head["slots"], &head["base"]), (&5.into(), &"5000000000".into()));
    let counters = json(&page, "counters");
    let layer = &counters["tracks"][0]["layers"][0];
    assert_eq!((&layer["sum"], &counters["seen"]), (&30.0.into(), &3.into()));
    // The first change ends where the axis begins.
    assert_eq!(layer["changes"][0], serde_json::json!([-1_000_000_000, 0, 10.0]));
    let object = layer["object"].as_str().unwrap();
    assert!(
        object.starts_with("</script>") && !object.contains('\u{1b}'),
        "{object}"
    );
}

#[test]
fn samples_do_not_move_the_axis_of_packets() {
    let made = fixture::incast();
    let alone = json(&page(&made), "head");
    let mut report = HtmlReport::new(Vec::new());
    report.begin(made.run.bin).unwrap();
    report.samples(&samples("a", Time(1))).unwrap();
    report.timeline(&made.timeline).unwrap();
    report.flows_closed(&made.flows).unwrap();
    report.finish(&made.run).unwrap();
    let page = String::from_utf8(report.into_inner()).unwrap();
    assert_eq!(json(&page, "head"), alone);
}

#[test]
fn a_run_without_anything_is_a_page_too() {
    let page = page(&fixture::nothing());
    let head = json(&page, "head");
    assert_eq!((&head["slots"], &head["flows_seen"]), (&0.into(), &0.into()));
    assert_eq!(head["base"], fixture::START.to_string());
}

#[test]
fn the_same_run_gives_the_same_bytes() {
    assert_eq!(page(&fixture::trouble()), page(&fixture::trouble()));
}

#[test]
fn more_flows_than_have_room_leave_those_that_matter() {
    let mut report = HtmlReport::new(Vec::new());
    let flows = 2 * MAX_FLOWS as u64 + 1;
    let row = |flow: u64| FlowRow {
        flow_id: FlowId(flow),
        wire_bytes: flow,
        // The smallest one is marked.
        ce: u64::from(flow == 1),
        ..FlowRow::default()
    };
    let rows: Vec<FlowRow> = (1..=flows).map(row).collect();
    rows.chunks(1_000)
        .for_each(|rows| report.flows_closed(rows).unwrap());
    let seen = report.flows.seen();
    let rows = report.flows.take();
    assert_eq!((rows.len(), seen), (MAX_FLOWS, flows));
    assert_eq!(rows[0].flow_id, FlowId(1));
    assert_eq!(
        rows[1].flow_id,
        FlowId(flows - MAX_FLOWS as u64 + 2),
        "the largest others"
    );
}
