//! A packet whose loss is likely and not certain.

use roce_model::Time;

use crate::mrc::sent::Transmission;

/// A packet that was sent again, and was answered or sent once more since then.
#[derive(Clone, Copy, Debug)]
pub(super) struct WaitingPacket {
    pub(super) position: u64,
    /// The sending that is in doubt, if it was captured, and the next one.
    pub(super) before: Option<Transmission>,
    pub(super) latest: Transmission,
    /// The latest time at which an answer showed it as missing.
    pub(super) missing: Option<Time>,
    pub(super) payload: u32,
    pub(super) since: Time,
}
