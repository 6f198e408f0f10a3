//! `--merge`: traces of ranks that are read before a run, and joined with its results at the end.

#[cfg(feature = "parquet")]
mod merging;

use anyhow::bail;
use roce_model::RunSummary;
use roce_pipeline::{MAX_TRACES, Trace, TraceFile, Traces};
use roce_verdict::Thresholds;

use crate::output::messages;
#[cfg(feature = "parquet")]
pub(crate) use merging::MergingSink;

/// Reads the traces that options name; `None`: there are none.
///
/// # Errors
/// When one cannot be read, or is no trace.
pub(crate) fn traces(files: &[String], limit: Option<u64>) -> anyhow::Result<Option<Traces>> {
    if files.is_empty() {
        return Ok(None);
    }
    if files.len() > MAX_TRACES {
        bail!(
            "--merge: {} traces; at most {MAX_TRACES} can be merged",
            files.len()
        );
    }
    let mut traces = Vec::with_capacity(files.len());
    for file in files {
        let file = TraceFile::parse(file);
        let trace = Trace::open(&file.path, limit)?;
        if let Some(reason) = &trace.is_cut {
            messages::warn(&trace.file, reason);
        }
        traces.push((trace, file.address));
    }
    Ok(Some(Traces::new(traces)))
}

/// Adds the traces to the summary of a run. False: one could not be merged, and a message says why.
pub(crate) fn conclude(traces: &mut Traces, run: &mut RunSummary, thresholds: &Thresholds) -> bool {
    let failed = traces.conclude(run, thresholds);
    for text in &failed {
        messages::error(text);
    }
    failed.is_empty()
}
