//! Checks of congestion control: traffic class, ECN and CNPs.

use roce_model::Severity;
use roce_rules::counters::{IGNORED_SHARE, MIN_IGNORED};

use crate::doctor::check::{CERTAIN, Check, CheckRun, Outcome, Status, each};
use crate::doctor::counters::LATER;
use crate::doctor::facts::{Facts, odd};
use crate::doctor::host::Unknown;

pub(crate) const CHECKS: &[Check] = &[
    Check {
        id: "roce.tos",
        title: "connections use the DSCP of RoCE",
        read: "rdma_cm's default_roce_tos in configfs; tc/N/traffic_class of MLNX_OFED; NCCL_IB_TC and UCX_IB_TRAFFIC_CLASS",
        method: "0, or another DSCP than that of --dscp: warning",
        meaning: "The traffic class of a connection is its DSCP, four times, and its ECN bits. Switches classify by it.",
        symptom: "Traffic is in the wrong class: no PFC, no ECN.",
        alternatives: "qos.map",
        source: "RFC 2474; Linux Documentation/ABI/testing/configfs-rdma_cm",
        severity: Severity::Warning,
        run: CheckRun::new("ecn", tos),
        ..CERTAIN
    },
    Check {
        id: "ecn.np",
        title: "marks are answered by CNPs",
        read: "/sys/class/net/INTERFACE/ecn/roce_np/enable/N (MLNX_OFED), else counters of marks and CNPs",
        method: "marked packets rise and CNPs sent do not: critical; disabled: warning; enabled: ok",
        meaning: "The receiver of marked packets notifies the sender. Without notification nobody slows down.",
        symptom: "The finding ecn.marks-without-cnp of a capture.",
        source: "IBTA annex A17.9.3",
        severity: Severity::Critical,
        confidence: "certain; likely where the outcome says so",
        run: CheckRun::new("ecn", np),
        ..CERTAIN
    },
    Check {
        id: "ecn.rp",
        title: "CNPs slow the sender",
        read: "/sys/class/net/INTERFACE/ecn/roce_rp/enable/N (MLNX_OFED), else the counter of handled CNPs",
        method: "disabled: warning; enabled: ok",
        meaning: "A sender that does not react fills the buffers until PFC stops it.",
        symptom: "The finding cnp.ignored of a capture.",
        alternatives: "cc.ignored",
        source: "IBTA annex A17.9.3",
        severity: Severity::Warning,
        confidence: "certain; likely where the outcome says so",
        run: CheckRun::new("ecn", rp),
        ..CERTAIN
    },
    Check {
        id: "cnp.dscp",
        title: "CNPs have a class of their own",
        read: "/sys/class/net/INTERFACE/ecn/roce_np/cnp_dscp, cnp_802p_prio (MLNX_OFED)",
        method: "another DSCP than that of --cnp-dscp, or the lossless priority: warning",
        meaning: "CNPs that wait behind data arrive too late to slow it.",
        symptom: "The finding cnp.class of a capture.",
        alternatives: "qos.map",
        source: "NVIDIA: recommended network configuration for RoCE",
        severity: Severity::Warning,
        run: CheckRun::new("ecn", cnp_dscp),
        ..CERTAIN
    },
    Check {
        id: "cc.ignored",
        title: "no CNP is ignored",
        read: "the driver's counter rp_cnp_ignored, twice with --duration",
        method: "it rises by 10 or more, and by half of the CNPs that came: critical; it rises by less, or is above 0: info",
        meaning: "An ignored CNP slows nobody.",
        symptom: "Marks and CNPs, and an unchanged rate.",
        alternatives: "ecn.rp",
        source: "Linux mlx5 counters.rst",
        severity: Severity::Critical,
        run: CheckRun::new("ecn", ignored),
        ..CERTAIN
    },
];

fn tos(facts: &Facts<'_>) -> Vec<Outcome> {
    let wanted = facts.plan.dscp;
    let judge = |object: &str, path: &str, value: &str, fix: &str| {
        let Ok(tos) = value.parse::<u8>() else {
            return Outcome::unknown(object, odd(path, value));
        };
        let dscp = tos >> 2;
        if dscp == wanted {
            Outcome::ok(object, format!("{object}: traffic class {tos} is DSCP {dscp}")).seen(path, value)
        } else {
            let said = if tos == 0 {
                "no class at all".to_owned()
            } else {
                format!("DSCP {dscp}")
            };
            Outcome::warning(object, format!("{object}: traffic class {tos} is {said}"))
                .seen(path, value)
                // ECT(0) is 2 in the two lower bits (RFC 3168).
                .expected(format!("{} (DSCP {wanted}, ECT)", (wanted << 2) | 2))
                .fix(fix)
        }
    };
    let wished = (wanted << 2) | 2;
    let mut all = Vec::new();
    let ports = facts.ports_with_settings();
    for (device, number) in &ports {
        let folder = format!("sys/kernel/config/rdma_cm/{device}");
        let class = format!("sys/class/infiniband/{device}/tc/{number}/traffic_class");
        let cm = format!("{folder}/ports/{number}/default_roce_tos");
        if let Ok(text) = facts.host.need(&cm) {
            all.push(judge(
                &format!("rdma_cm {device}:{number}"),
                &cm,
                &text,
                &format!("mkdir -p /{folder} && echo {wished} > /{cm}"),
            ));
        }
        if let Ok(text) = facts.host.need(&class) {
            // `Global tclass=106`.
            let value = text.rsplit('=').next().unwrap_or_default().trim();
            all.push(judge(
                &format!("{device}:{number}"),
                &class,
                value,
                &format!("echo {wished} > /{class}"),
            ));
        }
    }
    for name in ["NCCL_IB_TC", "UCX_IB_TRAFFIC_CLASS"] {
        if let Some(value) = facts.host.variable(name).filter(|value| value != "auto") {
            all.push(judge(
                name,
                "answers/env.json",
                value.trim(),
                &format!("export {name}={wished}"),
            ));
        }
    }
    if all.is_empty() && !ports.is_empty() {
        all.push(Outcome::unknown(
            "host",
            Unknown {
                source: "configfs rdma_cm, tc/N/traffic_class, NCCL_IB_TC, UCX_IB_TRAFFIC_CLASS".to_owned(),
                why: "no default is set here; programs choose their own".to_owned(),
            },
        ));
    }
    all
}

/// Sum of the values and of the changes of a counter over the ports of a device.
fn count(facts: &Facts<'_>, device: &str, name: &str) -> Option<(f64, Option<f64>)> {
    let mut all = facts.counter(name).filter(|moved| {
        moved
            .object
            .split(':')
            .next()
            .is_some_and(|object| object == device)
    });
    let first = all.next()?;
    Some(all.fold((first.value, first.change), |(value, change), moved| {
        let change = change.zip(moved.change).map(|(a, b)| a + b);
        (value + moved.value, change)
    }))
}

/// The settings of MLNX_OFED: 1 or 0; `None` where the driver has none.
fn setting(facts: &Facts<'_>, netdev: &str, side: &str) -> Option<(String, Result<bool, Unknown>)> {
    let path = format!("sys/class/net/{netdev}/ecn/{side}/enable/{}", facts.plan.priority);
    if !facts.host.has(&path) {
        return None;
    }
    let value = facts.host.need(&path).and_then(|text| match text.as_str() {
        "1" => Ok(true),
        "0" => Ok(false),
        other => Err(odd(&path, other)),
    });
    Some((path, value))
}

fn switched(facts: &Facts<'_>, netdev: &str, side: &str, about: &str) -> Option<Result<Outcome, Unknown>> {
    let (path, value) = setting(facts, netdev, side)?;
    let priority = facts.plan.priority;
    Some(value.map(|is_on| {
        if is_on {
            Outcome::ok(netdev, format!("{netdev}: {about} on priority {priority}")).seen(&path, "1")
        } else {
            Outcome::warning(
                netdev,
                format!("{netdev}: ECN is disabled for priority {priority} ({side})"),
            )
            .seen(&path, "0")
            .expected("1")
            .fix(format!("echo 1 > /{path}"))
        }
    }))
}

fn no_setting() -> Unknown {
    Unknown {
        source: "ecn of the interface, counters".to_owned(),
        why: "the driver shows no setting, and no CNP was counted yet".to_owned(),
    }
}

fn np(facts: &Facts<'_>) -> Vec<Outcome> {
    each(
        facts.ports_of_hosts(),
        |netdev| netdev.name.clone(),
        |netdev| {
            let sent = count(facts, &netdev.device, "port_cnp_sent");
            let path = format!("sys/class/infiniband/{}", netdev.device);
            let silent = facts.found.iter().find(|found| {
                found.id == "counters.cnp_not_sent" && found.object.split(':').next() == Some(&netdev.device)
            });
            if let Some(found) = silent {
                return Ok(
                    Outcome::critical(&netdev.name, format!("{}: {}", netdev.device, found.text))
                        .seen(&path, found.evidence_words())
                        .expected("a CNP for marked packets")
                        .advice(found.next),
                );
            }
            if let Some(judged) = switched(facts, &netdev.name, "roce_np", "CNPs are sent") {
                return judged;
            }
            match sent {
                Some((sent, _)) if sent > 0.0 => Ok(Outcome::info(
                    &netdev.name,
                    format!("{} has sent {sent} CNPs: it answers marks", netdev.device),
                )
                .seen(&path, format!("CNPs sent {sent}"))
                .likely()),
                _ => Err(no_setting()),
            }
        },
    )
}

fn rp(facts: &Facts<'_>) -> Vec<Outcome> {
    each(
        facts.ports_of_hosts(),
        |netdev| netdev.name.clone(),
        |netdev| {
            if let Some(judged) = switched(facts, &netdev.name, "roce_rp", "CNPs slow senders") {
                return judged;
            }
            match count(facts, &netdev.device, "port_cnp_handled") {
                Some((handled, _)) if handled > 0.0 => Ok(Outcome::info(
                    &netdev.name,
                    format!("{} has handled {handled} CNPs: it reacts", netdev.device),
                )
                .seen(
                    &format!("sys/class/infiniband/{}", netdev.device),
                    format!("CNPs handled {handled}"),
                )
                .likely()),
                _ => Err(no_setting()),
            }
        },
    )
}

fn cnp_dscp(facts: &Facts<'_>) -> Vec<Outcome> {
    let plan = facts.plan;
    each(
        facts.ports_of_hosts(),
        |netdev| netdev.name.clone(),
        |netdev| {
            let name = &netdev.name;
            let folder = format!("sys/class/net/{name}/ecn/roce_np");
            let path = format!("{folder}/cnp_dscp");
            let dscp: u8 = facts.host.number(&path)?;
            let priority: Option<u8> = facts.host.number(&format!("{folder}/cnp_802p_prio")).ok();
            let seen = format!(
                "DSCP {dscp}, priority {}",
                priority.map_or("-".to_owned(), |p| p.to_string())
            );
            Ok(if dscp != plan.cnp_dscp {
                Outcome::warning(
                    name,
                    format!("{name}: CNPs have DSCP {dscp}, and not {}", plan.cnp_dscp),
                )
                .expected(format!("DSCP {}", plan.cnp_dscp))
                .fix(format!("echo {} > /{path}", plan.cnp_dscp))
            } else if priority == Some(plan.priority) {
                Outcome::warning(
                    name,
                    format!("{name}: CNPs are in the lossless priority {}", plan.priority),
                )
                .expected("a priority of their own, 6")
                .fix(format!("echo 6 > /{folder}/cnp_802p_prio"))
            } else {
                Outcome::ok(name, format!("{name}: CNPs have DSCP {dscp}"))
            }
            .seen(&path, seen))
        },
    )
}

/// How a total is to be taken.
fn since(facts: &Facts<'_>, change: Option<f64>) -> &'static str {
    match change {
        Some(_) => ", none while it was watched",
        None if facts.host.has(LATER) => "; it began again while it was watched",
        None => "; --duration shows whether it goes on",
    }
}

fn ignored(facts: &Facts<'_>) -> Vec<Outcome> {
    let mut all = Vec::new();
    for moved in facts.counter("port_cnp_ignored") {
        let (status, said) = match moved.change {
            Some(change) if change > 0.0 => {
                let mut handled = facts.counter("port_cnp_handled");
                let handled = handled.find(|handled| handled.object == moved.object);
                let all = handled
                    .and_then(|handled| handled.change)
                    .map(|handled| change + handled);
                let is_most = all.is_none_or(|all| change / all >= IGNORED_SHARE) && change >= MIN_IGNORED;
                let of = all.map_or_else(String::new, |all| format!(" of {all}"));
                (
                    if is_most { Status::Critical } else { Status::Info },
                    format!("{change} CNPs{of} were ignored while it was watched"),
                )
            }
            _ if moved.value > 0.0 => (
                Status::Info,
                format!(
                    "{} CNPs were ignored since the driver was loaded{}",
                    moved.value,
                    since(facts, moved.change)
                ),
            ),
            _ => (Status::Ok, "no CNP was ignored".to_owned()),
        };
        let mut outcome = Outcome::new(status, &moved.object, format!("{}: {said}", moved.object))
            .seen(&moved.path, moved.value.to_string());
        if status != Status::Ok {
            outcome = outcome.expected("0");
        }
        all.push(outcome);
    }
    all
}
