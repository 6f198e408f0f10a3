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
        if let Err(error) = read_json(&line, &mut self.translator, &mut samples) {
            if self.lines.cut(&line) {
                return Ok(false);
            }
            return Err(self.lines.wrong(format!("is no request of OTLP: {error}")));
        }
        rows.extend(samples.iter().map(|sample| self.series.row(sample, None)));
        Ok(true)
    }

    /// Sentence about points without a row and a line that is cut; `None` where there are none.
    pub(super) fn left_out(&self) -> Option<String> {
        let sentences = self
            .translator
            .tally()
            .text()
            .into_iter()
            .chain(self.lines.left_out());
        let sentences: Vec<String> = sentences.collect();
        (!sentences.is_empty()).then(|| sentences.join("; "))
    }
}
