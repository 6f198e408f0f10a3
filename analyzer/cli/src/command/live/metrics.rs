//! `live --metrics`: the endpoint of a live run's own metrics. The sink (`metrics/sink.rs`) publishes them; a thread of its own answers.

mod hosts;
mod otlp;
mod pairs;
mod sink;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use roce_capture::Interface;
use roce_capture::live::{Counters, Notes};
#[cfg(feature = "nxapi")]
use roce_endpoint::EndpointSource;
use roce_endpoint::{Counts, Endpoint, Latest, Tokens, parse_address};
use roce_metrics::Label;
use roce_model::{Sink, Span};
use tokio::runtime::Builder;
use tokio::sync::oneshot;

use super::parts::PartPublisher;
use crate::command::endpoint::EndpointArguments;
#[cfg(feature = "nxapi")]
use crate::command::pushed::{PushArguments, PushProcess};
use crate::output::messages;
use otlp::StreamedSamples;
use sink::LiveMetrics;

/// Pairs of hosts that can have series of their own.
const MAX_PAIRS: u64 = 1000;
/// Longest time between two publications while the analysis keeps up: that between two snapshots.
const INTERVAL: Duration = Duration::from_secs(5);

// Options of metrics. (A comment for the compiler would become the help's first line.)
#[derive(Args, Debug)]
pub(super) struct MetricsArguments {
    /// Serve metrics of the analysis to Prometheus at ADDRESS, such as 127.0.0.1:9903; one that other hosts reach needs --web-config
    #[arg(long, value_name = "ADDRESS", value_parser = parse_address)]
    metrics: Option<SocketAddr>,

    /// Give the N busiest pairs of hosts metrics of their own; the others are one sum
    #[arg(long, value_name = "N", default_value_t = 50, requires = "metrics", value_parser = clap::value_parser!(u64).range(0..=MAX_PAIRS))]
    metrics_flows: u64,

    #[command(flatten)]
    endpoint: EndpointArguments,

    #[cfg(feature = "nxapi")]
    #[command(flatten)]
    pushed: PushArguments,
}

/// The thread that answers, and the sink whose numbers it shows.
pub(super) type ServedMetrics = (MetricsThread, Box<dyn Sink + Send>);

/// Metrics that are to be served.
pub(super) struct Metrics {
    endpoint: Endpoint,
    pairs: usize,
    /// The tokens of who may send samples, if they are taken.
    otlp: Option<Tokens>,
    #[cfg(feature = "nxapi")]
    pushed: Option<PushProcess>,
}

impl Metrics {
    /// Opens the address, where one was named, with the rights that there are now.
    ///
    /// # Errors
    /// It cannot be opened.
    pub(super) fn open(
        arguments: &MetricsArguments,
        user: Option<&str>,
        no_sandbox: bool,
    ) -> anyhow::Result<Option<Self>> {
        #[cfg(not(feature = "nxapi"))]
        let _ = (user, no_sandbox);
        let otlp = arguments.endpoint.otlp()?;
        let Some(address) = arguments.metrics else {
            if otlp.is_some() {
                bail!("--otlp needs the address of --metrics ADDRESS");
            }
            #[cfg(feature = "nxapi")]
            if arguments.pushed.is_wanted() {
                bail!("--push needs the metrics of --metrics ADDRESS");
            }
            return Ok(None);
        };
        Ok(Some(Self {
            endpoint: arguments.endpoint.open(&[address])?,
            pairs: usize::try_from(arguments.metrics_flows).unwrap_or(usize::MAX),
            otlp,
            #[cfg(feature = "nxapi")]
            pushed: arguments.pushed.start(user, no_sandbox)?,
        }))
    }

    /// Folders whose files are read again while it answers.
    pub(super) fn folders(&self) -> Vec<PathBuf> {
        self.endpoint.folders()
    }

    /// Begins to answer; returns what ends it when it is dropped, and the sink of the run's results.
    ///
    /// # Errors
    /// There is no thread for it.
    pub(super) fn serve(
        self,
        bin: Span,
        input: &str,
        interfaces: &[Interface],
        counters: Arc<Counters>,
        parts: Option<PartPublisher>,
        notes: Notes,
    ) -> anyhow::Result<ServedMetrics> {
        let latest = Arc::new(Latest::new(("collector", "live".into()), INTERVAL));
        let about: [Label<'_>; 3] = [
            ("version", env!("CARGO_PKG_VERSION").into()),
            ("bin", format!("{}ns", bin.0).into()),
            ("interfaces", input.into()),
        ];
        let sink = LiveMetrics::new(
            &about,
            interfaces,
            counters,
            parts,
            self.pairs,
            Arc::clone(&latest),
        );
        for url in self.endpoint.urls() {
            messages::note("metrics", &format!("serving {url}"));
        }
        #[cfg(feature = "nxapi")]
        if let Some(pushed) = self.pushed {
            pushed.begin(Arc::clone(&latest) as Arc<dyn EndpointSource>)?;
        }
        let (stop, stopped) = oneshot::channel::<()>();
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .context("connections cannot be waited for")?;
        let mut endpoint = self.endpoint;
        if let Some(tokens) = self.otlp {
            endpoint = endpoint.receiving(tokens, Arc::new(StreamedSamples::new(notes)));
        }
        let thread = std::thread::Builder::new()
            .name("metrics".to_owned())
            .spawn(move || {
                let stop = async {
                    // Both a message and a sender that is gone end it.
                    let _ = stopped.await;
                };
                crate::limits::serve();
                let served = runtime.block_on(endpoint.serve(latest, Arc::new(Counts::default()), stop));
                if let Err(error) = served {
                    messages::warn("metrics", &format!("{error:#}"));
                }
                runtime.shutdown_background();
            });
        let served = MetricsThread {
            stop: Some(stop),
            thread: Some(thread.context("no thread for metrics")?),
        };
        Ok((served, Box::new(sink)))
    }
}

/// The thread that answers; it ends when this is dropped.
pub(super) struct MetricsThread {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl MetricsThread {
    /// Ends it, behind the last publication.
    pub(super) fn end(self) {
        drop(self);
    }
}

impl Drop for MetricsThread {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic in it has been reported.
            let _ = thread.join();
        }
    }
}
