//! Congestion notifications by receiver: who was notified of congestion, how often, in which bins, and which of these are not
//! charged to a flow yet. Which flow each one slows is found in `analysis`.

use std::collections::HashMap;

use roce_model::{CnpReceiver, FlowId, Packet, TapId, Time};
use roce_wire::{Address, Qpn, VlanTag};

use crate::key::FlowSlot;
use crate::taps::duplicates::{CopyEvidence, PacketSighting};

/// A queue pair that is notified of congestion, and who tells it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Receiver {
    pub(crate) tap: TapId,
    /// Source of the notifications: the receiver of the marked data.
    pub(crate) source: Address,
    pub(crate) destination: Address,
    pub(crate) qpn: Qpn,
}

/// Notifications.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Cnps {
    pub(crate) cnp: u32,
    /// Number of the notifications that came soon after a NAK.
    pub(crate) after_nak: u32,
}

impl Cnps {
    fn add(&mut self, other: Self) {
        self.cnp = self.cnp.saturating_add(other.cnp);
        self.after_nak = self.after_nak.saturating_add(other.after_nak);
    }
}

/// Attribution of one queue pair's notifications in one bin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CnpAttribution {
    /// Not known yet; with the flow that alone was marked before, by place and name.
    Waiting(Option<(FlowSlot, FlowId)>),
    /// Charged to this flow.
    Charged(FlowId),
    /// They stay with no flow.
    Unattributed,
}

/// The notifications for one queue pair in one bin that have one class.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Part {
    pub(crate) bin: u64,
    pub(crate) cnps: Cnps,
    pub(crate) class: CnpAttribution,
    reported: bool,
}

impl Part {
    /// True if its event was written.
    pub(crate) fn was_emitted(&self) -> bool {
        self.reported
    }
}

#[derive(Clone, Debug)]
struct State {
    receiver: Receiver,
    cnp: u64,
    first: Time,
    last: Time,
    dscp: Option<u8>,
    pcp: Option<u8>,
    evidence: CopyEvidence,
    /// In the order of the bins, but for stamps out of order. Attributed and emitted parts are removed.
    parts: Vec<Part>,
}

/// Parts that wait at once, at most; what is beyond stays with no flow.
const MAX_WAITING: usize = 1 << 16;

/// Queue pairs that were notified of congestion. Bounded: notifications for more of them count in the totals only.
#[derive(Debug)]
pub(crate) struct CnpReceivers {
    most: usize,
    places: HashMap<Receiver, usize, foldhash::fast::RandomState>,
    states: Vec<State>,
    waiting: usize,
    /// Flows that alone were marked before notifications, with the queue pair that these named; `None`: they named several.
    meant: HashMap<(TapId, FlowId), Option<Qpn>, foldhash::fast::RandomState>,
}

/// Result of a notification.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ObservedCnp {
    /// A copy of one seen before.
    Copy,
    /// One for the receiver at this place.
    Of(usize),
    /// One for a receiver too many.
    Unlisted,
}

impl CnpReceivers {
    pub(crate) fn new(most: usize) -> Self {
        Self {
            most,
            places: HashMap::default(),
            states: Vec::new(),
            waiting: 0,
            meant: HashMap::default(),
        }
    }

    /// Notes that a notification for the queue pair `qpn` may mean a flow. A flow has one queue pair at its sender: if others were
    /// named, their data takes another way than this tap, and so may that of this one.
    pub(crate) fn mean(&mut self, tap: TapId, flow: FlowId, qpn: Qpn) {
        if self.meant.len() >= MAX_WAITING && !self.meant.contains_key(&(tap, flow)) {
            return;
        }
        let known = self.meant.entry((tap, flow)).or_insert(Some(qpn));
        *known = known.filter(|known| *known == qpn);
    }

    /// True if all notifications that may mean a flow named one queue pair.
    pub(crate) fn is_meant_alone(&self, tap: TapId, flow: FlowId) -> bool {
        matches!(self.meant.get(&(tap, flow)), Some(Some(_)))
    }

    /// Takes a notification.
    pub(crate) fn observe(&mut self, packet: &Packet, sighting: PacketSighting) -> ObservedCnp {
        let receiver = Receiver {
            tap: packet.tap,
            source: packet.roce.source,
            destination: packet.roce.destination,
            qpn: packet.roce.bth.destination_qpn(),
        };
        let time = packet.time;
        let place = match self.places.get(&receiver) {
            Some(place) => *place,
            None if self.states.len() >= self.most => return ObservedCnp::Unlisted,
            None => {
                self.states.push(State {
                    receiver,
                    cnp: 0,
                    first: time,
                    last: time,
                    dscp: packet.roce.carrier.has_ip().then(|| packet.roce.dscp()),
                    pcp: packet.roce.vlan.map(VlanTag::priority),
                    evidence: CopyEvidence::default(),
                    parts: Vec::new(),
                });
                self.places.insert(receiver, self.states.len() - 1);
                self.states.len() - 1
            }
        };
        let state = &mut self.states[place];
        if state.evidence.is_copy_among_alike(sighting, packet.roce.ip_id) {
            return ObservedCnp::Copy;
        }
        state.cnp += 1;
        state.first = state.first.min(time);
        state.last = state.last.max(time);
        ObservedCnp::Of(place)
    }

    pub(crate) fn receiver(&self, place: usize) -> Receiver {
        self.states[place].receiver
    }

    /// The place of a receiver for which notifications wait.
    pub(crate) fn waiting_of(&self, receiver: &Receiver) -> Option<usize> {
        (self.waiting > 0)
            .then(|| self.places.get(receiver).copied())
            .flatten()
    }

    /// Adds notifications to a receiver's part of a bin; says whether the bin is new to the receiver, and
    /// what became of them: when too many wait, they stay with no flow.
    pub(crate) fn add(
        &mut self,
        place: usize,
        bin: u64,
        cnps: Cnps,
        class: CnpAttribution,
    ) -> (bool, CnpAttribution) {
        let parts = &mut self.states[place].parts;
        let mut same_bin = parts
            .iter_mut()
            .rev()
            .filter(|part| part.bin == bin && !part.reported);
        let is_new = same_bin.next().is_none();
        let known = parts
            .iter_mut()
            .rev()
            .find(|part| part.bin == bin && !part.reported && part.class == class);
        if let Some(part) = known {
            part.cnps.add(cnps);
            return (is_new, class);
        }
        let mut class = class;
        if matches!(class, CnpAttribution::Waiting(_)) {
            if self.waiting >= MAX_WAITING {
                class = CnpAttribution::Unattributed;
            } else {
                self.waiting += 1;
            }
        }
        parts.push(Part {
            bin,
            cnps,
            class,
            reported: false,
        });
        (is_new, class)
    }

    /// The parts of a receiver.
    pub(crate) fn parts(&self, place: usize) -> &[Part] {
        &self.states[place].parts
    }

    /// Says what became of a part that waited.
    pub(crate) fn decide(&mut self, place: usize, part: usize, class: CnpAttribution) {
        let part = &mut self.states[place].parts[part];
        if matches!(part.class, CnpAttribution::Waiting(_)) && !matches!(class, CnpAttribution::Waiting(_)) {
            self.waiting -= 1;
        }
        part.class = class;
    }

    /// Its event was written: what no longer waits of that bin is forgotten.
    pub(crate) fn reported(&mut self, place: usize, bin: u64) {
        for part in &mut self.states[place].parts {
            part.reported |= part.bin == bin;
        }
        self.forget(place);
    }

    /// Forgets the attributed and emitted parts of a receiver.
    pub(crate) fn forget(&mut self, place: usize) {
        self.states[place]
            .parts
            .retain(|part| !part.reported || matches!(part.class, CnpAttribution::Waiting(_)));
    }

    /// The receivers for which notifications wait.
    pub(crate) fn all_waiting(&self) -> Vec<usize> {
        if self.waiting == 0 {
            return Vec::new();
        }
        let waits = |state: &State| {
            let mut parts = state.parts.iter();
            parts.any(|part| matches!(part.class, CnpAttribution::Waiting(_)))
        };
        let all = self.states.iter().enumerate();
        all.filter(|(_, state)| waits(state))
            .map(|(place, _)| place)
            .collect()
    }

    /// All of them, the most often notified first.
    pub(crate) fn list(&self) -> Vec<CnpReceiver> {
        let mut list: Vec<CnpReceiver> = self
            .states
            .iter()
            .map(|state| CnpReceiver {
                tap: state.receiver.tap,
                source: state.receiver.source,
                destination: state.receiver.destination,
                qpn: state.receiver.qpn,
                cnp: state.cnp,
                dscp: state.dscp,
                pcp: state.pcp,
                first_time: state.first,
                last_time: state.last,
            })
            .filter(|receiver| receiver.cnp > 0)
            .collect();
        sort(&mut list);
        list
    }
}

/// The most often notified first; alike in every run, whatever its shards.
pub(crate) fn sort(list: &mut [CnpReceiver]) {
    list.sort_by_key(|receiver| {
        (
            core::cmp::Reverse(receiver.cnp),
            receiver.tap,
            receiver.destination,
            receiver.qpn,
            receiver.source,
        )
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: Cnps = Cnps { cnp: 2, after_nak: 1 };

    fn receivers() -> (CnpReceivers, usize) {
        let mut receivers = CnpReceivers::new(1);
        let ObservedCnp::Of(place) = receivers.observe(&Packet::default(), PacketSighting::New) else {
            panic!("it is the first");
        };
        (receivers, place)
    }

    #[test]
    fn receivers_are_bounded() {
        let (mut receivers, _) = receivers();
        let mut other = Packet::default();
        other.roce.bth.0[7] = 9;
        assert_eq!(
            receivers.observe(&other, PacketSighting::New),
            ObservedCnp::Unlisted
        );
        assert_eq!(receivers.list().len(), 1);
    }

    #[test]
    fn what_waits_outlives_its_event() {
        let (mut receivers, place) = receivers();
        assert_eq!(
            receivers.add(place, 5, TWO, CnpAttribution::Waiting(None)),
            (true, CnpAttribution::Waiting(None))
        );
        assert!(!receivers.add(place, 5, TWO, CnpAttribution::Waiting(None)).0);
        assert_eq!(receivers.parts(place)[0].cnps, Cnps { cnp: 4, after_nak: 2 });
        assert!(receivers.add(place, 6, TWO, CnpAttribution::Charged(FlowId(1))).0);
        receivers.reported(place, 5);
        receivers.reported(place, 6);
        let bins: Vec<u64> = receivers.parts(place).iter().map(|part| part.bin).collect();
        assert_eq!(bins, [5]);
        assert_eq!(receivers.all_waiting(), [place]);
        receivers.decide(place, 0, CnpAttribution::Unattributed);
        receivers.forget(place);
        assert!(receivers.parts(place).is_empty());
        assert!(receivers.all_waiting().is_empty());
    }

    #[test]
    fn no_more_wait_than_allowed() {
        let (mut receivers, place) = receivers();
        receivers.waiting = MAX_WAITING;
        assert_eq!(
            receivers.add(place, 5, TWO, CnpAttribution::Waiting(None)),
            (true, CnpAttribution::Unattributed)
        );
    }
}
