//! Ids, records and lines about streams, which the commands about runs share.

use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::SystemTime;

use anyhow::{anyhow, bail};
use jiff::Timestamp;
use roce_model::text::clean;
use roce_remote::traffic::{RunRecord, RunRecords, RunStatus, StreamRecord, StreamState, StreamStatus};
use serde_json::{Value, json};

use crate::output::table::laid;

/// The path of this program.
pub(super) fn program() -> String {
    let path = std::env::current_exe().ok();
    let path = path.and_then(|path| path.to_str().map(str::to_owned));
    path.unwrap_or_else(|| "roce-analyze".to_owned())
}

/// An id for a run: the time, and digits that differ between two runs of one second. All ids have one length.
pub(super) fn run_id() -> String {
    let now = Timestamp::now();
    let time = now.strftime("%Y%m%dT%H%M%S");
    let nanoseconds = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |since| since.subsec_nanos());
    let mixed = nanoseconds ^ std::process::id().wrapping_mul(0x9e37_79b9);
    format!("{time}-{:06x}", (mixed ^ mixed >> 24) & 0x00ff_ffff)
}

/// The records of runs.
pub(super) fn records() -> anyhow::Result<RunRecords> {
    let records = RunRecords::open().ok_or_else(|| {
        anyhow!("there is no folder for records of runs\nhint: HOME or XDG_STATE_HOME names one")
    })?;
    Ok(records?)
}

/// A run by its id, or the latest one.
pub(super) fn recorded(records: &RunRecords, id: Option<&str>) -> anyhow::Result<RunRecord> {
    let latest;
    let id = match id {
        Some(id) => id,
        None => match records.ids()?.pop() {
            Some(id) => {
                latest = id;
                &latest
            }
            None => bail!("no run was started from here\nhint: roce-analyze traffic run PLAN --detach"),
        },
    };
    records.read(id).map_err(|error| anyhow!(error))
}

/// A time of the record, or of a stream, for people and documents.
pub(super) fn time(ns: u64) -> Option<String> {
    let time = Timestamp::from_nanosecond(i128::from(ns)).ok()?;
    Some(time.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string())
}

/// How many streams are in each state: `3 done, 1 failed`.
pub(super) fn counted(streams: &[StreamStatus]) -> String {
    let names = ["running", "waiting", "done", "failed", "stopped", "missing"];
    let counts = names.iter().filter_map(|name| {
        let count = streams
            .iter()
            .filter(|stream| stream.state.name() == *name)
            .count();
        (count > 0).then(|| format!("{count} {name}"))
    });
    counts.collect::<Vec<_>>().join(", ")
}

/// The name of a stream: `gpu1:mlx5_0 > gpu5:mlx5_0`.
pub(super) fn name(stream: &StreamRecord) -> String {
    format!("{} > {}", stream.client, stream.server)
}

/// The table of streams.
pub(super) fn table(record: &RunRecord, status: &RunStatus) -> String {
    let mut rows = vec![
        ["stream", "size", "QPs", "port", "from", "to", "state", ""]
            .map(str::to_owned)
            .to_vec(),
    ];
    for (stream, status) in record.streams.iter().zip(&status.streams) {
        rows.push(vec![
            stream.number.to_string(),
            stream.size.to_string(),
            stream.qps.to_string(),
            stream.port.to_string(),
            stream.client.clone(),
            stream.server.clone(),
            status.state.name().to_owned(),
            status.state.reason().unwrap_or_default().to_owned(),
        ]);
    }
    laid(&rows, &(0..4))
}

/// Lines about streams that failed.
pub(super) fn failures(record: &RunRecord, status: &RunStatus) -> String {
    let mut text = String::new();
    for (stream, status) in record.streams.iter().zip(&status.streams) {
        if let Some(reason) = status.state.reason() {
            let line = format!("stream {}, {}: {reason}", stream.number, name(stream));
            let _ = writeln!(text, " ✗ {}", clean(&line));
        }
    }
    text
}

/// Streams in a document.
pub(super) fn stream_values(record: &RunRecord, status: &RunStatus) -> Vec<Value> {
    let streams = record.streams.iter().zip(&status.streams);
    streams
        .map(|(stream, status)| {
            json!({
                "number": stream.number,
                "client": stream.client,
                "server": stream.server,
                "port": stream.port,
                "size_bytes": stream.size,
                "qps": stream.qps,
                "state": status.state.name(),
                "reason": status.state.reason(),
                "began": status.begun_ns.and_then(time),
                "ended": status.ended_ns.and_then(time),
            })
        })
        .collect()
}

/// 0 if all streams are done or go on, 1 if some failed, are missing or were stopped.
pub(super) fn code(streams: &[StreamStatus]) -> ExitCode {
    let is_bad = |stream: &StreamStatus| {
        matches!(
            stream.state,
            StreamState::Failed(_) | StreamState::Missing(_) | StreamState::Stopped
        )
    };
    ExitCode::from(u8::from(streams.iter().any(is_bad)))
}
