//! Measurements of live runs by tap, beside the tables: counted where somebody reads them, else nothing is here.

use roce_model::{TapId, TapMeasures, TimeByState};

/// Taps with measurements of their own; those of further ones are together.
const MAX_TAPS: usize = 64;

/// Measurements by tap.
#[derive(Clone, Debug, Default)]
pub(super) struct Measures {
    by_tap: Vec<TapMeasures>,
}

impl Measures {
    /// Those of a tap.
    #[inline]
    pub(super) fn at(&mut self, tap: TapId) -> &mut TapMeasures {
        let place = (tap.0 as usize).min(MAX_TAPS);
        if place >= self.by_tap.len() {
            self.by_tap.resize(place + 1, TapMeasures::default());
        }
        &mut self.by_tap[place]
    }

    /// Where the time of a flow at a tap went.
    pub(super) fn add_times(&mut self, tap: TapId, times: &TimeByState) {
        self.at(tap).times.add_all(times);
    }

    /// Those of all taps that have some.
    pub(super) fn by_tap(&self) -> Vec<(TapId, TapMeasures)> {
        let taps = (0..).map(TapId).zip(&self.by_tap);
        taps.filter(|(_, measures)| **measures != TapMeasures::default())
            .map(|(tap, measures)| (tap, measures.clone()))
            .collect()
    }
}
