//! Documents of a job as what a run merges: collectives with their times, and states of ranks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use roce_jobs::documents::{
    FlightEntry, FlightGroup, FlightRecorder, FlightState, InspectorDump, InspectorMetric, InspectorRecord,
    RasAnswers, RasCommunicator, RasRank, RasRankState, RasStatus,
};
use roce_model::cast::whole;
use roce_model::{JobWindow, RankState, RankStateRow, Time, TraceSource};
use roce_pipeline::{Call, StatedRanks, StatedTime, Trace};

/// Rows of one document.
const MAX_ROWS: usize = 1 << 14;

/// A document without collectives.
fn empty(file: String, form: TraceSource) -> Trace {
    Trace {
        file,
        form,
        has_epoch: true,
        calls: Vec::new(),
        stated: StatedRanks::default(),
        network: None,
        left_out: 0,
        is_cut: None,
    }
}

fn communicator(hash: u64) -> String {
    format!("{hash:#x}")
}

fn median(mut values: Vec<u64>) -> Option<u64> {
    values.sort_unstable();
    values.get(values.len() / 2).copied()
}

fn signed(microseconds: u64) -> i64 {
    i64::try_from(microseconds.saturating_mul(1_000)).unwrap_or(i64::MAX)
}

/// Collectives of verbose records, and a row for each rank and operation.
pub(super) fn inspector(file: String, dump: &InspectorDump) -> Trace {
    let mut groups: BTreeMap<(usize, &str), Vec<&InspectorRecord>> = BTreeMap::new();
    let mut calls = Vec::new();
    for record in &dump.records {
        groups
            .entry((record.process, &record.operation))
            .or_default()
            .push(record);
        let Some(process) = dump.processes.get(record.process) else {
            continue;
        };
        calls.extend(record.span_us.map(|(start, end)| Call {
            start: signed(start),
            end: signed(end),
            kind: record.operation.clone(),
            message_bytes: Some(record.message_bytes),
            communicator: Some(communicator(process.communicator)),
            ranks: Some(process.ranks),
            rank: Some(process.rank),
            sequence: Some(record.sequence),
        }));
    }
    calls.sort_by_key(|call| (call.start, call.end));
    let row = |(place, operation): &(usize, &str), records: &Vec<&InspectorRecord>| {
        let process = dump.processes.get(*place)?;
        let lengths = records
            .iter()
            .map(|record| record.duration_us.saturating_mul(1_000));
        Some(RankStateRow {
            rank: Some(process.rank),
            communicator: Some(communicator(process.communicator).into()),
            ranks: Some(process.ranks),
            hostname: process.hostname.clone().map(Into::into),
            operation: (*operation).to_owned().into(),
            sequence: records.iter().map(|record| record.sequence).max(),
            collectives: records.len() as u64,
            median_ns: median(lengths.collect()),
            ..RankStateRow::default()
        })
    };
    let rows = groups
        .iter()
        .take(MAX_ROWS)
        .filter_map(|(key, records)| row(key, records));
    let dumped = dump.records.iter().filter_map(|record| record.dump_us).min();
    let time = match dumped {
        // Times of collectives are compared by themselves.
        Some(at) if calls.is_empty() => StatedTime::Written(at.saturating_mul(1_000)),
        _ => StatedTime::Unknown,
    };
    Trace {
        stated: StatedRanks {
            rows: rows.collect(),
            time,
            ..StatedRanks::default()
        },
        calls,
        left_out: dump.left_out,
        is_cut: dump
            .is_cut
            .then(|| "ends within a record: the job was killed, or still writes".to_owned()),
        ..empty(file, TraceSource::Inspector)
    }
}

/// Times of the collectives of one trace at its rank.
pub(super) fn windows(trace: &Trace) -> impl Iterator<Item = JobWindow> {
    let is_stated = trace.form == TraceSource::Inspector;
    trace.calls.iter().filter(move |_| is_stated).filter_map(|call| {
        let hash = call.communicator.as_deref()?.strip_prefix("0x")?;
        Some(JobWindow {
            communicator: u64::from_str_radix(hash, 16).ok()?,
            rank: call.rank?,
            key: (Arc::from(call.kind.as_str()), call.sequence?),
            start: Time(u64::try_from(call.start).ok()?),
            end: Time(u64::try_from(call.end).ok()?),
        })
    })
}

/// A row for each operation at a node. Metrics have no rank and no time.
pub(super) fn metrics(file: String, metrics: &[InspectorMetric]) -> Trace {
    let rows = metrics
        .iter()
        .filter(|metric| metric.duration_us.is_some())
        .map(|metric| RankStateRow {
            ranks: metric.ranks,
            hostname: metric.node.clone().map(Into::into),
            operation: metric.operation.clone().unwrap_or_default().into(),
            median_ns: metric.duration_us.map(|time| whole(time * 1e3)),
            ..RankStateRow::default()
        });
    Trace {
        stated: StatedRanks {
            rows: rows.take(MAX_ROWS).collect(),
            needs_host: true,
            ..StatedRanks::default()
        },
        ..empty(file, TraceSource::InspectorMetrics)
    }
}

/// Rows of each rank in each answer, in their order.
pub(super) fn answers(file: String, answers: &RasAnswers) -> Trace {
    let mut rows = Vec::new();
    for status in &answers.statuses {
        let begin = rows.len();
        for one in &status.communicators {
            for rank in &one.ranks {
                rows.extend(rank_rows(one, rank));
            }
            // Text lists ranks that are behind, and not those that are not.
            let is_text = one.size.is_none();
            rows.extend(one.highest.iter().filter(|_| is_text).map(|count| RankStateRow {
                communicator: Some(communicator(one.hash).into()),
                state: RankState::Running,
                operation: count.operation.clone().into(),
                sequence: Some(count.launched),
                ..RankStateRow::default()
            }));
        }
        rows.extend(absent_rows(status));
        let local = status.local_seconds.and_then(|time| u64::try_from(time).ok());
        for row in rows.iter_mut().skip(begin) {
            row.local_s = local;
        }
    }
    let dead = answers.events.iter().filter(|event| event.name == "PEER_DEAD");
    rows.extend(dead.map(|event| RankStateRow {
        hostname: event.host.clone().map(Into::into),
        state: RankState::Dead,
        ..RankStateRow::default()
    }));
    let times = answers.statuses.iter().map(|status| status.local_seconds);
    let mut times = times
        .chain(answers.events.iter().map(|event| event.local_seconds))
        .flatten();
    let left_out = rows.len().saturating_sub(MAX_ROWS) as u64;
    rows.truncate(MAX_ROWS);
    Trace {
        stated: StatedRanks {
            rows,
            time: times.next().map_or(StatedTime::Unknown, StatedTime::Local),
            needs_host: true,
            ..StatedRanks::default()
        },
        left_out: answers.left_out + left_out,
        ..empty(file, TraceSource::Ras)
    }
}

const fn state(rank: &RasRank) -> RankState {
    match rank.state {
        RasRankState::Answered => RankState::Running,
        RasRankState::Missing => RankState::Missing,
        RasRankState::Dead => RankState::Dead,
        RasRankState::Failed => RankState::Failed,
    }
}

/// A row for each operation that some rank has launched, or one without.
fn rank_rows(one: &RasCommunicator, rank: &RasRank) -> Vec<RankStateRow> {
    let row = RankStateRow {
        rank: Some(rank.rank),
        communicator: Some(communicator(one.hash).into()),
        ranks: one.size,
        hostname: rank.host.clone().map(Into::into),
        state: state(rank),
        ..RankStateRow::default()
    };
    let is_used = |operation: &str| {
        let mut highest = one.highest.iter();
        highest.any(|count| count.operation == operation && count.launched > 0)
    };
    let counts = rank.counts.iter().filter(|count| is_used(&count.operation));
    let rows: Vec<RankStateRow> = counts
        .map(|count| RankStateRow {
            operation: count.operation.clone().into(),
            sequence: Some(count.launched),
            ..row.clone()
        })
        .collect();
    if rows.is_empty() { vec![row] } else { rows }
}

/// Processes that did not answer, and of which no rank is listed.
fn absent_rows(status: &RasStatus) -> impl Iterator<Item = RankStateRow> {
    let ranks = status.communicators.iter().flat_map(|one| &one.ranks);
    let listed: BTreeSet<u32> = ranks.filter_map(|rank| rank.process).collect();
    let absent = status
        .absent
        .iter()
        .filter(move |absent| !listed.contains(&absent.process));
    absent.map(|absent| RankStateRow {
        hostname: Some(absent.host.clone().into()),
        state: if absent.is_dead {
            RankState::Dead
        } else {
            RankState::Missing
        },
        ..RankStateRow::default()
    })
}

/// A row for each process group.
pub(super) fn recorder(file: String, recorder: &FlightRecorder) -> Trace {
    let created = || recorder.entries.iter().filter_map(|entry| entry.created_ns);
    let time = match (created().min(), created().max()) {
        (Some(first), Some(last)) => StatedTime::Epoch(first, last),
        _ => StatedTime::Unknown,
    };
    let seen = recorder
        .entries
        .iter()
        .filter_map(|entry| entry.seen_ns)
        .chain(created());
    let known = seen.max().map(Time);
    let mut entries: BTreeMap<&str, Vec<&FlightEntry>> = BTreeMap::new();
    for entry in recorder.entries.iter().filter(|entry| !entry.is_p2p) {
        entries.entry(&entry.group).or_default().push(entry);
    }
    let rows = recorder.groups.iter().take(MAX_ROWS).map(|group| RankStateRow {
        rank: recorder.rank,
        known_time: known,
        ..group_row(group, entries.get(&*group.name).map_or(&[], Vec::as_slice))
    });
    Trace {
        stated: StatedRanks {
            rows: rows.collect(),
            time,
            is_global: true,
            ..StatedRanks::default()
        },
        ..empty(file, TraceSource::FlightRecorder)
    }
}

/// The row of a process group, from its own entries.
fn group_row(group: &FlightGroup, own: &[&FlightEntry]) -> RankStateRow {
    let is_after = |entry: &&&FlightEntry| group.completed.is_none_or(|completed| entry.sequence > completed);
    let open = own
        .iter()
        .filter(|entry| entry.state != FlightState::Completed)
        .filter(is_after)
        .min_by_key(|entry| entry.sequence);
    let mut created: Vec<u64> = own.iter().filter_map(|entry| entry.created_ns).collect();
    created.sort_unstable();
    let gaps = created
        .iter()
        .zip(created.iter().skip(1))
        .map(|(one, next)| next - one);
    let completed = own.iter().filter(|entry| entry.state == FlightState::Completed);
    let last = completed.max_by_key(|entry| entry.sequence);
    let name = match group.description.as_str() {
        "" | "undefined" => &group.name,
        description => description,
    };
    let shown = open
        .or(last)
        .map(|entry| entry.operation.trim_start_matches("nccl:").to_owned());
    RankStateRow {
        communicator: Some(name.to_owned().into()),
        ranks: u32::try_from(group.ranks.len()).ok().filter(|ranks| *ranks > 0),
        state: match open.map(|entry| entry.state) {
            Some(FlightState::Started) => RankState::Started,
            Some(_) => RankState::Scheduled,
            None => RankState::Measured,
        },
        operation: shown.unwrap_or_default().into(),
        sequence: open
            .map(|entry| entry.sequence)
            .or(group.completed)
            .or(last.map(|entry| entry.sequence)),
        collectives: own.len() as u64,
        median_ns: median(own.iter().filter_map(|entry| entry.duration_ns).collect()),
        gap_ns: gaps.max(),
        begin_time: open.and_then(|entry| entry.created_ns).map(Time),
        ..RankStateRow::default()
    }
}
