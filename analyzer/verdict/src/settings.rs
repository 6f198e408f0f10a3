//! Settings of the verdicts, besides rows and events.

use std::sync::Arc;

use roce_model::{CapturePart, Expectation, Filter, JobLog, PRIORITY_OF_DSCP, Span, Time, Wiring};

use crate::steps::LoggedStep;
use crate::thresholds::Thresholds;

/// Verdicts look at the traffic cell by cell of this width, however wide the bins of a timeline are: bins draw, they do not decide.
pub const CELL: Span = Span(1_000_000);

/// Width of the bins in which a run counts for a timeline with bins of this width: that width, or an equal part of it that fits into a cell.
pub fn counted_width(bin: Span) -> Span {
    let bin = bin.0.max(1);
    let parts = bin.div_ceil(CELL.0);
    // A width that no such number divides is an odd one: then its bins are counted as they are.
    let even = (parts..parts.saturating_mul(8)).find(|parts| bin.is_multiple_of(*parts));
    Span(even.map_or(bin, |parts| bin / parts))
}

/// The begin of the cell that a time lies in.
pub fn cell_of(time: Time) -> Time {
    Time(time.0 - time.0 % CELL.0)
}

/// Data packets for each one that a capture without Middles has: a message of 16 packets has two ends.
const PACKETS_OF_AN_END: u64 = 8;

/// Packets of a sample that show a class, at least.
const MIN_SAMPLED_PACKETS: u64 = 8;

/// Settings of the verdicts.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Width of a timeline bin.
    pub bin: Span,
    /// Speed of the links, in bit/s, if given.
    pub link_rate: Option<u64>,
    /// Steps in the training script's log, in its order.
    pub training_log: Vec<LoggedStep>,
    /// Thresholds of episodes and findings.
    pub thresholds: Thresholds,
    /// Flows that are shown; verdicts are about all.
    pub shown: Option<Filter>,
    /// Cables, switches and the ports of addresses, as far as somebody named them.
    pub wiring: Arc<Wiring>,
    /// Classes and path MTU that somebody expects of the traffic.
    pub expectation: Expectation,
    /// Packets that the captures hold, where somebody says that they lack others.
    pub sampled: Option<CapturePart>,
    /// The priority, 0 to 7, of untagged packets by their DSCP.
    pub priority_of_dscp: [u8; 64],
    /// The job's own log, as far as somebody gave it.
    pub job: Arc<JobLog>,
    /// Snapshots have the steps of training jobs. They are searched for in the traffic each time.
    pub steps_in_snapshots: bool,
}

impl Settings {
    /// Data packets by which the class of a flow is known: of a declared sample as many as the sample has of `least_data_packets`, and 8 at
    /// least. Each packet carries its class, so that the ones that are here prove it.
    pub(crate) fn least_class_packets(&self) -> u64 {
        let least = self.thresholds.least_data_packets.max(1);
        let part = match self.sampled {
            None => return least,
            Some(CapturePart::OneIn(rate)) => least / u64::from(rate).max(1),
            Some(CapturePart::Ends) => least / PACKETS_OF_AN_END,
        };
        part.max(MIN_SAMPLED_PACKETS).min(least)
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            bin: Span(1_000_000),
            link_rate: None,
            training_log: Vec::new(),
            thresholds: Thresholds::default(),
            shown: None,
            wiring: Arc::default(),
            expectation: Expectation::default(),
            sampled: None,
            priority_of_dscp: PRIORITY_OF_DSCP,
            job: Arc::default(),
            steps_in_snapshots: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_are_counted_in_parts_that_fit_into_a_cell() {
        let widths = [
            10_000,
            500_000,
            1_000_000,
            2_000_000,
            1_500_000,
            100_000_000,
            37_000_000,
        ];
        let counted = widths.map(|width| counted_width(Span(width)).0);
        assert_eq!(
            counted,
            [
                10_000, 500_000, 1_000_000, 1_000_000, 750_000, 1_000_000, 1_000_000
            ]
        );
        assert_eq!(counted_width(Span(0)), Span(1));
        assert_eq!(
            counted_width(Span(2_147_483_647)),
            Span(2_147_483_647),
            "a prime number"
        );
        assert_eq!(cell_of(Time(2_999_999)), Time(2_000_000));
    }
}
