//! The process that is about all traffic: findings, episodes, steps of training jobs, pauses, and events of the capture and its host.

use std::collections::{BTreeMap, HashSet};
use std::io::{self, Write};

use foldhash::fast::RandomState;
use roce_model::{
    EpisodeColumns, EpisodeRow, EventColumns, EventKind, EventRow, EventSource, Evidence, FindingColumns,
    Period, RunSummary, StepColumns, TapId, TapNames, Time,
};

use super::ending::{Arrows, Events, LeftOut};
use super::facts::facts;
use super::form::Form;
use super::lanes::Lanes;
use super::track::{Slice, Track};

/// Pairs of hosts whose steps have a track.
const MAX_STEP_TRACKS: usize = 256;

/// Writes the tracks about all traffic.
pub(super) struct Network<'a, W> {
    pub(super) run: &'a RunSummary,
    pub(super) taps: TapNames,
    /// First and last moment of the capture.
    pub(super) span: Period,
    pub(super) form: &'a mut Form<W>,
    pub(super) process: Track,
    pub(super) left_out: LeftOut,
}

impl<W: Write> Network<'_, W> {
    /// Writes everything but the slice about the trace itself, and returns the arrows that begin somewhere.
    pub(super) fn write(
        &mut self,
        events: &Events,
        arrows: &Arrows,
    ) -> io::Result<HashSet<u64, RandomState>> {
        self.findings()?;
        let begun = self.episodes(arrows)?;
        self.steps(arrows, &begun)?;
        self.pauses(events)?;
        self.capture(events)?;
        self.host(events)?;
        Ok(begun)
    }

    /// A finding is an instant at its first evidence; one about the whole run is as long as the capture.
    fn findings(&mut self) -> io::Result<()> {
        let mut findings: Vec<_> = self.run.findings.iter().collect();
        findings.sort_by_key(|finding| finding.first_time.unwrap_or(self.span.first));
        let mut lanes = Lanes::new(&self.process, "findings");
        for finding in findings {
            let (start, end) = match finding.first_time {
                Some(time) => (time, None),
                None => (self.span.first, Some(self.span.last)),
            };
            let name = format!("{}: {}", finding.severity.name(), finding.id);
            lanes.add(
                &Slice {
                    start,
                    end,
                    name: &name,
                    category: "finding",
                    facts: &facts::<FindingColumns>(finding),
                    out: &[],
                    into: &[],
                },
                self.form,
            )?;
        }
        self.left_out.slices += lanes.left_out;
        Ok(())
    }

    fn episodes(&mut self, arrows: &Arrows) -> io::Result<HashSet<u64, RandomState>> {
        let mut begun = HashSet::default();
        let mut kinds: BTreeMap<&str, Vec<(usize, &EpisodeRow)>> = BTreeMap::new();
        for (place, episode) in self.run.episodes.iter().enumerate() {
            kinds
                .entry(episode.kind.name())
                .or_default()
                .push((place, episode));
        }
        for (kind, mut episodes) in kinds {
            episodes.sort_by_key(|(_, episode)| (episode.start_time, episode.episode));
            let name = format!("episodes: {kind}");
            let mut lanes = Lanes::new(&self.process, &name);
            for (place, episode) in episodes {
                let out = arrows.from_episode.get(&place).map_or(&[][..], Vec::as_slice);
                let name = format!("{}{}", name_of(episode), self.at(episode.tap));
                let slice = Slice {
                    start: episode.start_time,
                    end: Some(episode.end_time),
                    name: &name,
                    category: "episode",
                    facts: &facts::<EpisodeColumns>(episode),
                    out,
                    into: &[],
                };
                if lanes.add(&slice, self.form)? {
                    begun.extend(out.iter().copied());
                }
            }
            self.left_out.slices += lanes.left_out;
        }
        Ok(begun)
    }

    /// The steps of each pair of hosts; an episode's arrow ends at an instant beside the step that it slowed.
    fn steps(&mut self, arrows: &Arrows, begun: &HashSet<u64, RandomState>) -> io::Result<()> {
        let mut pairs: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for (place, step) in self.run.steps.iter().enumerate() {
            let pair = (step.host_a, step.host_b, step.tap);
            if pairs.contains_key(&pair) || pairs.len() < MAX_STEP_TRACKS {
                pairs.entry(pair).or_default().push((place, step));
            } else {
                self.left_out.slices += 1;
            }
        }
        for ((a, b, tap), mut steps) in pairs {
            steps.sort_by_key(|(_, step)| (step.start_time, step.step));
            let name = format!("steps {a} <-> {b}{}", self.at(tap));
            let mut lanes = Lanes::new(&self.process, &name);
            let mut slowed = Vec::new();
            for (place, step) in steps {
                let name = format!(
                    "step {}{}",
                    step.step,
                    if step.outlier { ", outlier" } else { "" }
                );
                lanes.add(
                    &Slice {
                        start: step.start_time,
                        end: Some(step.end_time),
                        name: &name,
                        category: "step",
                        facts: &facts::<StepColumns>(step),
                        out: &[],
                        into: &[],
                    },
                    self.form,
                )?;
                let cause = arrows
                    .steps
                    .get(&place)
                    .filter(|(_, arrow)| begun.contains(arrow));
                if let Some((episode, arrow)) = cause
                    && let Some(episode) = self.run.episodes.get(*episode)
                {
                    // An arrow does not lead back in time.
                    let time = step.start_time.max(episode.start_time);
                    let name = format!("step {} slowed by episode {}", step.step, episode.episode);
                    slowed.push((time, name, *arrow));
                }
            }
            self.left_out.slices += lanes.left_out;
            slowed.sort();
            let mut lanes = Lanes::new(&self.process, "slowed steps");
            for (start, name, arrow) in slowed {
                lanes.add(
                    &Slice {
                        start,
                        end: None,
                        name: &name,
                        category: "step",
                        facts: &Evidence::default(),
                        out: &[],
                        into: &[arrow],
                    },
                    self.form,
                )?;
            }
        }
        Ok(())
    }

    fn pauses(&mut self, events: &Events) -> io::Result<()> {
        const WHOLE_LINK: u32 = 8;
        let mut priorities: BTreeMap<u32, Vec<&EventRow>> = BTreeMap::new();
        for row in events.without_flow(|source| source == EventSource::Capture) {
            if row.kind == EventKind::PauseInterval {
                let priority = row.psn.unwrap_or(WHOLE_LINK).min(WHOLE_LINK);
                priorities.entry(priority).or_default().push(row);
            }
        }
        for (priority, rows) in priorities {
            let name = match priority {
                WHOLE_LINK => "pauses of the link".to_owned(),
                priority => format!("pauses of priority {priority}"),
            };
            let mut lanes = Lanes::new(&self.process, &name);
            for row in rows {
                let name = format!("pause{}", self.at(row.tap));
                let end = Time(row.time.0.saturating_add(row.value.unwrap_or_default()));
                lanes.add(
                    &moment(row, Some(end), &name, &facts::<EventColumns>(row)),
                    self.form,
                )?;
            }
            self.left_out.slices += lanes.left_out;
        }
        Ok(())
    }

    /// Instants of the capture itself: records that were lost, flows that were closed early, pause frames.
    fn capture(&mut self, events: &Events) -> io::Result<()> {
        let mut lanes = Lanes::new(&self.process, "capture");
        for row in events.without_flow(|source| source == EventSource::Capture) {
            if row.kind != EventKind::PauseInterval {
                let name = format!("{}{}", kind_name(row.kind), self.at(row.tap));
                lanes.add(&moment(row, None, &name, &facts::<EventColumns>(row)), self.form)?;
            }
        }
        Ok(())
    }

    /// Instants of the host that captured: its kernel, its counters, its processes.
    fn host(&mut self, events: &Events) -> io::Result<()> {
        let mut rows = events
            .without_flow(|source| source != EventSource::Capture)
            .peekable();
        if rows.peek().is_none() {
            return Ok(());
        }
        let process = self
            .form
            .process(&format!("events of host {}", self.run.key.host))?;
        let mut lanes = Lanes::new(&process, "host events");
        for row in rows {
            let name = match &row.object {
                Some(object) => format!("{} {object}", kind_name(row.kind)),
                None => kind_name(row.kind),
            };
            lanes.add(&moment(row, None, &name, &facts::<EventColumns>(row)), self.form)?;
        }
        Ok(())
    }

    /// The tap of a row, where there are several.
    fn at(&self, tap: TapId) -> String {
        match self.run.taps.len() {
            0 | 1 => String::new(),
            _ => format!(" at {}", self.taps.name(tap)),
        }
    }
}

/// An episode in few words.
pub(super) fn name_of(episode: &EpisodeRow) -> String {
    let kind = episode.kind.name();
    match (episode.destination, episode.priority) {
        (Some(destination), _) => format!("{kind} into {destination}"),
        (None, Some(priority @ 0..=7)) => format!("{kind} of priority {priority}"),
        (None, _) => kind.to_owned(),
    }
}

/// The kind of an event as people write it.
pub(super) fn kind_name(kind: EventKind) -> String {
    match kind {
        EventKind::Nak => "NAK".to_owned(),
        EventKind::RnrNak => "RNR NAK".to_owned(),
        kind => kind.name().replace('_', " "),
    }
}

/// An event as a slice or an instant, without arrows.
pub(super) fn moment<'a>(row: &EventRow, end: Option<Time>, name: &'a str, facts: &'a Evidence) -> Slice<'a> {
    Slice {
        start: row.time,
        end,
        name,
        category: row.source.name(),
        facts,
        out: &[],
        into: &[],
    }
}
