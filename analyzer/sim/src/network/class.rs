//! Classes of traffic that pauses stop: the eight priorities, and the whole link.

/// Priorities, and one class more for the pause of a whole link.
pub(crate) const CLASSES: usize = 9;
/// The class of an 802.3x pause.
pub(crate) const LINK_CLASS: u8 = 8;
