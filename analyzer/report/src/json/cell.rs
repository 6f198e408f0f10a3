//! The cells of a row, as values of the document.

use roce_model::{Cell, Fact};
use serde::{Serialize, Serializer};

/// A cell: epoch times and identifiers as text, since they are beyond what a browser's numbers hold.
pub(super) struct Value<'a>(pub(super) Cell<'a>);

impl Serialize for Value<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Cell::Null => serializer.serialize_none(),
            Cell::U32(value) => serializer.serialize_u32(value),
            Cell::U64(value) => serializer.serialize_u64(value),
            Cell::F64(value) => serializer.serialize_f64(value),
            Cell::Bool(value) => serializer.serialize_bool(value),
            Cell::Text(value) => serializer.serialize_str(value),
            Cell::Time(value) => serializer.collect_str(&value.0),
            Cell::Id(value) => serializer.collect_str(&value),
            Cell::Address(value) => serializer.collect_str(&value),
            Cell::Names(names) => serializer.collect_seq(&names.0),
            Cell::Evidence(evidence) => {
                serializer.collect_map(evidence.0.iter().map(|(name, fact)| (name, StatedFact(fact))))
            }
        }
    }
}

/// A fact of a finding's evidence.
struct StatedFact<'a>(&'a Fact);

impl Serialize for StatedFact<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Fact::Count(value) => serializer.serialize_u64(*value),
            Fact::Number(value) => serializer.serialize_f64(*value),
            Fact::Text(value) => serializer.serialize_str(value),
        }
    }
}
