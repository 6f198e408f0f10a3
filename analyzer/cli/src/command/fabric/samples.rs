//! `fabric samples`: switches and hypervisors of an inventory, read for ever, for `live --inventory`.
//!
//! A live run parses packets from anybody, so it may neither start programs nor open sockets. It starts this process before it gives that
//! up. Each reading becomes lines on standard output: rows of the table `samples`, neighbours by LLDP, and a warning for a target that
//! fails. This process ends when the live run's end of its standard input is closed.

use std::collections::BTreeSet;
use std::io::{self, Read as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;
use roce_model::text::escape_json;
use roce_model::{Columns as _, Counter, SampleColumns, SampleSeries, SystemStart};
use roce_pipeline::time_of_day;
use roce_remote::DeviceReader;
use roce_report::json::sample_lines;
use roce_switches::device::{Neighbor, Reading};
use roce_switches::inventory::Inventory;
use rustix::process::{Signal, kill_current_process_group};
use rustix::thread::CapabilitySet;
use serde_json::json;

use super::print::print;
use crate::command::confinement::Confinement;
use crate::options::fabric;
use crate::sandbox::{self, Outputs};

/// Shortest time between two readings of a target.
const MIN_INTERVAL: Duration = Duration::from_secs(1);
/// Neighbours of one target that are printed; more are left out.
const MAX_NEIGHBORS: usize = 4_096;

/// Print samples of switches and hypervisors as JSON lines, for a live run
#[derive(Args, Debug)]
pub(super) struct SamplesArguments {
    /// The inventory of switches and hypervisors
    #[arg(long, value_name = "FILE")]
    inventory: PathBuf,

    /// User as whom a process that root started reads
    #[arg(long, value_name = "NAME", conflicts_with = "no_sandbox")]
    user: Option<String>,

    /// Keep the user
    #[arg(long)]
    no_sandbox: bool,
}

/// A switch or a hypervisor, and the time between two readings of it.
pub(crate) type Target = (DeviceReader, Duration);

/// The switches and hypervisors of an inventory.
///
/// # Errors
/// The password or the certificate of one of them cannot be read.
pub(crate) fn targets(inventory: &Inventory) -> anyhow::Result<Vec<Target>> {
    let ssh = Arc::new(inventory.ssh.clone());
    let mut targets = Vec::new();
    for switch in &inventory.switches {
        let reader = DeviceReader::switch(switch, &ssh);
        let reader = reader.with_context(|| format!("switch '{}'", switch.name))?;
        targets.push((reader, switch.every.max(MIN_INTERVAL)));
    }
    for hypervisor in &inventory.hypervisors {
        let reader = DeviceReader::hypervisor(hypervisor, &ssh);
        let reader = reader.with_context(|| format!("hypervisor '{}'", hypervisor.name))?;
        targets.push((reader, hypervisor.every.max(MIN_INTERVAL)));
    }
    Ok(targets)
}

/// Reads until the live run has gone.
pub(super) fn samples(arguments: &SamplesArguments) -> anyhow::Result<ExitCode> {
    let confinement = Confinement::begin(arguments.user.as_deref(), arguments.no_sandbox)?;
    // Passwords may be the caller's alone.
    let targets = targets(&fabric::read(&arguments.inventory)?)?;
    // Only who may change its user and groups can give them up.
    sandbox::raise()?;
    if arguments.no_sandbox {
        sandbox::give_up(None, CapabilitySet::empty())?;
    } else {
        let outputs = Outputs {
            dir: None,
            file: None,
            rotates: false,
        };
        confinement.give_up(&outputs, CapabilitySet::empty())?;
    }
    let mut threads = Vec::new();
    for (reader, every) in targets {
        let thread = std::thread::Builder::new().name(reader.node().to_owned());
        threads.push(thread.spawn(move || read_on(reader, every))?);
    }
    let mut rest = [0; 64];
    while io::stdin().read(&mut rest).is_ok_and(|count| count > 0) {}
    // Programs that are asking a device end, too: this process leads a group of its own.
    if rustix::process::getpgrp() == rustix::process::getpid() {
        let _ = kill_current_process_group(Signal::TERM);
    }
    // Threads that wait for a device are not waited for.
    std::process::exit(0);
}

/// Reads a switch or hypervisor for ever, in a thread of its own: a slow one holds up no other.
fn read_on(mut reader: DeviceReader, every: Duration) {
    let mut lines = Lines::default();
    loop {
        let begun = Instant::now();
        let text = lines.of(&reader.read(time_of_day));
        if print(&text).is_err() {
            return;
        }
        std::thread::sleep(every.saturating_sub(begun.elapsed()));
    }
}

/// Lines about one target.
#[derive(Default)]
struct Lines {
    series: SampleSeries,
    neighbors: BTreeSet<Neighbor>,
    has_warned: bool,
}

impl Lines {
    /// The lines of a reading: its samples, neighbours that are new, and the first failure.
    fn of(&mut self, reading: &Reading) -> String {
        let mut rows = SampleColumns::default();
        let start = SystemStart::from_samples(&reading.samples);
        self.series.started(&reading.node, start);
        for sample in &reading.samples {
            rows.push(&self.series.row(sample, None));
        }
        let mut text = sample_lines(&rows);
        let mut line = |value: serde_json::Value| {
            text.push_str(&value.to_string());
            text.push('\n');
        };
        for neighbor in &reading.neighbors {
            if self.neighbors.len() < MAX_NEIGHBORS && self.neighbors.insert(neighbor.clone()) {
                line(json!({"neighbor": {
                    "of": &*reading.node,
                    "interface": neighbor.interface,
                    "node": neighbor.node,
                    "port": neighbor.port,
                }}));
            }
        }
        let is_up = |counter| reading.of(counter).any(|sample| sample.value > 0.0);
        let is_up = is_up(Counter::SwitchUp) || is_up(Counter::HypervisorUp);
        if !is_up && !self.has_warned {
            self.has_warned = true;
            let why = reading.problems.first().map(|problem| problem.text.as_str());
            line(json!({"warning": {
                "of": &*reading.node,
                "text": why.unwrap_or("it has no values"),
            }}));
        }
        escape_json(&text).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use roce_model::{SampleSource, Time};
    use roce_switches::device::Reason;
    use serde_json::Value;

    fn parsed(text: &str) -> Vec<Value> {
        let lines = text.lines();
        lines.map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn neighbours_and_failures_are_said_once() {
        let mut lines = Lines::default();
        let mut reading = Reading::new(SampleSource::Switch, "leaf1", Time(5));
        reading.push(Counter::SwitchUp, "", 1.0);
        reading
            .push(Counter::SwitchPfcReceivedFrames, "Ethernet0", 7.0)
            .details = vec!["port".into()];
        reading.neighbors.push(Neighbor {
            interface: "Ethernet0".into(),
            node: "h1".into(),
            port: "ens1".into(),
        });
        let first = parsed(&lines.of(&reading));
        assert_eq!(first.len(), 3);
        assert_eq!(
            (&first[1]["object"], &first[1]["value"]),
            (&"Ethernet0".into(), &7.0.into())
        );
        assert_eq!(first[2]["neighbor"]["port"], "ens1");
        // Two seconds later 4 more: 11 - 7.
        reading.time = Time(2_000_000_005);
        for sample in &mut reading.samples {
            sample.time = reading.time;
        }
        reading.samples[1].value = 11.0;
        let second = parsed(&lines.of(&reading));
        assert_eq!(second.len(), 2);
        assert_eq!(
            (&second[1]["change"], &second[1]["interval_ns"]),
            (&4.0.into(), &2_000_000_000_u64.into())
        );
        let mut down = Reading::new(SampleSource::Switch, "leaf1", Time(9));
        down.push(Counter::SwitchUp, "", 0.0);
        down.problem(Reason::Unreachable, "show version", "no route");
        assert_eq!(parsed(&lines.of(&down))[1]["warning"]["text"], "no route");
        assert_eq!(parsed(&lines.of(&down)).len(), 1);
    }
}
