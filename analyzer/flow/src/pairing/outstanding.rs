//! Ack-requested packets by their hosts and PSN, so that an answer finds the flows that may have requested it. What
//! follows from one or several finds is left to `pairing`.

use roce_model::Time;
use roce_wire::Psn;

use crate::hash::fold;
use crate::key::FlowSlot;

/// A flow by its place, and a number that no later flow, and no later epoch, at that place has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Handle {
    pub(crate) at: FlowSlot,
    /// Never 0.
    pub(crate) serial: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    /// The upper half of the hash of hosts and PSN.
    tag: u32,
    /// 31 bits of a flow's slot; the highest one says that a request with the same tag was forgotten here.
    at: u32,
    /// 0: empty.
    serial: u32,
    /// In units of 1024 ns.
    time: u32,
}

/// Slots are counted in 31 bits.
const CROWDED: u32 = 1 << 31;
const SETS: usize = 1 << 14;
const TIME_SHIFT: u32 = 10;
/// Limit of the wait for an answer, a second: longer than any queue holds it, and than the usual
/// timeouts (67 ms by default). A longer memory would find more ties, a shorter one would miss them.
const WINDOW: u32 = 1_000_000_000 >> TIME_SHIFT;

/// Ack-requested packets of the last second: 65,536 of them in sets of four.
#[derive(Debug)]
pub(crate) struct OutstandingPackets {
    sets: Box<[[Entry; 4]]>,
}

/// Flows that requested an answer with one PSN.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Askers {
    requested: [(Handle, Time); 4],
    count: usize,
    /// There were more of them.
    pub(crate) crowded: bool,
}

impl Askers {
    /// The flows, and the times of their requests.
    pub(crate) fn list(&self) -> &[(Handle, Time)] {
        &self.requested[..self.count]
    }
}

impl Default for OutstandingPackets {
    fn default() -> Self {
        Self {
            sets: vec![[Entry::default(); 4]; SETS].into_boxed_slice(),
        }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "parts of a hash")]
fn place(pair: u64, psn: Psn) -> (usize, u32) {
    let hash = fold(
        pair ^ u64::from(psn.value()) ^ 0x9e37_79b9_7f4a_7c15,
        pair.rotate_left(32) ^ 0xd1b5_4a32_d192_ed03,
    );
    (hash as usize & (SETS - 1), (hash >> 32) as u32)
}

#[expect(clippy::cast_possible_truncation, reason = "times are compared modulo 2^32")]
fn tick(time: Time) -> u32 {
    (time.0 >> TIME_SHIFT) as u32
}

impl OutstandingPackets {
    /// The flow `asker`, whose hosts have the hash `pair`, requests an answer to `psn`.
    pub(crate) fn note(&mut self, pair: u64, psn: Psn, asker: Handle, time: Time) {
        let (set, tag) = place(pair, psn);
        let set = &mut self.sets[set];
        let now = tick(time);
        let age = |entry: &Entry| now.wrapping_sub(entry.time);
        let is_same = |entry: &Entry| entry.serial != 0 && entry.tag == tag && age(entry) <= WINDOW;
        let mut crowded = set
            .iter()
            .filter(|entry| is_same(entry))
            .fold(0, |bits, entry| bits | entry.at & CROWDED);
        let own = set
            .iter()
            .position(|entry| is_same(entry) && entry.serial == asker.serial);
        let at = own.unwrap_or_else(|| {
            let oldest = |at: &usize| {
                let entry = &set[*at];
                if entry.serial == 0 { u32::MAX } else { age(entry) }
            };
            let oldest = (0..set.len()).max_by_key(oldest).unwrap_or_default();
            if is_same(&set[oldest]) {
                crowded = CROWDED;
            }
            oldest
        });
        set[at] = Entry {
            tag,
            at: asker.at.bits() | crowded,
            serial: asker.serial,
            time: now,
        };
    }

    /// The flows that requested an answer to `psn` in the direction whose hosts have the hash `pair`, within the last second.
    pub(crate) fn find(&self, pair: u64, psn: Psn, time: Time) -> Askers {
        let (set, tag) = place(pair, psn);
        let now = tick(time);
        let mut askers = Askers::default();
        for entry in &self.sets[set] {
            let age = now.wrapping_sub(entry.time);
            if entry.serial == 0 || entry.tag != tag || age > WINDOW {
                continue;
            }
            let handle = Handle {
                at: FlowSlot::from_bits(entry.at & !CROWDED),
                serial: entry.serial,
            };
            let requested = Time(time.0.saturating_sub(u64::from(age) << TIME_SHIFT));
            askers.requested[askers.count] = (handle, requested);
            askers.count += 1;
            askers.crowded |= entry.at & CROWDED != 0;
        }
        askers
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::slot;
    use roce_model::Span;

    fn handle(number: u32) -> Handle {
        Handle {
            at: slot(number),
            serial: number + 100,
        }
    }

    fn places(askers: &Askers) -> Vec<u32> {
        let mut places: Vec<u32> = askers.list().iter().map(|(handle, _)| handle.at.bits()).collect();
        places.sort_unstable();
        places
    }

    #[test]
    fn askers_are_found_by_hosts_and_psn_for_a_second() {
        let mut outstanding = OutstandingPackets::default();
        let begin = Time(5_000 * Span::SECOND.0);
        outstanding.note(1, Psn::new(7), handle(3), begin);
        assert_eq!(places(&outstanding.find(1, Psn::new(7), begin)), [3]);
        assert!(outstanding.find(1, Psn::new(8), begin).list().is_empty());
        assert!(outstanding.find(2, Psn::new(7), begin).list().is_empty());
        let later = |ns| Time(begin.0 + ns);
        assert_eq!(places(&outstanding.find(1, Psn::new(7), later(999_000_000))), [3]);
        assert!(
            outstanding
                .find(1, Psn::new(7), later(1_002_000_000))
                .list()
                .is_empty()
        );
        // A repeated request is remembered once, from the repetition on.
        outstanding.note(1, Psn::new(7), handle(3), later(900_000_000));
        let found = outstanding.find(1, Psn::new(7), later(1_002_000_000));
        assert_eq!(places(&found), [3]);
        // Within a unit of time of when it was.
        assert!(found.list()[0].1.0.abs_diff(later(900_000_000).0) <= 2 << TIME_SHIFT);
    }

    #[test]
    fn the_fifth_asker_makes_a_crowd() {
        let mut outstanding = OutstandingPackets::default();
        let time = Time(Span::SECOND.0);
        for number in 0..4 {
            outstanding.note(1, Psn::new(0), handle(number), time);
        }
        let found = outstanding.find(1, Psn::new(0), time);
        assert_eq!((places(&found), found.crowded), (vec![0, 1, 2, 3], false));
        outstanding.note(1, Psn::new(0), handle(4), time);
        let found = outstanding.find(1, Psn::new(0), time);
        assert_eq!((found.list().len(), found.crowded), (4, true));
        // A second later one of them sends the request again: the others are gone, and the crowd with
        // them.
        let later = Time(3 * Span::SECOND.0);
        outstanding.note(1, Psn::new(0), handle(2), later);
        let found = outstanding.find(1, Psn::new(0), later);
        assert_eq!((places(&found), found.crowded), (vec![2], false));
    }
}
