//! Packets that a NAK names although they were captured: lost behind the tap, or overtaken there.

use roce_model::{Span, Time};

/// Such packets of one flow.
#[derive(Clone, Debug, Default)]
pub(super) struct DownstreamPackets {
    /// The PSN that a NAK last named although it was captured, until it is acknowledged, and when it was retransmitted; 0: it was not.
    psn: u64,
    again: Time,
    /// The receiver has such a PSN before its retransmission can have come.
    has_overtaken: bool,
    /// Such PSNs, and all that NAKs named although they were captured.
    overtaken: u32,
    named: u32,
    /// The shortest time that an answer took, when a NAK last came; 0: not known. Of flows of which none was measured: a quarter of the
    /// shortest time from the oldest request that was not answered to a NAK.
    rtt: Span,
    nak_took: Span,
    /// An answer was measured when a NAK last came.
    has_rtt: bool,
    /// The shortest time from a retransmission to the answer that it has arrived, while no answer was measured; 0: there was none.
    taken_after: Span,
}

impl DownstreamPackets {
    /// A NAK came at `time`. `rtt`: the shortest time that an answer took, `asked_since`: when the oldest request was sent, for the last
    /// time, that the NAK may answer; 0: not known.
    pub(super) fn measure(&mut self, time: Time, rtt: Span, asked_since: Time) {
        let took = time.since(asked_since);
        if asked_since.0 != 0 && (self.nak_took.0 == 0 || took < self.nak_took) {
            self.nak_took = took;
        }
        self.rtt = if rtt.0 == 0 {
            Span(self.nak_took.0 / 4)
        } else {
            // Only now it is known which answers came too early.
            let taken_after = core::mem::take(&mut self.taken_after);
            if taken_after.0 != 0 && is_before_round_trip(taken_after, rtt) {
                self.count_overtaken();
            }
            rtt
        };
        self.has_rtt = rtt.0 != 0;
    }

    /// A packet was captured and named by a NAK.
    pub(super) fn named(&mut self, psn: u64) {
        (self.psn, self.again) = (psn, Time(0));
        self.named = self.named.saturating_add(1);
    }

    /// The PSN that a NAK named last.
    pub(super) fn psn(&self) -> u64 {
        self.psn
    }

    /// True if that was retransmitted.
    pub(super) fn came_again(&self) -> bool {
        self.again.0 != 0
    }

    /// It was retransmitted at `time`, for the first time.
    pub(super) fn repeat(&mut self, time: Time) {
        if self.again.0 == 0 {
            self.again = time;
        }
    }

    /// The receiver has it, as an answer at `time` shows. It has the original if its answer comes before it could have the retransmission: well
    /// before the shortest round trip after that.
    #[cold]
    pub(super) fn taken(&mut self, time: Time) {
        let after = time.since(self.again);
        if self.again.0 == 0 || is_before_round_trip(after, self.rtt) {
            self.count_overtaken();
        } else if !self.has_rtt && (self.taken_after.0 == 0 || after < self.taken_after) {
            self.taken_after = after;
        }
    }

    fn count_overtaken(&mut self) {
        self.has_overtaken = true;
        self.overtaken = self.overtaken.saturating_add(1);
    }

    /// True, once, if the receiver has one that it cannot have by a retransmission: others had overtaken it.
    pub(super) fn take_overtaken(&mut self) -> bool {
        core::mem::take(&mut self.has_overtaken)
    }

    /// True if packets usually overtake each other behind the tap: four or more of those that NAKs name, and one in 16, were only late.
    pub(super) fn are_overtaken(&self) -> bool {
        self.overtaken >= 4 && self.overtaken >= self.named / 16
    }
}

/// True if an answer that came `after` a packet cannot be its answer: well before a round trip.
fn is_before_round_trip(after: Span, rtt: Span) -> bool {
    after.0.saturating_mul(5) < rtt.0.saturating_mul(4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_before_the_retransmission_arrives_is_to_the_original() {
        for (answered, is_early) in [(10_700, true), (10_800, false)] {
            let mut downstream = DownstreamPackets::default();
            // A round trip of 1 us: well before it are 0.8 us.
            downstream.measure(Time(5_000), Span(1_000), Time(0));
            downstream.named(7);
            downstream.repeat(Time(10_000));
            downstream.repeat(Time(12_000));
            downstream.taken(Time(answered));
            assert_eq!(downstream.take_overtaken(), is_early, "{answered}");
            assert!(!downstream.take_overtaken());
        }
    }

    #[test]
    fn four_and_one_in_sixteen_are_the_rule() {
        let mut downstream = DownstreamPackets::default();
        for named in 1..=80 {
            downstream.named(named);
            if named <= 4 {
                downstream.taken(Time(1));
            }
            assert_eq!(downstream.are_overtaken(), (4..80).contains(&named), "{named}");
        }
    }
}
