//! Episodes from rows made by hand. Bins are 1 ms wide, a row is 10 data packets of 1,024 bytes with ECT(0), and
//! `episode_quiet` is 5 ms.

use roce_model::{
    Confidence, EpisodeKind, EpisodeRow, EventKind, EventRow, FlowRow, MacAddress, Pause, PauseFrame,
    PauseKind, Span, TapId, Time, TimelineRow,
};

use super::super::rows::{Did, MS, TestRun, at_tap, back, event, flow, host};
use super::super::{Settings, Thresholds};

fn clean(_: &mut TimelineRow) {}

fn marked(row: &mut TimelineRow) {
    row.ce = 4;
}

fn retransmitted(row: &mut TimelineRow) {
    (row.retransmitted_packets, row.retransmitted_bytes) = (3, 3_072);
}

fn missing(row: &mut TimelineRow) {
    row.missing = 3;
}

fn bounds(episode: &EpisodeRow) -> (u64, u64) {
    (episode.start_time.0 / MS, episode.end_time.0 / MS)
}

#[test]
fn an_episode_goes_on_over_less_than_the_quiet_time() {
    let data = flow(1, 9);
    let mut run = TestRun::new();
    run.bin(2, &[(&data, clean)], &[]);
    for ms in [3, 4] {
        run.bin(ms, &[(&data, marked)], &[]);
    }
    // From the end of bin 4 to the begin of bin 9 there are 4 ms; bins 5 and 6 are quiet, 7 and 8 empty.
    run.bin(5, &[(&data, clean)], &[]).bin(6, &[(&data, clean)], &[]);
    run.bin(9, &[(&data, marked)], &[]);
    // From the end of bin 9 to bin 15 there are 5 ms: that is another one. What is sent between counts in none.
    run.bin(12, &[(&data, clean)], &[]);
    run.bin(15, &[(&data, marked)], &[])
        .bin(16, &[(&data, clean)], &[]);
    let episodes = run.episodes();
    assert_eq!(
        episodes.iter().map(bounds).collect::<Vec<_>>(),
        [(3, 10), (15, 16)]
    );
    let first = &episodes[0];
    assert_eq!((first.kind, first.destination), (EpisodeKind::Ecn, Some(host(9))));
    // Bins 3, 4, 5, 6 and 9 with 10 packets each, 4 of them marked in three bins.
    assert_eq!(
        (first.data_packets, first.ce, first.ce_share_peak),
        (50, 12, Some(0.4))
    );
    assert_eq!(
        (first.flows, first.flow_ids.as_ref()),
        (1, data.flow_id.to_string().as_str())
    );
    assert_eq!((first.episode, episodes[1].episode), (0, 1));
    assert_eq!(first.cause, "one sender is faster than the way to 10.0.0.9");
    assert_eq!(
        (first.confidence, episodes[1].confidence),
        (Confidence::High, Confidence::Medium)
    );
    assert_eq!(episodes[1].data_packets, 10);
}

#[test]
fn three_senders_are_an_incast_and_two_are_not() {
    let flows = [flow(1, 9), flow(2, 9), flow(3, 9)];
    for (senders, kind, cause, aggressors) in [
        (
            3,
            EpisodeKind::Incast,
            "3 senders at once into 10.0.0.9",
            "10.0.0.1, 10.0.0.2 and 10.0.0.3 alike",
        ),
        (
            2,
            EpisodeKind::Ecn,
            "2 senders share the way to 10.0.0.9",
            "10.0.0.1 and 10.0.0.2 alike",
        ),
    ] {
        let mut run = TestRun::new();
        let rows: Vec<Did<'_>> = flows[..senders].iter().map(|flow| (flow, marked as _)).collect();
        run.bin(0, &rows, &[]).bin(1, &rows, &[]);
        let episodes = run.episodes();
        assert_eq!(episodes.len(), 1, "an incast carries the marks: no ecn beside it");
        assert_eq!((episodes[0].kind, episodes[0].cause.as_ref()), (kind, cause));
        assert_eq!(usize::try_from(episodes[0].senders_max).unwrap(), senders);
        assert_eq!(episodes[0].ce, 8 * senders as u64);
        assert_eq!(episodes[0].jain, Some(1.0));
        assert_eq!(episodes[0].aggressors, aggressors);
        assert_eq!(episodes[0].victims, "10.0.0.9");
    }
}

#[test]
fn marks_that_go_on_after_an_incast_are_an_episode_of_their_own() {
    let flows = [flow(1, 9), flow(2, 9), flow(3, 9)];
    for (alone, kinds) in [
        // 2 of 4 bins lie in the incast: half of them.
        (2, vec![EpisodeKind::Incast]),
        // 2 of 5: less than half.
        (3, vec![EpisodeKind::Ecn, EpisodeKind::Incast]),
    ] {
        let mut run = TestRun::new();
        let rows: Vec<Did<'_>> = flows.iter().map(|flow| (flow, marked as _)).collect();
        run.bin(0, &rows, &[]).bin(1, &rows, &[]);
        // A host goes on sending for 200 us after a packet: then only one does.
        for ms in 3..3 + alone {
            run.bin(ms, &[(&flows[0], marked)], &[]);
        }
        let episodes = run.episodes();
        assert_eq!(episodes.iter().map(|row| row.kind).collect::<Vec<_>>(), kinds);
        let incast = episodes
            .iter()
            .find(|row| row.kind == EpisodeKind::Incast)
            .unwrap();
        assert_eq!(bounds(incast), (0, 2));
    }
}

#[test]
fn who_sends_most_and_who_suffers() {
    let flows = [flow(1, 9), flow(2, 9), flow(3, 9)];
    let mut run = TestRun::new();
    run.bin(
        0,
        &[
            (&flows[0], |row| row.payload_bytes = 100_000),
            (&flows[1], |row| row.payload_bytes = 10_000),
            (&flows[2], |row| {
                (row.payload_bytes, row.ce, row.cnp) = (10_000, 1, Some(2));
            }),
        ],
        &[],
    );
    let episode = &run.episodes()[0];
    // 100,000 of 120,000 bytes; the third sent less than half of its fair 40,000.
    assert_eq!(episode.aggressors, "10.0.0.1 > 10.0.0.9 QP 0x11 (83 %)");
    assert_eq!(episode.victims, "10.0.0.3 > 10.0.0.9 QP 0x13");
    // 120^2 / (3 (100^2 + 10^2 + 10^2)) = 14,400 / 30,600
    assert!((episode.jain.unwrap() - 14_400.0 / 30_600.0).abs() < 1e-12);
    assert_eq!(
        (episode.kind, episode.cnp, episode.flows),
        (EpisodeKind::Incast, 2, 1)
    );
    assert_eq!(episode.confidence, Confidence::Medium, "one mark");
    // One of 30 packets that can be marked was marked.
    assert!((episode.ce_share_peak.unwrap() - 1.0 / 30.0).abs() < 1e-12);
}

#[test]
fn gaps_alone_are_no_loss_and_retransmissions_are() {
    let data = flow(1, 9);
    let mut run = TestRun::new();
    run.bin(0, &[(&data, missing)], &[]);
    assert!(run.episodes().is_empty(), "reordering, or the capture's own loss");

    let mut run = TestRun::new();
    run.bin(0, &[(&data, missing)], &[])
        .bin(2, &[(&data, retransmitted)], &[]);
    let episodes = run.episodes();
    assert_eq!(
        (episodes[0].kind, bounds(&episodes[0])),
        (EpisodeKind::Loss, (0, 3))
    );
    assert_eq!((episodes[0].lost, episodes[0].retransmitted_bytes), (0, 3_072));
    assert_eq!(episodes[0].confidence, Confidence::Medium);

    // The hole's class becomes known in the bin of the retransmission, or of the episode's start itself.
    let mut run = TestRun::new();
    run.bin(
        0,
        &[(&data, retransmitted)],
        &[event(EventKind::Hole, &data, 0, 3, "network_lost")],
    );
    run.bin(
        1,
        &[(&data, retransmitted)],
        &[event(EventKind::Hole, &data, 0, 9, "capture_lost")],
    );
    let episodes = run.episodes();
    assert_eq!((episodes[0].lost, episodes[0].confidence), (3, Confidence::High));
    assert_eq!(episodes[0].cause, "3 packets to 10.0.0.9 lost in the network");
}

#[test]
fn retransmissions_of_mrc_are_no_loss() {
    let mrc = FlowRow {
        service: "MRC",
        ..flow(1, 9)
    };
    let mut run = TestRun::new();
    run.bin(0, &[(&mrc, retransmitted)], &[]);
    assert!(
        run.episodes().is_empty(),
        "its own rules judge what was trimmed or overtaken"
    );

    // Beside a loss of RoCE to the same host they do not count.
    let other = flow(2, 9);
    let mut run = TestRun::new();
    run.bin(0, &[(&mrc, retransmitted), (&other, retransmitted)], &[]);
    let episodes = run.episodes();
    assert_eq!(
        (episodes[0].kind, episodes[0].retransmitted_bytes),
        (EpisodeKind::Loss, 3_072)
    );
}

#[test]
fn packets_lost_behind_the_tap_are_a_loss() {
    let data = flow(1, 9);
    let mut run = TestRun::new();
    run.bin(4, &[(&data, |row| row.lost_downstream = Some(2))], &[]);
    let episodes = run.episodes();
    assert_eq!((episodes[0].kind, episodes[0].lost), (EpisodeKind::Loss, 2));
}

#[test]
fn a_receiver_without_buffers_is_the_destination_of_an_rnr_episode() {
    let data = flow(1, 9);
    let naks = back(&data);
    let refused: fn(&mut TimelineRow) = |row| {
        (row.rnr_naks, row.payload_bytes, row.data_packets, row.ect0) = (2, 0, 0, 0);
    };
    let mut run = TestRun::new();
    run.bin(0, &[(&data, clean), (&naks, refused)], &[]);
    // The retransmission that the RNR NAK requested is no loss.
    let rnr = event(EventKind::RetransmissionRun, &data, MS, 3, "rnr");
    run.bin(1, &[(&data, retransmitted)], &[rnr]);
    run.closed(&data).closed(&naks);
    let episodes = run.episodes();
    assert_eq!(episodes.len(), 1);
    let episode = &episodes[0];
    assert_eq!(
        (episode.kind, episode.destination),
        (EpisodeKind::Rnr, Some(host(9)))
    );
    assert_eq!(
        (episode.rnr_naks, episode.data_packets, bounds(episode)),
        (2, 10, (0, 1))
    );
    assert_eq!(
        episode.flow_ids,
        data.flow_id.to_string(),
        "the requests, not the NAKs"
    );
    assert_eq!(episode.victims, "10.0.0.1 > 10.0.0.9 QP 0x11");
    assert_eq!(episode.cause, "receiver 10.0.0.9 posts no buffers");
}

#[test]
fn a_loss_beside_rnr_is_told() {
    let data = flow(1, 9);
    let mut run = TestRun::new();
    let rnr = event(EventKind::RetransmissionRun, &data, 0, 3, "rnr");
    let timeout = event(EventKind::RetransmissionRun, &data, 0, 3, "timeout");
    run.bin(0, &[(&data, retransmitted)], &[rnr, timeout]);
    assert_eq!(run.episodes()[0].kind, EpisodeKind::Loss);
}

fn timed() -> TestRun {
    TestRun::with(Settings {
        link_rate: Some(100_000_000_000),
        ..Settings::default()
    })
}

fn interval(start: u64, length: u64, priority: u32) -> EventRow {
    EventRow {
        time: Time(start),
        kind: EventKind::PauseInterval,
        psn: Some(priority),
        value: Some(length),
        detail: Some("by 02:00:00:00:00:07, refreshed 1 times".into()),
        ..EventRow::default()
    }
}

#[test]
fn pauses_close_together_are_one_episode() {
    let data = flow(1, 9);
    let paused: fn(&mut TimelineRow) = |row| row.pause_ns = Some(400_000);
    let mut run = timed();
    run.bin(
        0,
        &[(&data, paused)],
        &[interval(100_000, 200_000, 3), interval(600_000, 300_000, 3)],
    );
    run.bin(2, &[(&data, clean)], &[interval(2 * MS, MS / 2, 4)]);
    // 5.1 ms after the end of the second one.
    run.bin(6, &[(&data, clean)], &[interval(6 * MS, 1_000, 3)]);
    let episodes = run.episodes();
    let seen: Vec<_> = episodes
        .iter()
        .map(|row| {
            (
                row.priority.unwrap(),
                row.start_time.0,
                row.end_time.0,
                row.pause_ns.unwrap(),
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            (3, 100_000, 900_000, 500_000),
            (4, 2 * MS, 2_500_000, 500_000),
            (3, 6 * MS, 6_001_000, 1_000)
        ]
    );
    assert_eq!((episodes[0].flows, episodes[0].destination), (1, None));
    assert_eq!(
        episodes[0].cause,
        "PFC pause of priority 3 from 02:00:00:00:00:07 while 1 flow had that priority"
    );
}

fn frame(time: u64, kind: PauseKind, quanta: u16) -> PauseFrame {
    PauseFrame {
        before: 0,
        reported: true,
        time: Time(time),
        tap: TapId(0),
        pause: Pause {
            source: MacAddress([2, 0, 0, 0, 0, 7]),
            destination: MacAddress::PAUSE,
            kind,
            enabled: if kind == PauseKind::Priority { 0b1000 } else { 0 },
            quanta: [quanta; 8],
            present: 8,
        },
    }
}

#[test]
fn two_senders_of_pauses_are_two_episodes() {
    let other = EventRow {
        detail: Some("by 02:00:00:00:00:08, refreshed 0 times".into()),
        ..interval(MS, MS, 3)
    };
    let mut run = TestRun::new();
    run.bin(0, &[], &[interval(0, MS, 3), other]);
    // Frames say nothing more.
    run.verdicts().pause(&frame(0, PauseKind::Priority, 9));
    let episodes = run.episodes();
    let seen: Vec<_> = episodes
        .iter()
        .map(|row| (row.start_time.0, row.pause_ns, row.confidence))
        .collect();
    // Without the link's speed the length is a bound only.
    assert_eq!(
        seen,
        [(0, None, Confidence::Medium), (MS, None, Confidence::Medium)]
    );
}

#[test]
fn without_the_links_speed_frames_say_when_and_not_how_long() {
    let mut run = TestRun::new();
    run.bin(0, &[], &[]);
    for (time, quanta) in [(0, 0), (10, 0xffff), (500, 0xffff), (900, 0)] {
        run.verdicts().pause(&frame(time, PauseKind::Priority, quanta));
    }
    run.verdicts().pause(&frame(700, PauseKind::Link, 9));
    let episodes = run.episodes();
    assert_eq!(
        (episodes[0].start_time, episodes[0].end_time),
        (Time(10), Time(900))
    );
    assert_eq!((episodes[0].priority, episodes[0].pause_ns), (Some(3), None));
    assert_eq!(
        episodes[0].cause,
        "PFC pause of priority 3 from 02:00:00:00:00:07"
    );
    assert_eq!(
        (episodes[1].priority, episodes[1].start_time),
        (Some(8), Time(700))
    );
    assert_eq!(
        episodes[1].cause,
        "802.3x pause of the whole link from 02:00:00:00:00:07"
    );
}

#[test]
fn lost_responses_are_those_of_the_other_direction() {
    let cause = |lost: u64| {
        let requests = flow(1, 2);
        let mut responses = back(&requests);
        (responses.data_packets, responses.response_network_lost) = (1_000, Some(lost));
        let mut run = TestRun::new();
        let repeats: fn(&mut TimelineRow) = |row| row.retransmitted_packets = 1;
        run.bin(1, &[(&requests, repeats)], &[]);
        run.closed(&requests).closed(&responses);
        run.episodes().first().map(|row| row.cause.to_string())
    };
    assert_eq!(
        cause(3).as_deref(),
        Some("responses of 10.0.0.2 were lost, and requested again")
    );
    assert_eq!(
        cause(0).as_deref(),
        Some("packets to 10.0.0.2 were retransmitted; what was lost is not in the capture")
    );
}

#[test]
fn stalls_that_overlap_on_the_way_to_one_host_are_one_episode() {
    let flows = [flow(1, 9), flow(2, 9), flow(3, 8)];
    let rows: Vec<Did<'_>> = flows.iter().map(|flow| (flow, clean as _)).collect();
    let mut run = TestRun::new();
    let stall = |at: usize, start: u64, end: u64| event(EventKind::Stall, &flows[at], start, end - start, "");
    run.bin(
        900,
        &rows,
        &[
            stall(0, 10 * MS, 900 * MS),
            stall(1, 20 * MS, 30 * MS),
            stall(2, 20 * MS, 30 * MS),
            event(EventKind::RetransmissionRun, &flows[0], 900 * MS, 4, "timeout"),
        ],
    );
    let episodes = run.episodes();
    let seen: Vec<_> = episodes
        .iter()
        .map(|row| (row.destination, bounds(row), row.flows))
        .collect();
    assert_eq!(
        seen,
        [(Some(host(9)), (10, 900), 2), (Some(host(8)), (20, 30), 1)]
    );
    assert_eq!(
        episodes[0].cause,
        "10.0.0.1 > 10.0.0.9 QP 0x11 stood still for 890 ms, until the sender's timeout"
    );
    assert_eq!(
        (episodes[0].confidence, episodes[1].confidence),
        (Confidence::High, Confidence::Medium)
    );
}

#[test]
fn taps_and_destinations_do_not_mix() {
    let here = flow(1, 9);
    let there = at_tap(flow(1, 9), 1);
    let other = flow(1, 8);
    let mut run = TestRun::new();
    run.bin(0, &[(&here, marked), (&there, marked), (&other, marked)], &[]);
    let seen: Vec<_> = run
        .episodes()
        .iter()
        .map(|row| (row.tap.0, row.destination))
        .collect();
    assert_eq!(seen, [(0, Some(host(8))), (0, Some(host(9))), (1, Some(host(9)))]);
}

#[test]
fn what_comes_overdue_counts_only_where_an_episode_was_going_on() {
    let data = flow(1, 9);
    let mut run = TestRun::new();
    run.bin(5, &[(&data, marked)], &[])
        .bin(8, &[(&data, marked)], &[]);
    run.bin(6, &[(&data, marked)], &[]);
    run.bin(1, &[(&data, marked)], &[]);
    let episodes = run.episodes();
    assert_eq!(episodes.len(), 1);
    assert_eq!((bounds(&episodes[0]), episodes[0].ce), ((5, 9), 12));
}

#[test]
fn there_is_an_end_to_what_is_kept() {
    let data = flow(1, 9);
    let mut run = TestRun::new();
    // Every 6 ms one: 5 ms of quiet end each.
    for episode in 0..(1 << 14) + 3 {
        run.bin(6 * episode, &[(&data, marked)], &[]);
    }
    let summary = run.conclude();
    assert_eq!(summary.episodes.len(), 1 << 14);
    let quality = summary
        .findings
        .iter()
        .find(|finding| finding.id == "capture.quality")
        .unwrap();
    assert_eq!(quality.summary, "3 episodes found no room");
}

#[test]
fn a_flow_too_many_counts_in_the_sums() {
    let flows: Vec<FlowRow> = (0..1100u32)
        .map(|qpn| super::super::rows::flow_to(1, 9, 0x100 + qpn))
        .collect();
    let rows: Vec<Did<'_>> = flows.iter().map(|flow| (flow, marked as _)).collect();
    let mut run = TestRun::new();
    run.bin(0, &rows, &[]);
    let episode = &run.episodes()[0];
    assert_eq!((episode.flows, episode.ce), (1024, 4400));
    assert_eq!(episode.flow_ids.split(' ').count(), 32);
}

#[test]
fn the_quiet_time_and_the_degree_are_thresholds() {
    let flows = [flow(1, 9), flow(2, 9)];
    let rows: Vec<Did<'_>> = flows.iter().map(|flow| (flow, marked as _)).collect();
    let mut run = TestRun::with(Settings {
        thresholds: Thresholds {
            incast_senders: 2,
            episode_quiet: Span(0),
            ..Thresholds::default()
        },
        ..Settings::default()
    });
    run.bin(0, &rows, &[]).bin(1, &rows, &[]).bin(3, &rows, &[]);
    let seen: Vec<_> = run.episodes().iter().map(|row| (row.kind, bounds(row))).collect();
    assert_eq!(
        seen,
        [(EpisodeKind::Incast, (0, 2)), (EpisodeKind::Incast, (3, 4))]
    );
}
