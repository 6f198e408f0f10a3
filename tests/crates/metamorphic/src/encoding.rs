//! A tape as the bytes of a file.

use std::io::{self, Write as _};

use flate2::Compression as Level;
use flate2::write::GzEncoder;
use roce_capture::write::{ByteOrder, InterfaceOptions, Packet, PcapOptions, PcapWriter, PcapngWriter};
use roce_capture::{Compression, Container};
use roce_model::Time;

use crate::tape::Tape;

/// How a tape is written.
#[derive(Clone, Debug)]
pub struct TapeEncoding {
    /// Layout of the records.
    pub container: Container,
    /// The order of the bytes of its numbers.
    pub order: ByteOrder,
    /// Compression of the whole file.
    pub compression: Option<Compression>,
    /// Records before which another section of a pcapng file begins.
    pub sections: Vec<usize>,
}

impl TapeEncoding {
    /// A file of this kind, little-endian and not compressed.
    pub fn of(container: Container) -> Self {
        Self {
            container,
            order: ByteOrder::Little,
            compression: None,
            sections: Vec::new(),
        }
    }

    /// The bytes of a file.
    ///
    /// # Errors
    /// Never, as long as memory lasts.
    pub fn write(&self, tape: &Tape) -> io::Result<Vec<u8>> {
        let plain = if self.container == Container::Pcapng {
            self.pcapng(tape)?
        } else {
            self.pcap(tape)?
        };
        match self.compression {
            None => Ok(plain),
            Some(Compression::Gzip) => {
                let mut encoder = GzEncoder::new(Vec::new(), Level::fast());
                encoder.write_all(&plain)?;
                encoder.finish()
            }
            Some(Compression::Zstd) => zstd::encode_all(&plain[..], 1),
        }
    }

    fn pcap(&self, tape: &Tape) -> io::Result<Vec<u8>> {
        let interface = tape.interfaces.first();
        let options = PcapOptions {
            container: self.container,
            order: self.order,
            link: interface.map_or(PcapOptions::default().link, |interface| interface.link),
            snaplen: interface.map_or(0, |interface| interface.snaplen),
            fcs_bytes: interface
                .map(|interface| interface.fcs_bytes)
                .filter(|bytes| *bytes > 0),
        };
        let mut writer = PcapWriter::new(Vec::new(), options)?;
        for record in &tape.records {
            writer.write(Time(record.time), record.original, &record.data)?;
        }
        writer.finish()
    }

    fn pcapng(&self, tape: &Tape) -> io::Result<Vec<u8>> {
        let mut writer = PcapngWriter::new(Vec::new(), self.order)?;
        let mut units = describe(&mut writer, tape)?;
        for (place, record) in tape.records.iter().enumerate() {
            if self.sections.contains(&place) {
                writer.section(self.order)?;
                units = describe(&mut writer, tape)?;
            }
            let unit = units.get(record.interface as usize).copied().unwrap_or(1);
            writer.packet(&Packet {
                interface: record.interface,
                ticks: record.time / unit,
                original: record.original,
                data: &record.data,
                ..Packet::default()
            })?;
        }
        let end = tape.span().map_or(0, |(_, last)| last);
        for ((number, interface), unit) in (0..).zip(&tape.interfaces).zip(&units) {
            if interface.dropped.is_some() {
                writer.statistics(number, end / unit, interface.dropped, None)?;
            }
        }
        writer.finish()
    }
}

/// Describes all interfaces of a tape, and gives the nanoseconds of a tick of each.
fn describe(writer: &mut PcapngWriter<Vec<u8>>, tape: &Tape) -> io::Result<Vec<u64>> {
    let mut units = Vec::new();
    for interface in &tape.interfaces {
        let is_coarse = interface.quantum_ns == 1_000;
        writer.interface(&InterfaceOptions {
            link: interface.link,
            snaplen: interface.snaplen,
            name: interface.name.clone(),
            description: interface.description.clone(),
            resolution: Some(if is_coarse { 6 } else { 9 }),
            offset: None,
            fcs_bits: (interface.fcs_bytes > 0).then(|| interface.fcs_bytes * 8),
        })?;
        units.push(if is_coarse { 1_000 } else { 1 });
    }
    Ok(units)
}
