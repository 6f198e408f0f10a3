//! Losses between two taps. An item: a request or a READ response that the first tap recorded, and that was lost before
//! the second one. Observable: the second tap recorded other packets of the flow in files of both, one of them recorded
//! a later transmission of the packet, and the second one still recorded when the longest queue of the network would have passed the
//! packet on. Without a later transmission nobody missed the packet: the second tap may have lost its record. Before that time it may
//! only be late: all that the records show of a packet that is lost is that it does not come.
//!
//! *Hops not captured*: an item is a packet that the first tap recorded, and that passed the second without a record.
//! Observable where the second tap loses records silently and the flow is paired there.
//!
//! The truth says no side at the second tap for a connection of which nothing came there: its losses are right
//! if they are said, and not observable.
//!
//! Said: `hops.lost` without `hops.answers_lost`, and `hops.not_captured`, by flow.

use std::collections::BTreeSet;

use roce_sim::scenario::TapLoss;
use roce_sim::truth::{Loss, LossSide, PacketKind, Tap};
use roce_sim::units::{Picos, Rate};

use crate::case::Case;
use crate::score::StatedConfidence;
use crate::scores::Scores;

pub(crate) fn compare(case: &Case, scores: &mut Scores) {
    for from in &case.truth.taps {
        for to in case.truth.taps.iter().filter(|to| to.name != from.name) {
            for flow in &from.flows {
                let id = flow.flow_id.as_str();
                if case.passes(from, to, id) {
                    one(case, scores, from, to, id);
                }
            }
        }
    }
    // Any result for a path that no packet takes is wrong.
    for row in &case.seen.summary.hops {
        let tap = |number: u32| case.truth.taps.iter().find(|tap| case.is_at(tap, number));
        let (Some(from), Some(to)) = (tap(row.from_tap.0), tap(row.to_tap.0)) else {
            continue;
        };
        let flow = row.flow_id.to_string();
        if !case.passes(from, to, &flow) {
            let text = || format!("{} to {}: {flow} does not go there", from.name, to.name);
            scores.of_class("hops lost").tell_many(
                StatedConfidence::Plain,
                row.lost - row.answers_lost,
                0,
                text,
            );
        }
    }
}

fn one(case: &Case, scores: &mut Scores, from: &Tap, to: &Tap, flow: &str) {
    let rows = case.seen.summary.hops.iter().filter(|row| {
        row.flow_id.to_string() == flow && case.is_at(from, row.from_tap.0) && case.is_at(to, row.to_tap.0)
    });
    let (lost_said, missed_said) = rows.fold((0, 0), |(lost, missed), row| {
        (lost + row.lost - row.answers_lost, missed + row.not_captured)
    });
    let lost: Vec<&Loss> = case
        .truth
        .losses
        .iter()
        .filter(|loss| loss.flow_id == flow && is_data(loss.kind))
        .filter(|loss| loss.recorded_by.contains(&from.name))
        .filter(|loss| Case::side(to, loss) != Some(LossSide::Behind))
        .filter(|loss| case.is_recording(to, loss.time))
        .collect();
    let wait = longest_wait(case);
    let sure = lost
        .iter()
        .filter(|loss| Case::side(to, loss) == Some(LossSide::Before))
        .filter(|loss| is_sent_later(case, loss, &[from, to]) && !is_blind(case, to, loss.time))
        .filter(|loss| case.is_recording(to, loss.time + wait))
        .filter(|loss| loss.time + wait < case.truth.duration_ns)
        .count() as u64;
    let all = lost.len() as u64;
    let text = || {
        format!(
            "{} to {}: {flow}: {sure} to {all} lost, said {lost_said}",
            from.name, to.name
        )
    };
    let score = scores.of_class("hops lost");
    score.items += all - sure;
    score.expect_many(sure, lost_said, text);
    score.tell_many(StatedConfidence::Plain, lost_said, lost_said.min(all), text);

    // A packet can pass the second tap and miss it only once, whatever becomes of it behind that tap.
    let missed = to.capture_losses.iter().filter(|missed| missed.flow_id == flow);
    let missed: BTreeSet<(u32, u16)> = missed
        .filter(|missed| is_data(missed.kind))
        .map(|missed| (missed.psn, missed.attempt))
        .collect();
    let all = missed.len() as u64;
    let text = || {
        format!(
            "{} to {}: {flow}: {all} not captured, said {missed_said}",
            from.name, to.name
        )
    };
    let score = scores.of_class("hops not captured");
    score.items += all;
    score.tell_many(StatedConfidence::Plain, missed_said, missed_said.min(all), text);
}

/// True if one of these taps recorded a transmission of a packet after the one that was lost. The run that a lost retransmission is a
/// part of does not repeat it. READs fall back to any response: there the run counts.
fn is_sent_later(case: &Case, loss: &Loss, taps: &[&Tap]) -> bool {
    if loss.kind != PacketKind::Request {
        return case.is_sent_again(loss, taps);
    }
    case.truth.retransmissions.iter().any(|later| {
        later.flow_id == loss.flow_id
            && (later.kind, later.psn) == (loss.kind, loss.psn)
            && later.attempt > loss.attempt
            && taps.iter().any(|tap| later.recorded_by.contains(&tap.name))
    })
}

/// Time in nanoseconds in which the slowest link sends the most that any queue ever held: no packet waits for longer.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "bytes of a queue and bits in a second stay below 2^53"
)]
fn longest_wait(case: &Case) -> u64 {
    let hosts = case.parsed.host.iter().filter_map(|host| host.rate);
    let rates = hosts.chain([case.parsed.network.rate]).map(Rate::bits);
    let slowest = rates.fold(f64::INFINITY, f64::min).max(1.0);
    let longest = case.truth.queues.iter().map(|queue| queue.most_bytes).max();
    (longest.unwrap_or(0) as f64 * 8e9 / slowest) as u64
}

/// True if a tap lost all records at a time.
fn is_blind(case: &Case, tap: &Tap, time: u64) -> bool {
    case.table(tap).is_some_and(|table| {
        matches!(table.loss, Some(TapLoss::Between(gap)) if (gap.from..gap.to).contains(&Picos::from_nanos(time)))
    })
}

pub(crate) fn is_data(kind: PacketKind) -> bool {
    matches!(
        kind,
        PacketKind::Request | PacketKind::ReadRequest | PacketKind::ReadResponse
    )
}
