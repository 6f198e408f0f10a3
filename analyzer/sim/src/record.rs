//! What is seen: frames as bytes, taps that record them, and what an observer of them keeps.

pub mod frame;
pub(crate) mod observer;
pub mod tap;
