//! Packets of MRC in the captures of demos: what they are and what they say of others.

use roce_wire::transport::mrc::{Headers, is_again, parse};
use roce_wire::{Bth, Psn};

/// Bits of a SACK's bitmap.
const BITS: i32 = 64;

/// A packet of MRC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum MrcPacket {
    /// A WRITE, with data.
    Write {
        /// Its sender says that it has sent it before.
        is_again: bool,
    },
    /// A selective acknowledgement.
    Sack(SackContent),
    /// A path is probed.
    Probe {
        /// Number of the probe.
        number: u16,
    },
    /// Another one.
    Other,
}

/// The content of a SACK.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SackContent {
    /// All up to this one arrived.
    cumulative: Psn,
    /// Place of the bitmap's lowest bit behind it.
    offset: i32,
    bitmap: u64,
    subject: SackSubject,
}

/// The packet that caused a SACK.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum SackSubject {
    /// Data: its place behind the cumulative PSN.
    Data(i32),
    /// A probe: its number.
    Probe(u16),
}

impl MrcPacket {
    /// Reads a packet; `bytes` begin at its BTH. `None`: it is none of MRC.
    pub(crate) fn read(bth: &Bth, bytes: &[u8]) -> Option<Self> {
        Some(match parse(bytes)? {
            Headers::Write { .. } => Self::Write {
                is_again: is_again(bth),
            },
            Headers::Sack(sack, _) => Self::Sack(SackContent {
                cumulative: sack.cumulative(),
                offset: sack.bitmap_offset().into(),
                bitmap: sack.bitmap(),
                subject: if sack.answers_probe() {
                    SackSubject::Probe(sack.probe())
                } else {
                    SackSubject::Data(sack.named_offset().into())
                },
            }),
            Headers::Probe(probe) => Self::Probe {
                number: probe.number(),
            },
            _ => Self::Other,
        })
    }
}

impl SackContent {
    /// True if it says that a packet had not arrived although a later one had.
    pub(crate) fn misses(&self, psn: Psn) -> bool {
        let behind = psn.offset_from(self.cumulative);
        let bit = behind - self.offset;
        let later = (0..BITS).contains(&bit).then(|| self.bitmap >> bit);
        behind > 0 && later.is_some_and(|bits| bits & 1 == 0 && bits != 0)
    }

    /// True if this data packet caused it.
    pub(crate) fn names(&self, psn: Psn) -> bool {
        self.subject == SackSubject::Data(psn.offset_from(self.cumulative))
    }

    /// True if it is the answer to this probe.
    pub(crate) fn answers(&self, probe: u16) -> bool {
        self.subject == SackSubject::Probe(probe)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sack_says_what_is_missing_and_what_caused_it() {
        // Up to 10 all arrived, 12 to 13 and 15 did, and 15 caused it: bits 1, 2 and 4 from 11 on.
        let sack = SackContent {
            cumulative: Psn::new(10),
            offset: 1,
            bitmap: 0b1_0110,
            subject: SackSubject::Data(5),
        };
        let missing: Vec<u32> = (8..20).filter(|psn| sack.misses(Psn::new(*psn))).collect();
        assert_eq!(missing, [11, 14]);
        assert!(sack.names(Psn::new(15)) && !sack.names(Psn::new(14)) && !sack.answers(5));
    }
}
