//! `report`: the HTML page, or the trace, of results that earlier runs wrote with `-o`, of one folder or of several hosts' together.

mod joined;

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use roce_files::{Access, Directory, FilePlace};
use roce_model::text::clean;
use roce_model::{RunSummary, Sink, SinkError};
use roce_pipeline::folder::{DOCUMENT, PAGE};
use roce_pipeline::stored;
use roce_report::{HtmlReport, KpiForm, KpiReport, TraceForm, TraceReport};

use crate::command::invocation::{Invocation, Rights, RunCommand};
use crate::command::merging::MergingSink;
use crate::options::format::{Format, formats};
use crate::options::merged;
use crate::options::size::parse_size;
use crate::output::messages::{self, sink_error};

/// Formats of the file, and its name in the folder of the results.
const FILES: [(Format, &str); 3] = [
    (Format::Html, PAGE),
    (Format::Perfetto, "trace.pftrace"),
    (Format::Chrome, "trace.json"),
];

/// Formats of the key figures, and their files.
const KPI_FILES: [(Format, &str); 2] = [(Format::Html, "kpi.html"), (Format::Json, "kpi.json")];

/// The name of the file in the folder of the results.
fn file_of(format: Format, has_kpis: bool) -> &'static str {
    if has_kpis {
        let [page, document] = KPI_FILES;
        return if format == Format::Json {
            document.1
        } else {
            page.1
        };
    }
    FILES
        .iter()
        .find(|(known, _)| *known == format)
        .map_or(PAGE, |(_, name)| name)
}

/// The sink that writes the file.
fn sink_of<'a>(format: Format, has_kpis: bool, out: &'a mut (dyn Write + 'a)) -> Box<dyn Sink + 'a> {
    match format {
        Format::Json => Box::new(KpiReport::new(out, KpiForm::Json)),
        _ if has_kpis => Box::new(KpiReport::new(out, KpiForm::Html)),
        Format::Perfetto => Box::new(TraceReport::new(out, TraceForm::Perfetto)),
        Format::Chrome => Box::new(TraceReport::new(out, TraceForm::Chrome)),
        _ => Box::new(HtmlReport::new(out)),
    }
}

/// Make the HTML page of results that -o wrote
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  roce-analyze report results                    results/report.html
  roce-analyze report host7 host9 -o both.html   one page of two runs
  roce-analyze report results --format perfetto  a trace for ui.perfetto.dev

With several folders the rows are joined, not analysed again: verdicts and episodes remain those of each folder and \
name it. Traffic in several folders is drawn once, from the folder that saw most of it; totals are sums over all folders.")]
pub(crate) struct Report {
    /// Folders that -o wrote
    #[arg(value_name = "DIR", required = true)]
    dirs: Vec<PathBuf>,

    /// Write the page to FILE [default: DIR/report.html, or DIR/trace.pftrace, DIR/trace.json, DIR/kpi.html, DIR/kpi.json]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Replace FILE if it exists
    #[arg(long, requires = "output")]
    overwrite: bool,

    /// Merge a document of the job, whose content says what it is (can be repeated)
    ///
    /// Traces of PyTorch's profiler and NCCL's, NCCL Inspector's files, answers of NCCL's RAS, PyTorch's flight recorder; compressed or not.
    ///
    /// With ADDRESS= only the traffic of the rank's host counts for its collectives.
    #[arg(long, value_name = "[ADDRESS=]FILE")]
    merge: Vec<String>,

    /// Read at most this much of each trace, decompressed (10GB)
    #[arg(long, value_name = "SIZE", value_parser = parse_size, requires = "merge")]
    max_input: Option<u64>,

    /// Write the key figures of the benchmark draft for training fabrics in place of the page: HTML or JSON
    ///
    /// Each has its formula, its value and what it was computed from, or why packets cannot give it
    /// (draft-calabria-bmwg-ai-fabric-training-bench-00).
    #[arg(long)]
    kpi: bool,

    /// Format of the file; json is that of --kpi
    #[arg(long, value_name = "FORMAT", default_value = "html", value_parser = formats(&[Format::Html, Format::Json, Format::Perfetto, Format::Chrome]))]
    format: Format,
}

impl RunCommand for Report {
    const RIGHTS: Rights = Rights::Files;

    fn run(&self, _: &Invocation) -> anyhow::Result<ExitCode> {
        report(self)
    }
}

/// Writes the page.
fn report(arguments: &Report) -> anyhow::Result<ExitCode> {
    let is_for_kpis = matches!(arguments.format, Format::Html | Format::Json);
    if arguments.kpi && !is_for_kpis || !arguments.kpi && arguments.format == Format::Json {
        bail!("--kpi writes html or json, and json is that of --kpi alone");
    }
    if arguments.output.is_none() && arguments.dirs.len() > 1 {
        bail!("several folders give one page, and its place is not given\nhint: -o FILE");
    }
    for dir in &arguments.dirs {
        if !stored::is_dataset(dir) {
            bail!(
                "{}: holds no results\nhint: `roce-analyze CAPTURE -o DIR` writes them",
                dir.display()
            );
        }
    }
    let place = match (&arguments.output, arguments.dirs.as_slice()) {
        (None, [dir, ..]) => {
            let folder = Directory::named(dir, Access::Umask)?;
            FilePlace::below(&folder, file_of(arguments.format, arguments.kpi))
        }
        (path, _) => {
            let path = path.as_deref();
            let name = file_of(arguments.format, arguments.kpi);
            FilePlace::named(path.unwrap_or_else(|| Path::new(name)))?
        }
    };
    // The page of a folder of results is theirs.
    let overwrite = arguments.overwrite || arguments.output.is_none();
    place.refuse_taken(overwrite)?;
    let documents = merged::without_logs(&arguments.merge, arguments.max_input)?;
    for (file, reason) in &documents.cut {
        messages::warn(file, reason);
    }
    let mut traces = documents.traces();
    let mut out = place.begin(overwrite, access(&arguments.dirs))?;
    let mut file = sink_of(arguments.format, arguments.kpi, &mut out);
    let is_whole = match &mut traces {
        None => replay(&arguments.dirs, &mut *file)?,
        Some(traces) => {
            let mut merging = MergingSink::new(&mut *file, traces);
            replay(&arguments.dirs, &mut merging)? & merging.is_whole
        }
    };
    drop(file);
    out.finish()?;
    writeln!(anstream::stdout(), "{}", clean(&place.path().to_string_lossy()))?;
    Ok(if is_whole {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(2)
    })
}

/// Gives the rows of all folders to a page. False if some of the folders could not be read.
fn replay(dirs: &[PathBuf], page: &mut dyn Sink) -> anyhow::Result<bool> {
    if let [dir] = dirs {
        stored::replay(dir, page).map_err(sink_error)?;
        return Ok(true);
    }
    let readable = readable(named(dirs));
    if readable.is_empty() {
        bail!("no folder could be read");
    }
    joined::replay(&readable, page)?;
    Ok(readable.len() == dirs.len())
}

/// Readers of the page: the owner alone, if the results of one folder have that limit, as those of live
/// runs do.
fn access(dirs: &[PathBuf]) -> Access {
    // Bits of the mode: the group and others may read.
    let for_others = 0o044;
    let is_private = |dir: &PathBuf| {
        let about = std::fs::metadata(dir.join(DOCUMENT));
        about.is_ok_and(|about| about.permissions().mode() & for_others == 0)
    };
    if dirs.iter().any(is_private) {
        Access::Private
    } else {
        Access::Umask
    }
}

/// The folders that can be read to their end. Errors of the others are reported; these do not stop the page. Rows go to the page while they
/// are read, so each folder is read once before.
fn readable(dirs: Vec<(String, &Path)>) -> Vec<(String, &Path)> {
    let is_readable = |(_, dir): &(String, &Path)| match stored::replay(dir, &mut UnusedSink) {
        Ok(()) => true,
        Err(error) => {
            messages::report(&sink_error(error));
            false
        }
    };
    dirs.into_iter().filter(is_readable).collect()
}

/// A sink that keeps nothing.
struct UnusedSink;

impl Sink for UnusedSink {
    fn finish(&mut self, _: &RunSummary) -> Result<(), SinkError> {
        Ok(())
    }
}

/// Folders with what they are called beside each other: by their last part where that tells them apart.
fn named(dirs: &[PathBuf]) -> Vec<(String, &Path)> {
    let last = |dir: &PathBuf| dir.file_name().map(std::ffi::OsStr::to_os_string);
    let named = dirs.iter().map(|dir| {
        let alike = dirs.iter().filter(|other| last(other) == last(dir)).count();
        let name = last(dir).filter(|_| alike == 1).unwrap_or_else(|| dir.into());
        (name.to_string_lossy().into_owned(), dir.as_path())
    });
    named.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_get_different_names() {
        let dirs = ["a/out", "b/out", "c/h7", ".."].map(PathBuf::from);
        let names: Vec<String> = named(&dirs).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["a/out", "b/out", "h7", ".."]);
    }
}
