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
