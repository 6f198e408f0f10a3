//! A mirror that shows each frame twice: a SPAN session of both directions, or of two ports on the
//! frame's path.

use std::collections::BTreeMap;

use rand::Rng as _;
use roce_capture::Direction;
use roce_model::{Span, Time};
use roce_wire::MacAddress;

use crate::record::frame::{Frame, Tunnel};
use roce_model::random::Random;

/// Delays of a mirror's second copies. Pause frames are not doubled, because they end at their link.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct MirrorDoubling {
    /// The shortest time from a frame to its copy.
    pub least: Span,
    /// The longest.
    pub most: Span,
    /// The probability that a frame is doubled.
    pub share: f64,
    /// The copy was taken behind a router: its TTL is less by one, and it has other MAC addresses.
    pub routed: bool,
    /// The copy was taken inside a tunnel: a host's bridge and the tunnel's outer interface, or both sides of a tunnel
    /// endpoint, in one capture.
    pub tunnel: Option<Tunnel>,
}

/// The MAC addresses of a router and of the next hop behind it: locally administered ones that no host has.
const ROUTER: MacAddress = MacAddress([0x02, 0, 5, 0, 0, 1]);
const NEXT_HOP: MacAddress = MacAddress([0x02, 0, 5, 0, 0, 2]);

/// The copies of a tap that are still to come.
#[derive(Clone, Debug)]
pub(super) struct Copies {
    doubling: Option<MirrorDoubling>,
    random: Random,
    /// By the time of each, and by its number, so that none has the place of another.
    waiting: BTreeMap<(Time, u64), (Direction, Frame)>,
    made: u64,
}

impl Copies {
    pub(super) fn new(doubling: Option<MirrorDoubling>, random: Random) -> Self {
        Self {
            doubling,
            random,
            waiting: BTreeMap::new(),
            made: 0,
        }
    }

    /// A frame was recorded: a copy of it may follow.
    pub(super) fn follow(&mut self, time: Time, direction: Direction, frame: &Frame) {
        let Some(doubling) = self.doubling else {
            return;
        };
        let Some(copy) = behind(frame, doubling.routed) else {
            return;
        };
        // Both are drawn in any case, so that one does not shift the other.
        let (chance, span) = (self.random.next_u64(), self.random.next_u64());
        if !happens(chance, doubling.share) {
            return;
        }
        let least = doubling.least.0;
        let width = u128::from(doubling.most.0.saturating_sub(least)) + 1;
        let wait = u64::try_from((u128::from(span) * width) >> 64).unwrap_or_default();
        let time = Time(time.0.saturating_add(least).saturating_add(wait));
        self.made += 1;
        self.waiting.insert((time, self.made), (direction, copy));
    }

    /// Time of the next copy.
    pub(super) fn next_time(&self) -> Option<Time> {
        self.waiting.first_key_value().map(|((time, _), _)| *time)
    }

    /// The next copy.
    pub(super) fn take(&mut self) -> Option<(Time, Direction, Frame)> {
        let ((time, _), (direction, frame)) = self.waiting.pop_first()?;
        Some((time, direction, frame))
    }
}

/// A packet as it is behind a router, or the same; none of a pause frame.
fn behind(frame: &Frame, routed: bool) -> Option<Frame> {
    let mut frame = *frame;
    let (ethernet, network) = match &mut frame {
        Frame::Roce(roce) | Frame::Damaged(roce) => (&mut roce.ethernet, &mut roce.network),
        Frame::Mrc(packet) => (&mut packet.ethernet, &mut packet.network),
        Frame::Pfc(_) | Frame::Pause(_) => return None,
    };
    if routed {
        network.hop_limit = network.hop_limit.saturating_sub(1);
        ethernet.source = ROUTER;
        ethernet.destination = NEXT_HOP;
    }
    Some(frame)
}

/// True if an event of a probability happens, by 64 random bits.
#[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
fn happens(bits: u64, probability: f64) -> bool {
    ((bits >> 11) as f64 / (1_u64 << 53) as f64) < probability
}
