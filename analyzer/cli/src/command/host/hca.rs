//! `host hca`: the RDMA devices that a container was given, and the variables that make a job use exactly these.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::Write as _;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use roce_hosts::doctor::Host;
use roce_hosts::hca::{HcaPort, Hcas, hcas};
use roce_model::cast::float;
use roce_model::text::escape_json;
use roce_probe::{SnapshotOptions, environment_json, running_snapshot};
use roce_spelling::rate_of;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::{Value, json};

use crate::options::fail_on::{self, Term};
use crate::output::messages;
use crate::output::table::laid;

/// The longest environment that is read.
const MAX_ENVIRONMENT_BYTES: u64 = 4 << 20;
/// Version of the JSON document's form.
const SCHEMA_VERSION: u32 = 1;
const INPUT: &str = "hca";

/// Forms of the devices for programs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Print {
    /// The value of NCCL_IB_HCA: exact names and ports
    Nccl,
    /// The value of UCX_NET_DEVICES
    Ucx,
    /// Lines that a shell reads: export NAME='VALUE'
    Env,
    /// One JSON document
    Json,
}

/// Show the RDMA devices that this container was given, or start a job that uses exactly these
///
/// Reads PCIDEVICE_* variables of the SR-IOV device plugin and finds their devices in sysfs; without such variables, devices that can be
/// opened. Devices that are not active or cannot be opened are left out, and it says so.
#[derive(Args, Debug)]
pub(crate) struct Hca {
    /// Print the devices for a program
    #[arg(long, value_enum, value_name = "FORM", conflicts_with = "run")]
    print: Option<Print>,

    /// Exit with 1 for one of these, separated by commas: left-out, a device that was given and is not used; ports<N, fewer usable ports
    ///
    /// Without a usable port it is always 1.
    #[arg(long, value_name = "CONDITION", value_parser = parse_fail_on)]
    fail_on: Option<HcaFailOn>,

    /// Read the environment of this process, such as process 1 of the container
    #[arg(long, value_name = "PID", conflicts_with_all = ["read", "environ"])]
    pid: Option<u32>,

    /// Read a recorded host in place of this one: what `doctor --read` takes
    #[arg(long, value_name = "DIR|FILE")]
    read: Option<PathBuf>,

    /// Read the environment from FILE, in the form of /proc/PID/environ
    #[arg(long, value_name = "FILE")]
    environ: Option<PathBuf>,

    /// Run this command with the variables set that its environment does not have, and locked memory raised to its hard limit
    #[arg(last = true, value_name = "COMMAND")]
    run: Vec<OsString>,
}

/// Conditions that fail a run.
#[derive(Clone, Copy, Debug, Default)]
struct HcaFailOn {
    /// A device that was given is left out.
    left_out: bool,
    /// There are fewer usable ports.
    least_ports: usize,
}

fn parse_fail_on(text: &str) -> Result<HcaFailOn, String> {
    let mut fail_on = HcaFailOn::default();
    for term in fail_on::terms(text) {
        match term {
            Term::Name("left-out") => fail_on.left_out = true,
            Term::Condition {
                quantity: "ports",
                comparison: "<",
                bound,
            } => {
                fail_on.least_ports = bound
                    .parse()
                    .map_err(|_| format!("'{bound}' is no number of ports"))?;
            }
            _ => return Err("expected left-out or ports<N".to_owned()),
        }
    }
    Ok(fail_on)
}

fn snapshot(arguments: &Hca) -> anyhow::Result<Host> {
    let options = SnapshotOptions {
        interfaces: &[],
        process: arguments.pid,
    };
    let mut host = match &arguments.read {
        Some(root) => crate::command::doctor::stored(root)?,
        None => running_snapshot(&options, &|_| None).context("the system's files cannot be read")?,
    };
    if let Some(path) = &arguments.environ {
        let text = roce_files::read_text(path, MAX_ENVIRONMENT_BYTES)?;
        host.insert("answers/env.json", environment_json(text.as_bytes()).into_bytes());
    }
    if let Err(unknown) = host.json("answers/env.json") {
        bail!("the environment cannot be read: {}", unknown.why);
    }
    Ok(host)
}

/// Finds the devices, and prints them or starts the command.
pub(crate) fn hca(arguments: &Hca) -> anyhow::Result<ExitCode> {
    let host = snapshot(arguments)?;
    let found = hcas(&host);
    let fail_on = arguments.fail_on.unwrap_or_default();
    let mut is_short = found.taken().count() < fail_on.least_ports.max(1);
    for address in &found.missing {
        messages::warn(INPUT, &format!("{address} was given and is not visible here"));
        is_short |= fail_on.left_out;
    }
    for port in &found.ports {
        if let Some(problem) = &port.problem {
            messages::warn(INPUT, &format!("{} {problem}: left out", port.name()));
            is_short |= fail_on.left_out;
        }
    }
    for note in &found.notes {
        messages::note(INPUT, note);
    }
    if found.taken().next().is_none() {
        messages::error("no RDMA device of this container is active and can be opened");
    }
    if !arguments.run.is_empty() {
        if is_short {
            return Ok(ExitCode::from(1));
        }
        return run(&found, &arguments.run);
    }
    let text = match arguments.print {
        None => table(&found),
        Some(Print::Nccl) => found
            .nccl()
            .map_or_else(String::new, |value| format!("{value}\n")),
        Some(Print::Ucx) => found.ucx().map_or_else(String::new, |value| format!("{value}\n")),
        // Names are plain: letters, digits, `_`, `.` and `-`.
        Some(Print::Env) => found
            .variables()
            .iter()
            .fold(String::new(), |mut text, (name, value)| {
                let _ = writeln!(text, "export {name}='{value}'");
                text
            }),
        Some(Print::Json) => format!("{}\n", escape_json(&format!("{:#}", document(&found)))),
    };
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(if is_short {
        ExitCode::from(1)
    } else {
        ExitCode::SUCCESS
    })
}

/// Becomes the command: nothing of this program stays behind.
fn run(found: &Hcas, words: &[OsString]) -> anyhow::Result<ExitCode> {
    let Some((program, rest)) = words.split_first() else {
        return Ok(ExitCode::SUCCESS);
    };
    let mut devices: Vec<&str> = found.taken().map(|port| port.device.as_str()).collect();
    devices.dedup();
    // A line of its own, in the form that scripts look for.
    messages::plain(&format!(
        "Auto-detected allocated SR-IOV devices: {}",
        devices.join(",")
    ));
    let mut command = Command::new(program);
    command.args(rest);
    for (name, value) in found.variables() {
        if let Some(set) = std::env::var_os(name) {
            messages::note(
                INPUT,
                &format!(
                    "{name} is set to '{}' and stays; {value} was found",
                    set.display()
                ),
            );
        } else {
            command.env(name, value);
        }
    }
    let limit = getrlimit(Resource::Memlock);
    if limit.current != limit.maximum {
        let raised = Rlimit {
            current: limit.maximum,
            maximum: limit.maximum,
        };
        if let Err(error) = setrlimit(Resource::Memlock, raised) {
            messages::warn(
                INPUT,
                &format!("the limit of locked memory cannot be raised: {error}"),
            );
        }
    }
    if let Some(bytes) = limit.maximum {
        messages::note(
            INPUT,
            &format!(
                "the hard limit of locked memory is {} KiB: see explain pod.memlock",
                bytes >> 10
            ),
        );
    }
    Err(command.exec()).with_context(|| format!("{}: cannot be started", program.display()))
}

fn rate(port: &HcaPort) -> String {
    port.rate_bps
        .map_or_else(|| "-".to_owned(), |bits| rate_of(float(bits)))
}

fn or_dash(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

/// A table for people.
fn table(found: &Hcas) -> String {
    let head = [
        "given by",
        "PCI",
        "device",
        "port",
        "state",
        "link",
        "GID",
        "address",
        "NUMA",
        "GPU (nearest)",
    ];
    let mut rows: Vec<Vec<String>> = vec![head.map(str::to_owned).to_vec()];
    rows.extend(found.ports.iter().map(|port| {
        vec![
            port.given_by.clone(),
            port.address.clone(),
            port.device.clone(),
            port.port.to_string(),
            port.state.to_lowercase(),
            rate(port),
            or_dash(port.gid_index),
            or_dash(port.ip),
            or_dash(port.numa_node),
            or_dash(port.gpu.map(|(place, distance)| format!("{place} ({distance})"))),
        ]
    }));
    let mut text = laid(&rows, &(0..0));
    for (name, value) in found.variables() {
        let _ = writeln!(text, " {name:17} {value}");
    }
    // Ports of InfiniBand have no index that matters.
    if found.gid_index().is_none() && found.taken().any(|port| port.gid_index.is_some()) {
        text.push_str(
            " The devices have their addresses at different indexes: NCCL_IB_GID_INDEX is left out.\n",
        );
    }
    text
}

fn document(found: &Hcas) -> Value {
    let ports: Vec<Value> = found
        .ports
        .iter()
        .map(|port| {
            json!({
                "given_by": port.given_by,
                "pci_address": port.address,
                "device": port.device,
                "port": port.port,
                "state": port.state,
                "rate_bps": port.rate_bps,
                "gid_index": port.gid_index,
                "address": port.ip.map(|ip| ip.to_string()),
                "numa_node": port.numa_node,
                "gpu": port.gpu.map(|(place, distance)| json!({ "index": place, "distance": distance })),
                "taken": port.problem.is_none(),
                "problem": port.problem,
            })
        })
        .collect();
    let variables: serde_json::Map<String, Value> = found
        .variables()
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value.into()))
        .collect();
    json!({
        "schema_version": SCHEMA_VERSION,
        "ports": ports,
        "missing": found.missing,
        "variables": variables,
        "notes": found.notes,
    })
}
