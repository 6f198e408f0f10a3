//! Rows of the table `samples` as JSON lines: one object with the table's columns in each line, as `run.json` has rows. A file may be
//! compressed.
//!
//! Leaves to the reader's caller what becomes of the rows, and lines that are requests of OTLP.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};

use roce_capture::ExpandedBytes;
use roce_model::{Cell, Column, ColumnType, Columns as _, Counter, SampleColumns, SampleRow, Time};
use serde_json::{Map, Value};

use crate::error::Error;

/// Longest line: a row has 14 values, of which names are the longest.
const MAX_LINE_BYTES: u64 = 16 << 10;

/// First keys of a line that a Collector's file exporter writes: requests of OTLP, one for each signal.
const OTLP_KEYS: [&[u8]; 4] = [
    b"\"resourceMetrics\"",
    b"\"resourceLogs\"",
    b"\"resourceSpans\"",
    b"\"resourceProfiles\"",
];

/// The rows of a file, in its order.
pub(super) struct Lines {
    path: PathBuf,
    /// `None` of an empty file.
    file: Option<BufReader<ExpandedBytes>>,
    /// Number of the last line that was read.
    line: u64,
    /// The last line is cut.
    is_cut: bool,
}

impl Lines {
    /// Opens a file.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(super) fn open(path: &Path) -> Result<Self, Error> {
        let file = match ExpandedBytes::open(path, None) {
            Ok(file) => Some(BufReader::new(file)),
            Err(roce_capture::Error::Empty { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        Ok(Self {
            path: path.to_path_buf(),
            file,
            line: 0,
            is_cut: false,
        })
    }

    /// True if the lines are requests of OTLP.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(super) fn are_otlp(&mut self) -> Result<bool, Error> {
        let Some(file) = &mut self.file else {
            return Ok(false);
        };
        let bytes = file.fill_buf().map_err(Error::io(&self.path, "cannot be read"))?;
        let inside = bytes.trim_ascii_start().strip_prefix(b"{");
        let key = inside.map(<[u8]>::trim_ascii_start).unwrap_or_default();
        Ok(OTLP_KEYS.iter().any(|known| key.starts_with(known)))
    }

    /// The next line that is not blank; `None` at the end of the file.
    ///
    /// # Errors
    /// When the file cannot be read, or a line is longer than `limit` bytes.
    pub(super) fn next_line(&mut self, limit: u64) -> Result<Option<Vec<u8>>, Error> {
        loop {
            let Some(file) = &mut self.file else {
                return Ok(None);
            };
            let mut text = Vec::new();
            self.line += 1;
            let read = file.take(limit + 1).read_until(b'\n', &mut text);
            let count = read.map_err(Error::io(&self.path, "cannot be read"))?;
            if count == 0 {
                return Ok(None);
            }
            if count as u64 > limit {
                return Err(self.wrong(format!("is longer than {limit} bytes")));
            }
            if !text.trim_ascii().is_empty() {
                return Ok(Some(text));
            }
        }
    }

    /// The last line, if it makes no sense and does not end: whoever writes the file has not finished it, so that it is left out.
    pub(super) fn cut(&mut self, text: &[u8]) -> bool {
        self.is_cut |= !text.ends_with(b"\n");
        self.is_cut
    }

    /// A sentence about a line that was left out because it does not end.
    pub(super) fn left_out(&self) -> Option<String> {
        self.is_cut.then(|| {
            format!(
                "line {} is cut, as in a file that is still written: it is left out",
                self.line
            )
        })
    }

    /// The error of the last line.
    pub(super) fn wrong(&self, what: impl Into<String>) -> Error {
        Error::Line {
            path: self.path.clone(),
            line: self.line,
            what: what.into(),
        }
    }

    fn row(&self, text: &[u8]) -> Result<SampleRow, Error> {
        let fields: Map<String, Value> = serde_json::from_slice(text)
            .map_err(|error| self.wrong(format!("is no JSON object: {error}")))?;
        sample_row(&fields).map_err(|what| self.wrong(what))
    }
}

/// The row that a JSON object with the table's columns is.
///
/// # Errors
/// In words: a value is missing or of another kind, or the counter is not known.
pub fn sample_row(fields: &Map<String, Value>) -> Result<SampleRow, String> {
    let row = SampleColumns::row(|column| cell(column, fields.get(column.name)))
        .map_err(|column| format!("has no value of the right kind as \"{}\"", column.name))?;
    if Counter::from_name(row.counter).is_none() {
        return Err(format!("has a counter that is not known, \"{}\"", row.counter));
    }
    Ok(row)
}

impl Iterator for Lines {
    type Item = Result<SampleRow, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let line = self.next_line(MAX_LINE_BYTES).transpose()?;
        let text = match line {
            Ok(text) => text,
            Err(error) => return Some(Err(error)),
        };
        let row = self.row(&text);
        if row.is_err() && self.cut(&text) {
            return None;
        }
        Some(row)
    }
}

/// A value as a cell of a column. Times are numbers, or text of decimal digits.
fn cell<'a>(column: &'static Column, value: Option<&'a Value>) -> Cell<'a> {
    match value {
        None | Some(Value::Null | Value::Array(_) | Value::Object(_)) => Cell::Null,
        Some(Value::Bool(value)) => Cell::Bool(*value),
        Some(Value::String(text)) => Cell::parse(column.kind, text).unwrap_or(Cell::Null),
        Some(Value::Number(number)) => match (number.as_u64(), column.kind) {
            (Some(count), ColumnType::Time) => Cell::Time(Time(count)),
            (Some(count), ColumnType::U32) => u32::try_from(count).map_or(Cell::Null, Cell::U32),
            (Some(count), ColumnType::U64) => Cell::U64(count),
            (_, ColumnType::F64) => number.as_f64().map_or(Cell::Null, Cell::F64),
            _ => Cell::Null,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    fn read(text: &str) -> Vec<Result<SampleRow, Error>> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        Lines::open(file.path()).unwrap().collect()
    }

    const ROW: &str = r#"{"time":"1767225600001000000","source":"switch","node":"leaf1","object":"leaf1:h1","counter":"switch_priority_pfc_received_frames","priority":3,"queue":null,"detail":"port","kind":"cumulative","value":12.0,"change":2.0,"interval_ns":1000000,"unit":"frames","reset":false}"#;

    #[test]
    fn a_line_is_a_row() {
        let rows = read(&format!(
            "{ROW}\n\n{}\n",
            ROW.replace("\"1767225600001000000\"", "7")
        ));
        let [Ok(row), Ok(other)] = rows.as_slice() else {
            panic!("{rows:?}");
        };
        assert_eq!(row.time, Time(1_767_225_600_001_000_000));
        assert_eq!(
            (row.source, &*row.node, &*row.object),
            ("switch", "leaf1", "leaf1:h1")
        );
        assert_eq!(
            (row.priority, row.queue.as_deref(), row.value),
            (Some(3), None, 12.0)
        );
        assert_eq!(
            (row.change, row.interval_ns, row.reset),
            (Some(2.0), Some(1_000_000), false)
        );
        assert_eq!(other.time, Time(7));
    }

    #[test]
    fn what_is_no_row_is_named_with_its_line() {
        let long = format!("{{\"time\":\"{}\"}}", "1".repeat(20_000));
        for (bad, what) in [
            ("[1]", "is no JSON object"),
            ("{\"time\":", "is no JSON object"),
            (&ROW.replace("\"value\":12.0", "\"value\":\"x\""), "\"value\""),
            (&ROW.replace("\"priority\":3", "\"priority\":300"), "\"priority\""),
            (
                &ROW.replace("pfc_received_frames", "nothing"),
                "a counter that is not known",
            ),
            (&long, "longer than"),
        ] {
            let rows = read(&format!("{ROW}\n{bad}\n"));
            let error = rows[1].as_ref().unwrap_err().to_string();
            assert!(error.contains(": line 2 ") && error.contains(what), "{error}");
        }
    }
}
