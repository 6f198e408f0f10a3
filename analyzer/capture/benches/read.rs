//! Reading speed of a capture, compared with its floor: `read()` alone on the same file.
//!
//! The files lie in the page cache. `cargo bench -p roce-capture`, best under `taskset -c 1`. With
//! `ROCE_BENCH_MIB` the files have another size than 256 MiB.

use std::fs::File;
use std::hint::black_box;
use std::io::{BufWriter, Read};
use std::path::Path;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use roce_capture::write::{ByteOrder, InterfaceOptions, PcapOptions, PcapWriter, PcapngWriter};
use roce_capture::{Options, Reader};
use roce_model::Time;

/// Captured bytes of the frames of each file: a RoCE header stack cut by a snaplen of 80 makes records of 96
/// bytes; 1,066 is a 1 KiB WRITE.
const FRAMES: [usize; 2] = [80, 1_066];

fn file_bytes() -> usize {
    let mib = std::env::var("ROCE_BENCH_MIB")
        .ok()
        .and_then(|value| value.parse().ok());
    mib.unwrap_or(256_usize) << 20
}

fn pcap(path: &Path, frame: &[u8], frames: u64) -> std::io::Result<()> {
    let mut writer = PcapWriter::new(BufWriter::new(File::create(path)?), PcapOptions::default())?;
    for number in 0..frames {
        writer.write(Time(1_700_000_000_000_000_000 + number * 100), 1_082, frame)?;
    }
    writer.finish().map(drop)
}

fn pcapng(path: &Path, frame: &[u8], frames: u64) -> std::io::Result<()> {
    let mut writer = PcapngWriter::new(BufWriter::new(File::create(path)?), ByteOrder::Little)?;
    let interface = writer.interface(&InterfaceOptions::default())?;
    for number in 0..frames {
        writer.write(
            interface,
            Time(1_700_000_000_000_000_000 + number * 100),
            1_082,
            frame,
        )?;
    }
    writer.finish().map(drop)
}

fn floor(path: &Path, buffer: &mut [u8]) -> u64 {
    let mut file = File::open(path).expect("the file was written before");
    let mut total = 0;
    loop {
        match file.read(buffer).expect("it can be read") {
            0 => return total,
            read => total += read as u64,
        }
    }
}

fn walk(path: &Path, options: &Options) -> u64 {
    let mut reader = Reader::open(path, options).expect("it is a capture");
    let mut frames = 0;
    while let Some(batch) = reader.next_batch().expect("it can be read") {
        frames += batch.frames().len() as u64;
        black_box(batch.frames());
        reader.recycle(batch);
    }
    frames
}

fn benches(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for size in FRAMES {
        let frame: Vec<u8> = (0..=u8::MAX).cycle().take(size).collect();
        let frames = (file_bytes() / (size + 16)) as u64;
        let path = folder.path().join("frames.pcap");
        pcap(&path, &frame, frames).expect("room for the file");
        let mut group = criterion.benchmark_group(format!("{}-byte records", size + 16));
        group.throughput(Throughput::Elements(frames)).sample_size(10);
        let mut buffer = vec![0; 1 << 20];
        group.bench_function("floor", |bencher| bencher.iter(|| floor(&path, &mut buffer)));
        for kib in [128, 256, 512, 1_024, 2_048] {
            let options = Options {
                block_bytes: kib << 10,
                read_ahead: false,
                ..Options::default()
            };
            group.bench_with_input(
                BenchmarkId::new("pcap, KiB", kib),
                &options,
                |bencher, options| {
                    bencher.iter(|| assert_eq!(walk(&path, options), frames));
                },
            );
        }
        let ahead = Options {
            read_ahead: true,
            ..Options::default()
        };
        group.bench_function("pcap, read ahead", |bencher| {
            bencher.iter(|| assert_eq!(walk(&path, &ahead), frames));
        });
        pcapng(&path, &frame, frames).expect("room for the file");
        let options = Options::default();
        group.bench_function("pcapng", |bencher| {
            bencher.iter(|| assert_eq!(walk(&path, &options), frames));
        });
        group.finish();
    }
}

criterion_group!(all, benches);
criterion_main!(all);
