//! Verdicts over a run: episodes, the steps of a training job, and findings, from rows and events as they pass on
//! their way to the sinks. How packets became rows is left to `roce-flow`.

mod arrivals;
mod bin_rows;
mod chance;
mod collectives;
mod coverage;
mod directory;
mod ends;
mod episodes;
mod findings;
mod host_pair;
mod host_pairs;
mod numbers;
mod pauses;
#[cfg(test)]
mod rows;
mod senders;
mod settings;
mod steps;
mod tap_vantage;
mod thresholds;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use roce_lateness::Lateness;
use roce_model::{
    CreditedConnection, EventKind, EventRow, Filter, FlowId, FlowRow, JobLog, JobSteps, LinkAddresses,
    PauseFrame, RunSummary, SampleColumns, SampleRow, Snapshot, Span, TapId, TapRow, Time, Wiring,
};

pub use bin_rows::{BinRows, PacketTimes, PairTraffic, TranslatedPairs};
pub use chance::at_least;
pub use coverage::leave_unclear;
pub use findings::{MECHANISMS, Mechanism, NO_TROUBLE, RULES, add_slowed_collectives, add_stuck_job};
pub use host_pair::HostPair;
pub use host_pairs::HostPairs;
pub use settings::{CELL, Settings, cell_of, counted_width};
pub use steps::LoggedStep;
pub use thresholds::{Threshold, ThresholdError, ThresholdValue, Thresholds};

use arrivals::Arrivals;
use collectives::Collectives;
use directory::Directory;
use ends::Ends;
use episodes::{Episode, Episodes};
use findings::{Findings, ThinCapture};
use pauses::Pauses;
use steps::Steps;
use tap_vantage::Vantages;

/// Takes what the sinks get and concludes from it.
#[derive(Debug)]
pub struct Verdicts {
    directory: Directory,
    vantages: Vantages,
    episodes: Episodes,
    findings: Findings,
    pauses: Pauses,
    /// Width of the bins that rows come in.
    width: Span,
    settings: Settings,
    /// Findings about the flows that are shown alone.
    of_shown: Option<Box<OfShown>>,
    steps: Steps,
    collectives: Collectives,
    steps_in_snapshots: bool,
    arrivals: Arrivals,
    ends: Ends,
    /// Records lost up to now, by tap.
    lost: BTreeMap<TapId, u64>,
}

/// The rules over the flows that are shown.
#[derive(Debug)]
struct OfShown {
    filter: Filter,
    findings: Findings,
    flows: HashSet<FlowId>,
}

/// Shown flows that are remembered, at most: some 16 MB.
const MAX_SHOWN: usize = 1 << 20;

impl OfShown {
    fn flow(&mut self, row: &FlowRow) {
        let shown = row
            .key()
            .is_some_and(|key| self.filter.matches_flow(&key, row.dscp));
        if shown {
            self.findings.flow(row);
            if self.flows.len() < MAX_SHOWN {
                self.flows.insert(row.flow_id);
            }
        }
    }

    /// True if any flow of an episode is shown.
    fn concerns(&self, episode: &Episode) -> bool {
        let facts = &episode.facts;
        let senders = facts.aggressors.iter().map(|(flow, _)| flow);
        let mut all = facts.named.iter().chain(&facts.victims).chain(senders);
        all.any(|flow| self.flows.contains(flow))
    }
}

/// Maximum number of episodes in a snapshot.
const MAX_EPISODES: usize = 256;

/// Who was late in the collectives of jobs: fills in their rows, and the sums of each connection.
fn lateness(run: &mut RunSummary, directory: &Directory, job: &JobLog) -> Lateness {
    // The packets bound the differences of clocks better than what is known of each tap.
    let channel = |connection: &CreditedConnection| {
        let flow = *connection.data_flows.first()?;
        let mut taps = run.taps.iter();
        taps.find_map(|tap| directory.ranks(tap.tap, flow)?.channel)
    };
    let channels: Vec<Option<u32>> = run.credited.iter().map(channel).collect();
    let mut lateness = roce_lateness::find_lateness(&run.credited, |_| None, &channels, &job.windows);
    for (row, times) in run.credits.iter_mut().zip(&lateness.connections) {
        row.sender_late_ns = times.sender_late_ns;
        row.receiver_late_ns = times.receiver_late_ns;
        row.network_late_ns = times.network_late_ns;
        row.rest_ns = times.rest_ns;
        row.unknown_ns = times.unknown_ns;
    }
    for job in &mut lateness.jobs {
        run.collective_waits.append(&mut job.rows);
    }
    lateness
}

impl Verdicts {
    /// Verdicts over a run that has not started.
    pub fn new(settings: Settings) -> Self {
        let width = counted_width(settings.bin);
        Self {
            directory: Directory::default(),
            vantages: Vantages::default(),
            episodes: Episodes::new(&settings),
            steps: Steps::new(width, settings.training_log.clone()),
            collectives: Collectives::default(),
            steps_in_snapshots: settings.steps_in_snapshots,
            ends: Ends::default(),
            arrivals: Arrivals::new(width, settings.thresholds.arrivals_fell),
            of_shown: settings.shown.clone().map(|filter| {
                Box::new(OfShown {
                    filter,
                    findings: Findings::new(settings.clone()),
                    flows: HashSet::new(),
                })
            }),
            findings: Findings::new(settings.clone()),
            pauses: Pauses::default(),
            width,
            settings,
            lost: BTreeMap::new(),
        }
    }

    /// Replaces the cables and addresses of the settings: switches may report them while the run goes on.
    pub fn set_wiring(&mut self, wiring: Arc<Wiring>) {
        self.settings.wiring = wiring;
    }

    /// The rows and events that follow are of the bin that begins at `time`.
    pub fn begin_bin(&mut self, time: Time) {
        self.episodes.begin_cell(cell_of(time));
        self.arrivals.begin_bin(time);
    }

    /// Takes the traffic of a shard in the bin, pair by pair.
    pub fn traffic(&mut self, time: Time, rows: &BinRows, pairs: &HostPairs) {
        self.pauses.traffic(time.0, self.width.0, rows);
        for (at, traffic) in rows.traffic.iter().enumerate() {
            if let Some(later) = rows.traffic.get(at + 2 * bin_rows::PAIR_LAG) {
                self.steps.prefetch_place(later.hosts);
            }
            if let Some(later) = rows.traffic.get(at + bin_rows::PAIR_LAG) {
                self.steps.prefetch_pair(later.hosts);
            }
            self.findings.sent(traffic.tap, traffic.all_wire_bytes);
            if traffic.payload_bytes > 0 {
                self.steps.sent(time, traffic, pairs);
                self.arrivals.sent(traffic);
            }
        }
    }

    /// The numbers of pairs and destinations have started again.
    pub fn renumber(&mut self, pairs: &mut HostPairs) {
        self.episodes.renumber(pairs);
        self.steps.renumber();
        self.arrivals.renumber();
    }

    /// A reading of a counter of the host that captures.
    pub fn sample(&mut self, row: &SampleRow) {
        self.findings.sample(row);
        // A capture that shows nothing shows none of the wanted flows either.
        if let Some(shown) = &mut self.of_shown {
            shown.findings.sample(row);
        }
    }

    /// An event; those of a bin come in the order of time.
    pub fn event(&mut self, event: &EventRow) {
        if matches!(event.kind, EventKind::CaptureLost | EventKind::MirrorLost) {
            let lost = self.lost.entry(event.tap).or_default();
            *lost = lost.saturating_add(event.value.unwrap_or_default());
        }
        self.episodes.event(event);
        self.findings.event(event);
        self.ends.event(event);
        self.pauses.event(event);
    }

    /// A pause frame.
    pub fn pause(&mut self, frame: &PauseFrame) {
        self.episodes.pause(frame);
        self.pauses.pause(frame);
        self.findings.pause(frame);
        if let Some(shown) = &mut self.of_shown {
            shown.findings.pause(frame);
        }
    }

    /// Link addresses between which two hosts talk, at a tap with pause frames. Giving them twice does no harm.
    pub fn link(&mut self, link: &LinkAddresses) {
        self.pauses.link(link);
    }

    /// All traffic of the bin was given.
    pub fn end_bin(&mut self, pairs: &HostPairs) {
        self.arrivals.end_bin(pairs);
    }

    /// The last bin of the cell that began last has ended. `bins`: the begin and the rows of each of its bins; all their events were given.
    pub fn end_cell<'a>(
        &mut self,
        pairs: &HostPairs,
        bins: impl Iterator<Item = (Time, &'a BinRows)> + Clone,
    ) {
        self.episodes.end_cell(pairs, bins);
        self.findings.end_cell();
    }

    /// A flow that is complete; most of its rows were given before.
    pub fn flow(&mut self, row: &FlowRow) {
        self.directory.note(row);
        self.vantages.flow(row);
        self.pauses.flow(row);
        self.ends.flow(row);
        self.findings.flow(row);
        if let Some(shown) = &mut self.of_shown {
            shown.flow(row);
        }
        self.steps.flow(row);
        self.collectives.flow(row);
    }

    /// Readings of counters and gauges of all hosts, also of those that are joined; those of one series come in the order of time.
    pub fn samples(&mut self, rows: &SampleColumns) {
        self.findings.samples(rows);
        self.pauses.samples(rows);
        if let Some(shown) = &mut self.of_shown {
            shown.findings.samples(rows);
        }
    }

    /// Verdicts while the run goes on: of its closed flows and of those that are `live`. Of the many episodes of a long run, it
    /// has the latest.
    pub fn snapshot(&self, live: Option<Vec<FlowRow>>) -> Snapshot {
        let Some(flows) = live else {
            return Snapshot {
                too_many: true,
                jobs: self.jobs(),
                ..Snapshot::default()
            };
        };
        let mut directory = self.directory.clone();
        for row in &flows {
            directory.note(row);
        }
        let (finished, _) = self.episodes.clone().conclude(&directory);
        let episodes = episodes::tell(finished, &directory);
        // A stall at a tap that lost records is less sure.
        let taps = self.lost.iter().map(|(tap, records)| TapRow {
            tap: *tap,
            frames_lost: *records,
            ..TapRow::default()
        });
        let run = RunSummary {
            taps: taps.collect(),
            ..RunSummary::default()
        };
        let findings = self.findings.snapshot(&flows, &run, &directory, &episodes);
        let old = episodes.len().saturating_sub(MAX_EPISODES);
        Snapshot {
            flows,
            episodes: episodes
                .into_iter()
                .skip(old)
                .map(|episode| episode.row)
                .collect(),
            findings,
            jobs: self.jobs(),
            ..Snapshot::default()
        }
    }

    /// Steps of training jobs as they stand, where snapshots have them.
    fn jobs(&self) -> Vec<JobSteps> {
        if self.steps_in_snapshots {
            self.steps.snapshot()
        } else {
            Vec::new()
        }
    }

    /// The end: fills in the run's vantages, episodes, steps and findings. Everything else in `run` is there already.
    pub fn conclude(self, run: &mut RunSummary) {
        self.vantages.conclude(run);
        run.ends = self.ends.conclude(run);
        let (finished, dropped) = self.episodes.conclude(&self.directory);
        let episodes = episodes::tell(finished, &self.directory);
        let mut fabric = self
            .pauses
            .conclude(&self.settings, run, &self.directory, &episodes);
        run.waits = std::mem::take(&mut fabric.waits);
        let lateness = lateness(run, &self.directory, &self.settings.job);
        let all = (&self.directory, &self.arrivals, &fabric, &lateness);
        let concluded = self.findings.conclude(run, all, (&episodes, dropped), None);
        (run.findings, run.sentence) = (concluded.findings, concluded.sentence);
        if let Some(shown) = self.of_shown {
            let of_them: Vec<Episode> = episodes
                .iter()
                .filter(|episode| shown.concerns(episode))
                .cloned()
                .collect();
            let fired = shown
                .findings
                .conclude(run, all, (&of_them, dropped), Some(&shown.flows))
                .findings;
            for finding in &mut run.findings {
                finding.concerns_shown = Some(fired.iter().any(|other| other.id == finding.id));
            }
        }
        run.episodes = episodes.into_iter().map(|episode| episode.row).collect();
        if concluded.thin {
            run.episodes.retain(|episode| ThinCapture::shows(episode.kind));
            ThinCapture::leave_unclear(run);
        }
        (run.steps, run.training_log) = self.steps.conclude(&run.episodes);
        run.collectives.clone_from(&self.settings.job.shapes);
        run.collectives.extend(self.collectives.conclude(&run.steps));
        // They were there for the rules alone.
        (run.attempts, run.exchanges) = (Vec::new(), Vec::new());
    }
}
