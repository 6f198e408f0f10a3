//! Enhanced Packet Blocks without options, which nearly all blocks are.

use std::sync::Arc;

use roce_model::Time;

use super::clock::Clock;
use crate::frame::{Direction, Frame, place};
use crate::frames::FrameMaker;
use crate::walk::{FoundFrames, Skimmer, u32_of};

/// The type of the Enhanced Packet Block.
pub(crate) const ENHANCED: u32 = 6;

/// State of an interface that the walk needs for its packets.
#[derive(Clone, Copy, Debug)]
pub(super) struct InterfaceState {
    pub(super) clock: Clock,
    pub(super) limit: u32,
    pub(super) snaplen: u32,
    pub(super) fcs_bytes: u8,
    /// Records it has lost, by packets and statistics up to here.
    pub(super) dropped: u64,
}

/// Facts of a section that reading its plain packets needs.
#[derive(Clone, Debug, Default)]
pub(crate) struct PlainPackets {
    pub(super) big: bool,
    /// Number, through all sections, of the first interface of this section.
    pub(super) base: usize,
    /// The interfaces of this section. A clone shares them: batches whose frames are made later have one.
    pub(super) sources: Arc<Vec<InterfaceState>>,
}

impl PlainPackets {
    /// Walks or skims the blocks at the end of `data`, from `at` on, up to the first one that is of another kind, incomplete or wrong. Returns
    /// where that is.
    pub(super) fn walk<const BIG: bool>(&self, data: &[u8], at: usize, found: &mut FoundFrames) -> usize {
        if found.skims && found.frames.is_empty() && found.skim.is_none() {
            let mut skimmer = Skimmer::begin(found);
            let end = self.each::<BIG>(data, at, |frame| skimmer.record(frame.time));
            skimmer.end(at..end, found);
            return end;
        }
        self.make_skimmed(data, found);
        let (frames, times) = (&mut found.frames, &mut found.times);
        self.each::<BIG>(data, at, |frame| {
            times.note(frame.time.0);
            frames.push(frame);
        })
    }

    /// Makes the frames of what was skimmed: others follow, or what is known of the section changes.
    pub(super) fn make_skimmed(&self, data: &[u8], found: &mut FoundFrames) {
        if let Some(skim) = found.skim.take() {
            let data = data.get(..skim.range.end).unwrap_or_default();
            self.make(data, skim.range.start, &mut found.frames);
        }
    }

    #[inline]
    fn each<const BIG: bool>(&self, data: &[u8], from: usize, mut take: impl FnMut(Frame)) -> usize {
        let sources = self.sources.as_slice();
        let mut rest = data.get(from..).unwrap_or_default();
        while let Some((head, body)) = rest.split_first_chunk::<28>() {
            let word = |at: usize| u32_of::<BIG>([head[at], head[at + 1], head[at + 2], head[at + 3]]);
            let (number, captured) = (word(8), word(20));
            if word(0) != ENHANCED {
                break;
            }
            let Some(source) = sources.get(number as usize) else {
                break;
            };
            let Some(tick_ns) = source.clock.plain() else {
                break;
            };
            if captured > source.limit || word(4) != 32 + captured.next_multiple_of(4) {
                break;
            }
            let Some((packet, next)) = body.split_at_checked(captured.next_multiple_of(4) as usize + 4)
            else {
                break;
            };
            if packet.last_chunk().copied().map(u32_of::<BIG>) != Some(word(4)) {
                break;
            }
            let ticks = (u64::from(word(12)) << 32) | u64::from(word(16));
            take(Frame {
                time: Time(ticks.saturating_mul(tick_ns)),
                offset: place(data.len() - body.len()),
                captured,
                original: word(24),
                interface: place(self.base) + number,
                fcs_bytes: source.fcs_bytes,
                direction: Direction::Unknown,
                process: 0,
            });
            rest = next;
        }
        data.len() - rest.len()
    }
}

impl FrameMaker for PlainPackets {
    fn make(&self, data: &[u8], from: usize, frames: &mut Vec<Frame>) {
        let take = |frame| frames.push(frame);
        if self.big {
            self.each::<true>(data, from, take);
        } else {
            self.each::<false>(data, from, take);
        }
    }
}
