//! Times of requests with whole microseconds between them, and what is kept of many samples.

use super::*;

const US: u64 = 1_000;

/// A message of one packet at `psn`, sent `at` so many microseconds.
fn message(psn: u32, at: u64, ack_requested: bool) -> SentRequest {
    SentRequest {
        first: u64::from(psn),
        end: u64::from(psn) + 1,
        time: Time(at * US),
        what: What::Message,
        is_first: true,
        is_last: true,
        after_gap: false,
        ack_requested,
        bytes: (psn + 1) * 1_024,
    }
}

fn row(times: &Times) -> FlowRow {
    let mut row = FlowRow::default();
    times.write_flow(&mut row);
    row
}

#[test]
fn more_than_there_is_room_for() {
    let mut times = Times::default();
    let most = MAX_OUTSTANDING as u64;
    // 100 requests at 1, 2, ... us; the first 64 of them are remembered.
    for psn in 0..100 {
        times.sent(&message(psn, u64::from(psn) + 1, true));
    }
    // An answer to one of those that are not: the newest one it covers is unknown, 64 messages are measured.
    times.answered(Answer::Ack, 80, Time(200 * US), 100 * 1_024, None);
    let seen = row(&times);
    assert_eq!((seen.ack_rtt_count, seen.message_time_count), (0, most));
    // Room again: the requests from now on, not those between.
    times.sent(&message(100, 201, true));
    times.answered(Answer::Ack, 100, Time(210 * US), 101 * 1_024, None);
    assert_eq!(row(&times).ack_rtt_count, 0);
    times.answered(Answer::Ack, 101, Time(221 * US), 101 * 1_024, None);
    let seen = row(&times);
    assert_eq!((seen.ack_rtt_count, seen.ack_rtt_max_ns), (1, Some(20 * US)));
    assert_eq!(seen.message_time_count, most + 1);
}

#[test]
fn measurements_are_counted_where_somebody_reads_them() {
    let mut times = Times::default();
    let mut measures = TapMeasures::default();
    for psn in 1..4 {
        times.sent(&message(psn, psn.into(), true));
    }
    // PSN 3 was sent at 3 us and answered at 13: a round trip of 10 us, and messages of 12, 11 and 10 us.
    times.answered(Answer::Ack, 4, Time(13 * US), 3 * 1_024, Some(&mut measures));
    // Bounds are 1, 2, 4, 8 and 16 us.
    assert_eq!(
        (measures.ack_rtt.counts()[4], measures.ack_rtt.sum()),
        (1, Span(10 * US))
    );
    assert_eq!(
        (measures.message.counts()[4], measures.message.sum()),
        (3, Span(33 * US))
    );
}

#[test]
fn an_answer_to_the_very_request_is_measured_though_others_are_not_remembered() {
    let mut times = Times::default();
    for psn in 0..100 {
        times.sent(&message(psn, u64::from(psn) + 1, true));
    }
    // PSN 39 was sent at 40 us.
    times.answered(Answer::Ack, 40, Time(140 * US), 100 * 1_024, None);
    assert_eq!(row(&times).ack_rtt_max_ns, Some(100 * US));
}

#[test]
fn a_nak_measures_messages_and_no_round_trip() {
    let mut times = Times::default();
    times.sent(&message(0, 10, true));
    times.answered(Answer::Nak, 1, Time(50 * US), 1_024, None);
    let seen = row(&times);
    assert_eq!((seen.ack_rtt_count, seen.message_time_max_ns), (0, Some(40 * US)));
}

#[test]
fn a_read_ends_with_its_last_response() {
    let mut times = Times::default();
    let read = |first: u32, end, at| SentRequest {
        end,
        what: What::Read,
        ..message(first, at, true)
    };
    times.sent(&read(0, 4, 10));
    times.sent(&read(4, 8, 11));
    for (psn, at) in [(1, 20), (2, 21), (3, 22)] {
        times.answered(Answer::ReadBegun, psn, Time(at * US), 0, None);
    }
    times.answered(Answer::ReadDone, 4, Time(23 * US), 0, None);
    // The last response of the second was not captured; an ACK passes it.
    times.answered(Answer::ReadBegun, 5, Time(24 * US), 0, None);
    times.answered(Answer::Ack, 9, Time(30 * US), 0, None);
    let seen = row(&times);
    assert_eq!((seen.read_time_count, seen.read_time_max_ns), (1, Some(13 * US)));
    assert_eq!(times.waiting_since(), Time(0), "nothing waits");
}

#[test]
fn steps_of_the_stamps() {
    let stamps = |times: &[(u64, u64)]| {
        let mut stamps = Stamps::default();
        for (from, to) in times {
            stamps.note(Time(*from), Time(*to));
        }
        stamps
    };
    let nanoseconds = stamps(&[(1_000, 2_001), (5_000, 5_900)]);
    assert_eq!(
        (nanoseconds.quantum(), nanoseconds.trusted(Some(900))),
        (1, Some(900))
    );
    let microseconds = stamps(&[(1_000, 9_000), (5_000, 9_000)]);
    assert_eq!(
        (
            microseconds.trusted(Some(3_999)),
            microseconds.trusted(Some(4_000))
        ),
        (None, Some(4_000))
    );
    // One in two is zero, the other a step of 7 us: 28 us are the least.
    let batches = stamps(&[(1_001, 1_001), (2_001, 9_001)]);
    assert_eq!(
        (batches.trusted(Some(27_999)), batches.trusted(Some(28_000))),
        (None, Some(28_000))
    );
}

#[test]
fn few_samples_are_exact_and_many_are_spread() {
    let mut few = Few::default();
    assert_eq!((few.median(), few.max()), (None, None));
    for value in [5, 1, 4, 2] {
        few.add(value);
    }
    // Nearest rank: the 2nd of 4.
    assert_eq!((few.median(), few.max()), (Some(2), Some(5)));
    let mut many = Few::default();
    for value in 0..1_000 {
        many.add(value);
    }
    // 0 to 999: kept are multiples of 64, 0 to 960; the 8th of the 16 is 448.
    assert_eq!((many.median(), many.max()), (Some(448), Some(999)));
    assert!((8..=16).contains(&many.len));
}
