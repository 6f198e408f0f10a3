//! Counters of switches, hypervisors and hosts, their cables, and the waits that pauses cause, for rules that
//! look at two levels. The words of findings are left to them.

mod contention;
mod flows;
mod graph;
mod holds;
mod known;
mod link_ends;
mod net;
mod ports;
mod readings;
mod receivers;
mod rows;
mod series;

use std::collections::BTreeMap;

use roce_model::{
    Address, EpisodeKind, EventKind, EventRow, FlowRow, LinkAddresses, MacAddress, PauseFrame, RunSummary,
    SampleColumns, TapId, WaitRow,
};

pub(super) use flows::{FlowFacts, Flows};
pub(super) use graph::Chain;
pub(super) use holds::whole;
pub(super) use net::{Net, Passes};
pub(super) use ports::PortNumber;
pub(super) use readings::{Key, Level, Quantity, Readings};
pub(super) use series::Window;

use super::bin_rows::BinRows;
use super::directory::Directory;
use super::episodes::Episode;
use super::settings::Settings;
use link_ends::LinkEnds;
use receivers::Receivers;

/// Takes what the sinks get, for the rules that need two levels.
#[derive(Clone, Debug, Default)]
pub(super) struct Pauses {
    readings: Readings,
    links: LinkEnds,
    receivers: Receivers,
    flows: Flows,
}

impl Pauses {
    /// Readings of counters and gauges.
    pub(super) fn samples(&mut self, rows: &SampleColumns) {
        self.readings.add(rows);
    }

    /// Link addresses between which hosts talk.
    pub(super) fn link(&mut self, link: &LinkAddresses) {
        self.links.note(link);
    }

    /// A pause frame.
    pub(super) fn pause(&mut self, frame: &PauseFrame) {
        self.links.pauser(frame.tap, frame.pause.source);
        self.receivers.pause(frame);
    }

    /// An event.
    pub(super) fn event(&mut self, event: &EventRow) {
        if event.kind == EventKind::RnrNak {
            self.receivers.rnr(event);
        }
    }

    /// Traffic of a shard in the bin of `width` ns that begins at `time`.
    pub(super) fn traffic(&mut self, time: u64, width: u64, rows: &BinRows) {
        if self.receivers.has_pauses() {
            for traffic in &rows.traffic {
                self.receivers.received(time, width, traffic);
            }
        }
    }

    /// A flow that is complete.
    pub(super) fn flow(&mut self, row: &FlowRow) {
        self.flows.add(row);
    }

    /// All that is known at the end.
    pub(super) fn conclude(
        mut self,
        settings: &Settings,
        run: &RunSummary,
        directory: &Directory,
        episodes: &[Episode],
    ) -> ConcludedPauses {
        let net = Net::new(&settings.wiring, &mut self.readings);
        let has_pauses = episodes
            .iter()
            .any(|episode| episode.row.kind == EpisodeKind::Pause);
        let mut concluded = ConcludedPauses {
            readings: self.readings,
            flows: self.flows.in_order(),
            net,
            pausing_hosts: self.links.pausing_hosts(),
            ..ConcludedPauses::default()
        };
        if has_pauses || concluded.readings.has_pauses() {
            let known = known::KnownFacts {
                settings,
                run,
                directory,
                episodes,
                links: self.links.conclude(),
                receivers: &self.receivers,
                readings: &concluded.readings,
                flows: &concluded.flows,
                net: &concluded.net,
                series: concluded.readings.by_quantity(),
            };
            let (graph, chains) = graph::conclude(&known);
            let waits = rows::rows(&known, &graph);
            (concluded.waits, concluded.chains) = (waits, chains);
        }
        concluded
    }
}

/// Pauses that are concluded at the end.
#[derive(Debug, Default)]
pub(super) struct ConcludedPauses {
    pub(super) readings: Readings,
    pub(super) flows: Flows,
    pub(super) net: Net,
    /// Rows of the table `waits`.
    pub(super) waits: Vec<WaitRow>,
    /// Roots of pauses, and the flows that wait for them, the worst first.
    pub(super) chains: Vec<Chain>,
    /// Hosts that sent pause frames, by tap and link address.
    pub(super) pausing_hosts: BTreeMap<(TapId, MacAddress), Address>,
}
