//! The work of a sending end at each moment, and why it does not send: the raw timeline, as the simulator knows it.
//!
//! A change of the activity is a mark. What only the end of a wait tells, a timeout for example, is laid over the marks when the truth
//! is judged.

mod steps;

use std::collections::VecDeque;

use crate::units::Picos;

/// The work of a sending end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Activity {
    /// It has nothing to send, and nothing is outstanding.
    #[default]
    Idle,
    /// Nothing is outstanding; the next message needs data that its own host waits for or computes.
    AwaitsInput,
    /// An RNR NAK forbids to send.
    NotReady,
    /// It sends PSNs that were sent before.
    Recovers,
    /// It sends at the limit of DCQCN, which is below [`NEARLY`] of the line rate.
    Slowed,
    /// It sends at the limit of DCQCN, which is nearly the line rate.
    NearlyFull,
    /// It sends as fast as its port, its share of it, or its configured rate allows.
    Sends,
    /// The window of the queue pair is full, or as many READs are outstanding as may be.
    Window,
    /// All messages that its application keeps outstanding at once are sent and not answered.
    Messages,
    /// Everything is sent, and answers are outstanding.
    Flight,
}

/// A limit of DCQCN from this share of the line rate on is hardly a slowing: two steps of fast
/// recovery after the first CNP, which halves the rate.
pub(crate) const NEARLY: f64 = 0.875;

/// From a moment on, an end does something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Mark {
    pub time: Picos,
    pub activity: Activity,
    /// Time at which the oldest outstanding answer is due in a network without queues.
    pub due: Picos,
    /// PSNs that are outstanding.
    pub outstanding: u64,
}

/// The activities of an end in the order of time.
#[derive(Debug, Default)]
pub(crate) struct Timeline {
    marks: Vec<Mark>,
    /// Place of the first mark after the last packet was produced: from here on a limit of DCQCN may turn out not to bind.
    produced: usize,
    /// Sending of the packet that leaves, from its production to its last bit: whether it was sent before.
    pub leaves: Option<bool>,
    /// The limit of DCQCN for the next packet.
    pub limit: Limit,
    /// Requested answers that are outstanding: after the PSNs that each covers, and when it is due without queues.
    answers: VecDeque<(u64, Picos)>,
    /// Most PSNs that were outstanding at once.
    pub most: u64,
    /// The end has sent requests of its own.
    pub requests: bool,
}

/// The limit of DCQCN for the next packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Limit {
    #[default]
    None,
    /// [`NEARLY`] the line rate.
    Slight,
    Low,
}

impl Timeline {
    /// The marks, in the order of time. Before the first one the end is idle.
    pub(crate) fn marks(&self) -> &[Mark] {
        &self.marks
    }

    fn push(&mut self, mark: Mark) {
        if self.marks.len() > self.produced && self.marks.last().is_some_and(|last| last.is_like(&mark)) {
            return;
        }
        self.marks.push(mark);
    }

    /// A packet is produced. With `free` the limit of DCQCN was over well before: the port made the end wait.
    fn begins_packet(&mut self, free: bool) {
        for mark in self.marks.split_off(self.produced.min(self.marks.len())) {
            let limited = matches!(mark.activity, Activity::Slowed | Activity::NearlyFull);
            let activity = if free && limited {
                Activity::Sends
            } else {
                mark.activity
            };
            let mark = Mark { activity, ..mark };
            if !self.marks.last().is_some_and(|last| last.is_like(&mark)) {
                self.marks.push(mark);
            }
        }
        self.produced = self.marks.len();
    }

    /// A request that wants an answer leaves. Its answer is due after `round_trip`, and after that of the requests before it by
    /// `transfer`.
    pub(crate) fn expect_answer(
        &mut self,
        first: u64,
        end: u64,
        now: Picos,
        round_trip: Picos,
        transfer: Picos,
    ) {
        while self.answers.pop_back_if(|(other, _)| *other > first).is_some() {}
        let before = self.answers.back().map_or(Picos::ZERO, |(_, due)| *due);
        let due = now.plus(round_trip).max(before).plus(transfer);
        self.answers.push_back((end, due));
    }

    /// Time at which the oldest answer beyond `oldest` is due.
    fn due(&mut self, oldest: u64) -> Picos {
        while self.answers.pop_front_if(|(end, _)| *end <= oldest).is_some() {}
        self.answers.front().map_or(Picos::NEVER, |(_, due)| *due)
    }
}

impl Mark {
    fn is_like(&self, other: &Self) -> bool {
        let due = match self.activity {
            Activity::Messages | Activity::Flight => {
                (self.due, self.outstanding) == (other.due, other.outstanding)
            }
            Activity::Sends | Activity::NearlyFull => self.due == other.due,
            _ => true,
        };
        self.activity == other.activity && due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(time: u64, activity: Activity) -> Mark {
        Mark {
            time: Picos(time),
            activity,
            due: Picos::NEVER,
            outstanding: 0,
        }
    }

    #[test]
    fn a_limit_that_did_not_bind_is_none() {
        let mut line = Timeline::default();
        for (time, free) in [(0, false), (10, true), (20, false)] {
            line.begins_packet(free);
            line.push(mark(time, Activity::Slowed));
        }
        line.begins_packet(false);
        // The packet at 10 came later than the limit of the one at 0 asked for.
        let found: Vec<_> = line
            .marks
            .iter()
            .map(|mark| (mark.time.0, mark.activity))
            .collect();
        assert_eq!(found, [(0, Activity::Sends), (10, Activity::Slowed)]);
    }

    #[test]
    fn answers_are_due_one_after_the_other() {
        let mut line = Timeline::default();
        line.expect_answer(0, 4, Picos(0), Picos(10), Picos(5));
        line.expect_answer(4, 8, Picos(1), Picos(10), Picos(5));
        assert_eq!(line.due(0), Picos(15));
        // The second one follows the first by its transfer.
        assert_eq!(line.due(4), Picos(20));
        // Sent again: the later entries are void.
        line.expect_answer(4, 8, Picos(30), Picos(10), Picos(5));
        assert_eq!(line.due(4), Picos(45));
        assert_eq!(line.due(8), Picos::NEVER);
    }
}
