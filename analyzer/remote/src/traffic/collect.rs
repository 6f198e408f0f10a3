//! Logs of a run, its hosts' counters, and the removal of what it left on the hosts.

use std::time::Duration;

use roce_jobs::traffic::Role;

use super::parallel::{Machines, each};
use super::record::{HostRecord, RunRecord};
use super::script;
use super::start::{COUNTERS, MAX_ANSWER_BYTES, Preflight};
use crate::quoted;

/// Bytes of a log; iperf3's document grows by a kilobyte a second.
const MAX_LOG_BYTES: u64 = 32 << 20;
/// Time for one log.
const LOG_PATIENCE: Duration = Duration::from_mins(1);
/// Time of a reading of counters before and behind the run.
const READING: Duration = Duration::from_secs(1);

/// A log of one side of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    /// The stream's number; 0: counters of the host during the run.
    pub number: usize,
    /// The side.
    pub role: Role,
    /// The host.
    pub host: String,
    /// The text, or why there is none.
    pub text: Result<String, String>,
}

/// Fetches logs, some hosts at once, and gives each of them to `take`. `wants_all`: those of servers and counters, too.
pub fn collect(record: &RunRecord, machines: &Machines, wants_all: bool, take: &(dyn Fn(Log) + Sync)) {
    each(&record.hosts, |host| {
        for stream in record
            .streams
            .iter()
            .filter(|stream| stream.failure.is_none() || wants_all)
        {
            let sides = [
                (Role::Client, &stream.client_host),
                (Role::Server, &stream.server_host),
            ];
            for (role, of) in sides {
                if *of == host.name && (wants_all || role == Role::Client) {
                    take(Log {
                        number: stream.number,
                        role,
                        host: host.name.clone(),
                        text: log(machines, host, &script::side(stream.number, role)),
                    });
                }
            }
        }
        if wants_all && let Ok(text) = log(machines, host, COUNTERS) {
            take(Log {
                number: 0,
                role: Role::Client,
                host: host.name.clone(),
                text: Ok(text),
            });
        }
    });
}

fn log(machines: &Machines, host: &HostRecord, name: &str) -> Result<String, String> {
    let machine = machines.get(&host.name).ok_or("it is not known")?;
    let script = script::log(&host.folder, name).map_err(|error| error.to_string())?;
    let bytes = machine
        .run_within(&script, LOG_PATIENCE, MAX_LOG_BYTES)
        .map_err(|error| error.to_string())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Counters of hosts over a second, as the document of `roce-analyze host counters`; hosts without it give none. `analyze` is the path of
/// this program, for hosts that are this machine.
pub fn counters(hosts: &[String], machines: &Machines, analyze: &str) -> Vec<(String, String)> {
    let read = each(hosts, |host| {
        let machine = machines.get(host)?;
        let program = if machine.is_local() {
            analyze
        } else {
            "roce-analyze"
        };
        let program = quoted([program]).ok()?;
        let script = format!(
            "command -v {program} > /dev/null && exec {program} host counters --all --format json --duration {}s 2> /dev/null",
            READING.as_secs()
        );
        let bytes = machine.run_within(&script, LOG_PATIENCE, MAX_ANSWER_BYTES).ok()?;
        Some((host.clone(), String::from_utf8_lossy(&bytes).into_owned()))
    });
    read.into_iter().flatten().collect()
}

/// Removes the folders of a run that was not started.
pub fn discard(found: &Preflight, machines: &Machines) {
    let folders: Vec<(&String, &str)> = found
        .facts
        .iter()
        .map(|(host, facts)| (host, facts.folder.as_str()))
        .collect();
    each(&folders, |(host, folder)| {
        if let (Some(machine), Ok(script)) = (machines.get(*host), script::clean(folder)) {
            // A folder that stays holds up other runs for some seconds only.
            let _ = machine.run(&script, MAX_ANSWER_BYTES);
        }
    });
}

/// Removes a run's folders on its hosts. Hosts where it failed, and why.
pub fn clean(record: &RunRecord, machines: &Machines) -> Vec<(String, String)> {
    let results = each(&record.hosts, |host| {
        let machine = machines.get(&host.name).ok_or("it is not known".to_owned())?;
        let script = script::clean(&host.folder).map_err(|error| error.to_string())?;
        machine
            .run(&script, MAX_ANSWER_BYTES)
            .map_err(|error| error.to_string())
    });
    let failed = record.hosts.iter().zip(results).filter_map(|(host, result)| {
        let error = result.err()?;
        Some((host.name.clone(), error))
    });
    failed.collect()
}
