//! Lessons against their captures, and what is found in them against what the simulation did.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use roce_sim::truth::PacketKind;

use super::catalogue::LESSONS;
use super::frames::History;
use super::verdict::VerdictLine;
use super::*;

/// A demo with its capture, its truth and its lesson.
struct Taught {
    demo: CatalogueEntry,
    lesson: Lesson,
    truth: Truth,
    frames: Vec<frames::DemoFrame>,
}

fn taught() -> Vec<Taught> {
    let folder = tempfile::tempdir().unwrap();
    let teach = |demo: CatalogueEntry| {
        let lesson = parse_lesson(&demo).unwrap();
        let made = simulate(
            &demo,
            &lesson,
            &folder.path().join(format!("{}.pcapng", demo.name)),
            false,
        )
        .unwrap();
        Taught {
            lesson,
            frames: frames::read(&made.captures).unwrap(),
            truth: made.truth,
            demo,
        }
    };
    catalogue().unwrap().into_iter().map(teach).collect()
}

#[test]
fn every_scenario_has_its_lesson() {
    let scenarios: Vec<&str> = roce_sim::demos::DEMOS.iter().map(|demo| demo.name).collect();
    let lessons: Vec<&str> = LESSONS.iter().map(|(name, _)| *name).collect();
    assert_eq!(scenarios, lessons);
    for (name, lesson) in LESSONS {
        let lesson = Lesson::parse(lesson).unwrap();
        assert!(lesson.step.len() >= 2, "{name}: steps");
        assert!(!lesson.advice.is_empty() && !lesson.sources.is_empty(), "{name}");
        for line in lesson.picture.lines() {
            assert!(line.is_ascii() && line.len() < 60, "{name}: {line}");
        }
        let looks: Vec<_> = lesson.step.iter().flat_map(|step| &step.look).collect();
        for (place, look) in looks.iter().enumerate() {
            for label in look.find.names() {
                let known = looks[..place].iter().any(|before| before.label == label);
                assert!(known, "{name}: {} before {label}", look.label);
            }
        }
    }
}

#[test]
fn every_text_is_filled_in() {
    for taught in taught() {
        let (name, lesson) = (taught.demo.name, &taught.lesson);
        let found =
            LessonFrames::find(lesson, &taught.frames).unwrap_or_else(|error| panic!("{name}: {error:#}"));
        let texts =
            std::iter::once(&lesson.situation)
                .chain(&lesson.advice)
                .chain(lesson.step.iter().flat_map(|step| {
                    let says = step.look.iter().map(|look| &look.says);
                    [&step.text, &step.filter].into_iter().chain(says)
                }));
        for text in texts {
            let filled = found
                .fill(text)
                .unwrap_or_else(|error| panic!("{name}: {error:#}: {text}"));
            assert!(!filled.contains(['{', '}']), "{name}: {filled}");
        }
    }
}

#[test]
fn what_frames_say_of_their_flow_is_what_happened() {
    for taught in taught() {
        let name = taught.demo.name;
        let taps = &taught.truth.taps;
        // Frames: all records are RoCE or pause frames, and so are the copies that a mirror made.
        let of_tap = |tap: &roce_sim::truth::Tap| tap.records + tap.copies;
        let records: u64 = taps.iter().map(of_tap).sum();
        assert_eq!(taught.frames.len() as u64, records, "{name}: records");
        let last = taught.frames.iter().map(|frame| frame.number).max();
        assert_eq!(last, taps.iter().map(of_tap).max(), "{name}: numbers");
        // Jumps and retransmissions.
        let flows = || taps.iter().flat_map(|tap| &tap.flows);
        let jumped = taught.frames.iter().map(|frame| match frame.history {
            History::Jump(psns) => u64::from(psns),
            _ => 0,
        });
        assert_eq!(
            jumped.sum::<u64>(),
            flows().map(|flow| flow.missing).sum::<u64>(),
            "{name}: jumps"
        );
        let again = taught
            .frames
            .iter()
            .filter(|frame| frame.history == History::Again)
            .count();
        let retransmitted: u64 = flows().map(|flow| flow.retransmitted_behind_packets).sum();
        let late = || {
            let all = taps.iter().flat_map(|tap| &tap.late);
            all.filter(|late| late.kind == PacketKind::Request)
        };
        // A mirror that copies all frames shows each request of such a scenario, which has no READs, once more.
        let doubled = taps.iter().filter(|tap| tap.copies > 0);
        let copies: u64 = doubled
            .flat_map(|tap| {
                assert_eq!(tap.copies, tap.records, "{name}: copies");
                &tap.flows
            })
            .map(|flow| flow.data_packets)
            .sum();
        assert_eq!(
            again as u64,
            retransmitted + late().count() as u64 + copies,
            "{name}: retransmitted, late or copied"
        );
        // Distances in PSNs and in time. Where packets are retransmitted or copied, these are behind,
        // too.
        if retransmitted + copies == 0 {
            let depth = taught.frames.iter().map(|frame| u64::from(frame.behind_psns));
            assert_eq!(
                depth.max(),
                late().map(|late| late.depth).max().or(Some(0)),
                "{name}"
            );
            let time = taught.frames.iter().map(|frame| frame.behind_time.0);
            assert_eq!(
                time.max(),
                late().map(|late| late.behind_ns).max().or(Some(0)),
                "{name}"
            );
        }
    }
}

#[test]
fn second_copies_are_not_late_packets() {
    let demos = taught();
    let again = |name: &str| {
        let taught = demos.iter().find(|taught| taught.demo.name == name).unwrap();
        let count = |is_repeated: bool| {
            let again = taught
                .frames
                .iter()
                .filter(|frame| frame.history == History::Again);
            again.filter(|frame| frame.is_repeated == is_repeated).count()
        };
        assert!(taught.truth.losses.is_empty() && taught.truth.retransmission_runs.is_empty());
        (count(true), count(false))
    };
    // Nothing is lost or retransmitted: each late packet has its PSN for the first time.
    let (twice, late) = again("sprayed");
    assert_eq!((twice, late > 1_000), (0, true));
    // 25 messages of 32 KiB in packets of 1,024 bytes (one each 80 us in 2 ms): 800 packets, and as many copies.
    assert_eq!(again("span-doubled"), (800, 0));
}

#[test]
fn rates_are_those_of_the_links() {
    let demos = taught();
    let ignored = demos
        .iter()
        .find(|taught| taught.demo.name == "cnp-ignored")
        .unwrap();
    let found = LessonFrames::find(&ignored.lesson, &ignored.frames).unwrap();
    // 10 Gbit/s carry 4096 bytes of payload in 4096 + 58 of headers and ICRC + 24 of preamble, FCS and gap:
    // 10 * 4096 / 4178 = 9.80.
    assert_eq!(
        found.fill("{before}, {after}, {later}").unwrap(),
        "9.80 Gbit/s, 9.80 Gbit/s, 9.80 Gbit/s"
    );
    // This link, shared by six: a sixth of 9.80 is 1.63, and a round of seven packets instead of six
    // leaves 1.40.
    let shared = demos
        .iter()
        .find(|taught| taught.demo.name == "shared-port")
        .unwrap();
    let found = LessonFrames::find(&shared.lesson, &shared.frames).unwrap();
    assert_eq!(
        found.fill("{port}, {before}, {after}").unwrap(),
        "9.80 Gbit/s, 1.63 Gbit/s, 1.40 Gbit/s"
    );
}

#[test]
fn the_flow_that_a_lesson_pairs_with_a_cnp_is_the_one_that_it_slows_down() {
    let demos = taught();
    let shared = demos
        .iter()
        .find(|taught| taught.demo.name == "shared-port")
        .unwrap();
    let found = LessonFrames::find(&shared.lesson, &shared.frames).unwrap();
    let first = shared.truth.cnps.iter().filter(|cnp| cnp.to == "h1");
    let first = first.min_by_key(|cnp| cnp.received).unwrap();
    let paired = shared
        .truth
        .flows
        .iter()
        .find(|flow| flow.flow_id == first.flow_id)
        .unwrap();
    // The limit that it set, 5 Gbit/s, is three times a sixth of the port.
    assert_eq!(
        (first.rate_before_bps, first.rate_after_bps),
        (10_000_000_000, 5_000_000_000)
    );
    let qpn = roce_wire::Qpn::new(paired.destination_qpn);
    assert_eq!(found.fill("{data.qpn}").unwrap(), qpn.to_string());
}

#[test]
fn places_that_lead_nowhere_are_errors() {
    let found = LessonFrames::default();
    for text in ["{nobody}", "{nobody.psn}", "{a..b}", "{a%b}", "{open"] {
        assert!(found.fill(text).is_err(), "{text}");
    }
    assert_eq!(found.fill("no place").unwrap(), "no place");
}

#[test]
fn an_analysis_that_says_nothing_disagrees() {
    for taught in taught() {
        let lines = compare(&taught.lesson, &taught.truth, &DemoResults::default());
        let disagrees = |line: &VerdictLine| line.agreement == Agreement::Differs;
        assert!(lines.iter().any(disagrees), "{}", taught.demo.name);
        for id in &taught.lesson.finds {
            let about = format!("finding {id}");
            assert!(
                lines.iter().any(|line| line.about == about && disagrees(line)),
                "{about}"
            );
        }
    }
}

#[test]
fn the_training_log_has_a_line_for_each_step() {
    let demos = taught();
    let training = demos
        .iter()
        .find(|taught| taught.demo.name == "training")
        .unwrap();
    let log = training_log(&training.truth);
    assert_eq!(log.lines().count(), training.truth.steps.len());
    assert!(log.starts_with("Iteration 0 | AllReduce: 0."), "{log}");
    assert_eq!(milliseconds(45_230_999), "45.230ms");
}
