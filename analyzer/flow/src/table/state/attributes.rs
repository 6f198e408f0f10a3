//! Attributes of a flow's packets that may change while it lives: UDP source ports, DSCPs.

use roce_model::Packet;

use crate::table::state::{Cold, Hot};

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
        if packet.roce.udp_source_port != self.source_port {
            self.source_port = packet.roce.udp_source_port;
            cold.attributes.change_port(self.source_port);
        }
        if data && (packet.roce.dscp() != self.dscp || self.dscp_run == u32::MAX) {
            let packets = u64::from(core::mem::take(&mut self.dscp_run));
            cold.attributes.add_dscp(self.dscp, packets);
            self.dscp = packet.roce.dscp();
        }
    }
}

impl Cold {
    /// The priority of its frames: that of their tag, else what its DSCP means; `None` without either.
    pub(crate) fn priority(&self, hot: &Hot, of_dscp: &[u8; 64]) -> Option<u8> {
        self.attributes.priority(hot.dscp, of_dscp)
    }

    /// The UDP source port that it began with.
    pub(crate) fn first_port(&self) -> Option<u16> {
        self.attributes.first_port()
    }

    /// The UDP source port, when the flow has had no other.
    pub(crate) fn only_port(&self) -> Option<u16> {
        self.attributes.only_port()
    }
}
