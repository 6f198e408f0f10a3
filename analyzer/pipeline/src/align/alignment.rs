//! Results of comparing the clocks of a run's inputs.

use roce_capture::Correction;
use roce_model::Time;

use crate::taps::Apart;

/// Distances of the clocks of a run's inputs.
#[derive(Debug)]
pub(crate) struct Alignment {
    /// For each input, what its clock was found to be, if it was compared with another one's.
    pub(crate) clocks: Vec<Option<Clock>>,
    /// Inputs whose clocks were set forward: the first stamp behind the step, and by how much, in nanoseconds.
    pub(crate) set_forward: Vec<(usize, Time, u64)>,
    /// Messages about inputs.
    pub(crate) warnings: Vec<(usize, String)>,
    /// Some inputs saw the same packets, or nothing says that they did not.
    pub(crate) shared: bool,
    /// Inputs whose clocks were aligned.
    pub(crate) apart: Apart,
}

/// Distance of an input's clock from that of another input.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Clock {
    /// The input with the clock that it was compared with, directly or over others.
    pub(crate) reference: usize,
    /// Correction that is subtracted from its times.
    pub(crate) correction: Correction,
    /// By how much that can be wrong; `None`: bounded on one side only.
    pub(crate) uncertainty_ns: Option<f64>,
}

impl Alignment {
    /// No comparison of any input.
    pub(crate) fn none(inputs: usize) -> Self {
        Self {
            clocks: vec![None; inputs],
            set_forward: Vec::new(),
            warnings: Vec::new(),
            shared: inputs > 1,
            apart: Apart::default(),
        }
    }
}

impl Alignment {
    /// Alignment of the inputs in another order: `order` has the number that each had.
    pub(crate) fn reordered(self, order: &[usize]) -> Self {
        let mut places = vec![0; order.len()];
        for (place, input) in order.iter().enumerate() {
            if let Some(of) = places.get_mut(*input) {
                *of = place;
            }
        }
        let new = |old: usize| places.get(old).copied().unwrap_or(old);
        let clocks = order.iter().map(|input| {
            let clock = self.clocks.get(*input).copied().flatten()?;
            Some(Clock {
                reference: new(clock.reference),
                ..clock
            })
        });
        let warnings = self
            .warnings
            .iter()
            .map(|(input, text)| (new(*input), text.clone()));
        let set_forward = self.set_forward.iter();
        Self {
            clocks: clocks.collect(),
            set_forward: set_forward
                .map(|(input, at, by_ns)| (new(*input), *at, *by_ns))
                .collect(),
            warnings: warnings.collect(),
            shared: self.shared,
            apart: self.apart.reordered(order),
        }
    }
}

impl Clock {
    /// True if there is anything to correct.
    pub(crate) fn is_off(&self) -> bool {
        self.correction.ahead_ns != 0.0 || self.correction.faster_ppb != 0.0
    }
}
