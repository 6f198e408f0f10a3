//! `traffic run`: streams between hosts, from the look at the hosts to the results.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, bail};
use clap::Args;
use roce_jobs::traffic::{Concern, Endpoint, Gravity, Speeds, TrafficPlan, concerns, streams};
use roce_model::text::escape_json;
use roce_remote::traffic::{
    Machines, Preflight, RunRecord, RunRecords, RunStatus, Setup, StartedRun, StreamState, clean as remove,
    counters, discard, machines, preflight, start as started, status as asked, stop as ended,
};
use roce_switches::inventory::{HostTarget, Inventory};
use serde_json::json;

use super::actions::{code, counted, failures, program, records, run_id};
use super::form;
use super::hosts::{HostArguments, read_plan, say};
use super::kept::{RunFolder, document, fetched};
use super::watched::{self, Outcome, lines, outcome};
use crate::command::watch::Signals;
use crate::options::format::{Format, text_or_json};
use crate::options::rate::Rate;
use crate::output::messages;

/// The speed that all RDMA links of a plan have, as their hosts say it; `None`: they differ, one is not known, or the tool is TCP's, whose
/// interfaces may be virtual ones without a true speed.
fn common_speed(plan: &TrafficPlan, speeds: &Speeds) -> Option<u64> {
    let ends = plan.pairs.iter().flat_map(|pair| [&pair.from, &pair.to]);
    let speed = |end: &Endpoint| speeds.get(&(end.host.clone(), end.device.clone()?)).copied();
    let mut all = ends.map(speed);
    let first = all.next()??;
    (plan.tool.is_rdma() && all.all(|speed| speed == Some(first))).then_some(first)
}

/// Version of the JSON document's form.
const SCHEMA_VERSION: u32 = 1;
/// How often a signal is looked for.
const LOOK: Duration = Duration::from_millis(50);
/// The shortest and the longest time between two questions to the hosts.
const MIN_POLL: Duration = Duration::from_millis(500);
const MAX_POLL: Duration = Duration::from_secs(5);
/// Time beyond that of the streams after which a run is not waited for any more.
const MAX_WAIT: Duration = Duration::from_secs(30);

/// Examples of `run`.
const AFTER_HELP: &str = "\
Examples:
  roce-analyze traffic run ring.toml
      results of all streams in one table
  roce-analyze traffic run ring.toml -o ring --strict
      logs and counters, too; one failure ends all
  roce-analyze traffic run tcp.toml --host gpu1,gpu2
      without an inventory: names for ssh
  roce-analyze traffic run ring.toml --detach
      a run that goes on by itself; `traffic run --status` shows it, --stop ends it";

/// Run the streams of a plan to their end, and show their results
///
/// Servers are started first. When they listen, all clients start at one time. It waits, stops what is left, fetches the logs and shows what
/// the tools measured. A signal (Ctrl-C) stops the streams on all hosts. Exit code 1: some streams failed.
///
/// With --detach the streams are left running. Each process ends by itself after its time, even if this machine is gone. `traffic run --status`
/// and `traffic run --stop` take the id that is printed.
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(super) struct RunArguments {
    /// The plan; with --status and --stop the id of a run [default: the latest]
    #[arg(value_name = "PLAN|ID", required_unless_present_any = ["status", "stop"])]
    plan: Option<PathBuf>,

    #[command(flatten)]
    hosts: HostArguments,

    /// Start the streams, print the id of the run, and leave them running
    #[arg(long, conflicts_with_all = ["output", "link_rate", "status"])]
    detach: bool,

    /// Show a run that was started before: its streams, and the rates of its devices
    ///
    /// Asks the hosts which of the run's processes live, what their logs say, and what the devices' counters moved by in one second. Exit code 1:
    /// a stream failed, was stopped, or is missing.
    #[arg(long, conflicts_with_all = ["output", "link_rate", "strict", "beside_others", "long", "host", "inventory"])]
    status: bool,

    /// End a run that was started before: its own processes on all hosts, and no others; with -o fetch logs and results, and remove the run
    /// from its hosts
    ///
    /// A process is ended if it has the run's id in its environment: TERM first, KILL after 3 seconds. A run that has ended can be stopped
    /// again. Exit code 1: something is left.
    #[arg(long, conflicts_with_all = ["detach", "status", "link_rate", "strict", "beside_others", "long", "host", "inventory"])]
    stop: bool,

    /// Stop all streams when one fails
    #[arg(long)]
    strict: bool,

    /// Run although another run of this tool goes on at one of the hosts
    #[arg(long)]
    beside_others: bool,

    /// Allow more than an hour
    #[arg(long)]
    long: bool,

    /// Keep the plan, all logs, the results as JSON, and counters of hosts that have roce-analyze, in the new folder DIR
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,

    /// Speed of the link, such as 100G: shows the share of it that was reached [default: that of the RDMA ports, where all have one]
    #[arg(long, value_name = "RATE", value_parser = Rate::parse)]
    link_rate: Option<Rate>,

    /// Format of standard output
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = text_or_json())]
    format: Format,
}

impl RunArguments {
    /// The path of the plan.
    fn plan(&self) -> &Path {
        self.plan.as_deref().unwrap_or(Path::new(""))
    }
}

/// A plan with its hosts, ready to be started.
struct Ready {
    plan: TrafficPlan,
    text: String,
    inventory: Inventory,
    hosts: Vec<HostTarget>,
    id: String,
    program: String,
}

impl Ready {
    fn new(arguments: &RunArguments) -> anyhow::Result<Self> {
        let (plan, text) = read_plan(arguments.plan())?;
        let inventory = arguments.hosts.inventory()?;
        let hosts = arguments.hosts.hosts(&inventory)?;
        Ok(Self {
            plan,
            text,
            inventory,
            hosts,
            id: run_id(),
            program: program(),
        })
    }

    fn setup<'a>(&'a self, arguments: &RunArguments, reads_counters: bool) -> Setup<'a> {
        Setup {
            id: &self.id,
            plan: &self.plan,
            hosts: &self.hosts,
            ssh: &self.inventory.ssh,
            analyze: &self.program,
            is_strict: arguments.strict,
            reads_counters,
        }
    }
}

/// Checks a plan, looks at its hosts, and says what will run.
fn looked(
    ready: &Ready,
    arguments: &RunArguments,
    setup: &Setup<'_>,
    all: &Machines,
) -> anyhow::Result<Preflight> {
    let before = concerns(&ready.plan, &ready.hosts, &Speeds::new(), arguments.long);
    let errors: Vec<Concern> = before
        .into_iter()
        .filter(|concern| concern.gravity == Gravity::Error)
        .collect();
    if say(&errors) {
        bail!("{}: the plan cannot run", arguments.plan().display());
    }
    let found = preflight(setup, all, true);
    let others: Vec<String> = found
        .others()
        .map(|(host, run)| format!("{run} at {host}"))
        .collect();
    if !others.is_empty() && !arguments.beside_others {
        discard(&found, all);
        bail!(
            "another run goes on: {}\nhint: roce-analyze traffic run --stop {}, or --beside-others",
            others.join(", "),
            found.others().next().map_or("", |(_, run)| run)
        );
    }
    let mut known = concerns(&ready.plan, &ready.hosts, &found.speeds, arguments.long);
    known.extend(found.concerns.iter().cloned());
    say(&known);
    for (host, reason) in &found.failures {
        messages::warn(host, reason);
    }
    let count = streams(&ready.plan).len() - found.unable.len();
    let names: Vec<&str> = found.facts.keys().map(String::as_str).collect();
    messages::plain(&format!(
        "run {}: {} of {} on {} ({}) for {} s",
        ready.id,
        roce_spelling::plural(count as u64, "stream", "streams"),
        ready.plan.tool.name(),
        roce_spelling::plural(names.len() as u64, "host", "hosts"),
        listed(&names),
        ready.plan.duration.as_secs()
    ));
    Ok(found)
}

/// The first names of a list.
fn listed(names: &[&str]) -> String {
    const SHOWN: usize = 8;
    let shown = names.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN {
        format!("{shown} and {} more", names.len() - SHOWN)
    } else {
        shown
    }
}

/// Starts streams, and leaves them running.
fn start(arguments: &RunArguments) -> anyhow::Result<ExitCode> {
    let ready = Ready::new(arguments)?;
    let records = records()?;
    let setup = ready.setup(arguments, false);
    let all = machines(&ready.hosts, &ready.inventory.ssh);
    let interrupted = AtomicBool::new(false);
    let begun = interruptible(&interrupted, || {
        let found = looked(&ready, arguments, &setup, &all)?;
        Ok(started(&setup, &all, &found, &records, &|| {
            interrupted.load(Ordering::Relaxed)
        })?)
    })?;
    let StartedRun { record, is_aborted } = begun;
    if is_aborted {
        let stopped = ended(&record, &all);
        messages::plain(lines(&record, &stopped).trim_end());
    }
    let failed = record
        .streams
        .iter()
        .filter(|stream| stream.failure.is_some())
        .count();
    let text = if arguments.format == Format::Text {
        let mut text = String::new();
        for stream in &record.streams {
            if let Some(reason) = &stream.failure {
                let line = format!(
                    "stream {}, {} > {}: {reason}",
                    stream.number, stream.client, stream.server
                );
                let _ = writeln!(text, " ✗ {}", roce_model::text::clean(&line));
            }
        }
        let what = if is_aborted { "was stopped" } else { "goes on" };
        let count = record.streams.len() - failed;
        let _ = writeln!(
            text,
            " run {} {what}: {count} of {} streams",
            record.id,
            record.streams.len()
        );
        text
    } else {
        let failures: Vec<_> = record
            .streams
            .iter()
            .filter_map(|stream| Some(json!({ "number": stream.number, "reason": stream.failure.as_ref()? })))
            .collect();
        let document = json!({
            "schema_version": SCHEMA_VERSION,
            "id": record.id,
            "streams": record.streams.len(),
            "stopped": is_aborted,
            "failed": failures,
        });
        escape_json(&format!("{document:#}\n")).into_owned()
    };
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(ExitCode::from(u8::from(is_aborted || failed > 0)))
}

/// Does `work` while signals are looked for. The first sets `interrupted`, the second ends the program.
fn interruptible<T: Send>(
    interrupted: &AtomicBool,
    work: impl FnOnce() -> anyhow::Result<T> + Send,
) -> anyhow::Result<T> {
    let (runtime, mut signals) = Signals::take()?;
    std::thread::scope(|scope| {
        let work = std::thread::Builder::new()
            .spawn_scoped(scope, work)
            .context("no thread for the run")?;
        while !work.is_finished() {
            let signal = runtime.block_on(async {
                tokio::select! {
                    code = signals.next() => Some(code),
                    () = tokio::time::sleep(LOOK) => None,
                }
            });
            let Some(code) = signal else {
                continue;
            };
            if interrupted.swap(true, Ordering::Relaxed) {
                messages::plain(
                    "streams that are left end by themselves, or by `roce-analyze traffic run --stop`",
                );
                std::process::exit(code);
            }
            messages::plain(
                "stopping the streams on all hosts; a second signal leaves them to end by themselves",
            );
        }
        work.join()
            .map_err(|_| anyhow!("the thread of the run panicked"))?
    })
}

/// Runs streams to their end, starts them, or shows or ends those that were started.
pub(super) fn run(arguments: &RunArguments) -> anyhow::Result<ExitCode> {
    let id = arguments.plan.as_deref().map(Path::to_string_lossy);
    if arguments.status {
        return watched::status(id.as_deref(), arguments.format);
    }
    if arguments.stop {
        return watched::stop(id.as_deref(), arguments.output.as_deref(), arguments.format);
    }
    if arguments.detach {
        return start(arguments);
    }
    let ready = Ready::new(arguments)?;
    let records = records()?;
    let kept = arguments.output.as_deref().map(RunFolder::new).transpose()?;
    let setup = ready.setup(arguments, kept.is_some());
    let all = machines(&ready.hosts, &ready.inventory.ssh);
    let interrupted = AtomicBool::new(false);
    let is_interrupted = || interrupted.load(Ordering::Relaxed);
    let whole = Whole {
        ready: &ready,
        arguments,
        setup: &setup,
        all: &all,
        records: &records,
        is_interrupted: &is_interrupted,
    };
    interruptible(&interrupted, || whole.run(kept))
}

/// A run from its start to its results.
struct Whole<'a> {
    ready: &'a Ready,
    arguments: &'a RunArguments,
    setup: &'a Setup<'a>,
    all: &'a Machines,
    records: &'a RunRecords,
    is_interrupted: &'a (dyn Fn() -> bool + Sync),
}

impl Whole<'_> {
    fn run(&self, kept: Option<RunFolder>) -> anyhow::Result<ExitCode> {
        let found = looked(self.ready, self.arguments, self.setup, self.all)?;
        self.count(kept.as_ref(), &found, "before")?;
        let StartedRun { record, is_aborted } =
            started(self.setup, self.all, &found, self.records, self.is_interrupted)?;
        if !is_aborted {
            self.wait(&record);
        }
        // A stream is judged before what is left of it is ended.
        let status = asked(&record, self.all, false);
        let stopped = ended(&record, self.all);
        let outcome = outcome(&stopped);
        if outcome != Outcome::Clean {
            messages::plain(lines(&record, &stopped).trim_end());
        }
        let status = if status.streams.iter().all(|stream| stream.state.is_over()) {
            status
        } else {
            asked(&record, self.all, false)
        };
        self.count(kept.as_ref(), &found, "after")?;
        let named = self.arguments.link_rate.map(|rate| rate.0);
        let link = named.or_else(|| common_speed(&self.ready.plan, &found.speeds));
        let inputs = match kept {
            Some(kept) => {
                kept.write("plan.toml", &self.ready.text)?;
                kept.collect(&record, self.all, &status, link)?
            }
            None => fetched(&record, self.all, false, &|_, _| ()),
        };
        self.forget(&record, outcome)?;
        self.show(&record, &status, &inputs, link)?;
        Ok(if outcome == Outcome::Unknown {
            ExitCode::from(2)
        } else {
            code(&status.streams)
        })
    }

    /// Reads the counters of hosts that have roce-analyze, where they are kept.
    fn count(&self, kept: Option<&RunFolder>, found: &Preflight, phase: &str) -> anyhow::Result<()> {
        let Some(kept) = kept else {
            return Ok(());
        };
        let hosts = found.facts.iter().filter(|(_, facts)| facts.has_analyze);
        let hosts: Vec<String> = hosts.map(|(host, _)| host.clone()).collect();
        for (host, text) in counters(&hosts, self.all, &self.ready.program) {
            kept.write(&format!("{host}.counters.{phase}.json"), &text)?;
        }
        Ok(())
    }

    /// Waits until all streams are over.
    fn wait(&self, record: &RunRecord) {
        let plan = &self.ready.plan;
        let end = Instant::now() + plan.duration + plan.grace + MAX_WAIT;
        let poll = (plan.duration / 20).clamp(MIN_POLL, MAX_POLL);
        loop {
            let next = Instant::now() + poll;
            while Instant::now() < next {
                if (self.is_interrupted)() {
                    return;
                }
                std::thread::sleep(LOOK);
            }
            let status = asked(record, self.all, false);
            let has_failed = || {
                let failed =
                    |state: &StreamState| matches!(state, StreamState::Failed(_) | StreamState::Missing(_));
                status.streams.iter().any(|stream| failed(&stream.state))
            };
            let is_over = status.streams.iter().all(|stream| stream.state.is_over());
            if is_over || Instant::now() >= end || self.setup.is_strict && has_failed() {
                return;
            }
        }
    }

    /// Removes the run from its hosts and from here, if nothing of it is left.
    fn forget(&self, record: &RunRecord, outcome: Outcome) -> anyhow::Result<()> {
        if outcome != Outcome::Clean {
            messages::plain(&format!("hint: roce-analyze traffic run --stop {}", record.id));
            return Ok(());
        }
        for (host, error) in remove(record, self.all) {
            messages::warn(&host, &format!("the run's files are still there: {error}"));
        }
        Ok(self.records.remove(&record.id)?)
    }

    fn show(
        &self,
        record: &RunRecord,
        status: &RunStatus,
        inputs: &[form::Input],
        link: Option<u64>,
    ) -> anyhow::Result<()> {
        let text = match self.arguments.format {
            Format::Text => {
                let mut text = form::text(inputs, link, false);
                text.push_str(&failures(record, status));
                let _ = writeln!(
                    text,
                    " {} streams: {}{}",
                    record.streams.len(),
                    counted(&status.streams),
                    form::together(inputs)
                );
                text
            }
            _ => escape_json(&format!("{:#}\n", document(record, status, inputs, link))).into_owned(),
        };
        Ok(std::io::stdout().write_all(text.as_bytes())?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_of_one_speed_have_it_in_common() {
        let plan = |tool: &str| {
            let text = format!("tool = \"{tool}\"\n[[pair]]\nfrom = \"a:m\"\nto = \"b:m\"\n");
            TrafficPlan::parse(&text).unwrap()
        };
        let speeds = |all: &[(&str, u64)]| -> Speeds {
            all.iter()
                .map(|(host, bps)| (((*host).to_owned(), "m".to_owned()), *bps))
                .collect()
        };
        let both = speeds(&[("a", 100), ("b", 100)]);
        assert_eq!(common_speed(&plan("ib_write_bw"), &both), Some(100));
        assert_eq!(common_speed(&plan("iperf3"), &both), None);
        assert_eq!(
            common_speed(&plan("ib_write_bw"), &speeds(&[("a", 100), ("b", 40)])),
            None
        );
        assert_eq!(common_speed(&plan("ib_write_bw"), &speeds(&[("a", 100)])), None);
    }
}
