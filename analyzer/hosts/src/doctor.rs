//! Checks of a host's RDMA setup, as pure functions over a snapshot.

mod check;
mod config_space;
mod counters;
mod ecn;
pub(crate) mod facts;
mod firmware;
mod fleet;
mod gid;
pub(crate) mod gpu;
pub(crate) mod host;
mod infiniband;
mod interval;
mod limits;
mod link;
mod machine;
mod mlxlink;
mod nccl;
mod pci;
mod pfc;
mod qos;
mod rdma;
mod sriov;

use std::collections::BTreeSet;
use std::net::IpAddr;

pub use check::{Check, CheckRun, Judgement, Outcome, ReadValue, Status};
pub use counters::{LATER, MovedCounter};
pub use facts::{Netdev, Plan, PortGid, RdmaDevice, RdmaPort, netdev_names, physical_adapters};
pub use gid::path_mtu;
pub use host::{Host, LINKS, UNREADABLE, Unknown};

use facts::Facts;
use host::source_of;

/// The tables of all families, in the order in which they are shown.
const FAMILIES: [&[Check]; 17] = [
    rdma::CHECKS,
    link::CHECKS,
    mlxlink::CHECKS,
    infiniband::CHECKS,
    gid::CHECKS,
    pfc::CHECKS,
    qos::CHECKS,
    ecn::CHECKS,
    interval::CHECKS,
    limits::CHECKS,
    machine::CHECKS,
    pci::CHECKS,
    gpu::CHECKS,
    firmware::CHECKS,
    sriov::CHECKS,
    nccl::CHECKS,
    fleet::CHECKS,
];

/// All checks.
pub fn checks() -> impl Iterator<Item = &'static Check> {
    FAMILIES.iter().copied().flatten()
}

/// The checks' groups, each once, in the order in which they are shown.
pub fn groups() -> Vec<&'static str> {
    let mut all: Vec<&str> = Vec::new();
    for check in checks() {
        if !all.contains(&check.run.group) {
            all.push(check.run.group);
        }
    }
    all
}

/// Runs the checks of these groups or names over one host; all, where none is named.
///
/// A check that finds nothing that it concerns has one outcome, "not applicable".
pub fn judge(host: &Host, plan: &Plan, only: &[String]) -> Vec<Judgement> {
    let facts = Facts::new(host, plan);
    let sources = if host.is_partial {
        sources(host)
    } else {
        BTreeSet::new()
    };
    let mut all = Vec::new();
    for check in wanted(only) {
        let mut outcomes = (check.run.judge)(&facts);
        if host.is_partial {
            for outcome in &mut outcomes {
                without_absence(outcome, &sources);
            }
        }
        if outcomes.is_empty() {
            outcomes.push(Outcome::new(
                Status::NotApplicable,
                "host",
                "there is nothing here that it concerns",
            ));
        }
        all.extend(outcomes.into_iter().map(|outcome| Judgement {
            id: check.id,
            group: check.run.group,
            outcome,
        }));
    }
    all
}

/// Where the values of a text stand: its files, and the folders that they are in.
fn sources(host: &Host) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for (path, _) in host.files() {
        all.insert(source_of(path));
        all.extend(path.match_indices('/').map(|(at, _)| format!("/{}", &path[..at])));
    }
    all
}

/// Makes an outcome unknown that was concluded from something absent: a text has only what somebody asked for.
fn without_absence(outcome: &mut Outcome, sources: &BTreeSet<String>) {
    if matches!(outcome.status, Status::NotApplicable | Status::Unknown) {
        return;
    }
    let is_absent = |seen: &&ReadValue| seen.value.contains("not there") || !sources.contains(&seen.source);
    if let Some(seen) = outcome.seen.iter().find(is_absent) {
        let unknown = Unknown {
            source: seen.source.clone(),
            why: "the text does not have it".to_owned(),
        };
        *outcome = Outcome::unknown(outcome.object.clone(), unknown);
    }
}

/// Compares several hosts.
pub fn judge_fleet(hosts: &[Host], plan: &Plan, only: &[String]) -> Vec<Judgement> {
    let facts: Vec<Facts<'_>> = hosts.iter().map(|host| Facts::new(host, plan)).collect();
    let wanted: Vec<&str> = wanted(only).map(|check| check.id).collect();
    let mut all = fleet::judge(&facts);
    all.retain(|judgement| wanted.contains(&judgement.id));
    all
}

fn wanted(only: &[String]) -> impl Iterator<Item = &'static Check> {
    checks().filter(move |check| {
        only.is_empty()
            || only
                .iter()
                .any(|name| name == check.run.group || name == check.id)
    })
}

/// Device, port and address that programs should use.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecommendedAddress {
    /// The RDMA device.
    pub device: String,
    /// Its port.
    pub port: u32,
    /// The index of the address.
    pub gid_index: u32,
    /// The address.
    pub ip: Option<IpAddr>,
}

/// An active port with a RoCE v2 address, for each device that has one.
pub fn recommended(host: &Host) -> Vec<RecommendedAddress> {
    let plan = Plan::default();
    let facts = Facts::new(host, &plan);
    let ports = facts.ports().filter(|(_, port)| port.is_active());
    ports
        .filter_map(|(device, port)| {
            let gid = port.best_gid()?;
            Some(RecommendedAddress {
                device: device.name.clone(),
                port: port.number,
                gid_index: gid.index,
                ip: gid.routable(),
            })
        })
        .collect()
}

/// The RDMA ports of an interface, as outcomes name them: `mlx5_0:1`.
pub fn ports_of(host: &Host, interface: &str) -> Vec<String> {
    let plan = Plan::default();
    let facts = Facts::new(host, &plan);
    let ports = facts
        .ports()
        .filter(|(_, port)| port.interfaces.iter().any(|known| known == interface));
    ports.map(|(_, port)| port.object.clone()).collect()
}

#[cfg(test)]
mod tests;
