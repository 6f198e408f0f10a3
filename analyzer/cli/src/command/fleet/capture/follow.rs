//! One host while it captures: its script is started and followed, and its end is taken into the manifest.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use roce_remote::SessionLine;
use roce_remote::fleet::manifest::HostState;
use roce_remote::fleet::report::Report;
use roce_remote::fleet::script::{BEAT, SILENCE};

use super::job::{Control, Job};
use crate::command::fleet::book::Book;
use crate::command::fleet::gather::take;
use crate::command::fleet::prepare::taken;

/// Period of looking at interruptions.
const LOOK: Duration = Duration::from_millis(100);
/// Time behind a capture's end in which it compresses, hashes and reports.
const END_PATIENCE: Duration = Duration::from_mins(10);
/// Time behind the planned end after which a capture is asked to end.
const GRACE_NS: i64 = 5_000_000_000;
/// Time for the end of ssh.
const FINISH_PATIENCE: Duration = Duration::from_secs(5);

/// Captures on one host, to its end.
pub(super) fn follow(job: &Job<'_>, book: &Book, control: &Control<'_>) {
    let mut report = Report::default();
    let result = watch(job, book, control, &mut report);
    if !report.captures {
        // The command does not wait for a host that never captures.
        control.capturing.fetch_add(1, Ordering::Relaxed);
    }
    book.host(job.at, |row| {
        if let Some(busy) = &report.busy {
            row.state = HostState::Failed;
            row.error = Some(taken(busy));
        } else if let Some(problem) = &report.problem {
            row.state = HostState::Failed;
            row.error = Some(problem.clone());
        } else if report.exit_code.is_some() {
            take(row, &report, &job.ready.facts.rdma);
        } else if let Err(error) = &result {
            // It may have started, and its files may be there: its state stays as it is.
            if row.state == HostState::Capturing {
                row.error = Some(format!(
                    "{error:#}; the capture there ends by itself within {} s",
                    SILENCE.as_secs()
                ));
            } else {
                row.state = HostState::Failed;
                row.error = Some(format!("{error:#}"));
            }
        }
    });
}

/// Ends a host's capture that nothing has begun. The command does not wait for it.
pub(super) fn give_up(job: &Job<'_>, book: &Book, control: &Control<'_>, reason: &str) {
    control.capturing.fetch_add(1, Ordering::Relaxed);
    book.host(job.at, |row| {
        row.state = HostState::Failed;
        row.error = Some(reason.to_owned());
    });
}

/// Follows the script until it closes its output.
fn watch(job: &Job<'_>, book: &Book, control: &Control<'_>, report: &mut Report) -> anyhow::Result<()> {
    let script = job.capture.script()?;
    let machine = &job.target.machine;
    let mut session = machine.session(&script)?;
    let length = job
        .capture
        .duration
        .map(|length| i64::try_from(length.as_nanos()).unwrap_or(i64::MAX));
    let end_ns = length.map(|length| job.start_ns.saturating_add(length).saturating_add(GRACE_NS));
    let mut closing: Option<Instant> = None;
    let mut beat = machine.now();
    loop {
        match session.line(LOOK) {
            SessionLine::Text(line) => {
                let (had_pid, captured) = (report.pid, report.captures);
                report.take(&line);
                if report.pid != had_pid {
                    book.host(job.at, |row| row.pid = report.pid);
                }
                if report.captures && !captured {
                    control.capturing.fetch_add(1, Ordering::Relaxed);
                }
            }
            SessionLine::Silence => book.settle(),
            SessionLine::Closed => break,
        }
        let now = machine.now();
        if now.duration_since(beat) >= BEAT {
            beat = now;
            // A script that has ended its capture does not read any more.
            session.say(".");
        }
        let is_late = end_ns.is_some_and(|end| machine.now_ns() > end);
        if closing.is_none() && (control.ends_captures() || is_late) {
            session.close_input();
            closing = Some(now);
        }
        if closing.is_some_and(|since| now.duration_since(since) > END_PATIENCE)
            || control.interrupts.ends_all()
        {
            anyhow::bail!("its end was not waited for");
        }
    }
    session.finish(FINISH_PATIENCE)?;
    if closing.is_some() && report.stopped.as_deref() == Some("input") {
        // It was asked to.
        report.stopped = None;
    }
    if report.exit_code.is_none() && report.busy.is_none() && report.problem.is_none() {
        anyhow::bail!("the connection ended before the capture did");
    }
    Ok(())
}
