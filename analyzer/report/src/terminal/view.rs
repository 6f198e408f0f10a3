//! Input of the sections of the terminal report.

use roce_model::{RunSummary, Totals};

use super::strip::WholeStrip;
use super::style::Style;
use super::top::FlowSums;

/// A run that has ended, and how it is shown.
pub(super) struct View<'a> {
    pub(super) run: &'a RunSummary,
    pub(super) style: &'a Style,
    pub(super) sums: &'a FlowSums,
    /// The totals, each packet counted once.
    pub(super) totals: &'a Totals,
    pub(super) whole: &'a WholeStrip,
}

impl View<'_> {
    /// The value of an option of the run.
    pub(super) fn option(&self, name: &str) -> Option<&str> {
        let mut options = self.run.options.iter();
        options
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }

    /// True if only some flows are shown: their rows came, and no others.
    pub(super) fn is_filtered(&self) -> bool {
        self.option("flow").is_some()
    }
}
