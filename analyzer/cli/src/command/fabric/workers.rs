//! A thread for each target: all are read at one tick, and a slow one holds up none of the others.

use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant};

use anyhow::Context;
use roce_pipeline::time_of_day;
use roce_remote::DeviceReader;
use roce_switches::device::Reading;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::host::{HostReading, HostSource};

/// A target that is read.
pub(super) enum ReadTarget {
    /// A host.
    Host(Box<HostSource>),
    /// A switch or a hypervisor.
    Device(Box<DeviceReader>),
}

/// The result of one reading.
pub(super) enum TargetReading {
    /// A reading of a host.
    Host(HostReading),
    /// A reading of a switch or a hypervisor.
    Reading(Box<Reading>),
    /// Nothing, and why.
    Failed(String),
}

/// All targets, each with its thread. A thread has one reading at a time, so that few results wait.
pub(super) struct Workers {
    requests: Vec<SyncSender<()>>,
    is_busy: Vec<bool>,
    results: UnboundedReceiver<(usize, TargetReading)>,
}

impl Workers {
    /// Starts the threads. They end when this is dropped, behind the reading that they make.
    ///
    /// # Errors
    /// The system has no thread for one of them.
    pub(super) fn start(sources: Vec<ReadTarget>) -> anyhow::Result<Self> {
        let (sender, results) = unbounded_channel();
        let mut requests = Vec::new();
        for (place, source) in sources.into_iter().enumerate() {
            let (request, wanted) = sync_channel(1);
            let sender = sender.clone();
            std::thread::Builder::new()
                .name(format!("target {place}"))
                .spawn(move || work(place, source, &wanted, &sender))
                .context("no thread for a target")?;
            requests.push(request);
        }
        Ok(Self {
            is_busy: vec![false; requests.len()],
            requests,
            results,
        })
    }

    /// Has all targets read that are not being read.
    pub(super) fn tick(&mut self) {
        for (request, is_busy) in self.requests.iter().zip(&mut self.is_busy) {
            if !*is_busy {
                *is_busy = !matches!(request.try_send(()), Err(TrySendError::Disconnected(())));
            }
        }
    }

    /// True if no target is being read.
    pub(super) fn are_idle(&self) -> bool {
        !self.is_busy.contains(&true)
    }

    /// The next result, by the target's place.
    pub(super) async fn next(&mut self) -> Option<(usize, TargetReading)> {
        let result = self.results.recv().await;
        if let Some((place, _)) = &result
            && let Some(is_busy) = self.is_busy.get_mut(*place)
        {
            *is_busy = false;
        }
        result
    }
}

fn work(
    place: usize,
    mut source: ReadTarget,
    wanted: &Receiver<()>,
    results: &UnboundedSender<(usize, TargetReading)>,
) {
    while wanted.recv().is_ok() {
        let read = match &mut source {
            ReadTarget::Host(host) => match host.read(time_of_day) {
                Ok(reading) => TargetReading::Host(reading),
                Err(error) => TargetReading::Failed(format!("{error:#}")),
            },
            ReadTarget::Device(reader) => TargetReading::Reading(Box::new(reader.read(time_of_day))),
        };
        if results.send((place, read)).is_err() {
            break;
        }
    }
}

/// The moment of a tick, and the next ones at even distances from the first.
pub(super) struct Ticks {
    next: Instant,
    every: Duration,
}

impl Ticks {
    /// The first tick is now.
    pub(super) fn new(every: Duration) -> Self {
        Self {
            next: Instant::now(),
            every,
        }
    }

    /// Time until the next tick.
    pub(super) fn left(&self) -> Duration {
        self.next.saturating_duration_since(Instant::now())
    }

    /// True once for each tick. Those that were missed are left out.
    pub(super) fn is_due(&mut self) -> bool {
        let now = Instant::now();
        if now < self.next {
            return false;
        }
        while self.next <= now {
            self.next += self.every;
        }
        true
    }
}
