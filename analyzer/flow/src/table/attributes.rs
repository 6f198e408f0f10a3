//! Attributes of a flow's packets: those of its first one, and the UDP source ports and DSCPs that it has had.

use std::borrow::Cow;

use roce_model::{FlowRow, Packet, PacketFlags};
use roce_wire::{Carrier, Through, VlanTag};

/// The attributes of one flow.
#[derive(Clone, Debug)]
pub(super) struct FlowAttributes {
    ports: Ports,
    /// Packets by DSCP, from the second value on.
    dscps: Option<Box<Dscps>>,
    through: Through,
    carrier: Carrier,
    hop_limit: u8,
    /// Its first frame was addressed to the MAC address that sent it.
    to_itself: bool,
    priority: Option<u8>,
}

impl FlowAttributes {
    /// Those of a flow that begins with this packet.
    pub(super) fn new(packet: &Packet) -> Self {
        let roce = &packet.roce;
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
            to_itself: packet.flags.has(PacketFlags::TO_ITSELF),
            priority: roce.vlan.map(VlanTag::priority),
        }
    }

    /// The hop limit of its first packet.
    pub(super) fn hop_limit(&self) -> u8 {
        self.hop_limit
    }

    /// The kind of frames that carry it.
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
        row.to_itself = self.to_itself;
        row.source_ports = u32::from(self.ports.count);
        row.source_port = self.first_port();
        // Some ports over a life are new paths; many changes among several are spraying.
        row.multipath = self.ports.count > 3 && self.ports.changes > packets / 16;
    }

    /// The UDP source port changes.
    pub(super) fn change_port(&mut self, port: u16) {
        self.ports.change_to(port);
    }

    /// Packets had this DSCP, and the next one has another.
    pub(super) fn add_dscp(&mut self, dscp: u8, packets: u64) {
        self.dscps.get_or_insert_default().add(dscp, packets);
    }

    /// True if its data have had this DSCP before the latest one.
    pub(super) fn has_had_dscp(&self, dscp: u8) -> bool {
        self.dscps.as_ref().is_some_and(|dscps| dscps.has(dscp))
    }

    /// The priority of its frames: that of their tag, else what its DSCP means; `None` without either.
    pub(super) fn priority(&self, dscp: u8, of_dscp: &[u8; 64]) -> Option<u8> {
        let of_ip = || of_dscp[usize::from(dscp & 63)];
        self.priority.or_else(|| self.carrier.has_ip().then(of_ip))
    }

    /// The UDP source port that it began with.
    pub(super) fn first_port(&self) -> Option<u16> {
        (self.ports.count > 0).then_some(self.ports.seen[0])
    }

    /// The UDP source port, when the flow has had no other.
    pub(super) fn only_port(&self) -> Option<u16> {
        self.first_port().filter(|_| self.ports.count == 1)
    }
}

/// Distinct UDP source ports, up to eight.
#[derive(Clone, Debug, Default)]
struct Ports {
    seen: [u16; Ports::MAX_VALUES],
    count: u8,
    changes: u64,
}

impl Ports {
    const MAX_VALUES: usize = 8;

    fn change_to(&mut self, port: u16) {
        self.changes += 1;
        let known = &self.seen[..usize::from(self.count)];
        if known.len() < Self::MAX_VALUES && !known.contains(&port) {
            self.seen[usize::from(self.count)] = port;
            self.count += 1;
        }
    }
}

/// Packets by DSCP, for the first four values.
#[derive(Clone, Debug, Default)]
pub(crate) struct Dscps {
    seen: [(u8, u64); Dscps::MAX_VALUES],
    count: usize,
    others: u64,
}

impl Dscps {
    const MAX_VALUES: usize = 4;

    /// True if packets had this one.
    fn has(&self, dscp: u8) -> bool {
        let known = &self.seen[..self.count];
        known.iter().any(|(known, _)| *known == dscp) || self.others >> (dscp & 63) & 1 != 0
    }

    /// Adds packets.
    pub(crate) fn add(&mut self, dscp: u8, packets: u64) {
        if packets == 0 {
            return;
        }
        let known = &mut self.seen[..self.count];
        if let Some((_, sum)) = known.iter_mut().find(|(known, _)| *known == dscp) {
            *sum += packets;
        } else if self.count < Self::MAX_VALUES {
            self.seen[self.count] = (dscp, packets);
            self.count += 1;
        } else {
            // Bits of the values beyond the fourth: 64 values, 64 bits.
            self.others |= 1 << (dscp & 63);
        }
    }

    /// That of most packets.
    pub(crate) fn most(&self) -> Option<u8> {
        let known = &self.seen[..self.count];
        known
            .iter()
            .rev()
            .max_by_key(|(_, packets)| *packets)
            .map(|(dscp, _)| *dscp)
    }

    /// Number of values.
    pub(crate) fn distinct(&self) -> u32 {
        u32::try_from(self.count).unwrap_or_default() + self.others.count_ones()
    }
}
