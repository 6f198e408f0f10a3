//! The resolution of the stamps of a tap, as its frames show it.

use roce_model::Time;

/// Resolution of the stamps of consecutive frames.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Stamps {
    frames: u64,
    /// Frames with the stamp of the two before them: a frame that was recorded twice makes two of one stamp, not three.
    alike: u64,
    /// The least time between two that differ; [`Stamps::NONE`]: no two do.
    step: u64,
    /// The last two stamps; [`Stamps::NONE`], which no frame of a run has, where there are none.
    last: [u64; 2],
}

impl Default for Stamps {
    fn default() -> Self {
        Self {
            frames: 0,
            alike: 0,
            step: Self::NONE,
            last: [Self::NONE; 2],
        }
    }
}

impl Stamps {
    const NONE: u64 = u64::MAX;

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
        if last == time.0 {
            self.alike += u64::from(before == last);
        } else if last != Self::NONE {
            self.step = self.step.min(time.0.abs_diff(last));
        }
        self.last = [last, time.0];
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.frames += other.frames;
        self.alike += other.alike;
        self.step = self.step.min(other.step);
    }

    /// The resolution that they show, in ns; 0: no coarse one.
    pub(crate) fn shown(self) -> u64 {
        let coarse = self.alike >= Self::MIN_FRAMES && self.alike.saturating_mul(Self::SHARE) >= self.frames;
        if coarse && self.step != Self::NONE {
            self.step
        } else {
            0
        }
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
