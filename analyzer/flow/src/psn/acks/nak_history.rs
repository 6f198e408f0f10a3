//! The NAKs that a flow's receiver sent: those that no run has answered, those that one did, and the latest ones whatever came of them.

use core::ops::Range;
use std::collections::VecDeque;

use roce_model::{Span, Time};

use crate::psn::causes::NamedPsn;
use crate::psn::request::Request;

/// A sender answers a NAK within its timeouts: within a second.
const MAX_NAK_AGE: Span = Span::SECOND;
/// So far behind the PSN of a NAK the run that answers it may seem to begin: its first packets may be lost, too.
pub(crate) const MAX_RUN_OFFSET: u64 = 1024;
/// The assumed longest time from a NAK to its run while there was none.
pub(in crate::psn) const LONGEST_ANSWER: Span = Span(1_000_000);
/// NAKs remembered that no run has answered. A receiver sends one for each gap that it sees. One that keeps what comes out of order
/// sends them while answers to others are in flight.
const MAX_NAKS: usize = 16;
/// NAKs that may make a sender fall back. A receiver that keeps what comes out of order sends many while answers are in flight.
const MAX_NOTES: usize = 32;
/// So far behind the PSN of a NAK the run that answers it may seem to begin.
pub(crate) const REACH: u64 = 256;

/// A PSN that a NAK names.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct NakRecord {
    /// True if the packet that it names was in flight. The field is in front, because an `Option` marks its absence in this byte.
    pub(super) overtaken: bool,
    pub(super) at: u64,
    pub(super) time: Time,
    /// RNR NAK: not before this time is over.
    pub(super) timer: Span,
}

impl NakRecord {
    pub(super) fn explains(self, at: u64) -> bool {
        (self.at..self.at + MAX_RUN_OFFSET).contains(&at)
    }
}

/// A sequence NAK behind which a run came.
#[derive(Clone, Copy, Debug)]
pub(super) struct AnsweredNak {
    pub(super) nak: NakRecord,
    /// The run began at the PSN of the NAK.
    pub(super) began_there: bool,
}

/// A sequence NAK.
#[derive(Clone, Copy, Debug)]
struct NakNote {
    at: u64,
    time: Time,
    /// A run began at its PSN.
    is_answered: bool,
}

/// Sequence NAKs of one flow.
#[derive(Clone, Debug, Default)]
pub(super) struct NakHistory {
    /// The latest ones that no run has answered yet, in their order; those acknowledged since may still be on their way to the sender.
    open: VecDeque<NakRecord>,
    /// The latest of these that a run answered, or a run before its own answer came.
    answered: VecDeque<AnsweredNak>,
    /// The latest ones, whatever came of them.
    notes: VecDeque<NakNote>,
}

impl NakHistory {
    /// A NAK for `at` came at `time`.
    pub(super) fn note(&mut self, at: u64, time: Time) {
        push(
            &mut self.notes,
            MAX_NOTES,
            NakNote {
                at,
                time,
                is_answered: false,
            },
        );
    }

    /// A NAK waits for a run that answers it. `overtaken`: the packet that it names was in flight. Says whether another one waits that
    /// names the same.
    pub(super) fn open(&mut self, at: u64, time: Time, overtaken: bool) -> bool {
        let again = self.open.iter().any(|nak| nak.at == at);
        push(
            &mut self.open,
            MAX_NAKS,
            NakRecord {
                at,
                time,
                timer: Span(0),
                overtaken,
            },
        );
        again
    }

    /// The PSN that a NAK named last, when it is not before `acked` and no run answered yet.
    pub(super) fn named(&self, acked: u64) -> Option<u64> {
        let is_open = |nak: &&NakRecord| !nak.overtaken && nak.at >= acked;
        self.open.back().filter(is_open).map(|nak| nak.at)
    }

    /// True if one that no run has answered names one of these PSNs.
    pub(super) fn name_any_of(&self, psns: &Range<u64>) -> bool {
        self.open.iter().any(|nak| psns.contains(&nak.at))
    }

    /// True if a NAK after `time` may make the sender fall back to `at`.
    pub(super) fn named_since(&self, at: u64, time: Time) -> bool {
        self.open.iter().any(|nak| nak.explains(at) && nak.time > time)
    }

    /// The latest NAK that may make the sender fall back to `at` at `time`; all before `acked` has arrived.
    pub(super) fn latest_for(&self, at: u64, time: Time, acked: u64) -> Option<NakRecord> {
        let may = |nak: &&NakRecord| {
            // A packet that arrived after all is not requested again, but the sender knows only when the acknowledgement comes.
            let window = if nak.overtaken || nak.at < acked {
                LONGEST_ANSWER
            } else {
                MAX_NAK_AGE
            };
            nak.explains(at) && time.since(nak.time) <= window
        };
        self.open.iter().rev().find(may).copied()
    }

    /// True if a NAK that no run has answered named `at` not long before `time`.
    pub(super) fn have_named(&self, at: u64, time: Time) -> bool {
        let is_recent = |nak: &NakRecord| time.since(nak.time) <= MAX_NAK_AGE;
        self.open.iter().any(|nak| nak.at == at && is_recent(nak))
    }

    /// Those that a run has answered, which may make the sender fall back to `at` at `time`.
    pub(super) fn answered_for(&self, at: u64, time: Time) -> impl Iterator<Item = &AnsweredNak> {
        let may_be = move |answered: &&AnsweredNak| {
            answered.nak.explains(at) && time.since(answered.nak.time) <= MAX_NAK_AGE
        };
        self.answered.iter().filter(may_be)
    }

    /// A run begins at `at`: what requested it is answered, but for what `is_early` says.
    pub(super) fn answer(&mut self, at: u64, is_early: impl Fn(&NakRecord) -> bool) {
        for note in self.notes.iter_mut().filter(|note| note.at == at) {
            note.is_answered = true;
        }
        let answered = &mut self.answered;
        self.open.retain(|nak| {
            let stays = !nak.explains(at) || is_early(nak);
            if !stays {
                push(
                    answered,
                    MAX_NAKS,
                    AnsweredNak {
                        nak: *nak,
                        began_there: nak.at == at,
                    },
                );
            }
            stays
        });
    }

    /// NAKs for these PSNs that came `longest` before `time`, or earlier, have been answered.
    pub(super) fn forget(&mut self, psns: &Range<u64>, time: Time, longest: Span) {
        self.open
            .retain(|nak| !psns.contains(&nak.at) || time.since(nak.time) < longest);
    }

    /// When the latest one came that names `at`; 0: none does.
    pub(super) fn time_of(&self, at: u64) -> Time {
        let named = self.notes.iter().rev().find(|note| note.at == at);
        named.map_or(Time(0), |note| note.time)
    }

    /// The NAK before the sender fell back to `at` with `request`.
    pub(super) fn before(&self, at: u64, request: &Request) -> Option<NamedPsn> {
        // NAKs overtake each other, too: one for just this PSN says more than a later one for a PSN before.
        let latest = |is_it: &dyn Fn(&NakNote) -> bool| self.notes.iter().rev().find(|note| is_it(note));
        let exact = latest(&|note| note.at == at && !note.is_answered);
        let near = || latest(&|note| (note.at..note.at + REACH).contains(&at));
        let Some(note) = exact.or_else(near) else {
            // The first NAK may have come before it was known whose it is.
            let (before, ahead) = request.pair.nak_before.filter(|_| self.notes.is_empty())?;
            return Some(NamedPsn {
                before,
                timer: Span(0),
                ahead,
                is_answered: false,
            });
        };
        Some(NamedPsn {
            before: request.packet.time.since(note.time),
            timer: Span(0),
            ahead: ahead(note.at, at),
            is_answered: note.is_answered,
        })
    }
}

/// PSNs from the one that a NAK names to the begin of a run.
pub(super) fn ahead(named: u64, at: u64) -> u32 {
    u32::try_from(at - named).unwrap_or(u32::MAX)
}

/// Adds the latest one to at most `most`.
fn push<T>(latest: &mut VecDeque<T>, most: usize, one: T) {
    if latest.len() == most {
        latest.pop_front();
    }
    latest.push_back(one);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_answers_what_names_its_begin_or_a_little_before() {
        let mut naks = NakHistory::default();
        assert!(!naks.open(100, Time(10), false));
        assert!(naks.open(100, Time(20), false), "named twice");
        naks.open(5_000, Time(30), false);
        let latest = naks.latest_for(110, Time(40), 0).map(|nak| nak.time);
        assert_eq!(latest, Some(Time(20)));
        naks.answer(110, |nak| nak.time == Time(10));
        assert_eq!(
            naks.open.iter().map(|nak| nak.time).collect::<Vec<_>>(),
            [Time(10), Time(30)]
        );
        let answered: Vec<bool> = naks
            .answered_for(110, Time(50))
            .map(|it| it.began_there)
            .collect();
        assert_eq!(answered, [false]);
    }

    #[test]
    fn what_arrived_is_asked_for_a_little_longer() {
        let mut naks = NakHistory::default();
        naks.open(100, Time(0), false);
        let finds = |time, acked| naks.latest_for(100, Time(time), acked).is_some();
        assert!(finds(Span::SECOND.0, 100) && !finds(Span::SECOND.0 + 1, 100));
        assert!(finds(LONGEST_ANSWER.0, 101) && !finds(LONGEST_ANSWER.0 + 1, 101));
    }

    #[test]
    fn naks_are_bounded() {
        let mut naks = NakHistory::default();
        for at in 0..100 {
            naks.note(at * 2_000, Time(at));
            naks.open(at * 2_000, Time(at), false);
            if at % 2 == 0 {
                naks.answer(at * 2_000, |_| false);
            }
        }
        assert_eq!(
            (naks.open.len(), naks.answered.len(), naks.notes.len()),
            (MAX_NAKS, MAX_NAKS, MAX_NOTES)
        );
    }
}
