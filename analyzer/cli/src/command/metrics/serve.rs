//! `metrics serve`: the endpoint of this host's counters.
//!
//! A thread reads the host at an interval; a scrape gets the last whole reading and its age. A driver that hangs holds up neither
//! scrapes nor the end of the program.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::Args;
use roce_model::Nanos;
use rustix::thread::CapabilitySet;

use super::host::{COLLECTOR, HostArguments, HostMetrics};
use crate::command::confinement::Confinement;
use crate::command::watch::Signals;
use crate::endpoint::{Counts, DEFAULT_ADDRESS, Endpoint, EndpointArguments, Latest, parse_address};
use crate::options::duration::parse_duration;
use crate::output::messages;
use crate::sandbox::{self, Needs, Outputs};

/// Time that the start waits for the first reading.
const FIRST_READING: Duration = Duration::from_secs(2);

/// Serve the counters of this host to Prometheus
///
/// Answers /metrics in the text format of Prometheus, or in OpenMetrics if the scraper prefers it, and /-/healthy. The host is read at an
/// interval, and a scrape gets the last whole reading: it never waits for hardware. Needs no rights; started as root, it continues as
/// another user, which opens only files about devices and starts no program.
#[derive(Args, Debug)]
#[command(
    after_help = "SIGINT or SIGTERM ends it cleanly. `roce-analyze metrics systemd`, `rules` and `dashboards` print what Prometheus and Grafana need besides (docs/metrics.md)."
)]
pub(super) struct Serve {
    /// Address to listen on (can be repeated); one that other hosts reach needs --web-config
    #[arg(long, value_name = "ADDRESS", default_value = DEFAULT_ADDRESS, value_parser = parse_address)]
    listen: Vec<SocketAddr>,

    #[command(flatten)]
    endpoint: EndpointArguments,

    /// Time between two readings of the host
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = parse_interval)]
    interval: Nanos,

    #[command(flatten)]
    host: HostArguments,

    /// User that a server started by root continues as: a name or number [default: the caller of sudo, else nobody]
    #[arg(long, value_name = "NAME", conflicts_with = "no_sandbox")]
    user: Option<String>,

    /// Keep the user and the right to open every file, and do not limit system calls
    #[arg(long)]
    no_sandbox: bool,
}

fn parse_interval(text: &str) -> Result<Nanos, String> {
    let time = parse_duration(text)?;
    if (100_000_000..=3600 * Nanos::SECOND).contains(&time.0) {
        Ok(time)
    } else {
        Err("100ms to 1h".to_owned())
    }
}

/// Serves until a signal comes.
pub(super) fn serve(arguments: &Serve) -> anyhow::Result<ExitCode> {
    let confinement = Confinement::begin(arguments.user.as_deref(), arguments.no_sandbox)?;
    sandbox::raise()?;
    // Keys may be root's alone, and a port may be a low one.
    let endpoint = Endpoint::open(&arguments.listen, &arguments.endpoint)?;
    let host = HostMetrics::open(&arguments.host)?;
    let outputs = Outputs {
        dir: None,
        file: None,
        rotates: false,
    };
    let read = arguments.host.read.as_deref();
    let read = read.map(std::path::absolute).transpose()?;
    confinement.give_up(&outputs, CapabilitySet::empty())?;
    if let Some(folder) = &read
        && let Err(error) = std::fs::read_dir(folder.join("sys"))
    {
        bail!(
            "{}: {error}\nhint: as which user it is read: --user NAME",
            folder.display()
        );
    }
    let needs = Needs {
        accept: true,
        ..Needs::default()
    };
    let mut folders = endpoint.folders();
    folders.extend(read);
    confinement.confine(&outputs, &folders, needs)?;
    let (runtime, mut signals) = Signals::take(false)?;
    let interval = Duration::from_nanos(arguments.interval.0);
    let latest = Arc::new(Latest::new(COLLECTOR, interval));
    let reading = Arc::clone(&latest);
    let (first, has_read) = std::sync::mpsc::channel();
    std::thread::Builder::new()
        .name("reader".to_owned())
        .spawn(move || {
            read_on(host, &reading, interval, || {
                // Nobody waits for later ones.
                let _ = first.send(());
            });
        })
        .context("no thread for readings")?;
    let _ = has_read.recv_timeout(FIRST_READING);
    for url in endpoint.urls() {
        messages::note("metrics", &format!("serving {url}"));
    }
    runtime.block_on(async {
        let stop = async {
            signals.next().await;
        };
        endpoint.serve(latest, Arc::new(Counts::default()), stop).await
    })?;
    // A password that is being compared, or a driver that hangs, does not hold up the end.
    runtime.shutdown_background();
    Ok(ExitCode::SUCCESS)
}

/// Reads for ever. `done` is called behind each reading.
fn read_on(mut host: HostMetrics, latest: &Latest, interval: Duration, done: impl Fn()) {
    loop {
        let begun = Instant::now();
        latest.take(&host.read());
        done();
        std::thread::sleep(interval.saturating_sub(begun.elapsed()));
    }
}
