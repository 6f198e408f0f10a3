//! Counts of the whole run: sums of closed flows, and what every packet adds, of a flow or not.

use roce_model::{Packet, PacketFlags, ProgramExchange, Totals};

/// Counts of the run. Those of flows are added when a flow closes.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// Sums, but for those that are counted by packet below.
    pub(super) totals: Totals,
    /// RoCE packets over IP by ECN field, CNPs left out.
    ecn: [u64; 4],
    /// Packets by what carried them, in the order of [`roce_wire::Carrier`].
    carriers: [u64; 5],
    /// Copies that were dropped, by tap.
    copies: Vec<u64>,
    /// Programs of closed flows that answer each other's SENDs.
    pub(super) exchanges: Vec<ProgramExchange>,
}

impl Tally {
    /// Counts what is counted of every packet, of a flow or not.
    #[inline]
    pub(super) fn packet(&mut self, packet: &Packet) {
        self.totals.opcodes.count(packet.roce.bth.opcode());
        self.carriers[packet.roce.carrier as usize] += 1;
        self.totals.cut_by_snaplen += u64::from(packet.flags.has(PacketFlags::CUT));
    }

    /// Counts the ECN field of a packet of a flow; it has one if IP carried it.
    #[inline]
    pub(super) fn ecn(&mut self, ecn: u8, has_ip: bool) {
        self.ecn[usize::from(ecn & 3)] += u64::from(has_ip);
    }

    /// Counts a notification.
    pub(super) fn notification(&mut self, packet: &Packet) {
        self.totals.cnp += 1;
        self.totals.roce_packets += 1;
        self.totals.wire_bytes += u64::from(packet.wire_bytes);
        self.packet(packet);
        if let Some(good) = packet.icrc {
            self.totals.icrc_checked += 1;
            self.totals.icrc_bad += u64::from(!good);
        }
    }

    /// Counts an exact copy, which counts nowhere else.
    #[cold]
    pub(super) fn copy(&mut self, packet: &Packet) {
        self.totals.copies += 1;
        let tap = packet.tap.0 as usize;
        if self.copies.len() <= tap {
            self.copies.resize(tap + 1, 0);
        }
        self.copies[tap] += 1;
    }

    /// The totals of the run, and the copies by tap.
    pub(super) fn conclude(self) -> (Totals, Vec<u64>) {
        let [not_ect, ect1, ect0, ce] = self.ecn;
        let [v2_over_ipv4, v2_over_ipv6, roce_v1, local, global] = self.carriers;
        let totals = Totals {
            not_ect,
            ect1,
            ect0,
            ce,
            roce_v1,
            roce_v2: v2_over_ipv4 + v2_over_ipv6,
            infiniband: local + global,
            ..self.totals
        };
        (totals, self.copies)
    }
}
