//! Files that Prometheus, Grafana, systemd and the alertmanager need beside the endpoint: printed, or written to a folder.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use roce_files::{Access, Directory, FilePlace};
use roce_metrics::{ALERTMANAGER, DASHBOARDS, EXAMPLE_TARGETS, PROVISIONING, SYSTEMD};

use crate::output::messages;

// Where a file goes. (A comment for the compiler would become the help's first line.)
#[derive(Args, Debug)]
struct To {
    /// Write to DIR instead of standard output
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
}

impl To {
    fn put(&self, name: &str, text: &str) -> anyhow::Result<()> {
        let Some(folder) = &self.output else {
            std::io::stdout().write_all(text.as_bytes())?;
            return Ok(());
        };
        let folder = Directory::named(folder, Access::Umask)?;
        let mut out = FilePlace::below(&folder, name).begin(Access::Umask)?;
        out.write_all(text.as_bytes())?;
        out.finish()?;
        Ok(())
    }

    /// Says where the files are.
    fn done(&self) -> ExitCode {
        if let Some(folder) = &self.output {
            messages::wrote(&folder.to_string_lossy());
        }
        ExitCode::SUCCESS
    }
}

/// Print rules for Prometheus: recorded series and alerts
///
/// The file roce.rules.yml for `rule_files`. Rules over metrics of switches and hypervisors give nothing until a collector exports these.
#[derive(Args, Debug)]
pub(super) struct Rules {
    #[command(flatten)]
    to: To,
}

/// Print rules that give the metric names of older exporters
///
/// The file roce-compat.rules.yml for `rule_files`: dashboards of rdma_, esxi_ and nexus_ metrics go on with those of this program.
#[derive(Args, Debug)]
pub(super) struct Compat {
    #[command(flatten)]
    to: To,
}

/// Print a configuration of Prometheus that scrapes hosts
#[derive(Args, Debug)]
pub(super) struct ScrapeConfig {
    /// Host and port of an endpoint (can be repeated)
    #[arg(long, value_name = "HOST:PORT", default_values = EXAMPLE_TARGETS)]
    target: Vec<String>,

    /// Name of the cluster, a label of all its metrics
    #[arg(long, value_name = "NAME", default_value = "rdma")]
    cluster: String,

    #[command(flatten)]
    to: To,
}

/// Print a unit for systemd that runs `metrics serve` without any rights
#[derive(Args, Debug)]
pub(super) struct Systemd {
    #[command(flatten)]
    to: To,
}

/// Print an example for Prometheus' alertmanager
#[derive(Args, Debug)]
pub(super) struct Alertmanager {
    #[command(flatten)]
    to: To,
}

/// Print a dashboard for Grafana, or write all of them
#[derive(Args, Debug)]
pub(super) struct Dashboards {
    /// The dashboard: cluster, host, switch, chain or capacity
    #[arg(required_unless_present = "output", conflicts_with = "output")]
    name: Option<String>,

    #[command(flatten)]
    to: To,
}

pub(super) fn rules(arguments: &Rules) -> anyhow::Result<ExitCode> {
    arguments.to.put("roce.rules.yml", &roce_metrics::rules())?;
    Ok(arguments.to.done())
}

pub(super) fn compat(arguments: &Compat) -> anyhow::Result<ExitCode> {
    arguments
        .to
        .put("roce-compat.rules.yml", &roce_metrics::compatible())?;
    Ok(arguments.to.done())
}

pub(super) fn scrape_config(arguments: &ScrapeConfig) -> anyhow::Result<ExitCode> {
    let text = roce_metrics::scrape_config(&arguments.target, &arguments.cluster);
    arguments.to.put("prometheus.yml", &text)?;
    Ok(arguments.to.done())
}

pub(super) fn systemd(arguments: &Systemd) -> anyhow::Result<ExitCode> {
    // Without a package the program is where administrators put theirs.
    let unit = SYSTEMD.replace("/usr/bin/", "/usr/local/bin/");
    arguments.to.put("roce-analyze-metrics.service", &unit)?;
    Ok(arguments.to.done())
}

pub(super) fn alertmanager(arguments: &Alertmanager) -> anyhow::Result<ExitCode> {
    arguments.to.put("alertmanager.yml", ALERTMANAGER)?;
    Ok(arguments.to.done())
}

pub(super) fn dashboards(arguments: &Dashboards) -> anyhow::Result<ExitCode> {
    let Some(name) = &arguments.name else {
        for dashboard in DASHBOARDS {
            arguments.to.put(&dashboard.file(), &dashboard.json())?;
        }
        arguments.to.put("provisioning.yml", PROVISIONING)?;
        return Ok(arguments.to.done());
    };
    let Some(dashboard) = DASHBOARDS.iter().find(|dashboard| dashboard.name == name) else {
        let names: Vec<&str> = DASHBOARDS.iter().map(|dashboard| dashboard.name).collect();
        bail!("{name}: no dashboard\nhint: {}", names.join(", "));
    };
    arguments.to.put(&dashboard.file(), &dashboard.json())?;
    Ok(arguments.to.done())
}
