//! Pairing: finds the flow of the other direction from requests and their answers, and keeps the link between the two
//! right while flows come and go. What counts as enough is said in `pairing`.

use roce_model::{EventKind, EventRow, FlowKey, Packet, Time};
use roce_wire::{AethKind, ExtendedHeaders, Nak, Operation, Psn, Service};

use crate::analysis::Analysis;
use crate::key::FlowSlot;
use crate::pairing::evidence::{Evidence, FAR_PSNS, PairingEvidence, Peer, SOLE_MATCHES};
use crate::pairing::known_peers::{Direction, KnownPeer};
use crate::pairing::outstanding::Handle;
use crate::psn::request::{LARGEST_GAP, NewConnection, STALE};
use crate::taps::vantage::Other;

/// Limit of the distance between an ACK's PSN, when its request did not request an ACK, and the latest
/// PSN of its flow. Receivers that acknowledge several messages at once send such ACKs. 1,024 PSNs of 1
/// KiB are a megabyte outstanding. By chance an ACK falls there in one of 16,384 cases.
const MAX_IN_FLIGHT: i32 = 1 << 10;
/// An answer to a request that was not captured, but may have been: how much doubt it adds. The capture lost it, perhaps.
const NEAR_DOUBT: u8 = 2;
/// An answer to a PSN where the other flow never was.
const FAR_DOUBT: u8 = 8;
/// Doubt that ends a pairing: four answers far off in a row. Each answer that fits takes one off, so more than
/// a third that are off by little end it, too. No capture that is worth reading loses so much.
const TOO_MUCH_DOUBT: u8 = 32;

impl Analysis {
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
        self.connections
            .outstanding
            .note(cold.groups.pair, bth.psn(), asker, packet.time);
    }

    /// An answer of a flow.
    #[inline]
    pub(super) fn answers(&mut self, at: FlowSlot, packet: &Packet) {
        let tells = packet.roce.seen.has(ExtendedHeaders::AETH) || fits_one_request(packet);
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
        let service = self.table.cold[at].key.service;
        if !service.is_reliable() {
            return;
        }
        let psn = packet.roce.bth.psn();
        let of_port = self.connections.port_says(&self.table, at, psn);
        if let Some(other) = of_port.filter(|other| self.may_have_asked(*other, packet)) {
            return self.link(at, other, PairingEvidence::Sport, None, packet.time);
        }
        if !fits_one_request(packet) {
            return self.look_for_named(at, packet);
        }
        if let Some(other) = self.named_by_credits(at, packet) {
            return self.link(at, other, PairingEvidence::Credits, None, packet.time);
        }
        let me = self.table.handle(at);
        self.contradict_candidates(me, psn);
        let askers = self
            .connections
            .outstanding
            .find(self.table.cold[at].peering.back(), psn, packet.time);
        let (mut fresh, mut answered) = (None, None);
        let (mut fresh_ones, mut answered_ones) = (0, 0);
        for (asker, requested) in askers.list() {
            // Where both ends have one address, a flow's own requests are among them.
            if asker.at == at
                || !self.table.is_open(*asker)
                || self.table.cold[asker.at].key.service != service
            {
                continue;
            }
            let evidence = self.table.cold[asker.at].peering.evidence();
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
        match found {
            None => self.look_for_near(me, packet),
            Some(_) if ones > 1 || askers.crowded => self.table.evidence(me).tied(),
            Some((candidate, requested)) => self.note_match(me, candidate, requested, packet),
        }
    }

    /// An answer that fits more than one request: a NAK may name that of a requester.
    fn look_for_named(&mut self, at: FlowSlot, packet: &Packet) {
        let is_nak = matches!(
            packet.roce.aeth.kind(),
            AethKind::Nak(Nak::PsnSequenceError) | AethKind::RnrNak { .. }
        );
        let is_nak = is_nak && packet.roce.bth.opcode().operation() == Operation::Acknowledge;
        let named = is_nak.then(|| {
            self.connections
                .named_by(&self.table, at, -FAR_PSNS..LARGEST_GAP + 1, packet)
        });
        if let Some(requester) = named.flatten() {
            let requested = self.table.hot[requester.at].last_request;
            self.note_match(self.table.handle(at), requester, requested, packet);
        }
    }

    /// An answer of `me` to `psn`: flows that have not sent a request with that speak against being its peer.
    fn contradict_candidates(&mut self, me: Handle, psn: Psn) {
        let cold = &self.table.cold[me.at];
        let candidates = cold.peering.evidence().into_iter().flat_map(Evidence::candidates);
        let mut contradicted = [None; 4];
        for (place, candidate) in contradicted.iter_mut().zip(candidates) {
            let is_beyond = |requests: &crate::psn::request::Requests| {
                requests.next == 0 || psn.offset_from(requests.expected()) >= 0
            };
            if self.table.is_open(candidate) && is_beyond(&self.table.hot[candidate.at].requests) {
                *place = Some(candidate);
            }
        }
        for candidate in contradicted.into_iter().flatten() {
            self.table.evidence(me).contradicted(candidate);
            self.table.evidence(candidate).contradicted(me);
        }
    }

    /// An answer of `me` that fits no outstanding request: a flow that has sent the PSN shortly before, or sends it shortly after.
    fn look_for_near(&mut self, me: Handle, packet: &Packet) {
        if packet.roce.bth.opcode().operation() != Operation::Acknowledge {
            return;
        }
        let named = |ahead| self.connections.named_by(&self.table, me.at, ahead, packet);
        let sent = named(-MAX_IN_FLIGHT..0);
        if let Some(requester) = sent.filter(|requester| self.may_have_asked(requester.at, packet)) {
            let requested = self.table.hot[requester.at].last_request;
            self.note_match(me, requester, requested, packet);
        } else if let Some(requester) = named(0..LARGEST_GAP) {
            self.note_early(requester.at, packet.roce.bth.psn());
        }
    }

    /// False if an answer is to a request that was sent before the first one captured of the flow at `at`: any flow may have sent that, also
    /// one of which nothing was captured yet. A NAK may name a request that was lost before the tap.
    fn may_have_asked(&self, at: FlowSlot, packet: &Packet) -> bool {
        let requests = &self.table.hot[at].requests;
        let tracker = &self.table.cold[at].tracker;
        !fits_one_request(packet) || tracker.reaches_back_to(requests, packet.roce.bth.psn())
    }

    /// The answer of `me` fits a request of `candidate`, sent at `requested`, and no request of another flow.
    fn note_match(&mut self, me: Handle, candidate: Handle, requested: Time, packet: &Packet) {
        let (at, psn) = (me.at, packet.roce.bth.psn());
        if self.connections.port_names_another(&self.table, at, candidate.at)
            || self.connections.port_names_another(&self.table, candidate.at, at)
        {
            // Flows with PSNs alike, whose answers were stamped before their requests, seem to answer each other.
            return;
        }
        if self.connections.ports_differ(&self.table, at, candidate.at)
            && !self
                .connections
                .stands_alone(&self.table, candidate.at, packet.time)
        {
            // So do such whose other directions take other links of equal cost.
            return;
        }
        let lost = self.taps.lost_at(self.table.hot[at].tap);
        let settled = self.connections.settled(&self.table.cold[at], lost);
        self.table
            .evidence(me)
            .matched(candidate, requested, packet.time, settled);
        let other = self.table.evidence(candidate);
        other.matched(me, requested, packet.time, settled);
        other.answer(psn, me);
        let agreed = other.agrees(me);
        if let (Some(one), Some(other)) = (agreed, self.table.evidence(me).agrees(candidate)) {
            let matches = Some(u64::from(one.min(other)));
            return self.link(at, candidate.at, PairingEvidence::Psn, matches, packet.time);
        }
        // Between hosts with one flow in each direction, one answer in its place is enough.
        let is_only = [me, candidate]
            .iter()
            .all(|flow| self.connections.is_only(&self.table, flow.at, packet.time));
        let requests = &self.table.hot[candidate.at].requests;
        if requests.is_near_zero() {
            return;
        }
        let enough = if is_only { 1 } else { SOLE_MATCHES };
        let sole = self.table.evidence(me).is_sole(candidate, enough);
        let sole = sole.filter(|_| self.table.evidence(candidate).is_sole(me, enough).is_some());
        if let Some(matches) = sole.filter(|_| {
            self.connections
                .stands_alone(&self.table, candidate.at, packet.time)
        }) {
            let matches = Some(u64::from(matches));
            self.link(at, candidate.at, PairingEvidence::Psn, matches, packet.time);
        }
    }

    /// True if an answer of a paired flow fits the requests of its peer; when it has often not, the pairing ends.
    #[inline]
    fn still_fits(&mut self, at: FlowSlot, peer: FlowSlot, packet: &Packet) -> bool {
        let requests = self.table.hot[peer].requests;
        let hot = &mut self.table.hot[at];
        let ahead = packet.roce.bth.psn().offset_from(requests.expected());
        if requests.next != 0 && (-STALE..0).contains(&ahead) {
            hot.trust.doubt = hot.trust.doubt.saturating_sub(1);
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
            let connected = NewConnection {
                reason: "packets far behind were answered",
                first: None,
            };
            cold.tracker.connect(&mut hot.requests, connected);
            return false;
        }
        let is_near = (0..LARGEST_GAP).contains(&ahead);
        let hot = &mut self.table.hot[at];
        let how = self.table.cold[at].peering.link().map(|link| link.how);
        hot.trust.doubt = hot.trust.doubt.saturating_add(match how {
            Some(PairingEvidence::Cm | PairingEvidence::Host) if is_near => 0,
            _ if is_near => NEAR_DOUBT,
            _ => FAR_DOUBT,
        });
        if hot.trust.doubt < TOO_MUCH_DOUBT {
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
            self.connections
                .known_peers
                .forget(&Direction::new(self.table.hot[at].tap, &cold.key));
        }
    }

    /// Makes two flows the two directions of one connection.
    pub(super) fn link(
        &mut self,
        one: FlowSlot,
        other: FlowSlot,
        how: PairingEvidence,
        matches: Option<u64>,
        time: Time,
    ) {
        self.unlink(one);
        self.unlink(other);
        if how == PairingEvidence::Sport {
            self.connections.port_followed(&self.table.cold[one]);
        }
        let ids = [one, other].map(|at| self.table.cold[at].id);
        for (at, peer, id) in [(one, other, ids[1]), (other, one, ids[0])] {
            let hot = &mut self.table.hot[at];
            (hot.peer, hot.trust.doubt) = (peer, 0);
            let cold = &mut self.table.cold[at];
            cold.peering.link_to(Peer { id, how, matches });
            // A new connection: the epoch before it keeps its own peer.
            if cold.peering.peer().is_none() || !cold.tracker.is_connected() {
                cold.set_peer(cold.peering.link());
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
            for at in [peer, at] {
                let cold = &mut self.table.cold[at];
                cold.peering.unlink();
                self.connections.credits.unpair(cold.kinds.writes);
            }
        }
    }

    /// Links a flow to the one that is said to be its other direction, when that is there.
    pub(super) fn link_as_expected(&mut self, at: FlowSlot, time: Time) {
        let key = &self.table.cold[at].key;
        let is_connected = matches!(key.service, Service::Rc | Service::Uc | Service::Xrc);
        if self.connections.known_peers.is_empty() || !is_connected {
            return;
        }
        let tap = self.table.hot[at].tap;
        let Some(known) = self.connections.known_peers.get(&Direction::new(tap, key)) else {
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
            *other != at && (matches!(known.how, PairingEvidence::Cm | PairingEvidence::Host) || !is_paired)
        };
        if let Some(other) = self.table.find_key(tap, &other).filter(is_free) {
            self.link(at, other, known.how, known.matches, time);
        }
    }

    /// A flow is closed early: should it come back, it has the same peer.
    pub(super) fn expect_return(&mut self, at: FlowSlot) {
        let peer = self.table.hot[at].peer;
        let (Some(link), Some(other)) = (self.table.cold[at].peering.link(), self.table.cold.get(peer))
        else {
            return;
        };
        let (tap, key) = (self.table.hot[at].tap, &self.table.cold[at].key);
        for (of, to) in [(key, &other.key), (&other.key, key)] {
            let known = KnownPeer {
                qpn: to.destination_qpn,
                how: link.how,
                matches: link.matches,
            };
            self.connections
                .known_peers
                .remember(Direction::new(tap, of), known);
        }
    }

    /// A flow began an epoch: its peer, if it still has one, is that of the new one too. The answers will tell.
    pub(super) fn keep_peer(&mut self, at: FlowSlot) {
        let serial = self.connections.next_serial();
        let cold = &mut self.table.cold[at];
        cold.serial = serial;
        cold.peering.forget_evidence();
        cold.set_peer(cold.peering.link());
    }

    /// Evidence for the tap's vantage from the other direction of a closing flow, if it is there; the
    /// other direction gets this flow's.
    pub(super) fn other(&mut self, at: FlowSlot) -> Option<Other> {
        let peer = self.table.hot[at].peer;
        if peer == FlowSlot::NONE {
            return self.table.cold[at].peering.other();
        }
        let ours = self.table.cold[at].to_other();
        self.table.cold[peer].peering.set_other(Some(ours));
        self.other_of_open(at)
    }

    /// Evidence for the tap's vantage from the other direction of a flow that stays.
    pub(super) fn other_of_open(&self, at: FlowSlot) -> Option<Other> {
        match self.table.hot[at].peer {
            FlowSlot::NONE => self.table.cold[at].peering.other(),
            peer => Some(self.table.cold[peer].to_other()),
        }
    }
}

/// True if the PSN of an answer is that of its request: an ACK, the first packet of a READ response, an
/// atomic ACK. A NAK may name a PSN that was never sent.
fn fits_one_request(packet: &Packet) -> bool {
    let roce = &packet.roce;
    let opcode = roce.bth.opcode();
    match opcode.operation() {
        Operation::Acknowledge => {
            roce.seen.has(ExtendedHeaders::AETH) && matches!(roce.aeth.kind(), AethKind::Ack { .. })
        }
        Operation::ReadResponse => opcode.is_first(),
        Operation::AtomicAcknowledge => true,
        _ => false,
    }
}
