//! READ responses that come once more because the requester requested them again. One that is jumped over inside the answer to a READ
//! did not come: if the requester goes back to just that one, it was lost once more. Where all responses to a READ are jumped over, its
//! request may have been lost as well: responders do not miss requests that they know (IBTA 9.7.5.1.4).

use core::ops::Range;

use roce_model::Time;

use crate::psn::holes::{DecidedHole, LossClass};

/// Responses to READs that were retransmitted.
#[derive(Clone, Debug, Default)]
pub(super) struct Replay {
    /// Where the latest of these READs begin; 0: there are none, or their responses came in another order.
    from: u64,
    /// The latest response.
    latest: u64,
    /// The response that comes next; 0: the first one has not come yet.
    expected: u64,
    /// It belongs to the same answer as the one before.
    is_open: bool,
    /// The first responses that were jumped over, and when.
    missing: Range<u64>,
    time: Time,
}

/// A READ response, and its place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Response {
    pub(super) psn: u64,
    pub(super) is_first: bool,
    pub(super) is_last: bool,
    /// The response after it, if that is known.
    pub(super) next: Option<u64>,
    /// Where its READ begins, if that is known.
    pub(super) begin: Option<u64>,
    pub(super) time: Time,
}

impl Replay {
    /// The response that comes next; 0: the first one has not come yet, or nothing is awaited.
    pub(super) fn expected(&self) -> u64 {
        self.expected
    }

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

    /// The response with `psn` comes for the first time.
    pub(super) fn came_new(&mut self, psn: u64) {
        self.latest = psn;
        if self.expected != 0 {
            (self.from, self.expected) = (0, 0);
        }
    }

    /// A response comes; all before `seen` have come or are missing. `ends`: where the READ of the expected one ends, if that is known.
    pub(super) fn came(&mut self, response: Response, seen: u64, ends: Option<u64>) {
        let psn = response.psn;
        let latest = core::mem::replace(&mut self.latest, psn);
        if self.from == 0 || psn < self.from {
            return;
        }
        if self.expected == 0 {
            // Responses to the READs before are still on their way.
            if psn > latest {
                return;
            }
            (self.expected, self.is_open) = (self.from, false);
        }
        let jumped = self.expected..psn.min(seen);
        let is_same_read = !response.is_first && response.begin.is_some_and(|begin| begin <= self.expected);
        let lost = match ends {
            _ if is_same_read => jumped,
            Some(ends) if self.is_open => jumped.start..jumped.end.min(ends),
            _ => 0..0,
        };
        if !lost.is_empty() && self.missing.is_empty() {
            (self.missing, self.time) = (lost, response.time);
        }
        match response.next {
            Some(next) if psn >= self.expected && psn < seen => {
                (self.expected, self.is_open) = (next, !response.is_last);
            }
            _ => (self.from, self.expected) = (0, 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The responses 10 to 19 to one READ came but for 12, and the requester goes back to that.
    fn replay() -> Replay {
        let mut replay = Replay::default();
        come(&mut replay, &[10, 11, 13, 14, 15, 16, 17, 18, 19]);
        assert_eq!(replay.begin(12), None);
        replay
    }

    fn response(psn: u64) -> Response {
        Response {
            psn,
            is_first: psn == 10,
            is_last: psn == 19,
            next: Some(psn + 1),
            begin: Some(10),
            time: Time(psn),
        }
    }

    fn come(replay: &mut Replay, psns: &[u64]) {
        for psn in psns {
            replay.came(response(*psn), 20, Some(20));
        }
    }

    fn lost(replay: &mut Replay, psn: u64) -> Option<(u64, u64, Time)> {
        let lost = replay.begin(psn)?;
        Some((lost.first, lost.end, lost.time))
    }

    #[test]
    fn the_response_that_the_requester_goes_back_to_was_lost_once_more() {
        let mut replay = replay();
        come(&mut replay, &[12, 13, 16]);
        assert_eq!(lost(&mut replay, 14), Some((14, 16, Time(16))));
        // The rest of the first answer still comes; then the second one begins, without its first response.
        come(&mut replay, &[17, 18, 19, 15, 16]);
        assert_eq!(lost(&mut replay, 14), Some((14, 15, Time(15))));
        // The requester has 15, so it had 14: the capture missed that.
        come(&mut replay, &[15, 16]);
        assert_eq!(lost(&mut replay, 16), None);
    }

    #[test]
    fn the_request_of_a_whole_answer_may_have_been_lost() {
        // READs of two responses each: 12 and 13, 14 and 15.
        let of = |psn: u64| Response {
            is_first: psn.is_multiple_of(2),
            is_last: psn % 2 == 1,
            begin: Some(psn / 2 * 2),
            ..response(psn)
        };
        for (psns, is_lost) in [([12, 13, 16], None), ([12, 14, 15], Some((13, 14, Time(14))))] {
            let mut replay = Replay::default();
            come(&mut replay, &[16]);
            assert_eq!(replay.begin(12), None);
            for psn in psns {
                let ends = replay.expected() / 2 * 2 + 2;
                replay.came(of(psn), 20, Some(ends));
            }
            let at = is_lost.map_or(14, |(first, ..)| first);
            assert_eq!(lost(&mut replay, at), is_lost);
        }
    }

    #[test]
    fn another_order_shows_nothing_more() {
        let mut replay = replay();
        come(&mut replay, &[12, 13, 14, 13, 17]);
        assert_eq!(lost(&mut replay, 15), None);
    }
}
