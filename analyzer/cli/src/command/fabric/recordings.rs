//! Recordings of hosts, switches and hypervisors, two of each, for `fabric pauses --read`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};
use roce_model::{Sample, Span, SystemStart, Time};
use roce_probe::{HostReader, interface_of};
use roce_spelling::plural;
use roce_switches::device::Reading;
use roce_switches::inventory::Inventory;
use roce_switches::pauses::PauseCollector;

use super::counters::of_recording;
use super::device::node_of;
use crate::command::host::counters::name_alike;
use crate::command::pasted::described;

/// Devices of one folder; more are refused.
const MAX_DEVICES: usize = 4_096;
/// The longest text of a host's counters.
const MAX_TEXT_BYTES: u64 = 8 << 20;

/// A recording of one device.
enum DeviceRecording {
    /// Its numbers, and when it started.
    Host(Vec<Sample>, SystemStart),
    Device(Box<Reading>),
}

/// The collector of two recordings: each a folder with a folder for each device (as `fabric counters --raw` writes it, and recorded
/// hosts beside them), the folder of one device, or a text.
///
/// # Errors
/// A recording cannot be read, has nothing that is known, or the two have no device in common.
pub(super) fn between(paths: &[PathBuf], inventory: &Inventory) -> anyhow::Result<PauseCollector> {
    let [before, after] = paths else {
        bail!(
            "--read is given {}\nhint: twice: before and after",
            plural(paths.len() as u64, "time", "times")
        );
    };
    let first = recordings(before, inventory)?;
    let mut second = recordings(after, inventory)?;
    // Two recordings of one device may have any names.
    if let ([name], 1) = (first.keys().collect::<Vec<_>>().as_slice(), second.len()) {
        let only = second.pop_first().map(|(_, recording)| recording);
        second.extend(only.map(|recording| ((*name).clone(), recording)));
    }
    let mut collector = PauseCollector::new(Span(0));
    let mut common = 0;
    for (name, recording) in first {
        let Some(later) = second.remove(&name) else {
            continue;
        };
        common += 1;
        let mut later = later;
        if let (DeviceRecording::Host(first, _), DeviceRecording::Host(second, _)) = (&recording, &mut later)
        {
            name_alike([before, after], first, second);
        }
        for recording in [recording, later] {
            let node: Arc<str> = name.as_str().into();
            match recording {
                DeviceRecording::Host(mut samples, start) => {
                    collector.note_start(&node, start);
                    for sample in &mut samples {
                        sample.node = Arc::clone(&node);
                    }
                    collector.add_samples(&samples);
                }
                DeviceRecording::Device(mut reading) => {
                    reading.node = Arc::clone(&node);
                    for sample in &mut reading.samples {
                        sample.node = Arc::clone(&node);
                    }
                    collector.add_reading(&reading);
                }
            }
        }
    }
    if common == 0 {
        bail!(
            "{} and {}: no device is in both",
            before.display(),
            after.display()
        );
    }
    Ok(collector)
}

/// The recordings at a path, by the names of their devices.
fn recordings(path: &Path, inventory: &Inventory) -> anyhow::Result<BTreeMap<String, DeviceRecording>> {
    let mut folders = Vec::new();
    if path.is_dir() && !is_host(path) {
        let entries = std::fs::read_dir(path).with_context(|| path.display().to_string())?;
        let inside = entries
            .flatten()
            .map(|entry| entry.path())
            .filter(|inside| inside.is_dir());
        folders.extend(inside.take(MAX_DEVICES + 1));
        if folders.len() > MAX_DEVICES {
            bail!("{}: more than {MAX_DEVICES} folders", path.display());
        }
    }
    if folders.is_empty() {
        folders.push(path.to_owned());
    }
    folders.sort();
    let read = |folder: &PathBuf| Ok((node_of(folder), recording(folder, inventory)?));
    folders.iter().map(read).collect()
}

/// True of the folder of a recorded host.
fn is_host(folder: &Path) -> bool {
    ["sys", "commands"].iter().any(|name| folder.join(name).is_dir())
}

/// The recording of one device.
fn recording(path: &Path, inventory: &Inventory) -> anyhow::Result<DeviceRecording> {
    let mut samples = Vec::new();
    if is_host(path) {
        let mut reader = HostReader::recorded(path, "").with_context(|| path.display().to_string())?;
        reader.read(Time(0), &mut samples);
        return Ok(DeviceRecording::Host(samples, reader.start()));
    }
    // Statistics of a port of Cumulus have the form of a host's.
    let target = of_recording(path, inventory);
    if target.is_err() && path.is_file() {
        let text = roce_files::read_text(path, MAX_TEXT_BYTES)?;
        let mut reader = HostReader::of_texts();
        if reader.read_text(Time(0), &text, &interface_of(path), &mut samples) {
            return Ok(DeviceRecording::Host(samples, SystemStart::default()));
        }
        bail!(
            "{}: no counters in this text{}\nhint: an answer of a switch or hypervisor, or the text of ethtool -S or rdma statistic",
            path.display(),
            described(&text)
        );
    }
    Ok(DeviceRecording::Device(Box::new(target?.reader.read(|| Time(0)))))
}
