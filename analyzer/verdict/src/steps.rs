//! The steps of a training job: its traffic comes in bursts, one a step, between the same hosts and at even distances. Here
//! the bursts of all pairs of hosts become steps with numbers; how one pair's bursts are found is in `bursts`, the script's
//! own log in `log`.

mod bursts;
mod log;

use std::collections::{BTreeMap, HashMap};

use roce_model::cast::{float, whole};
use roce_model::{
    Address, EpisodeRow, FlowRow, Groups, JobSteps, Span, StepRow, TapId, Time, TrainingLogFit, prefetch,
};

use crate::bin_rows::PairTraffic;
use crate::host_pair::HostPair;
use crate::host_pairs::HostPairs;
use bursts::{Burst, Rhythm, median};
use log::Log;
pub use log::LoggedStep;

/// Pairs of hosts that are followed; a job's hosts talk to a few others each.
const MAX_PAIRS: usize = 2048;
/// Stretches of traffic that are kept: of all pairs together, about, and of one.
const MAX_STRETCHES: usize = 1 << 19;
const MAX_OF_PAIR: usize = 8192;
const MIN_OF_PAIR: usize = 256;
/// Stretches of a pair in which a snapshot looks for steps: the latest ones.
const MAX_OF_SNAPSHOT: usize = 2048;

/// Pairs whose periods differ by more than this factor take part in different jobs.
const SAME_PERIOD: f64 = 1.2;
/// Standard deviations over the pair's median from which on a step is an outlier. They are estimated from the
/// median absolute deviation, so that outliers do not hide themselves.
const OUTLIER_SIGMAS: f64 = 3.0;
/// Share over the pair's median from which on a step is an outlier: very regular steps would otherwise make
/// outliers of nothing.
const OUTLIER_SHARE: f64 = 0.1;
/// The standard deviation of a normal distribution over its median absolute deviation: 1 / 0.6745.
const SIGMA_OF_MAD: f64 = 1.4826;

/// The traffic between pairs of hosts, as it passes.
#[derive(Debug)]
pub(crate) struct Steps {
    bin: u64,
    log: Log,
    places: HashMap<u64, usize, foldhash::fast::RandomState>,
    /// Its place by the number of the directed pair.
    of_numbers: Vec<PlaceOf>,
    pairs: Vec<Pair>,
    /// Last stretch of each pair.
    going: Vec<OpenStretch>,
}

/// Where the two hosts of a directed pair are.
#[derive(Clone, Copy, Debug)]
enum PlaceOf {
    Unknown,
    /// Too many others are followed.
    Nowhere,
    At(usize),
}

/// A pair's last stretch of traffic, which most rows only prolong: nothing else of the pair is touched then.
#[derive(Clone, Copy, Debug)]
struct OpenStretch {
    /// As in [`Pair::stretches`], but up to date; `None` before the first one.
    last: Option<Burst>,
    joined: u64,
}

/// The traffic between two hosts at one tap, both directions together.
#[derive(Debug)]
struct Pair {
    tap: TapId,
    /// Known when the first of its flows has closed.
    hosts: Option<(Address, Address)>,
    /// Bins with application data, adjacent ones together.
    stretches: Vec<Burst>,
    /// Silences up to this long are left out, for want of room, in ns.
    joined: u64,
}

impl Pair {
    /// Application data in the bin from `start` to `end`.
    fn add(&mut self, start: u64, end: u64, bytes: u64, most: usize) {
        if let Some(last) = self.stretches.last_mut() {
            if start < last.start {
                // Stamped far out of order: it counts where there was traffic.
                let after = self.stretches.partition_point(|stretch| stretch.start <= start);
                let before = after.checked_sub(1).and_then(|at| self.stretches.get_mut(at));
                if let Some(stretch) = before.filter(|stretch| start < stretch.end) {
                    stretch.bytes = stretch.bytes.saturating_add(bytes);
                }
                return;
            }
            if start.saturating_sub(last.end) <= self.joined {
                last.end = last.end.max(end);
                last.bytes = last.bytes.saturating_add(bytes);
                return;
            }
        }
        if self.stretches.len() >= most {
            self.make_room();
        }
        self.stretches.push(Burst { start, end, bytes });
    }

    /// Brings the last stretch up to date.
    fn catch_up(&mut self, going: &OpenStretch) {
        if let (Some(last), Some(now)) = (self.stretches.last_mut(), going.last) {
            *last = now;
        }
    }

    /// Joins the stretches with the shorter half of the silences between them.
    fn make_room(&mut self) {
        let mut silences = bursts::silences(&self.stretches);
        if silences.is_empty() {
            return;
        }
        let middle = silences.len() / 2;
        let (_, silence, _) = silences.select_nth_unstable(middle);
        self.joined = self.joined.max(*silence);
        self.stretches = bursts::join(&self.stretches, self.joined);
    }
}

impl Steps {
    pub(crate) fn new(bin: Span, log: Vec<LoggedStep>) -> Self {
        Self {
            bin: bin.0.max(1),
            log: Log::new(log),
            places: HashMap::default(),
            of_numbers: Vec::new(),
            pairs: Vec::new(),
            going: Vec::new(),
        }
    }

    /// Prefetches where a pair is followed.
    #[inline]
    pub(crate) fn prefetch_place(&self, pair: HostPair) {
        if let Some(place) = self.of_numbers.get(pair.number as usize) {
            prefetch(place);
        }
    }

    /// Prefetches what is going on between a pair of hosts.
    #[inline]
    pub(crate) fn prefetch_pair(&self, pair: HostPair) {
        if let Some(PlaceOf::At(place)) = self.of_numbers.get(pair.number as usize)
            && let Some(going) = self.going.get(*place)
        {
            prefetch(going);
        }
    }

    /// Application data was sent between two hosts in the bin that begins at `time`.
    #[inline]
    pub(crate) fn sent(&mut self, time: Time, traffic: &PairTraffic, pairs: &HostPairs) {
        let (start, end) = (time.0, time.0.saturating_add(self.bin));
        let Some(place) = self.place_of(traffic.tap, traffic.hosts, pairs) else {
            return;
        };
        match &mut self.going[place] {
            OpenStretch {
                last: Some(last),
                joined,
            } if start >= last.start && start.saturating_sub(last.end) <= *joined => {
                last.end = last.end.max(end);
                last.bytes = last.bytes.saturating_add(traffic.payload_bytes);
            }
            _ => self.add_apart(place, start, end, traffic.payload_bytes),
        }
    }

    /// Application data of the pair at `place` that may not prolong its last stretch.
    #[inline(never)]
    fn add_apart(&mut self, place: usize, start: u64, end: u64, bytes: u64) {
        let most = (MAX_STRETCHES / self.pairs.len().max(1)).clamp(MIN_OF_PAIR, MAX_OF_PAIR);
        let (pair, going) = (&mut self.pairs[place], &mut self.going[place]);
        pair.catch_up(going);
        pair.add(start, end, bytes, most);
        (going.last, going.joined) = (pair.stretches.last().copied(), pair.joined);
    }

    /// A flow that is complete: who its hosts are. Its last rows may follow.
    pub(crate) fn flow(&mut self, row: &FlowRow) {
        let ends = (row.source.min(row.destination), row.source.max(row.destination));
        if let Some(place) = self.place(row.tap, Groups::new(row.tap, row.source, row.destination)) {
            self.pairs[place].hosts.get_or_insert(ends);
        }
    }

    /// The numbers of pairs have started again.
    pub(crate) fn renumber(&mut self) {
        self.of_numbers.clear();
    }

    /// The place of the two hosts of a directed pair; `None` when too many others are followed.
    #[inline]
    fn place_of(&mut self, tap: TapId, pair: HostPair, pairs: &HostPairs) -> Option<usize> {
        match self.of_numbers.get(pair.number as usize) {
            Some(PlaceOf::At(place)) => Some(*place),
            Some(PlaceOf::Nowhere) => None,
            _ => self.find_place_of(tap, pair, pairs),
        }
    }

    #[inline(never)]
    fn find_place_of(&mut self, tap: TapId, pair: HostPair, pairs: &HostPairs) -> Option<usize> {
        let (place, at) = (self.place(tap, pairs.groups(pair)), pair.number as usize);
        if self.of_numbers.len() <= at {
            self.of_numbers.resize(at + 1, PlaceOf::Unknown);
        }
        self.of_numbers[at] = place.map_or(PlaceOf::Nowhere, PlaceOf::At);
        place
    }

    /// The place of the pair of hosts of these groups; `None` when too many others are followed.
    fn place(&mut self, tap: TapId, groups: Groups) -> Option<usize> {
        // Both directions between two hosts at a tap.
        let key = groups.source.wrapping_add(groups.destination);
        match self.places.get(&key) {
            Some(place) => Some(*place),
            None if self.pairs.len() >= MAX_PAIRS => None,
            None => {
                self.places.insert(key, self.pairs.len());
                self.pairs.push(Pair {
                    tap,
                    hosts: None,
                    stretches: Vec::new(),
                    joined: 0,
                });
                self.going.push(OpenStretch {
                    last: None,
                    joined: 0,
                });
                Some(self.pairs.len() - 1)
            }
        }
    }

    /// Steps as they stand, of the job that sends most at each tap. The last one may go on, and is left out.
    pub(crate) fn snapshot(&self) -> Vec<JobSteps> {
        let unknown = Address::v4([0; 4]);
        let pairs = self.pairs.iter().zip(&self.going);
        let mut ranks: Vec<Rank> = pairs
            .filter_map(|(pair, going)| {
                let from = pair.stretches.len().saturating_sub(MAX_OF_SNAPSHOT);
                let mut latest = pair.stretches.get(from..)?.to_vec();
                if let (Some(last), Some(now)) = (latest.last_mut(), going.last) {
                    *last = now;
                }
                Some(Rank {
                    tap: pair.tap,
                    hosts: pair.hosts.unwrap_or((unknown, unknown)),
                    rhythm: bursts::rhythm(&latest, self.bin)?,
                })
            })
            .collect();
        ranks.sort_by_key(|rank| (rank.tap, rank.rhythm.period, rank.hosts));
        let mut jobs: BTreeMap<TapId, (u64, JobSteps)> = BTreeMap::new();
        for job in ranks.chunk_by(same_job) {
            let mut rows = Vec::new();
            number_steps(job, self.bin, &mut rows);
            let Some(tap) = job.first().map(|rank| rank.tap) else {
                continue;
            };
            let bytes = rows
                .iter()
                .fold(0, |sum: u64, row| sum.saturating_add(row.payload_bytes));
            let last = rows.iter().map(|row| row.step).max().unwrap_or_default();
            let mut ended: BTreeMap<u32, (Time, Time)> = BTreeMap::new();
            for row in rows.iter().filter(|row| row.step < last) {
                let (start, end) = ended.entry(row.step).or_insert((row.start_time, row.end_time));
                (*start, *end) = ((*start).min(row.start_time), (*end).max(row.end_time));
            }
            let Some((start, end)) = ended.last_key_value().map(|(_, times)| *times) else {
                continue;
            };
            let steps = JobSteps {
                tap,
                starts: ended.into_values().map(|(start, _)| start).collect(),
                last: end.since(start),
            };
            let most = jobs.entry(tap).or_default();
            if bytes > most.0 {
                *most = (bytes, steps);
            }
        }
        jobs.into_values().map(|(_, steps)| steps).collect()
    }

    /// The steps, in the order of time, and of those that took long the episode that fits.
    pub(crate) fn conclude(mut self, episodes: &[EpisodeRow]) -> (Vec<StepRow>, Option<TrainingLogFit>) {
        for (pair, going) in self.pairs.iter_mut().zip(&self.going) {
            pair.catch_up(going);
        }
        let mut ranks: Vec<Rank> = self
            .pairs
            .iter()
            .filter_map(|pair| {
                Some(Rank {
                    tap: pair.tap,
                    hosts: pair.hosts?,
                    rhythm: bursts::rhythm(&pair.stretches, self.bin)?,
                })
            })
            .collect();
        ranks.sort_by_key(|rank| (rank.tap, rank.rhythm.period, rank.hosts));
        let mut steps = Vec::new();
        for job in ranks.chunk_by(same_job) {
            number_steps(job, self.bin, &mut steps);
        }
        for step in &mut steps {
            step.logged_ns = self.log.step_of(step).and_then(|logged| logged.allreduce_ns);
        }
        explain(&mut steps, episodes);
        steps.sort_by_key(|step| (step.start_time, step.tap, step.step, step.host_a, step.host_b));
        let fit = self.log.fit(&steps);
        (steps, fit)
    }
}

/// A pair of hosts that takes part in a job.
struct Rank {
    tap: TapId,
    hosts: (Address, Address),
    rhythm: Rhythm,
}

/// True of pairs, in the order of taps and periods, that take part in one job.
fn same_job(one: &Rank, next: &Rank) -> bool {
    one.tap == next.tap && float(next.rhythm.period) <= float(one.rhythm.period) * SAME_PERIOD
}

/// Numbers the steps of a job: bursts of different pairs that overlap in time are of one step, and no pair has two
/// in one.
fn number_steps(job: &[Rank], bin: u64, steps: &mut Vec<StepRow>) {
    let limits: Vec<u64> = job.iter().map(|rank| limit(&rank.rhythm, bin)).collect();
    let mut bursts: Vec<(usize, Burst)> = job
        .iter()
        .enumerate()
        .flat_map(|(rank, of)| of.rhythm.bursts.iter().map(move |burst| (rank, *burst)))
        .collect();
    bursts.sort_by_key(|(rank, burst)| (burst.start, *rank));
    let mut last_step = vec![0; job.len()];
    let (mut step, mut until, mut from) = (0, 0, steps.len());
    for (rank, burst) in bursts {
        if step == 0 || burst.start >= until || last_step[rank] == step {
            spread(&mut steps[from..]);
            (step, until, from) = (step + 1, burst.end, steps.len());
        }
        until = until.max(burst.end);
        last_step[rank] = step;
        let of = &job[rank];
        steps.push(StepRow {
            tap: of.tap,
            step,
            host_a: of.hosts.0,
            host_b: of.hosts.1,
            start_time: Time(burst.start),
            end_time: Time(burst.end),
            duration_ns: burst.length(),
            payload_bytes: burst.bytes,
            period_ns: of.rhythm.period,
            outlier: burst.length() > limits[rank],
            ..StepRow::default()
        });
    }
    spread(&mut steps[from..]);
}

/// Fills in how far apart the pairs of one step end it.
fn spread(step: &mut [StepRow]) {
    let last = step.iter().map(|row| row.end_time).max().unwrap_or_default();
    let first = step.iter().map(|row| row.end_time).min().unwrap_or_default();
    for row in step {
        row.spread_ns = last.since(first).0;
    }
}

/// How long a burst of the pair can take without being an outlier. Its ends are known to a bin each.
fn limit(rhythm: &Rhythm, bin: u64) -> u64 {
    let mut lengths: Vec<u64> = rhythm.bursts.iter().map(Burst::length).collect();
    let middle = median(&mut lengths);
    let mut deviations: Vec<u64> = lengths.iter().map(|length| length.abs_diff(middle)).collect();
    let sigma = SIGMA_OF_MAD * float(median(&mut deviations));
    let more = (OUTLIER_SIGMAS * sigma)
        .max(OUTLIER_SHARE * float(middle))
        .max(float(bin) * 2.0);
    middle.saturating_add(whole(more))
}

/// Names for each outlier the episode that overlaps it most, of those at its tap; one on the way to its own hosts comes
/// before any other.
fn explain(steps: &mut [StepRow], episodes: &[EpisodeRow]) {
    let mut by_tap: BTreeMap<TapId, Vec<&EpisodeRow>> = BTreeMap::new();
    for episode in episodes {
        by_tap.entry(episode.tap).or_default().push(episode);
    }
    // With each episode goes the latest end up to it: what began earlier and may still last.
    let by_tap: BTreeMap<TapId, Vec<(Time, &EpisodeRow)>> = by_tap
        .into_iter()
        .map(|(tap, mut episodes)| {
            episodes.sort_by_key(|episode| (episode.start_time, episode.episode));
            let mut latest = Time(0);
            let with_ends = episodes.into_iter().map(|episode| {
                latest = latest.max(episode.end_time);
                (latest, episode)
            });
            (tap, with_ends.collect())
        })
        .collect();
    for step in steps.iter_mut().filter(|step| step.outlier) {
        let Some(episodes) = by_tap.get(&step.tap) else {
            continue;
        };
        let begun = episodes.partition_point(|(_, episode)| episode.start_time < step.end_time);
        step.episode = episodes[..begun]
            .iter()
            .rev()
            .take_while(|(latest, _)| *latest > step.start_time)
            .filter(|(_, episode)| episode.end_time > step.start_time)
            .max_by_key(|(_, episode)| {
                let own = [Some(step.host_a), Some(step.host_b)].contains(&episode.destination);
                let overlap = episode
                    .end_time
                    .min(step.end_time)
                    .since(episode.start_time.max(step.start_time));
                (own, overlap, core::cmp::Reverse(episode.episode))
            })
            .map(|(_, episode)| episode.episode);
    }
}

#[cfg(test)]
mod tests;
