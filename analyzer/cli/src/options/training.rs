//! The log of a training script: the duration of each step, by line. The analysis finds steps in
//! packets.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use anyhow::{Context, bail};
use regex::{Captures, Regex};
use roce_model::Span;
use roce_verdict::LoggedStep;

/// `Iteration 10 | Loss: 2.31 | AllReduce: 45.2ms | Total: 156.3ms`.
const BUILT_IN: &str = r"(?i)\biteration:?\s+(?<step>\d+)\b.*?\ball-?reduce:\s*(?<allreduce_ms>\d+(?:\.\d+)?)\s*ms(?:.*?\btotal:\s*(?<total_ms>\d+(?:\.\d+)?)\s*ms)?";

/// Longer lines are read up to this length.
const LINE: u64 = 64 * 1024;
/// Maximum size of a log, whatever length the system states: a million steps of a thousand bytes each.
const MAX_LOG_BYTES: u64 = 1 << 30;
/// More steps than this are not taken.
const MAX_STEPS: usize = 1_000_000;

/// Values of one line of the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LoggedTimes {
    /// The number that the script gave the step.
    pub(crate) step: u64,
    /// Duration of the all-reduce.
    pub(crate) allreduce: Option<Span>,
    /// Duration of the whole step.
    pub(crate) total: Option<Span>,
}

impl From<LoggedTimes> for LoggedStep {
    fn from(logged: LoggedTimes) -> Self {
        Self {
            step: logged.step,
            begin: None,
            allreduce_ns: logged.allreduce.map(|time| time.0),
            total_ns: logged.total.map(|time| time.0),
        }
    }
}

/// Pattern of a line: a regular expression with the named groups `step`, and `allreduce_ms` or
/// `total_ms` or both (`_s` and `_us` for other units).
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    regex: Regex,
    allreduce: Option<(String, f64)>,
    total: Option<(String, f64)>,
}

impl Pattern {
    /// Compiles it.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let regex = Regex::new(text).map_err(|error| error.to_string())?;
        let groups: Vec<&str> = regex.capture_names().flatten().collect();
        let time = |what: &str| {
            [("s", 1e9), ("ms", 1e6), ("us", 1e3)]
                .into_iter()
                .map(|(unit, scale)| (format!("{what}_{unit}"), scale))
                .find(|(name, _)| groups.contains(&name.as_str()))
        };
        let (allreduce, total) = (time("allreduce"), time("total"));
        if !groups.contains(&"step") || (allreduce.is_none() && total.is_none()) {
            return Err(
                "it needs the named groups (?<step>...) and (?<allreduce_ms>...) or (?<total_ms>...), or \
                 these with _us or _s"
                    .to_owned(),
            );
        }
        Ok(Self {
            regex,
            allreduce,
            total,
        })
    }

    /// The form that needs no pattern.
    pub(crate) fn built_in() -> Result<Self, String> {
        Self::parse(BUILT_IN)
    }

    /// The pattern as given.
    pub(crate) fn as_str(&self) -> &str {
        self.regex.as_str()
    }

    fn read(&self, line: &str) -> Option<LoggedTimes> {
        let found = self.regex.captures(line)?;
        let logged = LoggedTimes {
            step: found.name("step")?.as_str().parse().ok()?,
            allreduce: time(&found, self.allreduce.as_ref()),
            total: time(&found, self.total.as_ref()),
        };
        (logged.allreduce.is_some() || logged.total.is_some()).then_some(logged)
    }
}

/// A time in a named group, which counts units of `scale` ns.
fn time(found: &Captures<'_>, group: Option<&(String, f64)>) -> Option<Span> {
    let (name, scale) = group?;
    let value: f64 = found.name(name)?.as_str().parse().ok()?;
    let ns = (value * scale).round();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 0 and 1e18"
    )]
    (0.0..=1e18).contains(&ns).then_some(Span(ns as u64))
}

/// The error of a file that an option names and that cannot be read. `what` is the file's role.
pub(crate) fn unreadable(error: roce_files::Error, what: &str) -> anyhow::Error {
    match error {
        roce_files::Error::Io { path, source, .. } => {
            anyhow::Error::new(source).context(format!("{}: {what} cannot be read", path.display()))
        }
        error => anyhow::Error::new(error),
    }
}

/// Reads the log at `path`, lines in their order.
///
/// # Errors
/// When it cannot be read, or no line of it is of a step.
pub(crate) fn read(path: &Path, pattern: &Pattern) -> anyhow::Result<Vec<LoggedTimes>> {
    let file = roce_files::open_regular(path).map_err(|error| unreadable(error, "the training log"))?;
    steps(path, BufReader::new(file), pattern)
}

/// Steps of the log that `reader` gives; `path` is its name in errors.
///
/// # Errors
/// As [`read`].
pub(crate) fn steps(
    path: &Path,
    mut reader: impl BufRead,
    pattern: &Pattern,
) -> anyhow::Result<Vec<LoggedTimes>> {
    let named = || format!("{}: the training log cannot be read", path.display());
    let (mut line, mut lines, mut steps) = (Vec::new(), 0_u64, Vec::new());
    let mut bytes = 0;
    loop {
        line.clear();
        let read = Read::take(&mut reader, LINE)
            .read_until(b'\n', &mut line)
            .with_context(named)?;
        if read == 0 {
            break;
        }
        bytes += read as u64;
        if bytes > MAX_LOG_BYTES {
            bail!(
                "{}: larger than {MAX_LOG_BYTES} bytes: not a training log",
                path.display()
            );
        }
        lines += 1;
        if let Some(logged) = pattern.read(&String::from_utf8_lossy(&line)) {
            if steps.len() == MAX_STEPS {
                bail!("{}: more than {MAX_STEPS} lines of steps", path.display());
            }
            steps.push(logged);
        }
    }
    if steps.is_empty() {
        bail!(
            "{}: none of its {lines} lines has the time of a step; hint: --training-log-pattern with the named \
             groups step and allreduce_ms or total_ms",
            path.display()
        );
    }
    Ok(steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_form() {
        let pattern = Pattern::built_in().unwrap();
        let read = |line| pattern.read(line);
        assert_eq!(
            read("Iteration 10 | Loss: 2.3145 | Compute: 98.1ms | AllReduce: 45.2ms | Total: 156.3ms"),
            Some(LoggedTimes {
                step: 10,
                allreduce: Some(Span(45_200_000)),
                total: Some(Span(156_300_000))
            })
        );
        assert_eq!(
            read("[rank0]: Iteration 11 | AllReduce: 7 ms\n"),
            Some(LoggedTimes {
                step: 11,
                allreduce: Some(Span(7_000_000)),
                total: None
            })
        );
        for other in [
            "",
            "Iteration ten | AllReduce: 1ms",
            "Iteration 10 | AllReduce: soon",
            "Epoch 3",
        ] {
            assert_eq!(read(other), None, "{other}");
        }
    }

    #[test]
    fn patterns_name_their_units() {
        let pattern =
            Pattern::parse(r"step=(?<step>\d+) comm=(?<allreduce_us>\S+) all=(?<total_s>\S+)").unwrap();
        assert_eq!(
            pattern.read("step=3 comm=1500.5 all=0.25"),
            Some(LoggedTimes {
                step: 3,
                allreduce: Some(Span(1_500_500)),
                total: Some(Span(250_000_000))
            })
        );
        // Values that are no numbers, or out of range, are ignored.
        assert_eq!(pattern.read("step=3 comm=inf all=-1"), None);
        assert_eq!(pattern.read("step=99999999999999999999 comm=1 all=1"), None);
    }

    #[test]
    fn patterns_that_say_nothing_are_refused() {
        for wrong in ["(", "(?<step>x)", "(?<total_ms>x)", "(?<step>x)(?<total_h>y)"] {
            assert!(Pattern::parse(wrong).is_err(), "{wrong}");
        }
    }
}
