//! Collectives of merged traces: ten of 10 ms, of which the last one takes longer. Expected values follow from the rule's text.

use roce_model::{
    CollectiveCallRow, Confidence, EpisodeKind, EpisodeRow, RunSummary, Severity, Time, TraceRow,
};

use super::super::add_slowed_collectives;
use super::{MS, RULES, Thresholds, count, finding, fired};

/// A collective of a rank that begins at a time and takes some time, in ms; the network was busy for nearly as long.
fn call(at: u64, takes: u64) -> CollectiveCallRow {
    CollectiveCallRow {
        rank: Some(3),
        communicator: Some("0".into()),
        kind: "AllReduce".into(),
        message_bytes: Some(8_000_000),
        start_time: Time(at * MS),
        end_time: Time((at + takes) * MS),
        duration_ns: takes * MS,
        network_bytes: Some(12_000_000),
        busy_ns: Some((takes - 1) * MS),
        ..CollectiveCallRow::default()
    }
}

/// Nine of 10 ms, each 20 ms behind the one before, and one of `takes` ms at 180 ms during an incast.
fn made(takes: u64) -> RunSummary {
    let mut calls: Vec<CollectiveCallRow> = (0..9).map(|n| call(n * 20, 10)).collect();
    calls.push(CollectiveCallRow {
        episode: Some(7),
        ..call(180, takes)
    });
    RunSummary {
        traces: vec![TraceRow {
            uncertainty_ns: Some(MS / 2),
            ..TraceRow::default()
        }],
        collective_calls: calls,
        episodes: vec![EpisodeRow {
            episode: 7,
            kind: EpisodeKind::Incast,
            start_time: Time(182 * MS),
            end_time: Time(192 * MS),
            ..EpisodeRow::default()
        }],
        ..RunSummary::default()
    }
}

fn judged(mut run: RunSummary) -> RunSummary {
    add_slowed_collectives(&mut run, &Thresholds::default());
    run
}

#[test]
fn collectives_that_an_episode_slowed_are_found() {
    let run = judged(made(25));
    let found = fired(&run, "collective.slowed");
    assert_eq!(
        (found.severity, found.confidence),
        (Severity::Warning, Confidence::Medium)
    );
    // 25 ms instead of 10 ms.
    assert_eq!((count(found, "slowed"), count(found, "compared")), (1, 10));
    assert_eq!(
        (count(found, "longer_ns"), found.first_time),
        (15 * MS, Some(Time(180 * MS)))
    );
    for part in [
        "1 collective of 10",
        "rank 3",
        "25.0 ms instead of 10.0 ms",
        "episode 7 (incast)",
        "8.00 MB",
    ] {
        assert!(found.summary.contains(part), "{part}: {}", found.summary);
    }
    assert!(
        run.collective_calls
            .iter()
            .all(|call| call.median_ns == Some(10 * MS))
    );
    let slowed: Vec<bool> = run.collective_calls.iter().map(|call| call.is_slowed).collect();
    assert_eq!(slowed, [[false; 9].as_slice(), &[true]].concat());
}

#[test]
fn collectives_near_the_thresholds_are_not_slowed() {
    let none = |run: RunSummary, what: &str| {
        let run = judged(run);
        assert!(
            finding(&run, "collective.slowed").is_none(),
            "{what}: {:?}",
            run.findings
        );
        assert!(run.collective_calls.iter().all(|call| !call.is_slowed), "{what}");
    };
    // 1.5 times the median are slow, less is not.
    assert!(finding(&judged(made(15)), "collective.slowed").is_some());
    none(made(14), "1.4 times the median");
    let mut run = made(25);
    run.collective_calls.drain(..3);
    none(run, "seven equals");
    let mut run = made(25);
    run.collective_calls[9].message_bytes = Some(8_000_001);
    none(run, "another size");
    let mut run = made(25);
    run.collective_calls[9].communicator = Some("1".into());
    none(run, "another communicator");
    let mut run = made(25);
    run.collective_calls[9].episode = None;
    none(run, "no episode");
    let mut run = made(25);
    run.episodes[0].end_time = Time(183 * MS);
    none(run, "an episode of 1 ms explains no 15 ms");
    let mut run = made(25);
    run.collective_calls[9].busy_ns = Some(9 * MS);
    none(
        run,
        "the network had no more to do than usual: the rank waited for others",
    );
    let mut run = made(25);
    run.traces[0].uncertainty_ns = Some(8 * MS);
    none(run, "clocks that are 8 ms apart do not tell 15 ms");
    let mut run = made(25);
    for call in &mut run.collective_calls[..6] {
        call.episode = Some(7);
    }
    none(run, "others with such an episode took the usual time");
}

#[test]
fn collectives_on_a_clock_that_nothing_confirms_are_less_sure() {
    let mut run = made(25);
    run.traces[0].uncertainty_ns = None;
    assert_eq!(
        fired(&judged(run), "collective.slowed").confidence,
        Confidence::Low
    );
}

#[test]
fn collectives_come_in_the_order_of_the_rules() {
    let mut run = made(25);
    for id in ["ecn.working", "loss.network"] {
        run.findings.push(roce_model::FindingRow {
            id,
            severity: if id == "loss.network" {
                Severity::Critical
            } else {
                Severity::Ok
            },
            ..Default::default()
        });
    }
    let run = judged(run);
    let ids: Vec<&str> = run.findings.iter().map(|finding| finding.id).collect();
    assert_eq!(ids, ["loss.network", "collective.slowed", "ecn.working"]);
    assert!(RULES.iter().any(|rule| rule.id == "collective.slowed"));
}
