//! Steps of a run: frames in switches.

use roce_wire::Ecn;

use super::{ecmp_hash, marking_probability, pause_time, share};
use crate::engine::events::{Event, PacketId, PortId};
use crate::engine::log::{Mark, Reason, UplinkShare};
use crate::engine::run::Simulation;
use crate::network::packet::{Kind, Packet};
use crate::network::topology::{LINK_CLASS, number};
use crate::scenario::{SwitchPause, Topology};

impl Simulation<'_> {
    /// A packet came in at a switch's port.
    pub(crate) fn forward(&mut self, switch: u32, ingress: PortId, id: PacketId) {
        let packet = *self.pool.packet(id);
        let Some(egress) = self.route(switch, &packet) else {
            self.drop_packet(id, ingress, Reason::TailDrop);
            return;
        };
        self.note_uplink(switch, egress, &packet);
        let config = &self.scenario.switch;
        let (bytes, priority) = (u64::from(packet.bytes), packet.priority);
        let class = self.pause_class(priority);
        if self.watchdog_drops(egress, priority) {
            self.topology.ports[egress.index()].count.dropped[usize::from(priority)].add(&packet);
            self.drop_packet(id, egress, Reason::Watchdog);
            return;
        }
        if let Err(reason) = self.admit(switch, ingress, egress, priority, bytes) {
            let (place, queue) = (
                if reason == Reason::Headroom {
                    ingress
                } else {
                    egress
                },
                usize::from(priority),
            );
            let count = &mut self.topology.ports[place.index()].count;
            let dropped = if reason == Reason::Headroom {
                &mut count.refused
            } else {
                &mut count.dropped
            };
            dropped[queue].add(&packet);
            self.drop_packet(id, egress, reason);
            return;
        }
        let queued = self.topology.ports[egress.index()].queued[usize::from(priority)];
        let state = &mut self.switches[switch as usize];
        state.used += bytes;
        if config.ecn
            && config.ecn_priorities.contains(&priority)
            && matches!(packet.ecn(), Ecn::Ect0 | Ecn::Ect1)
            && state.marking.happens(marking_probability(config, queued))
        {
            let place = number(self.log.marks.len());
            self.topology.ports[egress.index()].count.marked[usize::from(priority)].add(&packet);
            let changed = self.pool.change(id);
            changed.mark();
            changed.mark = place;
            self.log.marks.push(Mark {
                time: self.now,
                flow: packet.flow,
                kind: packet.kind,
                psn: packet.psn(),
                port: egress,
                recorded: 0,
            });
            if packet.kind.is_data()
                && let Some(flow) = self.log.flows.get_mut(packet.flow as usize)
            {
                flow.ce += 1;
            }
        }
        let changed = self.pool.change(id);
        changed.ingress = ingress;
        if matches!(
            self.scenario.network.topology,
            Topology::LeafSpine | Topology::Ring
        ) {
            changed.hop();
        }
        let port = &mut self.topology.ports[egress.index()];
        port.growth[usize::from(priority)].add(&packet, queued == 0, self.now);
        port.queued[usize::from(priority)] += bytes;
        port.queues[usize::from(priority)].push_back(id);
        let peak = &mut port.count.peak[usize::from(priority)];
        *peak = (queued + bytes).max(*peak);
        self.log.queued(egress, priority, queued + bytes);
        if packet.kind.is_data() {
            self.note_wait(egress, priority, packet.flow);
        }
        if let Some(class) = class {
            let from = &mut self.topology.ports[ingress.index()];
            from.held[usize::from(class)] += bytes;
            if from.held[usize::from(class)] > config.xoff.0 && !from.pausing[usize::from(class)] {
                from.pausing[usize::from(class)] = true;
                self.note_cause(switch, ingress, class);
                self.say_pause(ingress, class, config.quanta);
                self.refresh_later(ingress, class);
            }
        }
        self.transmit(egress);
    }

    /// Notes the one of several equal-cost ports that data takes.
    fn note_uplink(&mut self, switch: u32, egress: PortId, packet: &Packet) {
        let ways = self.topology.switches[switch as usize]
            .routes
            .get(packet.to as usize);
        if !packet.kind.is_data() || ways.is_none_or(|ways| ways.len() < 2) {
            return;
        }
        let data = self
            .log
            .uplinks
            .entry((egress, packet.flow))
            .or_insert(UplinkShare {
                packets: 0,
                bytes: 0,
                first: self.now,
                last: self.now,
            });
        data.packets += 1;
        data.bytes += u64::from(packet.bytes);
        data.last = self.now;
    }

    /// Port towards a host.
    fn route(&self, switch: u32, packet: &Packet) -> Option<PortId> {
        let ways = self.topology.switches[switch as usize]
            .routes
            .get(packet.to as usize)?;
        match ways.as_slice() {
            [] => None,
            [way] => Some(*way),
            several if packet.path != u32::MAX => several.get(packet.path as usize % several.len()).copied(),
            several => {
                let salt = self.switches[switch as usize].salt;
                let place = ecmp_hash(&packet.frame, salt) % several.len() as u64;
                several.get(usize::try_from(place).unwrap_or(0)).copied()
            }
        }
    }

    /// The class that a priority is paused as, if it is lossless.
    pub(crate) fn pause_class(&self, priority: u8) -> Option<u8> {
        let config = &self.scenario.switch;
        match config.pause {
            SwitchPause::Off => None,
            SwitchPause::Pfc => config.pause_priorities.contains(&priority).then_some(priority),
            SwitchPause::Link => Some(LINK_CLASS),
        }
    }

    /// True if the watchdog has found a port's priority paused for too long.
    fn watchdog_drops(&self, egress: PortId, priority: u8) -> bool {
        let Some(limit) = self.scenario.switch.watchdog else {
            return false;
        };
        let open = self.topology.ports[egress.index()].pause_log[usize::from(priority)];
        let pause = open.and_then(|place| self.log.pauses.get(place as usize));
        pause.is_some_and(|pause| self.now.since(pause.begin) >= limit)
    }

    /// True if a packet finds room.
    fn admit(
        &self,
        switch: u32,
        ingress: PortId,
        egress: PortId,
        priority: u8,
        bytes: u64,
    ) -> Result<(), Reason> {
        let config = &self.scenario.switch;
        if let Some(class) = self.pause_class(priority) {
            // A lossless priority has the port's headroom beyond the threshold.
            let held = self.topology.ports[ingress.index()].held[usize::from(class)];
            return if held + bytes > config.xoff.0 + config.headroom.0 {
                Err(Reason::Headroom)
            } else {
                Ok(())
            };
        }
        let used = self.switches[switch as usize].used;
        let free = config.buffer.0.saturating_sub(used);
        let queued = self.topology.ports[egress.index()].queued[usize::from(priority)];
        let limit = config
            .queue_limit
            .map_or_else(|| share(config.alpha, free), |size| size.0);
        if bytes > free || queued + bytes > limit {
            return Err(Reason::TailDrop);
        }
        Ok(())
    }

    /// A packet has left a switch: its room is free.
    pub(crate) fn release(&mut self, switch: u32, egress: PortId) {
        let Some(sending) = self.topology.ports[egress.index()].sending.take() else {
            return;
        };
        let priority = usize::from(sending.priority);
        let queued = &mut self.topology.ports[egress.index()].queued[priority];
        *queued = queued.saturating_sub(sending.bytes);
        let used = &mut self.switches[switch as usize].used;
        *used = used.saturating_sub(sending.bytes);
        let Some(class) = self.pause_class(sending.priority) else {
            return;
        };
        let xon = self.scenario.switch.xon.0;
        let from = &mut self.topology.ports[sending.ingress.index()];
        let held = &mut from.held[usize::from(class)];
        *held = held.saturating_sub(sending.bytes);
        if from.pausing[usize::from(class)] && *held <= xon {
            from.pausing[usize::from(class)] = false;
            self.cause_ends(sending.ingress, class);
            self.say_pause(sending.ingress, class, 0);
        }
    }

    /// A packet that finds no room.
    pub(crate) fn drop_packet(&mut self, id: PacketId, port: PortId, reason: Reason) {
        let packet = self.pool.take(id);
        if packet.kind != Kind::Pause {
            self.log.lost(&packet, self.now, port, reason);
        }
    }

    /// Repeats a pause frame after half of the time that it requests.
    pub(crate) fn refresh_later(&mut self, port: PortId, class: u8) {
        let quanta = u64::from(self.scenario.switch.quanta.max(2) / 2);
        let wait = pause_time(self.topology.ports[port.index()].rate, quanta);
        self.events
            .at(self.now.plus(wait), Event::PauseRefresh { port, class });
    }
}
