//! Checks of what NCCL is given and takes.

use roce_model::{Counter, Severity};

use crate::doctor::check::{CERTAIN, Check, CheckRun, Outcome, Status};
use crate::doctor::facts::{Facts, RdmaPort};
use crate::doctor::gid::subnet;
use crate::doctor::host::Unknown;
use crate::hca::NcclFilter;

pub(crate) const CHECKS: &[Check] = &[
    Check {
        id: "nccl.hca",
        title: "NCCL_IB_HCA names what it means",
        read: "NCCL_IB_HCA of the environment (with --pid, of that process), /etc/nccl.conf, ~/.nccl.conf; UCX_NET_DEVICES",
        method: "a name that matches nothing: critical; a prefix that matches several devices, a port that is not ACTIVE, or blanks in it: warning; \
                 a port of UCX_NET_DEVICES that is none here: warning",
        meaning: "The variable is a filter by prefix: mlx5_1 matches mlx5_10. Names that match nothing are skipped without a word.",
        symptom: "Half of the bandwidth, and no message.",
        alternatives: "nccl.rails",
        source: "NVIDIA/nccl, src/transport/net_ib",
        severity: Severity::Critical,
        run: CheckRun::new("nccl", nccl_hca),
        ..CERTAIN
    },
    Check {
        id: "nccl.rails",
        title: "rails do not need routes that are missing",
        read: "NCCL_CROSS_NIC; addresses of the active ports",
        method: "devices in different subnets and NCCL_CROSS_NIC of 1 or 2: warning",
        meaning: "With NCCL_CROSS_NIC ranks talk across rails, which needs routes between their subnets.",
        symptom: "The job hangs or times out at its start.",
        alternatives: "routing.rails",
        source: "NVIDIA NCCL documentation, NCCL_CROSS_NIC",
        severity: Severity::Warning,
        confidence: "certain; likely where the outcome says so",
        run: CheckRun::new("nccl", nccl_rails),
        ..CERTAIN
    },
    Check {
        id: "nccl.class",
        title: "NCCL's data is in the lossless priority",
        read: "variables of NCCL (as for nccl.hca), tc/N/traffic_class; packets by priority of the RDMA interfaces, over --duration where it is given",
        method: "NCCL is configured without NCCL_IB_TC, the adapter forces no traffic class, the lossless priority of its interface counted nothing, and \
                 others counted 10,000 packets or more: warning over an interval, information over the driver's life",
        meaning: "NCCL's queue pairs have traffic class 0 unless NCCL_IB_TC says otherwise: DSCP 0, which is priority 0, without PFC and often without ECN.",
        symptom: "Drops, retransmissions and a slow job, while every setting of host and switch is right. The finding dscp.none or dscp.plan of a capture.",
        alternatives: "qos.map",
        source: "NVIDIA NCCL documentation, NCCL_IB_TC (default 0)",
        severity: Severity::Warning,
        confidence: "likely: that the other priority's packets are NCCL's is not counted",
        run: CheckRun::new("nccl", class),
        ..CERTAIN
    },
    Check {
        id: "nccl.plugin",
        title: "NCCL uses RDMA",
        read: "the log of --nccl-log: 'Using network X', 'NET/IB'; NCCL_IB_DISABLE",
        method: "Socket on a host with RDMA devices, or NCCL_IB_DISABLE=1 with an active port: warning; otherwise the network",
        meaning: "NCCL falls back to TCP without an error.",
        symptom: "0.98 instead of 83 GiB/s.",
        alternatives: "gid.rocev2",
        source: "NVIDIA/nccl, src/init.cc",
        severity: Severity::Warning,
        run: CheckRun::new("nccl", plugin),
        ..CERTAIN
    },
];

/// The value of NCCL_IB_HCA and where it is set: the environment first, then the user's file, then the system's.
fn nccl_variable(facts: &Facts<'_>, name: &str) -> Option<(String, &'static str)> {
    if let Some(value) = facts.host.variable(name) {
        return Some((value, "answers/env.json"));
    }
    ["home/.nccl.conf", "etc/nccl.conf"]
        .into_iter()
        .find_map(|path| Some((facts.host.field(path, name)?, path)))
}

/// Devices of UCX_NET_DEVICES (`mlx5_0:1,eth0`; `all`) that are none of this host's.
fn ucx_devices(facts: &Facts<'_>) -> Vec<Outcome> {
    let object = "UCX_NET_DEVICES";
    let Some(value) = facts.host.variable(object) else {
        return Vec::new();
    };
    if facts.devices.is_empty() {
        return Vec::new();
    }
    let is_known = |name: &str| {
        let device = name.split(':').next().unwrap_or_default();
        let is_rdma = facts.devices.iter().any(|known| known.name == device);
        // A text need not name all interfaces: a name that is no RDMA device's may be one.
        let is_interface = facts.host.has(&format!("sys/class/net/{device}")) || !name.contains(':');
        is_rdma || is_interface || device == "all"
    };
    let names = value.split(',').map(|name| name.trim().trim_start_matches('^'));
    let unknown = names.filter(|name| !name.is_empty() && !is_known(name));
    unknown
        .map(|name| {
            let all: Vec<&str> = facts.devices.iter().map(|device| device.name.as_str()).collect();
            Outcome::warning(object, format!("'{name}' matches no device here"))
                .seen("answers/env.json", &value)
                .expected(all.join(", "))
        })
        .collect()
}

fn nccl_hca(facts: &Facts<'_>) -> Vec<Outcome> {
    let mut all = adapters_of_nccl(facts);
    all.extend(ucx_devices(facts));
    all
}

fn adapters_of_nccl(facts: &Facts<'_>) -> Vec<Outcome> {
    let Some((value, from)) = nccl_variable(facts, "NCCL_IB_HCA") else {
        return Vec::new();
    };
    let object = "NCCL_IB_HCA";
    let ports: Vec<(&str, &RdmaPort)> = facts
        .devices
        .iter()
        .flat_map(|device| device.ports.iter().map(|port| (device.name.as_str(), port)))
        .collect();
    let active: Vec<String> = ports
        .iter()
        .filter(|(_, port)| port.is_active())
        .map(|(_, port)| port.object.clone())
        .collect();
    let fix = format!("export NCCL_IB_HCA=={}", active.join(","));
    let is_known = ports.iter().any(|(_, port)| port.state.is_some());
    if facts.host.is_partial && !is_known {
        let source = "/sys/class/infiniband".to_owned();
        let why = "the text has no states of ports".to_owned();
        return vec![Outcome::unknown(object, Unknown { source, why })];
    }
    let filter = NcclFilter::parse(&value);
    let mut all = Vec::new();
    if value.chars().any(char::is_whitespace) || value.contains("found") {
        all.push(
            Outcome::warning(object, "it has blanks or words that are no names")
                .seen(from, &value)
                .expected("names by commas")
                .fix(fix.clone()),
        );
    }
    for entry in &filter.entries {
        let matched: Vec<&(&str, &RdmaPort)> = ports
            .iter()
            .filter(|(device, port)| entry.matches(device, port.number, filter.is_exact))
            .collect();
        let mut devices: Vec<&str> = matched.iter().map(|(device, _)| *device).collect();
        devices.dedup();
        let name = &entry.name;
        let outcome = if matched.is_empty() && !filter.is_excluding {
            Outcome::critical(object, format!("'{name}' matches no device here"))
        } else if devices.len() > 1 && !filter.is_exact {
            Outcome::warning(
                object,
                format!("'{name}' is a prefix of several devices: {}", devices.join(", ")),
            )
        } else if let Some((_, port)) = matched.iter().find(|(_, port)| !port.is_active())
            && !filter.is_excluding
            && (entry.port.is_some() || !matched.iter().any(|(_, port)| port.is_active()))
        {
            Outcome::warning(object, format!("{} is not active and is skipped", port.object))
        } else {
            all.push(Outcome::ok(object, format!("'{name}' is {}", devices.join(", "))).seen(from, &value));
            continue;
        };
        all.push(
            outcome
                .seen(from, &value)
                .expected("'=' in front, then device:port of active ports")
                .fix(fix.clone()),
        );
    }
    all
}

/// True if somebody configured NCCL here.
fn is_configured(facts: &Facts<'_>) -> bool {
    let variables = facts.host.json("answers/env.json").ok();
    let variables = variables.as_ref().and_then(serde_json::Value::as_object);
    variables.is_some_and(|all| all.keys().any(|name| name.starts_with("NCCL_")))
        || ["home/.nccl.conf", "etc/nccl.conf"]
            .into_iter()
            .any(|path| facts.host.has(path))
}

/// Packets in other priorities that show a job.
const JOB_PACKETS: f64 = 10_000.0;

/// Packets of an interface in the lossless priority and in all others.
struct PriorityPackets {
    lossless: f64,
    others: f64,
    /// True while it was watched; else since the driver was loaded.
    is_watched: bool,
}

fn packets_by_priority(facts: &Facts<'_>, interface: &str) -> Option<PriorityPackets> {
    let names = [
        Counter::PriorityReceivedPackets,
        Counter::PriorityTransmittedPackets,
    ];
    let (mut lossless, mut others, mut is_watched) = (None, 0.0, true);
    let all = facts.counters.iter().filter(|moved| moved.object == interface);
    for moved in all.filter(|moved| names.contains(&moved.counter)) {
        let packets = moved.change.unwrap_or(moved.value);
        is_watched &= moved.change.is_some();
        if moved.priority == Some(facts.plan.priority) {
            lossless = Some(lossless.unwrap_or(0.0) + packets);
        } else {
            others += packets;
        }
    }
    Some(PriorityPackets {
        lossless: lossless?,
        others,
        is_watched,
    })
}

fn class(facts: &Facts<'_>) -> Vec<Outcome> {
    if !is_configured(facts) || nccl_variable(facts, "NCCL_IB_TC").is_some() {
        return Vec::new();
    }
    let (priority, class) = (facts.plan.priority, facts.plan.dscp << 2 | 2);
    let mut all = Vec::new();
    for netdev in facts.ports_of_hosts() {
        let device = facts.devices.iter().find(|device| device.name == netdev.device);
        let is_forced = device.is_some_and(|device| {
            let forced = |port: &RdmaPort| {
                let path = format!("{}/tc/{}/traffic_class", device.path, port.number);
                facts
                    .host
                    .text(&path)
                    .is_some_and(|text| !text.trim().ends_with("=0"))
            };
            device.ports.iter().any(forced)
        });
        let name = &netdev.name;
        let Some(packets) = packets_by_priority(facts, name).filter(|_| !is_forced) else {
            continue;
        };
        let PriorityPackets { lossless, others, .. } = packets;
        let seen = format!("priority {priority}: {lossless} packets, others: {others}");
        let outcome = if lossless > 0.0 {
            Outcome::ok(name, format!("{name}: priority {priority} counts packets"))
        } else if others >= JOB_PACKETS {
            let status = if packets.is_watched {
                Status::Warning
            } else {
                Status::Info
            };
            let said = format!(
                "NCCL_IB_TC is not set, so NCCL's data has traffic class 0 = DSCP 0; {name} counted nothing in priority {priority} and {others} packets \
                 in others"
            );
            Outcome::new(status, name, said)
                .expected(format!("packets in priority {priority}"))
                .fix(format!("export NCCL_IB_TC={class}"))
        } else {
            continue;
        };
        all.push(
            outcome
                .seen(&format!("commands/ethtool_-S_{name}.txt"), seen)
                .likely(),
        );
    }
    all
}

fn nccl_rails(facts: &Facts<'_>) -> Vec<Outcome> {
    let Some((value, from)) = nccl_variable(facts, "NCCL_CROSS_NIC") else {
        return Vec::new();
    };
    let mut subnets: Vec<String> = facts
        .ports()
        .filter(|(_, port)| port.is_active())
        .filter_map(|(_, port)| port.best_gid()?.routable())
        .map(subnet)
        .collect();
    subnets.sort();
    subnets.dedup();
    if subnets.len() < 2 {
        return Vec::new();
    }
    let object = "NCCL_CROSS_NIC";
    let outcome = if value == "1" || value == "2" {
        Outcome::warning(
            object,
            format!(
                "NCCL_CROSS_NIC={value}, and the devices are in {} subnets: {}",
                subnets.len(),
                subnets.join(", ")
            ),
        )
        .expected("0, or routes between the subnets of the rails")
        .fix("export NCCL_CROSS_NIC=0")
        .likely()
    } else {
        Outcome::ok(object, format!("NCCL_CROSS_NIC={value}"))
    };
    vec![outcome.seen(from, value)]
}

fn plugin(facts: &Facts<'_>) -> Vec<Outcome> {
    let mut all = disabled(facts);
    all.extend(plugin_of_log(facts));
    all
}

/// `NCCL_IB_DISABLE=1` on a host with an active port: NCCL takes TCP (NVIDIA NCCL documentation).
fn disabled(facts: &Facts<'_>) -> Vec<Outcome> {
    const NAME: &str = "NCCL_IB_DISABLE";
    let set =
        nccl_variable(facts, NAME).filter(|(value, _)| value.trim().parse::<i64>().is_ok_and(|set| set != 0));
    let active = facts.ports().find(|(_, port)| port.is_active());
    let (Some((value, from)), Some((_, port))) = (set, active) else {
        return Vec::new();
    };
    let said = format!(
        "{NAME}={value}: NCCL takes TCP, although {} is active",
        port.object
    );
    vec![
        Outcome::warning(NAME, said)
            .seen(from, &value)
            .expected("0, or not set")
            .fix(format!("unset {NAME}")),
    ]
}

/// The network that a log of NCCL names.
fn plugin_of_log(facts: &Facts<'_>) -> Vec<Outcome> {
    let Some(log) = &facts.plan.nccl_log else {
        return Vec::new();
    };
    let object = "NCCL";
    let network = log.lines().find_map(|line| line.split("Using network ").nth(1));
    let network = network.map(|network| network.split_whitespace().next().unwrap_or_default());
    let Some(network) = network else {
        return vec![Outcome::unknown(
            object,
            Unknown {
                source: "NCCL's log".to_owned(),
                why: "it has no line 'Using network'; run with NCCL_DEBUG=INFO".to_owned(),
            },
        )];
    };
    let outcome = if network == "Socket" && !facts.devices.is_empty() {
        Outcome::warning(
            object,
            "NCCL used sockets (TCP), although this host has RDMA devices",
        )
        .expected("IB, or a plugin")
        .advice("NCCL_DEBUG=INFO and NCCL_DEBUG_SUBSYS=INIT,NET show why, in the lines of NET/IB")
    } else {
        Outcome::info(object, format!("NCCL used the network {network}"))
    };
    let mut outcome = outcome;
    outcome.seen.push(crate::doctor::check::ReadValue {
        source: "NCCL's log".to_owned(),
        value: format!("Using network {network}"),
    });
    vec![outcome]
}
