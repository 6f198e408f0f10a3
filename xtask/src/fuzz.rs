//! `cargo xtask fuzz`: the fuzz targets of tests/crates/fuzz. Seeds of those that read captures and frames are cut from the captures, those of the
//! others are in tests/crates/fuzz/seeds.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::need::{self, CXX_COMPILER};
use crate::workspace::{Workspace, execute, succeeds};

pub(crate) const ABOUT: &str = "fuzz one target or all, 60 s each by default";
pub(crate) const ARGUMENTS: &str = "[TARGET] [--seconds N] [--jobs N] [--kind N]";

/// Each reader of untrusted bytes.
const TARGETS: [&str; 23] = [
    "pcap",
    "pcapng",
    "decode",
    "analysis",
    "cm",
    "recording",
    "document",
    "parquet",
    "config",
    "training",
    "filter",
    "otlp",
    "host",
    "device",
    "fabric",
    "results",
    "jobs",
    "mcp",
    "sflow",
    "transports",
    "traces",
    "nccl",
    "samples",
];

/// Targets whose seeds are cut from the captures.
const FROM_CAPTURES: [&str; 5] = ["pcap", "pcapng", "decode", "analysis", "transports"];

/// Folders with captures of MRC and UET, of trimmed frames and of telemetry, below tests/data.
const TRANSPORTS: [&str; 3] = ["mrc", "uet", "transports"];

/// Targets whose first byte picks a parser, and how many they have.
const KINDS: [(&str, u64); 3] = [("device", 6), ("fabric", 5), ("transports", 5)];

/// Frames of a capture that become seeds of `transports`.
const MAX_FRAMES: usize = 20;

/// Longest input that is tried, in bytes: some records fit.
const MAX_INPUT: usize = 8192;

struct Options {
    targets: Vec<String>,
    seconds: u64,
    jobs: u64,
    /// The only parser of targets that have several.
    kind: Option<u64>,
}

pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    let options = parse(arguments)?;
    need::ensure(&[CXX_COMPILER])?;
    let program = workspace.install("cargo-fuzz", "^0.13")?;
    let folder = workspace.target.join("fuzz");
    for target in &options.targets {
        let (seeds, corpus) = (
            folder.join("seeds").join(target),
            folder.join("corpus").join(target),
        );
        fs::create_dir_all(&corpus).with_context(|| format!("cannot make {}", corpus.display()))?;
        let seeds = if FROM_CAPTURES.contains(&target.as_str()) {
            write_seeds(workspace, target, &seeds)?;
            seeds
        } else {
            workspace.root.join("tests/crates/fuzz/seeds").join(target)
        };
        println!(
            "== fuzz {target}: {} s, seeds in {}, corpus in {}",
            options.seconds,
            workspace.shown(&seeds),
            workspace.shown(&corpus)
        );
        let mut fuzz = workspace.command(&program);
        // A path to a toolchain's own cargo, left by the cargo that runs this, would win over the choice below.
        fuzz.env_remove("CARGO")
            .env_remove("RUSTC")
            .env("CARGO_TARGET_DIR", folder.join("target"));
        if let Some(kind) = options.kind {
            fuzz.env("ROCE_FUZZ_KIND", kind.to_string());
        }
        if nightly() {
            fuzz.env("RUSTUP_TOOLCHAIN", "nightly");
        } else {
            fuzz.env("RUSTC_BOOTSTRAP", "1");
        }
        fuzz.args(["run", "--fuzz-dir", "tests/crates/fuzz", target])
            .arg(&corpus)
            .arg(&seeds)
            .arg("--");
        fuzz.arg(format!("-max_total_time={}", options.seconds))
            .arg(format!("-max_len={MAX_INPUT}"));
        // A thread of the reader that is about to end when leaks are counted looks like one.
        fuzz.args([
            "-timeout=10",
            "-print_final_stats=1",
            "-print_funcs=0",
            "-detect_leaks=0",
        ]);
        if options.jobs > 1 {
            fuzz.arg(format!("-fork={}", options.jobs));
        }
        execute(&mut fuzz)?;
    }
    println!(
        "\nNothing found: {} x {} s.",
        options.targets.join(", "),
        options.seconds
    );
    Ok(())
}

fn parse(arguments: &[String]) -> Result<Options> {
    let mut options = Options {
        targets: Vec::new(),
        seconds: 60,
        jobs: 1,
        kind: None,
    };
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let mut number = || -> Result<u64> {
            let text = arguments
                .next()
                .with_context(|| format!("{argument} needs a number"))?;
            text.parse().with_context(|| format!("'{text}' is not a number"))
        };
        match argument.as_str() {
            "--seconds" => options.seconds = number()?,
            "--jobs" => options.jobs = number()?,
            "--kind" => options.kind = Some(number()?),
            name if TARGETS.contains(&name) => options.targets.push(name.to_owned()),
            other => bail!(
                "there is no fuzz target '{other}'\nhint: the targets are {}",
                TARGETS.join(", ")
            ),
        }
    }
    if options.targets.is_empty() {
        options.targets = TARGETS.map(str::to_owned).to_vec();
    }
    if let Some(kind) = options.kind {
        for target in &options.targets {
            let count = KINDS
                .iter()
                .find(|(name, _)| name == target)
                .map(|(_, count)| *count);
            if count.is_none_or(|count| kind >= count) {
                bail!(
                    "{target} has no parser {kind}\nhint: --kind is for {}, from 0 on",
                    KINDS.map(|(name, _)| name).join(" and ")
                );
            }
        }
    }
    Ok(options)
}

/// True if there is a nightly toolchain that knows the edition.
fn nightly() -> bool {
    succeeds(
        Command::new("rustc")
            .env("RUSTUP_TOOLCHAIN", "nightly")
            .args(["--edition=2024", "--version"]),
    )
}

/// One record of a capture.
struct Record {
    seconds: u32,
    micros: u32,
    original: u32,
    bytes: Vec<u8>,
}

/// Makes the seeds of a target from the captures.
fn write_seeds(workspace: &Workspace, target: &str, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let write = |name: String, bytes: &[u8]| {
        let path = folder.join(name);
        fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))
    };
    let mut captures = workspace.captures()?;
    for transport in TRANSPORTS {
        captures.extend(workspace.captures_of(&Path::new("tests/data").join(transport))?);
    }
    for capture in captures {
        let name = capture.file_stem().unwrap_or_default().to_string_lossy();
        let file = fs::read(&capture).with_context(|| format!("cannot read {}", capture.display()))?;
        let records = records(&file);
        if target == "decode" {
            // The first records of a capture, one in its middle, and the last one.
            for at in [0, 1, 2, records.len() / 2, records.len().saturating_sub(1)] {
                if let Some(record) = records.get(at) {
                    write(format!("{name}-{at}"), &decode_seed(record))?;
                }
            }
            continue;
        }
        if target == "transports" {
            for (at, record) in records.iter().take(MAX_FRAMES).enumerate() {
                for (kind, seed) in transports_seeds(&record.bytes).iter().enumerate() {
                    write(format!("{name}-{at}-{kind}"), seed)?;
                }
            }
            continue;
        }
        let mut some = Vec::new();
        let mut length = 0;
        for record in &records {
            length += record.bytes.len() + 36;
            if length > MAX_INPUT / 2 {
                break;
            }
            some.push(record);
        }
        match target {
            "pcapng" => write(format!("{name}.pcapng"), &pcapng(&some))?,
            _ => write(format!("{name}.pcap"), &pcap(&some))?,
        }
    }
    Ok(())
}

/// The records of a little-endian pcap file.
fn records(file: &[u8]) -> Vec<Record> {
    let mut records = Vec::new();
    let mut rest = file.get(24..).unwrap_or_default();
    while let Some((header, after)) = rest.split_at_checked(16) {
        let word = |at: usize| {
            header
                .get(at..at + 4)
                .and_then(|bytes| bytes.try_into().ok())
                .map_or(0, u32::from_le_bytes)
        };
        let Some((bytes, next)) = after.split_at_checked(word(8) as usize) else {
            break;
        };
        records.push(Record {
            seconds: word(0),
            micros: word(4),
            original: word(12),
            bytes: bytes.to_vec(),
        });
        rest = next;
    }
    records
}

/// Input of the target `decode`: the link type (0 is Ethernet), the bytes that were not captured (in
/// units of 16), and the frame.
fn decode_seed(record: &Record) -> Vec<u8> {
    let more = record
        .original
        .saturating_sub(length(&record.bytes))
        .div_ceil(16)
        .min(254);
    let mut seed = vec![0, u8::try_from(more).unwrap_or(254)];
    seed.extend_from_slice(&record.bytes);
    seed
}

/// Inputs of the target `transports`: the reader's number, and what it reads of a frame. The headers of MRC and UET are those behind
/// UDP; the frame itself is without its addresses. A frame that is trimmed to 192 bytes has DSCP 10 then, and the old or a new length.
fn transports_seeds(frame: &[u8]) -> Vec<Vec<u8>> {
    const ETHERNET: usize = 14;
    const ADDRESSES: usize = 12;
    const IPV6: usize = 40;
    const UDP: usize = 8;
    let ip = frame.get(ETHERNET).map_or(0, |first| first >> 4);
    let header = if ip == 4 { IPV6 / 2 } else { IPV6 };
    let behind = frame.get(ETHERNET + header + UDP..).unwrap_or_default();
    let seed = |kind: u8, bytes: &[u8]| [&[kind], bytes].concat();
    vec![
        seed(0, behind),
        seed(1, behind),
        seed(3, frame.get(ADDRESSES..).unwrap_or_default()),
        [&[4, 48, 10 << 2, 0], frame].concat(),
        [&[4, 48, 10 << 2, 1], frame].concat(),
    ]
}

fn words(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn length(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).unwrap_or(u32::MAX)
}

fn pcap(records: &[&Record]) -> Vec<u8> {
    let mut file = words(&[0xa1b2_c3d4, 0x0004_0002, 0, 0, 262_144, 1]);
    for record in records {
        file.extend(words(&[
            record.seconds,
            record.micros,
            length(&record.bytes),
            record.original,
        ]));
        file.extend_from_slice(&record.bytes);
    }
    file
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "both halves of a time stamp have 32 bits"
)]
fn pcapng(records: &[&Record]) -> Vec<u8> {
    let mut file = words(&[0x0a0d_0d0a, 28, 0x1a2b_3c4d, 1, u32::MAX, u32::MAX, 28]);
    // One Ethernet interface, with if_tsresol 6 and the end of the options.
    file.extend(words(&[1, 32, 1, 262_144, 0x0001_0009, 6, 0, 32]));
    for record in records {
        let ticks = u64::from(record.seconds) * 1_000_000 + u64::from(record.micros);
        let (high, low) = ((ticks >> 32) as u32, (ticks & u64::from(u32::MAX)) as u32);
        let mut padded = record.bytes.clone();
        padded.resize(padded.len().next_multiple_of(4), 0);
        let block = length(&padded) + 32;
        file.extend(words(&[
            6,
            block,
            0,
            high,
            low,
            length(&record.bytes),
            record.original,
        ]));
        file.extend(padded);
        file.extend(words(&[block]));
    }
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_survive_the_way_through_a_seed() {
        let record = Record {
            seconds: 7,
            micros: 8,
            original: 90,
            bytes: vec![1, 2, 3],
        };
        let file = pcap(&[&record, &record]);
        let back = records(&file);
        assert_eq!(back.len(), 2);
        assert_eq!((back[1].seconds, back[1].micros, back[1].original), (7, 8, 90));
        assert_eq!(back[1].bytes, [1, 2, 3]);
        assert_eq!(pcapng(&[&record]).len(), 28 + 32 + 32 + 4);
    }

    /// Those of the folder are all run, and start from something.
    #[test]
    fn every_target_is_run_and_has_seeds() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/crates/fuzz");
        let files = fs::read_dir(folder.join("fuzz_targets")).expect("the folder of targets");
        let names = files.map(|file| file.expect("an entry").path());
        let mut found: Vec<String> = names
            .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
            .collect();
        let mut known = TARGETS;
        known.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, known);
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).expect("the manifest");
        for name in TARGETS {
            assert!(manifest.contains(&format!("name = \"{name}\"")), "{name}");
            assert!(
                FROM_CAPTURES.contains(&name) || folder.join("seeds").join(name).is_dir(),
                "{name}"
            );
        }
    }

    #[test]
    fn arguments_are_understood() {
        let options = parse(&["pcap".to_owned(), "--seconds".to_owned(), "5".to_owned()]).expect("right");
        assert_eq!(
            (options.targets.as_slice(), options.seconds),
            (&["pcap".to_owned()][..], 5)
        );
        assert_eq!(parse(&[]).expect("right").targets.len(), TARGETS.len());
        assert!(parse(&["nope".to_owned()]).is_err());
        let kind = |target: &str, kind: &str| parse(&[target, "--kind", kind].map(str::to_owned));
        assert_eq!(kind("device", "4").expect("right").kind, Some(4));
        assert!(kind("device", "6").is_err() && kind("pcap", "0").is_err());
    }
}
