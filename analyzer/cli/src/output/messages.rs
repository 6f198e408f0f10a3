//! Errors, warnings and notes on standard error. Names from outside are in them, so each is cleaned before it gets its style.

use std::io::Write;
use std::sync::LazyLock;

use anyhow::anyhow;
use roce_model::SinkError;
use roce_model::text::{clean, clean_message};

/// Parts of the command line with line feeds. Paths in messages are made of such parts: of a whole argument, of a folder and a name in it,
/// of the value behind an option's `=`.
static NAMES: LazyLock<Vec<String>> = LazyLock::new(|| {
    let arguments = std::env::args_os().skip(1);
    let names = arguments.flat_map(|argument| {
        let text = argument.to_string_lossy();
        let parts = text.split(['/', '=']).filter(|part| part.contains('\n'));
        parts.map(str::to_owned).collect::<Vec<_>>()
    });
    names.collect()
});

/// `text` without characters that steer a terminal, and without lines that begin in the name of a file.
fn cleaned(text: &str) -> String {
    clean_message(text, &NAMES)
}

/// An error on standard error: what failed, and why.
pub(crate) fn report(error: &anyhow::Error) {
    self::error(&format!("{error:#}"));
}

/// The text of an error on standard error.
pub(crate) fn error(text: &str) {
    let style = anstyle::Style::new()
        .bold()
        .fg_color(Some(anstyle::AnsiColor::Red.into()));
    aside(&format!("{style}error{style:#}: {}", cleaned(text)));
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
        cleaned(text)
    ));
}

/// Reasons for which an option such as `--fail-on` made a run fail, on standard error.
pub(crate) fn failed(option: &str, reasons: &str) {
    let style = anstyle::Style::new()
        .bold()
        .fg_color(Some(anstyle::AnsiColor::Red.into()));
    aside(&format!("{style}failed{style:#}: {option}: {}", cleaned(reasons)));
}

/// The paths of results, on standard error.
pub(crate) fn wrote(paths: &str) {
    let style = anstyle::Style::new().bold();
    aside(&format!("{style}wrote{style:#}: {}", cleaned(paths)));
}

/// Something to know of a run, on standard error.
pub(crate) fn note(input: &str, text: &str) {
    let style = anstyle::Style::new().bold();
    aside(&format!(
        "{style}note{style:#}: {}: {}",
        clean(input),
        cleaned(text)
    ));
}

/// A line on standard error without a heading, for programs that look for it.
#[cfg(feature = "live")]
pub(crate) fn plain(text: &str) {
    aside(&cleaned(text));
}

/// The error of a build that writes no datasets.
#[cfg(not(feature = "parquet"))]
pub(crate) fn no_datasets() -> anyhow::Error {
    anyhow!("this build cannot write datasets\nhint: build it with the feature `parquet`")
}

/// The error of a sink, as the command reports it.
pub(crate) fn sink_error(error: SinkError) -> anyhow::Error {
    anyhow!(error)
}
