//! Prefetching of data for batches of packets, rows or flows: first the data at known places, then the
//! data behind pointers.

use roce_model::{Packet, prefetch};
use roce_wire::Ecn;

use crate::congestion::reaction::Congestion;
use crate::key::{FlowSlot, Slots};
use crate::table::lookup::LOOKUP_BATCH;
use crate::table::state::{Cold, Hot};
use crate::timing::latency::Times;

/// Places of flows that need more than every packet touches.
struct Places {
    places: [FlowSlot; LOOKUP_BATCH],
    count: usize,
}

impl Places {
    const fn new() -> Self {
        Self {
            places: [FlowSlot::NONE; LOOKUP_BATCH],
            count: 0,
        }
    }

    /// Adds the place if it `is_one`, without a branch: what the next packet is cannot be foreseen.
    #[inline]
    fn push_if(&mut self, is_one: bool, at: FlowSlot) {
        if let Some(place) = self.places.get_mut(self.count) {
            *place = at;
            self.count += usize::from(is_one);
        }
    }

    #[inline]
    fn select<'a, T>(&self, all: &'a Slots<T>) -> impl Iterator<Item = &'a T> {
        self.places[..self.count].iter().filter_map(|at| all.get(*at))
    }
}

/// Packets that need more than the part of their flow that all touch: the first and the last ones of
/// messages, answers, marked ones, those that measure their flow's rate, and requests after a silence.
pub(super) struct Ahead {
    requests: Places,
    answered: Places,
    paced: Places,
    silent: Places,
}

impl Ahead {
    pub(super) const fn new() -> Self {
        Self {
            requests: Places::new(),
            answered: Places::new(),
            paced: Places::new(),
            silent: Places::new(),
        }
    }

    /// Notes what a packet of the flow at `at` needs. Called for up to [`LOOKUP_BATCH`] packets.
    #[inline]
    pub(super) fn note(&mut self, hot: &Hot, at: FlowSlot, packet: &Packet) {
        let traits = packet.roce.bth.opcode().traits();
        let is_marked = packet.roce.traffic_class & 3 == Ecn::Ce as u8;
        self.paced.push_if(hot.is_paced_next() | is_marked, at);
        self.answered
            .push_if(traits.is_response() & hot.is_paired(), hot.peer);
        self.requests
            .push_if(!(traits.is_response() | traits.is_middle()), at);
        let silence = packet.time.since(hot.last_request);
        self.silent
            .push_if(traits.is_sequenced() & hot.burst_gap.is_passed(silence), at);
    }

    /// Prefetches what is found by its place.
    #[inline]
    pub(super) fn prefetch_flows(&self, hot: &Slots<Hot>, cold: &Slots<Cold>) {
        self.paced.select(cold).for_each(Cold::prefetch_for_pace);
        self.requests.select(cold).for_each(Cold::prefetch_for_request);
        self.answered.select(hot).for_each(Hot::prefetch_all);
        self.answered.select(cold).for_each(Cold::prefetch_for_answer);
        self.silent.select(cold).for_each(Cold::prefetch_for_silence);
    }

    /// Prefetches what is behind pointers.
    #[inline]
    pub(super) fn prefetch(&self, cold: &Slots<Cold>) {
        for cold in self.paced.select(cold) {
            if let Some(meter) = cold.meter.as_deref() {
                prefetch(meter);
            }
            if let Some(congestion) = cold.congestion.as_deref() {
                congestion.prefetch();
            }
        }
        for cold in self.requests.select(cold) {
            if let Some(times) = cold.times.as_deref() {
                times.prefetch_for_request();
            }
            cold.lengths.prefetch();
        }
        for cold in self.answered.select(cold) {
            if let Some(times) = cold.times.as_deref() {
                times.prefetch_for_answer();
            }
            if let Some(answers) = cold.tracker.answers() {
                prefetch(answers);
            }
        }
        for cold in self.silent.select(cold) {
            cold.prefetch_behind_silence();
        }
        let paced = || {
            self.paced
                .select(cold)
                .filter_map(|cold| cold.congestion.as_deref())
        };
        paced().for_each(Congestion::prefetch_behind);
        let answered = || {
            self.answered
                .select(cold)
                .filter_map(|cold| cold.times.as_deref())
        };
        answered().for_each(Times::prefetch_behind);
        answered().for_each(Times::prefetch_counts);
    }
}
