//! A switch: it chooses the port of a packet, drops it when the buffer is full, marks it when the queue
//! is long, and pauses senders.
//!
//! The buffer is shared; each egress queue counts by priority what waits for it, each ingress port what came in by it.

use roce_wire::Ecn;

use crate::engine::events::{Event, PacketId, PortId};
use crate::engine::log::{Mark, Reason, UplinkShare};
use crate::engine::rng::Stream;
use crate::engine::run::Simulation;
use crate::network::packet::{Kind, Packet};
use crate::network::topology::{LINK_CLASS, number};
use crate::record::frame::Frame;
use crate::scenario::{Switch, SwitchPause, Topology};
use crate::units::Time;

/// State of a switch.
#[derive(Debug)]
pub(crate) struct SwitchState {
    /// Bytes in its buffer.
    pub used: u64,
    marking: Stream,
    /// Salt of the hash that chooses among equal paths.
    salt: u64,
}

impl SwitchState {
    pub(crate) fn new(seed: u64, index: usize) -> Self {
        Self {
            used: 0,
            marking: Stream::new(seed, "marking", index),
            salt: Stream::new(seed, "ecmp", index).bits(),
        }
    }
}

/// The probability that a packet is marked that finds `queued` bytes in its queue: RED on the instantaneous length, as
/// the DCQCN paper has it (SIGCOMM 2015, section 3.1).
#[expect(
    clippy::cast_precision_loss,
    reason = "queues are far shorter than 2^53 bytes"
)]
pub(crate) fn marking_probability(switch: &Switch, queued: u64) -> f64 {
    let (kmin, kmax) = (switch.kmin.0, switch.kmax.0);
    if queued <= kmin {
        0.0
    } else if queued >= kmax {
        1.0
    } else {
        switch.pmax * (queued - kmin) as f64 / (kmax - kmin) as f64
    }
}

/// Hash of the fields that ECMP uses: addresses, protocol and ports (FNV-1a, then mixed as in
/// splitmix64).
fn ecmp_hash(frame: &Frame, salt: u64) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325 ^ salt;
    if let Frame::Roce(roce) | Frame::Damaged(roce) = frame {
        let port = match roce.version {
            crate::record::frame::Version::V2 { source_port } => source_port,
            crate::record::frame::Version::V1 => 0,
        };
        let ends = [roce.network.source, roce.network.destination];
        for byte in ends
            .iter()
            .flat_map(roce_wire::Address::octets)
            .chain(&port.to_be_bytes())
        {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    hash ^= hash >> 30;
    hash = hash.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash ^ hash >> 31
}

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

/// Duration of `quanta` of 512 bit times (IEEE 802.3 annex 31B.2).
pub(crate) fn pause_time(rate: crate::units::Rate, quanta: u64) -> Time {
    rate.time_of(quanta * 64)
}

/// Limit of a queue: `alpha` times the free buffer.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "buffers are far smaller than 2^53 bytes, and the cast saturates"
)]
fn share(alpha: f64, free: u64) -> u64 {
    (free as f64 * alpha) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{Rate, Size};

    #[test]
    #[expect(clippy::cast_precision_loss, reason = "a small number")]
    fn a_queue_marks_as_often_as_red_says() {
        let switch = Switch {
            kmin: Size(5_000),
            kmax: Size(200_000),
            pmax: 0.01,
            ..Switch::default()
        };
        assert!(marking_probability(&switch, 5_000).abs() < 1e-12);
        assert!((marking_probability(&switch, 200_000) - 1.0).abs() < 1e-12);
        // In the middle: Pmax / 2.
        let p = marking_probability(&switch, 102_500);
        assert!((p - 0.005).abs() < 1e-12, "{p}");
        // 200,000 packets at that length: mean 1,000, standard deviation sqrt(n p (1 - p)) = 31.5; five of them.
        let mut stream = Stream::new(3, "marking", 0);
        let marked = (0..200_000).filter(|_| stream.happens(p)).count() as f64;
        assert!((marked - 1_000.0).abs() < 5.0 * 31.6, "{marked}");
    }

    #[test]
    fn a_quantum_is_512_bit_times() {
        // 5.12 ns at 100 Gb/s, 12.8 at 40, 51.2 at 10.
        for (rate, picoseconds) in [(100, 5_120), (40, 12_800), (10, 51_200)] {
            assert_eq!(pause_time(Rate(rate * 1_000_000_000), 1), Time(picoseconds));
        }
    }

    #[test]
    fn dynamic_thresholds_are_shares_of_what_is_free() {
        assert_eq!(share(0.5, 1_000), 500);
        assert_eq!(share(2.0, 1_000), 2_000);
    }
}
