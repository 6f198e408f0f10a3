//! Limits of flows: pauses of their links, and DCQCN.

use roce_model::{EventKind, EventRow, Nanos, PauseFrame};

use crate::analysis::Analysis;
use crate::congestion::dcqcn::replay::Replay;
use crate::counts::Counts;
use crate::key::FlowSlot;
use crate::rows::Limits;

impl Analysis {
    /// A pause frame: every part of a run sees it, one reports it.
    pub(super) fn pause(&mut self, frame: &PauseFrame) {
        self.advance_to(frame.time);
        self.pauses.frame(frame, &mut self.bins.events);
        if !frame.reported {
            return;
        }
        self.totals.pause_frames += 1;
        self.bins.pauses.push(*frame);
        let quanta = frame.pause.quanta.iter().copied().max().unwrap_or_default();
        self.bins.events.push(EventRow {
            time: frame.time,
            kind: EventKind::Pause,
            tap: frame.tap,
            value: Some(u64::from(quanta)),
            detail: Some(frame.pause.to_string().into()),
            ..EventRow::default()
        });
    }

    /// A notification for the flow at `at`: its sender has to slow down.
    pub(super) fn slow_down(&mut self, at: FlowSlot, time: Nanos) {
        let (Some(line), Some(parameters)) = (self.link_rate, self.dcqcn) else {
            return;
        };
        let hot = &self.table.hot[at];
        let cold = &mut self.table.cold[at];
        let bin = self.bins.time(self.bins.current());
        let new = || Box::new(Replay::new(parameters, line, bin));
        cold.replay
            .get_or_insert_with(new)
            .cnp(time, bin, hot.counts.wire_bytes);
    }

    /// Limits of the flow at `at` up to the end of the current bin, which has these counts.
    #[inline]
    pub(super) fn limits(&mut self, at: FlowSlot, counts: &Counts) -> Limits {
        let mut limits = Limits::default();
        let hot = &self.table.hot[at];
        let cold = &mut self.table.cold[at];
        // Without a link's speed nothing is replayed.
        if self.link_rate.is_some()
            && let Some(replay) = &mut cold.replay
        {
            let begin = self.bins.time(self.bins.current());
            limits.dcqcn_rate_bps = replay.bin(
                begin,
                self.bins.width(),
                counts.wire_bytes,
                counts.payload_bytes > 0,
            );
        }
        if self.pauses.any() {
            let hosts = (cold.key.source, cold.key.destination);
            let priority = cold.priority(hot, &self.priority_of_dscp);
            let paused = self.pauses.overlap(hot.tap, hosts, priority, self.bins.end());
            limits.pause_ns = paused.map(|paused| paused.in_bin);
            cold.paused(paused);
        }
        limits
    }
}
