//! Progress of a flow's sending, and its rate between two points.

use roce_model::cast::float;
use roce_model::ethernet::FRAME_OVERHEAD;
use roce_model::{Span, Time};

/// Minimum time over which rates are measured.
const WINDOW: Span = Span(100_000);
/// Minimum number of packets over which rates are measured, so that one more or less makes no difference.
pub(crate) const WINDOW_PACKETS: u8 = 32;
/// A flow whose packets are no further apart than this multiple of the mean has more to send.
const NO_PAUSE: u64 = 2;

/// Progress of a flow's sending.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Progress {
    pub(crate) time: Time,
    pub(crate) packets: u64,
    pub(crate) payload_bytes: u64,
    pub(crate) wire_bytes: u64,
}

impl Progress {
    /// The rate of payload since `earlier`, in bit/s, when a window has passed.
    pub(super) fn rate_since(&self, earlier: &Self) -> Option<f64> {
        let time = self.time.since(earlier.time);
        let bytes = self.payload_bytes.checked_sub(earlier.payload_bytes)?;
        let is_window = time >= WINDOW && self.packets >= earlier.packets + u64::from(WINDOW_PACKETS);
        is_window.then(|| float(bytes) * 8.0 / time.seconds())
    }

    /// Bytes on the wire since `earlier`, with the overhead of each frame.
    pub(super) fn on_wire_since(&self, earlier: &Self) -> u64 {
        let packets = self.packets.saturating_sub(earlier.packets);
        let bytes = self.wire_bytes.saturating_sub(earlier.wire_bytes);
        bytes.saturating_add(packets.saturating_mul(FRAME_OVERHEAD))
    }

    /// True if the flow sends on after a distance `since` to its last packet: it is in the middle of a message, or the
    /// distance is nothing unusual since `earlier`.
    pub(super) fn is_backlogged(&self, earlier: &Self, since: Span, in_message: bool) -> bool {
        let packets = self.packets.saturating_sub(earlier.packets).max(1);
        let mean = self.time.since(earlier.time).0 / packets;
        in_message || since.0 <= mean * NO_PAUSE
    }
}
