//! Files that Prometheus, Grafana, systemd and the alertmanager need beside the endpoint: printed, or written to a folder.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::bail;
use clap::{Args, ValueEnum};
use roce_files::{Access, Directory, FilePlace};
use roce_metrics::{ALERTMANAGER, DASHBOARDS, DeviceJob, EXAMPLE_TARGETS, PROVISIONING, SYSTEMD};
use roce_switches::inventory::Inventory;

use crate::options::fabric;

use crate::output::messages;

/// Kinds of files.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Kind {
    /// Rules for Prometheus: recorded series and alerts
    Rules,
    /// Dashboards for Grafana; --dashboard chooses one
    Dashboards,
    /// A configuration of Prometheus that scrapes hosts
    ScrapeConfig,
    /// An example for Prometheus' alertmanager
    Alertmanager,
    /// A unit for systemd that runs `metrics serve` without any rights
    Systemd,
    /// Rules that give the metric names of older exporters
    Compat,
}

/// Print files for Prometheus, Grafana, its alertmanager and systemd, or write them to a folder
///
/// Rules over metrics of switches and hypervisors need `metrics serve --inventory` on one host. With `compat` dashboards of rdma_, esxi_ and
/// nexus_ metrics go on with the metrics of this program.
#[derive(Args, Debug)]
pub(super) struct Files {
    /// The kind of files [default: all of them, with -o]
    #[arg(value_name = "KIND", value_enum, required_unless_present = "output")]
    kind: Option<Kind>,

    /// Write to DIR instead of standard output
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,

    /// Replace existing files
    #[arg(long, requires = "output")]
    overwrite: bool,

    /// The dashboard: cluster, host, switch, chain or capacity
    #[arg(long, value_name = "NAME")]
    dashboard: Option<String>,

    /// Host and port of an endpoint that Prometheus scrapes (can be repeated)
    #[arg(long, value_name = "HOST:PORT", default_values = EXAMPLE_TARGETS)]
    target: Vec<String>,

    /// Name of the cluster, a label of all its metrics [default: that of the inventory, else rdma]
    #[arg(long, value_name = "NAME")]
    cluster: Option<String>,

    /// An inventory, for `scrape-config`: a job for its switches and one for its hypervisors, each read through the first target, which
    /// runs `metrics serve --inventory`
    #[arg(long, value_name = "FILE")]
    inventory: Option<PathBuf>,
}

/// A file: its name, and its text.
type NamedFile = (String, String);

/// Prints files, or writes them.
pub(super) fn files(arguments: &Files) -> anyhow::Result<ExitCode> {
    let kinds = match &arguments.kind {
        Some(kind) => std::slice::from_ref(kind),
        None => Kind::value_variants(),
    };
    let mut files = Vec::new();
    for kind in kinds {
        files.extend(of_kind(*kind, arguments)?);
    }
    let Some(folder) = &arguments.output else {
        for (_, text) in files {
            std::io::stdout().write_all(text.as_bytes())?;
        }
        return Ok(ExitCode::SUCCESS);
    };
    let place = Directory::named(folder, Access::Umask)?;
    for (name, _) in &files {
        FilePlace::below(&place, name).refuse_taken(arguments.overwrite)?;
    }
    for (name, text) in files {
        let mut out = FilePlace::below(&place, &name).begin(arguments.overwrite, Access::Umask)?;
        out.write_all(text.as_bytes())?;
        out.finish()?;
    }
    messages::wrote(&folder.to_string_lossy());
    Ok(ExitCode::SUCCESS)
}

/// The files of a kind.
fn of_kind(kind: Kind, arguments: &Files) -> anyhow::Result<Vec<NamedFile>> {
    let one = |name: &str, text: String| Ok(vec![(name.to_owned(), text)]);
    match kind {
        Kind::Rules => one("roce.rules.yml", roce_metrics::rules()),
        Kind::Compat => one("roce-compat.rules.yml", roce_metrics::compatible()),
        Kind::ScrapeConfig => {
            let inventory = arguments
                .inventory
                .as_ref()
                .map(|path| fabric::read(path))
                .transpose()?;
            let inventory = inventory.unwrap_or_default();
            let named = Some(inventory.cluster.name.as_str()).filter(|name| !name.is_empty());
            let cluster = arguments.cluster.as_deref().or(named).unwrap_or("rdma");
            one(
                "prometheus.yml",
                roce_metrics::scrape_config(&arguments.target, cluster, &jobs(&inventory)),
            )
        }
        // Without a package the program is where administrators put theirs.
        Kind::Systemd => one(
            "roce-analyze-metrics.service",
            SYSTEMD.replace("/usr/bin/", "/usr/local/bin/"),
        ),
        Kind::Alertmanager => one("alertmanager.yml", ALERTMANAGER.to_owned()),
        Kind::Dashboards => dashboards(arguments),
    }
}

/// Jobs for the devices of an inventory: one for each kind and interval.
fn jobs(inventory: &Inventory) -> Vec<DeviceJob> {
    let mut jobs: Vec<DeviceJob> = Vec::new();
    let switches = inventory
        .switches
        .iter()
        .map(|switch| (&switch.name, "switches", switch.kind.name(), switch.every));
    let hypervisors = inventory
        .hypervisors
        .iter()
        .map(|hypervisor| (&hypervisor.name, "hypervisors", "esxi", hypervisor.every));
    for (name, about, module, every) in switches.chain(hypervisors) {
        let seconds = every.as_secs().max(1);
        let known = jobs
            .iter_mut()
            .find(|job| job.module == module && job.seconds == seconds);
        match known {
            Some(job) => job.devices.push(name.clone()),
            None => jobs.push(DeviceJob {
                about,
                module,
                seconds,
                devices: vec![name.clone()],
            }),
        }
    }
    jobs
}

/// One dashboard, or all of them with the file that provisions them.
fn dashboards(arguments: &Files) -> anyhow::Result<Vec<NamedFile>> {
    let names: Vec<&str> = DASHBOARDS.iter().map(|dashboard| dashboard.name).collect();
    if let Some(name) = &arguments.dashboard {
        let Some(dashboard) = DASHBOARDS.iter().find(|dashboard| dashboard.name == name) else {
            bail!("{name}: no dashboard\nhint: {}", names.join(", "));
        };
        return Ok(vec![(dashboard.file(), dashboard.json())]);
    }
    if arguments.output.is_none() {
        bail!(
            "there are several dashboards\nhint: -o DIR writes all of them; --dashboard prints one of {}",
            names.join(", ")
        );
    }
    let mut files: Vec<NamedFile> = DASHBOARDS
        .iter()
        .map(|dashboard| (dashboard.file(), dashboard.json()))
        .collect();
    files.push(("provisioning.yml".to_owned(), PROVISIONING.to_owned()));
    files.push(("README.md".to_owned(), roce_metrics::dashboards_readme()));
    Ok(files)
}
