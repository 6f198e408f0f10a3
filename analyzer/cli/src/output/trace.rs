//! The trace of a run on standard output.

use std::io::{BufWriter, IsTerminal};

use anyhow::bail;
use roce_model::Sink;
use roce_report::{TraceForm, TraceReport};

/// The sink that writes a trace to standard output.
///
/// # Errors
/// Standard output is a terminal, and the trace is binary.
pub(crate) fn trace(form: TraceForm) -> anyhow::Result<Box<dyn Sink>> {
    let out = std::io::stdout();
    if form == TraceForm::Perfetto && out.is_terminal() {
        bail!(
            "a Perfetto trace is binary, and standard output is a terminal\nhint: add `> trace.pftrace`, and open that file in https://ui.perfetto.dev"
        );
    }
    Ok(Box::new(TraceReport::new(BufWriter::new(out), form)))
}
