//! Signs of congestion at a tap, one after the other: those in the truth, their places, and whether the
//! tap's records show them for sure. `episodes` joins them to episodes.

use std::collections::{BTreeMap, BTreeSet};

use roce_sim::truth::{End, EpisodeKind, HoleClass, NakKind, PacketKind, Tap, TriggerKind};
use roce_verdict::Thresholds;

use crate::case::Case;

/// A millisecond of the simulation, as the truth counts bytes in.
const MILLISECOND: u64 = 1_000_000;
/// Multiple of the flow's average time between packets from which on a silence is a stall for sure: twice what
/// the analysis requires. It also has to be [`MIN_STALL_NS`] long.
const STALL_TIMES: u64 = 100;
/// Shortest silence that is a stall for sure.
const MIN_STALL_NS: u64 = 2_000_000;
/// Minimum number of packets of a flow whose silences are stalls for sure.
const STALL_PACKETS: u64 = 600;

/// One sign.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Sign {
    /// Stamps of its begin and end at the tap.
    pub(crate) begin: u64,
    pub(crate) end: u64,
    /// The tap's records show it.
    pub(crate) sure: bool,
}

type Places = BTreeMap<String, Vec<Sign>>;

/// The signs at a tap, by kind and place.
pub(crate) struct Signs<'a> {
    case: &'a Case,
    tap: &'a Tap,
    kinds: BTreeMap<&'static str, Places>,
    /// Milliseconds in which enough hosts sent to one host for an incast, by its address.
    crowded: BTreeMap<String, BTreeSet<u64>>,
}

impl<'a> Signs<'a> {
    /// All signs at a tap.
    pub(crate) fn of(case: &'a Case, tap: &'a Tap) -> Self {
        let mut signs = Self {
            case,
            tap,
            kinds: BTreeMap::new(),
            crowded: BTreeMap::new(),
        };
        signs.crowds();
        signs.marks();
        signs.losses();
        signs.refusals();
        signs.pauses();
        signs.stalls();
        signs.silences();
        signs
    }

    pub(crate) fn by_kind(&self) -> impl Iterator<Item = (&'static str, &Places)> {
        self.kinds.iter().map(|(kind, places)| (*kind, places))
    }

    /// True if there is any sign of a kind at a place.
    pub(crate) fn has(&self, kind: &str, place: &str) -> bool {
        self.kinds
            .get(kind)
            .is_some_and(|places| places.contains_key(place))
    }

    fn here(&self, taps: &[String]) -> bool {
        taps.contains(&self.tap.name)
    }

    fn destination(&self, flow: &str) -> String {
        let flow = self.case.flow(flow);
        let address = flow.and_then(|flow| self.case.address(&flow.destination));
        address.unwrap_or_default().to_owned()
    }

    fn add(&mut self, kind: &'static str, place: String, begin: u64, end: u64, sure: bool) {
        let sign = Sign {
            begin: self.case.stamp(self.tap, begin),
            end: self.case.stamp(self.tap, end.max(begin)),
            sure,
        };
        self.kinds
            .entry(kind)
            .or_default()
            .entry(place)
            .or_default()
            .push(sign);
    }

    /// A sign of congestion at a destination: of an incast, too, when many send to it.
    fn congested(&mut self, place: &str, begin: u64, end: u64, sure: bool) {
        let Some(crowded) = self.crowded.get(place) else {
            return;
        };
        let bin = begin / MILLISECOND;
        let surely = sure && crowded.contains(&bin);
        // Traffic takes its time from the sender to the tap, and clocks have their own milliseconds.
        if (bin.saturating_sub(1)..=end / MILLISECOND + 1).any(|bin| crowded.contains(&bin)) {
            self.add("incast", place.to_owned(), begin, end, surely);
        }
    }

    fn crowds(&mut self) {
        let mut senders: BTreeMap<(String, u64), BTreeSet<&str>> = BTreeMap::new();
        for flow in &self.case.truth.flows {
            let here = self.tap.flows.iter().find(|here| here.flow_id == flow.flow_id);
            if here.is_none_or(|here| here.data_packets == 0) {
                continue;
            }
            let place = self.destination(&flow.flow_id);
            for (bin, _) in (0..)
                .zip(&flow.received_bytes_per_ms)
                .filter(|(_, bytes)| **bytes > 0)
            {
                senders
                    .entry((place.clone(), bin))
                    .or_default()
                    .insert(&flow.source);
            }
        }
        for ((place, bin), hosts) in senders {
            if hosts.len() as u64 >= Thresholds::default().incast_senders {
                self.crowded.entry(place).or_default().insert(bin);
            }
        }
    }

    fn marks(&mut self) {
        let case = self.case;
        for mark in &case.truth.ce_marks {
            let data = matches!(
                mark.kind,
                PacketKind::Request | PacketKind::ReadResponse | PacketKind::Datagram
            );
            if data && self.here(&mark.recorded_by) {
                let place = self.destination(&mark.flow_id);
                self.add("ecn", place.clone(), mark.time, mark.time, true);
                self.congested(&place, mark.time, mark.time, true);
            }
        }
        for cnp in &case.truth.cnps {
            if self.here(&cnp.recorded_by) {
                let place = self.destination(&cnp.flow_id);
                let sure = case.is_paired_at(self.tap, &cnp.flow_id);
                self.add("ecn", place.clone(), cnp.sent, cnp.sent, sure);
                self.congested(&place, cnp.sent, cnp.sent, sure);
            }
        }
    }

    fn losses(&mut self) {
        let case = self.case;
        for hole in &self.tap.holes {
            let place = self.destination(&hole.flow_id);
            let sure = hole.observable && hole.class == HoleClass::NetworkLost;
            self.add("loss", place.clone(), hole.time, hole.time, sure);
            self.congested(&place, hole.time, hole.time, sure);
        }
        for lost in &self.tap.lost_downstream {
            let place = self.destination(&lost.flow_id);
            self.add(
                "loss",
                place.clone(),
                lost.time,
                lost.time,
                lost.observable && !lost.reordered,
            );
            self.congested(&place, lost.time, lost.time, lost.observable);
        }
        for loss in &case.truth.losses {
            let place = self.destination(&loss.flow_id);
            self.add("loss", place, loss.time, loss.time, false);
        }
        for run in &case.truth.retransmission_runs {
            let Some(here) = run.taps.iter().find(|here| here.tap == self.tap.name) else {
                continue;
            };
            let place = self.destination(&run.flow_id);
            // Packets still wait in queues when the last one has left the sender.
            let end = run.end.max(here.time);
            let sure =
                here.observable && matches!(run.trigger, TriggerKind::Timeout | TriggerKind::ImpliedNak);
            self.add("loss", place.clone(), here.time, here.time, sure);
            self.add("loss", place.clone(), here.time, end + MILLISECOND / 2, false);
            self.congested(&place, here.time, end, false);
        }
        // A connection that begins once more with the same PSN may look like one that sends all again.
        let connections = &case.truth.connections;
        for again in connections {
            let is_begun = |end: &End| {
                connections.iter().any(|before| {
                    let mut ends = [&before.a, &before.b].into_iter();
                    before.begin < again.begin
                        && ends.any(|old| (&old.flow_id, old.first_psn) == (&end.flow_id, end.first_psn))
                })
            };
            for end in [&again.a, &again.b].into_iter().filter(|end| is_begun(end)) {
                let place = self.destination(&end.flow_id);
                self.add("loss", place, again.begin, again.begin + MILLISECOND, false);
            }
        }
    }

    fn refusals(&mut self) {
        let case = self.case;
        for nak in case.truth.naks.iter().filter(|nak| nak.kind == NakKind::Rnr) {
            if self.here(&nak.recorded_by) {
                let place = self.destination(&nak.flow_id);
                self.add("rnr", place, nak.sent, nak.sent, true);
            }
        }
    }

    fn pauses(&mut self) {
        let case = self.case;
        for pause in &case.truth.pauses {
            if self.here(&pause.recorded_by) {
                // 8 is the whole link.
                let place = pause.priority.unwrap_or(8).to_string();
                self.add("pause", place.clone(), pause.begin, pause.begin, true);
                self.add("pause", place, pause.begin, pause.end, false);
                for place in self.crowded.keys().cloned().collect::<Vec<_>>() {
                    self.congested(&place, pause.begin, pause.end, false);
                }
            }
        }
    }

    fn stalls(&mut self) {
        let case = self.case;
        let stalls = case.truth.episodes.iter();
        for stall in stalls.filter(|episode| episode.kind == EpisodeKind::Stall) {
            for flow in &stall.flows {
                let Some(here) = self.tap.flows.iter().find(|here| here.flow_id == *flow) else {
                    continue;
                };
                let whole = case.flow(flow);
                let age = whole.map_or(0, |flow| {
                    flow.last_time.unwrap_or(0) - flow.first_time.unwrap_or(0)
                });
                let each = age / here.packets.max(1);
                let length = stall.end - stall.begin;
                let sure = here.packets >= STALL_PACKETS && length >= MIN_STALL_NS.max(each * STALL_TIMES);
                let place = self.destination(flow);
                self.add(
                    "stall",
                    place,
                    stall.begin,
                    stall.end,
                    sure && self.recorded_all_of(flow),
                );
            }
        }
    }

    /// A flow can stop at a tap while its sender does not, because all is lost before, or it is paced: a
    /// stall there, or none.
    fn silences(&mut self) {
        for flow in &self.tap.flows {
            for [begin, end] in &flow.silences {
                self.add("stall", self.destination(&flow.flow_id), *begin, *end, false);
            }
        }
    }

    /// True if the tap lost nothing of a flow.
    fn recorded_all_of(&self, flow: &str) -> bool {
        !self.tap.capture_losses.iter().any(|lost| lost.flow_id == flow)
    }
}
