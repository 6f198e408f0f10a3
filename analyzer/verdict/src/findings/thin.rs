//! Thin captures: one in N packets, or a mirror of first and last packets, answers and CNPs. Somebody declares them, or the packets show it.
//! Their shares and counts have bounds, and rules that need more packets than they hold say nothing: they are named as what cannot be told.

use std::collections::HashMap;

use roce_model::cast::float;
use roce_model::interval::{self, Z};
use roce_model::{
    Address, CapturePart, Confidence, EpisodeKind, Evidence, FindingRow, FlowRow, Opcode, RunSummary,
    Severity,
};

use super::super::numbers::{counted, percent, some};
use super::missed::MissedByTaps;
use super::rule::{Context, FindingOf as _, Needs, Rule};

/// Senders that are counted at most.
const MAX_TALKERS: usize = 1 << 14;
/// Talkers, and opcodes, that are named.
const NAMED: usize = 5;
/// A capture that nobody declared is a sample where it has 1 in so many packets or fewer. Of more, other paths and losses of the capture are
/// explanations as well.
const MIN_ONE_IN: f64 = 3.0;
/// Fewer packets of sparse flows, or fewer first packets of messages, than this show no thin capture.
const MIN_PACKETS: u64 = 32;
/// A declared rate that differs from that of the PSNs by this factor is doubted.
const OTHER_RATE: f64 = 1.5;

pub(super) const THIN: Rule = Rule {
    id: "capture.thin",
    title: "the capture holds some of the packets only",
    meaning: "One packet in N was captured, or only first and last packets of messages, answers and CNPs. Losses, retransmissions, order and silence \
              need every packet: the rules about them are silent, and not because nothing happened.",
    method: "Declared by --sampled. Else a sample, where at each tap most packets belong to flows of which a third or more is missing and was never sent \
             again, two thirds or more of all taps' together, or where each skips two of three PSNs of requests, sent again or not; with gaps everywhere. \
             Or a mirror by opcode, where no Middle is among many First and Last, \
             and as many PSNs are missing. \
             Shares have the bounds of Wilson's interval, estimates (captured times N) those of a Poisson count, both of 95 %, as if each \
             packet were chosen by itself. `cannot_tell` lists the rules that need more packets; `explain ID` says what each needs.",
    source: "E. B. Wilson, JASA 22 (1927); RFC 5475 (sampling of packets); sFlow version 5, section 3.1.",
    thresholds: &[],
    severity: Severity::Info,
    confidence: "high: it was declared; medium: the packets show it",
    needs: Needs::Any,
    ..Rule::TALLIED
};

/// Findings that say themselves what a capture lacks: they are left out of a thin one without being named.
const OF_HOLES: [&str; 2] = ["loss.capture", "job.cannot_tell"];

/// Packets by sender, of flows that count.
#[derive(Clone, Debug, Default)]
pub(super) struct ThinTally {
    talkers: HashMap<Address, u64, foldhash::fast::RandomState>,
}

/// A capture known to be thin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ThinCapture {
    kept: KeptPackets,
    declared: bool,
    /// Number of packets of which the capture has one, by PSNs.
    by_psns: Option<f64>,
}

/// Packets that it holds.
#[derive(Clone, Copy, Debug, PartialEq)]
enum KeptPackets {
    OneIn(f64),
    Ends,
}

impl ThinTally {
    /// A flow at any tap.
    pub(super) fn flow(&mut self, row: &FlowRow) {
        if row.counted && (self.talkers.len() < MAX_TALKERS || self.talkers.contains_key(&row.source)) {
            let packets = self.talkers.entry(row.source).or_default();
            *packets = packets.saturating_add(row.packets);
        }
    }

    /// The finding, with the rules that cannot tell anything. `all`: the rules in their order.
    pub(super) fn finding(&self, thin: ThinCapture, context: &Context<'_>, all: &[Rule]) -> FindingRow {
        let run = context.run;
        let mut evidence = Evidence::default();
        evidence
            .text("kept", thin.words())
            .text("known_by", if thin.declared { "declared" } else { "packets" })
            .count("roce_packets", run.totals.roce_packets);
        let mut parts = vec![format!(
            "{} ({})",
            thin.words(),
            if thin.declared {
                "declared"
            } else {
                "as the packets show"
            }
        )];
        if let Some(by_psns) = thin.by_psns {
            evidence.number("one_in_by_psns", by_psns);
            if let KeptPackets::OneIn(one_in) = thin.kept
                && (by_psns / one_in > OTHER_RATE || one_in / by_psns > OTHER_RATE)
            {
                parts.push(format!("its PSNs show 1 in {}", short(by_psns)));
            }
        }
        parts.extend(thin.congestion(run, &mut evidence));
        self.talkers(&mut evidence);
        opcodes(run, &mut evidence);
        let unable = all
            .iter()
            .filter(|rule| !thin.proves(rule.needs) && !OF_HOLES.contains(&rule.id))
            .map(|rule| rule.id);
        evidence.text("cannot_tell", unable.collect::<Vec<_>>().join(" "));
        parts.push(format!("{} cannot be told", thin.missing()));
        THIN.finding(
            (
                Severity::Info,
                if thin.declared {
                    Confidence::High
                } else {
                    Confidence::Medium
                },
            ),
            parts.join("; "),
            evidence,
            if thin.declared {
                "Capture every packet of the flows in question, at a host or by a mirror without sampling, before saying that nothing was lost."
            } else {
                "State it with --sampled N or --sampled ends if the capture was meant so; else find out why the capture lacks packets."
            },
            run.span.map(|span| span.first),
        )
    }

    /// Notes the hosts that sent most of the packets, with the bounds of their shares.
    fn talkers(&self, evidence: &mut Evidence) {
        let all = self.talkers.values().copied().fold(0, u64::saturating_add);
        let mut most: Vec<_> = self.talkers.iter().collect();
        most.sort_by_key(|(address, packets)| (core::cmp::Reverse(**packets), **address));
        let named: Vec<String> = most
            .iter()
            .take(NAMED)
            .map(|(address, packets)| format!("{address} {}", bounded(**packets, all)))
            .collect();
        if all > 0 {
            evidence.text("talkers", some(&named, NAMED, most.len()));
        }
    }
}

/// Notes the most frequent opcodes, with the bounds of their shares.
fn opcodes(run: &RunSummary, evidence: &mut Evidence) {
    let mut most: Vec<(Opcode, u64)> = run.totals.opcodes.seen().collect();
    let all = most
        .iter()
        .map(|(_, packets)| *packets)
        .fold(0, u64::saturating_add);
    most.sort_by_key(|(opcode, packets)| (core::cmp::Reverse(*packets), opcode.0));
    let named: Vec<String> = most
        .iter()
        .take(NAMED)
        .map(|(opcode, packets)| format!("{opcode} {}", bounded(*packets, all)))
        .collect();
    if all > 0 {
        evidence.text("opcodes", some(&named, NAMED, most.len()));
    }
}

impl ThinCapture {
    /// The capture as it was declared, or as the packets of all its taps show it; `None`: it is not thin.
    pub(super) fn new(
        declared: Option<CapturePart>,
        missed: &MissedByTaps,
        run: &RunSummary,
    ) -> Option<Self> {
        let sample = missed.sample_everywhere(MIN_PACKETS);
        let kept = match declared {
            Some(CapturePart::OneIn(number)) => KeptPackets::OneIn(f64::from(number)),
            Some(CapturePart::Ends) => KeptPackets::Ends,
            None if lacks_middles(run) => KeptPackets::Ends,
            None => KeptPackets::OneIn(sample.filter(|one_in| *one_in >= MIN_ONE_IN)?),
        };
        Some(Self {
            kept,
            declared: declared.is_some(),
            by_psns: sample,
        })
    }

    /// True if the capture has the packets that a rule needs.
    pub(super) fn proves(self, needs: Needs) -> bool {
        match self.kept {
            KeptPackets::OneIn(_) => needs == Needs::Any,
            KeptPackets::Ends => needs <= Needs::Ends,
        }
    }

    /// True if the capture shows episodes of this kind. Pauses are no packets of RoCE, and the others are made of holes and rates.
    pub(crate) fn shows(kind: EpisodeKind) -> bool {
        matches!(kind, EpisodeKind::Ecn | EpisodeKind::Rnr)
    }

    fn words(self) -> String {
        match self.kept {
            KeptPackets::OneIn(one_in) => format!("1 in {} packets was captured", short(one_in)),
            KeptPackets::Ends => {
                "only first and last packets of messages, answers and CNPs were captured".to_owned()
            }
        }
    }

    /// Matters that it does not show.
    fn missing(self) -> &'static str {
        match self.kept {
            KeptPackets::OneIn(_) => "losses, retransmissions, timeouts, order and silence",
            KeptPackets::Ends => "losses between them, order and rates",
        }
    }

    /// Marks, CNPs and NAKs in words, and in the evidence with their bounds.
    fn congestion(self, run: &RunSummary, evidence: &mut Evidence) -> Vec<String> {
        let totals = &run.totals;
        let mut words = Vec::new();
        if totals.data_packets > 0 {
            let [share, low, high] = wilson(totals.data_ce, totals.data_packets);
            evidence
                .count("data_packets", totals.data_packets)
                .count("data_ce", totals.data_ce)
                .number("data_ce_share", share)
                .number("data_ce_share_low", low)
                .number("data_ce_share_high", high);
            words.push(format!(
                "marked: {}",
                bounded(totals.data_ce, totals.data_packets)
            ));
        }
        for (keys, captured, noun) in [
            (["cnp", "cnp_estimate", "cnp_low", "cnp_high"], totals.cnp, "CNP"),
            (
                ["naks", "naks_estimate", "naks_low", "naks_high"],
                totals.naks,
                "NAK",
            ),
            (
                ["rnr_naks", "rnr_naks_estimate", "rnr_naks_low", "rnr_naks_high"],
                totals.rnr_naks,
                "RNR NAK",
            ),
        ] {
            let [name, estimate, low, high] = keys;
            evidence.count(name, captured);
            let KeptPackets::OneIn(one_in) = self.kept else {
                if captured > 0 {
                    words.push(counted(captured, noun));
                }
                continue;
            };
            let [least, most] = poisson(captured);
            evidence
                .number(estimate, float(captured) * one_in)
                .number(low, least * one_in)
                .number(high, most * one_in);
            words.push(format!(
                "{}, an estimate of {:.0} ({:.0} to {:.0})",
                counted(captured, noun),
                float(captured) * one_in,
                least * one_in,
                most * one_in
            ));
        }
        words
    }

    /// The first sentence where no rule fires, after so many NAKs.
    pub(super) fn no_fault(self, naks: u64) -> String {
        // A NAK that is not fatal names a packet that did not come in time: lost, or late.
        let shown = if naks > 0 {
            format!("receivers missed packets ({})", counted(naks, "NAK"))
        } else {
            "no fault is seen in what it shows".to_owned()
        };
        let begin = self.words();
        let mut letters = begin.chars();
        let first = letters.next().map(|first| first.to_uppercase().to_string());
        format!(
            "{}{}: {shown}; {} cannot be told.",
            first.unwrap_or_default(),
            letters.as_str(),
            self.missing()
        )
    }

    /// Takes back what the counts of the run say of losses: nothing shows them.
    pub(crate) fn leave_unclear(run: &mut RunSummary) {
        let totals = &mut run.totals;
        let lost = totals.network_lost.saturating_sub(totals.network_lost_again);
        totals.ambiguous = totals.ambiguous.saturating_add(lost);
        (totals.network_lost, totals.network_lost_again) = (0, 0);
    }
}

/// True if PSNs are missing between First and Last of many messages and not one Middle was captured. Losses choose no opcodes.
fn lacks_middles(run: &RunSummary) -> bool {
    let totals = &run.totals;
    let (mut firsts, mut lasts) = (0u64, 0u64);
    for (opcode, packets) in totals.opcodes.seen() {
        match (opcode.is_first(), opcode.is_last()) {
            _ if !opcode.carries_data() => {}
            (false, false) => return false,
            (true, false) => firsts = firsts.saturating_add(packets),
            (false, true) => lasts = lasts.saturating_add(packets),
            (true, true) => {}
        }
    }
    let fates = [
        totals.capture_lost,
        totals.ambiguous,
        totals.unresolved,
        totals.network_lost,
    ];
    let missing = fates
        .into_iter()
        .fold(totals.response_missing, u64::saturating_add);
    let least = firsts.min(lasts);
    least >= MIN_PACKETS && missing >= least
}

/// A share and its bounds: Wilson's interval of 95 %.
fn wilson(part: u64, whole: u64) -> [f64; 3] {
    let samples = float(whole.max(1));
    let share = float(part.min(whole)) / samples;
    let [low, high] = interval::wilson(share, samples);
    [share, low, high]
}

/// Bounds of the number that is expected where so many were counted: the score interval of a Poisson count, 95 %.
fn poisson(count: u64) -> [f64; 2] {
    let count = float(count);
    let middle = count + Z * Z / 2.0;
    let spread = Z * (count + Z * Z / 4.0).sqrt();
    [(middle - spread).max(0.0), middle + spread]
}

/// A share with its bounds in words: `12 % (10 % to 14 %)`.
fn bounded(part: u64, whole: u64) -> String {
    let [share, low, high] = wilson(part, whole);
    format!("{} ({} to {})", percent(share), percent(low), percent(high))
}

/// A number of packets with a digit behind the point where that says something.
fn short(number: f64) -> String {
    let decimals = usize::from(number < 9.95 && (number - number.round()).abs() > 0.05);
    format!("{number:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(value: f64, expected: f64) -> bool {
        (value - expected).abs() < 5e-4
    }

    #[test]
    fn bounds_of_shares_and_counts() {
        // Wilson, 10 of 100: (0.1 + 0.01921 +- 1.96 sqrt(0.0009 + 0.000096)) / 1.0384 = 0.0552, 0.1744.
        let [share, low, high] = wilson(10, 100);
        assert!(
            near(share, 0.1) && near(low, 0.0552) && near(high, 0.1744),
            "{low} {high}"
        );
        // None of 100: 0 to 3.8416 / 103.8416 = 0.0370.
        let [_, low, high] = wilson(0, 100);
        assert!(near(low, 0.0) && near(high, 0.0370));
        assert_eq!(wilson(0, 0)[0].to_bits(), 0);
        // Score interval of 4: 5.9208 +- 1.96 sqrt(4.9604) = 1.5555, 10.2861. Of none: 0 to 3.8416.
        let [low, high] = poisson(4);
        assert!(near(low, 1.5555) && near(high, 10.2861), "{low} {high}");
        assert!(near(poisson(0)[1], 3.8416));
        assert_eq!(
            (short(10.0), short(9.81), short(3.0)),
            ("10".into(), "9.8".into(), "3".into())
        );
    }

    #[test]
    fn the_sentence_names_what_cannot_be_told() {
        let thin = ThinCapture {
            kept: KeptPackets::OneIn(10.0),
            declared: true,
            by_psns: None,
        };
        assert_eq!(
            thin.no_fault(0),
            "1 in 10 packets was captured: no fault is seen in what it shows; losses, retransmissions, timeouts, order and silence \
             cannot be told."
        );
        assert!(
            thin.no_fault(32)
                .contains(": receivers missed packets (32 NAKs); losses")
        );
    }

    #[test]
    fn messages_without_middles() {
        let run = |counts: &[(u8, u64)], missing: u64| {
            let mut run = RunSummary::default();
            for (opcode, packets) in counts {
                run.totals.opcodes.set(Opcode(*opcode), *packets);
            }
            run.totals.capture_lost = missing;
            lacks_middles(&run)
        };
        // WRITE First 0x06, Middle 0x07, Last 0x08, Only 0x0a; ACK 0x11.
        let mirror = [(0x06, 100), (0x08, 100), (0x0a, 9), (0x11, 100)];
        assert!(run(&mirror, 800));
        // Messages of two packets have no Middle.
        assert!(!run(&mirror, 3));
        assert!(!run(&[(0x06, 100), (0x07, 1), (0x08, 100)], 800));
        assert!(!run(&[(0x06, 20), (0x08, 100)], 800), "too few");
        assert!(!run(&[(0x0a, 1_000)], 800), "Only packets");
    }
}
