//! `gpu.waits`: readings of GPUs beside episodes. A reading is of 100 ms, an episode fills two of them and begins every 37th at the earliest.

use roce_model::{Columns, Counter, SampleColumns, SampleRow, Time};

use super::super::super::rows::TestRun;
use super::{Confidence, EventKind, RunSummary};
use super::{MS, RULES, event, finding, fired, flow};

/// Length of a reading.
const READING: u64 = 100 * MS;
/// Readings in a run: a minute.
const READINGS: u64 = 600;
/// Load when nothing is in the way.
const BUSY: f64 = 0.95;

/// First readings of `count` episodes, whose distances have no common period.
fn starts(count: u64) -> Vec<u64> {
    (0..count)
        .map(|number| 30 + 37 * number + (number * number * 7) % 19)
        .collect()
}

/// True if the episodes fill the reading.
fn is_congested(reading: u64, starts: &[u64]) -> bool {
    starts.iter().any(|start| (*start..start + 2).contains(&reading))
}

fn rows(gpu: &'static str, load: impl Fn(u64) -> f64) -> SampleColumns {
    let mut rows = SampleColumns::default();
    for reading in 0..READINGS {
        rows.push(&SampleRow {
            time: Time((reading + 1) * READING),
            source: "gpu",
            node: "h1".into(),
            object: gpu.into(),
            counter: Counter::GpuUtilization.name(),
            kind: "gauge",
            unit: "ratio",
            value: load(reading),
            interval_ns: Some(READING),
            ..SampleRow::default()
        });
    }
    rows
}

/// A run with episodes of 200 ms from these readings on, as pauses show them: each pause is one event.
fn run(starts: &[u64], gpus: &[SampleColumns]) -> RunSummary {
    let mut run = TestRun::new();
    let data = flow(1, 2);
    for start in starts {
        let begin = start * READING;
        let mut pause = event(
            EventKind::PauseInterval,
            &data,
            begin,
            2 * READING,
            "priority 3 paused",
        );
        (pause.psn, pause.flow_id) = (Some(3), None);
        run.bin(begin / MS, &[], &[pause]);
    }
    for rows in gpus {
        run.verdicts().samples(rows);
    }
    run.conclude()
}

/// A load that falls in the episodes.
fn following(starts: &[u64]) -> impl Fn(u64) -> f64 {
    move |reading| if is_congested(reading, starts) { 0.4 } else { BUSY }
}

#[test]
fn a_load_that_falls_with_episodes_waits() {
    let starts = starts(12);
    let summary = run(
        &starts,
        &[rows("gpu0", following(&starts)), rows("gpu1", |_| BUSY)],
    );
    assert_eq!(summary.episodes.len(), 12, "{:?}", summary.episodes);
    let waits = fired(&summary, "gpu.waits");
    assert_eq!(
        (
            super::count(waits, "episodes"),
            super::count(waits, "episodes_with_fall")
        ),
        (12, 12)
    );
    assert_eq!(
        (super::count(waits, "gpus"), super::count(waits, "gpus_judged")),
        (1, 2)
    );
    assert!((super::number(waits, "load_in_episodes") - 0.4).abs() < 1e-9);
    assert!((super::number(waits, "load_beside") - BUSY).abs() < 1e-9);
    assert_eq!(waits.confidence, Confidence::Medium);
    assert_eq!(waits.first_time, Some(Time(starts[0] * READING)));
    assert!(
        waits.summary.contains("gpu0") && waits.summary.contains("95 % to 40 %"),
        "{}",
        waits.summary
    );
}

#[test]
fn it_is_never_sure() {
    // Five episodes, and one of six without a fall: low.
    for count in [5, 6] {
        let starts = starts(count);
        let falling = &starts[..5];
        let summary = run(&starts, &[rows("gpu0", following(falling))]);
        assert_eq!(
            fired(&summary, "gpu.waits").confidence,
            Confidence::Low,
            "{count}"
        );
    }
    let rule = RULES.iter().find(|rule| rule.id == "gpu.waits").unwrap();
    assert!(!rule.confidence.starts_with("high"));
}

#[test]
fn a_load_that_falls_as_often_by_itself_does_not_wait() {
    // In two of every four readings, episodes or not.
    let starts = starts(12);
    let summary = run(
        &starts,
        &[rows("gpu0", |reading| if reading % 4 < 2 { 0.3 } else { BUSY })],
    );
    assert_eq!(finding(&summary, "gpu.waits"), None);
    // At all episodes, and as often without one: ten readings later each time.
    let later: Vec<u64> = starts.iter().map(|start| start + 10).collect();
    let both = |reading| {
        if is_congested(reading, &starts) || is_congested(reading, &later) || reading % 16 < 2 {
            0.4
        } else {
            BUSY
        }
    };
    assert_eq!(finding(&run(&starts, &[rows("gpu0", both)]), "gpu.waits"), None);
}

#[test]
fn the_rhythm_of_a_job_is_not_waiting() {
    // Every tenth reading begins an exchange of data: the network is congested, and nothing is computed. At a tenth of the other places both
    // meet as well, more than gpu_chance.
    let starts: Vec<u64> = (0..50).map(|step| 30 + 10 * step).collect();
    let summary = run(&starts, &[rows("gpu0", following(&starts))]);
    assert_eq!(finding(&summary, "gpu.waits"), None);
}

#[test]
fn another_clock_gives_no_finding() {
    // The load falls 1.5 s after each episode, or before it: the clocks differ, or it is none of the network's.
    let starts = starts(12);
    for off in [15, -15i64] {
        let moved: Vec<u64> = starts
            .iter()
            .map(|start| start.saturating_add_signed(off))
            .collect();
        let summary = run(&starts, &[rows("gpu0", following(&moved))]);
        assert_eq!(finding(&summary, "gpu.waits"), None, "{off}");
    }
}

#[test]
fn few_episodes_and_short_ones_give_no_finding() {
    for count in [1, 2, 4] {
        let starts = starts(count);
        let summary = run(&starts, &[rows("gpu0", following(&starts))]);
        assert_eq!(finding(&summary, "gpu.waits"), None, "{count}");
    }
    // None at all, though the load falls.
    let never = run(&[], &[rows("gpu0", following(&starts(12)))]);
    assert_eq!(finding(&never, "gpu.waits"), None);
    // Without readings of GPUs.
    assert_eq!(finding(&run(&starts(12), &[]), "gpu.waits"), None);
}

#[test]
fn a_job_that_ended_does_not_wait() {
    // It ends with the first episode, and others follow.
    let starts = starts(12);
    let ended = |reading| if reading < starts[0] { BUSY } else { 0.0 };
    assert_eq!(finding(&run(&starts, &[rows("gpu0", ended)]), "gpu.waits"), None);
    // It fades out over all of them: each episode is lower than what was before, none lower than what came behind.
    #[expect(clippy::cast_precision_loss, reason = "hundreds")]
    let fading = |reading: u64| 1.0 - reading as f64 / READINGS as f64;
    assert_eq!(finding(&run(&starts, &[rows("gpu0", fading)]), "gpu.waits"), None);
    // An idle GPU.
    assert_eq!(
        finding(&run(&starts, &[rows("gpu0", |_| 0.0)]), "gpu.waits"),
        None
    );
}

#[test]
fn loads_without_any_relation_rarely_wait() {
    // 200 runs, in which the load falls for two readings at 40 places of a linear congruential generator: an eighth of the time. By chance
    // ten of twelve episodes meet one in fewer than one run of 10^6 (binomial, with a third of the episodes touched).
    let starts = starts(12);
    let mut state = 1u64;
    for _ in 0..200 {
        let mut loads = vec![BUSY; usize::try_from(READINGS).unwrap()];
        for _ in 0..40 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let place = usize::try_from((state >> 33) % (READINGS - 2)).unwrap();
            (loads[place], loads[place + 1]) = (0.3, 0.3);
        }
        let load = |reading: u64| loads[usize::try_from(reading).unwrap()];
        assert_eq!(finding(&run(&starts, &[rows("gpu0", load)]), "gpu.waits"), None);
    }
}

#[test]
fn readings_and_gpus_are_bounded() {
    let mut tally = super::super::gpu::GpuTally::default();
    for _ in 0..10 {
        tally.samples(&rows("gpu0", |_| BUSY));
    }
    for number in 0..400 {
        let mut columns = SampleColumns::default();
        columns.push(&SampleRow {
            time: Time(READING),
            counter: Counter::GpuUtilization.name(),
            object: format!("gpu{number}").into(),
            interval_ns: Some(READING),
            value: 0.5,
            ..SampleRow::default()
        });
        tally.samples(&columns);
    }
    assert_eq!(tally.kept(), (256, true));
}
