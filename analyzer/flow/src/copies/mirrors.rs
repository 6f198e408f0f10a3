//! Taps that show every packet twice, as a mirror of both directions of a port does, or one of two ports: learned from all
//! packets of a tap.
//!
//! A sender that repeats a window (go-back-N) and numbers no packets makes data look doubled for a while, but not the answers to
//! them; and a network that makes duplicates makes few. So a tap is doubled when nearly all of its data come twice within
//! 131 us, and nearly all packets without data as well, and hardly any more than twice.

use roce_model::{Packet, TapId};

/// First sightings after which a tap is looked at.
const WINDOW: u32 = 256;
/// Windows in a row that make a tap known in the middle of a capture: some hundred packets. A sender that falls back does not go on
/// for so long.
const ENOUGH_WINDOWS: u32 = 2;
/// Packets without payload in a window that are enough to ask them, too.
const FEW_ANSWERS: u32 = 8;
/// Packets of a tap from which on it is said of a whole short capture what it shows.
const FEWEST: u32 = 4;
/// The distances of copies are kept as powers of two of [`super::TIME_SHIFT`]'s unit: 2^14 of them are 1 ms.
const SCALES: usize = 15;

/// Copies are this close, in units of 64 ns, 131 us: farther than any switch is from itself. Retransmissions may be closer.
const FURTHEST: u64 = 1 << 11;
/// Of a hundred packets of each kind so many come twice at a tap that shows everything twice: mirrors drop some.
const NEARLY_ALL: u32 = 80;

/// Of a hundred packets so many come twice at a tap where hardly any copy is missing.
const ALL: u32 = 93;

/// What a tap showed since it was looked at last; data first, then packets without payload.
#[derive(Clone, Copy, Debug)]
struct Tap {
    /// First sightings until it is looked at.
    left: u32,
    firsts: [u32; 2],
    seconds: [u32; 2],
    /// Packets that came more than twice.
    thirds: u32,
    /// Windows in a row in which it showed nearly everything twice, and whether one was different.
    in_a_row: u32,
    failed: bool,
    /// Second sightings right after a first one of the same queue pair.
    turns: u32,
    /// Second sightings by how far they were behind the first: the power of two above that.
    distances: [u16; SCALES],
    /// Second sightings up to this distance are copies; 0: the tap is not known to show everything twice.
    limit: u64,
}

impl Default for Tap {
    fn default() -> Self {
        Self {
            left: WINDOW,
            firsts: [0; 2],
            seconds: [0; 2],
            thirds: 0,
            in_a_row: 0,
            failed: false,
            turns: 0,
            distances: [0; SCALES],
            limit: 0,
        }
    }
}

/// Queue pairs whose latest packet is remembered: as first sighting or as a second one. Two of a slot look like one.
const SLOTS: usize = 256;

/// All taps.
#[derive(Clone, Debug)]
pub(super) struct Mirrors {
    taps: Vec<Tap>,
    /// By queue pair: whether its latest packet was a second sighting.
    seconds: [bool; SLOTS],
    /// Queue pairs of which that is true.
    seconds_set: u32,
}

impl Default for Mirrors {
    fn default() -> Self {
        Self {
            taps: Vec::new(),
            seconds: [false; SLOTS],
            seconds_set: 0,
        }
    }
}

/// The slot of a packet's queue pair.
#[inline]
fn slot(packet: &Packet) -> usize {
    let [.., low] = packet.roce.source.octets();
    usize::from(packet.roce.bth.0[7] ^ low.wrapping_mul(31))
}

/// Data are counted first, everything else second.
#[inline]
fn kind(packet: &Packet) -> usize {
    usize::from(packet.roce.payload_bytes == 0)
}

/// Congestion notifications for one queue pair are alike: that one follows another says nothing.
#[inline]
fn is_alike_by_nature(packet: &Packet) -> bool {
    packet.roce.payload_bytes == 0 && packet.roce.bth.opcode().is_cnp()
}

impl Mirrors {
    fn tap(&mut self, tap: TapId) -> Option<&mut Tap> {
        let tap = tap.0 as usize;
        if self.taps.len() <= tap {
            self.taps.resize(tap + 1, Tap::default());
        }
        self.taps.get_mut(tap)
    }

    /// A packet that was not seen in the last millisecond.
    #[inline]
    pub(super) fn first(&mut self, packet: &Packet) {
        if is_alike_by_nature(packet) {
            return;
        }
        let Some(tap) = self.taps.get_mut(packet.tap.0 as usize) else {
            return self.first_of_tap(packet);
        };
        tap.firsts[kind(packet)] += 1;
        tap.left -= 1;
        if tap.left == 0 {
            tap.look();
        }
        // At most taps nothing comes twice.
        if self.seconds_set > 0 {
            self.note_first(packet);
        }
    }

    /// The latest packet of the queue pair is a first sighting.
    #[inline(never)]
    fn note_first(&mut self, packet: &Packet) {
        let was_second = core::mem::take(&mut self.seconds[slot(packet)]);
        self.seconds_set -= u32::from(was_second);
    }

    #[cold]
    fn first_of_tap(&mut self, packet: &Packet) {
        if let Some(tap) = self.tap(packet.tap) {
            tap.firsts[kind(packet)] += 1;
            tap.left -= 1;
        }
    }

    /// A packet that was seen `distance` before by the same way; whether it is a copy as all of the tap's packets have one.
    pub(super) fn second(&mut self, packet: &Packet, distance: u64) -> bool {
        let was_second = &mut self.seconds[slot(packet)];
        let Some(tap) = self.taps.get_mut(packet.tap.0 as usize) else {
            return false;
        };
        if is_alike_by_nature(packet) {
            return distance <= tap.limit;
        }
        if distance > FURTHEST {
            return false;
        }
        tap.seconds[kind(packet)] += 1;
        let is_turn = !core::mem::replace(was_second, true);
        tap.turns += u32::from(is_turn);
        self.seconds_set += u32::from(is_turn);
        let scale = (u64::BITS - distance.leading_zeros()) as usize;
        let scale = scale.min(SCALES - 1);
        tap.distances[scale] = tap.distances[scale].saturating_add(1);
        distance <= tap.limit
    }

    /// A packet that was seen twice before, within a millisecond.
    pub(super) fn third(&mut self, packet: &Packet) {
        if !is_alike_by_nature(packet)
            && let Some(tap) = self.tap(packet.tap)
        {
            tap.thirds += 1;
        }
    }

    /// All packets there are for now have been looked at: what few packets show counts, too.
    pub(super) fn conclude(&mut self) {
        for tap in &mut self.taps {
            let firsts = tap.firsts[0] + tap.firsts[1];
            let all_twice = firsts >= FEWEST
                && tap.firsts == tap.seconds
                && (tap.turns * 4 >= tap.seconds[0] + tap.seconds[1] || tap.is_exact());
            let is_short = tap.in_a_row == 0 && !tap.failed;
            let looked =
                firsts >= WINDOW / 2 && tap.is_doubled() && (is_short || tap.in_a_row >= ENOUGH_WINDOWS / 2);
            if tap.limit == 0 && (all_twice || looked) {
                tap.learn();
            }
            *tap = Tap {
                limit: tap.limit,
                ..Tap::default()
            };
        }
    }
}

impl Tap {
    /// Whether so much comes twice, and nothing more often.
    fn is_doubled(&self) -> bool {
        let [data, rest] = self.firsts;
        let [data_again, rest_again] = self.seconds;
        let reaches = |again: u32, of: u32, share: u32| again * 100 >= of * share && again <= of + of / 4 + 2;
        if self.thirds * 4 > data_again + rest_again {
            // A sender that repeats itself does so more than once.
            return false;
        }
        if self.turns * 4 < data_again + rest_again && !self.is_exact() {
            // Copies come between the packets that follow on their originals. A sender falls back, and repeats many in a row.
            return false;
        }
        if rest < FEW_ANSWERS {
            return reaches(data_again, data, 90);
        }
        if data < FEW_ANSWERS {
            return reaches(rest_again, rest, 90);
        }
        reaches(data_again, data, NEARLY_ALL) && reaches(rest_again, rest, NEARLY_ALL)
    }

    /// Whether nearly nothing comes once or more than twice, and all copies at one distance: so do those of bursts, which come one
    /// burst after the other.
    fn is_exact(&self) -> bool {
        let again: u32 = self.seconds.iter().sum();
        let all: u32 = self.distances.iter().map(|count| u32::from(*count)).sum();
        let together = self
            .distances
            .windows(2)
            .map(|pair| u32::from(pair[0]) + u32::from(pair[1]));
        let is_at_one_distance = together.max().unwrap_or(0) * 100 >= all * ALL;
        let is_twice = |kind: usize| self.seconds[kind] * 100 >= self.firsts[kind] * ALL;
        self.thirds * 20 <= again && is_at_one_distance && is_twice(0) && is_twice(1)
    }

    #[cold]
    fn look(&mut self) {
        if self.is_doubled() {
            self.in_a_row += 1;
            if self.limit > 0 || self.in_a_row >= ENOUGH_WINDOWS {
                self.learn();
            }
        } else {
            self.in_a_row = 0;
            self.failed = true;
            let [data, rest] = self.seconds;
            if (data + rest) * 2 < self.firsts[0] + self.firsts[1] {
                // It does not any more, or never did.
                self.limit = 0;
            }
        }
        // Copies that are still to come are behind packets of this window: half of it is kept.
        self.firsts = self.firsts.map(|count| count / 2);
        self.left = WINDOW / 2;
        self.seconds = self.seconds.map(|count| count / 2);
        self.thirds /= 2;
        self.turns /= 2;
        self.distances = self.distances.map(|count| count / 2);
    }

    /// Copies come within twice the distance of nearly all of them.
    fn learn(&mut self) {
        let all: u64 = self.distances.iter().map(|count| u64::from(*count)).sum();
        let furthest = (0..SCALES).rev().find(|scale| {
            let count = u64::from(self.distances[*scale]);
            count > 0 && count * 32 >= all
        });
        let limit = furthest.map_or(0, |scale| 2 << scale);
        self.limit = limit.max(self.limit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(payload_bytes: u32) -> Packet {
        let mut packet = Packet::default();
        packet.roce.payload_bytes = payload_bytes;
        packet
    }

    #[test]
    fn a_tap_that_doubles_data_and_answers_is_known_after_some_windows() {
        let (data, answer) = (packet(1024), packet(0));
        let mut mirrors = Mirrors::default();
        for n in 0..600 {
            let packet = if n % 4 == 3 { &answer } else { &data };
            mirrors.first(packet);
            // 47 units of 64 ns are 3 us.
            // The 256th first sighting ends the first window, and the 128th after it another one: 256 + 128 are 384.
            assert_eq!(mirrors.second(packet, 47), n >= 383, "{n}");
        }
        // 47 lies below 64; twice that is as far as copies may be.
        assert!(mirrors.second(&data, 128));
        assert!(!mirrors.second(&data, 129));
    }

    #[test]
    fn data_sent_again_without_their_answers_are_no_copies() {
        let (data, answer) = (packet(1024), packet(0));
        let mut mirrors = Mirrors::default();
        for n in 0..1_000 {
            if n % 4 == 3 {
                mirrors.first(&answer);
                continue;
            }
            mirrors.first(&data);
            assert!(!mirrors.second(&data, 200), "each once more, with one answer");
        }
    }

    #[test]
    fn notifications_one_after_the_other_teach_nothing() {
        let (answer, mut cnp) = (packet(0), packet(0));
        cnp.roce.bth.0[0] = 0x81;
        let mut mirrors = Mirrors::default();
        for _ in 0..1_000 {
            mirrors.first(&answer);
            assert!(!mirrors.second(&cnp, 62), "as many as answers, 4 us apart");
        }
        // Where everything is doubled they are, too.
        for _ in 0..1_000 {
            mirrors.first(&answer);
            mirrors.second(&answer, 20);
        }
        assert!(mirrors.second(&cnp, 62));
    }

    #[test]
    fn what_comes_more_than_twice_was_sent_again() {
        let (data, answer) = (packet(1024), packet(0));
        let mut mirrors = Mirrors::default();
        for n in 0..1_000 {
            let packet = if n % 4 == 3 { &answer } else { &data };
            mirrors.first(packet);
            assert!(!mirrors.second(packet, 20));
            mirrors.third(packet);
        }
    }

    #[test]
    fn few_duplicates_are_no_copies() {
        let data = packet(1024);
        let mut mirrors = Mirrors::default();
        for n in 0..1_000 {
            mirrors.first(&data);
            if n % 20 == 0 {
                assert!(!mirrors.second(&data, 20), "5 % of them");
            }
        }
    }

    #[test]
    fn a_mirror_that_drops_every_tenth_copy_is_known_as_well() {
        let (data, answer) = (packet(1024), packet(0));
        let mut mirrors = Mirrors::default();
        let mut copies = 0;
        for n in 0..600 {
            let packet = if n % 5 == 0 { &answer } else { &data };
            mirrors.first(packet);
            if n % 11 != 0 {
                copies += u32::from(mirrors.second(packet, 20));
            }
        }
        assert!(copies >= 540 - 390, "{copies}");
    }

    #[test]
    fn a_short_capture_is_judged_as_a_whole() {
        for firsts in [3, 4, 20] {
            let mut mirrors = Mirrors::default();
            for _ in 0..firsts {
                mirrors.first(&packet(100));
                mirrors.second(&packet(100), 47);
            }
            mirrors.conclude();
            assert_eq!(mirrors.second(&packet(100), 47), firsts >= 4, "{firsts}");
        }
    }
}
