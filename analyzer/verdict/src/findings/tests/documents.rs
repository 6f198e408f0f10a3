//! Documents of a job of four ranks, and what its packets show. Expected values follow from the texts of the rules.

use roce_model::{
    Address, Confidence, CreditRow, Period, RankState, RankStateRow, RunSummary, Severity, Span, Time,
    TraceRow, TraceSource,
};

use super::super::add_stuck_job;
use super::{MS, count, fired};

const S: u64 = 1_000 * MS;

fn host(rank: u32) -> Address {
    Address::v4([10, 77, 1, u8::try_from(rank + 1).unwrap()])
}

fn state(rank: u32, state: RankState, sequence: u64) -> RankStateRow {
    RankStateRow {
        rank: Some(rank),
        communicator: Some("0x1".into()),
        ranks: Some(4),
        address: Some(host(rank)),
        state,
        operation: "AllReduce".into(),
        sequence: Some(sequence),
        ..RankStateRow::default()
    }
}

/// Rank 2 holds four credits of rank 3; all are silent from 100 ms on, and the capture ends after `end`.
fn run(form: TraceSource, rank_states: Vec<RankStateRow>, end: u64) -> RunSummary {
    let credit = |sender: u32| CreditRow {
        sender: host(sender),
        receiver: host((sender + 1) % 4),
        sender_rank: Some(sender),
        receiver_rank: Some((sender + 1) % 4),
        credits_unused: if sender == 2 { 4 } else { 0 },
        last_ack_time: Some(Time(S + 90 * MS)),
        last_time: Some(Time(S + 100 * MS)),
        ..CreditRow::default()
    };
    let mut run = RunSummary {
        span: Some(Period {
            first: Time(S),
            last: Time(S + end),
        }),
        traces: vec![TraceRow {
            form,
            ..TraceRow::default()
        }],
        rank_states,
        credits: (0..4).map(credit).collect(),
        ..RunSummary::default()
    };
    add_stuck_job(&mut run);
    run
}

/// Answers of RAS, each at a time with the counts of the four ranks.
fn answers(answers: &[(u64, [u64; 4])]) -> Vec<RankStateRow> {
    let of = |(local, counts): &(u64, [u64; 4])| {
        let local_s = Some(*local);
        let rows = (0..4).zip(*counts).map(move |(rank, launched)| RankStateRow {
            local_s,
            ..state(rank, RankState::Running, launched)
        });
        rows.collect::<Vec<_>>()
    };
    answers.iter().flat_map(of).collect()
}

fn ras(of: &[(u64, [u64; 4])]) -> RunSummary {
    run(TraceSource::Ras, answers(of), 10 * S)
}

#[test]
fn a_dead_rank_is_named_with_its_connection() {
    let mut states: Vec<RankStateRow> = (0..4).map(|rank| state(rank, RankState::Running, 5)).collect();
    states[2].state = RankState::Dead;
    let run = run(TraceSource::Ras, states, 10 * S);
    let found = fired(&run, "job.stuck");
    assert_eq!(
        (found.severity, found.confidence),
        (Severity::Critical, Confidence::High)
    );
    assert_eq!(count(found, "credits_unused"), 4);
    assert!(
        found
            .evidence
            .to_string()
            .contains("10.77.1.3[rank2] > 10.77.1.4[rank3]")
    );
    // From 100 ms to 10 s.
    assert_eq!(found.waited_ns, Some(9_900 * MS));
    assert_eq!(count(found, "last_ack_after_ns"), 90 * MS);
    assert_eq!(count(found, "silent_ns"), 9_900 * MS);
    assert!(
        run.sentence.starts_with("Rank 2 (10.77.1.3) is considered dead"),
        "{}",
        run.sentence
    );
}

#[test]
fn counts_of_ras_are_asked_twice() {
    // One behind in one answer is normal; so are counts that go on, whoever is one behind.
    for healthy in [
        &[(10, [5, 5, 4, 5])][..],
        &[(10, [5, 5, 5, 5]), (20, [5, 5, 5, 5])],
        &[(10, [5, 5, 4, 5]), (20, [9, 9, 8, 9])],
        // An answer that is given twice says nothing more.
        &[(10, [5, 5, 4, 5]), (10, [5, 5, 4, 5])],
    ] {
        assert_eq!(ras(healthy).findings, [], "{healthy:?}");
    }
    let stands = ras(&[(10, [5, 5, 4, 5]), (20, [5, 5, 4, 5])]);
    let found = fired(&stands, "job.stuck");
    assert_eq!(
        (found.severity, found.confidence),
        (Severity::Critical, Confidence::High)
    );
    assert!(
        found
            .summary
            .contains("stands at AllReduce 4 in 2 answers of RAS within 10 s, others at 5"),
        "{}",
        found.summary
    );
    // Its connections are in use until the end: it is slow, or others have nothing to do.
    let used = run(
        TraceSource::Ras,
        answers(&[(10, [5, 5, 4, 5]), (20, [5, 5, 4, 5])]),
        200 * MS,
    );
    assert_eq!(fired(&used, "job.stuck").severity, Severity::Warning);
    let far = ras(&[(10, [9, 9, 4, 9])]);
    let found = fired(&far, "job.stuck");
    assert_eq!(
        (found.severity, found.confidence),
        (Severity::Info, Confidence::Low)
    );
}

/// Dumps of flight recorders: rank 2 has not completed 8, which it enqueued at 60 ms; the longest time between two was 9 ms.
fn dumps(others: RankState, end: u64) -> RunSummary {
    let of = |rank: u32| RankStateRow {
        gap_ns: Some(9 * MS),
        begin_time: (rank == 2 || others != RankState::Measured).then_some(Time(S + 60 * MS)),
        known_time: Some(Time(S + 62 * MS)),
        ..state(rank, if rank == 2 { RankState::Scheduled } else { others }, 8)
    };
    run(TraceSource::FlightRecorder, (0..4).map(of).collect(), end)
}

#[test]
fn a_collective_that_is_not_completed_needs_silence() {
    // A dump of a job that runs has such a collective, too: connections were in use 100 ms before the end.
    for others in [RankState::Measured, RankState::Started] {
        assert_eq!(dumps(others, 200 * MS).findings, []);
        let run = dumps(others, 10 * S);
        let found = fired(&run, "job.stuck");
        assert_eq!(
            (found.severity, found.confidence),
            (Severity::Critical, Confidence::High)
        );
        assert_eq!((count(found, "sequence"), count(found, "ranks")), (8, 1));
        assert_eq!(found.aggressors.to_string(), "10.77.1.3[rank2]");
    }
    // Where all wait alike nobody is the cause.
    let all = dumps(RankState::Scheduled, 10 * S);
    assert!(fired(&all, "job.stuck").summary.contains("none stands out"));
}

#[test]
fn a_collective_before_later_traffic_was_completed() {
    // It was enqueued 50 s before the connections became silent: more than a second and three times 9 ms.
    let row = RankStateRow {
        gap_ns: Some(9 * MS),
        begin_time: Some(Time(0)),
        known_time: Some(Time(MS)),
        ..state(2, RankState::Started, 8)
    };
    assert_eq!(run(TraceSource::FlightRecorder, vec![row], 10 * S).findings, []);
}

/// Medians of the lengths of eight collectives, in microseconds.
fn medians(lengths: [u64; 4], collectives: u64) -> RunSummary {
    let row = |(rank, length): (u32, u64)| RankStateRow {
        median_ns: Some(Span(length * 1_000).0),
        collectives,
        ..state(rank, RankState::Measured, collectives)
    };
    run(
        TraceSource::Inspector,
        (0..4).zip(lengths).map(row).collect(),
        10 * S,
    )
}

#[test]
fn the_rank_with_the_shortest_time_is_late() {
    let run = medians([3_125, 3_134, 129, 3_142], 8);
    let found = fired(&run, "rank.last");
    assert_eq!(count(found, "rank"), 2);
    // 8 x (3,125 - 129) us.
    assert_eq!(found.waited_ns, Some(23_968_000));
    for healthy in [
        medians([130, 131, 129, 133], 8),
        // 40 us less is no price, whatever part it is.
        medians([70, 71, 30, 72], 8),
        // Two that are short do not stand out, nor does anything of four collectives.
        medians([3_125, 130, 129, 3_142], 8),
        medians([3_125, 3_134, 129, 3_142], 4),
    ] {
        assert_eq!(healthy.findings, []);
    }
}
