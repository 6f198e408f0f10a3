//! Checks of InfiniBand ports: their packets are not RoCE, and a subnet manager configures them.

use roce_model::Severity;

use crate::doctor::check::{CERTAIN, Check, CheckRun, Outcome, each};
use crate::doctor::facts::{Facts, RdmaDevice, RdmaPort, odd, word};
use crate::doctor::host::Unknown;
use crate::doctor::link::gigabits;

pub(crate) const CHECKS: &[Check] = &[
    Check {
        id: "ib.packets",
        title: "packets of InfiniBand ports are not RoCE",
        read: "/sys/class/infiniband/DEVICE/ports/N/link_layer",
        method: "always information, where a port is InfiniBand",
        meaning: "RoCE is RDMA over Ethernet. InfiniBand has its own link layer, and its subnet manager in place of ECN, PFC and DSCP.",
        symptom: "`live` and captures of the IPoIB interface show no RDMA.",
        source: "IBTA volume 1, chapters 7 and 14",
        severity: Severity::Info,
        run: CheckRun::new("infiniband", packets),
        ..CERTAIN
    },
    Check {
        id: "ib.port",
        title: "InfiniBand ports are configured by a subnet manager",
        read: "/sys/class/infiniband/DEVICE/ports/N/phys_state, state, lid, sm_lid",
        method: "link up, and no LID or no subnet manager: critical; link down, polling or disabled: warning",
        meaning: "A port becomes ACTIVE only when a subnet manager (opensm, or one in a switch) has given it a LID.",
        symptom: "'Port state is INIT', 'Failed to get port info', NCCL: 'NET/IB : No device found'.",
        alternatives: "rdma.devices",
        source: "IBTA volume 1, 7.2.7 (port states) and 14.4 (subnet manager)",
        severity: Severity::Critical,
        run: CheckRun::new("infiniband", port),
        ..CERTAIN
    },
    Check {
        id: "ib.speed",
        title: "InfiniBand links have their width and speed",
        read: "/sys/class/infiniband/DEVICE/ports/N/rate of active ports; board_id",
        method: "one lane, or two below HDR: warning; slower than another port of this kind of adapter: warning",
        meaning: "Links have four lanes; HDR100 and NDR200 have two. A bad lane or cable leaves fewer, or a lower speed.",
        symptom: "A quarter of the bandwidth, without any loss.",
        alternatives: "pcie.link",
        source: "IBTA volume 2 (link widths); Linux drivers/infiniband/core/sysfs.c, rate_show",
        severity: Severity::Warning,
        run: CheckRun::new("infiniband", speed),
        ..CERTAIN
    },
    Check {
        id: "ib.ipoib",
        title: "the IPoIB interface is up",
        read: "/sys/class/infiniband/DEVICE/device/net, /sys/class/net/INTERFACE/operstate; NCCL_SOCKET_IFNAME",
        method: "an IPoIB interface that NCCL_SOCKET_IFNAME names is not up: warning; otherwise information",
        meaning: "rdma_cm finds peers by IP addresses of this interface. NCCL needs it only where it is told to bootstrap over it.",
        symptom: "rdma_cm: 'RDMA_CM_EVENT_ADDR_ERROR'; NCCL: 'Bootstrap : no socket interface found'.",
        source: "Linux Documentation/infiniband/ipoib.rst; NVIDIA NCCL documentation, NCCL_SOCKET_IFNAME",
        severity: Severity::Warning,
        run: CheckRun::new("infiniband", ipoib),
        ..CERTAIN
    },
];

/// InfiniBand ports with their devices.
fn ports<'a>(facts: &'a Facts<'_>) -> Vec<(&'a RdmaDevice, &'a RdmaPort)> {
    let all = facts
        .devices
        .iter()
        .flat_map(|device| device.ports.iter().map(move |port| (device, port)));
    all.filter(|(_, port)| !port.is_ethernet).collect()
}

fn packets(facts: &Facts<'_>) -> Vec<Outcome> {
    let ports = ports(facts);
    let names: Vec<&str> = ports.iter().map(|(_, port)| port.object.as_str()).collect();
    let Some((_, first)) = ports.first() else {
        return Vec::new();
    };
    let said = format!(
        "{} InfiniBand: its packets are not RoCE, and checks of PFC, ECN, DSCP and addresses do not concern it. These work: \
         `host counters`, `host hca`, `host gpus`, NCCL's logs, results of traffic tools, and files of packets with InfiniBand headers \
         (ibdump, link type 247)",
        if names.len() == 1 {
            format!("{} is", names.join(", "))
        } else {
            format!("{} are", names.join(", "))
        }
    );
    let path = format!("{}/link_layer", first.path);
    vec![Outcome::info("host", said).seen(&path, "InfiniBand")]
}

/// A LID: `0x1`, or 0 where a subnet manager gave none.
fn lid(facts: &Facts<'_>, path: &str) -> Result<u32, Unknown> {
    let text = facts.host.need(path)?;
    let digits = text.trim_start_matches("0x");
    u32::from_str_radix(digits, 16).map_err(|_| odd(path, &text))
}

fn port(facts: &Facts<'_>) -> Vec<Outcome> {
    each(
        ports(facts),
        |(_, port)| port.object.clone(),
        |(_, port)| {
            let name = &port.object;
            let physical = format!("{}/phys_state", port.path);
            // A port leaves DOWN only with its link up (IBTA volume 1, 7.2.7): `ibv_devinfo` without `-v` has no physical state.
            let has_link = facts.host.is_partial && !facts.host.has(&physical);
            let has_link = has_link && matches!(port.state.as_deref(), Some("INIT" | "ARMED" | "ACTIVE"));
            let text = if has_link {
                "LinkUp".to_owned()
            } else {
                facts.host.need(&physical)?
            };
            let link = word(&text);
            if link != "LinkUp" {
                let said = format!("{name}: the link is {link}: no cable, or nobody at its other end");
                let fix = if link == "Disabled" {
                    "ibportstate -D 0 PORT enable"
                } else {
                    ""
                };
                let outcome = Outcome::warning(name, said)
                    .seen(&physical, text)
                    .expected("LinkUp");
                return Ok(if fix.is_empty() { outcome } else { outcome.fix(fix) });
            }
            let state_path = format!("{}/state", port.path);
            let state_text = facts.host.need(&state_path)?;
            let state = port
                .state
                .as_deref()
                .ok_or_else(|| odd(&state_path, &state_text))?;
            let own = lid(facts, &format!("{}/lid", port.path));
            let manager = lid(facts, &format!("{}/sm_lid", port.path));
            // 0xffff is the permissive LID, of no port (IBTA volume 1, 4.1.3).
            let has_none =
                |lid: &Result<u32, Unknown>| lid.as_ref().is_ok_and(|lid| [0, 0xffff].contains(lid));
            let shown = |lid: &Result<u32, Unknown>| {
                lid.as_ref()
                    .map_or("not known".to_owned(), |lid| format!("{lid:#x}"))
            };
            let seen = format!(
                "{state}, LID {}, subnet manager's LID {}",
                shown(&own),
                shown(&manager)
            );
            let outcome = if state != "ACTIVE" || has_none(&own) || has_none(&manager) {
                let why = if has_none(&manager) || has_none(&own) {
                    "no subnet manager has configured it"
                } else {
                    "its subnet manager has not made it active"
                };
                Outcome::critical(name, format!("{name} is {state}, its link is up, and {why}"))
                    .expected("ACTIVE, with a LID and a subnet manager")
                    .fix("systemctl start opensm")
                    .advice("one subnet manager for the fabric: at a host, or in a managed switch; sminfo says who it is")
            } else {
                // A LID that was not read is not taken for good.
                own?;
                manager?;
                Outcome::ok(name, format!("{name}: {seen}"))
            };
            Ok(outcome.seen(&state_path, seen))
        },
    )
}

fn speed(facts: &Facts<'_>) -> Vec<Outcome> {
    let active: Vec<_> = ports(facts)
        .into_iter()
        .filter(|(_, port)| port.is_active())
        .collect();
    let fastest = |board: &Option<String>| {
        let alike = active
            .iter()
            .filter(|(device, _)| board.is_some() && device.board == *board);
        alike.filter_map(|(_, port)| port.rate_bps).max()
    };
    each(
        &active,
        |(_, port)| port.object.clone(),
        |(device, port)| {
            let path = format!("{}/rate", port.path);
            let text = facts.host.need(&path)?;
            let rate = port.rate_bps.ok_or_else(|| odd(&path, &text))?;
            // `100 Gb/sec (4X EDR)`.
            let inner = text
                .split_once('(')
                .and_then(|(_, rest)| rest.split_once(')'))
                .map(|(inner, _)| inner);
            // `ibstat` has the rate alone.
            let lanes = match inner {
                None if facts.host.is_partial => None,
                inner => {
                    let (width, kind) = inner
                        .and_then(|inner| inner.split_once("X "))
                        .ok_or_else(|| odd(&path, &text))?;
                    let width: u32 = width.trim().parse().map_err(|_| odd(&path, &text))?;
                    Some((width, kind.trim()))
                }
            };
            let name = &port.object;
            let narrow = lanes
                .filter(|(lanes, kind)| *lanes == 1 || *lanes == 2 && !["HDR", "NDR", "XDR"].contains(kind));
            Ok(if let Some((lanes, _)) = narrow {
                Outcome::warning(
                    name,
                    format!("{name} runs with {lanes} of 4 lanes, {}", gigabits(rate)),
                )
                .expected("4 lanes")
                .advice(
                    "look at cable and port with iblinkinfo and mlxlink; bring the link down and up again",
                )
            } else if let Some(most) = fastest(&device.board).filter(|most| *most > rate) {
                Outcome::warning(
                    name,
                    format!(
                        "{name} runs at {}; another port of this kind runs at {}",
                        gigabits(rate),
                        gigabits(most)
                    ),
                )
                .expected(gigabits(most))
            } else if let Some((lanes, kind)) = lanes {
                Outcome::ok(
                    name,
                    format!("{name} runs at {}: {lanes} lanes of {kind}", gigabits(rate)),
                )
            } else {
                let said = format!("{name} runs at {}; its lanes are not known", gigabits(rate));
                Outcome::info(name, said)
            }
            .seen(&path, text))
        },
    )
}

fn ipoib(facts: &Facts<'_>) -> Vec<Outcome> {
    let mut names: Vec<String> = Vec::new();
    for (device, _) in ports(facts) {
        for name in facts.host.names(&format!("{}/device/net", device.path)) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    let chosen = facts.host.variable("NCCL_SOCKET_IFNAME");
    let is_chosen = |name: &str| {
        chosen.as_deref().is_some_and(|all| {
            let all = all.trim_start_matches('=');
            !all.starts_with('^') && all.split(',').any(|one| !one.is_empty() && name.starts_with(one))
        })
    };
    each(names, String::clone, |name| {
        let path = format!("sys/class/net/{name}/operstate");
        let state = facts.host.need(&path)?;
        Ok(if state == "up" {
            Outcome::ok(name, format!("{name} (IPoIB) is up"))
        } else if is_chosen(name) {
            Outcome::warning(
                name,
                format!("{name} (IPoIB) is {state}, and NCCL_SOCKET_IFNAME names it"),
            )
            .expected("up, with an address")
            .fix(format!("ip link set {name} up"))
        } else {
            Outcome::info(
                name,
                format!("{name} (IPoIB) is {state}: rdma_cm finds no peers over it"),
            )
        }
        .seen(&path, state))
    })
}
