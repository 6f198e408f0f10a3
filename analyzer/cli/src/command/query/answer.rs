//! A whole answer of DuckDB, for what needs all of it at once.

use anyhow::bail;
use serde_json::Value;

use super::duckdb::Rows;

/// Most rows of an answer.
const MAX_ROWS: usize = 1_000_000;

/// A column of an answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct AnswerColumn {
    /// Its name.
    pub(crate) name: String,
    /// True if its values are numbers.
    pub(crate) is_number: bool,
}

/// A value of an answer.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Cell(pub(crate) Value);

impl Cell {
    /// Its text for people: `-` if it is absent.
    pub(crate) fn shown(&self) -> String {
        match &self.0 {
            Value::Null => "-".to_owned(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        }
    }
}

/// The answer to a question.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Answer {
    /// Its columns. An answer without rows may have none.
    pub(crate) columns: Vec<AnswerColumn>,
    /// Its rows, a cell for each column.
    pub(crate) rows: Vec<Vec<Cell>>,
}

impl Answer {
    /// Reads all rows.
    ///
    /// # Errors
    /// If DuckDB refuses the question, or there are more rows than a million.
    pub(super) fn whole(mut found: Rows) -> anyhow::Result<Self> {
        let mut rows: Vec<Vec<Cell>> = Vec::new();
        while let Some(row) = found.next()? {
            if rows.len() >= MAX_ROWS {
                bail!("the answer has more than {MAX_ROWS} rows\nhint: end the SELECT with LIMIT");
            }
            rows.push(row.into_iter().map(Cell).collect());
        }
        let columns = found.columns().iter().enumerate().map(|(place, name)| {
            let values = rows.iter().filter_map(|row| row.get(place));
            AnswerColumn {
                name: name.clone(),
                is_number: are_numbers(values.map(|cell| &cell.0)),
            }
        });
        Ok(Self {
            columns: columns.collect(),
            rows,
        })
    }

    /// The place of a column.
    pub(crate) fn place(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }
}

/// True if there are numbers among the values, and nothing else but absent ones.
pub(super) fn are_numbers<'a>(values: impl Iterator<Item = &'a Value>) -> bool {
    let mut has_number = false;
    for value in values {
        match value {
            Value::Number(_) => has_number = true,
            Value::Null => {}
            _ => return false,
        }
    }
    has_number
}
