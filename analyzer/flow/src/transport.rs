//! The four questions that a transport answers of one direction of a connection: which packets are missing, which are late, which were
//! retransmitted and why, and which were acknowledged.
//!
//! The tracker of [`crate::psn`] answers them for RC and XRC. Another transport is a folder beside that one with a type of its own for
//! requests, answers and state. Who calls it knows at compile time which one is meant: a packet goes to the analysis of its transport by
//! its opcode, where the opcode is looked at anyway, and no transport's packets pass a test for another one.

use roce_model::Time;
use roce_wire::Psn;

use crate::psn::holes::DecidedHole;
use crate::psn::request::{Requests, Verdict};
use crate::psn::run::EndedRun;
use crate::psn::undecided::Decision;

/// The knowledge of one transport about the requests of one flow.
pub(crate) trait Transport {
    /// A request, with what it is judged by.
    type Request;
    /// An answer to requests.
    type Answer;

    /// Judges a request: in order, behind others that are missing, late, or retransmitted.
    fn observe(&mut self, requests: &mut Requests, request: &Self::Request) -> Verdict;

    /// Takes an answer: what it acknowledges, and what it shows to be lost behind the tap.
    fn answer(&mut self, requests: &Requests, answer: &Self::Answer) -> AnswerEvidence;

    /// Missing PSNs of which it was decided until `now`, since the last call, what became of them. At the `end` nothing waits.
    /// `only_reads`: the flow has no other requests, of which each takes one PSN.
    fn take_missing(&mut self, end: bool, only_reads: bool, now: Time) -> Vec<DecidedHole>;

    /// A decision, since the last call, on packets that later ones showed to be late or retransmitted.
    fn take_decision(&mut self) -> Option<Decision>;

    /// A run of retransmissions that has ended since the last call, with what its cause is found by.
    fn take_run(&mut self) -> Option<EndedRun>;

    /// The end of the flow's epoch at `end`, when its tap still captured: nothing more will be known.
    fn close(&mut self, end: Time);
}

/// The evidence of an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct AnswerEvidence {
    /// It acknowledges something new.
    pub(crate) is_new: bool,
    /// A packet that was captured did not reach the receiver: its PSN, and how often.
    pub(crate) lost_downstream: Option<(Psn, u32)>,
    /// The receiver has a packet that it had named in a NAK and that was not retransmitted: it was overtaken behind the tap.
    pub(crate) was_overtaken: bool,
}

/// The rules that each transport keeps, whatever its packets look like.
#[cfg(test)]
pub(crate) mod rules {
    use super::*;

    /// A connection's requests of 1 us each, as a transport has them.
    pub(crate) struct Connection<T, R, A> {
        pub(crate) transport: T,
        pub(crate) requests: Requests,
        /// A request by its PSN and time.
        pub(crate) request: R,
        /// An answer that acknowledges all before a position, by that and its time.
        pub(crate) acknowledgement: A,
        pub(crate) now: u64,
    }

    impl<T: Transport, R: Fn(u32, Time) -> T::Request, A: Fn(u64, Time) -> T::Answer> Connection<T, R, A> {
        fn see(&mut self, psn: u32) -> Verdict {
            self.now += 1_000;
            let request = (self.request)(psn, Time(self.now));
            self.transport.observe(&mut self.requests, &request)
        }

        fn acknowledge(&mut self, covered: u64) -> AnswerEvidence {
            self.now += 1_000;
            let answer = (self.acknowledgement)(covered, Time(self.now));
            self.transport.answer(&self.requests, &answer)
        }

        /// Verifies that an acknowledgement is new once, that a missing packet has one fate, and that packets in order are no news.
        pub(crate) fn keeps_the_rules(mut self) {
            for psn in 100..110 {
                assert_eq!(self.see(psn), Verdict::InOrder);
            }
            let begin = self.requests.next - 10;
            assert!(self.transport.take_decision().is_none() && self.transport.take_run().is_none());
            assert!(self.acknowledge(begin + 5).is_new);
            assert_eq!(self.acknowledge(begin + 5), AnswerEvidence::default());
            // 110 and 111 are missing, 114 as well; 114 comes a packet later.
            for psn in [112, 113, 115, 114, 116] {
                self.see(psn);
            }
            self.transport.close(Time(self.now));
            let mut decided = Vec::new();
            for _ in 0..2 {
                for hole in self.transport.take_missing(true, false, Time(self.now)) {
                    decided.extend(hole.first..hole.end);
                }
            }
            decided.sort_unstable();
            assert_eq!(decided, [begin + 10, begin + 11, begin + 14]);
            let judged: Vec<Psn> =
                core::iter::from_fn(|| self.transport.take_decision().map(|it| it.psn)).collect();
            assert_eq!(judged, [Psn::new(114)]);
        }
    }
}
