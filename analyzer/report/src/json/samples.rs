//! Samples in the document: all of them while they are few, none of them where the dataset alone can hold them.

use roce_model::{Cell, Columns, Data, FlowId, SampleColumns, Time};
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};

use super::cell::Value;

/// Rows of samples that a document has at most: a third of a megabyte of text.
const MAX_ROWS: usize = 1_000;

/// Samples as they come.
#[derive(Debug, Default)]
pub(super) struct FewSamples {
    rows: SampleColumns,
    /// Samples that there were.
    seen: u64,
}

impl FewSamples {
    pub(super) fn add(&mut self, rows: &SampleColumns) {
        self.seen += rows.len() as u64;
        if self.seen <= MAX_ROWS as u64 {
            self.rows.append(&mut rows.clone());
        } else {
            self.rows.clear();
        }
    }

    /// The list for the document; `None` where there were no samples, or too many.
    pub(super) fn list(&self) -> Option<SampleList<'_>> {
        (!self.rows.is_empty()).then_some(SampleList(&self.rows))
    }
}

/// Rows as JSON lines: one object for each, whose keys are the table's columns.
pub fn sample_lines(rows: &SampleColumns) -> String {
    let mut text = String::new();
    for row in 0..rows.len() {
        // Columns are numbers and text: such an object has no error.
        if let Ok(line) = serde_json::to_string(&SampleObject(rows, row)) {
            text.push_str(&line);
            text.push('\n');
        }
    }
    text
}

/// Rows as a list of objects.
pub(super) struct SampleList<'a>(&'a SampleColumns);

impl Serialize for SampleList<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.0.len()))?;
        for row in 0..self.0.len() {
            list.serialize_element(&SampleObject(self.0, row))?;
        }
        list.end()
    }
}

/// One row as an object whose keys are the columns.
struct SampleObject<'a>(&'a SampleColumns, usize);

impl Serialize for SampleObject<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        let mut written = Ok(());
        self.0.for_each(|column, data| {
            if written.is_ok() {
                written = map.serialize_entry(column.name, &Value(cell(data, self.1)));
            }
        });
        written?;
        map.end()
    }
}

/// The value of a row in a column.
fn cell(data: Data<'_>, row: usize) -> Cell<'_> {
    let found = match data {
        Data::U32(values) => values.at(row).map(|value| Cell::U32(*value)),
        Data::U64(values) => values.at(row).map(|value| Cell::U64(*value)),
        Data::F64(values) => values.at(row).map(|value| Cell::F64(*value)),
        Data::Bool(values) => values.at(row).map(|value| Cell::Bool(*value)),
        Data::Text(values) => values.at(row).map(|value| Cell::Text(value)),
        Data::Time(values) => values.at(row).map(|value| Cell::Time(Time(*value))),
        Data::Id(values) => values.at(row).map(|value| Cell::Id(FlowId(*value))),
        Data::Address(values) => values.at(row).map(|value| Cell::Address(*value)),
    };
    found.unwrap_or(Cell::Null)
}

#[cfg(test)]
mod tests {
    use roce_model::{RunSummary, SampleRow, Sink};

    use super::*;
    use crate::{JsonFlows, JsonReport};

    fn document(rows: usize, flows: JsonFlows) -> serde_json::Value {
        let mut columns = SampleColumns::default();
        let row = SampleRow {
            time: Time(1_795_000_000_000_000_001),
            counter: "port_cnp_sent",
            value: 7.5,
            ..SampleRow::default()
        };
        columns.push(&row);
        let mut report = JsonReport::new(Vec::new(), flows);
        (0..rows).for_each(|_| report.samples(&columns).unwrap());
        report.finish(&RunSummary::default()).unwrap();
        serde_json::from_slice(&report.into_inner()).unwrap()
    }

    #[test]
    fn few_samples_are_in_the_document() {
        for flows in [JsonFlows::default(), JsonFlows::All] {
            let found = document(MAX_ROWS, flows);
            let list = found["samples"].as_array().unwrap();
            assert_eq!(list.len(), MAX_ROWS);
            let first = &list[0];
            assert_eq!(first["time"], "1795000000000000001");
            assert_eq!(
                (&first["counter"], &first["value"]),
                (&"port_cnp_sent".into(), &7.5.into())
            );
            assert!(first["change"].is_null() && first["priority"].is_null());
            assert_eq!(
                first.as_object().unwrap().len(),
                SampleColumns::TABLE.columns.len()
            );
        }
    }

    #[test]
    fn no_samples_and_too_many_are_left_out() {
        for rows in [0, MAX_ROWS + 1] {
            assert!(document(rows, JsonFlows::default()).get("samples").is_none());
        }
    }
}
