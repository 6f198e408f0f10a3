//! Credits: a receiver writes the address of a buffer into a ring at the sender, and the sender writes its data there.
//!
//! Rings are found without configuration. A WRITE Only whose length is that of a credit may be one. Its flow is a lane once the
//! next ones go to the following slots, and it is proven when data go to the addresses that the credits offer. Each tap is
//! followed by itself: there a credit comes before its data, whatever the clocks. [`join`] brings the taps together.

mod answers;
mod at_tap;
mod conclude;
mod data;
mod handle;
mod join;
mod layout;
mod message;
mod ring;
mod row;
mod side;
mod unpaired;

use std::collections::HashMap;

use roce_model::{FlowId, RemoteWrite, TapId, Time, WriteTarget};
use roce_wire::{Address, ExtendedHeaders, Opcode};

use crate::division::OfferedCredit;
use crate::key::FlowSlot;
use data::{DataFlow, DataPiece};
use message::{TapMessage, TapTimes};
use ring::{CreditRing, PossibleCredit};
use unpaired::UnpairedAnswers;

pub use at_tap::CreditsAtTap;
pub(crate) use data::WritePacket;
pub(crate) use handle::WriteHandle;
pub use join::{JoinedCredits, join};
pub(crate) use unpaired::UnpairedAnswer;

/// Flows of WRITEs that are followed, at most: some 6 MB. WRITEs of others are not looked at.
const MAX_FLOWS: usize = 1 << 16;
/// Rings, at most: some 10 KB each. Credits of others are not looked at.
const MAX_RINGS: usize = 1 << 14;
/// Rings of one flow, at most: communicators that share a queue pair. A flow with so many first credits has none.
const MAX_FLOW_RINGS: usize = 8;
/// Rings from one host to another, at most.
const MAX_PLACE_RINGS: usize = 256;
/// Messages at all taps, at most; half of them are forgotten then, the oldest first.
const MAX_MESSAGES: usize = 1 << 20;
/// Searches for a credit without success after which only the latest ring of a flow is searched.
const MAX_MISSES: u32 = 64;
const WRITE_ONLY: Opcode = Opcode(0x0a);

/// A flow and where it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlowPlace {
    pub(crate) at: FlowSlot,
    pub(crate) id: FlowId,
    pub(crate) tap: TapId,
    pub(crate) source: Address,
    pub(crate) destination: Address,
    /// Hashes of its tap and hosts, and of those of the other direction.
    pub(crate) pair: u64,
    pub(crate) back: u64,
}

#[derive(Clone, Debug)]
struct WriteFlow {
    place: FlowPlace,
    /// Rings whose credits it would carry, and those whose data.
    credits: u32,
    data_for: u32,
    /// It may carry credits.
    may_be_lane: bool,
    rings: Vec<u32>,
    /// Messages before there were credits for its sender.
    early: u64,
    data: Option<Box<DataFlow>>,
}

/// Kind of a WRITE.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum WriteKind {
    /// Its flow carries neither credits nor data of some, so that its next WRITEs matter only once there are rings.
    Plain,
    /// It may be of a flow with credits or their data.
    Unknown,
    /// It is of a flow that carries credits.
    Credit,
    /// It begins data that came for a credit.
    Data(OfferedCredit),
}

/// Rings from one host to another at a tap.
#[derive(Clone, Default, Debug)]
struct HostRings {
    rings: Vec<u32>,
    flows: u32,
    pair: u64,
}

/// Credits and their data, of the hosts of one shard.
#[derive(Clone, Default, Debug)]
pub(crate) struct Credits {
    flows: Vec<WriteFlow>,
    free_flows: Vec<u32>,
    hosts: Vec<HostRings>,
    free_hosts: Vec<u32>,
    hosts_of: HashMap<u64, u32, foldhash::fast::RandomState>,
    rings: Vec<Option<Box<CreditRing>>>,
    free_rings: Vec<u32>,
    answers: UnpairedAnswers,
    messages: usize,
}

impl Credits {
    /// A WRITE of a flow. `place` says which flow, when it is new.
    #[inline]
    pub(crate) fn write(
        &mut self,
        handle: &mut WriteHandle,
        place: impl FnOnce() -> FlowPlace,
        packet: &WritePacket<'_>,
    ) -> WriteKind {
        if *handle == WriteHandle::default() {
            *handle = self.enter(place());
        }
        let Some(flow) = handle.index().and_then(|at| self.flows.get_mut(at)) else {
            return WriteKind::Plain;
        };
        flow.early += u64::from(packet.since_last);
        let has_credits = !self.hosts[flow.data_for as usize].rings.is_empty();
        let at = handle.index().unwrap_or_default();
        if flow.may_be_lane || has_credits {
            self.observe(at, has_credits, packet);
        }
        let flow = &self.flows[at];
        match &flow.data {
            None if !flow.may_be_lane => WriteKind::Plain,
            _ if self.is_lane(at) => WriteKind::Credit,
            Some(data) => self.begun(data, packet),
            None => WriteKind::Unknown,
        }
    }

    /// Kind of the packet, if it begins a message.
    fn begun(&self, data: &DataFlow, packet: &WritePacket<'_>) -> WriteKind {
        let piece = data.begun_by(packet.psn());
        let offered = piece.and_then(|(ring, number)| self.ring(ring)?.offered(number));
        offered.map_or(WriteKind::Unknown, WriteKind::Data)
    }

    /// A WRITE of a flow that may carry credits, or data for credits.
    fn observe(&mut self, at: usize, has_credits: bool, packet: &WritePacket<'_>) {
        if has_credits && !self.is_lane(at) && self.data(at, packet) {
            return;
        }
        if self.flows[at].may_be_lane {
            self.credit(at, packet);
        }
    }

    /// True if a flow carries credits, by a second one or by their data.
    fn is_lane(&self, at: usize) -> bool {
        let mut rings = self.flows[at].rings.iter();
        rings.any(|ring| self.ring(*ring).is_some_and(CreditRing::has_grown))
    }

    fn ring(&self, ring: u32) -> Option<&CreditRing> {
        self.rings.get(ring as usize)?.as_deref()
    }

    fn ring_mut(&mut self, ring: u32) -> Option<&mut CreditRing> {
        self.rings.get_mut(ring as usize)?.as_deref_mut()
    }

    fn message_mut(&mut self, ring: u32, number: u64) -> Option<&mut TapMessage> {
        self.ring_mut(ring)?.find_mut(number)
    }

    fn enter(&mut self, place: FlowPlace) -> WriteHandle {
        if self.flows.len() - self.free_flows.len() >= MAX_FLOWS {
            return WriteHandle::IGNORED;
        }
        let [credits, data_for] = [place.pair, place.back].map(|pair| self.enter_hosts(pair));
        let flow = WriteFlow {
            place,
            credits,
            data_for,
            may_be_lane: true,
            rings: Vec::new(),
            early: 0,
            data: None,
        };
        let index = put(&mut self.flows, &mut self.free_flows, flow);
        WriteHandle(index + 1)
    }

    fn enter_hosts(&mut self, pair: u64) -> u32 {
        let (hosts, free) = (&mut self.hosts, &mut self.free_hosts);
        let new = || {
            let rings = HostRings {
                pair,
                ..HostRings::default()
            };
            put(hosts, free, rings)
        };
        let index = *self.hosts_of.entry(pair).or_insert_with(new);
        self.hosts[index as usize].flows += 1;
        index
    }

    /// A flow is gone.
    pub(crate) fn leave(&mut self, handle: WriteHandle) {
        let Some(at) = handle.index() else { return };
        self.restart(handle);
        let Some(flow) = self.flows.get_mut(at) else {
            return;
        };
        flow.place.at = FlowSlot::NONE;
        if flow.data.as_ref().is_some_and(|data| data.is_known) || self.is_lane(at) {
            // Its connections have its name.
            return;
        }
        self.reject(at);
        let flow = &mut self.flows[at];
        flow.data = None;
        for index in [flow.credits, flow.data_for] {
            let hosts = &mut self.hosts[index as usize];
            hosts.flows -= 1;
            if hosts.flows == 0 {
                self.hosts_of.remove(&hosts.pair);
                self.free_hosts.push(index);
            }
        }
        self.free_flows.push(handle.0 - 1);
    }

    /// The flow carries no credits.
    fn reject(&mut self, at: usize) {
        let flow = &mut self.flows[at];
        flow.may_be_lane = false;
        for ring in core::mem::take(&mut flow.rings) {
            self.drop_ring(at, ring);
        }
    }

    /// A ring of a flow is none.
    fn drop_ring(&mut self, at: usize, ring: u32) {
        let hosts = self.flows[at].credits as usize;
        self.hosts[hosts].rings.retain(|other| *other != ring);
        if let Some(gone) = self.rings[ring as usize].take() {
            self.messages -= gone.messages.len().min(self.messages);
            self.free_rings.push(ring);
        }
    }

    /// A WRITE of a flow that may carry credits.
    fn credit(&mut self, at: usize, packet: &WritePacket<'_>) {
        let target = packet.write.and_then(|write| Some((write, write.target?)));
        let possible = target.filter(|(_, target)| {
            let is_credit = |length: u32| length.is_multiple_of(24) || length.is_multiple_of(32);
            let length = target.length;
            packet.roce.bth.opcode() == WRITE_ONLY
                && (1..=RemoteWrite::MAX_SHORT).contains(&length)
                && is_credit(length)
        });
        let flow = &self.flows[at];
        let Some((write, target)) = possible else {
            return self.no_credit(at);
        };
        let credit = PossibleCredit {
            flow: u32::try_from(at).unwrap_or(u32::MAX),
            address: target.address,
            length: target.length,
            payload: write.start(),
            psn: packet.roce.bth.psn(),
            time: packet.time,
            is_again: packet.is_again,
        };
        let hosts = flow.credits as usize;
        let own = flow.rings.len();
        for place in 0..own {
            let ring = self.flows[at].rings[place];
            if self.take(ring, &credit) {
                return;
            }
        }
        // Another queue pair may go on with a ring between these hosts.
        for place in 0..self.hosts[hosts].rings.len() {
            let ring = self.hosts[hosts].rings[place];
            if !self.flows[at].rings.contains(&ring) && self.take(ring, &credit) {
                self.flows[at].rings.push(ring);
                return;
            }
        }
        let in_use = self.rings.len() - self.free_rings.len();
        let is_room =
            own < MAX_FLOW_RINGS && in_use < MAX_RINGS && self.hosts[hosts].rings.len() < MAX_PLACE_RINGS;
        match is_room.then(|| CreditRing::begin(&credit)).flatten() {
            Some(ring) => {
                let index = put(&mut self.rings, &mut self.free_rings, Some(Box::new(ring)));
                self.hosts[hosts].rings.push(index);
                self.flows[at].rings.push(index);
                self.count_message();
            }
            None => self.no_credit(at),
        }
    }

    fn take(&mut self, ring: u32, credit: &PossibleCredit<'_>) -> bool {
        let Some(ring) = self.ring_mut(ring) else {
            return false;
        };
        let before = ring.messages.len();
        let is_taken = ring.take(credit);
        if ring.messages.len() > before {
            self.count_message();
        }
        is_taken
    }

    /// A WRITE that is no credit: its flow carries none, unless most others were.
    fn no_credit(&mut self, at: usize) {
        if !self.is_lane(at) {
            return self.reject(at);
        }
        for ring in &self.flows[at].rings {
            if let Some(Some(ring)) = self.rings.get_mut(*ring as usize) {
                ring.misfit();
            }
        }
    }

    fn count_message(&mut self) {
        self.messages += 1;
        if self.messages > MAX_MESSAGES {
            self.forget_half();
        }
    }

    /// Forgets the older half of all messages. What stays is the same for every number of shards, as long as the joined
    /// result keeps no more.
    fn forget_half(&mut self) {
        let messages = self.rings.iter().flatten().flat_map(|ring| &ring.messages);
        let mut times: Vec<Time> = messages.map(|message| message.credit.first).collect();
        self.messages = times.len();
        let Some(surplus) = times.len().checked_sub(join::MAX_JOINED) else {
            return;
        };
        let (_, limit, _) = times.select_nth_unstable(surplus);
        let limit = *limit;
        for ring in self.rings.iter_mut().flatten() {
            while ring
                .messages
                .front()
                .is_some_and(|oldest| oldest.credit.first < limit)
            {
                ring.forget_oldest();
                self.messages -= 1;
            }
        }
    }

    /// A WRITE of data, perhaps; `false` if it belongs to no credit.
    fn data(&mut self, at: usize, packet: &WritePacket<'_>) -> bool {
        let flow = &mut self.flows[at];
        let new = || {
            // The packet at hand is counted by what becomes of it.
            let early = flow.early.saturating_sub(1);
            Box::new(DataFlow::new(early))
        };
        let mut data = flow.data.take().unwrap_or_else(new);
        let is_data = self.data_of(at, &mut data, packet);
        self.flows[at].data = Some(data);
        is_data
    }

    fn data_of(&mut self, at: usize, data: &mut DataFlow, packet: &WritePacket<'_>) -> bool {
        if packet.is_again && (self.again(data, packet) || data.was_answered(packet.psn())) {
            return true;
        }
        match packet.write.and_then(|write| write.target) {
            Some(target) => self.begin(at, data, packet, target),
            None => self.end(data, packet),
        }
    }

    /// A packet of a message that was seen before.
    fn again(&mut self, data: &mut DataFlow, packet: &WritePacket<'_>) -> bool {
        let psn = packet.psn();
        let Some(piece) = data.piece_of(psn).copied() else {
            return false;
        };
        if let Some(message) = self.message_mut(piece.ring, piece.number) {
            message.retransmissions = message.retransmissions.saturating_add(1);
            if psn == piece.last && piece.ended.0 != 0 {
                message.last.latest = message.last.latest.max(packet.time);
            }
        }
        if psn == piece.last && piece.ended.0 == 0 {
            self.end(data, packet);
        }
        true
    }

    /// The first packet of a message.
    fn begin(
        &mut self,
        at: usize,
        data: &mut DataFlow,
        packet: &WritePacket<'_>,
        target: WriteTarget,
    ) -> bool {
        let found = self.credit_for(at, data, packet, target);
        if found.is_none() && self.goes_on(data, packet, target) {
            return true;
        }
        data.open_end = None;
        let Some((ring, number)) = found else {
            data.misses = data.misses.saturating_add(1);
            data.early += u64::from(!data.is_known);
            return false;
        };
        let early = core::mem::take(&mut data.early);
        let Some(own) = self.ring_mut(ring) else {
            return false;
        };
        let carrier = u32::try_from(at).unwrap_or(u32::MAX - 1);
        if !own.find_mut(number).is_some_and(|message| message.carry(carrier)) {
            return true;
        }
        own.early += early;
        own.begins(number, carrier);
        if let Some(message) = own.find_mut(number) {
            if !message.first.is_seen() {
                message.first = TapTimes::at(packet.time, packet.is_again);
            }
            message.bytes += u64::from(target.length);
        }
        (data.ring, data.is_known) = (Some(ring), true);
        data.begin(DataPiece {
            ring,
            number,
            first: packet.psn(),
            last: packet.last_psn(target.length),
            begun: packet.time,
            ended: Time(0),
            answered_by: None,
        });
        if packet.opcode().is_last() {
            self.end(data, packet);
        }
        true
    }

    /// The credit that data came for: of the flow's latest ring, or of another one between its hosts.
    fn credit_for(
        &self,
        at: usize,
        data: &DataFlow,
        packet: &WritePacket<'_>,
        target: WriteTarget,
    ) -> Option<(u32, u64)> {
        let before = data.follows(packet.psn());
        let search = |ring: u32| {
            let before = before.filter(|(of, _)| *of == ring).map(|(_, number)| number);
            let number = self.ring(ring)?.credit_for(target, (before, packet.is_again))?;
            Some((ring, number))
        };
        let latest = data.ring.and_then(search);
        if latest.is_some() || data.misses > MAX_MISSES {
            return latest;
        }
        let others = &self.hosts[self.flows[at].data_for as usize].rings;
        others.iter().copied().find_map(search)
    }

    /// A WRITE right behind a message that ended without an immediate: the data of another element, or the immediate alone.
    fn goes_on(&mut self, data: &mut DataFlow, packet: &WritePacket<'_>, target: WriteTarget) -> bool {
        let Some(mut piece) = data.open_end else {
            return false;
        };
        let is_next = packet.psn().offset_from(piece.last) == 1;
        let Some(message) = self.message_mut(piece.ring, piece.number) else {
            return false;
        };
        let immediate = packet.write.and_then(|write| write.immediate);
        let is_part = immediate.is_some() || message.elements > 1;
        if !is_next || !is_part {
            return false;
        }
        let is_trailer = immediate.is_some();
        message.bytes += u64::from(if is_trailer { 0 } else { target.length });
        message.ended = message.ended.saturating_sub(1);
        piece.last = packet.last_psn(target.length);
        piece.ended = Time(0);
        let waiting = data.waiting.back_mut();
        if let Some(waiting) = waiting.filter(|waiting| waiting.number == piece.number) {
            *waiting = piece;
        } else {
            message.acknowledged = message.acknowledged.saturating_sub(1);
            data.begin(piece);
        }
        if packet.opcode().is_last() {
            self.end(data, packet);
        }
        true
    }

    /// The last packet of a message, or one within it.
    fn end(&mut self, data: &mut DataFlow, packet: &WritePacket<'_>) -> bool {
        let (psn, immediate) = (packet.psn(), packet.write.and_then(|write| write.immediate));
        let Some(piece) = data.piece_of(psn) else {
            return false;
        };
        if psn != piece.last || piece.ended.0 != 0 {
            return true;
        }
        piece.ended = packet.time;
        let piece = *piece;
        let is_closed = packet.opcode().extended().has(ExtendedHeaders::IMM_DT);
        data.open_end = (!is_closed).then_some(piece);
        let Some(ring) = self.ring_mut(piece.ring) else {
            return true;
        };
        let Some(message) = ring.find_mut(piece.number) else {
            return true;
        };
        message.ended = message.ended.saturating_add(1);
        let is_again = packet.is_again || message.ended > 1 && message.last.is_again;
        message.last = TapTimes::at(packet.time, is_again);
        let (bytes, elements) = (message.bytes, message.elements);
        if is_closed {
            ring.close(piece.number);
        }
        if let Some(immediate) = immediate.filter(|_| elements == 1) {
            ring.immediate(immediate, bytes);
        }
        true
    }
}

/// Puts a value into a free place, or behind the others.
fn put<T>(values: &mut Vec<T>, free: &mut Vec<u32>, value: T) -> u32 {
    if let Some(index) = free.pop() {
        values[index as usize] = value;
        return index;
    }
    values.push(value);
    u32::try_from(values.len() - 1).unwrap_or(u32::MAX)
}
