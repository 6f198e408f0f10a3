//! Checks of addresses and of the MTU.

use std::collections::BTreeSet;
use std::net::IpAddr;

use serde_json::Value;

use roce_model::Severity;

use crate::doctor::check::{CERTAIN, Check, CheckResult, CheckRun, Outcome, Status, each};
use crate::doctor::facts::{Facts, PortGid, RdmaDevice, RdmaPort, odd};
use crate::doctor::host::Unknown;

pub(crate) const CHECKS: &[Check] = &[
    Check {
        id: "gid.rocev2",
        title: "active ports have an address of RoCE v2",
        read: "/sys/class/infiniband/DEVICE/ports/N/gids, gid_attrs/types",
        method: "an active port without a RoCE v2 GID: critical; with link-local ones alone: warning",
        meaning: "RoCE v2 puts the address of the GID into IP headers. Without it no connection can be made.",
        symptom: "'Failed to modify QP to RTR'; NCCL: 'no GID found'.",
        source: "IBTA annex A17",
        severity: Severity::Critical,
        run: CheckRun::new("gid", rocev2),
        ..CERTAIN
    },
    Check {
        id: "gid.choice",
        title: "the index that programs should use",
        read: "/sys/class/infiniband/DEVICE/ports/N/gids, gid_attrs/types",
        method: "NCCL_IB_GID_INDEX or UCX_IB_GID_INDEX names an entry that is not RoCE v2 with a routable address: warning, also where no index fits the devices of all hosts; otherwise information: the first RoCE v2 index with IPv4, else with a global IPv6 address. Index 0, which tools take by default, is RoCE v1 on most adapters",
        meaning: "RoCE v1 is not routed, and switches do not classify it by DSCP.",
        symptom: "Connections within a rack work and others do not; PFC and ECN have no effect.",
        source: "perftest's manual, --gid-index; NCCL_IB_GID_INDEX",
        severity: Severity::Warning,
        run: CheckRun::new("gid", choice),
        ..CERTAIN
    },
    Check {
        id: "gid.cm_mode",
        title: "rdma_cm uses RoCE v2",
        read: "/sys/kernel/config/rdma_cm/DEVICE/ports/N/default_roce_mode (looked at, never created)",
        method: "IB/RoCE v1: warning; RoCE v2, or no such folder (the kernel's default): ok",
        meaning: "Programs that connect by rdma_cm take the version from there.",
        symptom: "NVMe-oF or NFS over RDMA connects within a subnet alone.",
        alternatives: "gid.choice",
        source: "Linux Documentation/ABI/testing/configfs-rdma_cm",
        severity: Severity::Warning,
        confidence: "certain; likely where the outcome says so",
        run: CheckRun::new("gid", cm_mode),
        ..CERTAIN
    },
    Check {
        id: "mtu.interface",
        title: "interfaces allow a path MTU of 4096",
        read: "/sys/class/net/INTERFACE/mtu; of a text without it, max_mtu and active_mtu of ibv_devinfo",
        method: "below 4192, which a path MTU of 4096 with 96 bytes of headers needs: warning; an active port of RoCE whose active_mtu is below its max_mtu: warning",
        meaning: "The path MTU of RDMA is 256, 512, 1024, 2048 or 4096: an interface of 1500 allows 1024, a quarter of the payload of each packet.",
        symptom: "Throughput below the line rate, at high packet rates.",
        source: "Linux include/rdma/ib_addr.h, iboe_get_mtu",
        severity: Severity::Warning,
        run: CheckRun::new("mtu", interface),
        ..CERTAIN
    },
    Check {
        id: "mtu.path",
        title: "large packets reach a peer",
        read: "ping to the address of --peer with the don't-fragment bit, at the interface's MTU",
        method: "the large one is lost and a small one passes: warning",
        meaning: "A switch with a smaller MTU drops large frames without a message.",
        symptom: "RDMA hangs, and ping works.",
        alternatives: "mtu.interface",
        source: "ping(8), -M do",
        severity: Severity::Warning,
        run: CheckRun::new("mtu", path),
        ..CERTAIN
    },
    Check {
        id: "mtu.switch",
        title: "the switch's MTU has room",
        read: "the switch, which this program does not read yet",
        method: "not judged; `mtu.path` tries the path itself",
        meaning: "The switch needs the host's MTU and 18 bytes more where it counts the frame.",
        symptom: "RDMA hangs, and ping works.",
        alternatives: "mtu.path",
        source: "IEEE 802.3 frame format: 14 bytes of Ethernet header and 4 of a VLAN tag",
        severity: Severity::Info,
        run: CheckRun::new("mtu", switch),
        ..CERTAIN
    },
    Check {
        id: "routing.rails",
        title: "interfaces of one subnet answer for themselves",
        read: "addresses of RDMA devices; /proc/sys/net/ipv4/conf/INTERFACE/arp_ignore, arp_announce, rp_filter",
        method: "several RDMA interfaces in one subnet, and arp_ignore is 0 or rp_filter is 1: warning",
        meaning: "Linux answers an ARP request for any of its addresses on any interface: packets for one rail then arrive on another.",
        symptom: "Answers leave by the wrong rail; one link is full and another idle.",
        source: "Linux Documentation/networking/ip-sysctl.rst",
        severity: Severity::Warning,
        confidence: "certain; likely where the outcome says so",
        run: CheckRun::new("routing", rails),
        ..CERTAIN
    },
];

fn rocev2(facts: &Facts<'_>) -> Vec<Outcome> {
    let active = facts
        .ports()
        .filter(|(_, port)| port.is_active() || port.can_be_active(facts.host) && !port.gids.is_empty());
    each(
        active,
        |(_, port)| port.object.clone(),
        |(_, port)| {
            let path = format!("{}/gid_attrs/types", port.path);
            let object = &port.object;
            if port.gids.iter().any(|gid| gid.is_v2.is_none()) && port.best_gid().is_none() {
                return Err(Unknown {
                    source: format!("/{path}"),
                    why: "types of addresses could not be read".to_owned(),
                });
            }
            let v2: Vec<String> = port
                .gids
                .iter()
                .filter(|gid| gid.is_v2 == Some(true))
                .map(|gid| gid.index.to_string())
                .collect();
            let interface = port.interfaces.first().map_or("INTERFACE", String::as_str);
            let fix = format!("ip addr add ADDRESS/PREFIX dev {interface}");
            Ok(if v2.is_empty() {
                let is_active = if port.is_active() { "is active and " } else { "" };
                // An adapter of RoCE v2 lists such an address beside each of v1.
                let status = if port.is_active() {
                    Status::Critical
                } else {
                    Status::Warning
                };
                Outcome::new(
                    status,
                    object,
                    format!("{object} {is_active}has no address of RoCE v2"),
                )
                .seen(&path, "no RoCE v2")
                .expected("a RoCE v2 entry with an IP address")
                .fix(fix)
            } else if port.best_gid().is_none() {
                // Ports without a cable need no other address.
                let status = if port.is_active() {
                    Status::Warning
                } else {
                    Status::Info
                };
                Outcome::new(
                    status,
                    object,
                    format!("{object} has link-local addresses alone: RoCE v2 cannot be routed"),
                )
                .seen(&path, format!("RoCE v2 at indexes {}", v2.join(", ")))
                .expected("a RoCE v2 entry with IPv4 or a global IPv6 address")
                .fix(fix)
            } else {
                Outcome::ok(
                    object,
                    format!("{object} has RoCE v2 at indexes {}", v2.join(", ")),
                )
                .seen(&path, format!("RoCE v2 at indexes {}", v2.join(", ")))
            })
        },
    )
}

/// Indexes at which a port has a routable address of RoCE v2.
pub(crate) fn fitting(port: &RdmaPort) -> BTreeSet<u32> {
    port.gids
        .iter()
        .filter(|gid| gid.is_v2 == Some(true) && gid.routable().is_some())
        .map(|gid| gid.index)
        .collect()
}

/// Indexes that fit all of these ports; ports without a fitting one have no say. `None`: no port has a say.
pub(crate) fn common<'a>(ports: impl Iterator<Item = &'a RdmaPort>) -> Option<BTreeSet<u32>> {
    ports
        .map(fitting)
        .filter(|indexes| !indexes.is_empty())
        .reduce(|common, other| common.intersection(&other).copied().collect())
}

/// The setting that makes the variable fit: an index that fits all active ports, else none at all.
fn choose_index(facts: &Facts<'_>, name: &str, best: u32) -> String {
    let active = facts
        .ports()
        .map(|(_, port)| port)
        .filter(|port| port.is_active());
    match common(active) {
        Some(common) if common.is_empty() => format!("unset {name}"),
        Some(common) if !common.contains(&best) => {
            format!("export {name}={}", common.first().unwrap_or(&best))
        }
        _ => format!("export {name}={best}"),
    }
}

fn choice(facts: &Facts<'_>) -> Vec<Outcome> {
    let active = facts
        .ports()
        .filter(|(_, port)| port.can_be_active(facts.host) && !port.gids.is_empty());
    each(
        active,
        |(_, port)| port.object.clone(),
        |(_, port)| {
            let object = &port.object;
            let types = format!("{}/gid_attrs/types", port.path);
            let Some(best) = port.best_gid() else {
                return Err(Unknown {
                    source: format!("/{types}"),
                    why: "there is no address of RoCE v2 to recommend".to_owned(),
                });
            };
            let said = format!("use --gid-index {}", best.index);
            for name in ["NCCL_IB_GID_INDEX", "UCX_IB_GID_INDEX"] {
                let chosen = facts.host.variable(name);
                let Some(chosen) = chosen.and_then(|index| index.trim().parse::<u32>().ok()) else {
                    continue;
                };
                let gid = port.gids.iter().find(|gid| gid.index == chosen);
                if gid.is_none_or(|gid| gid.is_v2 == Some(false) || gid.routable().is_none()) {
                    return Ok(Outcome::warning(
                        object,
                        format!("{object}: {name}={chosen} is no routable address of RoCE v2; {said}"),
                    )
                    .seen("answers/env.json", format!("{name}={chosen}"))
                    .expected(format!("index {}", best.index))
                    .fix(choose_index(facts, name, best.index)));
                }
            }
            let first = port.gids.iter().find(|gid| gid.index == 0);
            let is_good = first.is_some_and(|gid| gid.is_v2 == Some(true) && gid.routable().is_some());
            let kind = facts
                .host
                .text(&format!("{types}/0"))
                .unwrap_or_else(|| "empty".to_owned());
            Ok(if is_good {
                Outcome::ok(object, format!("{object}: the default index 0 is RoCE v2; {said}"))
            } else {
                Outcome::info(
                    object,
                    format!("{object}: index 0, the default of some tools, is not RoCE v2 with a routable address; {said}"),
                )
            }
            .seen(&format!("{types}/0"), kind))
        },
    )
}

fn cm_mode(facts: &Facts<'_>) -> Vec<Outcome> {
    each(
        facts.ports_with_settings(),
        |(device, number)| format!("{device}:{number}"),
        |(device, number)| {
            let path = format!("sys/kernel/config/rdma_cm/{device}/ports/{number}/default_roce_mode");
            let object = &format!("{device}:{number}");
            match facts.host.need(&path) {
                Ok(mode) if mode == "RoCE v2" => {
                    Ok(Outcome::ok(object, format!("{object}: rdma_cm uses RoCE v2")).seen(&path, mode))
                }
                Ok(mode) if mode == "IB/RoCE v1" => Ok(Outcome::warning(
                    object,
                    format!("{object}: rdma_cm uses RoCE v1"),
                )
                .seen(&path, mode)
                .expected("RoCE v2")
                .fix(format!("echo 'RoCE v2' > /{path}"))),
                Ok(mode) => Err(odd(&path, &mode)),
                Err(unknown) if unknown.why == "not there" => Ok(Outcome::ok(
                    object,
                    format!("{object}: rdma_cm uses the kernel's default, RoCE v2"),
                )
                .seen(&path, "not there")
                .likely()),
                Err(unknown) => Err(unknown),
            }
        },
    )
}

/// Path MTU of RDMA in bytes that an interface of this MTU allows: 96 bytes of headers, then the next lower power of two. None below
/// 352 bytes (`iboe_get_mtu` in the kernel's include/rdma/ib_addr.h).
pub fn path_mtu(mtu: u32) -> Option<u32> {
    let payload = mtu.checked_sub(40 + 8 + 12 + 28 + 4 + 4)?;
    [4096, 2048, 1024, 512, 256]
        .into_iter()
        .find(|size| *size <= payload)
}

fn interface(facts: &Facts<'_>) -> Vec<Outcome> {
    let mut all = each(
        &facts.netdevs,
        |netdev| netdev.name.clone(),
        |netdev| {
            let path = format!("sys/class/net/{}/mtu", netdev.name);
            let mtu: u32 = facts.host.number(&path)?;
            let name = &netdev.name;
            Ok(match path_mtu(mtu) {
                Some(4096) => Outcome::ok(name, format!("{name}: MTU {mtu}, path MTU 4096")),
                Some(size) => {
                    Outcome::warning(name, format!("{name}: MTU {mtu} allows a path MTU of {size}"))
                        .expected("4192 or more; all hosts and switches alike")
                        .fix(format!("ip link set {name} mtu 9000"))
                }
                None => Outcome::warning(name, format!("{name}: MTU {mtu} is too small for RDMA"))
                    .fix(format!("ip link set {name} mtu 9000")),
            }
            .seen(&path, mtu.to_string()))
        },
    );
    // The interface's own MTU says more, where it is known.
    let is_judged = |name: &str| {
        let of_interface = all.iter().find(|outcome| outcome.object == name);
        of_interface.is_some_and(|outcome| outcome.status != Status::Unknown)
    };
    let ports: Vec<(Vec<&str>, &RdmaPort)> = ports_with_path_mtu(facts)
        .map(|(device, port)| (interfaces_of(facts, device, port), port))
        .filter(|(names, _)| !names.iter().any(|name| is_judged(name)))
        .collect();
    all.retain(|outcome| {
        let is_of_port = ports
            .iter()
            .any(|(names, _)| names.contains(&outcome.object.as_str()));
        outcome.status != Status::Unknown || !is_of_port
    });
    all.extend(each(
        &ports,
        |(_, port)| port.object.clone(),
        |(names, port)| active_mtu(facts, names.first().copied(), port),
    ));
    all
}

/// Interfaces of a port: those of its addresses, else those of a device with no other port.
fn interfaces_of<'a>(facts: &'a Facts<'_>, device: &RdmaDevice, port: &'a RdmaPort) -> Vec<&'a str> {
    if !port.interfaces.is_empty() || device.ports.len() > 1 {
        return port.interfaces.iter().map(String::as_str).collect();
    }
    let netdevs = facts.netdevs.iter().filter(|netdev| netdev.device == device.name);
    netdevs.map(|netdev| netdev.name.as_str()).collect()
}

/// Answer of `ibv_devinfo` about the path MTU of a port.
fn path_mtu_answer(port: &RdmaPort) -> String {
    format!("answers/path-mtu.{}.json", port.object)
}

/// Active ports of RoCE whose path MTU `ibv_devinfo` says.
fn ports_with_path_mtu<'a>(facts: &'a Facts<'_>) -> impl Iterator<Item = (&'a RdmaDevice, &'a RdmaPort)> {
    facts
        .ports()
        .filter(|(_, port)| port.is_active() && facts.host.has(&path_mtu_answer(port)))
}

/// Path MTU that a port has, against that of its adapter.
fn active_mtu(facts: &Facts<'_>, interface: Option<&str>, port: &RdmaPort) -> CheckResult {
    let path = path_mtu_answer(port);
    let answer = facts.host.json(&path)?;
    let of = |key: &str| answer.get(key).and_then(Value::as_u64);
    let (Some(max), Some(active)) = (of("max"), of("active")) else {
        return Err(odd(&path, &answer.to_string()));
    };
    let name = &port.object;
    let outcome = if active < max {
        let interface = interface.unwrap_or("INTERFACE");
        Outcome::warning(
            name,
            format!("{name}: the path MTU is {active}, the adapter can do {max}"),
        )
        .expected("an interface with 4192 or more; all hosts and switches alike")
        .fix(format!("ip link set {interface} mtu 9000"))
    } else {
        Outcome::ok(name, format!("{name}: path MTU {active}"))
    };
    Ok(outcome.seen(&path, format!("max_mtu {max}, active_mtu {active}")))
}

fn path(facts: &Facts<'_>) -> Vec<Outcome> {
    each(
        &facts.plan.peers,
        |peer| (*peer).clone(),
        |peer| {
            let path = format!("answers/ping.{peer}.json");
            let answer = facts.host.json(&path)?;
            let passed = |key: &str| answer.get(key).and_then(Value::as_bool);
            let (Some(large), Some(small)) = (passed("large"), passed("small")) else {
                return Err(odd(&path, &answer.to_string()));
            };
            let size = answer.get("size").and_then(Value::as_u64).unwrap_or(0);
            Ok(match (large, small) {
                (true, _) => Outcome::ok(*peer, format!("{peer}: {size} bytes pass unfragmented")),
                (false, true) => Outcome::warning(
                    *peer,
                    format!(
                        "{peer}: {size} bytes are lost and small packets pass: the MTU on the way is smaller"
                    ),
                )
                .expected("the same MTU on all interfaces and switches of the way"),
                (false, false) => {
                    return Err(Unknown {
                        source: format!("ping {peer}"),
                        why: "it does not answer at all".to_owned(),
                    });
                }
            }
            .seen(&path, format!("large {large}, small {small}")))
        },
    )
}

fn switch(facts: &Facts<'_>) -> Vec<Outcome> {
    if facts.ports_of_hosts().next().is_none() {
        return Vec::new();
    }
    let unknown = Unknown {
        source: "the switch".to_owned(),
        why: "the switch was not read; --peer ADDRESS tries the path".to_owned(),
    };
    vec![Outcome::unknown("host", unknown)]
}

/// Subnet of an address: /24 of IPv4, /64 of IPv6, where the length of the prefix is not known.
pub(crate) fn subnet(address: IpAddr) -> String {
    match address {
        IpAddr::V4(v4) => {
            let [a, b, c, _] = v4.octets();
            format!("{a}.{b}.{c}.0/24")
        }
        IpAddr::V6(v6) => {
            let [a, b, c, d, ..] = v6.segments();
            format!("{a:x}:{b:x}:{c:x}:{d:x}::/64")
        }
    }
}

fn rails(facts: &Facts<'_>) -> Vec<Outcome> {
    let mut of_subnets: Vec<(String, String)> = Vec::new();
    for (device, port) in facts.ports().filter(|(_, port)| port.is_active()) {
        let address = port.best_gid().and_then(PortGid::routable);
        if let (Some(address @ IpAddr::V4(_)), Some(interface)) = (address, port.interfaces.first()) {
            of_subnets.push((subnet(address), interface.clone()));
        } else if facts.host.is_partial {
            // `ip addr` of a text.
            for interface in facts.host.names(&format!("{}/device/net", device.path)) {
                let answer = facts.host.json(&format!("answers/subnet.{interface}.json")).ok();
                let net = answer.and_then(|answer| Some(answer.get("subnet")?.as_str()?.to_owned()));
                of_subnets.extend(net.map(|net| (net, interface)));
            }
        }
    }
    let shared = of_subnets.iter().filter(|(net, name)| {
        of_subnets
            .iter()
            .any(|(other, interface)| other == net && interface != name)
    });
    let shared: BTreeSet<&String> = shared.map(|(_, name)| name).collect();
    each(
        shared,
        |name| (*name).clone(),
        |name| {
            let of = |key: &str, scope: &str| format!("proc/sys/net/ipv4/conf/{scope}/{key}");
            // A text has what somebody asked for: an interface began with what `default` says.
            let has_own = facts.host.has(&of("arp_ignore", name));
            let scope = if facts.host.is_partial && !has_own {
                "default"
            } else {
                name.as_str()
            };
            // The kernel takes the higher value of `all` and of the interface (ip-sysctl.rst): one that is high enough decides.
            let value = |key: &str, enough: u32| -> Result<u32, Unknown> {
                let all: u32 = facts.host.number(&of(key, "all"))?;
                let own = facts.host.number(&of(key, scope));
                let is_decided = facts.host.is_partial && all >= enough;
                Ok(own
                    .or_else(|unknown| if is_decided { Ok(all) } else { Err(unknown) })?
                    .max(all))
            };
            let ignore = value("arp_ignore", 1)?;
            // A text with ARP's settings alone says enough where they are wrong.
            let filter = match value("rp_filter", 2) {
                Err(_) if facts.host.is_partial && ignore == 0 => None,
                filter => Some(filter?),
            };
            let filter_text = filter.map_or("not known".to_owned(), |filter| filter.to_string());
            let seen = format!("arp_ignore {ignore}, rp_filter {filter_text}");
            Ok(if ignore == 0 || filter == Some(1) {
                Outcome::warning(
                    *name,
                    format!("{name} shares its subnet with another RDMA interface, and answers for its addresses"),
                )
                .expected("arp_ignore 1, arp_announce 2, rp_filter 0 or 2")
                .fix(format!(
                    "sysctl -w net.ipv4.conf.{name}.arp_ignore=1 net.ipv4.conf.{name}.arp_announce=2 net.ipv4.conf.{name}.rp_filter=2"
                ))
                .likely()
            } else {
                Outcome::ok(*name, format!("{name} answers for its own addresses"))
            }
            .seen(&of("arp_ignore", if facts.host.is_partial { "all" } else { scope }), seen))
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_mtus_follow_the_kernel() {
        // iboe_get_mtu takes 96 bytes of headers from the interface's MTU.
        for (mtu, path) in [
            (9000, Some(4096)),
            (4192, Some(4096)),
            (4191, Some(2048)),
            (1500, Some(1024)),
            (351, None),
            (0, None),
        ] {
            assert_eq!(path_mtu(mtu), path, "{mtu}");
        }
    }
}
