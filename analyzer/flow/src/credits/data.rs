//! Data of one flow: which message each WRITE belongs to, where it ends, and what is not acknowledged yet.

use std::collections::VecDeque;

use roce_model::{FlowId, RemoteWrite, Time};
use roce_wire::{Opcode, Psn, Roce};

/// Messages of a flow that wait for their acknowledgement, at most. Older ones have none.
const MAX_WAITING: usize = 256;

/// PSNs of acknowledged pieces that are remembered, at most: a quarter of all, so that none means two packets.
const MAX_ANSWERED: i32 = 1 << 22;

/// A packet of a WRITE, but the middle of a message in order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WritePacket<'a> {
    pub(crate) roce: &'a Roce,
    pub(crate) write: Option<&'a RemoteWrite>,
    pub(crate) time: Time,
    /// It was sent again.
    pub(crate) is_again: bool,
    /// Messages that began since the last such packet, with this one.
    pub(crate) since_last: u32,
}

impl WritePacket<'_> {
    pub(super) fn psn(&self) -> Psn {
        self.roce.bth.psn()
    }

    pub(super) fn opcode(&self) -> Opcode {
        self.roce.bth.opcode()
    }

    /// PSN of the last packet of the message that begins with this one: all but the last are as long as the first.
    pub(super) fn last_psn(&self, length: u32) -> Psn {
        let packets = match self.roce.payload_bytes {
            payload if payload > 0 && !self.opcode().is_last() => length.div_ceil(payload).max(1),
            _ => 1,
        };
        Psn::new(self.psn().value().wrapping_add(packets - 1))
    }
}

/// One WRITE for a credit.
#[derive(Clone, Copy, Debug)]
pub(super) struct DataPiece {
    pub(super) ring: u32,
    pub(super) number: u64,
    pub(super) first: Psn,
    pub(super) last: Psn,
    /// When its first packet passed.
    pub(super) begun: Time,
    /// When its last packet passed; 0: not yet.
    pub(super) ended: Time,
    /// The flow that seems to have acknowledged it.
    pub(super) answered_by: Option<FlowId>,
}

impl DataPiece {
    pub(super) fn has(&self, psn: Psn) -> bool {
        psn.offset_from(self.first) >= 0 && psn.offset_from(self.last) <= 0
    }
}

/// A flow as one that carries data.
#[derive(Clone, Debug, Default)]
pub(super) struct DataFlow {
    /// The ring of the latest data: it is looked at first.
    pub(super) ring: Option<u32>,
    /// The latest piece that ended without an immediate: one may follow.
    pub(super) open_end: Option<DataPiece>,
    /// Its other direction is known.
    pub(super) is_paired: bool,
    /// Pieces that are not acknowledged, in the order of their PSNs.
    pub(super) waiting: VecDeque<DataPiece>,
    /// The latest piece.
    latest: Option<DataPiece>,
    /// First and last PSN of the latest pieces that were acknowledged without a gap. If the acknowledgement is lost behind the tap,
    /// they come again, perhaps when a later credit has offered their buffer.
    answered: Option<(Psn, Psn)>,
    /// Searches in all rings that found none.
    pub(super) misses: u32,
    /// Messages before the first one for which a credit was found.
    pub(super) early: u64,
    /// It has carried data for a credit.
    pub(super) is_known: bool,
    /// An acknowledgement of one of its pieces was seen.
    pub(super) is_answered: bool,
}

impl DataFlow {
    /// A flow with `early` messages before there were credits.
    pub(super) fn new(early: u64) -> Self {
        Self {
            early,
            ..Self::default()
        }
    }

    /// A piece has begun.
    pub(super) fn begin(&mut self, piece: DataPiece) {
        self.latest = Some(piece);
        if self.waiting.len() >= MAX_WAITING {
            self.waiting.pop_front();
        }
        self.waiting.push_back(piece);
    }

    /// No piece waits any more: PSNs begin again.
    pub(super) fn restart(&mut self) {
        self.waiting.clear();
        self.open_end = None;
        self.latest = None;
        self.answered = None;
    }

    /// The ring and the message of the latest piece, if a packet follows it without a gap.
    pub(super) fn follows(&self, psn: Psn) -> Option<(u32, u64)> {
        let piece = self.latest.filter(|piece| psn.offset_from(piece.last) == 1)?;
        Some((piece.ring, piece.number))
    }

    /// The ring and the message of the latest piece, if this is its first packet.
    pub(super) fn begun_by(&self, psn: Psn) -> Option<(u32, u64)> {
        let piece = self.latest.filter(|piece| psn == piece.first)?;
        Some((piece.ring, piece.number))
    }

    /// True if a packet belongs to a piece that was acknowledged.
    pub(super) fn was_answered(&self, psn: Psn) -> bool {
        self.answered
            .is_some_and(|(first, last)| psn.offset_from(first) >= 0 && psn.offset_from(last) <= 0)
    }

    fn answer(&mut self, piece: &DataPiece) {
        // A piece that is answered may go on by a WRITE with the immediate alone, and is answered again.
        let follows = |&(first, last): &(Psn, Psn)| {
            piece.first.offset_from(first) >= 0
                && piece.first.offset_from(last) <= 1
                && piece.last.offset_from(first) < MAX_ANSWERED
        };
        let first = self
            .answered
            .filter(follows)
            .map_or(piece.first, |(first, _)| first);
        self.answered = Some((first, piece.last));
    }

    /// The piece that a packet belongs to.
    pub(super) fn piece_of(&mut self, psn: Psn) -> Option<&mut DataPiece> {
        self.waiting.iter_mut().rev().find(|piece| piece.has(psn))
    }

    /// The next piece that an acknowledgement of all up to `psn` at `time` covers, and if it is the piece's own. One of a later piece may
    /// stand for one that the capture lost: it gives no time.
    pub(super) fn acknowledged(&mut self, psn: Psn, time: Time) -> Option<(DataPiece, bool)> {
        let covered = self
            .waiting
            .pop_front_if(|piece| psn.offset_from(piece.last) >= 0 && time >= piece.begun.max(piece.ended))?;
        self.answer(&covered);
        let is_own = psn == covered.last && covered.ended.0 != 0;
        self.is_answered |= is_own;
        Some((covered, is_own))
    }
}
