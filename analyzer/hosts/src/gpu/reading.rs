//! A GPU with its values, and the forms that cells of all tools have.

use std::borrow::Cow;
use std::sync::Arc;

use roce_model::{Counter, Sample, SampleSource, Time};

/// Remark about a driver that does not answer.
pub(super) const DRIVER_SILENT: &str = "the NVIDIA driver does not answer";
/// GPUs in one text, at most.
pub(super) const MAX_GPUS: usize = 1024;
/// Percent as a ratio.
pub(super) fn percent(value: f64) -> f64 {
    value / 100.0
}

/// MiB as bytes.
pub(super) fn mebibytes(value: f64) -> f64 {
    value * 1_048_576.0
}

/// MB as bytes.
pub(super) fn megabytes(value: f64) -> f64 {
    value * 1e6
}

/// kB as bytes.
pub(super) fn kilobytes(value: f64) -> f64 {
    value * 1e3
}

/// MHz as Hz.
pub(super) fn megahertz(value: f64) -> f64 {
    value * 1e6
}

/// A value that is in its base unit.
pub(super) fn plain(value: f64) -> f64 {
    value
}

/// One value of a GPU.
#[derive(Clone, PartialEq, Debug)]
pub struct GpuValue {
    /// The quantity.
    pub counter: Counter,
    /// The values of its labels.
    pub details: Vec<Cow<'static, str>>,
    /// The value in base units.
    pub value: f64,
}

/// A GPU at its last reading.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Gpu {
    /// `gpu0`; of an instance of a divided GPU `gpu0/mig1`.
    pub object: String,
    /// Its UUID.
    pub uuid: Option<String>,
    /// Its product's name.
    pub name: Option<String>,
    /// Its PCI address: `0000:3b:00.0`.
    pub pci_address: Option<String>,
    /// True if the driver has lost it, or says that it needs a reset.
    pub is_lost: bool,
    /// Reasons for which its clocks are held down, `None` where they are not known; `gpu_idle` and `sync_boost` are not among them.
    pub throttled: Option<Vec<String>>,
    /// Its values. What is not known is absent.
    pub values: Vec<GpuValue>,
}

impl Gpu {
    pub(super) fn put(&mut self, counter: Counter, detail: Option<&'static str>, value: Option<f64>) {
        let Some(value) = value.filter(|value| value.is_finite() && *value >= 0.0) else {
            return;
        };
        let details: Vec<Cow<'static, str>> = detail.map(Cow::Borrowed).into_iter().collect();
        self.values
            .retain(|other| other.counter != counter || other.details != details);
        self.values.push(GpuValue {
            counter,
            details,
            value,
        });
    }

    /// A value, if it is known.
    pub fn value(&self, counter: Counter, detail: Option<&str>) -> Option<f64> {
        let found = self
            .values
            .iter()
            .find(|value| value.counter == counter && value.details.first().map(AsRef::as_ref) == detail);
        found.map(|found| found.value)
    }

    /// Sets the reasons from the bits that NVML has (nvml.h, nvmlClocksEventReason*).
    pub(super) fn set_reasons(&mut self, bits: u64) {
        let mut named = Vec::new();
        for (bit, name) in REASONS {
            self.put(
                Counter::GpuThrottled,
                Some(name),
                Some(if bits & bit != 0 { 1.0 } else { 0.0 }),
            );
            if bits & bit != 0 {
                named.push(name.to_owned());
            }
        }
        let known: u64 = REASONS.iter().map(|(bit, _)| bit).sum::<u64>() | IDLE | SYNC_BOOST;
        let others = (0..64).filter(|place| (bits & !known) >> place & 1 == 1);
        named.extend(others.map(|place| format!("bit_{place}")));
        self.throttled = Some(named);
    }
}

/// nvmlClocksEventReasonGpuIdle: no slowdown.
pub(super) const IDLE: u64 = 0x1;
/// nvmlClocksEventReasonSyncBoost: no slowdown.
pub(super) const SYNC_BOOST: u64 = 0x10;
/// Reasons that hold clocks down.
pub(super) const REASONS: [(u64, &str); 7] = [
    (0x2, "applications_clocks_setting"),
    (0x4, "sw_power_cap"),
    (0x8, "hw_slowdown"),
    (0x20, "sw_thermal_slowdown"),
    (0x40, "hw_thermal_slowdown"),
    (0x80, "hw_power_brake_slowdown"),
    (0x100, "display_clock_setting"),
];

/// The GPUs in a text.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Gpus {
    /// Each once, with its last reading.
    pub gpus: Vec<Gpu>,
    /// Remarks: what the tool could not say.
    pub notes: Vec<String>,
}

impl Gpus {
    /// The GPU of this name, made where it is not known.
    pub(super) fn gpu(&mut self, object: &str) -> Option<&mut Gpu> {
        let place = self.gpus.iter().position(|gpu| gpu.object == object);
        if let Some(place) = place {
            return self.gpus.get_mut(place);
        }
        if self.gpus.len() >= MAX_GPUS {
            return None;
        }
        self.gpus.push(Gpu {
            object: object.to_owned(),
            ..Gpu::default()
        });
        self.gpus.last_mut()
    }

    pub(super) fn note(&mut self, text: &str) {
        if !self.notes.iter().any(|note| note == text) && self.notes.len() < MAX_GPUS {
            self.notes.push(text.to_owned());
        }
    }

    /// True if the tool said that its driver does not answer: then there are no GPUs to read.
    pub fn is_driver_silent(&self) -> bool {
        self.notes.iter().any(|note| note == DRIVER_SILENT)
    }

    /// Samples of all values.
    pub fn samples(&self, time: Time, node: &Arc<str>) -> Vec<Sample> {
        let mut all = Vec::new();
        for gpu in &self.gpus {
            let object: Arc<str> = gpu.object.as_str().into();
            all.extend(gpu.values.iter().map(|value| Sample {
                time,
                source: SampleSource::Gpu,
                node: Arc::clone(node),
                object: Arc::clone(&object),
                counter: value.counter,
                priority: None,
                queue: None,
                details: value.details.clone(),
                value: value.value,
                bits: 64,
            }));
        }
        all
    }
}

/// A PCI address as the kernel writes it: lower case, four digits of domain unless it needs more. nvidia-smi writes eight.
pub(super) fn pci_address(text: &str) -> Option<String> {
    let lower = text.trim().to_ascii_lowercase();
    let (domain, rest) = lower.split_once(':')?;
    let domain = u64::from_str_radix(domain, 16).ok()?;
    let (bus, slot) = rest.split_once(':')?;
    let (device, function) = slot.split_once('.')?;
    let is_hex =
        |text: &str, digits| text.len() == digits && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    (is_hex(bus, 2) && is_hex(device, 2) && is_hex(function, 1)).then(|| format!("{domain:04x}:{rest}"))
}

/// A number in front of its unit; `None` for every text that says that there is none.
pub(super) fn number(cell: &str) -> Option<f64> {
    let word = cell.split_whitespace().next()?;
    let value: f64 = word.parse().ok()?;
    (value.is_finite() && word.starts_with(|first: char| first.is_ascii_digit())).then_some(value)
}

/// A text that says something.
pub(super) fn word(cell: &str) -> Option<String> {
    let cell = cell.trim();
    let is_absent = cell.is_empty() || cell.starts_with('[') || cell == "N/A" || cell == "ERR!";
    (!is_absent).then(|| cell.to_owned())
}

/// True of words for a GPU that does not answer.
pub(super) fn says_lost(text: &str) -> bool {
    [
        "GPU is lost",
        "GPU requires reset",
        "Unknown Error",
        "GPU has fallen off the bus",
    ]
    .iter()
    .any(|words| text.contains(words))
}
