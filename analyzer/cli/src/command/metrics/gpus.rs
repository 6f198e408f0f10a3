//! GPUs as metrics: of the tool that knows them, or of a text that another program writes.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use roce_capture::{Sysfs, SystemFiles as _};
use roce_hosts::gpu::{Gpus, gpus};
use roce_metrics::{Exposition, GPU_INFO, GPU_LOST, Label};
use roce_model::{Counter, Sample, Time};

use super::host::HostArguments;
use crate::command::gpu_tool::{GpuStream, MAX_TEXT_BYTES, Tool, ask, ask_amd};

/// Label of readings of GPUs.
pub(super) const COLLECTOR: Label<'static> = ("collector", std::borrow::Cow::Borrowed("gpu"));
/// GPUs in a recorded host, in any form that `host gpus --read` takes.
const RECORDED: &str = "commands/gpus.txt";

/// A sample's series.
type Series = (Arc<str>, Counter, Vec<std::borrow::Cow<'static, str>>);

/// The source of readings.
enum Origin {
    /// A text that is read each time.
    File(PathBuf),
    /// A tool that is run each time.
    Once,
    /// nvidia-smi, which prints a line for each GPU each interval.
    Stream(GpuStream),
}

/// GPUs that are read.
pub(super) struct GpuSource {
    origin: Origin,
    /// Models and places of the GPUs, as of the start of a stream.
    known: Gpus,
    /// False until the first reading.
    is_used: bool,
}

impl GpuSource {
    /// The GPUs of these arguments; `None`: none are wanted, or known. With an `interval`, nvidia-smi goes on in the background.
    pub(super) fn new(arguments: &HostArguments, interval: Option<Duration>) -> Option<Self> {
        if arguments.no_gpus {
            return None;
        }
        let recorded = arguments.read.as_ref().map(|folder| folder.join(RECORDED));
        if let Some(path) = arguments.gpus.clone().or(recorded) {
            return Some(Self {
                origin: Origin::File(path),
                known: Gpus::default(),
                is_used: false,
            });
        }
        let (known, tool) = ask();
        let origin = match (tool?, interval) {
            (Tool::NvidiaSmi(columns), Some(interval)) => {
                Origin::Stream(GpuStream::start(&columns, interval, "").ok()?)
            }
            _ => Origin::Once,
        };
        (!known.gpus.is_empty()).then_some(Self {
            origin,
            known,
            is_used: false,
        })
    }

    /// Adds the GPUs. False: there is no new reading.
    pub(super) fn add(&mut self, into: &mut Exposition) -> bool {
        match &mut self.origin {
            Origin::File(path) => {
                let Ok(text) = roce_files::read_text(path, MAX_TEXT_BYTES) else {
                    return false;
                };
                self.known = gpus(&text);
                whole(&self.known, into);
            }
            Origin::Once => {
                whole(&self.known, into);
                return !self.known.gpus.is_empty();
            }
            Origin::Stream(stream) => {
                let mut samples = Vec::new();
                stream.read(Time(0), &mut samples);
                if samples.is_empty() {
                    return false;
                }
                describe(&self.known, into);
                for sample in latest(samples).values() {
                    into.add(sample);
                }
            }
        }
        !self.known.gpus.is_empty()
    }

    /// Asks the tool again where it is run each time, or has ended. The start has asked for the first reading.
    pub(super) fn refresh(&mut self, interval: Duration) {
        if !std::mem::replace(&mut self.is_used, true) {
            return;
        }
        match &self.origin {
            Origin::Once => self.known = ask_amd().unwrap_or_default(),
            Origin::Stream(stream) if !stream.is_open() => {
                if let (known, Some(Tool::NvidiaSmi(columns))) = ask()
                    && let Ok(again) = GpuStream::start(&columns, interval, "")
                    && let Origin::Stream(ended) = std::mem::replace(&mut self.origin, Origin::Stream(again))
                {
                    ended.end();
                    self.known = known;
                }
            }
            _ => {}
        }
    }
}

/// The last sample of each series.
fn latest(samples: Vec<Sample>) -> BTreeMap<Series, Sample> {
    let key = |sample: &Sample| (Arc::clone(&sample.object), sample.counter, sample.details.clone());
    samples.into_iter().map(|sample| (key(&sample), sample)).collect()
}

/// Adds the GPUs' descriptions and values.
fn whole(found: &Gpus, into: &mut Exposition) {
    describe(found, into);
    for sample in found.samples(Time(0), &"".into()) {
        into.add(&sample);
    }
}

fn describe(found: &Gpus, into: &mut Exposition) {
    for gpu in &found.gpus {
        let index = gpu.object.strip_prefix("gpu").unwrap_or(&gpu.object).trim_start();
        let node = gpu.pci_address.as_deref().and_then(numa_node);
        let mut labels: Vec<Label<'_>> = vec![("gpu", index.into())];
        for (name, value) in [
            ("uuid", gpu.uuid.as_deref()),
            ("name", gpu.name.as_deref()),
            ("pci_address", gpu.pci_address.as_deref()),
            ("numa_node", node.as_deref()),
        ] {
            labels.extend(value.map(|value| (name, value.into())));
        }
        into.own(GPU_INFO, &labels, 1.0);
        let lost = if gpu.is_lost { 1.0 } else { 0.0 };
        into.own(GPU_LOST, &[("gpu", index.into())], lost);
    }
}

/// The NUMA node of a PCI device; `None` where the host does not know one (-1).
fn numa_node(address: &str) -> Option<String> {
    let text = Sysfs::running().content(&format!("bus/pci/devices/{address}/numa_node"))?;
    let node = text.trim();
    node.parse::<u32>().is_ok().then(|| node.to_owned())
}
