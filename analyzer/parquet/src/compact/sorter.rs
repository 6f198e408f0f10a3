//! Rows of many files of one table on their way into one: sorted by time, with a bound of what is held in memory.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use polars::polars_utils::compression::ZstdLevel;
use polars::prelude::{DataFrame, IntoColumn, PolarsResult, Schema, Series, SortOptions};
use roce_model::{Column, ColumnType, RunKey, Table};

use crate::column::fields;
use crate::encode::ChunkEncoder;
use crate::error::Error;
use crate::file::FileWriter;
use crate::rows::groups;
use crate::table::{batched, end, row_group, statistics};

/// Level of the compression.
const LEVEL: i32 = 1;

/// Rows that are held of a table as wide as the timeline; wide tables have fewer. Some 300 bytes each: with the copy that sorting makes, 600 MB.
const MAX_ROWS: usize = 1 << 20;
/// Time by which rows of a run may lie before its first frame: the width of its first bin.
const MAX_BIN_NS: i64 = 60_000_000_000;

/// Rows and bytes of a part.
pub(super) struct WrittenShard {
    pub(super) rows: u64,
    pub(super) bytes: u64,
    /// All rows are in the order of time.
    pub(super) is_sorted: bool,
}

/// Sorts rows into a file.
pub(super) struct Sorter {
    schema: Schema,
    table: &'static Table,
    /// Column by which rows are sorted; `None`: they keep the order of the runs.
    time: Option<String>,
    path: PathBuf,
    writer: FileWriter<BufWriter<File>>,
    encoder: ChunkEncoder,
    held: Option<DataFrame>,
    max_rows: usize,
    rows: u64,
    last: i64,
    is_sorted: bool,
}

impl Sorter {
    /// Begins a file of rows of `table`.
    pub(super) fn new(table: &'static Table, file: File, path: &Path) -> Result<Self, Error> {
        let columns = RunKey::COLUMNS.iter().chain(table.columns);
        let schema: Schema = columns.flat_map(fields).collect();
        let writer = batched(BufWriter::with_capacity(1 << 20, file), LEVEL, &schema, path)?;
        let level = ZstdLevel::try_new(LEVEL).map_err(Error::parquet("write", path))?;
        let times = || {
            table
                .columns
                .iter()
                .filter(|column| column.kind == ColumnType::Time)
        };
        let usual = ["time", "first_time", "start_time"];
        let time = usual
            .iter()
            .find_map(|name| times().find(|column| column.name == *name))
            .or_else(|| times().next());
        Ok(Self {
            time: time.and_then(Column::nanoseconds),
            schema,
            path: path.to_path_buf(),
            writer,
            encoder: ChunkEncoder::new(level, statistics()),
            held: None,
            max_rows: row_group(table, MAX_ROWS),
            table,
            rows: 0,
            last: i64::MIN,
            is_sorted: true,
        })
    }

    /// Adds the rows of a file. The run of the next file begins at `following`, if that is known: rows before it can be written.
    pub(super) fn add(&mut self, path: &Path, following: Option<i64>) -> Result<(), Error> {
        for group in groups(self.table, path)? {
            let group = self.conformed(path, &group?)?;
            let failed = Error::parquet("read", path);
            match &mut self.held {
                Some(held) => drop(held.vstack_mut(&group).map_err(failed)?),
                None => self.held = Some(group),
            }
            if self
                .held
                .as_ref()
                .is_some_and(|held| held.height() > self.max_rows)
            {
                self.write_before(None)?;
            }
        }
        match following {
            Some(following) => self.write_before(Some(following.saturating_sub(MAX_BIN_NS))),
            None => Ok(()),
        }
    }

    /// Writes the held rows before a time; without one the earlier half.
    fn write_before(&mut self, time: Option<i64>) -> Result<(), Error> {
        let Some(held) = self.held.take() else {
            return Ok(());
        };
        let sorted = self.sorted(held)?;
        let count = match (time, self.times(&sorted)?) {
            (Some(time), Some(times)) => {
                times.partition_point(|known| known.is_none_or(|known| known < time))
            }
            // Rows without times are in order as they are.
            (_, None) => sorted.height(),
            (None, Some(_)) => sorted.height() / 2,
        };
        let (now, later) = sorted.split_at(i64::try_from(count).unwrap_or(i64::MAX));
        self.write(&now)?;
        // The rest gets memory of its own, so that the written rows are freed.
        let mut later = later;
        later.rechunk_mut();
        self.held = Some(later).filter(|later| later.height() > 0);
        Ok(())
    }

    /// The times of sorted rows, absent ones first; `None` for a table without times.
    fn times(&self, rows: &DataFrame) -> Result<Option<Vec<Option<i64>>>, Error> {
        let Some(name) = &self.time else { return Ok(None) };
        let failed = || Error::parquet("read", &self.path);
        let column = rows.column(name).map_err(failed())?;
        let times = column.i64().map_err(failed())?;
        Ok(Some(times.iter().collect()))
    }

    /// The rows in the order of time; those of one time in the order in which they came.
    fn sorted(&self, rows: DataFrame) -> Result<DataFrame, Error> {
        let Some(name) = &self.time else { return Ok(rows) };
        let failed = || Error::parquet("sort", &self.path);
        let order = rows
            .column(name)
            .map_err(failed())?
            .as_materialized_series()
            .arg_sort(SortOptions {
                maintain_order: true,
                multithreaded: false,
                ..SortOptions::default()
            });
        rows.take(&order).map_err(failed())
    }

    /// Writes sorted rows, one row group after the other.
    fn write(&mut self, rows: &DataFrame) -> Result<(), Error> {
        if let Some(times) = self.times(rows)? {
            let mut known = times.iter().flatten();
            self.is_sorted &= known.next().is_none_or(|first| *first >= self.last);
            self.last = times
                .iter()
                .flatten()
                .copied()
                .next_back()
                .unwrap_or(self.last)
                .max(self.last);
        }
        let step = row_group(self.table, 1 << 17);
        let mut first = 0;
        while first < rows.height() {
            let mut group = rows.slice(i64::try_from(first).unwrap_or(i64::MAX), step);
            group.rechunk_mut();
            self.write_group(&group)
                .map_err(Error::parquet("write", &self.path))?;
            first = first.saturating_add(step);
        }
        self.rows = self.rows.saturating_add(rows.height() as u64);
        Ok(())
    }

    /// Writes rows as a row group.
    fn write_group(&mut self, rows: &DataFrame) -> PolarsResult<()> {
        let schema = Arc::clone(self.writer.schema());
        let columns = rows.columns().iter().zip(schema.columns());
        let chunks: PolarsResult<Vec<_>> = columns
            .map(|(column, described)| self.encoder.column(column, described))
            .collect();
        self.writer.write_row_group(rows.height() as u64, &chunks?)
    }

    /// Rows with exactly the columns of this version, in their order: unknown ones are left out, missing ones are absent in each row.
    fn conformed(&self, path: &Path, rows: &DataFrame) -> Result<DataFrame, Error> {
        let failed = || Error::parquet("read", path);
        let mut columns = Vec::with_capacity(self.schema.len());
        for (name, kind) in self.schema.iter() {
            let found = rows.columns().iter().find(|column| column.name() == name);
            let column = match found {
                Some(column) if column.dtype() == kind => column.clone(),
                None if self.is_nullable(name) => {
                    Series::full_null(name.clone(), rows.height(), kind).into_column()
                }
                _ => {
                    return Err(Error::Parquet {
                        action: "read",
                        path: path.to_path_buf(),
                        reason: format!("column {name} is missing, or differs from this version's"),
                    });
                }
            };
            columns.push(column);
        }
        DataFrame::new(rows.height(), columns).map_err(failed())
    }

    /// True if values of a stored column can be absent.
    fn is_nullable(&self, name: &str) -> bool {
        self.table.columns.iter().any(|column| {
            column.nullable && (column.name == name || column.nanoseconds().as_deref() == Some(name))
        })
    }

    /// Writes what is held, and the footer.
    pub(super) fn finish(mut self) -> Result<WrittenShard, Error> {
        if let Some(held) = self.held.take() {
            let sorted = self.sorted(held)?;
            self.write(&sorted)?;
        }
        let bytes = end(&mut self.writer, self.table).map_err(Error::parquet("write", &self.path))?;
        Ok(WrittenShard {
            rows: self.rows,
            bytes,
            is_sorted: self.is_sorted,
        })
    }
}
