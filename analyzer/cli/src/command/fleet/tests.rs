//! `fleet capture` and `fleet collect` in simulated time, from seeds: hosts that answer late, die in the middle, send half a report, a short
//! file or too much, clocks that are set, files that fit nowhere, signals.
//!
//! Each host has a clock of its own, which waiting for it moves. Hours pass in milliseconds, and what a host does follows from the seed.

mod host;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use clap::Parser;
use roce_files::Directory;
use roce_model::random::stream;
use roce_model::seeds::{below, each, once_in};
use roce_remote::Machine;
use roce_remote::fleet::manifest::{HostRow, HostState, Manifest, RunState, SCHEMA_VERSION};
use roce_remote::fleet::transfer::hex;
use roce_switches::inventory::HostTarget;
use sha2::{Digest as _, Sha256};

use self::host::{Signals, SimulatedHost, SimulatedLink};
use super::book::Book;
use super::capture::{Capture, run};
use super::gather::gather;
use super::interrupt::Interrupts;
use super::table::is_good;
use super::targets::Target;

/// Longest time that a host takes, by its own clock: its preflight, its capture, ten minutes for its report, ten for a look, and
/// transfers.
const LONGEST: Duration = Duration::from_hours(2);
/// Bytes of a manifest for each host, whatever the hosts send.
const MAX_ROW_BYTES: u64 = 64 << 10;

#[derive(Parser)]
struct CaptureLine {
    #[command(flatten)]
    capture: Capture,
}

/// The hosts of a world, and how they are reached.
struct World {
    hosts: Vec<Arc<SimulatedHost>>,
    targets: Vec<Target>,
    signals: Arc<Signals>,
}

impl World {
    fn new(seed: u64, signals: Signals, is_honest: bool) -> Self {
        let count = 1 + below(&mut stream(seed, "hosts"), 4);
        let signals = Arc::new(signals);
        let host = |number| Arc::new(SimulatedHost::new(seed, number, &signals, is_honest));
        let hosts: Vec<_> = (0..count).map(host).collect();
        let target = |(number, host): (usize, &Arc<SimulatedHost>)| {
            let name = format!("gpu{number}");
            let link = Arc::new(SimulatedLink(Arc::clone(host)));
            Target {
                machine: Machine::over(&name, link),
                host: HostTarget::named(&name),
            }
        };
        let targets = hosts.iter().enumerate().map(target).collect();
        Self {
            hosts,
            targets,
            signals,
        }
    }

    /// Every script has ended, and in time.
    fn has_ended(&self) {
        for (number, host) in self.hosts.iter().enumerate() {
            assert_eq!(host.running.load(Ordering::SeqCst), 0, "scripts of host {number}");
            assert!(
                host.elapsed() <= LONGEST,
                "host {number}: {:?} have passed",
                host.elapsed()
            );
        }
    }
}

fn manifest() -> Manifest {
    Manifest {
        schema_version: SCHEMA_VERSION,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        run: "0123456789abcdef".to_owned(),
        state: RunState::Asking,
        begun_ns: 0,
        start_ns: None,
        duration_ms: None,
        snaplen: 192,
        filter: None,
        command: None,
        hosts: Vec::new(),
    }
}

/// Bytes of the files of a folder, by name.
fn files_of(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let file = |entry: std::fs::DirEntry| {
        let name = entry.file_name().into_string().unwrap();
        (name, std::fs::read(entry.path()).unwrap())
    };
    entries.map(file).collect()
}

/// True if what the row has of a host's files, their sizes and hashes, is true.
fn is_true(row: &HostRow, host: &SimulatedHost) -> bool {
    row.files.iter().all(|file| {
        let known = host.files.iter().find(|known| known.name == file.remote);
        known.is_some_and(|known| {
            file.bytes == known.bytes.len() as u64 && file.sha256 == Some(hex(&Sha256::digest(&known.bytes)))
        })
    })
}

/// Properties of a folder and its manifest, at any end of a run.
fn holds(folder: &Path, manifest: &Manifest, world: &World) {
    assert_eq!(&Manifest::read(folder).unwrap(), manifest, "the manifest on disk");
    let mut files = files_of(folder);
    let bytes = files.remove("fleet.json").unwrap().len() as u64;
    let most = MAX_ROW_BYTES * (1 + manifest.hosts.len() as u64);
    assert!(bytes <= most, "{bytes} bytes of manifest");
    let is_pending = manifest.hosts.iter().any(HostRow::is_pending);
    assert!(
        matches!(manifest.state, RunState::Done | RunState::Incomplete),
        "{:?}",
        manifest.state
    );
    assert_eq!(manifest.state == RunState::Incomplete, is_pending, "{manifest:?}");
    for (row, host) in manifest.hosts.iter().zip(&world.hosts) {
        let were_stopped = world.signals.to.ends_captures();
        assert!(
            is_good(row) || row.error.is_some() || (row.is_pending() && were_stopped),
            "nothing is said of {row:?}"
        );
        assert!(
            !matches!(row.state, HostState::Planned | HostState::Ready),
            "{row:?}"
        );
        for file in &row.files {
            let part = files.remove(&format!("{}.part", file.name));
            let whole = files.remove(&file.name);
            for bytes in part.iter().chain(&whole) {
                assert!(
                    bytes.len() as u64 <= file.bytes,
                    "{}: more than was named",
                    file.name
                );
            }
            assert_eq!(whole.is_some(), file.is_here, "{}: of {row:?}", file.name);
            if let Some(whole) = whole {
                assert_eq!(whole.len() as u64, file.bytes, "{}: its size", file.name);
                let hash = hex(&Sha256::digest(&whole));
                assert!(
                    file.sha256.as_ref().is_none_or(|said| *said == hash),
                    "{}: its hash",
                    file.name
                );
            }
        }
        if row.state == HostState::Collected {
            assert!(
                !row.files.is_empty() && row.files.iter().all(|file| file.is_here),
                "{row:?}"
            );
        } else {
            assert_eq!(row.frames, None, "frames of what is not here");
        }
        if is_good(row) && row.files.len() == host.files.len() && is_true(row, host) {
            let frames: u64 = host.files.iter().map(|file| file.frames).sum();
            // Nobody counts on behind a signal, and that is said.
            let is_uncounted =
                row.frames.is_none() && row.warnings.iter().any(|why| why.contains("was not counted"));
            assert!(
                row.frames == Some(frames) || is_uncounted,
                "{frames} frames: {row:?}"
            );
        }
    }
    assert!(files.is_empty(), "files of nobody: {:?}", files.keys());
}

/// A run, and then a collection from hosts that have come to their senses.
fn fleet(seed: u64) {
    let mut random = stream(seed, "run");
    let random = &mut random;
    let mut words = vec!["capture", "-o", "unused", "--by", "tcpdump"];
    let is_interrupted = once_in(random, 3);
    if is_interrupted && once_in(random, 2) {
        words.push("--until-interrupted");
    } else {
        words.extend(["--duration", "5s"]);
    }
    if once_in(random, 10) {
        words.push("--all-or-none");
    }
    let mut signals = Signals::default();
    if is_interrupted {
        let mut at = Duration::from_millis(below(random, 30_000));
        for _ in 0..=below(random, 2) {
            signals.at.push(at);
            at += Duration::from_millis(below(random, 20_000));
        }
    }
    let arguments = CaptureLine::parse_from(words).capture;
    let world = World::new(seed, signals, false);
    let temporary = tempfile::tempdir().unwrap();
    let path = temporary.path().join("run");
    let book = Book::new(Directory::made(&path).unwrap().unwrap(), manifest()).unwrap();
    let good: Vec<bool> = world.hosts.iter().map(|host| host.is_good()).collect();
    run(&arguments, &world.targets, &book, &world.signals.to).unwrap();
    let first = book.now();
    world.has_ended();
    holds(&path, &first, &world);
    let came = world.signals.came.load(Ordering::SeqCst);
    for (row, is_honest) in first.hosts.iter().zip(good) {
        // Others decide whether anything is captured where all have to.
        if is_honest && came == 0 && !arguments.is_all_or_none() {
            assert!(is_good(row), "a good host: {row:?}");
        }
    }
    // Whatever was left on hosts that are good now is collected, and the rest of it goes on where it was.
    let again = World::new(seed, Signals::default(), true);
    let served = |row: &HostRow, host: &SimulatedHost| row.is_pending() && is_true(row, host);
    let expected: Vec<bool> = first
        .hosts
        .iter()
        .zip(&again.hosts)
        .map(|(row, host)| served(row, host))
        .collect();
    book.change(|manifest| {
        for row in manifest.hosts.iter_mut().filter(|row| row.is_pending()) {
            row.error = None;
        }
    });
    let targets: Vec<Option<Target>> = again.targets.iter().cloned().map(Some).collect();
    gather(&book, &targets, &Interrupts::default());
    let second = book.now();
    again.has_ended();
    holds(&path, &second, &again);
    for (row, is_expected) in second.hosts.iter().zip(expected) {
        if is_expected {
            assert_eq!(row.state, HostState::Collected, "{row:?}");
        }
    }
}

#[test]
fn whatever_hosts_do_a_run_ends_and_says_the_truth() {
    each(fleet);
}
