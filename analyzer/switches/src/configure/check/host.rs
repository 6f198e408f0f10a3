//! A host's settings, by doctor's checks of its snapshot.

use std::collections::BTreeSet;

use roce_hosts::doctor::{Host, Plan, Status, judge, ports_of};

use super::super::change::Change;
use super::super::settings::Settings;
use super::super::step::Step;
use crate::inventory::Cluster;

/// Doctor's checks of what `configure host` sets, in the order in which changes are applied.
const CHECKS: [&str; 7] = [
    "pfc.and_pause",
    "pfc.enabled",
    "pfc.others",
    "qos.trust",
    "qos.map",
    "roce.tos",
    "mtu.interface",
];

/// The state of a host's settings.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct HostState {
    /// Changes that are needed.
    pub changes: Vec<Change>,
    /// Checks whose values could not be read, each with the reason.
    pub unknown: Vec<(&'static str, String)>,
}

/// Compares a snapshot of a host, for an interface.
///
/// # Errors
/// If the snapshot has no such interface, or no check concerns it.
pub fn check_host(
    cluster: &Cluster,
    settings: &Settings,
    host: &Host,
    interface: &str,
) -> Result<HostState, String> {
    let mtu_file = format!("sys/class/net/{interface}/mtu");
    // A text of one tool has the settings of an interface, and nothing else.
    let is_named = || {
        let end = format!(".{interface}.json");
        host.names("answers").iter().any(|name| name.ends_with(&end))
    };
    if !(host.has(&mtu_file) || host.is_partial && is_named()) {
        return Err(format!("there is no interface {interface}"));
    }
    let plan = Plan {
        priority: cluster.priority,
        dscp: cluster.dscp,
        cnp_dscp: cluster.cnp_dscp,
        firmware: Vec::new(),
        cable_metres: None,
        peers: Vec::new(),
        nccl_log: None,
    };
    // Objects of the interface: itself, and the ports of its RDMA device.
    let mut objects = BTreeSet::from([interface.to_owned()]);
    for port in ports_of(host, interface) {
        objects.insert(format!("rdma_cm {port}"));
        objects.insert(port);
    }
    let names: Vec<String> = CHECKS.map(str::to_owned).to_vec();
    let mut judgements = judge(host, &plan, &names);
    let place = |id: &str| CHECKS.iter().position(|known| *known == id);
    judgements.sort_by_key(|judgement| place(judgement.id));
    let mut state = HostState::default();
    let mut commands = BTreeSet::new();
    let mut is_checked = false;
    for judgement in judgements {
        let outcome = judgement.outcome;
        let is_own = objects.contains(&outcome.object);
        is_checked |= is_own;
        match outcome.status {
            Status::Warning | Status::Critical if is_own => {
                // Two checks can have one command.
                let fresh: Vec<String> = outcome
                    .fix
                    .iter()
                    .filter(|command| commands.insert((*command).clone()))
                    .cloned()
                    .collect();
                let mut comments = outcome.advice;
                if !outcome.expected.is_empty() {
                    comments.insert(0, format!("Expected: {}", outcome.expected));
                }
                state.changes.push(Change {
                    id: judgement.id,
                    text: outcome.summary,
                    step: Step {
                        comments,
                        commands: fresh,
                    },
                });
            }
            Status::Unknown if is_own || outcome.object == "host" => {
                state.unknown.push((judgement.id, outcome.summary));
            }
            _ => {}
        }
    }
    if !is_checked {
        return Err(format!(
            "{interface} is no port of an RDMA adapter that owns it: there is nothing to compare"
        ));
    }
    let known: Option<u64> = host.number(&mtu_file).ok();
    if let (Some(wanted), Some(known)) = (settings.mtu, known)
        && wanted != known
        && !state.changes.iter().any(|change| change.id == "mtu.interface")
    {
        let line = format!("ip link set {interface} mtu {wanted}");
        let text = format!("{interface}: the MTU is {known} bytes, not {wanted}");
        state.changes.push(Change::new("mtu.interface", text, &[&line]));
    }
    Ok(state)
}
