//! Forms that one reading of GPUs and a series of them share.

use std::borrow::Cow;

use roce_model::Counter;
use serde_json::{Map, Value};

/// Version of the JSON document's form.
pub(super) const SCHEMA_VERSION: u32 = 1;
/// A byte in GiB.
pub(super) const GIB: f64 = 1.0 / 1_073_741_824.0;

/// The labels of a sample by their names.
pub(super) fn labels(counter: Counter, details: &[Cow<'static, str>]) -> Map<String, Value> {
    let pairs = counter.labels().iter().zip(details);
    pairs
        .map(|(name, value)| ((*name).to_owned(), value.as_ref().into()))
        .collect()
}
