//! `host counters`: counters of RDMA devices and their network interfaces, before and after, and as a dataset of samples.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use roce_model::{Columns, Sample, SampleColumns, SampleSeries, Span, SystemStart, Time};
use roce_pipeline::time_of_day;
use roce_probe::{HostReader, interface_of};
use roce_report::samples::{self, SampleSummary};
use roce_rules::counters::{CounterFinding, CounterReading, Growths, LinkFacts, judge};
use roce_switches::pasted::pasted;
use serde_json::json;

use super::series::{About, Destination, KeptSamples, LOOK, Pace, paced};
use crate::command::doctor::archive::{files as archive_files, is_archive};
use crate::command::pasted::described_but;
use crate::options::duration::parse_duration;
use crate::options::format::{Format, text_or_json};
use crate::output::findings::{FoundLine, lines};
use crate::output::messages;
use crate::output::running::{RunningTable, WatchOption};
use crate::output::style::style;

/// The longest text of counters.
const MAX_TEXT_BYTES: u64 = 8 << 20;

/// Read the counters of RDMA devices and their network interfaces twice, and show what changed
///
/// Shows each counter before and after, its change and its rate: ECN marks, CNPs, sequence errors, timeouts, drops, PFC and 802.3x
/// pause by one name for all drivers, in base units (bytes, seconds). Counters that wrap or are reset are recognised. What the changes say
/// together is judged: pauses as a share of time, CNPs without marks, losses in a class without PFC, ports that differ. Needs no rights.
#[derive(Args, Debug)]
pub(crate) struct Counters {
    /// How long to wait between the first reading and the last [default: 1s; with a command, until it ends]
    #[arg(short, long, value_name = "TIME", value_parser = parse_duration)]
    duration: Option<Span>,

    /// Time between readings in between, so that no wrap and no reset is missed
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_duration)]
    interval: Span,

    #[command(flatten)]
    watch: WatchOption,

    /// Another network interface to read; those of RDMA devices are always read
    #[arg(short, long, value_name = "NAME")]
    interface: Vec<String>,

    /// Show all counters, also those that did not move
    #[arg(long)]
    all: bool,

    /// Counters of each queue pair, too, where they are bound to counters (`rdma statistic qp set`)
    #[arg(long = "qp-counters", conflicts_with = "read")]
    queue_pairs: bool,

    /// Read a recorded host below DIR (its /sys in DIR/sys, statistics in DIR/commands/ethtool_-S_IF.txt), or a text of
    /// `rdma statistic show` (or its JSON), `ethtool -S` or `grep . /sys/class/infiniband/...`; given twice: before and after
    #[arg(long, value_name = "DIR|FILE", conflicts_with_all = ["duration", "interface", "run", "output"])]
    read: Vec<PathBuf>,

    #[command(flatten)]
    destination: Destination,

    /// Format of standard output
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = text_or_json())]
    format: Format,

    /// Run this command between the two readings; its exit code becomes that of roce-analyze
    #[arg(last = true, value_name = "COMMAND")]
    run: Vec<OsString>,
}

/// Reads, waits, reads again, and shows the difference.
pub(crate) fn counters(arguments: &Counters) -> anyhow::Result<ExitCode> {
    let mut readings = Readings::default();
    let code = match arguments.read.as_slice() {
        [] => running(arguments, &mut readings)?,
        [_] | [_, _] => {
            recorded(&arguments.read, &mut readings)?;
            ExitCode::SUCCESS
        }
        _ => bail!(
            "--read is given {} times\nhint: once for one reading, twice for before and after",
            arguments.read.len()
        ),
    };
    let text = readings.text(arguments)?;
    std::io::Write::write_all(&mut anstream::stdout(), &text)?;
    if arguments.format == Format::Text {
        for note in &readings.notes {
            messages::note("counters", note);
        }
    }
    if let Some(kept) = readings.kept {
        kept.finish()?;
    }
    Ok(code)
}

/// A finding in JSON.
fn document(finding: &CounterFinding) -> serde_json::Value {
    json!({
        "id": finding.id,
        "severity": finding.severity.name(),
        "object": finding.object,
        "summary": finding.text,
        "evidence": serde_json::from_str::<serde_json::Value>(&finding.evidence.to_string()).unwrap_or_default(),
        "confidence": finding.confidence,
        "next_step": finding.next,
    })
}

/// A reader's facts about links.
struct HostLinks<'a>(&'a HostReader);

impl LinkFacts for HostLinks<'_> {
    fn bits_per_second(&self, object: &str) -> Option<f64> {
        self.0.bits_per_second(object)
    }

    fn max_per_second(&self, object: &str) -> Option<f64> {
        self.0.max_per_second(object)
    }

    fn port_of(&self, interface: &str) -> Option<String> {
        self.0.port_of(interface).map(str::to_owned)
    }
}

/// Everything read, folded into one line for each counter.
#[derive(Default)]
struct Readings {
    series: SampleSeries,
    summary: SampleSummary,
    notes: Vec<String>,
    kept: Option<KeptSamples>,
    /// The first reading and the last, each with the system's start where it is a recording.
    ends: [Option<(Vec<Sample>, SystemStart)>; 2],
    found: Vec<CounterFinding>,
    /// Numbers of the last reading that an earlier one has, too.
    common: usize,
}

impl Readings {
    /// The counters and findings, in the format that is wanted.
    fn text(&self, arguments: &Counters) -> anyhow::Result<Vec<u8>> {
        let mut text = Vec::new();
        if arguments.format == Format::Text {
            let style = style(0);
            let all = arguments.all || arguments.read.len() == 1;
            samples::text(&self.summary, all, &style, &mut text)?;
            let found = self.found.iter().map(|finding| FoundLine {
                severity: finding.severity,
                id: finding.id,
                object: &finding.object,
                text: &finding.text,
                next: finding.next,
            });
            text.extend(lines(found, &style).as_bytes());
        } else {
            let notes: Vec<&str> = self.notes.iter().map(String::as_str).collect();
            let found: Vec<_> = self.found.iter().map(document).collect();
            samples::json(&self.summary, &found, &notes, &mut text)?;
        }
        Ok(text)
    }

    /// Shows what changed since the last reading.
    fn show_interval(
        &self,
        reader: &HostReader,
        now: &[Sample],
        table: &mut RunningTable,
        arguments: &Counters,
    ) -> anyhow::Result<()> {
        let [first, last] = &self.ends;
        let Some((before, _)) = last.as_ref().or(first.as_ref()) else {
            return Ok(());
        };
        let mut interval = Self::default();
        for samples in [before.as_slice(), now] {
            let time = samples.first().map_or(Time(0), |sample| sample.time);
            interval.add(time, samples, |object| reader.max_per_second(object))?;
            interval.keep(samples.to_vec(), SystemStart::default());
        }
        interval.judge(&HostLinks(reader));
        let text = interval.text(arguments)?;
        table.show(time_of_day(), &String::from_utf8_lossy(&text))?;
        Ok(())
    }

    /// Reads once, and shows the interval in the running table, if there is one.
    fn read(
        &mut self,
        reader: &mut HostReader,
        time: Time,
        table: Option<(&mut RunningTable, &Counters)>,
    ) -> anyhow::Result<()> {
        let mut samples = Vec::new();
        reader.read(time, &mut samples);
        if let Some((table, arguments)) = table {
            self.show_interval(reader, &samples, table, arguments)?;
        }
        // Readings of a running system have times, and it does not restart between them.
        let start = if time == Time(0) {
            reader.start()
        } else {
            SystemStart::default()
        };
        self.series.started(reader.node(), start);
        self.add(time, &samples, |object| reader.max_per_second(object))?;
        self.keep(samples, start);
        Ok(())
    }

    /// Refuses interfaces of which the first reading has no number. The numbers of a VLAN are those of the interface below it.
    fn has_statistics_of(&self, interfaces: &[String]) -> anyhow::Result<()> {
        let [Some((first, _)), None] = &self.ends else {
            return Ok(());
        };
        for name in interfaces {
            let is_vlan = Path::new("/proc/net/vlan").join(name).exists();
            if !is_vlan && !first.iter().any(|sample| *sample.object == **name) {
                bail!(
                    "--interface {name}: its driver has no statistics that are read\nhint: `ethtool -S {name}` shows what it has"
                );
            }
        }
        Ok(())
    }

    /// Keeps the first reading and the last.
    fn keep(&mut self, samples: Vec<Sample>, start: SystemStart) {
        let [first, last] = &mut self.ends;
        *if first.is_none() { first } else { last } = Some((samples, start));
    }

    /// Judges the last reading against the first.
    fn judge(&mut self, links: &dyn LinkFacts) {
        if let [Some((before, started)), Some((now, later))] = &self.ends {
            let reading = |samples, start| CounterReading { samples, start };
            let before = reading(before.as_slice(), *started);
            self.found = judge(&Growths::new(
                Some(before),
                reading(now.as_slice(), *later),
                links,
            ));
        }
    }

    /// Adds a reading. `max_per_second` is the highest rate at which an object counts.
    fn add(
        &mut self,
        time: Time,
        samples: &[Sample],
        max_per_second: impl Fn(&str) -> Option<f64>,
    ) -> anyhow::Result<()> {
        let mut rows = SampleColumns::default();
        self.common = 0;
        for sample in samples {
            let row = self.series.row(sample, max_per_second(&sample.object));
            self.common += usize::from(row.interval_ns.is_some());
            self.summary.add(&row);
            rows.push(&row);
        }
        match &mut self.kept {
            Some(kept) => kept.add(time, &rows),
            None => Ok(()),
        }
    }
}

/// Gives the counters of a second text the interface of the first, where each has one alone and the files are named `before` and
/// `after`, and not by their interface. False where there was nothing to do.
pub(in crate::command) fn name_alike(
    [before, after]: [&Path; 2],
    first: &[Sample],
    second: &mut [Sample],
) -> bool {
    let has = |file: &Path, word| {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        file.is_file() && name.to_lowercase().contains(word)
    };
    if !has(before, "before") || !has(after, "after") {
        return false;
    }
    let only = |samples: &[Sample]| {
        let one = Arc::clone(&samples.first()?.object);
        // Ports of RDMA devices are named in the text itself.
        (!one.contains(':') && samples.iter().all(|sample| sample.object == one)).then_some(one)
    };
    let (Some(one), Some(other)) = (only(first), only(second)) else {
        return false;
    };
    if one == other {
        return false;
    }
    for sample in second {
        sample.object = Arc::clone(&one);
    }
    true
}

/// Reads a recorded tree. Nobody says when the recordings were made: there are changes, and no rates.
fn read_tree(mut reader: HostReader, readings: &mut Readings) -> anyhow::Result<()> {
    readings.read(&mut reader, Time(0), None)?;
    readings.judge(&HostLinks(&reader));
    readings.notes.extend(reader.notes().map(str::to_owned));
    Ok(())
}

/// One recorded host, or two recordings of one.
fn recorded(folders: &[PathBuf], readings: &mut Readings) -> anyhow::Result<()> {
    let node = folders.first().and_then(|folder| folder.file_name());
    let node = node.unwrap_or_default().to_string_lossy().into_owned();
    // A host whose texts were saved is not named by the first file.
    let mut texts = HostReader::of_texts();
    for folder in folders {
        if is_archive(folder) {
            let (tree, name) = archive_files(folder).with_context(|| folder.display().to_string())?;
            // A host whose archives have other names is the first one.
            let node = if folders.len() > 1 { &node } else { &name };
            read_tree(HostReader::of_tree(tree, node), readings)?;
            continue;
        }
        if folder.is_file() {
            let text = roce_files::read_text(folder, MAX_TEXT_BYTES)?;
            let mut samples = Vec::new();
            // Statistics of ESXi and of switches have the form of a host's.
            let is_of_device = pasted(&text, &interface_of(folder)).is_some();
            if is_of_device || !texts.read_text(Time(0), &text, &interface_of(folder), &mut samples) {
                bail!(
                    "{}: no counters in this text{}\nhint: the text or JSON of `rdma statistic show`, `grep . /sys/class/infiniband/*/ports/*/*counters/*`, or \
                     `ethtool -S IF` in a file that is called IF.txt",
                    folder.display(),
                    described_but("host counters --read", &text)
                );
            }
            if let ([Some((first, _)), _], [before, after]) = (&readings.ends, folders)
                && name_alike([before, after], first, &mut samples)
            {
                let file = folder.display();
                let said = format!("{file}: taken for the interface of the first text");
                readings.notes.push(said);
            }
            readings.series.started("", texts.start());
            readings.add(Time(0), &samples, |_| None)?;
            readings.keep(samples, texts.start());
            readings.judge(&());
            continue;
        }
        if !Path::is_dir(&folder.join("sys")) {
            bail!(
                "{}: not a recorded host\nhint: the folder has the files of /sys below sys, and texts in commands",
                folder.display()
            );
        }
        let reader = HostReader::recorded(folder, &node).with_context(|| folder.display().to_string())?;
        read_tree(reader, readings)?;
    }
    if let ([before, after], 0) = (folders, readings.common) {
        bail!(
            "{} and {}: no counter is in both\nhint: two recordings of one host, before and after",
            before.display(),
            after.display()
        );
    }
    readings.notes.sort();
    readings.notes.dedup();
    Ok(())
}

/// This host: at the start, each interval, and at the end.
fn running(arguments: &Counters, readings: &mut Readings) -> anyhow::Result<ExitCode> {
    for name in &arguments.interface {
        if !Path::new("/sys/class/net").join(name).exists() {
            bail!(
                "--interface {name}: there is no network interface of this name\nhint: `ip link` lists them"
            );
        }
    }
    let mut reader = HostReader::new(&arguments.interface);
    if arguments.queue_pairs {
        reader = reader.with_queue_pairs();
    }
    if let Some(name) = &arguments.destination.names.host {
        reader = reader.named(name);
    }
    let about = About {
        input: "host counters",
        format: "counters",
        interval: arguments.interval,
    };
    readings.kept = arguments.destination.begin(about)?;
    let interval = Duration::from_nanos(arguments.interval.0).max(LOOK);
    let pace = Pace {
        duration: if arguments.run.is_empty() {
            arguments.watch.duration(arguments.duration, None)
        } else {
            arguments.duration
        },
        interval,
        look: Duration::MAX,
        run: &arguments.run,
    };
    let mut table = arguments.watch.begin(arguments.format, !arguments.run.is_empty());
    let end = paced(&pace, |is_due| {
        if is_due {
            readings.read(
                &mut reader,
                time_of_day(),
                table.as_mut().map(|table| (table, arguments)),
            )?;
            readings.has_statistics_of(&arguments.interface)?;
        }
        Ok(())
    })?;
    if let Some(table) = &mut table {
        table.clear()?;
    }
    readings.judge(&HostLinks(&reader));
    readings.notes.extend(reader.notes().map(str::to_owned));
    if let Some(lifespan) = reader.lifespan().filter(|lifespan| *lifespan > interval) {
        readings.notes.push(format!(
            "the driver renews its counters every {} ms: an interval of {} ms shows some values twice",
            lifespan.as_millis(),
            interval.as_millis()
        ));
    }
    readings.notes.extend(end.note().map(str::to_owned));
    Ok(end.code())
}
