//! Errors, warnings and notes on standard error. Names from outside are in them, so each is cleaned before it gets its style.

use std::io::Write;

use anyhow::anyhow;
use roce_model::SinkError;
use roce_model::text::{clean, clean_lines};

/// An error on standard error: what failed, and why.
pub(crate) fn report(error: &anyhow::Error) {
    self::error(&format!("{error:#}"));
}

/// The text of an error on standard error.
pub(crate) fn error(text: &str) {
    let style = anstyle::Style::new()
        .bold()
        .fg_color(Some(anstyle::AnsiColor::Red.into()));
    aside(&format!("{style}error{style:#}: {}", clean_lines(text)));
}

/// A line on standard error; while there is a screen, after that.
fn aside(text: &str) {
    #[cfg(feature = "live")]
    if crate::output::screen::hold(text) {
        return;
    }
    // A message for which standard error cannot be written is dropped.
    let _ = writeln!(anstream::stderr(), "{text}");
}

/// A warning about an input on standard error.
pub(crate) fn warn(input: &str, text: &str) {
    let style = anstyle::Style::new()
        .bold()
        .fg_color(Some(anstyle::AnsiColor::Yellow.into()));
    aside(&format!(
        "{style}warning{style:#}: {}: {}",
        clean(input),
        clean_lines(text)
    ));
}

/// Reasons for which an option such as `--fail-on` made a run fail, on standard error.
pub(crate) fn failed(option: &str, reasons: &str) {
    let style = anstyle::Style::new()
        .bold()
        .fg_color(Some(anstyle::AnsiColor::Red.into()));
    aside(&format!("{style}failed{style:#}: {option}: {reasons}"));
}

/// The paths of results, on standard error.
pub(crate) fn wrote(paths: &str) {
    let style = anstyle::Style::new().bold();
    aside(&format!("{style}wrote{style:#}: {paths}"));
}

/// Something to know of a run, on standard error.
#[cfg(feature = "probe")]
pub(crate) fn note(input: &str, text: &str) {
    let style = anstyle::Style::new().bold();
    aside(&format!(
        "{style}note{style:#}: {}: {}",
        clean(input),
        clean_lines(text)
    ));
}

/// The error of a sink, as the command reports it.
pub(crate) fn sink_error(error: SinkError) -> anyhow::Error {
    anyhow!(error)
}
