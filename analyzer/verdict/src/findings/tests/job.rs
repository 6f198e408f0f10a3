//! Facts that a job's log adds: errors, and ranks in the names of flows.

use std::sync::Arc;

use roce_model::{EventKind, JobError, JobLog, RunSummary};

use super::{MS, TestRun, back, count, event, finding, fired, flow, host};
use crate::Settings;

fn run(job: JobLog, change: fn(&mut TestRun)) -> RunSummary {
    let mut run = TestRun::with(Settings {
        job: Arc::new(job),
        ..Settings::default()
    });
    change(&mut run);
    run.conclude()
}

fn error(status: &str, from: u8, to: u8, queue_pair: Option<u32>) -> JobError {
    JobError {
        place: "job.log:7".to_owned(),
        status: status.to_owned(),
        meaning: "no answer",
        is_consequence: status.contains("FLUSH"),
        rank: Some(3),
        local: Some(host(from)),
        remote: Some(host(to)),
        queue_pair,
        ..JobError::default()
    }
}

fn ranked(run: &mut TestRun) {
    let mut data = flow(1, 2);
    (data.rank, data.peer_rank, data.channel) = (Some(3), Some(11), Some(2));
    run.closed(&data).closed(&back(&data));
}

#[test]
fn an_error_of_the_log_is_a_finding_with_its_flow() {
    // Answers of host 2 go to queue pair 0x12.
    let job = |queue_pair| JobLog {
        errors: vec![
            error("IBV_WC_WR_FLUSH_ERR", 1, 2, None),
            error("IBV_WC_RETRY_EXC_ERR", 1, 2, queue_pair),
            error("IBV_WC_RETRY_EXC_ERR", 7, 8, None),
        ],
        ..JobLog::default()
    };
    // Without a queue pair a connection is named that ended so: this one did not.
    let named = [
        (None, "(job.log:7): no captured connection ended so", 0),
        (Some(0x12), "[rank 3 > rank 11, channel 2]: no answer", 1),
    ];
    for (queue_pair, words, captured) in named {
        let run = run(job(queue_pair), ranked);
        let found = fired(&run, "nccl.completion_error");
        assert!(
            found.summary.starts_with(
                "2 errors in the job's log; the first: IBV_WC_RETRY_EXC_ERR of rank 3 (job.log:7)"
            ),
            "{}",
            found.summary
        );
        assert!(found.summary.contains(words), "{}", found.summary);
        assert_eq!((count(found, "captured"), count(found, "flushed")), (captured, 1));
    }
    // Flushed requests alone are no finding: the first error is in another log.
    let flushed = JobLog {
        errors: vec![error("IBV_WC_WR_FLUSH_ERR", 1, 2, None)],
        ..JobLog::default()
    };
    assert_eq!(finding(&run(flushed, ranked), "nccl.completion_error"), None);
}

#[test]
fn a_stall_says_which_rank_waits() {
    let run = run(JobLog::default(), |run| {
        let mut data = flow(1, 2);
        (data.rank, data.peer_rank, data.channel) = (Some(3), Some(11), Some(2));
        let stall = event(EventKind::Stall, &data, MS, 10 * MS, "");
        run.bin(2, &[(&data, |_| ())], &[stall]);
        run.closed(&data);
    });
    let found = fired(&run, "stall");
    assert!(
        found.summary.ends_with(": rank 11 waits for rank 3, channel 2"),
        "{}",
        found.summary
    );
    assert!(
        found
            .evidence
            .to_string()
            .contains("\"ranks\":\"rank 11 waits for rank 3, channel 2\"")
    );
}
