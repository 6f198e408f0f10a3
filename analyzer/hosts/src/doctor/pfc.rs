//! Checks of PFC, 802.3x pause, and buffers.

use serde_json::Value;

use roce_model::Severity;

use crate::doctor::check::{CERTAIN, Check, CheckResult, CheckRun, Outcome, each};
use crate::doctor::counters::MovedCounter;
use crate::doctor::facts::{Facts, Netdev, odd};
use crate::doctor::host::Unknown;

pub(crate) const CHECKS: &[Check] = &[
    Check {
        id: "pfc.enabled",
        title: "PFC is on for the lossless priority",
        read: "DCB over netlink (DCB_ATTR_IEEE_PFC); dcb pfc show",
        method: "off on the priority of --priority (3): warning",
        meaning: "Without PFC a full buffer drops packets, and RoCE retransmits everything behind each.",
        symptom: "Losses under incast: out_of_sequence rises at receivers.",
        alternatives: "ecn.np",
        source: "IEEE 802.1Q clause 36; Linux include/uapi/linux/dcbnl.h",
        severity: Severity::Warning,
        run: CheckRun::new("pfc", enabled),
        ..CERTAIN
    },
    Check {
        id: "pfc.others",
        title: "PFC is on for no other priority",
        read: "as pfc.enabled",
        method: "all eight priorities: critical; others beside the lossless one: warning",
        meaning: "Every lossless priority needs buffers of its own, and a pause of one stops all its traffic.",
        symptom: "One slow receiver stops TCP as well.",
        source: "IEEE 802.1Q clause 36",
        severity: Severity::Critical,
        run: CheckRun::new("pfc", others),
        ..CERTAIN
    },
    Check {
        id: "pfc.and_pause",
        title: "802.3x pause is off where PFC is wanted",
        read: "ETHTOOL_GPAUSEPARAM; DCB_ATTR_IEEE_PFC",
        method: "receive or transmit pause is on: critical; its autonegotiation alone: warning",
        meaning: "802.3x pause stops the whole link, PFC one priority. Adapters exclude the two: on mlx5, turning one on turns the other off.",
        symptom: "PFC is configured and counts nothing; all traffic of the link stands still together.",
        alternatives: "pause.global_instead_of_pfc",
        source: "Linux mlx5 driver: 'pause parameters cannot be set when pfc is enabled'",
        severity: Severity::Critical,
        run: CheckRun::new("pfc", and_pause),
        ..CERTAIN
    },
    Check {
        id: "pause.global_instead_of_pfc",
        title: "pauses that arrive are PFC",
        read: "the driver's counters of 802.3x pause frames and of PFC frames",
        method: "802.3x pause frames come while it is watched, and PFC frames of no priority: warning; a total since the driver was loaded: \
                 information",
        meaning: "Counters named pause of both kinds look alike. These frames stop the whole link and are no sign that PFC works.",
        symptom: "Millions of pause frames although PFC is off.",
        alternatives: "pfc.and_pause",
        source: "Linux Documentation/networking/device_drivers/ethernet/mellanox/mlx5/counters.rst",
        severity: Severity::Warning,
        run: CheckRun::new("pfc", global),
        ..CERTAIN
    },
    Check {
        id: "pfc.dcbx",
        title: "one agent decides PFC",
        read: "DCB_ATTR_DCBX; running lldpad (/proc/*/comm)",
        method: "the firmware's agent and lldpad both: warning; otherwise its mode",
        meaning: "Two agents of DCBX overwrite each other's settings.",
        symptom: "Settings vanish when the link comes up.",
        source: "Linux include/uapi/linux/dcbnl.h, DCB_CAP_DCBX_*",
        severity: Severity::Warning,
        run: CheckRun::new("pfc", dcbx),
        ..CERTAIN
    },
    Check {
        id: "pfc.buffer",
        title: "the lossless priority has a buffer of its own",
        read: "DCB_ATTR_DCB_BUFFER",
        method: "size 0: critical; shared with lossy priorities, or less than two frames and what is on the cable (--cable): warning",
        meaning: "After a PAUSE leaves, two frames and twice the content of the cable still arrive.",
        symptom: "Drops in spite of PFC: rx_prioN_buf_discard rises.",
        source: "IEEE 802.1Q annex O (headroom)",
        severity: Severity::Critical,
        confidence: "certain; likely where the outcome says so",
        run: CheckRun::new("pfc", buffer),
        ..CERTAIN
    },
    Check {
        id: "pfc.peer",
        title: "the neighbour has PFC on the same priority",
        read: "DCB_ATTR_IEEE_PEER_PFC (what LLDP received)",
        method: "off there: critical; other priorities: warning",
        meaning: "A pause needs both ends of the link.",
        symptom: "The host sends PFC frames, and the switch goes on sending.",
        source: "IEEE 802.1Q annex D (PFC configuration TLV)",
        severity: Severity::Critical,
        run: CheckRun::new("pfc", peer),
        ..CERTAIN
    },
];

/// Priorities as bits.
fn bits(value: &Value, key: &str) -> Option<u8> {
    let all = value.get(key)?.as_array()?;
    if all.len() != 8 {
        return None;
    }
    let mut bits = 0;
    for (priority, on) in all.iter().enumerate() {
        bits |= u8::from(on.as_bool()?) << priority;
    }
    Some(bits)
}

fn shown(bits: u8) -> String {
    let on: Vec<String> = (0..8_u8)
        .filter(|priority| bits >> priority & 1 == 1)
        .map(|priority| priority.to_string())
        .collect();
    if on.is_empty() {
        "PFC on no priority".to_owned()
    } else {
        format!("PFC on {}", on.join(", "))
    }
}

/// One outcome for each interface that owns its port; virtual functions get a word instead.
pub(crate) fn netdevs(facts: &Facts<'_>, judge: impl Fn(&Netdev) -> CheckResult) -> Vec<Outcome> {
    each(
        facts.ports_of_hosts(),
        |netdev| netdev.name.clone(),
        |netdev| judge(netdev),
    )
}

fn enabled_bits(facts: &Facts<'_>, netdev: &Netdev) -> Result<(u8, String), Unknown> {
    let path = format!("answers/dcb-pfc.{}.json", netdev.name);
    let answer = facts.host.json(&path)?;
    let bits = bits(&answer, "prio_pfc").ok_or_else(|| odd(&path, &answer.to_string()))?;
    Ok((bits, path))
}

fn enabled(facts: &Facts<'_>) -> Vec<Outcome> {
    let priority = facts.plan.priority;
    netdevs(facts, |netdev| {
        let (bits, path) = enabled_bits(facts, netdev)?;
        let name = &netdev.name;
        Ok(if bits >> priority & 1 == 1 {
            Outcome::ok(name, format!("{name}: PFC is on for priority {priority}"))
        } else {
            Outcome::warning(name, format!("{name}: PFC is off for priority {priority}"))
                .expected(format!("on for priority {priority} alone"))
                .fix(format!("dcb pfc set dev {name} prio-pfc all:off {priority}:on"))
        }
        .seen(&path, shown(bits)))
    })
}

fn others(facts: &Facts<'_>) -> Vec<Outcome> {
    let priority = facts.plan.priority;
    netdevs(facts, |netdev| {
        let (bits, path) = enabled_bits(facts, netdev)?;
        let name = &netdev.name;
        let others = bits & !(1 << priority);
        let outcome = if bits == 0xff {
            Outcome::critical(name, format!("{name}: PFC is on for all eight priorities"))
        } else if others != 0 {
            Outcome::warning(
                name,
                format!("{name}: PFC is on for other priorities than {priority}"),
            )
        } else {
            return Ok(
                Outcome::ok(name, format!("{name}: PFC is on for no other priority"))
                    .seen(&path, shown(bits)),
            );
        };
        Ok(outcome
            .expected(format!("priority {priority} alone"))
            .fix(format!("dcb pfc set dev {name} prio-pfc all:off {priority}:on"))
            .seen(&path, shown(bits)))
    })
}

fn and_pause(facts: &Facts<'_>) -> Vec<Outcome> {
    let priority = facts.plan.priority;
    netdevs(facts, |netdev| {
        let name = &netdev.name;
        let path = format!("answers/ethtool-pause.{name}.json");
        let answer = facts.host.json(&path)?;
        let flag = |key: &str| answer.get(key).and_then(Value::as_bool);
        let (Some(rx), Some(tx)) = (flag("rx"), flag("tx")) else {
            return Err(odd(&path, &answer.to_string()));
        };
        let word = |on| if on { "on" } else { "off" };
        let seen = format!("rx {}, tx {}", word(rx), word(tx));
        let outcome = if rx || tx {
            Outcome::critical(
                name,
                format!(
                    "{name}: 802.3x pause is on ({seen}) and PFC is wanted on priority {priority}: they exclude each other"
                ),
            )
            .expected("off in both directions")
            .fix(format!(
                "ethtool -A {name} rx off tx off && dcb pfc set dev {name} prio-pfc all:off {priority}:on"
            ))
        } else if flag("autonegotiate") == Some(true) {
            Outcome::warning(
                name,
                format!("{name}: 802.3x pause is negotiated: the neighbour can turn it on"),
            )
            .expected("no autonegotiation of pause")
            .fix(format!("ethtool -A {name} autoneg off rx off tx off"))
        } else {
            Outcome::ok(name, format!("{name}: 802.3x pause is off"))
        };
        let outcome = outcome.seen(&path, seen);
        Ok(match enabled_bits(facts, netdev) {
            Ok((bits, path)) => outcome.seen(&path, shown(bits)),
            Err(_) => outcome,
        })
    })
}

fn global(facts: &Facts<'_>) -> Vec<Outcome> {
    netdevs(facts, |netdev| {
        let name = &netdev.name;
        let path = format!("commands/ethtool_-S_{name}.txt");
        facts.host.need(&path)?;
        let all = |counters: [&'static str; 2]| {
            let moved = counters.into_iter().flat_map(|counter| facts.counter(counter));
            moved.filter(|moved| moved.object == *name)
        };
        let (of_link, of_pfc) = (
            || all(["pause_received_frames", "pause_transmitted_frames"]),
            || all(["pfc_received_frames", "pfc_transmitted_frames"]),
        );
        if of_link().chain(of_pfc()).next().is_none() {
            return Err(Unknown {
                source: format!("ethtool -S {name}"),
                why: "the driver counts no pauses".to_owned(),
            });
        }
        let total = |moved: &mut dyn Iterator<Item = &MovedCounter>| -> f64 {
            moved.map(|one| one.value).fold(0.0, |sum, value| sum + value)
        };
        let came = |moved: &mut dyn Iterator<Item = &MovedCounter>| -> f64 {
            moved.filter_map(|one| one.change).sum()
        };
        let (link, pfc) = (total(&mut of_link()), total(&mut of_pfc()));
        let now = came(&mut of_link());
        let seen = format!("802.3x pause frames {link}, PFC frames {pfc}");
        let is_instead = pfc == 0.0 || came(&mut of_pfc()) == 0.0;
        Ok(if now > 0.0 && is_instead {
            Outcome::warning(
                name,
                format!(
                    "{name}: {now} pause frames while it was watched are 802.3x pause of the whole link; PFC counts nothing"
                ),
            )
            .expected("PFC frames of one priority, if any")
            .fix(format!("ethtool -A {name} rx off tx off"))
        } else if link > 0.0 && pfc == 0.0 {
            let since = if of_link().any(|moved| moved.change.is_some()) {
                "none of them while it was watched"
            } else {
                "--duration shows whether they still come"
            };
            Outcome::info(
                name,
                format!("{name}: {link} frames of 802.3x pause since the driver was loaded; {since}"),
            )
        } else {
            Outcome::ok(name, format!("{name}: no 802.3x pause frames instead of PFC"))
        }
        .seen(&path, seen))
    })
}

fn dcbx(facts: &Facts<'_>) -> Vec<Outcome> {
    netdevs(facts, |netdev| {
        let name = &netdev.name;
        let path = format!("answers/dcb-dcbx.{name}.json");
        let answer = facts.host.json(&path)?;
        let flag = |key: &str| answer.get(key).and_then(Value::as_bool);
        let firmware = flag("lld_managed").ok_or_else(|| odd(&path, &answer.to_string()))?;
        let lldpad = facts.programs().map(|all| all.contains("lldpad"));
        let seen = format!(
            "{}; lldpad {}",
            if firmware {
                "firmware decides"
            } else {
                "the host decides"
            },
            match lldpad {
                Some(true) => "runs",
                Some(false) => "does not run",
                None => "not looked for",
            }
        );
        Ok(match (firmware, lldpad) {
            (true, Some(true)) => Outcome::warning(
                name,
                format!("{name}: the firmware's agent and lldpad both decide PFC"),
            )
            .expected("one of the two")
            .fix("systemctl disable --now lldpad"),
            (true, None) => {
                return Err(Unknown {
                    source: "/proc/*/comm".to_owned(),
                    why: "running programs were not looked at".to_owned(),
                });
            }
            _ => Outcome::info(name, format!("{name}: {seen}")),
        }
        .seen(&path, seen))
    })
}

fn buffer(facts: &Facts<'_>) -> Vec<Outcome> {
    let priority = usize::from(facts.plan.priority);
    netdevs(facts, |netdev| {
        let name = &netdev.name;
        let path = format!("answers/dcb-buffer.{name}.json");
        let answer = facts.host.json(&path)?;
        let numbers = |key: &str| -> Option<Vec<u64>> {
            answer.get(key)?.as_array()?.iter().map(Value::as_u64).collect()
        };
        let (Some(of), Some(sizes)) = (numbers("prio_buffer"), numbers("buffer_size")) else {
            return Err(odd(&path, &answer.to_string()));
        };
        let own = of.get(priority).copied();
        let size = own.and_then(|own| sizes.get(usize::try_from(own).ok()?).copied());
        let (Some(own), Some(size)) = (own, size) else {
            return Err(odd(&path, &answer.to_string()));
        };
        let mtu: u64 = facts.host.number(&format!("sys/class/net/{name}/mtu"))?;
        let speed = facts
            .ports()
            .find(|(_, port)| port.interfaces.contains(name))
            .and_then(|(_, port)| port.rate_bps);
        // Two frames, and what is under way in both directions at 0.7 of the speed of light: 2.1e8 m/s.
        let metres = facts.plan.cable_metres.map(u64::from);
        let cable = speed.zip(metres).map_or(0, |(speed, metres)| {
            2 * metres.saturating_mul(speed) / 210_000_000 / 8
        });
        let least = 2 * (mtu.min(1 << 20) + 18) + cable;
        let shared: Vec<String> = (0..of.len())
            .filter(|other| *other != priority && of[*other] == own)
            .map(|other| other.to_string())
            .collect();
        let seen = format!("priority {priority} in buffer {own} of {size} bytes");
        let outcome = if size == 0 {
            Outcome::critical(
                name,
                format!("{name}: the buffer of priority {priority} has no bytes"),
            )
        } else if !shared.is_empty() {
            Outcome::warning(
                name,
                format!(
                    "{name}: priority {priority} shares its buffer with priorities {}",
                    shared.join(", ")
                ),
            )
        } else if size < least {
            Outcome::warning(
                name,
                format!("{name}: the buffer of priority {priority} has {size} bytes; {least} may arrive after a pause"),
            )
            .likely()
        } else {
            return Ok(Outcome::ok(
                name,
                format!("{name}: priority {priority} has a buffer of its own, {size} bytes"),
            )
            .seen(&path, seen));
        };
        Ok(outcome
            .expected(format!("a buffer of its own of at least {least} bytes"))
            .fix(format!(
                "dcb buffer set dev {name} prio-buffer all:0 {priority}:1 buffer-size 1:{}",
                least.max(size)
            ))
            .seen(&path, seen))
    })
}

fn peer(facts: &Facts<'_>) -> Vec<Outcome> {
    let priority = facts.plan.priority;
    netdevs(facts, |netdev| {
        let name = &netdev.name;
        let path = format!("answers/dcb-peer-pfc.{name}.json");
        let answer = facts.host.json(&path)?;
        let bits = bits(&answer, "prio_pfc").ok_or_else(|| odd(&path, &answer.to_string()))?;
        Ok(if bits == 1 << priority {
            Outcome::ok(
                name,
                format!("{name}: the neighbour has PFC on priority {priority}"),
            )
        } else if bits >> priority & 1 == 0 {
            Outcome::critical(
                name,
                format!("{name}: the neighbour has PFC off for priority {priority}"),
            )
            .expected(format!("priority {priority} alone"))
        } else {
            Outcome::warning(
                name,
                format!("{name}: the neighbour has PFC on other priorities as well"),
            )
            .expected(format!("priority {priority} alone"))
        }
        .seen(&path, shown(bits)))
    })
}
