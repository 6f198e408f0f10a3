//! Checks of the classes of traffic: trust, DSCP, rate limits.

use serde_json::Value;

use roce_model::Severity;

use crate::doctor::check::{CERTAIN, Check, CheckRun, Outcome};
use crate::doctor::facts::{Facts, odd};
use crate::doctor::host::Unknown;
use crate::doctor::pfc::netdevs;

pub(crate) const CHECKS: &[Check] = &[
    Check {
        id: "qos.trust",
        title: "the adapter trusts the DSCP",
        read: "DCB application table (entries of DSCP set mlx5 to trust DSCP); DCB_ATTR_DCB_APP_TRUST_TABLE",
        method: "priority code point without a VLAN: warning",
        meaning: "RoCE without a VLAN tag has no priority code point: all of it lands in priority 0.",
        symptom: "rx_prio0_bytes rises, and PFC of priority 3 counts nothing.",
        alternatives: "qos.map",
        source: "Linux mlx5 driver, dcbnl; dcb-apptrust(8)",
        severity: Severity::Warning,
        run: CheckRun::new("qos", trust),
        ..CERTAIN
    },
    Check {
        id: "qos.map",
        title: "DSCPs lead to their priorities",
        read: "DCB application table",
        method: "the DSCP of data (26) does not lead to the lossless priority, or that of CNPs (48) does: warning",
        meaning: "Data outside of the lossless priority is dropped under congestion; CNPs inside of it wait behind the data that they shall slow.",
        symptom: "Bytes count under another priority than PFC.",
        alternatives: "qos.trust",
        source: "NVIDIA: recommended network configuration for RoCE",
        severity: Severity::Warning,
        run: CheckRun::new("qos", map),
        ..CERTAIN
    },
    Check {
        id: "qos.ratelimit",
        title: "no class has a forgotten rate limit",
        read: "DCB_ATTR_IEEE_MAXRATE, in kbit/s",
        method: "a limit below the link's speed: warning",
        meaning: "A limit that mlnx_qos set stays in the adapter after the program or pod that set it.",
        symptom: "Throughput stops at a constant value below the line rate, without marks and losses.",
        alternatives: "link.speed",
        source: "Linux include/uapi/linux/dcbnl.h, struct ieee_maxrate",
        severity: Severity::Warning,
        run: CheckRun::new("qos", ratelimit),
        ..CERTAIN
    },
];

/// The speed of the slowest links of adapters with rate limits for classes, 25GBASE-R, in kbit/s.
const MIN_LINK_KBIT: u64 = 25_000_000;

/// DSCP by its name (RFC 2474, 2597, 3246, 8622) or number.
fn dscp(value: &Value) -> Option<u8> {
    if let Some(number) = value.as_u64() {
        return u8::try_from(number).ok().filter(|dscp| *dscp < 64);
    }
    let name = value.as_str()?.to_ascii_uppercase();
    if name == "EF" {
        return Some(46);
    }
    if let Some(class) = name.strip_prefix("CS").and_then(|class| class.parse::<u8>().ok()) {
        return (class < 8).then(|| class * 8);
    }
    if let Some(pair) = name.strip_prefix("AF") {
        let mut digits = pair.bytes().map(|byte| byte.wrapping_sub(b'0'));
        let (class, drop) = (digits.next()?, digits.next()?);
        return ((1..=4).contains(&class) && (1..=3).contains(&drop)).then(|| class * 8 + drop * 2);
    }
    name.parse().ok().filter(|dscp| *dscp < 64)
}

/// The table from DSCPs to priorities.
fn dscp_map(answer: &Value) -> Option<Vec<(u8, u8)>> {
    let Some(all) = answer.get("dscp_prio") else {
        return answer.is_object().then(Vec::new);
    };
    let pair = |pair: &Value| -> Option<(u8, u8)> {
        let pair = pair.as_array()?;
        let priority = u8::try_from(pair.get(1)?.as_u64()?).ok()?;
        Some((dscp(pair.first()?)?, priority))
    };
    all.as_array()?.iter().map(pair).collect()
}

fn trust(facts: &Facts<'_>) -> Vec<Outcome> {
    netdevs(facts, |netdev| {
        let name = &netdev.name;
        let path = format!("answers/dcb-apptrust.{name}.json");
        let order = facts.host.json(&path).ok();
        let order = order.and_then(|order| {
            let all = order.get("apptrust")?.as_array()?;
            all.first()?.as_str().map(str::to_owned)
        });
        let is_dscp = |first: &str| first == "dscp";
        let app = format!("answers/dcb-app.{name}.json");
        let (is_dscp, seen, from) = if let Some(first) = order {
            (is_dscp(&first), format!("{first} first"), path)
        } else {
            let answer = facts.host.json(&app)?;
            let map = dscp_map(&answer).ok_or_else(|| odd(&app, &answer.to_string()))?;
            (!map.is_empty(), format!("{} entries of DSCP", map.len()), app)
        };
        // Traffic in a VLAN carries its priority in the tag.
        let ports = facts.ports().map(|(_, port)| port);
        let of_vlan = ports.flat_map(|port| &port.interfaces).any(|interface| {
            interface != name && facts.host.has(&format!("sys/class/net/{interface}/lower_{name}"))
        });
        let (priority, dscp) = (facts.plan.priority, facts.plan.dscp);
        Ok(if is_dscp {
            Outcome::ok(name, format!("{name}: DSCP decides the priority"))
        } else if of_vlan {
            Outcome::info(
                name,
                format!("{name}: the VLAN tag decides the priority; untagged traffic is in priority 0"),
            )
        } else {
            Outcome::warning(
                name,
                format!("{name}: the VLAN tag decides the priority, and traffic has none"),
            )
            .expected("trust in DSCP")
            .fix(format!("dcb app replace dev {name} dscp-prio {dscp}:{priority}"))
        }
        .seen(&from, seen))
    })
}

fn map(facts: &Facts<'_>) -> Vec<Outcome> {
    let plan = facts.plan;
    netdevs(facts, |netdev| {
        let name = &netdev.name;
        let path = format!("answers/dcb-app.{name}.json");
        let answer = facts.host.json(&path)?;
        let map = dscp_map(&answer).ok_or_else(|| odd(&path, &answer.to_string()))?;
        let of = |dscp: u8| {
            map.iter()
                .find(|(of, _)| *of == dscp)
                .map(|(_, priority)| *priority)
        };
        // Without any entry, mlx5 maps DSCPs by their class: three upper bits.
        let (data, cnp) = (of(plan.dscp), of(plan.cnp_dscp));
        let said =
            |priority: Option<u8>| priority.map_or_else(|| "-".to_owned(), |priority| priority.to_string());
        let seen = format!(
            "DSCP {} to {}, {} to {}",
            plan.dscp,
            said(data),
            plan.cnp_dscp,
            said(cnp)
        );
        let fix = format!(
            "dcb app replace dev {name} dscp-prio {}:{} {}:6",
            plan.dscp, plan.priority, plan.cnp_dscp
        );
        let expected = format!(
            "DSCP {} to {}, {} to another",
            plan.dscp, plan.priority, plan.cnp_dscp
        );
        Ok(if data != Some(plan.priority) {
            Outcome::warning(
                name,
                format!(
                    "{name}: DSCP {} does not lead to priority {}",
                    plan.dscp, plan.priority
                ),
            )
            .expected(expected)
            .fix(fix)
        } else if cnp == Some(plan.priority) {
            Outcome::warning(
                name,
                format!(
                    "{name}: CNPs (DSCP {}) are in the lossless priority {}, behind the data",
                    plan.cnp_dscp, plan.priority
                ),
            )
            .expected(expected)
            .fix(fix)
        } else {
            Outcome::ok(
                name,
                format!("{name}: DSCP {} leads to priority {}", plan.dscp, plan.priority),
            )
        }
        .seen(&path, seen))
    })
}

fn ratelimit(facts: &Facts<'_>) -> Vec<Outcome> {
    netdevs(facts, |netdev| {
        let name = &netdev.name;
        let path = format!("answers/dcb-maxrate.{name}.json");
        let answer = facts.host.json(&path)?;
        let rates = answer.get("tc_maxrate_kbit").and_then(Value::as_array);
        let rates: Option<Vec<u64>> = rates.and_then(|all| all.iter().map(Value::as_u64).collect());
        let rates = rates.ok_or_else(|| odd(&path, &answer.to_string()))?;
        let ports = facts.ports().map(|(_, port)| port);
        let speed = ports
            .into_iter()
            .find(|port| port.interfaces.contains(name))
            .and_then(|port| port.rate_bps);
        let of_interface = || {
            let megabits: u64 = facts.host.number(&format!("sys/class/net/{name}/speed")).ok()?;
            megabits.checked_mul(1_000_000)
        };
        let speed = speed.or_else(of_interface);
        // Without the link's speed a limit is below that of any link that RoCE is used on, or is not judged.
        let is_judged = rates.iter().all(|rate| *rate == 0 || *rate < MIN_LINK_KBIT);
        let Some(speed) = speed.or(is_judged.then_some(MIN_LINK_KBIT * 1_000)) else {
            return Err(Unknown {
                source: format!("rate of {name}"),
                why: "the link's speed is not known".to_owned(),
            });
        };
        // 0: no limit.
        let slow: Vec<String> = rates
            .iter()
            .enumerate()
            .filter(|(_, rate)| **rate > 0 && rate.saturating_mul(1000) < speed)
            .map(|(class, rate)| format!("class {class} {} Mbit/s", rate / 1000))
            .collect();
        Ok(if slow.is_empty() {
            Outcome::ok(
                name,
                format!("{name}: no class is limited below the link's speed"),
            )
            .seen(&path, "no limit below the link's speed")
        } else {
            let slow = slow.join(", ");
            Outcome::warning(
                name,
                format!("{name}: rate limits are left in the adapter: {slow}"),
            )
            .seen(&path, slow)
            .expected("no limit")
            .fix(format!("mlnx_qos -i {name} --ratelimit 0,0,0,0,0,0,0,0"))
        })
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn dscps_have_names_and_numbers() {
        // RFC 2474 (CS), 2597 (AF), 3246 (EF).
        for (value, number) in [
            (json!(26), Some(26)),
            (json!("AF31"), Some(26)),
            (json!("CS6"), Some(48)),
            (json!("EF"), Some(46)),
            (json!("48"), Some(48)),
            (json!(64), None),
            (json!("AF51"), None),
            (json!("CS9"), None),
            // 32 * 8 and 42 * 8 are no numbers of 8 bits.
            (json!("CS32"), None),
            (json!("AFZZ"), None),
            (json!("AF"), None),
            (json!(null), None),
        ] {
            assert_eq!(dscp(&value), number, "{value}");
        }
    }
}
