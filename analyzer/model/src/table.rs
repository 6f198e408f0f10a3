//! Tables: one description for each column, rows to fill in, and columns to store.
//!
//! [`table!`] is the only place where a column is described. From it come the row (a struct), the columns (one
//! [`Values`] each, what sinks store) and the description (a [`Table`], what readers print).

mod values;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use roce_wire::Address;

use crate::{Evidence, FlowId, NameList, TapId, Time};

pub use values::Values;

/// The type of a column's values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ColumnType {
    /// Unsigned, 32 bits in memory. Datasets store 31: numbers of queue pairs, packets, ports and taps fit.
    U32,
    /// Unsigned, 64 bits in memory. Datasets store 63.
    U64,
    /// Floating point, 64 bits.
    F64,
    /// True or false.
    Bool,
    /// Text.
    Text,
    /// A point in time: nanoseconds since the Unix epoch, UTC.
    Time,
    /// A flow's name: 63 bits, written as 16 hex digits.
    Id,
    /// An address, written as text.
    Address,
}

/// The description of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Column {
    /// Its name, the same in every output.
    pub name: &'static str,
    /// The type of its values.
    pub kind: ColumnType,
    /// True if values can be absent: not known, or not a thing this row can have.
    pub nullable: bool,
    /// The unit of its values; empty for names and counts of nothing in particular.
    pub unit: &'static str,
    /// Meaning of a value.
    pub meaning: &'static str,
}

impl Column {
    /// Name of the second column that a dataset has for a time: the first holds microseconds, which every engine reads, and
    /// this one nanoseconds. `None` for other types.
    pub fn nanoseconds(&self) -> Option<String> {
        matches!(self.kind, ColumnType::Time).then(|| format!("{}_ns", self.name))
    }
}

/// The description of a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Table {
    /// Its name, also of its folder in a dataset.
    pub name: &'static str,
    /// Meaning of a row.
    pub row: &'static str,
    /// Its columns, in order.
    pub columns: &'static [Column],
}

/// One value of a row.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Cell<'a> {
    /// Absent.
    Null,
    /// A number.
    U32(u32),
    /// A number.
    U64(u64),
    /// A number.
    F64(f64),
    /// True or false.
    Bool(bool),
    /// Text.
    Text(&'a str),
    /// A point in time.
    Time(Time),
    /// A flow's name.
    Id(FlowId),
    /// An address.
    Address(Address),
    /// The facts that a finding rests on.
    Evidence(&'a Evidence),
    /// Names, in an order.
    Names(&'a NameList),
}

impl<'a> Cell<'a> {
    /// The cell of a column of type `kind` that is written as `text`: addresses as they are displayed, times in decimal
    /// and flow names in hexadecimal digits. `None` where it is not, or the type is not one that is written as text.
    pub fn parse(kind: ColumnType, text: &'a str) -> Option<Self> {
        match kind {
            ColumnType::Text => Some(Self::Text(text)),
            ColumnType::Address => text.parse().ok().map(Self::Address),
            ColumnType::Time => text.parse().ok().map(|time| Self::Time(Time(time))),
            ColumnType::Id => {
                let id = u64::from_str_radix(text, 16).ok().map(FlowId);
                id.filter(|id| *id <= FlowId::MAX).map(Self::Id)
            }
            ColumnType::U32 | ColumnType::U64 | ColumnType::F64 | ColumnType::Bool => None,
        }
    }
}

/// The one copy of a word that lives as long as the program, for values out of a small vocabulary that
/// are read back. `None` for a word longer than 64 bytes, or for the 1,025th word: no vocabulary is so
/// large.
pub fn word(text: &str) -> Option<&'static str> {
    const MAX_LENGTH: usize = 64;
    const MAX_WORDS: usize = 1024;
    static WORDS: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut words = WORDS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(word) = words.get(text) {
        return Some(word);
    }
    if text.len() > MAX_LENGTH || words.len() >= MAX_WORDS {
        return None;
    }
    let word: &'static str = Box::leak(text.into());
    words.insert(word);
    Some(word)
}

/// A column's values, by type.
#[derive(Clone, Copy, Debug)]
#[expect(
    missing_docs,
    reason = "each variant holds the values of the column type it is named after"
)]
pub enum Data<'a> {
    U32(&'a Values<u32>),
    U64(&'a Values<u64>),
    F64(&'a Values<f64>),
    Bool(&'a Values<bool>),
    Text(&'a Values<Cow<'static, str>>),
    Time(&'a Values<u64>),
    Id(&'a Values<u64>),
    Address(&'a Values<Address>),
}

/// A type that a row's field can have.
pub trait Value: Sized {
    /// Form in which a column stores it.
    type StoredValue: Default;
    /// The type of such a column.
    const KIND: ColumnType;
    /// True if it can be absent.
    const NULLABLE: bool = false;

    /// The value as its column stores it; the default where it is absent.
    fn stored(&self) -> Self::StoredValue;
    /// True if it is absent.
    #[inline]
    fn is_absent(&self) -> bool {
        false
    }
    /// Adds it to its column.
    #[inline]
    fn store(&self, column: &mut Values<Self::StoredValue>) {
        if self.is_absent() {
            column.push_null();
        } else {
            column.push(self.stored());
        }
    }
    /// Adds those `of` rows to their column.
    #[inline]
    fn store_all<R>(rows: &[R], of: impl Fn(&R) -> &Self, column: &mut Values<Self::StoredValue>) {
        if Self::NULLABLE {
            column.extend_some(rows, |row| !of(row).is_absent(), |row| of(row).stored());
        } else {
            column.extend(rows, |row| of(row).stored());
        }
    }
    /// It as a cell.
    fn cell(&self) -> Cell<'_>;
    /// The value of such a cell; `None` when that holds no value of this type.
    fn from_cell(cell: Cell<'_>) -> Option<Self>;
    /// A column of such values.
    fn data<'a>(column: &'a Values<Self::StoredValue>) -> Data<'a>;
}

macro_rules! value {
    ($type:ty, $stored:ty, $kind:ident, $self:ident => $store:expr, $cell:expr, $held:ident => $value:expr) => {
        impl Value for $type {
            type StoredValue = $stored;
            const KIND: ColumnType = ColumnType::$kind;

            #[inline]
            fn stored(&$self) -> $stored {
                $store
            }

            fn cell(&$self) -> Cell<'_> {
                $cell
            }

            fn from_cell(cell: Cell<'_>) -> Option<Self> {
                match cell {
                    Cell::$kind($held) => $value,
                    _ => None,
                }
            }

            fn data<'a>(column: &'a Values<$stored>) -> Data<'a> {
                Data::$kind(column)
            }
        }
    };
}

value!(u8, u32, U32, self => u32::from(*self), Cell::U32(u32::from(*self)), value => value.try_into().ok());
value!(u16, u32, U32, self => u32::from(*self), Cell::U32(u32::from(*self)), value => value.try_into().ok());
value!(u32, u32, U32, self => *self, Cell::U32(*self), value => Some(value));
value!(u64, u64, U64, self => *self, Cell::U64(*self), value => Some(value));
value!(f64, f64, F64, self => *self, Cell::F64(*self), value => Some(value));
value!(bool, bool, Bool, self => *self, Cell::Bool(*self), value => Some(value));
value!(TapId, u32, U32, self => self.0, Cell::U32(self.0), value => Some(TapId(value)));
value!(Time, u64, Time, self => self.0, Cell::Time(*self), value => Some(value));
value!(FlowId, u64, Id, self => self.0, Cell::Id(*self), value => Some(value));
value!(Address, Address, Address, self => *self, Cell::Address(*self), value => Some(value));
value!(&'static str, Cow<'static, str>, Text, self => Cow::Borrowed(*self), Cell::Text(self), text => word(text));
value!(
    Cow<'static, str>, Cow<'static, str>, Text, self => self.clone(), Cell::Text(self),
    text => Some(Cow::Owned(text.to_owned()))
);

impl<T: Value> Value for Option<T> {
    type StoredValue = T::StoredValue;
    const KIND: ColumnType = T::KIND;
    const NULLABLE: bool = true;

    #[inline]
    fn stored(&self) -> T::StoredValue {
        self.as_ref().map(Value::stored).unwrap_or_default()
    }

    #[inline]
    fn is_absent(&self) -> bool {
        self.is_none()
    }

    fn cell(&self) -> Cell<'_> {
        self.as_ref().map_or(Cell::Null, Value::cell)
    }

    fn from_cell(cell: Cell<'_>) -> Option<Self> {
        match cell {
            Cell::Null => Some(None),
            cell => T::from_cell(cell).map(Some),
        }
    }

    fn data<'a>(column: &'a Values<T::StoredValue>) -> Data<'a> {
        T::data(column)
    }
}

/// Rows of one table, stored by column.
pub trait Columns: Default {
    /// A row.
    type Row;
    /// The description of the table.
    const TABLE: Table;

    /// Adds a row.
    fn push(&mut self, row: &Self::Row);
    /// Adds rows, column by column: of many, that takes a fraction of the time.
    fn extend(&mut self, rows: &[Self::Row]);
    /// Number of rows.
    fn len(&self) -> usize;
    /// True if there is none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Makes room for as many rows as `other` has.
    fn reserve_like(&mut self, other: &Self);
    /// Moves the rows of `other` behind its own.
    fn append(&mut self, other: &mut Self);
    /// Keeps the rows for which `keep` holds.
    fn retain(&mut self, keep: &[bool]);
    /// Removes all rows, keeping the room.
    fn clear(&mut self);
    /// Each column with its description, in order.
    fn for_each<'a>(&'a self, visit: impl FnMut(&'static Column, Data<'a>));
    /// Each cell of a row with its description, in order.
    fn cells<'a>(row: &'a Self::Row, visit: impl FnMut(&'static Column, Cell<'a>));
    /// The row of these cells, which are read in order.
    ///
    /// # Errors
    /// The first column whose cell holds no value of its type.
    fn row<'a>(cell: impl FnMut(&'static Column) -> Cell<'a>) -> Result<Self::Row, &'static Column>;
}

/// Describes a table: `row` and `columns` become structs, the descriptions a [`Table`].
macro_rules! table {
    (
        $(#[$attribute:meta])*
        $row:ident, $columns:ident, $name:literal, $meaning:literal;
        $( $field:ident: $type:ty, $unit:literal, $about:literal; )+
    ) => {
        #[doc = $meaning]
        $(#[$attribute])*
        pub struct $row {
            $( #[doc = $about] pub $field: $type, )+
        }

        #[doc = concat!("Rows of the table `", $name, "`, stored by column.")]
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct $columns {
            $( #[doc = $about] pub $field: $crate::Values<<$type as $crate::Value>::StoredValue>, )+
        }

        impl $crate::Columns for $columns {
            type Row = $row;

            const TABLE: $crate::Table = $crate::Table {
                name: $name,
                row: $meaning,
                columns: &[ $( $crate::Column {
                    name: stringify!($field),
                    kind: <$type as $crate::Value>::KIND,
                    nullable: <$type as $crate::Value>::NULLABLE,
                    unit: $unit,
                    meaning: $about,
                }, )+ ],
            };

            #[inline]
            fn push(&mut self, row: &$row) {
                $( $crate::Value::store(&row.$field, &mut self.$field); )+
            }

            fn extend(&mut self, rows: &[$row]) {
                // Rows that stay in the first cache while each column takes its part of them.
                const CHUNK_ROWS: usize = 1 + (16 << 10) / size_of::<$row>();
                for rows in rows.chunks(CHUNK_ROWS) {
                    $( $crate::Value::store_all(rows, |row| &row.$field, &mut self.$field); )+
                }
            }

            fn len(&self) -> usize {
                [ $( self.$field.len(), )+ ][0]
            }

            fn reserve_like(&mut self, other: &Self) {
                $( self.$field.reserve_like(&other.$field); )+
            }

            fn append(&mut self, other: &mut Self) {
                $( self.$field.append(&mut other.$field); )+
            }

            fn retain(&mut self, keep: &[bool]) {
                $( self.$field.retain(keep); )+
            }

            fn clear(&mut self) {
                $( self.$field.clear(); )+
            }

            fn for_each<'a>(&'a self, mut visit: impl FnMut(&'static $crate::Column, $crate::Data<'a>)) {
                let mut description = Self::TABLE.columns.iter();
                $(
                    if let Some(column) = description.next() {
                        visit(column, <$type as $crate::Value>::data(&self.$field));
                    }
                )+
            }

            fn cells<'a>(row: &'a $row, mut visit: impl FnMut(&'static $crate::Column, $crate::Cell<'a>)) {
                let mut description = Self::TABLE.columns.iter();
                $(
                    if let Some(column) = description.next() {
                        visit(column, $crate::Value::cell(&row.$field));
                    }
                )+
            }

            fn row<'a>(
                mut cell: impl FnMut(&'static $crate::Column) -> $crate::Cell<'a>,
            ) -> Result<$row, &'static $crate::Column> {
                let [ $( $field, )+ ] = Self::TABLE.columns else {
                    unreachable!("a table has as many columns as its row has fields");
                };
                Ok($row { $( $field: $crate::Value::from_cell(cell($field)).ok_or($field)?, )+ })
            }
        }
    };
}
pub(crate) use table;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EventColumns, EventKind, EventRow};

    #[test]
    fn cells_become_the_row_that_they_came_from() {
        let row = EventRow {
            time: Time(u64::MAX),
            kind: EventKind::Counter,
            flow_id: Some(FlowId(u64::MAX)),
            detail: Some("port_xmit_wait".into()),
            ..EventRow::default()
        };
        let mut cells = Vec::new();
        EventColumns::cells(&row, |column, cell| cells.push((column.name, cell)));
        let of = |name: &str| cells.iter().find(|(column, _)| *column == name).unwrap().1;
        assert_eq!(EventColumns::row(|column| of(column.name)), Ok(row.clone()));
        let refused = |name: &str, instead| {
            EventColumns::row(|column| {
                if column.name == name {
                    instead
                } else {
                    of(column.name)
                }
            })
            .map_err(|column| column.name)
        };
        assert_eq!(refused("kind", Cell::Text("gravity")), Err("kind"));
        assert_eq!(refused("time", Cell::Null), Err("time"));
        assert_eq!(refused("psn", Cell::Text("1")), Err("psn"));
    }

    #[test]
    fn cells_are_read_from_text() {
        let parse = Cell::parse;
        assert_eq!(
            parse(ColumnType::Address, "10.0.0.1"),
            Some(Cell::Address(Address::v4([10, 0, 0, 1])))
        );
        assert_eq!(parse(ColumnType::Address, "host"), None);
        assert_eq!(parse(ColumnType::Time, "17"), Some(Cell::Time(Time(17))));
        assert_eq!(
            parse(ColumnType::Id, "00000000000000ff"),
            Some(Cell::Id(FlowId(255)))
        );
        assert_eq!(parse(ColumnType::U64, "17"), None);
    }

    #[test]
    fn a_word_is_kept_once_and_a_text_is_none() {
        let first = word("a word of this test").unwrap();
        assert!(std::ptr::eq(first, word("a word of this test").unwrap()));
        assert_eq!(word(&"x".repeat(65)), None);
    }
}
