//! MRC: what was lost and on which path, why packets were sent again, and which paths were left.

use std::collections::BTreeMap;

use roce_model::{MrcConnectionRow, MrcPathState};
use roce_sim::truth::{MrcCause, Truth};
use roce_spelling::count;

use super::line::{Agreement, VerdictLine, line};
use super::results::DemoResults;

/// The lines about connections of MRC.
pub(super) fn connections(truth: &Truth, concluded: &DemoResults) -> Vec<VerdictLine> {
    let mut lines = losses(truth, concluded);
    lines.extend(causes(truth, concluded));
    lines.extend(left(truth, concluded));
    lines
}

/// Lost packets of a path: those that were sent again, those of them that the packets show, and those that the analysis found.
#[derive(Default)]
struct PathLosses {
    happened: u64,
    shown: u64,
    said: u64,
}

fn losses(truth: &Truth, concluded: &DemoResults) -> Vec<VerdictLine> {
    let mut paths: BTreeMap<u32, PathLosses> = BTreeMap::new();
    let losses = truth.mrc.iter().flat_map(|connection| &connection.losses);
    for loss in losses.filter(|loss| loss.repaired) {
        let path = paths.entry(loss.path.udp_source_port.into()).or_default();
        path.happened += 1;
        path.shown += u64::from(loss.shown);
    }
    for path in concluded.run.mrc_paths.iter().filter(|path| path.lost > 0) {
        paths.entry(path.udp_source_port.unwrap_or(0)).or_default().said += path.lost;
    }
    let lines = paths.into_iter().map(|(port, path)| VerdictLine {
        about: format!("lost on the path of UDP port {port}"),
        truth: count(path.happened),
        verdict: count(path.said),
        agreement: Agreement::as_seen(
            path.said == path.happened,
            (path.shown..=path.happened).contains(&path.said),
        ),
    });
    lines.collect()
}

fn causes(truth: &Truth, concluded: &DemoResults) -> Vec<VerdictLine> {
    type Causes = (&'static str, fn(MrcCause) -> bool, fn(&MrcConnectionRow) -> u64);
    const CAUSES: [Causes; 3] = [
        (
            "packets sent again after a hole",
            |cause| cause == MrcCause::Hole,
            |row| row.rtx_hole,
        ),
        (
            "packets sent again after a NACK",
            |cause| matches!(cause, MrcCause::Nack(_)),
            |row| row.rtx_trimmed + row.rtx_trimmed_lasthop + row.rtx_refused,
        ),
        (
            "packets sent again after a timeout",
            |cause| cause == MrcCause::Timeout,
            |row| row.rtx_timeout,
        ),
    ];
    let lines = CAUSES.iter().filter_map(|(about, is_one, of_verdict)| {
        let again = truth
            .mrc
            .iter()
            .flat_map(|connection| &connection.retransmissions);
        let happened = again.filter(|again| is_one(again.cause)).count() as u64;
        let said = concluded.run.mrc_connections.iter().map(of_verdict).sum();
        line(about, happened, said)
    });
    lines.collect()
}

/// Paths that their senders left. One that a probe brought back is none at the end.
fn left(truth: &Truth, concluded: &DemoResults) -> Option<VerdictLine> {
    let left = truth.mrc.iter().flat_map(|connection| &connection.left);
    let paths = concluded.run.mrc_paths.iter();
    let said = paths.filter(|path| matches!(path.state, MrcPathState::Retired | MrcPathState::Dead));
    line(
        "paths that their sender left",
        left.count() as u64,
        said.count() as u64,
    )
}
