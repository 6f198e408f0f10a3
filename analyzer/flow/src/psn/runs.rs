//! A flow's runs of retransmissions: the one that goes on and what is known of the ones before, and the sender's way to recover, as runs
//! show it.

use core::ops::Range;
use std::collections::VecDeque;

use roce_model::{Span, Time};

use crate::psn::acks::MAX_RUN_OFFSET;
use crate::psn::cause::Trigger;
use crate::psn::causes::Circumstances;
use crate::psn::request::Request;
use crate::psn::run::{EndedRun, Recovery, RetransmittedRun};
use crate::taps::duplicates::Ids;

/// Packets of a run whose IP identifications are remembered: more than packets overtake each other by on ways whose times differ by
/// that of a few packets.
const MAX_RUN_IDS: usize = 16;

/// So often must a receiver have acknowledged what came before a late packet, without a NAK, until it is said to take packets in
/// any order: one such sighting may be a NAK that the capture lost.
const MIN_OUT_OF_ORDER: u32 = 3;

/// A NAK that shows that the receiver had not kept what came out of order says as much as so many runs, whose ends may be lost.
const RUNS_OF_A_NAK: u32 = 4;

/// How packets of the way that a flow takes come out of their order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct PacketOrder {
    /// Packets of the flow came late.
    pub(super) is_seen: bool,
    /// They did, or such of others between its hosts.
    pub(super) may_be: bool,
}

/// The runs of one flow.
#[derive(Clone, Debug, Default)]
pub(super) struct Runs {
    /// The one that goes on, and what was captured before it.
    run: Option<RetransmittedRun>,
    before: Option<Box<Circumstances>>,
    /// When the latest packet of the latest run came.
    time: Time,
    /// One past the highest PSN when it came: as far as the sender has to repeat. 0: there was no run.
    reach: u64,
    /// The latest packets of the latest run, where the sender counts IP identifications up: PSN and identification.
    ids: VecDeque<(u64, u16)>,
    /// The PSNs that the latest run had to repeat, if it ended after it had repeated captured packets.
    repeated: Range<u64>,
    /// Retransmissions that a run did not show although it began behind the PSN of its NAK: lost before the tap, once a later
    /// run shows them.
    skipped: Range<u64>,
    /// Retransmissions that were lost before the tap, and those that are not reported yet.
    lost_again: u64,
    new_lost_again: (u64, u64),
    /// Runs that repeated what the receiver had got, and such that did not.
    go_back_n: u32,
    selective: u32,
}

impl Runs {
    /// The run that goes on.
    pub(super) fn current(&self) -> Option<&RetransmittedRun> {
        self.run.as_ref()
    }

    /// True if `trigger` made the sender begin the run that goes on.
    pub(super) fn is_by(&self, trigger: Trigger) -> bool {
        self.run.is_some_and(|run| run.trigger == trigger)
    }

    /// A run begins at `time`, after what was captured `before` it.
    pub(super) fn begin(&mut self, run: RetransmittedRun, before: Circumstances, time: Time) {
        self.run = Some(run);
        self.before = Some(Box::new(before));
        self.time = time;
        self.ids.clear();
    }

    /// The run, which has begun, has to repeat what is captured up to `reach`.
    pub(super) fn reach_to(&mut self, reach: u64) {
        self.reach = reach;
    }

    /// `request` goes on with the run, at `at`; `next`: one past the highest PSN. `fills`: it was missing.
    pub(super) fn add(&mut self, at: u64, span: u64, next: u64, request: &Request, fills: bool) {
        self.keep_id(at, request.packet.ids);
        let Some(run) = &mut self.run else { return };
        if at > run.next && run.skipped.1 == 0 {
            run.skipped = (run.next, at);
        }
        run.ack_requested |= request.packet.ack_requested && run.skipped.1 == 0;
        run.packets += 1;
        run.next = at + span;
        run.fills |= fills;
        run.repeats |= !fills;
        self.time = request.packet.time;
        self.reach = next;
    }

    /// A missing packet at `at` belongs to the run, others of which overtook it.
    pub(super) fn add_before(&mut self, at: u64) {
        if let Some(run) = &mut self.run {
            run.packets += 1;
            run.start = run.start.min(at);
            run.fills = true;
        }
    }

    /// A packet at `at`, captured before, belongs to the run, others of which overtook it.
    pub(super) fn add_among(&mut self, at: u64, span: u64, ids: Option<Ids>) {
        self.keep_id(at, ids);
        if let Some(run) = &mut self.run {
            run.packets += 1;
            run.repeats = true;
            run.next = run.next.max(at + span);
        }
    }

    /// Remembers the IP identification of a packet of the latest run.
    fn keep_id(&mut self, at: u64, ids: Option<Ids>) {
        if let Some(ids) = ids {
            if self.ids.len() == MAX_RUN_IDS {
                self.ids.pop_front();
            }
            self.ids.push_back((at, ids.id));
        }
    }

    /// True if the IP identification of a packet at `at` shows that the sender sent it within the run that goes on, and other packets
    /// overtook it: behind packets of the run with lower PSNs alone. A sender that falls back once more sends it behind such of higher ones,
    /// or behind new ones, which end the run.
    pub(super) fn was_sent_within(&self, at: u64, ids: Option<Ids>) -> bool {
        let Some(ids) = ids.filter(|ids| ids.behind() > Some(0)) else {
            return false;
        };
        if self.run.is_none() {
            return false;
        }
        let mut before = self.ids.iter().filter(|(_, id)| ids.is_after(*id)).peekable();
        before.peek().is_some() && before.all(|(psn, _)| *psn < at)
    }

    /// True if the latest packet of a run came within `latest` before `time`.
    pub(super) fn is_recent(&self, time: Time, latest: Span) -> bool {
        self.reach != 0 && time.since(self.time) <= latest
    }

    /// A packet at `at`, captured before, comes soon after a run: true if it is one of its packets, which others overtook.
    pub(super) fn take_overtaken(&mut self, at: u64, time: Time) -> bool {
        let run = self.run.as_mut().filter(|run| run.repeats);
        let is_one = if let Some(run) = run {
            let is_one = at < run.next && at + MAX_RUN_OFFSET > run.start;
            run.packets += u64::from(is_one);
            is_one
        } else {
            at + MAX_RUN_OFFSET > self.repeated.start && at < self.repeated.end
        };
        if is_one {
            self.time = time;
        }
        is_one
    }

    /// A run begins at `at`. A run before it skipped what this one may show: those retransmissions were lost before the tap.
    pub(super) fn count_skipped(&mut self, at: u64) {
        if self.skipped.is_empty() || self.skipped.start != at {
            return;
        }
        let skipped = core::mem::replace(&mut self.skipped, 0..0);
        self.new_lost_again = (at, skipped.end);
    }

    /// No later run shows what was skipped.
    pub(super) fn forget_skipped(&mut self) {
        self.skipped = 0..0;
    }

    /// Retransmissions that were lost before the tap, since the last call: the first PSN, and one past the last. A packet takes `span` PSNs.
    pub(super) fn take_lost_again(&mut self, span: u32) -> Option<(u64, u64)> {
        let (first, end) = core::mem::take(&mut self.new_lost_again);
        self.lost_again += (end - first).div_ceil(u64::from(span));
        (first < end).then_some((first, end))
    }

    /// Retransmissions that were lost before the tap, as far as they were taken.
    pub(super) fn lost_again(&self) -> u64 {
        self.lost_again
    }

    /// The run ends, and nothing shows how far it would have come.
    pub(super) fn end(&mut self, overtaking: PacketOrder) -> Option<EndedRun> {
        let run = self.run.take()?;
        let before = self.before.take();
        Some(self.ended(&run, *before.unwrap_or_default(), overtaking))
    }

    /// The sender goes on with `next`: how far its run came shows what it has to repeat.
    pub(super) fn end_before_new(&mut self, next: u64, overtaking: PacketOrder) -> Option<EndedRun> {
        let run = self.run.take()?;
        let before = self.before.take();
        Some(self.end_whole(&run, next, *before.unwrap_or_default(), overtaking))
    }

    /// A run that is known only now has ended, and the sender goes on with `next`.
    pub(super) fn end_whole(
        &mut self,
        run: &RetransmittedRun,
        next: u64,
        before: Circumstances,
        overtaking: PacketOrder,
    ) -> EndedRun {
        let is_whole = run.next >= next;
        if is_whole && run.repeats && run.packets > 1 {
            self.go_back_n += 1;
        } else if !is_whole {
            // Nothing that was captured came again, or only what the NAK names; a run that did repeat lost its end.
            let only_fills = run.fills && !run.repeats;
            let only_named = run.packets == 1 && run.trigger == Trigger::Nak;
            self.selective += u32::from(only_fills || only_named);
        }
        self.ended(run, before, overtaking)
    }

    fn ended(&mut self, run: &RetransmittedRun, before: Circumstances, overtaking: PacketOrder) -> EndedRun {
        if run.repeats {
            self.repeated = run.start..run.next.max(self.reach);
        }
        // A sender that repeats what was captured sends everything again, in order.
        self.skipped = if run.repeats && !overtaking.is_seen {
            run.skipped.0..run.skipped.1
        } else {
            0..0
        };
        EndedRun {
            first: run.first,
            begin: run.begin,
            packets: run.packets,
            before,
            seeming: if run.trigger == Trigger::Timeout && !run.certain && overtaking.may_be {
                // Packets of an answer to a NAK that others overtook look like it.
                Trigger::Unknown
            } else {
                run.trigger
            },
        }
    }

    /// A NAK shows that the receiver had not kept what came out of order.
    pub(super) fn nothing_was_kept(&mut self) {
        self.go_back_n += RUNS_OF_A_NAK;
    }

    /// True if the sender was seen to repeat what the receiver had got.
    pub(super) fn goes_back(&self) -> bool {
        self.go_back_n > 0
    }

    /// How the sender recovers. `in_any_order`: how often the receiver acknowledged, without a NAK, what it had got before a late packet.
    pub(super) fn recovery(&self, in_any_order: u32) -> Option<Recovery> {
        if in_any_order > MIN_OUT_OF_ORDER && in_any_order > self.go_back_n {
            return Some(Recovery::OutOfOrder);
        }
        // One run that ends early may have lost its rest to the capture.
        match (self.go_back_n, self.selective) {
            (go_back_n, selective) if go_back_n > selective => Some(Recovery::GoBackN),
            (go_back_n, selective) if selective > go_back_n && selective > 1 => Some(Recovery::Selective),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IN_ORDER: PacketOrder = PacketOrder {
        is_seen: false,
        may_be: false,
    };

    fn begun(at: u64) -> Runs {
        let mut runs = Runs::default();
        let run = RetransmittedRun::new(at, Time(1_000), None);
        runs.begin(run, Circumstances::default(), Time(1_000));
        runs
    }

    #[test]
    fn a_run_up_to_the_highest_psn_goes_back_n() {
        let mut runs = begun(100);
        for at in 100..103 {
            runs.add(at, 1, 103, &Request::default(), false);
        }
        assert_eq!(runs.end_before_new(103, IN_ORDER).map(|run| run.packets), Some(3));
        assert!(runs.current().is_none() && runs.goes_back());
        assert_eq!(runs.recovery(0), Some(Recovery::GoBackN));
        assert!(runs.take_overtaken(101, Time(2_000)), "of the run that ended");
        assert!(!runs.take_overtaken(103, Time(2_000)));
    }

    #[test]
    fn two_runs_that_repeat_nothing_are_selective() {
        for (count, recovery) in [(1, None), (2, Some(Recovery::Selective))] {
            let mut runs = Runs::default();
            for at in 0..count {
                runs.begin(
                    RetransmittedRun::new(at, Time(0), None),
                    Circumstances::default(),
                    Time(0),
                );
                runs.add(at, 1, 103, &Request::default(), true);
                runs.end_before_new(103, IN_ORDER);
            }
            assert_eq!(runs.recovery(0), recovery);
        }
    }

    #[test]
    fn what_a_run_skips_is_lost_if_the_next_begins_there() {
        let mut runs = begun(100);
        runs.add(100, 1, 110, &Request::default(), false);
        runs.add(105, 1, 110, &Request::default(), false);
        runs.end(IN_ORDER);
        runs.count_skipped(101);
        assert_eq!(runs.take_lost_again(1), Some((101, 105)));
        assert_eq!((runs.take_lost_again(1), runs.lost_again()), (None, 4));
    }
}
