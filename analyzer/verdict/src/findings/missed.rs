//! Packets that the capture itself missed, by tap, and how often that would look like a loss of the network.
//!
//! A packet that was acknowledged and never sent again arrived, so that the capture missed it. The share of such packets is the chance
//! that the capture missed any other packet. A retransmission run begins with a packet that is missing by that chance, too, although the
//! network did not lose it. So does a silence hold a packet, or an answer, that was not captured.

use std::collections::HashMap;

use roce_model::cast::float;
use roce_model::{EventKind, EventRow, FlowRow, TapId};

use super::super::chance::at_least;
use super::super::coverage::Coverage;
use super::super::numbers::counted;

type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// Taps that are kept at most.
const MAX_TAPS: usize = 1 << 12;
/// A finding is of high confidence only where fewer signs than this are expected by chance: 1 in 20 captures has a wrong one then.
const NEVER_BY_CHANCE: f64 = 0.05;
/// Signs that the capture's own losses bring about as likely as this show nothing.
const BY_CHANCE: f64 = 0.05;
/// A capture with gaps after this share of what a random sample would have is a sample. Bursts of lost records leave few gaps.
const SAMPLE_GAPS: f64 = 0.5;

/// Numbers of one tap.
#[derive(Clone, Debug, Default)]
struct MissedAtTap {
    /// Coverage of flows whose acknowledgements were captured.
    known: Coverage,
    /// Coverage of all flows.
    all: Coverage,
    /// Coverage of sparse flows, and the number of these.
    sparse: Coverage,
    sparse_flows: u64,
    /// Coverage of those sparse flows whose gaps are events. Responses to READs of a flow without a peer have none.
    with_gaps: Coverage,
    /// Gaps that nobody filled.
    gaps: u64,
    /// Requests of flows without READs: those captured for the first time, and PSNs that were skipped and that no late packet filled.
    first_requests: u64,
    skipped: u64,
    /// Holes of these, whatever became of them.
    holes: u64,
    /// Retransmission runs, and those of them by timeout.
    runs: u64,
    timeouts: u64,
    /// Gaps that count as losses of the network.
    lost_gaps: u64,
}

impl MissedAtTap {
    /// True if sparse flows have half of the packets. A short flow may end while the network loses most of it.
    fn is_sparse(&self) -> bool {
        let sum = |of: Coverage| of.shown.saturating_add(of.absent());
        self.sparse_flows > 0 && sum(self.sparse) >= sum(self.all).div_ceil(2)
    }
}

impl MissedAtTap {
    /// True if two of three PSNs or more were skipped, in gaps everywhere. Senders may have sent them again: no network loses so many.
    fn skips_most(&self) -> bool {
        self.skipped > 0
            && self.skipped >= self.first_requests.saturating_mul(2)
            && is_random(self.holes, self.first_requests, self.skipped)
    }
}

/// True if a random sample has so many gaps: each packet of one of the share q has a gap before it by the chance 1 - q.
fn is_random(gaps: u64, shown: u64, absent: u64) -> bool {
    let all = shown.saturating_add(absent);
    let expected = float(shown) * float(absent) / float(all.max(1));
    expected > 0.0 && float(gaps) >= SAMPLE_GAPS * expected
}

/// How much the capture's own losses take from what a finding may say.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, PartialOrd, Ord)]
pub(super) enum Doubt {
    /// They explain none of its signs.
    #[default]
    None,
    /// They may explain some.
    Some,
    /// They may explain all.
    All,
}

/// A kind of sign that the capture's own losses can bring about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ChanceSign {
    /// A run that begins with a missing packet.
    Loss,
    /// A run without a captured cause.
    Timeout,
    /// A packet that was captured, and that the receiver names: no hole of the capture brings that about.
    Named,
}

/// Packets that captures missed, by tap.
#[derive(Clone, Debug, Default)]
pub(super) struct MissedByTaps {
    taps: Map<TapId, MissedAtTap>,
}

impl MissedByTaps {
    fn at(&mut self, tap: TapId) -> Option<&mut MissedAtTap> {
        (self.taps.len() < MAX_TAPS || self.taps.contains_key(&tap))
            .then(|| self.taps.entry(tap).or_default())
    }

    pub(super) fn event(&mut self, event: &EventRow) {
        if !matches!(event.kind, EventKind::Hole | EventKind::ResponseHole) {
            return;
        }
        let class = event.detail.as_deref();
        if let Some(tap) = self.at(event.tap) {
            tap.holes += u64::from(event.kind == EventKind::Hole && class != Some("reordered"));
            match class {
                Some("network_lost") => tap.lost_gaps += 1,
                Some("capture_lost" | "unresolved") => tap.gaps += 1,
                _ => {}
            }
        }
    }

    /// A flow at any tap.
    pub(super) fn flow(&mut self, row: &FlowRow) {
        if !matches!(row.service, "RC" | "XRC") {
            return;
        }
        let coverage = Coverage::from_row(row);
        let is_sparse = coverage.is_sparse();
        let Some(tap) = self.at(row.tap) else { return };
        tap.runs = tap.runs.saturating_add(row.retransmission_runs);
        tap.timeouts = tap.timeouts.saturating_add(row.runs_timeout);
        if row.read_requests == 0 && row.response_missing == 0 {
            tap.first_requests = tap.first_requests.saturating_add(coverage.shown);
            let skipped = row.missing.saturating_sub(row.reordered);
            tap.skipped = tap.skipped.saturating_add(skipped);
        }
        tap.all.add(coverage);
        if row.peer_flow_id.is_some() {
            tap.known.add(coverage);
        }
        if is_sparse {
            tap.sparse.add(coverage);
            tap.sparse_flows += 1;
            if row.peer_flow_id.is_some() || row.response_missing == 0 {
                tap.with_gaps.add(coverage);
            }
        }
    }

    /// The chance that a tap missed a packet.
    pub(super) fn rate(&self, tap: TapId) -> f64 {
        let known = self.taps.get(&tap).map(|tap| tap.known).unwrap_or_default();
        if known.missed == 0 {
            return 0.0;
        }
        float(known.missed) / float(known.missed.saturating_add(known.shown))
    }

    /// The highest of these rates.
    pub(super) fn highest_rate(&self) -> f64 {
        self.taps.keys().map(|tap| self.rate(*tap)).fold(0.0, f64::max)
    }

    /// Doubt that the tap's own losses cast on signs of this kind.
    pub(super) fn doubt(&self, tap: TapId, sign: ChanceSign) -> Doubt {
        let rate = self.rate(tap);
        let Some(tap) = self.taps.get(&tap).filter(|_| rate > 0.0) else {
            return Doubt::None;
        };
        let signs = match sign {
            ChanceSign::Loss => tap.lost_gaps,
            ChanceSign::Timeout => tap.timeouts,
            ChanceSign::Named => return Doubt::None,
        };
        // A NAK can name a packet whose retransmission was not captured.
        let trials = tap.runs.max(signs);
        if at_least(signs, trials, rate) > BY_CHANCE {
            Doubt::All
        } else if rate * float(trials) > NEVER_BY_CHANCE {
            Doubt::Some
        } else {
            Doubt::None
        }
    }

    /// True if a run at any tap is likely to have met a hole of the capture.
    pub(super) fn may_coincide(&self) -> bool {
        let mut taps = self.taps.iter();
        taps.any(|(tap, at)| self.rate(*tap) * float(at.runs) > NEVER_BY_CHANCE)
    }

    /// True if the tap shows a part of its flows only.
    pub(super) fn is_sparse(&self, tap: TapId) -> bool {
        self.taps.get(&tap).is_some_and(MissedAtTap::is_sparse)
    }

    /// True if the tap lacks two thirds or more of the flows of which it shows a part only.
    pub(super) fn lacks_most(&self, tap: TapId) -> bool {
        let tap = self.taps.get(&tap).filter(|tap| tap.is_sparse());
        tap.is_some_and(|tap| tap.sparse.absent() >= tap.sparse.shown.saturating_mul(2))
    }

    /// Number of packets of which all taps together have one, where each tap shows a random part of its flows only, by so many packets or more.
    pub(super) fn sample_everywhere(&self, least: u64) -> Option<f64> {
        let mut taps = self.taps.values().filter(|tap| tap.all != Coverage::default());
        if taps.clone().all(MissedAtTap::skips_most) {
            let sums = taps.fold((0u64, 0u64), |(first, skipped), tap| {
                (
                    first.saturating_add(tap.first_requests),
                    skipped.saturating_add(tap.skipped),
                )
            });
            let (first, skipped) = sums;
            return (first >= least).then(|| float(first.saturating_add(skipped)) / float(first.max(1)));
        }
        let is_everywhere = taps.all(MissedAtTap::is_sparse);
        let sample = self.sample().filter(|_| is_everywhere);
        let sample = sample.filter(|sample| sample.is_random && sample.with_gaps.shown >= least);
        sample.map(Sample::one_in)
    }

    /// Taps that show a part of their flows only: what they have of them, and the words for it.
    pub(super) fn sample(&self) -> Option<Sample> {
        let taps = self.taps.values().filter(|tap| tap.is_sparse());
        let mut sample = Sample::default();
        let mut gaps = 0u64;
        for tap in taps {
            sample.coverage.add(tap.sparse);
            sample.with_gaps.add(tap.with_gaps);
            sample.flows = sample.flows.saturating_add(tap.sparse_flows);
            gaps = gaps.saturating_add(tap.gaps);
        }
        sample.is_random = is_random(gaps, sample.with_gaps.shown, sample.with_gaps.absent());
        (sample.flows > 0 && sample.coverage.shown > 0).then_some(sample)
    }
}

/// Flows of which the capture shows a part only.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sample {
    pub(super) coverage: Coverage,
    pub(super) flows: u64,
    /// Coverage of those flows whose gaps are known.
    with_gaps: Coverage,
    /// Gaps are everywhere, not in a few places.
    is_random: bool,
}

impl Sample {
    /// Number of packets of which the capture shows one.
    pub(super) fn one_in(self) -> f64 {
        let Coverage { shown, .. } = self.coverage;
        float(shown.saturating_add(self.coverage.absent())) / float(shown.max(1))
    }

    /// It in words.
    pub(super) fn words(self) -> String {
        let Coverage { shown, .. } = self.coverage;
        let all = shown.saturating_add(self.coverage.absent());
        let flows = counted(self.flows, "flow");
        let here = format!("{shown} of {all} packets of {flows} are here");
        if self.is_random {
            let one_in = self.one_in();
            let decimals = usize::from(one_in < 9.95);
            format!(
                "{here}, 1 in {one_in:.decimals$}, with gaps everywhere: it is a sample, or the packets take other ways as well"
            )
        } else if self.with_gaps == Coverage::default() {
            here
        } else {
            format!("{here}, the others are missing at once")
        }
    }
}

#[cfg(test)]
mod tests {
    use roce_model::FlowId;

    use super::*;

    /// A paired flow with `retransmission_runs` runs.
    fn row(packets: u64, capture_lost: u64, runs: u64) -> FlowRow {
        FlowRow {
            service: "RC",
            peer_flow_id: Some(FlowId(7)),
            packets,
            capture_lost,
            retransmission_runs: runs,
            ..FlowRow::default()
        }
    }

    fn lost_gap() -> EventRow {
        EventRow {
            kind: EventKind::Hole,
            detail: Some("network_lost".into()),
            ..EventRow::default()
        }
    }

    #[test]
    fn losses_as_rare_as_holes_of_the_capture_are_doubtful() {
        let doubt = |packets, capture_lost, runs, lost: usize| {
            let mut missed = MissedByTaps::default();
            missed.flow(&row(packets, capture_lost, runs));
            (0..lost).for_each(|_| missed.event(&lost_gap()));
            missed.doubt(TapId(0), ChanceSign::Loss)
        };
        // Nothing was missed.
        assert_eq!(doubt(1_000, 0, 10, 1), Doubt::None);
        // 1 in 100 missed: one of ten runs begins with a hole in 1 of 10 such captures.
        assert_eq!(doubt(990, 10, 10, 1), Doubt::All);
        // All ten do not. But one may.
        assert_eq!(doubt(990, 10, 10, 10), Doubt::Some);
        // 1 in 100,000 missed: ten runs meet a hole in 1 of 10,000 captures.
        assert_eq!(doubt(99_999, 1, 10, 10), Doubt::None);
    }

    #[test]
    fn a_sample_of_what_was_sent_again_is_one() {
        // 100 of 1,000 PSNs are here, and the sender went back so that most others came. Each of the 100 has a gap before it by the chance 9/10.
        let one_in = |missing: u64, reordered: u64, holes: usize| {
            let mut missed = MissedByTaps::default();
            missed.flow(&FlowRow {
                missing,
                reordered,
                network_lost: missing,
                retransmitted_packets: 20,
                ..row(120, 0, 20)
            });
            (0..holes).for_each(|_| missed.event(&lost_gap()));
            missed.sample_everywhere(32)
        };
        assert_eq!(one_in(900, 0, 90), Some(10.0));
        // One blackout; packets that others overtook; half of the packets lost.
        assert_eq!(one_in(900, 0, 1), None);
        assert_eq!(one_in(900, 800, 90), None);
        assert_eq!(one_in(100, 0, 50), None);
    }

    #[test]
    fn responses_of_an_unknown_connection_have_no_gaps_to_count() {
        let gap = EventRow {
            kind: EventKind::Hole,
            detail: Some("capture_lost".into()),
            ..EventRow::default()
        };
        // 100 of 1,000 responses are here. The READs are not, so that nobody knows where responses are missing.
        let responses = FlowRow {
            service: "RC",
            packets: 100,
            response_missing: 900,
            ..FlowRow::default()
        };
        let one_in = |gaps: usize, rows: &[&FlowRow]| {
            let mut missed = MissedByTaps::default();
            for row in rows {
                missed.flow(row);
            }
            (0..gaps).for_each(|_| missed.event(&gap));
            missed.sample_everywhere(32)
        };
        // 100 of 900: a random sample has 100 * 800 / 900 = 89 gaps, bursts leave fewer than half of them. 1,900 of which 200 are here.
        let data = row(100, 800, 0);
        assert_eq!(one_in(80, &[&data, &responses]), Some(9.5));
        assert_eq!(one_in(40, &[&data, &responses]), None);
        assert_eq!(one_in(0, &[&responses]), None);
        // 20 packets are too few to tell.
        assert_eq!(one_in(18, &[&row(20, 160, 0), &responses]), None);
    }

    #[test]
    fn a_sample_is_told_by_its_share() {
        // Each tenth.
        let coverage = Coverage {
            shown: 100,
            missed: 800,
            unclear: 100,
        };
        let sample = Sample {
            coverage,
            flows: 1,
            with_gaps: coverage,
            is_random: true,
        };
        assert!(
            sample
                .words()
                .contains("100 of 1000 packets of 1 flow are here, 1 in 10,")
        );
    }
}
