//! Limits of senders: pauses of their links, and DCQCN.

use roce_model::Time;

use crate::bins::Bins;
use crate::congestion::dcqcn::Parameters;
use crate::congestion::dcqcn::bound::Legal;
use crate::congestion::dcqcn::replay::Replay;
use crate::congestion::pauses::Pauses;
use crate::counts::Counts;
use crate::division::Turns;
use crate::key::FlowSlot;
use crate::rows::Limits;
use crate::table::FlowTable;

/// Pauses and DCQCN, which keep senders from sending, and the options that say how much.
#[derive(Debug)]
pub(super) struct SenderLimits {
    /// Pauses of links.
    pub(super) pauses: Pauses,
    /// Turns of flows at the ports of their hosts.
    pub(super) turns: Turns,
    /// Upper bound of a sender's rate by DCQCN; `None` when senders do not follow DCQCN.
    pub(super) legal: Option<Legal>,
    link_rate: Option<u64>,
    dcqcn: Option<Parameters>,
    priority_of_dscp: [u8; 64],
}

impl SenderLimits {
    /// Limits before any packet, by the speed of links in bit/s, DCQCN's parameters, whether these were stated, and the priority of each DSCP.
    pub(super) fn new(
        link_rate: Option<u64>,
        dcqcn: Option<Parameters>,
        is_stated: bool,
        priority_of_dscp: [u8; 64],
    ) -> Self {
        let stated = dcqcn.filter(|_| is_stated);
        Self {
            pauses: Pauses::new(link_rate),
            turns: Turns::default(),
            legal: dcqcn.map(|_| Legal::new(link_rate, stated)),
            link_rate,
            dcqcn,
            priority_of_dscp,
        }
    }

    /// A notification for the flow at `at`: its sender has to slow down.
    pub(super) fn slow_down(&self, table: &mut FlowTable, bins: &Bins, at: FlowSlot, time: Time) {
        let (Some(line), Some(parameters)) = (self.link_rate, self.dcqcn) else {
            return;
        };
        let hot = &table.hot[at];
        let cold = &mut table.cold[at];
        let bin = bins.time(bins.current());
        let new = || Box::new(Replay::new(parameters, line, bin));
        cold.replay
            .get_or_insert_with(new)
            .cnp(time, bin, hot.counts.wire_bytes);
    }

    /// For how long the path of the flow at `at` was paused from the first pause at its tap to `time`, in ns; 0: not known.
    #[inline]
    pub(super) fn paused_until(&self, table: &FlowTable, at: FlowSlot, time: Time) -> u64 {
        if !self.pauses.any() {
            return 0;
        }
        let (hot, cold) = (&table.hot[at], &table.cold[at]);
        let hosts = (cold.key.source, cold.key.destination);
        let priority = cold.priority(hot, &self.priority_of_dscp);
        let paused = self.pauses.overlap(hot.tap, hosts, priority, time);
        paused.and_then(|paused| paused.in_all).unwrap_or(0)
    }

    /// Limits of the flow at `at` up to the end of the current bin, which has these counts.
    #[inline]
    pub(super) fn in_bin(
        &mut self,
        table: &mut FlowTable,
        bins: &Bins,
        at: FlowSlot,
        counts: &Counts,
    ) -> Limits {
        let mut limits = Limits::default();
        let hot = &table.hot[at];
        let cold = &mut table.cold[at];
        // Without a link's speed nothing is replayed.
        if self.link_rate.is_some()
            && let Some(replay) = &mut cold.replay
        {
            let begin = bins.time(bins.current());
            limits.dcqcn_rate_bps =
                replay.bin(begin, bins.width(), counts.wire_bytes, counts.payload_bytes > 0);
        }
        if self.pauses.any() {
            let hosts = (cold.key.source, cold.key.destination);
            let priority = cold.priority(hot, &self.priority_of_dscp);
            let paused = self.pauses.overlap(hot.tap, hosts, priority, bins.end());
            limits.pause_ns = paused.map(|paused| paused.in_bin);
            cold.paused(paused);
        }
        limits
    }
}
