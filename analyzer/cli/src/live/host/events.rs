//! The host's events, read as they come, and its counters, polled each interval: notes of the stream.

use std::time::{Duration, Instant};

use roce_capture::live::{Notes, Stop};
use roce_model::{HostChange, HostEvent, Nanos};
use roce_probe::{Counters, Options, Probe, ProbeError};

use super::{PROBE, tell, traffic};
use crate::run::time_of_day;

/// So long it waits before it looks whether the run ends.
const PATIENCE: Duration = Duration::from_millis(20);

/// Events this close to each other, in ns, stand together in the stream: drops of packets come in floods.
const TOGETHER: u64 = 20_000;

/// Where events come from.
pub(super) struct Events {
    probe: Option<Probe>,
    counters: Counters,
}

impl Events {
    /// Attaches to what the kernel has; what it does not have is told.
    pub(super) fn open(with_probe: bool, interfaces: &[String]) -> Result<Self, ProbeError> {
        let probe = if with_probe {
            let (probe, skipped) = Probe::open(&Options::default())?;
            tell(&probe, &skipped);
            Some(probe)
        } else {
            None
        };
        Ok(Self {
            probe,
            counters: Counters::new(interfaces),
        })
    }

    /// Brings events into the stream until the run is `told` to end, or stops; then it has the devices `stop`, behind what the host has
    /// reported.
    pub(super) fn read(mut self, notes: &Notes, every: Duration, told: &Stop, stop: &Stop) {
        let mut events = Vec::new();
        let mut lost = 0;
        self.counters.poll(time_of_day(), &mut events);
        let mut polled = Instant::now();
        loop {
            let ends = told.is_told() || stop.is_told();
            if !ends {
                self.wait();
            }
            self.take(&mut events);
            if ends || polled.elapsed() >= every {
                polled = Instant::now();
                self.counters.poll(time_of_day(), &mut events);
            }
            for together in events.chunk_by(|first, next| next.time.since(first.time).0 < TOGETHER) {
                if !add(notes, together) {
                    lost += together.len() as u64;
                }
            }
            events.clear();
            if lost > 0 && add(notes, &[losses(lost)]) {
                lost = 0;
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
        if let Some(probe) = &mut self.probe
            && let Err(error) = probe.events(into)
        {
            crate::warn(PROBE, &format!("no more events of the host: {error}"));
            self.probe = None;
        }
    }
}

/// Whether there was room for them.
fn add(notes: &Notes, together: &[HostEvent]) -> bool {
    let bodies: Vec<Vec<u8>> = together.iter().map(HostEvent::encode).collect();
    let time = together.first().map_or(Nanos(0), |event| event.time);
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
