//! `doctor`: checks of this host's RDMA setup, of recorded hosts, or of hosts over ssh.

pub(super) mod archive;
mod examined;
mod json;
mod programs;
mod ssh;
mod text;

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use clap::Args;
use roce_files::FilePlace;
use roce_hosts::doctor::{self, Host, Judgement, Plan};
use roce_hosts::pasted_host;
use roce_model::Span;
use roce_probe::{SnapshotOptions, add_second_reading, recorded_snapshot, running_snapshot};
use roce_remote::Machine;
use roce_switches::inventory::{Cluster, Inventory};

use crate::command::invocation::{Invocation, Rights, RunCommand};
use crate::command::pasted::described;
use crate::options::duration::parse_duration;
use crate::options::fabric;
use crate::options::fail_on::FailOn;
use crate::options::format::{Format, text_or_json};
use crate::options::nearest::nearest;
use crate::output::messages;
use crate::sandbox;

use examined::ExaminedHost;

/// The longest text that is looked at, where a recorded host was expected.
const MAX_PASTED_BYTES: u64 = 1 << 20;
/// The longest log of NCCL that is read.
const MAX_LOG_BYTES: u64 = 64 << 20;

const AFTER_HELP: &str = "\
Examples:
  roce-analyze doctor
      what is wrong here, and how it was seen
  roce-analyze doctor --duration 10s --fail-on warning
      counters that move count as well; for scripts
  roce-analyze doctor --only pfc,qos --fix-commands
      the commands that would mend it; none is run
  roce-analyze doctor --host gpu1,gpu2
      hosts over ssh, and compared with each other; without names all of fabric.toml
  roce-analyze doctor --record host.tar.zst
      everything that is read, for a bug report

Exit codes: 0 done, 1 a check that --fail-on names, 2 an error, or a host that could not be read.";

/// Check this host's RDMA setup: devices, links, addresses, MTU, PFC, ECN, limits, PCIe, GPUs
///
/// Reads settings and says which of them cost throughput or break RDMA, each with the value and where it was read. What cannot be read
/// is unknown, never ok. Adapters are compared with each other. Nothing is changed; no rights are needed, and root sees more.
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Doctor {
    /// Check a recorded host: a folder, such a folder as an archive (tar), the file of --record, or a text with outputs of tools, whose content says what they are (docs/host.md);
    /// given several times, the hosts are compared
    #[arg(long, value_name = "DIR|FILE", conflicts_with_all = ["host", "pid", "interface", "record"])]
    read: Vec<PathBuf>,

    /// Check other hosts over ssh, where roce-analyze is installed: these, separated by commas, or all of the inventory
    ///
    /// They are compared with each other: addresses that are used twice, rails, MTUs, kernels, firmware, PFC.
    #[arg(long, value_name = "NAME", num_args = 0.., value_delimiter = ',', conflicts_with_all = ["pid", "interface", "record"])]
    host: Option<Vec<String>>,

    /// More hosts of --host.
    #[arg(value_name = "NAME", hide = true, requires = "host")]
    names: Vec<String>,

    /// The inventory that says how the hosts of --host are reached
    /// [default: fabric.toml in the current folder, else in ~/.config/roce-analyze]
    #[arg(long, value_name = "FILE", requires = "host")]
    inventory: Option<PathBuf>,

    /// Run only these groups or checks, separated by commas; `explain checks` lists them
    #[arg(long, value_name = "GROUP", value_delimiter = ',', value_parser = parse_group)]
    only: Vec<String>,

    /// Exit with 1 if a check ends with this severity or worse (info, warning, critical), or if one of these checks warns
    #[arg(long, value_name = "SEVERITY|CHECK", value_parser = FailOn::parse_checks)]
    fail_on: Option<FailOn>,

    /// Watch counters for this time: errors of links, CNPs
    #[arg(short, long, value_name = "TIME", value_parser = parse_duration)]
    duration: Option<Span>,

    /// Process whose limits and environment are checked, such as one rank of a job
    #[arg(long, value_name = "PID")]
    pid: Option<u32>,

    /// Another network interface to read; those of RDMA devices are always read
    #[arg(short, long, value_name = "NAME")]
    interface: Vec<String>,

    /// The lossless priority [default: that of the inventory of --host, else 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..8))]
    priority: Option<u8>,

    /// DSCP of RoCE data [default: that of the inventory of --host, else 26]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..64))]
    dscp: Option<u8>,

    /// DSCP of CNPs [default: that of the inventory of --host, else 48]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..64))]
    cnp_dscp: Option<u8>,

    /// Length of the longest cable in metres, for the size of buffers
    #[arg(long, value_name = "METRES", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    cable: Option<u32>,

    /// Send large packets (ping) to this address, to check the path's MTU
    #[arg(long, value_name = "ADDRESS")]
    peer: Vec<std::net::IpAddr>,

    /// The oldest firmware of a board: MT_0000000224=22.39
    #[arg(long, value_name = "BOARD=VERSION", value_parser = parse_firmware)]
    expect_firmware: Vec<(String, String)>,

    /// NCCL's log (NCCL_DEBUG=INFO), to see which network it took
    #[arg(long, value_name = "FILE")]
    nccl_log: Option<PathBuf>,

    /// Print commands that would fix the failed checks; none is run
    #[arg(long)]
    fix_commands: bool,

    /// Write everything that is read to FILE (.tar.zst; - is standard output), for --read elsewhere
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,

    /// Replace an existing FILE of --record
    #[arg(long, requires = "record")]
    overwrite: bool,

    /// Show all checks, also those that are ok or do not apply
    #[arg(long)]
    all: bool,

    /// Format of standard output
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = text_or_json())]
    format: Format,
}

/// A group or the name of a check.
fn parse_group(text: &str) -> Result<String, String> {
    let groups = doctor::groups();
    named(text, &groups).map_err(|(name, hint)| {
        let groups = groups.join(", ");
        format!("there is no group or check '{name}'{hint}; the groups are {groups}")
    })
}

/// One of these names, or that of a check; else the name, and a hint at the nearest known one.
fn named<'a>(text: &'a str, names: &[&str]) -> Result<String, (&'a str, String)> {
    let name = text.trim();
    let known = || {
        names
            .iter()
            .copied()
            .chain(doctor::checks().map(|check| check.id))
    };
    if known().any(|known| known == name) {
        return Ok(name.to_owned());
    }
    let hint = nearest(name, known()).map(|name| format!("; hint: did you mean '{name}'?"));
    Err((name, hint.unwrap_or_default()))
}

fn parse_firmware(text: &str) -> Result<(String, String), String> {
    let (board, version) = text.split_once('=').ok_or("BOARD=VERSION is expected")?;
    let is_version = version.split('.').all(|part| part.parse::<u32>().is_ok());
    if board.is_empty() || !is_version {
        return Err("a version has numbers and dots: 22.39.1002".to_owned());
    }
    Ok((board.to_owned(), version.to_owned()))
}

impl RunCommand for Doctor {
    fn rights(&self) -> Rights {
        if self.read.is_empty() {
            Rights::User
        } else {
            Rights::Files
        }
    }

    fn run(&self, _: &Invocation) -> anyhow::Result<ExitCode> {
        doctor(self)
    }
}

/// Checks hosts, and shows the outcomes.
fn doctor(arguments: &Doctor) -> anyhow::Result<ExitCode> {
    if let Some(path) = &arguments.record {
        return record(arguments, path);
    }
    // Other runs are about one host alone: no inventory changes them.
    let inventory = match &arguments.host {
        None => Inventory::default(),
        Some(_) => fabric::found(arguments.inventory.as_deref())?.unwrap_or_default(),
    };
    let plan = plan(arguments, &inventory.cluster)?;
    let read = hosts(arguments, &inventory)?;
    let shown = ShownOutcomes {
        only: &arguments.only,
        fail_on: arguments.fail_on.as_ref(),
        fix_commands: arguments.fix_commands,
        all: arguments.all,
        format: arguments.format,
    };
    judged(read, &plan, &shown)
}

/// Outcomes that are shown, and those that fail the run.
struct ShownOutcomes<'a> {
    only: &'a [String],
    fail_on: Option<&'a FailOn>,
    fix_commands: bool,
    all: bool,
    format: Format,
}

/// Judges hosts, and shows the outcomes; false: one of several could not be read.
fn judged(
    (mut hosts, mut all_read): (Vec<Host>, bool),
    plan: &Plan,
    shown: &ShownOutcomes<'_>,
) -> anyhow::Result<ExitCode> {
    distinguish(&mut hosts);
    let fleet = doctor::judge_fleet(&hosts, plan, shown.only);
    let examined: Vec<ExaminedHost> = hosts
        .into_iter()
        .map(|host| ExaminedHost {
            judgements: without_fleet(doctor::judge(&host, plan, shown.only)),
            recommended: doctor::recommended(&host),
            host,
        })
        .collect();
    for examined in &examined {
        if examined.host.left_out() > 0 {
            all_read = false;
            messages::warn(
                &examined.host.name,
                &format!(
                    "left out beyond the limits of a recording: {}",
                    roce_spelling::plural(examined.host.left_out() as u64, "file", "files")
                ),
            );
        }
    }
    if shown.fix_commands {
        text::fix_commands(&examined, &fleet)?;
    } else {
        match shown.format {
            Format::Text => text::print(&examined, &fleet, shown.all)?,
            _ => json::print(&examined, &fleet)?,
        }
    }
    let failed = failed(&examined, &fleet, shown.fail_on);
    if !failed.is_empty() {
        messages::failed("--fail-on", &failed.join(", "));
    }
    Ok(if !all_read {
        ExitCode::from(2)
    } else if failed.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(1)
    })
}

/// Gives hosts that have one name a number: outcomes over all hosts name them, and the same address at two of them is one twice.
fn distinguish(hosts: &mut [Host]) {
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    for host in hosts {
        let times = seen.entry(host.name.clone()).or_default();
        *times += 1;
        if *times > 1 {
            messages::warn(
                &host.name,
                "several of the hosts have this name; further ones get a number",
            );
            host.name = format!("{} ({times})", host.name);
        }
    }
}

/// Checks over several hosts have no outcome for a single one.
fn without_fleet(mut judgements: Vec<Judgement>) -> Vec<Judgement> {
    judgements.retain(|judgement| judgement.group != "fleet" && judgement.id != "mtu.peers");
    judgements
}

/// Names of checks that `--fail-on` names.
fn failed(examined: &[ExaminedHost], fleet: &[Judgement], fail_on: Option<&FailOn>) -> Vec<String> {
    let all = examined
        .iter()
        .flat_map(|examined| &examined.judgements)
        .chain(fleet);
    let fails = all.filter(|judgement| {
        let severity = judgement.outcome.status.severity();
        fail_on.is_some_and(|fail_on| fail_on.holds_check(judgement.id, severity))
    });
    let mut names: Vec<String> = fails
        .map(|judgement| format!("{} ({})", judgement.id, judgement.outcome.status.name()))
        .collect();
    names.dedup();
    names
}

/// Expectations of the checks: the options, else the cluster's settings.
fn plan(arguments: &Doctor, cluster: &Cluster) -> anyhow::Result<Plan> {
    let nccl_log = match &arguments.nccl_log {
        Some(path) => Some(roce_files::read_text(path, MAX_LOG_BYTES)?),
        None => None,
    };
    Ok(Plan {
        priority: arguments.priority.unwrap_or(cluster.priority),
        dscp: arguments.dscp.unwrap_or(cluster.dscp),
        cnp_dscp: arguments.cnp_dscp.unwrap_or(cluster.cnp_dscp),
        firmware: arguments.expect_firmware.clone(),
        cable_metres: arguments.cable,
        peers: arguments.peer.iter().map(ToString::to_string).collect(),
        nccl_log,
    })
}

/// The snapshots of all hosts; false: one of several could not be read.
fn hosts(arguments: &Doctor, inventory: &Inventory) -> anyhow::Result<(Vec<Host>, bool)> {
    if !arguments.read.is_empty() {
        let hosts: anyhow::Result<Vec<Host>> =
            arguments.read.iter().map(|root| stored(root.as_path())).collect();
        return Ok((hosts?, true));
    }
    if let Some(names) = &arguments.host {
        let names = [names.as_slice(), &arguments.names].concat();
        let machines = ssh::machines(inventory, &names)?;
        return Ok(over_ssh(&machines, arguments.duration));
    }
    Ok((vec![running(arguments)?], true))
}

/// Hosts over ssh; false: one could not be read.
fn over_ssh(machines: &[Machine], duration: Option<Span>) -> (Vec<Host>, bool) {
    let seconds = duration.map(|duration| duration.0.div_ceil(1_000_000_000));
    let mut hosts = Vec::new();
    let mut all_read = true;
    for (name, read) in ssh::read_all(machines, seconds) {
        match read {
            Ok(host) => hosts.push(host),
            Err(error) => {
                all_read = false;
                messages::warn(&name, &format!("{error:#}"));
            }
        }
    }
    (hosts, all_read)
}

/// The kind of a file that begins so, in words.
fn kind_of(begin: &[u8]) -> &'static str {
    let text = || roce_files::is_text(begin).then_some("a text without outputs that are known");
    let known = roce_files::content(begin).or_else(text);
    known.unwrap_or(if begin.is_empty() {
        "an empty file"
    } else {
        "data of no kind that is known"
    })
}

/// A recorded host: a folder, an archive such as the file that `--record` wrote, or a text with outputs of tools.
pub(super) fn stored(root: &Path) -> anyhow::Result<Host> {
    if root.is_dir() {
        let is_host = ["sys", "proc", "answers"]
            .iter()
            .any(|name| root.join(name).is_dir());
        if !is_host {
            bail!(
                "{}: not a recorded host\nhint: the folder has the host's files below sys and proc, and answers",
                root.display()
            );
        }
        let name = root.file_name().unwrap_or_default().to_string_lossy();
        return recorded_snapshot(root, &name).with_context(|| root.display().to_string());
    }
    let text = roce_files::read_text(root, MAX_PASTED_BYTES).unwrap_or_default();
    let text = if text.contains('\0') { "" } else { text.as_str() };
    let stem = root.file_stem().unwrap_or_default().to_string_lossy();
    if let Some(host) = pasted_host(text, &stem) {
        return Ok(host);
    }
    let mut begin = Vec::new();
    roce_files::open_regular(root)?
        .take(roce_files::LOOKED_AT as u64)
        .read_to_end(&mut begin)
        .with_context(|| root.display().to_string())?;
    if !archive::is_kind(&begin) {
        let mut what = described(text);
        if what.is_empty() {
            what = format!(": this is {}", kind_of(&begin));
        }
        bail!(
            "{}: not a recorded host{what}\nhint: a folder with the host's files below sys and proc, the file of --record, or a text with outputs such as those of ibv_devinfo, \
             show_gids, mlnx_qos -i IF or lspci -vv",
            root.display()
        );
    }
    archive::host(root).with_context(|| root.display().to_string())
}

/// The running system. Behind it nothing is started and no socket is opened any more.
fn running(arguments: &Doctor) -> anyhow::Result<Host> {
    let options = SnapshotOptions {
        interfaces: &arguments.interface,
        process: arguments.pid,
    };
    if let Some(process) = arguments.pid
        && !Path::new(&format!("/proc/{process}")).exists()
    {
        return Err(anyhow!("there is no process {process}"));
    }
    let mut host =
        running_snapshot(&options, &roce_probe::most_speed).context("the system's files cannot be read")?;
    programs::add_answers(&mut host, &arguments.peer);
    if let Some(duration) = arguments.duration {
        std::thread::sleep(Duration::from_nanos(duration.0));
        add_second_reading(&mut host, &options).context("the system's files cannot be read")?;
    }
    sandbox::offline();
    Ok(host)
}

/// Writes a recording of this host.
fn record(arguments: &Doctor, path: &Path) -> anyhow::Result<ExitCode> {
    if path.as_os_str() == "-" {
        archive::write_stdout(&running(arguments)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    // A name that is taken is refused before the host is read.
    let place = FilePlace::named(path)?;
    place.refuse_taken(arguments.overwrite)?;
    let host = running(arguments)?;
    archive::write(&host, &place, arguments.overwrite)?;
    messages::wrote(&path.display().to_string());
    text::contents(&host, arguments.all)?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(clap::Parser)]
    struct DoctorLine {
        #[command(flatten)]
        doctor: Doctor,
    }

    #[test]
    fn options_count_before_what_holds_for_the_cluster() {
        use clap::Parser as _;
        let inventory = Inventory::parse("[cluster]\npriority = 5\ndscp = 34\ncnp_dscp = 46\n").unwrap();
        let line = DoctorLine::parse_from(["doctor", "--host", "gpu1", "--dscp", "24"]);
        let plan = plan(&line.doctor, &inventory.cluster).unwrap();
        assert_eq!((plan.priority, plan.dscp, plan.cnp_dscp), (5, 24, 46));
    }
}
