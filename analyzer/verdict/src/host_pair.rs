//! Two hosts as numbers: a pair, its source and its destination.

/// From one host to another at one tap.
#[derive(Clone, Copy, Debug, Default)]
pub struct HostPair {
    /// Its own number.
    pub number: u32,
    /// The number of its destination.
    pub destination: u32,
    /// The number of its source, as a destination.
    pub source: u32,
}
