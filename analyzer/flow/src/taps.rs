//! Taps: copies at one tap, packets that several taps saw, the vantage of a tap, and the clocks of
//! captures.

pub mod clocks;
pub(crate) mod duplicates;
pub(crate) mod matching;
pub(crate) mod vantage;
