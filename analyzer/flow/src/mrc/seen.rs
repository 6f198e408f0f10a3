//! Additions of a packet to the row of its flow.

/// Additions of a packet to its flow's row.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub(crate) struct SeenMrc {
    /// It is a WRITE, for the first time or again.
    pub(crate) is_data: bool,
    pub(crate) is_again: bool,
    /// A refusal of a trimmed packet.
    pub(crate) is_trim: bool,
    /// Holes that its bitmap shows for the first time.
    pub(crate) holes: u32,
    /// It asks to skip or avoid a path.
    pub(crate) is_skip: bool,
    pub(crate) penalty: u8,
}
