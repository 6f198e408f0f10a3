//! Evidence of which flows belong together, apart from the flows themselves: requests that wait for an answer, source ports, messages of
//! the connection manager, reports of hosts. `pair`, `connect` and `host_events` ask it and make the links.

use core::ops::Range;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

use roce_model::{EventRow, Packet, Span, Time};
use roce_wire::network::udp::source_port;
use roce_wire::{Address, Psn};

use crate::credits::Credits;
use crate::inband::Inband;
use crate::key::FlowSlot;
use crate::mrc::{Mrc, MrcConclusion};
use crate::pairing::attempts::Attempts;
use crate::pairing::bounded_map::{BoundedMap, bounded_map};
use crate::pairing::cm_exchanges::Exchanges;
use crate::pairing::evidence::{CAPTURE_START, Evidence, FAR_PSNS};
use crate::pairing::host_queue_pairs::QueuePairs;
use crate::pairing::known_peers::KnownPeers;
use crate::pairing::outstanding::{Handle, OutstandingPackets};
use crate::pairing::shared_ports::SharedPorts;
use crate::psn::request::LARGEST_GAP;
use crate::table::FlowTable;
use crate::table::state::Cold;
use crate::uet::Uet;

/// Flows of one direction between two hosts that are listed. With more, PSNs alone must pair them.
const MAX_SIBLINGS: usize = 256;

/// A paired flow that has been silent for this long waits for no answer: a second, as for [`FAR_PSNS`].
const SILENT: Span = Span::SECOND;

/// Evidence of connections besides the state of their flows.
#[derive(Debug)]
pub(super) struct Connections {
    /// Requests of unpaired flows that wait for an answer.
    pub(super) outstanding: OutstandingPackets,
    /// Messages of the connection manager that belong together.
    pub(super) exchanges: Exchanges,
    /// Its attempts to make connections.
    pub(super) attempts: Attempts,
    /// Pairings of flows that are not there.
    pub(super) known_peers: KnownPeers,
    /// Queue pairs that hosts reported.
    pub(super) queue_pairs: QueuePairs,
    /// Credits and the data that come for them.
    pub(super) credits: Credits,
    /// Connections of MRC.
    pub(super) mrc: Mrc,
    /// Packets of UET.
    pub(super) uet: Uet,
    /// Hops that switches wrote into packets.
    pub(super) inband: Inband,
    shared_ports: SharedPorts,
    /// Reliable flows of one direction between two hosts, by the hash of the pair.
    siblings: HashMap<u64, Vec<FlowSlot>, foldhash::fast::RandomState>,
    /// When two hosts were first seen at a tap, by their hash; of the latest 65,536 of them.
    begun: BoundedMap<u64, Time>,
    /// Hosts of which two flows were paired by their UDP source port: the lower address first.
    ports_follow: BoundedMap<(Address, Address), ()>,
    /// The last serial number given to a flow; see [`crate::table::state::Cold::serial`].
    last_serial: u32,
}

impl Default for Connections {
    fn default() -> Self {
        Self {
            outstanding: OutstandingPackets::default(),
            credits: Credits::default(),
            mrc: Mrc::default(),
            uet: Uet::default(),
            inband: Inband::default(),
            exchanges: Exchanges::default(),
            attempts: Attempts::default(),
            known_peers: KnownPeers::default(),
            queue_pairs: QueuePairs::default(),
            shared_ports: SharedPorts::default(),
            siblings: HashMap::default(),
            begun: bounded_map(),
            ports_follow: bounded_map(),
            last_serial: 0,
        }
    }
}

impl Connections {
    /// Rows of the connections of MRC and UET at the end. Events are added for what shows only then.
    pub(super) fn conclude_multipath(&mut self, events: &mut Vec<EventRow>) -> MrcConclusion {
        let mut rows = core::mem::take(&mut self.mrc).conclude(events);
        core::mem::take(&mut self.uet).conclude(&mut rows, events);
        rows
    }

    /// The flow at `at` was opened, with a packet at `time`.
    pub(super) fn enter(&mut self, table: &FlowTable, at: FlowSlot, time: Time) {
        let cold = &table.cold[at];
        // Perhaps these are the first packets of the two hosts.
        let hosts = both_ways(cold);
        if !self.begun.contains(&hosts) {
            self.begun.put(hosts, time);
        }
        if !cold.key.service.is_reliable() {
            return;
        }
        let siblings = self.siblings.entry(cold.groups.pair).or_default();
        if siblings.len() < MAX_SIBLINGS {
            siblings.push(at);
        }
        if let Some(port) = cold.first_port() {
            self.shared_ports.enter(cold.groups.pair, port, at);
        }
    }

    /// The flow at `at` goes.
    pub(super) fn leave(&mut self, cold: &Cold, at: FlowSlot) {
        if let Entry::Occupied(mut siblings) = self.siblings.entry(cold.groups.pair) {
            // Once there were too many, some are not listed: the list stays as it is until all of them are gone.
            if siblings.get().len() < MAX_SIBLINGS {
                let listed = siblings.get().iter().position(|other| *other == at);
                if let Some(listed) = listed {
                    siblings.get_mut().remove(listed);
                }
            }
            if siblings.get().is_empty() {
                siblings.remove();
            }
        }
        if let Some(port) = cold.first_port().filter(|_| cold.key.service.is_reliable()) {
            self.shared_ports.leave(cold.groups.pair, port, at);
        }
    }

    /// A number for a new flow or epoch.
    pub(super) fn next_serial(&mut self) -> u32 {
        self.last_serial = self.last_serial.wrapping_add(1).max(1);
        self.last_serial
    }

    /// From when on answers between a flow's hosts are for requests that were captured, too: a while after the first of their
    /// packets, and after the tap lost records at `lost`.
    pub(super) fn settled(&self, cold: &Cold, lost: Time) -> Time {
        let begun = self.begun.peek(&both_ways(cold)).copied().unwrap_or_default();
        begun.max(lost) + CAPTURE_START
    }

    /// Two flows were paired by their source port: between their hosts it follows from the queue pairs.
    pub(super) fn port_followed(&mut self, cold: &Cold) {
        self.ports_follow.put(hosts_of(cold), ());
    }

    /// True if a flow is the only one of its direction between its hosts that an answer at `now` may be for.
    pub(super) fn is_only(&self, table: &FlowTable, at: FlowSlot, now: Time) -> bool {
        let siblings = self.siblings.get(&table.cold[at].groups.pair);
        let siblings = siblings.filter(|siblings| siblings.len() < MAX_SIBLINGS);
        siblings.is_some_and(|siblings| {
            let mut others = siblings.iter().filter(|other| **other != at);
            !others.any(|other| table.may_be_asked(*other, now))
        })
    }

    /// The only flow whose requests the answer of the flow at `at` may name: it alone has sent the PSN, or is about to, and all
    /// others are far off. The PSN is ahead of the one that the flow sends next by a distance within `ahead`.
    pub(super) fn named_by(
        &self,
        table: &FlowTable,
        at: FlowSlot,
        ahead: Range<i32>,
        packet: &Packet,
    ) -> Option<Handle> {
        let psn = packet.roce.bth.psn();
        let (back, service) = (table.cold[at].peering.back(), table.cold[at].key.service);
        let is_near = |other: &&FlowSlot| {
            let requests = &table.hot[**other].requests;
            requests.next != 0 && (-FAR_PSNS..=LARGEST_GAP).contains(&psn.offset_from(requests.expected()))
        };
        let siblings = self.siblings.get(&back)?;
        let mut near = siblings
            .iter()
            .filter(|_| siblings.len() < MAX_SIBLINGS)
            .filter(|other| table.may_be_asked(**other, packet.time))
            .filter(is_near);
        let (only, None) = (*near.next()?, near.next()) else {
            return None;
        };
        let handle = table.handle(only);
        let evidence = table.cold[only].peering.evidence();
        let is_new = evidence.is_none_or(|evidence| !evidence.is_answered_by(psn, table.handle(at)));
        let requests = &table.hot[only].requests;
        let fits = is_new
            && ahead.contains(&psn.offset_from(requests.expected()))
            && !requests.is_near_zero()
            && only != at
            && table.is_open(handle)
            && table.cold[only].key.service == service;
        fits.then_some(handle)
    }

    /// True if no other flow of the same direction between the same hosts has PSNs near those of the flow at `at`.
    pub(super) fn stands_alone(&self, table: &FlowTable, at: FlowSlot, now: Time) -> bool {
        let pair = table.cold[at].groups.pair;
        let requests = &table.hot[at].requests;
        let Some(siblings) = self
            .siblings
            .get(&pair)
            .filter(|siblings| siblings.len() < MAX_SIBLINGS)
        else {
            return false;
        };
        let mut others = siblings
            .iter()
            .filter(|other| **other != at && table.may_be_asked(**other, now));
        others.all(|other| {
            let other = &table.hot[*other].requests;
            other.next == 0 || other.expected().offset_from(requests.expected()).abs() >= FAR_PSNS
        })
    }

    /// The other direction by the UDP source port. It is the only flow of the other direction with this
    /// port, when this flow is the only one of its direction with it, when the port follows from the two
    /// queue pairs, and when the other flow has sent `psn` a while ago.
    pub(super) fn port_says(&self, table: &FlowTable, at: FlowSlot, psn: Psn) -> Option<FlowSlot> {
        let cold = &table.cold[at];
        let port = cold.only_port()?;
        let other = self.shared_ports.only(cold.peering.back(), port)?;
        let (other_hot, other_cold) = (table.hot.get(other)?, table.cold.get(other)?);
        let fits = other != at
            && self.shared_ports.only(cold.groups.pair, port) == Some(at)
            && !other_hot.is_paired()
            && other_cold.only_port() == Some(port)
            && other_cold.key.service == cold.key.service
            && source_port(cold.key.destination_qpn, other_cold.key.destination_qpn) == port
            && other_hot.requests.next != 0
            && (-LARGEST_GAP..0).contains(&psn.offset_from(other_hot.requests.expected()));
        fits.then_some(other)
    }

    /// True if the UDP source port of the flow at `at` says that its other direction is another flow than that at `other`.
    pub(super) fn port_names_another(&self, table: &FlowTable, at: FlowSlot, other: FlowSlot) -> bool {
        let cold = &table.cold[at];
        let named = cold.only_port().and_then(|port| {
            let named = self.shared_ports.only(cold.peering.back(), port)?;
            let named_cold = table.cold.get(named)?;
            let fits = self.shared_ports.only(cold.groups.pair, port) == Some(at)
                && named_cold.only_port() == Some(port)
                && named_cold.key.service == cold.key.service
                && source_port(cold.key.destination_qpn, named_cold.key.destination_qpn) == port;
            fits.then_some(named)
        });
        named.is_some_and(|named| named != at && named != other)
    }

    /// True if the UDP source port of one of two flows does not follow from their queue pairs, although those between the same hosts were seen
    /// to follow from theirs (`rdma_calc_flow_label`, Linux include/rdma/ib_verbs.h).
    pub(super) fn ports_differ(&self, table: &FlowTable, at: FlowSlot, other: FlowSlot) -> bool {
        let flows = [&table.cold[at], &table.cold[other]];
        if !self.ports_follow.contains(&hosts_of(flows[0])) {
            return false;
        }
        let [one, other] = flows.map(|flow| flow.key.destination_qpn);
        let expected = source_port(one, other);
        let mut ports = flows.iter().filter_map(|flow| flow.only_port());
        ports.any(|port| port != expected)
    }
}

impl FlowTable {
    /// Names the flow at `at` by its place and serial number.
    pub(super) fn handle(&self, at: FlowSlot) -> Handle {
        Handle {
            at,
            serial: self.cold[at].serial,
        }
    }

    /// True if the flow of a handle is there still and unpaired.
    pub(super) fn is_open(&self, handle: Handle) -> bool {
        let (hot, cold) = (self.hot.get(handle.at), self.cold.get(handle.at));
        hot.is_some_and(|hot| hot.live && !hot.is_paired())
            && cold.is_some_and(|cold| cold.serial == handle.serial)
    }

    /// True unless a flow has its other direction, and has been silent for so long that an answer between its hosts is not for it: a job that is
    /// started again has PSNs like those of the one before.
    fn may_be_asked(&self, at: FlowSlot, now: Time) -> bool {
        let hot = &self.hot[at];
        !hot.is_paired() || now.since(hot.last_time) < SILENT
    }

    /// Evidence of a flow's other direction.
    pub(super) fn evidence(&mut self, of: Handle) -> &mut Evidence {
        self.cold[of.at].peering.evidence_mut()
    }
}

/// A hash of a flow's tap and hosts, the same for both directions.
fn both_ways(cold: &Cold) -> u64 {
    cold.groups.pair.wrapping_add(cold.peering.back())
}

/// The two hosts of a flow, the lower address first.
fn hosts_of(cold: &Cold) -> (Address, Address) {
    let (source, destination) = (cold.key.source, cold.key.destination);
    (source.min(destination), source.max(destination))
}
