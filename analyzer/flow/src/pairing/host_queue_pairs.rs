//! Queue pairs that a host has reported: connections of two, and owners. They are named by addresses and
//! numbers alone, because a host knows nothing of taps. Bounded: the oldest is forgotten.

use std::collections::HashMap;
use std::sync::Arc;

use roce_model::{FlowKey, HostChange, HostEvent, Process, QueuePairChange, QueuePairKind};
use roce_wire::{Address, Psn, Qpn, Service};

use crate::pairing::bounded_map::{BoundedMap, bounded_map};

/// Queue pairs, and directions of their connections, kept at once.
const MAX_QUEUE_PAIRS: usize = 1 << 16;
/// Addresses that are kept of a device; ports have 256 at most.
const MAX_ADDRESSES: usize = 1 << 10;
/// Devices with addresses.
const MAX_DEVICES: usize = 1 << 10;

/// A direction of a connection: whose packets, to which queue pair.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct QpDirection {
    source: Address,
    destination: Address,
    qpn: Qpn,
}

impl QpDirection {
    fn of(key: &FlowKey) -> Self {
        Self {
            source: key.source,
            destination: key.destination,
            qpn: key.destination_qpn,
        }
    }
}

/// Reported facts about the flow of one direction.
#[derive(Clone, Debug)]
pub(crate) struct ReportedFlow {
    /// The queue pair that the other direction goes to.
    pub(crate) peer: Qpn,
    /// Whose queue pair sends.
    sender: Option<Arc<Process>>,
    /// Whose queue pair receives.
    receiver: Option<Arc<Process>>,
}

/// A connection that a queue pair has got.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Connection {
    /// This host's address.
    pub local: Address,
    /// The other end's.
    pub remote: Address,
    /// This host's queue pair.
    pub local_qpn: Qpn,
    /// The other end's.
    pub remote_qpn: Qpn,
    /// First PSN of the requests to this host.
    pub first: Option<Psn>,
}

/// A queue pair by its device and number.
type Name = (Option<Arc<str>>, Qpn);
/// All attributes that were set, and the owner.
type KnownQueuePair = (QueuePairChange, Option<Arc<Process>>);

/// The queue pairs of the hosts that report.
#[derive(Clone, Debug)]
pub struct QueuePairs {
    known: HashMap<Name, KnownQueuePair, foldhash::fast::RandomState>,
    reported: BoundedMap<QpDirection, ReportedFlow>,
    addresses: HashMap<Option<Arc<str>>, Vec<Address>, foldhash::fast::RandomState>,
    /// Whose queue pairs for datagrams are, by address and number.
    datagrams: BoundedMap<(Address, Qpn), Arc<Process>>,
    /// Processes that captures name as those of a direction's packets.
    named: BoundedMap<QpDirection, Arc<Process>>,
}

impl Default for QueuePairs {
    fn default() -> Self {
        Self {
            known: HashMap::default(),
            reported: bounded_map(),
            addresses: HashMap::default(),
            datagrams: bounded_map(),
            named: bounded_map(),
        }
    }
}

impl QueuePairs {
    /// Takes note of an event: the connection that it makes, if it does.
    pub fn take(&mut self, event: &HostEvent) -> Option<Connection> {
        if let HostChange::Address { address } = event.what {
            self.address(event.device.clone(), address);
            return None;
        }
        let key = (event.device.clone(), event.what.qpn()?);
        match &event.what {
            HostChange::Created { qpn, kind } => {
                let process = event.process.clone().map(Arc::new);
                if let Some(process) = process.as_ref().filter(|_| *kind == QueuePairKind::Ud) {
                    for address in self.addresses.get(&event.device).into_iter().flatten() {
                        self.datagrams.put((*address, *qpn), Arc::clone(process));
                    }
                }
                if self.known.len() < MAX_QUEUE_PAIRS {
                    self.known.insert(key, (QueuePairChange::default(), process));
                }
                None
            }
            HostChange::Destroyed { .. } => {
                self.known.remove(&key);
                None
            }
            HostChange::Modified { qpn, set } => {
                if !self.known.contains_key(&key) && self.known.len() >= MAX_QUEUE_PAIRS {
                    return None;
                }
                let (known, process) = self.known.entry(key).or_default();
                if process.is_none() {
                    *process = event.process.clone().map(Arc::new);
                }
                let names_the_other = set.destination_qpn.is_some();
                merge(known, set);
                let connection = Connection {
                    local: known.source?,
                    remote: known.destination?,
                    local_qpn: *qpn,
                    remote_qpn: known.destination_qpn?,
                    first: known.rq_psn,
                };
                let process = process.clone();
                // Later changes, as to ready to send, tell nothing new.
                names_the_other.then(|| {
                    self.report(&connection, process);
                    connection
                })
            }
            _ => None,
        }
    }

    /// A device has an address.
    fn address(&mut self, device: Option<Arc<str>>, address: Address) {
        if self.addresses.len() >= MAX_DEVICES && !self.addresses.contains_key(&device) {
            return;
        }
        let known = self.addresses.entry(device).or_default();
        if known.len() < MAX_ADDRESSES && !known.contains(&address) {
            known.push(address);
        }
    }

    fn report(&mut self, connection: &Connection, process: Option<Arc<Process>>) {
        let out = QpDirection {
            source: connection.local,
            destination: connection.remote,
            qpn: connection.remote_qpn,
        };
        let back = QpDirection {
            source: connection.remote,
            destination: connection.local,
            qpn: connection.local_qpn,
        };
        // Where both ends are on one host, the other one may have reported its side of these two.
        let sides = |latest: &BoundedMap<QpDirection, ReportedFlow>, direction: &QpDirection, peer: Qpn| {
            let before = latest.peek(direction).filter(|reported| reported.peer == peer);
            before.map_or((None, None), |reported| {
                (reported.sender.clone(), reported.receiver.clone())
            })
        };
        let (_, receiver) = sides(&self.reported, &out, connection.local_qpn);
        self.reported.put(
            out,
            ReportedFlow {
                peer: connection.local_qpn,
                sender: process.clone(),
                receiver,
            },
        );
        let (sender, _) = sides(&self.reported, &back, connection.remote_qpn);
        self.reported.put(
            back,
            ReportedFlow {
                peer: connection.remote_qpn,
                sender,
                receiver: process,
            },
        );
    }

    /// A capture names the process of a flow's packets, at one end of it. The first word counts.
    pub fn named(&mut self, key: &FlowKey, process: &Process) {
        let direction = QpDirection::of(key);
        if self.named.peek(&direction).is_none() {
            self.named.put(direction, Arc::new(process.clone()));
        }
    }

    /// Reported facts about a flow.
    pub(crate) fn reported(&self, key: &FlowKey) -> Option<&ReportedFlow> {
        self.reported.peek(&QpDirection::of(key))
    }

    /// The process behind a flow, at the end that a host knows: the sender's, else the receiver's.
    pub(crate) fn process(&self, key: &FlowKey) -> Option<&Process> {
        self.processes(key).next()
    }

    /// The processes at the ends of a flow, as far as they are known: the sender's, then the receiver's, as hosts report them; then the one
    /// that a capture names.
    pub fn processes(&self, key: &FlowKey) -> impl Iterator<Item = &Process> {
        let reported = self.reported(key).into_iter();
        let connected = reported.flat_map(|reported| reported.sender.iter().chain(&reported.receiver));
        let ends = [
            (key.source, key.source_qpn),
            (key.destination, key.destination_qpn),
        ];
        let ends = ends.into_iter().filter(|_| key.service == Service::Ud);
        let datagrams = ends.filter_map(|end| self.datagrams.peek(&end));
        let named = self.named.peek(&QpDirection::of(key)).into_iter();
        connected.chain(datagrams).chain(named).map(Arc::as_ref)
    }
}

/// Takes over what a change sets of a connection.
fn merge(known: &mut QueuePairChange, set: &QueuePairChange) {
    known.destination_qpn = set.destination_qpn.or(known.destination_qpn);
    known.source = set.source.or(known.source);
    known.destination = set.destination.or(known.destination);
    known.rq_psn = set.rq_psn.or(known.rq_psn);
}

#[cfg(test)]
mod tests {
    use roce_model::{Packet, Time};

    use super::*;

    fn event(pid: u32, what: HostChange) -> HostEvent {
        HostEvent {
            time: Time(0),
            device: Some("rxe0".into()),
            process: Some(Process {
                pid,
                comm: "ib_send_bw".into(),
                cgroup: 1,
                claims: false,
            }),
            what,
        }
    }

    fn host(last: u8) -> Address {
        Address::v4([10, 0, 0, last])
    }

    /// The change to ready to receive of `mine` at `local`.
    fn connects(mine: u32, other: u32, local: u8, remote: u8) -> HostChange {
        let set = QueuePairChange {
            destination_qpn: Some(Qpn::new(other)),
            source: Some(host(local)),
            destination: Some(host(remote)),
            rq_psn: Some(Psn::new(5)),
            ..QueuePairChange::default()
        };
        HostChange::Modified {
            qpn: Qpn::new(mine),
            set: Box::new(set),
        }
    }

    fn key(source: u8, destination: u8, qpn: u32) -> FlowKey {
        FlowKey {
            source: host(source),
            destination: host(destination),
            destination_qpn: Qpn::new(qpn),
            ..FlowKey::from_packet(&Packet::default().roce)
        }
    }

    fn pid(pairs: &QueuePairs, key: &FlowKey) -> Option<u32> {
        pairs.process(key).map(|process| process.pid)
    }

    #[test]
    fn a_connected_queue_pair_names_both_directions() {
        let mut pairs = QueuePairs::default();
        let qpn = Qpn::new(0x11);
        let created = HostChange::Created {
            qpn,
            kind: roce_model::QueuePairKind::Rc,
        };
        assert_eq!(pairs.take(&event(71, created)), None);
        let connection = pairs.take(&event(71, connects(0x11, 0x22, 1, 2))).unwrap();
        assert_eq!(
            (connection.local_qpn, connection.remote_qpn),
            (qpn, Qpn::new(0x22))
        );
        assert_eq!(connection.first, Some(Psn::new(5)));
        let out = pairs.reported(&key(1, 2, 0x22)).unwrap();
        assert_eq!(out.peer, qpn);
        let back = pairs.reported(&key(2, 1, 0x11)).unwrap();
        assert_eq!(back.peer, Qpn::new(0x22));
        assert_eq!(pid(&pairs, &key(1, 2, 0x22)), Some(71));
        // The receiver of traffic from elsewhere is known.
        assert_eq!(pid(&pairs, &key(2, 1, 0x11)), Some(71));
        assert!(pairs.reported(&key(1, 2, 0x11)).is_none());
        // To ready to send: nothing new of the connection.
        let set = Box::new(QueuePairChange {
            sq_psn: Some(Psn::new(9)),
            ..QueuePairChange::default()
        });
        assert_eq!(pairs.take(&event(71, HostChange::Modified { qpn, set })), None);
    }

    #[test]
    fn of_two_ends_on_one_host_the_sender_counts() {
        let mut pairs = QueuePairs::default();
        pairs.take(&event(71, connects(0x11, 0x12, 1, 2)));
        pairs.take(&event(72, connects(0x12, 0x11, 2, 1)));
        assert_eq!(pid(&pairs, &key(1, 2, 0x12)), Some(71));
        assert_eq!(pid(&pairs, &key(2, 1, 0x11)), Some(72));
        let ends = key(1, 2, 0x12);
        let ends = pairs.processes(&ends).map(|process| process.pid);
        assert_eq!(ends.collect::<Vec<_>>(), [71, 72]);
        assert_eq!(pairs.processes(&key(1, 2, 0x11)).count(), 0);
        // The number is given again, to another connection of another process.
        pairs.take(&event(72, HostChange::Destroyed { qpn: Qpn::new(0x12) }));
        pairs.take(&event(90, connects(0x12, 0x33, 2, 1)));
        assert_eq!(pid(&pairs, &key(2, 1, 0x33)), Some(90));
        assert_eq!(pid(&pairs, &key(1, 2, 0x12)), Some(90));
    }
    #[test]
    fn datagrams_belong_to_the_queue_pair_at_the_address_of_its_device() {
        let mut pairs = QueuePairs::default();
        let on = |device: &str, pid, what| HostEvent {
            device: Some(device.into()),
            ..event(pid, what)
        };
        for (device, last) in [("rxe0", 1), ("rxe1", 2)] {
            let address = host(last);
            pairs.take(&on(device, 0, HostChange::Address { address }));
        }
        // Both devices number their queue pairs alike.
        let (qpn, kind) = (Qpn::new(0x11), QueuePairKind::Ud);
        pairs.take(&on("rxe0", 71, HostChange::Created { qpn, kind }));
        pairs.take(&on("rxe1", 72, HostChange::Created { qpn, kind }));
        let datagrams = |source, destination, from| FlowKey {
            service: Service::Ud,
            source_qpn: Qpn::new(from),
            ..key(source, destination, 0x11)
        };
        assert_eq!(pid(&pairs, &datagrams(1, 2, 0x11)), Some(71));
        assert_eq!(pid(&pairs, &datagrams(2, 1, 0x11)), Some(72));
        // From elsewhere: who receives them is known.
        assert_eq!(pid(&pairs, &datagrams(3, 1, 0x11)), Some(71));
        assert_eq!(pid(&pairs, &datagrams(2, 1, 0x12)), Some(71));
        assert_eq!(pid(&pairs, &datagrams(2, 3, 0x12)), None);
        // A connected flow with the same numbers is none of theirs.
        assert_eq!(pid(&pairs, &key(1, 2, 0x11)), None);
    }
}
