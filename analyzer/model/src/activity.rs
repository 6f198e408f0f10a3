//! Times at which a flow sent within a bin.

/// Time of a flow's sending in a bin, in ns after the bin's start. Where it is unknown, the whole bin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Active {
    /// The first packet's time.
    pub first: u64,
    /// The last packet's time.
    pub last: u64,
}

impl Active {
    /// The whole bin.
    pub const ALL: Self = Self {
        first: 0,
        last: u64::MAX,
    };
}
