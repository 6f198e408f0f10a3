//! The state of a run, as its hosts report it: never from a clock alone.

use std::collections::BTreeMap;

use roce_jobs::traffic::{LogState, Role, log_state};

use super::parallel::{Machines, each};
use super::record::{HostRecord, RunRecord, StreamRecord};
use super::script::{self, HostRun};
use super::start::MAX_ANSWER_BYTES;

/// Exit code of a shell's command that TERM, or KILL, ended.
const ENDED_BY_SIGNAL: [i32; 2] = [143, 137];
/// Exit code of `timeout` where the time was over.
const TIMED_OUT: i32 = 124;
/// Bytes of a word of InfiniBand's data counters (IBTA 16.1.3.5: in units of 4 octets).
const WORD_BITS: f64 = 32.0;

/// The state of a stream.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StreamState {
    /// Its client has not begun.
    Waiting,
    /// Its client runs.
    Running,
    /// Its client ended by itself with results.
    Done,
    /// It was ended by `stop`.
    Stopped,
    /// It failed: why.
    Failed(String),
    /// Its process is not there, and left no exit code.
    Missing(String),
}

impl StreamState {
    /// Its name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Done => "done",
            Self::Stopped => "stopped",
            Self::Failed(_) => "failed",
            Self::Missing(_) => "missing",
        }
    }

    /// Why it failed.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Failed(reason) | Self::Missing(reason) => Some(reason),
            _ => None,
        }
    }

    /// True if nothing of it is to be waited for.
    pub fn is_over(&self) -> bool {
        !matches!(self, Self::Waiting | Self::Running)
    }
}

/// A stream and its state.
#[derive(Clone, PartialEq, Debug)]
pub struct StreamStatus {
    /// Its number.
    pub number: usize,
    /// Its state.
    pub state: StreamState,
    /// When its client began: nanoseconds since 1970, by this machine's clock.
    pub begun_ns: Option<u64>,
    /// When its client ended.
    pub ended_ns: Option<u64>,
}

/// Bytes that a device sent and received in a second.
#[derive(Clone, PartialEq, Debug)]
pub struct Rate {
    /// The device and its port, or an interface.
    pub device: String,
    /// True of bits a second, false of packets a second.
    pub is_bits: bool,
    /// Sent.
    pub sent: f64,
    /// Received.
    pub received: f64,
}

/// A host and what it reports.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct HostStatus {
    /// Its name.
    pub name: String,
    /// Why it gave no answer.
    pub error: Option<String>,
    /// Processes of the run that live there.
    pub living: usize,
    /// Rates of its devices.
    pub rates: Vec<Rate>,
}

/// A run's state.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct RunStatus {
    /// Its hosts.
    pub hosts: Vec<HostStatus>,
    /// Its streams, in the order of their numbers.
    pub streams: Vec<StreamStatus>,
}

/// A host's answer about one process.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Side {
    pub(super) is_alive: bool,
    pub(super) code: Option<i32>,
    pub(super) start_ns: Option<i128>,
    pub(super) end_ns: Option<i128>,
    pub(super) log_bytes: u64,
    pub(super) log: String,
}

/// A host's answer.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Answer {
    pub(super) has_folder: bool,
    pub(super) sides: BTreeMap<String, Side>,
    counts: BTreeMap<String, Vec<Count>>,
}

/// A reading of a device's counters.
#[derive(Clone, PartialEq, Debug)]
struct Count {
    unit: String,
    /// Seconds since the host's start.
    seconds: f64,
    sent: u64,
    received: u64,
}

impl Answer {
    /// The answer in a text; lines that are not understood are left out.
    pub(super) fn parse(text: &str) -> Self {
        let mut answer = Self::default();
        let mut current: Option<Side> = None;
        let mut name = String::new();
        for line in text.lines() {
            if let Some(log) = line.strip_prefix('|') {
                if let Some(side) = &mut current {
                    side.log.push_str(log);
                    side.log.push('\n');
                }
                continue;
            }
            let Some((key, value)) = line.split_once('=') else {
                continue;
            };
            let mut words = value.split_whitespace();
            match key {
                "folder" => answer.has_folder = true,
                "side" => {
                    if let Some(side) = current.take() {
                        answer.sides.insert(std::mem::take(&mut name), side);
                    }
                    words.next().unwrap_or_default().clone_into(&mut name);
                    let mut number = || words.next().and_then(|word| word.parse::<i128>().ok());
                    current = Some(Side {
                        is_alive: number() == Some(1),
                        code: number().and_then(|code| i32::try_from(code).ok()),
                        start_ns: number(),
                        end_ns: number(),
                        log_bytes: number().and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or(0),
                        log: String::new(),
                    });
                }
                "count" => {
                    if let (Some(device), Some(count)) = (words.next(), count(&mut words)) {
                        answer.counts.entry(device.to_owned()).or_default().push(count);
                    }
                }
                _ => {}
            }
        }
        if let Some(side) = current {
            answer.sides.insert(name, side);
        }
        answer
    }

    /// Rates between the first reading of each device and the last.
    pub(super) fn rates(&self) -> Vec<Rate> {
        let rates = self.counts.iter().filter_map(|(device, counts)| {
            let (first, last) = (counts.first()?, counts.last()?);
            let seconds = last.seconds - first.seconds;
            let factor = match last.unit.as_str() {
                "words" => WORD_BITS,
                "bytes" => 8.0,
                _ => 1.0,
            };
            #[expect(clippy::cast_precision_loss, reason = "what a link carries in a second")]
            let rate = |before: u64, after: u64| {
                let change = after.checked_sub(before)? as f64;
                (seconds > 0.1).then_some(change * factor / seconds)
            };
            Some(Rate {
                device: device.clone(),
                is_bits: last.unit != "packets",
                sent: rate(first.sent, last.sent)?,
                received: rate(first.received, last.received)?,
            })
        });
        rates.collect()
    }
}

fn count<'a>(words: &mut impl Iterator<Item = &'a str>) -> Option<Count> {
    Some(Count {
        unit: words.next()?.to_owned(),
        seconds: words
            .next()?
            .parse()
            .ok()
            .filter(|seconds: &f64| seconds.is_finite())?,
        sent: words.next()?.parse().ok()?,
        received: words.next()?.parse().ok()?,
    })
}

/// Asks all hosts of a run. `wants_rates` takes a second.
pub fn status(record: &RunRecord, machines: &Machines, wants_rates: bool) -> RunStatus {
    let answers = each(&record.hosts, |host| ask(record, machines, host, wants_rates));
    let mut all: BTreeMap<&str, Result<Answer, String>> = BTreeMap::new();
    let mut hosts = Vec::new();
    for (host, answer) in record.hosts.iter().zip(answers) {
        hosts.push(match &answer {
            Ok(answer) => HostStatus {
                name: host.name.clone(),
                error: None,
                living: answer.sides.values().filter(|side| side.is_alive).count(),
                rates: answer.rates(),
            },
            Err(error) => HostStatus {
                name: host.name.clone(),
                error: Some(error.clone()),
                ..HostStatus::default()
            },
        });
        all.insert(&host.name, answer);
    }
    let streams = record
        .streams
        .iter()
        .map(|stream| of_stream(record, stream, &all));
    RunStatus {
        streams: streams.collect(),
        hosts,
    }
}

fn ask(
    record: &RunRecord,
    machines: &Machines,
    host: &HostRecord,
    wants_rates: bool,
) -> Result<Answer, String> {
    let machine = machines.get(&host.name).ok_or("it is not known")?;
    let place = HostRun {
        id: &record.id,
        host: &host.name,
    };
    let devices = if wants_rates { host.devices.as_slice() } else { &[] };
    let script = script::status(place, &host.folder, devices).map_err(|error| error.to_string())?;
    let answer = machine
        .run(&script, MAX_ANSWER_BYTES)
        .map_err(|error| error.to_string())?;
    Ok(Answer::parse(&String::from_utf8_lossy(&answer)))
}

fn of_stream(
    record: &RunRecord,
    stream: &StreamRecord,
    answers: &BTreeMap<&str, Result<Answer, String>>,
) -> StreamStatus {
    let side = |host: &str, role| match answers.get(host) {
        Some(Ok(answer)) => Ok(answer.sides.get(&script::side(stream.number, role))),
        Some(Err(error)) => Err(format!("{host}: {error}")),
        None => Err(format!("{host}: it did not answer when the run began")),
    };
    let client = side(&stream.client_host, Role::Client);
    let server = side(&stream.server_host, Role::Server);
    let offset = record
        .host(&stream.client_host)
        .map_or(0, |host| i128::from(host.offset_ns));
    let time = |time: fn(&Side) -> Option<i128>| {
        let time = client.as_ref().ok().copied().flatten().and_then(time)?;
        u64::try_from(time - offset).ok()
    };
    StreamStatus {
        number: stream.number,
        begun_ns: time(|side| side.start_ns),
        ended_ns: time(|side| side.end_ns),
        state: match (&stream.failure, client, server) {
            (Some(failure), _, server) => {
                let said = server.ok().flatten().and_then(why);
                StreamState::Failed(said.map_or_else(|| failure.clone(), |line| format!("{failure}: {line}")))
            }
            (None, Err(error), _) => StreamState::Missing(error),
            (None, Ok(client), server) => state(client, server.ok().flatten()),
        },
    }
}

/// The state of a stream by its two sides.
pub(super) fn state(client: Option<&Side>, server: Option<&Side>) -> StreamState {
    let Some(client) = client else {
        return match server {
            Some(server) if server.is_alive => StreamState::Waiting,
            Some(server) if server.code.is_some_and(|code| ENDED_BY_SIGNAL.contains(&code)) => {
                StreamState::Stopped
            }
            Some(server) => StreamState::Failed(why(server).unwrap_or_else(|| "its server ended".to_owned())),
            None => StreamState::Missing("it was not started".to_owned()),
        };
    };
    match client.code {
        Some(0) => {
            let is_whole = client.log_bytes <= script::STATUS_LOG_BYTES as u64;
            match log_state(&client.log) {
                LogState::Table => StreamState::Done,
                found => match found.error() {
                    Some(line) => StreamState::Failed(line.to_owned()),
                    None if is_whole => StreamState::Failed("it ended without results".to_owned()),
                    None => StreamState::Done,
                },
            }
        }
        Some(code) if ENDED_BY_SIGNAL.contains(&code) => StreamState::Stopped,
        Some(_) => StreamState::Failed(why(client).unwrap_or_default()),
        None if client.is_alive && client.start_ns.is_none() => StreamState::Waiting,
        None if client.is_alive => StreamState::Running,
        None => StreamState::Missing("its process is gone, and left no exit code".to_owned()),
    }
}

/// Why a process failed: the line of its log, or its exit code.
fn why(side: &Side) -> Option<String> {
    let code = side.code?;
    let state = log_state(&side.log);
    if let Some(line) = state.error() {
        return Some(line.to_owned());
    }
    if code == 0 {
        return None;
    }
    if code == TIMED_OUT {
        return Some("it did not end in time, and was ended by timeout".to_owned());
    }
    let last = side
        .log
        .lines()
        .rev()
        .find(|line| line.trim().chars().any(char::is_alphanumeric));
    Some(match last {
        Some(line) => format!(
            "exit code {code}: {}",
            line.trim().chars().take(200).collect::<String>()
        ),
        None => format!("exit code {code}, and nothing in its log"),
    })
}
