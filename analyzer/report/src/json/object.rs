//! Objects of a JSON document: values under their keys, as the types that they were written from.

use roce_model::{Cell, ColumnType, Columns, Evidence, Fact, NameList, word};
use serde_json::{Map, Value};

use crate::Error;

/// The values of the list under `key`.
pub(super) fn list<'a>(value: &'a Value, key: &str) -> Result<&'a [Value], Error> {
    value.as_array().map(Vec::as_slice).ok_or_else(|| Error::key(key))
}

/// The fields of the object under `key`, in the order of the document.
pub(super) fn fields<'a>(value: &'a Value, key: &str) -> Result<&'a Map<String, Value>, Error> {
    value.as_object().ok_or_else(|| Error::key(key))
}

/// An object of the document, and its key.
pub(super) struct Object<'a> {
    key: &'a str,
    fields: &'a Map<String, Value>,
}

impl<'a> Object<'a> {
    /// The object under `key`.
    pub(super) fn new(value: &'a Value, key: &'a str) -> Result<Self, Error> {
        fields(value, key).map(|fields| Self { key, fields })
    }

    /// The value under a key; null without such a key.
    pub(super) fn get(&self, key: &str) -> &'a Value {
        self.fields.get(key).unwrap_or(&Value::Null)
    }

    /// The value under a key, as the type that it was written from.
    pub(super) fn value<T: roce_model::Value>(&self, key: &str) -> Result<T, Error> {
        T::from_cell(cell(self.get(key), T::KIND)).ok_or_else(|| self.wrong(key))
    }

    /// The text under a key.
    pub(super) fn text(&self, key: &str) -> Result<&'a str, Error> {
        self.get(key).as_str().ok_or_else(|| self.wrong(key))
    }

    /// Error for a value of another type than the schema has under `key`.
    pub(super) fn wrong(&self, key: &str) -> Error {
        Error::key(&format!("{}.{key}", self.key))
    }

    /// The object as a row of a table.
    pub(super) fn row<C: Columns>(&self) -> Result<C::Row, Error> {
        // No table has more than one column of objects.
        let objects = self
            .fields
            .iter()
            .find_map(|(key, value)| Some((key, value.as_object()?)));
        let evidence = objects.map(|(key, fields)| evidence(fields).ok_or_else(|| self.wrong(key)));
        let evidence = evidence.transpose()?;
        let lists = self.fields.iter();
        let lists: Vec<(&String, NameList)> = lists
            .filter_map(|(key, value)| Some((key, names_of(value.as_array()?)?)))
            .collect();
        C::row(|column| match (self.get(column.name), &evidence) {
            (Value::Object(_), Some(evidence)) => Cell::Evidence(evidence),
            (Value::Array(_), _) => lists
                .iter()
                .find(|(key, _)| *key == column.name)
                .map_or(Cell::Null, |(_, names)| Cell::Names(names)),
            (value, _) => cell(value, column.kind),
        })
        .map_err(|column| self.wrong(column.name))
    }
}

/// A value as a cell of a column of type `kind`. A value that does not fit the type becomes a cell of another one.
fn cell(value: &Value, kind: ColumnType) -> Cell<'_> {
    match value {
        Value::Null | Value::Array(_) | Value::Object(_) => Cell::Null,
        Value::Bool(value) => Cell::Bool(*value),
        Value::Number(number) => match number.as_u64() {
            Some(count) => match u32::try_from(count) {
                Ok(count) if kind == ColumnType::U32 => Cell::U32(count),
                _ => Cell::U64(count),
            },
            None => number.as_f64().map_or(Cell::Null, Cell::F64),
        },
        Value::String(text) => Cell::parse(kind, text).unwrap_or(Cell::Text(text)),
    }
}

/// The names of a list. `None`: some of its values are none.
fn names_of(values: &[Value]) -> Option<NameList> {
    let names = values
        .iter()
        .map(|value| value.as_str().map(|name| name.to_owned().into()));
    names.collect::<Option<Vec<_>>>().map(NameList)
}

/// The facts of a finding. Numbers that are not finite were written as null.
fn evidence(fields: &Map<String, Value>) -> Option<Evidence> {
    let fact = |(name, value): (&String, &Value)| {
        let fact = match value {
            Value::Number(number) => match number.as_u64() {
                Some(count) => Fact::Count(count),
                None => Fact::Number(number.as_f64()?),
            },
            Value::Null => Fact::Number(f64::NAN),
            Value::String(text) => Fact::Text(text.clone()),
            Value::Bool(_) | Value::Array(_) | Value::Object(_) => return None,
        };
        Some((word(name)?, fact))
    };
    fields.iter().map(fact).collect::<Option<Vec<_>>>().map(Evidence)
}
