//! Packets as they are on the wire: addresses, EVs, DSCPs and segments.

use roce_wire::{Address, Ecn, MacAddress, Qpn};

use crate::mrc::evs::Ev;
use crate::mrc::log::Transmission;
use crate::mrc::run::MrcRun;
use crate::mrc::steps::answer::psn;
use crate::mrc::steps::carry::TRIMMED;
use crate::record::frame::{Ethernet, MrcBody, MrcPacket, Network};
use crate::scenario::{EvOrder, PdcOrder};

/// Six code points, which are a matter of configuration; these are one emulator's.
const TRIMMABLE: u8 = 4;
const RETRANSMISSION: u8 = 8;
const IS_TRIMMED: u8 = 12;
const IS_TRIMMED_LAST_HOP: u8 = 16;
const CONTROL: u8 = 46;
/// Switches between two hosts.
const HOPS: u8 = 3;
/// Queue pair of endpoint operations.
const ENDPOINT: Qpn = Qpn::new(2);

impl MrcRun<'_> {
    /// A data packet at its sender's NIC, or at its receiver's.
    pub(super) fn data_packet(&self, sent: &Transmission, arrived: bool) -> MrcPacket {
        let own = &self.pairs[sent.pair as usize];
        let dscp = match (sent.trim.filter(|_| arrived), sent.write.retransmission) {
            (Some(TRIMMED), _) => IS_TRIMMED,
            (Some(_), _) => IS_TRIMMED_LAST_HOP,
            (None, true) => RETRANSMISSION,
            (None, false) => TRIMMABLE,
        };
        let ev = Ev {
            value: sent.ev,
            plane: sent.plane,
            path: sent.path,
        };
        let mut packet = self.packet(own.hosts, sent.plane, ev.value, Some(ev.path));
        packet.destination_qpn = own.qpns[1];
        packet.psn = psn(own.first_psn, sent.index);
        packet.body = MrcBody::Write(sent.write);
        packet.network.dscp = dscp;
        if arrived {
            Self::behind_switches(&mut packet);
            if sent.marked {
                packet.network.ecn = Ecn::Ce;
            }
        }
        packet
    }

    /// A control packet of a pair: of its requestor (`forward`) or its responder.
    pub(super) fn control_packet(
        &self,
        pair: u32,
        forward: bool,
        plane: u32,
        ev: Option<Ev>,
        psn: u32,
        body: MrcBody,
    ) -> MrcPacket {
        let own = &self.pairs[pair as usize];
        let [from, to] = own.hosts;
        let (hosts, qpn) = if forward {
            ([from, to], own.qpns[1])
        } else {
            ([to, from], own.qpns[0])
        };
        let value = ev.map_or_else(
            || own.control_evs.get(plane as usize).copied().unwrap_or(0x2000),
            |ev| ev.value,
        );
        let mut packet = self.packet(hosts, plane, value, ev.map(|ev| ev.path));
        packet.destination_qpn = qpn;
        packet.psn = psn;
        packet.body = body;
        packet
    }

    /// A packet of an endpoint operation.
    pub(super) fn endpoint_packet(
        &self,
        hosts: [u32; 2],
        plane: u32,
        request: u32,
        body: MrcBody,
    ) -> MrcPacket {
        let mut packet = self.packet(hosts, plane, 0x3c00_3c00, None);
        packet.destination_qpn = ENDPOINT;
        packet.psn = request;
        packet.body = body;
        packet
    }

    /// Headers of the network, from one host to another by an EV.
    fn packet(&self, hosts: [u32; 2], plane: u32, ev: u32, path: Option<u32>) -> MrcPacket {
        let mrc = &self.scenario.mrc;
        let [from, to] = hosts.map(|host| &self.topology.hosts[host as usize]);
        let mut network = Network::new(from.address, to.address);
        let (low, high) = ((ev & 0xffff) as u16, (ev >> 16) as u16);
        let source_port = if !self.scenario.network.ipv6 || mrc.ev_order == EvOrder::LabelHigh {
            network.flow_label = u32::from(high);
            low
        } else {
            network.flow_label = u32::from(low);
            high
        };
        network.dscp = CONTROL;
        let mac = |mac: MacAddress| {
            let mut bytes = mac.0;
            bytes[1] = (plane & 0xff) as u8;
            MacAddress(bytes)
        };
        MrcPacket {
            ethernet: Ethernet::new(mac(from.mac), mac(to.mac)),
            network,
            segments: mrc.srv6.then(|| segments(hosts, plane, path.unwrap_or(0xff))),
            source_port,
            destination_port: mrc.udp_port,
            destination_qpn: ENDPOINT,
            psn: 0,
            body: MrcBody::Acknowledge(0),
            trim: None,
        }
    }

    /// The low halves of a pair's queue pair numbers, in the order that the scenario gives.
    pub(super) fn ids(&self, pair: u32, forward: bool) -> [u16; 2] {
        let [requestor, responder] = self.pairs[pair as usize]
            .qpns
            .map(|qpn| (qpn.value() & 0xffff) as u16);
        let requestor_first = match self.scenario.mrc.pdc_order {
            PdcOrder::RequestorFirst => true,
            PdcOrder::SenderFirst => forward,
        };
        if requestor_first {
            [requestor, responder]
        } else {
            [responder, requestor]
        }
    }

    /// A packet behind the switches: fewer hops are left, and segments are gone.
    pub(super) fn behind_switches(packet: &mut MrcPacket) {
        packet.network.hop_limit = packet.network.hop_limit.saturating_sub(HOPS);
        if let Some([_, destination]) = &mut packet.segments {
            let octets = destination.octets();
            let mut bytes = [0; 16];
            bytes[..4].copy_from_slice(&octets[..4]);
            bytes[4..6].copy_from_slice(&octets[10..12]);
            *destination = Address::v6(bytes);
        }
    }
}

/// Addresses of the outer header: a block of 32 bits, and a uSID for each of three switches and for the host.
fn segments([from, to]: [u32; 2], plane: u32, path: u32) -> [Address; 2] {
    let plane = (plane & 0xff) as u8;
    let (path, from, to) = ((path & 0xff) as u8, (from & 0xff) as u8, (to & 0xff) as u8);
    [
        Address::v6([0x20, 0x01, 0x0d, 0xb8, 0, plane, 0, from, 0, 0, 0, 0, 0, 0, 0, 1]),
        Address::v6([
            0xfc, 0xbb, 0, 0, 0x10, plane, 0x20, path, 0x11, plane, 0x30, to, 0, 0, 0, 0,
        ]),
    ]
}
