//! One column of a row group in the making: takes values by the batch, becomes pages when the group is
//! full. What the column is called and which file it goes to is left to others.

use std::fmt::Write as _;

use polars::prelude::{
    DataType, Field, IntoColumn, NamedFrom, PlSmallStr, PolarsResult, Series, StringChunkedBuilder, TimeUnit,
    TimeZone, polars_err,
};
use polars_parquet::parquet::metadata::ColumnDescriptor;
use roce_model::{Column, ColumnType, Data, Values};

use crate::encode::{ChunkEncoder, Pages};

/// The polars type of a column.
fn data_type(kind: ColumnType) -> DataType {
    match kind {
        ColumnType::U32 => DataType::Int32,
        ColumnType::U64 | ColumnType::Id => DataType::Int64,
        ColumnType::F64 => DataType::Float64,
        ColumnType::Bool => DataType::Boolean,
        ColumnType::Text | ColumnType::Address => DataType::String,
        ColumnType::Time => DataType::Datetime(TimeUnit::Microseconds, Some(TimeZone::UTC)),
    }
}

/// The stored columns of a column: two for a time.
pub(crate) fn fields(column: &Column) -> impl Iterator<Item = Field> {
    let first = Field::new(PlSmallStr::from_static(column.name), data_type(column.kind));
    let second = column
        .nanoseconds()
        .map(|name| Field::new(name.into(), DataType::Int64));
    std::iter::once(first).chain(second)
}

/// A count as it is stored; beyond the type it becomes the largest value.
fn signed32(value: u32) -> i32 {
    i32::try_from(value).unwrap_or(i32::MAX)
}

/// A count, an identifier or a time as it is stored; beyond the type it becomes the largest value.
fn signed64(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// The values of a column.
enum Buffer {
    I32(Values<i32>),
    I64(Values<i64>),
    F64(Values<f64>),
    Bool(Values<bool>),
    Time(Values<i64>),
    /// Number of absent values before the first text, and the texts from there on.
    Text(usize, Option<StringChunkedBuilder>),
}

/// A column of a row group.
pub(crate) struct ColumnBuffer {
    column: &'static Column,
    buffer: Buffer,
    /// Buffer in which an address becomes text.
    scratch: String,
}

impl ColumnBuffer {
    pub(crate) fn new(column: &'static Column) -> Self {
        let buffer = match column.kind {
            ColumnType::U32 => Buffer::I32(Values::default()),
            ColumnType::U64 | ColumnType::Id => Buffer::I64(Values::default()),
            ColumnType::F64 => Buffer::F64(Values::default()),
            ColumnType::Bool => Buffer::Bool(Values::default()),
            ColumnType::Time => Buffer::Time(Values::default()),
            ColumnType::Text | ColumnType::Address => Buffer::Text(0, None),
        };
        Self {
            column,
            buffer,
            scratch: String::new(),
        }
    }

    /// Adds rows; `capacity` is how many the row group will have.
    pub(crate) fn extend(&mut self, data: Data<'_>, capacity: usize) {
        match (&mut self.buffer, data) {
            (Buffer::I32(to), Data::U32(from)) => {
                add(to, from, capacity, |value| signed32(*value));
            }
            (Buffer::I64(to), Data::U64(from) | Data::Id(from)) => {
                add(to, from, capacity, |value| signed64(*value));
            }
            (Buffer::F64(to), Data::F64(from)) => {
                add(to, from, capacity, |value| *value);
            }
            (Buffer::Bool(to), Data::Bool(from)) => {
                add(to, from, capacity, |value| *value);
            }
            (Buffer::Time(to), Data::Time(from)) => {
                // The latest time in nanoseconds is in the year 2262.
                add(to, from, capacity, |value| signed64(*value));
            }
            (Buffer::Text(nulls, to), Data::Text(from)) => {
                for text in from.iter() {
                    push_text(self.column, nulls, to, text.map(AsRef::as_ref), capacity);
                }
            }
            (Buffer::Text(nulls, to), Data::Address(from)) => {
                for address in from.iter() {
                    let text = address.map(|address| {
                        self.scratch.clear();
                        // Writing to a string cannot fail.
                        let _ = write!(self.scratch, "{address}");
                        self.scratch.as_str()
                    });
                    push_text(self.column, nulls, to, text, capacity);
                }
            }
            // The buffer was made for this column's type.
            _ => debug_assert!(
                false,
                "column {} is given values of another type",
                self.column.name
            ),
        }
    }

    /// Encodes the stored columns, two for a time, and leaves this empty. `described`: those from this one on in the file.
    pub(crate) fn encode<'a>(
        &mut self,
        encoder: &mut ChunkEncoder,
        described: &mut impl Iterator<Item = &'a ColumnDescriptor>,
        chunks: &mut Vec<Pages>,
    ) -> PolarsResult<()> {
        let mut described = || {
            described
                .next()
                .ok_or_else(|| polars_err!(ComputeError: "a column is not in the file"))
        };
        let name = PlSmallStr::from_static(self.column.name);
        match &mut self.buffer {
            Buffer::I32(plain) => {
                chunks.push(encoder.numbers(plain, described()?)?);
                plain.clear();
            }
            Buffer::I64(plain) => {
                chunks.push(encoder.numbers(plain, described()?)?);
                plain.clear();
            }
            Buffer::Time(plain) => {
                // Rounded down: there is no time before the epoch.
                let mut microseconds = Values::default();
                microseconds.extend_mapped(plain, |time| time / 1_000);
                chunks.push(encoder.numbers(&microseconds, described()?)?);
                chunks.push(encoder.numbers(plain, described()?)?);
                plain.clear();
            }
            Buffer::F64(plain) => {
                let values: Vec<_> = plain.iter().map(Option::<&_>::copied).collect();
                plain.clear();
                let values = Series::new(name, values).into_column();
                chunks.push(encoder.other(&values, described()?)?);
            }
            Buffer::Bool(plain) => {
                let values: Vec<_> = plain.iter().map(Option::<&_>::copied).collect();
                plain.clear();
                let values = Series::new(name, values).into_column();
                chunks.push(encoder.other(&values, described()?)?);
            }
            Buffer::Text(nulls, builder) => {
                let nulls = std::mem::take(nulls);
                let values = match builder.take() {
                    Some(builder) => builder.finish().into_column(),
                    None => Series::full_null(name, nulls, &DataType::String).into_column(),
                };
                chunks.push(encoder.other(&values, described()?)?);
            }
        }
        Ok(())
    }
}

/// Adds values in the form in which they are stored. Room for the whole row group is made once there is a value.
fn add<S: Default, T: Clone + Default>(
    to: &mut Values<T>,
    from: &Values<S>,
    capacity: usize,
    store: impl Fn(&S) -> T,
) {
    if to.all_null() && !from.all_null() {
        to.reserve(capacity.saturating_sub(to.len()));
    }
    to.extend_mapped(from, store);
}

fn push_text(
    column: &Column,
    nulls: &mut usize,
    to: &mut Option<StringChunkedBuilder>,
    text: Option<&str>,
    capacity: usize,
) {
    match (&mut *to, text) {
        (None, None) => *nulls += 1,
        (Some(builder), text) => builder.append_option(text),
        (None, Some(text)) => {
            let mut builder = StringChunkedBuilder::new(PlSmallStr::from_static(column.name), capacity);
            for _ in 0..std::mem::take(nulls) {
                builder.append_null();
            }
            builder.append_value(text);
            *to = Some(builder);
        }
    }
}
