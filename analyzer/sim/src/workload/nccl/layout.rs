//! Memory of a connection: the ring of credits at the sender, the buffers at the receiver; and what is written to it.

use crate::record::frame::{Credits, Payload};
use crate::scenario::{NcclRelease, Training};

/// Data longer than this is sent without immediate data where packets may take several paths (`NCCL_IB_AR_THRESHOLD`).
const ADAPTIVE_ABOVE: u64 = 8_192;
/// Pieces of a message that is cut over queue pairs are multiples of this, but for the last (`ncclIbMultiSend`).
const PIECE_UNIT: u64 = 128;

/// Addresses and keys of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LaneMemory {
    pub release: NcclRelease,
    /// Messages before the simulation.
    pub earlier: u64,
    /// Bytes of a buffer.
    pub slice: u64,
    pub buffers: u64,
    /// The senders' ranks.
    pub tags: [u16; Credits::MAX],
    pub senders: u8,
    ring: u64,
    ring_key: u32,
    data: u64,
    data_key: u32,
    records: u64,
}

/// A write of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct DataWrite {
    /// The queue pair, by its place in the connection.
    pub queue_pair: usize,
    pub address: u64,
    pub key: u32,
    pub bytes: u64,
    pub immediate: Option<u32>,
    /// It carries lengths or nothing; otherwise data.
    pub is_notice: bool,
}

impl LaneMemory {
    /// Memory of the connection that is number `at_sender` at the sender's host and `at_receiver` at the receiver's. GPUs of one
    /// kind give the same addresses and keys on every host; host memory has an offset of its own.
    pub(crate) fn new(
        table: &Training,
        buffers: u64,
        senders: &[u32],
        (at_sender, at_receiver): (u64, u64),
        offset: u64,
    ) -> Self {
        let mut tags = [0; Credits::MAX];
        for (tag, rank) in tags.iter_mut().zip(senders) {
            *tag = u16::try_from(*rank).unwrap_or(u16::MAX);
        }
        let count = senders.len().clamp(1, Credits::MAX);
        let room = (table.slice.0.next_power_of_two() * buffers * count as u64).max(1 << 20);
        let key = |number: u64| u32::try_from(0x0018_0000 + (number << 8)).unwrap_or(u32::MAX);
        Self {
            release: table.version,
            earlier: table.earlier,
            slice: table.slice.0,
            buffers,
            tags,
            senders: u8::try_from(count).unwrap_or(1),
            ring: 0x7f20_0000_0000 + (offset << 20) + (at_sender << 18),
            ring_key: key(2 * at_sender),
            data: 0x7d80_0000_0000 + at_receiver * room,
            data_key: key(2 * at_receiver + 1),
            records: 0x7f21_0000_0000 + (offset << 20) + (at_receiver << 18),
        }
    }

    /// The address that a credit is written to, and the key of the ring.
    pub(crate) fn credit_place(&self, number: u64) -> (u64, u32) {
        let ring = self.release.ring();
        let slot = (number + self.earlier) % ring.slots;
        (self.ring + slot * ring.stride, self.ring_key)
    }

    /// Elements of a credit.
    pub(crate) fn credits(&self, number: u64) -> Credits {
        Credits {
            layout: self.release.ring().layout,
            address: self.buffer(number),
            distance: self.slice * self.buffers,
            size: self.slice,
            key: self.data_key,
            number: number + self.earlier + u64::from(self.release.groups()),
            count: self.senders,
            tags: self.tags,
        }
    }

    /// The buffer of a message: they are used in turn.
    fn buffer(&self, number: u64) -> u64 {
        self.data + (number + self.earlier) % self.buffers * self.slice
    }

    /// All writes of a message of `bytes` by each sender, over `queue_pairs`.
    pub(crate) fn writes(
        &self,
        table: &Training,
        number: u64,
        bytes: u64,
        queue_pairs: usize,
    ) -> Vec<DataWrite> {
        let splits = table.split.unwrap_or_else(|| self.release.splits());
        let request = number + self.earlier;
        let pairs = queue_pairs.max(1) as u64;
        let used: Vec<u64> = if splits {
            (0..pairs).collect()
        } else {
            vec![request % pairs]
        };
        let immediate = Some(self.immediate(table, request, bytes));
        let piece = bytes.div_ceil(used.len() as u64).div_ceil(PIECE_UNIT) * PIECE_UNIT;
        let mut writes = Vec::new();
        for (place, pair) in (0..).zip(used) {
            let queue_pair = usize::try_from(pair).unwrap_or(0);
            let from = (place * piece).min(bytes);
            let length = piece.min(bytes - from);
            let is_last = |sender: u8| sender + 1 == self.senders;
            let apart = self.senders > 1 || table.adaptive && length > ADAPTIVE_ABOVE;
            for sender in 0..self.senders {
                let buffer = self.buffer(number) + u64::from(sender) * self.slice * self.buffers;
                writes.push(DataWrite {
                    queue_pair,
                    address: buffer + from,
                    key: self.data_key,
                    bytes: length,
                    immediate: immediate.filter(|_| is_last(sender) && !apart),
                    is_notice: false,
                });
            }
            if apart {
                writes.push(self.notice(queue_pair, number, immediate));
            }
        }
        writes
    }

    /// Immediate data of a message.
    fn immediate(&self, table: &Training, request: u64, bytes: u64) -> u32 {
        let low = |value: u64| u32::try_from(value & u64::from(u32::MAX)).unwrap_or(0);
        let value = match self.senders {
            _ if table.by_id => low(request),
            1 => low(bytes),
            // A bit for each message that has data; with records of lengths nothing.
            senders if self.release.length_records().is_none() && bytes > 0 => (1 << senders) - 1,
            _ => 0,
        };
        self.release.immediate(value)
    }

    /// The write that carries the immediate data alone, or the lengths of grouped messages.
    fn notice(&self, queue_pair: usize, number: u64, immediate: Option<u32>) -> DataWrite {
        let stride = self.release.length_records().filter(|_| self.senders > 1);
        let slot = (number + self.earlier) % self.release.ring().slots;
        DataWrite {
            queue_pair,
            address: stride.map_or(0, |stride| self.records + slot * stride),
            key: stride.map_or(0, |_| self.data_key + 2),
            bytes: stride.map_or(0, |_| 4 * u64::from(self.senders)),
            immediate,
            is_notice: true,
        }
    }

    /// Contents of the notice of grouped messages of `bytes` each.
    pub(crate) fn lengths(&self, bytes: u64) -> Payload {
        Payload::Lengths {
            length: u32::try_from(bytes).unwrap_or(u32::MAX),
            count: self.senders,
        }
    }
}
