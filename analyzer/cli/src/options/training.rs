//! The log of a training script: the duration of each step, by line. The analysis finds steps in
//! packets.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use anyhow::{Context, bail};
use regex::{Captures, Match, Regex};
use roce_jobs::prefix::{after_prefixes, without_docker};
use roce_model::Span;
use roce_verdict::LoggedStep;

/// A number and its unit, in the words of the built-in forms.
const VALUE: &str = r"(?<value>\d+(?:\.\d+)?)\s*(?<unit>ms|milliseconds|us|s|sec|secs|seconds)?\b";
/// The number of a step: `Iteration 10`, `iter 10:`, ` iteration      100/  500000 |`, `Step: 10`, `step=10`, `global_step 10`, `[step 10]`.
///
/// Keys of JSON and of Python's dictionaries have quotation marks.
const STEP: &str = r#"(?i)(?:\b|_)(?:iterations?|iter|steps?|it)\b["']?\s*[:=#\[]?\s*(?<step>\d+)\b"#;
/// The all-reduce of a step: `AllReduce: 45.2ms`, `all_reduce_time=0.045s`, `grad sync (ms): 45.2`, `bwd_allreduce: 45.2`, `comm time 45 ms`.
const ALLREDUCE: &str = r#"(?i)(?:\b|_)(?:all[-_ ]?reduce|(?:grads?|gradients?)[-_ ](?:sync|all[-_]?reduce)|comm(?:unication)?)(?:_microstep)?(?:[-_ ]?time)?(?:[-_ ]*\(?(?<before>ms|us|s)\)?)?["']?\s*[:=|]?\s*"#;
/// The whole step: `Total: 156.3ms`, `elapsed time per iteration (ms): 1234.5`, `time 156.30ms`, `step time 0.5s`, `dt: 330.1ms`.
const TOTAL: &str = r#"(?i)\b(?:total|(?:step|iter|iteration|batch)[-_ ]time|elapsed[ _]time[ _]per[ _]iteration|time per (?:step|iteration)|time|dt)(?:[-_ ]*\(?(?<before>ms|us|s)\)?)?["']?\s*[:=|]?\s*"#;
/// A time right behind the number of the step: `Step 1: 20.0 ms`, `step 1/1000 took 0.0200 s`, `step 3 finished in 45 ms`.
const BEHIND: &str =
    r"(?i)^(?:\s*/\s*\d+)?\s*[\]):,|-]*\s*(?:(?:took|done|finished|completed)(?: in)?|in|=)?\s*";
/// A key whose words have the second as its unit: MaxText's `completed step: 1, seconds: 0.020`, NeMo's `train_step_timing in s: 0.020`.
const KEYED: &str = r#"(?i)\b(?:train_step_timing in s|seconds)["']?\s*[:=]\s*(?<value>\d+\.\d+)"#;
/// A key of the step's time without a unit, which counts seconds: `iteration_time=0.0200`, `'step_time': 0.02`. Only fractions below
/// [`MAX_UNITLESS`] are taken: larger ones may be milliseconds.
const UNITLESS: &str = r#"(?i)\b(?:step|iter|iteration|batch)_time["']?\s*[:=]\s*(?<value>\d+\.\d+)"#;
/// Largest number of seconds without a unit.
const MAX_UNITLESS: f64 = 10.0;
/// Programs whose times have no unit, because it is always the second: PyTorch's examples (`Epoch: [0][ 10/5005]  Time  0.345 ( 0.512)`) and
/// MMEngine (`Epoch(train) [1][10/100] ... time: 0.2345`). timm names it (`Train: 0 [  50/1251 (  4%)] ... Time: 0.345s`), and fairseq counts updates in a
/// second (`ups=2.9, ... num_updates=50`). The bars of tqdm, which Hugging Face's Trainer and Lightning show, have steps in a
/// second or seconds for a step (`100/1000 [00:30<04:30, 3.33it/s, loss=2.3]`).
const SECONDS: &str = r#"\[\d+\]\[\s*(?<step>\d+)/\s*\d+\].*?\b[Tt]ime:?\s+(?<seconds>\d+\.\d+)|(?<done>\d+)/\d+ \[[\d:]+<[\d:]+,\s*(?:(?<rate>\d+(?:\.\d+)?)it/s|(?<each>\d+(?:\.\d+)?)s/it)|\bTrain: \d+ \[\s*(?<batch>\d+)/\s*\d+[^\]]*\].*?\bTime: (?<took>\d+\.\d+)s|\bups["']?[:=]\s*"?(?<ups>\d+(?:\.\d+)?)\b.*?\bnum_updates["']?[:=]\s*"?(?<updates>\d+)"#;
/// A line with times of the last step: DeepSpeed's `time (ms) | fwd: 12.3 | bwd_allreduce: 45.2`, and Megatron's timers below
/// `(min, max) time across ranks (ms):`, such as `all-grads-sync ...: (45.10, 45.20)`, of which the longest counts.
const LATER: &str = r"time \(ms\) \|.*?\b(?:bwd_)?allreduce(?:_microstep)?: (?<first>\d+(?:\.\d+)?)|^\s*(?:all-grads-sync|grads-all-reduce|backward-params-all-reduce)\s*\.*:\s*\(\s*[\d.]+,\s*(?<second>\d+(?:\.\d+)?)\)";

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

/// Lines of steps: the built-in forms, or a regular expression.
#[derive(Clone, Debug)]
pub(crate) enum Pattern {
    /// Forms of scripts that are known.
    BuiltIn(Box<BuiltInForms>),
    /// A regular expression with the named groups `step`, and `allreduce_ms` or `total_ms` or both (`_s` and `_us` for other units).
    Given(Box<GivenPattern>),
}

/// A regular expression, and its groups of times with their units in ns.
#[derive(Clone, Debug)]
pub(crate) struct GivenPattern {
    regex: Regex,
    allreduce: Option<(String, f64)>,
    total: Option<(String, f64)>,
}

/// Expressions of the built-in forms.
#[derive(Clone, Debug)]
pub(crate) struct BuiltInForms {
    step: Regex,
    allreduce: Regex,
    total: Regex,
    later: Regex,
    seconds: Regex,
    behind: Regex,
    keyed: Regex,
    unitless: Regex,
}

impl Pattern {
    /// Compiles an expression.
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
        Ok(Self::Given(Box::new(GivenPattern {
            regex,
            allreduce,
            total,
        })))
    }

    /// The forms that need no pattern.
    pub(crate) fn built_in() -> Result<Self, String> {
        let compiled = |text: &str| Regex::new(text).map_err(|error| error.to_string());
        Ok(Self::BuiltIn(Box::new(BuiltInForms {
            step: compiled(STEP)?,
            allreduce: compiled(&format!("{ALLREDUCE}{VALUE}"))?,
            total: compiled(&format!("{TOTAL}{VALUE}"))?,
            later: compiled(LATER)?,
            seconds: compiled(SECONDS)?,
            behind: compiled(&format!("{BEHIND}{VALUE}"))?,
            keyed: compiled(KEYED)?,
            unitless: compiled(UNITLESS)?,
        })))
    }

    /// The pattern as given; of the built-in forms that of the step.
    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::BuiltIn(forms) => forms.step.as_str(),
            Self::Given(given) => given.regex.as_str(),
        }
    }

    fn read(&self, line: &str) -> Option<LoggedTimes> {
        let logged = match self {
            Self::BuiltIn(forms) => forms.read(after_prefixes(line))?,
            Self::Given(given) => {
                let found = given.regex.captures(line)?;
                LoggedTimes {
                    step: found.name("step")?.as_str().parse().ok()?,
                    allreduce: time(&found, given.allreduce.as_ref()),
                    total: time(&found, given.total.as_ref()),
                }
            }
        };
        (logged.allreduce.is_some() || logged.total.is_some()).then_some(logged)
    }

    /// The number of a step in a line without a time.
    fn number(&self, line: &str) -> Option<u64> {
        match self {
            Self::BuiltIn(forms) => forms.number(after_prefixes(line)),
            Self::Given(_) => None,
        }
    }

    /// The all-reduce of the step before, in a line of its own; true: the line is one of each step (DeepSpeed's, but not of its parts).
    fn later(&self, line: &str) -> Option<(Span, bool)> {
        let Self::BuiltIn(forms) = self else { return None };
        let found = forms.later.captures(after_prefixes(line))?;
        let is_step = found.name("first").is_some() && !line.contains("_microstep");
        let value = found.name("first").or_else(|| found.name("second"))?;
        Some((span(value.as_str().parse().ok()?, 1e6)?, is_step))
    }
}

impl BuiltInForms {
    /// The number of a step in a line that may have no time.
    fn number(&self, line: &str) -> Option<u64> {
        self.numbered(line)?.as_str().parse().ok()
    }

    /// The number of a step. `step: 0.30` is a time.
    fn numbered<'a>(&self, line: &'a str) -> Option<Match<'a>> {
        let mut found = self
            .step
            .captures_iter(line)
            .filter_map(|found| found.name("step"));
        found.find(|number| {
            let mut behind = line.get(number.end()..).unwrap_or_default().chars();
            let is_fraction =
                behind.next() == Some('.') && behind.next().is_some_and(|next| next.is_ascii_digit());
            !is_fraction
        })
    }

    /// A line of a program whose times have no unit.
    fn in_seconds(&self, line: &str) -> Option<LoggedTimes> {
        let found = self.seconds.captures(line)?;
        let value = |name: &str| found.name(name)?.as_str().parse::<f64>().ok();
        let rate = ["rate", "ups"].into_iter().find_map(value);
        let seconds = ["seconds", "each", "took"].into_iter().find_map(value);
        let seconds = seconds.or_else(|| rate.filter(|rate| *rate > 0.0).map(f64::recip))?;
        let mut names = ["step", "done", "batch", "updates"].into_iter();
        let step = names.find_map(|name| found.name(name))?;
        Some(LoggedTimes {
            step: step.as_str().parse().ok()?,
            allreduce: None,
            total: span(seconds, 1e9),
        })
    }

    fn read(&self, line: &str) -> Option<LoggedTimes> {
        if let Some(found) = self.in_seconds(line) {
            return Some(found);
        }
        let step = self.numbered(line)?;
        // Words before the number are of a prefix.
        let rest = line.get(step.end()..)?;
        let mut timed = self.allreduce.captures_iter(rest);
        let allreduce = timed.find_map(|found| Some((with_unit(&found)?, found.get(0)?.range())));
        // The word "time" of the all-reduce is not that of the step.
        let others = allreduce.as_ref().map_or_else(
            || rest.to_owned(),
            |(_, place)| format!("{} | {}", &rest[..place.start], &rest[place.end..]),
        );
        let mut timed = self.total.captures_iter(&others);
        let total = timed
            .find_map(|found| with_unit(&found))
            .or_else(|| with_unit(&self.behind.captures(rest)?));
        let is_known = total.is_some() || allreduce.is_some();
        let in_seconds = || {
            let value = |form: &Regex| form.captures(line)?.name("value")?.as_str().parse::<f64>().ok();
            value(&self.keyed)
                .or_else(|| value(&self.unitless).filter(|seconds| *seconds <= MAX_UNITLESS))
                .and_then(|seconds| span(seconds, 1e9))
        };
        Some(LoggedTimes {
            step: step.as_str().parse().ok()?,
            allreduce: allreduce.map(|(time, _)| time),
            total: total.or_else(|| if is_known { None } else { in_seconds() }),
        })
    }
}

/// A value with its unit, which stands behind it, or in parentheses before it. Without one it may be anything.
fn with_unit(found: &Captures<'_>) -> Option<Span> {
    let unit = found
        .name("unit")
        .or_else(|| found.name("before"))?
        .as_str()
        .to_ascii_lowercase();
    let scale = match unit.as_str() {
        "us" => 1e3,
        "ms" | "milliseconds" => 1e6,
        _ => 1e9,
    };
    span(found.name("value")?.as_str().parse().ok()?, scale)
}

/// A time in a named group, which counts units of `scale` ns.
fn time(found: &Captures<'_>, group: Option<&(String, f64)>) -> Option<Span> {
    let (name, scale) = group?;
    span(found.name(name)?.as_str().parse().ok()?, *scale)
}

/// A time of so many units of `scale` ns.
fn span(value: f64, scale: f64) -> Option<Span> {
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
    let (mut line, mut lines, mut steps) = (Vec::new(), 0_u64, Vec::<LoggedTimes>::new());
    let mut bytes = 0;
    // The step of a line without a time: DeepSpeed has its times in the next line.
    let mut begun = None;
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
        let text = String::from_utf8_lossy(&line);
        let text = without_docker(&text);
        // A bar overwrites its line.
        for text in text.split('\r') {
            let logged = pattern.read(text).or_else(|| {
                let (time, is_step) = pattern.later(text)?;
                let next = steps.last().map_or(0, |last| last.step.saturating_add(1));
                if let Some(last) = steps
                    .last_mut()
                    .filter(|last| begun.is_none() && last.allreduce.is_none())
                {
                    last.allreduce = Some(time);
                    return None;
                }
                // DeepSpeed does not number its lines: each is the next step.
                Some(LoggedTimes {
                    step: begun.take().or(is_step.then_some(next))?,
                    allreduce: Some(time),
                    total: None,
                })
            });
            let Some(logged) = logged else {
                begun = pattern.number(text).or(begun);
                continue;
            };
            begun = None;
            // The bar shows a step more than once.
            if steps.last().is_some_and(|last| {
                last.step == logged.step && last.total.is_some() && logged.allreduce.is_none()
            }) {
                continue;
            }
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
mod tests;
