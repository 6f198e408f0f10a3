//! Requests of OTLP as rows of the table `samples`: one JSON document in each line.

use roce_model::{SampleRow, SampleSeries};
use roce_otlp::{MAX_REQUEST, Translator, read_json};

use super::lines::Lines;
use crate::error::Error;

/// Rows of the requests in a file, in its order.
pub(super) struct OtlpRows {
    lines: Lines,
    translator: Translator,
    series: SampleSeries,
}

impl OtlpRows {
    /// The rows of these lines.
    pub(super) fn new(lines: Lines) -> Self {
        Self {
            lines,
            translator: Translator::new(None),
            series: SampleSeries::default(),
        }
    }

    /// Adds the rows of the next line. False at the end of the file.
    ///
    /// # Errors
    /// The line is no request, or too long.
    pub(super) fn next_rows(&mut self, rows: &mut Vec<SampleRow>) -> Result<bool, Error> {
        let Some(line) = self.lines.next_line(MAX_REQUEST as u64)? else {
            return Ok(false);
        };
        let mut samples = Vec::new();
        read_json(&line, &mut self.translator, &mut samples)
            .map_err(|error| self.lines.wrong(format!("is no request of OTLP: {error}")))?;
        rows.extend(samples.iter().map(|sample| self.series.row(sample, None)));
        Ok(true)
    }

    /// Sentence about points without a row; `None` where all have one.
    pub(super) fn left_out(&self) -> Option<String> {
        self.translator.tally().text()
    }
}
