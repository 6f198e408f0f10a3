//! Section about connections of MRC and UET, about their paths that had trouble, and about packets of UET. All paths are in the table
//! `mrc_paths` of the results.

use roce_model::{MrcConnectionRow, MrcPathRow, MrcPathState, PathTransport, Span, UetTrafficRow};

use super::field::sentence;
use super::grid::{Column, lay_some};
use super::ink::{Ink, shorten};
use super::view::View;
use roce_spelling::{ABSENT, bytes, plural, short_count};

/// Connections and paths that are shown.
const SHOWN: usize = 12;

fn time(ns: Option<u64>) -> String {
    ns.map_or_else(|| ABSENT.to_owned(), |ns| Span(ns).to_string())
}

/// Trouble of a connection: the order in which connections are shown.
const fn trouble(row: &MrcConnectionRow) -> u64 {
    row.lost + row.trimmed + row.trimmed_lasthop + row.retransmitted_packets
}

/// Trouble of a path.
const fn path_trouble(path: &MrcPathRow) -> u64 {
    path.lost + path.trimmed + path.trimmed_lasthop + path.marked
}

/// The section.
pub(super) fn mrc(view: &View<'_>) -> Vec<String> {
    let (run, style) = (view.run, view.style);
    let mut rows: Vec<&MrcConnectionRow> = run.mrc_connections.iter().collect();
    if rows.is_empty() {
        return traffic(view);
    }
    let count = rows.len();
    let of_uet = rows
        .iter()
        .filter(|row| row.transport == PathTransport::Uet)
        .count();
    rows.sort_by_key(|row| core::cmp::Reverse((trouble(row), row.payload_bytes)));
    rows.truncate(SHOWN);
    let room = (style.width / 4).max(16);
    let mut lines = vec![String::new()];
    let (one, many) = match of_uet {
        0 => ("connection of MRC", "connections of MRC"),
        of_uet if of_uet == count => ("connection of UET", "connections of UET"),
        _ => ("connection of MRC or UET", "connections of MRC and UET"),
    };
    let title = plural(count as u64, one, many);
    lines.extend(sentence([Some(Ink::Bold.paint(&title))], style));
    let counted = |title, rank, value: fn(&MrcConnectionRow) -> u64| {
        Column::new(title, true, rank, &rows, |row| short_count(value(row))).unless_zero()
    };
    let columns = vec![
        Column::new("from", false, 0, &rows, |row| {
            shorten(&row.requestor.to_string(), room, style.unicode)
        }),
        Column::new("to", false, 0, &rows, |row| {
            shorten(&row.responder.to_string(), room, style.unicode)
        }),
        Column::new("QP or PDC", true, 3, &rows, |row| {
            row.responder_qpn
                .or(row.requestor_pdc)
                .map_or_else(|| ABSENT.to_owned(), |number| format!("{number:#x}"))
        }),
        Column::new("data", true, 2, &rows, |row| bytes(row.payload_bytes)),
        counted("again", 1, |row| row.retransmitted_packets),
        counted("lost", 1, |row| row.lost).in_ink(Ink::Bad),
        counted("undecided", 3, |row| row.undecided),
        counted("trimmed", 1, |row| row.trimmed).in_ink(Ink::Warn),
        counted("at last hop", 1, |row| row.trimmed_lasthop).in_ink(Ink::Warn),
        counted("needless", 2, |row| row.spurious),
        counted("timeouts", 2, |row| row.rtx_timeout),
        counted("skips", 4, |row| row.sacks_skip),
        counted("penalties", 4, |row| row.penalty_sacks),
        Column::new("message p50", true, 5, &rows, |row| time(row.completion_p50_ns)),
        Column::new("confidence", false, 6, &rows, |row| {
            row.confidence.name().to_owned()
        }),
    ];
    lines.extend(lay_some(columns, (rows.len(), count), style));
    lines.extend(paths(view));
    lines.extend(traffic(view));
    lines
}

/// Packets of UET by hosts, jobs and secure domains.
fn traffic(view: &View<'_>) -> Vec<String> {
    let (run, style) = (view.run, view.style);
    let mut rows: Vec<&UetTrafficRow> = run.uet_traffic.iter().collect();
    if rows.is_empty() {
        return Vec::new();
    }
    let count = rows.len();
    rows.sort_by_key(|row| core::cmp::Reverse((row.payload_bytes, row.packets)));
    rows.truncate(SHOWN);
    let room = (style.width / 4).max(16);
    let packets = plural(run.totals.uet_packets, "packet of UET", "packets of UET");
    let title = match run.totals.uet_encrypted {
        0 => packets,
        encrypted => format!(
            "{packets}, {} of them encrypted: their connections and jobs are not known",
            short_count(encrypted)
        ),
    };
    let mut lines = vec![String::new()];
    lines.extend(sentence([Some(Ink::Bold.paint(&title))], style));
    let counted = |title, rank, value: fn(&UetTrafficRow) -> u64| {
        Column::new(title, true, rank, &rows, |row| short_count(value(row))).unless_zero()
    };
    let columns = vec![
        Column::new("from", false, 0, &rows, |row| {
            shorten(&row.source.to_string(), room, style.unicode)
        }),
        Column::new("to", false, 0, &rows, |row| {
            shorten(&row.destination.to_string(), room, style.unicode)
        }),
        Column::new("job", true, 0, &rows, |row| match (row.job, row.secure_domain) {
            (Some(job), _) => job.to_string(),
            (None, Some(domain)) => format!("domain {domain}"),
            (None, None) => ABSENT.to_owned(),
        }),
        counted("packets", 1, |row| row.packets),
        Column::new("data", true, 1, &rows, |row| bytes(row.payload_bytes)),
        counted("messages", 3, |row| row.messages),
        counted("ACKs", 3, |row| row.acks),
        counted("NACKs", 2, |row| row.nacks).in_ink(Ink::Warn),
        counted("encrypted", 2, |row| row.encrypted),
        counted("errors", 1, |row| row.errors).in_ink(Ink::Bad),
        counted("trimmed", 1, |row| row.trimmed).in_ink(Ink::Warn),
        counted("CE", 2, |row| row.ce),
    ];
    lines.extend(lay_some(columns, (rows.len(), count), style));
    lines
}

/// Paths that lost, trimmed or marked packets, or that are no longer used.
fn paths(view: &View<'_>) -> Vec<String> {
    let (run, style) = (view.run, view.style);
    let has_trouble = |path: &&MrcPathRow| {
        path_trouble(path) > 0 || matches!(path.state, MrcPathState::Dead | MrcPathState::Retired)
    };
    let mut rows: Vec<&MrcPathRow> = run.mrc_paths.iter().filter(has_trouble).collect();
    if rows.is_empty() {
        return Vec::new();
    }
    let count = rows.len();
    rows.sort_by_key(|path| core::cmp::Reverse(path_trouble(path)));
    rows.truncate(SHOWN);
    let title = format!(
        "{} of {}",
        plural(count as u64, "path with trouble", "paths with trouble"),
        short_count(run.mrc_paths.len() as u64)
    );
    let mut lines = vec![String::new()];
    lines.extend(sentence([Some(Ink::Bold.paint(&title))], style));
    let counted = |title, rank, value: fn(&MrcPathRow) -> u64| {
        Column::new(title, true, rank, &rows, |row| short_count(value(row))).unless_zero()
    };
    let columns = vec![
        Column::new("connection", true, 0, &rows, |row| row.connection.to_string()),
        Column::new("entropy", false, 0, &rows, |row| {
            row.ev.map_or_else(|| ABSENT.to_owned(), |ev| format!("{ev:#x}"))
        }),
        Column::new("plane", true, 3, &rows, |row| {
            row.plane
                .map_or_else(|| ABSENT.to_owned(), |plane| plane.to_string())
        })
        .unless_zero(),
        counted("sent", 2, |row| row.sent),
        counted("lost", 1, |row| row.lost).in_ink(Ink::Bad),
        counted("trimmed", 1, |row| row.trimmed + row.trimmed_lasthop).in_ink(Ink::Warn),
        counted("marked", 1, |row| row.marked),
        Column::new("rtt p50", true, 4, &rows, |row| time(row.rtt_p50_ns)),
        Column::new("state", false, 2, &rows, |row| row.state.name().replace('_', " ")),
    ];
    lines.extend(lay_some(columns, (rows.len(), count), style));
    lines
}
