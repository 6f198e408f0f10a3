//! Packets that a sender sent and the tap never saw, by the IPv4 identification: of a sender that counts it by one for each packet of a
//! flow, a silence in which it went on by more hides packets.
//!
//! Checked between bursts alone: in each one the identification must have gone on by the packets that were captured.

/// Packets without which it is not known how a sender counts.
const MIN_COUNTED: u64 = 1_000;
/// Packets that were counted for each one that was not.
const COUNTED_PER_OTHER: u64 = 16;

/// Place in a flow's packets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IdPlace {
    /// Identification of the packet before a silence, and of the one behind it.
    pub(crate) before: u16,
    pub(crate) behind: u16,
    /// Packets of the flow up to the silence.
    pub(crate) packets: u64,
}

/// How a sender counts the packets of a flow.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct IdCount {
    /// Identification of the first packet of this burst, and the packets before it; `None`: no burst began yet.
    first: Option<(u16, u64)>,
    /// Packets by which the identification went on as it should, and others.
    counted: u64,
    others: u64,
}

impl IdCount {
    /// A silence ended a burst. Returns how many identifications the sender left out in it, up to 65,535; 0 if it does not count for the
    /// flow by one.
    pub(crate) fn end_burst(&mut self, place: IdPlace) -> u16 {
        let Some((first, packets)) = self.first.replace((place.behind, place.packets)) else {
            return 0;
        };
        let others = place.packets.saturating_sub(packets).saturating_sub(1);
        let went_on = place.before.wrapping_sub(first);
        // Identifications have 16 bits (RFC 791).
        if others & 0xffff == u64::from(went_on) {
            self.counted = self.counted.saturating_add(others);
        } else {
            self.others = self.others.saturating_add(others);
        }
        let step = place.behind.wrapping_sub(place.before);
        if step == 1 {
            self.counted = self.counted.saturating_add(1);
            return 0;
        }
        if self.counts() { step.wrapping_sub(1) } else { 0 }
    }

    fn counts(&self) -> bool {
        self.counted >= MIN_COUNTED && self.others.saturating_mul(COUNTED_PER_OTHER) <= self.counted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bursts of 100 packets, and this step behind each.
    fn bursts(count: &mut IdCount, from: (u16, u64), steps: &[u16]) -> Vec<u16> {
        let (mut first, mut packets) = from;
        let each = steps.iter().map(|step| {
            let before = first.wrapping_add(99);
            (first, packets) = (before.wrapping_add(*step), packets + 100);
            count.end_burst(IdPlace {
                before,
                behind: first,
                packets,
            })
        });
        each.collect()
    }

    #[test]
    fn a_silence_hides_packets() {
        let mut count = IdCount::default();
        // The capture begins in the middle of a count, near its end.
        let mut steps = vec![1; 20];
        steps.extend([1_025, 1]);
        let skipped = bursts(&mut count, (65_000, 0), &steps);
        assert_eq!(
            skipped.iter().map(|packets| u64::from(*packets)).sum::<u64>(),
            1_024
        );
        assert_eq!(skipped[20], 1_024);
    }

    #[test]
    fn few_packets_tell_nothing() {
        let skipped = bursts(&mut IdCount::default(), (7, 0), &[1, 1, 1, 1, 1_025]);
        assert_eq!(skipped, [0; 5]);
    }

    #[test]
    fn other_kinds_of_identifications_tell_nothing() {
        // A counter that others share goes on within bursts; constants do not.
        for step in [0u16, 2, 17] {
            let mut count = IdCount::default();
            for burst in 0..40u16 {
                let first = burst.wrapping_mul(100).wrapping_mul(step);
                let before = first.wrapping_add(step.wrapping_mul(99));
                let behind = before.wrapping_add(if burst == 30 { 1_025 } else { step });
                let packets = u64::from(burst) * 100 + 100;
                let skipped = count.end_burst(IdPlace {
                    before,
                    behind,
                    packets,
                });
                assert_eq!(skipped, 0, "{step}");
            }
        }
    }
}
