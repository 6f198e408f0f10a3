//! Readings of switches and hypervisors, one or several over a time, and what is shown of them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use roce_model::text::escape_json;
use roce_model::{Columns as _, Counter, Sample, SampleColumns, Span, Time};
use roce_pipeline::time_of_day;
use roce_remote::{DeviceReader, Recorder, each_mut};
use roce_switches::device::Reading;
use roce_switches::findings::{DeviceFinding, judge};
use roce_switches::inventory::Cluster;

use super::changes::{Changes, Device};
use super::print::print;
use super::{document, text};
use crate::command::host::series::{About, Destination, KeptSamples, LOOK, Pace, paced};
use crate::options::duration::parse_duration;
use crate::options::fabric::{InventoryFile, MAX_AT_ONCE};
use crate::options::fail_on::FailOn;
use crate::options::format::{Format, text_or_json};
use crate::options::nearest::near;
use crate::output::messages;
use crate::output::running::WatchOption;
use crate::output::style::style;

// Options of whoever reads devices. (A comment for the compiler would become the help's first line.)
#[derive(Args, Debug)]
pub(super) struct DeviceArguments {
    #[command(flatten)]
    pub(super) inventory: InventoryFile,

    /// Read recorded answers from DIR, one file for each command, instead of a device, or from a pasted text, whose content says what it is;
    /// given twice: before and after
    #[arg(long, value_name = "DIR|FILE", conflicts_with_all = ["duration", "raw", "output"])]
    pub(super) read: Vec<PathBuf>,

    /// Write every answer below DIR, in a folder for each device, for --read and for reports of errors; lines with passwords are left out
    #[arg(long, value_name = "DIR")]
    raw: Option<PathBuf>,

    /// Leave serial numbers out of what --raw writes, too
    #[arg(long, requires = "raw")]
    no_serials: bool,

    /// Time between the first reading and the last [default: one reading]
    #[arg(short, long, value_name = "TIME", value_parser = parse_duration)]
    duration: Option<Span>,

    /// Time between readings in between
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = parse_duration)]
    interval: Span,

    #[command(flatten)]
    watch: WatchOption,

    /// Show all interfaces, queues and counters, also those that are down or did not move
    #[arg(long)]
    all: bool,

    /// Exit with 1 if there is a finding of this severity or worse (info, warning, critical), or with this id
    #[arg(long, value_name = "SEVERITY|FINDING", value_parser = FailOn::parse_devices)]
    fail_on: Option<FailOn>,

    /// Format of standard output
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = text_or_json())]
    format: Format,

    #[command(flatten)]
    destination: Destination,
}

/// A device, and how it is read.
pub(super) struct Target {
    /// Its operating system.
    pub(super) kind: &'static str,
    pub(super) transport: &'static str,
    pub(super) reader: DeviceReader,
}

/// The names that are wanted, all of which the inventory has; all of its own where none is wanted.
pub(super) fn chosen<'a>(
    wanted: &'a [String],
    known: impl Iterator<Item = &'a str>,
    what: &str,
) -> anyhow::Result<Vec<&'a str>> {
    let known: Vec<&str> = known.collect();
    if known.is_empty() {
        bail!("the inventory has no [[{what}]]");
    }
    if wanted.is_empty() {
        return Ok(known);
    }
    for name in wanted {
        if !known.contains(&name.as_str()) {
            let hint = near(name, known.iter().copied())
                .map_or_else(|| known.join(", "), |name| format!("did you mean '{name}'?"));
            bail!("the inventory has no [[{what}]] '{name}'\nhint: {hint}");
        }
    }
    Ok(wanted.iter().map(String::as_str).collect())
}

/// The name of a device whose answers are in a folder.
pub(super) fn node_of(folder: &Path) -> String {
    let path = std::path::absolute(folder).unwrap_or_else(|_| folder.to_path_buf());
    path.file_name()
        .map_or_else(|| "device".to_owned(), |name| name.to_string_lossy().into_owned())
}

/// A folder's path as an inventory has it.
pub(super) fn folder_text(folder: &Path) -> anyhow::Result<String> {
    if let Err(error) = std::fs::read_dir(folder)
        && !folder.is_file()
    {
        bail!(
            "{}: {error}\nhint: a folder with one file for each command, as --raw writes it, or a pasted text",
            folder.display()
        );
    }
    let text = folder.to_str().map(str::to_owned);
    text.with_context(|| format!("{}: its name is not UTF-8", folder.display()))
}

/// One recorded device, or two recordings of one.
pub(super) fn recorded(
    targets: Vec<Target>,
    options: &DeviceArguments,
    cluster: &Cluster,
) -> anyhow::Result<ExitCode> {
    if targets.len() > 2 {
        bail!(
            "--read is given {} times\nhint: once for one reading, twice for before and after",
            targets.len()
        );
    }
    let mut devices: Vec<Device> = Vec::new();
    for mut target in targets {
        // Nobody says when the recordings were made: there are changes, and no rates.
        let mut reading = target.reader.read(|| Time(0));
        match devices.first_mut() {
            None => devices.push(begun(&target, reading)),
            Some(device) => {
                if let ([before, after], Some(reason)) =
                    (options.read.as_slice(), differ(device, &target, &reading))
                {
                    bail!(
                        "{} and {}: {reason}\nhint: two recordings of one device, before and after",
                        before.display(),
                        after.display()
                    );
                }
                rename(&mut reading, device);
                add(device, reading);
            }
        }
    }
    shown(&devices, options, cluster)
}

/// Reason for which two recordings are not of one device; `None`: they may be. A recording that could not be read says nothing.
fn differ(device: &Device, target: &Target, reading: &Reading) -> Option<String> {
    if device.kind != target.kind {
        return Some(format!("one is of {}, the other of {}", device.kind, target.kind));
    }
    let serials = [&device.last.description.serial, &reading.description.serial];
    if let [before, after] = serials
        && !before.is_empty()
        && !after.is_empty()
        && before != after
    {
        return Some(format!("the serial numbers are {before} and {after}"));
    }
    let known: BTreeSet<_> = device.last.samples.iter().map(series_of).collect();
    let is_known = |sample: &Sample| known.contains(&series_of(sample));
    let is_apart = !known.is_empty() && !reading.samples.is_empty() && !reading.samples.iter().any(is_known);
    is_apart.then(|| "no counter is in both".to_owned())
}

/// The series of a sample, whatever device it is of.
fn series_of(sample: &Sample) -> (&str, Counter) {
    (&*sample.object, sample.counter)
}

/// Gives the second recording the name of the first: both are of one device.
fn rename(reading: &mut Reading, device: &Device) {
    reading.node = std::sync::Arc::clone(&device.last.node);
    for sample in &mut reading.samples {
        sample.node = std::sync::Arc::clone(&device.last.node);
    }
}

/// Devices of an inventory: once, or at the start, each interval, and at the end of a time.
pub(super) fn running(
    mut targets: Vec<Target>,
    options: &DeviceArguments,
    cluster: &Cluster,
) -> anyhow::Result<ExitCode> {
    if let Some(folder) = &options.raw {
        let recorder = Recorder::below(folder, options.no_serials)?;
        for target in &mut targets {
            let recorder = recorder.of(target.reader.node())?;
            target.reader.record_to(recorder);
        }
    }
    let mut kept = options.destination.begin(About {
        input: "fabric",
        format: "counters",
        interval: options.interval,
    })?;
    let mut running = options.watch.begin(options.format, false);
    let mut devices: Vec<Device> = Vec::new();
    let mut read = || -> anyhow::Result<()> {
        let readings = read_all(&mut targets);
        let mut rows = SampleColumns::default();
        let time = time_of_day();
        if let Some(running) = &mut running
            && !devices.is_empty()
        {
            let between: Vec<Device> = devices
                .iter()
                .zip(&readings)
                .map(|(device, now)| between(device, now.clone()))
                .collect();
            running.show(time, &text(&between, &judged(&between, cluster), options))?;
        }
        for (place, reading) in readings.into_iter().enumerate() {
            match devices.get_mut(place) {
                Some(device) => add(device, reading),
                None => devices.extend(targets.get(place).map(|target| begun(target, reading))),
            }
            for row in devices
                .get(place)
                .into_iter()
                .flat_map(|device| device.changes.last_rows())
            {
                rows.push(row);
            }
        }
        for target in &mut targets {
            if let Some(error) = target.reader.take_record_error() {
                return Err(error.into());
            }
        }
        kept.as_mut()
            .map_or(Ok(()), |kept: &mut KeptSamples| kept.add(time, &rows))
    };
    let duration = options.watch.duration(options.duration, None);
    if duration.is_some() {
        let pace = Pace {
            duration,
            interval: Duration::from_nanos(options.interval.0).max(LOOK),
            look: Duration::MAX,
            run: &[],
        };
        paced(&pace, |is_due| if is_due { read() } else { Ok(()) })?;
    } else {
        read()?;
    }
    if let Some(running) = &mut running {
        running.clear()?;
    }
    let code = shown(&devices, options, cluster)?;
    if let Some(kept) = kept {
        kept.finish()?;
    }
    Ok(code)
}

/// One reading of each device, some at once. The readings are in the order of the targets.
fn read_all(targets: &mut [Target]) -> Vec<Reading> {
    each_mut(targets, MAX_AT_ONCE, |target| target.reader.read(time_of_day))
}

fn begun(target: &Target, reading: Reading) -> Device {
    alone(target.kind, target.transport, reading)
}

/// A device with one reading.
fn alone(kind: &'static str, transport: &'static str, reading: Reading) -> Device {
    let mut changes = Changes::default();
    changes.add(&reading);
    Device {
        kind,
        transport,
        first: None,
        last: reading,
        changes,
    }
}

/// A device from its last reading to this one.
fn between(device: &Device, now: Reading) -> Device {
    let mut between = alone(device.kind, device.transport, device.last.clone());
    add(&mut between, now);
    between
}

fn add(device: &mut Device, reading: Reading) {
    device.changes.add(&reading);
    let before = std::mem::replace(&mut device.last, reading);
    device.first.get_or_insert(before);
}

/// The findings about each device.
fn judged(devices: &[Device], cluster: &Cluster) -> Vec<Vec<DeviceFinding>> {
    let all = devices.iter();
    all.map(|device| judge(device.first.as_ref(), &device.last, cluster))
        .collect()
}

/// The devices in the format that is wanted.
fn text(devices: &[Device], findings: &[Vec<DeviceFinding>], options: &DeviceArguments) -> String {
    if options.format == Format::Text {
        let all = devices.iter().zip(findings);
        return all
            .map(|(device, findings)| text::device(device, findings, options.all, &style(0)))
            .collect();
    }
    let document = document::document(devices, findings);
    format!("{}\n", escape_json(&format!("{document:#}")))
}

/// Shows everything, and judges it.
fn shown(devices: &[Device], options: &DeviceArguments, cluster: &Cluster) -> anyhow::Result<ExitCode> {
    let findings = judged(devices, cluster);
    print(&text(devices, &findings, options))?;
    let failed = failed(options.fail_on.as_ref(), findings.iter().flatten());
    if !failed.is_empty() {
        messages::failed("--fail-on", &failed.join(", "));
    }
    let absent = devices.iter().filter(|device| !device.changes.is_up());
    let absent: Vec<&str> = absent.map(|device| &*device.last.node).collect();
    if !absent.is_empty() {
        messages::error(&format!("{}: no answer that is understood", absent.join(", ")));
        return Ok(ExitCode::from(2));
    }
    Ok(if failed.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(1)
    })
}

/// Names of the findings that fail the run.
fn failed<'a>(fail_on: Option<&FailOn>, findings: impl Iterator<Item = &'a DeviceFinding>) -> Vec<String> {
    let fails =
        |finding: &&DeviceFinding| fail_on.is_some_and(|fail_on| fail_on.holds(finding.id, finding.severity));
    let failed = findings.filter(fails);
    failed
        .map(|finding| {
            let place = [finding.node.as_str(), &finding.object].join(" ");
            format!(
                "{} ({}) {}",
                finding.id,
                finding.severity.name(),
                place.trim_end()
            )
        })
        .collect()
}
