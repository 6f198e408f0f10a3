//! The finding about GPUs whose load falls while something is congested.

use std::collections::BTreeMap;

use roce_model::{
    Columns, Confidence, Counter, EpisodeKind, Evidence, FindingRow, SampleColumns, Severity, Time,
};

use super::super::numbers::counted;
use super::super::thresholds::Thresholds;
use super::rule::{Context, FindingOf as _, Rule};

pub(super) const WAITS: Rule = Rule {
    id: "gpu.waits",
    title: "load of GPUs falls while something is congested",
    meaning: "In most of the episodes of congestion a GPU did less than before and after. It may have waited for the network. Packets \
              cannot prove it: a phase of the job that communicates and does not compute looks alike, and may be what congests the network.",
    method: "The readings of each GPU's load are divided by how much of their interval episodes cover (ecn, incast, loss, rnr, pause at any tap; \
             no stalls, which a waiting host brings about): half or more is congested, less than a tenth is quiet. Neighbouring congested readings \
             are one episode. It counts if quiet readings stand before and behind it, and both means of up to three of them are at least \
             gpu_busy: a job that starts or ends is no fall. The load fell if the episode's mean is at least gpu_fall below the lower of the two. At least \
             gpu_episodes must count, and it fell in gpu_share of them. Then the episodes are moved along the readings, around the end, to at \
             most 999 other places. The share of places in which the load falls in gpu_share of them, multiplied by the number of \
             GPUs, must not exceed gpu_chance; neither may the share of places within 64 readings, where the rhythm of a job meets itself.",
    source: "A permutation test by circular shifts, which keeps the rhythm of both series: slow series correlate without any reason (Harris, \
             doi 10.1101/2020.11.29.402719). p = (1 + places as good) / (1 + places) (Phipson and Smyth 2010), with Bonferroni's correction.",
    thresholds: &["gpu_busy", "gpu_fall", "gpu_episodes", "gpu_share", "gpu_chance"],
    severity: Severity::Info,
    confidence: "medium from twice gpu_episodes on, if the load fell in all of them and no record was lost; else low. Never high: a common cause \
                 cannot be excluded",
    ..Rule::TALLIED
};

/// GPUs that are followed, at most.
const MAX_GPUS: usize = 256;
/// Readings kept of one GPU; beyond it neighbours are merged. With all GPUs that is 12 MB.
const MAX_READINGS: usize = 2048;
/// Letters kept of a name.
const MAX_NAME: usize = 128;
/// Places that episodes are moved to, at most.
const MAX_PLACES: usize = 999;
/// Readings by which episodes are moved at most to places nearby.
const NEAR: usize = 64;
/// Quiet readings beside an episode whose mean it is compared with.
const BESIDE: usize = 3;
/// A reading is congested when episodes cover this share of its time, and quiet below the other.
const CONGESTED: f64 = 0.5;
const QUIET: f64 = 0.1;

/// The load of a GPU over an interval.
#[derive(Clone, Copy, Debug, PartialEq)]
struct LoadReading {
    from: u64,
    to: u64,
    load: f64,
}

/// Readings of GPUs' load, by node and GPU.
#[derive(Clone, Debug, Default)]
pub(super) struct GpuTally {
    gpus: BTreeMap<(String, String), Vec<LoadReading>>,
}

impl GpuTally {
    /// Takes rows of the table `samples`.
    pub(super) fn samples(&mut self, rows: &SampleColumns) {
        for row in 0..rows.len() {
            let is_load = rows.counter.at(row).map(AsRef::as_ref) == Some(Counter::GpuUtilization.name());
            let (true, Some(to), Some(interval), Some(load)) = (
                is_load,
                rows.time.at(row).copied(),
                rows.interval_ns.at(row).copied().filter(|interval| *interval > 0),
                rows.value
                    .at(row)
                    .copied()
                    .filter(|load| (0.0..=1.0).contains(load)),
            ) else {
                continue;
            };
            let text = |values: &roce_model::Values<std::borrow::Cow<'static, str>>| {
                let text: &str = values.at(row).map_or("", AsRef::as_ref);
                text.chars().take(MAX_NAME).collect::<String>()
            };
            let key = (text(&rows.node), text(&rows.object));
            if self.gpus.len() >= MAX_GPUS && !self.gpus.contains_key(&key) {
                continue;
            }
            let readings = self.gpus.entry(key).or_default();
            readings.push(LoadReading {
                from: to.saturating_sub(interval),
                to,
                load,
            });
            if readings.len() > MAX_READINGS {
                *readings = readings.chunks(2).map(merged).collect();
            }
        }
    }

    /// Number of GPUs, and true if none has more readings than the bound.
    #[cfg(test)]
    pub(super) fn kept(&self) -> (usize, bool) {
        let is_bounded = self.gpus.values().all(|readings| readings.len() <= MAX_READINGS);
        (self.gpus.len(), is_bounded)
    }

    /// The finding, if the load of any GPU follows the episodes.
    pub(super) fn waits(&self, context: &Context<'_>) -> Option<FindingRow> {
        let thresholds = context.thresholds;
        let congested = congested(context);
        let mut judged = Vec::new();
        for ((node, gpu), readings) in &self.gpus {
            let mut readings = readings.clone();
            readings.sort_by_key(|reading| (reading.to, reading.from));
            let classes = classes(&readings, &congested);
            let falls = falls(&readings, &classes, 0, thresholds.gpu_busy, thresholds.gpu_fall);
            if falls.comparable >= thresholds.gpu_episodes.max(2) {
                judged.push((node, gpu, readings, classes, falls));
            }
        }
        let number = judged.len();
        let mut found: Option<(&String, &String, Falls, f64)> = None;
        let mut waiting = 0u64;
        for (node, gpu, readings, classes, falls) in &judged {
            if falls.share() < thresholds.gpu_share {
                continue;
            }
            let Some((anywhere, nearby)) = chance(readings, classes, thresholds) else {
                continue;
            };
            #[expect(clippy::cast_precision_loss, reason = "at most 256 GPUs")]
            let chance = (anywhere * number as f64).min(1.0).max(nearby);
            if chance > thresholds.gpu_chance {
                continue;
            }
            waiting += 1;
            if found.is_none_or(|(_, _, other, _)| falls.depth() > other.depth()) {
                found = Some((node, gpu, *falls, chance));
            }
        }
        let (node, gpu, falls, chance) = found?;
        let is_whole = context.run.taps.iter().all(|tap| tap.records_lost() == 0);
        let is_clear = falls.fallen == falls.comparable
            && falls.comparable >= thresholds.gpu_episodes.saturating_mul(2)
            && is_whole;
        let mut evidence = Evidence::default();
        evidence
            .count("gpus", waiting)
            .count("gpus_judged", number as u64)
            .count("episodes", falls.comparable)
            .count("episodes_with_fall", falls.fallen)
            .number("load_beside", falls.beside())
            .number("load_in_episodes", falls.inside())
            .number("by_chance", chance)
            .text("worst", format!("{node} {gpu}"));
        let confidence = if is_clear {
            Confidence::Medium
        } else {
            Confidence::Low
        };
        Some(WAITS.finding(
            (Severity::Info, confidence),
            format!(
                "the load of {} falls while something is congested: of {node} {gpu} in {} of {} episodes, from {:.0} % to {:.0} %; a common \
                 cause is not excluded",
                counted(waiting, "GPU"),
                falls.fallen,
                falls.comparable,
                falls.beside() * 100.0,
                falls.inside() * 100.0,
            ),
            evidence,
            "Compare the GPUs' load with the steps of the job: a fall at every exchange of data is the job's own rhythm, one at \
             congested exchanges alone is the network's.",
            falls.first.map(Time),
        ))
    }
}

/// Neighbours as one reading: the mean over their time.
fn merged(readings: &[LoadReading]) -> LoadReading {
    let weight = |reading: &LoadReading| roce_model::value_of(reading.to.saturating_sub(reading.from));
    let time: f64 = readings.iter().map(weight).sum();
    let load: f64 = readings
        .iter()
        .map(|reading| reading.load * weight(reading))
        .sum();
    LoadReading {
        from: readings
            .iter()
            .map(|reading| reading.from)
            .min()
            .unwrap_or_default(),
        to: readings
            .iter()
            .map(|reading| reading.to)
            .max()
            .unwrap_or_default(),
        load: if time > 0.0 { load / time } else { 0.0 },
    }
}

/// Times in which anything was congested, in order and without overlap.
fn congested(context: &Context<'_>) -> Vec<(u64, u64)> {
    let mut spans: Vec<(u64, u64)> = context
        .episodes
        .iter()
        // A host that waits for its GPU makes flows stand still, not the other way round.
        .filter(|episode| episode.row.kind != EpisodeKind::Stall)
        .map(|episode| (episode.row.start_time.0, episode.row.end_time.0))
        .filter(|(start, end)| start < end)
        .collect();
    spans.sort_unstable();
    let mut all: Vec<(u64, u64)> = Vec::with_capacity(spans.len());
    for (start, end) in spans {
        match all.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => all.push((start, end)),
        }
    }
    all
}

/// A reading's time, compared with the episodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Class {
    Congested,
    Quiet,
    /// Some of its time.
    Mixed,
}

/// The class of each reading; both lists are in the order of time.
fn classes(readings: &[LoadReading], congested: &[(u64, u64)]) -> Vec<Class> {
    let class = |reading: &LoadReading| {
        let first = congested.partition_point(|(_, end)| *end <= reading.from);
        let overlaps = congested
            .iter()
            .skip(first)
            .take_while(|(start, _)| *start < reading.to);
        let covered: u64 = overlaps
            .map(|(start, end)| (*end).min(reading.to).saturating_sub((*start).max(reading.from)))
            .sum();
        let length = reading.to.saturating_sub(reading.from);
        let share = roce_model::value_of(covered) / roce_model::value_of(length.max(1));
        if share >= CONGESTED {
            Class::Congested
        } else if share < QUIET {
            Class::Quiet
        } else {
            Class::Mixed
        }
    };
    readings.iter().map(class).collect()
}

/// In how many episodes the load fell.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Falls {
    /// Episodes with a load to compare with.
    comparable: u64,
    fallen: u64,
    /// Sums over them.
    sum_inside: f64,
    sum_beside: f64,
    /// Start of the first with a fall.
    first: Option<u64>,
}

#[expect(clippy::cast_precision_loss, reason = "at most as many episodes as readings")]
impl Falls {
    fn share(&self) -> f64 {
        self.fallen as f64 / self.comparable.max(1) as f64
    }

    fn inside(&self) -> f64 {
        self.sum_inside / self.comparable.max(1) as f64
    }

    fn beside(&self) -> f64 {
        self.sum_beside / self.comparable.max(1) as f64
    }

    fn depth(&self) -> f64 {
        self.beside() - self.inside()
    }
}

/// The falls when the classes are moved by `moved` readings, around the end.
fn falls(readings: &[LoadReading], classes: &[Class], moved: usize, busy: f64, fall: f64) -> Falls {
    let count = readings.len().min(classes.len());
    let class = |place: usize| {
        let place = if place >= moved {
            place - moved
        } else {
            place + count - moved
        };
        classes.get(place).copied().unwrap_or(Class::Mixed)
    };
    let load = |place: usize| readings.get(place).map_or(0.0, |reading| reading.load);
    let mut all = Falls::default();
    let mut place = 0;
    while place < count {
        if class(place) != Class::Congested {
            place += 1;
            continue;
        }
        let begin = place;
        while place < count && class(place) == Class::Congested {
            place += 1;
        }
        // Mixed readings next to an episode are passed over, another episode is not.
        let beside = |places: &mut dyn Iterator<Item = usize>| {
            mean(
                places
                    .take_while(|place| class(*place) != Class::Congested)
                    .filter(|place| class(*place) == Class::Quiet)
                    .take(BESIDE)
                    .map(load),
            )
        };
        let before = beside(&mut (0..begin).rev());
        let behind = beside(&mut (place..count));
        let (Some(before), Some(behind), Some(inside)) = (before, behind, mean((begin..place).map(load)))
        else {
            continue;
        };
        let reference = before.min(behind);
        if reference < busy {
            continue;
        }
        all.comparable += 1;
        all.sum_inside += inside;
        all.sum_beside += reference;
        if reference - inside >= fall {
            all.fallen += 1;
            all.first = all.first.or(readings.get(begin).map(|reading| reading.from));
        }
    }
    all
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    (count > 0.0).then_some(sum / count)
}

/// The share of other places at which the load falls in `gpu_share` of the episodes: anywhere, and nearby. `None` where there are too few
/// readings to move them.
///
/// Places nearer than the longest episode are left out: there it overlaps itself.
fn chance(readings: &[LoadReading], classes: &[Class], thresholds: &Thresholds) -> Option<(f64, f64)> {
    let (busy, fall, share) = (thresholds.gpu_busy, thresholds.gpu_fall, thresholds.gpu_share);
    let count = readings.len().min(classes.len());
    let runs = classes.chunk_by(|one, next| one == next);
    let longest = runs
        .filter(|run| run.first() == Some(&Class::Congested))
        .map(<[Class]>::len)
        .max()?;
    let first = longest + 1;
    let places = count.checked_sub(2 * first)?;
    let chance_at = |all: &mut dyn Iterator<Item = usize>| {
        let (mut tried, mut as_good) = (0.0, 0.0);
        for moved in all {
            let there = falls(readings, classes, moved, busy, fall);
            tried += 1.0;
            // A place with few comparable episodes counts against the finding when the load falls at these.
            if there.comparable > 0 && there.share() >= share {
                as_good += 1.0;
            }
        }
        (tried > 0.0).then_some((1.0 + as_good) / (1.0 + tried))
    };
    let step = places.div_ceil(MAX_PLACES).max(1);
    let anywhere = chance_at(&mut (first..first + places).step_by(step))?;
    // A rhythm that lasts for a part of the run meets itself nearby alone.
    let is_near = |moved: &usize| (*moved).min(count - moved) < first + NEAR;
    let nearby = chance_at(&mut (first..first + places).filter(is_near))?;
    Some((anywhere, nearby))
}
