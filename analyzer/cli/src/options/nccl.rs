//! Logs of NCCL that `--nccl-log` names: queue pairs get ranks, errors get a place.

use std::fmt::Write as _;
use std::io::BufReader;
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use roce_jobs::nccl::{Log, Reader};
use roce_model::JobLog;
use roce_pipeline::path_key;

use crate::options::training::unreadable;

/// Errors that are kept of a log.
const MAX_ERRORS: usize = 1_000;

/// Reads the logs at `paths` as one.
///
/// # Errors
/// When one cannot be read, or none of them has a line of NCCL.
pub(crate) fn read(paths: &[PathBuf]) -> anyhow::Result<Log> {
    let mut reader = Reader::default();
    for path in paths {
        let file = roce_files::open_regular(path).map_err(|error| unreadable(error, "the log of NCCL"))?;
        reader
            .read(BufReader::new(file))
            .with_context(|| format!("{}: the log of NCCL cannot be read", path.display()))?;
    }
    let log = reader.finish();
    let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    let is_empty = log.queue_pairs.is_empty() && log.communicators.is_empty() && log.errors.is_empty();
    if is_empty && log.versions.is_empty() && log.edges.is_empty() && log.own_lines == 0 {
        bail!(
            "{}: none of {} lines is of NCCL, or an error of a known program\nhint: set NCCL_DEBUG=INFO and NCCL_DEBUG_SUBSYS=INIT,NET,GRAPH for \
             the job",
            names.join(", "),
            log.lines
        );
    }
    Ok(log)
}

/// The part of a log that is about packets. Its errors are called by file and line.
pub(crate) fn job(log: &Log, paths: &[PathBuf]) -> JobLog {
    let errors = log.errors.iter().take(MAX_ERRORS).map(|found| {
        let name = paths
            .get(found.file)
            .map(|path| path_key(path))
            .unwrap_or_default();
        found.job_error(format!("{name}:{}", found.line))
    });
    JobLog {
        ranks: log.owners(),
        errors: errors.collect(),
        shapes: log.collectives(),
        errors_left_out: log.errors.len().saturating_sub(MAX_ERRORS) as u64 + log.left_out,
        windows: Vec::new(),
    }
}

/// Messages of a run about the logs that it was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct About {
    /// The first file.
    pub(crate) name: String,
    /// One sentence.
    pub(crate) text: String,
    /// The logs are of no use for packets.
    pub(crate) is_useless: bool,
}

/// Reads the logs at `paths`; the second value says what is in them.
///
/// # Errors
/// As those of [`read`].
pub(crate) fn read_job(paths: &[PathBuf]) -> anyhow::Result<(JobLog, Option<About>)> {
    let Some(first) = paths.first() else {
        return Ok((JobLog::default(), None));
    };
    let log = read(paths)?;
    let job = job(&log, paths);
    let has_errors_alone = log.versions.is_empty() && job.ranks.is_empty() && !job.errors.is_empty();
    let is_useless = job.ranks.is_empty() && !has_errors_alone;
    let text = if has_errors_alone {
        summary_of_errors(&job)
    } else if is_useless {
        "no queue pair in it has an address and a rank: flows stay without ranks. NCCL prints them with NCCL_DEBUG=INFO and \
         NCCL_DEBUG_SUBSYS=INIT,NET,GRAPH"
            .to_owned()
    } else {
        summary(&log, &job)
    };
    let about = About {
        name: first.display().to_string(),
        text,
        is_useless,
    };
    Ok((job, Some(about)))
}

/// `3 errors of UCX and the kernel`: a log of other programs names no ranks.
fn summary_of_errors(job: &JobLog) -> String {
    let mut programs: Vec<&str> = job.errors.iter().map(|error| error.program).collect();
    programs.sort_unstable();
    programs.dedup();
    let count = job.errors.len() as u64 + job.errors_left_out;
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} error{ending} of {}", programs.join(", "))
}

/// `8 queue pairs of 2 ranks; 2 of 48 lines are of no form that is read`.
fn summary(log: &Log, job: &JobLog) -> String {
    let mut ranks: Vec<u32> = log.queue_pairs.iter().filter_map(|pair| pair.rank).collect();
    ranks.sort_unstable();
    ranks.dedup();
    let ending = |count: usize| if count == 1 { "" } else { "s" };
    let (pairs, ranks) = (job.ranks.len(), ranks.len());
    let mut text = format!(
        "{pairs} queue pair{} of {ranks} rank{}",
        ending(pairs),
        ending(ranks)
    );
    if log.unknown_lines + log.long_lines > 0 {
        let unknown = log.unknown_lines + log.long_lines;
        let _ = write!(
            text,
            "; {unknown} of {} lines are of no form that is read",
            log.lines
        );
    }
    if log.left_out > 0 {
        let _ = write!(text, "; {} facts found no room", log.left_out);
    }
    text
}
