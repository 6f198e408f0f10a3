//! How sure a finding is, by what of it is proven, what is likely, and what something else may explain.

use std::collections::HashMap;

use roce_model::{Address, Confidence, FlowRow, TapId};

use super::super::coverage::Coverage;
use super::super::directory::is_disturbed;
use super::missed::{ChanceSign, Doubt, MissedByTaps};

/// Pairs of hosts that are kept at most.
const MAX_HOST_PAIRS: usize = 1 << 16;

/// Parts of a sum that a finding reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Parts {
    /// Counts that the packets prove.
    pub(super) proven: u64,
    /// Counts that one explanation makes far more likely than others.
    pub(super) likely: u64,
    /// Counts that reordering or duplicates may explain as well.
    pub(super) doubtful: u64,
}

/// Pairs of hosts at a tap, by the direction of packets.
type HostPair = (TapId, Address, Address);

type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// Flows from one host to another at a tap, reported or not. Flows between the same two hosts share their paths: where the packets of
/// one overtake each other, or are missing in the capture, the others' may do so unseen.
#[derive(Clone, Copy, Debug, Default)]
struct Way {
    /// Some of their packets overtook each other or came twice.
    disturbed: bool,
    /// The capture missed some of their packets.
    missed: bool,
    /// They carry ACKs; they carry answers of any kind; they carry data.
    acks: bool,
    answers: bool,
    data: bool,
    /// They ask for data; their requests were acknowledged.
    reads: bool,
    acknowledged: bool,
}

/// The ways between hosts.
#[derive(Clone, Debug, Default)]
pub(super) struct Ways {
    pairs: Map<HostPair, Way>,
}

impl Ways {
    /// Notes a flow at any tap.
    pub(super) fn note(&mut self, row: &FlowRow) {
        let key = (row.tap, row.source, row.destination);
        if self.pairs.len() >= MAX_HOST_PAIRS && !self.pairs.contains_key(&key) {
            return;
        }
        let way = self.pairs.entry(key).or_default();
        way.disturbed |= is_disturbed(row);
        way.missed |= Coverage::from_row(row).missed > 0;
        way.acks |= row.acks > 0;
        way.answers |= row.acks > 0 || row.naks > 0 || row.rnr_naks > 0;
        way.data |= row.data_packets > 0;
        way.reads |= row.read_requests > 0 || row.atomics > 0;
        way.acknowledged |= row.ack_rtt_count > 0;
    }

    /// How much holes of the capture, and answers that it lacks, take from signs of this kind between two hosts. Without any answer
    /// nothing shows that the capture has answers at all; without an ACK nothing shows that a sender waited for one.
    fn doubt(&self, pair: HostPair, missed: &MissedByTaps, sign: ChanceSign) -> Doubt {
        let (tap, source, destination) = pair;
        let way = self.pairs.get(&pair).copied().unwrap_or_default();
        let back = self.pairs.get(&(tap, destination, source));
        let back = back.copied().unwrap_or_default();
        let reads = way.reads && back.data || back.reads && way.data;
        let here = if !(way.acknowledged || back.answers || reads) {
            Doubt::All
        } else if way.missed || back.missed || !(way.acknowledged || back.acks || reads) {
            Doubt::Some
        } else {
            Doubt::None
        };
        here.max(missed.doubt(tap, sign))
    }

    /// True if packets between two hosts overtake each other or come twice. What becomes of packets behind the tap, only the other direction
    /// shows: a sign of that kind may have its reason in what disturbs that one.
    fn is_disturbed(&self, pair: HostPair, sign: ChanceSign) -> bool {
        let is = |pair| self.pairs.get(&pair).is_some_and(|way| way.disturbed);
        let (tap, source, destination) = pair;
        is(pair) || sign == ChanceSign::Named && is((tap, destination, source))
    }
}

/// Counts of a finding by pair of hosts.
#[derive(Clone, Debug, Default)]
pub(super) struct Sure {
    pairs: Map<HostPair, Parts>,
    /// Counts of pairs that found no room.
    others: Parts,
}

impl Sure {
    fn parts(&mut self, row: &FlowRow) -> &mut Parts {
        let key = (row.tap, row.source, row.destination);
        if self.pairs.len() < MAX_HOST_PAIRS || self.pairs.contains_key(&key) {
            self.pairs.entry(key).or_default()
        } else {
            &mut self.others
        }
    }

    /// Adds losses of a flow. Proven are those that the flow's row says are; of the others a NAK or a timer is the only sign.
    ///
    /// A packet that comes again without a cause may be the first one of its PSN, later than its own retransmission: then that PSN was not
    /// lost. So each such run takes one loss from those that are proven.
    pub(super) fn add_losses(&mut self, lost: u64, row: &FlowRow) {
        let proven = row.losses_proven.min(lost).saturating_sub(row.runs_unknown);
        let others = lost - proven;
        let disturbed = is_disturbed(row);
        let parts = self.parts(row);
        parts.proven = parts.proven.saturating_add(proven);
        let sum = if disturbed {
            &mut parts.doubtful
        } else {
            &mut parts.likely
        };
        *sum = sum.saturating_add(others);
    }

    /// Adds a count of a flow: proven, unless the flow's packets overtake each other or come twice. Then a packet behind the
    /// highest can have another reason.
    pub(super) fn add(&mut self, count: u64, row: &FlowRow) {
        let disturbed = is_disturbed(row);
        let parts = self.parts(row);
        let sum = if disturbed {
            &mut parts.doubtful
        } else {
            &mut parts.proven
        };
        *sum = sum.saturating_add(count);
    }

    /// Adds a count of which another explanation is less likely, unless the flow's packets overtake each other or come twice.
    pub(super) fn add_likely(&mut self, count: u64, row: &FlowRow) {
        let disturbed = is_disturbed(row);
        let parts = self.parts(row);
        let sum = if disturbed {
            &mut parts.doubtful
        } else {
            &mut parts.likely
        };
        *sum = sum.saturating_add(count);
    }

    /// Adds a count of which nothing is certain.
    pub(super) fn add_doubtful(&mut self, count: u64, row: &FlowRow) {
        let parts = self.parts(row);
        parts.doubtful = parts.doubtful.saturating_add(count);
    }

    /// Adds timeouts of a flow. Proven are those that no other cause explains nearly as well.
    pub(super) fn add_timeouts(&mut self, row: &FlowRow) {
        let all = row.runs_timeout;
        if is_disturbed(row) {
            return self.add_doubtful(all, row);
        }
        let sure = row.runs_timeout_sure.min(all);
        let parts = self.parts(row);
        parts.proven = parts.proven.saturating_add(sure);
        parts.likely = parts.likely.saturating_add(all - sure);
    }

    /// All pairs together. Where packets of other flows overtake each other, proven counts are only likely, and likely ones
    /// doubtful.
    fn sum(&self, ways: &Ways, sign: ChanceSign, doubt: impl Fn(HostPair) -> Doubt) -> Parts {
        let mut sum = self.others;
        for (pair, parts) in &self.pairs {
            let mut parts = *parts;
            if ways.is_disturbed(*pair, sign) {
                parts = parts.weakened();
            }
            let parts = match doubt(*pair) {
                Doubt::None => parts,
                Doubt::Some => parts.without_proof(),
                Doubt::All => parts.without_proof().weakened(),
            };
            sum.proven = sum.proven.saturating_add(parts.proven);
            sum.likely = sum.likely.saturating_add(parts.likely);
            sum.doubtful = sum.doubtful.saturating_add(parts.doubtful);
        }
        sum
    }

    /// High when something is proven, medium when something is likely, low when all is doubtful. What the capture missed can bring about
    /// `sign`.
    pub(super) fn confidence(&self, ways: &Ways, missed: &MissedByTaps, sign: ChanceSign) -> Confidence {
        self.sum(ways, sign, |pair| ways.doubt(pair, missed, sign))
            .confidence()
    }

    /// Confidence of a sign that packets missed by the capture do not bring about.
    pub(super) fn confidence_alone(&self, ways: &Ways) -> Confidence {
        self.sum(ways, ChanceSign::Loss, |_| Doubt::None).confidence()
    }
}

impl Parts {
    /// One step less: proven becomes likely, and likely becomes doubtful.
    fn weakened(self) -> Self {
        Self {
            proven: 0,
            likely: self.proven,
            doubtful: self.likely.saturating_add(self.doubtful),
        }
    }

    /// Evidence without its proof: proven becomes likely.
    fn without_proof(self) -> Self {
        Self {
            proven: 0,
            likely: self.proven.saturating_add(self.likely),
            doubtful: self.doubtful,
        }
    }

    fn confidence(self) -> Confidence {
        match (self.proven, self.likely) {
            (1.., _) => Confidence::High,
            (_, 1..) => Confidence::Medium,
            _ => Confidence::Low,
        }
    }
}

/// The higher of two confidences.
pub(super) fn surer(one: Confidence, other: Confidence) -> Confidence {
    match (one, other) {
        (Confidence::High, _) | (_, Confidence::High) => Confidence::High,
        (Confidence::Medium, _) | (_, Confidence::Medium) => Confidence::Medium,
        _ => Confidence::Low,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_proven_loss_proves_that_there_are_losses() {
        let parts = |proven, likely, doubtful| {
            Parts {
                proven,
                likely,
                doubtful,
            }
            .confidence()
        };
        assert_eq!(parts(1, 5, 5), Confidence::High);
        assert_eq!(parts(0, 1, 5), Confidence::Medium);
        assert_eq!(parts(0, 0, 1), Confidence::Low);
    }

    /// Parts of a row at a tap that has nothing else.
    fn alone(row: &FlowRow, lost: u64) -> Parts {
        let (mut sure, mut ways) = (Sure::default(), Ways::default());
        ways.note(row);
        sure.add_losses(lost, row);
        sure.sum(&ways, ChanceSign::Loss, |_| Doubt::None)
    }

    #[test]
    fn a_packet_that_comes_again_without_a_cause_may_be_the_lost_one() {
        let parts = |losses_proven, runs_unknown| {
            let row = FlowRow {
                losses_proven,
                runs_unknown,
                ..FlowRow::default()
            };
            let sum = alone(&row, losses_proven);
            (sum.proven, sum.likely, sum.confidence())
        };
        assert_eq!(parts(1, 1), (0, 1, Confidence::Medium));
        assert_eq!(parts(3, 1), (2, 1, Confidence::High));
        assert_eq!(parts(1, 2), (0, 1, Confidence::Medium));
    }

    #[test]
    fn late_packets_make_a_loss_doubtful() {
        let (mut sure, mut ways) = (Sure::default(), Ways::default());
        let mut row = FlowRow {
            losses_proven: 2,
            ..FlowRow::default()
        };
        ways.note(&row);
        sure.add_losses(3, &row);
        let before = Parts {
            proven: 2,
            likely: 1,
            doubtful: 0,
        };
        assert_eq!(sure.sum(&ways, ChanceSign::Loss, |_| Doubt::None), before);
        // Another flow between these hosts has a late packet: its three other losses are doubtful, as is the first flow's, and
        // nothing is proven there: two and two are likely.
        row.late = 1;
        ways.note(&row);
        sure.add_losses(5, &row);
        let after = Parts {
            proven: 0,
            likely: 4,
            doubtful: 4,
        };
        assert_eq!(sure.sum(&ways, ChanceSign::Loss, |_| Doubt::None), after);
        sure.add(7, &row);
        assert_eq!(sure.sum(&ways, ChanceSign::Loss, |_| Doubt::None).doubtful, 11);
        // A flow between other hosts stays as it is.
        let elsewhere = FlowRow {
            tap: TapId(1),
            ..FlowRow::default()
        };
        ways.note(&elsewhere);
        sure.add(1, &elsewhere);
        assert_eq!(sure.sum(&ways, ChanceSign::Loss, |_| Doubt::None).proven, 1);
        assert_eq!(sure.confidence_alone(&ways), Confidence::High);
    }

    #[test]
    fn copies_on_the_way_back_make_a_loss_behind_the_tap_doubtful() {
        let (one, other) = (Address::v4([10, 0, 0, 1]), Address::v4([10, 0, 0, 2]));
        let confidence = |sign, duplicates_network| {
            let (mut sure, mut ways) = (Sure::default(), Ways::default());
            let responses = FlowRow {
                source: other,
                destination: one,
                data_packets: 100,
                ..FlowRow::default()
            };
            ways.note(&responses);
            ways.note(&FlowRow {
                source: one,
                destination: other,
                read_requests: 9,
                duplicates_network,
                ..FlowRow::default()
            });
            sure.add_likely(1, &responses);
            sure.confidence(&ways, &MissedByTaps::default(), sign)
        };
        assert_eq!(confidence(ChanceSign::Named, 0), Confidence::Medium);
        assert_eq!(confidence(ChanceSign::Named, 1), Confidence::Low);
        // Packets that are missing here are in the direction that shows what disturbs them.
        assert_eq!(confidence(ChanceSign::Loss, 1), Confidence::Medium);
    }

    #[test]
    fn less_evidence_never_gives_more_confidence() {
        let (one, other) = (Address::v4([10, 0, 0, 1]), Address::v4([10, 0, 0, 2]));
        let data = FlowRow {
            source: one,
            destination: other,
            data_packets: 1_000,
            packets: 1_000,
            losses_proven: 1,
            ..FlowRow::default()
        };
        let back = FlowRow {
            source: other,
            destination: one,
            ..FlowRow::default()
        };
        let confidence = |rows: &[&FlowRow]| {
            let (mut sure, mut ways) = (Sure::default(), Ways::default());
            for row in rows {
                ways.note(row);
            }
            sure.add_losses(1, rows[0]);
            sure.confidence(&ways, &MissedByTaps::default(), ChanceSign::Loss)
        };
        let acks = FlowRow {
            acks: 1,
            ..back.clone()
        };
        let naks = FlowRow {
            naks: 1,
            ..back.clone()
        };
        assert_eq!(confidence(&[&data, &acks]), Confidence::High);
        // NAKs alone, no answer at all.
        assert_eq!(confidence(&[&data, &naks]), Confidence::Medium);
        assert_eq!(confidence(&[&data, &back]), Confidence::Low);
        assert_eq!(confidence(&[&data]), Confidence::Low);
        // The capture missed a packet that arrived; an ACK that answers it makes no difference.
        let missed = FlowRow {
            capture_lost: 1,
            ..data.clone()
        };
        assert_eq!(confidence(&[&missed, &acks]), Confidence::Medium);
        // READs are answered by data.
        let reads = FlowRow {
            read_requests: 9,
            ..data
        };
        let responses = FlowRow {
            data_packets: 9,
            ..back
        };
        assert_eq!(confidence(&[&reads, &responses]), Confidence::High);
    }
}
