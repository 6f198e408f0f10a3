//! The parts of this host that lie on this machine: those of this run, and those that earlier runs left. Their list is in memory, so that
//! neither a part nor an upload looks through folders.

use std::collections::VecDeque;
use std::fs::File;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use roce_files::Directory;
use roce_model::{RunKey, Time};
use roce_parquet::{Partition, TABLES};

use super::counts::PartCounts;

/// The table whose file makes a part exist.
const COMMIT: &str = "run";
/// Parts that wait on this machine; with more, the oldest are dropped.
const MAX_PARTS: usize = 100_000;

/// A part that is complete on this machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Part {
    /// `date=YYYY-MM-DD`.
    date: String,
    /// The name of its file in each table.
    name: String,
    /// Tables in which it has a file, `run` last.
    tables: Vec<&'static str>,
    pub(super) bytes: u64,
}

/// The list of parts.
#[derive(Debug)]
pub(super) struct Spool {
    root: Directory,
    /// `host=NAME`, as paths have it.
    host: String,
    state: Mutex<State>,
    counts: Arc<PartCounts>,
}

#[derive(Debug, Default)]
struct State {
    /// The oldest first.
    parts: VecDeque<Part>,
    bytes: u64,
    /// Name of the part that is being uploaded.
    uploading: Option<String>,
}

impl Spool {
    /// Finds the parts that earlier runs of the host of `key` left in the folder `root`.
    ///
    /// # Errors
    /// A folder cannot be read.
    pub(super) fn open(
        root: Directory,
        key: &RunKey,
        counts: &Arc<PartCounts>,
    ) -> Result<Self, roce_files::Error> {
        let (folder, _) = Partition::new(key, None).folder_and_name(COMMIT, "");
        let spool = Self {
            root,
            host: folder.rsplit('/').next().unwrap_or_default().to_owned(),
            state: Mutex::default(),
            counts: Arc::clone(counts),
        };
        let mut found: Vec<(SystemTime, Part)> = Vec::new();
        if let Some(commits) = spool.root.find(COMMIT)? {
            for date in commits
                .names()?
                .into_iter()
                .filter(|name| name.starts_with("date="))
            {
                let Some(folder) = spool.folder(COMMIT, &date)? else {
                    continue;
                };
                for name in folder.names()?.into_iter().filter(|name| is_part(name)) {
                    let changed = folder
                        .open(&name)
                        .ok()
                        .and_then(|file| file.metadata().ok()?.modified().ok());
                    if let Some(part) = spool.part(&date, &name)? {
                        found.push((changed.unwrap_or(SystemTime::UNIX_EPOCH), part));
                    }
                }
            }
        }
        found.sort_by(|a, b| a.0.cmp(&b.0).then_with(|| a.1.name.cmp(&b.1.name)));
        for (_, part) in found {
            spool.push(part);
        }
        Ok(spool)
    }

    /// Removes files of this host that belong to no part: of runs that were killed. Nobody else may write to the folder now.
    ///
    /// # Errors
    /// A folder cannot be read, or a file not removed.
    pub(super) fn clean(&self) -> Result<(), roce_files::Error> {
        let known: std::collections::BTreeSet<(String, String)> = {
            let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            let parts = state.parts.iter();
            parts.map(|part| (part.date.clone(), part.name.clone())).collect()
        };
        for table in TABLES {
            let Some(dates) = self.root.find(table)? else {
                continue;
            };
            for date in dates
                .names()?
                .into_iter()
                .filter(|name| name.starts_with("date="))
            {
                let Some(folder) = self.folder(table, &date)? else {
                    continue;
                };
                for name in folder.names()? {
                    if !known.contains(&(date.clone(), name.clone())) {
                        folder.remove(&name)?;
                    }
                }
                if let Some(of_date) = dates.find(&date)? {
                    of_date.remove_folder(&self.host)?;
                }
                dates.remove_folder(&date)?;
            }
        }
        Ok(())
    }

    /// Notes the part `key` of this run, which begins at `first` and is complete; its bytes.
    ///
    /// # Errors
    /// A folder cannot be read.
    pub(super) fn add(&self, key: &RunKey, first: Time) -> Result<u64, roce_files::Error> {
        let partition = Partition::new(key, Some(first));
        let (folder, name) = partition.folder_and_name(COMMIT, partition.date().unwrap_or_default());
        let date = folder.split('/').nth(1).unwrap_or_default();
        let part = self.part(date, &name)?;
        let bytes = part.as_ref().map_or(0, |part| part.bytes);
        self.counts.written.add(bytes);
        if let Some(part) = part {
            self.push(part);
        }
        Ok(bytes)
    }

    /// Drops the oldest parts until all together have at most `keep` bytes; what was dropped. The part that is being uploaded is the last to go.
    ///
    /// # Errors
    /// A file cannot be removed.
    pub(super) fn bound(&self, keep: Option<u64>) -> Result<Vec<Part>, roce_files::Error> {
        let mut dropped = Vec::new();
        loop {
            let part = {
                let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
                if state.parts.len() <= MAX_PARTS && keep.is_none_or(|keep| state.bytes <= keep) {
                    return Ok(dropped);
                }
                let State { parts, uploading, .. } = &*state;
                let place = parts
                    .iter()
                    .position(|part| uploading.as_ref() != Some(&part.name));
                match state.parts.remove(place.unwrap_or(0)) {
                    None => return Ok(dropped),
                    Some(part) => {
                        state.bytes = state.bytes.saturating_sub(part.bytes);
                        self.show(&state);
                        part
                    }
                }
            };
            self.counts.dropped.add(part.bytes);
            self.remove(&part)?;
            dropped.push(part);
        }
    }

    /// The oldest part, which is being uploaded from now on.
    pub(super) fn oldest(&self) -> Option<Part> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let part = state.parts.front().cloned();
        state.uploading = part.as_ref().map(|part| part.name.clone());
        part
    }

    /// The part is in the store: it goes from this machine. False if it was dropped in the meantime.
    ///
    /// # Errors
    /// A file cannot be removed.
    pub(super) fn uploaded(&self, part: &Part) -> Result<bool, roce_files::Error> {
        {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.uploading = None;
            let Some(place) = state.parts.iter().position(|known| known == part) else {
                return Ok(false);
            };
            state.parts.remove(place);
            state.bytes = state.bytes.saturating_sub(part.bytes);
            self.show(&state);
        }
        self.counts.uploaded.add(part.bytes);
        self.remove(part)?;
        Ok(true)
    }

    /// True while the part was not dropped.
    pub(super) fn has(&self, part: &Part) -> bool {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.parts.contains(part)
    }

    /// Paths of the part's files, relative to the folder, in the order in which they are uploaded: `run` last.
    pub(super) fn files(&self, part: &Part) -> Vec<String> {
        let files = part.tables.iter();
        files
            .map(|table| format!("{table}/{}/{}/{}", part.date, self.host, part.name))
            .collect()
    }

    /// Opens a file of [`files`](Self::files).
    ///
    /// # Errors
    /// It is gone, or cannot be read.
    pub(super) fn open_file(&self, path: &str) -> Result<Option<File>, roce_files::Error> {
        let mut folder = self.root.clone();
        let mut names = path.split('/').peekable();
        while let Some(name) = names.next() {
            if names.peek().is_none() {
                return folder.open(name).map(Some);
            }
            match folder.find(name)? {
                Some(inner) => folder = inner,
                None => return Ok(None),
            }
        }
        Ok(None)
    }

    fn push(&self, part: Part) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.bytes = state.bytes.saturating_add(part.bytes);
        state.parts.push_back(part);
        self.show(&state);
    }

    fn show(&self, state: &State) {
        self.counts.waiting.set(state.parts.len() as u64, state.bytes);
    }

    /// The folder of this host in a table.
    fn folder(&self, table: &str, date: &str) -> Result<Option<Directory>, roce_files::Error> {
        let Some(table) = self.root.find(table)? else {
            return Ok(None);
        };
        let Some(date) = table.find(date)? else {
            return Ok(None);
        };
        date.find(&self.host)
    }

    /// Files of a part; `None` without its file in `run`.
    fn part(&self, date: &str, name: &str) -> Result<Option<Part>, roce_files::Error> {
        let mut part = Part {
            date: date.to_owned(),
            name: name.to_owned(),
            tables: Vec::new(),
            bytes: 0,
        };
        let others = TABLES.into_iter().filter(|table| *table != COMMIT);
        for table in others.chain([COMMIT]) {
            let Some(folder) = self.folder(table, date)? else {
                continue;
            };
            if folder.has(name) {
                let about = folder.open(name)?.metadata();
                part.bytes += about.map_or(0, |about| about.len());
                part.tables.push(table);
            }
        }
        Ok((part.tables.last() == Some(&COMMIT)).then_some(part))
    }

    /// Removes the part's files, that of `run` first. Folders stay: the next part may be writing into them.
    fn remove(&self, part: &Part) -> Result<(), roce_files::Error> {
        for table in part.tables.iter().rev() {
            if let Some(folder) = self.folder(table, &part.date)? {
                folder.remove(&part.name)?;
            }
        }
        Ok(())
    }
}

/// True for the name of a file that is published.
fn is_part(name: &str) -> bool {
    !name.starts_with('.') && name.ends_with(".parquet")
}

#[cfg(test)]
mod tests {
    use roce_files::Access;
    use roce_model::Span;
    use std::io::Write as _;

    use super::*;

    const DAY: &str = "date=2026-11-24";
    /// `date -u -d 2026-11-24 +%s` is 1795478400.
    const FIRST: Time = Time(1_795_478_400 * Span::SECOND.0);

    fn key(run: &str) -> RunKey {
        RunKey {
            run_id: run.to_owned(),
            host: "h7".to_owned(),
            capture: "v1".to_owned(),
        }
    }

    /// Writes the files of a part by hand, each with 100 bytes.
    fn write(root: &Directory, run: &str, tables: &[&str]) {
        for table in tables {
            let folder = root.below(table, Access::Private).unwrap();
            let folder = folder.below(DAY, Access::Private).unwrap();
            let folder = folder.below("host=h7", Access::Private).unwrap();
            let mut file = folder
                .create(&format!("{run}.parquet"), true, Access::Private)
                .unwrap();
            file.write_all(&[7; 100]).unwrap();
        }
    }

    fn spool(path: &std::path::Path) -> (Spool, Directory, Arc<PartCounts>) {
        let root = Directory::named(path, Access::Private).unwrap();
        let counts = Arc::new(PartCounts::default());
        let spool = Spool::open(root.clone(), &key("any"), &counts).unwrap();
        (spool, root, counts)
    }

    #[test]
    fn parts_go_in_the_order_in_which_they_came_and_run_is_last() {
        let folder = tempfile::tempdir().unwrap();
        let (spool, root, counts) = spool(folder.path());
        for run in ["b", "a"] {
            write(&root, run, &["flows", "run", "timeline"]);
            assert_eq!(spool.add(&key(run), FIRST).unwrap(), 300);
        }
        let first = spool.oldest().unwrap();
        assert_eq!(
            spool.files(&first),
            [
                "flows/date=2026-11-24/host=h7/b.parquet",
                "timeline/date=2026-11-24/host=h7/b.parquet",
                "run/date=2026-11-24/host=h7/b.parquet"
            ]
        );
        assert!(spool.uploaded(&first).unwrap());
        assert!(!folder.path().join(&spool.files(&first)[2]).exists());
        assert_eq!((counts.uploaded.parts(), counts.uploaded.bytes()), (1, 300));
        assert_eq!((counts.waiting.parts(), counts.waiting.bytes()), (1, 300));
        assert_eq!(
            spool.files(&spool.oldest().unwrap())[2],
            "run/date=2026-11-24/host=h7/a.parquet"
        );
    }

    #[test]
    fn the_oldest_are_dropped_and_that_which_is_uploaded_goes_last() {
        let folder = tempfile::tempdir().unwrap();
        let (spool, root, counts) = spool(folder.path());
        for run in ["1", "2", "3", "4"] {
            write(&root, run, &["flows", "run"]);
            spool.add(&key(run), FIRST).unwrap();
        }
        let uploading = spool.oldest().unwrap();
        // Four parts of 200 bytes: two fit. Part 1 is being uploaded, so 2 and 3 go.
        let dropped = spool.bound(Some(500)).unwrap();
        let names: Vec<&str> = dropped.iter().map(|part| part.name.as_str()).collect();
        assert_eq!(names, ["2.parquet", "3.parquet"]);
        assert_eq!((counts.dropped.parts(), counts.dropped.bytes()), (2, 400));
        assert!(spool.has(&uploading));
        // A bound that no part fits holds, too.
        assert_eq!(spool.bound(Some(100)).unwrap().len(), 2);
        assert!(!spool.has(&uploading) && !spool.uploaded(&uploading).unwrap());
        assert_eq!(counts.waiting.bytes(), 0);
        assert!(spool.oldest().is_none());
    }

    #[test]
    fn what_earlier_runs_left_is_found_and_what_they_did_not_finish_goes() {
        let folder = tempfile::tempdir().unwrap();
        let (_, root, _) = spool(folder.path());
        write(&root, "whole", &["flows", "run"]);
        write(&root, "killed", &["flows", "events"]);
        write(&root, ".whole.tmp", &["timeline"]);
        let (spool, _, counts) = spool(folder.path());
        assert_eq!((counts.waiting.parts(), counts.waiting.bytes()), (1, 200));
        spool.clean().unwrap();
        let there = |table: &str, run: &str| {
            folder
                .path()
                .join(table)
                .join(DAY)
                .join("host=h7")
                .join(format!("{run}.parquet"))
                .exists()
        };
        assert!(there("flows", "whole") && there("run", "whole"));
        assert!(!there("flows", "killed") && !there("events", "killed") && !there("timeline", ".whole.tmp"));
        assert_eq!(spool.files(&spool.oldest().unwrap()).len(), 2);
    }
}
