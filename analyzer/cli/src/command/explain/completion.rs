//! The packets of a capture about the end of the queue pair that a line of NCCL's log reports.

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::bail;
use roce_jobs::nccl::{Completion, Log, completion, job_error, log};
use roce_model::JobError;
use roce_model::text::escape_json;
use roce_report::ends::Ends;

use crate::command::request::rows;
use crate::options::arguments::Analyse;
use crate::options::format::Format;
use crate::options::nccl;

/// Bytes of a line: those of NCCL have 1,024.
const MAX_LINE: usize = 64 << 10;

/// Explains the error of `line`.
///
/// # Errors
/// When the line has none, no capture can be read, or another format of output is wanted.
pub(crate) fn explain(arguments: &Analyse, line: &str) -> anyhow::Result<ExitCode> {
    let is_text = match arguments.format {
        Format::Text => true,
        Format::Json => false,
        _ => bail!("explain prints text or JSON\nhint: omit --format, or take --format json"),
    };
    let Some(found) = found(line) else {
        bail!(
            "explain: no completion with an error in this text\nhint: the line of NCCL's log that has \"Got completion\", in quotes; with the \
             line before it, if that has qp_num="
        );
    };
    let log = match arguments.run.nccl_log.as_slice() {
        [] => None,
        paths => Some(nccl::read(paths)?),
    };
    let mut ends = Ends::new([error(found, log.as_ref())]);
    let code = rows(&arguments.run, &mut ends)?;
    print(&ends, is_text)?;
    Ok(code)
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

/// True for a line of NCCL's log that reports a completion with an error.
pub(super) fn is_line(text: &str) -> bool {
    found(text).is_some()
}

/// The completion in a text of one line, or of two: the one before may name the queue pair.
fn found(text: &str) -> Option<Completion> {
    if text.len() > MAX_LINE {
        return None;
    }
    let mut whole = log(text);
    if whole.completions.is_empty() {
        return completion(text);
    }
    Some(whole.completions.swap_remove(0))
}

/// The error, with what a log says more of it.
fn error(found: Completion, log: Option<&Log>) -> JobError {
    let alike = log.and_then(|log| {
        log.completions.iter().find(|other| {
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
    let found = Completion {
        queue_pair,
        rank,
        ..found
    };
    job_error(&found, String::new())
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
