//! Receivers answer, and senders hear their answers.

use roce_capture::Direction;

use crate::mrc::evs::Ev;
use crate::mrc::log::{HeardSack, Transmission};
use crate::mrc::receiver::{Arrival, Sack};
use crate::mrc::run::{Control, ControlMeaning, Event, MrcRun};
use crate::mrc::steps::send::stamp;
use crate::network::topology::number;
use crate::record::frame::{MrcBody, MrcNack, MrcProbe, MrcSack};
use crate::units::Picos;

/// Time in a NIC from a packet to the answer to it.
pub(super) const SERVICE: Picos = Picos::from_nanos(300);
/// Values of the field m of a SACK.
const SKIP_ONCE: u8 = 1;
const ALWAYS_SKIP: u8 = 2;

impl MrcRun<'_> {
    /// A data packet arrived whole.
    pub(super) fn take(&mut self, sent: &Transmission) {
        let mrc = &self.scenario.mrc;
        let own = &mut self.pairs[sent.pair as usize];
        let arrival = Arrival {
            index: sent.index,
            bytes: u64::from(sent.write.payload),
            marked: sent.marked,
            retransmission: sent.write.retransmission,
            ack_request: sent.write.ack_request,
        };
        let (sack, done) = own.receiver.arrive(&arrival, mrc.sack_bytes.0, mrc.sack_base);
        if let Some(sack) = sack {
            let skip = match (sent.marked, sent.always_skip) {
                (false, _) => 0,
                (true, false) => SKIP_ONCE,
                (true, true) => ALWAYS_SKIP,
            };
            let reflected = sent.write.stamp.unwrap_or(0);
            self.send_sack(sent.pair, sent.plane, sack, (sent.ev, reflected), skip, None);
        }
        if let Some((last, message)) = done {
            self.acknowledge_message(sent.pair, sent.plane, last, message);
        }
    }

    fn send_sack(
        &mut self,
        pair: u32,
        plane: u32,
        sack: Sack,
        (entropy, stamp): (u32, u16),
        skip: u8,
        probe: Option<u16>,
    ) {
        let [from, to] = self.pairs[pair as usize].hosts;
        let penalty = self.penalty(to);
        let own = &mut self.pairs[pair as usize];
        own.log.sacks += 1;
        own.log.penalised += u64::from(penalty > 0);
        let cumulative = psn(own.first_psn, sack.below.wrapping_sub(1));
        let offset = match (probe, sack.trigger) {
            (Some(probe), _) => probe,
            (None, Some(trigger)) => (trigger.wrapping_sub(sack.below).wrapping_add(1) & 0xffff) as u16,
            (None, None) => 0,
        };
        let body = MrcBody::Sack(MrcSack {
            skip,
            probe: probe.is_some(),
            offset,
            entropy,
            ids: self.ids(pair, false),
            cumulative,
            window: self.scenario.mrc.mpr,
            base: ((sack.base + 1 - sack.below) & 0xffff) as u16,
            bitmap: sack.bitmap,
            stamp,
            out_of_order: sack.out_of_order,
            penalty,
            received: sack.received,
        });
        let meaning = ControlMeaning::Sack {
            pair,
            made: self.now,
            sack,
            entropy,
            skip,
            penalty,
            probe: probe.is_some(),
        };
        let packet = self.control_packet(pair, false, plane, None, cumulative, body);
        self.control([to, from], plane, None, (packet, meaning), SERVICE);
    }

    /// Penalty that a host asks for now.
    fn penalty(&self, host: u32) -> u8 {
        let name = &self.topology.hosts[host as usize].name;
        let asks = self.scenario.mrc.responder.iter();
        asks.filter(|responder| &responder.host == name && responder.holds(self.now))
            .map(|responder| responder.penalty)
            .max()
            .unwrap_or(0)
    }

    /// A data packet arrived trimmed.
    pub(super) fn refuse(&mut self, number: u32, sent: &Transmission, reason: u8) {
        let own = &self.pairs[sent.pair as usize];
        let [from, to] = own.hosts;
        let psn = psn(own.first_psn, sent.index);
        let body = MrcBody::Nack(MrcNack {
            reason,
            entropy: sent.ev,
            ids: self.ids(sent.pair, false),
            stamp: sent.write.stamp.unwrap_or(0),
        });
        let packet = self.control_packet(sent.pair, false, sent.plane, None, psn, body);
        let meaning = ControlMeaning::Nack {
            pair: sent.pair,
            index: sent.index,
            reason,
            entropy: sent.ev,
            sent: number,
        };
        self.control([to, from], sent.plane, None, (packet, meaning), SERVICE);
    }

    /// Messages are complete, in order.
    fn acknowledge_message(&mut self, pair: u32, plane: u32, last: u64, message: u32) {
        let own = &self.pairs[pair as usize];
        let [from, to] = own.hosts;
        let psn = psn(own.first_psn, last);
        let packet = self.control_packet(pair, false, plane, None, psn, MrcBody::Acknowledge(message));
        self.control(
            [to, from],
            plane,
            None,
            (packet, ControlMeaning::Nothing),
            SERVICE,
        );
    }

    /// A sender probes a path.
    pub(super) fn probe(&mut self, pair: u32, ev: Ev) {
        let own = &mut self.pairs[pair as usize];
        own.probes = own.probes.wrapping_add(1);
        let (probe, hosts) = (own.probes, own.hosts);
        let stamp = stamp(self.now);
        let body = MrcBody::Probe(MrcProbe {
            number: probe,
            ids: self.ids(pair, true),
            stamp,
        });
        let packet = self.control_packet(pair, true, ev.plane, Some(ev), 0, body);
        let meaning = ControlMeaning::Probe {
            pair,
            probe,
            ev: ev.value,
            stamp,
        };
        self.control(hosts, ev.plane, Some(ev.path), (packet, meaning), Picos::ZERO);
    }

    /// Sends a control packet after a time; on another plane if the wanted one has no port at both ends.
    pub(super) fn control(
        &mut self,
        hosts: [u32; 2],
        plane: u32,
        path: Option<u32>,
        (packet, meaning): (crate::record::frame::MrcPacket, ControlMeaning),
        after: Picos,
    ) {
        let control = number(self.controls.len());
        self.controls.push(Control {
            hosts,
            plane,
            path,
            packet,
            meaning,
        });
        self.events
            .at(self.now.plus(after), Event::ControlLeaves { control });
    }

    /// A control packet arrives.
    pub(crate) fn control_arrives(&mut self, number: u32) {
        let control = self.controls[number as usize];
        let [_, to] = control.hosts;
        if self.ports[self.port(to, control.plane)].down {
            return;
        }
        let mut packet = control.packet;
        Self::behind_switches(&mut packet);
        self.pass(to, control.plane, packet, Direction::Inbound);
        match control.meaning {
            ControlMeaning::Sack {
                pair,
                made,
                sack,
                entropy,
                skip,
                penalty,
                probe,
            } => {
                self.heard.push(HeardSack { pair, made, sack });
                let own = &mut self.pairs[pair as usize];
                own.sender.penalty = penalty;
                let mut progress = own.sender.sack(&sack, entropy, self.now);
                if probe {
                    own.sender.evs.back(entropy);
                } else if skip == ALWAYS_SKIP {
                    progress.left.extend(own.sender.evs.leave(entropy));
                } else if skip == SKIP_ONCE {
                    own.sender.evs.skip(entropy);
                }
                self.progress(pair, progress);
                self.kick(pair);
            }
            ControlMeaning::Nack {
                pair,
                index,
                reason,
                entropy,
                sent,
            } => {
                let now = self.now;
                self.sent[sent as usize].nacked = true;
                self.pairs[pair as usize].sender.nack(index, reason, entropy, now);
                self.kick(pair);
            }
            ControlMeaning::Probe {
                pair,
                probe,
                ev,
                stamp,
            } => {
                let base = self.scenario.mrc.sack_base;
                let sack = self.pairs[pair as usize].receiver.sack(None, base);
                self.send_sack(pair, control.plane, sack, (ev, stamp), 0, Some(probe));
            }
            ControlMeaning::Ports { host, mask, request } => {
                self.hear_ports(to, host, (mask, request), control.plane);
            }
            ControlMeaning::Nothing => {}
        }
    }
}

/// The PSN of a packet.
pub(super) fn psn(first: u32, index: u64) -> u32 {
    ((u64::from(first).wrapping_add(index)) & 0xff_ffff) as u32
}
