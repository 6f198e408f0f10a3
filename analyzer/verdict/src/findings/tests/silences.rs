//! Silences: answers that come late, and packets that never come by.

use roce_model::{Confidence, TimelineRow, Vantage};

use super::*;

/// A run of 40 ms with this many answers, each of which was late by 2 ms, and `change` of the flow's row of a bin.
fn late_answers(waits: u64, change: fn(&mut TimelineRow)) -> RunSummary {
    let mut data = flow(1, 2);
    data.last_time = Time(40 * MS);
    let mut run = TestRun::new();
    for number in 0..waits {
        let stall = event(
            EventKind::Stall,
            &data,
            (1 + 3 * number) * MS,
            2 * MS,
            "ended by an answer",
        );
        run.bin(1 + 3 * number, &[(&data, change)], &[stall]);
    }
    run.closed(&data);
    run.conclude()
}

#[test]
fn waits_for_late_answers_count_in_sum() {
    // 5 x 2 ms are stall_least, and a quarter of 40 ms is 10 ms.
    let run = late_answers(5, |_| {});
    let found = fired(&run, "stall");
    assert_eq!(
        found.summary,
        "5 waits for late answers; stood still for 10.0 ms; the longest: 10.0.0.1 > 10.0.0.2 QP 0x11 for 2.00 ms"
    );
    assert_eq!(
        (found.severity, found.confidence, count(found, "awaiting_answers")),
        (Severity::Warning, Confidence::Medium, 5)
    );
    assert_eq!(
        run.sentence,
        "10.0.0.1 waited for late answers of 10.0.0.2 from +1.00 ms to +15.0 ms: 10.0 ms of waiting in 5 waits."
    );
    let cause = run.episodes.iter().map(|row| &*row.cause).next();
    assert_eq!(
        cause,
        Some("10.0.0.1 > 10.0.0.2 QP 0x11 waited 2.00 ms for an answer")
    );
    assert!(finding(&late_answers(4, |_| {}), "stall").is_none(), "8 ms");
    // Marks show a queue, in which each of the packets, or of the answers, may have waited for 2 ms.
    assert!(finding(&late_answers(5, |row| row.ce = 5), "stall").is_none());
}

#[test]
fn packets_that_never_came_by() {
    let data = flow(1, 2);
    let run = |change: fn(&mut FlowRow), silences: u64| {
        let mut data = data.clone();
        change(&mut data);
        let mut run = TestRun::new();
        let unseen = |time: u64| event(EventKind::Unseen, &data, time * MS, 1_024, "32.7 ms");
        let events: Vec<_> = (0..silences).map(unseen).collect();
        run.bin(2, &[(&data, |_| ())], &events);
        run.closed(&data);
        run.conclude()
    };
    let found = run(|_| (), 1);
    assert_eq!(
        fired(&found, "loss.unseen").summary,
        "1024 packets of 10.0.0.1 never came by in its silence of 32.7 ms: lost before this tap with all retransmissions, or sent elsewhere: \
         10.0.0.1 > 10.0.0.2 QP 0x11"
    );
    assert_eq!(fired(&found, "loss.unseen").confidence, Confidence::Low);
    assert!(
        found
            .sentence
            .starts_with("1024 packets of 10.0.0.1 never came by"),
        "{}",
        found.sentence
    );
    let silent = |run: &RunSummary| finding(run, "loss.unseen").is_none();
    assert!(silent(&run(|_| (), 4)), "it sends to others");
    assert!(
        silent(&run(|row| row.capture_lost = 1, 1)),
        "the capture missed packets"
    );
    assert!(silent(&run(|row| row.vantage = Some(Vantage::Sender), 1)));
}
