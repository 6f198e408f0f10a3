//! `traffic plan`: plans are written from patterns, shown and checked. Nothing is started.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{anyhow, bail};
use clap::Args;
use roce_jobs::traffic::{
    Endpoint, Facts, Pair, Pattern, PortRange, Report, Role, Stream, StreamSize, Tool, TrafficPlan, concerns,
    loads, streams, words, written,
};
use roce_model::cast::float;
use roce_model::text::{clean, escape_json};
use roce_remote::traffic::{Preflight, Setup, machines, preflight};
use roce_spelling::rate_of;
use roce_switches::inventory::{HostTarget, Inventory, parse_time};
use serde_json::json;

use super::actions::{program, run_id};
use super::hosts::{HostArguments, read_plan, say};
use crate::options::format::{Format, text_or_json};
use crate::output::messages;
use crate::output::table::laid;

/// Version of the JSON document's form.
const SCHEMA_VERSION: u32 = 1;

const AFTER_HELP: &str = "\
Examples:
  roce-analyze traffic plan --pattern ring --device mlx5_0 > ring.toml
      over all hosts of fabric.toml
  roce-analyze traffic plan --pattern incast --host gpu1:mlx5_0,gpu2:mlx5_0
      all others to the first one
  roce-analyze traffic plan ring.toml
      commands, loads of links, and mistakes
  roce-analyze traffic plan ring.toml --preflight
      what is in its way on the hosts, too";

/// Write a plan from a pattern, or show and check one
///
/// With --pattern it prints a plan. With a file it prints what would run on each host, which links the streams share, and what is wrong:
/// too few ports, unknown hosts, links of different speeds. Nothing is started. Exit code 1: the plan cannot run as it is.
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct PlanArguments {
    /// The plan
    #[arg(value_name = "PLAN", required_unless_present = "pattern")]
    file: Option<PathBuf>,

    /// Print a plan of this pattern: pairs, ring, incast, incast=N:1, all-to-all, cross-rack
    #[arg(long, value_name = "PATTERN", conflicts_with_all = ["file", "preflight", "format"])]
    pattern: Option<Pattern>,

    #[command(flatten)]
    hosts: HostArguments,

    /// The device of hosts that are named without one
    #[arg(long, value_name = "DEVICE", requires = "pattern")]
    device: Option<String>,

    /// The tool: ib_write_bw, ib_send_bw, ib_read_bw, ib_write_lat, ib_send_lat, ib_read_lat, iperf3
    #[arg(long, value_name = "TOOL", default_value = "ib_write_bw", value_parser = parse_tool, requires = "pattern")]
    tool: Tool,

    /// How long each stream sends
    #[arg(short, long, value_name = "TIME", default_value = "60s", value_parser = parse_seconds, requires = "pattern")]
    duration: Duration,

    /// Bytes of a message, one stream for each (can be repeated)
    #[arg(long, value_name = "BYTES", default_value = "65536", requires = "pattern")]
    size: Vec<u64>,

    /// IP traffic class: DSCP in the upper six bits, such as 106 for DSCP 26 with ECN [default: DSCP of the inventory's cluster, with ECN]
    #[arg(long, value_name = "N", requires = "pattern")]
    tclass: Option<u8>,

    /// Look at the hosts: programs, devices, ports, addresses, routes
    #[arg(long)]
    preflight: bool,

    /// Allow more than an hour
    #[arg(long)]
    long: bool,

    /// Format of standard output
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = text_or_json())]
    format: Format,
}

fn parse_tool(text: &str) -> Result<Tool, String> {
    Tool::from_name(text).ok_or_else(|| {
        let names = Tool::ALL.map(Tool::name).join(", ");
        format!("'{text}' is none of {names}")
    })
}

fn parse_seconds(text: &str) -> Result<Duration, String> {
    parse_time(text)
        .filter(|time| time.subsec_nanos() == 0)
        .ok_or_else(|| format!("'{text}' is not a time of whole seconds such as 60s or 10m"))
}

/// Writes a plan, or shows one.
pub(super) fn plan(arguments: &PlanArguments) -> anyhow::Result<ExitCode> {
    let inventory = arguments.hosts.inventory()?;
    match (&arguments.pattern, &arguments.file) {
        (Some(pattern), _) => write(arguments, &inventory, *pattern),
        (None, Some(file)) => {
            let (plan, _) = read_plan(file)?;
            show(arguments, &inventory, &plan)
        }
        (None, None) => bail!("a plan or --pattern is needed"),
    }
}

/// Prints a plan of a pattern.
fn write(arguments: &PlanArguments, inventory: &Inventory, pattern: Pattern) -> anyhow::Result<ExitCode> {
    let mut ends = arguments.hosts.ends()?;
    if ends.is_empty() {
        let all = inventory.hosts.iter();
        ends = all
            .map(|host| Endpoint::parse(&host.name).map_err(|error| anyhow!(error)))
            .collect::<Result<_, _>>()?;
    }
    for end in &mut ends {
        end.device = end.device.take().or_else(|| arguments.device.clone());
        if arguments.tool.is_rdma() && end.device.is_none() {
            bail!(
                "'{end}': {} needs the RDMA device\nhint: --device mlx5_0, or --host {end}:mlx5_0",
                arguments.tool.name()
            );
        }
    }
    let racks: Vec<Option<String>> = ends
        .iter()
        .map(|end| inventory.host(&end.host).and_then(|host| host.rack.clone()))
        .collect();
    let pairs = pattern.pairs(&ends, &racks)?;
    let Some((first, second)) = ends.first().zip(ends.get(1)) else {
        bail!("a pattern needs 2 hosts");
    };
    let plan = TrafficPlan {
        name: pattern.to_string(),
        tool: arguments.tool,
        duration: arguments.duration,
        grace: Duration::from_secs(15),
        ports: PortRange::default(),
        tclass: Some(arguments.tclass.unwrap_or(inventory.cluster.dscp << 2 | 2)),
        report: Report::default(),
        options: Vec::new(),
        pairs: vec![Pair {
            from: first.clone(),
            to: second.clone(),
            both: false,
            streams: arguments
                .size
                .iter()
                .map(|size| StreamSize { size: *size, qps: 1 })
                .collect(),
        }],
    };
    let text = written(&plan, &ends, &pairs);
    // A stream that a tool cannot make is an error here, and not when the plan is run.
    TrafficPlan::parse(&text).map_err(|error| anyhow!(error.text))?;
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// Shows a plan, and what is wrong with it.
fn show(arguments: &PlanArguments, inventory: &Inventory, plan: &TrafficPlan) -> anyhow::Result<ExitCode> {
    let hosts = arguments.hosts.hosts(inventory)?;
    let found = arguments.preflight.then(|| {
        let program = program();
        let setup = Setup {
            id: &run_id(),
            plan,
            hosts: &hosts,
            ssh: &inventory.ssh,
            analyze: &program,
            is_strict: false,
            reads_counters: false,
        };
        preflight(&setup, &machines(&hosts, &inventory.ssh), false)
    });
    let unseen = Preflight::default();
    let seen = found.as_ref().unwrap_or(&unseen);
    let mut all = concerns(plan, &hosts, &seen.speeds, arguments.long);
    all.extend(seen.concerns.iter().cloned());
    let mut is_wrong = say(&all);
    for (host, reason) in &seen.failures {
        messages::error(&format!("{host}: {reason}"));
    }
    for (host, run) in seen.others() {
        messages::warn(host, &format!("the run {run} goes on there"));
    }
    is_wrong |= !seen.unable.is_empty();
    let text = match arguments.format {
        Format::Text => text(plan, &hosts, seen),
        _ => escape_json(&format!("{:#}\n", document(plan, &hosts, seen, &all))).into_owned(),
    };
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(ExitCode::from(u8::from(is_wrong)))
}

/// The command of one side, by what is known of the hosts.
fn line(plan: &TrafficPlan, hosts: &[HostTarget], seen: &Preflight, stream: &Stream, role: Role) -> String {
    let end = stream.end(role);
    let target = hosts.iter().find(|host| host.name == stream.server.host);
    let peer = seen.peers.get(&stream.number).cloned();
    let peer = peer
        .or_else(|| stream.server.address.clone())
        .or_else(|| {
            target
                .map(|host| host.address().to_owned())
                .filter(|address| address != "local")
        })
        .unwrap_or_else(|| "ADDRESS".to_owned());
    let gid = seen.facts.get(&end.host).map_or(end.gid, |facts| facts.gid(end));
    words(plan, stream, role, Facts { gid, peer: &peer }).join(" ")
}

/// Text of the programs that would run, by host, and of the links that carry the traffic.
fn text(plan: &TrafficPlan, hosts: &[HostTarget], seen: &Preflight) -> String {
    let all = streams(plan);
    let mut text = format!(
        " {}: {} streams of {} for {} s\n",
        if plan.name.is_empty() { "plan" } else { &plan.name },
        all.len(),
        plan.tool.name(),
        plan.duration.as_secs()
    );
    let mut names: Vec<&str> = all
        .iter()
        .flat_map(|stream| [stream.client.host.as_str(), stream.server.host.as_str()])
        .collect();
    names.sort_unstable();
    names.dedup();
    for name in names {
        let _ = writeln!(text, " {name}");
        for role in [Role::Server, Role::Client] {
            for stream in all.iter().filter(|stream| stream.end(role).host == name) {
                let line = line(plan, hosts, seen, stream, role);
                let _ = writeln!(text, "   {:4} {}  {}", stream.number, role.name(), clean(&line));
            }
        }
    }
    let mut rows = vec![
        ["link", "sends", "receives", "from hosts", "speed"]
            .map(str::to_owned)
            .to_vec(),
    ];
    rows.extend(loads(plan, &seen.speeds).into_iter().map(|load| {
        vec![
            load.endpoint,
            load.sends.to_string(),
            load.receives.to_string(),
            load.senders.to_string(),
            load.link_bps
                .map_or_else(|| "-".to_owned(), |bps| rate_of(float(bps))),
        ]
    }));
    text.push_str(&laid(&rows, &(1..5)));
    for (number, reason) in &seen.unable {
        let _ = writeln!(text, " ✗ stream {number} cannot run: {}", clean(reason));
    }
    text
}

fn document(
    plan: &TrafficPlan,
    hosts: &[HostTarget],
    seen: &Preflight,
    concerns: &[roce_jobs::traffic::Concern],
) -> serde_json::Value {
    let all = streams(plan);
    let streams: Vec<serde_json::Value> = all
        .iter()
        .map(|stream| {
            json!({
                "number": stream.number,
                "client": stream.client.to_string(),
                "server": stream.server.to_string(),
                "port": stream.port,
                "size_bytes": stream.size,
                "qps": stream.qps,
                "server_command": line(plan, hosts, seen, stream, Role::Server),
                "client_command": line(plan, hosts, seen, stream, Role::Client),
                "unable": seen.unable.get(&stream.number),
            })
        })
        .collect();
    let loads: Vec<serde_json::Value> = loads(plan, &seen.speeds)
        .iter()
        .map(|load| {
            json!({
                "endpoint": load.endpoint,
                "sends": load.sends,
                "receives": load.receives,
                "senders": load.senders,
                "link_bps": load.link_bps,
            })
        })
        .collect();
    json!({
        "schema_version": SCHEMA_VERSION,
        "name": plan.name,
        "tool": plan.tool.name(),
        "duration_s": plan.duration.as_secs(),
        "streams": streams,
        "loads": loads,
        "concerns": concerns.iter().map(|concern| json!({
            "severity": concern.gravity.name(),
            "text": concern.text,
        })).collect::<Vec<_>>(),
        "unreachable": seen.failures,
    })
}
