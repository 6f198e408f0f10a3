//! The recording of a live run: the ordered stream as the analysis consumed it, from which a replay gives the same tables.
//!
//! A recording is one pcapng file, `recording.pcapng.zst` in the output folder. Its blocks are in the
//! order of the stream:
//!
//! | item of the stream | block |
//! |---|---|
//! | how the run was started | a block of type [`Recorded::BLOCK`], once, before all others but the section's and interfaces' own |
//! | a device | Interface Description Block: `if_name`, `if_tsresol` (its stamps' resolution), snaplen |
//! | a frame | Enhanced Packet Block |
//! | records lost before a frame | `epb_dropcount` of that frame: what the kernel dropped, and what was dropped since the analysis fell behind |
//! | records lost behind the last frame of a device | Interface Statistics Block: `isb_osdrop`, of all records lost, less those reported before |
//!
//! | time has come to a moment, though there are no frames | a block of type [`Recorded::TIME`]: the moment in ns since the epoch, 8 bytes, little-endian |
//! | one number that was read outside of the packets | a block of type [`SampleRow::BLOCK`](crate::SampleRow::BLOCK), a row of the table `samples` |
//! | an event of the host | a block of type [`HostEvent::BLOCK`](crate::HostEvent::BLOCK), before the first frame that it precedes |
//!
//! Types of blocks with the highest bit set are of local use (draft-ietf-opsawg-pcapng, 10.1): other programs skip them and read
//! the frames. How host events and samples are laid out is said in `codec`.

mod codec;

/// Start of a recorded run: the first item of a recording.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordingStart {
    /// Name of the run's input: the devices, with commas.
    pub input: String,
    /// Seed of the hashes: a replay distinguishes equal packets as the run did.
    pub seed: u64,
    /// The command line, without the program's name.
    pub arguments: Vec<String>,
}

impl RecordingStart {
    /// The type of its block: "roc" behind the bit of local use.
    pub const BLOCK: u32 = 0x8072_6f63;
    /// The type of a block that says how far time has come: "rot" behind the bit of local use.
    pub const TIME: u32 = 0x8072_6f74;
    /// The version of the format that is written, and read.
    pub const VERSION: &'static str = "3";
    /// The name of the file in the output folder.
    pub const FILE: &'static str = "recording.pcapng.zst";

    /// The block's body: version, input, seed (16 hex digits) and arguments as UTF-8, each ended by a byte of zero.
    pub fn encode(&self) -> Vec<u8> {
        let mut body = Vec::new();
        for text in [Self::VERSION, &self.input, &format!("{:016x}", self.seed)]
            .into_iter()
            .chain(self.arguments.iter().map(String::as_str))
        {
            body.extend_from_slice(text.as_bytes());
            body.push(0);
        }
        body
    }

    /// Reads a body, with or without the padding of its block; `None` when it is of another version or no UTF-8.
    pub fn decode(body: &[u8]) -> Option<Self> {
        let end = body.iter().rposition(|byte| *byte != 0)? + 1;
        let mut texts = body.get(..end)?.split(|byte| *byte == 0);
        let mut text = || texts.next().map(|text| String::from_utf8(text.to_vec()).ok());
        if text()?? != Self::VERSION {
            return None;
        }
        let input = text()??;
        let seed = u64::from_str_radix(&text()??, 16).ok()?;
        let arguments = std::iter::from_fn(text).collect::<Option<Vec<_>>>()?;
        Some(Self {
            input,
            seed,
            arguments,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_read_back_with_its_padding() {
        let recorded = RecordingStart {
            input: "eth0,eth1".to_owned(),
            seed: 0x1f,
            arguments: vec!["live".to_owned(), "-i".to_owned(), "eth0".to_owned()],
        };
        let mut body = recorded.encode();
        assert_eq!(body, b"3\0eth0,eth1\x00000000000000001f\0live\0-i\0eth0\0");
        assert_eq!(RecordingStart::decode(&body), Some(recorded.clone()));
        body.extend_from_slice(&[0; 3]);
        assert_eq!(RecordingStart::decode(&body), Some(recorded));
        assert_eq!(RecordingStart::decode(b"1\0eth0\0live\0"), None);
        assert_eq!(RecordingStart::decode(b""), None);
        assert_eq!(RecordingStart::decode(b"3\0\xff\x000\0"), None);
    }
}
