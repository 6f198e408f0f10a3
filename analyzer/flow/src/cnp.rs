//! Congestion notifications: who was told to slow down, and how often. Which flow each one means is not said by
//! the packet: it names the sender's own queue pair, which the sender's data packets never show.

use std::collections::HashMap;

use roce_model::{CnpReceiver, EventKind, EventRow, Nanos, Packet, TapId};
use roce_wire::{Address, Qpn};

use crate::copies::{CopyEvidence, Sighting};

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Key {
    tap: TapId,
    source: Address,
    destination: Address,
    qpn: Qpn,
}

#[derive(Clone, Copy, Debug)]
struct State {
    cnp: u64,
    first: Nanos,
    last: Nanos,
    in_bin: u64,
    evidence: CopyEvidence,
}

/// Queue pairs that were told to slow down. Bounded: notifications for more of them count in the totals only.
#[derive(Debug)]
pub(crate) struct CnpReceivers {
    most: usize,
    states: HashMap<Key, State, foldhash::fast::RandomState>,
    /// Those notified in the current bin.
    active: Vec<Key>,
}

impl CnpReceivers {
    pub(crate) fn new(most: usize) -> Self {
        Self {
            most,
            states: HashMap::default(),
            active: Vec::new(),
        }
    }

    /// Takes a notification; `false` when it is a copy of one seen before.
    pub(crate) fn observe(&mut self, packet: &Packet, sighting: Sighting) -> bool {
        let key = Key {
            tap: packet.tap,
            source: packet.roce.source,
            destination: packet.roce.destination,
            qpn: packet.roce.bth.destination_qpn(),
        };
        if self.states.len() >= self.most && !self.states.contains_key(&key) {
            return true;
        }
        let time = packet.time;
        let state = self.states.entry(key).or_insert(State {
            cnp: 0,
            first: time,
            last: time,
            in_bin: 0,
            evidence: CopyEvidence::default(),
        });
        if state.evidence.is_copy_among_alike(sighting, packet.roce.ip_id) {
            return false;
        }
        if state.in_bin == 0 {
            self.active.push(key);
        }
        state.in_bin += 1;
        state.cnp += 1;
        state.first = state.first.min(time);
        state.last = state.last.max(time);
        true
    }

    /// Ends a bin that began at `begin`: one event for each queue pair notified in it.
    pub(crate) fn end_bin(&mut self, begin: Nanos, events: &mut Vec<EventRow>) {
        for key in self.active.drain(..) {
            let Some(state) = self.states.get_mut(&key) else {
                continue;
            };
            let Key {
                tap,
                source,
                destination,
                qpn,
            } = key;
            events.push(EventRow {
                time: begin,
                kind: EventKind::Cnp,
                tap,
                value: Some(core::mem::take(&mut state.in_bin)),
                detail: Some(format!("{source} tells {destination} QP {qpn} to slow down").into()),
                ..EventRow::default()
            });
        }
    }

    /// All of them, the most often notified first.
    pub(crate) fn list(&self) -> Vec<CnpReceiver> {
        let mut list: Vec<CnpReceiver> = self
            .states
            .iter()
            .map(|(key, state)| CnpReceiver {
                tap: key.tap,
                source: key.source,
                destination: key.destination,
                qpn: key.qpn,
                cnp: state.cnp,
                first_time: state.first,
                last_time: state.last,
            })
            .collect();
        sort(&mut list);
        list
    }
}

/// The most often notified first; alike in every run, whatever its parts.
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
