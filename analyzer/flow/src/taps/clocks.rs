//! Two clocks compared by the packets that both stamped: how far one is ahead of the other, how much faster it runs,
//! and how far that can be wrong. Which packets are the same, and where times are corrected, is left to others.
//!
//! A packet that passes the reference's tap first is stamped there at `t`, and at the other tap at `t + delay +
//! offset`; one that comes the other way round at `t - delay + offset`. Delays are not negative. So every packet of the
//! first kind is a bound of the offset from above, every one of the second from below, and between them is a corridor
//! in which the offset lies. Queues only move points away from it: the corridor is set by the packets that met none.
//! Its middle is the estimate, as in NTP (RFC 5905, 8); a line through it, by which drift is found, is the linear
//! programme of Moon, Skelly and Towsley ("Estimation and removal of clock skew from network delay measurements",
//! INFOCOM 1999), here for both directions at once. Where both directions pass the same tap first (a mirror of what comes into a
//! switch beside one of what leaves it), all packets bound the offset on the same side.

mod corridor;

use std::collections::BTreeMap;

use roce_model::Time;
use roce_model::cast::float;

use corridor::{Corridor, Point};

/// A packet that two clocks stamped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StampedPacket {
    /// Its time by the reference's clock.
    pub reference: Time,
    /// Its time by the other clock.
    pub other: Time,
    /// Which way it took: the same for all packets between two hosts, there and back, at the same two taps.
    pub way: u64,
    /// In which of the way's two directions.
    pub forward: bool,
    /// True if it passed the reference's tap first, where the packet itself shows that: its hop limit was counted down in
    /// between, or it was marked.
    pub reference_first: Option<bool>,
}

/// How one clock stands to another.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Offset {
    /// The time, by the clock itself, at which it is ahead by `ahead_ns`.
    pub at: Time,
    /// How far it is ahead of the reference, in nanoseconds.
    pub ahead_ns: f64,
    /// How much faster it runs, in parts per billion.
    pub faster_ppb: f64,
    /// By how much the offset can be wrong anywhere between the first and the last packet that both stamped: a clock
    /// further off would let some packet arrive before it left. `None`: bounded on one side only.
    pub uncertainty_ns: Option<f64>,
    /// Packets that it was found from.
    pub packets: usize,
}

/// The result of comparing two clocks.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Comparison {
    /// Too few packets that both stamped.
    Unrelated,
    /// There is an offset with which no packet arrives before it left.
    Fits(Offset),
    /// There is none: what look like the same packets are others.
    Contradicts,
}

/// Fewer packets than this prove nothing.
pub const MIN_PACKETS: usize = 8;

/// Drift beyond this is none of a clock's: oscillators of network adapters and hosts stay within 100 ppm each (IEEE
/// 802.3 allows a transmitter that much).
const MAX_DRIFT: f64 = 200e-6;

/// Stamps of two processors of one host can differ by so much, in nanoseconds.
const STAMP_NOISE: f64 = 1e3;

/// No network holds every packet of a flow for longer than this, in nanoseconds.
const LONGEST_DELAY: f64 = 1e9;

/// The fastest packet of a capture takes no longer than this between two taps, in nanoseconds: light in 2,000 km of glass fibre.
/// The time that all packets seem to take beyond it is the clocks' difference.
const FASTEST_PACKET: f64 = 1e7;

/// Number of packets of which one may be a wrong match.
const PACKETS_FOR_AN_OUTLIER: usize = 100;
/// Maximum number of wrong matches among all packets.
const MAX_OUTLIERS: usize = 32;

/// Drift has to show: the least one is taken that falls short of the best by this share of the corridor's width.
const NEARLY: f64 = 0.1;

/// Compares a clock with a reference by the packets that both stamped. `quantum_ns`: the resolutions of the two
/// clocks' stamps, added.
///
/// Nothing is corrected that nothing shows to be wrong: where all packets arrive after they left as the clocks are, the
/// offset is zero, and the uncertainty says how far off they could be. With packets of one direction only the offset has
/// one bound; it is then no more than what brings the packets into order, or the fastest one below `FASTEST_PACKET`, and its
/// uncertainty is not known.
pub fn compare(packets: &[StampedPacket], quantum_ns: u64) -> Comparison {
    let Some(first) = packets.iter().min_by_key(|packet| packet.other) else {
        return Comparison::Unrelated;
    };
    if packets.len() < MIN_PACKETS {
        return Comparison::Unrelated;
    }
    let ruler = Ruler::new(first);
    let tolerance = float(quantum_ns).max(STAMP_NOISE);
    let mut corridor = Corridor::default();
    for way in ways(packets, &ruler).values() {
        if let Some(order) = way.order(tolerance) {
            way.bound(&mut corridor, order);
        }
    }
    if corridor.is_empty() {
        return Comparison::Fits(ruler.offset(ruler.zero, 0.0, None, packets.len()));
    }
    corridor.settle();
    if corridor.is_one_sided() {
        return one_sided(&corridor, &ruler, tolerance, packets.len());
    }
    corridor.trim(MAX_DRIFT, tolerance, outliers(packets.len()));
    let agree = corridor.ceiling(0.0, 0.0) >= ruler.zero - tolerance
        && corridor.floor(0.0, 0.0) <= ruler.zero + tolerance;
    let slope = if agree {
        0.0
    } else {
        corridor.slope(MAX_DRIFT, NEARLY)
    };
    let width = corridor.width(slope);
    if !(-tolerance..4.0 * LONGEST_DELAY).contains(&width) {
        return Comparison::Contradicts;
    }
    let middle = if agree {
        ruler.zero
    } else {
        f64::midpoint(corridor.ceiling(slope, 0.0), corridor.floor(slope, 0.0))
    };
    let off = corridor.farthest(slope, middle, MAX_DRIFT).max(width.abs() / 2.0);
    let uncertainty = off + float(quantum_ns);
    Comparison::Fits(ruler.offset(middle, slope, Some(uncertainty), packets.len()))
}

/// The evidence of packets of one direction.
fn one_sided(corridor: &Corridor, ruler: &Ruler, tolerance: f64, packets: usize) -> Comparison {
    if corridor.spread() > LONGEST_DELAY {
        return Comparison::Contradicts;
    }
    let (ceiling, floor) = (corridor.ceiling(0.0, 0.0), corridor.floor(0.0, 0.0));
    let is_late = |apart: f64| apart.is_finite() && apart > FASTEST_PACKET;
    let middle = if ceiling < ruler.zero - tolerance || is_late(ceiling - ruler.zero) {
        ceiling
    } else if floor > ruler.zero + tolerance || is_late(ruler.zero - floor) {
        floor
    } else {
        ruler.zero
    };
    Comparison::Fits(ruler.offset(middle, 0.0, None, packets))
}

/// Times and offsets as floating-point numbers small enough to keep every nanosecond: counted from one packet's.
struct Ruler {
    at: Time,
    ahead: i128,
    /// Where an offset of zero is on the ruler.
    zero: f64,
}

impl Ruler {
    fn new(first: &StampedPacket) -> Self {
        let ahead = i128::from(first.other.0) - i128::from(first.reference.0);
        Self {
            at: first.other,
            ahead,
            zero: -wide(ahead),
        }
    }

    fn point(&self, packet: &StampedPacket) -> Point {
        let ahead = i128::from(packet.other.0) - i128::from(packet.reference.0);
        Point {
            x: float(packet.other.since(self.at).0),
            y: wide(ahead - self.ahead),
        }
    }

    fn offset(&self, middle: f64, slope: f64, uncertainty_ns: Option<f64>, packets: usize) -> Offset {
        // On the ruler's own zero there is no rounding: nothing is corrected then.
        let ahead_ns = middle - self.zero;
        Offset {
            at: self.at,
            ahead_ns,
            faster_ppb: slope * 1e9,
            uncertainty_ns,
            packets,
        }
    }
}

/// In which order the packets of one way pass the two taps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Order {
    /// Forward the reference's tap comes first, and backward the other one.
    ForwardByReference,
    /// Forward the other tap comes first, and backward the reference's.
    BackwardByReference,
    /// Both directions pass the reference's tap first: one mirrors what comes into a switch, the other what leaves it.
    ReferenceFirst,
    /// Both directions pass the other tap first.
    OtherFirst,
}

/// The packets of one way.
#[derive(Default)]
struct Path {
    forward: Vec<Point>,
    backward: Vec<Point>,
    /// Number of packets of each direction that show that they pass the reference first, less those that show
    /// the opposite.
    votes_forward: i64,
    votes_backward: i64,
}

fn ways(packets: &[StampedPacket], ruler: &Ruler) -> BTreeMap<u64, Path> {
    let mut ways: BTreeMap<u64, Path> = BTreeMap::new();
    for packet in packets {
        let way = ways.entry(packet.way).or_default();
        let point = ruler.point(packet);
        if packet.forward {
            way.forward.push(point);
        } else {
            way.backward.push(point);
        }
        if let Some(reference_first) = packet.reference_first {
            let votes = if packet.forward {
                &mut way.votes_forward
            } else {
                &mut way.votes_backward
            };
            *votes += if reference_first { 1 } else { -1 };
        }
    }
    ways
}

impl Path {
    /// The order in which packets pass the taps: as the packets show, or else such that all of them can have arrived after they
    /// left. `None`: nothing tells.
    fn order(&self, tolerance: f64) -> Option<Order> {
        let opposite = |forward_by_reference: bool| {
            if forward_by_reference {
                Order::ForwardByReference
            } else {
                Order::BackwardByReference
            }
        };
        match (self.votes_forward.signum(), self.votes_backward.signum()) {
            (1, 1) => return Some(Order::ReferenceFirst),
            (-1, -1) => return Some(Order::OtherFirst),
            (0, 0) => {}
            (forward, backward) => return Some(opposite(forward > backward)),
        }
        if self.forward.is_empty() || self.backward.is_empty() {
            return None;
        }
        let both = [Order::ForwardByReference, Order::BackwardByReference].map(|order| {
            let mut corridor = Corridor::default();
            self.bound(&mut corridor, order);
            corridor.settle();
            corridor
        });
        let fits = |width: f64| width >= -tolerance;
        let [so, otherwise] = both.each_ref().map(|corridor| corridor.width(0.0));
        if fits(so.max(otherwise)) {
            // Without drift both can be only where all delays are alike.
            return Some(opposite(so >= otherwise));
        }
        let outliers = outliers(self.forward.len() + self.backward.len());
        let [so, otherwise] = both.map(|mut corridor| {
            corridor.trim(MAX_DRIFT, tolerance, outliers);
            corridor.width(corridor.widest(MAX_DRIFT))
        });
        // Enough drift may explain either.
        (!(fits(so) && fits(otherwise))).then(|| opposite(so >= otherwise))
    }

    fn bound(&self, corridor: &mut Corridor, order: Order) {
        match order {
            Order::ForwardByReference => corridor.bound(&self.forward, &self.backward),
            Order::BackwardByReference => corridor.bound(&self.backward, &self.forward),
            Order::ReferenceFirst => {
                corridor.bound(&self.forward, &[]);
                corridor.bound(&self.backward, &[]);
            }
            Order::OtherFirst => {
                corridor.bound(&[], &self.forward);
                corridor.bound(&[], &self.backward);
            }
        }
    }
}

fn outliers(packets: usize) -> usize {
    (packets / PACKETS_FOR_AN_OUTLIER).min(MAX_OUTLIERS)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "offsets: 2^53 ns are 104 days, and those of one comparison are counted from one of them"
)]
fn wide(ns: i128) -> f64 {
    ns as f64
}

#[cfg(test)]
mod tests;
