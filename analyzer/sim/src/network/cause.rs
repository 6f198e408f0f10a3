//! Why ports are paused: the queue that holds what came in by a port when its pause begins, and whose bytes are in it.
//!
//! Notes facts only. `truth::judge::waits` follows them from a flow that waits to the root.

mod steps;

use crate::engine::events::PortId;
use crate::network::packet::Packet;
use crate::record::frame::Frame;
use crate::units::Picos;

/// Why pause frames are sent.
#[derive(Clone, Debug)]
pub(crate) enum Cause {
    /// An ingress port of a switch is over its threshold.
    Queue(HeldQueue),
    /// A host takes packets out of its buffer more slowly than they come.
    Slow,
    /// A host sends pauses of its own accord.
    Storm,
}

/// State of the egress queue that held most of an ingress port's bytes when its pause began.
#[derive(Clone, Debug)]
pub(crate) struct HeldQueue {
    pub egress: PortId,
    /// Bytes of each flow's data in the queue, whatever port they came in by.
    pub bytes: Vec<(u32, u64)>,
    /// Since the queue began to grow more came in than its link carries in that time, by a quarter of the queue or more: several
    /// senders contend for it.
    pub overloaded: bool,
}

/// Growth of an egress queue.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Growth {
    since: Picos,
    /// Bytes that came in since then, as long as they are on the line.
    arrived: u64,
}

impl Growth {
    /// A packet comes into a queue; `is_empty` before it.
    pub(crate) fn add(&mut self, packet: &Packet, is_empty: bool, now: Picos) {
        if is_empty {
            *self = Self {
                since: now,
                arrived: 0,
            };
        } else {
            self.arrived += u64::from(packet.bytes + Frame::LINE_OVERHEAD);
        }
    }
}
