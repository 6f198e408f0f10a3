//! `compare`: two runs become one answer: the differences beyond noise. `judge` and `noise` decide what
//! stands out; `roce-report` shows it.

mod judge;
mod noise;
mod side;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::Args;
use roce_files::{Access, FilePlace};
use roce_model::{Filter, RecordingStart, Span};
use roce_pipeline::span;
use roce_report::compare::{Comparison, html, json};
use roce_report::terminal::comparison;

use crate::command::invocation::{Invocation, Places, Rights, RunCommand};
use crate::command::request::rows;
use crate::options::arguments::{RunOptions, Shape, parse_bin, parse_threads};
use crate::options::dscp::DscpMap;
use crate::options::fail_on::{self, Term};
use crate::options::format::{Format, formats};
use crate::options::given::{GivenOptions, argument};
use crate::options::rate::Rate;
use crate::output::messages;
use crate::output::style::style;
use side::CollectedRun;

/// Compare two runs: what differs by more than noise, overall and between hosts
///
/// A is the run before a change, B the run after it. Each is a capture, a folder that -o wrote, or the folder of a recorded live run.
/// For several captures on one side, or other options, analyse them with -o DIR first and compare the folder.
///
/// The uncertainty of a number comes from its own run: slices of time are resampled in blocks as long as their
/// correlation lasts (stationary bootstrap). The 95 % confidence level holds jointly for all intervals. A difference counts when its
/// interval excludes 0 and it is 5 % or more. It does not prove that the change caused it: run A twice to see what varies by itself.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  roce-analyze compare before.pcap after.pcap
      what changed
  roce-analyze compare before after --format html -o changes.html
      two folders of results, as a page
  roce-analyze compare before after --fail-on 'regression>=5%'
      exit code 1 if something is worse by so much

Regressions are: goodput down; CE share, losses, retransmitted data, RNR NAKs, ACK, message and step times up; new findings \
of warning or worse. A new finding does not count when chance explains its few losses, timeouts, RNR NAKs or stalls (binomial test). CNPs, \
pauses, and packets that were reordered or not captured are shown without a judgement: the better direction depends on the change.\n\nExit codes: 0 done, 1 a regression and --fail-on, 2 an error.")]
pub(crate) struct Compare {
    #[command(flatten)]
    given: GivenOptions,

    /// The run before: a capture, or the folder of a dataset or a recording
    pub(crate) a: PathBuf,

    /// The run after
    pub(crate) b: PathBuf,

    /// Format of the comparison
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = formats(&[Format::Text, Format::Json, Format::Html]))]
    pub(crate) format: Format,

    /// Write the comparison to FILE instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// Replace FILE if it exists
    #[arg(long, requires = "output")]
    pub(crate) overwrite: bool,

    /// Exit with 1 for regression>=PERCENT: a significant one by that much of A, or a new finding of warning or worse
    #[arg(long, value_name = "CONDITION", value_parser = parse_fail_on)]
    pub(crate) fail_on: Option<f64>,

    /// For captures: width of a timeline bin, such as 100us, 1ms [default: that of the other side when it is a dataset, else 1ms]
    #[arg(long, value_name = "DURATION", value_parser = parse_bin)]
    pub(crate) bin: Option<Span>,

    /// For captures: analyse only packets that match EXPR
    #[arg(long, value_name = "EXPR", value_parser = Filter::parse)]
    pub(crate) flow: Option<Filter>,

    /// For captures: speed of the links, such as 25G, for pauses
    #[arg(long, value_name = "RATE", value_parser = Rate::parse)]
    pub(crate) link_rate: Option<Rate>,

    /// For captures: priority of each DSCP, such as 26=3,48=6
    #[arg(long, value_name = "DSCP=PRIORITY,...", value_parser = DscpMap::parse)]
    pub(crate) dscp_map: Option<DscpMap>,

    /// For captures: read defaults, and thresholds of the findings, from a TOML file
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Threads of the analysis
    #[arg(long, value_name = "N", value_parser = parse_threads)]
    pub(crate) threads: Option<u32>,
}

impl Compare {
    /// An option that was given and shapes only what is analysed here.
    fn for_captures(&self) -> Option<&'static str> {
        let given = [
            ("--bin", self.bin.is_some()),
            ("--flow", self.flow.is_some()),
            ("--link-rate", self.link_rate.is_some()),
            ("--dscp-map", self.dscp_map.is_some()),
            ("--config", self.config.is_some()),
        ];
        given
            .into_iter()
            .find(|(_, given)| *given)
            .map(|(option, _)| option)
    }
}

/// The share of a regression that fails the run.
fn parse_fail_on(text: &str) -> Result<f64, String> {
    let mut terms = fail_on::terms(text);
    match (terms.next(), terms.next()) {
        (
            Some(Term::Condition {
                quantity: "regression",
                comparison: ">=",
                bound,
            }),
            None,
        ) => parse_percent(bound),
        _ => Err("expected regression>=PERCENT, such as regression>=5%".to_owned()),
    }
}

/// A percentage as a share.
fn parse_percent(text: &str) -> Result<f64, String> {
    let number = text.trim().trim_end_matches('%').trim().parse::<f64>();
    match number {
        Ok(percent) if percent.is_finite() && percent >= 0.0 => Ok(percent / 100.0),
        _ => Err("expected a percentage such as 5".to_owned()),
    }
}

impl RunCommand for Compare {
    const RIGHTS: Rights = Rights::Files;

    fn places(&mut self) -> Places<'_> {
        Places {
            captures: vec![&mut self.a, &mut self.b],
            results: None,
        }
    }

    fn run(&self, _: &Invocation) -> anyhow::Result<ExitCode> {
        compare(self)
    }
}

/// Compares, and says what came out.
fn compare(arguments: &Compare) -> anyhow::Result<ExitCode> {
    let paths = [&arguments.a, &arguments.b];
    if paths.iter().all(|path| path.as_path() == Path::new("-")) {
        bail!("standard input can be one side only");
    }
    // A name that is taken is refused before anything is read.
    let place = arguments.output.as_deref().map(FilePlace::named).transpose()?;
    if let Some(place) = &place {
        place.refuse_taken(arguments.overwrite)?;
    }
    let mut sides = [None, None];
    // Datasets first: captures take their bins.
    for (side, path) in sides.iter_mut().zip(paths) {
        *side = stored(path)?;
    }
    if sides.iter().all(Option::is_some)
        && let Some(option) = arguments.for_captures()
    {
        bail!(
            "{option} is for captures, and both sides are datasets\nhint: analyse their captures again with -o DIR and {option}"
        );
    }
    let recorded = sides
        .iter()
        .flatten()
        .next()
        .map(|side: &CollectedRun| side.widths().0);
    // Both sides have the same.
    let usual = arguments.config.is_none().then_some(span::WIDEST);
    let bin = arguments.bin.or(recorded).or(usual);
    let [a, b] = sides;
    let [a, b] = [(a, paths[0]), (b, paths[1])].map(|(side, path)| match side {
        Some(side) => Ok(side),
        None => analysed(path, bin, arguments),
    });
    let (a, b) = (a?, b?);
    let comparison = judge::compare(paths.map(|path| path.display().to_string()), &a, &b);
    write(arguments.format, place.as_ref(), arguments.overwrite, &comparison)?;
    let complete = [&a, &b]
        .iter()
        .all(|side| side.run.inputs.iter().all(|input| input.error.is_none()));
    let regressions = arguments
        .fail_on
        .map_or_else(Vec::new, |least| comparison.regressions(least));
    let regression = !regressions.is_empty();
    if regression {
        messages::failed("--fail-on", &regressions.join(", "));
    }
    Ok(if !complete {
        ExitCode::from(2)
    } else if regression {
        ExitCode::from(1)
    } else {
        ExitCode::SUCCESS
    })
}

/// The results that a folder holds; `None` when it is no such folder.
#[cfg(feature = "parquet")]
fn stored(path: &Path) -> anyhow::Result<Option<CollectedRun>> {
    if !path.is_dir() || is_recording(path) && !path.join(roce_pipeline::folder::DOCUMENT).is_file() {
        return Ok(None);
    }
    let mut side = CollectedRun::default();
    roce_pipeline::stored::replay(path, &mut side).map_err(messages::sink_error)?;
    Ok(Some(side))
}

#[cfg(not(feature = "parquet"))]
fn stored(path: &Path) -> anyhow::Result<Option<CollectedRun>> {
    if path.is_dir() && !is_recording(path) {
        bail!(
            "{}: this build cannot read datasets\nhint: build it with the feature `parquet`",
            path.display()
        );
    }
    Ok(None)
}

/// True if a folder has a recorded live run.
pub(crate) fn is_recording(path: &Path) -> bool {
    path.join(RecordingStart::FILE).is_file()
}

/// Analyses one side.
fn analysed(path: &Path, bin: Option<Span>, arguments: &Compare) -> anyhow::Result<CollectedRun> {
    let given = ["link-rate", "dscp-map", "config", "threads"].map(|name| (name, name));
    let given = given.into_iter().chain([("flow", "only-flow")]);
    let given = given.filter_map(|(own, name)| arguments.given.argument(&own.replace('-', "_"), name));
    let bin = bin.map(|bin| argument("bin", format!("{}ns", bin.0)));
    let words = given.chain(bin);
    let options = RunOptions {
        captures: vec![path.to_path_buf()],
        shape: Shape::from_words(words)?,
        ..RunOptions::default()
    };
    let mut side = CollectedRun::default();
    rows(&options, &mut side).with_context(|| path.display().to_string())?;
    Ok(side)
}

/// Writes the comparison to where it is to go.
fn write(
    format: Format,
    place: Option<&FilePlace>,
    overwrite: bool,
    comparison: &Comparison,
) -> anyhow::Result<()> {
    let mut text = Vec::new();
    match format {
        Format::Text => {
            let mut style = style(0);
            // A file takes no colours.
            style.color &= place.is_none();
            text.extend(comparison::text(comparison, style).into_bytes());
        }
        Format::Html => text.extend(html::page(comparison).into_bytes()),
        _ => json::write(comparison, &mut text)?,
    }
    let Some(place) = place else {
        let mut stdout = anstream::stdout();
        stdout.write_all(&text)?;
        return Ok(stdout.flush()?);
    };
    let mut file = place.begin(overwrite, Access::Umask)?;
    file.write_all(&text)
        .with_context(|| format!("{}: cannot be written", place.path().display()))?;
    Ok(file.finish()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_are_shares() {
        assert_eq!(parse_percent("5"), Ok(0.05));
        assert_eq!(parse_percent("0.5 %"), Ok(0.005));
        assert_eq!(parse_percent("0"), Ok(0.0));
        for text in ["", "-1", "five", "inf", "nan"] {
            assert!(parse_percent(text).is_err(), "{text}");
        }
    }
}
