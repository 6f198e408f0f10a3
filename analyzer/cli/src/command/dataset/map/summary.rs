//! The summary at the end of a mapping.

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

use roce_model::text::clean;

use super::worker::Outcome;

/// Counts of a mapping.
#[derive(Debug, Default)]
pub(crate) struct Summary {
    /// Captures that were found.
    pub(crate) captures: usize,
    /// Captures that were passed over because the dataset has them.
    pub(crate) present: usize,
    /// Hosts of the captures that were to be analysed.
    pub(crate) hosts: usize,
    analysed: usize,
    failed: usize,
    /// Captures that were read up to an error.
    partial: usize,
    tried_again: usize,
    frames: u64,
    bytes: u64,
    written_bytes: u64,
    /// Sum of the captures' own times.
    work_seconds: f64,
    /// Time of the mapping.
    pub(crate) seconds: f64,
}

impl Summary {
    /// Summary of `captures` captures, none of which was looked at.
    pub(crate) fn new(captures: usize) -> Self {
        Self {
            captures,
            ..Self::default()
        }
    }

    /// Counts a capture.
    pub(crate) fn add(&mut self, outcome: &Outcome) {
        let manifest = &outcome.manifest;
        match (&manifest.error, manifest.frames) {
            (None, _) => self.analysed += 1,
            (Some(_), 0) => self.failed += 1,
            (Some(_), _) => self.partial += 1,
        }
        self.tried_again += usize::from(outcome.tries > 1);
        self.frames = self.frames.saturating_add(manifest.frames);
        self.bytes = self.bytes.saturating_add(manifest.bytes.unwrap_or_default());
        self.written_bytes = self.written_bytes.saturating_add(manifest.written_bytes);
        self.work_seconds += manifest.seconds;
    }

    /// Captures that were to be analysed, and were not looked at.
    const fn left(&self) -> usize {
        self.captures
            .saturating_sub(self.present + self.analysed + self.failed + self.partial)
    }

    /// The summary in words.
    pub(crate) fn text(&self, dataset: &Path) -> String {
        let mut text = String::new();
        let mut line = |name: &str, value: String| {
            // Writing to a string does not fail.
            let _ = writeln!(text, " {name:<12}{value}");
        };
        line("dataset", clean(&dataset.display().to_string()).into_owned());
        line(
            "captures",
            format!("{} found, of {} hosts to do", self.captures, self.hosts),
        );
        line("analysed", self.analysed.to_string());
        let mut count = |name: &str, number: usize, about: &str| {
            if number > 0 {
                line(name, format!("{number}  {about}"));
            }
        };
        count("present", self.present, "in the dataset before (--resume)");
        count(
            "partial",
            self.partial,
            "read up to an error: `error` in the table run",
        );
        count(
            "failed",
            self.failed,
            "no frames: a row with its error in the table run",
        );
        count("left", self.left(), "not looked at: --resume goes on");
        count("tried again", self.tried_again, "ended early at first");
        line("frames", self.frames.to_string());
        line(
            "bytes",
            format!(
                "{} of captures, {} of rows{}",
                self.bytes,
                self.written_bytes,
                share(self.written_bytes, self.bytes)
            ),
        );
        line(
            "time",
            format!("{:.1} s, {:.1} s of analysis", self.seconds, self.work_seconds),
        );
        text
    }

    /// 0 if all are in the dataset without an error, 2 if none is, else 1.
    pub(crate) fn exit_code(&self) -> ExitCode {
        let good = self.present + self.analysed;
        ExitCode::from(match good {
            good if good == self.captures => 0,
            0 if self.partial == 0 => 2,
            _ => 1,
        })
    }
}

/// The share of the captures' bytes that the rows have.
#[expect(clippy::cast_precision_loss, reason = "a share for people")]
fn share(part: u64, whole: u64) -> String {
    if whole == 0 {
        return String::new();
    }
    format!(" ({:.2} %)", part as f64 * 100.0 / whole as f64)
}
