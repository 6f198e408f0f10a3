//! `show queuing pfc-queue detail`: the watchdog that shuts a queue down which PFC keeps from sending for too long.

use roce_model::Counter;

use super::answer::Body;
use super::json::{Object, count, modules, number, table, text};
use super::sink::{NumberPlace, Sink, queue_of};
use crate::switch::interface::Interface;

/// Actions of the watchdog on one queue. Aggregates count since the counters were cleared, the others since the
/// last shutdown.
#[derive(Default)]
struct Actions {
    shutdowns: Option<u64>,
    restores: Option<u64>,
    dropped: Option<u64>,
    ingress_dropped: Option<u64>,
}

impl Actions {
    fn add(&self, interface: &Interface, queue: &str, sink: &mut Sink<'_>) {
        let place = NumberPlace::queue(interface, queue);
        sink.put(place, Counter::SwitchWatchdogShutdowns, &[], self.shutdowns);
        sink.put(place, Counter::SwitchWatchdogRestores, &[], self.restores);
        let dropped = match (self.dropped, self.ingress_dropped) {
            (Some(egress), Some(ingress)) => Some(egress.saturating_add(ingress)),
            (one, other) => one.or(other),
        };
        sink.put(place, Counter::SwitchWatchdogDroppedPackets, &[], dropped);
    }
}

pub(super) fn read(body: &Body, _command: &str, sink: &mut Sink<'_>) -> bool {
    match body {
        Body::Json(documents) => {
            let mut is_known = false;
            for document in documents {
                // The status of all interfaces is above the modules, or in them.
                for object in super::json::objects(document).chain(modules(document)) {
                    if let Some(status) = text(object, &["glb-wd-status"]) {
                        is_known = true;
                        set_watchdog(sink, is_enabled(&status));
                    }
                }
                for row in modules(document)
                    .into_iter()
                    .flat_map(|module| table(module, "queuing_interface"))
                {
                    is_known = true;
                    read_row(row, sink);
                }
            }
            is_known
        }
        Body::Text(text) => read_text(text, sink),
    }
}

fn set_watchdog(sink: &mut Sink<'_>, is_enabled: bool) {
    // One interface with a watchdog is enough.
    let known = sink.reading.has_watchdog.unwrap_or(false);
    sink.reading.has_watchdog = Some(known || is_enabled);
}

/// True of `Enabled` and `[Enabled]`, not of `Not Enabled` and `Disabled`.
fn is_enabled(status: &str) -> bool {
    let status = status.trim_matches(|character: char| !character.is_ascii_alphanumeric());
    status.eq_ignore_ascii_case("enabled") || status == "1"
}

fn read_row(row: &Object, sink: &mut Sink<'_>) {
    // Some releases have the heading of the text in the name: `Ethernet1/1 Interface PFC watchdog: [Enabled]`.
    let name = text(row, &["if_name_str"]).unwrap_or_default();
    let Some(interface) = name
        .split_whitespace()
        .next()
        .and_then(|name| sink.interface(name))
    else {
        return;
    };
    let status = text(row, &["wd-status"]).or_else(|| Some(name.split_once(':')?.1.to_owned()));
    if let Some(status) = status {
        set_watchdog(sink, is_enabled(&status));
    }
    for group in table(row, "qosgrp_stats") {
        let Some(queue) = text(group, &["eq-qosgrp"]).and_then(|words| queue_of(&words)) else {
            continue;
        };
        let mut actions = Actions::default();
        for entry in table(group, "qosgrp_stats_entry") {
            let take = |into: &mut Option<u64>, key: &str| *into = into.or(count(entry, &[key]));
            take(&mut actions.shutdowns, "q-shutdown");
            take(&mut actions.restores, "q-restored");
            take(&mut actions.dropped, "q-aggr-pkt-dropped");
            take(&mut actions.ingress_dropped, "q-ing-aggr-pkt-dropped");
        }
        actions.add(&interface, &queue, sink);
    }
}

fn read_text(text: &str, sink: &mut Sink<'_>) -> bool {
    let mut is_known = false;
    let mut interface: Option<Interface> = None;
    let mut group: Option<(String, Actions)> = None;
    let mut has_groups = false;
    for line in text.lines() {
        let line = line.trim().trim_start_matches('|').trim();
        let start = line.to_ascii_lowercase();
        if start.starts_with("global watch-dog interval") {
            is_known = true;
            set_watchdog(
                sink,
                line.split_once('[').is_some_and(|(_, status)| is_enabled(status)),
            );
        } else if let Some((name, status)) = line.split_once(" Interface PFC watchdog:") {
            is_known = true;
            flush(interface.as_ref(), &mut group, sink);
            interface = sink.interface(name);
            has_groups = false;
            set_watchdog(sink, is_enabled(status));
        } else if start.starts_with("disable-action") {
            // It is ahead of an interface's queues. Behind them, it is the next interface's, whose heading is missing.
            if has_groups {
                flush(interface.as_ref(), &mut group, sink);
                interface = None;
            }
        } else if start.starts_with("qos group ") {
            flush(interface.as_ref(), &mut group, sink);
            has_groups = true;
            let mut words = line.split('[');
            group = queue_of(words.next().unwrap_or_default()).map(|queue| (queue, Actions::default()));
            // `[Active]` or `[Shutdown]`.
            let is_shut = words
                .next()
                .is_some_and(|state| state.to_ascii_lowercase().starts_with("shut"));
            if let (Some(interface), Some((queue, _)), true) = (&interface, &group, is_shut) {
                let stormed = (interface.name.clone(), queue.clone());
                sink.reading.stormed_queues.insert(stormed);
            }
        } else if let Some((name, value)) = line.split_once('|')
            && let Some((_, actions)) = &mut group
        {
            let value = number(value.trim_end_matches('|'));
            let into = match name.trim() {
                "Shutdown" => &mut actions.shutdowns,
                "Restored" => &mut actions.restores,
                "Aggregate pkts dropped" => &mut actions.dropped,
                "Aggregate Ingress pkts dropped" => &mut actions.ingress_dropped,
                _ => continue,
            };
            *into = into.or(value);
        }
    }
    flush(interface.as_ref(), &mut group, sink);
    is_known
}

fn flush(interface: Option<&Interface>, group: &mut Option<(String, Actions)>, sink: &mut Sink<'_>) {
    if let (Some(interface), Some((queue, actions))) = (interface, group.take()) {
        actions.add(interface, &queue, sink);
    }
}
