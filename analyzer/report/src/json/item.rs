//! Any value of a JSON document, the keys of objects in their order, and how it is taken as what it was written for.

use std::fmt;

use roce_model::{Cell, ColumnType, Columns, Evidence, Fact, Value, word};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

use crate::Error;

/// A value.
#[derive(Debug, Default)]
pub(super) enum Item {
    #[default]
    Null,
    Bool(bool),
    Count(u64),
    Number(f64),
    Text(String),
    List(Vec<Item>),
    Object(Vec<(String, Item)>),
}

impl Item {
    /// The values of the list that `key` is to be.
    pub(super) fn list(&self, key: &str) -> Result<&[Self], Error> {
        match self {
            Self::List(items) => Ok(items),
            _ => Err(Error::key(key)),
        }
    }

    /// The fields of the object that `key` is to be.
    pub(super) fn fields(&self, key: &str) -> Result<&[(String, Self)], Error> {
        match self {
            Self::Object(fields) => Ok(fields),
            _ => Err(Error::key(key)),
        }
    }

    /// The object that `key` is to be.
    pub(super) fn object<'a>(&'a self, key: &'a str) -> Result<Object<'a>, Error> {
        self.fields(key).map(|fields| Object { key, fields })
    }

    /// It as a cell of a column of type `kind`. What does not fit the type becomes a cell of another one.
    fn cell(&self, kind: ColumnType) -> Cell<'_> {
        match self {
            Self::Null | Self::List(_) | Self::Object(_) => Cell::Null,
            Self::Bool(value) => Cell::Bool(*value),
            Self::Count(value) => match u32::try_from(*value) {
                Ok(value) if kind == ColumnType::U32 => Cell::U32(value),
                _ => Cell::U64(*value),
            },
            Self::Number(value) => Cell::F64(*value),
            Self::Text(text) => Cell::parse(kind, text).unwrap_or(Cell::Text(text)),
        }
    }
}

/// An object of the document, and the key that it stands under.
pub(super) struct Object<'a> {
    key: &'a str,
    fields: &'a [(String, Item)],
}

impl<'a> Object<'a> {
    /// What stands under a key; null when there is no such key.
    pub(super) fn get(&self, key: &str) -> &'a Item {
        const ABSENT: &Item = &Item::Null;
        let found = self.fields.iter().find(|(name, _)| name == key);
        found.map_or(ABSENT, |(_, item)| item)
    }

    /// What stands under a key, as the type that it was written from.
    pub(super) fn value<T: Value>(&self, key: &str) -> Result<T, Error> {
        T::from_cell(self.get(key).cell(T::KIND)).ok_or_else(|| self.wrong(key))
    }

    /// What stands under a key, as text.
    pub(super) fn text(&self, key: &str) -> Result<&'a str, Error> {
        match self.get(key) {
            Item::Text(text) => Ok(text),
            _ => Err(self.wrong(key)),
        }
    }

    /// That something else stands under a key than is to.
    pub(super) fn wrong(&self, key: &str) -> Error {
        Error::key(&format!("{}.{key}", self.key))
    }

    /// The row of a table that it is.
    pub(super) fn row<C: Columns>(&self) -> Result<C::Row, Error> {
        // No table has more than one column of objects.
        let objects = self.fields.iter().find_map(|(key, item)| match item {
            Item::Object(fields) => Some((key, fields)),
            _ => None,
        });
        let evidence = objects.map(|(key, fields)| evidence(fields).ok_or_else(|| self.wrong(key)));
        let evidence = evidence.transpose()?;
        C::row(|column| match (self.get(column.name), &evidence) {
            (Item::Object(_), Some(evidence)) => Cell::Evidence(evidence),
            (item, _) => item.cell(column.kind),
        })
        .map_err(|column| self.wrong(column.name))
    }
}

/// The facts of a finding; what is not finite was written as null.
fn evidence(fields: &[(String, Item)]) -> Option<Evidence> {
    let fact = |(name, item): &(String, Item)| {
        let fact = match item {
            Item::Count(value) => Fact::Count(*value),
            Item::Number(value) => Fact::Number(*value),
            Item::Null => Fact::Number(f64::NAN),
            Item::Text(text) => Fact::Text(text.clone()),
            Item::Bool(_) | Item::List(_) | Item::Object(_) => return None,
        };
        Some((word(name)?, fact))
    };
    fields.iter().map(fact).collect::<Option<Vec<_>>>().map(Evidence)
}

impl<'de> Deserialize<'de> for Item {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Anything)
    }
}

struct Anything;

impl<'de> Visitor<'de> for Anything {
    type Value = Item;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Item, E> {
        Ok(Item::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Item, E> {
        Ok(Item::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Item, E> {
        Ok(Item::Count(value))
    }

    #[expect(clippy::cast_precision_loss, reason = "no count is negative: it was a number")]
    fn visit_i64<E>(self, value: i64) -> Result<Item, E> {
        Ok(Item::Number(value as f64))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Item, E> {
        Ok(Item::Number(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Item, E> {
        Ok(Item::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Item, A::Error> {
        let mut list = Vec::new();
        while let Some(value) = values.next_element()? {
            list.push(value);
        }
        Ok(Item::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Item, A::Error> {
        let mut object = Vec::new();
        while let Some(field) = fields.next_entry()? {
            object.push(field);
        }
        Ok(Item::Object(object))
    }
}
