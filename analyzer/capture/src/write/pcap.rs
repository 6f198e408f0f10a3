//! Writes pcap files; the layout is drawn in the reading module of the same name.

#![expect(
    clippy::missing_errors_doc,
    reason = "everything here fails exactly when its output does"
)]

use std::io::{self, Write};

use roce_model::Time;
use roce_wire::LinkType;

use super::byte_order::{ByteOrder, word};
use crate::summary::Container;

/// Fields of a pcap file's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PcapOptions {
    /// One of the three kinds of pcap; anything else is written as [`Container::PcapNanos`].
    pub container: Container,
    /// The order of the bytes of its numbers.
    pub order: ByteOrder,
    /// First header of the frames.
    pub link: LinkType,
    /// The snaplen it declares, in bytes. Frames are not cut to it.
    pub snaplen: u32,
    /// Bytes of FCS at the end of each frame, if it says so: an even number up to 30.
    pub fcs_bytes: Option<u8>,
}

impl Default for PcapOptions {
    fn default() -> Self {
        Self {
            container: Container::PcapNanos,
            order: ByteOrder::Little,
            link: LinkType::ETHERNET,
            snaplen: 256 << 10,
            fcs_bytes: None,
        }
    }
}

/// Writes one pcap file.
#[derive(Debug)]
pub struct PcapWriter<W: Write> {
    output: W,
    options: PcapOptions,
}

impl<W: Write> PcapWriter<W> {
    /// Begins a file.
    pub fn new(mut output: W, options: PcapOptions) -> io::Result<Self> {
        let order = options.order;
        let magic = match options.container {
            Container::Pcap => 0xa1b2_c3d4,
            Container::PcapModified => 0xa1b2_cd34,
            Container::PcapNanos | Container::Pcapng => 0xa1b2_3c4d,
        };
        let fcs = options
            .fcs_bytes
            .map_or(0, |bytes| 0x0400_0000 | u32::from(bytes / 2) << 28);
        output.write_all(&order.u32(magic))?;
        output.write_all(&order.u16(2))?;
        output.write_all(&order.u16(4))?;
        output.write_all(&[0; 8])?;
        output.write_all(&order.u32(options.snaplen))?;
        output.write_all(&order.u32(u32::from(options.link.0) | fcs))?;
        Ok(Self { output, options })
    }

    /// Writes a frame of `original` bytes on the wire; `data` was captured.
    pub fn write(&mut self, time: Time, original: u32, data: &[u8]) -> io::Result<()> {
        let PcapOptions { container, order, .. } = self.options;
        let unit = if matches!(container, Container::Pcap | Container::PcapModified) {
            1_000
        } else {
            1
        };
        self.output.write_all(&order.u32(word(time.0 / 1_000_000_000)))?;
        self.output
            .write_all(&order.u32(word(time.0 % 1_000_000_000 / unit)))?;
        self.output.write_all(&order.u32(word(data.len())))?;
        self.output.write_all(&order.u32(original))?;
        if container == Container::PcapModified {
            self.output.write_all(&[0; 8])?;
        }
        self.output.write_all(data)
    }

    /// Flushes and gives back what is written to.
    pub fn finish(mut self) -> io::Result<W> {
        self.output.flush()?;
        Ok(self.output)
    }
}
