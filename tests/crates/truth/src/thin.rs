//! Captures that lost records, or that keep some only: healthy traffic stays without a warning, whatever of it was recorded.

use std::io;
use std::path::Path;

use crate::draw::Draw;

/// The block type of records in pcapng: Enhanced Packet Block, section 4.3 of the format.
const PACKET: u32 = 6;

/// Records of a capture that are left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RecordThinning {
    /// Each is lost with the chance of 1 in so many.
    Lose(u32),
    /// Each is kept with the chance of 1 in so many.
    Keep(u32),
    /// The first of so many is kept.
    KeepEvery(u32),
}

impl RecordThinning {
    /// As the option has it: `lose:100`, `keep:10`, `every:10`.
    ///
    /// # Errors
    /// When the text is none of these.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("'{text}' is none of lose:N, keep:N, every:N");
        let (what, number) = text.split_once(':').ok_or_else(wrong)?;
        let number = number
            .parse()
            .ok()
            .filter(|number| *number > 0)
            .ok_or_else(wrong)?;
        match what {
            "lose" => Ok(Self::Lose(number)),
            "keep" => Ok(Self::Keep(number)),
            "every" => Ok(Self::KeepEvery(number)),
            _ => Err(wrong()),
        }
    }

    /// Rewrites a pcapng file of this machine's byte order without the records that are lost. The same seed loses the same ones.
    pub(crate) fn apply(self, path: &Path, seed: u64) -> io::Result<()> {
        let whole = std::fs::read(path)?;
        let mut draw = Draw::new(seed, "thin");
        let mut one_in = |of: u32| draw.below(of.into()) == 0;
        let mut kept = Vec::with_capacity(whole.len());
        let (mut rest, mut number) = (whole.as_slice(), 0u32);
        while let Some((kind, length)) = block(rest) {
            let (block, behind) = rest.split_at_checked(length).ok_or(io::ErrorKind::InvalidData)?;
            let is_kept = kind != PACKET || {
                number = number.wrapping_add(1);
                match self {
                    Self::Lose(of) => !one_in(of),
                    Self::Keep(of) => one_in(of),
                    Self::KeepEvery(of) => number % of == 1 % of,
                }
            };
            if is_kept {
                kept.extend_from_slice(block);
            }
            rest = behind;
        }
        std::fs::write(path, kept)
    }
}

/// Type and length of the first block.
fn block(bytes: &[u8]) -> Option<(u32, usize)> {
    let number = |at: usize| Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let length = usize::try_from(number(4)?).ok().filter(|length| *length >= 12)?;
    Some((number(0)?, length))
}
