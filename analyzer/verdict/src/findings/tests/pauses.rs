//! Pauses: how long a priority stood still, with and without the speed of its link.

use roce_model::{EventRow, MacAddress, Pause, PauseFrame, PauseKind, Period, TapRow};

use super::super::super::Settings;
use super::*;

fn pauses(length: u64, pause: u64, priority: u32) -> RunSummary {
    let mut run = TestRun::with(Settings {
        link_rate: Some(100_000_000_000),
        ..Settings::default()
    });
    run.summary.taps = vec![TapRow {
        first_time: Some(Time(0)),
        last_time: Some(Time(length)),
        ..TapRow::default()
    }];
    let event = EventRow {
        time: Time(0),
        kind: EventKind::PauseInterval,
        psn: Some(priority),
        value: Some(pause),
        ..EventRow::default()
    };
    run.bin(0, &[], &[event]);
    run.conclude()
}

#[test]
fn a_priority_that_stands_still() {
    // The share is that of the worst 10 ms: 0.5 ms of them are 5 %, however long the capture is.
    for length in [10 * MS, 100 * MS, 100_000 * MS] {
        let run = pauses(length, MS / 2, 3);
        let storm = fired(&run, "pause.storm");
        let of = if length > 10 * MS {
            "its worst 10 ms"
        } else {
            "the time"
        };
        assert_eq!(
            storm.summary,
            format!("paused: priority 3 for 5.0 % of {of}, at most 500 us at a stretch")
        );
        assert_eq!(
            (storm.severity, storm.confidence),
            (Severity::Warning, Confidence::High)
        );
        assert!(finding(&pauses(length, MS / 2 - 1, 3), "pause.storm").is_none());
        let severity = |pause| fired(&pauses(length, pause, 3), "pause.storm").severity;
        assert_eq!(severity(5 * MS), Severity::Critical);
        assert_eq!(severity(5 * MS - 1), Severity::Warning);
    }
    // A third of a capture of 300 us is 100 us; less is a burst that PFC absorbed.
    assert_eq!(
        fired(&pauses(300_000, 100_000, 3), "pause.storm").severity,
        Severity::Warning
    );
    assert!(finding(&pauses(300_000, 99_999, 3), "pause.storm").is_none());
}

#[test]
fn quiet_behind_the_pauses_changes_nothing() {
    // 100 us of 300 us, and one frame ten seconds later: still a third, of the stretch around the pause.
    let mut run = TestRun::with(Settings {
        link_rate: Some(100_000_000_000),
        ..Settings::default()
    });
    run.summary.taps = vec![TapRow {
        first_time: Some(Time(0)),
        last_time: Some(Time(10_000 * MS)),
        ..TapRow::default()
    }];
    let stretch = |first, last| Period {
        first: Time(first),
        last: Time(last),
    };
    run.summary.stretches = vec![vec![stretch(0, 300_000), stretch(10_000 * MS, 10_000 * MS)]];
    let event = EventRow {
        time: Time(0),
        kind: EventKind::PauseInterval,
        psn: Some(3),
        value: Some(100_000),
        ..EventRow::default()
    };
    run.bin(0, &[], &[event]);
    let run = run.conclude();
    let storm = fired(&run, "pause.storm");
    assert_eq!(storm.severity, Severity::Warning);
    assert!(
        storm
            .summary
            .starts_with("paused: priority 3 for 33 % of its worst 300 us"),
        "{}",
        storm.summary
    );
}

#[test]
fn pauses_that_frame_a_standstill_prove_it_at_any_speed() {
    // One frame of 65,535 quanta: 42 us at 800 Gbit/s, 3.36 ms at 10 Gbit/s. The flow is silent until the frame that ends it.
    let storm = |ended: u64, silent_until: u64| {
        let data = flow(1, 2);
        let mut run = TestRun::new();
        run.summary.taps = vec![TapRow {
            first_time: Some(Time(0)),
            last_time: Some(Time(1_000 * MS)),
            ..TapRow::default()
        }];
        for (time, quanta) in [(MS, u16::MAX), (ended, 0)] {
            let pause = Pause {
                source: MacAddress::default(),
                destination: MacAddress::PAUSE,
                kind: PauseKind::Priority,
                enabled: 0b1000,
                quanta: [quanta; 8],
                present: 8,
            };
            run.verdicts().pause(&PauseFrame {
                before: 0,
                reported: true,
                time: Time(time),
                tap: TapId(0),
                pause,
            });
        }
        let stall = event(
            EventKind::Stall,
            &data,
            MS - 2_000,
            silent_until - (MS - 2_000),
            "",
        );
        run.bin(3, &[(&data, |_| {})], &[stall]);
        let run = run.conclude();
        let storm = fired(&run, "pause.storm").clone();
        (storm.severity, storm.confidence, storm.summary)
    };
    let (severity, confidence, summary) = storm(4 * MS, 4 * MS + 5_000);
    assert_eq!((severity, confidence), (Severity::Warning, Confidence::High));
    assert!(
        summary.starts_with(
            "10.0.0.1 > 10.0.0.2 QP 0x11 stood still for 3.01 ms, from the frame that paused it"
        ),
        "{summary}"
    );
    // It goes on long after the frames: another reason.
    assert_eq!(storm(4 * MS, 9 * MS).0, Severity::Info);
}

#[test]
fn pause_frames_without_the_links_speed() {
    let frames = |kind: PauseKind, frames: u64, quanta: u16| {
        let mut run = TestRun::new();
        for at in 0..frames {
            let frame = PauseFrame {
                before: 0,
                reported: true,
                time: Time(at * 1_000),
                tap: TapId(0),
                pause: Pause {
                    source: MacAddress::default(),
                    destination: MacAddress::PAUSE,
                    kind,
                    enabled: 0b1000,
                    quanta: [quanta; 8],
                    present: 8,
                },
            };
            run.verdicts().pause(&frame);
        }
        run.conclude()
    };
    let run = frames(PauseKind::Priority, 1, 1);
    let storm = fired(&run, "pause.storm");
    assert_eq!(
        storm.summary,
        "at least 1 pause frame stopped priority 3 by 00:00:00:00:00:00; for how long is not known without --link-rate"
    );
    assert_eq!(
        (storm.severity, storm.confidence),
        (Severity::Info, Confidence::Low)
    );
    assert!(
        finding(&frames(PauseKind::Priority, 500, 0), "pause.storm").is_none(),
        "each of them ends a pause"
    );
    let run = frames(PauseKind::Link, 1, 1);
    let storm = fired(&run, "pause.storm");
    assert!(
        storm
            .summary
            .ends_with("; 1 frame of 802.3x stop the whole link instead of one priority"),
        "{}",
        storm.summary
    );
    assert_eq!(storm.severity, Severity::Warning);
    assert!(finding(&frames(PauseKind::Link, 9, 0), "pause.storm").is_none());
}

#[test]
fn the_share_of_a_pause_by_speed() {
    // 30 pauses of 247 us in 10 ms: 74 %. Each begins with 65,535 quanta and ends with a frame of 0: 65,535 x 512 bits take
    // 41.9 us at 800 Gbit/s, so that at this speed they are 30 x 41.9 us long: 12.6 %. At 50 Gbit/s they would last 671 us.
    let mut run = TestRun::new();
    run.summary.taps = vec![TapRow {
        first_time: Some(Time(0)),
        last_time: Some(Time(10 * MS)),
        ..TapRow::default()
    }];
    let frame = |time: u64, quanta: u16| PauseFrame {
        before: 0,
        reported: true,
        time: Time(time),
        tap: TapId(0),
        pause: Pause {
            source: MacAddress::default(),
            destination: MacAddress::PAUSE,
            kind: PauseKind::Priority,
            enabled: 0b1000,
            quanta: [quanta; 8],
            present: 8,
        },
    };
    for cycle in 0..30u64 {
        run.verdicts().pause(&frame(cycle * 333_000, u16::MAX));
        run.verdicts().pause(&frame(cycle * 333_000 + 247_000, 0));
    }
    let run = run.conclude();
    let storm = fired(&run, "pause.storm");
    assert_eq!(
        storm.summary,
        "paused: priority 3 by 00:00:00:00:00:00 for 74 % at 10 Gbit/s, 74 % at 50 Gbit/s, 13 % at 800 Gbit/s of the time, \
         by at least 30 pause frames; the link's speed is not known"
    );
    assert_eq!(
        (storm.severity, storm.confidence),
        (Severity::Warning, Confidence::High),
        "5 % is exceeded at any speed"
    );
    assert!((number(storm, "share_at_most") - 0.741).abs() < 1e-12);
    assert!((number(storm, "share_at_least") - 30.0 * 41.942e-6 / 10e-3).abs() < 1e-4);
}
