//! State by tap: what each lost, how fine its stamps are, and the packets that several taps saw.

use roce_model::{HopRow, HopTimelineRow, TapId, TapPlace, Time, Vantage};

use crate::key::FlowSlot;
use crate::taps::matching::TapMatcher;

/// State by tap: what it lost, how fine its stamps are, and the packets that several taps saw.
#[derive(Debug, Default)]
pub(super) struct TapStates {
    /// Finds packets that several taps saw; from the second tap on.
    pub(super) matcher: Option<Box<TapMatcher>>,
    first: Option<TapId>,
    /// One more than the highest tap of a flow.
    pub(super) count: u32,
    /// Resolution of the stamps of each tap, in nanoseconds.
    pub(super) resolutions: Vec<u64>,
    /// How often each tap's capture lost records, and when last.
    losses: Vec<(u32, Time)>,
    /// Where the only tap stood, if the user says it.
    pub(super) stated: Option<TapPlace>,
}

impl TapStates {
    /// Taps that have seen nothing.
    pub(super) fn new(stated: Option<TapPlace>) -> Self {
        Self {
            stated,
            ..Self::default()
        }
    }

    /// Notes the tap of a new flow. Returns true if it is not the first one.
    pub(super) fn note(&mut self, tap: TapId) -> bool {
        self.count = self.count.max(tap.0.saturating_add(1));
        *self.first.get_or_insert(tap) != tap
    }

    /// A tap's capture lost records before `time`.
    pub(super) fn lost(&mut self, tap: TapId, time: Time) {
        let place = tap.0 as usize;
        if self.losses.len() <= place {
            self.losses.resize(place + 1, (0, Time(0)));
        }
        let (count, last) = &mut self.losses[place];
        (*count, *last) = (count.wrapping_add(1), time);
        if let Some(matcher) = &mut self.matcher {
            matcher.lost(tap, time);
        }
    }

    /// How often a tap's capture lost records, modulo 2^32.
    #[inline]
    pub(super) fn losses(&self, tap: TapId) -> u32 {
        self.losses.get(tap.0 as usize).map_or(0, |(count, _)| *count)
    }

    /// When a tap's capture lost records last; 0: never.
    pub(super) fn lost_at(&self, tap: TapId) -> Time {
        self.losses.get(tap.0 as usize).map_or(Time(0), |(_, last)| *last)
    }

    /// Vantage of a flow's tap among those that saw its packets.
    pub(super) fn by_taps(&self, at: FlowSlot, tap: TapId) -> Option<Vantage> {
        let resolution = |tap: TapId| {
            let resolution = self.resolutions.get(tap.0 as usize);
            resolution.copied().unwrap_or_default()
        };
        self.matcher.as_ref()?.stands(at, tap, resolution)
    }

    /// Packets that another tap saw by tap, hops, and hops by bin.
    pub(super) fn conclude(self) -> (Vec<u64>, Vec<HopRow>, Vec<HopTimelineRow>) {
        self.matcher.map_or_else(Default::default, |matcher| {
            let hops = &matcher.hops;
            (matcher.matched().to_vec(), hops.rows(), hops.timeline())
        })
    }
}
