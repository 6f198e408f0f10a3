//! The probe's part of a live run: events of the host and its counters, which join the stream as notes
//! (`events`), and packets by the kernel's classifier instead of libpcap (`traffic`). Both have threads
//! of their own; the run waits for them at its end, so that all programs are detached.

mod events;
mod traffic;
mod unseen;

use std::io::Write;
use std::process::ExitCode;
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Context;
use clap::{Args, ValueEnum};
use roce_capture::Interface;
use roce_capture::live::{Notes, Outlet, Stop};
use roce_model::text::clean;
use roce_probe::MissingCapabilities;
use rustix::thread::CapabilitySet;

use crate::command::gpu_tool::{GpuStream, INPUT, Tool, ask};
use crate::options::names::Names;
use crate::output::messages;
use crate::sandbox::Needs;
use events::Events;
use traffic::Tap;

/// Means of capturing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum By {
    /// libpcap: every frame
    Pcap,
    /// The probe's classifier in the kernel: RoCE packets alone, of each the first 96 bytes (384 of the connection manager's)
    Tc,
}

// Task of the probe in a live run. (A comment for the compiler would become the help's first line.)
#[derive(Args, Debug)]
pub(crate) struct HostArguments {
    /// Follow this host's queue pairs by programs in the kernel (eBPF): their processes, state changes and dropped packets
    #[arg(long)]
    probe: bool,

    /// Capture by libpcap or by the probe's classifier
    #[arg(long, value_enum, value_name = "BY", default_value = "pcap")]
    capture: By,

    /// Read this host's GPUs each interval, too: starts nvidia-smi once, with the rights of the caller, before the run gives up its own
    #[arg(long)]
    gpus: bool,

    /// Remove filters that a killed run left at interfaces, and do nothing else (Linux 6.6 and later remove them)
    #[arg(long, exclusive = true)]
    cleanup: bool,
}

impl HostArguments {
    /// Cleans up, if that is what is to be done.
    pub(crate) fn cleanup(&self) -> Option<anyhow::Result<ExitCode>> {
        self.cleanup.then(cleanup)
    }

    /// Refuses options that this build cannot serve.
    #[expect(
        clippy::unnecessary_wraps,
        clippy::unused_self,
        reason = "one without the probe cannot"
    )]
    pub(crate) const fn can_be_had(&self) -> anyhow::Result<()> {
        Ok(())
    }

    /// Starts the tool that reports GPUs, if they are wanted and there is one.
    pub(crate) fn gpus(&self, every: Duration, names: &Names) -> anyhow::Result<Option<GpuStream>> {
        if !self.gpus {
            return Ok(None);
        }
        let (found, tool) = ask();
        for note in &found.notes {
            messages::note(INPUT, note);
        }
        match tool {
            Some(Tool::NvidiaSmi(columns)) => GpuStream::start(&columns, every, &names.node()).map(Some),
            Some(Tool::AmdSmi) => {
                messages::note(
                    INPUT,
                    "amd-smi does not report by itself, and a live run starts no program later: its GPUs are not read (`host gpus -o` reads them)",
                );
                Ok(None)
            }
            None => Ok(None),
        }
    }

    /// True if hosts' events are in the stream.
    pub(crate) const fn has_probe(&self) -> bool {
        self.probe
    }

    /// True if libpcap captures.
    pub(crate) fn by_libpcap(&self) -> bool {
        self.capture == By::Pcap
    }

    /// Means of capturing, if it is not libpcap.
    pub(crate) fn way(&self) -> Option<String> {
        (!self.by_libpcap()).then(|| {
            format!(
                "by the kernel's classifier: RoCE packets alone, {} bytes of each",
                traffic::BYTES
            )
        })
    }
}

/// Filters of killed runs are removed from all interfaces of this network namespace.
fn cleanup() -> anyhow::Result<ExitCode> {
    let cleaned = roce_probe::cleanup().context("nothing is cleaned up")?;
    let text = if cleaned.interfaces.is_empty() {
        "nothing was left behind\n".to_owned()
    } else {
        format!("filters removed from {}\n", clean(&cleaned.interfaces.join(", ")))
    };
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// Takes filters off for a run that ends at once.
pub(crate) fn take_off(interfaces: &[String]) {
    for interface in interfaces {
        if let Err(error) = roce_probe::remove_filters(interface) {
            messages::warn(interface, &format!("filters are left behind: {error}"));
        }
    }
}

/// The switch that requests a run's end: `stop` follows, once everything of the host was taken.
pub(crate) fn end_switch(_: &Stop) -> Stop {
    Stop::default()
}

/// The open probes of a run.
pub(crate) struct Host {
    events: Events,
    taps: Vec<Tap>,
}

impl Host {
    /// Opens the requested parts, and reports what they will not see. Counters are read in every run.
    ///
    /// # Errors
    /// Rights are missing, or the kernel does not take the programs; an interface is none that a classifier can watch.
    pub(crate) fn open(
        arguments: &HostArguments,
        interfaces: &[String],
        buffer: u32,
        name: Option<&str>,
        gpus: Option<GpuStream>,
    ) -> anyhow::Result<Self> {
        if (arguments.probe || !arguments.by_libpcap())
            && let Some(missing) = MissingCapabilities::find()?
        {
            anyhow::bail!("{missing}");
        }
        let taps = if arguments.by_libpcap() {
            Vec::new()
        } else {
            let open = |name: &String| Tap::open(name, buffer);
            interfaces.iter().map(open).collect::<Result<_, _>>()?
        };
        let events = Events::open(arguments.probe, interfaces, name, gpus)?;
        Ok(Self { events, taps })
    }

    /// Interfaces that the classifiers capture from.
    pub(crate) fn interfaces(&self) -> Vec<Interface> {
        self.taps.iter().map(|tap| tap.interface.clone()).collect()
    }

    /// System calls that are still needed when everything is open, beside the common ones.
    pub(crate) fn calls(&self) -> Needs {
        Needs {
            maps: self.events.has_probe() || !self.taps.is_empty(),
            netlink: !self.filtered().is_empty(),
            ..Needs::default()
        }
    }

    /// Capabilities that are still needed when everything is open.
    pub(crate) fn capabilities(&self) -> CapabilitySet {
        if self.filtered().is_empty() {
            CapabilitySet::empty()
        } else {
            CapabilitySet::NET_ADMIN
        }
    }

    /// Interfaces with filters, which do not go with the process.
    pub(crate) fn filtered(&self) -> Vec<String> {
        let taps = self.taps.iter().filter(|tap| tap.has_filters());
        taps.filter_map(|tap| tap.interface.name.clone()).collect()
    }

    /// Starts the threads. After the `end` was requested, they drain the host's reports and stop the
    /// devices by `stop`.
    ///
    /// # Errors
    /// The system gives no thread.
    pub(crate) fn start(
        self,
        outlets: Vec<Outlet>,
        notes: Notes,
        every: Duration,
        end: &Stop,
        stop: &Stop,
    ) -> anyhow::Result<Threads> {
        let mut threads = Vec::new();
        let (end, stop) = (end.clone(), stop.clone());
        for (tap, outlet) in self.taps.into_iter().zip(outlets) {
            let stop = stop.clone();
            threads.push(thread("classifier", move || tap.read(outlet, &stop))?);
        }
        let events = self.events;
        threads.push(thread("host", move || events.read(&notes, every, &end, &stop))?);
        Ok(Threads(threads))
    }
}

fn thread(name: &str, run: impl FnOnce() + Send + 'static) -> anyhow::Result<JoinHandle<()>> {
    let builder = std::thread::Builder::new().name(name.to_owned());
    builder
        .spawn(run)
        .with_context(|| format!("no thread for the {name}"))
}

/// The threads of a run's probes.
pub(crate) struct Threads(Vec<JoinHandle<()>>);

impl Threads {
    /// Waits until they have ended and taken everything off.
    pub(crate) fn end(self) {
        for thread in self.0 {
            // A thread that panicked has reported it.
            let _ = thread.join();
        }
    }
}
