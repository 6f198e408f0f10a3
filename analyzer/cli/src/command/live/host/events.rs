//! The host's events, read as they come, and samples of its counters, read each interval: notes of the stream.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use roce_capture::live::{Notes, Stop};
use roce_model::{HostChange, HostEvent, QueuePairKind, Sample, SampleRow, SampleSeries, Time};
use roce_pipeline::time_of_day;
use roce_probe::{HostReader, Options, Probe, ProbeError};
use roce_wire::Address;

use super::traffic;
use super::unseen::{PROBE, tell};
use crate::command::gpu_tool::{GpuStream, INPUT};
use crate::output::messages;

/// Wait between two looks at whether the run ends.
const PATIENCE: Duration = Duration::from_millis(20);

/// Events this close to each other, in ns, form one note of the stream: drops of packets come in floods.
const MAX_DISTANCE: u64 = 20_000;

/// Addresses of a device are read again after this time, when it gets a queue pair for datagrams.
const ADDRESSES_AGE: Duration = Duration::from_secs(1);

/// Longest time from the kernel's stamp of an event until it can be read, in ns; with room for a busy
/// processor.
const LATENESS: u64 = 5_000_000;
/// Period, in ns, of reporting the events' watermark to the stream.
const SETTLED_EVERY: u64 = 10_000_000;

/// Sources of events.
pub(super) struct Events {
    probe: Option<Probe>,
    counters: Counters,
    addresses: Addresses,
}

impl Events {
    /// Attaches to the points that the kernel has; missing ones are reported.
    pub(super) fn open(
        with_probe: bool,
        interfaces: &[String],
        name: Option<&str>,
        gpus: Option<GpuStream>,
    ) -> Result<Self, ProbeError> {
        let probe = if with_probe {
            let (probe, skipped) = Probe::open(&Options::default())?;
            tell(&probe, &skipped);
            Some(probe)
        } else {
            None
        };
        let reader = HostReader::new(interfaces);
        let reader = match name {
            Some(name) => reader.named(name),
            None => reader,
        };
        Ok(Self {
            probe,
            counters: Counters::new(reader, gpus),
            addresses: Addresses::default(),
        })
    }

    /// True if the kernel's programs report.
    pub(super) const fn has_probe(&self) -> bool {
        self.probe.is_some()
    }

    /// Adds events to the stream until the `end` of the run is requested, or it stops. Then it stops the
    /// devices by `stop`, behind the host's last reports.
    pub(super) fn read(mut self, notes: &Notes, every: Duration, end: &Stop, stop: &Stop) {
        let mut events = Vec::new();
        let mut lost = 0;
        lost += self.counters.read(notes, &mut events);
        let mut polled = Instant::now();
        // Frames that wait for events go on waiting when no more of them come.
        let (probed, mut settled) = (self.probe.is_some(), Time(0));
        loop {
            let ends = end.is_requested() || stop.is_requested();
            if !ends {
                self.wait();
            }
            let begun = time_of_day();
            self.take(&mut events);
            lost += self.counters.read_gpus(notes, &mut events);
            if ends || polled.elapsed() >= self.counters.period(every) {
                polled = Instant::now();
                lost += self.counters.read(notes, &mut events);
            }
            for together in events.chunk_by(|first, next| next.time.since(first.time).0 < MAX_DISTANCE) {
                if !add(notes, together) {
                    lost += together.len() as u64;
                }
            }
            events.clear();
            if lost > 0 && add(notes, &[losses(lost)]) {
                lost = 0;
            }
            if probed && begun.since(settled).0 >= SETTLED_EVERY {
                settled = begun;
                notes.settled(Time(begun.0.saturating_sub(LATENESS)));
            }
            if ends {
                stop.stop();
                return;
            }
        }
    }

    fn wait(&self) {
        match &self.probe {
            Some(probe) => traffic::wait(probe.events_fd(), PATIENCE),
            None => std::thread::sleep(PATIENCE),
        }
    }

    fn take(&mut self, into: &mut Vec<HostEvent>) {
        let Some(probe) = &mut self.probe else { return };
        if let Err(error) = probe.events(into) {
            messages::warn(PROBE, &format!("no more events of the host: {error}"));
            self.probe = None;
        }
        self.addresses.tell(into);
    }
}

/// The counters of the host, and their last reading.
struct Counters {
    reader: HostReader,
    series: SampleSeries,
    samples: Vec<Sample>,
    gpus: Option<GpuStream>,
}

impl Counters {
    /// Reads once, and says what cannot be seen: later the screen is shown.
    fn new(mut reader: HostReader, gpus: Option<GpuStream>) -> Self {
        let mut samples = Vec::new();
        reader.read(time_of_day(), &mut samples);
        for note in reader.notes() {
            messages::note("counters", note);
        }
        Self {
            reader,
            series: SampleSeries::default(),
            samples,
            gpus,
        }
    }

    /// Time between two readings: drivers renew their counters no more often than their lifespan says.
    fn period(&self, every: Duration) -> Duration {
        every.max(self.reader.lifespan().unwrap_or_default())
    }

    /// Reads all counters and adds their rows to the stream; what is worth an event goes to `events`. Returns how many rows found no
    /// room.
    fn read(&mut self, notes: &Notes, events: &mut Vec<HostEvent>) -> u64 {
        let time = time_of_day();
        self.samples.clear();
        self.reader.read(time, &mut self.samples);
        self.add(time, notes, events)
    }

    /// Adds the readings of GPUs that have come since the last look. Returns how many rows found no room.
    fn read_gpus(&mut self, notes: &Notes, events: &mut Vec<HostEvent>) -> u64 {
        let Some(gpus) = &mut self.gpus else { return 0 };
        let time = time_of_day();
        self.samples.clear();
        gpus.read(time, &mut self.samples);
        if !gpus.is_open() {
            messages::warn(INPUT, "nvidia-smi has ended: no more readings of GPUs");
            self.gpus = None;
        }
        self.add(time, notes, events)
    }

    /// Adds the rows of the samples to the stream.
    fn add(&mut self, time: Time, notes: &Notes, events: &mut Vec<HostEvent>) -> u64 {
        let mut bodies = Vec::with_capacity(self.samples.len());
        for sample in &self.samples {
            let (row, change) = self
                .series
                .read(sample, self.reader.max_per_second(&sample.object));
            bodies.push(row.encode());
            events.extend(change.and_then(|change| row.event(change)));
        }
        if bodies.is_empty() || notes.add(time, SampleRow::BLOCK, &bodies) {
            return 0;
        }
        bodies.len() as u64
    }
}

/// Known addresses of devices.
#[derive(Default)]
struct Addresses(HashMap<Arc<str>, (Instant, Vec<Address>)>);

impl Addresses {
    /// Puts the addresses of a device, where they are new, before its first queue pair for datagrams: these name none.
    fn tell(&mut self, events: &mut Vec<HostEvent>) {
        let mut at = 0;
        while let Some(event) = events.get(at) {
            at += 1;
            let HostChange::Created { kind, .. } = event.what else {
                continue;
            };
            let Some(device) = event.device.clone().filter(|_| kind == QueuePairKind::Ud) else {
                continue;
            };
            let time = event.time;
            let reported = self.unreported(&device).into_iter().map(|address| HostEvent {
                time,
                device: Some(Arc::clone(&device)),
                process: None,
                what: HostChange::Address { address },
            });
            let reported: Vec<HostEvent> = reported.collect();
            let count = reported.len();
            events.splice(at - 1..at - 1, reported);
            at += count;
        }
    }

    /// Addresses of a device that were not reported before.
    fn unreported(&mut self, device: &Arc<str>) -> Vec<Address> {
        let (read, known) = match self.0.get_mut(device) {
            Some(known) if known.0.elapsed() < ADDRESSES_AGE => return Vec::new(),
            Some(known) => known,
            None => self
                .0
                .entry(Arc::clone(device))
                .or_insert_with(|| (Instant::now(), Vec::new())),
        };
        *read = Instant::now();
        let now = roce_capture::addresses(&roce_capture::Sysfs::running(), device);
        let new: Vec<Address> = now
            .into_iter()
            .filter(|address| !known.contains(address))
            .collect();
        known.extend(&new);
        new
    }
}

/// True if there was room for them.
fn add(notes: &Notes, together: &[HostEvent]) -> bool {
    let bodies: Vec<Vec<u8>> = together.iter().map(HostEvent::encode).collect();
    let time = together.first().map_or(Time(0), |event| event.time);
    notes.add(time, HostEvent::BLOCK, &bodies)
}

/// Events that found no room in the stream.
fn losses(count: u64) -> HostEvent {
    HostEvent {
        time: time_of_day(),
        device: None,
        process: None,
        what: HostChange::Lost { count },
    }
}
