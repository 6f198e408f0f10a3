//! The time axis of the page: bins of the run, merged into slots of a power of two of them as time goes on.

use roce_model::{Span, Time};

/// Start and width of slots. Slots are numbered from the epoch on, so that merging two neighbours gives
/// the slot of half their number, in either order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axis {
    bin: u64,
    shift: u32,
    /// The first and the last slot with data.
    span: Option<(u64, u64)>,
}

impl Axis {
    /// Slots as wide as a bin.
    pub(super) fn new(bin: Span) -> Self {
        Self {
            bin: bin.0.max(1),
            shift: 0,
            span: None,
        }
    }

    /// The bin of a moment.
    pub(super) fn bin(&self, time: u64) -> u64 {
        time / self.bin
    }

    /// A slot is `1 << shift` bins wide, and has the number of any of them, shifted by so much.
    pub(super) fn shift(&self) -> u32 {
        self.shift
    }

    /// Takes note of a moment: the axis reaches from the first to the last of them.
    pub(super) fn include(&mut self, time: u64) {
        let slot = self.bin(time) >> self.shift;
        self.span = Some(match self.span {
            None => (slot, slot),
            Some((first, last)) => (first.min(slot), last.max(slot)),
        });
    }

    /// Number of slots.
    pub(super) fn slots(&self) -> u64 {
        self.span.map_or(0, |(first, last)| last - first + 1)
    }

    /// The first slot; 0 without any.
    pub(super) fn first(&self) -> u64 {
        self.span.map_or(0, |(first, _)| first)
    }

    /// Makes slots twice as wide: slot `n` becomes `n / 2`.
    pub(super) fn widen(&mut self) {
        self.shift += 1;
        self.span = self.span.map(|(first, last)| (first >> 1, last >> 1));
    }

    /// Start of the first slot.
    pub(super) fn begin(&self) -> Time {
        Time((self.first() << self.shift).saturating_mul(self.bin))
    }

    /// Width of a slot.
    pub(super) fn width(&self) -> Span {
        Span(self.bin << self.shift)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_bins_until_they_are_merged() {
        let mut axis = Axis::new(Span(1_000));
        axis.include(7_999);
        axis.include(3_000);
        // Bins 3 to 7.
        assert_eq!((axis.slots(), axis.first(), axis.width()), (5, 3, Span(1_000)));
        assert_eq!(axis.begin(), Time(3_000));
        axis.widen();
        // Bins 2-3, 4-5, 6-7: the first slot begins before the first bin.
        assert_eq!((axis.slots(), axis.first(), axis.width()), (3, 1, Span(2_000)));
        assert_eq!(axis.begin(), Time(2_000));
        assert_eq!(axis.bin(7_999) >> axis.shift(), 3);
    }
}
