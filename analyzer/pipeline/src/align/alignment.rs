//! Results of comparing the clocks of a run's inputs.

use roce_capture::Correction;

use crate::taps::Apart;

/// Distances of the clocks of a run's inputs.
#[derive(Debug)]
pub(crate) struct Alignment {
    /// For each input, what its clock was found to be, if it was compared with another one's.
    pub(crate) clocks: Vec<Option<Clock>>,
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
            warnings: Vec::new(),
            shared: inputs > 1,
            apart: Apart::default(),
        }
    }
}

impl Clock {
    /// True if there is anything to correct.
    pub(crate) fn is_off(&self) -> bool {
        self.correction.ahead_ns != 0.0 || self.correction.faster_ppb != 0.0
    }
}
