//! Attributes of a flow's packets that may change while it lives: UDP source ports, DSCPs.

use roce_model::Packet;

use crate::table::state::{Cold, Hot};

/// Bytes of a BTH and an ICRC.
const TRANSPORT_OVERHEAD: u64 = 12 + 4;

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

    /// True if a packet that is shorter than its lengths say is one that a switch has trimmed: whole packets of the flow are longer than
    /// what came of it, and none of these with data had its DSCP. A writer or a mirror that cuts all packets leaves none that is longer,
    /// and their DSCP as it was.
    pub(crate) fn is_trimmed(&self, hot: &Hot, packet: &Packet) -> bool {
        let roce = &packet.roce;
        let came = u64::from(packet.wire_bytes.saturating_sub(u32::from(roce.bth_offset)));
        let path_mtu = hot.messages.path_mtu().map(u64::from);
        // The longest payload is no shorter than the mean.
        let longest = path_mtu.or_else(|| self.mean_payload(hot));
        let is_longer = longest.is_some_and(|payload| payload + TRANSPORT_OVERHEAD > came);
        let dscp = roce.dscp();
        let has_other = hot.dscp_run > 0 && dscp != hot.dscp && !self.attributes.has_had_dscp(dscp);
        is_longer && has_other && roce.carrier.has_ip()
    }

    /// Mean payload of packets with data, in bytes.
    fn mean_payload(&self, hot: &Hot) -> Option<u64> {
        let bytes = self.totals.payload_bytes + hot.counts.payload_bytes;
        bytes.checked_div(self.totals.data_packets() + u64::from(hot.counts.data_packets))
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
