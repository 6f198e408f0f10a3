//! The records of one capture in the order of their stamps.
//!
//! A capturing host with several receive queues writes records out of order: the stamps are right, the places in the file are
//! not. So batches are held until nothing that belongs before their last frame can come, [`Sorter::WINDOW`] of the stamps
//! later. As long as batches come in order they pass as they are; frames that are not in order are sorted, and copied into
//! new batches. Leaves reading to `reader`.
//!
//! Records with one stamp, from several queues, have no order in the file. An answer may follow any
//! request of its stamp, so it is placed behind all of them.
//!
//! The recording of a live run passes as it is: its order is the one that the run has analysed, and a replay gives the run's results.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use bytes::Bytes;
use roce_model::{RecordingStart, Span, Time};
use roce_wire::{AethKind, Nak, Operation};

use crate::batch::Batch;
use crate::frame::{Frame, Interface, LostFrames, Note, place};

/// Counts of records out of order, and of those put in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SortCounts {
    /// Frames that followed one with a later stamp.
    pub frames: u64,
    /// The stamp of the first of them.
    pub first: Option<Time>,
    /// The furthest that one was behind the latest stamp before it, in nanoseconds.
    pub furthest_ns: u64,
    /// Those that came too late to be put in their place: further behind than the window of sorting, or than there was room for.
    pub too_late: u64,
}

/// A batch all of whose frames are in order, and behind all before it.
#[derive(Debug)]
struct HeldBatch {
    batch: Batch,
    last: Time,
    bytes: usize,
}

/// Kind of an item that is sorted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Kind {
    Lost,
    Note,
    Frame,
}

/// One of the things in a batch whose frames are not in order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Item {
    time: Time,
    /// True for an answer: it comes behind all other frames of its time.
    answers: bool,
    /// Number in the file, which orders frames of one time.
    number: u64,
    slot: usize,
    index: usize,
    kind: Kind,
}

/// A batch some of whose frames wait.
#[derive(Debug)]
struct Slot {
    batch: Batch,
    waiting: usize,
    bytes: usize,
}

/// Puts one capture in order.
#[derive(Debug)]
pub(crate) struct Sorter {
    most_bytes: usize,
    held: VecDeque<HeldBatch>,
    /// Comes before what is held.
    items: BinaryHeap<Reverse<Item>>,
    slots: Vec<Option<Slot>>,
    free: Vec<usize>,
    spent: Vec<Batch>,
    numbered: u64,
    /// Bytes of all batches.
    taken: usize,
    /// Frames and bytes that wait.
    frames: usize,
    bytes: usize,
    newest: Time,
    /// The latest stamp of a frame that was let go.
    gone: Time,
    sorting: SortCounts,
    /// The capture says that it is the recording of a live run.
    is_recording: bool,
}

/// Frames that wait, at most.
const MAX_FRAMES: usize = 1 << 18;
/// Bytes at the start of a capture over which frames wait for the whole window: a host with several receive queues shows them here.
const START_BYTES: usize = 16 << 20;
/// Limit of the waiting bytes behind the start of a capture in order: they should still be in the
/// processor's caches when they are emitted. At 10 Gbit/s they last 210 us.
const MAX_BYTES_IN_ORDER: usize = 256 << 10;
/// Bytes of frames in a batch that is made of others, as blocks have them.
const BATCH_BYTES: usize = 256 << 10;
/// The stamp of a record whose own does not fit: it has no place, and stays behind the record before it.
const NO_STAMP: Time = Time(u64::MAX);

impl Sorter {
    /// Frames are put in order over this much of their stamps: receive queues are emptied by interrupts and threads that wait for
    /// their turn, some 10 to 100 us as a rule.
    pub(crate) const WINDOW: Span = Span(1_000_000);

    /// A sorter that holds about `most_bytes` at most.
    pub(crate) fn new(most_bytes: usize) -> Self {
        Self {
            most_bytes,
            held: VecDeque::new(),
            items: BinaryHeap::new(),
            slots: Vec::new(),
            free: Vec::new(),
            spent: Vec::new(),
            numbered: 0,
            taken: 0,
            frames: 0,
            bytes: 0,
            newest: Time(0),
            gone: Time(0),
            sorting: SortCounts::default(),
            is_recording: false,
        }
    }

    /// Counts up to the last item.
    pub(crate) fn sorting(&self) -> SortCounts {
        self.sorting
    }

    /// The latest stamp of a frame that was let go.
    pub(crate) fn gone(&self) -> Time {
        self.gone
    }

    /// Takes the next batch; `in_order`: none of its frames steps back, nor does the first one against that before it.
    /// `interfaces`: those that the frames of this batch, and of all before it, came through.
    pub(crate) fn push(&mut self, batch: Batch, in_order: bool, interfaces: &[Interface]) {
        let bytes = batch.data.len();
        self.taken = self.taken.saturating_add(bytes);
        self.bytes += bytes;
        self.frames += batch.frames.len();
        let (first, last) = batch.frames.ends().unwrap_or((self.newest, self.newest));
        self.is_recording |= batch.notes.iter().any(|note| note.kind == RecordingStart::BLOCK);
        if self.is_recording || (in_order && first >= self.newest && last < NO_STAMP) {
            self.newest = last;
            self.held.push_back(HeldBatch { batch, last, bytes });
            return;
        }
        self.note_disorder(&batch);
        for held in std::mem::take(&mut self.held) {
            self.sort(held.batch, held.bytes, interfaces);
        }
        self.sort(batch, bytes, interfaces);
    }

    /// Counts the frames of the next batch that are out of order.
    fn note_disorder(&mut self, batch: &Batch) {
        for time in batch.frames.iter().map(|frame| frame.time) {
            if time == NO_STAMP {
                continue;
            }
            if time < self.newest {
                let behind = self.newest.0 - time.0;
                self.sorting.frames += 1;
                self.sorting.first.get_or_insert(time);
                self.sorting.furthest_ns = self.sorting.furthest_ns.max(behind);
            }
            self.newest = self.newest.max(time);
        }
    }

    /// Puts what is in a batch among what waits to be sorted.
    fn sort(&mut self, batch: Batch, bytes: usize, interfaces: &[Interface]) {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        // Items without a stamp keep their place.
        let mut last = (self.gone, false);
        let mut add = |(time, answers): (Time, bool), kind, index| {
            self.numbered += 1;
            self.items.push(Reverse(Item {
                time,
                answers,
                number: self.numbered,
                slot,
                index,
                kind,
            }));
        };
        let (mut losses, mut notes) = (0, 0);
        for at in 0..=batch.frames.len() {
            let frame = batch.frames.get(at);
            let stamped = frame.filter(|frame| frame.time != NO_STAMP);
            let placed = stamped.map_or(last, |frame| (frame.time, answers(&batch, frame, interfaces)));
            while batch
                .lost
                .get(losses)
                .is_some_and(|lost| lost.before as usize <= at)
            {
                add(placed, Kind::Lost, losses);
                losses += 1;
            }
            while batch
                .notes
                .get(notes)
                .is_some_and(|note| note.before as usize <= at)
            {
                add(placed, Kind::Note, notes);
                notes += 1;
            }
            if frame.is_none() {
                break;
            }
            add(placed, Kind::Frame, at);
            last = placed;
        }
        let waiting = batch.frames.len() + batch.lost.len() + batch.notes.len();
        let is_empty = waiting == 0;
        if let Some(place) = self.slots.get_mut(slot) {
            *place = Some(Slot {
                batch,
                waiting,
                bytes,
            });
        }
        if is_empty {
            self.release(slot);
        }
    }

    /// The next frames whose place is settled; all there are once the capture has `ended`.
    pub(crate) fn pop(&mut self, ended: bool) -> Option<Batch> {
        if !self.items.is_empty() {
            return self.pop_sorted(ended);
        }
        let front = self.held.front()?;
        let is_settled = front.last + Self::WINDOW <= self.newest;
        if !(is_settled || ended || self.is_recording || self.is_full()) {
            return None;
        }
        let HeldBatch { batch, last, bytes } = self.held.pop_front()?;
        self.bytes -= bytes;
        self.frames -= batch.frames.len();
        self.gone = self.gone.max(last);
        Some(batch)
    }

    fn is_full(&self) -> bool {
        let most_bytes = if self.sorting.frames == 0 && self.taken > START_BYTES {
            self.most_bytes.min(MAX_BYTES_IN_ORDER)
        } else {
            self.most_bytes
        };
        self.bytes > most_bytes || self.frames > MAX_FRAMES
    }

    fn pop_sorted(&mut self, ended: bool) -> Option<Batch> {
        let limit = self.newest - Self::WINDOW;
        let mut data = Vec::new();
        let (mut batch, mut frames) = (Batch::default(), Vec::new());
        while let Some(Reverse(item)) = self.items.peek().copied() {
            if !(item.time <= limit || ended || self.is_full()) || data.len() >= BATCH_BYTES {
                break;
            }
            self.items.pop();
            let Some(Slot { batch: of, .. }) = self.slots.get(item.slot).and_then(Option::as_ref) else {
                continue;
            };
            let before = place(frames.len());
            match item.kind {
                Kind::Frame => {
                    let Some(frame) = of.frames.get(item.index) else {
                        continue;
                    };
                    let offset = place(data.len());
                    data.extend_from_slice(of.bytes(frame));
                    frames.push(Frame { offset, ..*frame });
                    self.sorting.too_late += u64::from(item.time < self.gone);
                    self.gone = self.gone.max(item.time);
                    self.frames -= 1;
                }
                Kind::Lost => {
                    let lost = of.lost.get(item.index);
                    batch.lost.extend(lost.map(|lost| LostFrames { before, ..*lost }));
                }
                Kind::Note => {
                    let note = of.notes.get(item.index);
                    let offset = place(data.len());
                    data.extend_from_slice(note.map_or(&[], |note| of.note(note)));
                    batch.notes.extend(note.map(|note| Note {
                        before,
                        offset,
                        ..*note
                    }));
                }
            }
            self.release(item.slot);
        }
        if frames.is_empty() && batch.lost.is_empty() && batch.notes.is_empty() {
            return None;
        }
        (batch.data, batch.frames) = (Bytes::from(data), frames.into());
        Some(batch)
    }

    /// One thing of a batch does not wait any more.
    fn release(&mut self, at: usize) {
        let Some(place) = self.slots.get_mut(at) else {
            return;
        };
        let Some(slot) = place else { return };
        slot.waiting = slot.waiting.saturating_sub(1);
        if slot.waiting == 0 {
            self.bytes -= slot.bytes;
            self.spent.extend(place.take().map(|slot| slot.batch));
            self.free.push(at);
        }
    }

    /// Batches whose frames were copied.
    pub(crate) fn take_spent(&mut self) -> Vec<Batch> {
        std::mem::take(&mut self.spent)
    }
}

/// True if a frame answers a request that came before it; frames in tunnels are never examined. A NAK of
/// a PSN sequence error does not count, because the packet retransmitted for it may have the same stamp.
fn answers(batch: &Batch, frame: &Frame, interfaces: &[Interface]) -> bool {
    let Some(interface) = interfaces.get(frame.interface as usize) else {
        return false;
    };
    let fcs = u32::from(frame.fcs_bytes);
    let original = frame.original.max(frame.captured).saturating_sub(fcs);
    let bytes = batch.bytes(frame);
    let bytes = bytes.get(..original as usize).unwrap_or(bytes);
    let Some(roce) = roce_wire::fast::decode(interface.link, bytes, original) else {
        return false;
    };
    let opcode = roce.bth.opcode();
    match opcode.operation() {
        Operation::Acknowledge => roce.aeth.kind() != AethKind::Nak(Nak::PsnSequenceError),
        Operation::ReadResponse | Operation::AtomicAcknowledge => true,
        _ => opcode.is_cnp(),
    }
}

#[cfg(test)]
mod tests;
