//! The worst stretch of a run: how much of some time lies in one window, at most. So a verdict does not depend on how long the rest is.

/// Length of the window, in ns: a hundred times what a burst that PFC absorbs takes to drain (1 MB at 100 Gbit/s is 80 us).
pub(super) const WINDOW: u64 = 10_000_000;
/// It moves in steps of this.
const STEP: u64 = 1_000_000;
/// Steps of a window.
const STEPS: usize = 10;

/// Time that is added up.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Worst10Ms {
    /// The latest step, and what lies in it and in those before it.
    step: u64,
    sums: [u64; STEPS],
    most: u64,
    /// When that was reached.
    at: u64,
}

impl Worst10Ms {
    /// Adds the time from one moment to another. What lies before the window counts no more.
    pub(super) fn add(&mut self, from: u64, to: u64) {
        // A longer time fills the window anyway.
        let mut at = from.max(to.saturating_sub(WINDOW + STEP));
        while at < to {
            let step = at / STEP;
            let end = (step + 1).saturating_mul(STEP).min(to);
            self.advance(step);
            if self.step - step < STEPS as u64 {
                self.sums[place(step)] += end - at;
            }
            at = end;
        }
        let sum: u64 = self.sums.iter().sum::<u64>().min(WINDOW);
        if sum > self.most {
            (self.most, self.at) = (sum, from);
        }
    }

    fn advance(&mut self, step: u64) {
        let ahead = step.saturating_sub(self.step);
        for passed in 0..ahead.min(STEPS as u64) {
            self.sums[place(step - passed)] = 0;
        }
        self.step = self.step.max(step);
    }

    /// When what fills that window up began, in ns since the epoch.
    pub(super) fn at(&self) -> u64 {
        self.at
    }

    /// The most in one window, in ns.
    pub(super) fn most(&self) -> u64 {
        self.most
    }
}

#[expect(clippy::cast_possible_truncation, reason = "less than the number of steps")]
fn place(step: u64) -> usize {
    (step % STEPS as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn the_worst_window_counts() {
        let mut worst = Worst10Ms::default();
        // A tenth of each ms for 20 ms, then half of it for 5 ms, and quiet.
        for ms in 0..20 {
            worst.add(ms * MS, ms * MS + MS / 10);
        }
        assert_eq!(worst.most(), MS);
        for ms in 20..25 {
            worst.add(ms * MS, ms * MS + MS / 2);
        }
        // Five steps with a tenth, five with a half.
        assert_eq!(worst.most(), 3 * MS);
        worst.add(10_000 * MS, 10_000 * MS + MS / 10);
        assert_eq!(worst.most(), 3 * MS);
        // One of the past counts where the window still reaches.
        worst.add(9_999 * MS, 9_999 * MS + MS);
        worst.add(5 * MS, 6 * MS);
        assert_eq!(worst.most(), 3 * MS);
        worst.add(20_000 * MS, 30_000 * MS);
        assert_eq!(worst.most(), WINDOW);
    }
}
