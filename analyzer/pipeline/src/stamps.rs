//! The resolution of the stamps of a tap, as its frames show it.

use roce_model::Time;

/// Resolution of the stamps of consecutive frames.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Stamps {
    frames: u64,
    /// Frames with the stamp of the two before them: a frame that was recorded twice makes two of one stamp, not three.
    alike: u64,
    /// The least time between two that differ.
    step: Option<u64>,
    last: [Option<Time>; 2],
}

impl Stamps {
    /// Minimum number of frames like the two before them that show coarse stamps, or stamps in batches.
    const MIN_FRAMES: u64 = 16;
    /// One of this number of all frames has to be like the two before it: then stamps are coarse, or frames
    /// were stamped in batches.
    const SHARE: u64 = 8;

    /// The next frame.
    #[inline]
    pub(crate) fn frame(&mut self, time: Time) {
        self.frames += 1;
        let [before, last] = self.last;
        if last == Some(time) {
            self.alike += u64::from(before == last);
        } else if let Some(last) = last {
            let step = time.0.abs_diff(last.0);
            self.step = Some(self.step.map_or(step, |least| least.min(step)));
        }
        self.last = [last, Some(time)];
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.frames += other.frames;
        self.alike += other.alike;
        self.step = match (self.step, other.step) {
            (Some(one), Some(two)) => Some(one.min(two)),
            (one, two) => one.or(two),
        };
    }

    /// The resolution that they show, in ns; 0: no coarse one.
    pub(crate) fn shown(self) -> u64 {
        let coarse = self.alike >= Self::MIN_FRAMES && self.alike.saturating_mul(Self::SHARE) >= self.frames;
        self.step.filter(|_| coarse).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_show_in_stamps_and_pairs_do_not() {
        let shown = |times: &mut dyn Iterator<Item = u64>| {
            let mut stamps = Stamps::default();
            times.for_each(|time| stamps.frame(Time(time)));
            stamps.shown()
        };
        // Frames 10 us apart, stamped each 100 us: eight of ten are like the two before them.
        assert_eq!(
            shown(&mut (0..100u64).map(|at| at * 10_000 / 100_000 * 100_000)),
            100_000
        );
        assert_eq!(shown(&mut (0..100u64).map(|at| at * 10_000)), 0);
        // Each frame twice.
        assert_eq!(shown(&mut (0..100u64).map(|at| at / 2 * 10_000)), 0);
        // Fifteen of three, and then none.
        assert_eq!(shown(&mut (0..45u64).map(|at| at / 3 * 10_000)), 0);
    }
}
