//! Random numbers of one copy: they depend on the transformation and the input alone.

use rand::Rng as _;
use roce_sim::random::{self, Random};

/// Draws of one copy.
#[derive(Debug)]
pub struct Draw(Random);

impl Draw {
    /// The draws of a transformation for an input.
    pub fn new(transformation: &str, input: &str) -> Self {
        Self(random::stream(0x4d65_7461, &format!("{transformation} {input}")))
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        // The bias is below bound / 2^64.
        u64::try_from((u128::from(self.0.next_u64()) * u128::from(bound)) >> 64).unwrap_or_default()
    }

    /// A place in a list of `length` entries.
    pub fn place(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).unwrap_or_default()
    }

    /// A number from `least` to `most`, both among them.
    pub fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most.saturating_sub(least) + 1)
    }

    /// True with a probability of 1 / `times`.
    pub fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// Another order of a list.
    pub fn shuffle<T>(&mut self, list: &mut [T]) {
        for last in (1..list.len()).rev() {
            list.swap(last, self.place(last + 1));
        }
    }
}
