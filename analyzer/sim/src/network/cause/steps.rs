//! Steps of a run: causes of pauses.

use std::collections::BTreeMap;

use super::{Cause, Growth, HeldQueue};
use crate::engine::events::PortId;
use crate::engine::run::Simulation;
use crate::network::topology::{LINK_CLASS, Port};

impl Simulation<'_> {
    /// The egress port whose queue holds most of the bytes that came in by a port with a class, and how many these are.
    pub(crate) fn holder(&self, switch: u32, ingress: PortId, class: u8) -> Option<(PortId, u64)> {
        let ports = self.topology.switches[switch as usize].ports.iter();
        let held = ports.map(|egress| {
            let port = &self.topology.ports[egress.index()];
            let queues = self.queues_of(port, class);
            let waiting = queues.flatten().map(|id| self.pool.packet(*id));
            let waiting = waiting.filter(|packet| packet.ingress == ingress);
            let bytes: u64 = waiting.map(|packet| u64::from(packet.bytes)).sum();
            let sending = port.sending.filter(|sending| {
                sending.ingress == ingress && self.pause_class(sending.priority) == Some(class)
            });
            (*egress, bytes + sending.map_or(0, |sending| sending.bytes))
        });
        held.max_by_key(|(_, bytes)| *bytes)
            .filter(|(_, bytes)| *bytes > 0)
    }

    /// The queues of a port that are paused as a class.
    fn queues_of<'a>(
        &'a self,
        port: &'a Port,
        class: u8,
    ) -> impl Iterator<Item = &'a std::collections::VecDeque<crate::engine::events::PacketId>> {
        let queues = (0_u8..8).zip(&port.queues);
        let own = queues.filter(move |(priority, _)| self.pause_class(*priority) == Some(class));
        own.map(|(_, queue)| queue)
    }

    /// Notes why a switch's port begins to pause its neighbour.
    pub(crate) fn note_cause(&mut self, switch: u32, ingress: PortId, class: u8) {
        let Some((egress, _)) = self.holder(switch, ingress, class) else {
            return;
        };
        let port = &self.topology.ports[egress.index()];
        let mut bytes: BTreeMap<u32, u64> = BTreeMap::new();
        let mut queued = 0;
        for id in self.queues_of(port, class).flatten() {
            let packet = self.pool.packet(*id);
            queued += u64::from(packet.bytes);
            if packet.kind.is_data() {
                *bytes.entry(packet.flow).or_default() += u64::from(packet.bytes);
            }
        }
        let growth = port.growth.iter().filter(|growth| growth.arrived > 0);
        let more = growth.map(|growth| {
            let carried = port.rate.bytes_in(self.now.since(growth.since));
            growth.arrived.saturating_sub(carried)
        });
        let overloaded = more.max().unwrap_or(0) * 4 >= queued;
        let cause = Cause::Queue(HeldQueue {
            egress,
            bytes: bytes.into_iter().collect(),
            overloaded,
        });
        self.set_cause(ingress, class, cause);
    }

    /// From now on a port's pauses have this cause.
    pub(crate) fn set_cause(&mut self, port: PortId, class: u8, cause: Cause) {
        let place = u32::try_from(self.log.causes.len()).unwrap_or(u32::MAX);
        self.log.causes.push(cause);
        self.topology.ports[port.index()].cause[usize::from(class)] = Some(place);
    }

    /// A port lets its neighbour go on: the queue that was the cause grows again from now on.
    pub(crate) fn cause_ends(&mut self, ingress: PortId, class: u8) {
        let cause = self.topology.ports[ingress.index()].cause[usize::from(class)];
        let cause = cause.and_then(|place| self.log.causes.get(place as usize));
        if let Some(Cause::Queue(held)) = cause {
            let growth = &mut self.topology.ports[held.egress.index()].growth;
            *growth = [Growth {
                since: self.now,
                arrived: 0,
            }; 8];
        }
    }

    /// Notes that a packet waits at a port, if a pause keeps it there.
    pub(crate) fn note_wait(&mut self, port: PortId, priority: u8, flow: u32) {
        let own = &self.topology.ports[port.index()];
        for class in [priority, LINK_CLASS] {
            if let Some(place) = own.pause_log[usize::from(class)]
                && let Some(pause) = self.log.pauses.get_mut(place as usize)
            {
                pause.waiting.insert(flow);
            }
        }
    }

    /// Notes the flows whose packets wait at a port when a pause of it begins. Those of a host's NIC are noted when it skips them.
    pub(crate) fn note_waiting(&mut self, port: PortId) {
        let own = &self.topology.ports[port.index()];
        let waiting = own.queues.iter().flatten().map(|id| self.pool.packet(*id));
        let waiting = waiting.filter(|packet| packet.kind.is_data());
        let flows: std::collections::BTreeSet<(u8, u32)> =
            waiting.map(|packet| (packet.priority, packet.flow)).collect();
        for (priority, flow) in flows {
            self.note_wait(port, priority, flow);
        }
    }
}
