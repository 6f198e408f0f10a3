//! The blocks that carry packets.
//!
//! Leaves telling blocks apart, and all others of them, to the walk.

use roce_model::Time;

use super::{Block, ENHANCED, Options, Pcapng, options};
use crate::error::Fault;
use crate::frame::{Direction, Frame, place};
use crate::walk::FoundFrames;

impl Pcapng {
    /// The Enhanced Packet Block.
    pub(super) fn enhanced<const BIG: bool>(
        &mut self,
        block: &Block<'_>,
        found: &mut FoundFrames,
    ) -> Result<(), Fault> {
        let number = block.word::<BIG>(0);
        self.record::<BIG>(block, number, found)
    }

    /// The obsolete Packet Block: an Enhanced one with a drop count inside of its interface number.
    pub(super) fn packet<const BIG: bool>(
        &mut self,
        block: &Block<'_>,
        found: &mut FoundFrames,
    ) -> Result<(), Fault> {
        let number = u32::from(block.half::<BIG>(0));
        let drops = block.half::<BIG>(2);
        self.source(block.kind, number)?;
        // All ones: not known.
        if drops != u16::MAX {
            self.lose(number, drops.into(), found);
        }
        self.record::<BIG>(block, number, found)
    }

    /// Record of an Enhanced Packet Block or a Packet Block.
    fn record<const BIG: bool>(
        &mut self,
        block: &Block<'_>,
        number: u32,
        found: &mut FoundFrames,
    ) -> Result<(), Fault> {
        let source = self.source(block.kind, number)?;
        let ticks = u64::from(block.word::<BIG>(4)) << 32 | u64::from(block.word::<BIG>(8));
        let (captured, original) = (block.word::<BIG>(12), block.word::<BIG>(16));
        let room = block.body.len() - 20;
        let limit = source.limit.min(place(room));
        if captured > limit {
            return Err(Fault::CapturedLength {
                found: captured,
                limit,
            });
        }
        let time = source.clock.nanos(ticks);
        let (mut fcs_bytes, mut direction, mut process) = (source.fcs_bytes, Direction::Unknown, 0);
        let options = block
            .body
            .get(20 + (captured as usize).next_multiple_of(4)..)
            .unwrap_or_default();
        if !options.is_empty() {
            for option in Options::<BIG>::new(block.kind, Some(options)) {
                let option = option?;
                match option.code {
                    options::EPB_FLAGS => {
                        let flags = option.word().unwrap_or(0);
                        direction = options::direction(flags);
                        fcs_bytes = options::fcs_bytes(flags).unwrap_or(fcs_bytes);
                    }
                    options::EPB_DROPCOUNT if block.kind == ENHANCED => {
                        self.lose(number, option.long().unwrap_or(0), found);
                    }
                    options::EPB_PROCESS if block.kind == ENHANCED => {
                        let pid = option.word().unwrap_or(0);
                        process = self.processes.of_pid(pid, time, found);
                    }
                    options::EPB_DARWIN_PROCESS if block.kind == ENHANCED => {
                        process = self.processes.of_darwin(option.word().unwrap_or(u32::MAX));
                    }
                    _ => {}
                }
            }
        }
        found.times.note(time);
        found.frames.push(Frame {
            time: Time(time),
            offset: place(block.place + 20),
            captured,
            original,
            interface: place(self.plain.base) + number,
            fcs_bytes,
            direction,
            process,
        });
        Ok(())
    }

    /// The Simple Packet Block: of the section's first interface, and without a time.
    pub(super) fn simple<const BIG: bool>(
        &mut self,
        block: &Block<'_>,
        found: &mut FoundFrames,
    ) -> Result<(), Fault> {
        let source = self.source(block.kind, 0)?;
        let original = block.word::<BIG>(0);
        let cut = if source.snaplen == 0 {
            original
        } else {
            original.min(source.snaplen)
        };
        let captured = cut.min(place(block.body.len() - 4));
        if captured > source.limit {
            return Err(Fault::CapturedLength {
                found: captured,
                limit: source.limit,
            });
        }
        found.untimed += 1;
        found.frames.push(Frame {
            time: found.times.last(),
            offset: place(block.place + 4),
            captured,
            original,
            interface: place(self.plain.base),
            fcs_bytes: source.fcs_bytes,
            direction: Direction::Unknown,
            process: 0,
        });
        Ok(())
    }
}
