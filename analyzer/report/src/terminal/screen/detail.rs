//! One flow: who it is and whose, what it did in the latest intervals, who sends to the same destination, and what happened to it.

use std::collections::VecDeque;

use roce_model::cast::float;
use roce_model::{FlowId, FlowRow, Span};

use super::super::draw::bars;
use super::super::field::{field, padded};
use super::super::ink::{Ink, clean};
use super::flows::{process, rivals, strip, time};
use super::head::moment;
use super::history::{Cell, MAX_INTERVALS};
use super::shown::ShownScreen;
use super::state::{Event, Flow};
use roce_spelling::{ABSENT, bytes, count, percent, plural, rate, short_count};

/// Flows to the same destination that are named.
const RIVALS: usize = 4;
/// Columns for what a strip is about, and for its value in the interval that is looked at.
const TITLE: usize = 12;
const VALUE: usize = 22;

/// The page.
pub(super) fn detail(shown: &ShownScreen<'_>, id: FlowId) -> Vec<String> {
    let name = shown.name(id, shown.style.width);
    let Some(flow) = shown.state.flow(id) else {
        return vec![
            Ink::Bold.paint(&name),
            "it was silent for a long time, and nothing of it is kept".to_owned(),
        ];
    };
    let mut lines = vec![Ink::Bold.paint(&name)];
    lines.extend(field("", &identity(flow), &shown.style));
    lines.extend(field("process", &[whose(shown, flow)], &shown.style));
    lines.extend(field("peer", &[peer(shown, flow)], &shown.style));
    if let Some(interval) = shown.interval {
        lines.extend(timelines(shown, flow, interval));
        lines.extend(competition(shown, flow, interval));
    }
    if let Some(row) = &flow.row {
        lines.extend(field("total", &sums(row), &shown.style));
    }
    lines.push(Ink::Faint.paint("events, the latest first"));
    let events = event_lines(shown, &flow.events);
    if events.is_empty() {
        lines.push("  none yet".to_owned());
    }
    lines.extend(events);
    let others = event_lines(shown, &shown.state.of_no_flow);
    if !others.is_empty() {
        lines.push(Ink::Faint.paint("events of no flow: of hosts, of the capture"));
        lines.extend(others);
    }
    lines
}

/// Events up to now, the latest first.
fn event_lines(shown: &ShownScreen<'_>, events: &VecDeque<Event>) -> Vec<String> {
    let come = events
        .iter()
        .rev()
        .filter(|event| event.time <= shown.state.limit);
    come.map(|event| conclusions(shown, event)).collect()
}

fn identity(flow: &Flow) -> Vec<String> {
    let mut words = Vec::new();
    if let Some(key) = &flow.key {
        words.push(key.service.name().to_owned());
        words.extend(key.vlan.map(|vlan| format!("VLAN {vlan}")));
        words.extend(key.vni.map(|vni| format!("VNI {vni}")));
    }
    if let Some(row) = &flow.row {
        if let Some(ranks) = row.ranks() {
            words.push(ranks.to_string());
            words.extend(
                ranks
                    .communicator
                    .map(|name| format!("communicator {}", clean(&name))),
            );
        }
        words.extend(row.dscp.map(|dscp| format!("DSCP {dscp}")));
        words.extend(row.path_mtu.map(|mtu| format!("path MTU {mtu}")));
        words.extend(row.source_port.map(|port| format!("UDP source port {port}")));
        words.extend(
            row.recovery
                .map(|how| format!("recovers by {}", how.replace('_', "-"))),
        );
        words.extend(row.vantage.map(|vantage| format!("vantage {}", vantage.name())));
    }
    if flow.taps.len() > 1 {
        words.push(format!(
            "seen at {} taps, shown as at the one that saw most",
            flow.taps.len()
        ));
    }
    words.push(format!("id {}", flow.id));
    words
}

fn whose(shown: &ShownScreen<'_>, flow: &Flow) -> String {
    if let Some(process) = process(flow) {
        let cgroup = flow.row.as_ref().and_then(|row| row.cgroup);
        let cgroup = cgroup.map(|cgroup| format!(" (cgroup {cgroup})"));
        return format!("{process}{}", cgroup.unwrap_or_default());
    }
    let why = match (shown.about.paced, shown.about.has_host) {
        (false, false) => "not known: live --probe reports the processes of queue pairs",
        (true, _) => "not known: no host has reported this queue pair",
        (false, true) => {
            "not known: this host has not reported this queue pair; did it exist before the run?"
        }
    };
    why.to_owned()
}

fn peer(shown: &ShownScreen<'_>, flow: &Flow) -> String {
    let Some((row, peer)) = flow.row.as_ref().and_then(|row| Some((row, row.peer_flow_id?))) else {
        // Times to an answer need both directions: the name follows with the next snapshot of the flow.
        let is_paired = shown.interval.is_some_and(|interval| {
            flow.until(interval, MAX_INTERVALS)
                .iter()
                .any(|cell| cell.answer().is_some())
        });
        return if is_paired {
            "found: answers are measured; its name comes with the next snapshot".to_owned()
        } else {
            "the other direction is not known yet".to_owned()
        };
    };
    let matches = row
        .pairing_matches
        .map(|matches| format!(", {}", plural(matches, "match", "matches")));
    format!(
        "{}, found by {}{}",
        shown.name(peer, 60),
        row.pairing.unwrap_or(ABSENT),
        matches.unwrap_or_default()
    )
}

/// A strip for everything that a flow has, with the value in the interval that is looked at.
fn timelines(shown: &ShownScreen<'_>, flow: &Flow, interval: u64) -> Vec<String> {
    let room = shown
        .style
        .width
        .saturating_sub(TITLE + VALUE + 2)
        .min(MAX_INTERVALS);
    let cells = flow.until(interval, room);
    let now = flow.at(interval);
    let line = |title: &str, value: String, strip: String| {
        format!(
            " {}{}{strip}",
            padded(&Ink::Faint.paint(title), TITLE),
            padded(&value, VALUE)
        )
    };
    let of = |value: fn(&Cell) -> f64| -> String {
        let values: Vec<f64> = cells.iter().map(value).collect();
        bars(&values, &shown.style)
    };
    let some = |value: u64| {
        if value == 0 {
            "0".to_owned()
        } else {
            short_count(value)
        }
    };
    let end = moment(shown, shown.state.begins(interval + 1), shown.width());
    let mut lines = vec![Ink::Faint.paint(&format!(
        " {}{}last {}",
        padded("", TITLE),
        padded(&format!("at {end}"), VALUE),
        Span(shown.state.width * room as u64)
    ))];
    lines.push(line(
        "data",
        rate(now.payload, shown.width()).unwrap_or_default(),
        strip(&cells, &shown.style),
    ));
    let ce = percent(now.ce, now.data).map_or_else(
        || ABSENT.to_owned(),
        |share| format!("{share} ({})", short_count(now.ce)),
    );
    lines.push(line(
        "CE",
        ce,
        of(|cell| float(cell.ce) / float(cell.data.max(1))),
    ));
    let cnp = now.cnp.map_or_else(|| ABSENT.to_owned(), some);
    lines.push(line("CNPs", cnp, of(|cell| float(cell.cnp.unwrap_or(0)))));
    lines.push(line(
        "retrans",
        some(now.retransmitted),
        of(|cell| float(cell.retransmitted)),
    ));
    lines.push(line("missing", some(now.missing), of(|cell| float(cell.missing))));
    let answer = match now.answer_max {
        0 => ABSENT.to_owned(),
        max => format!("{}, max {}", time(now.answer()), Span(max)),
    };
    lines.push(line(answer_is(flow), answer, of(|cell| float(cell.answer_max))));
    let inflight = now.inflight.map_or_else(|| ABSENT.to_owned(), bytes);
    lines.push(line(
        "in flight",
        inflight,
        of(|cell| float(cell.inflight.unwrap_or(0))),
    ));
    if cells.iter().any(|cell| cell.paused.is_some()) {
        lines.push(line(
            "paused",
            time(now.paused),
            of(|cell| float(cell.paused.unwrap_or(0))),
        ));
    }
    lines
}

/// Meaning of the time to an answer at this tap.
fn answer_is(flow: &Flow) -> &'static str {
    match flow.row.as_ref().and_then(|row| row.ack_rtt_kind) {
        Some("turnaround") => "turnaround",
        Some("partial") => "part of RTT",
        _ => "RTT",
    }
}

/// Other senders to the same destination.
fn competition(shown: &ShownScreen<'_>, flow: &Flow, interval: u64) -> Vec<String> {
    let rivals = rivals(shown, flow.id, interval);
    let all: u64 = rivals.iter().map(|(_, payload)| payload).sum();
    if rivals.len() < 2 {
        return field(
            "sharing",
            &["nobody: no other flow sends there now".to_owned()],
            &shown.style,
        );
    }
    let mut items: Vec<String> = rivals
        .iter()
        .take(RIVALS)
        .map(|(rival, payload)| {
            let share = percent(*payload, all).unwrap_or_default();
            let who = if rival.id == flow.id {
                "this one".to_owned()
            } else {
                rival.key.map_or_else(
                    || rival.id.to_string(),
                    |key| format!("{} QP {:#x}", key.source, key.destination_qpn.value()),
                )
            };
            format!("{who} {share}")
        })
        .collect();
    if rivals.len() > RIVALS {
        items.push(format!("and {} more", rivals.len() - RIVALS));
    }
    field("sharing", &items, &shown.style)
}

/// Sums over the flow's life, as of its last row.
fn sums(row: &FlowRow) -> Vec<String> {
    let mut words = Vec::new();
    if row.epoch > 0 {
        words.push(format!("since its PSNs started again (epoch {})", row.epoch));
    }
    words.extend([
        bytes(row.payload_bytes),
        plural(row.messages, "message", "messages"),
        plural(row.packets, "packet", "packets"),
    ]);
    if let Some(share) = percent(row.ce, row.data_packets) {
        words.push(format!("CE {share}"));
    }
    words.extend(row.cnp.map(|cnp| plural(cnp, "CNP", "CNPs")));
    for (value, what) in [
        (row.retransmitted_packets, "retransmitted"),
        (row.runs_timeout, "timeouts"),
        (row.missing, "missing"),
        (row.network_lost, "lost in the network"),
        (row.lost_downstream.unwrap_or(0), "lost behind this tap"),
        (row.rnr_naks, "RNR NAKs sent"),
        (row.naks, "NAKs sent"),
    ] {
        if value > 0 {
            words.push(format!("{} {what}", count(value)));
        }
    }
    if let (Some(p50), Some(p99)) = (row.ack_rtt_p50_ns, row.ack_rtt_p99_ns) {
        words.push(format!("RTT p50 {} p99 {}", Span(p50), Span(p99)));
    }
    words
}

/// `18:00:12.003400 retransmission_run, 12, PSN 7, timeout`.
fn conclusions(shown: &ShownScreen<'_>, event: &Event) -> String {
    let time = moment(shown, event.time, Span(1_000));
    let mut words = vec![event.kind.name().replace('_', " ")];
    words.extend(event.psn.map(|psn| format!("PSN {psn}")));
    words.extend(event.value.map(|value| value_of(event, value)));
    if !event.detail.is_empty() {
        words.push(clean(&event.detail));
    }
    format!("  {}  {}", Ink::Faint.paint(&time), words.join(", "))
}

fn value_of(event: &Event, value: u64) -> String {
    use roce_model::EventKind::{
        Gap, Hole, Nak, PauseInterval, ResponseGap, ResponseHole, RetransmissionRun, RnrNak, Stall,
    };
    match event.kind {
        Stall | RnrNak | PauseInterval => Span(value).to_string(),
        Gap | Hole | RetransmissionRun | ResponseGap | ResponseHole => plural(value, "packet", "packets"),
        Nak => format!("syndrome {value:#x}"),
        _ => count(value),
    }
}
