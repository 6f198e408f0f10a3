//! Which days of a table have files: parts of compacted runs, and files of single runs.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::bail;
use jiff::civil::Date;
use roce_files::{Access, Directory};

/// Most days of a dataset that is read.
const MAX_DAYS: usize = 4_000;

/// The day of runs without frames, as Hive, Spark and DuckDB name a partition that is not known.
const UNKNOWN: &str = "__HIVE_DEFAULT_PARTITION__";

/// Days that are wanted.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct Range {
    /// From this one on.
    pub(in super::super) from: Option<Date>,
    /// Up to this one.
    pub(in super::super) to: Option<Date>,
}

impl Range {
    /// True if all days are wanted, those without frames too.
    pub(in super::super) fn is_all(self) -> bool {
        self.from.is_none() && self.to.is_none()
    }

    fn has(self, day: &str) -> bool {
        match day.parse::<Date>() {
            Ok(day) => self.from.is_none_or(|from| from <= day) && self.to.is_none_or(|to| day <= to),
            Err(_) => day == UNKNOWN && self.is_all(),
        }
    }
}

/// Days of one kind of files of a table.
#[derive(Debug)]
pub(super) enum Days {
    /// The names in `date=NAME`.
    Known(BTreeSet<String>),
    /// Not known, because the dataset lies in an object store: all of them.
    All,
}

impl Days {
    /// True if there is no file.
    pub(super) fn is_empty(&self) -> bool {
        matches!(self, Self::Known(days) if days.is_empty())
    }

    /// Days of a dataset in an object store, where nobody looks: those between two given ones, or all.
    pub(super) fn assumed(range: Range) -> anyhow::Result<Self> {
        let Range {
            from: Some(from),
            to: Some(to),
        } = range
        else {
            return Ok(Self::All);
        };
        let days: BTreeSet<String> = from
            .series(jiff::Span::new().days(1))
            .take_while(|day| *day <= to)
            .take(MAX_DAYS + 1)
            .map(|day| day.to_string())
            .collect();
        if days.len() > MAX_DAYS {
            bail!("more than {MAX_DAYS} days are wanted");
        }
        Ok(Self::Known(days))
    }
}

/// Days of a table with parts of compacted runs, and days with files of single runs.
pub(super) fn found(dataset: &Path, table: &str, range: Range) -> anyhow::Result<(Days, Days)> {
    let (mut parts, mut singles) = (BTreeSet::new(), BTreeSet::new());
    // `named` makes a missing folder.
    let folder = if dataset.is_dir() {
        Directory::named(dataset, Access::Umask)?.find(table)?
    } else {
        None
    };
    let names = folder.as_ref().map_or(Ok(Vec::new()), Directory::names)?;
    for name in names {
        let Some(day) = name.strip_prefix("date=").filter(|day| range.has(day)) else {
            continue;
        };
        let Some(inside) = folder
            .as_ref()
            .and_then(|folder| folder.find(&name).transpose())
            .transpose()?
        else {
            continue;
        };
        let names = inside.names()?;
        if names
            .iter()
            .any(|name| is_file(name) && name.starts_with("part-"))
        {
            parts.insert(day.to_owned());
        }
        if has_single(&inside, &names)? {
            singles.insert(day.to_owned());
        }
        if parts.len().max(singles.len()) > MAX_DAYS {
            bail!(
                "{}: more than {MAX_DAYS} days\nhint: --from DATE, --to DATE",
                dataset.display()
            );
        }
    }
    Ok((Days::Known(parts), Days::Known(singles)))
}

/// True if the folder of a day has a file of a single run.
fn has_single(day: &Directory, names: &[String]) -> anyhow::Result<bool> {
    for name in names.iter().filter(|name| name.starts_with("host=")) {
        if let Some(host) = day.find(name)?
            && host.names()?.iter().any(|name| is_file(name))
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// True if a file is complete.
fn is_file(name: &str) -> bool {
    name.ends_with(".parquet") && !name.starts_with('.')
}
