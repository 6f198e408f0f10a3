//! Programs that never answer, and connections that were not made.

use roce_model::{AttemptResult, ConnectionAttempt, ProgramExchange, RejectReason, ServiceId};

use super::*;

const US: u64 = 1_000;

/// A connection of host 1 to host 2 whose 20 requests were answered after 106 us.
fn exchange(qpn: u32) -> ProgramExchange {
    ProgramExchange {
        source: host(1),
        destination: host(2),
        qpn: Qpn::new(qpn),
        own_qpn: Qpn::new(qpn + 0x1000),
        asked: 20,
        answered: 20,
        answer_p50_ns: Some(106 * US),
        answer_max_ns: Some(200 * US),
        most_pending: 1,
        acknowledged_ns: Some(4 * US),
        until: Time(5_000 * MS),
        ..ProgramExchange::default()
    }
}

/// One whose only request waits from 1 ms on.
fn silent(qpn: u32) -> ProgramExchange {
    ProgramExchange {
        asked: 1,
        answered: 0,
        answer_p50_ns: None,
        answer_max_ns: None,
        pending: 1,
        pending_time: Time(MS),
        ..exchange(qpn)
    }
}

fn of(exchanges: &[ProgramExchange], attempts: &[ConnectionAttempt]) -> RunSummary {
    let mut run = TestRun::new();
    run.summary.exchanges = exchanges.to_vec();
    run.summary.attempts = attempts.to_vec();
    run.closed(&flow(1, 2));
    run.closed(&flow(2, 1));
    run.conclude()
}

/// A REQ of host 1 to host 2 at 0, for NVMe over Fabrics.
fn attempt(result: AttemptResult) -> ConnectionAttempt {
    ConnectionAttempt {
        source: host(1),
        destination: host(2),
        qpn: Qpn::new(0x1099),
        // RDMA CM's prefix, TCP (6), port 4420 = 0x1144 (IBTA annex A11).
        service: Some(ServiceId(0x0106_1144)),
        requests: 1,
        result,
        ..ConnectionAttempt::default()
    }
}

#[test]
fn an_acknowledged_request_that_no_program_answers() {
    let run = of(
        &[exchange(0x11), exchange(0x12), silent(0x99)],
        &[attempt(AttemptResult::Connected)],
    );
    let found = fired(&run, "program.no-answer");
    // 5 s less the 1 ms at which it was sent.
    assert_eq!(
        found.summary,
        "NVMe-oF 1 request: acknowledged after 4.00 us, never answered in 5.00 s; the 40 others after 106 us: the program of 10.0.0.2, \
         not the network: 10.0.0.1 > 10.0.0.2 QP 0x99"
    );
    assert_eq!(
        (found.severity, found.confidence),
        (Severity::Warning, Confidence::High)
    );
}

#[test]
fn what_is_no_missing_answer() {
    let all = |change: fn(&mut ProgramExchange)| {
        let mut last = silent(0x99);
        change(&mut last);
        finding(
            &of(&[exchange(0x11), exchange(0x12), last], &[]),
            "program.no-answer",
        )
        .cloned()
    };
    assert!(all(|_| {}).is_some());
    assert_eq!(
        all(|last| last.acknowledged_ns = None),
        None,
        "the network may have it"
    );
    assert_eq!(all(|last| last.until = Time(100 * MS)), None, "less than 100 ms");
    assert_eq!(all(|last| last.most_pending = 2), None, "several at once");
    // Half of the connections end so: the last SEND wants no answer.
    let run = of(&[exchange(0x11), silent(0x99)], &[]);
    assert_eq!(finding(&run, "program.no-answer"), None);
    // One connection alone, and no service that is known: it may have been the last word.
    let alone = ProgramExchange {
        asked: 21,
        answered: 20,
        ..ProgramExchange {
            pending: 1,
            pending_time: Time(MS),
            ..exchange(0x99)
        }
    };
    let run = of(&[alone], &[]);
    assert_eq!(fired(&run, "program.no-answer").severity, Severity::Info);
    let run = of(&[alone], &[attempt(AttemptResult::Connected)]);
    assert_eq!(fired(&run, "program.no-answer").severity, Severity::Warning);
}

#[test]
fn connections_that_are_refused_unanswered_or_late() {
    let found = |attempts: &[ConnectionAttempt]| finding(&of(&[], attempts), "connection.setup").cloned();
    // IBTA 12.6.7.2: reason 8 is an invalid service id.
    let refused = found(&[attempt(AttemptResult::Rejected(RejectReason(8)))]).unwrap();
    assert_eq!(
        refused.summary,
        "1 connection refused (10.0.0.1 to 10.0.0.2: invalid service id); 0 ns of waiting"
    );
    let repeated = |result| ConnectionAttempt {
        requests: 3,
        last_time: Time(8_600 * MS),
        end_time: Time(8_700 * MS),
        ..attempt(result)
    };
    let unanswered = found(&[repeated(AttemptResult::Unanswered)]).unwrap();
    assert!(
        unanswered
            .summary
            .starts_with("1 connection never answered (10.0.0.1 to 10.0.0.2, 2 repeats 4.30 s apart)"),
        "{}",
        unanswered.summary
    );
    let late = found(&[repeated(AttemptResult::Connected)]).unwrap();
    assert_eq!(
        late.summary,
        "1 connection made late (10.0.0.1 to 10.0.0.2 after 8.70 s, 2 repeats 4.30 s apart); 8.70 s of waiting"
    );
    assert_eq!(
        late.last_time,
        Some(Time(8_700 * MS)),
        "the end of the last attempt"
    );
    // The end of a capture, and what was connected after all, are nothing.
    assert_eq!(found(&[attempt(AttemptResult::Unanswered)]), None);
    let after_all = [
        attempt(AttemptResult::Rejected(RejectReason(10))),
        attempt(AttemptResult::Connected),
    ];
    assert_eq!(found(&after_all), None);
}
