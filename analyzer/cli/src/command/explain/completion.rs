//! An error that a line of a program's log reports, and the packets of a capture about the end of its queue pair.

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::{anyhow, bail};
use roce_jobs::errors::{ErrorReport, reports};
use roce_jobs::nccl::{Log, log};
use roce_model::JobError;
use roce_model::text::{clean, escape_json};
use roce_report::ends::{Ends, error_document, error_text};
use serde_json::json;

use crate::command::request::rows;
use crate::options::arguments::Analyse;
use crate::options::format::Format;
use crate::options::nccl;

/// Bytes of a text: lines of NCCL have 1,024, a dump of a completion five lines.
const MAX_LINE: usize = 64 << 10;

/// Explains the error of `line`, with packets where there is a capture.
///
/// # Errors
/// When the line has none, a capture cannot be read, or another format of output is wanted.
pub(crate) fn explain(arguments: &Analyse, line: &str) -> anyhow::Result<ExitCode> {
    let is_text = match arguments.format {
        Format::Text => true,
        Format::Json => false,
        _ => bail!("explain prints text or JSON\nhint: omit --format, or take --format json"),
    };
    let Some(found) = found(line) else {
        return Err(unknown(line));
    };
    let log = match arguments.run.nccl_log.as_slice() {
        [] => None,
        paths => Some(nccl::read(paths)?),
    };
    let error = error(found, log.as_ref());
    if arguments.run.captures.is_empty() {
        return print_alone(&error, is_text);
    }
    let mut ends = Ends::new([error]);
    let code = rows(&arguments.run, &mut ends)?;
    print(&ends, is_text)?;
    Ok(code)
}

/// The error for a text that reports none.
pub(super) fn unknown(text: &str) -> anyhow::Error {
    let begin: String = text.chars().take(MAX_SHOWN).collect();
    anyhow!(
        "explain: no error of a known program in this text: {}\nhint: a line of NCCL, UCX, libfabric, MPI, perftest, NVSHMEM, Mooncake, SPDK or the \
         kernel that reports a failed request, in quotes; with the line before or behind it, if that has the queue pair",
        clean(&begin)
    )
}

/// Characters of a text that an error shows.
const MAX_SHOWN: usize = 200;

/// Prints what the line says, as no packets are given.
fn print_alone(error: &JobError, is_text: bool) -> anyhow::Result<ExitCode> {
    let text = if is_text {
        error_text(error)
            + "   packets    `explain LINE CAPTURE` says what they show of this connection's end\n"
    } else {
        escape_json(&format!("{:#}\n", json!({ "errors": [error_document(error)] }))).into_owned()
    };
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// Prints what was found.
///
/// # Errors
/// When standard output cannot be written.
pub(crate) fn print(ends: &Ends, is_text: bool) -> anyhow::Result<()> {
    let mut out = std::io::stdout();
    if is_text {
        out.write_all(ends.text().as_bytes())?;
    } else {
        writeln!(out, "{}", escape_json(&format!("{:#}", ends.document())))?;
    }
    Ok(())
}

/// True for a line that reports an error of a known program.
pub(super) fn is_line(text: &str) -> bool {
    found(text).is_some()
}

/// The first error in a text of one line, or of a few: another one may name the queue pair.
fn found(text: &str) -> Option<ErrorReport> {
    if text.len() > MAX_LINE {
        return None;
    }
    // NCCL's line is whole behind the process that writes it; bare texts are read as they are.
    let first = log(text).errors.into_iter().next();
    first.or_else(|| reports(text).into_iter().next())
}

/// The error, with what a log says more of it.
fn error(found: ErrorReport, log: Option<&Log>) -> JobError {
    let alike = log.and_then(|log| {
        log.errors.iter().find(|other| {
            let agrees = other.queue_pair.is_none()
                || found.queue_pair.is_none()
                || other.queue_pair == found.queue_pair;
            other.status == found.status
                && other.local == found.local
                && other.remote == found.remote
                && other.peer == found.peer
                && agrees
        })
    });
    let queue_pair = found
        .queue_pair
        .or_else(|| alike.and_then(|other| other.queue_pair));
    let owner = log.and_then(|log| {
        let owners = log.owners();
        owners.end(found.local?, queue_pair?)?.rank
    });
    let rank = found
        .rank
        .or(owner)
        .or_else(|| alike.and_then(|other| other.rank));
    let found = ErrorReport {
        queue_pair,
        rank,
        ..found
    };
    found.job_error(String::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_or_two() {
        let one = "NET/IB: Got completion from peer 10.0.0.2<43100> with status=IBV_WC_RETRY_EXC_ERR(12) opcode=IBV_WC_RDMA_WRITE(1) vendor_err=129  localGid ::ffff:10.1.0.3 remoteGids::ffff:10.1.0.11 hca mlx5_3";
        let bare = found(one).unwrap();
        assert_eq!((bare.status, bare.queue_pair), (Some(12), None));
        let two = format!(
            "h:5:6 [3] p2p.cc:812 NCCL WARN NET/IB: ncclIbTest: Got CQE with error (devIndex=0, req=0x1, comm=0x2 (send), wr_id=17, qp_num=279)\nh:5:6 [3] p2p.cc:640 NCCL WARN {one}"
        );
        assert_eq!(found(&two).unwrap().queue_pair, Some(279));
        assert_eq!(found("hello"), None);
        // The log knows more than the line.
        let known = error(bare, Some(&log(&two)));
        assert_eq!(known.queue_pair, Some(279));
    }
}
