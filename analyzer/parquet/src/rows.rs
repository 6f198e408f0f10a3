//! The rows of a table of a dataset, some thousand at a time: of the file no more than one row group is in memory, or small ones together.

use std::collections::VecDeque;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use polars::prelude::{DataFrame, ParallelStrategy, SerReader};
use polars_parquet::read::RowGroupMetadata;
use roce_model::{Cell, Column, ColumnType, Columns, FlowId, Table, Time};

use crate::error::Error;
use crate::options::Options;
use crate::read::{ColumnValues, check, open, undamaged, values};
use crate::table::{files, is_part, row_group};

/// Number of rows that are emitted at a time.
const BATCH: usize = 4096;

/// Reads the rows of the table that `C` describes, part by part, in batches. After an error there are none.
///
/// Columns that this version does not know are passed over. Those that the files lack are absent in each row; where a
/// value cannot be absent that is an error. The facts of findings are text here and cannot be read: the JSON document has them.
#[derive(Debug)]
pub struct Rows<C> {
    parts: VecDeque<PathBuf>,
    part: Option<Part>,
    columns: PhantomData<fn() -> C>,
}

#[derive(Debug)]
struct Part {
    path: PathBuf,
    /// First row and number of rows of the row groups that are still to be read, small ones together.
    groups: VecDeque<(usize, usize)>,
    /// The rows that were read last, and how many of them have been given.
    group: DataFrame,
    taken: usize,
}

impl<C: Columns> Rows<C> {
    /// Will read the table's parts in the dataset `dir`.
    ///
    /// # Errors
    /// When there are none.
    pub fn open(dir: &Path) -> Result<Self, Error> {
        let table = C::TABLE.name;
        let parts: VecDeque<PathBuf> = files(&dir.join(table), is_part)?.into();
        if parts.is_empty() {
            return Err(Error::NoTable {
                dir: dir.to_path_buf(),
                table: table.to_owned(),
            });
        }
        Ok(Self {
            parts,
            part: None,
            columns: PhantomData,
        })
    }

    fn next_batch(&mut self) -> Result<Option<Vec<C::Row>>, Error> {
        loop {
            if let Some(part) = &mut self.part
                && let Some(batch) = part.next_batch()?
            {
                return rows::<C>(&part.path, &batch).map(Some);
            }
            let Some(path) = self.parts.pop_front() else {
                self.part = None;
                return Ok(None);
            };
            self.part = Some(Part::open(&C::TABLE, path)?);
        }
    }
}

impl<C: Columns> Iterator for Rows<C> {
    type Item = Result<Vec<C::Row>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.next_batch().transpose();
        if let Some(Err(_)) = batch {
            self.parts.clear();
            self.part = None;
        }
        batch
    }
}

impl Part {
    fn open(table: &Table, path: PathBuf) -> Result<Self, Error> {
        check(&path)?;
        let mut reader = open(&path)?;
        let metadata = reader.get_metadata().map_err(Error::parquet("read", &path))?;
        Ok(Self {
            groups: places(
                metadata.row_groups.iter().map(RowGroupMetadata::num_rows),
                row_group(table, Options::default().row_group),
            ),
            group: DataFrame::empty(),
            taken: 0,
            path,
        })
    }

    fn next_batch(&mut self) -> Result<Option<DataFrame>, Error> {
        while self.taken >= self.group.height() {
            let Some(place) = self.groups.pop_front() else {
                return Ok(None);
            };
            self.group = group(&self.path, place)?;
            self.taken = 0;
        }
        let first = i64::try_from(self.taken).unwrap_or(i64::MAX);
        self.taken += BATCH;
        Ok(Some(self.group.slice(first, BATCH)))
    }
}

/// First row and number of rows of the row groups that have `rows`. Small ones are read together, up to `usual` rows: each reading parses the
/// footer, which describes all of them.
fn places(rows: impl Iterator<Item = usize>, usual: usize) -> VecDeque<(usize, usize)> {
    let mut places: VecDeque<(usize, usize)> = VecDeque::new();
    let mut first: usize = 0;
    for rows in rows {
        match places.back_mut() {
            Some((_, before)) if before.saturating_add(rows) <= usual => *before += rows,
            _ => places.push_back((first, rows)),
        }
        first = first.saturating_add(rows);
    }
    places
}

/// The row groups of a file of `table`, one after the other, small ones together.
pub(crate) fn groups(
    table: &Table,
    path: &Path,
) -> Result<impl Iterator<Item = Result<DataFrame, Error>> + use<>, Error> {
    let Part { path, groups, .. } = Part::open(table, path.to_path_buf())?;
    Ok(groups.into_iter().map(move |place| group(&path, place)))
}

/// The rows at a place in a part. They are few: their columns are decoded on the caller's thread alone.
fn group(path: &Path, place: (usize, usize)) -> Result<DataFrame, Error> {
    let reader = open(path)?;
    undamaged(path, || {
        reader
            .with_slice(Some(place))
            .read_parallel(ParallelStrategy::None)
            .finish()
    })
}

/// The rows of a batch.
fn rows<C: Columns>(path: &Path, batch: &DataFrame) -> Result<Vec<C::Row>, Error> {
    let mut columns: Vec<Option<ColumnValues>> = Vec::with_capacity(C::TABLE.columns.len());
    for column in C::TABLE.columns {
        // A time is read in nanoseconds.
        let nanoseconds = column.nanoseconds();
        let name = nanoseconds.as_deref().unwrap_or(column.name);
        let found = batch.columns().iter().find(|found| found.name() == name);
        columns.push(
            found
                .map(values)
                .transpose()
                .map_err(Error::parquet("read", path))?,
        );
    }
    let row = |row: usize| {
        let mut columns = columns.iter();
        C::row(|column| {
            columns
                .next()
                .and_then(Option::as_ref)
                .map_or(Cell::Null, |values| cell(column, values, row))
        })
        .map_err(|column| Error::Column {
            path: path.to_path_buf(),
            column: column.name,
        })
    };
    (0..batch.height()).map(row).collect()
}

/// A stored integer as a cell; one that is negative or too large for the column's type becomes a cell of another type.
fn count(kind: ColumnType, value: i64) -> Cell<'static> {
    const UNFIT: Cell<'static> = Cell::Text("a number out of range");
    match (kind, u64::try_from(value)) {
        (ColumnType::U32, Ok(value)) => u32::try_from(value).map_or(UNFIT, Cell::U32),
        (ColumnType::U64, Ok(value)) => Cell::U64(value),
        (ColumnType::Id, Ok(id)) => Cell::Id(FlowId(id)),
        (ColumnType::Time, Ok(time)) => Cell::Time(Time(time)),
        _ => UNFIT,
    }
}

/// The value of a row as a cell of its column. What does not fit the column's type becomes a cell of another one.
fn cell<'a>(column: &Column, values: &'a ColumnValues, row: usize) -> Cell<'a> {
    fn at<T: Clone>(values: &[Option<T>], row: usize) -> Option<T> {
        values.get(row).cloned().flatten()
    }
    let cell = match values {
        ColumnValues::I32(values) => at(values, row).map(|value| count(column.kind, i64::from(value))),
        ColumnValues::I64(values) => at(values, row).map(|value| count(column.kind, value)),
        ColumnValues::F64(values) => at(values, row).map(Cell::F64),
        ColumnValues::Bool(values) => at(values, row).map(Cell::Bool),
        ColumnValues::Time(values) => at(values, row).map(|_| Cell::Text("microseconds")),
        ColumnValues::Text(values) => values
            .get(row)
            .and_then(Option::as_deref)
            .map(|text| Cell::parse(column.kind, text).unwrap_or(Cell::Text(text))),
    };
    cell.unwrap_or(Cell::Null)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_row_groups_are_read_together() {
        // 250 groups of a row are three readings, not 250, each of which parses a footer of 250 groups.
        let taken = places(core::iter::repeat_n(1, 250), 100);
        assert_eq!(taken, [(0, 100), (100, 100), (200, 50)]);
        let mixed = places([60, 50, 40, 300, 1, 0].into_iter(), 100);
        assert_eq!(mixed, [(0, 60), (60, 90), (150, 300), (450, 1)]);
    }
}
