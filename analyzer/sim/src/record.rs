//! Recording: frames as bytes, taps that record them, and the notes of an observer.

pub mod frame;
pub(crate) mod observer;
pub mod tap;
