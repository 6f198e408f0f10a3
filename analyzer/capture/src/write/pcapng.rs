//! Writes pcapng files; the blocks are drawn in the reading module of the same name.

#![expect(
    clippy::missing_errors_doc,
    reason = "everything here fails exactly when its output does"
)]

use std::io::{self, Write};

use roce_model::Time;
use roce_wire::LinkType;

use super::byte_order::{ByteOrder, word};
use crate::pcapng::{BYTE_ORDER, ENHANCED, INTERFACE, PACKET, SECTION, SIMPLE, STATISTICS, options};

/// Fields of an Interface Description Block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceOptions {
    /// First header of the frames.
    pub link: LinkType,
    /// Bytes kept of each frame at most; 0 means no limit. Frames are not cut to it.
    pub snaplen: u32,
    /// `if_name`.
    pub name: Option<String>,
    /// `if_description`.
    pub description: Option<String>,
    /// `if_tsresol`: a tick is 10^-n s, or 2^-n s with the top bit set; without it, 10^-6 s.
    pub resolution: Option<u8>,
    /// `if_tsoffset`, in seconds.
    pub offset: Option<i64>,
    /// `if_fcslen`, in bits.
    pub fcs_bits: Option<u8>,
}

impl Default for InterfaceOptions {
    fn default() -> Self {
        Self {
            link: LinkType::ETHERNET,
            snaplen: 0,
            name: None,
            description: None,
            resolution: Some(9),
            offset: None,
            fcs_bits: None,
        }
    }
}

/// Fields of a Section Header Block besides the byte order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SectionOptions {
    /// `opt_comment`, any number of them.
    pub comments: Vec<String>,
    /// `shb_os`.
    pub system: Option<String>,
    /// `shb_userappl`: the program that writes it.
    pub application: Option<String>,
}

/// Fields of an Enhanced Packet Block.
#[derive(Clone, Copy, Debug, Default)]
pub struct Packet<'a> {
    /// The interface's number in its section.
    pub interface: u32,
    /// The time stamp in the ticks of the interface.
    pub ticks: u64,
    /// Bytes it had on the wire.
    pub original: u32,
    /// Captured bytes.
    pub data: &'a [u8],
    /// `epb_flags`.
    pub flags: Option<u32>,
    /// `epb_dropcount`.
    pub dropped: Option<u64>,
    /// `opt_comment`.
    pub comment: Option<&'a str>,
}

/// Bytes of a block around its body: type, length, and the length again.
const AROUND: usize = 12;

/// Writes one pcapng file.
#[derive(Debug)]
pub struct PcapngWriter<W: Write> {
    output: W,
    order: ByteOrder,
    interfaces: u32,
    /// The block that is being put together.
    body: Vec<u8>,
}

impl<W: Write> PcapngWriter<W> {
    /// Begins a file, and its first section.
    pub fn new(output: W, order: ByteOrder) -> io::Result<Self> {
        Self::with(output, order, &SectionOptions::default())
    }

    /// Starts a file, and its first section with the fields of `about`.
    pub fn with(output: W, order: ByteOrder, about: &SectionOptions) -> io::Result<Self> {
        let mut writer = Self {
            output,
            order,
            interfaces: 0,
            body: Vec::new(),
        };
        writer.describe(order, about)?;
        Ok(writer)
    }

    /// Begins another section. Its interfaces are numbered from 0 again.
    pub fn section(&mut self, order: ByteOrder) -> io::Result<()> {
        self.describe(order, &SectionOptions::default())
    }

    fn describe(&mut self, order: ByteOrder, about: &SectionOptions) -> io::Result<()> {
        self.order = order;
        self.interfaces = 0;
        self.number(BYTE_ORDER);
        self.half(1);
        self.half(0);
        // The length of the section: not given.
        self.body.extend_from_slice(&[0xff; 8]);
        for comment in &about.comments {
            self.option(options::COMMENT, comment.as_bytes());
        }
        let texts = [
            (options::SHB_OS, &about.system),
            (options::SHB_USERAPPL, &about.application),
        ];
        for (code, text) in texts {
            if let Some(text) = text {
                self.option(code, text.as_bytes());
            }
        }
        self.end_of_options(16);
        self.end(SECTION)
    }

    /// Describes an interface and returns its number in the section.
    pub fn interface(&mut self, about: &InterfaceOptions) -> io::Result<u32> {
        self.half(about.link.0);
        self.half(0);
        self.number(about.snaplen);
        let texts = [
            (options::IF_NAME, &about.name),
            (options::IF_DESCRIPTION, &about.description),
        ];
        for (code, text) in texts {
            if let Some(text) = text {
                self.option(code, text.as_bytes());
            }
        }
        if let Some(resolution) = about.resolution {
            self.option(options::IF_TSRESOL, &[resolution]);
        }
        if let Some(bits) = about.fcs_bits {
            self.option(options::IF_FCSLEN, &[bits]);
        }
        if let Some(offset) = about.offset {
            self.option(options::IF_TSOFFSET, &self.order.u64(offset.cast_unsigned()));
        }
        self.end_of_options(8);
        self.end(INTERFACE)?;
        self.interfaces += 1;
        Ok(self.interfaces - 1)
    }

    /// Writes an Enhanced Packet Block.
    pub fn packet(&mut self, packet: &Packet<'_>) -> io::Result<()> {
        self.number(packet.interface);
        self.ticks(packet.ticks);
        self.number(word(packet.data.len()));
        self.number(packet.original);
        let fixed = self.body.len();
        if let Some(comment) = packet.comment {
            self.option(options::COMMENT, comment.as_bytes());
        }
        if let Some(flags) = packet.flags {
            self.option(options::EPB_FLAGS, &self.order.u32(flags));
        }
        if let Some(dropped) = packet.dropped {
            self.option(options::EPB_DROPCOUNT, &self.order.u64(dropped));
        }
        self.end_of_options(fixed);
        // The data goes out from where it is.
        let padding = [0; 3]
            .get(..packet.data.len().wrapping_neg() % 4)
            .unwrap_or_default();
        let length = self.body.len() + packet.data.len() + padding.len() + AROUND;
        let length = self.order.u32(word(length));
        let (head, options) = self.body.split_at(fixed);
        self.output.write_all(&self.order.u32(ENHANCED))?;
        self.output.write_all(&length)?;
        self.output.write_all(head)?;
        self.output.write_all(packet.data)?;
        self.output.write_all(padding)?;
        self.output.write_all(options)?;
        self.body.clear();
        self.output.write_all(&length)
    }

    /// Writes an Enhanced Packet Block without options, for an interface with `if_tsresol` 9.
    pub fn write(&mut self, interface: u32, time: Time, original: u32, data: &[u8]) -> io::Result<()> {
        self.packet(&Packet {
            interface,
            ticks: time.0,
            original,
            data,
            ..Packet::default()
        })
    }

    /// Writes a Simple Packet Block: interface 0, no time.
    pub fn simple(&mut self, original: u32, data: &[u8]) -> io::Result<()> {
        self.number(original);
        self.padded(data);
        self.end(SIMPLE)
    }

    /// Writes an obsolete Packet Block; `dropped` 65535 means that it is not known.
    pub fn obsolete(&mut self, interface: u16, dropped: u16, packet: &Packet<'_>) -> io::Result<()> {
        self.half(interface);
        self.half(dropped);
        self.ticks(packet.ticks);
        self.number(word(packet.data.len()));
        self.number(packet.original);
        self.padded(packet.data);
        self.end(PACKET)
    }

    /// Writes an Interface Statistics Block: records lost by the interface and by the system, since the start.
    pub fn statistics(
        &mut self,
        interface: u32,
        ticks: u64,
        by_interface: Option<u64>,
        by_system: Option<u64>,
    ) -> io::Result<()> {
        self.number(interface);
        self.ticks(ticks);
        for (code, count) in [
            (options::ISB_IFDROP, by_interface),
            (options::ISB_OSDROP, by_system),
        ] {
            if let Some(count) = count {
                self.option(code, &self.order.u64(count));
            }
        }
        self.end_of_options(12);
        self.end(STATISTICS)
    }

    /// Writes a block of any type, its body as it is but for the padding.
    pub fn block(&mut self, kind: u32, body: &[u8]) -> io::Result<()> {
        self.padded(body);
        self.end(kind)
    }

    /// The output.
    pub fn output(&mut self) -> &mut W {
        &mut self.output
    }

    /// Flushes and gives back what is written to.
    pub fn finish(mut self) -> io::Result<W> {
        self.output.flush()?;
        Ok(self.output)
    }

    fn half(&mut self, value: u16) {
        self.body.extend_from_slice(&self.order.u16(value));
    }

    fn number(&mut self, value: u32) {
        self.body.extend_from_slice(&self.order.u32(value));
    }

    /// A time stamp: two numbers, the higher half first in either byte order.
    fn ticks(&mut self, ticks: u64) {
        self.number(word(ticks >> 32));
        self.number(word(ticks & 0xffff_ffff));
    }

    fn padded(&mut self, bytes: &[u8]) {
        self.body.extend_from_slice(bytes);
        self.body.resize(self.body.len().next_multiple_of(4), 0);
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        self.half(code);
        self.half(u16::try_from(value.len()).unwrap_or(u16::MAX));
        self.padded(value.get(..value.len().min(u16::MAX.into())).unwrap_or_default());
    }

    /// Ends the options, if there are any behind the first `fixed` bytes of the body.
    fn end_of_options(&mut self, fixed: usize) {
        if self.body.len() > fixed {
            self.body.extend_from_slice(&[0; 4]);
        }
    }

    fn end(&mut self, kind: u32) -> io::Result<()> {
        let length = self.order.u32(word(self.body.len() + AROUND));
        self.output.write_all(&self.order.u32(kind))?;
        self.output.write_all(&length)?;
        self.output.write_all(&self.body)?;
        self.body.clear();
        self.output.write_all(&length)
    }
}
