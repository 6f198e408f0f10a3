//! The JSON of `show queuing interface`.

use serde_json::Value;

use super::super::json::{Object, count, field, modules, table, text};
use super::super::pfc::Frames;
use super::super::sink::{Sink, queue_of};
use super::statistic::{
    Casts, Unit, egress_statistic, ingress_queue, ingress_statistic, queue_statistic, unit_of,
};
use crate::switch::interface::Interface;

pub(super) fn read(documents: &[Value], command: &str, sink: &mut Sink<'_>) -> bool {
    let mut is_known = false;
    for row in documents
        .iter()
        .flat_map(modules)
        .flat_map(|module| table(module, "queuing_interface"))
    {
        is_known = true;
        let Some(interface) = text(row, &["if_name_str"]).and_then(|name| sink.interface(&name)) else {
            continue;
        };
        let is_ingress = text(row, &["dir"]).is_some_and(|dir| dir.eq_ignore_ascii_case("ingress"));
        if is_ingress {
            ingress_groups(row, &interface, sink);
        }
        egress_groups(row, &interface, sink);
        for (name, unit, value) in statistics(row, "egress_stats_entry", "ep") {
            egress_statistic(&interface, &name, unit, value, sink);
        }
        for (name, unit, value) in statistics(row, "ingress_stats_entry", "ip") {
            ingress_statistic(&interface, &name, unit, value, sink);
        }
        pauses(row, &interface, command, sink);
    }
    is_known
}

fn ingress_groups(row: &Object, interface: &Interface, sink: &mut Sink<'_>) {
    for group in table(row, "qosgrp_cfg") {
        let Some(queue) = text(group, &["qosgrp"]).and_then(|words| queue_of(&words)) else {
            continue;
        };
        let pause = text(group, &["pause-threshold"]);
        let resume = text(group, &["resume-threshold"]);
        ingress_queue(interface, &queue, pause.as_deref(), resume.as_deref(), sink);
    }
}

fn egress_groups(row: &Object, interface: &Interface, sink: &mut Sink<'_>) {
    for group in table(row, "qosgrp_egress_stats") {
        let Some(queue) = text(group, &["eq-qosgrp"]).and_then(|words| queue_of(&words)) else {
            continue;
        };
        for entry in table(group, "qosgrp_egress_stats_entry") {
            let name = text(entry, &["eq-stat-type"]).unwrap_or_default();
            let Some(unit) = text(entry, &["eq-stat-units"]).and_then(|word| unit_of(&word)) else {
                continue;
            };
            let casts = casts(entry);
            queue_statistic(interface, &queue, &name, unit, &casts, sink);
        }
    }
}

/// The values of an entry. A queue that is not counted by cast has the first of the keys only.
fn casts(entry: &Object) -> Casts {
    let is_by_cast = ["eq-oobfc-uc-stat-value", "eq-mc-stat-value"]
        .iter()
        .any(|key| field(entry, key).is_some());
    let first = count(entry, &["eq-uc-stat-value"]);
    if is_by_cast {
        let keys = ["eq-uc-stat-value", "eq-oobfc-uc-stat-value", "eq-mc-stat-value"];
        let is_lacking = |key: &&str| field(entry, key).is_some() && count(entry, &[key]).is_none();
        Casts {
            unicast: first,
            oobfc: count(entry, &["eq-oobfc-uc-stat-value"]),
            multicast: count(entry, &["eq-mc-stat-value"]),
            all: None,
            lacks: first.is_none() || keys.iter().any(is_lacking),
        }
    } else {
        Casts {
            all: first,
            ..Casts::default()
        }
    }
}

/// The entries of a table of statistics whose keys start with `prefix`.
fn statistics(row: &Object, name: &str, prefix: &str) -> Vec<(String, Unit, Option<u64>)> {
    let entries = table(row, name).into_iter().filter_map(|entry| {
        let kind = text(entry, &[&format!("{prefix}-stat-type")])?;
        let unit = unit_of(&text(entry, &[&format!("{prefix}-stat-units")])?)?;
        Some((kind, unit, count(entry, &[&format!("{prefix}-stat-value")])))
    });
    entries.collect()
}

fn pauses(row: &Object, interface: &Interface, command: &str, sink: &mut Sink<'_>) {
    let mut frames = Frames {
        received: count(row, &["rx-ppp"]),
        transmitted: count(row, &["tx-ppp"]),
        ..Frames::default()
    };
    for entry in table(row, "pfc_stats") {
        let Some(priority) = count(entry, &["cos"]).and_then(|cos| usize::try_from(cos).ok()) else {
            continue;
        };
        if let Some(received) = frames.received_of.get_mut(priority) {
            *received = count(entry, &["rx-pause-count"]);
        }
        if let Some(transmitted) = frames.transmitted_of.get_mut(priority) {
            *transmitted = count(entry, &["tx-pause-count"]);
        }
    }
    frames.add(interface, command, sink);
}
