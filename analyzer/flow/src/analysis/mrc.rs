//! Packets of MRC: what they add to the rows of their flows, and what a flow's transport is called.

use roce_model::{FlowRow, MrcPacket, Packet};
use roce_wire::Service;

use crate::analysis::Analysis;
use crate::key::FlowSlot;
use crate::mrc::SeenMrc;

impl Analysis {
    /// A packet that may be of MRC: it is one where its queue pair is known to speak MRC.
    #[cold]
    pub(super) fn observe_mrc(
        &mut self,
        at: FlowSlot,
        fingerprint: u64,
        packet: &Packet,
        headers: &MrcPacket,
    ) {
        let roce = &packet.roce;
        if !self
            .connections
            .mrc
            .is_proven(roce.source, roce.destination, roce.bth.destination_qpn())
        {
            return self.observe(at, fingerprint, packet, None);
        }
        // Its headers are no payload.
        let mut known = *packet;
        known.roce.payload_bytes = headers.payload_bytes;
        let copies = self.tally.totals.copies;
        self.observe(at, fingerprint, &known, None);
        if self.tally.totals.copies != copies {
            return;
        }
        let seen = self
            .connections
            .mrc
            .observe(&known, headers, &mut self.bins.events);
        let counts = &mut self.table.hot[at].counts;
        if seen.is_data {
            counts.data_packets += 1;
            counts.ecn[usize::from(roce.traffic_class & 3)] += u32::from(roce.carrier.has_ip());
        }
        if seen == SeenMrc::default() || seen.is_data && !seen.is_again {
            return;
        }
        let rare = counts.rare_mut();
        rare.retransmitted_packets += u32::from(seen.is_again);
        rare.retransmitted_bytes += u64::from(headers.payload_bytes) * u64::from(seen.is_again);
        rare.mrc.has_again |= seen.is_again;
        rare.mrc.trimmed += u32::from(seen.is_trim);
        rare.mrc.holes += seen.holes;
        rare.mrc.skips += u32::from(seen.is_skip);
        rare.mrc.penalty += u32::from(seen.penalty > 0);
    }

    /// Names the transport of a flow whose opcodes may be those of a vendor.
    pub(super) fn name_service(&self, row: &mut FlowRow, service: Service) {
        let qpn = roce_wire::Qpn::new(row.destination_qpn);
        if service == Service::Mrc && !self.connections.mrc.is_proven(row.source, row.destination, qpn) {
            row.service = Service::Vendor.name();
        }
    }
}
