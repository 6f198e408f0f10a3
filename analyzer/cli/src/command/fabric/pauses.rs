//! `fabric pauses`: pauses, marks and drops at every level at once, before, during and after a command.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Child, ExitCode, ExitStatus};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::Args;
use roce_model::text::escape_json;
use roce_model::{Columns as _, Sample, SampleColumns, SampleSeries, Span};
use roce_pipeline::time_of_day;
use roce_remote::DeviceReader;
use roce_switches::inventory::{HostTarget, Inventory};
use roce_switches::pauses::{Kind, Level, PauseCollector, Unseen, pause_json, pause_text};

use super::host::{HostReading, HostSource};
use super::print::print;
use super::recordings::between;
use super::workers::{ReadTarget, TargetReading, Ticks, Workers};
use crate::command::host::series::{About, Destination, KeptSamples, LOOK, begun, code_of};
use crate::command::watch::Signals;
use crate::options::duration::parse_duration;
use crate::options::fabric::InventoryFile;
use crate::options::format::{Format, text_or_json};
use crate::output::messages;
use crate::output::running::{RunningTable, WatchOption};
use crate::output::style::width;

/// The longest that a reading at a boundary (start and end of the command) is waited for.
const PATIENCE: Duration = Duration::from_secs(15);
/// Shortest time between two readings.
const MIN_INTERVAL: Duration = Duration::from_millis(100);

/// Show pauses, marks and drops at every level at once: servers, hypervisors, switches
///
/// Reads all targets of the inventory at the same moments, before, during and after a command, and says where pauses began: inside the
/// switch, at a port, at a hypervisor or at a server, and whether ECN acted before PFC. Both ends of a link are compared. Without an
/// inventory it reads this host alone.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  roce-analyze fabric pauses --duration 30s
      all targets of fabric.toml, for 30 s
  roce-analyze fabric pauses -- ib_write_bw gpu2
      before, during and after a command
  roce-analyze fabric pauses --read before --read after
      between two recordings

Other hosts are read by their own roce-analyze, of the same version, over ssh.")]
pub(super) struct PausesArguments {
    #[command(flatten)]
    inventory: InventoryFile,

    /// Read a recording in place of devices, given twice: before and after; each a folder with a folder for each device, as
    /// `fabric counters --raw` writes it, that of one device or host, or a pasted text, whose content says what it is
    #[arg(long, value_name = "DIR|FILE", conflicts_with_all = ["duration", "run", "output"])]
    read: Vec<PathBuf>,

    /// From the first reading to the last [default: 10s; with a command, until it ends]
    #[arg(short, long, value_name = "TIME", value_parser = parse_duration)]
    duration: Option<Span>,

    /// Time between two readings
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_duration)]
    interval: Span,

    #[command(flatten)]
    watch: WatchOption,

    /// Time for which is read before the command starts
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = parse_duration)]
    before: Span,

    /// Time for which is read behind the command's end
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = parse_duration)]
    after: Span,

    /// Format of standard output
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = text_or_json())]
    format: Format,

    #[command(flatten)]
    destination: Destination,

    /// Run this command meanwhile; its exit code becomes that of roce-analyze
    #[arg(last = true, value_name = "COMMAND")]
    run: Vec<OsString>,
}

/// Why a host has no numbers.
const NO_COUNTERS: &str = "it has no RDMA device, and no interface that counts pauses";

/// Reads all targets, and shows what they counted.
pub(super) fn pauses(arguments: &PausesArguments) -> anyhow::Result<ExitCode> {
    if !arguments.read.is_empty() {
        return recorded(arguments);
    }
    let inventory = match arguments.inventory.found()? {
        Some(inventory) => inventory,
        None => alone(&arguments.destination.names.node()),
    };
    let (names, sources) = targets(&inventory)?;
    let count = names.len();
    let interval = Duration::from_nanos(arguments.interval.0).max(MIN_INTERVAL);
    let every = Span(u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX));
    let kept = arguments.destination.begin(About {
        input: "fabric pauses",
        format: "counters",
        interval: every,
    })?;
    let collector = if arguments.run.is_empty() {
        PauseCollector::new(every)
    } else {
        PauseCollector::with_command(every)
    };
    let running = arguments.watch.begin(arguments.format, !arguments.run.is_empty());
    let mut run = PauseRun {
        inventory: &inventory,
        format: arguments.format,
        running: running.map(|table| (table, PauseCollector::new(every))),
        names,
        workers: Workers::start(sources)?,
        ticks: Ticks::new(interval),
        collector,
        series: SampleSeries::default(),
        kept,
        has_answered: vec![false; count],
        has_values: false,
        failures: vec![None; count],
    };
    let (runtime, mut signals) = Signals::take()?;
    let status = runtime.block_on(run.all(arguments, &mut signals))?;
    if !run.has_values {
        let failures = run.names.iter().zip(&run.failures);
        let said: Vec<String> = failures
            .map(|(name, why)| format!("{name}: {}", why.as_deref().unwrap_or(NO_COUNTERS)))
            .collect();
        bail!("nothing was read: {}", said.join("; "));
    }
    if let Some((table, _)) = &mut run.running {
        table.clear()?;
    }
    // Rows go to standard output as a whole: a slow terminal holds up no reading.
    print(&text(&run.collector, &inventory, arguments.format))?;
    let mut is_whole = true;
    for ((name, has_answered), failure) in run.names.iter().zip(&run.has_answered).zip(&run.failures) {
        if let Some(text) = failure {
            messages::warn(name, text);
        }
        is_whole &= *has_answered;
    }
    if let Some(kept) = run.kept {
        kept.finish()?;
    }
    Ok(if status.is_none() && !is_whole {
        ExitCode::from(2)
    } else {
        code_of(status)
    })
}

/// Shows what was counted between two recordings.
fn recorded(arguments: &PausesArguments) -> anyhow::Result<ExitCode> {
    let inventory = arguments.inventory.found()?.unwrap_or_default();
    let collector = between(&arguments.read, &inventory)?;
    if !collector.has_changes() {
        bail!("nothing was read: the recordings have no pauses, marks or drops in common");
    }
    print(&text(&collector, &inventory, arguments.format))?;
    Ok(ExitCode::SUCCESS)
}

/// The result of a collector, in the format that is wanted.
fn text(collector: &PauseCollector, inventory: &Inventory, format: Format) -> String {
    let pauses = collector.finish(inventory);
    match format {
        Format::Text => pause_text(&pauses, width()),
        _ => format!("{}\n", escape_json(&format!("{:#}", pause_json(&pauses)))),
    }
}

/// An inventory of this host alone.
fn alone(node: &str) -> Inventory {
    let mut host = HostTarget::named(node);
    host.address = Some("local".to_owned());
    Inventory {
        hosts: vec![host],
        ..Inventory::default()
    }
}

/// All targets, and their names.
fn targets(inventory: &Inventory) -> anyhow::Result<(Vec<String>, Vec<ReadTarget>)> {
    let ssh = Arc::new(inventory.ssh.clone());
    let (mut names, mut sources) = (Vec::new(), Vec::new());
    for host in &inventory.hosts {
        let source = HostSource::new(host, &ssh).with_context(|| format!("host '{}'", host.name))?;
        names.push(host.name.clone());
        sources.push(ReadTarget::Host(Box::new(source)));
    }
    for switch in &inventory.switches {
        let reader =
            DeviceReader::switch(switch, &ssh).with_context(|| format!("switch '{}'", switch.name))?;
        names.push(switch.name.clone());
        sources.push(ReadTarget::Device(Box::new(reader)));
    }
    for hypervisor in &inventory.hypervisors {
        let reader = DeviceReader::hypervisor(hypervisor, &ssh)
            .with_context(|| format!("hypervisor '{}'", hypervisor.name))?;
        names.push(hypervisor.name.clone());
        sources.push(ReadTarget::Device(Box::new(reader)));
    }
    Ok((names, sources))
}

/// A run in progress.
struct PauseRun<'a> {
    inventory: &'a Inventory,
    format: Format,
    /// The running table, and what was read since its last one.
    running: Option<(RunningTable, PauseCollector)>,
    /// The targets, by place.
    names: Vec<String>,
    workers: Workers,
    ticks: Ticks,
    collector: PauseCollector,
    series: SampleSeries,
    kept: Option<KeptSamples>,
    has_answered: Vec<bool>,
    /// True if any number was read of anybody.
    has_values: bool,
    /// The last reason of each target that did not answer.
    failures: Vec<Option<String>>,
}

/// The end of a part of a run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PhaseEnd {
    /// Its time is over, or the command has ended.
    Done,
    /// A signal came.
    Signalled,
}

impl PauseRun<'_> {
    async fn all(
        &mut self,
        arguments: &PausesArguments,
        signals: &mut Signals,
    ) -> anyhow::Result<Option<ExitStatus>> {
        let time = |time: Span| Duration::from_nanos(time.0);
        self.boundary().await?;
        if arguments.run.is_empty() {
            let duration = arguments.watch.duration(arguments.duration, None);
            let duration = duration.map_or(Duration::from_secs(10), time);
            self.read_on(duration, None, signals).await?;
            self.boundary().await?;
            return Ok(None);
        }
        let mut ended = self.read_on(time(arguments.before), None, signals).await?;
        self.boundary().await?;
        let mut status = None;
        if ended == PhaseEnd::Done {
            self.collector.mark_start(time_of_day());
            let mut child = begun(&arguments.run)?;
            let duration = arguments.duration.map_or(Duration::MAX, time);
            ended = self.read_on(duration, child.as_mut(), signals).await?;
            // The reading behind the end is of a later time: the interval up to it has a part of the command.
            self.collector.mark_end(time_of_day());
            self.boundary().await?;
            status = match &mut child {
                Some(child) => child.try_wait().context("the command cannot be waited for")?,
                None => None,
            };
            if status.is_none() {
                messages::note("pauses", "the command still runs");
            }
        }
        if ended == PhaseEnd::Done && arguments.after.0 > 0 {
            self.read_on(time(arguments.after), None, signals).await?;
            self.boundary().await?;
        }
        Ok(status)
    }

    /// Reads at each tick until a time is over or a command has ended.
    async fn read_on(
        &mut self,
        duration: Duration,
        mut child: Option<&mut Child>,
        signals: &mut Signals,
    ) -> anyhow::Result<PhaseEnd> {
        let start = Instant::now();
        loop {
            if let Some(child) = &mut child
                && child
                    .try_wait()
                    .context("the command cannot be waited for")?
                    .is_some()
            {
                return Ok(PhaseEnd::Done);
            }
            let left = duration.saturating_sub(start.elapsed());
            if left.is_zero() {
                return Ok(PhaseEnd::Done);
            }
            if self.ticks.is_due() {
                self.show_interval()?;
                self.workers.tick();
            }
            let step = left.min(self.ticks.left());
            let step = if child.is_some() { step.min(LOOK) } else { step };
            tokio::select! {
                // A signal from the terminal reaches the command, too: it decides when to end.
                _ = signals.next() => if child.is_none() {
                    return Ok(PhaseEnd::Signalled);
                },
                result = self.workers.next() => self.take(result)?,
                () = tokio::time::sleep(step) => {}
            }
        }
    }

    /// Shows what changed since the last running table.
    fn show_interval(&mut self) -> anyhow::Result<()> {
        if let Some((table, since)) = &mut self.running {
            if since.has_changes() {
                table.show(time_of_day(), &text(since, self.inventory, self.format))?;
            }
            let ended = std::mem::replace(since, PauseCollector::new(Span(0)));
            *since = ended.next();
        }
        Ok(())
    }

    /// Reads all targets once more, and waits for them: what they counted until now belongs to the part before.
    async fn boundary(&mut self) -> anyhow::Result<()> {
        let start = Instant::now();
        // Readings that began earlier come first.
        for is_again in [false, true] {
            if is_again {
                self.workers.tick();
            }
            while !self.workers.are_idle() {
                let left = PATIENCE.saturating_sub(start.elapsed());
                match tokio::time::timeout(left, self.workers.next()).await {
                    Ok(result) => self.take(result)?,
                    Err(_) => return Ok(()),
                }
            }
        }
        Ok(())
    }

    fn take(&mut self, result: Option<(usize, TargetReading)>) -> anyhow::Result<()> {
        let Some((place, read)) = result else {
            return Ok(());
        };
        let failure = match &read {
            TargetReading::Host(reading) => {
                for collector in self.collectors() {
                    collector.add_samples(&reading.samples);
                }
                self.has_values |= !reading.samples.is_empty();
                self.note(place, reading);
                None
            }
            TargetReading::Reading(reading) => {
                for collector in self.collectors() {
                    collector.add_reading(reading);
                }
                let is_down = reading.samples.len() <= 1;
                self.has_values |= !is_down;
                let why = reading.problems.first().map(|problem| problem.text.clone());
                is_down.then(|| why.unwrap_or_else(|| "it has no values".to_owned()))
            }
            TargetReading::Failed(text) => Some(text.clone()),
        };
        if let Some(has_answered) = self.has_answered.get_mut(place) {
            *has_answered |= failure.is_none();
        }
        if let (Some(last), Some(_)) = (self.failures.get_mut(place), &failure) {
            *last = failure;
        }
        match &read {
            TargetReading::Host(reading) => self.keep(&reading.samples),
            TargetReading::Reading(reading) => self.keep(&reading.samples),
            TargetReading::Failed(_) => Ok(()),
        }
    }

    /// Notes the addresses of a host, and its devices that show no pauses.
    fn note(&mut self, place: usize, reading: &HostReading) {
        let Some(node) = self.names.get(place) else { return };
        let node = node.clone();
        // The reason why a device shows none is a reading, too.
        self.has_values |= reading.virtual_functions().next().is_some();
        for collector in self.collectors() {
            for (interface, mac) in &reading.addresses {
                collector.add_address(&node, interface, mac);
            }
            for device in reading.virtual_functions() {
                collector.unseen(Unseen {
                    level: Level::Server,
                    node: node.clone(),
                    object: device.to_owned(),
                    kind: Kind::PfcReceived,
                    why: "not visible in a virtual function".to_owned(),
                });
            }
        }
    }

    /// The collector of the whole time, and that of the running table.
    fn collectors(&mut self) -> impl Iterator<Item = &mut PauseCollector> {
        let since = self.running.iter_mut().map(|(_, since)| since);
        std::iter::once(&mut self.collector).chain(since)
    }

    fn keep(&mut self, samples: &[Sample]) -> anyhow::Result<()> {
        let (Some(kept), Some(first)) = (&mut self.kept, samples.first()) else {
            return Ok(());
        };
        let mut rows = SampleColumns::default();
        for sample in samples {
            rows.push(&self.series.row(sample, None));
        }
        kept.add(first.time, &rows)
    }
}
