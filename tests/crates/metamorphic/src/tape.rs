//! The records of one capture file, read and written.

use std::io::Read;

use roce_capture::{Container, Interface, Options, Reader};
use roce_model::SinkError;
use roce_wire::LinkType;

/// One record of a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its stamp, in nanoseconds since the epoch.
    pub time: u64,
    /// Bytes on the wire.
    pub original: u32,
    /// Index into [`Tape::interfaces`].
    pub interface: u32,
    /// Bytes that were kept.
    pub data: Vec<u8>,
}

/// One capture file.
#[derive(Clone, Debug)]
pub struct Tape {
    /// The file's name, without a folder.
    pub name: String,
    /// Its kind.
    pub container: Container,
    /// Its interfaces.
    pub interfaces: Vec<Interface>,
    /// Its records, in the order of the file.
    pub records: Vec<Record>,
}

impl Tape {
    /// Reads a capture.
    ///
    /// # Errors
    /// When it is none, or is cut.
    pub fn read(name: &str, stream: Box<dyn Read + Send>) -> Result<Self, SinkError> {
        let mut reader = Reader::from_read(name, stream, &Options::default())?;
        let mut records = Vec::new();
        while let Some(batch) = reader.next_batch()? {
            records.extend(batch.frames().iter().map(|frame| Record {
                time: frame.time.0,
                original: frame.original,
                interface: frame.interface,
                data: batch.bytes(frame).to_vec(),
            }));
        }
        Ok(Self {
            name: name.to_owned(),
            container: reader.summary().format.container,
            interfaces: reader.interfaces().to_vec(),
            records,
        })
    }

    /// A file of the same interfaces with other records.
    #[must_use]
    pub fn with(&self, name: impl Into<String>, records: Vec<Record>) -> Self {
        Self {
            name: name.into(),
            container: self.container,
            interfaces: self.interfaces.clone(),
            records,
        }
    }

    /// The first header of a record's frame.
    pub fn link(&self, record: &Record) -> LinkType {
        let interface = self.interfaces.get(record.interface as usize);
        interface.map_or(LinkType::ETHERNET, |interface| interface.link)
    }

    /// The earliest stamp and the latest; `None` without records.
    pub fn span(&self) -> Option<(u64, u64)> {
        let times = || self.records.iter().map(|record| record.time);
        Some((times().min()?, times().max()?))
    }

    /// The largest time that all stamps are multiples of: coarse stamps stay coarse if they are moved by multiples of it.
    pub fn quantum(&self) -> u64 {
        let gcd = |mut a: u64, mut b: u64| {
            while b > 0 {
                (a, b) = (b, a % b);
            }
            a
        };
        let quantum = self
            .records
            .iter()
            .fold(0, |so_far, record| gcd(so_far, record.time));
        quantum.clamp(1, 1_000_000_000)
    }

    /// True if every frame begins with an Ethernet header, and nothing is behind the frames.
    pub fn is_ethernet(&self) -> bool {
        let mut interfaces = self.interfaces.iter();
        interfaces.all(|interface| interface.link == LinkType::ETHERNET && interface.fcs_bytes == 0)
    }

    /// True if the file says that its capture lost records.
    pub fn counts_losses(&self) -> bool {
        self.interfaces
            .iter()
            .any(|interface| interface.dropped.is_some_and(|dropped| dropped > 0))
    }
}
