//! Keeps the stream of a live run as pcapng: the files of `-w`, which can be rotated, and the recording of `--record`, which also
//! says how the run was started.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use flate2::write::GzEncoder;
use roce_capture::write::{ByteOrder, InterfaceOptions, Packet, PcapngWriter, SectionOptions};
use roce_capture::{Interface, Run};
use roce_files::{Access, Place};
use roce_model::{Nanos, Recorded};

use crate::error::Error;

/// Condition that starts the next file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rotate {
    /// This many bytes on disk.
    Bytes(u64),
    /// This time.
    After(Nanos),
}

/// Period of writing buffered bytes to the disk.
const FLUSHED_EVERY: Duration = Duration::from_secs(1);

/// Comments and rotation of the files.
#[derive(Clone, Debug)]
pub struct About {
    /// Destination: the name's ending selects the compression.
    pub place: Place,
    /// Replace what is there.
    pub overwrite: bool,
    /// Condition that starts the next file; `None`: there is one file.
    pub rotate: Option<Rotate>,
    /// Comment for readers, in words.
    pub comment: String,
    /// For a recording: how the run was started.
    pub recorded: Option<Recorded>,
}

/// The packets of a run, in one file or several that follow each other.
pub struct PacketFiles {
    about: About,
    interfaces: Vec<Interface>,
    /// Lost records, by interface.
    lost: Vec<u64>,
    /// The time of the last frame.
    last: Nanos,
    number: u32,
    /// Bytes of the files before the open one.
    closed_bytes: u64,
    file: Open,
}

/// The file that is being written.
struct Open {
    place: Place,
    writer: PcapngWriter<Compressor>,
    begun: Instant,
    flushed: Instant,
    /// Records lost before its start, by interface.
    lost_before: Vec<u64>,
}

/// A file, and what its name says it is wrapped in.
enum Compressor {
    Plain(Counted),
    Gzip(GzEncoder<Counted>),
    Zstd(zstd::Encoder<'static, Counted>),
}

/// Counts the bytes that reach the file.
struct Counted {
    file: BufWriter<File>,
    bytes: u64,
}

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Compressor {
    /// Wraps a file as its name says.
    fn new(name: &str, file: File) -> io::Result<Self> {
        let file = Counted {
            file: BufWriter::with_capacity(1 << 20, file),
            bytes: 0,
        };
        Ok(
            match Path::new(name).extension().and_then(std::ffi::OsStr::to_str) {
                Some("gz") => Self::Gzip(GzEncoder::new(file, flate2::Compression::fast())),
                Some("zst") => Self::Zstd(zstd::Encoder::new(file, 1)?),
                _ => Self::Plain(file),
            },
        )
    }

    fn bytes(&self) -> u64 {
        match self {
            Self::Plain(file) => file.bytes,
            Self::Gzip(file) => file.get_ref().bytes,
            Self::Zstd(file) => file.get_ref().bytes,
        }
    }

    fn finish(self) -> io::Result<()> {
        match self {
            Self::Plain(file) => file,
            Self::Gzip(file) => file.finish()?,
            Self::Zstd(file) => file.finish()?,
        }
        .flush()
    }
}

impl Write for Compressor {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(file) => file.write(bytes),
            Self::Gzip(file) => file.write(bytes),
            Self::Zstd(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(file) => file.flush(),
            Self::Gzip(file) => file.flush(),
            Self::Zstd(file) => file.flush(),
        }
    }
}

impl PacketFiles {
    /// Begins the first file.
    ///
    /// # Errors
    /// When it cannot be made: also when it is there already and should not be replaced.
    pub fn create(about: About, interfaces: &[Interface]) -> Result<Self, Error> {
        let interfaces = interfaces.to_vec();
        let lost = vec![0; interfaces.len()];
        let file = begin(&about, &interfaces, &lost, 1)?;
        Ok(Self {
            about,
            interfaces,
            lost,
            last: Nanos(0),
            number: 1,
            closed_bytes: 0,
            file,
        })
    }

    /// Adds frames and losses.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn write(&mut self, run: &Run) -> Result<(), Error> {
        if self.is_full() {
            self.number += 1;
            let next = begin(&self.about, &self.interfaces, &self.lost, self.number)?;
            let mut ended = std::mem::replace(&mut self.file, next);
            self.closed_bytes += ended.writer.output().bytes();
            end(ended, &self.interfaces, &self.lost, self.last)?;
        }
        self.add(run)
            .map_err(|error| cannot_write(&self.file.place, error))?;
        self.flush()
    }

    /// Bytes that all files have on disk.
    pub fn bytes(&mut self) -> u64 {
        self.closed_bytes + self.file.writer.output().bytes()
    }

    fn is_full(&mut self) -> bool {
        match self.about.rotate {
            None => false,
            Some(Rotate::Bytes(most)) => self.file.writer.output().bytes() >= most,
            Some(Rotate::After(time)) => self.file.begun.elapsed() >= Duration::from_nanos(time.0),
        }
    }

    fn add(&mut self, run: &Run) -> io::Result<()> {
        let mut losses = run.lost().iter().peekable();
        // The files of -w are packets alone.
        let notes = if self.about.recorded.is_some() {
            run.notes()
        } else {
            &[]
        };
        let mut notes = notes.iter().peekable();
        for (at, frame) in run.range.clone().zip(run.frames()) {
            while let Some(note) = notes.next_if(|note| note.before as usize <= at) {
                self.file.writer.block(note.kind, run.batch.note(note))?;
            }
            let mut dropped = 0;
            while let Some(lost) = losses.next_if(|lost| lost.before as usize <= at) {
                dropped += self.lose(lost);
            }
            let quantum = self
                .interfaces
                .get(frame.interface as usize)
                .map_or(1, |interface| interface.quantum_ns);
            let comment = (dropped > 0).then(|| format!("{dropped} records were lost before this one"));
            self.file.writer.packet(&Packet {
                interface: frame.interface,
                ticks: frame.time.0 / quantum,
                original: frame.original,
                data: run.batch.bytes(frame),
                flags: None,
                dropped: (dropped > 0).then_some(dropped),
                comment: comment.as_deref(),
            })?;
            self.last = self.last.max(frame.time);
        }
        for note in notes {
            self.file.writer.block(note.kind, run.batch.note(note))?;
        }
        // Those that no frame follows: the statistics at the end tell them.
        for lost in losses {
            self.lose(lost);
        }
        Ok(())
    }

    fn lose(&mut self, lost: &roce_capture::Lost) -> u64 {
        if let Some(sum) = self.lost.get_mut(lost.interface as usize) {
            *sum += lost.records;
        }
        lost.records
    }

    /// Writes buffered bytes to the disk, if the last time was long enough ago.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn flush(&mut self) -> Result<(), Error> {
        if self.file.flushed.elapsed() < FLUSHED_EVERY {
            return Ok(());
        }
        self.file.flushed = Instant::now();
        let flushed = self.file.writer.output().flush();
        flushed.map_err(|error| cannot_write(&self.file.place, error))
    }

    /// Closes the last file.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn finish(self) -> Result<(), Error> {
        end(self.file, &self.interfaces, &self.lost, self.last)
    }
}

/// Starts the file `number`, before which `lost` records were lost.
fn begin(about: &About, interfaces: &[Interface], lost: &[u64], number: u32) -> Result<Open, Error> {
    let place = match about.rotate {
        Some(_) => about.place.beside(&numbered(about.place.name(), number)),
        None => about.place.clone(),
    };
    // Packets are private, whatever the umask.
    let file = place.create(about.overwrite, Access::Private)?;
    let output = Compressor::new(place.name(), file).map_err(|error| cannot_write(&place, error))?;
    let writer = head(output, about, interfaces).map_err(|error| cannot_write(&place, error))?;
    Ok(Open {
        place,
        writer,
        begun: Instant::now(),
        flushed: Instant::now(),
        lost_before: lost.to_vec(),
    })
}

/// Blocks before the first packet.
fn head(output: Compressor, about: &About, interfaces: &[Interface]) -> io::Result<PcapngWriter<Compressor>> {
    let section = SectionOptions {
        comments: vec![about.comment.clone()],
        system: Some(std::env::consts::OS.to_owned()),
        application: Some(concat!("roce-analyze ", env!("CARGO_PKG_VERSION")).to_owned()),
    };
    let mut writer = PcapngWriter::with(output, ByteOrder::Little, &section)?;
    for interface in interfaces {
        // Stamps of microseconds or nanoseconds: 10^-6 s or 10^-9 s.
        let resolution = if interface.quantum_ns == 1 { 9 } else { 6 };
        writer.interface(&InterfaceOptions {
            link: interface.link,
            snaplen: interface.snaplen,
            name: interface.name.clone(),
            description: interface.description.clone(),
            resolution: Some(resolution),
            ..InterfaceOptions::default()
        })?;
    }
    if let Some(recorded) = &about.recorded {
        writer.block(Recorded::BLOCK, &recorded.encode())?;
    }
    Ok(writer)
}

/// Says what was lost, and closes the file.
fn end(mut ended: Open, interfaces: &[Interface], lost: &[u64], newest: Nanos) -> Result<(), Error> {
    let losses = lost
        .iter()
        .zip(&ended.lost_before)
        .map(|(lost, before)| lost - before);
    for ((number, interface), lost) in (0..).zip(interfaces).zip(losses) {
        let ticks = newest.0 / interface.quantum_ns;
        ended
            .writer
            .statistics(number, ticks, None, Some(lost))
            .map_err(|error| cannot_write(&ended.place, error))?;
    }
    let finished = ended.writer.finish().and_then(Compressor::finish);
    finished.map_err(|error| cannot_write(&ended.place, error))
}

/// The name of file `number` of those that follow each other: `trace-00001.pcapng.zst`.
fn numbered(name: &str, number: u32) -> String {
    let (stem, endings) = name.split_once('.').unwrap_or((name, ""));
    let dot = if endings.is_empty() { "" } else { "." };
    format!("{stem}-{number:05}{dot}{endings}")
}

fn cannot_write(place: &Place, error: io::Error) -> Error {
    Error::io(&place.path(), "cannot be written")(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_follow_each_other_are_numbered_before_their_endings() {
        assert_eq!(numbered("trace.pcapng.zst", 7), "trace-00007.pcapng.zst");
        assert_eq!(numbered("trace", 7), "trace-00007");
    }
}
