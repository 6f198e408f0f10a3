//! UDP source ports and DSCPs that a flow has had.

/// Distinct UDP source ports, up to eight.
#[derive(Clone, Debug, Default)]
pub(super) struct Ports {
    pub(super) seen: [u16; Ports::MAX_VALUES],
    pub(super) count: u8,
    pub(super) changes: u64,
}

impl Ports {
    const MAX_VALUES: usize = 8;

    pub(super) fn change_to(&mut self, port: u16) {
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
pub(super) struct Dscps {
    seen: [(u8, u64); Dscps::MAX_VALUES],
    count: usize,
    others: u64,
}

impl Dscps {
    const MAX_VALUES: usize = 4;

    pub(super) fn add(&mut self, dscp: u8, packets: u64) {
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

    pub(super) fn most(&self) -> Option<u8> {
        let known = &self.seen[..self.count];
        known
            .iter()
            .rev()
            .max_by_key(|(_, packets)| *packets)
            .map(|(dscp, _)| *dscp)
    }

    pub(super) fn distinct(&self) -> u32 {
        u32::try_from(self.count).unwrap_or_default() + self.others.count_ones()
    }
}
