//! Packets that are counted by flow: retransmitted, come late, doubled by the network, doubled by a mirror.
//!
//! *Retransmitted packets*: an item is a request retransmitted that a tap recorded behind the highest PSN that it had recorded before.
//! Where only one direction was recorded, nothing tells it from a late packet: it counts neither way. Said:
//! `retransmitted_packets`; right up to the number of all packets retransmitted that were recorded.
//!
//! *Late packets*: an item is a first transmission that filled a hole, and whose hole says so for sure; a READ request is one
//! packet. Said: `late`.
//!
//! *Network duplicates*: an item is a packet that the network delivered twice and that a tap recorded twice. Said: the
//! column `duplicates_network`, when there is one.
//!
//! *Mirror copies*: an item is a frame that a mirror gave twice. Said: `taps.copies`.

use roce_model::{Cell, Columns as _, FlowColumns, FlowRow};
use roce_sim::truth::{Hole, HoleClass, PacketKind, Tap, TapFlow};

use crate::case::Case;
use crate::score::StatedConfidence;
use crate::scores::Scores;

/// A count of a flow's row, by its column's name: `None` where there is no such column, or it is absent.
pub(crate) fn column(row: &FlowRow, name: &str) -> Option<u64> {
    let mut found = None;
    FlowColumns::cells(row, |column, cell| {
        if column.name == name {
            found = match cell {
                Cell::U64(value) => Some(value),
                Cell::U32(value) => Some(u64::from(value)),
                _ => None,
            };
        }
    });
    found
}

/// The sum of a column over the epochs of a flow at a tap.
pub(crate) fn said(case: &Case, tap: &Tap, flow: &str, name: &str) -> u64 {
    let rows = case.flows_at(tap).filter(|row| row.flow_id.to_string() == flow);
    rows.filter_map(|row| column(row, name)).sum()
}

/// One kind of count of a flow at a tap.
struct Count {
    class: &'static str,
    column: &'static str,
    /// Counts that the records prove.
    sure: u64,
    /// All that happened.
    all: u64,
}

pub(crate) fn compare(case: &Case, scores: &mut Scores) {
    for tap in &case.truth.taps {
        for flow in &tap.flows {
            let paired = case.is_paired_at(tap, &flow.flow_id);
            for count in [
                retransmitted(flow, paired),
                late(tap, flow),
                duplicates(tap, flow),
            ] {
                one(case, scores, tap, flow, &count);
            }
        }
        copies(case, scores, tap);
    }
}

fn retransmitted(flow: &TapFlow, paired: bool) -> Count {
    Count {
        class: "retransmitted packets",
        column: "retransmitted_packets",
        sure: if paired {
            flow.retransmitted_behind_packets
        } else {
            0
        },
        all: flow.retransmitted_packets,
    }
}

fn late(tap: &Tap, flow: &TapFlow) -> Count {
    let of_flow = |hole: &&Hole| hole.flow_id == flow.flow_id && !hole.continues;
    let holes = tap.holes.iter().filter(of_flow);
    let unresolved = holes.clone().filter(|hole| {
        hole.class != HoleClass::Reordered
            && matches!(hole.cause, HoleClass::Unresolved | HoleClass::Reordered)
    });
    let unresolved = unresolved.count() as u64;
    let late_requests = tap.late.iter().filter(|late| {
        late.flow_id == flow.flow_id && matches!(late.kind, PacketKind::Request | PacketKind::ReadRequest)
    });
    let late_requests = late_requests.count() as u64;
    let sure = holes.filter(|hole| hole.observable && hole.class == HoleClass::Reordered);
    Count {
        class: "late packets",
        column: "late",
        sure: sure.count() as u64,
        // Packets that are neither lost nor missed came, after what was retransmitted in its place.
        all: (flow.reordered + unresolved).max(late_requests),
    }
}

fn duplicates(tap: &Tap, flow: &TapFlow) -> Count {
    let all = Case::network_duplicates(tap, &flow.flow_id);
    Count {
        class: "network duplicates",
        column: "duplicates_network",
        sure: all,
        all,
    }
}

fn one(case: &Case, scores: &mut Scores, tap: &Tap, flow: &TapFlow, count: &Count) {
    let said = said(case, tap, &flow.flow_id, count.column);
    let score = scores.of_class(count.class);
    let text = || {
        format!(
            "{}: {}: {} to {} packets, said {said}",
            tap.name, flow.flow_id, count.sure, count.all
        )
    };
    score.items += count.all.saturating_sub(count.sure);
    score.expect_many(count.sure, said, text);
    score.tell_many(StatedConfidence::Plain, said, said.min(count.all), text);
}

fn copies(case: &Case, scores: &mut Scores, tap: &Tap) {
    let rows = case.rows_of(tap);
    let said: u64 = rows.map(|row| row.copies).sum();
    let made = Case::mirror_copies(tap);
    // A packet that the network doubled has the same bytes, too.
    let all = made + tap.duplicates.len() as u64;
    let score = scores.of_class("mirror copies");
    let text = || format!("{}: {made} to {all} copies, said {said}", tap.name);
    score.expect_many(made, said, text);
    score.tell_many(StatedConfidence::Plain, said, said.min(all), text);
}
