//! The end of a run: its own processes, by the id in their environment, and no others.

use std::time::Duration;

use super::parallel::{Machines, each};
use super::record::{HostRecord, RunRecord};
use super::script::{self, EndedProcesses, HostRun};
use super::start::MAX_ANSWER_BYTES;

/// Time of a host beyond that of a connection: 3 s from TERM to KILL, on a busy host.
const STOP_PATIENCE: Duration = Duration::from_mins(2);
/// Processes that are named.
const MAX_LEFT: usize = 100;

/// A host on which a run was ended.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct StoppedHost {
    /// Its name.
    pub host: String,
    /// Processes of the run that lived.
    pub found: u64,
    /// Those that had to be killed.
    pub killed: u64,
    /// Processes that are still there: pid and program.
    pub left: Vec<String>,
    /// Why the host gave no answer.
    pub error: Option<String>,
}

/// Ends a run's processes on all its hosts: clients first, because a client whose server ends reports a failure, or results of half the
/// time. A run that has ended is ended again without harm.
pub fn stop(record: &RunRecord, machines: &Machines) -> Vec<StoppedHost> {
    let of = |host: &HostRecord, which| {
        let answer = of_host(record, machines, host, which);
        answer.map(|text| parse(&text))
    };
    let clients = each(&record.hosts, |host| of(host, EndedProcesses::Clients));
    let both: Vec<_> = record.hosts.iter().zip(clients).collect();
    each(&both, |(host, clients)| {
        // A host that gave no answer is not asked twice: each time takes as long as a connection may.
        let stopped = clients.clone().and_then(|clients| {
            let all = of(host, EndedProcesses::All)?;
            Ok(StoppedHost {
                found: clients.found,
                killed: clients.killed + all.killed,
                ..all
            })
        });
        let mut stopped = stopped.unwrap_or_else(|error| StoppedHost {
            error: Some(error),
            ..StoppedHost::default()
        });
        stopped.host.clone_from(&host.name);
        stopped
    })
}

fn of_host(
    record: &RunRecord,
    machines: &Machines,
    host: &HostRecord,
    which: EndedProcesses,
) -> Result<String, String> {
    let machine = machines.get(&host.name).ok_or("it is not known")?;
    let place = HostRun {
        id: &record.id,
        host: &host.name,
    };
    let script = script::stop(place, which).map_err(|error| error.to_string())?;
    let answer = machine
        .run_within(&script, STOP_PATIENCE, MAX_ANSWER_BYTES)
        .map_err(|error| error.to_string())?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

fn parse(text: &str) -> StoppedHost {
    let mut stopped = StoppedHost::default();
    for line in text.lines() {
        match line.split_once('=') {
            Some(("found", count)) => stopped.found = count.parse().unwrap_or(0),
            Some(("killed", count)) => stopped.killed = count.parse().unwrap_or(0),
            Some(("left", process)) if stopped.left.len() < MAX_LEFT => stopped.left.push(process.to_owned()),
            _ => {}
        }
    }
    stopped
}
