//! `metrics serve`: the endpoint of this host's counters.
//!
//! A thread reads the host at an interval; a scrape gets the last whole reading and its age. A driver that hangs holds up neither
//! scrapes nor the end of the program. What starts programs or opens sockets is read by another process (`collect.rs`).

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, ExitCode, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use clap::Args;
use roce_endpoint::{Counts, DEFAULT_ADDRESS, EndpointSource, Latest, Texts, parse_address};
use roce_files::lines_of;
use roce_metrics::{Exposition, Format, SERIES_LEFT_OUT, joined};
use roce_model::text::clean;
use roce_model::{Span, value_of};
use rustix::thread::CapabilitySet;

use super::fabric::NamedDevice;
use super::host::{COLLECTOR, HostArguments, HostMetrics};
use super::received::ReceivedSamples;
use super::{checks, fabric, gpus};
use crate::command::confinement::Confinement;
use crate::command::endpoint::EndpointArguments;
#[cfg(feature = "nxapi")]
use crate::command::pushed::PushArguments;
use crate::command::watch::Signals;
use crate::options::duration::parse_duration;
use crate::output::messages;
use crate::own_process::own_process;
use crate::sandbox::{self, Needs, Outputs};

/// Time that the start waits for the first reading.
const FIRST_READING: Duration = Duration::from_secs(2);
/// Bytes of a line of the other process: the metrics of one device in two formats, of which each series is some hundred bytes.
const MAX_LINE: u64 = 64 << 20;

/// Serve the counters of this host to Prometheus
///
/// Answers /metrics in the text format of Prometheus, or in OpenMetrics if the scraper prefers it, and /-/healthy. The host is read at an
/// interval, and a scrape gets the last whole reading: it never waits for hardware. Needs no rights; started as root, it continues as
/// another user, which opens only files about devices and starts no program. Another process runs the checks of `doctor` and asks GPUs, switches and
/// hypervisors; /probe?target=NAME has one of those.
#[derive(Args, Debug)]
#[command(
    after_help = "SIGINT or SIGTERM ends it cleanly. `roce-analyze metrics files systemd`, `rules` and `dashboards` print what Prometheus and Grafana need besides (docs/metrics.md)."
)]
pub(super) struct Serve {
    /// Address to listen on (can be repeated); one that other hosts reach needs --web-config
    #[arg(long, value_name = "ADDRESS", default_value = DEFAULT_ADDRESS, value_parser = parse_address)]
    listen: Vec<SocketAddr>,

    #[command(flatten)]
    endpoint: EndpointArguments,

    /// Time between two readings of the host
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = parse_interval)]
    interval: Span,

    /// Time between two runs of all checks of doctor
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = parse_doctor_every)]
    doctor_every: Span,

    /// Read the switches and hypervisors of this inventory, too, each in its own interval
    #[arg(long, value_name = "FILE")]
    inventory: Option<PathBuf>,

    /// Run no checks of doctor, and read no GPUs: no other process is started
    #[arg(long, conflicts_with = "inventory")]
    counters_only: bool,

    #[command(flatten)]
    host: HostArguments,

    #[cfg(feature = "nxapi")]
    #[command(flatten)]
    pushed: PushArguments,

    /// User that a server started by root continues as: a name or number [default: the caller of sudo, else nobody]
    #[arg(long, value_name = "NAME", conflicts_with = "no_sandbox")]
    user: Option<String>,

    /// Keep the user and the right to open every file, and do not limit system calls
    #[arg(long)]
    no_sandbox: bool,
}

fn parse_interval(text: &str) -> Result<Span, String> {
    let time = parse_duration(text)?;
    if (100_000_000..=3600 * Span::SECOND.0).contains(&time.0) {
        Ok(time)
    } else {
        Err("100ms to 1h".to_owned())
    }
}

fn parse_doctor_every(text: &str) -> Result<Span, String> {
    let time = parse_duration(text)?;
    if (1_000_000_000..=86_400 * Span::SECOND.0).contains(&time.0) {
        Ok(time)
    } else {
        Err("1s to 24h".to_owned())
    }
}

/// Serves until a signal comes.
pub(super) fn serve(arguments: &Serve) -> anyhow::Result<ExitCode> {
    let confinement = Confinement::begin(arguments.user.as_deref(), arguments.no_sandbox)?;
    sandbox::raise()?;
    // Keys may be root's alone, and a port may be a low one.
    let mut endpoint = arguments.endpoint.open(&arguments.listen)?;
    let received = arguments.endpoint.otlp()?.map(|tokens| (tokens, Arc::default()));
    let host = HostMetrics::open(&arguments.host)?;
    let outputs = Outputs {
        dir: None,
        file: None,
        rotates: false,
    };
    let read = arguments.host.read.as_deref();
    let read = read.map(std::path::absolute).transpose()?;
    confinement.give_up(&outputs, CapabilitySet::empty())?;
    if let Some(folder) = &read
        && let Err(error) = std::fs::read_dir(folder.join("sys"))
    {
        bail!(
            "{}: {error}\nhint: as which user it is read: --user NAME",
            folder.display()
        );
    }
    // Read as the user whom the collecting process has, too.
    let inventory = fabric::inventory(arguments.inventory.as_ref()).map_err(as_other_user)?;
    // A password that cannot be read is an error now, and not a line in a log later.
    drop(fabric::Target::all(&inventory).map_err(as_other_user)?);
    let targets = fabric::named(&inventory);
    #[cfg(feature = "nxapi")]
    let pushed = arguments.pushed.start(None, true)?;
    let collector = (!arguments.counters_only).then(|| start_collector(arguments));
    let mut collector = collector.and_then(|started| {
        let said = |error: &std::io::Error| {
            messages::warn(
                "metrics",
                &format!("no process for checks, GPUs and switches: {error}"),
            );
        };
        started.inspect_err(said).ok()
    });
    let needs = Needs {
        accept: true,
        ..Needs::default()
    };
    let mut folders = endpoint.folders();
    folders.extend(read);
    confinement.confine(&outputs, &folders, needs)?;
    let (runtime, mut signals) = Signals::take()?;
    let interval = Duration::from_nanos(arguments.interval.0);
    let latest = Arc::new(Latest::new(COLLECTOR, interval));
    // It closes with this process: that ends the other one.
    let input = collector.as_mut().and_then(|collector| collector.stdin.take());
    let mut kept: Option<Arc<ReceivedSamples>> = None;
    if let Some((tokens, samples)) = received {
        kept = Some(Arc::clone(&samples));
        endpoint = endpoint.receiving(tokens, samples);
    }
    let all = Arc::new(All {
        host: Arc::clone(&latest),
        received: kept,
        others: Others::new(arguments),
        targets: targets
            .into_iter()
            .map(|about| {
                let latest = Latest::new(about.label(), about.every);
                (about, latest)
            })
            .collect(),
    });
    #[cfg(feature = "nxapi")]
    if let Some(pushed) = pushed {
        pushed.begin(Arc::clone(&all) as Arc<dyn EndpointSource>)?;
    }
    if let Some(collector) = collector {
        let all = Arc::clone(&all);
        std::thread::Builder::new()
            .name("collector".to_owned())
            .spawn(move || follow(collector, &all))
            .context("no thread for checks and GPUs")?;
    }
    let reading = Arc::clone(&latest);
    let (first, has_read) = std::sync::mpsc::channel();
    std::thread::Builder::new()
        .name("reader".to_owned())
        .spawn(move || {
            read_on(host, &reading, interval, || {
                // Nobody waits for later ones.
                let _ = first.send(());
            });
        })
        .context("no thread for readings")?;
    let _ = has_read.recv_timeout(FIRST_READING);
    for url in endpoint.urls() {
        messages::note("metrics", &format!("serving {url}"));
    }
    runtime.block_on(async {
        let stop = async {
            signals.next().await;
        };
        crate::limits::serve();
        endpoint.serve(all, Arc::new(Counts::default()), stop).await
    })?;
    // A password that is being compared, or a driver that hangs, does not hold up the end.
    runtime.shutdown_background();
    drop(input);
    Ok(ExitCode::SUCCESS)
}

/// Takes the readings of the other process, and says when it has ended.
fn follow(mut collector: Child, all: &All) {
    let pipe = collector.stdout.take();
    let lines = pipe.into_iter().flat_map(|pipe| lines_of(pipe, MAX_LINE));
    for line in lines.map_while(Result::ok) {
        // A longer line than any comes in pieces, of which none is understood.
        let line = String::from_utf8_lossy(&line);
        let line = line.trim_end();
        if all.take(line).is_none() {
            all.take_end(line);
        }
        // The one that this process has started may have ended, and another one goes on.
        let _ = collector.try_wait();
    }
    let _ = collector.wait();
    all.fail();
    messages::warn(
        "metrics",
        "nothing reads checks, GPUs and switches any more: their processes were ended\nhint: start the server again",
    );
}

/// An error of reading the inventory or a file that it names. Where a file is another user's, it says who reads it: a server that root
/// started is that no more.
fn as_other_user(error: anyhow::Error) -> anyhow::Error {
    let text = format!("{error:#}");
    if !text.contains("Permission denied") {
        return error;
    }
    anyhow!(
        "{text}\nhint: the server reads the inventory, passwords, certificates and ssh keys as the user that it continues as, \
         here number {}; --user NAME, or let that user read them",
        rustix::process::geteuid().as_raw()
    )
}

/// Starts the process that runs checks and asks for GPUs, as the user that this one is now.
fn start_collector(arguments: &Serve) -> std::io::Result<Child> {
    let time = |time: Span| format!("{}ns", time.0);
    let mut command = own_process();
    command.args(["metrics", "collect", "--interval", &time(arguments.interval)]);
    command.args(["--doctor-every", &time(arguments.doctor_every)]);
    let host = &arguments.host;
    let mut option = |name: &str, value: &dyn AsRef<std::ffi::OsStr>| {
        let mut option = OsString::from(format!("--{name}="));
        option.push(value.as_ref());
        command.arg(option);
    };
    for interface in &host.interface {
        option("interface", interface);
    }
    if let Some(folder) = &host.read {
        option("read", folder);
    }
    if let Some(file) = &host.gpus {
        option("gpus", file);
    }
    if let Some(file) = &arguments.inventory {
        option("inventory", file);
    }
    if host.no_gpus {
        command.arg("--no-gpus");
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()
}

/// Readings of the other process, by collector, once there is one.
struct Others {
    intervals: [Duration; 2],
    latest: Mutex<BTreeMap<&'static str, Arc<Latest>>>,
}

impl Others {
    fn new(arguments: &Serve) -> Self {
        let time = |time: Span| Duration::from_nanos(time.0);
        Self {
            // Checks and GPUs are not read more often than once in a second.
            intervals: [
                time(arguments.doctor_every),
                time(arguments.interval).max(Duration::from_secs(1)),
            ],
            latest: Mutex::default(),
        }
    }

    fn all(&self) -> Vec<Arc<Latest>> {
        let latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        latest.values().cloned().collect()
    }
}

/// All readings together.
struct All {
    host: Arc<Latest>,
    others: Others,
    /// Switches and hypervisors, each with its last reading.
    targets: Vec<(NamedDevice, Latest)>,
    /// Samples that came by OTLP.
    received: Option<Arc<ReceivedSamples>>,
}

impl All {
    /// Takes the news that the other process has ended.
    fn take_end(&self, line: &str) {
        let Ok(news) = serde_json::from_str::<serde_json::Value>(line) else {
            return;
        };
        let Some(how) = news["ended"].as_str() else { return };
        self.fail();
        let delay = news["again_in"].as_u64().unwrap_or_default();
        messages::warn(
            "metrics",
            &format!(
                "the process for checks, GPUs and switches has ended ({}): it is started again in {delay} s",
                clean(how)
            ),
        );
    }

    /// Nobody reads what other processes read.
    fn fail(&self) {
        for latest in self.others.all() {
            latest.fail();
        }
        for (_, latest) in &self.targets {
            latest.fail();
        }
    }

    /// Takes a reading of the other process; `None`: it is not understood.
    fn take(&self, line: &str) -> Option<()> {
        let reading: serde_json::Value = serde_json::from_str(line).ok()?;
        let text = |key: &str| Some(reading[key].as_str()?.to_owned());
        let texts = Texts {
            prometheus: text("prometheus")?,
            open_metrics: text("open_metrics")?,
            left_out: usize::try_from(reading["left_out"].as_u64()?).ok()?,
        };
        let took = Duration::try_from_secs_f64(reading["seconds"].as_f64()?).ok();
        let collector = reading["collector"].as_str()?;
        if let Some((_, latest)) = self
            .targets
            .iter()
            .find(|(about, _)| about.collector == collector)
        {
            latest.take_outcome(texts, took, reading["success"].as_bool()?);
            return Some(());
        }
        let [checks_every, gpus_every] = self.others.intervals;
        let (name, label, interval) = match collector {
            "doctor" => ("doctor", checks::COLLECTOR, checks_every),
            "gpu" => ("gpu", gpus::COLLECTOR, gpus_every),
            _ => return None,
        };
        let mut others = self.others.latest.lock().unwrap_or_else(PoisonError::into_inner);
        let latest = others
            .entry(name)
            .or_insert_with(|| Arc::new(Latest::new(label, interval)));
        latest.take(texts, took);
        Some(())
    }
}

impl EndpointSource for All {
    fn part(&self, format: Format) -> String {
        let mut parts = vec![self.host.part(format)];
        parts.extend(self.others.all().iter().map(|latest| latest.part(format)));
        parts.extend(self.targets.iter().map(|(_, latest)| latest.part(format)));
        parts.extend(self.received.iter().map(|received| received.part(format)));
        joined(parts.iter().map(String::as_str))
    }

    fn add(&self, into: &mut Exposition) {
        self.host.add(into);
        let others = self.others.all();
        let mut left_out = self.host.left_out();
        let targets = self.targets.iter().map(|(_, latest)| latest);
        for latest in others.iter().map(Arc::as_ref).chain(targets) {
            latest.add_collector(into);
            left_out += latest.left_out();
        }
        left_out += self.received.as_ref().map_or(0, |received| received.left_out());
        into.own(SERIES_LEFT_OUT, &[], value_of(left_out as u64));
    }

    fn target(&self, name: &str, module: Option<&str>, format: Format) -> Option<String> {
        let (_, latest) = self
            .targets
            .iter()
            .find(|(about, _)| about.name == name && module.is_none_or(|module| module == about.kind))?;
        let mut now = Exposition::default();
        latest.add_collector(&mut now);
        Some(latest.part(format) + &now.part(format))
    }
}

/// Reads for ever. `done` is called behind each reading.
fn read_on(mut host: HostMetrics, latest: &Latest, interval: Duration, done: impl Fn()) {
    loop {
        let begun = Instant::now();
        let reading = host.read();
        latest.take(Texts::from(&reading), Some(begun.elapsed()));
        done();
        std::thread::sleep(interval.saturating_sub(begun.elapsed()));
    }
}
