//! Attributes of a flow's packets: those of its first one, and those that may change while it lives, UDP source ports and DSCPs.

use std::borrow::Cow;

use roce_model::{FlowRow, Packet};
use roce_wire::{Carrier, Roce, Through, VlanTag};

use crate::table::attributes::{Dscps, Ports};
use crate::table::state::{Cold, Hot};

/// The attributes of one flow.
#[derive(Clone, Debug)]
pub(super) struct FlowAttributes {
    ports: Ports,
    /// Packets by DSCP, from the second value on.
    dscps: Option<Box<Dscps>>,
    through: Through,
    carrier: Carrier,
    hop_limit: u8,
    priority: Option<u8>,
}

impl FlowAttributes {
    /// Those of a flow that begins with this packet.
    pub(super) fn new(roce: &Roce) -> Self {
        let mut ports = Ports::default();
        if !matches!(
            roce.carrier,
            Carrier::RoceV1 | Carrier::InfinibandLocal | Carrier::InfinibandGlobal
        ) {
            ports.change_to(roce.udp_source_port);
        }
        Self {
            ports,
            dscps: None,
            through: roce.through,
            carrier: roce.carrier,
            hop_limit: roce.hop_limit,
            priority: roce.vlan.map(VlanTag::priority),
        }
    }

    /// The hop limit of its first packet.
    pub(super) fn hop_limit(&self) -> u8 {
        self.hop_limit
    }

    /// What carries it.
    pub(super) fn carrier(&self) -> Carrier {
        self.carrier
    }

    /// The flow begins another epoch.
    pub(super) fn next_epoch(&mut self) {
        self.dscps = None;
        self.ports.changes = 0;
    }

    /// Fills in what they are; `dscp`: that of the latest packets, `run` of them, of `packets` of the flow.
    pub(super) fn write_flow(&self, dscp: u8, run: u32, packets: u64, row: &mut FlowRow) {
        let mut dscps = self.dscps.as_deref().cloned().unwrap_or_default();
        dscps.add(dscp, run.into());
        row.encapsulation = if self.through.is_nothing() {
            Cow::Borrowed("")
        } else {
            self.through.to_string().into()
        };
        row.dscp = self.carrier.has_ip().then(|| dscps.most().unwrap_or(dscp));
        row.dscp_values = dscps.distinct();
        row.pcp = self.priority;
        row.source_ports = u32::from(self.ports.count);
        row.source_port = self.first_port();
        // Some ports over a life are new paths; many changes among several are spraying.
        row.multipath = self.ports.count > 3 && self.ports.changes > packets / 16;
    }

    fn first_port(&self) -> Option<u16> {
        (self.ports.count > 0).then_some(self.ports.seen[0])
    }
}

impl Hot {
    /// True if a packet of the flow carries other attributes than the one before it. `data`: its DSCP counts for the flow's.
    #[inline]
    pub(crate) fn has_other_attributes(&self, packet: &Packet, data: bool) -> bool {
        packet.roce.udp_source_port != self.source_port
            || data && (packet.roce.dscp() != self.dscp || self.dscp_run == u32::MAX)
    }

    /// Notes the attributes of such a packet.
    #[cold]
    pub(crate) fn change_attributes(&mut self, cold: &mut Cold, packet: &Packet, data: bool) {
        let attributes = &mut cold.attributes;
        if packet.roce.udp_source_port != self.source_port {
            self.source_port = packet.roce.udp_source_port;
            attributes.ports.change_to(self.source_port);
        }
        if data && (packet.roce.dscp() != self.dscp || self.dscp_run == u32::MAX) {
            let packets = u64::from(core::mem::take(&mut self.dscp_run));
            attributes.dscps.get_or_insert_default().add(self.dscp, packets);
            self.dscp = packet.roce.dscp();
        }
    }
}

impl Cold {
    /// The priority of its frames: that of their tag, else what its DSCP means; `None` without either.
    pub(crate) fn priority(&self, hot: &Hot, of_dscp: &[u8; 64]) -> Option<u8> {
        let of_ip = || of_dscp[usize::from(hot.dscp & 63)];
        let attributes = &self.attributes;
        attributes
            .priority
            .or_else(|| attributes.carrier.has_ip().then(of_ip))
    }

    /// The UDP source port that it began with.
    pub(crate) fn first_port(&self) -> Option<u16> {
        self.attributes.first_port()
    }

    /// The UDP source port, when the flow has had no other.
    pub(crate) fn only_port(&self) -> Option<u16> {
        self.first_port().filter(|_| self.attributes.ports.count == 1)
    }
}
