//! Metrics that are pushed: the options, and the process that sends what a thread writes into its standard input.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use roce_endpoint::EndpointSource;
use roce_metrics::{Exposition, Format, joined};
use roce_model::Span;
use roce_remote::PushTarget;

use crate::command::metrics::{END, MAX_TOKEN};
use crate::options::duration::parse_duration;
use crate::output::messages;
use crate::own_process::own_process;

// Options of whoever pushes metrics. (A comment for the compiler would become the help's first line.)
#[derive(Args, Clone, Debug)]
pub(crate) struct PushArguments {
    /// Send the metrics to a Collector, too, by OTLP/HTTP, such as http://127.0.0.1:4318 (docs/otlp.md)
    #[arg(long, value_name = "URL")]
    push: Option<String>,

    /// Time between two requests
    #[arg(long, value_name = "TIME", default_value = "15s", requires = "push", value_parser = parse_every)]
    push_every: Span,

    /// Send the token in FILE with each request
    #[arg(long, value_name = "FILE", requires = "push")]
    push_token: Option<PathBuf>,

    /// Certificates (PEM) of the authority that signed the Collector's [default: the system's]
    #[arg(long, value_name = "FILE", requires = "push")]
    push_ca: Option<PathBuf>,
}

fn parse_every(text: &str) -> Result<Span, String> {
    let time = parse_duration(text)?;
    if (1_000_000_000..=3600 * Span::SECOND.0).contains(&time.0) {
        Ok(time)
    } else {
        Err("1s to 1h".to_owned())
    }
}

impl PushArguments {
    /// True if metrics are to be pushed.
    pub(crate) fn is_wanted(&self) -> bool {
        self.push.is_some()
    }

    /// Starts the process that sends, if it is wanted. A run that root started gives it the same `user`.
    ///
    /// # Errors
    /// It cannot be started.
    pub(crate) fn start(&self, user: Option<&str>, no_sandbox: bool) -> anyhow::Result<Option<PushProcess>> {
        let Some(url) = &self.push else {
            return Ok(None);
        };
        // A URL, token or certificate that is of no use is an error now, and not a line in a log later.
        let token = self
            .push_token
            .as_deref()
            .map(|path| roce_files::read_text(path, MAX_TOKEN));
        let authority = self.push_ca.as_deref().map(Path::to_string_lossy);
        PushTarget::new(
            url,
            authority.as_deref(),
            token.transpose()?.as_deref().map(str::trim),
        )?;
        let mut command = own_process();
        command.args(["metrics", "push", "--url", url]);
        for (option, path) in [("--token", &self.push_token), ("--ca", &self.push_ca)] {
            if let Some(path) = path {
                command.arg(option).arg(path);
            }
        }
        if let Some(user) = user {
            command.args(["--user", user]);
        }
        if no_sandbox {
            command.arg("--no-sandbox");
        }
        let child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn();
        Ok(Some(PushProcess {
            child: child.context("no process that sends metrics")?,
            every: Duration::from_nanos(self.push_every.0),
        }))
    }
}

/// The process that sends.
pub(crate) struct PushProcess {
    child: Child,
    every: Duration,
}

impl PushProcess {
    /// Starts the thread that gives it the metrics of `source`. The process ends with this one.
    ///
    /// # Errors
    /// The system gives no thread.
    pub(crate) fn begin(self, source: Arc<dyn EndpointSource>) -> anyhow::Result<()> {
        let Self { mut child, every } = self;
        std::thread::Builder::new()
            .name("push".to_owned())
            .spawn(move || {
                let Some(mut pipe) = child.stdin.take() else {
                    return;
                };
                loop {
                    std::thread::sleep(every);
                    let mut now = Exposition::default();
                    source.add(&mut now);
                    let format = Format::Prometheus;
                    let (part, now) = (source.part(format), now.part(format));
                    let text = joined([part.as_str(), now.as_str()]) + END;
                    if pipe.write_all(text.as_bytes()).is_err() {
                        break;
                    }
                }
                let _ = child.wait();
                messages::warn(
                    "push",
                    "the process that sends metrics has ended: no more are sent",
                );
            })
            .context("no thread for metrics that are pushed")?;
        Ok(())
    }
}
