//! Compaction of a fleet dataset: the files of all runs of one day become one part for each table, sorted by time. Which days are compacted is
//! left to the caller.
//!
//! A reader takes a run from the parts if a part of `run` names it, and from its own files otherwise. So one rename moves all runs of a compaction
//! from their files to the parts, and at any moment each run is seen once. The steps:
//!
//! 1. Parts that no part of `run` has committed are removed: an interrupted compaction left them.
//! 2. The next part of each table is written under a temporary name and reaches the disk.
//! 3. The parts of all tables but `run` get their names. Their rows are not seen: no part of `run` names their runs.
//! 4. The part of `run` gets its name. That is the commit.
//! 5. The runs' own files are removed, those in `run` last: a run of which files are left is found again by the next compaction.
//!
//! A run that is analysed again after its compaction has files that no reader sees. The next compaction removes them.

mod sorter;

use std::collections::{BTreeMap, BTreeSet, HashSet};

use roce_files::{Access, Directory, UnfinishedFile};
use roce_model::{
    CollectiveColumns, CollectiveWaitColumns, Columns, CreditColumns, EndColumns, EpisodeColumns,
    EventColumns, FindingColumns, FlowColumns, HopColumns, HopTimelineColumns, InbandHopColumns,
    MrcConnectionColumns, MrcPathColumns, RunColumns, SampleColumns, StepColumns, Table, TapColumns,
    TimelineColumns, UetTrafficColumns, VantageColumns, WaitColumns,
};

use crate::error::Error;
use crate::names::TABLES;
use crate::read::{ColumnValues, read_file};
use crate::storage::FolderStorage;
use crate::table::{is_part, part};
use sorter::Sorter;

/// Runs that one compaction takes; of a day with more, the others wait for the next one.
const MAX_RUNS: usize = 100_000;
/// Name of the table whose parts commit.
const COMMIT: &str = RunColumns::TABLE.name;

/// Name of the file in the dataset that is locked during a compaction.
const LOCK: &str = ".compact.lock";

/// The descriptions of all tables, in the order of [`TABLES`].
pub(crate) const DESCRIPTIONS: [Table; TABLES.len()] = [
    FlowColumns::TABLE,
    TimelineColumns::TABLE,
    EventColumns::TABLE,
    EpisodeColumns::TABLE,
    FindingColumns::TABLE,
    StepColumns::TABLE,
    TapColumns::TABLE,
    VantageColumns::TABLE,
    HopColumns::TABLE,
    HopTimelineColumns::TABLE,
    EndColumns::TABLE,
    WaitColumns::TABLE,
    CollectiveColumns::TABLE,
    CreditColumns::TABLE,
    CollectiveWaitColumns::TABLE,
    MrcConnectionColumns::TABLE,
    MrcPathColumns::TABLE,
    UetTrafficColumns::TABLE,
    InbandHopColumns::TABLE,
    SampleColumns::TABLE,
    RunColumns::TABLE,
];

/// Result of the compaction of a day.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CompactedDay {
    /// Runs that are in the new parts.
    pub runs: usize,
    /// Runs that were in parts before, whose files were removed.
    pub again: usize,
    /// Rows of the new parts.
    pub rows: u64,
    /// Bytes of the new parts.
    pub bytes: u64,
    /// Files that were removed.
    pub removed: usize,
    /// Tables whose rows were too many to be sorted at once: parts of them overlap in time.
    pub unsorted: Vec<&'static str>,
}

/// A run of the day, by the place of its files.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct RunFile {
    /// First time of its inputs, in nanoseconds.
    first: Option<i64>,
    /// The folder of its host, and the file's name.
    host: String,
    name: String,
}

/// Days in a dataset, YYYY-MM-DD, the earliest first.
///
/// # Errors
/// When the dataset cannot be read.
pub fn days(storage: &FolderStorage) -> Result<Vec<String>, Error> {
    let Some(folder) = storage.find(COMMIT)? else {
        return Ok(Vec::new());
    };
    let mut days: Vec<String> = folder
        .names()?
        .iter()
        .filter_map(|name| name.strip_prefix("date="))
        .filter(|day| is_day(day))
        .map(str::to_owned)
        .collect();
    days.sort();
    Ok(days)
}

/// True for a day as partitions name it: YYYY-MM-DD.
pub fn is_day(text: &str) -> bool {
    text.parse::<jiff::civil::Date>()
        .is_ok_and(|day| day.to_string() == text)
}

/// Compacts a day of the dataset. `goes_on` is called before each step; once it is false, the compaction ends with an error, and the dataset
/// is as a reader may see it.
///
/// # Errors
/// When a file cannot be read or written, is damaged or of another schema, or `goes_on` was false.
pub fn compact(
    storage: &FolderStorage,
    day: &str,
    access: Access,
    goes_on: &dyn Fn() -> bool,
) -> Result<CompactedDay, Error> {
    let go = || {
        if goes_on() {
            Ok(())
        } else {
            Err(Error::Interrupted)
        }
    };
    let date = format!("date={day}");
    // Held until the end, also by a process that is killed.
    let _lock = storage
        .root()
        .lock(LOCK, access)?
        .ok_or_else(|| Error::Compacting {
            dir: storage.root().path().to_path_buf(),
        })?;
    let Some(runs) = storage.find(&format!("{COMMIT}/{date}"))? else {
        return Ok(CompactedDay::default());
    };
    go()?;
    let (known, next) = committed(&runs)?;
    let (mut new, again) = run_files(&runs, &known)?;
    let mut compacted = CompactedDay {
        again: again.len(),
        ..CompactedDay::default()
    };
    new.truncate(MAX_RUNS);
    for table in TABLES {
        go()?;
        if let Some(folder) = storage.find(&format!("{table}/{date}"))? {
            remove_uncommitted(&folder, next)?;
        }
    }
    if !new.is_empty() {
        compacted.runs = new.len();
        let mut parts = Vec::new();
        for table in &DESCRIPTIONS {
            go()?;
            parts.extend(write(storage, table, &date, &new, next, access, &mut compacted)?);
        }
        // The part of `run` is the last one.
        for (folder, part) in &mut parts {
            go()?;
            part.publish()?;
            // Names reach the disk in this order, too.
            folder.sync()?;
        }
    }
    for run in new.iter().chain(&again) {
        for table in TABLES {
            go()?;
            let Some(folder) = storage.find(&format!("{table}/{date}/{}", run.host))? else {
                continue;
            };
            compacted.removed += usize::from(folder.has(&run.name));
            folder.remove(&run.name)?;
        }
    }
    for run in hosts(&runs)? {
        for table in TABLES {
            if let Some(folder) = storage.find(&format!("{table}/{date}/{run}"))? {
                folder.remove_abandoned(|_| true)?;
            }
        }
    }
    Ok(compacted)
}

/// Identifiers of the runs that the parts of a day have.
///
/// # Errors
/// When a part cannot be read.
pub fn compacted_runs(storage: &FolderStorage, day: &str) -> Result<HashSet<String>, Error> {
    match storage.find(&format!("{COMMIT}/date={day}"))? {
        Some(runs) => Ok(committed(&runs)?.0),
        None => Ok(HashSet::new()),
    }
}

/// The runs that committed parts have, and the number of the next part.
fn committed(runs: &Directory) -> Result<(HashSet<String>, usize), Error> {
    let (mut known, mut next) = (HashSet::new(), 0);
    for name in runs.names()?.iter().filter(|name| is_part(name)) {
        known.extend(run_ids(runs, name)?);
        next = next.max(number(name).saturating_add(1));
    }
    Ok((known, next))
}

/// The number of a part.
fn number(name: &str) -> usize {
    let digits = name
        .strip_prefix("part-")
        .and_then(|rest| rest.strip_suffix(".parquet"));
    digits
        .and_then(|digits| digits.parse().ok())
        .unwrap_or(usize::MAX)
}

/// The identifiers of the runs in a file of a table.
fn run_ids(folder: &Directory, name: &str) -> Result<BTreeSet<String>, Error> {
    let data = read_file(&folder.path_of(name))?;
    match data.column("run_id") {
        Some(ColumnValues::Text(values)) => Ok(values.iter().flatten().cloned().collect()),
        _ => Err(Error::Column {
            path: folder.path_of(name),
            column: "run_id",
        }),
    }
}

/// Folders of hosts in the day of a table.
fn hosts(day: &Directory) -> Result<Vec<String>, Error> {
    let mut hosts = day.names()?;
    hosts.retain(|name| name.starts_with("host="));
    hosts.sort();
    Ok(hosts)
}

/// The day's runs with files of their own: those that no part has, in the order of time, and those that a part has.
fn run_files(runs: &Directory, known: &HashSet<String>) -> Result<(Vec<RunFile>, Vec<RunFile>), Error> {
    let (mut new, mut again) = (Vec::new(), Vec::new());
    for host in hosts(runs)? {
        let Some(folder) = runs.find(&host)? else { continue };
        for name in folder.names()? {
            if name.starts_with('.') || !name.ends_with(".parquet") {
                continue;
            }
            let data = read_file(&folder.path_of(&name))?;
            let first = match data.column("first_time_ns") {
                Some(ColumnValues::I64(values)) => values.iter().copied().flatten().min(),
                _ => None,
            };
            let is_known = match data.column("run_id") {
                Some(ColumnValues::Text(values)) => values.iter().flatten().any(|id| known.contains(id)),
                _ => false,
            };
            let file = RunFile {
                first,
                host: host.clone(),
                name,
            };
            if is_known {
                again.push(file);
            } else {
                new.push(file);
            }
        }
    }
    new.sort();
    Ok((new, again))
}

/// Removes parts from the number `next` on, and unfinished ones.
fn remove_uncommitted(folder: &Directory, next: usize) -> Result<(), Error> {
    for name in folder.names()? {
        if is_part(&name) && number(&name) >= next {
            folder.remove(&name)?;
        }
    }
    folder.remove_abandoned(is_part)?;
    Ok(())
}

/// Writes the part `next` of a table with the rows of `runs`. `None` if they have none. It has its temporary name, and is on the disk.
fn write(
    storage: &FolderStorage,
    table: &'static Table,
    date: &str,
    runs: &[RunFile],
    next: usize,
    access: Access,
    compacted: &mut CompactedDay,
) -> Result<Option<(Directory, UnfinishedFile)>, Error> {
    let Some(day) = storage.find(&format!("{}/{date}", table.name))? else {
        return Ok(None);
    };
    let mut folders: BTreeMap<&str, Option<Directory>> = BTreeMap::new();
    let mut files = Vec::new();
    for run in runs {
        let folder = if let Some(folder) = folders.get(run.host.as_str()) {
            folder.clone()
        } else {
            let folder = day.find(&run.host)?;
            folders.insert(&run.host, folder.clone());
            folder
        };
        if let Some(folder) = folder.filter(|folder| folder.has(&run.name)) {
            files.push((folder.path_of(&run.name), run.first));
        }
    }
    if files.is_empty() {
        return Ok(None);
    }
    let (file, unfinished) = day.begin_shared(&part(next), access)?;
    let mut sorter = Sorter::new(table, file, &unfinished.temporary_path())?;
    for (place, (path, _)) in files.iter().enumerate() {
        let following = files.get(place + 1).and_then(|(_, first)| *first);
        sorter.add(path, following)?;
    }
    let written = sorter.finish()?;
    // The runs' own files are removed soon.
    unfinished.flush()?;
    compacted.rows = compacted.rows.saturating_add(written.rows);
    compacted.bytes = compacted.bytes.saturating_add(written.bytes);
    if !written.is_sorted {
        compacted.unsorted.push(table.name);
    }
    Ok(Some((day, unfinished)))
}
