//! The files of one table: collects rows to row groups, writes each group when it is full, under a temporary name
//! until it is published. The dataset decides when that is, and when another part starts.

use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use polars::polars_utils::compression::ZstdLevel;
use polars::prelude::{
    AnyValue, BatchedWriter, Column, DataFrame, DataType, KeyValueMetadata, ParquetCompression,
    ParquetWriter, PlSmallStr, Scalar, Schema, StatisticsOptions,
};
use roce_files::{Directory, Unfinished};
use roce_model::{Columns, RunKey, Table, TimelineColumns};

use crate::column::{ColumnBuffer, fields};
use crate::dataset::Options;
use crate::{Error, SCHEMA_VERSION};

/// The name of a part.
fn part(number: usize) -> String {
    format!("part-{number}.parquet")
}

/// True if a file name is that of a part: `part-N.parquet`.
pub(crate) fn is_part(name: &str) -> bool {
    name.strip_prefix("part-")
        .and_then(|rest| rest.strip_suffix(".parquet"))
        .is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// True if a file name is that of a part that nobody finished.
pub(crate) fn is_unfinished(name: &str) -> bool {
    name.strip_prefix('.')
        .and_then(|rest| rest.strip_suffix(".tmp"))
        .is_some_and(is_part)
}

/// Rows of a row group: wide tables have fewer, so that all take about the same memory.
fn row_group(table: &Table, options: &Options) -> usize {
    let (usual, columns) = (TimelineColumns::TABLE.columns.len(), table.columns.len().max(1));
    (options.row_group / columns)
        .saturating_mul(usual)
        .min(options.row_group)
        .max(1)
}

/// Writes the parts of a table, one after the other.
pub(crate) struct TableWriter {
    folder: Directory,
    table: Table,
    key: RunKey,
    options: Options,
    /// The number of the part that is being written.
    number: usize,
    unfinished: Unfinished,
    /// The unfinished file, for errors.
    temporary: PathBuf,
    writer: BatchedWriter<BufWriter<File>>,
    columns: Vec<ColumnBuffer>,
    rows: usize,
    row_group: usize,
    /// The part has no rows, not even written ones.
    is_empty: bool,
}

impl TableWriter {
    /// Begins the first part.
    pub(crate) fn create(
        dir: &Directory,
        table: &Table,
        key: &RunKey,
        options: &Options,
    ) -> Result<Self, Error> {
        let folder = dir.below(table.name, options.access())?;
        Self::begin(folder, table, key, options, 0)
    }

    /// Begins the part `number`.
    fn begin(
        folder: Directory,
        table: &Table,
        key: &RunKey,
        options: &Options,
        number: usize,
    ) -> Result<Self, Error> {
        let (file, unfinished) = folder.begin(&part(number), options.access())?;
        let temporary = unfinished.temporary_path();
        let columns = RunKey::COLUMNS.iter().chain(table.columns);
        let schema: Schema = columns.flat_map(fields).collect();
        let level =
            ZstdLevel::try_new(options.compression_level).map_err(Error::parquet("write", &temporary))?;
        let writer = ParquetWriter::new(BufWriter::with_capacity(1 << 20, file))
            .with_compression(ParquetCompression::Zstd(Some(level)))
            .with_statistics(StatisticsOptions {
                min_value: true,
                max_value: true,
                distinct_count: false,
                null_count: true,
                ..StatisticsOptions::empty()
            })
            .with_key_value_metadata(Some(KeyValueMetadata::from_static(vec![
                (
                    "roce-analyze.schema_version".to_owned(),
                    SCHEMA_VERSION.to_string(),
                ),
                (
                    "roce-analyze.version".to_owned(),
                    env!("CARGO_PKG_VERSION").to_owned(),
                ),
                ("roce-analyze.table".to_owned(), table.name.to_owned()),
            ])))
            .set_parallel(options.parallel)
            .batched(&schema)
            .map_err(Error::parquet("write", &temporary))?;
        Ok(Self {
            folder,
            table: *table,
            key: key.clone(),
            options: *options,
            number,
            unfinished,
            temporary,
            writer,
            columns: table.columns.iter().map(ColumnBuffer::new).collect(),
            rows: 0,
            row_group: row_group(table, options),
            is_empty: true,
        })
    }

    /// Adds rows, and writes a row group when it is full.
    pub(crate) fn append<C: Columns>(&mut self, rows: &C) -> Result<(), Error> {
        let capacity = self.row_group.saturating_add(rows.len());
        let mut columns = self.columns.iter_mut();
        rows.for_each(|_, data| {
            if let Some(column) = columns.next() {
                column.extend(data, capacity);
            }
        });
        self.rows += rows.len();
        self.is_empty &= rows.is_empty();
        if self.rows >= self.row_group {
            self.flush()
        } else {
            Ok(())
        }
    }

    fn flush(&mut self) -> Result<(), Error> {
        let rows = std::mem::take(&mut self.rows);
        let names = RunKey::COLUMNS.iter().zip(self.key.values());
        let names = names.map(|(column, value)| {
            let value = Scalar::new(DataType::String, AnyValue::StringOwned(value.into()));
            Column::new_scalar(PlSmallStr::from_static(column.name), value, rows)
        });
        let columns = self.columns.iter_mut().flat_map(ColumnBuffer::take);
        let columns = names.chain(columns).collect();
        let group = DataFrame::new(rows, columns).map_err(Error::parquet("write", &self.temporary))?;
        self.writer
            .write_batch(&group)
            .map_err(Error::parquet("write", &self.temporary))
    }

    /// Writes what is left and the footer. The file still has its temporary name.
    pub(crate) fn complete(&mut self) -> Result<(), Error> {
        if self.rows > 0 {
            self.flush()?;
        }
        self.writer
            .finish()
            .map_err(Error::parquet("write", &self.temporary))?;
        Ok(())
    }

    /// Completes the part that is being written, gives it its name, and begins the next one; nothing of it when it has no rows.
    pub(crate) fn next_part(&mut self) -> Result<(), Error> {
        if self.is_empty {
            return Ok(());
        }
        self.complete()?;
        let next = Self::begin(
            self.folder.clone(),
            &self.table,
            &self.key,
            &self.options,
            self.number + 1,
        )?;
        let mut ended = std::mem::replace(self, next);
        Ok(ended.unfinished.publish()?)
    }

    /// Flushes the complete last part to the disk, if it replaces an older one.
    pub(crate) fn sync(&self) -> Result<(), Error> {
        Ok(self.unfinished.sync()?)
    }

    /// Gives the complete last part its name, in place of an older one, and removes the parts of an older dataset. A later part without rows
    /// keeps its temporary name, and goes with its writer.
    pub(crate) fn publish(&mut self) -> Result<(), Error> {
        if self.is_empty && self.number > 0 {
            return Ok(());
        }
        self.unfinished.publish()?;
        if self.options.live {
            return Ok(());
        }
        let own = part(self.number);
        for old in self.folder.names()?.iter().filter(|name| is_part(name)) {
            if *old != own {
                self.folder.remove(old)?;
            }
        }
        Ok(())
    }
}

/// The files of a folder whose names are such, in order of their part numbers; none when there is no folder.
pub(crate) fn files(folder: &Path, such: impl Fn(&str) -> bool) -> Result<Vec<PathBuf>, Error> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if matches!(error.kind(), std::io::ErrorKind::NotFound) => return Ok(Vec::new()),
        Err(error) => return Err(Error::io("read the folder", folder)(error)),
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.map_err(Error::io("read the folder", folder))?;
        if entry.file_name().to_str().is_some_and(&such) {
            found.push(entry.path());
        }
    }
    // A longer name has a larger number.
    found.sort_by_key(|path| (path.as_os_str().len(), path.clone()));
    Ok(found)
}
