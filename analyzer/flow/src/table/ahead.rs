//! Reading ahead: what many packets, rows or flows will need is brought into the cache for all of them at once, so that the
//! waits for memory overlap. A word of each line is read, first those that are found by their place, then those behind
//! pointers.

use roce_model::Packet;
use roce_wire::Ecn;

use super::{FlowTable, Found, TOGETHER};
use crate::congestion::{Congestion, Meter};
use crate::requests::Answers;
use crate::state::{Cold, Hot};
use crate::times::Times;

/// Places of flows of which more is needed than every packet touches.
struct Places {
    places: [u32; TOGETHER],
    count: usize,
}

impl Places {
    const fn new() -> Self {
        Self {
            places: [Found::NONE; TOGETHER],
            count: 0,
        }
    }

    #[inline]
    fn push(&mut self, at: u32) {
        self.places[self.count] = at;
        self.count += 1;
    }

    #[inline]
    fn of<'a>(&self, cold: &'a [Cold]) -> impl Iterator<Item = &'a Cold> {
        self.places[..self.count]
            .iter()
            .filter_map(|at| cold.get(*at as usize))
    }
}

/// What packets need beside the part of their flow that all touch: the first and the last ones of messages, answers, marked
/// ones, and those with which their flow's rate is looked at.
pub(super) struct Ahead {
    requests: Places,
    answered: Places,
    paced: Places,
}

impl Ahead {
    pub(super) const fn new() -> Self {
        Self {
            requests: Places::new(),
            answered: Places::new(),
            paced: Places::new(),
        }
    }

    /// Notes what a packet of the flow at `at` needs. Called for up to [`TOGETHER`] packets.
    #[inline]
    pub(super) fn note(&mut self, flows: &[Hot], hot: &Hot, at: u32, packet: &Packet) -> u64 {
        if hot.is_paced_next() || packet.roce.traffic_class & 3 == Ecn::Ce as u8 {
            self.paced.push(at);
        }
        let traits = packet.roce.bth.opcode().traits();
        if traits.is_response() {
            flows.get(hot.peer as usize).map_or(0, |peer| {
                self.answered.push(hot.peer);
                peer.touch_all()
            })
        } else if traits.is_middle() {
            0
        } else {
            self.requests.push(at);
            hot.touch_all()
        }
    }

    /// Brings it into the cache.
    #[inline]
    pub(super) fn touch(&self, cold: &[Cold]) -> u64 {
        let mut touched = 0;
        for cold in self.paced.of(cold) {
            touched ^= cold.touch_pace();
        }
        for cold in self.requests.of(cold) {
            touched ^= cold.touch_requests();
        }
        for cold in self.answered.of(cold) {
            touched ^= cold.touch_answers();
        }
        for cold in self.paced.of(cold) {
            touched ^= cold.meter.as_deref().map_or(0, Meter::touch)
                ^ cold.congestion.as_deref().map_or(0, Congestion::touch);
        }
        for cold in self.requests.of(cold) {
            touched ^= cold.times.as_deref().map_or(0, Times::touch_sent);
        }
        for cold in self.answered.of(cold) {
            touched ^= cold.times.as_deref().map_or(0, Times::touch_all)
                ^ cold.tracker.answers().map_or(0, Answers::acked);
        }
        touched
    }
}

impl FlowTable {
    /// Brings what closing the rows of the flows at `places` needs into the cache.
    #[inline]
    pub(crate) fn touch_rows(&self, places: &[u32]) {
        let mut touched = 0;
        for at in places {
            let at = *at as usize;
            touched ^= self.hot.get(at).map_or(0, Hot::touch_all) ^ self.cold.get(at).map_or(0, Cold::touch);
        }
        for at in places {
            let at = *at as usize;
            if self.hot.get(at).is_some_and(|hot| hot.timed) {
                let times = self.cold.get(at).and_then(|cold| cold.times.as_deref());
                touched ^= times.map_or(0, Times::touch);
            }
        }
        core::hint::black_box(touched);
    }

    /// Brings what closing the flows at `places` needs into the cache.
    pub(crate) fn touch_all(&self, places: &[u32]) {
        self.touch_rows(places);
        let mut touched = 0;
        for hot in places.iter().filter_map(|at| self.hot.get(*at as usize)) {
            let cold = self.cold.get(hot.peer as usize);
            touched ^=
                self.hot.get(hot.peer as usize).map_or(0, Hot::touch_all) ^ cold.map_or(0, Cold::touch);
        }
        for cold in places.iter().filter_map(|at| self.cold.get(*at as usize)) {
            touched ^= cold.touch_rest();
        }
        core::hint::black_box(touched);
    }
}
