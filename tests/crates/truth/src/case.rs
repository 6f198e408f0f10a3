//! One case: a random scenario is simulated, its captures are analysed together as the command does it,
//! and both results are compared. This file knows which taps belong together, and how far their clocks
//! differ.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use roce_model::{FlowRow, SinkError, TapRow};
use roce_sim::scenario::TapTable;
use roce_sim::truth::{Connection, Flow, Loss, LossSide, Tap};
use roce_sim::units::Picos;
use roce_sim::{Counters, OutputPlan, Scenario, Truth, simulate, simulate_with_counters};

use crate::families::Family;
use crate::plan::RandomScenario;
use crate::runs::covers;
use crate::seen::{Event, SeenRun};
use crate::thin::RecordThinning;

/// Readings of counters in one run.
const READINGS: u64 = 16;

/// A scenario's truth, and the results of its analysis.
#[derive(Debug)]
pub struct Case {
    /// The scenario.
    pub scenario: RandomScenario,
    /// The scenario, as the simulator reads it.
    pub parsed: Scenario,
    /// Events of the simulation.
    pub truth: Truth,
    /// Results of the analysis.
    pub seen: SeenRun,
    /// Results of the analysis of each capture alone, where the scenario asks for them.
    pub alone: Vec<SeenRun>,
}

impl Case {
    /// Makes the case of a family and a seed. Its captures are written into `folder`.
    ///
    /// # Errors
    /// When a file cannot be written, or the analysis fails.
    pub fn run(family: &'static Family, seed: u64, folder: &Path) -> Result<Self, SinkError> {
        Self::thinned(family, seed, folder, None)
    }

    /// Runs a case whose captures have only a part of the records. Their truth is that of whole ones.
    ///
    /// # Errors
    /// When a file cannot be written, or the analysis fails.
    pub(crate) fn thinned(
        family: &'static Family,
        seed: u64,
        folder: &Path,
        thinning: Option<RecordThinning>,
    ) -> Result<Self, SinkError> {
        let scenario = family.scenario(seed);
        let parsed = Scenario::parse(&scenario.toml)?;
        let path = folder.join(format!("{}-{seed}.pcapng", family.name));
        let plan = OutputPlan::Files {
            path,
            overwrite: true,
        };
        let mut arguments: Vec<OsString> = ["--format", "none", "--threads", "1"].map(OsString::from).into();
        let mut truth = if scenario.counters {
            // Sixteen readings: some happen between two, as with any counter.
            let every = Picos(parsed.duration.0 / READINGS);
            let (truth, counters) = simulate_with_counters(&parsed, &plan, every)?;
            let place = folder.join(format!("{}-{seed}-counters", family.name));
            counters.write(&place, &truth, true)?;
            arguments.push("--samples".into());
            arguments.push(place.join(Counters::SAMPLES).into());
            arguments.push("--inventory".into());
            arguments.push(place.join(Counters::INVENTORY).into());
            truth
        } else {
            simulate(&parsed, &plan)?
        };
        // Results name captures of one folder by their names.
        for tap in &mut truth.taps {
            let name = Path::new(&tap.file).file_name();
            tap.file = name.unwrap_or_default().to_string_lossy().into_owned();
        }
        arguments.extend(scenario.arguments.iter().map(OsString::from));
        let paths = plan.paths(&parsed);
        if let Some(thinning) = thinning {
            paths.iter().try_for_each(|path| thinning.apply(path, seed))?;
        }
        let analyse = |paths: &[PathBuf]| {
            let mut arguments = arguments.clone();
            arguments.extend(paths.iter().map(OsString::from));
            let mut results = SeenRun::default();
            roce_analyze::analyse_arguments(arguments, &mut results)?;
            Ok::<_, SinkError>(results)
        };
        let alone = paths.chunks(1).filter(|_| scenario.alone);
        let alone = alone.map(analyse).collect::<Result<_, _>>()?;
        let results = analyse(&paths)?;
        Ok(Self {
            scenario,
            parsed,
            truth,
            seen: results,
            alone,
        })
    }

    /// True if a tap of the analysis is this one: a file's interface, with or without a mirror's
    /// session.
    pub fn is_at(&self, tap: &Tap, number: u32) -> bool {
        self.rows_of(tap).any(|row| row.tap.0 == number)
    }

    /// The rows that the analysis has of a tap: one, or more where a mirror has several sessions.
    pub fn rows_of<'a>(&'a self, tap: &'a Tap) -> impl Iterator<Item = &'a TapRow> {
        let rows = self.seen.summary.taps.iter();
        rows.filter(|row| {
            row.input == tap.file && row.interface.as_ref().is_none_or(|name| *name == tap.name)
        })
    }

    /// True if a tap records what passes it at a time.
    pub fn is_recording(&self, tap: &Tap, time: u64) -> bool {
        self.table(tap)
            .is_none_or(|table| table.is_recording(Picos::from_nanos(time)))
    }

    /// Packets of a flow that the network delivered twice and that a tap recorded twice.
    pub fn network_duplicates(tap: &Tap, flow: &str) -> u64 {
        tap.duplicates.iter().filter(|copy| copy.flow_id == flow).count() as u64
    }

    /// On which side of a tap a packet was lost, if it passes the tap or its flow does.
    pub fn side(tap: &Tap, loss: &Loss) -> Option<LossSide> {
        let here = loss.at_taps.iter().find(|here| here.tap == tap.name);
        here.map(|here| here.side)
    }

    /// Frames that the mirror of a tap gave twice.
    pub fn mirror_copies(tap: &Tap) -> u64 {
        tap.copies
    }

    /// The flow of the other direction.
    pub fn peer(&self, flow: &str) -> Option<&str> {
        let mut connections = self.truth.connections.iter();
        connections.find_map(|each| {
            if each.a.flow_id == flow {
                Some(each.b.flow_id.as_str())
            } else if each.b.flow_id == flow {
                Some(each.a.flow_id.as_str())
            } else {
                None
            }
        })
    }

    /// True if a flow's packets pass one tap, and then the other, and both recorded some of it. The
    /// order is known for taps at its ends: at the sender, at the port of the switch next to it, at the
    /// port next to the receiver, at the receiver.
    pub fn passes(&self, from: &Tap, to: &Tap, flow: &str) -> bool {
        let recorded = |tap: &Tap| {
            tap.flows
                .iter()
                .any(|seen| seen.flow_id == flow && seen.packets > 0)
        };
        let Some(flow) = self.flow(flow) else {
            return false;
        };
        let place = |tap: &Tap| match (tap.at_host, &tap.node, &tap.neighbour) {
            (true, node, _) if *node == flow.source => 0,
            (false, _, neighbour) if *neighbour == flow.source => 1,
            (false, _, neighbour) if *neighbour == flow.destination => 3,
            (true, node, _) if *node == flow.destination => 4,
            _ => 2,
        };
        recorded(from) && recorded(to) && place(from) < place(to)
    }

    /// True if one of these taps recorded a run that retransmitted a lost packet, or that requested a
    /// lost READ response again.
    pub fn is_sent_again(&self, loss: &Loss, taps: &[&Tap]) -> bool {
        let peer = self.peer(&loss.flow_id).unwrap_or_default();
        let mut runs = self.truth.retransmission_runs.iter();
        runs.any(|run| {
            (run.flow_id == loss.flow_id || run.flow_id == peer)
                && run.end >= loss.time
                && covers(run.first_psn, loss.psn)
                && run
                    .taps
                    .iter()
                    .any(|here| taps.iter().any(|tap| tap.name == here.tap))
        })
    }

    /// True if the sender of a flow slows down on CNPs.
    pub fn reacts(&self, flow: &str) -> bool {
        self.flow(flow).is_some_and(|flow| flow.reacts)
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
        // Where packets go in one direction only, and arrive after they left, nothing is corrected.
        let mut rows = self.seen.summary.taps.iter().filter(|row| row.input == tap.file);
        let is_corrected = rows.any(|row| row.clock_offset_ns.is_some_and(|offset| offset != 0.0));
        let clock = if is_corrected { self.clock_of(tap) } else { tap };
        let drift = i128::from(time) * i128::from(clock.clock_drift_ppb) / 1_000_000_000;
        let stepped = clock.clock_steps.iter().filter(|step| step.time <= time);
        let stepped: i128 = stepped.map(|step| i128::from(step.by_ns)).sum();
        let right = i128::from(self.truth.start_ns) + i128::from(time) + stepped;
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

    /// The scenario's table of a tap.
    pub fn table(&self, tap: &Tap) -> Option<&TapTable> {
        let mut tables = self.parsed.tap.iter();
        tables.find(|table| table.name.as_deref().unwrap_or(&table.at) == tap.name)
    }

    /// The multiple of nanoseconds that a tap's stamps are rounded down to.
    #[expect(clippy::cast_precision_loss, reason = "a second in ns needs 30 bits")]
    pub fn quantum(&self, tap: &Tap) -> f64 {
        let table = self.table(tap);
        table.map_or(0.0, |table| {
            (table.quantum.nanos() + table.poll.map_or(0, Picos::nanos)) as f64
        })
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

    /// True if both directions of the connection of a flow can be paired at a tap.
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
