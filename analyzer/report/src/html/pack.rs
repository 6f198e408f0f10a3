//! Columns as bytes: what the page's `data.js` reads.
//!
//! Whole numbers are little-endian groups of seven bits (LEB128), one more than their value, 0 for an
//! absent one; times are relative to the first one of the page. Texts are a list of the different ones,
//! then a number for each row. Compression follows, and shrinks repetitions.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use roce_model::text::clean;
use roce_model::{Column, ColumnType, Columns, Data, Values};
use serde::Serialize;

use super::axis::Axis;
use super::leb128::{MAX_BYTES, write};
use super::series::Series;

/// Bytes, and the places of columns in them.
#[derive(Debug, Default)]
pub(super) struct PackedColumns {
    pub(super) bytes: Vec<u8>,
    /// Origin of times, in ns since the epoch.
    base: u64,
}

/// Place of a column, and the form of its values.
#[derive(Debug, Serialize)]
pub(super) struct ColumnPlace {
    name: &'static str,
    unit: &'static str,
    meaning: &'static str,
    /// One of `number`, `time`, `float`, `bool`, `text` and `id`.
    kind: &'static str,
    at: usize,
    length: usize,
}

impl ColumnPlace {
    /// A column whose values are in the document.
    pub(super) fn nowhere(column: &Column) -> Self {
        Self {
            name: column.name,
            unit: column.unit,
            meaning: column.meaning,
            kind: match column.kind {
                ColumnType::U32 | ColumnType::U64 => "number",
                ColumnType::F64 => "float",
                ColumnType::Bool => "bool",
                ColumnType::Text | ColumnType::Address => "text",
                ColumnType::Time => "time",
                ColumnType::Id => "id",
            },
            at: 0,
            length: 0,
        }
    }
}

impl PackedColumns {
    /// Nothing yet; times will be relative to `base`.
    pub(super) fn new(base: u64) -> Self {
        Self {
            bytes: Vec::new(),
            base,
        }
    }

    /// A number, as it is.
    pub(super) fn number(&mut self, value: u64) {
        let mut bytes = [0; MAX_BYTES];
        let length = write(&mut bytes, 0, value);
        self.bytes.extend_from_slice(&bytes[..length]);
    }

    /// A length, then the text, cleaned for people.
    pub(super) fn text(&mut self, text: &str) {
        let text = clean(text);
        self.number(text.len() as u64);
        self.bytes.extend_from_slice(text.as_bytes());
    }

    /// A flow's name.
    pub(super) fn id(&mut self, id: u64) {
        self.bytes.extend_from_slice(&id.to_le_bytes());
    }

    /// All columns of a table.
    pub(super) fn table<C: Columns>(&mut self, columns: &C) -> Vec<ColumnPlace> {
        let mut places = Vec::with_capacity(C::TABLE.columns.len());
        columns.for_each(|column, data| {
            let at = self.bytes.len();
            let kind = self.column(data);
            places.push(ColumnPlace {
                kind,
                at,
                length: self.bytes.len() - at,
                ..ColumnPlace::nowhere(column)
            });
        });
        places
    }

    fn column(&mut self, data: Data<'_>) -> &'static str {
        match data {
            Data::U32(values) => self.numbers(values, |value| u64::from(*value), "number"),
            Data::U64(values) => self.numbers(values, |value| *value, "number"),
            Data::Bool(values) => self.numbers(values, |value| u64::from(*value), "bool"),
            Data::Time(values) => {
                let base = self.base;
                self.numbers(values, |value| value.saturating_sub(base), "time")
            }
            Data::F64(values) => {
                for value in values.iter() {
                    let value = value.copied().unwrap_or(f64::NAN);
                    self.bytes.extend_from_slice(&value.to_le_bytes());
                }
                "float"
            }
            Data::Id(values) => {
                // 0 is an absent one: no hash is 0 in practice.
                values
                    .iter()
                    .for_each(|value| self.id(value.copied().unwrap_or_default()));
                "id"
            }
            Data::Text(values) => {
                self.texts(values.iter().map(|value| value.map(std::convert::AsRef::as_ref)))
            }
            Data::Address(values) => {
                let texts: Vec<Option<String>> = values
                    .iter()
                    .map(|value| value.map(ToString::to_string))
                    .collect();
                self.texts(texts.iter().map(Option::as_deref))
            }
        }
    }

    fn numbers<T: Default>(
        &mut self,
        values: &Values<T>,
        of: impl Fn(&T) -> u64,
        kind: &'static str,
    ) -> &'static str {
        for value in values.iter() {
            self.number(value.map_or(0, |value| of(value).saturating_add(1)));
        }
        kind
    }

    fn texts<'a>(&mut self, rows: impl Iterator<Item = Option<&'a str>>) -> &'static str {
        let mut known: HashMap<&str, u64, RandomState> = HashMap::default();
        let (mut different, mut numbers) = (Vec::new(), Vec::new());
        for text in rows {
            numbers.push(text.map_or(0, |text| {
                *known.entry(text).or_insert_with(|| {
                    different.push(text);
                    different.len() as u64
                })
            }));
        }
        self.number(different.len() as u64);
        for text in different {
            self.text(text);
        }
        for number in numbers {
            self.number(number);
        }
        "text"
    }

    /// A series by slots of the axis: how many metrics; for each its number, how many values, the bytes that follow, then the
    /// distances of the slots (the first one's from the axis's first) and the values.
    pub(super) fn series(&mut self, series: &Series, axis: &Axis) {
        let metrics: Vec<_> = series.metrics(axis.shift()).collect();
        self.number(metrics.len() as u64);
        for (metric, values) in metrics {
            let mut body = Self::default();
            let mut before = axis.first();
            for (slot, _) in &values {
                body.number(slot - before);
                before = *slot;
            }
            for (_, value) in &values {
                body.number(*value);
            }
            self.number(metric as u64);
            self.number(values.len() as u64);
            self.number(body.bytes.len() as u64);
            self.bytes.append(&mut body.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use roce_model::{EventColumns, EventRow, FlowId, Span, Time};

    use super::super::series::{Room, Row};
    use super::*;

    #[test]
    fn numbers_are_leb128() {
        // The example of the DWARF standard (5, section 7.6): 12857 is 0xb9, 0x64; 128 is 0x80, 0x01.
        let mut packed = PackedColumns::default();
        for number in [2, 127, 128, 12_857] {
            packed.number(number);
        }
        assert_eq!(packed.bytes, [2, 127, 0x80, 1, 0xb9, 0x64]);
    }

    #[test]
    fn a_table_is_one_column_after_the_other() {
        let mut columns = EventColumns::default();
        columns.push(&EventRow {
            time: Time(105),
            flow_id: Some(FlowId(0x0102)),
            detail: Some("nak".into()),
            ..EventRow::default()
        });
        columns.push(&EventRow {
            time: Time(107),
            psn: Some(3),
            detail: Some("nak".into()),
            ..EventRow::default()
        });
        let mut packed = PackedColumns::new(100);
        let places = packed.table(&columns);
        let of = |name: &str| {
            let place = places.iter().find(|place| place.name == name).unwrap();
            (place.kind, &packed.bytes[place.at..place.at + place.length])
        };
        assert_eq!(of("time"), ("time", &[6, 8][..]));
        assert_eq!(of("psn"), ("number", &[0, 4][..]));
        assert_eq!(of("detail"), ("text", &[1, 3, b'n', b'a', b'k', 1, 1][..]));
        assert_eq!(
            of("flow_id"),
            ("id", &[2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0][..])
        );
    }

    #[test]
    fn a_series_holds_distances_of_slots() {
        let mut axis = Axis::new(Span(1_000));
        axis.include(8_000);
        let mut series = Series::default();
        for (bin, value) in [(10, 5), (11, 6), (14, 200)] {
            series.push(bin, &Row::single(1, value), &mut Room::default());
        }
        let mut packed = PackedColumns::default();
        packed.series(&series, &axis);
        // One metric, its number, 3 values in 7 bytes; 200 takes two.
        assert_eq!(packed.bytes, [1, 1, 3, 7, 2, 1, 3, 5, 6, 0xc8, 1]);
    }
}
