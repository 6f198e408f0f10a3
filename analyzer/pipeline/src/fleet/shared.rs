//! Results of the first pass over a fleet for one day: its captures, and the flows in them. Which of them are
//! groups is left to `groups`.

use std::collections::HashMap;
use std::path::PathBuf;

use roce_model::Time;
use roce_parquet::{ColumnValues, FolderStorage, TableData, compacted_runs, read_file};

use super::groups::{FlowSpan, GroupCapture};
use crate::error::Error;

/// Captures of a day, at most.
const MAX_CAPTURES: usize = 1 << 18;
/// Flows in captures of a day, at most: about 1 GB.
const MAX_SPANS: usize = 1 << 23;

/// The captures of a day, and the flows in them.
#[derive(Clone, Debug, Default)]
pub struct Day {
    /// Keys of the captures.
    pub keys: Vec<String>,
    /// Hosts and times of the captures, in the same order.
    pub captures: Vec<GroupCapture>,
    /// The flows in them.
    pub spans: Vec<FlowSpan>,
}

/// Files of a table that belong to a day.
struct Files {
    parts: Vec<PathBuf>,
    single: Vec<PathBuf>,
}

fn files(storage: &FolderStorage, table: &str, day: &str) -> Result<Files, Error> {
    let mut files = Files {
        parts: Vec::new(),
        single: Vec::new(),
    };
    let Some(folder) = storage
        .find(&format!("{table}/date={day}"))
        .map_err(Error::from)?
    else {
        return Ok(files);
    };
    let is_table = |name: &String| !name.starts_with('.') && name.ends_with(".parquet");
    for name in folder.names()? {
        if name.starts_with("host=") {
            let Some(host) = folder.find(&name)? else { continue };
            files.single.extend(
                host.names()?
                    .iter()
                    .filter(|name| is_table(name))
                    .map(|name| host.path_of(name)),
            );
        } else if is_table(&name) {
            files.parts.push(folder.path_of(&name));
        }
    }
    files.parts.sort();
    files.single.sort();
    Ok(files)
}

/// A column of texts, numbers or times.
fn texts<'a>(
    data: &'a TableData,
    column: &'static str,
    path: &std::path::Path,
) -> Result<&'a [Option<String>], Error> {
    match data.column(column) {
        Some(ColumnValues::Text(values)) => Ok(values),
        _ => Err(missing(column, path)),
    }
}

fn numbers<'a>(
    data: &'a TableData,
    column: &'static str,
    path: &std::path::Path,
) -> Result<&'a [Option<i64>], Error> {
    match data.column(column) {
        Some(ColumnValues::I64(values)) => Ok(values),
        _ => Err(missing(column, path)),
    }
}

fn missing(column: &'static str, path: &std::path::Path) -> Error {
    Error::from(roce_parquet::Error::Column {
        path: path.to_path_buf(),
        column,
    })
}

fn time(value: Option<i64>) -> Option<Time> {
    value.and_then(|ns| u64::try_from(ns).ok()).map(Time)
}

/// Reads a day of a dataset, by the rule of its readers: runs in parts come from there.
///
/// # Errors
/// When a file cannot be read, or there are too many captures or flows.
pub fn day(storage: &FolderStorage, day: &str) -> Result<Day, Error> {
    let compacted = compacted_runs(storage, day)?;
    let mut found = Day::default();
    let mut places: HashMap<String, usize> = HashMap::new();
    let seen = |is_part: bool, run: &str| compacted.contains(run) == is_part;
    let runs = files(storage, "run", day)?;
    for (is_part, path) in paths(&runs) {
        let data = read_file(path)?;
        let [ids, hosts, keys] = [
            texts(&data, "run_id", path)?,
            texts(&data, "host", path)?,
            texts(&data, "capture", path)?,
        ];
        let [first, last] = [
            numbers(&data, "first_time_ns", path)?,
            numbers(&data, "last_time_ns", path)?,
        ];
        for row in 0..data.rows {
            let get = |values: &[Option<String>]| values.get(row).cloned().flatten();
            let at = |values: &[Option<i64>]| time(values.get(row).copied().flatten());
            let (Some(id), Some(host), Some(key)) = (get(ids), get(hosts), get(keys)) else {
                continue;
            };
            let (Some(first), Some(last)) = (at(first), at(last)) else {
                continue;
            };
            if !seen(is_part, &id) || places.contains_key(&id) {
                continue;
            }
            if found.keys.len() >= MAX_CAPTURES {
                return Err(Error::TooMany {
                    what: "captures",
                    limit: MAX_CAPTURES,
                });
            }
            places.insert(id, found.keys.len());
            found.keys.push(key);
            found.captures.push(GroupCapture { host, first, last });
        }
    }
    let flows = files(storage, "flows", day)?;
    for (is_part, path) in paths(&flows) {
        let data = read_file(path)?;
        let [ids, destinations] = [texts(&data, "run_id", path)?, texts(&data, "destination", path)?];
        let [flow_ids, first, last] = [
            numbers(&data, "flow_id", path)?,
            numbers(&data, "first_time_ns", path)?,
            numbers(&data, "last_time_ns", path)?,
        ];
        for row in 0..data.rows {
            let id = ids.get(row).and_then(Option::as_deref).unwrap_or_default();
            let Some(capture) = places.get(id).copied().filter(|_| seen(is_part, id)) else {
                continue;
            };
            let at = |values: &[Option<i64>]| values.get(row).copied().flatten();
            let (Some(flow), Some(first), Some(last)) = (at(flow_ids), time(at(first)), time(at(last)))
            else {
                continue;
            };
            if found.spans.len() >= MAX_SPANS {
                return Err(Error::TooMany {
                    what: "flows",
                    limit: MAX_SPANS,
                });
            }
            found.spans.push(FlowSpan {
                flow,
                first,
                last,
                capture,
                destination: destinations.get(row).cloned().flatten().unwrap_or_default(),
            });
        }
    }
    Ok(found)
}

/// The files, each with whether it is a part.
fn paths(files: &Files) -> impl Iterator<Item = (bool, &PathBuf)> {
    let parts = files.parts.iter().map(|path| (true, path));
    parts.chain(files.single.iter().map(|path| (false, path)))
}
