//! Divisions by hand: times in us, and what the states' definitions make of them.

use super::*;

const US: u64 = 1_000;

fn us(time: u64) -> Time {
    Time(1_000_000_000 + time * US)
}

fn request(since: u64, time: u64, kind: RequestKind, outstanding: OpenRequests) -> RequestAfterSilence {
    RequestAfterSilence {
        since: us(since),
        time: us(time),
        kind,
        outstanding,
        in_message: false,
        paused: 0,
        in_turns: false,
    }
}

fn new_after(since: u64, time: u64, outstanding: OpenRequests) -> RequestAfterSilence {
    request(since, time, RequestKind::New, outstanding)
}

/// An answer at `time` to one message of ten PSNs, whose last packet came at `last_request`.
fn answer(division: &mut Division, last_request: u64, time: u64) {
    let gap = division.burst_gap();
    let answer = OutstandingAnswer {
        time: us(time),
        last_request: us(last_request),
        psns: Some(10),
        messages: 1,
    };
    division.answers().answered(&answer, gap);
}

/// The states that have any time, in us, and that their sum is the time from the first packet to the last.
#[track_caller]
fn check(times: &TimeByState, first: u64, last: u64, expected: &[(TimeState, u64)]) {
    let found: Vec<_> = times.iter().filter(|(_, time)| *time > 0).collect();
    let expected: Vec<_> = expected.iter().map(|(state, time)| (*state, time * US)).collect();
    assert_eq!(found, expected);
    assert_eq!(times.sum(), (last - first) * US);
}

#[test]
fn silence_between_answered_messages_is_idle() {
    let mut division = Division::new(us(0), 0);
    division.request(&new_after(0, 0, OpenRequests::Nothing(us(0))));
    // A message from 0 to 5 us, its ACK at 15 us, the next message at 1,015 us.
    answer(&mut division, 5, 15);
    division.request(&new_after(5, 1_015, OpenRequests::Nothing(us(15))));
    let times = division.end(us(1_020), us(1_020), OpenRequests::Something, 0);
    // Nothing more was ever outstanding: it waited for the ACK from 5 to 15 us.
    let expected = [
        (TimeState::Window, 10),
        (TimeState::Sending, 10),
        (TimeState::Idle, 1_000),
    ];
    check(&times, 0, 1_020, &expected);
}

#[test]
fn a_credit_shows_who_was_awaited() {
    // Answered at 15 us, the next message at 1,015 us; its credit came at the time that is given, in us.
    let after_credit = |time: u64, is_newest: bool, in_turns: bool| {
        let mut division = Division::new(us(0), 0);
        division.request(&new_after(0, 0, OpenRequests::Nothing(us(0))));
        answer(&mut division, 5, 15);
        let next = RequestAfterSilence {
            in_turns,
            ..new_after(5, 1_015, OpenRequests::Nothing(us(15)))
        };
        division.request(&next);
        let time = us(time);
        division.credited(us(1_015), OfferedCredit { time, is_newest });
        // A silence at another time is not divided.
        division.credited(us(1_016), OfferedCredit { time, is_newest });
        division.end(us(1_015), us(1_015), OpenRequests::Nothing(us(1_015)), 0)
    };
    // The sender sent 5 us after its only credit: it had waited for that.
    let times = after_credit(1_010, true, false);
    let states = [TimeState::Receiver, TimeState::Sender, TimeState::Idle].map(|state| times.of(state) / US);
    assert_eq!(states, [995, 5, 0]);
    // Others were there, or it was there all the time: the sender's program was awaited.
    for (time, is_newest) in [(1_010, false), (2, true), (100, true)] {
        let times = after_credit(time, is_newest, false);
        let states =
            [TimeState::Receiver, TimeState::Sender, TimeState::Idle].map(|state| times.of(state) / US);
        assert_eq!(states, [0, 1_000, 0], "{time} us");
    }
    // Others filled the port, and nothing of this flow waited for a turn there.
    let times = after_credit(1_010, true, true);
    assert_eq!(times.of(TimeState::Receiver) / US, 995);
    assert_eq!(times.sum(), 1_015 * US);
}

#[test]
fn a_silence_in_which_others_took_their_turns_is_sending() {
    // As above, but that other flows filled the port up to the next message.
    let mut division = Division::new(us(0), 0);
    division.request(&new_after(0, 0, OpenRequests::Nothing(us(0))));
    answer(&mut division, 5, 15);
    division.request(&RequestAfterSilence {
        in_turns: true,
        ..new_after(5, 1_015, OpenRequests::Nothing(us(15)))
    });
    let times = division.end(us(1_015), us(1_015), OpenRequests::Nothing(us(1_015)), 0);
    assert_eq!(times.of(TimeState::Sending), 1_015 * US);
}

#[test]
fn less_outstanding_than_ever_is_no_window() {
    let mut division = Division::new(us(0), 0);
    let gap = division.burst_gap();
    let mut answer = |psns, messages, last_request, time| {
        let answer = OutstandingAnswer {
            time: us(time),
            last_request: us(last_request),
            psns: Some(psns),
            messages,
        };
        division.answers().answered(&answer, gap);
        division.answers().blocked_until(false)
    };
    assert_eq!(answer(100, 10, 5, 15), us(15));
    assert_eq!(answer(50, 5, 5, 16), us(15), "half as much");
    assert_eq!(answer(88, 5, 20, 30), us(30), "seven eighths of the bytes");
    assert_eq!(
        answer(10, 10, 35, 36),
        us(30),
        "the sender did not stand still: 1 us"
    );
}

#[test]
fn a_message_under_way_waits_for_no_other_message() {
    // Three messages are outstanding, as ever, and the third one is being sent: its packets wait for their turn at a port that others share. The
    // answer at 30 us comes while 60 of the most 100 PSNs are outstanding.
    let mut division = Division::new(us(0), 0);
    let gap = division.burst_gap();
    for (psns, last_request, time) in [(100, 5, 6), (60, 20, 30)] {
        let answer = OutstandingAnswer {
            time: us(time),
            last_request: us(last_request),
            psns: Some(psns),
            messages: 3,
        };
        division.answers().answered(&answer, gap);
    }
    assert_eq!(division.answers().blocked_until(false), us(30));
    division.request(&RequestAfterSilence {
        in_message: true,
        ..new_after(20, 40, OpenRequests::Something)
    });
    let times = division.end(us(40), us(40), OpenRequests::Something, 0);
    check(&times, 0, 40, &[(TimeState::Sending, 40)]);
}

#[test]
fn the_time_before_a_run_is_what_caused_it() {
    let mut division = Division::new(us(0), 0);
    // Packets up to 10 us; a timer of 500 us; three packets again up to 515 us; new ones from 516 us to 600 us.
    division.request(&request(10, 510, RequestKind::BeginsRun, OpenRequests::Something));
    division.request(&request(511, 512, RequestKind::GoesOn, OpenRequests::Something));
    division.request(&request(512, 515, RequestKind::GoesOn, OpenRequests::Something));
    division.request(&new_after(515, 516, OpenRequests::Something));
    // An RNR NAK, and the same packet after its timer of 80 us, from 600 to 680 us.
    division.request(&request(
        600,
        680,
        RequestKind::BeginsRun,
        OpenRequests::Something,
    ));
    division.run_caused(TimeState::Rnr, 80 * US);
    division.run_caused(TimeState::Timeout, 500 * US);
    let times = division.end(us(680), us(680), OpenRequests::Something, 0);
    let expected = [
        (TimeState::Timeout, 500),
        (TimeState::Rnr, 80),
        (TimeState::Recovering, 5),
        (TimeState::Sending, 95),
    ];
    check(&times, 0, 680, &expected);
}

#[test]
fn a_run_never_takes_more_than_the_silences_there_were() {
    let mut division = Division::new(us(0), 0);
    division.request(&request(0, 100, RequestKind::MayBeginRun, OpenRequests::NotKnown));
    division.run_caused(TimeState::Timeout, 5_000 * US);
    let times = division.end(us(100), us(100), OpenRequests::NotKnown, 0);
    check(&times, 0, 100, &[(TimeState::Timeout, 100)]);
}

#[test]
fn answers_later_than_the_least_and_the_spread_are_the_network() {
    let mut division = Division::new(us(0), 0);
    for round in 0..8 {
        division.answers().round_trip(us(round), us(round + 10), us(0));
    }
    // All took 10 us, so beyond 15 us (half of the least) an answer is late. Requests every us from 100 to 200 us, each answered after
    // 40 us: who sends meanwhile waits for nothing.
    let mut division_late = division.clone();
    for sent in 100..=160 {
        division_late
            .answers()
            .round_trip(us(sent), us(sent + 40), us(sent + 40));
    }
    let times = division_late.end(us(200), us(200), OpenRequests::Something, 0);
    check(&times, 0, 200, &[(TimeState::Sending, 200)]);
    // A lone request at 100 us, answered at 140 us, while more than that was outstanding once: it was due at 110 us.
    division.answers().round_trip(us(100), us(140), us(100));
    division.request(&new_after(100, 200, OpenRequests::Nothing(us(140))));
    let times = division.end(us(200), us(200), OpenRequests::Something, 0);
    let expected = [
        (TimeState::Network, 30),
        (TimeState::Sending, 110),
        (TimeState::Idle, 60),
    ];
    check(&times, 0, 200, &expected);
}

#[test]
fn what_is_not_captured_is_unknown() {
    let mut division = Division::new(us(0), 0);
    // The other direction is not known: between messages anything may be awaited.
    division.request(&new_after(10, 110, OpenRequests::NotKnown));
    // Within a message the sender has more to send, for less than 1 ms.
    division.request(&RequestAfterSilence {
        in_message: true,
        ..new_after(120, 220, OpenRequests::NotKnown)
    });
    division.request(&request(230, 330, RequestKind::AfterLoss, OpenRequests::NotKnown));
    division.request(&RequestAfterSilence {
        in_message: true,
        ..new_after(330, 1_430, OpenRequests::NotKnown)
    });
    let times = division.end(us(1_430), us(1_430), OpenRequests::NotKnown, 0);
    let expected = [
        (TimeState::Sending, 10 + 10 + 100 + 10),
        (TimeState::Unknown, 100 + 100 + 1_100),
    ];
    check(&times, 0, 1_430, &expected);
}

#[test]
fn pauses_win_over_waiting() {
    let mut division = Division::new(us(0), 0);
    // 60 us of pauses while the flow was silent from 10 to 110 us, 30 us of which its answers were awaited.
    division.request(&RequestAfterSilence {
        paused: 60 * US,
        ..new_after(10, 110, OpenRequests::Nothing(us(40)))
    });
    let times = division.end(us(110), us(110), OpenRequests::Something, 60 * US);
    let expected = [
        (TimeState::Paused, 60),
        (TimeState::Sending, 10),
        (TimeState::Idle, 40),
    ];
    check(&times, 0, 110, &expected);
}

/// A flow sends 32 packets of 1,000 bytes, one every `every` us, and is looked at.
fn send(division: &mut Division, from: u64, every: u64, packets: u64) -> u64 {
    let to = from + 32 * every;
    if every > 1 {
        for at in 0..32 {
            let (since, time) = (from + at * every, from + (at + 1) * every);
            let packet = RequestAfterSilence {
                in_message: true,
                ..new_after(since, time, OpenRequests::Something)
            };
            division.request(&packet);
        }
    }
    division.sent(progress(to, packets + 32), 0);
    to
}

fn progress(time: u64, packets: u64) -> SendingProgress {
    SendingProgress {
        time: us(time),
        packets,
        bytes: packets * 1_000,
    }
}

#[test]
fn below_its_rate_after_a_notification_it_is_slowed() {
    let mut division = Division::new(us(0), 0);
    division.sent(progress(0, 0), 0);
    let time = send(&mut division, 0, 1, 0);
    assert_eq!(time, 32);
    division.notified(progress(32, 32));
    // A tenth of its rate for 320 us, then the whole rate: a window of 32 us shows that.
    let time = send(&mut division, time, 10, 32);
    let time = send(&mut division, time, 1, 64);
    assert_eq!(time, 384);
    let times = division.end(us(time), us(time), OpenRequests::Something, 0);
    check(
        &times,
        0,
        384,
        &[(TimeState::Slowed, 320), (TimeState::Sending, 64)],
    );
}

#[test]
fn a_sender_that_keeps_its_rate_is_not_slowed() {
    let mut division = Division::new(us(0), 0);
    division.sent(progress(0, 0), 0);
    let time = send(&mut division, 0, 1, 0);
    division.notified(progress(32, 32));
    let time = send(&mut division, time, 1, 32);
    let times = division.end(us(time), us(time), OpenRequests::Something, 0);
    check(&times, 0, 64, &[(TimeState::Sending, 64)]);
}

#[test]
fn datagrams_are_sent_or_idle() {
    let mut division = Division::new(us(0), 0);
    division.request(&new_after(20, 520, OpenRequests::NoAnswers));
    let times = division.end(us(540), us(540), OpenRequests::NoAnswers, 0);
    check(
        &times,
        0,
        540,
        &[(TimeState::Sending, 40), (TimeState::Idle, 500)],
    );
}

#[test]
fn stamps_out_of_order_keep_the_sum() {
    let mut division = Division::new(us(100), 0);
    division.request(&new_after(150, 120, OpenRequests::Something));
    division.request(&new_after(140, 160, OpenRequests::Nothing(us(130))));
    division.request(&request(
        170,
        150,
        RequestKind::BeginsRun,
        OpenRequests::Something,
    ));
    let times = division.end(us(90), us(200), OpenRequests::Nothing(us(300)), 0);
    assert_eq!(times.sum(), 100 * US);
}
