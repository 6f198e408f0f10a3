//! Switches and hypervisors of an inventory in a live run: another process reads them (`fabric samples`), and its lines join the stream
//! as notes.
//!
//! The process is started before the run gives up its rights. Its pipe is read without waiting. What a line has is checked here, as is
//! everything from outside: the process talks to devices.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use roce_capture::live::{Notes, Stop};
use roce_model::{SampleRow, Wiring};
use roce_pipeline::{sample_row, time_of_day};
use roce_switches::device::Neighbor;
use roce_switches::inventory::Inventory;
use serde_json::{Map, Value};

use crate::command::fabric::targets;
use crate::command::lines::{LineLimits, Lines};
use crate::options::fabric;
use crate::output::messages;
use crate::own_process::own_process;

/// Name of messages about the process.
const INPUT: &str = "fabric";
/// Wait between two looks at the pipe.
const LOOK: Duration = Duration::from_millis(20);
/// Bounds of the process' lines.
const LINE_LIMITS: LineLimits = LineLimits {
    line: 16 << 10,
    look: 4 << 20,
};
/// Neighbours of all devices; more are left out.
const MAX_NEIGHBORS: usize = 1 << 16;

// The inventory of a live run. (A comment for the compiler would become the help's first line.)
#[derive(Args, Debug)]
pub(crate) struct FabricArguments {
    /// Read the switches and hypervisors of this inventory, too, each in its own interval, by another process; its cables join pauses to their causes
    #[arg(long, value_name = "FILE")]
    pub(crate) inventory: Option<PathBuf>,
}

impl FabricArguments {
    /// Starts the process that reads, if it is wanted. A run that root started gives it the same `user`.
    ///
    /// # Errors
    /// The inventory or a password cannot be read, or the process cannot be started.
    pub(crate) fn start(&self, user: Option<&str>, no_sandbox: bool) -> anyhow::Result<Option<FabricStream>> {
        let Some(path) = &self.inventory else {
            return Ok(None);
        };
        let inventory = fabric::read(path)?;
        if inventory.switches.is_empty() && inventory.hypervisors.is_empty() {
            messages::warn(
                INPUT,
                "the inventory lists no switches and no hypervisors: nothing of it is read",
            );
            return Ok(None);
        }
        // A password that cannot be read is an error now, and not a warning later.
        drop(targets(&inventory)?);
        let mut command = own_process();
        command.args(["fabric", "samples", "--inventory"]).arg(path);
        if let Some(user) = user {
            command.args(["--user", user]);
        }
        if no_sandbox {
            command.arg("--no-sandbox");
        }
        let mut child = command
            // A signal from the terminal is the run's: it ends this process behind its last reading.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("no process for switches and hypervisors")?;
        let lines = Lines::new(child.stdout.take(), LINE_LIMITS)?;
        Ok(Some(FabricStream {
            child,
            inventory,
            lines,
        }))
    }
}

/// The process, and what it has said.
#[derive(Debug)]
pub(crate) struct FabricStream {
    child: Child,
    inventory: Inventory,
    lines: Lines,
}

impl FabricStream {
    /// Starts the thread that takes the process' lines to the stream, until the `end` of the run is requested, or it stops.
    ///
    /// # Errors
    /// The system gives no thread.
    pub(crate) fn begin(self, notes: Notes, end: &Stop, stop: &Stop) -> anyhow::Result<FabricThread> {
        let found = Arc::new(Mutex::new(FoundNeighbors::default()));
        let (kept, end, stop) = (Arc::clone(&found), end.clone(), stop.clone());
        let Self {
            mut child,
            inventory,
            lines,
        } = self;
        let thread = std::thread::Builder::new()
            .name("fabric".to_owned())
            .spawn(move || {
                let has_ended = read(lines, &notes, &kept, || end.is_requested() || stop.is_requested());
                // Its standard input closes: that ends it.
                drop(child.stdin.take());
                if has_ended {
                    let _ = child.wait();
                }
            })
            .context("no thread for switches and hypervisors")?;
        Ok(FabricThread {
            thread,
            inventory,
            found,
        })
    }
}

/// The thread, and the neighbours that switches have reported.
pub(crate) struct FabricThread {
    thread: JoinHandle<()>,
    inventory: Inventory,
    found: Arc<Mutex<FoundNeighbors>>,
}

impl FabricThread {
    /// The inventory's cables, and behind them those that LLDP has found.
    pub(crate) fn wiring(&self) -> Arc<Wiring> {
        let mut wiring = self.inventory.wiring();
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        for (node, neighbors) in &found.neighbors {
            let neighbors: Vec<Neighbor> = neighbors.iter().cloned().collect();
            self.inventory.add_neighbors(&mut wiring, node, &neighbors);
        }
        Arc::new(wiring)
    }

    /// Waits until it has ended.
    pub(crate) fn end(self) {
        // A thread that panicked has reported it.
        let _ = self.thread.join();
    }
}

/// Neighbours by device.
#[derive(Default)]
struct FoundNeighbors {
    neighbors: BTreeMap<String, BTreeSet<Neighbor>>,
    count: usize,
}

/// Takes lines to the stream until `ends`, or the process has ended, which is true.
fn read(mut lines: Lines, notes: &Notes, found: &Mutex<FoundNeighbors>, ends: impl Fn() -> bool) -> bool {
    let (mut lost, mut unknown) = (0, 0_u64);
    let has_ended = loop {
        let is_last = ends();
        let mut bodies = Vec::new();
        lines.look(|line| match LineContent::parse(line) {
            Some(LineContent::Row(row)) => bodies.push(row.encode()),
            Some(LineContent::Neighbor(of, neighbor)) => {
                let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
                if found.count < MAX_NEIGHBORS && found.neighbors.entry(of).or_default().insert(neighbor) {
                    found.count += 1;
                }
            }
            Some(LineContent::Warning(of, text)) => messages::warn(&of, &text),
            None => unknown += 1,
        });
        if !bodies.is_empty() && !notes.add(time_of_day(), SampleRow::BLOCK, &bodies) {
            lost += bodies.len();
        }
        if is_last {
            break false;
        }
        if !lines.is_open() {
            messages::warn(
                INPUT,
                "the process that reads switches has ended: no more of their samples",
            );
            break true;
        }
        std::thread::sleep(LOOK);
    };
    if lost > 0 {
        messages::warn(
            INPUT,
            &format!(
                "no room in the stream for {}",
                roce_spelling::plural(lost as u64, "sample", "samples")
            ),
        );
    }
    if unknown > 0 {
        messages::warn(
            INPUT,
            &format!(
                "not understood: {}",
                roce_spelling::plural(unknown, "line", "lines")
            ),
        );
    }
    has_ended
}

/// The content of a line.
#[derive(Clone, PartialEq, Debug)]
enum LineContent {
    /// A sample.
    Row(SampleRow),
    /// A neighbour of a device.
    Neighbor(String, Neighbor),
    /// A device that cannot be read, and why.
    Warning(String, String),
}

impl LineContent {
    /// `None`: it is not understood.
    fn parse(line: &[u8]) -> Option<Self> {
        let fields: Map<String, Value> = serde_json::from_slice(line).ok()?;
        let text = |of: &Value, key: &str| Some(of.get(key)?.as_str()?.to_owned());
        if let Some(of) = fields.get("neighbor") {
            let neighbor = Neighbor {
                interface: text(of, "interface")?,
                node: text(of, "node")?,
                port: text(of, "port")?,
            };
            return Some(Self::Neighbor(text(of, "of")?, neighbor));
        }
        if let Some(of) = fields.get("warning") {
            return Some(Self::Warning(text(of, "of")?, text(of, "text")?));
        }
        sample_row(&fields).ok().map(Self::Row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROW: &str = r#"{"time":"1767225600001000000","source":"switch","node":"leaf1","object":"Ethernet0","counter":"switch_pfc_received_frames","priority":null,"queue":null,"detail":"port","kind":"cumulative","value":12.0,"change":null,"interval_ns":null,"unit":"frames","reset":false}"#;

    #[test]
    fn lines_are_rows_neighbours_and_warnings() {
        let neighbor = br#"{"neighbor":{"of":"leaf1","interface":"Ethernet0","node":"h1","port":"ens1"}}"#;
        let expected = Neighbor {
            interface: "Ethernet0".into(),
            node: "h1".into(),
            port: "ens1".into(),
        };
        assert_eq!(
            LineContent::parse(neighbor),
            Some(LineContent::Neighbor("leaf1".into(), expected))
        );
        assert_eq!(
            LineContent::parse(br#"{"warning":{"of":"leaf1","text":"no route"}}"#),
            Some(LineContent::Warning("leaf1".into(), "no route".into()))
        );
        assert!(
            matches!(LineContent::parse(ROW.as_bytes()), Some(LineContent::Row(row)) if row.value.to_string() == "12")
        );
        for other in ["", "[]", "{}", r#"{"neighbor":5}"#, r#"{"warning":{"of":1}}"#] {
            assert_eq!(LineContent::parse(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn cables_that_switches_report_are_behind_those_of_the_inventory() {
        let text = "[[host]]\nname = \"h1\"\nswitch_ports = { ens1 = \"leaf1:Ethernet0\" }\n\
[[switch]]\nname = \"leaf1\"\nkind = \"sonic\"\n[[switch]]\nname = \"spine1\"\nkind = \"sonic\"\n";
        let mut found = FoundNeighbors::default();
        for (interface, node, port) in [("Ethernet4", "spine1", "Ethernet12"), ("eth0", "printer", "1")] {
            let neighbor = Neighbor {
                interface: interface.into(),
                node: node.into(),
                port: port.into(),
            };
            found
                .neighbors
                .entry("leaf1".into())
                .or_default()
                .insert(neighbor);
        }
        let thread = FabricThread {
            thread: std::thread::spawn(|| ()),
            inventory: Inventory::parse(text).unwrap(),
            found: Arc::new(Mutex::new(found)),
        };
        let wiring = thread.wiring();
        let ends = |cable: &roce_model::Cable| (cable.a.object.clone(), cable.b.object.clone());
        let cables: Vec<_> = wiring.cables.iter().map(ends).collect();
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(
            cables,
            [pair("ens1", "Ethernet0"), pair("Ethernet4", "Ethernet12")]
        );
        thread.end();
    }
}
