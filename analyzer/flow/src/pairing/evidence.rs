//! Evidence that two flows are the two directions of one connection, and its thresholds. `analysis`
//! gathers it from packets, and `known_peers` has the connection manager's.

use roce_model::{FlowId, Span, Time};
use roce_wire::Psn;

use crate::pairing::outstanding::Handle;

/// Kind of evidence that paired two flows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PairingEvidence {
    /// The connection manager's messages name both queue pairs.
    Cm,
    /// The host that has one of the two queue pairs says which the other is.
    Host,
    /// Both use the UDP source port that follows from the two queue pairs' numbers, and answers fit.
    Sport,
    /// Answers of each fit requests of the other, and of no other flow.
    Psn,
}

impl PairingEvidence {
    /// The name, as written in tables.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Cm => "cm",
            Self::Host => "host",
            Self::Sport => "sport",
            Self::Psn => "psn",
        }
    }
}

/// The other direction of a flow, as its row in `flows` tells it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Peer {
    pub(crate) id: FlowId,
    pub(crate) how: PairingEvidence,
    /// Answers that fitted one flow alone; with [`Pairing::Psn`].
    pub(crate) matches: Option<u64>,
}

/// Rounds that are enough: the request of each was sent after the answer of the one before. One answer may fit the request of
/// a flow with PSNs alike while its own request was lost by the capture.
const ENOUGH_ROUNDS: u32 = 4;
/// Rounds that suffice at the start of a capture. Answers may then be for requests sent before it. They
/// fit requests of other flows with similar PSNs, as many of them as one flow has outstanding.
const ENOUGH_ROUNDS_AT_BEGIN: u32 = 12;
/// Matches that are enough where no other flow between the two hosts has PSNs near.
pub(crate) const SOLE_MATCHES: u32 = 2;
/// PSNs of two flows are far from each other from this distance on: farther than a flow advances while another waits for its
/// answer, a second at 100 Gbit/s with 1 KiB packets. Flows that all began at PSN 0 are near each other.
pub(crate) const FAR_PSNS: i32 = 1 << 18;
/// Length of a capture's start: longer than any answer takes without a timeout before it.
pub(crate) const CAPTURE_START: Span = Span(10_000_000);
/// Unique matches that suffice without rounds: all requests of a short capture may be sent at once.
const ENOUGH_AT_ONCE: u32 = 32;
/// The best candidate needs this multiple of the second one's matches.
const CLEARLY: u32 = 4;
/// Matches that outweigh one contradiction: captures lose packets, but not as many.
const AGAINST_ONE_CONTRADICTION: u32 = 8;
/// Evidence is halved when so much of it has come together: what was true long ago weighs less and less.
const HALVED_AT: u32 = 128;
/// Flows that are considered at once.
const CLAIMS: usize = 4;

/// One flow that may be the other direction.
#[derive(Clone, Copy, Debug, Default)]
struct Claim {
    who: Handle,
    matches: u32,
    contradictions: u32,
    rounds: u32,
    /// Number of the rounds after the capture's beginning.
    settled_rounds: u32,
    /// Time of the last round's answer.
    round: Time,
}

/// Evidence of an unpaired flow's other direction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Evidence {
    claims: [Claim; CLAIMS],
    /// Its answers that fitted several flows.
    ties: u32,
    /// The last of its requests that an answer fitted which fitted no other flow, and whose answer it was.
    answered: Option<(Psn, Handle)>,
}

impl Evidence {
    fn claim(&self, who: Handle) -> Option<&Claim> {
        self.claims
            .iter()
            .find(|claim| claim.who == who && claim.who.serial != 0)
    }

    /// An answer between this flow and `who` fitted a request, sent at `requested`, of no other flow. Before
    /// `settled` the capture may be at its start.
    pub(crate) fn matched(&mut self, who: Handle, requested: Time, answered: Time, settled: Time) {
        if let Some(claim) = self
            .claims
            .iter_mut()
            .find(|claim| claim.who == who && claim.matches > 0)
        {
            claim.matches += 1;
            if requested > claim.round {
                claim.rounds += 1;
                claim.settled_rounds += u32::from(answered >= settled);
                claim.round = answered;
            }
        } else if let Some(weakest) = self.claims.iter_mut().min_by_key(|claim| claim.matches) {
            // Frequent ones stay, whatever comes between (Misra and Gries, 1982).
            if weakest.matches > 0 {
                for claim in &mut self.claims {
                    claim.matches -= 1;
                }
                return;
            }
            *weakest = Claim {
                who,
                matches: 1,
                rounds: 1,
                settled_rounds: u32::from(answered >= settled),
                round: answered,
                ..Claim::default()
            };
        }
        self.fade();
    }

    /// An answer of this flow fitted requests of several.
    pub(crate) fn tied(&mut self) {
        self.ties += 1;
        self.fade();
    }

    /// `who` cannot have sent the request that this flow answered.
    pub(crate) fn contradicted(&mut self, who: Handle) {
        let known = self
            .claims
            .iter_mut()
            .find(|claim| claim.who == who && claim.matches > 0);
        if let Some(claim) = known {
            claim.contradictions += 1;
        }
    }

    fn fade(&mut self) {
        let matches: u32 = self.claims.iter().map(|claim| claim.matches).sum();
        if matches + self.ties >= HALVED_AT {
            self.ties /= 2;
            for claim in &mut self.claims {
                claim.matches /= 2;
                claim.contradictions /= 2;
            }
        }
    }

    /// The flows with matches.
    pub(crate) fn candidates(&self) -> impl Iterator<Item = Handle> {
        self.claims
            .iter()
            .filter(|claim| claim.matches > 0)
            .map(|claim| claim.who)
    }

    /// Number of matches for `who`, when they suffice, are clearly more than those of any other flow,
    /// and not fewer than the answers that fitted several.
    pub(crate) fn agrees(&self, who: Handle) -> Option<u32> {
        let claim = self.claim(who)?;
        let others = self.claims.iter().filter(|claim| claim.who != who);
        let second = others.map(|claim| claim.matches).max().unwrap_or_default();
        let is_enough = claim.settled_rounds >= ENOUGH_ROUNDS
            || claim.rounds >= ENOUGH_ROUNDS_AT_BEGIN
            || claim.matches >= ENOUGH_AT_ONCE;
        let agrees = is_enough
            && claim.matches >= second * CLEARLY
            && claim.matches >= claim.contradictions * AGAINST_ONE_CONTRADICTION
            && claim.matches >= self.ties;
        agrees.then_some(claim.matches)
    }

    /// True if `who` alone has matches, at least `enough`, and no contradiction. That counts where the
    /// PSNs of other flows are far off. By chance an answer falls on what one flow has outstanding, some
    /// hundred PSNs of 2^24, in one of 10^5 cases, and two answers in one of 10^10.
    pub(crate) fn is_sole(&self, who: Handle, enough: u32) -> Option<u32> {
        let claim = self.claim(who)?;
        let others = self
            .claims
            .iter()
            .any(|claim| claim.who != who && claim.matches > 0);
        let is_sole = claim.matches >= enough && claim.contradictions == 0 && self.ties == 0 && !others;
        is_sole.then_some(claim.matches)
    }

    /// An answer of `by` fitted this flow's request `psn`, and no other flow's.
    pub(crate) fn answer(&mut self, psn: Psn, by: Handle) {
        self.answered = Some((psn, by));
    }

    /// True if this flow's request `psn` had been answered by another flow than `by`: then an answer of `by` is rather
    /// not for it.
    pub(crate) fn is_answered_by_another(&self, psn: Psn, by: Handle) -> bool {
        self.answered
            .is_some_and(|(last, other)| other != by && last.offset_from(psn) >= 0)
    }

    /// True if `by` had answered this flow's request `psn` before.
    pub(crate) fn is_answered_by(&self, psn: Psn, by: Handle) -> bool {
        self.answered
            .is_some_and(|(last, other)| other == by && last.offset_from(psn) >= 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::slot;

    fn handle(number: u32) -> Handle {
        Handle {
            at: slot(number),
            serial: number + 1,
        }
    }

    /// Evidence of `matches` answers, each a microsecond after its request, one after the other.
    fn evidence(matches: &[u32]) -> Evidence {
        let mut evidence = Evidence::default();
        for (time, who) in (1..).zip(matches) {
            evidence.matched(
                handle(*who),
                Time(time * 10_000),
                Time(time * 10_000 + 1_000),
                Time(0),
            );
        }
        evidence
    }

    #[test]
    fn four_rounds_are_enough() {
        assert_eq!(evidence(&[1, 1, 1]).agrees(handle(1)), None);
        assert_eq!(evidence(&[1, 1, 1, 1]).agrees(handle(1)), Some(4));
        assert_eq!(evidence(&[1, 1, 1, 1]).agrees(handle(2)), None);
    }

    #[test]
    fn requests_sent_at_once_need_more() {
        let mut evidence = Evidence::default();
        for answer in 0..31 {
            evidence.matched(handle(1), Time(100), Time(1_000 + answer), Time(0));
        }
        assert_eq!(evidence.agrees(handle(1)), None);
        evidence.matched(handle(1), Time(100), Time(2_000), Time(0));
        assert_eq!(evidence.agrees(handle(1)), Some(32));
    }

    #[test]
    fn rounds_at_the_begin_of_a_capture_weigh_less() {
        let mut evidence = Evidence::default();
        let mut add = |time| {
            evidence.matched(handle(1), Time(time), Time(time + 5), Time(1_000));
            evidence.agrees(handle(1))
        };
        assert!((0..11).all(|round| add(round * 10).is_none()));
        assert_eq!(add(110), Some(12));
        let mut evidence = Evidence::default();
        for time in [0, 10, 20, 30, 40, 1_000, 1_010, 1_020] {
            evidence.matched(handle(1), Time(time), Time(time + 5), Time(1_000));
        }
        assert_eq!(evidence.agrees(handle(1)), None, "five, and three");
        evidence.matched(handle(1), Time(1_030), Time(1_035), Time(1_000));
        assert_eq!(evidence.agrees(handle(1)), Some(9));
    }

    #[test]
    fn the_second_must_be_far_behind() {
        assert_eq!(evidence(&[2, 1, 1, 1]).agrees(handle(1)), None);
        assert_eq!(evidence(&[2, 1, 1, 1, 1]).agrees(handle(1)), Some(4));
        assert_eq!(evidence(&[2, 2, 1, 1, 1, 1, 1, 1, 1]).agrees(handle(1)), None);
    }

    #[test]
    fn ties_and_contradictions_outweigh() {
        let mut tied = evidence(&[1, 1, 1, 1]);
        (0..4).for_each(|_| tied.tied());
        assert_eq!(tied.agrees(handle(1)), Some(4));
        tied.tied();
        assert_eq!(tied.agrees(handle(1)), None);
        let mut contradicted = evidence(&[1; 7]);
        contradicted.contradicted(handle(1));
        assert_eq!(contradicted.agrees(handle(1)), None);
        contradicted.matched(handle(1), Time(0), Time(0), Time(0));
        assert_eq!(contradicted.agrees(handle(1)), Some(8));
    }

    #[test]
    fn old_ties_fade() {
        let mut evidence = Evidence::default();
        (0..10_000).for_each(|_| evidence.tied());
        let needed = (1..1_000)
            .find(|matches| {
                evidence.matched(handle(1), Time(matches * 10), Time(matches * 10 + 1), Time(0));
                evidence.agrees(handle(1)).is_some()
            })
            .unwrap();
        assert!(needed <= 128, "{needed}");
    }

    #[test]
    fn a_frequent_one_is_not_driven_out() {
        // Every second one is flow 1, the others are 50 different ones.
        let order: Vec<u32> = (0..100).map(|i| if i % 2 == 0 { 1 } else { i }).collect();
        assert!(evidence(&order).claim(handle(1)).is_some());
    }
}
