//! Keeps the stream of a live run as pcapng: the files of `-w`, which can be rotated, and the recording of `--record`, which also
//! says how the run was started.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use flate2::write::GzEncoder;
use roce_capture::write::{ByteOrder, InterfaceOptions, Packet, PcapngWriter, SectionOptions};
use roce_capture::{FrameRun, Interface};
use roce_files::{Access, FilePlace};
use roce_model::{RecordingStart, Span, Time};

use crate::error::Error;

/// Condition that starts the next file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rotate {
    /// This many bytes on disk.
    Bytes(u64),
    /// This time.
    After(Span),
}

/// Limit of what an encoder holds back of blocks it has begun to write: zstd's blocks and zlib's window are smaller.
const ENCODER_BYTES: u64 = 128 << 10;
/// Limit of what a packet has in a file beside its bytes: the block's head, its options and padding.
const BLOCK_BYTES: u64 = 256;
/// Limit of what closes a file: the statistics of one interface and the encoder's last block.
const END_BYTES: u64 = 256;

/// Period of writing buffered bytes to the disk.
const FLUSHED_EVERY: Duration = Duration::from_secs(1);

/// Comments and rotation of the files.
#[derive(Clone, Debug)]
pub struct About {
    /// Destination: the name's ending selects the compression.
    pub place: FilePlace,
    /// Replace what is there.
    pub overwrite: bool,
    /// Condition that starts the next file; `None`: there is one file.
    pub rotate: Option<Rotate>,
    /// Comment for readers, in words.
    pub comment: String,
    /// For a recording: how the run was started.
    pub recorded: Option<RecordingStart>,
}

/// The packets of a run, in one file or several that follow each other.
pub struct PacketFiles {
    about: About,
    interfaces: Vec<Interface>,
    /// Lost records, by interface.
    lost: Vec<u64>,
    /// The time of the last frame.
    last: Time,
    number: u32,
    /// Bytes of the files before the open one.
    closed_bytes: u64,
    file: Open,
}

/// The file that is being written.
struct Open {
    place: FilePlace,
    writer: PcapngWriter<Compressor>,
    begun: Instant,
    flushed: Instant,
    /// Records lost before its start, by interface.
    lost_before: Vec<u64>,
}

/// A file, compressed as its name says.
struct Compressor {
    format: Format,
    /// Bytes written since the compressed output last grew, all of which the encoder may hold. 0: it holds nothing.
    pending: u64,
}

/// Compression of a file.
enum Format {
    Plain(CountedFile),
    Gzip(GzEncoder<CountedFile>),
    Zstd(zstd::Encoder<'static, CountedFile>),
}

/// Counts the bytes that reach the file.
struct CountedFile {
    file: BufWriter<File>,
    bytes: u64,
}

impl Write for CountedFile {
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
        let file = CountedFile {
            file: BufWriter::with_capacity(1 << 20, file),
            bytes: 0,
        };
        let format = match Path::new(name).extension().and_then(std::ffi::OsStr::to_str) {
            Some("gz") => Format::Gzip(GzEncoder::new(file, flate2::Compression::fast())),
            Some("zst") => Format::Zstd(zstd::Encoder::new(file, 1)?),
            _ => Format::Plain(file),
        };
        Ok(Self { format, pending: 0 })
    }

    /// Compressed bytes that the file has.
    fn bytes(&self) -> u64 {
        match &self.format {
            Format::Plain(file) => file.bytes,
            Format::Gzip(file) => file.get_ref().bytes,
            Format::Zstd(file) => file.get_ref().bytes,
        }
    }

    /// Limit of the bytes that the file has once the encoder gives up what it holds.
    fn bytes_at_most(&self) -> u64 {
        let held = if self.pending == 0 { 0 } else { ENCODER_BYTES };
        self.bytes() + self.pending + held
    }

    fn finish(self) -> io::Result<()> {
        match self.format {
            Format::Plain(file) => file,
            Format::Gzip(file) => file.finish()?,
            Format::Zstd(file) => file.finish()?,
        }
        .flush()
    }
}

impl Write for Compressor {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let before = self.bytes();
        let written = match &mut self.format {
            Format::Plain(file) => return file.write(bytes),
            Format::Gzip(file) => file.write(bytes),
            Format::Zstd(file) => file.write(bytes),
        }?;
        if self.bytes() == before {
            self.pending += written as u64;
        } else {
            self.pending = written as u64;
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.format {
            Format::Plain(file) => file.flush(),
            Format::Gzip(file) => file.flush(),
            Format::Zstd(file) => file.flush(),
        }?;
        self.pending = 0;
        Ok(())
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
            last: Time(0),
            number: 1,
            closed_bytes: 0,
            file,
        })
    }

    /// Adds frames and losses, up to the first frame with which the files could have more than `max_bytes`.
    /// `true`: there was such a frame. Notes of a recording may exceed the limit by their own size.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn write(&mut self, run: &FrameRun, max_bytes: Option<u64>) -> Result<bool, Error> {
        if self.is_full() {
            self.number += 1;
            let next = begin(&self.about, &self.interfaces, &self.lost, self.number)?;
            let mut ended = std::mem::replace(&mut self.file, next);
            self.closed_bytes += ended.writer.output().bytes();
            end(ended, &self.interfaces, &self.lost, self.last)?;
        }
        let full = self
            .add(run, max_bytes.unwrap_or(u64::MAX))
            .map_err(|error| cannot_write(&self.file.place, error))?;
        self.flush()?;
        Ok(full)
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

    /// The open file has room for a packet of `length` bytes, and for its end, within `max_bytes` of all files.
    fn has_room(&mut self, length: usize, max_bytes: u64) -> io::Result<bool> {
        let more =
            self.closed_bytes + length as u64 + BLOCK_BYTES + END_BYTES * (1 + self.interfaces.len() as u64);
        let file = self.file.writer.output();
        if more + file.bytes_at_most() <= max_bytes {
            return Ok(true);
        }
        // The limit is near: the exact size decides.
        file.flush()?;
        Ok(more + file.bytes_at_most() <= max_bytes)
    }

    fn add(&mut self, run: &FrameRun, max_bytes: u64) -> io::Result<bool> {
        let mut losses = run.lost().iter().peekable();
        // The files of -w are packets alone.
        let notes = if self.about.recorded.is_some() {
            run.notes()
        } else {
            &[]
        };
        let mut notes = notes.iter().peekable();
        for (at, frame) in run.range.clone().zip(run.frames()) {
            if !self.has_room(run.batch.bytes(frame).len(), max_bytes)? {
                return Ok(true);
            }
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
        Ok(false)
    }

    fn lose(&mut self, lost: &roce_capture::LostFrames) -> u64 {
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
        writer.block(RecordingStart::BLOCK, &recorded.encode())?;
    }
    Ok(writer)
}

/// Says what was lost, and closes the file.
fn end(mut ended: Open, interfaces: &[Interface], lost: &[u64], newest: Time) -> Result<(), Error> {
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

fn cannot_write(place: &FilePlace, error: io::Error) -> Error {
    Error::io(&place.path(), "cannot be written")(error)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use roce_capture::{Batch, Direction, Frame};
    use roce_wire::LinkType;

    use super::*;

    /// 8,000 frames of 400 bytes in one run: `noise` of their bytes is what no encoder makes smaller, the rest is zero.
    fn frames(noise: usize) -> FrameRun {
        let mut state = 1_u64;
        let data: Vec<u8> = (0..8_000 * 400)
            .map(|at| {
                // Constants of Knuth's MMIX generator.
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                if at % 400 < noise { (state >> 56) as u8 } else { 0 }
            })
            .collect();
        let frames = (0..8_000)
            .map(|number| Frame {
                time: Time(u64::from(number)),
                offset: number * 400,
                captured: 400,
                original: 400,
                interface: 0,
                fcs_bytes: 0,
                direction: Direction::Unknown,
                process: 0,
            })
            .collect();
        FrameRun {
            input: 0,
            batch: Arc::new(Batch::new(data.into(), frames, Vec::new())),
            range: 0..8_000,
        }
    }

    #[test]
    fn no_file_exceeds_its_limit_however_many_frames_come_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let interface = Interface {
            link: LinkType::ETHERNET,
            name: None,
            description: None,
            snaplen: 400,
            fcs_bytes: 0,
            quantum_ns: 1,
            dropped: None,
            section: 0,
        };
        // A file ends early by less than one packet, which has 400 bytes, and by the room kept for its blocks: BLOCK_BYTES, and END_BYTES twice.
        let early = 400 + BLOCK_BYTES + 2 * END_BYTES;
        for name in ["a.pcapng", "a.pcapng.gz", "a.pcapng.zst"] {
            for (noise, limit) in [(400, 20_000), (400, 900_000), (40, 150_000), (0, 9_000)] {
                let path = folder.path().join(name);
                let about = About {
                    place: FilePlace::named(&path).unwrap(),
                    overwrite: true,
                    rotate: None,
                    comment: String::new(),
                    recorded: None,
                };
                let mut files = PacketFiles::create(about, std::slice::from_ref(&interface)).unwrap();
                assert!(files.write(&frames(noise), Some(limit)).unwrap());
                files.finish().unwrap();
                let bytes = std::fs::metadata(&path).unwrap().len();
                assert!(
                    (limit - early..=limit).contains(&bytes),
                    "{name}, {noise} bytes of noise: {bytes} bytes, and {limit} are the limit"
                );
            }
        }
    }

    #[test]
    fn files_that_follow_each_other_are_numbered_before_their_endings() {
        assert_eq!(numbered("trace.pcapng.zst", 7), "trace-00007.pcapng.zst");
        assert_eq!(numbered("trace", 7), "trace-00007");
    }
}
