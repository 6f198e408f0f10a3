//! A dump of one of SONiC's databases: `{"KEY": {"type": "hash", "value": {"FIELD": "TEXT"}}}`, as `sonic-db-dump` prints it.

use serde_json::{Map, Value};

use super::super::answer::json_count;

/// Hashes by their keys.
#[derive(Default)]
pub(super) struct Database {
    hashes: Map<String, Value>,
}

/// The fields of one key.
#[derive(Clone, Copy)]
pub(super) struct Hash<'a> {
    fields: &'a Map<String, Value>,
}

impl Database {
    /// The dump in a JSON object.
    pub(super) fn new(hashes: Map<String, Value>) -> Self {
        Self { hashes }
    }

    /// Adds the hashes of another dump.
    pub(super) fn extend(&mut self, other: Self) {
        self.hashes.extend(other.hashes);
    }

    /// The hash of a key.
    pub(super) fn hash(&self, key: &str) -> Option<Hash<'_>> {
        Hash::from_value(self.hashes.get(key)?)
    }

    /// Hashes of a table (`QUEUE|`), with the rest of their keys.
    pub(super) fn table<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, Hash<'a>)> {
        self.hashes
            .iter()
            .filter_map(move |(key, value)| Some((key.strip_prefix(prefix)?, Hash::from_value(value)?)))
    }
}

impl<'a> Hash<'a> {
    fn from_value(entry: &'a Value) -> Option<Self> {
        let fields = entry.get("value")?.as_object()?;
        Some(Self { fields })
    }

    /// A field's text.
    pub(super) fn text(self, field: &str) -> Option<&'a str> {
        self.fields.get(field)?.as_str().map(str::trim)
    }

    /// A field's count; `N/A` is not known.
    pub(super) fn count(self, field: &str) -> Option<u64> {
        self.fields.get(field).and_then(json_count)
    }

    /// All fields that are texts.
    pub(super) fn texts(self) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.fields
            .iter()
            .filter_map(|(field, value)| Some((field.as_str(), value.as_str()?.trim())))
    }
}
