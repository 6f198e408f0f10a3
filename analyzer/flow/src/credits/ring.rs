//! The ring of a connection at one tap: which WRITEs go to its slots, their numbers, and which data belong to them.
//!
//! A connection is one ring, whichever queue pairs carry its credits: devices take turns, and after a failure another queue pair
//! goes on. Where credits say their number, it names the slot; else the slots are counted along the PSNs.

use std::collections::{BTreeMap, VecDeque};

use roce_model::{Time, WriteTarget};
use roce_wire::Psn;

use super::layout::{LAYOUTS, Layout, LayoutSet, Tag, releases};
use super::message::{TapMessage, TapTimes};
use crate::division::OfferedCredit;

/// Flows that carry credits of one connection, at most: devices of a merged adapter, and as many after a failure. Others are
/// not followed.
const MAX_FLOWS: usize = 8;
/// Messages of a connection that is not confirmed, at most; older ones are forgotten.
const MAX_UNCONFIRMED: usize = 64;
/// Buffers whose latest credit is remembered: no ring has more slots.
const MAX_BUFFERS: u64 = 256;
/// Number of the first credit where credits say none.
const START: u64 = 1 << 20;
/// Matches by address that prove a connection: one may be chance, where buffers are used in turn.
const PROOF: u32 = 2;
/// Credits in the slots that their PSNs or numbers say, after which a ring is one although the addresses in it were not captured.
const CUT_PROOF: u32 = 16;
/// How far data of several queue pairs overtake each other, in messages. Data for an older credit are for a newer one whose
/// record is missing: buffers are used again after four messages at the earliest.
const MAX_OVERTAKING: u64 = 2;
/// How far data may be behind those of another queue pair if they were sent again, or if nothing is missing on their own: no message
/// has its buffer's next credit before it has come, and there are eight buffers at most (NCCL's `NCCL_STEPS`, `src/include/device.h`).
const MAX_RECOVERING: u64 = 7;
/// Share of credits that fit, of which one of so many may not.
const ONE_IN: u32 = 50;

/// A WRITE that may be a credit.
#[derive(Clone, Copy, Debug)]
pub(super) struct PossibleCredit<'a> {
    /// The flow that carries it.
    pub(super) flow: u32,
    pub(super) address: u64,
    pub(super) length: u32,
    pub(super) payload: &'a [u8],
    pub(super) psn: Psn,
    pub(super) time: Time,
    /// It was sent again.
    pub(super) is_again: bool,
}

/// One connection at one tap.
#[derive(Clone, Debug)]
pub(super) struct CreditRing {
    /// Flows that carry its credits.
    pub(super) flows: Vec<u32>,
    /// Flows that carry its data.
    pub(super) data: Vec<u32>,
    /// Layouts that no credit has contradicted, a bit for each.
    layouts: LayoutSet,
    /// Addresses of its slots, as far as they were written.
    pub(super) low: u64,
    pub(super) high: u64,
    newest: NewestCredit,
    /// Number of its first credit by each layout.
    firsts: [u64; LAYOUTS.len()],
    fits: u32,
    misfits: u32,
    hits: u32,
    tag: Option<Tag>,
    /// Number of the latest credit for each buffer.
    buffers: BTreeMap<u64, u64>,
    pub(super) messages: VecDeque<TapMessage>,
    /// The highest number that data came for.
    used: Option<u64>,
    /// Messages that were forgotten.
    pub(super) forgotten: u64,
    /// Data before the first credit.
    pub(super) early: u64,
    /// Immediates, and those among them that are the length in little and in big endian order.
    immediates: [u32; 3],
    has_immediates: bool,
}

#[derive(Clone, Copy, Debug)]
struct NewestCredit {
    flow: u32,
    address: u64,
    number: u64,
    psn: Psn,
}

impl CreditRing {
    /// A ring whose first credit is this; `None` if it is like no credit.
    pub(super) fn begin(credit: &PossibleCredit<'_>) -> Option<Self> {
        let fitting = |place: &usize| LAYOUTS[*place].fits(credit.length, credit.payload);
        let places: Vec<usize> = (0..LAYOUTS.len()).filter(fitting).collect();
        let firsts = LAYOUTS.map(|layout| layout.number(credit.payload));
        let number = places.iter().find_map(|place| firsts[*place]).unwrap_or(START);
        let firsts = firsts.map(|said| said.unwrap_or(START));
        let mut ring = Self {
            flows: vec![credit.flow],
            data: Vec::new(),
            layouts: places.iter().fold(0, |set, place| set | 1 << place),
            low: credit.address,
            high: credit.address,
            newest: NewestCredit {
                flow: credit.flow,
                address: credit.address,
                number,
                psn: credit.psn,
            },
            firsts,
            fits: 0,
            misfits: 0,
            hits: 0,
            tag: None,
            buffers: BTreeMap::new(),
            messages: VecDeque::new(),
            used: None,
            forgotten: 0,
            early: 0,
            immediates: [0; 3],
            has_immediates: false,
        };
        if ring.layouts == 0 {
            return None;
        }
        ring.add(number, credit);
        Some(ring)
    }

    /// Layouts that are still possible.
    fn places(&self) -> impl Iterator<Item = usize> + use<> {
        let set = self.layouts;
        (0..LAYOUTS.len()).filter(move |place| set >> place & 1 != 0)
    }

    /// The value that all layouts that are still possible give alike.
    fn agreed<T: PartialEq>(&self, said: impl Fn(&Layout) -> Option<T>) -> Option<T> {
        let mut all = self.places().map(|place| said(&LAYOUTS[place]));
        let first = all.next().flatten()?;
        all.all(|other| other.as_ref() == Some(&first)).then_some(first)
    }

    /// True if data prove that these are credits.
    pub(super) fn is_proven(&self) -> bool {
        self.hits >= PROOF && self.misfits * ONE_IN <= self.fits
    }

    /// True if its credits go from slot to slot, and their addresses were not captured: nothing shows which data belong to them.
    pub(super) fn is_cut(&self) -> bool {
        self.buffers.is_empty() && self.fits >= CUT_PROOF && self.misfits * ONE_IN <= self.fits
    }

    /// True if a second credit or data fit it.
    pub(super) fn has_grown(&self) -> bool {
        self.fits > 0 || self.hits > 0
    }

    /// Takes a WRITE as a credit of this ring; `false` if it is none.
    pub(super) fn take(&mut self, credit: &PossibleCredit<'_>) -> bool {
        let (mut layouts, mut number, mut says) = (0, None, false);
        for place in self.places() {
            let layout = &LAYOUTS[place];
            if let Some(found) = self.number_by(place, credit) {
                layouts |= 1 << place;
                let is_said = layout.number(credit.payload).is_some();
                if number.is_none() || is_said && !says {
                    (number, says) = (Some((found, place)), is_said);
                }
            }
        }
        let Some((number, place)) = number else {
            return false;
        };
        if !self.flows.contains(&credit.flow) {
            if self.flows.len() >= MAX_FLOWS {
                return false;
            }
            self.flows.push(credit.flow);
        }
        self.layouts = layouts;
        self.number_first(place);
        self.low = self.low.min(credit.address);
        self.high = self.high.max(credit.address);
        self.fits = self.fits.saturating_add(1);
        if number > self.newest.number {
            self.newest = NewestCredit {
                flow: credit.flow,
                address: credit.address,
                number,
                psn: credit.psn,
            };
        }
        self.add(number, credit);
        true
    }

    /// True if one credit alone was seen, and no data for it.
    fn is_first_alone(&self) -> bool {
        self.messages.len() == 1 && self.forgotten == 0 && self.hits == 0
    }

    /// A second credit shows which layout it is: the only one before it gets the number that it says there.
    fn number_first(&mut self, place: usize) {
        let number = self.firsts[place];
        if !self.is_first_alone() || number == self.newest.number {
            return;
        }
        if let Some(first) = self.messages.front_mut() {
            first.number = number;
            self.buffers.insert(first.buffer, number);
        }
        self.newest.number = number;
    }

    /// A WRITE of its flow that fits no ring.
    pub(super) fn misfit(&mut self) {
        self.misfits = self.misfits.saturating_add(1);
    }

    /// Number of a credit by one layout, if its address is the slot of that number.
    fn number_by(&self, place: usize, credit: &PossibleCredit<'_>) -> Option<u64> {
        let layout = &LAYOUTS[place];
        if !layout.fits(credit.length, credit.payload) {
            return None;
        }
        let (stride, slots) = (u64::from(layout.stride), i64::from(layout.slots));
        let (low, high) = (self.low.min(credit.address), self.high.max(credit.address));
        if high - low > stride * u64::from(layout.slots - 1) || !(high - low).is_multiple_of(stride) {
            return None;
        }
        let newest = &self.newest;
        let distance = i64::try_from(i128::from(credit.address) - i128::from(newest.address)).ok()?;
        let stride = i64::from(layout.stride);
        if distance % stride != 0 {
            return None;
        }
        let steps = (distance / stride).rem_euclid(slots);
        // Layouts of one length say different numbers: what the first credit is, the second one shows.
        let before = if self.is_first_alone() {
            self.firsts[place]
        } else {
            newest.number
        };
        if let Some(ahead) = layout.ahead(credit.payload, before) {
            let number = before.checked_add_signed(ahead)?;
            return (ahead.rem_euclid(slots) == steps).then_some(number);
        }
        if credit.flow != newest.flow {
            return None;
        }
        let ahead = i64::from(credit.psn.offset_from(newest.psn));
        let counted = if ahead.rem_euclid(slots) == steps {
            ahead
        } else if ahead > steps && steps > 0 {
            // Other connections share the queue pair.
            steps
        } else {
            return None;
        };
        before.checked_add_signed(counted)
    }

    /// Adds a credit, unless it was seen before: sent again, or posted again on another queue pair.
    fn add(&mut self, number: u64, credit: &PossibleCredit<'_>) {
        let at = self.messages.partition_point(|message| message.number < number);
        let is_known = self
            .messages
            .get(at)
            .is_some_and(|message| message.number == number);
        if is_known || at == 0 && self.forgotten > 0 {
            return;
        }
        let mut message = TapMessage::new(number, credit.psn);
        message.credit = TapTimes::at(credit.time, credit.is_again);
        message.size = self.agreed(|layout| layout.size(credit.payload));
        message.elements = self.agreed(|layout| layout.elements(credit.length)).unwrap_or(1);
        message.key = self.agreed(|layout| layout.key(credit.payload));
        let tag = self.agreed(|layout| layout.tag(credit.payload, credit.length));
        self.name(tag);
        if let Some(buffer) = Layout::buffer(credit.payload) {
            message.buffer = buffer;
            self.buffers.insert(buffer, number);
            self.forget_buffer(number);
        }
        self.messages.insert(at, message);
        if !self.is_proven() && self.messages.len() > MAX_UNCONFIRMED {
            self.forget_oldest();
        }
    }

    fn name(&mut self, tag: Option<Tag>) {
        let Some(tag) = tag else { return };
        self.tag = Some(match self.tag {
            Some(before) if before != tag => Tag::Several,
            _ => tag,
        });
    }

    /// The credit so many before `number` is used or lost.
    fn forget_buffer(&mut self, number: u64) {
        let Some(old) = number.checked_sub(MAX_BUFFERS) else {
            return;
        };
        let Some(message) = self.find(old) else { return };
        let buffer = message.buffer;
        if self.buffers.get(&buffer) == Some(&old) {
            self.buffers.remove(&buffer);
        }
    }

    /// Forgets the oldest message.
    pub(super) fn forget_oldest(&mut self) {
        if let Some(message) = self.messages.pop_front() {
            self.forgotten += 1;
            if self.buffers.get(&message.buffer) == Some(&message.number) {
                self.buffers.remove(&message.buffer);
            }
        }
    }

    fn place_of(&self, number: u64) -> Option<usize> {
        let at = self.messages.partition_point(|message| message.number < number);
        self.messages.get(at).filter(|message| message.number == number)?;
        Some(at)
    }

    fn find(&self, number: u64) -> Option<&TapMessage> {
        self.messages.get(self.place_of(number)?)
    }

    /// The credit of a message.
    pub(super) fn offered(&self, number: u64) -> Option<OfferedCredit> {
        let time = self.find(number)?.credit.first;
        let is_newest = number + 1 >= self.newest.number;
        Some(OfferedCredit { time, is_newest })
    }

    /// A message, to change it.
    pub(super) fn find_mut(&mut self, number: u64) -> Option<&mut TapMessage> {
        let at = self.place_of(number)?;
        self.messages.get_mut(at)
    }

    /// The credit that data to an address came for. `before` is the message that their queue pair carried right before, `is_again`: they were
    /// sent again.
    pub(super) fn credit_for(
        &self,
        target: WriteTarget,
        (before, is_again): (Option<u64>, bool),
    ) -> Option<u64> {
        let WriteTarget { address, key, length } = target;
        let (_, number) = self.buffers.range(..=address).next_back()?;
        let most = if is_again || before.is_some_and(|before| before < *number) {
            MAX_RECOVERING
        } else {
            MAX_OVERTAKING
        };
        let is_overtaken = |used: u64| used.saturating_sub(*number) > most;
        if self.used.is_some_and(is_overtaken) {
            return None;
        }
        self.find(*number)?.takes(address, key, length).then_some(*number)
    }

    /// Data of a flow began for a credit.
    pub(super) fn begins(&mut self, number: u64, flow: u32) {
        self.hits = self.hits.saturating_add(1);
        self.used = self.used.max(Some(number));
        if !self.data.contains(&flow) && self.data.len() < 2 * MAX_FLOWS {
            self.data.push(flow);
        }
        if let Some(message) = self.find_mut(number) {
            message.begun = message.begun.saturating_add(1);
        }
    }

    /// The immediate of a message of `bytes` bytes.
    pub(super) fn immediate(&mut self, immediate: u32, bytes: u64) {
        // A length that reads alike in both orders tells nothing.
        if immediate.swap_bytes() != immediate {
            let is_length = [
                true,
                u64::from(immediate.swap_bytes()) == bytes,
                u64::from(immediate) == bytes,
            ];
            for (count, is_so) in self.immediates.iter_mut().zip(is_length) {
                *count = count.saturating_add(u32::from(is_so));
            }
        }
    }

    /// True if credits say their numbers, which are the same at each tap.
    pub(super) fn says_numbers(&self) -> bool {
        self.newest.number < START && self.hits > 0
            || self.messages.iter().any(|message| message.number < START)
    }

    /// Pieces of most messages: queue pairs that share each one.
    pub(super) fn pieces(&self) -> u8 {
        let mut counts = [0_u32; 256];
        for message in &self.messages {
            counts[usize::from(message.begun)] += 1;
        }
        let most = (1..=u8::MAX)
            .rev()
            .max_by_key(|pieces| counts[usize::from(*pieces)]);
        most.unwrap_or(1)
    }

    /// The highest number that data came for.
    pub(super) fn used(&self) -> Option<u64> {
        self.used
    }

    /// True if its messages end with immediates.
    pub(super) fn has_immediates(&self) -> bool {
        self.has_immediates
    }

    /// A message ends with an immediate.
    pub(super) fn close(&mut self, number: u64) {
        self.has_immediates = true;
        if let Some(message) = self.find_mut(number) {
            message.closed = message.closed.saturating_add(1);
        }
    }

    /// Rank that the credits name as the sender of the data.
    pub(super) fn rank(&self) -> Option<u32> {
        match self.tag? {
            Tag::Rank(rank) => Some(rank),
            Tag::Several => None,
        }
    }

    /// Releases of NCCL whose credits are so. Immediates that are no lengths are numbers, which 2.29 brought.
    pub(super) fn releases(&self) -> Option<&'static str> {
        let [all, little, big] = self.immediates;
        let is_big_endian = (all > 0).then_some(big >= little || little <= all / 2);
        releases(self.layouts, is_big_endian)
    }
}
