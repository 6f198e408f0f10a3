//! Properties of any file: round trips over every format with block borders everywhere, every cut, and
//! garbage.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// A stream whose reads return the given numbers of bytes, in turn.
struct Drips {
    bytes: Vec<u8>,
    at: usize,
    sizes: Vec<usize>,
    turn: usize,
}

impl Read for Drips {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let size = self.sizes[self.turn % self.sizes.len()].min(buffer.len());
        self.turn += 1;
        let read = (&self.bytes[self.at..]).read(&mut buffer[..size])?;
        self.at += read;
        Ok(read)
    }
}

/// A frame as it is written: time in ns, original length, bytes.
type WrittenFrame = (u64, u32, Vec<u8>);

fn frames() -> impl Strategy<Value = Vec<WrittenFrame>> {
    // Times that 32 bits of seconds hold.
    vec(
        (
            0..4_000_000_000_000_000_000_u64,
            any::<u32>(),
            vec(any::<u8>(), 0..70),
        ),
        0..25,
    )
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Pcap(Container),
    /// With this `if_tsresol`.
    Pcapng(u8),
}

fn kinds() -> impl Strategy<Value = Kind> {
    prop_oneof![
        Just(Kind::Pcap(Container::Pcap)),
        Just(Kind::Pcap(Container::PcapNanos)),
        Just(Kind::Pcap(Container::PcapModified)),
        Just(Kind::Pcapng(6)),
        Just(Kind::Pcapng(9)),
        Just(Kind::Pcapng(3)),
    ]
}

impl Kind {
    /// Nanoseconds of one tick.
    fn unit(self) -> u64 {
        match self {
            Self::Pcap(Container::PcapNanos) | Self::Pcapng(9) => 1,
            Self::Pcapng(3) => 1_000_000,
            Self::Pcap(_) | Self::Pcapng(_) => 1_000,
        }
    }

    /// The file, and where each of its records ends.
    fn write(self, order: ByteOrder, frames: &[WrittenFrame]) -> (Vec<u8>, Vec<usize>) {
        let mut ends = Vec::new();
        match self {
            Self::Pcap(container) => {
                let options = PcapOptions {
                    container,
                    order,
                    ..PcapOptions::default()
                };
                let mut file = PcapWriter::new(Vec::new(), options).unwrap().finish().unwrap();
                for (time, original, data) in frames {
                    let mut one = PcapWriter::new(Vec::new(), options).unwrap();
                    one.write(Time(*time), *original, data).unwrap();
                    file.extend_from_slice(&one.finish().unwrap()[24..]);
                    ends.push(file.len());
                }
                (file, ends)
            }
            Self::Pcapng(resolution) => {
                let mut writer = PcapngWriter::new(Vec::new(), order).unwrap();
                let about = InterfaceOptions {
                    resolution: Some(resolution),
                    ..InterfaceOptions::default()
                };
                writer.interface(&about).unwrap();
                // 28 of the section, 20 of the interface, 8 + 4 of its options.
                let mut end = 60;
                for (number, (time, original, data)) in frames.iter().enumerate() {
                    let flags = (number % 3 == 0).then_some(1);
                    let ticks = time / self.unit();
                    let packet = Packet {
                        ticks,
                        original: *original,
                        data,
                        flags,
                        ..Packet::default()
                    };
                    writer.packet(&packet).unwrap();
                    end += 32 + data.len().next_multiple_of(4) + if flags.is_some() { 12 } else { 0 };
                    ends.push(end);
                }
                (writer.finish().unwrap(), ends)
            }
        }
    }
}

fn read(reader: &mut Reader) -> Vec<WrittenFrame> {
    let mut found = Vec::new();
    while let Some(batch) = reader.next_batch().unwrap() {
        let frames = batch.frames().iter();
        found.extend(frames.map(|frame| (frame.time.0, frame.original, batch.bytes(frame).to_vec())));
        reader.recycle(batch);
    }
    found
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        kind in kinds(),
        big in any::<bool>(),
        frames in frames(),
        sizes in vec(1_usize..40, 1..5),
        block_bytes in 1_usize..200,
        read_ahead in any::<bool>(),
        compression in prop_oneof![Just(None), Just(Some(Compression::Gzip)), Just(Some(Compression::Zstd))],
    ) {
        let order = if big { ByteOrder::Big } else { ByteOrder::Little };
        let (file, ends) = kind.write(order, &frames);
        prop_assert_eq!(ends.last().copied().unwrap_or(file.len()), file.len());
        let bytes = match compression {
            None => file,
            Some(Compression::Gzip) => gzip(&file),
            Some(Compression::Zstd) => zstandard(&file),
        };
        let stream = Box::new(Drips { bytes, at: 0, sizes, turn: 0 });
        let options = Options { block_bytes, read_ahead, ..Options::default() };
        let mut reader = Reader::from_read("memory", stream, &options).unwrap();
        let times: Vec<u64> = frames.iter().map(|(time, ..)| time - time % kind.unit()).collect();
        let back = times.windows(2).filter(|pair| pair[1] < pair[0]);
        let disorder = Disorder {
            records: back.clone().count() as u64,
            max_back_ns: back.map(|pair| pair[0] - pair[1]).max().unwrap_or(0),
        };
        let expected: Vec<WrittenFrame> =
            times.iter().zip(frames).map(|(time, (_, original, data))| (*time, original, data)).collect();
        prop_assert_eq!(read(&mut reader), expected);
        prop_assert_eq!(reader.summary().truncation, None);
        prop_assert_eq!(reader.summary().disorder, disorder);
        prop_assert_eq!(reader.summary().first_time, times.iter().min().copied().map(Time));
        prop_assert_eq!(reader.summary().last_time, times.iter().max().copied().map(Time));
    }

    #[test]
    fn garbage_ends(
        mut bytes in vec(any::<u8>(), 0..400),
        begin in 0_usize..8,
        block_bytes in 1_usize..300,
    ) {
        let section = PcapngWriter::new(Vec::new(), ByteOrder::Little).unwrap().finish().unwrap();
        let beginnings: [&[u8]; 8] = [
            &[],
            &[0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0],
            &[0xa1, 0xb2, 0xcd, 0x34, 0, 2, 0, 4],
            &[0x0a, 0x0d, 0x0d, 0x0a],
            &section,
            &[0x1f, 0x8b, 8, 0],
            &[0x28, 0xb5, 0x2f, 0xfd],
            &[0x0a, 0x0d, 0x0d, 0x0a, 28, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0],
        ];
        bytes.splice(0..0, beginnings[begin].iter().copied());
        if let Ok(mut reader) = from(bytes, block_bytes) {
            while let Ok(Some(batch)) = reader.next_batch() {
                prop_assert!(batch.frames().iter().all(|frame| batch.bytes(frame).len() == frame.captured as usize));
            }
        }
    }

    #[test]
    fn a_changed_byte_ends(
        kind in kinds(),
        frames in frames(),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
        block_bytes in 1_usize..300,
    ) {
        let (mut file, _) = kind.write(ByteOrder::Little, &frames);
        let at = at.index(file.len());
        file[at] = byte;
        if let Ok(mut reader) = from(file, block_bytes) {
            while let Ok(Some(batch)) = reader.next_batch() {
                prop_assert!(batch.frames().iter().all(|frame| batch.bytes(frame).len() == frame.captured as usize));
            }
        }
    }
}

#[test]
fn a_cut_anywhere_keeps_the_whole_records() {
    let frames: Vec<WrittenFrame> = (0..6_u8)
        .map(|n| (u64::from(n), 9, vec![n; usize::from(n) * 3]))
        .collect();
    for kind in [Container::Pcap, Container::PcapModified]
        .map(Kind::Pcap)
        .into_iter()
        .chain([Kind::Pcapng(9)])
    {
        for order in [ByteOrder::Little, ByteOrder::Big] {
            let (file, ends) = kind.write(order, &frames);
            for cut in 4..file.len() {
                for block_bytes in [1, 33, 1 << 16] {
                    let mut reader = from(&file[..cut], block_bytes).unwrap();
                    let whole = ends.iter().filter(|end| **end <= cut).count();
                    assert_eq!(
                        read(&mut reader).len(),
                        whole,
                        "{kind:?} {order:?} {cut} {block_bytes}"
                    );
                    // Between two records nothing tells that there was more.
                    let starts = [24, 28, 60].into_iter().chain(ends.iter().copied());
                    let between = starts.filter(|start| match kind {
                        Kind::Pcap(_) => *start != 28 && *start != 60,
                        Kind::Pcapng(_) => *start != 24,
                    });
                    let start = between.filter(|start| *start <= cut).max().unwrap_or(0);
                    let truncation = reader.summary().truncation;
                    assert_eq!(
                        truncation.is_none(),
                        start == cut,
                        "{kind:?} {cut} {truncation:?}"
                    );
                    if let Some(Truncation { offset, needed, had }) = truncation {
                        assert_eq!((offset, had), (start as u64, (cut - start) as u64));
                        assert!(needed > had);
                    }
                }
            }
        }
    }
}
