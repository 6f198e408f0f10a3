//! One column of a row group in the making: takes values by the batch, becomes a polars column when the group is
//! full. What the column is called and which file it goes to is left to others.

use std::fmt::Write as _;

use polars::prelude::ChunkedArray;
use polars::prelude::{
    BooleanChunked, Column as PolarsColumn, DataType, Field, Float64Type, Int32Type, Int64Type, IntoColumn,
    IntoSeries, NamedFrom, NewChunkedArray, PlSmallStr, PolarsNumericType, Series, StringChunkedBuilder,
    TimeUnit, TimeZone,
};
use roce_model::{Column, ColumnType, Data, Values};

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

/// Plain values of one type. Absent ones hold a default value, and are marked only once there is one; a column of
/// absent values is a number.
struct Plain<T> {
    leading_nulls: usize,
    values: Vec<T>,
    /// Empty while nothing after the leading ones is absent.
    valid: Vec<bool>,
}

impl<T: Copy + Default> Plain<T> {
    fn new() -> Self {
        Self {
            leading_nulls: 0,
            values: Vec::new(),
            valid: Vec::new(),
        }
    }

    fn extend<S: Copy + Default>(&mut self, rows: &Values<S>, capacity: usize, store: impl Fn(S) -> T) {
        if rows.all_null() {
            self.nulls(rows.len());
            return;
        }
        if self.values.capacity() == 0 {
            self.values.reserve(capacity.saturating_sub(self.leading_nulls));
        }
        if let Some(plain) = rows.without_nulls() {
            self.values.extend(plain.iter().map(|value| store(*value)));
            if !self.valid.is_empty() {
                self.valid.resize(self.values.len(), true);
            }
            return;
        }
        for value in rows.iter() {
            match value {
                Some(value) => {
                    self.values.push(store(*value));
                    if !self.valid.is_empty() {
                        self.valid.push(true);
                    }
                }
                None => self.nulls(1),
            }
        }
    }

    fn nulls(&mut self, count: usize) {
        if self.values.is_empty() {
            self.leading_nulls += count;
            return;
        }
        self.valid.resize(self.values.len(), true);
        self.values.resize(self.values.len() + count, T::default());
        self.valid.resize(self.values.len(), false);
    }

    /// The values and whether each is there; `None` when all are.
    fn take(&mut self) -> (Vec<T>, Option<BooleanChunked>) {
        let mut values = std::mem::take(&mut self.values);
        let mut valid = std::mem::take(&mut self.valid);
        let leading = std::mem::take(&mut self.leading_nulls);
        if leading > 0 {
            valid.resize(values.len(), true);
            valid.splice(0..0, std::iter::repeat_n(false, leading));
            values.splice(0..0, std::iter::repeat_n(T::default(), leading));
        }
        let mask = (!valid.is_empty()).then(|| BooleanChunked::from_slice(PlSmallStr::EMPTY, &valid));
        (values, mask)
    }
}

/// The values of a column.
enum Buffer {
    I32(Plain<i32>),
    I64(Plain<i64>),
    F64(Plain<f64>),
    Bool(Plain<bool>),
    Time(Plain<i64>),
    /// Number of absent values before the first text, and the texts from there on.
    Text(usize, Option<StringChunkedBuilder>),
}

/// A column of a row group.
pub(crate) struct ColumnBuffer {
    column: &'static Column,
    rows: usize,
    buffer: Buffer,
    /// Buffer in which an address becomes text.
    scratch: String,
}

impl ColumnBuffer {
    pub(crate) fn new(column: &'static Column) -> Self {
        let buffer = match column.kind {
            ColumnType::U32 => Buffer::I32(Plain::new()),
            ColumnType::U64 | ColumnType::Id => Buffer::I64(Plain::new()),
            ColumnType::F64 => Buffer::F64(Plain::new()),
            ColumnType::Bool => Buffer::Bool(Plain::new()),
            ColumnType::Time => Buffer::Time(Plain::new()),
            ColumnType::Text | ColumnType::Address => Buffer::Text(0, None),
        };
        Self {
            column,
            rows: 0,
            buffer,
            scratch: String::new(),
        }
    }

    /// Adds rows; `capacity` is how many the row group will have.
    pub(crate) fn extend(&mut self, data: Data<'_>, capacity: usize) {
        match (&mut self.buffer, data) {
            (Buffer::I32(to), Data::U32(from)) => {
                self.rows += from.len();
                to.extend(from, capacity, signed32);
            }
            (Buffer::I64(to), Data::U64(from) | Data::Id(from)) => {
                self.rows += from.len();
                to.extend(from, capacity, signed64);
            }
            (Buffer::F64(to), Data::F64(from)) => {
                self.rows += from.len();
                to.extend(from, capacity, |value| value);
            }
            (Buffer::Bool(to), Data::Bool(from)) => {
                self.rows += from.len();
                to.extend(from, capacity, |value| value);
            }
            (Buffer::Time(to), Data::Time(from)) => {
                self.rows += from.len();
                // The latest time in nanoseconds is in the year 2262.
                to.extend(from, capacity, signed64);
            }
            (Buffer::Text(nulls, to), Data::Text(from)) => {
                self.rows += from.len();
                for text in from.iter() {
                    push_text(self.column, nulls, to, text.map(AsRef::as_ref), capacity);
                }
            }
            (Buffer::Text(nulls, to), Data::Address(from)) => {
                self.rows += from.len();
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

    /// The stored columns, leaving this empty.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = PolarsColumn> {
        let nanoseconds = match (&mut self.buffer, self.column.nanoseconds()) {
            (Buffer::Time(plain), Some(name)) => {
                let nanoseconds = numbers::<Int64Type>(name.into(), plain);
                // Rounded down: there is no time before the epoch.
                plain.values = nanoseconds
                    .iter()
                    .map(|time| time.unwrap_or_default() / 1_000)
                    .collect();
                if nanoseconds.null_count() > 0 {
                    plain.valid = nanoseconds.iter().map(|time| time.is_some()).collect();
                }
                Some(nanoseconds.into_column())
            }
            _ => None,
        };
        std::iter::once(self.take_first()).chain(nanoseconds)
    }

    fn take_first(&mut self) -> PolarsColumn {
        let name = PlSmallStr::from_static(self.column.name);
        let rows = std::mem::take(&mut self.rows);
        let all_null = match &self.buffer {
            Buffer::I32(plain) => plain.leading_nulls == rows,
            Buffer::I64(plain) | Buffer::Time(plain) => plain.leading_nulls == rows,
            Buffer::F64(plain) => plain.leading_nulls == rows,
            Buffer::Bool(plain) => plain.leading_nulls == rows,
            Buffer::Text(nulls, _) => *nulls == rows,
        };
        if all_null {
            self.buffer = Self::new(self.column).buffer;
            return Series::full_null(name, rows, &data_type(self.column.kind)).into_column();
        }
        match &mut self.buffer {
            Buffer::I32(plain) => numbers::<Int32Type>(name, plain).into_column(),
            Buffer::I64(plain) => numbers::<Int64Type>(name, plain).into_column(),
            Buffer::F64(plain) => numbers::<Float64Type>(name, plain).into_column(),
            Buffer::Time(plain) => numbers::<Int64Type>(name, plain)
                .into_datetime(TimeUnit::Microseconds, Some(TimeZone::UTC))
                .into_series()
                .into_column(),
            Buffer::Bool(plain) => {
                let (values, valid) = plain.take();
                match valid {
                    None => BooleanChunked::from_slice(name, &values).into_column(),
                    Some(valid) => {
                        let options = values.iter().zip(valid.iter());
                        let options = options.map(|(value, valid)| (valid == Some(true)).then_some(*value));
                        BooleanChunked::from_iter_options(name, options).into_column()
                    }
                }
            }
            Buffer::Text(nulls, builder) => {
                *nulls = 0;
                match builder.take() {
                    Some(builder) => builder.finish().into_column(),
                    None => Series::new(name, Vec::<&str>::new()).into_column(),
                }
            }
        }
    }
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

fn numbers<T>(name: PlSmallStr, plain: &mut Plain<T::Native>) -> ChunkedArray<T>
where
    T: PolarsNumericType,
    T::Native: Copy + Default,
{
    let (values, valid) = plain.take();
    let bits = valid
        .as_ref()
        .and_then(|valid| valid.downcast_iter().next())
        .map(|mask| mask.values().clone());
    ChunkedArray::from_vec_validity(name, values, bits)
}
