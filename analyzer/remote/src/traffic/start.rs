//! The start of a run: hosts are looked at, servers are started, and when they listen, all clients at one time.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use roce_jobs::traffic::{Concern, Facts, Gravity, Role, Speeds, Stream, TrafficPlan, streams, words};
use roce_switches::inventory::{HostTarget, SshSettings};

use super::clocks;
use super::facts::HostFacts;
use super::parallel::{MAX_AT_ONCE, Machines, each};
use super::record::{HostRecord, RunRecord, RunRecords, SshRecord, StreamRecord};
use super::script::{self, HostRun, Launch, Needs};

/// Bytes of a host's answer.
pub(super) const MAX_ANSWER_BYTES: u64 = 4 << 20;
/// The longest time until a server listens.
const MAX_LISTEN: Duration = Duration::from_secs(10);
/// Time that a host may take to be looked at, beyond that of its connection: old adapters answer slowly.
const LOOK_PATIENCE: Duration = Duration::from_secs(30);
/// Processes that one command starts: an argument of a command has at most 128 KiB.
const LAUNCH_BATCH: usize = 64;
/// The tool's own program on other hosts.
const ANALYZE: &str = "roce-analyze";
/// Name of the process that reads counters during the run.
pub(super) const COUNTERS: &str = "counters";

/// A run that is to be started.
#[derive(Clone, Copy, Debug)]
pub struct Setup<'a> {
    /// Its id.
    pub id: &'a str,
    /// Its plan.
    pub plan: &'a TrafficPlan,
    /// The hosts that the plan may name.
    pub hosts: &'a [HostTarget],
    /// How ssh is called.
    pub ssh: &'a SshSettings,
    /// The path of this program, for hosts that are this machine.
    pub analyze: &'a str,
    /// One stream that fails ends all.
    pub is_strict: bool,
    /// Counters are read during the run.
    pub reads_counters: bool,
}

/// Why nothing was started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The record of the run cannot be written.
    #[error(transparent)]
    Record(#[from] roce_files::Error),
}

/// The hosts of a plan, looked at.
#[derive(Clone, Debug, Default)]
pub struct Preflight {
    /// Facts about hosts that answered.
    pub facts: BTreeMap<String, HostFacts>,
    /// Hosts that did not answer, and why.
    pub failures: BTreeMap<String, String>,
    /// Streams that cannot run, and why.
    pub unable: BTreeMap<usize, String>,
    /// Remarks for the user.
    pub concerns: Vec<Concern>,
    /// Speeds of links.
    pub speeds: Speeds,
    /// Addresses that clients connect to, by stream.
    pub peers: BTreeMap<usize, String>,
}

impl Preflight {
    /// Runs that go on there: host and run.
    pub fn others(&self) -> impl Iterator<Item = (&str, &str)> {
        self.facts
            .iter()
            .flat_map(|(host, facts)| facts.others.iter().map(move |run| (host.as_str(), run.as_str())))
    }
}

/// A run that was started.
#[derive(Clone, Debug)]
pub struct StartedRun {
    /// Its record.
    pub record: RunRecord,
    /// All is to be stopped: a stream failed and the run is strict, or it was interrupted.
    pub is_aborted: bool,
}

/// Nanoseconds since 1970 by this machine's clock.
pub(super) fn now_ns() -> i128 {
    crate::clock::now_ns().into()
}

fn named_hosts(streams: &[Stream]) -> Vec<String> {
    let hosts: BTreeSet<&str> = streams
        .iter()
        .flat_map(|stream| [stream.client.host.as_str(), stream.server.host.as_str()])
        .collect();
    hosts.into_iter().map(str::to_owned).collect()
}

/// Looks at all hosts of a plan. `makes_folder`: a run follows, and its folders are made.
pub fn preflight(setup: &Setup<'_>, machines: &Machines, makes_folder: bool) -> Preflight {
    let streams = streams(setup.plan);
    let hosts = named_hosts(&streams);
    let mut found = Preflight::default();
    let answers = each(&hosts, |host| look(setup, machines, &streams, host, makes_folder));
    for (host, answer) in hosts.iter().zip(answers) {
        match answer {
            Ok(facts) => drop(found.facts.insert(host.clone(), facts)),
            Err(text) => drop(found.failures.insert(host.clone(), text)),
        }
    }
    for stream in &streams {
        match peer(setup, &found, stream) {
            Ok(peer) => drop(found.peers.insert(stream.number, peer)),
            Err(text) => drop(found.unable.insert(stream.number, text)),
        }
    }
    let answering: Vec<String> = found.facts.keys().cloned().collect();
    let clocks = each(&answering, |host| with_clock(machines, &found, &streams, host));
    for (host, facts) in answering.into_iter().zip(clocks) {
        found.facts.extend(facts.map(|facts| (host, facts)));
    }
    judge(setup, &streams, &mut found);
    found
}

/// Facts about one host.
fn look(
    setup: &Setup<'_>,
    machines: &Machines,
    streams: &[Stream],
    host: &str,
    makes_folder: bool,
) -> Result<HostFacts, String> {
    let machine = machines.get(host).ok_or("it is not in the inventory")?;
    let ports: Vec<u16> = streams
        .iter()
        .filter(|stream| stream.server.host == host)
        .filter_map(|stream| stream.port)
        .collect();
    let needs = Needs {
        tool: setup.plan.tool.name(),
        ports: &ports,
        analyze: if machine.is_local() {
            setup.analyze
        } else {
            ANALYZE
        },
        is_local: machine.is_local(),
        makes_folder,
    };
    let place = HostRun { id: setup.id, host };
    let script = script::prepare(place, needs).map_err(|error| error.to_string())?;
    let patience = (setup.ssh.connect_timeout + LOOK_PATIENCE).max(setup.ssh.timeout);
    let answer = machine.run_within(&script, patience, MAX_ANSWER_BYTES);
    let answer = answer.map_err(|error| error.to_string())?;
    let facts = HostFacts::parse(&String::from_utf8_lossy(&answer));
    // Each answer has it: what else the host says is no answer.
    if facts.folder.is_empty() {
        return Err("it did not answer as a host of a run does".to_owned());
    }
    Ok(facts)
}

/// The address that a stream's client connects to.
fn peer(setup: &Setup<'_>, found: &Preflight, stream: &Stream) -> Result<String, String> {
    for host in [&stream.server.host, &stream.client.host] {
        if let Some(reason) = found.failures.get(host) {
            return Err(format!("{host}: {reason}"));
        }
    }
    let server = &stream.server;
    let facts = found.facts.get(&server.host);
    if let Some(address) = facts.and_then(|facts| facts.address(server)) {
        return Ok(address);
    }
    let target = setup.hosts.iter().find(|target| target.name == server.host);
    match target
        .map(HostTarget::address)
        .filter(|address| *address != "local")
    {
        Some(address) => Ok(address.to_owned()),
        None => Err(format!(
            "the address of {server} is not known: {{ at = \"{server}\", address = \"...\" }} in the plan names it"
        )),
    }
}

/// The facts of a host, with its clock and the routes from it where it answers.
fn with_clock(machines: &Machines, found: &Preflight, streams: &[Stream], host: &str) -> Option<HostFacts> {
    let (machine, mut facts) = (machines.get(host)?, found.facts.get(host)?.clone());
    let peers: BTreeSet<&str> = streams
        .iter()
        .filter(|stream| stream.client.host == host)
        .filter_map(|stream| found.peers.get(&stream.number).map(String::as_str))
        .collect();
    let peers: Vec<&str> = peers.into_iter().collect();
    // A host whose clock is not known is taken to have this machine's time.
    clocks::ask(machine, &peers, &mut facts).ok()?;
    Some(facts)
}

/// Says which streams cannot run, and what is to be known.
fn judge(setup: &Setup<'_>, streams: &[Stream], found: &mut Preflight) {
    let tool = setup.plan.tool;
    let mut concerns: BTreeSet<(String, bool)> = BTreeSet::new();
    let mut reasons: BTreeMap<usize, String> = BTreeMap::new();
    for stream in streams {
        for role in [Role::Server, Role::Client] {
            let end = stream.end(role);
            let Some(facts) = found.facts.get(&end.host) else {
                continue;
            };
            if let (Some(device), Some(bps)) = (&end.device, facts.speed(end)) {
                found.speeds.insert((end.host.clone(), device.clone()), bps);
            }
            let reason = match (facts.port(end), &end.device) {
                _ if !facts.missing.is_empty() => Some(format!(
                    "{}: {} is not installed there",
                    end.host,
                    facts.missing.join(", ")
                )),
                (None, Some(_)) if tool.is_rdma() => {
                    Some(format!("{end}: there is no such RDMA device and port"))
                }
                (Some(port), _) if tool.is_rdma() && !port.is_active => {
                    Some(format!("{end}: the port is not active"))
                }
                _ if role == Role::Server && stream.port.is_some_and(|port| facts.busy.contains(&port)) => {
                    Some(format!(
                        "{}: another program listens on port {}",
                        end.host,
                        port_text(stream)
                    ))
                }
                _ => None,
            };
            if let Some(reason) = reason {
                reasons.entry(stream.number).or_insert(reason);
                continue;
            }
            if tool.is_rdma() && facts.gid(end).is_none() {
                let text = format!(
                    "{end}: the index of its GID is not known, and perftest chooses one: gid = N of the endpoint names it"
                );
                concerns.insert((text, false));
            }
            if facts.foreign > 0 && facts.others.is_empty() {
                let text = format!(
                    "{}: other processes of {} run there, and may share the link: {}",
                    end.host,
                    tool.name(),
                    facts.foreign
                );
                concerns.insert((text, true));
            }
            if role == Role::Client
                && let Some(peer) = found.peers.get(&stream.number)
                && let Some(by) = facts.routes.get(peer)
                && let Some(interface) = facts.interface(end)
                && by != interface
            {
                let text = format!("{end}: {peer} is reached by {by}, not by {interface}");
                concerns.insert((text, true));
            }
        }
    }
    // A missing program or right says more than an address that is not known because of it.
    found.unable.extend(reasons);
    let weighed = concerns.into_iter().map(|(text, is_warning)| {
        let gravity = if is_warning {
            Gravity::Warning
        } else {
            Gravity::Note
        };
        Concern::new(gravity, text)
    });
    found.concerns.extend(weighed);
}

fn port_text(stream: &Stream) -> String {
    stream
        .port
        .map_or_else(|| "-".to_owned(), |port| port.to_string())
}

/// Starts a run. `is_stopped` is looked at between the steps.
///
/// # Errors
/// If the run cannot be recorded: then nothing was started.
pub fn start(
    setup: &Setup<'_>,
    machines: &Machines,
    found: &Preflight,
    records: &RunRecords,
    is_stopped: &dyn Fn() -> bool,
) -> Result<StartedRun, Refusal> {
    let all = streams(setup.plan);
    let mut record = record(setup, found, &all);
    records.write(&record)?;
    let steps = Steps {
        setup,
        machines,
        found,
        all: &all,
    };
    let mut failed: BTreeMap<usize, String> = found.unable.clone();
    let ends = |failed: &BTreeMap<usize, String>| is_stopped() || setup.is_strict && !failed.is_empty();
    let mut is_aborted = ends(&failed);
    if !is_aborted {
        steps.servers(&record, &mut failed);
        is_aborted = ends(&failed);
    }
    if !is_aborted {
        steps.clients(&record, &mut failed);
        is_aborted = ends(&failed);
    }
    for stream in &mut record.streams {
        stream.failure = failed.get(&stream.number).cloned();
    }
    records.write(&record)?;
    Ok(StartedRun { record, is_aborted })
}

fn record(setup: &Setup<'_>, found: &Preflight, all: &[Stream]) -> RunRecord {
    let hosts = found.facts.iter().filter_map(|(name, facts)| {
        let target = setup.hosts.iter().find(|target| target.name == *name)?;
        let devices: BTreeSet<String> = all
            .iter()
            .flat_map(|stream| [&stream.client, &stream.server])
            .filter(|end| end.host == *name)
            .filter_map(|end| Some(format!("{}:{}", end.device.as_deref()?, end.port)))
            .collect();
        Some(HostRecord {
            name: name.clone(),
            address: target.address().to_owned(),
            user: target.user.clone(),
            prefix: target.prefix.clone(),
            folder: facts.folder.clone(),
            devices: devices.into_iter().collect(),
            offset_ns: facts.offset_ns,
        })
    });
    RunRecord {
        schema_version: RunRecord::VERSION,
        id: setup.id.to_owned(),
        name: setup.plan.name.clone(),
        tool: setup.plan.tool.name().to_owned(),
        duration_s: setup.plan.duration.as_secs(),
        grace_s: setup.plan.grace.as_secs(),
        started_ns: u64::try_from(now_ns()).unwrap_or(0),
        hosts: hosts.collect(),
        streams: all
            .iter()
            .map(|stream| StreamRecord {
                number: stream.number,
                client: stream.client.to_string(),
                client_host: stream.client.host.clone(),
                server: stream.server.to_string(),
                server_host: stream.server.host.clone(),
                port: stream.port.unwrap_or(0),
                size: stream.size,
                qps: stream.qps,
                failure: None,
            })
            .collect(),
        ssh: SshRecord::from(setup.ssh),
    }
}

/// The steps of a start.
struct Steps<'a> {
    setup: &'a Setup<'a>,
    machines: &'a Machines,
    found: &'a Preflight,
    all: &'a [Stream],
}

impl Steps<'_> {
    /// Streams that go on, by the host of this role.
    fn by_host(&self, role: Role, failed: &BTreeMap<usize, String>) -> Vec<(String, Vec<&Stream>)> {
        let mut hosts: BTreeMap<String, Vec<&Stream>> = BTreeMap::new();
        for stream in self
            .all
            .iter()
            .filter(|stream| !failed.contains_key(&stream.number))
        {
            hosts
                .entry(stream.end(role).host.clone())
                .or_default()
                .push(stream);
        }
        hosts.into_iter().collect()
    }

    fn launch(&self, stream: &Stream, role: Role) -> Launch {
        let plan = self.setup.plan;
        let end = stream.end(role);
        let facts = Facts {
            gid: self.found.facts.get(&end.host).and_then(|facts| facts.gid(end)),
            peer: self.found.peers.get(&stream.number).map_or("", String::as_str),
        };
        let graces = match role {
            // It waits for its client, too.
            Role::Server => 2,
            Role::Client => 1,
        };
        Launch {
            name: script::side(stream.number, role),
            limit: plan.duration.as_secs() + graces * plan.grace.as_secs(),
            words: words(plan, stream, role, facts),
        }
    }

    /// Starts processes on a host.
    fn start(&self, record: &RunRecord, host: &str, at: Option<i128>, all: &[Launch]) -> Result<(), String> {
        let place = HostRun {
            id: self.setup.id,
            host,
        };
        let (Some(machine), Some(about)) = (self.machines.get(host), record.host(host)) else {
            return Err("it is not in the inventory".to_owned());
        };
        for batch in all.chunks(LAUNCH_BATCH) {
            let script =
                script::launch(place, &about.folder, at, batch).map_err(|error| error.to_string())?;
            machine
                .run(&script, MAX_ANSWER_BYTES)
                .map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    /// Starts servers, and waits until they listen.
    fn servers(&self, record: &RunRecord, failed: &mut BTreeMap<usize, String>) {
        let hosts = self.by_host(Role::Server, failed);
        let results = each(&hosts, |(host, streams)| {
            let all: Vec<Launch> = streams
                .iter()
                .map(|stream| self.launch(stream, Role::Server))
                .collect();
            self.start(record, host, None, &all)?;
            self.await_servers(record, host, streams)
        });
        for ((host, streams), result) in hosts.iter().zip(results) {
            match result {
                Ok(listening) => {
                    for stream in streams {
                        if !listening.contains(&script::side(stream.number, Role::Server)) {
                            let text =
                                format!("{host}: the server does not listen on port {}", port_text(stream));
                            failed.insert(stream.number, text);
                        }
                    }
                }
                Err(text) => {
                    for stream in streams {
                        failed.insert(stream.number, format!("{host}: {text}"));
                    }
                }
            }
        }
    }

    /// Names of the servers on a host that listen.
    fn await_servers(
        &self,
        record: &RunRecord,
        host: &str,
        streams: &[&Stream],
    ) -> Result<BTreeSet<String>, String> {
        let (Some(machine), Some(about)) = (self.machines.get(host), record.host(host)) else {
            return Ok(BTreeSet::new());
        };
        let servers: Vec<(String, u16)> = streams
            .iter()
            .filter_map(|stream| Some((script::side(stream.number, Role::Server), stream.port?)))
            .collect();
        let limit = self.setup.plan.grace.min(MAX_LISTEN);
        let place = HostRun {
            id: self.setup.id,
            host,
        };
        let tenths = u32::try_from(limit.as_millis() / 100).unwrap_or(100);
        let script = script::await_servers(place, &about.folder, &servers, tenths)
            .map_err(|error| error.to_string())?;
        // A look takes a while by itself on a busy host.
        let patience = limit * 3 + LOOK_PATIENCE;
        let answer = machine
            .run_within(&script, patience, MAX_ANSWER_BYTES)
            .map_err(|error| error.to_string())?;
        let text = String::from_utf8_lossy(&answer);
        Ok(text
            .lines()
            .filter_map(|line| line.strip_prefix("listens="))
            .map(str::to_owned)
            .collect())
    }

    /// Starts all clients at one time.
    fn clients(&self, record: &RunRecord, failed: &mut BTreeMap<usize, String>) {
        let hosts = self.by_host(Role::Client, failed);
        let most = hosts.iter().map(|(_, streams)| streams.len()).max().unwrap_or(0);
        // Until all commands are there: some hosts at once, and some milliseconds for each process.
        let rounds = hosts.len().div_ceil(MAX_AT_ONCE);
        let lead = 500_000_000 * i128::try_from(rounds).unwrap_or(1)
            + 10_000_000 * i128::try_from(most).unwrap_or(0);
        let at = now_ns() + lead;
        let results = each(&hosts, |(host, streams)| {
            let mut all: Vec<Launch> = Vec::new();
            let facts = self.found.facts.get(host);
            if self.setup.reads_counters && facts.is_some_and(|facts| facts.has_analyze) {
                all.push(self.counters(host));
            }
            all.extend(streams.iter().map(|stream| self.launch(stream, Role::Client)));
            let offset = facts.map_or(0, |facts| i128::from(facts.offset_ns));
            self.start(record, host, Some(at + offset), &all)
        });
        for ((host, streams), result) in hosts.iter().zip(results) {
            if let Err(text) = result {
                for stream in streams {
                    failed.insert(stream.number, format!("{host}: {text}"));
                }
            }
        }
    }

    /// The process that reads counters while the streams run.
    fn counters(&self, host: &str) -> Launch {
        let is_local = self.machines.get(host).is_some_and(crate::Machine::is_local);
        let analyze = if is_local { self.setup.analyze } else { ANALYZE };
        let seconds = self.setup.plan.duration.as_secs();
        let script = "exec \"$@\" 2> /dev/null";
        let words = [
            "sh",
            "-c",
            script,
            "sh",
            analyze,
            "host",
            "counters",
            "--all",
            "--format",
            "json",
            "--duration",
        ];
        Launch {
            name: COUNTERS.to_owned(),
            limit: seconds + self.setup.plan.grace.as_secs(),
            words: words
                .iter()
                .map(|word| (*word).to_owned())
                .chain([format!("{seconds}s")])
                .collect(),
        }
    }
}
