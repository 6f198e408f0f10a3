//! Command lines of perftest and iperf3.
//!
//! Options are those of Debian 12 (perftest 4.5+0.17, iperf3 3.12; their manual pages). `--run_infinitely` is never among them: with it
//! perftest ignores the duration.

use super::plan::{Report, Tool, TrafficPlan};
use super::stream::{Role, Stream};

/// Facts about the hosts that a command line needs.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// Index of the GID on the side that runs the command; absent: perftest chooses.
    pub gid: Option<u32>,
    /// The server's address, for the client.
    pub peer: &'a str,
}

/// The words of one side's command.
pub fn words(plan: &TrafficPlan, stream: &Stream, role: Role, facts: Facts<'_>) -> Vec<String> {
    if plan.tool == Tool::Iperf3 {
        iperf3(plan, stream, role, facts)
    } else {
        perftest(plan, stream, role, facts)
    }
}

fn port(stream: &Stream) -> String {
    // A plan with too few ports is shown, and not run.
    stream
        .port
        .map_or_else(|| "PORT".to_owned(), |port| port.to_string())
}

fn perftest(plan: &TrafficPlan, stream: &Stream, role: Role, facts: Facts<'_>) -> Vec<String> {
    let end = stream.end(role);
    let mut words = vec![plan.tool.name().to_owned()];
    let mut option = |name: &str, value: String| words.extend([name.to_owned(), value]);
    option("-d", end.device.clone().unwrap_or_default());
    option("-i", end.port.to_string());
    if let Some(gid) = facts.gid {
        option("-x", gid.to_string());
    }
    option("-p", port(stream));
    option("-s", stream.size.to_string());
    if plan.tool.is_bandwidth() {
        option("-q", stream.qps.to_string());
    }
    option("-D", plan.duration.as_secs().to_string());
    // Without it there is no result where cores have different clock rates.
    words.push("-F".to_owned());
    if plan.tool.is_bandwidth() && plan.report == Report::Gbits {
        words.push("--report_gbits".to_owned());
    }
    if let Some(tclass) = plan.tclass {
        words.push(format!("--tclass={tclass}"));
    }
    words.extend(plan.options.iter().cloned());
    if role == Role::Client {
        words.push(facts.peer.to_owned());
    }
    words
}

fn iperf3(plan: &TrafficPlan, stream: &Stream, role: Role, facts: Facts<'_>) -> Vec<String> {
    let mut words = vec!["iperf3".to_owned()];
    let mut option = |name: &str, value: String| words.extend([name.to_owned(), value]);
    if role == Role::Server {
        option("-p", port(stream));
        // One client, then it ends.
        words.extend(["-s", "-1", "-J"].map(str::to_owned));
        // Options of iperf3 are the client's: it passes them on.
        return words;
    }
    option("-c", facts.peer.to_owned());
    option("-p", port(stream));
    option("-t", plan.duration.as_secs().to_string());
    option("-l", stream.size.to_string());
    option("-P", stream.qps.to_string());
    if let Some(tclass) = plan.tclass {
        option("-S", tclass.to_string());
    }
    if let Some(address) = &stream.client.address {
        option("-B", address.clone());
    }
    words.push("-J".to_owned());
    words.extend(plan.options.iter().cloned());
    words
}
