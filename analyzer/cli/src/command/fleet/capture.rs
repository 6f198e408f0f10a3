//! `fleet capture`: captures on many hosts begin together, end by themselves, and are collected.

mod follow;
mod job;

use std::hash::{BuildHasher as _, RandomState};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{anyhow, bail};
use clap::{Args, ValueEnum};
use roce_files::Directory;
use roce_model::{Span, Time};
use roce_remote::clock::now_ns;
use roce_remote::fleet::manifest::{CommandRow, HostState, Manifest, RunState, SCHEMA_VERSION};
use roce_remote::fleet::preflight::By;
use roce_remote::fleet::script::{self, HostRunNames, ROCE_FILTER};

use super::book::Book;
use super::gather::gather;
use super::interrupt::Interrupts;
use super::prepare::{Ready, WantedRun, prepare, warn_about_snaplen};
use super::table;
use super::targets::{Target, exit_code, targets};
use job::{Control, Job};

use crate::options::duration::{Moment, parse_duration};
use crate::options::fabric::InventoryFile;
use crate::options::size::parse_size;
use crate::output::messages;

/// Time from the answers of all hosts to the start: scripts are sent meanwhile.
const LEAD_NS: i64 = 3_000_000_000;
/// Length of a capture where nothing is said.
const DURATION: Duration = Duration::from_secs(10);
/// Time that a capture goes on behind the command's end.
const BEHIND_COMMAND: Duration = Duration::from_secs(1);
/// Time behind the planned start after which a command no longer waits for slow hosts.
const START_PATIENCE_NS: i64 = 30_000_000_000;
/// Period of looking at what others have done.
const LOOK: Duration = Duration::from_millis(20);

/// Capture on many hosts at the same time, and collect the files
///
/// Captures by `roce-analyze live` of this version where it is there, else by tcpdump; --push copies this program. They start together, by
/// each host's own clock, and end by themselves: after the duration, and when this command or the connection is gone. `roce-analyze DIR`
/// is the joined analysis.
#[derive(Args, Debug)]
pub(super) struct Capture {
    /// Hosts [default: all of the inventory]
    #[arg(value_name = "HOST")]
    names: Vec<String>,

    #[command(flatten)]
    inventory: InventoryFile,

    /// Folder of the results, which must not exist
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,

    /// Length of the captures, such as 30s [default: 10s, or until the command has ended]
    #[arg(short, long, value_name = "TIME", value_parser = parse_duration)]
    duration: Option<Span>,

    /// Capture until Ctrl-C
    #[arg(long, conflicts_with = "duration")]
    until_interrupted: bool,

    /// Interface to capture from on every host [default: those of the inventory, else those of RDMA devices] (can be repeated)
    #[arg(short, long = "interface", value_name = "IF")]
    interfaces: Vec<String>,

    /// Frames to keep: roce (RoCEv2 and pauses), all, or a filter of libpcap
    #[arg(long, value_name = "FILTER", default_value = "roce")]
    filter: String,

    /// Bytes kept of each packet
    #[arg(long, value_name = "BYTES", default_value_t = 192, value_parser = clap::value_parser!(u32).range(64..=262_144))]
    snaplen: u32,

    /// Record each host's counters beside its packets
    #[arg(long)]
    counters: bool,

    /// Follow each host's queue pairs by programs in the kernel (eBPF)
    #[arg(long)]
    probe: bool,

    /// Read each host's GPUs
    #[arg(long)]
    gpus: bool,

    /// Start at this time: 2026-11-21T10:00:00Z, or +30s [default: as soon as all hosts are ready]
    #[arg(long, value_name = "TIME", value_parser = Moment::parse)]
    from: Option<Moment>,

    /// End a host's capture at this size [default: 90 % of what is free there]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    max_size: Option<u64>,

    /// Processors for the capture on each host, such as 0-1 (taskset)
    #[arg(long, value_name = "LIST")]
    cpus: Option<String>,

    /// Means of capturing
    #[arg(long, value_enum, value_name = "BY", default_value = "any")]
    by: Means,

    /// Copy this program to hosts that lack it, if it runs there
    #[arg(long)]
    push: bool,

    /// Folder for captures on the hosts [default: /var/tmp/roce-fleet-UID]
    #[arg(long, value_name = "FOLDER")]
    remote_folder: Option<String>,

    /// Capture nothing if one host cannot
    #[arg(long)]
    all_or_none: bool,

    /// Command that runs here while hosts capture; they end 1 s behind it
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// Means of capturing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Means {
    /// The first that works
    Any,
    /// roce-analyze live
    Live,
    /// tcpdump
    Tcpdump,
}

impl Capture {
    /// Length of the captures; `None`: another end.
    fn length(&self) -> Option<Duration> {
        match self.duration {
            Some(duration) => Some(Duration::from_nanos(duration.0)),
            None if self.until_interrupted || !self.command.is_empty() => None,
            None => Some(DURATION),
        }
    }

    fn filter(&self) -> Option<String> {
        match self.filter.as_str() {
            "roce" => Some(ROCE_FILTER.to_owned()),
            "all" => None,
            other => Some(other.to_owned()),
        }
    }

    fn wanted(&self) -> WantedRun {
        WantedRun {
            interfaces: self.interfaces.clone(),
            base: self.remote_folder.clone().unwrap_or_default(),
            by: match self.by {
                Means::Any => By::Any,
                Means::Live => By::Live,
                Means::Tcpdump => By::Tcpdump,
            },
            push: self.push,
            snaplen: self.snaplen,
            duration: self.length(),
            max_bytes: self.max_size,
        }
    }

    /// Nothing is captured if one host cannot.
    #[cfg(test)]
    pub(super) fn is_all_or_none(&self) -> bool {
        self.all_or_none
    }

    fn check(&self) -> anyhow::Result<()> {
        if let Some(folder) = &self.remote_folder {
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._+@-".contains(&byte);
            if !folder.starts_with('/') || !folder.bytes().all(is_plain) || folder.contains("..") {
                bail!("--remote-folder {folder}: an absolute path of letters, digits and /._+@- is expected");
            }
        }
        let samples = [
            ("--counters", self.counters),
            ("--probe", self.probe),
            ("--gpus", self.gpus),
        ];
        let named = samples.iter().find(|(_, is_wanted)| *is_wanted);
        if let (Means::Tcpdump, Some((option, _))) = (self.by, named) {
            bail!("{option} needs `roce-analyze live` on the hosts, and --by tcpdump excludes it");
        }
        Ok(())
    }
}

pub(super) fn capture(arguments: &Capture) -> anyhow::Result<ExitCode> {
    arguments.check()?;
    let targets = targets(&arguments.inventory, &arguments.names)?;
    let Some(folder) = Directory::made(&arguments.output)? else {
        bail!(
            "{}: already exists\nhint: give another name",
            arguments.output.display()
        );
    };
    warn_about_snaplen(arguments.snaplen);
    let begun_ns = now_ns();
    let manifest = Manifest {
        schema_version: SCHEMA_VERSION,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        // Nobody can know it before: the standard library's hashes are seeded at random.
        run: format!("{:016x}", RandomState::new().hash_one(begun_ns)),
        state: RunState::Asking,
        begun_ns,
        start_ns: None,
        duration_ms: arguments
            .length()
            .and_then(|length| u64::try_from(length.as_millis()).ok()),
        snaplen: arguments.snaplen,
        filter: arguments.filter(),
        command: None,
        hosts: Vec::new(),
    };
    let book = Book::new(folder, manifest)?;
    let interrupts = Interrupts::default();
    let said = interrupts.over(|| run(arguments, &targets, &book, &interrupts))?;
    let manifest = book.now();
    let good = table::print(&manifest, &arguments.output, &said)?;
    Ok(exit_code(good, manifest.hosts.len()))
}

/// Asks, captures, collects. Returns the number of warnings that were said of each host before its capture.
pub(super) fn run(
    arguments: &Capture,
    targets: &[Target],
    book: &Book,
    interrupts: &Interrupts,
) -> anyhow::Result<Vec<usize>> {
    let (rows, ready): (Vec<_>, Vec<_>) =
        prepare(targets, &arguments.wanted(), &|| !interrupts.ends_captures())?
            .into_iter()
            .unzip();
    let said: Vec<usize> = rows.iter().map(|row| row.warnings.len()).collect();
    let failed = ready.iter().filter(|ready| ready.is_none()).count();
    let start_ns = start(arguments);
    book.change(|manifest| {
        manifest.hosts = rows;
        manifest.start_ns = Some(start_ns);
    });
    if failed == ready.len() || (failed > 0 && arguments.all_or_none) || interrupts.ends_captures() {
        book.change(|manifest| {
            manifest.state = RunState::Done;
            for row in manifest
                .hosts
                .iter_mut()
                .filter(|row| row.state == HostState::Ready)
            {
                row.state = HostState::Failed;
                row.error = Some("nothing was captured: see the other hosts, or the interruption".to_owned());
            }
        });
        return Ok(said);
    }
    let jobs = jobs(arguments, targets, &ready, &book.now());
    // All of it is on disk before the first capture starts: whoever collects after a failure finds every one of them.
    book.change(|manifest| {
        manifest.state = RunState::Capturing;
        for job in &jobs {
            if let Some(row) = manifest.hosts.get_mut(job.at) {
                row.state = HostState::Capturing;
                row.start_ns = Some(job.capture.start_ns);
            }
        }
    });
    let control = Control::new(interrupts);
    std::thread::scope(|scope| {
        for job in &jobs {
            let control = &control;
            let thread = std::thread::Builder::new().spawn_scoped(scope, move || {
                follow::follow(job, book, control);
                control.ended.fetch_add(1, Ordering::Relaxed);
            });
            if let Err(error) = thread {
                follow::give_up(job, book, control, &format!("no thread for the capture: {error}"));
                control.ended.fetch_add(1, Ordering::Relaxed);
            }
        }
        if !arguments.command.is_empty() {
            run_command(&arguments.command, book, &control, (start_ns, jobs.len()));
            control.is_over.store(true, Ordering::Relaxed);
        }
    });
    let targets: Vec<Option<Target>> = targets.iter().cloned().map(Some).collect();
    gather(book, &targets, interrupts);
    Ok(said)
}

/// The planned start by this machine's clock.
fn start(arguments: &Capture) -> i64 {
    let soon = now_ns().saturating_add(LEAD_NS);
    let now = Time(u64::try_from(now_ns()).unwrap_or(0));
    let wanted = arguments.from.map(|at| at.resolve(now).0);
    let wanted = wanted.and_then(|at| i64::try_from(at).ok());
    wanted.map_or(soon, |at| at.max(soon))
}

/// The captures of hosts that are ready.
fn jobs<'a>(
    arguments: &Capture,
    targets: &'a [Target],
    ready: &'a [Option<Ready>],
    manifest: &Manifest,
) -> Vec<Job<'a>> {
    let who = who();
    let start_ns = manifest.start_ns.unwrap_or(0);
    let job = |(at, (target, ready)): (usize, (&'a Target, &'a Option<Ready>))| {
        let ready = ready.as_ref()?;
        let ahead = ready.offset.map_or(0, |offset| offset.ahead_ns);
        let capture = script::Capture {
            place: HostRunNames {
                base: ready.facts.base.clone()?,
                net: ready.facts.net.clone()?,
                id: manifest.run.clone(),
            },
            who: who.clone(),
            name: target.name().to_owned(),
            how: ready.how.clone(),
            interfaces: ready.interfaces.clone(),
            snaplen: arguments.snaplen,
            start_ns: start_ns.saturating_add(ahead),
            duration: arguments.length(),
            max_bytes: ready.max_bytes,
            filter: arguments.filter(),
            cpus: arguments
                .cpus
                .clone()
                .filter(|_| ready.facts.tools.contains("taskset")),
            has_counters: arguments.counters,
            has_probe: arguments.probe,
            has_gpus: arguments.gpus,
        };
        Some(Job {
            at,
            target,
            ready,
            capture,
            start_ns,
        })
    };
    targets.iter().zip(ready).enumerate().filter_map(job).collect()
}

/// This user and machine, for the lock: one word.
fn who() -> String {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let user = std::env::var("USER").unwrap_or_else(|_| "unknown".to_owned());
    let text = format!("{}@{}", user, read("/proc/sys/kernel/hostname").trim());
    let is_plain = |letter: &char| letter.is_ascii_alphanumeric() || "@._-".contains(*letter);
    text.chars().filter(is_plain).take(100).collect()
}

/// Runs the command once all hosts capture, and waits for its end and a second more.
fn run_command(words: &[String], book: &Book, control: &Control<'_>, (start_ns, hosts): (i64, usize)) {
    let is_ready = || control.capturing.load(Ordering::Relaxed) >= hosts && now_ns() >= start_ns;
    while !is_ready() && now_ns() < start_ns.saturating_add(START_PATIENCE_NS) {
        if control.ends_captures() || control.ended.load(Ordering::Relaxed) >= hosts {
            break;
        }
        std::thread::sleep(LOOK);
    }
    if control.ends_captures() || control.ended.load(Ordering::Relaxed) >= hosts {
        messages::warn("--", "the command was not started: no host captures");
        return;
    }
    let row = |exit_code| CommandRow {
        words: words.to_vec(),
        exit_code,
    };
    book.change(|manifest| manifest.command = Some(row(None)));
    let code = match ended(words) {
        Ok(code) => code,
        Err(error) => {
            messages::report(&error);
            return;
        }
    };
    book.change(|manifest| manifest.command = Some(row(code)));
    match code {
        Some(0) => {}
        Some(code) => messages::warn("--", &format!("the command ended with exit code {code}")),
        None => messages::warn("--", "the command was ended by a signal"),
    }
    std::thread::sleep(BEHIND_COMMAND);
}

/// The exit code of a command that has this process' streams.
fn ended(words: &[String]) -> anyhow::Result<Option<i32>> {
    let [program, arguments @ ..] = words else {
        bail!("there is no command")
    };
    let mut command = std::process::Command::new(program);
    let status = command.args(arguments).status();
    let status = status.map_err(|error| anyhow!("{program} cannot be started: {error}"))?;
    Ok(status.code())
}
