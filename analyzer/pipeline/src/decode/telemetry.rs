//! Telemetry of switches in frames, as the analysis takes it.

use roce_model::{Between, InbandHops, Packet};
use roce_wire::{Roce, Telemetry};

use super::Decoder;

impl Decoder {
    /// Adds the hops of a frame, which come before the packet at a place of its batch.
    #[cold]
    pub(super) fn keep_hops(
        telemetry: &Telemetry,
        bytes: &[u8],
        packet: &Packet,
        (before, is_copy): (usize, bool),
        between: &mut Vec<Between>,
    ) {
        let hops = telemetry.hops(bytes);
        if !hops.all().is_empty() {
            between.push(Between::Inband(Box::new(InbandHops {
                before,
                packet: *packet,
                is_copy,
                hops,
            })));
        }
    }

    /// Takes a copy that carries telemetry beside its packet, which comes itself.
    #[cold]
    pub(super) fn copy(
        &mut self,
        telemetry: &Telemetry,
        bytes: &[u8],
        (packet, roce): (&Packet, Roce),
        (at, counts): (usize, bool),
        between: &mut Vec<Between>,
    ) {
        self.totals.not_roce += u64::from(counts);
        let is_left = self.filter.as_ref().is_some_and(|filter| !filter.matches(&roce))
            || self.chosen.as_ref().is_some_and(|chosen| !chosen.has(&roce));
        if self.shard.takes(&roce) && !is_left {
            let packet = Packet { roce, ..*packet };
            Self::keep_hops(telemetry, bytes, &packet, (at, true), between);
        }
    }
}
