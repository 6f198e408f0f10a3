//! Steps of a run: pauses.

use std::collections::BTreeSet;

use roce_wire::MacAddress;

use super::storm_class;
use crate::engine::events::{EndpointId, Event, PortId};
use crate::engine::log::PortPause;
use crate::engine::run::Simulation;
use crate::network::cause::Cause;
use crate::network::packet::{Kind, Packet};
use crate::network::switch::pause_time;
use crate::network::topology::{LINK_CLASS, Node, number};
use crate::record::frame::{Frame, Pause, Pfc};
use crate::units::Picos;

impl Simulation<'_> {
    /// Sends a pause frame from a port; 0 quanta end the pause.
    pub(crate) fn say_pause(&mut self, port: PortId, class: u8, quanta: u16) {
        let source: MacAddress = self.topology.mac_of(port);
        let frame = if class == LINK_CLASS {
            Frame::Pause(Pause { source, quanta })
        } else {
            Frame::Pfc(Pfc::new(source, class, quanta))
        };
        let packet = Packet {
            span: 0,
            first: false,
            last: false,
            ingress: port,
            ..Packet::new(&frame, Kind::Pause, EndpointId(u32::MAX), u32::MAX)
        };
        let id = self.pool.add(&packet);
        self.topology.ports[port.index()].control.push_back(id);
        self.transmit(port);
    }

    /// A pause that a port keeps up is said again.
    pub(crate) fn refresh_pause(&mut self, port: PortId, class: u8) {
        let state = &self.topology.ports[port.index()];
        let keeps = match state.node {
            Node::Switch(_) => state.pausing[usize::from(class)],
            Node::Host(host) => self.hosts[host as usize].drain.is_some_and(|drain| drain.pausing),
        };
        if keeps {
            self.say_pause(port, class, self.scenario.switch.quanta);
            self.refresh_later(port, class);
        }
    }

    /// A pause frame came in: the port stops or goes on.
    pub(crate) fn obey_pause(&mut self, port: PortId, frame: &Frame) {
        match frame {
            Frame::Pause(pause) => self.set_pause(port, LINK_CLASS, pause.quanta),
            Frame::Pfc(pfc) => {
                for class in 0..8_u8 {
                    if pfc.class_enable >> class & 1 != 0 {
                        self.set_pause(port, class, pfc.quanta[usize::from(class)]);
                    }
                }
            }
            Frame::Roce(_) | Frame::Damaged(_) | Frame::Mrc(_) => {}
        }
    }

    fn set_pause(&mut self, id: PortId, class: u8, quanta: u16) {
        let now = self.now;
        let peer = self.topology.ports[id.index()].peer;
        let cause = self.topology.ports[peer.index()].cause[usize::from(class)];
        let port = &mut self.topology.ports[id.index()];
        let until = now.plus(pause_time(port.rate, u64::from(quanta)));
        port.paused_until[usize::from(class)] = until;
        if quanta == 0 {
            self.end_pause(id, class);
            self.transmit(id);
            return;
        }
        if port.pause_log[usize::from(class)].is_none() {
            port.pause_log[usize::from(class)] = Some(number(self.log.pauses.len()));
            port.count.transitions[usize::from(class)] += 1;
            self.log.pauses.push(PortPause {
                port: id,
                class,
                begin: now,
                end: None,
                cause,
                waiting: BTreeSet::new(),
            });
            self.note_waiting(id);
        }
        self.events.at(until, Event::PauseOver { port: id, class });
    }

    fn end_pause(&mut self, id: PortId, class: u8) {
        let open = self.topology.ports[id.index()].pause_log[usize::from(class)].take();
        if let Some(pause) = open.and_then(|place| self.log.pauses.get_mut(place as usize)) {
            pause.end = Some(self.now);
            let count = &mut self.topology.ports[id.index()].count;
            let paused = &mut count.paused[usize::from(class)];
            *paused = paused.plus(self.now.since(pause.begin));
        }
    }

    /// A pause may have run out.
    pub(crate) fn pause_over(&mut self, id: PortId, class: u8) {
        if self.topology.ports[id.index()].paused_until[usize::from(class)] <= self.now {
            self.end_pause(id, class);
            self.transmit(id);
        }
    }

    /// A host begins one of its own pauses.
    pub(crate) fn storm_begins(&mut self, storm: u32) {
        let Some(table) = self.scenario.pause.get(storm as usize) else {
            return;
        };
        let Ok(host) = self.topology.host(&table.host) else {
            return;
        };
        let port = self.topology.hosts[host as usize].port;
        let class = storm_class(table.kind, table.priority);
        // A pause of `on` that is longer than one frame can say takes several frames.
        let rate = self.topology.ports[port.index()].rate;
        let longest = pause_time(rate, 65_535);
        let end = self.storms[storm as usize].unwrap_or_else(|| self.now.plus(table.on));
        self.storms[storm as usize] = Some(end);
        self.set_cause(port, class, Cause::Storm);
        let left = end.since(self.now);
        let quanta = left.0.div_ceil(pause_time(rate, 1).0.max(1));
        self.say_pause(port, class, u16::try_from(quanta).unwrap_or(u16::MAX));
        if left > longest {
            let half = Picos(longest.0 / 2);
            self.events.at(self.now.plus(half), Event::StormBegin { storm });
        } else {
            self.events.at(end, Event::StormEnd { storm });
        }
    }

    /// It ends the pause; the next begins after a while.
    pub(crate) fn storm_ends(&mut self, storm: u32) {
        let Some(table) = self.scenario.pause.get(storm as usize) else {
            return;
        };
        self.storms[storm as usize] = None;
        if let Ok(host) = self.topology.host(&table.host) {
            let port = self.topology.hosts[host as usize].port;
            self.say_pause(port, storm_class(table.kind, table.priority), 0);
        }
        if let Some(off) = table.off {
            let next = self.now.plus(off);
            if table.end.is_none_or(|end| next < end) {
                self.events.at(next, Event::StormBegin { storm });
            }
        }
    }

    /// A packet came in at a host whose buffer is emptied slowly.
    pub(crate) fn fill_buffer(&mut self, host: u32, priority: u8, bytes: u64) {
        let now = self.now;
        let Some(drain) = &mut self.hosts[host as usize].drain else {
            return;
        };
        drain.level = drain
            .level
            .saturating_sub(drain.rate.bytes_in(now.since(drain.since)))
            + bytes;
        drain.since = now;
        if drain.level > drain.xoff && !drain.pausing {
            drain.pausing = true;
            let wait = drain.rate.time_of(drain.level - drain.xon.min(drain.level));
            self.hosts[host as usize].drain_priority = priority;
            self.events.at(now.plus(wait), Event::Drained { host });
            let port = self.topology.hosts[host as usize].port;
            let class = self.pause_class(priority).unwrap_or(priority);
            self.set_cause(port, class, Cause::Slow);
            self.say_pause(port, class, self.scenario.switch.quanta);
            self.refresh_later(port, class);
        }
    }

    /// A slow host's buffer may be down to its threshold.
    pub(crate) fn drained(&mut self, host: u32) {
        let now = self.now;
        let priority = self.hosts[host as usize].drain_priority;
        let Some(drain) = &mut self.hosts[host as usize].drain else {
            return;
        };
        drain.level = drain
            .level
            .saturating_sub(drain.rate.bytes_in(now.since(drain.since)));
        drain.since = now;
        if drain.level > drain.xon {
            let wait = drain.rate.time_of(drain.level - drain.xon).max(Picos(1));
            self.events.at(now.plus(wait), Event::Drained { host });
            return;
        }
        drain.pausing = false;
        let port = self.topology.hosts[host as usize].port;
        let class = self.pause_class(priority).unwrap_or(priority);
        self.say_pause(port, class, 0);
    }
}
