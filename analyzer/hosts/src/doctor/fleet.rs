//! Checks over several hosts.

use std::collections::BTreeMap;

use roce_model::{Counter, Severity};

use crate::doctor::check::{CERTAIN, Check, CheckRun, Judgement, Outcome, ReadValue};
use crate::doctor::facts::{Facts, PortGid, RdmaPort};
use crate::doctor::gid::{common, fitting, subnet};

/// Their functions are called with all hosts; see [`judge`].
pub(crate) const CHECKS: &[Check] = &[
    Check {
        id: "mtu.peers",
        title: "hosts of one subnet have one MTU",
        read: "MTU of the RDMA interfaces of all hosts",
        method: "interfaces of one subnet differ: warning",
        meaning: "The larger frames of one side are dropped by the other.",
        symptom: "RDMA hangs, and ping works.",
        alternatives: "mtu.path",
        source: "IEEE 802.3",
        severity: Severity::Warning,
        run: CheckRun::new("mtu", none),
        ..CERTAIN
    },
    Check {
        id: "fleet.duplicate_address",
        title: "no address is used twice",
        read: "addresses of the RDMA devices of all hosts",
        method: "one IP address on two hosts: warning",
        meaning: "Packets for one host arrive at the other.",
        symptom: "Connections reach the wrong host, now and then.",
        source: "RFC 5227",
        severity: Severity::Warning,
        run: CheckRun::new("fleet", none),
        ..CERTAIN
    },
    Check {
        id: "fleet.same",
        title: "hosts are alike",
        read: "kernel, drivers, firmware, MTU and PFC of all hosts",
        method: "a host differs from the majority: warning",
        meaning: "The odd one out slows the whole job.",
        symptom: "One host is always the last.",
        alternatives: "firmware.same",
        source: "majority of the hosts themselves",
        severity: Severity::Warning,
        confidence: "certain; likely where the outcome says so",
        run: CheckRun::new("fleet", none),
        ..CERTAIN
    },
    Check {
        id: "fleet.rails",
        title: "device N of every host is on rail N",
        read: "subnets of the devices of all hosts, in order of their PCI addresses, as NCCL sorts them",
        method: "one place has different subnets on two hosts: warning",
        meaning: "Ranks pair the devices by their place.",
        symptom: "Pairs of ranks talk across rails.",
        alternatives: "nccl.rails",
        source: "NVIDIA/nccl, src/transport/net_ib (order by PCI path)",
        severity: Severity::Warning,
        run: CheckRun::new("fleet", none),
        ..CERTAIN
    },
    Check {
        id: "fleet.gid_index",
        title: "one index of addresses fits all hosts",
        read: "tables of addresses of all hosts; NCCL_IB_GID_INDEX and UCX_IB_GID_INDEX",
        method: "no index is RoCE v2 with a routable address on the active devices of all hosts: warning where a host has such a variable, \
                 otherwise information",
        meaning: "One variable is given to all processes of a job. Pods and virtual functions get their addresses at indexes of their own: \
                  a number that fits one host names an empty entry, or RoCE v1, on another.",
        symptom: "Some pods connect and others fail: 'ibv_modify_qp failed', 'invalid GID'.",
        alternatives: "gid.choice",
        source: "NVIDIA NCCL documentation: since 2.21 NCCL finds the index itself, by NCCL_IB_ROCE_VERSION_NUM and NCCL_IB_ADDR_FAMILY",
        severity: Severity::Warning,
        run: CheckRun::new("gid", none),
        ..CERTAIN
    },
    Check {
        id: "fleet.not_ready",
        title: "no host waits for receives of another",
        read: "out_of_buffer and RNR NAKs of all hosts, read twice",
        method: "packets without a receive buffer on some hosts are as many as the RNR NAKs that the others received, within 1 %: warning",
        meaning: "Each of these packets was refused with an RNR NAK, and its sender waited for the RNR timer. The receiving program posts too late.",
        symptom: "Senders stop for 10 us to 655 ms at a time, and the network has no marks, pauses or losses.",
        alternatives: "counters.interval",
        source: "IBTA 9.7.5.2.8 (RNR NAK); mlx5 counters out_of_buffer and rnr_nak_retry_err",
        severity: Severity::Warning,
        confidence: "likely",
        run: CheckRun::new("fleet", none),
        ..CERTAIN
    },
];

/// Packets without a receive buffer from which on they are compared with RNR NAKs.
const MIN_NOT_READY: f64 = 100.0;
/// Share by which the two may differ: hosts are not read at one moment.
const EQUAL_DIFFERENCE: f64 = 0.01;

/// Variables that choose one index for all devices.
const INDEX_VARIABLES: [&str; 2] = ["NCCL_IB_GID_INDEX", "UCX_IB_GID_INDEX"];

fn none(_: &Facts<'_>) -> Vec<Outcome> {
    Vec::new()
}

/// Outcomes over all hosts; none for a single one.
pub(crate) fn judge(all: &[Facts<'_>]) -> Vec<Judgement> {
    if all.len() < 2 {
        return Vec::new();
    }
    let outcomes = [
        ("mtu.peers", "mtu", peers(all)),
        ("fleet.duplicate_address", "fleet", duplicates(all)),
        ("fleet.same", "fleet", same(all)),
        ("fleet.rails", "fleet", rails(all)),
        ("fleet.gid_index", "gid", gid_index(all)),
        ("fleet.not_ready", "fleet", not_ready(all)),
    ];
    let mut judgements = Vec::new();
    for (id, group, outcomes) in outcomes {
        judgements.extend(
            outcomes
                .into_iter()
                .map(|outcome| Judgement { id, group, outcome }),
        );
    }
    judgements
}

/// Hosts without receive buffers, against those that got RNR NAKs.
fn not_ready(all: &[Facts<'_>]) -> Vec<Outcome> {
    let grown = |counter: Counter| -> Vec<(&str, f64)> {
        let hosts = all.iter().map(|facts| {
            let changes = facts.counters.iter().filter(|moved| moved.counter == counter);
            let sum: f64 = changes.filter_map(|moved| moved.change).sum();
            (facts.host.name.as_str(), sum)
        });
        hosts.filter(|(_, sum)| *sum > 0.0).collect()
    };
    let (missing, naks) = (
        grown(Counter::PortOutOfBufferDrops),
        grown(Counter::PortRnrNaksReceived),
    );
    // A host that counts both can have them between two programs of its own.
    let is_apart = missing
        .iter()
        .all(|(host, _)| naks.iter().all(|(other, _)| host != other));
    let sum = |all: &[(&str, f64)]| all.iter().map(|(_, count)| count).sum::<f64>();
    let (lost, waited) = (sum(&missing), sum(&naks));
    if !is_apart || lost < MIN_NOT_READY || (lost - waited).abs() > lost.max(waited) * EQUAL_DIFFERENCE {
        return Vec::new();
    }
    let names = |all: &[(&str, f64)]| all.iter().map(|(host, _)| *host).collect::<Vec<_>>().join(", ");
    let (receivers, senders) = (names(&missing), names(&naks));
    vec![
        Outcome::warning(
            &receivers,
            format!(
                "{lost:.0} packets arrived at {receivers} without a receive buffer, and {senders} received {waited:.0} RNR NAKs: each is one of them"
            ),
        )
        .seen("out_of_buffer", format!("{lost:.0} at {receivers}"))
        .seen("rnr_nak_retry_err", format!("{waited:.0} at {senders}"))
        .expected("receives that are posted before the packets come")
        .advice("post receives earlier, or more of them, in the program that receives")
        .likely(),
    ]
}

fn peers(all: &[Facts<'_>]) -> Vec<Outcome> {
    // Subnet: host, interface and MTU.
    let mut subnets: BTreeMap<String, Vec<(String, u32)>> = BTreeMap::new();
    for facts in all {
        for (_, port) in facts.ports().filter(|(_, port)| port.is_active()) {
            let address = port.best_gid().and_then(PortGid::routable);
            let (Some(address), Some(interface)) = (address, port.interfaces.first()) else {
                continue;
            };
            if let Ok(mtu) = facts.host.number(&format!("sys/class/net/{interface}/mtu")) {
                let name = format!("{} {interface}", facts.host.name);
                subnets.entry(subnet(address)).or_default().push((name, mtu));
            }
        }
    }
    let mut outcomes = Vec::new();
    for (net, ends) in subnets {
        if ends.len() < 2 {
            continue;
        }
        let first = ends[0].1;
        let seen: Vec<String> = ends.iter().map(|(name, mtu)| format!("{name} {mtu}")).collect();
        let outcome = if ends.iter().any(|(_, mtu)| *mtu != first) {
            Outcome::warning(&net, format!("MTUs differ in {net}: {}", seen.join(", ")))
                .expected("one MTU")
                .fix("ip link set INTERFACE mtu 9000")
        } else {
            Outcome::ok(&net, format!("all interfaces in {net} have MTU {first}"))
        };
        outcomes.push(outcome.seen("sys/class/net/*/mtu", seen.join(", ")));
    }
    outcomes
}

fn gid_index(all: &[Facts<'_>]) -> Vec<Outcome> {
    let ports = |facts: &Facts<'_>| -> Vec<RdmaPort> {
        let active = facts.ports().filter(|(_, port)| port.is_active());
        active.map(|(_, port)| port.clone()).collect()
    };
    let of_hosts: Vec<(String, Vec<RdmaPort>)> = all
        .iter()
        .map(|facts| (facts.host.name.clone(), ports(facts)))
        .collect();
    let Some(common) = common(of_hosts.iter().flat_map(|(_, ports)| ports)) else {
        return Vec::new();
    };
    let seen: Vec<String> = of_hosts
        .iter()
        .flat_map(|(host, ports)| {
            ports.iter().map(move |port| {
                let indexes = fitting(port);
                let indexes: Vec<String> = indexes.iter().map(ToString::to_string).collect();
                format!("{host} {}: {}", port.object, indexes.join(", "))
            })
        })
        .collect();
    let source = "sys/class/infiniband/*/ports/*/gids";
    let said = seen.join("; ");
    if let Some(index) = common.first() {
        let text = format!("index {index} is RoCE v2 with a routable address on all hosts");
        return vec![Outcome::ok("fleet", text).seen(source, said)];
    }
    let text = "no index of addresses fits all hosts";
    let set = INDEX_VARIABLES.into_iter().find_map(|name| {
        let mut values = all.iter().filter_map(|facts| facts.host.variable(name));
        values.next().map(|value| (name, value))
    });
    let outcome = match set {
        Some((name, value)) => Outcome::warning("fleet", format!("{name}={value}, and {text}"))
            .expected("no fixed index")
            .fix(format!("unset {name}"))
            .advice(
                "NCCL from 2.21 on chooses by NCCL_IB_ROCE_VERSION_NUM=2 and NCCL_IB_ADDR_FAMILY=AF_INET",
            ),
        None => Outcome::info("fleet", format!("{text}: leave NCCL_IB_GID_INDEX unset")),
    };
    vec![outcome.seen(source, said)]
}

fn duplicates(all: &[Facts<'_>]) -> Vec<Outcome> {
    let mut owners: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for facts in all {
        for (_, port) in facts.ports() {
            for address in port.gids.iter().filter_map(PortGid::routable) {
                let names = owners.entry(address.to_string()).or_default();
                if !names.contains(&facts.host.name) {
                    names.push(facts.host.name.clone());
                }
            }
        }
    }
    let twice = owners.iter().filter(|(_, names)| names.len() > 1);
    let outcomes: Vec<Outcome> = twice
        .map(|(address, names)| {
            let names = names.join(", ");
            Outcome::warning(address, format!("{address} is an address of {names}"))
                .seen("sys/class/infiniband/*/ports/*/gids", names)
                .expected("one host")
        })
        .collect();
    if outcomes.is_empty() && !owners.is_empty() {
        let said = format!("{} addresses, none twice", owners.len());
        return vec![Outcome::ok("fleet", said.clone()).seen("sys/class/infiniband/*/ports/*/gids", said)];
    }
    outcomes
}

/// Properties of a host that should be those of the others.
fn properties(facts: &Facts<'_>) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    let mut put = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            all.insert(name.to_owned(), value);
        }
    };
    let uname = facts.host.json("answers/uname.json").ok();
    let release = uname.and_then(|uname| Some(uname.get("release")?.as_str()?.to_owned()));
    put("kernel", release);
    let joined = |mut values: Vec<String>| {
        values.sort();
        values.dedup();
        (!values.is_empty()).then(|| values.join(" "))
    };
    let devices = || facts.devices.iter();
    put(
        "driver",
        joined(devices().filter_map(|device| device.driver.clone()).collect()),
    );
    let firmware = devices().filter_map(|device| facts.host.text(&format!("{}/fw_ver", device.path)));
    put("firmware", joined(firmware.collect()));
    put("RDMA devices", Some(facts.devices.len().to_string()));
    let netdevs = || facts.ports_of_hosts();
    let mtus = netdevs().filter_map(|netdev| facts.host.text(&format!("sys/class/net/{}/mtu", netdev.name)));
    put("MTU", joined(mtus.collect()));
    for (name, question) in [("PFC", "dcb-pfc"), ("DSCPs", "dcb-app")] {
        let answers = netdevs().filter_map(|netdev| {
            let answer = facts
                .host
                .json(&format!("answers/{question}.{}.json", netdev.name))
                .ok()?;
            let key = if name == "PFC" { "prio_pfc" } else { "dscp_prio" };
            Some(answer.get(key)?.to_string())
        });
        put(name, joined(answers.collect()));
    }
    all
}

fn same(all: &[Facts<'_>]) -> Vec<Outcome> {
    let hosts: Vec<(&str, BTreeMap<String, String>)> = all
        .iter()
        .map(|facts| (facts.host.name.as_str(), properties(facts)))
        .collect();
    let mut names: Vec<&String> = hosts.iter().flat_map(|(_, all)| all.keys()).collect();
    names.sort();
    names.dedup();
    let mut outcomes = Vec::new();
    for name in names {
        let values: Vec<(&str, &String)> = hosts
            .iter()
            .filter_map(|(host, all)| Some((*host, all.get(name)?)))
            .collect();
        let count = |value: &String| values.iter().filter(|(_, other)| *other == value).count();
        let usual = values
            .iter()
            .map(|(_, value)| *value)
            .max_by_key(|value| count(value));
        let Some(usual) = usual else { continue };
        let odd: Vec<String> = values
            .iter()
            .filter(|(_, value)| *value != usual)
            .map(|(host, value)| format!("{host} {value}"))
            .collect();
        let outcome = if odd.is_empty() {
            Outcome::ok(
                name,
                format!("{name} is the same on {} hosts: {usual}", values.len()),
            )
        } else if count(usual) * 2 > values.len() {
            Outcome::warning(name, format!("{name} is {usual}, but: {}", odd.join(", "))).expected(usual)
        } else {
            let seen: Vec<String> = values
                .iter()
                .map(|(host, value)| format!("{host} {value}"))
                .collect();
            Outcome::warning(name, format!("{name} differs: {}", seen.join(", "))).likely()
        };
        let mut outcome = outcome;
        outcome.seen.push(ReadValue {
            source: "all hosts".to_owned(),
            value: usual.clone(),
        });
        outcomes.push(outcome);
    }
    outcomes
}

fn rails(all: &[Facts<'_>]) -> Vec<Outcome> {
    let lists: Vec<(String, Vec<String>)> = all
        .iter()
        .map(|facts| {
            let mut places: Vec<(String, String)> = Vec::new();
            for device in &facts.devices {
                let address = device
                    .ports
                    .iter()
                    .filter(|port| port.is_active())
                    .find_map(|port| port.best_gid()?.routable());
                if let (Some(pci), Some(address)) = (&device.pci, address) {
                    places.push((pci.clone(), subnet(address)));
                }
            }
            places.sort();
            let subnets = places.into_iter().map(|(_, net)| net).collect();
            (facts.host.name.clone(), subnets)
        })
        .collect();
    let (first, rails) = &lists[0];
    let mut outcomes = Vec::new();
    for (host, other) in &lists[1..] {
        if rails.is_empty() || other.is_empty() {
            continue;
        }
        let place = rails.iter().zip(other).position(|(a, b)| a != b);
        let seen = format!("{first}: {}; {host}: {}", rails.join(" "), other.join(" "));
        outcomes.push(
            match place {
                Some(place) => Outcome::warning(
                    host,
                    format!(
                        "device {place} is in {} on {first} and in {} on {host}",
                        rails[place], other[place]
                    ),
                )
                .expected("the same subnets in the order of the PCI addresses"),
                None if rails.len() != other.len() => Outcome::warning(
                    host,
                    format!("{first} has {} rails and {host} has {}", rails.len(), other.len()),
                ),
                None => Outcome::ok(host, format!("{} rails as on {first}", rails.len())),
            }
            .seen("sys/class/infiniband/*/ports/*/gids", seen),
        );
    }
    outcomes
}
