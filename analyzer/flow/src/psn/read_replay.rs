//! READ responses that come once more because the requester asked for them again. A responder answers READs in their order (IBTA
//! 9.7.5.1.9), so that one which is jumped over did not come: if the requester goes back to just that one, it was lost once more.

use core::ops::Range;

use roce_model::Nanos;

use crate::psn::holes::{DecidedHole, LossClass};

/// Responses to READs that were sent again.
#[derive(Clone, Debug, Default)]
pub(super) struct Replay {
    /// Where the latest of these READs begin; 0: there are none, or their responses came in another order.
    from: u64,
    /// The latest response.
    latest: u64,
    /// The response that comes next; 0: the first one has not come yet.
    expected: u64,
    /// The first responses that were jumped over, and when.
    missing: Range<u64>,
    time: Nanos,
}

impl Replay {
    /// The requester goes back to `psn`. Gives the responses that were jumped over since it did so before, if it goes back to the first
    /// of them: they were lost.
    pub(super) fn begin(&mut self, psn: u64) -> Option<DecidedHole> {
        let missing = core::mem::replace(&mut self.missing, 0..0);
        (self.from, self.expected) = (psn, 0);
        (missing.start == psn && !missing.is_empty()).then_some(DecidedHole {
            first: missing.start,
            end: missing.end,
            time: self.time,
            class: LossClass::NetworkLost,
        })
    }

    /// The response with `psn` comes at `time`; all before `seen` have come or are missing. `next`: the response after it, if that is known.
    pub(super) fn came(&mut self, psn: u64, next: Option<u64>, seen: u64, time: Nanos) {
        let latest = core::mem::replace(&mut self.latest, psn);
        if self.from == 0 || psn < self.from {
            return;
        }
        if self.expected == 0 {
            // Responses to the READs before are still on their way.
            if psn > latest {
                return;
            }
            self.expected = self.from;
        }
        let jumped = self.expected..psn.min(seen);
        match next {
            Some(next) if psn >= self.expected && psn < seen => self.expected = next,
            _ => (self.from, self.expected) = (0, 0),
        }
        if !jumped.is_empty() && self.missing.is_empty() {
            (self.missing, self.time) = (jumped, time);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The responses 10 to 19 came but for 12, and the requester goes back to that.
    fn replay() -> Replay {
        let mut replay = Replay::default();
        come(&mut replay, &[10, 11, 13, 14, 15, 16, 17, 18, 19]);
        assert_eq!(replay.begin(12), None);
        replay
    }

    fn come(replay: &mut Replay, psns: &[u64]) {
        for psn in psns {
            replay.came(*psn, Some(psn + 1), 20, Nanos(*psn));
        }
    }

    fn lost(replay: &mut Replay, psn: u64) -> Option<(u64, u64, Nanos)> {
        let lost = replay.begin(psn)?;
        Some((lost.first, lost.end, lost.time))
    }

    #[test]
    fn the_response_that_the_requester_goes_back_to_was_lost_once_more() {
        let mut replay = replay();
        come(&mut replay, &[12, 13, 16]);
        assert_eq!(lost(&mut replay, 14), Some((14, 16, Nanos(16))));
        // The rest of the first answer still comes; then the second one begins, without its first response.
        come(&mut replay, &[17, 18, 19, 15, 16]);
        assert_eq!(lost(&mut replay, 14), Some((14, 15, Nanos(15))));
        // The requester has 15, so it had 14: the capture missed that.
        come(&mut replay, &[15, 16]);
        assert_eq!(lost(&mut replay, 16), None);
    }

    #[test]
    fn new_responses_end_the_replay() {
        let mut replay = replay();
        come(&mut replay, &[12]);
        // 13 to 19 are missing once more. What is new is not a matter of this.
        replay.came(21, Some(22), 20, Nanos(21));
        replay.came(25, Some(26), 22, Nanos(25));
        assert_eq!(lost(&mut replay, 13), Some((13, 20, Nanos(21))));
        assert_eq!(lost(&mut replay, 22), None);
    }

    #[test]
    fn another_order_shows_nothing_more() {
        let mut replay = replay();
        come(&mut replay, &[12, 13, 14, 13, 17]);
        assert_eq!(lost(&mut replay, 15), None);
    }
}
