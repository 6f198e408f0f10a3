//! Pairing: finds the flow of the other direction from requests and their answers, and keeps the link between the two
//! right while flows come and go. What counts as enough is said in `pairing`.

use core::ops::Range;
use std::collections::hash_map::Entry;

use roce_model::{EventKind, EventRow, FlowKey, Nanos, Packet};
use roce_wire::network::udp::source_port;
use roce_wire::{Address, AethKind, Extended, Nak, Operation, Psn, Service};

use crate::analysis::Analysis;
use crate::key::FlowSlot;
use crate::pairing::evidence::{CAPTURE_START, Evidence, FAR_PSNS, Pairing, Peer, SOLE_MATCHES};
use crate::pairing::known_peers::{Direction, KnownPeer};
use crate::pairing::outstanding::Handle;
use crate::psn::request::{Connected, LARGEST_GAP, STALE};
use crate::table::state::Cold;
use crate::taps::vantage::Other;

/// Limit of the distance between an ACK's PSN, when its request did not request an ACK, and the latest
/// PSN of its flow. Receivers that acknowledge several messages at once send such ACKs. 1,024 PSNs of 1
/// KiB are a megabyte outstanding. By chance an ACK falls there in one of 16,384 cases.
const MAX_IN_FLIGHT: i32 = 1 << 10;
/// An answer to a request that was not captured, but may have been: how much doubt it adds. The capture lost it, perhaps.
const NEAR_DOUBT: u8 = 2;
/// An answer to a PSN where the other flow never was.
const FAR_DOUBT: u8 = 8;
/// So much doubt ends a pairing: four answers far off in a row, or, as each answer that fits takes one off, more
/// than a third that are off by little. No capture that is worth reading loses so much.
const TOO_MUCH_DOUBT: u8 = 32;

/// A paired flow that has been silent for this long waits for no answer: a second, as for [`FAR_PSNS`].
const SILENT: Nanos = Nanos(Nanos::SECOND);

/// Flows of one direction between two hosts that are listed. With more, PSNs alone must pair them.
const MAX_SIBLINGS: usize = 256;

impl Analysis {
    /// A flow was opened, with a packet at `time`: perhaps the first one of its two hosts.
    pub(super) fn begin_hosts(&mut self, at: FlowSlot, time: Nanos) {
        let hosts = both_ways(&self.table.cold[at]);
        if !self.begun.contains(&hosts) {
            self.begun.put(hosts, time);
        }
    }

    /// From when on answers between a flow's hosts are for requests that were captured, too: a while after the first of
    /// their packets, and after the tap last lost records.
    fn settled(&self, at: FlowSlot) -> Nanos {
        let tap = self.table.hot[at].tap.0 as usize;
        let lost = self.lost_at.get(tap).copied().unwrap_or_default();
        let begun = self.begun.peek(&both_ways(&self.table.cold[at])).copied();
        Nanos(
            begun
                .unwrap_or_default()
                .max(lost)
                .0
                .saturating_add(CAPTURE_START.0),
        )
    }

    /// A number for a new flow or epoch.
    pub(super) fn next_serial(&mut self) -> u32 {
        self.last_serial = self.last_serial.wrapping_add(1).max(1);
        self.last_serial
    }

    fn handle(&self, at: FlowSlot) -> Handle {
        Handle {
            at,
            serial: self.table.cold[at].serial,
        }
    }

    /// True if the flow of a handle is there still and unpaired.
    fn is_open(&self, handle: Handle) -> bool {
        let (hot, cold) = (self.table.hot.get(handle.at), self.table.cold.get(handle.at));
        hot.is_some_and(|hot| hot.live && !hot.is_paired())
            && cold.is_some_and(|cold| cold.serial == handle.serial)
    }

    /// A request of a flow. Of an unpaired one it is remembered when it requests an answer.
    #[inline]
    pub(super) fn note_outstanding_request(&mut self, at: FlowSlot, packet: &Packet) {
        let hot = &self.table.hot[at];
        let bth = &packet.roce.bth;
        if hot.is_paired() || !(bth.ack_request() || bth.opcode().is_last()) {
            return;
        }
        let cold = &self.table.cold[at];
        if !cold.key.service.is_reliable() {
            return;
        }
        let asker = Handle {
            at,
            serial: cold.serial,
        };
        self.outstanding
            .note(cold.groups.pair, bth.psn(), asker, packet.time);
    }

    /// An answer of a flow.
    #[inline]
    pub(super) fn answers(&mut self, at: FlowSlot, packet: &Packet) {
        let tells = packet.roce.seen.has(Extended::AETH) || fits_one_request(packet);
        if tells && !self.table.hot[at].is_paired() {
            self.look_for_peer(at, packet);
        }
        let peer = self.table.hot[at].peer;
        if peer != FlowSlot::NONE && self.still_fits(at, peer, packet) {
            self.on_response(peer, at, packet);
        }
    }

    /// An answer of an unpaired flow: whose request it may be for.
    fn look_for_peer(&mut self, at: FlowSlot, packet: &Packet) {
        let cold = &self.table.cold[at];
        if !cold.key.service.is_reliable() {
            return;
        }
        let psn = packet.roce.bth.psn();
        if let Some(other) = self.port_says(at, psn) {
            return self.link(at, other, Pairing::Sport, None, packet.time);
        }
        if !fits_one_request(packet) {
            let is_nak = matches!(
                packet.roce.aeth.kind(),
                AethKind::Nak(Nak::PsnSequenceError) | AethKind::RnrNak { .. }
            );
            let is_nak = is_nak && packet.roce.bth.opcode().operation() == Operation::Acknowledge;
            let named = is_nak.then(|| self.named_by(at, -FAR_PSNS..LARGEST_GAP + 1, packet));
            if let Some(requester) = named.flatten() {
                let requested = self.table.hot[requester.at].last_request;
                self.note_match(self.handle(at), requester, requested, packet);
            }
            return;
        }
        let cold = &self.table.cold[at];
        let (me, service) = (self.handle(at), cold.key.service);
        let candidates = cold.evidence.iter().flat_map(|evidence| evidence.candidates());
        let mut contradicted = [None; 4];
        for (place, candidate) in contradicted.iter_mut().zip(candidates) {
            let is_beyond = |requests: &crate::psn::request::Requests| {
                requests.next == 0 || psn.offset_from(requests.expected()) >= 0
            };
            if self.is_open(candidate) && is_beyond(&self.table.hot[candidate.at].requests) {
                *place = Some(candidate);
            }
        }
        for candidate in contradicted.into_iter().flatten() {
            self.evidence(me).contradicted(candidate);
            self.evidence(candidate).contradicted(me);
        }
        let askers = self.outstanding.find(self.table.cold[at].back, psn, packet.time);
        let (mut fresh, mut answered) = (None, None);
        let (mut fresh_ones, mut answered_ones) = (0, 0);
        for (asker, requested) in askers.list() {
            // Where both ends have one address, a flow's own requests are among them.
            if asker.at == at || !self.is_open(*asker) || self.table.cold[asker.at].key.service != service {
                continue;
            }
            let evidence = self.table.cold[asker.at].evidence.as_deref();
            if evidence.is_some_and(|evidence| evidence.is_answered_by(psn, me)) {
                // A retransmitted answer shows nothing new.
                return;
            }
            if evidence.is_some_and(|evidence| evidence.is_answered_by_another(psn, me)) {
                (answered, answered_ones) = (Some((*asker, *requested)), answered_ones + 1);
            } else {
                (fresh, fresh_ones) = (Some((*asker, *requested)), fresh_ones + 1);
            }
        }
        // When all have been answered, one of those answers may have belonged to this flow.
        let (found, ones) = if fresh_ones > 0 {
            (fresh, fresh_ones)
        } else {
            (answered, answered_ones)
        };
        let Some((candidate, requested)) = found else {
            if packet.roce.bth.opcode().operation() != Operation::Acknowledge {
                return;
            }
            if let Some(requester) = self.named_by(at, -MAX_IN_FLIGHT..0, packet) {
                let requested = self.table.hot[requester.at].last_request;
                self.note_match(me, requester, requested, packet);
            } else if let Some(requester) = self.named_by(at, 0..LARGEST_GAP, packet) {
                self.note_early(requester.at, psn);
            }
            return;
        };
        if ones > 1 || askers.crowded {
            return self.evidence(me).tied();
        }
        self.note_match(me, candidate, requested, packet);
    }

    /// The only flow whose requests the answer of the flow at `at` may name: it alone has sent the PSN, or is about to, and all
    /// others are far off. The PSN is ahead of the one that the flow sends next by a distance within `ahead`.
    fn named_by(&self, at: FlowSlot, ahead: Range<i32>, packet: &Packet) -> Option<Handle> {
        let psn = packet.roce.bth.psn();
        let (back, service) = (self.table.cold[at].back, self.table.cold[at].key.service);
        let is_near = |other: &&FlowSlot| {
            let requests = &self.table.hot[**other].requests;
            requests.next != 0 && (-FAR_PSNS..=LARGEST_GAP).contains(&psn.offset_from(requests.expected()))
        };
        let siblings = self.siblings.get(&back)?;
        let mut near = siblings
            .iter()
            .filter(|_| siblings.len() < MAX_SIBLINGS)
            .filter(|other| self.may_be_asked(**other, packet.time))
            .filter(is_near);
        let (only, None) = (*near.next()?, near.next()) else {
            return None;
        };
        let handle = self.handle(only);
        let evidence = self.table.cold[only].evidence.as_deref();
        let is_new = evidence.is_none_or(|evidence| !evidence.is_answered_by(psn, self.handle(at)));
        let requests = &self.table.hot[only].requests;
        let fits = is_new
            && ahead.contains(&psn.offset_from(requests.expected()))
            && !requests.is_near_zero()
            && only != at
            && self.is_open(handle)
            && self.table.cold[only].key.service == service;
        fits.then_some(handle)
    }

    /// The answer of `me` fits a request of `candidate`, sent at `requested`, and no request of another flow.
    fn note_match(&mut self, me: Handle, candidate: Handle, requested: Nanos, packet: &Packet) {
        let (at, psn) = (me.at, packet.roce.bth.psn());
        if self.port_names_another(at, candidate.at) || self.port_names_another(candidate.at, at) {
            // Flows with PSNs alike, whose answers were stamped before their requests, seem to answer each other.
            return;
        }
        if self.ports_differ(at, candidate.at) && !self.stands_alone(candidate.at, packet.time) {
            // So do such whose other directions take other links of equal cost.
            return;
        }
        let settled = self.settled(at);
        self.evidence(me)
            .matched(candidate, requested, packet.time, settled);
        let other = self.evidence(candidate);
        other.matched(me, requested, packet.time, settled);
        other.answer(psn, me);
        let agreed = other.agrees(me);
        if let (Some(one), Some(other)) = (agreed, self.evidence(me).agrees(candidate)) {
            let matches = Some(u64::from(one.min(other)));
            return self.link(at, candidate.at, Pairing::Psn, matches, packet.time);
        }
        // Between hosts with one flow in each direction, one answer in its place is enough.
        let is_only = [me, candidate].iter().all(|flow| {
            let pair = self.table.cold[flow.at].groups.pair;
            let siblings = self
                .siblings
                .get(&pair)
                .filter(|siblings| siblings.len() < MAX_SIBLINGS);
            let asked = |siblings: &Vec<FlowSlot>| {
                let mut others = siblings.iter().filter(|other| **other != flow.at);
                !others.any(|other| self.may_be_asked(*other, packet.time))
            };
            siblings.is_some_and(asked)
        });
        let requests = &self.table.hot[candidate.at].requests;
        if requests.is_near_zero() {
            return;
        }
        let enough = if is_only { 1 } else { SOLE_MATCHES };
        let sole = self.evidence(me).is_sole(candidate, enough);
        let sole = sole.filter(|_| self.evidence(candidate).is_sole(me, enough).is_some());
        if let Some(matches) = sole.filter(|_| self.stands_alone(candidate.at, packet.time)) {
            let matches = Some(u64::from(matches));
            self.link(at, candidate.at, Pairing::Psn, matches, packet.time);
        }
    }

    /// True if no other flow of the same direction between the same hosts has PSNs near those of the flow at `at`.
    fn stands_alone(&self, at: FlowSlot, now: Nanos) -> bool {
        let pair = self.table.cold[at].groups.pair;
        let requests = &self.table.hot[at].requests;
        let Some(siblings) = self
            .siblings
            .get(&pair)
            .filter(|siblings| siblings.len() < MAX_SIBLINGS)
        else {
            return false;
        };
        let mut others = siblings
            .iter()
            .filter(|other| **other != at && self.may_be_asked(**other, now));
        others.all(|other| {
            let other = &self.table.hot[*other].requests;
            other.next == 0 || other.expected().offset_from(requests.expected()).abs() >= FAR_PSNS
        })
    }

    /// True unless a flow has its other direction, and has been silent for so long that an answer between its hosts is not for it: a job that is
    /// started again has PSNs like those of the one before.
    fn may_be_asked(&self, at: FlowSlot, now: Nanos) -> bool {
        let hot = &self.table.hot[at];
        !hot.is_paired() || now.since(hot.last_time) < SILENT
    }

    fn evidence(&mut self, of: Handle) -> &mut Evidence {
        self.table.cold[of.at].evidence.get_or_insert_default()
    }

    /// The other direction by the UDP source port. It is the only flow of the other direction with this
    /// port, when this flow is the only one of its direction with it, when the port follows from the two
    /// queue pairs, and when the other flow has sent `psn` a while ago.
    fn port_says(&self, at: FlowSlot, psn: Psn) -> Option<FlowSlot> {
        let cold = &self.table.cold[at];
        let port = cold.only_port()?;
        let other = self.shared_ports.only(cold.back, port)?;
        let (other_hot, other_cold) = (self.table.hot.get(other)?, self.table.cold.get(other)?);
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
    fn port_names_another(&self, at: FlowSlot, other: FlowSlot) -> bool {
        let cold = &self.table.cold[at];
        let named = cold.only_port().and_then(|port| {
            let named = self.shared_ports.only(cold.back, port)?;
            let named_cold = self.table.cold.get(named)?;
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
    fn ports_differ(&self, at: FlowSlot, other: FlowSlot) -> bool {
        let flows = [&self.table.cold[at], &self.table.cold[other]];
        if !self.ports_follow.contains(&hosts_of(flows[0])) {
            return false;
        }
        let [one, other] = flows.map(|flow| flow.key.destination_qpn);
        let expected = source_port(one, other);
        let mut ports = flows.iter().filter_map(|flow| flow.only_port());
        ports.any(|port| port != expected)
    }

    /// True if an answer of a paired flow fits the requests of its peer; when it has often not, the pairing ends.
    #[inline]
    fn still_fits(&mut self, at: FlowSlot, peer: FlowSlot, packet: &Packet) -> bool {
        let requests = self.table.hot[peer].requests;
        let hot = &mut self.table.hot[at];
        let ahead = packet.roce.bth.psn().offset_from(requests.expected());
        if requests.next != 0 && (-STALE..0).contains(&ahead) {
            hot.doubt = hot.doubt.saturating_sub(1);
            return true;
        }
        // A NAK names what is still to come, and a READ whose span is not known is answered beyond it.
        if requests.next == 0 || !fits_one_request(packet) {
            return true;
        }
        if (0..LARGEST_GAP).contains(&ahead) {
            self.note_early(peer, packet.roce.bth.psn());
        }
        self.doubt(at, peer, packet, ahead)
    }

    #[cold]
    fn doubt(&mut self, at: FlowSlot, peer: FlowSlot, packet: &Packet, ahead: i32) -> bool {
        let (hot, cold) = (&mut self.table.hot[peer], &mut self.table.cold[peer]);
        if cold.tracker.is_stale(packet.roce.bth.psn()) {
            // The peer's latest requests, far behind, are answered: its queue pair has got a new connection.
            let connected = Connected {
                reason: "packets far behind were answered",
                first: None,
            };
            cold.tracker.connect(&mut hot.requests, connected);
            return false;
        }
        let is_near = (0..LARGEST_GAP).contains(&ahead);
        let hot = &mut self.table.hot[at];
        let how = self.table.cold[at].link.map(|link| link.how);
        hot.doubt = hot.doubt.saturating_add(match how {
            Some(Pairing::Cm | Pairing::Host) if is_near => 0,
            _ if is_near => NEAR_DOUBT,
            _ => FAR_DOUBT,
        });
        if hot.doubt < TOO_MUCH_DOUBT {
            return true;
        }
        self.forget_peer(at);
        false
    }

    /// A link was wrong, or is no longer right.
    pub(super) fn forget_peer(&mut self, at: FlowSlot) {
        let peer = self.table.hot[at].peer;
        if peer == FlowSlot::NONE {
            return;
        }
        self.unlink(at);
        for at in [at, peer] {
            let cold = &mut self.table.cold[at];
            cold.set_peer(None);
            self.known_peers
                .forget(&Direction::new(self.table.hot[at].tap, &cold.key));
        }
    }

    /// Makes two flows the two directions of one connection.
    pub(super) fn link(
        &mut self,
        one: FlowSlot,
        other: FlowSlot,
        how: Pairing,
        matches: Option<u64>,
        time: Nanos,
    ) {
        self.unlink(one);
        self.unlink(other);
        if how == Pairing::Sport {
            self.ports_follow.put(hosts_of(&self.table.cold[one]), ());
        }
        let ids = [one, other].map(|at| self.table.cold[at].id);
        for (at, peer, id) in [(one, other, ids[1]), (other, one, ids[0])] {
            let hot = &mut self.table.hot[at];
            (hot.peer, hot.doubt) = (peer, 0);
            let cold = &mut self.table.cold[at];
            cold.link = Some(Peer { id, how, matches });
            cold.evidence = None;
            // A new connection: the epoch before it keeps its own peer.
            if cold.peer().is_none() || !cold.tracker.is_connected() {
                cold.set_peer(cold.link);
            }
        }
        self.bins.events.push(EventRow {
            time,
            kind: EventKind::Paired,
            tap: self.table.hot[one].tap,
            flow_id: ids.into_iter().min(),
            value: matches,
            detail: Some(how.name().into()),
            ..EventRow::default()
        });
        self.on_paired(one, other, time);
        self.charge_waiting(one);
        self.charge_waiting(other);
    }

    /// Ends the link of a flow to its peer. Their rows keep what was written.
    pub(super) fn unlink(&mut self, at: FlowSlot) {
        let peer = core::mem::replace(&mut self.table.hot[at].peer, FlowSlot::NONE);
        if peer != FlowSlot::NONE {
            self.table.hot[peer].peer = FlowSlot::NONE;
            self.table.cold[peer].link = None;
            self.table.cold[at].link = None;
        }
    }

    /// Links a flow to the one that is said to be its other direction, when that is there.
    pub(super) fn link_as_expected(&mut self, at: FlowSlot, time: Nanos) {
        let key = &self.table.cold[at].key;
        let is_connected = matches!(key.service, Service::Rc | Service::Uc | Service::Xrc);
        if self.known_peers.is_empty() || !is_connected {
            return;
        }
        let tap = self.table.hot[at].tap;
        let Some(known) = self.known_peers.get(&Direction::new(tap, key)) else {
            return;
        };
        let other = FlowKey {
            source: key.destination,
            destination: key.source,
            destination_qpn: known.qpn,
            ..*key
        };
        let is_free = |other: &FlowSlot| {
            let is_paired = self.table.hot[*other].is_paired();
            *other != at && (matches!(known.how, Pairing::Cm | Pairing::Host) || !is_paired)
        };
        if let Some(other) = self.table.find_key(tap, &other).filter(is_free) {
            self.link(at, other, known.how, known.matches, time);
        }
    }

    /// A flow is closed early: should it come back, it has the same peer.
    pub(super) fn expect_return(&mut self, at: FlowSlot) {
        let peer = self.table.hot[at].peer;
        let (Some(link), Some(other)) = (self.table.cold[at].link, self.table.cold.get(peer)) else {
            return;
        };
        let (tap, key) = (self.table.hot[at].tap, &self.table.cold[at].key);
        for (of, to) in [(key, &other.key), (&other.key, key)] {
            let known = KnownPeer {
                qpn: to.destination_qpn,
                how: link.how,
                matches: link.matches,
            };
            self.known_peers.remember(Direction::new(tap, of), known);
        }
    }

    /// A flow began an epoch: its peer, if it still has one, is that of the new one too. The answers will tell.
    pub(super) fn keep_peer(&mut self, at: FlowSlot) {
        let serial = self.next_serial();
        let cold = &mut self.table.cold[at];
        cold.serial = serial;
        cold.evidence = None;
        cold.set_peer(cold.link);
    }

    /// Evidence for the tap's vantage from the other direction of a closing flow, if it is there; the
    /// other direction gets this flow's.
    pub(super) fn other(&mut self, at: FlowSlot) -> Option<Other> {
        let peer = self.table.hot[at].peer;
        if peer == FlowSlot::NONE {
            return self.table.cold[at].other;
        }
        self.table.cold[peer].other = Some(self.table.cold[at].to_other());
        self.other_of_open(at)
    }

    /// Evidence for the tap's vantage from the other direction of a flow that stays.
    pub(super) fn other_of_open(&self, at: FlowSlot) -> Option<Other> {
        match self.table.hot[at].peer {
            FlowSlot::NONE => self.table.cold[at].other,
            peer => Some(self.table.cold[peer].to_other()),
        }
    }

    /// A flow was opened.
    pub(super) fn enter_ports(&mut self, at: FlowSlot) {
        let cold = &self.table.cold[at];
        if cold.key.service.is_reliable() {
            let siblings = self.siblings.entry(cold.groups.pair).or_default();
            if siblings.len() < MAX_SIBLINGS {
                siblings.push(at);
            }
        }
        if let Some(port) = cold.first_port().filter(|_| cold.key.service.is_reliable()) {
            self.shared_ports.enter(cold.groups.pair, port, at);
        }
    }

    /// A flow goes.
    pub(super) fn leave_ports(&mut self, at: FlowSlot) {
        let cold = &self.table.cold[at];
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
}

/// A hash of a flow's tap and hosts, the same for both directions.
fn both_ways(cold: &Cold) -> u64 {
    cold.groups.pair.wrapping_add(cold.back)
}

/// The two hosts of a flow, the lower address first.
fn hosts_of(cold: &Cold) -> (Address, Address) {
    let (source, destination) = (cold.key.source, cold.key.destination);
    (source.min(destination), source.max(destination))
}

/// True if the PSN of an answer is that of its request: an ACK, the first packet of a READ response, an
/// atomic ACK. A NAK may name a PSN that was never sent.
fn fits_one_request(packet: &Packet) -> bool {
    let roce = &packet.roce;
    let opcode = roce.bth.opcode();
    match opcode.operation() {
        Operation::Acknowledge => {
            roce.seen.has(Extended::AETH) && matches!(roce.aeth.kind(), AethKind::Ack { .. })
        }
        Operation::ReadResponse => opcode.is_first(),
        Operation::AtomicAcknowledge => true,
        _ => false,
    }
}
