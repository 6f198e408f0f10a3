//! Findings about the evidence itself: checksums that are wrong, and what the capture could not show.

use std::collections::{BTreeMap, HashMap};

use roce_model::{
    Address, Confidence, Evidence, FindingRow, FlowId, FlowRow, RunSummary, Severity, Span, TapId, TapRow,
    Time,
};

use super::super::directory::{lost_behind, name_of};
use super::super::numbers::{counted, note_first, percent, reaches, share, some};
use super::missed::MissedByTaps;
use super::rule::{Context, FindingOf as _, Needs, Rule};
use super::worst::Worst;

/// Taps that are kept at most.
const MAX_TAPS: usize = 1 << 12;
/// Flows with wrong ICRCs, at each tap, that are kept at most.
const MAX_FLOWS: usize = 1 << 12;
/// Coarser stamps than this cannot order the packets of a fast link: at 100 Gb/s ten full ones come in a microsecond.
const COARSE_STAMPS: u64 = 1_000;
/// Copies from which on it is said that a tap shows packets twice, if they are a third of its packets and more: at least half of what
/// is no copy came twice.
const MIN_COPIES: u64 = 16;
/// Rows of the timeline still change for this time; what is stamped out of order by more comes in parts.
const DISORDER: Span = Span(10_000_000);

pub(super) const ICRC: Rule = Rule {
    id: "icrc.bad",
    title: "packets with a wrong ICRC",
    meaning: "The invariant CRC, which is to hold from adapter to adapter, does not fit: something on the way changed the \
              packet behind the links' own checksums, and the receiver drops it silently.",
    method: "Packets captured whole (others cannot be checked) whose ICRC is wrong, by sender. Of a sender, a share over icrc_systematic comes \
             from how its packets were captured or rewritten, not from corruption; unless they are not acknowledged and sent again: then it \
             computes them wrong. Losses behind the tap of flows with as many wrong ICRCs are these packets, and no finding of their own.",
    source: "IBTA 7.8.1 and annex A17.3.3 (ICRC of RoCEv2).",
    thresholds: &["icrc_systematic"],
    severity: Severity::Warning,
    otherwise: "info when every sender with wrong ones is over icrc_systematic, and its packets are acknowledged",
    confidence: "high: the checksum is computed; low over icrc_systematic, where the way of capturing explains it better",
    needs: Needs::Any,
    ..Rule::TALLIED
};

pub(super) const CAPTURE: Rule = Rule {
    id: "capture.quality",
    title: "what the capture could not show",
    meaning: "The capture itself has gaps or limits, and other results are less certain by them.",
    method: "Records that the capture, the kernel or a mirror lost; headers cut by the snaplen; frames that were not in the \
             order of their stamps (they are sorted over 1 ms before anything is counted); stamps out of order by more than 10 ms, \
             or coarser than 1 us, as the file states or as several frames in a row with one stamp show; mirrors that show packets twice (copies are dropped); taps with data in one direction only; flows of which a third or more is missing and was never sent again: a sample, or \
             packets that take other ways; inputs that ended early; flows and \
             episodes for which there was no room.",
    source: "pcapng ISB and EPB options, ERSPAN sequence numbers; all headers of RoCEv2 end within 96 bytes, those of MRC within 192.",
    thresholds: &["least_data_packets"],
    severity: Severity::Info,
    confidence: "high: the capture states it, shows it or lacks it",
    needs: Needs::Any,
    ..Rule::TALLIED
};

/// Requests and answers that a tap saw.
#[derive(Clone, Debug, Default)]
struct Deliveries {
    data: u64,
    answers: u64,
    paired: bool,
}

/// Senders with wrong ICRCs that are kept at most.
const MAX_SENDERS: usize = 1 << 14;

/// Checked packets of a sender at a tap.
#[derive(Clone, Copy, Debug, Default)]
struct CheckedPackets {
    all: u64,
    bad: u64,
    /// Number of packets of flows whose packets are sent again or wait, and not one of them acknowledged.
    refused: u64,
    /// Those flows.
    unanswered: u64,
}

#[derive(Clone, Debug, Default)]
pub(super) struct QualityTally {
    /// Wrong ICRCs by flow and tap, with the flow's name.
    icrc: BTreeMap<(FlowId, TapId), (u64, String)>,
    /// ICRCs that were checked, of the rows that count.
    icrc_checked: u64,
    senders: HashMap<(TapId, Address), CheckedPackets, foldhash::fast::RandomState>,
    /// Packets lost behind the tap, in flows with at least as many wrong ICRCs: the receiver drops those.
    asked_again: u64,
    icrc_first: Option<Time>,
    deliveries: HashMap<TapId, Deliveries, foldhash::fast::RandomState>,
}

impl QualityTally {
    fn check(&mut self, row: &FlowRow) {
        let key = (row.tap, row.source);
        if row.icrc_checked == 0 && row.icrc_bad == 0
            || self.senders.len() >= MAX_SENDERS && !self.senders.contains_key(&key)
        {
            return;
        }
        let sender = self.senders.entry(key).or_default();
        sender.all = sender.all.saturating_add(row.icrc_checked.max(row.icrc_bad));
        sender.bad = sender.bad.saturating_add(row.icrc_bad);
        let waits = row.retransmitted_packets > 0 || row.unanswered_time.is_some();
        if waits && row.ack_rtt_count == 0 {
            sender.refused = sender.refused.saturating_add(row.icrc_bad);
            sender.unanswered += u64::from(row.icrc_bad > 0);
        }
    }

    /// Senders that compute the ICRC wrong: nearly all of their checked packets have a wrong one, and receivers do not answer them.
    fn wrong_senders(&self, least: f64) -> Vec<(Address, CheckedPackets)> {
        let mut all: BTreeMap<Address, CheckedPackets> = BTreeMap::new();
        for ((_, address), sender) in &self.senders {
            if sender.refused > 0 && reaches(sender.bad, sender.all, least) {
                // The tap that checked most of its packets counts.
                let known = all.entry(*address).or_default();
                if sender.all > known.all {
                    *known = *sender;
                }
            }
        }
        all.into_iter().collect()
    }

    /// How many packets with a wrong ICRC were asked for again.
    pub(super) fn asked_again(&self) -> u64 {
        self.asked_again
    }

    pub(super) fn flow(&mut self, row: &FlowRow) {
        self.check(row);
        let behind = lost_behind(row);
        if row.counted && behind <= row.icrc_bad {
            self.asked_again = self.asked_again.saturating_add(behind);
        }
        if row.counted {
            self.icrc_checked = self.icrc_checked.saturating_add(row.icrc_checked);
        }
        let key = (row.flow_id, row.tap);
        if row.icrc_bad > 0 && (self.icrc.len() < MAX_FLOWS || self.icrc.contains_key(&key)) {
            let (bad, _) = self.icrc.entry(key).or_insert_with(|| (0, name_of(row)));
            *bad = bad.saturating_add(row.icrc_bad);
            note_first(&mut self.icrc_first, row.first_time);
        }
        if matches!(row.service, "RC" | "XRC")
            && (self.deliveries.len() < MAX_TAPS || self.deliveries.contains_key(&row.tap))
        {
            let seen = self.deliveries.entry(row.tap).or_default();
            seen.data = seen.data.saturating_add(row.data_packets);
            let answers = [row.acks, row.naks, row.rnr_naks, row.read_requests, row.atomics];
            seen.answers = answers.into_iter().fold(seen.answers, u64::saturating_add);
            seen.paired |= row.peer_flow_id.is_some();
        }
    }

    pub(super) fn icrc(&self, context: &Context<'_>) -> Option<FindingRow> {
        let totals = &context.run.totals;
        if totals.icrc_bad == 0 {
            return None;
        }
        // The tap that saw most packets of a flow counts.
        let all: Vec<_> = self.icrc.iter().collect();
        let mut worst = Worst::default();
        for flows in all.chunk_by(|(a, _), (b, _)| a.0 == b.0) {
            let name = flows.first().map(|(_, (_, name))| name.clone());
            let bad = flows.iter().map(|(_, (bad, _))| *bad).max();
            worst.add(bad.unwrap_or_default(), || name.unwrap_or_default());
        }
        let (checked, bad) = if context.run.hops.is_empty() {
            (totals.icrc_checked, totals.icrc_bad)
        } else {
            (self.icrc_checked, worst.sum())
        };
        let of_checked = share(bad, checked).unwrap_or(1.0);
        let share = context.thresholds.icrc_systematic;
        let with_bad = self.senders.values().filter(|sender| sender.bad > 0);
        let is_systematic =
            |sender: &CheckedPackets| reaches(sender.bad, sender.all, share) && sender.refused == 0;
        let systematic = if self.senders.is_empty() {
            reaches(bad, checked.max(bad), share)
        } else {
            with_bad.clone().all(is_systematic)
        };
        let mut evidence = Evidence::default();
        evidence
            .count("icrc_bad", bad)
            .count("icrc_checked", checked)
            .count("senders", with_bad.count() as u64)
            .count("asked_again", self.asked_again)
            .text("worst", worst.list());
        let wrong = self.wrong_senders(share);
        let (verdict, next_step) = if !wrong.is_empty() {
            (
                (Severity::Warning, Confidence::High),
                "Compare the counters of ICRC errors of {receivers} (rx_icrc_encapsulated), and replace or update the adapter, driver or program of {senders}.",
            )
        } else if systematic {
            (
                (Severity::Info, Confidence::Low),
                "Check where the capture was taken (before the adapter fills in the ICRC?) and whether something on the way \
                 rewrites addresses or ports.",
            )
        } else {
            (
                (Severity::Warning, Confidence::High),
                "Compare with the counters of ICRC errors of {receivers}, and look for the link or device that all affected flows share.",
            )
        };
        let dropped = if !wrong.is_empty() {
            let each = wrong.iter().map(|(address, sender)| {
                let flows = counted(sender.unanswered, "flow");
                format!(
                    "{} of {} packets of {address} are wrong, and {flows} got no answer",
                    sender.bad, sender.all
                )
            });
            let each: Vec<String> = each.collect();
            evidence.text("wrong_senders", some(&each, 5, each.len()));
            format!(
                ": the sender computes it wrong, and the receiver drops silently: {}",
                some(&each, 2, each.len())
            )
        } else if self.asked_again > 0 {
            let again = counted(self.asked_again, "packet");
            format!(": the receiver dropped them, {again} were asked for again")
        } else {
            String::new()
        };
        // Senders that compute it wrong are named already.
        let who = if wrong.is_empty() {
            format!(": {}", worst.names())
        } else {
            String::new()
        };
        Some(ICRC.finding(
            verdict,
            format!(
                "{} of {} checked have a wrong ICRC ({}){dropped}{who}",
                counted(bad, "packet"),
                checked.max(bad),
                percent(of_checked)
            ),
            evidence,
            next_step,
            self.icrc_first,
        ))
    }

    /// The finding about the capture. `missed` is absent where another one says that it is a sample.
    pub(super) fn capture(&self, context: &Context<'_>, missed: Option<&MissedByTaps>) -> Option<FindingRow> {
        let mut evidence = Evidence::default();
        let mut parts = Vec::new();
        let run = context.run;
        let sum = |of: fn(&roce_model::TapRow) -> u64| run.taps.iter().map(of).fold(0, u64::saturating_add);
        let mut note = |name: &'static str, count: u64, words: String| {
            if count > 0 {
                evidence.count(name, count);
                parts.push(words);
            }
        };
        let lost = run.totals.frames_lost.max(sum(|tap| tap.frames_lost));
        note(
            "frames_lost",
            lost,
            format!("{} lost by the capture", counted(lost, "record")),
        );
        let mirror = sum(|tap| tap.mirror_lost);
        note(
            "mirror_lost",
            mirror,
            format!("{} lost by a mirror", counted(mirror, "frame")),
        );
        let cut = run.totals.cut_by_snaplen;
        note(
            "cut_by_snaplen",
            cut,
            format!("the snaplen cut headers of {}", counted(cut, "packet")),
        );
        let disordered = run.taps.iter().filter(|tap| tap.out_of_order_max_ns > DISORDER.0);
        let back = disordered
            .map(|tap| tap.out_of_order_max_ns)
            .max()
            .unwrap_or_default();
        note(
            "out_of_order_max_ns",
            back,
            format!("stamps step back by up to {}", Span(back)),
        );
        repaired(run, &mut note);
        let coarse = run
            .taps
            .iter()
            .map(|tap| tap.stamp_quantum_ns)
            .filter(|quantum| *quantum > COARSE_STAMPS);
        let coarse = coarse.max().unwrap_or_default();
        note(
            "stamp_quantum_ns",
            coarse,
            format!("stamps have a resolution of {}", Span(coarse)),
        );
        let one_sided = self.one_sided(context.thresholds.least_data_packets.max(1));
        note(
            "taps_one_sided",
            one_sided,
            format!(
                "{} saw one direction only: no ACK was captured",
                counted(one_sided, "tap")
            ),
        );
        let ended = run
            .inputs
            .iter()
            .filter(|input| input.truncated || input.error.is_some())
            .count() as u64;
        note(
            "inputs_ended_early",
            ended,
            format!("{} ended early", counted(ended, "input")),
        );
        let evicted = run.totals.evicted;
        note(
            "evicted",
            evicted,
            format!("{} closed early for --max-flows", counted(evicted, "flow")),
        );
        let dropped = context.dropped;
        note(
            "episodes_dropped",
            dropped,
            format!("{} found no room", counted(dropped, "episode")),
        );
        if let Some(sample) = missed.and_then(MissedByTaps::sample) {
            evidence
                .count("sparse_flows", sample.flows)
                .count("sparse_shown", sample.coverage.shown)
                .count("sparse_absent", sample.coverage.absent())
                .number("one_in", sample.one_in());
            parts.push(sample.words());
        }
        if parts.is_empty() {
            return None;
        }
        Some(CAPTURE.finding(
            (Severity::Info, Confidence::High),
            parts.join("; "),
            evidence,
            "Capture again with a snaplen of at least 192 bytes, a larger buffer, and both directions, before trusting what \
             rests on the missing packets.",
            run.taps.iter().filter_map(|tap| tap.sorted_first_time).min(),
        ))
    }

    fn one_sided(&self, least: u64) -> u64 {
        let taps = self.deliveries.values();
        taps.filter(|seen| seen.data >= least && seen.answers == 0 && !seen.paired)
            .count() as u64
    }
}

/// Faults of captures that were repaired: records out of order, and packets that came twice.
fn repaired(run: &RunSummary, note: &mut impl FnMut(&'static str, u64, String)) {
    let sum = |of: fn(&TapRow) -> u64| run.taps.iter().map(of).fold(0, u64::saturating_add);
    let sorted = sum(|tap| tap.sorted_frames);
    let furthest = run.taps.iter().map(|tap| tap.sorted_max_ns).max();
    note(
        "sorted_frames",
        sorted,
        format!(
            "the capture was not in the order of its stamps: {} stood up to {} behind later ones, and were put in order",
            counted(sorted, "frame"),
            Span(furthest.unwrap_or_default())
        ),
    );
    let too_late = sum(|tap| tap.sorted_too_late);
    note(
        "sorted_too_late",
        too_late,
        format!("{} came too late for that", counted(too_late, "frame")),
    );
    let is_doubled = |tap: &&TapRow| tap.copies >= MIN_COPIES && tap.copies >= tap.roce_packets / 3;
    let copies = run.taps.iter().filter(is_doubled).map(|tap| tap.copies);
    let copies = copies.fold(0, u64::saturating_add);
    note(
        "copies",
        copies,
        format!("a mirror shows packets twice: {copies} of them were dropped"),
    );
}
