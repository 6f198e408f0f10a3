//! Stalls, put together to episodes at the end, when it is known where their flows go: silences of the flows to one
//! destination that overlap are one.

use roce_model::{Address, EpisodeKind, EventKind, EventRow, FlowId, Span, TapId, Time};

use super::super::directory::Directory;
use super::facts::{SilenceEnd, StallFacts};
use super::open::{FinishedEpisode, Share};

/// Limit of stalls, and of runs of retransmissions.
const MAX_STALLS: usize = 1 << 14;

/// One silence.
#[derive(Clone, Copy, Debug)]
struct Stall {
    tap: TapId,
    flow: FlowId,
    start: Time,
    end: Time,
    ended_by: SilenceEnd,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Stalls {
    silences: Vec<Stall>,
    /// Runs of retransmissions by timeout: place and start.
    timeouts: Vec<(TapId, FlowId, Time)>,
    dropped: u64,
}

impl Stalls {
    pub(super) fn event(&mut self, event: &EventRow) {
        let Some(flow) = event.flow_id else { return };
        if event.kind == EventKind::Stall {
            if self.silences.len() >= MAX_STALLS {
                self.dropped += 1;
                return;
            }
            self.silences.push(Stall {
                tap: event.tap,
                flow,
                start: event.time,
                end: Time(event.time.0.saturating_add(event.value.unwrap_or_default())),
                ended_by: SilenceEnd::new(event),
            });
        } else if event.detail.as_deref() == Some("timeout") && self.timeouts.len() < MAX_STALLS {
            self.timeouts.push((event.tap, flow, event.time));
        }
    }

    /// Stalls that found no room.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// The episodes. `near`: so close a run's begin and a stall's end are the same.
    pub(super) fn conclude(mut self, directory: &Directory, near: Span) -> Vec<FinishedEpisode> {
        self.timeouts.sort_unstable();
        let place = |stall: &Stall| {
            let destination = directory
                .party(stall.tap, stall.flow)
                .map(|party| party.destination);
            // An unknown flow is a place of its own.
            let alone = destination.is_none().then_some(stall.flow);
            (stall.tap, destination, alone)
        };
        self.silences
            .sort_by_key(|stall| (place(stall), stall.start, stall.flow));
        let (mut episodes, mut at) = (Vec::new(), 0);
        while let Some(first) = self.silences.get(at) {
            let mut end = first.end;
            let together = self.silences[at..]
                .iter()
                .take_while(|stall| {
                    let joins = place(stall) == place(first) && stall.start <= end;
                    end = end.max(if joins { stall.end } else { end });
                    joins
                })
                .count();
            let (_, destination, _) = place(first);
            episodes.push(self.episode(&self.silences[at..at + together], destination, near));
            at += together;
        }
        episodes
    }

    fn episode(&self, stalls: &[Stall], destination: Option<Address>, near: Span) -> FinishedEpisode {
        let (mut start, mut end) = (Time(u64::MAX), Time(0));
        let mut flows: Vec<(FlowId, Share)> = Vec::new();
        let mut longest: Option<&Stall> = None;
        for stall in stalls {
            (start, end) = (start.min(stall.start), end.max(stall.end));
            let length = |stall: &Stall| stall.end.since(stall.start);
            if longest.is_none_or(|longest| length(stall) > length(longest)) {
                longest = Some(stall);
            }
            flows.push((
                stall.flow,
                Share {
                    stalls: 1,
                    ..Share::default()
                },
            ));
        }
        flows.sort_by_key(|(flow, _)| *flow);
        flows.dedup_by(|later, first| {
            let same = later.0 == first.0;
            if same {
                first.1.stalls = first.1.stalls.saturating_add(later.1.stalls);
            }
            same
        });
        let tap = stalls.first().map_or_else(TapId::default, |stall| stall.tap);
        let facts = longest.map(|stall| StallFacts {
            flow: stall.flow,
            longest: stall.end.since(stall.start),
            destination,
            by_timeout: self.ended_by_timeout(stall, near),
            ended_by: stall.ended_by,
        });
        FinishedEpisode {
            victims: flows.iter().take(5).map(|(flow, _)| *flow).collect(),
            victims_all: flows.len(),
            stall: facts,
            ..FinishedEpisode::new(EpisodeKind::Stall, tap, start, end, Share::default(), flows)
        }
    }

    fn ended_by_timeout(&self, stall: &Stall, near: Span) -> bool {
        let from = (stall.tap, stall.flow, stall.end - near);
        let first = self.timeouts.partition_point(|run| *run < from);
        self.timeouts.get(first).is_some_and(|(tap, flow, time)| {
            (*tap, *flow) == (stall.tap, stall.flow) && time.since(stall.end) <= near
        })
    }
}
