//! READ responses: which ones are missing inside a response message.
//!
//! One direction alone shows no more: between two response messages other requests may take PSNs, so at their
//! border only what is certain is counted.

use roce_wire::{Opcode, Psn};

use crate::psn::request::LARGEST_GAP;

/// The state of a flow's READ responses.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Responses {
    /// The PSN after the last response.
    next: Psn,
    /// The PSN after the highest response.
    end: Psn,
    seen: bool,
    /// A First or Middle came last: its message goes on.
    open: bool,
    /// The longest response that was a message of its own, in bytes: the path MTU is no less.
    longest_only: u32,
    /// The latest missing responses.
    missing: MissingResponses,
}

/// Missing responses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MissingResponses {
    pub(crate) first: Psn,
    /// 0: none are, or one of them has come since.
    pub(crate) count: u32,
    /// They are behind a response that came before, and may have come before that.
    pub(crate) may_have_come: bool,
}

impl Responses {
    /// Takes a READ response; says from which PSN on how many are missing before it. Each counts once, when a response behind it comes first:
    /// below the highest one a jump passes what came, or what was counted.
    pub(crate) fn observe(&mut self, opcode: Opcode, psn: Psn) -> Option<(Psn, u32)> {
        let expected = self.next;
        let ahead = psn.offset_from(expected);
        let missing = match (self.seen, opcode.is_first()) {
            // The capture begins here, or the responder begins again at an earlier PSN.
            (false, _) => 0,
            _ if ahead < 0 => 0,
            // No message misses so many packets: its queue pair, or the capture, started again.
            _ if ahead > LARGEST_GAP => 0,
            // In its message: every PSN between is a response of that message, or of one that came whole between.
            (true, false) if self.open => ahead.unsigned_abs(),
            // A Middle or Last without its First: that one is missing, at the least.
            (true, false) => 1,
            // A First or Only while a message was open: its Last is missing, at the least.
            (true, true) => u32::from(self.open),
        };
        let may_have_come = expected != self.end;
        let is_open = self.open;
        let end = self.end;
        self.open = !opcode.is_last();
        self.next = psn.plus(1);
        if !self.seen || ahead > LARGEST_GAP || self.next.offset_from(self.end) > 0 {
            self.end = self.next;
        }
        self.seen = true;
        if missing > 0 {
            self.missing = MissingResponses {
                first: expected,
                count: missing,
                may_have_come,
            };
        } else if ahead < 0 && self.is_missing(psn) {
            self.missing.count = 0;
        }
        if !may_have_come {
            return (missing > 0).then_some((expected, missing));
        }
        let beyond = u32::try_from(psn.offset_from(end)).unwrap_or(0);
        (missing > 0 && beyond > 0 && is_open && !opcode.is_first()).then_some((end, beyond))
    }

    fn is_missing(&self, psn: Psn) -> bool {
        u32::try_from(psn.offset_from(self.missing.first)).is_ok_and(|ahead| ahead < self.missing.count)
    }

    /// The latest missing responses, once, if `psn` is one of them and none has come since.
    pub(crate) fn take_missing(&mut self, psn: Psn) -> Option<MissingResponses> {
        let missing = Some(self.missing).filter(|_| self.is_missing(psn))?;
        self.missing.count = 0;
        Some(missing)
    }

    /// Takes the length of a response that is a message of its own.
    pub(crate) fn learn_only(&mut self, payload: u32) {
        self.longest_only = self.longest_only.max(payload);
    }

    /// The longest response that was a message of its own, in bytes.
    pub(crate) const fn longest_only(self) -> u32 {
        self.longest_only
    }

    /// True if a response message has begun that did not end.
    pub(crate) const fn is_open(self) -> bool {
        self.open
    }

    /// A jump of the next request is no gap: the capture lost records, or the queue pair got another connection.
    pub(crate) fn resynchronise(&mut self) {
        *self = Self {
            longest_only: self.longest_only,
            ..Self::default()
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Opcode = Opcode(0x0d);
    const MIDDLE: Opcode = Opcode(0x0e);
    const LAST: Opcode = Opcode(0x0f);
    const ONLY: Opcode = Opcode(0x10);

    fn missing(packets: &[(Opcode, u32)]) -> u32 {
        let mut responses = Responses::default();
        packets
            .iter()
            .filter_map(|(opcode, psn)| responses.observe(*opcode, Psn::new(*psn)))
            .map(|(_, missing)| missing)
            .sum()
    }

    #[test]
    fn whole_messages_miss_nothing_whatever_lies_between() {
        assert_eq!(
            missing(&[
                (FIRST, 1),
                (MIDDLE, 2),
                (LAST, 3),
                (ONLY, 4),
                (ONLY, 9),
                (FIRST, 20)
            ]),
            0
        );
        assert_eq!(missing(&[(FIRST, 0x00ff_ffff), (LAST, 0)]), 0);
    }

    #[test]
    fn gaps_inside_a_message_are_exact() {
        assert_eq!(missing(&[(FIRST, 1), (MIDDLE, 4), (LAST, 5)]), 2);
        assert_eq!(missing(&[(FIRST, 1), (LAST, 16)]), 14);
    }

    #[test]
    fn gaps_at_the_border_count_what_is_certain() {
        assert_eq!(missing(&[(FIRST, 1), (MIDDLE, 2), (FIRST, 9)]), 1, "a Last");
        assert_eq!(missing(&[(FIRST, 1), (LAST, 2), (MIDDLE, 8)]), 1, "a First");
    }

    fn given(responses: &mut Responses, psn: u32) -> Option<(u32, u32, bool)> {
        let missing = responses.take_missing(Psn::new(psn))?;
        Some((missing.first.value(), missing.count, missing.may_have_come))
    }

    #[test]
    fn what_is_missing_is_given_once_unless_it_comes() {
        let mut responses = Responses::default();
        for (opcode, psn) in [(FIRST, 1), (MIDDLE, 2), (MIDDLE, 5)] {
            responses.observe(opcode, Psn::new(psn));
        }
        assert_eq!(given(&mut responses, 2), None);
        assert_eq!(given(&mut responses, 5), None);
        assert_eq!(given(&mut responses, 3), Some((3, 2, false)));
        assert_eq!(given(&mut responses, 3), None, "once");
        responses.observe(MIDDLE, Psn::new(7));
        responses.observe(MIDDLE, Psn::new(6));
        assert_eq!(given(&mut responses, 6), None, "it came late");
    }

    #[test]
    fn what_is_missing_below_a_response_may_have_come_before_it() {
        let mut responses = Responses::default();
        for (opcode, psn) in [(MIDDLE, 2), (FIRST, 1), (MIDDLE, 3)] {
            responses.observe(opcode, Psn::new(psn));
        }
        assert_eq!(given(&mut responses, 2), Some((2, 1, true)), "it came first");
        responses.observe(MIDDLE, Psn::new(5));
        assert_eq!(given(&mut responses, 4), Some((4, 1, false)));
    }

    #[test]
    fn responses_that_overtake_each_other_are_missing_once() {
        // 2 is missing when 3 comes; it comes, and 3 came before: the jump from 2 to 4 passes nothing that did not come.
        assert_eq!(missing(&[(FIRST, 1), (MIDDLE, 3), (MIDDLE, 2), (MIDDLE, 4)]), 1);
        // 2 and 3 when 4 comes, 5 when 6 comes.
        assert_eq!(
            missing(&[(FIRST, 1), (MIDDLE, 4), (MIDDLE, 2), (MIDDLE, 6), (LAST, 7)]),
            3
        );
        // The Last came before the Middle.
        assert_eq!(missing(&[(FIRST, 1), (LAST, 3), (MIDDLE, 2), (FIRST, 4)]), 1);
    }

    #[test]
    fn a_start_in_the_middle_and_a_retransmission_miss_nothing() {
        assert_eq!(missing(&[(MIDDLE, 7), (LAST, 8)]), 0);
        assert_eq!(
            missing(&[(FIRST, 1), (MIDDLE, 2), (FIRST, 1), (MIDDLE, 2), (LAST, 3)]),
            0
        );
    }
}
