//! `annotate`: captures with comments, for Wireshark, or their frames as JSON lines (`annotate/list.rs`). The profile of Wireshark is in
//! `annotate/profile.rs`.

mod list;
mod profile;

use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::Args;
use roce_files::{Access, FilePlace};
use roce_model::Filter;
use roce_pipeline::{KnownResults, OpenRun, RunStart, Selection};

use crate::command::invocation::{Invocation, Places, Rights, RunCommand};
use crate::command::request::{FoundCaptures, PreparedRun, time_range};
use crate::options::arguments::{RunOptions, Shape};
use crate::options::duration::Moment;
use crate::options::format::{Format, formats};
use crate::options::given::argument;
use crate::output::messages;

/// Write captures with comments on their packets, for Wireshark
///
/// The file has the frames of all captures in the order of time, with a comment on each packet that the analysis has something to say
/// about: marks and their episode, CNPs and the flow that they slow, what is missing and why, retransmissions with their original and
/// cause, NAKs, RNR NAKs, stalls, pauses. The comments of its section are the verdicts. With --format jsonl no file is written: the frames that
/// have a comment are printed, each with its number in its own capture.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  roce-analyze annotate rack7.pcap -o rack7-comments.pcapng
  roce-analyze annotate a.pcap -o b.pcapng --flow '10.0.0.5 > 10.0.0.7 QP 0x11' --commented
  roce-analyze annotate a.pcap -o b.pcapng --profile ~/.config/wireshark/profiles/RoCE
  roce-analyze annotate a.pcap --format jsonl > frames.jsonl

In Wireshark, the filter pkt_comment shows the packets with comments; with the profile, so do its buttons.")]
pub(crate) struct Annotate {
    /// Captures: pcap or pcapng, plain, gzip or zstd
    #[arg(value_name = "CAPTURE", required_unless_present = "profile")]
    pub(crate) captures: Vec<PathBuf>,

    /// Write the frames with comments to FILE (pcapng)
    #[arg(
        short,
        long,
        value_name = "FILE",
        required_unless_present_any = ["profile", "format"],
        requires = "captures"
    )]
    output: Option<PathBuf>,

    /// Print frames with a comment, and their numbers in the captures, and write no file
    #[arg(long, value_name = "FORMAT", requires = "captures", conflicts_with_all = ["output", "commented"], value_parser = formats(&[Format::Jsonl]))]
    format: Option<Format>,

    /// Replace FILE, or the files of --profile
    #[arg(long, conflicts_with = "format")]
    overwrite: bool,

    /// Write only frames that have a comment
    #[arg(long, conflicts_with = "all")]
    commented: bool,

    /// Comment on each RoCE packet: at least its operation, flow and PSN
    #[arg(long)]
    all: bool,

    /// Write only packets of flows that match EXPR, and the answers to them; all traffic is analysed
    #[arg(long, value_name = "EXPR", value_parser = Filter::parse)]
    flow: Option<Filter>,

    /// Write only frames from this time on: RFC 3339, or +DURATION after the first frame
    #[arg(long, value_name = "TIME", value_parser = Moment::parse)]
    from: Option<Moment>,

    /// Write only frames before this time: RFC 3339, or +DURATION after the first frame
    #[arg(long, value_name = "TIME", value_parser = Moment::parse)]
    to: Option<Moment>,

    /// Write a profile of Wireshark to DIR: columns, colours, filter buttons, and a dissector that names CNPs and makes fields of comments
    #[arg(long, value_name = "DIR")]
    profile: Option<PathBuf>,

    /// Leave times unchanged, even where packets in several captures show that their clocks differ
    #[arg(long)]
    no_align: bool,

    /// Read defaults of options, and thresholds of the findings, from a TOML file
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl RunCommand for Annotate {
    const RIGHTS: Rights = Rights::Files;

    fn places(&mut self) -> Places<'_> {
        Places {
            captures: self.captures.iter_mut().collect(),
            results: None,
        }
    }

    fn run(&self, _: &Invocation) -> anyhow::Result<ExitCode> {
        annotate(self)
    }
}

/// Analyses captures, and writes them with comments.
fn annotate(arguments: &Annotate) -> anyhow::Result<ExitCode> {
    if let Some(folder) = &arguments.profile {
        for path in profile::write(folder, arguments.overwrite)? {
            messages::wrote(&path.display().to_string());
        }
    }
    if arguments.captures.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    if arguments
        .captures
        .iter()
        .any(|capture| capture.as_os_str() == "-")
    {
        bail!("standard input is read twice, which it cannot be\nhint: write it to a file first");
    }
    match &arguments.output {
        Some(output) => write(arguments, output),
        None if arguments.format.is_some() => print(arguments),
        None => Ok(ExitCode::SUCCESS),
    }
}

/// Analyses captures, and writes them with comments into a file.
fn write(arguments: &Annotate, output: &Path) -> anyhow::Result<ExitCode> {
    let is_output = |capture: &PathBuf| {
        let same = |path: &Path| path.canonicalize().ok();
        same(capture).is_some() && same(capture) == same(output)
    };
    if arguments.captures.iter().any(is_output) {
        bail!(
            "{}: a capture cannot be replaced by its own copy while it is read\nhint: give another name to -o",
            output.display()
        );
    }
    // A name that is taken is refused before the captures are read.
    let place = FilePlace::named(output)?;
    let mut file = place.begin(arguments.overwrite, Access::Umask)?;
    let AnalysedCaptures { results, open, code } = known(arguments)?;
    let written = open
        .annotate(results, &selection(arguments), &mut file)
        .with_context(|| format!("{}: cannot be written", output.display()))?;
    file.finish()?;
    messages::wrote(&format!(
        "{}: {} frames, {} with comments ({} retransmissions, {} marks, {} CNPs)",
        output.display(),
        written.frames,
        written.commented,
        written.retransmissions,
        written.marks,
        written.cnps
    ));
    Ok(code)
}

/// Analyses captures, and prints the frames that have a comment.
fn print(arguments: &Annotate) -> anyhow::Result<ExitCode> {
    let AnalysedCaptures { results, open, code } = known(arguments)?;
    let mut out = BufWriter::new(std::io::stdout().lock());
    open.list_frames(results, &selection(arguments), &mut |frame| {
        list::line(frame, &mut out)
    })?;
    out.flush()?;
    Ok(code)
}

/// Selection of the frames.
fn selection(arguments: &Annotate) -> Selection {
    Selection {
        flow: arguments.flow.clone(),
        commented_only: arguments.commented,
        all: arguments.all,
    }
}

/// Results of the first pass, and the captures, open for the second one.
struct AnalysedCaptures {
    results: KnownResults,
    open: OpenRun,
    code: ExitCode,
}

/// Analyses the captures.
fn known(arguments: &Annotate) -> anyhow::Result<AnalysedCaptures> {
    let config = arguments.config.as_ref().map(|path| argument("config", path));
    let words = std::iter::once("--quiet".into()).chain(config);
    // The whole is analysed: what is cut away explains the rest.
    let options = RunOptions {
        captures: arguments.captures.clone(),
        shape: Shape::from_words(words)?,
        no_align: arguments.no_align,
        ..RunOptions::default()
    };
    let mut results = KnownResults::default();
    let prepared = PreparedRun::new(FoundCaptures::find(&options)?, true, RunStart::now())?;
    let code = prepared.rows(&mut results)?;
    let mut open = prepared.request()?.open();
    let range = time_range(arguments.from, arguments.to, &mut open)?;
    open.set_range(range);
    Ok(AnalysedCaptures { results, open, code })
}
