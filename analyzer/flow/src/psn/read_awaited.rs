//! The READ response that a requester waits for, as far as a tap shows it. It takes responses in order (IBTA 9.7.5.1.9): one that
//! comes while an earlier one is outstanding is discarded and requested again, although nothing was lost behind the tap.

/// A requester that waits for a response requests it again before it continues. After this many rounds of answers to
/// later requests, it has that response: the capture missed it, or the requester keeps responses that come out of order.
const ROUNDS: u8 = 2;

/// The response that a requester waits for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AwaitedResponse {
    /// The first response that the requester has not taken; 0: nothing is known.
    psn: u64,
    /// No READ after the last response that was taken is known: the requester takes any later one.
    is_any: bool,
    /// An answer to this PSN ends a round in which the requester took nothing; 0: it takes what comes.
    until: u64,
    rounds: u8,
    /// A response that was captured and requested again, and has not come since; 0: there is none.
    requested: u64,
    /// Responses that were requested again and taken although they did not come once more.
    overtaken: u64,
}

impl AwaitedResponse {
    /// A READ from `first` on was sent for the first time.
    pub(super) fn sent(&mut self, first: u64) {
        if self.psn == 0 || self.is_any {
            self.psn = first.max(self.psn);
            self.is_any = false;
        }
    }

    /// A response with `psn` came. `next`: the response after it, of this READ or of the next one; `None`: no READ after this one is known.
    /// Requests before `sent` have been sent.
    pub(super) fn came(&mut self, psn: u64, next: Option<u64>, sent: u64) {
        if psn == self.requested {
            self.requested = 0;
        }
        if self.psn == 0 || psn < self.psn {
            return;
        }
        let mut is_taken = psn == self.psn || self.is_any;
        if !is_taken && self.until == 0 {
            self.until = sent;
        } else if !is_taken && psn >= self.until {
            self.rounds += 1;
            self.until = sent;
            is_taken = self.rounds >= ROUNDS;
        }
        if is_taken {
            (self.until, self.rounds) = (0, 0);
            self.is_any = next.is_none();
            self.psn = next.unwrap_or(psn + 1);
        }
    }

    /// True if the requester may have had the response with `psn`, had it not been lost behind the tap.
    pub(super) fn may_have_had(&self, psn: u64) -> bool {
        self.psn == 0 || psn < self.psn
    }

    /// The requester falls back to `psn`, the response to which was captured or not.
    pub(super) fn requested_again(&mut self, psn: u64, was_captured: bool) {
        self.overtaken += u64::from(self.requested != 0 && psn > self.requested);
        self.requested = if was_captured { psn } else { 0 };
        self.psn = psn;
        (self.is_any, self.until, self.rounds) = (false, 0, 0);
    }

    /// Responses, since the last call, that were requested again and taken although they did not come once more: they were overtaken
    /// behind the tap.
    pub(super) fn take_overtaken(&mut self) -> u64 {
        core::mem::take(&mut self.overtaken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A READ of the PSNs 10 to 13; the next one, if any, begins at 14.
    fn reading() -> AwaitedResponse {
        let mut awaited = AwaitedResponse::default();
        awaited.sent(10);
        awaited
    }

    #[test]
    fn a_response_behind_a_missing_one_is_not_taken() {
        let mut awaited = reading();
        awaited.came(10, Some(11), 14);
        awaited.came(12, Some(13), 14);
        assert!(awaited.may_have_had(10));
        // 12 was discarded, and 11 came too late: the requester has neither 11 nor 12 from these.
        assert!(!awaited.may_have_had(11) && !awaited.may_have_had(12));
        awaited.came(11, Some(12), 14);
        assert!(awaited.may_have_had(11) && !awaited.may_have_had(12));
        // All in order, 11 was there for the requester to take: requested again, it was lost behind the tap.
        let mut awaited = reading();
        for psn in 10..13 {
            awaited.came(psn, Some(psn + 1), 14);
        }
        assert!(awaited.may_have_had(11));
    }

    #[test]
    fn what_is_taken_without_coming_again_was_overtaken() {
        let mut awaited = reading();
        for psn in 10..13 {
            awaited.came(psn, Some(psn + 1), 14);
        }
        awaited.requested_again(11, true);
        awaited.requested_again(12, true);
        assert_eq!((awaited.take_overtaken(), awaited.take_overtaken()), (1, 0));
        // The response comes once more before the requester goes back to the next one: it may have been lost.
        awaited.came(12, Some(13), 14);
        awaited.requested_again(13, true);
        assert_eq!(awaited.take_overtaken(), 0);
        // Once more the same: it was lost again, or is not there yet.
        awaited.requested_again(13, true);
        assert_eq!(awaited.take_overtaken(), 0);
    }

    #[test]
    fn the_next_message_goes_on_where_its_read_begins() {
        let mut awaited = reading();
        for psn in 10..13 {
            awaited.came(psn, Some(psn + 1), 14);
        }
        // 14 to 19 are writes.
        awaited.came(13, Some(20), 22);
        awaited.came(20, Some(21), 22);
        assert!(awaited.may_have_had(20));
        awaited.came(21, None, 22);
        // Nothing is known of the READ that this answers.
        awaited.came(30, Some(31), 40);
        assert!(awaited.may_have_had(30));
    }

    #[test]
    fn a_requester_that_goes_on_has_what_the_capture_missed() {
        let mut awaited = reading();
        awaited.came(11, Some(12), 14);
        awaited.came(14, Some(15), 18);
        assert!(!awaited.may_have_had(14));
        awaited.came(18, Some(19), 22);
        assert!(awaited.may_have_had(18));
    }

    #[test]
    fn a_requester_that_goes_back_says_what_it_waits_for() {
        // The READ of 10 to 19 was sent before its responses were known to answer it.
        let mut awaited = AwaitedResponse::default();
        awaited.came(12, Some(13), 20);
        assert!(awaited.may_have_had(12), "nothing is known");
        // It asks again from 11 on: it has all before 11, and takes 11 next (IBTA 9.7.5.1.9).
        awaited.requested_again(11, false);
        awaited.came(12, Some(13), 20);
        assert!(!awaited.may_have_had(12), "discarded: 11 is outstanding");
        awaited.came(11, Some(12), 20);
        assert!(awaited.may_have_had(11) && !awaited.may_have_had(12));
    }
}
