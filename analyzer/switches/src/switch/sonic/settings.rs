//! CONFIG_DB and APPL_DB: PFC by priority, maps of DSCPs, classes of queues, ECN's thresholds, the watchdog, and states of ports.

use std::collections::{BTreeMap, BTreeSet};

use roce_model::{Counter, value_of};

use super::super::port::{Port, PortPlace};
use super::database::{Database, Hash};
use crate::device::{QueueClass, Reading};
use crate::switch::interface::{Interface, counted};

/// Mbit/s as bytes/s.
const MEGABIT: f64 = 125_000.0;
/// Queues of one key such as `Ethernet0|0-7`.
const MAX_QUEUES: usize = 64;
/// Pairs of maps of DSCPs and traffic classes that are followed.
const MAX_MAPS: usize = 64;
/// Classes of queues in a reading.
const MAX_CLASSES: usize = 65_536;

/// Adds what the settings say. `has_watchdog_table`: the table of PFC's watchdog was read, even if it is empty.
pub(super) fn read(config: &Database, has_watchdog_table: bool, reading: &mut Reading) {
    if has_watchdog_table {
        let mut watched = config.table("PFC_WD|").filter(|(name, _)| *name != "GLOBAL");
        reading.has_watchdog = Some(watched.next().is_some());
    }
    for (name, hash) in config.table("PORT|") {
        if let Some(mut port) = Port::new(reading, name) {
            port.put(
                Counter::SwitchInterfaceMtu,
                PortPlace::default(),
                hash.count("mtu").map(value_of),
            );
        }
    }
    let mut maps = BTreeSet::new();
    for (name, hash) in config.table("PORT_QOS_MAP|") {
        let reference = |field| hash.text(field).map(referenced);
        if let Some(dscp) = reference("dscp_to_tc_map") {
            maps.insert((dscp, reference("tc_to_queue_map")));
        }
        if name != "global" {
            pfc(config, name, hash, reading);
        }
    }
    reading.queue_of_dscp = queue_of_dscp(config, &maps);
    for (key, hash) in config.table("QUEUE|") {
        class(config, key, hash, reading);
    }
}

/// Adds states of ports and port channels in APPL_DB.
pub(super) fn states(states: &Database, reading: &mut Reading) {
    let tables = ["PORT_TABLE:", "LAG_TABLE:"];
    for (name, hash) in tables.iter().flat_map(|table| states.table(table)) {
        let Some(mut port) = Port::new(reading, name) else {
            continue;
        };
        let is_up = match hash.text("oper_status") {
            Some("up") => Some(1.0),
            Some("down") => Some(0.0),
            _ => None,
        };
        port.put(Counter::SwitchInterfaceUp, PortPlace::default(), is_up);
        let rate = hash.count("speed").map(|megabits| value_of(megabits) * MEGABIT);
        port.put(Counter::SwitchInterfaceRate, PortPlace::default(), rate);
    }
}

/// Adds PFC of a port: the priorities of `pfc_enable`, and the queues that they make lossless. A port without the field has no PFC.
fn pfc(config: &Database, name: &str, hash: Hash<'_>, reading: &mut Reading) {
    let enabled: BTreeSet<u8> = hash
        .text("pfc_enable")
        .into_iter()
        .flat_map(|list| list.split(','))
        .filter_map(|priority| priority.trim().parse().ok())
        .collect();
    let queues = hash.text("pfc_to_queue_map").and_then(|map| {
        let key = format!("MAP_PFC_PRIORITY_TO_QUEUE|{}", referenced(map));
        config.hash(&key)
    });
    // Without a map a priority pauses the queue of its number.
    let lossless: BTreeSet<u64> = enabled
        .iter()
        .filter_map(|priority| match queues {
            Some(map) => map.count(&priority.to_string()),
            None => Some(u64::from(*priority)),
        })
        .collect();
    let Some(mut port) = Port::new(reading, name) else {
        return;
    };
    for priority in 0..8_u8 {
        let is_enabled = f64::from(u8::from(enabled.contains(&priority)));
        port.put(
            Counter::SwitchPfcEnabled,
            PortPlace::priority(priority),
            Some(is_enabled),
        );
    }
    for queue in 0..8_u64 {
        let is_lossless = f64::from(u8::from(lossless.contains(&queue)));
        let queue = queue.to_string();
        port.put(
            Counter::SwitchQueueNoDrop,
            PortPlace::queue(&queue),
            Some(is_lossless),
        );
    }
}

/// The queue of each DSCP. A DSCP that reaches different queues of different ports has none.
fn queue_of_dscp(config: &Database, maps: &BTreeSet<(&str, Option<&str>)>) -> BTreeMap<u8, String> {
    let mut queues: BTreeMap<u8, BTreeSet<&str>> = BTreeMap::new();
    for (dscps, classes) in maps.iter().take(MAX_MAPS) {
        let Some(dscps) = config.hash(&format!("DSCP_TO_TC_MAP|{dscps}")) else {
            continue;
        };
        let classes = classes.and_then(|name| config.hash(&format!("TC_TO_QUEUE_MAP|{name}")));
        for (dscp, class) in dscps.texts() {
            let Some(dscp) = dscp.parse::<u8>().ok().filter(|dscp| *dscp < 64) else {
                continue;
            };
            // Without a map a traffic class has the queue of its number.
            let queue = classes.map_or(Some(class), |map| map.text(class));
            queues.entry(dscp).or_default().extend(queue);
        }
    }
    let of_one = |(dscp, queues): (u8, BTreeSet<&str>)| {
        let mut queues = queues.into_iter();
        let queue = queues.next()?.to_owned();
        queues.next().is_none().then_some((dscp, queue))
    };
    queues.into_iter().filter_map(of_one).collect()
}

/// Adds the class of queues of a key such as `Ethernet0,Ethernet4|3-4`: scheduling, and ECN with its thresholds.
fn class(config: &Database, key: &str, hash: Hash<'_>, reading: &mut Reading) {
    let Some((ports, queues)) = key.split_once('|') else {
        return;
    };
    let table = |table: &str, field| {
        let name = hash.text(field).map(referenced)?;
        config.hash(&format!("{table}|{name}"))
    };
    let scheduler = table("SCHEDULER", "scheduler").and_then(|scheduler| scheduler.text("type"));
    let wred = table("WRED_PROFILE", "wred_profile");
    // Packets are green unless a policer colours them.
    let has_ecn = wred
        .and_then(|wred| wred.text("ecn"))
        .is_some_and(|ecn| ecn == "ecn_all" || ecn.contains("green"));
    let threshold = |field| wred.filter(|_| has_ecn).and_then(|wred| wred.count(field));
    for name in ports.split(',') {
        let Some(Interface { name: interface, .. }) = counted(name) else {
            continue;
        };
        for queue in range(queues) {
            if reading.classes.len() >= MAX_CLASSES {
                return;
            }
            let queue = queue.to_string();
            reading.classes.push(QueueClass {
                interface: interface.clone(),
                queue: queue.clone(),
                priority_level: (scheduler == Some("STRICT")).then_some(1),
                has_ecn,
            });
            if let Some(mut port) = Port::new(reading, name) {
                for (bound, field) in [("min", "green_min_threshold"), ("max", "green_max_threshold")] {
                    let place = PortPlace::queue(&queue).with(bound);
                    port.put(Counter::SwitchEcnThreshold, place, threshold(field).map(value_of));
                }
            }
        }
    }
}

/// Queues of `3` or `3-4`.
fn range(text: &str) -> impl Iterator<Item = u16> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (first.trim().parse::<u16>(), last.trim().parse::<u16>());
    let queues = first.ok().zip(last.ok()).map(|(first, last)| first..=last);
    queues.into_iter().flatten().take(MAX_QUEUES)
}

/// The name in a reference to a hash: `AZURE`, or `[DSCP_TO_TC_MAP|AZURE]` of releases before 2022.
fn referenced(text: &str) -> &str {
    let text = text.trim_start_matches('[').trim_end_matches(']');
    text.rsplit_once('|').map_or(text, |(_, name)| name)
}
