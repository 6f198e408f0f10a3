//! A process for each host, with its counters and the connections on which it sends.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::io::{self, Write};

use foldhash::fast::RandomState;
use roce_model::{Address, EpisodeColumns, EventColumns, EventKind, RunSummary, Time};

use super::counters::{ACK_TIME, CE_SHARE, CNPS, IN_FLIGHT, Quantity, RATE, RECEIVED, SENT, counter};
use super::ending::{Arrows, Events, LeftOut};
use super::facts::facts;
use super::form::Form;
use super::lanes::Lanes;
use super::network::{kind_name, moment, name_of};
use super::track::{Slice, Track};
use crate::series::{ShownSeries, Slot, Subject, merged};

/// The series that a host sends, and those that it receives, by their places.
#[derive(Debug, Default)]
struct Host {
    sends: Vec<usize>,
    receives: Vec<usize>,
    payload_bytes: u64,
}

/// Writes the hosts.
pub(super) struct Hosts<'a, W> {
    pub(super) run: &'a RunSummary,
    pub(super) shown: &'a [ShownSeries],
    pub(super) events: &'a Events,
    pub(super) arrows: &'a Arrows,
    /// Arrows that begin somewhere.
    pub(super) begun: &'a HashSet<u64, RandomState>,
    /// The width of a slot in ns.
    pub(super) width: u64,
    pub(super) form: &'a mut Form<W>,
    pub(super) left_out: LeftOut,
}

impl<W: Write> Hosts<'_, W> {
    /// Writes all hosts, those with the most bytes first, and last what belongs to no host.
    pub(super) fn write(&mut self) -> io::Result<()> {
        self.left_out.events += self.events.with_flow() as u64;
        let mut hosts: HashMap<Address, Host, RandomState> = HashMap::default();
        let mut others = Vec::new();
        for (place, shown) in self.shown.iter().enumerate() {
            let Some((source, destination)) = shown.ends() else {
                others.push(place);
                continue;
            };
            let sender = hosts.entry(source).or_default();
            sender.sends.push(place);
            sender.payload_bytes = sender.payload_bytes.saturating_add(shown.series.payload_bytes);
            let receiver = hosts.entry(destination).or_default();
            receiver.receives.push(place);
            receiver.payload_bytes = receiver.payload_bytes.saturating_add(shown.series.payload_bytes);
        }
        let mut hosts: Vec<(Address, Host)> = hosts.into_iter().collect();
        hosts.sort_by_key(|(address, host)| (Reverse(host.payload_bytes), *address));
        for (address, host) in hosts {
            let process = self.form.process(&address.to_string())?;
            self.counters(&process, &host.sends, &[SENT, CNPS])?;
            self.counters(&process, &host.receives, &[RECEIVED, CE_SHARE])?;
            for place in host.sends {
                self.connection(&process, &self.shown[place])?;
            }
        }
        if !others.is_empty() {
            let process = self.form.process("other hosts")?;
            for place in others {
                self.connection(&process, &self.shown[place])?;
            }
        }
        Ok(())
    }

    /// Counters over several series.
    fn counters(&mut self, process: &Track, places: &[usize], quantities: &[Quantity]) -> io::Result<()> {
        let slots = places.iter().flat_map(|place| &self.shown[*place].series.slots);
        let slots = merged(slots.copied().collect());
        for quantity in quantities {
            counter(process, quantity, &slots, self.width, self.form)?;
        }
        Ok(())
    }

    fn connection(&mut self, process: &Track, shown: &ShownSeries) -> io::Result<()> {
        let track = self.form.track(process, &shown.name())?;
        self.episodes(&track, shown)?;
        self.runs(&track, shown)?;
        for (place, row) in self.events.of(shown) {
            // Each event of a flow that is shown is drawn, here or as a slice.
            self.left_out.events = self.left_out.events.saturating_sub(1);
            if matches!(row.kind, EventKind::RetransmissionRun | EventKind::Stall) {
                continue;
            }
            let out = self.arrows.from_event.get(&place).map_or(&[][..], Vec::as_slice);
            let (name, facts) = (kind_name(row.kind), facts::<EventColumns>(row));
            let instant = moment(row, None, &name, &facts);
            self.form.slice(&track, &Slice { out, ..instant })?;
        }
        for quantity in [RATE, CE_SHARE, CNPS, IN_FLIGHT, ACK_TIME] {
            counter(&track, &quantity, &shown.series.slots, self.width, self.form)?;
        }
        Ok(())
    }

    /// The episodes that slowed a connection.
    fn episodes(&mut self, track: &Track, shown: &ShownSeries) -> io::Result<()> {
        let Subject::Flow(flow) = shown.subject else {
            return Ok(());
        };
        let slowed = self.arrows.slowed.get(&flow).into_iter().flatten();
        let mut slowed: Vec<_> = slowed
            .filter_map(|(place, arrow)| Some((self.run.episodes.get(*place)?, *arrow)))
            .collect();
        slowed.sort_by_key(|(episode, _)| (episode.start_time, episode.episode));
        let mut lanes = Lanes::new(track, "slowed by episodes");
        for (episode, arrow) in slowed {
            let into = [arrow];
            lanes.add(
                &Slice {
                    start: episode.start_time,
                    end: Some(episode.end_time),
                    name: &format!("episode {}: {}", episode.episode, name_of(episode)),
                    category: "episode",
                    facts: &facts::<EpisodeColumns>(episode),
                    out: &[],
                    into: if self.begun.contains(&arrow) { &into } else { &[] },
                },
                self.form,
            )?;
        }
        self.left_out.slices += lanes.left_out;
        Ok(())
    }

    /// Retransmission runs and stalls. An event has a run's start alone: it ends with the last of the slots that follow one another in which
    /// the flow retransmitted, or when the next one starts.
    fn runs(&mut self, track: &Track, shown: &ShownSeries) -> io::Result<()> {
        let of = |kind| self.events.of(shown).filter(move |(_, row)| row.kind == kind);
        let mut lanes = Lanes::new(track, "retransmission runs");
        let mut runs = of(EventKind::RetransmissionRun).peekable();
        while let Some((place, row)) = runs.next() {
            let end = run_end(&shown.series.slots, row.time, self.width);
            let end = runs.peek().map_or(end, |(_, next)| end.min(next.time));
            let trigger = row.detail.as_deref().unwrap_or("unknown");
            let name = format!("retransmission run ({trigger})");
            let into = self
                .arrows
                .into_event
                .get(&place)
                .map_or(&[][..], std::slice::from_ref);
            let facts = facts::<EventColumns>(row);
            let slice = moment(row, Some(end), &name, &facts);
            lanes.add(&Slice { into, ..slice }, self.form)?;
        }
        self.left_out.slices += lanes.left_out;
        let mut lanes = Lanes::new(track, "stalls");
        for (_, row) in of(EventKind::Stall) {
            let end = Time(row.time.0.saturating_add(row.value.unwrap_or_default()));
            let facts = facts::<EventColumns>(row);
            lanes.add(&moment(row, Some(end), "stall", &facts), self.form)?;
        }
        self.left_out.slices += lanes.left_out;
        Ok(())
    }
}

/// The end of the last of the slots that follow one another from `start` on and have retransmissions; `start` where there is none.
fn run_end(slots: &[Slot], start: Time, width: u64) -> Time {
    let mut at = start.0 / width.max(1);
    let first = slots.partition_point(|slot| slot.at < at);
    for slot in &slots[first..] {
        if slot.at != at || slot.retransmitted == 0 {
            break;
        }
        at += 1;
    }
    Time(at.saturating_mul(width)).max(start)
}
