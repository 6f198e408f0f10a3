//! Rows of tables as the facts of a slice: each present column under its name.

use roce_model::{Cell, Columns, Evidence};

/// The columns of a row that are present, without times: the slice itself has them.
pub(super) fn facts<C: Columns>(row: &C::Row) -> Evidence {
    let mut facts = Evidence::default();
    C::cells(row, |column, cell| {
        let name = column.name;
        match cell {
            Cell::Null | Cell::Time(_) | Cell::Text("") => {}
            Cell::U32(value) => {
                facts.count(name, value.into());
            }
            Cell::U64(value) => {
                facts.count(name, value);
            }
            Cell::F64(value) => {
                facts.number(name, value);
            }
            Cell::Bool(value) => {
                facts.text(name, if value { "true" } else { "false" });
            }
            Cell::Text(text) => {
                facts.text(name, text);
            }
            Cell::Id(flow) => {
                facts.text(name, flow.to_string());
            }
            Cell::Address(address) => {
                facts.text(name, address.to_string());
            }
            Cell::Names(names) if names.0.is_empty() => {}
            Cell::Names(names) => {
                facts.text(name, names.to_string());
            }
            Cell::Evidence(evidence) => {
                facts.text(name, evidence.to_string());
            }
        }
    });
    facts
}
