//! A running configuration of Arista EOS: which DSCP reaches which traffic class, which priority is lossless, which queue marks, and
//! what interfaces have, by themselves or by a QoS profile.

use std::collections::BTreeMap;

use super::super::blocks::{Block, dscps, interfaces, named, number, parse, starting, threshold};
use super::super::change::{Change, Changes};
use super::super::eos::{ecn_line, map_line, watchdog};
use super::super::settings::{Settings, cnp_priority};
use crate::inventory::Cluster;

/// Words of a queue: of all packets, or of chips with unicast queues of their own.
const QUEUES: [&str; 2] = ["tx-queue", "uc-tx-queue"];

/// Changes that a running configuration needs. No interfaces: all Ethernet ports that are not shut down.
///
/// # Errors
/// If the text is no configuration, or an interface is not in it.
pub fn check_eos(
    cluster: &Cluster,
    settings: &Settings,
    text: &str,
    chosen: &[String],
) -> Result<Vec<Change>, String> {
    let blocks = parse(text)?;
    let ports = interfaces(&blocks, chosen)?;
    if ports.is_empty() {
        return Err(
            "the text has no interface that is a port and not shut down; 'show running-config' is expected"
                .to_owned(),
        );
    }
    let mut changes = Changes::default();
    for (dscp, class, what) in [
        (cluster.dscp, cluster.priority, "RoCE data"),
        (cluster.cnp_dscp, cnp_priority(cluster), "CNPs"),
    ] {
        let known = class_of(&blocks, dscp);
        if known != class {
            let text = format!("DSCP {dscp} ({what}) reaches traffic class {known}");
            let line = map_line(dscp, class);
            changes.add(Change::new("switch.queue_unclassified", text, &[&line]).comment("Link: stays up."));
        }
    }
    if starting(&blocks, "priority-flow-control pause watchdog")
        .next()
        .is_none()
    {
        changes.add(Change {
            id: "switch.no_watchdog",
            text: "PFC's watchdog is off".to_owned(),
            step: watchdog(),
        });
    }
    let profiles = named(&blocks, "qos profile");
    for (name, port) in ports {
        check_port(cluster, settings, &profiles, (&name, port), &mut changes);
    }
    Ok(changes.into_vec())
}

/// The traffic class of a DSCP. By default it is the three upper bits, with classes 0 and 1 exchanged.
fn class_of(blocks: &[Block], dscp: u8) -> u8 {
    let maps = starting(blocks, "qos map dscp").filter_map(|(line, _)| {
        let (list, class) = line.split_once(" to traffic-class ")?;
        let class = u8::try_from(number(class)?).ok()?;
        dscps(list).contains(&dscp).then_some(class)
    });
    maps.last().unwrap_or(match dscp >> 3 {
        0 => 1,
        1 => 0,
        class => class,
    })
}

/// Checks a port. What the port's profile has is changed there.
fn check_port(
    cluster: &Cluster,
    settings: &Settings,
    profiles: &BTreeMap<&str, &Block>,
    (name, port): (&str, &Block),
    changes: &mut Changes,
) {
    const LINK: &str = "Link: stays up.";
    let priority = cluster.priority;
    let profile = port
        .rest("service-profile")
        .and_then(|profile| Some((profile, *profiles.get(profile)?)));
    let (owner, header) = match profile {
        Some((profile, _)) => (format!("profile {profile}"), format!("qos profile {profile}")),
        None => (name.to_owned(), format!("interface {name}")),
    };
    let parts: Vec<&Block> = std::iter::once(port)
        .chain(profile.map(|(_, block)| block))
        .collect();
    let has = |line: &str| parts.iter().any(|part| part.has(line));
    let mut add = |id, text: String, lines: &[&str]| {
        let mut all = vec![header.as_str()];
        all.extend(lines);
        changes.add(Change::new(id, text, &all).comment(LINK));
    };
    // Routed ports trust the DSCP by themselves.
    if !has("qos trust dscp") && (!port.has("no switchport") || has("qos trust cos")) {
        add(
            "switch.queue_unclassified",
            format!("{owner}: the DSCP is not trusted"),
            &["   qos trust dscp"],
        );
    }
    if !has("priority-flow-control on") && !has("priority-flow-control mode on") {
        add(
            "switch.pfc_off",
            format!("{owner}: PFC is off"),
            &["   priority-flow-control on"],
        );
    }
    let lossless = |part: &Block| -> Vec<u64> {
        let all = part.below("priority-flow-control priority");
        all.filter_map(|(rest, _)| number(rest.strip_suffix(" no-drop")?))
            .collect()
    };
    let lossless: Vec<u64> = parts.iter().flat_map(|part| lossless(part)).collect();
    if !lossless.contains(&u64::from(priority)) {
        add(
            "switch.not_lossless",
            format!("{owner}: priority {priority} of RoCE data is not lossless"),
            &[&format!("   priority-flow-control priority {priority} no-drop")],
        );
    }
    for other in lossless.iter().filter(|other| **other != u64::from(priority)) {
        add(
            "switch.pfc_other_priority",
            format!("{owner}: priority {other} is lossless too"),
            &[&format!("   no priority-flow-control priority {other} no-drop")],
        );
    }
    check_queue(cluster, settings, &parts, &owner, &mut add);
    check_link(settings, name, port, changes);
}

/// Checks the queue of RoCE data: no strict priority, and ECN.
fn check_queue(
    cluster: &Cluster,
    settings: &Settings,
    parts: &[&Block],
    owner: &str,
    add: &mut impl FnMut(&'static str, String, &[&str]),
) {
    let priority = cluster.priority;
    let queue = parts.iter().find_map(|part| {
        QUEUES
            .iter()
            .find_map(|word| Some((*word, part.below(&format!("{word} {priority}")).next()?.1)))
    });
    let word = queue.map_or(QUEUES[0], |(word, _)| word);
    let queue_line = format!("   {word} {priority}");
    if !queue.is_some_and(|(_, queue)| queue.has("no priority")) {
        // Queues have strict priority unless they say otherwise.
        let lowered = lowered(settings, parts, &queue_line);
        let share = format!("      bandwidth percent {}", settings.bandwidth);
        let mut lines: Vec<&str> = lowered.iter().map(String::as_str).collect();
        lines.extend([queue_line.as_str(), "      no priority", &share]);
        add(
            "switch.rdma_strict_priority",
            format!("{owner}: the queue of RoCE data has strict priority: it starves those below it"),
            &lines,
        );
    }
    let detect = queue.and_then(|(_, queue)| queue.rest("random-detect ecn minimum-threshold"));
    let line = format!("      {}", ecn_line(settings));
    match detect {
        None => add(
            "switch.ecn_off",
            format!("{owner}: the queue of RoCE data does not mark packets"),
            &[&queue_line, &line],
        ),
        Some(detect) if settings.has_thresholds => {
            let (min, max) = settings.kbytes();
            let known = (
                threshold(&format!("minimum-threshold {detect}"), "minimum-threshold"),
                threshold(detect, "maximum-threshold"),
            );
            if known != (Some(min * 1_000), Some(max * 1_000)) {
                add(
                    "switch.ecn_threshold",
                    format!("{owner}: other thresholds: '{detect}'"),
                    &[&queue_line, &line],
                );
            }
        }
        Some(_) => {}
    }
}

/// Lines that lower the shares of the other queues where they leave none for the data's, whose line is `own`.
fn lowered(settings: &Settings, parts: &[&Block], own: &str) -> Vec<String> {
    let mut shares = Vec::new();
    for part in parts {
        for word in QUEUES {
            for (queue, block) in part.below(word) {
                let line = format!("   {word} {queue}");
                let share = block.rest("bandwidth percent").and_then(number);
                shares.extend(
                    share
                        .filter(|_| line != own)
                        .map(|share| (format!("{line}\n      bandwidth percent"), share)),
                );
            }
        }
    }
    settings.lowered(&shares)
}

/// Checks 802.3x pause and the MTU of a port.
fn check_link(settings: &Settings, name: &str, port: &Block, changes: &mut Changes) {
    let header = format!("interface {name}");
    let mut add = |id, text: String, line: &str| {
        changes.add(Change::new(id, text, &[&header, line]).comment("Link: may go down for a moment."));
    };
    for direction in ["receive", "send"] {
        let is_on = ["on", "desired"]
            .iter()
            .any(|state| port.has(&format!("flowcontrol {direction} {state}")));
        if is_on {
            add(
                "switch.llfc_and_pfc",
                format!("{name}: 802.3x pause is on ({direction}): it excludes PFC"),
                &format!("   flowcontrol {direction} off"),
            );
        }
    }
    let mtu = settings.switch_mtu().min(9_214);
    let known = port.rest("mtu").and_then(number).unwrap_or(1_500);
    if known < mtu {
        add(
            "switch.mtu",
            format!("{name}: the MTU is {known} bytes"),
            &format!("   mtu {mtu}"),
        );
    }
}
