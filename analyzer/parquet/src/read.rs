//! Reads a table of a dataset back: all parts, by column. What the values mean is left to the column descriptions.

use std::cell::Cell;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::path::Path;
use std::sync::Once;

use polars::prelude::{
    ChunkedArray, Column as PolarsColumn, DataFrame, DataType, ParquetReader, PolarsError, PolarsNumericType,
    PolarsResult, SerReader, StringChunked,
};

use crate::check::{self, Checksum, Chunk, Footer};
use crate::error::Error;
use crate::names::SCHEMA_VERSION;
use crate::table::{files, is_part};

/// The values of a column, absent ones as `None`.
#[derive(Clone, PartialEq, Debug)]
pub enum ColumnValues {
    /// Signed, 32 bits.
    I32(Vec<Option<i32>>),
    /// Signed, 64 bits; also flow identifiers, and times in nanoseconds since the Unix epoch.
    I64(Vec<Option<i64>>),
    /// Floating point, 64 bits.
    F64(Vec<Option<f64>>),
    /// True or false.
    Bool(Vec<Option<bool>>),
    /// Text; also addresses.
    Text(Vec<Option<String>>),
    /// Microseconds since the Unix epoch, UTC.
    Time(Vec<Option<i64>>),
}

impl ColumnValues {
    /// Number of values, absent ones counted.
    pub fn len(&self) -> usize {
        match self {
            Self::I32(values) => values.len(),
            Self::I64(values) | Self::Time(values) => values.len(),
            Self::F64(values) => values.len(),
            Self::Bool(values) => values.len(),
            Self::Text(values) => values.len(),
        }
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds the values of the next part; `false` when they are of another type.
    fn append(&mut self, next: Self) -> bool {
        match (self, next) {
            (Self::I32(to), Self::I32(from)) => to.extend(from),
            (Self::I64(to), Self::I64(from)) | (Self::Time(to), Self::Time(from)) => to.extend(from),
            (Self::F64(to), Self::F64(from)) => to.extend(from),
            (Self::Bool(to), Self::Bool(from)) => to.extend(from),
            (Self::Text(to), Self::Text(from)) => to.extend(from),
            _ => return false,
        }
        true
    }
}

/// A table as read.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct TableData {
    /// Number of rows.
    pub rows: usize,
    /// Its columns in the order of the file: name and values.
    pub columns: Vec<(String, ColumnValues)>,
}

impl TableData {
    /// The values of a column.
    pub fn column(&self, name: &str) -> Option<&ColumnValues> {
        self.columns
            .iter()
            .find(|(found, _)| found == name)
            .map(|(_, values)| values)
    }
}

/// Reads every part of `table` in the dataset `dir` into memory.
///
/// # Errors
/// When there is no such table, or a part cannot be read or is of another schema.
pub fn read_table(dir: &Path, table: &str) -> Result<TableData, Error> {
    let parts = files(&dir.join(table), is_part)?;
    let mut whole: Option<TableData> = None;
    for path in &parts {
        let part = read_file(path)?;
        match &mut whole {
            None => whole = Some(part),
            Some(whole) => append(whole, part).map_err(|reason| Error::Parquet {
                action: "read",
                path: path.clone(),
                reason,
            })?,
        }
    }
    whole.ok_or_else(|| Error::NoTable {
        dir: dir.to_path_buf(),
        table: table.to_owned(),
    })
}

/// Reads one file of a table into memory.
///
/// # Errors
/// When it cannot be read, or is of another schema.
pub fn read_file(path: &Path) -> Result<TableData, Error> {
    let frame = read_part(path)?;
    let mut part = TableData {
        rows: frame.height(),
        columns: Vec::with_capacity(frame.width()),
    };
    for column in frame.columns() {
        let values = values(column).map_err(Error::parquet("read", path))?;
        part.columns.push((column.name().to_string(), values));
    }
    Ok(part)
}

fn append(whole: &mut TableData, part: TableData) -> Result<(), String> {
    if whole.columns.len() != part.columns.len() {
        return Err(format!(
            "{} columns, the part before has {}",
            part.columns.len(),
            whole.columns.len()
        ));
    }
    whole.rows += part.rows;
    for ((name, to), (next, from)) in whole.columns.iter_mut().zip(part.columns) {
        if *name != next || !to.append(from) {
            return Err(format!(
                "column {next} is not like column {name} of the part before"
            ));
        }
    }
    Ok(())
}

fn read_part(path: &Path) -> Result<DataFrame, Error> {
    check(path)?;
    let reader = open(path)?;
    undamaged(path, || reader.finish())
}

/// Result of polars' reading of a part. It panics at files with impossible sizes, and at those that the system fails to map into memory.
pub(crate) fn undamaged<T>(path: &Path, read: impl FnOnce() -> PolarsResult<T>) -> Result<T, Error> {
    match caught(read) {
        Ok(read) => read.map_err(Error::parquet("read", path)),
        // The text of an error of the system (`std::io::Error`, its `Debug`).
        Err(text) if text.contains("Os {") => Err(damaged(path, format!("the system fails: {text}"))),
        Err(_) => Err(damaged(path, "it is damaged".to_owned())),
    }
}

thread_local! {
    /// This thread reads with polars, whose panics are results.
    static IS_READING: Cell<bool> = const { Cell::new(false) };
}

/// Does something of which a panic is a result: its text. The program's hook says nothing of it, because an error follows.
fn caught<T>(read: impl FnOnce() -> T) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let say = take_hook();
        set_hook(Box::new(move |panic| {
            if !IS_READING.get() {
                say(panic);
            }
        }));
    });
    let was_reading = IS_READING.replace(true);
    let read = catch_unwind(AssertUnwindSafe(read));
    IS_READING.set(was_reading);
    read.map_err(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        text.or_else(|| panic.downcast_ref::<String>().cloned())
            .unwrap_or_default()
    })
}

fn damaged(path: &Path, reason: String) -> Error {
    Error::Parquet {
        action: "read",
        path: path.to_path_buf(),
        reason,
    }
}

/// Checks a part: its checksum, and its pages. Call it once before the part is read.
pub(crate) fn check(path: &Path) -> Result<(), Error> {
    let file = roce_files::open_regular(path)?;
    let footer = footer(&file, path)?;
    let checksum = check::checksum(&file, &footer).map_err(Error::io("read", path))?;
    // Where the checksum fits, those of pages do.
    let pages = pages(&file, path, checksum != Checksum::Fits);
    if checksum != Checksum::Differs {
        return pages;
    }
    let place = match pages {
        Err(Error::Parquet { reason, .. }) => reason,
        // It is in no page.
        _ => "its footer or the header of a page is damaged".to_owned(),
    };
    let reason = format!(
        "{place}; the checksum of the file differs, its footer begins at byte {}",
        footer.begin
    );
    Err(damaged(path, reason))
}

/// Finds the footer of a part.
fn footer(file: &File, path: &Path) -> Result<Footer, Error> {
    let footer = check::footer(file).map_err(Error::io("read", path))?;
    footer.map_err(|damage| damaged(path, damage))
}

/// Checks the pages of a part.
fn pages(file: &File, path: &Path, sums: bool) -> Result<(), Error> {
    let mut reader = open(path)?;
    let metadata = undamaged(path, || reader.get_metadata().cloned())?;
    for group in &metadata.row_groups {
        let chunks = undamaged(path, || {
            let columns = group.parquet_columns().iter();
            Ok(columns
                .map(|column| Chunk {
                    values: column.num_values(),
                    range: column.byte_range(),
                })
                .collect::<Vec<_>>())
        })?;
        let checked = check::group(file, group.num_rows(), &chunks, sums).map_err(Error::io("read", path))?;
        checked.map_err(|damage| damaged(path, damage))?;
    }
    Ok(())
}

/// Opens a part of a schema that is understood here.
pub(crate) fn open(path: &Path) -> Result<ParquetReader<File>, Error> {
    let file = roce_files::open_regular(path)?;
    let footer = footer(&file, path)?;
    footer.check().map_err(|damage| damaged(path, damage))?;
    let mut reader = ParquetReader::new(file);
    let metadata = caught(|| reader.get_metadata().cloned());
    let Ok(Ok(metadata)) = metadata else {
        return Err(damaged(path, footer.damage()));
    };
    let version = metadata
        .key_value_metadata()
        .iter()
        .flatten()
        .find(|pair| pair.key == "roce-analyze.schema_version")
        .and_then(|pair| pair.value.clone());
    if let Some(found) = version
        && found.parse() != Ok(SCHEMA_VERSION)
    {
        return Err(Error::OtherSchema {
            path: path.to_path_buf(),
            found,
        });
    }
    Ok(reader)
}

pub(crate) fn values(column: &PolarsColumn) -> PolarsResult<ColumnValues> {
    Ok(match column.dtype() {
        DataType::Int32 => ColumnValues::I32(numbers(column.i32()?)),
        DataType::Int64 => ColumnValues::I64(numbers(column.i64()?)),
        DataType::Float64 => ColumnValues::F64(numbers(column.f64()?)),
        DataType::Boolean => ColumnValues::Bool(column.bool()?.iter().collect()),
        DataType::Datetime(_, _) => ColumnValues::Time(numbers(column.datetime()?.physical())),
        _ => ColumnValues::Text(texts(column.str()?)?),
    })
}

/// Maximum size of a text in bytes. A dictionary has a text once, and rows have it again and again.
const MAX_TEXT_BYTES: usize = 1 << 16;

fn texts(column: &StringChunked) -> PolarsResult<Vec<Option<String>>> {
    let text = |text: Option<&str>| match text {
        Some(text) if text.len() > MAX_TEXT_BYTES => {
            Err(PolarsError::ComputeError("a text of more than 64 KiB".into()))
        }
        text => Ok(text.map(str::to_owned)),
    };
    column.iter().map(text).collect()
}

fn numbers<T: PolarsNumericType>(column: &ChunkedArray<T>) -> Vec<Option<T::Native>> {
    column.iter().collect()
}
