//! Results of the first pass that comments need: events of each flow by time, the flows' names and peers, episodes.

use std::collections::HashMap;

use roce_model::{
    Columns as _, EpisodeKind, EpisodeRow, EventColumns, EventKind, FlowId, FlowRow, RunSummary, Sink,
    SinkError, TapId, Time,
};
use roce_wire::{Address, Qpn};

use super::credits::MessagePackets;

/// Events that are kept: some 400 MB.
const MAX_EVENTS: usize = 1 << 23;
/// Flows whose names and peers are kept: some 300 MB.
const MAX_FLOWS: usize = 1 << 21;
/// Findings and episodes in the section's comment, each.
const MAX_LISTED: usize = 64;

/// An event as far as comments need it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Moment {
    /// Time of the packet that it belongs to.
    pub time: Time,
    /// Kind of the event.
    pub kind: EventKind,
    /// Its PSN, or 0.
    pub psn: u32,
    /// Its value, or 0.
    pub value: u64,
    /// Its detail, where that is one of a few words.
    pub detail: &'static str,
}

/// Kinds of events that comments use.
const KINDS: [EventKind; 13] = [
    EventKind::Gap,
    EventKind::ResponseGap,
    EventKind::Hole,
    EventKind::ResponseHole,
    EventKind::RetransmissionRun,
    EventKind::Late,
    EventKind::Stall,
    EventKind::Epoch,
    EventKind::LostDownstream,
    EventKind::MrcRetransmit,
    EventKind::MrcLoss,
    EventKind::MrcTrim,
    EventKind::MrcNack,
];

/// The kind of this name, if comments use it.
fn used(name: &str) -> Option<EventKind> {
    KINDS.into_iter().find(|kind| kind.name() == name)
}

/// Words of details that comments use.
const WORDS: [&str; 13] = [
    "nak",
    "implied_nak",
    "hole",
    "trimmed",
    "trimmed_lasthop",
    "refused",
    "rnr",
    "timeout",
    "reordered",
    "network_lost",
    "capture_lost",
    "ambiguous",
    "unresolved",
];

/// A flow's name, and the flow of the other direction.
#[derive(Clone, Debug, Default)]
pub(super) struct FlowName {
    pub source: Address,
    pub destination: Address,
    pub destination_qpn: Qpn,
    pub peer: Option<FlowId>,
}

/// An episode as far as comments need it.
#[derive(Clone, Debug)]
pub(super) struct EpisodeNote {
    pub number: u32,
    pub kind: EpisodeKind,
    pub start: Time,
    pub end: Time,
    pub senders: u32,
}

/// Results of the analysis of captures, for comments on their frames. It is a sink of that analysis.
#[derive(Debug, Default)]
pub struct KnownResults {
    /// Events by tap and flow; in the order of time once the run has finished.
    pub(super) moments: HashMap<(TapId, FlowId), Vec<Moment>>,
    kept: usize,
    left_out: u64,
    pub(super) flows: HashMap<FlowId, FlowName>,
    /// Flows by source, destination and queue pair: a CNP names them so.
    pub(super) by_queue_pair: HashMap<(Address, Address, Qpn), FlowId>,
    /// Episodes by tap and destination, in the order of time.
    pub(super) episodes: HashMap<(TapId, Address), Vec<EpisodeNote>>,
    /// Packets of credits and their data.
    pub(super) messages: MessagePackets,
    section: Vec<String>,
    /// Why frames cannot be numbered as in their captures.
    unnumbered: Option<String>,
    /// Inputs that could not be read to their end.
    pub(super) failed: usize,
}

impl KnownResults {
    /// Why frames cannot be numbered as in their captures; `None`: they can.
    pub(super) fn unnumbered(&self) -> Option<&str> {
        self.unnumbered.as_deref()
    }

    /// The comments of the file's section: the verdicts, and the episodes.
    pub(super) fn section(&self) -> Vec<String> {
        let mut section = self.section.clone();
        if self.left_out > 0 {
            section.push(format!(
                "{} events are not in comments: there are too many",
                self.left_out
            ));
        }
        section
    }

    /// A flow for people.
    pub(super) fn name(&self, flow: FlowId) -> Option<String> {
        let flow = self.flows.get(&flow)?;
        Some(format!(
            "{} > {} QP {}",
            flow.source, flow.destination, flow.destination_qpn
        ))
    }

    fn keep(&mut self, key: (TapId, FlowId), moment: Moment) {
        if self.kept < MAX_EVENTS {
            self.kept += 1;
            self.moments.entry(key).or_default().push(moment);
        } else {
            self.left_out += 1;
        }
    }

    fn episode(&mut self, row: &EpisodeRow) {
        let Some(destination) = row.destination else {
            return;
        };
        let note = EpisodeNote {
            number: row.episode,
            kind: row.kind,
            start: row.start_time,
            end: row.end_time,
            senders: row.senders_max,
        };
        self.episodes
            .entry((row.tap, destination))
            .or_default()
            .push(note);
    }
}

impl Sink for KnownResults {
    fn events(&mut self, rows: &EventColumns) -> Result<(), SinkError> {
        for row in 0..rows.len() {
            let kind = rows.kind.at(row).and_then(|name| used(name));
            let (Some(time), Some(kind), Some(tap), Some(flow)) = (
                rows.time.at(row).copied(),
                kind,
                rows.tap.at(row).copied(),
                rows.flow_id.at(row).copied(),
            ) else {
                continue;
            };
            let value = rows.value.at(row).copied().unwrap_or_default();
            let detail = rows.detail.at(row).map(AsRef::as_ref).unwrap_or_default();
            // A stall is about the packet that ends it.
            let time = if kind == EventKind::Stall {
                time.saturating_add(value)
            } else {
                time
            };
            let moment = Moment {
                time: Time(time),
                kind,
                psn: rows.psn.at(row).copied().unwrap_or_default(),
                value,
                detail: WORDS.iter().find(|word| **word == detail).unwrap_or(&""),
            };
            self.keep((TapId(tap), FlowId(flow)), moment);
        }
        Ok(())
    }

    fn flows_closed(&mut self, rows: &[FlowRow]) -> Result<(), SinkError> {
        for row in rows {
            if self.flows.len() >= MAX_FLOWS && !self.flows.contains_key(&row.flow_id) {
                continue;
            }
            let Some(key) = row.key() else { continue };
            let place = (key.source, key.destination, key.destination_qpn);
            self.by_queue_pair.insert(place, row.flow_id);
            let flow = self.flows.entry(row.flow_id).or_default();
            *flow = FlowName {
                source: key.source,
                destination: key.destination,
                destination_qpn: key.destination_qpn,
                peer: row.peer_flow_id.or(flow.peer),
            };
        }
        Ok(())
    }

    fn finish(&mut self, run: &RunSummary) -> Result<(), SinkError> {
        for moments in self.moments.values_mut() {
            moments.sort_by_key(|moment| moment.time);
            note_losses(moments);
        }
        for row in &run.episodes {
            self.episode(row);
        }
        self.messages = MessagePackets::new(&run.credited);
        self.failed = run.inputs.iter().filter(|input| input.error.is_some()).count();
        let sorted = run.taps.iter().find(|tap| tap.sorted_frames > 0);
        self.unnumbered = sorted.map(|tap| {
            format!(
                "{}: {} records are out of order, and were sorted: frames cannot be numbered\nhint: reordercap writes a sorted copy",
                tap.input, tap.sorted_frames
            )
        });
        let findings = run.findings.iter().take(MAX_LISTED);
        self.section.extend(findings.map(|finding| {
            format!(
                "{}: {}: {} (confidence {})",
                finding.severity.name(),
                finding.id,
                finding.summary,
                finding.confidence.name()
            )
        }));
        let first = run.span.map_or(Time(0), |span| span.first);
        let seconds = |time: Time| {
            let micros = time.since(first).0 / 1_000;
            format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000)
        };
        let episodes = run.episodes.iter().take(MAX_LISTED);
        self.section.extend(episodes.map(|episode| {
            let place = episode
                .destination
                .map_or_else(String::new, |destination| format!(" into {destination}"));
            format!(
                "episode {}: {}{place}, {} to {} s after the first frame: {}",
                episode.episode,
                episode.kind.name(),
                seconds(episode.start_time),
                seconds(episode.end_time),
                episode.cause
            )
        }));
        Ok(())
    }
}

/// Sets the value of each retransmission of an MRC flow to 1 where all sendings of its PSN before were lost, else to 0. That is known later.
fn note_losses(moments: &mut [Moment]) {
    let mut counts: HashMap<u32, [u32; 2]> = HashMap::new();
    for moment in &*moments {
        match moment.kind {
            EventKind::MrcRetransmit => counts.entry(moment.psn).or_default()[0] += 1,
            EventKind::MrcLoss => counts.entry(moment.psn).or_default()[1] += 1,
            _ => {}
        }
    }
    for moment in moments {
        if moment.kind == EventKind::MrcRetransmit {
            let is_lost = counts.get(&moment.psn).is_some_and(|[again, lost]| again == lost);
            moment.value = u64::from(is_lost);
        }
    }
}
