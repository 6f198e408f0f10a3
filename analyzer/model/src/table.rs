//! Tables: one description for each column, rows to fill in, and columns to store.
//!
//! [`table!`] is the only place where a column is described. From it come the row (a struct), the columns (one
//! [`Values`] each, what sinks store) and the description (a [`Table`], what readers print).

use std::borrow::Cow;

use roce_wire::Address;

use crate::{Evidence, FlowId, Nanos, TapId};

/// The type of a column's values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ColumnType {
    /// Unsigned, 32 bits.
    U32,
    /// Unsigned, 64 bits.
    U64,
    /// Floating point, 64 bits.
    F64,
    /// True or false.
    Bool,
    /// Text.
    Text,
    /// A point in time: nanoseconds since the Unix epoch, UTC.
    Time,
    /// A flow's name: 64 bits, written as 16 hex digits.
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
    /// Whether values can be absent: not known, or not a thing this row can have.
    pub nullable: bool,
    /// The unit of its values; empty for names and counts of nothing in particular.
    pub unit: &'static str,
    /// What a value means.
    pub meaning: &'static str,
}

/// The description of a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Table {
    /// Its name, also of its folder in a dataset.
    pub name: &'static str,
    /// What a row is.
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
    Time(Nanos),
    /// A flow's name.
    Id(FlowId),
    /// An address.
    Address(Address),
    /// The facts that a finding rests on.
    Evidence(&'a Evidence),
}

/// The values of one column, some of them absent. Absent values before the first present one take no room.
#[derive(Clone, Debug, PartialEq)]
pub struct Values<T> {
    leading_nulls: usize,
    present: Vec<T>,
    /// Empty, or for each of `present` whether it really is.
    valid: Vec<bool>,
}

impl<T> Default for Values<T> {
    fn default() -> Self {
        Self {
            leading_nulls: 0,
            present: Vec::new(),
            valid: Vec::new(),
        }
    }
}

impl<T: Default> Values<T> {
    /// Adds a value.
    #[inline]
    pub fn push(&mut self, value: T) {
        if !self.valid.is_empty() {
            self.valid.push(true);
        }
        self.present.push(value);
    }

    /// Adds an absent value.
    #[inline]
    pub fn push_null(&mut self) {
        if self.present.is_empty() {
            self.leading_nulls += 1;
            return;
        }
        self.valid.resize(self.present.len(), true);
        self.valid.push(false);
        self.present.push(T::default());
    }

    /// How many values there are, absent ones counted.
    pub fn len(&self) -> usize {
        self.leading_nulls + self.present.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of row `row`; `None` when it is absent or there is no such row.
    #[inline]
    pub fn at(&self, row: usize) -> Option<&T> {
        let index = row.checked_sub(self.leading_nulls)?;
        if self.valid.get(index).is_some_and(|valid| !valid) {
            return None;
        }
        self.present.get(index)
    }

    /// All values in order.
    pub fn iter(&self) -> impl Iterator<Item = Option<&T>> {
        (0..self.len()).map(|row| self.at(row))
    }

    /// The plain values, when none is absent: what can be stored without looking at each.
    pub fn without_nulls(&self) -> Option<&[T]> {
        (self.leading_nulls == 0 && self.valid.is_empty()).then_some(&self.present)
    }

    /// Whether every value is absent.
    pub fn all_null(&self) -> bool {
        self.present.is_empty()
    }

    /// Empties it, keeping its room.
    pub fn clear(&mut self) {
        self.leading_nulls = 0;
        self.present.clear();
        self.valid.clear();
    }
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
pub trait Value {
    /// How a column stores it.
    type Stored: Default;
    /// The type of such a column.
    const KIND: ColumnType;
    /// Whether it can be absent.
    const NULLABLE: bool = false;

    /// Adds it to its column.
    fn store(&self, column: &mut Values<Self::Stored>);
    /// It as a cell.
    fn cell(&self) -> Cell<'_>;
    /// A column of such values.
    fn data<'a>(column: &'a Values<Self::Stored>) -> Data<'a>;
}

macro_rules! value {
    ($type:ty, $stored:ty, $kind:ident, $self:ident => $store:expr, $cell:expr) => {
        impl Value for $type {
            type Stored = $stored;
            const KIND: ColumnType = ColumnType::$kind;

            #[inline]
            fn store(&$self, column: &mut Values<$stored>) {
                column.push($store);
            }

            fn cell(&$self) -> Cell<'_> {
                $cell
            }

            fn data<'a>(column: &'a Values<$stored>) -> Data<'a> {
                Data::$kind(column)
            }
        }
    };
}

value!(u8, u32, U32, self => u32::from(*self), Cell::U32(u32::from(*self)));
value!(u16, u32, U32, self => u32::from(*self), Cell::U32(u32::from(*self)));
value!(u32, u32, U32, self => *self, Cell::U32(*self));
value!(u64, u64, U64, self => *self, Cell::U64(*self));
value!(f64, f64, F64, self => *self, Cell::F64(*self));
value!(bool, bool, Bool, self => *self, Cell::Bool(*self));
value!(TapId, u32, U32, self => self.0, Cell::U32(self.0));
value!(Nanos, u64, Time, self => self.0, Cell::Time(*self));
value!(FlowId, u64, Id, self => self.0, Cell::Id(*self));
value!(Address, Address, Address, self => *self, Cell::Address(*self));
value!(&'static str, Cow<'static, str>, Text, self => Cow::Borrowed(*self), Cell::Text(self));
value!(Cow<'static, str>, Cow<'static, str>, Text, self => self.clone(), Cell::Text(self));

impl<T: Value> Value for Option<T> {
    type Stored = T::Stored;
    const KIND: ColumnType = T::KIND;
    const NULLABLE: bool = true;

    #[inline]
    fn store(&self, column: &mut Values<T::Stored>) {
        match self {
            Some(value) => value.store(column),
            None => column.push_null(),
        }
    }

    fn cell(&self) -> Cell<'_> {
        self.as_ref().map_or(Cell::Null, Value::cell)
    }

    fn data<'a>(column: &'a Values<T::Stored>) -> Data<'a> {
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
    /// How many rows there are.
    fn len(&self) -> usize;
    /// Whether there is none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Removes all rows, keeping the room.
    fn clear(&mut self);
    /// Each column with its description, in order.
    fn for_each<'a>(&'a self, visit: impl FnMut(&'static Column, Data<'a>));
    /// Each cell of a row with its description, in order.
    fn cells<'a>(row: &'a Self::Row, visit: impl FnMut(&'static Column, Cell<'a>));
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
            $( #[doc = $about] pub $field: $crate::Values<<$type as $crate::Value>::Stored>, )+
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

            fn len(&self) -> usize {
                [ $( self.$field.len(), )+ ][0]
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
        }
    };
}
pub(crate) use table;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_values_anywhere() {
        let mut values = Values::<u32>::default();
        values.push_null();
        values.push(7);
        assert!(!values.all_null());
        values.push_null();
        values.push(9);
        assert_eq!(
            values.iter().collect::<Vec<_>>(),
            [None, Some(&7), None, Some(&9)]
        );
        assert_eq!(values.len(), 4);
        assert_eq!(values.at(4), None);
        assert!(values.without_nulls().is_none());
        values.clear();
        values.push(1);
        assert_eq!(values.without_nulls(), Some(&[1][..]));
    }

    #[test]
    fn a_column_of_nulls_stores_nothing() {
        let mut values = Values::<u64>::default();
        values.push_null();
        values.push_null();
        assert!(values.all_null());
        assert_eq!(values.len(), 2);
        assert_eq!(values.at(1), None);
    }
}
