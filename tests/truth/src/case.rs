//! One case: a random scenario is simulated, its captures are analysed together as the command does it, and what both
//! say is put side by side. Which taps belong together and how their clocks stand is told here.

use std::ffi::OsString;
use std::path::Path;

use roce_model::{FlowRow, SinkError};
use roce_sim::truth::{Connection, Flow, Tap};
use roce_sim::{OutputPlan, Scenario, Truth, simulate};

use crate::random::{RandomScenario, scenario};
use crate::seen::{Event, Seen};

/// A scenario's truth, and what the analysis says of it.
#[derive(Debug)]
pub struct Case {
    /// The scenario.
    pub scenario: RandomScenario,
    /// What happened.
    pub truth: Truth,
    /// What the analysis says.
    pub seen: Seen,
}

impl Case {
    /// Makes the case of a seed. Its captures are written into `folder`.
    ///
    /// # Errors
    /// When a file cannot be written, or the analysis fails.
    pub fn run(seed: u64, folder: &Path) -> Result<Self, SinkError> {
        let scenario = scenario(seed);
        let parsed = Scenario::parse(&scenario.toml)?;
        let path = folder.join(format!("{seed}.pcapng"));
        let plan = OutputPlan::Files { path };
        let truth = simulate(&parsed, &plan)?;
        let mut arguments: Vec<OsString> = ["--format", "none", "--threads", "1"].map(OsString::from).into();
        arguments.extend(scenario.arguments.iter().map(OsString::from));
        arguments.extend(plan.paths(&parsed).into_iter().map(OsString::from));
        let mut results = Seen::default();
        roce_analyze::analyse_as_told(arguments, &mut results)?;
        Ok(Self {
            scenario,
            truth,
            seen: results,
        })
    }

    /// Whether a tap of the analysis is this one: a file's interface, with or without a mirror's session.
    pub fn is_at(&self, tap: &Tap, number: u32) -> bool {
        let rows = &self.seen.summary.taps;
        rows.iter()
            .any(|row| row.tap.0 == number && row.input == tap.file)
    }

    /// The flows' rows at a tap.
    pub fn flows_at<'a>(&'a self, tap: &'a Tap) -> impl Iterator<Item = &'a FlowRow> {
        self.seen.flows.iter().filter(|row| self.is_at(tap, row.tap.0))
    }

    /// The events of a kind at a tap.
    pub fn events_at<'a>(&'a self, tap: &'a Tap, kind: &'a str) -> impl Iterator<Item = &'a Event> {
        let events = self.seen.events.iter();
        events.filter(move |event| event.kind == kind && self.is_at(tap, event.tap))
    }

    /// The tap that the clock of `tap` was compared with; itself, when it was with none.
    pub fn clock_of<'a>(&'a self, tap: &'a Tap) -> &'a Tap {
        let rows = &self.seen.summary.taps;
        let reference = rows
            .iter()
            .filter(|row| row.input == tap.file)
            .find_map(|row| row.clock_reference);
        let input = reference.and_then(|reference| rows.iter().find(|row| row.tap == reference));
        input
            .and_then(|row| self.truth.taps.iter().find(|other| other.file == row.input))
            .unwrap_or(tap)
    }

    /// The stamp that the analysis gives what passes `tap` at `time`, if it knows the clocks well.
    pub fn stamp(&self, tap: &Tap, time: u64) -> u64 {
        // Where packets go one way only, and arrive after they left, nothing is corrected.
        let mut rows = self.seen.summary.taps.iter().filter(|row| row.input == tap.file);
        let is_corrected = rows.any(|row| row.clock_offset_ns.is_some_and(|offset| offset != 0.0));
        let clock = if is_corrected { self.clock_of(tap) } else { tap };
        let drift = i128::from(time) * i128::from(clock.clock_drift_ppb) / 1_000_000_000;
        let right = i128::from(self.truth.start_ns) + i128::from(time);
        u64::try_from(right + i128::from(clock.clock_offset_ns) + drift).unwrap_or_default()
    }

    /// By how much a stamp can be off.
    pub fn stamp_error(&self, tap: &Tap) -> u64 {
        let rows = self.seen.summary.taps.iter();
        let uncertainty = rows
            .filter(|row| row.input == tap.file)
            .filter_map(|row| row.clock_uncertainty_ns);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the cast saturates"
        )]
        let uncertainty = uncertainty.fold(0.0, f64::max) as u64;
        uncertainty + 2_000
    }

    /// A flow of the truth.
    pub fn flow(&self, id: &str) -> Option<&Flow> {
        self.truth.flows.iter().find(|flow| flow.flow_id == id)
    }

    /// The address of a host.
    pub fn address(&self, host: &str) -> Option<&str> {
        let ends = self.truth.connections.iter().flat_map(|each| [&each.a, &each.b]);
        ends.filter(|end| end.host == host)
            .map(|end| end.address.as_str())
            .next()
    }

    /// Whether both directions of the connection that a flow belongs to can be paired at a tap.
    pub fn is_paired_at(&self, tap: &Tap, flow: &str) -> bool {
        self.connections_of(flow).any(|connection| {
            connection.service == "RC"
                && connection
                    .taps
                    .iter()
                    .any(|seen| seen.tap == tap.name && seen.observable)
        })
    }

    fn connections_of<'a>(&'a self, flow: &'a str) -> impl Iterator<Item = &'a Connection> {
        let connections = self.truth.connections.iter();
        connections.filter(move |each| each.a.flow_id == flow || each.b.flow_id == flow)
    }
}
