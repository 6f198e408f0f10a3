//! Taps that show packets twice, as a mirror of both directions of a port does, or one of two ports: learned from samples of all
//! packets of a tap.
//!
//! A sample is a packet for which the tap waits: it may come once more, unchanged, within
//! [`MAX_DISTANCE`]; it counts when that time is over. So bursts do not matter: copies count against
//! their own originals. Three causes make packets come twice:
//! - A sender repeats them. It gives each packet a new IPv4 identification, if it numbers packets at all. If not, NAKs show
//!   when it does, and it repeats data, of some packets more than once.
//! - The network makes duplicates: few, and on one link, which packets pass in one direction.
//! - A mirror copies what passes, in both directions, packets without data as well.

use roce_model::{Packet, Time};
use roce_wire::Operation;
use roce_wire::transport::mrc;

pub(super) const TIME_SHIFT: u32 = 6;
/// Copies are this close, in units of [`TIME_SHIFT`], 131 us: farther than any switch is from itself. Retransmissions may
/// be closer.
pub(super) const MAX_DISTANCE: u64 = 1 << 11;
/// Wait for a sample.
const MAX_WAIT: u64 = MAX_DISTANCE << TIME_SHIFT;
/// Samples that wait at one time, of all taps.
const MAX_SAMPLES: usize = 512;
/// Behind the begin of a capture one of 16 packets is a sample at most: those whose tag has none of these bits.
const LEFT_OUT: u32 = 0xf << 28;
/// Time for which a sender repeats packets after a NAK.
const REFUSED: u64 = 1_000_000;
/// Samples between two looks at a tap.
const SAMPLES_PER_LOOK: u32 = 64;
/// Samples after which the older ones count half.
const HALVE_AT: u32 = 512;
/// Packets of a tap from which on it is said of a whole short capture what it shows.
const MIN_PACKETS: u32 = 4;
/// Samples of a side from which on its share means something.
const MIN_SAMPLES: u32 = 16;
/// Copies that are enough where packets are numbered, and where they are not.
const MIN_COPIES: [u32; 2] = [8, 16];

/// Certainty that a sample that comes twice is a copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Class {
    /// Its sender numbers packets: it is no retransmission.
    #[default]
    Numbered,
    /// A repetition would have a NAK before it.
    Plain,
    /// Requesters ask again for READ responses without any NAK.
    Read,
}

/// A packet that waits for its copy.
#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    time: u64,
    tag: u32,
    tap: u32,
    /// In units of [`TIME_SHIFT`].
    distance: u16,
    class: Class,
    /// Side that sent it.
    side: u8,
    is_live: bool,
    /// Number of repetitions.
    again: u8,
    /// It came once more, for another reason than a mirror.
    is_explained: bool,
}

/// Samples of one class, by side.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    firsts: [u32; 2],
    seconds: [u32; 2],
    /// Packets that came more than twice.
    thirds: u32,
}

impl Counts {
    fn firsts(&self) -> u32 {
        self.firsts[0] + self.firsts[1]
    }

    fn seconds(&self) -> u32 {
        self.seconds[0] + self.seconds[1]
    }

    /// True if at least this percentage came twice.
    fn reaches(&self, percent: u32) -> bool {
        self.seconds() * 100 >= self.firsts() * percent
    }

    /// True if both sides show copies, `least` of them or more, and neither only one `of` the other's share or less.
    fn is_even(&self, least: u32, of: u32) -> bool {
        let (firsts, seconds) = (self.firsts(), self.seconds());
        let is_usual = |side: usize| {
            self.seconds[side] >= least
                && u64::from(self.seconds[side]) * u64::from(firsts) * u64::from(of)
                    >= u64::from(seconds) * u64::from(self.firsts[side])
        };
        is_usual(0) && is_usual(1)
    }

    /// True if hardly anything came more than twice: a sender that repeats itself does so more than once.
    fn is_twice(&self) -> bool {
        self.thirds * 8 <= self.seconds()
    }

    /// True if only one side sends.
    fn is_one_sided(&self) -> bool {
        self.firsts[0].min(self.firsts[1]) < MIN_SAMPLES / 2
    }

    /// True if numbered packets, which nobody repeats, come twice too often for duplicates of a network, or on
    /// both sides alike.
    fn numbered_are_copies(&self) -> bool {
        self.seconds() >= MIN_COPIES[0] && (self.reaches(20) || self.reaches(2) && self.is_even(3, 3))
    }

    /// True if plain packets, which a sender may repeat, come twice as a mirror shows them.
    fn plain_are_copies(&self, percent: u32) -> bool {
        let is_even = self.is_even(MIN_COPIES[1] / 2, 2) && self.reaches(percent);
        let is_one = self.is_one_sided() && self.firsts() >= 128 && self.reaches(90);
        self.is_twice() && (is_even || is_one)
    }

    /// True if packets that a requester may ask for again at any time come twice as a mirror shows them.
    /// Independent repetitions of a share of the packets repeat that share of the repetitions once more; a
    /// mirror that shows a part of them twice shows none a third time. `is_constant`: all come after the same
    /// time, which a mirror takes, and a requester does not.
    fn reads_are_copies(&self, is_constant: bool) -> bool {
        let is_part = self.thirds * 32 <= self.seconds() && self.is_even(MIN_COPIES[1], 2);
        self.plain_are_copies(80) || is_part && self.reaches(if is_constant { 4 } else { 50 })
    }

    fn halve(&mut self) {
        let half = |counts: [u32; 2]| counts.map(|count| count / 2);
        (self.firsts, self.seconds) = (half(self.firsts), half(self.seconds));
        self.thirds /= 2;
    }
}

/// Distances are kept in four classes for each power of two.
const SCALES: usize = 44;

fn scale(distance: u64) -> usize {
    let distance = distance.min(MAX_DISTANCE - 1) as usize;
    if distance < 4 {
        return distance;
    }
    let power = distance.ilog2() as usize;
    4 + (power - 2) * 4 + (distance >> (power - 2) & 3)
}

/// The least distance beyond a class.
fn end_of(scale: usize) -> u64 {
    if scale < 4 {
        return scale as u64 + 1;
    }
    let (power, part) = ((scale - 4) / 4, (scale - 4) % 4);
    (4 + part as u64 + 1) << power
}

/// Results of the samples of a tap.
#[derive(Clone, Copy, Debug)]
struct Tap {
    /// By [`Class`].
    counts: [Counts; 3],
    samples: u32,
    /// Those that came twice, by distance.
    distances: [u16; SCALES],
    /// Second sightings up to this distance are copies; 0: the tap is not known to show packets twice.
    limit: u64,
    /// Limit where nothing gives a sender a reason to repeat a packet.
    limit_without_cause: u64,
}

impl Default for Tap {
    fn default() -> Self {
        Self {
            counts: [Counts::default(); 3],
            samples: 0,
            distances: [0; SCALES],
            limit: 0,
            limit_without_cause: 0,
        }
    }
}

impl Tap {
    fn add(&mut self, sample: &Sample) {
        let (side, twice) = (usize::from(sample.side), u32::from(sample.again > 0));
        let counts = &mut self.counts[sample.class as usize];
        counts.firsts[side] += 1;
        counts.seconds[side] += twice;
        counts.thirds += u32::from(sample.again > 1);
        if twice > 0 {
            let count = &mut self.distances[scale(u64::from(sample.distance))];
            *count = count.saturating_add(1);
        }
        self.samples += 1;
    }

    fn shows_twice(&self) -> bool {
        let [numbered, plain, read] = &self.counts;
        numbered.numbered_are_copies()
            || plain.plain_are_copies(10)
            || read.reads_are_copies(self.is_constant())
    }

    /// True if nearly all second sightings come after the same time: within two neighbouring classes, which are a quarter wide at most.
    fn is_constant(&self) -> bool {
        let all: u32 = self.distances.iter().map(|count| u32::from(*count)).sum();
        let pairs = self.distances.windows(2);
        let most = pairs
            .map(|pair| pair.iter().map(|count| u32::from(*count)).sum())
            .max();
        most.unwrap_or(0) * 16 >= all * 15
    }

    /// True if everything came exactly twice.
    fn shows_all_twice(&self) -> bool {
        let firsts: u32 = self.counts.iter().map(Counts::firsts).sum();
        let reads = self.counts[Class::Read as usize].firsts();
        let is_all = |counts: &Counts| counts.firsts == counts.seconds && counts.thirds == 0;
        firsts >= if reads > 0 { MIN_SAMPLES } else { MIN_PACKETS } && self.counts.iter().all(is_all)
    }

    /// Some samples more have been counted.
    fn look(&mut self) {
        if self.shows_twice() {
            self.learn();
        } else if self.samples >= HALVE_AT / 2
            && !self
                .counts
                .iter()
                .any(|counts| counts.reaches(1) && counts.seconds() > 0)
        {
            (self.limit, self.limit_without_cause) = (0, 0);
        }
        if self.samples >= HALVE_AT {
            self.counts.iter_mut().for_each(Counts::halve);
            self.distances = self.distances.map(|count| count / 2);
            self.samples /= 2;
        }
    }

    /// Copies come within little more than the distance of nearly all of them.
    fn learn(&mut self) {
        let all: u64 = self.distances.iter().map(|count| u64::from(*count)).sum();
        let furthest = (0..SCALES).rev().find(|scale| {
            let count = u64::from(self.distances[*scale]);
            count > 0 && count * 64 >= all
        });
        let limit = furthest.map_or(0, |scale| end_of(scale) + end_of(scale) / 4);
        self.limit = self.limit.max(limit.min(MAX_DISTANCE));
        // The slowest copies may not have been seen yet. A tap that sees both sides sees the NAKs as well.
        let [numbered, plain, _] = &self.counts;
        let sees_both = [numbered, plain].iter().any(|counts| counts.is_even(3, 3));
        self.limit_without_cause = if sees_both { MAX_DISTANCE } else { self.limit };
    }
}

/// Slots for hosts, and for pairs of them; two in one slot count as one.
const SLOTS: usize = 256;

/// All taps.
#[derive(Clone, Debug)]
pub(super) struct Mirrors {
    taps: Vec<Tap>,
    samples: Box<[Sample; MAX_SAMPLES]>,
    /// Bits that a sample's tag has not.
    left_out: u32,
    /// The latest IPv4 identification of samples, by queue pair.
    ids: Box<[u16; SLOTS]>,
    /// Time of the last NAK, by pair of hosts.
    refused: Box<[u64; SLOTS]>,
}

impl Default for Mirrors {
    fn default() -> Self {
        Self {
            taps: Vec::new(),
            samples: Box::new([Sample::default(); MAX_SAMPLES]),
            left_out: LEFT_OUT,
            ids: Box::new([0; SLOTS]),
            refused: Box::new([0; SLOTS]),
        }
    }
}

/// The slot of a packet's queue pair.
fn queue_pair(packet: &Packet) -> usize {
    let [.., low] = packet.roce.source.octets();
    usize::from(packet.roce.bth.0[7] ^ low.wrapping_mul(31))
}

/// The slot of a packet's hosts, whichever of them sent it.
fn hosts(packet: &Packet) -> usize {
    let ([.., one], [.., other]) = (packet.roce.source.octets(), packet.roce.destination.octets());
    usize::from(one ^ other) ^ usize::from(one.wrapping_add(*other)).wrapping_mul(29) & (SLOTS - 1)
}

/// Congestion notifications for one queue pair are alike: that one follows another says nothing.
#[inline]
fn is_alike_by_nature(packet: &Packet) -> bool {
    packet.roce.payload_bytes == 0 && packet.roce.bth.opcode().is_cnp()
}

/// A READ request or a response to one: what a requester may ask for again without a NAK.
#[inline]
fn is_read(packet: &Packet) -> bool {
    let opcode = packet.roce.bth.opcode();
    opcode.is_read_response() || opcode.operation() == Operation::ReadRequest
}

/// A NAK or an RNR NAK, by the syndrome of its AETH (IBTA 9.7.5.2.1): bits 6 and 5. Packets of MRC have a hash in its place, and a requestor of
/// MRC never sends the same bytes again.
#[inline]
fn is_refusal(packet: &Packet) -> bool {
    packet.roce.aeth.0[0] & 0x60 != 0 && !mrc::may_be(packet.roce.bth.0[0])
}

impl Mirrors {
    /// Every packet can be a sample, as long as there is room.
    pub(super) fn sample_all(&mut self) {
        self.left_out = 0;
    }

    /// A tap is known to show packets twice.
    pub(super) fn has_any(&self) -> bool {
        self.taps.iter().any(|tap| tap.limit > 0)
    }

    /// A packet that was not seen before: not within [`MAX_DISTANCE`].
    #[inline]
    pub(super) fn first(&mut self, tag: u32, packet: &Packet) {
        if is_refusal(packet) {
            self.refused[hosts(packet)] = packet.time.0;
        }
        if tag & self.left_out == 0 {
            self.sample(tag, packet);
        }
    }

    #[inline(never)]
    fn sample(&mut self, tag: u32, packet: &Packet) {
        if is_alike_by_nature(packet) {
            return;
        }
        let place = tag as usize % MAX_SAMPLES;
        let old = self.samples[place];
        if old.is_live {
            if packet.time.since(Time(old.time)).0 < MAX_WAIT {
                return;
            }
            self.decide(&old);
        }
        let roce = &packet.roce;
        let id = core::mem::replace(&mut self.ids[queue_pair(packet)], roce.ip_id);
        self.samples[place] = Sample {
            time: packet.time.0,
            tag,
            tap: packet.tap.0,
            class: if id != 0 && roce.ip_id != 0 && id != roce.ip_id {
                Class::Numbered
            } else if is_read(packet) {
                Class::Read
            } else {
                Class::Plain
            },
            side: u8::from(roce.source > roce.destination),
            is_live: true,
            ..Sample::default()
        };
    }

    /// Counts a sample whose result is known.
    fn decide(&mut self, sample: &Sample) {
        if sample.is_explained {
            return;
        }
        let tap = sample.tap as usize;
        if self.taps.len() <= tap {
            self.taps.resize(tap + 1, Tap::default());
        }
        let Some(tap) = self.taps.get_mut(tap) else {
            return;
        };
        tap.add(sample);
        if tap.samples % SAMPLES_PER_LOOK == 0 {
            tap.look();
        }
    }

    /// Handles a packet that was seen `distance` before on the same path; true if it is a copy as the
    /// tap makes them.
    pub(super) fn second(&mut self, tag: u32, packet: &Packet, distance: u64) -> bool {
        let is_refused = self.again(tag, packet, distance);
        let Some(tap) = self.taps.get(packet.tap.0 as usize).filter(|tap| tap.limit > 0) else {
            return false;
        };
        let has_cause = is_refused || is_read(packet);
        distance
            <= if has_cause {
                tap.limit
            } else {
                tap.limit_without_cause
            }
    }

    /// A packet that was seen twice before.
    pub(super) fn third(&mut self, tag: u32, packet: &Packet) {
        self.again(tag, packet, MAX_DISTANCE);
    }

    /// Counts a packet that was seen before; true if there was a NAK between its hosts a short time ago.
    fn again(&mut self, tag: u32, packet: &Packet, distance: u64) -> bool {
        let time = packet.time;
        let since_refusal = time.since(Time(self.refused[hosts(packet)])).0;
        if is_refusal(packet) {
            self.refused[hosts(packet)] = time.0;
        }
        let sample = &mut self.samples[tag as usize % MAX_SAMPLES];
        let is_refused = since_refusal < REFUSED;
        let is_it = sample.is_live && sample.tag == tag && sample.tap == packet.tap.0;
        if !is_it || is_alike_by_nature(packet) || time.since(Time(sample.time)).0 >= MAX_WAIT {
            return is_refused;
        }
        if sample.again == 0 {
            sample.distance = u16::try_from(distance).unwrap_or(u16::MAX);
        }
        sample.again = sample.again.saturating_add(1);
        sample.is_explained |= sample.class != Class::Numbered && is_refused;
        is_refused
    }

    /// All packets there are for now have been looked at, the last one at `time`: what few packets show counts, too.
    pub(super) fn conclude(&mut self, time: Time) {
        let samples = self.samples.clone();
        let waiting = || samples.iter().filter(|sample| sample.is_live);
        let furthest = waiting()
            .filter(|sample| sample.again > 0)
            .map(|sample| sample.distance);
        let furthest = u64::from(furthest.max().unwrap_or(0)) << TIME_SHIFT;
        for sample in waiting() {
            if time.since(Time(sample.time)).0 >= furthest {
                self.decide(sample);
            }
        }
        for tap in &mut self.taps {
            if tap.shows_twice() || tap.shows_all_twice() {
                tap.learn();
            }
            *tap = Tap {
                limit: tap.limit,
                limit_without_cause: tap.limit_without_cause,
                ..Tap::default()
            };
        }
        *self = Self {
            taps: core::mem::take(&mut self.taps),
            ..Self::default()
        };
    }
}

#[cfg(test)]
mod tests;
