//! Findings of MRC from rows made by hand: each fires, and does not near its threshold. Whole captures are in `tests/command/mrc.rs`.

use super::*;
use roce_model::{MrcConnectionRow, MrcPathRow, MrcPathState, MrcPortLoss, Service};

/// Connection `number` from a host to host 9, of 1,000 packets, with all of them captured.
fn connection(number: u32, from: u8) -> MrcConnectionRow {
    MrcConnectionRow {
        connection: number,
        requestor: host(from),
        responder: host(9),
        responder_qpn: Some(7),
        packets: 1_000,
        data_packets: 1_000,
        sacks: 300,
        last_time: Time(5 * MS),
        last_data_time: Some(Time(4 * MS)),
        confidence: Confidence::High,
        ..MrcConnectionRow::default()
    }
}

/// Path `number` of a connection: 125 packets that all arrived, within 9 us.
fn path(connection: u32, number: u32) -> MrcPathRow {
    MrcPathRow {
        connection,
        path: number,
        ev: Some(0x5a00_c100 + number),
        srv6: Some(format!("fcbb:0:1010:20{number:02}::").into()),
        plane: Some(number / 2),
        sent: 125,
        arrived: 125,
        sacks: 40,
        rtt_samples: 40,
        rtt_p50_ns: Some(9_000),
        last_sent_time: Some(Time(4 * MS)),
        last_arrived_time: Some(Time(4 * MS)),
        state: MrcPathState::InUse,
        ..MrcPathRow::default()
    }
}

/// A run with these connections, of eight paths each, after a change.
fn run_with(
    connections: &[MrcConnectionRow],
    change: impl Fn(&mut Vec<MrcPathRow>, &mut RunSummary),
) -> RunSummary {
    let mut run = TestRun::new();
    let mut paths: Vec<MrcPathRow> = connections
        .iter()
        .flat_map(|row| (0..8).map(|number| path(row.connection, number)))
        .collect();
    change(&mut paths, &mut run.summary);
    run.summary.mrc_connections = connections.to_vec();
    run.summary.mrc_paths = paths;
    run.conclude()
}

fn run_of_one(change: impl Fn(&mut MrcConnectionRow)) -> RunSummary {
    let mut row = connection(0, 1);
    change(&mut row);
    run_with(&[row], |_, _| {})
}

/// A path that lost packets at 1 ms and 2 ms, and that its sender left.
fn dead(path: &mut MrcPathRow) {
    (path.lost, path.repair_ns) = (2, 30_000);
    (path.first_loss_time, path.last_loss_time) = (Some(Time(MS)), Some(Time(2 * MS)));
    (path.last_sent_time, path.last_arrived_time) = (Some(Time(2 * MS)), Some(Time(MS / 2)));
    path.state = MrcPathState::Retired;
}

#[test]
fn a_healthy_connection_has_none() {
    assert_eq!(run_of_one(|_| {}).findings, []);
}

#[test]
fn a_dead_path_lost_two_packets_and_carried_nothing_later() {
    let lost = |row: &mut MrcConnectionRow| (row.lost, row.repair_loss_ns) = (2, 20_000);
    let mut row = connection(0, 1);
    lost(&mut row);
    let of = |change: fn(&mut MrcPathRow)| {
        run_with(std::slice::from_ref(&row), move |paths, _| {
            dead(&mut paths[5]);
            change(&mut paths[5]);
        })
    };
    let run = of(|_| {});
    let found = fired(&run, "mrc.path.dead");
    assert!(
        found.summary.contains("path 0x5a00c105 of plane 2 lost 2 of 125"),
        "{}",
        found.summary
    );
    // Two packets waited 30 us, some of it at the same time: the connection 20 us.
    assert_eq!(found.waited_ns, Some(20_000));
    assert!(found.explains.has("mrc.loss.silent"), "all losses are its own");
    assert!(
        finding(&run, "mrc.switch.suspect").is_none(),
        "one path is not enough"
    );
    for change in [
        (|path| path.lost = 1) as fn(&mut MrcPathRow),
        |path| path.last_arrived_time = Some(Time(3 * MS)),
        |path| path.state = MrcPathState::InUse,
        // No longer used without a loss.
        |path| (path.lost, path.first_loss_time, path.state) = (0, None, MrcPathState::Unknown),
    ] {
        assert!(finding(&of(change), "mrc.path.dead").is_none());
    }
    // A packet that arrived later does not save a path whose probe stays unanswered.
    let run = of(|path| {
        path.last_arrived_time = Some(Time(3 * MS));
        (path.state, path.probes_unanswered) = (MrcPathState::Dead, 1);
    });
    assert!(
        fired(&run, "mrc.path.dead")
            .summary
            .contains("a probe of it was not answered")
    );
}

#[test]
fn a_switch_is_suspect_that_dead_paths_share_and_good_ones_do_not() {
    let row = connection(0, 1);
    let of = |at_receiver: bool, good: &'static str| {
        let row = MrcConnectionRow {
            at_receiver,
            ..row.clone()
        };
        run_with(&[row], move |paths, _| {
            for path in &mut paths[..2] {
                dead(path);
                path.srv6 = Some("fcbb:0:1010:2222::".into());
            }
            paths[3].srv6 = Some(good.into());
        })
    };
    let run = of(false, "fcbb:0:1010:3333::");
    assert!(
        fired(&run, "mrc.switch.suspect")
            .summary
            .contains("switch 2222 is on all 2 dead paths")
    );
    assert!(fired(&run, "mrc.switch.suspect").explains.has("mrc.path.dead"));
    assert!(finding(&of(false, "fcbb:0:1010:2222::"), "mrc.switch.suspect").is_none());
    assert!(finding(&of(true, "fcbb:0:1010:3333::"), "mrc.switch.suspect").is_none());
}

#[test]
fn losses_are_told_from_trims() {
    let run =
        run_of_one(|row| (row.lost, row.trimmed, row.repair_loss_ns, row.repair_timeout_ns) = (3, 1, 50, 70));
    let found = fired(&run, "mrc.loss.silent");
    assert!(found.summary.contains("not full queues"), "{}", found.summary);
    assert_eq!((found.waited_ns, found.confidence), (Some(120), Confidence::High));
    let run = run_of_one(|row| row.lost = 3);
    let found = fired(&run, "mrc.loss.silent");
    assert!(
        !found.summary.contains("not full queues"),
        "nothing shows that switches trim"
    );
    assert_eq!(found.confidence, Confidence::Medium);
    let run = run_of_one(|row| (row.trimmed, row.repair_trim_ns) = (5, 900));
    assert!(finding(&run, "mrc.loss.silent").is_none());
    assert_eq!(fired(&run, "mrc.trim.fabric").waited_ns, Some(900));
}

#[test]
fn incast_needs_two_senders() {
    let trimmed = |number, from| MrcConnectionRow {
        trimmed_lasthop: 4,
        repair_lasthop_ns: 1_000,
        ..connection(number, from)
    };
    let run = run_with(&[trimmed(0, 1), trimmed(1, 2)], |_, _| {});
    let found = fired(&run, "mrc.trim.lasthop");
    assert_eq!(
        (
            found.waited_ns,
            count(found, "senders"),
            count(found, "trimmed_lasthop")
        ),
        (Some(2_000), 2, 8)
    );
    assert_eq!(found.aggressors.to_string(), format!("{} {}", host(1), host(2)));
    assert!(finding(&run, "mrc.trim.fabric").is_none());
    for one in [[trimmed(0, 1), trimmed(1, 1)], [trimmed(0, 1), connection(1, 2)]] {
        assert!(finding(&run_with(&one, |_, _| {}), "mrc.trim.lasthop").is_none());
    }
}

#[test]
fn marks_on_few_paths_are_uneven_load() {
    let row = connection(0, 1);
    let of = |marks: fn(usize) -> u64| {
        run_with(std::slice::from_ref(&row), move |paths, _| {
            for (at, path) in paths.iter_mut().enumerate() {
                path.marked = marks(at);
            }
        })
    };
    let run = of(|at| if at == 1 { 30 } else { 1 });
    assert!(
        fired(&run, "mrc.path.marked")
            .summary
            .contains("30 of 37 marks on 1 of 8 paths")
    );
    // All alike: the fabric is full. One mark among many paths comes by chance.
    for marks in [
        (|_| 30) as fn(usize) -> u64,
        |at| u64::from(at == 1),
        |at| if at < 5 { 30 } else { 1 },
    ] {
        assert!(finding(&of(marks), "mrc.path.marked").is_none());
    }
}

#[test]
fn a_slow_path_is_slower_by_more_than_paths_differ() {
    let row = connection(0, 1);
    let of = |slow: usize, p50: u64, least: u64, samples: u64| {
        run_with(std::slice::from_ref(&row), move |paths, _| {
            for path in &mut *paths {
                path.rtt_min_ns = Some(8_000);
            }
            for path in paths.iter_mut().rev().take(slow) {
                (path.rtt_p50_ns, path.rtt_min_ns) = (Some(p50), Some(least));
                path.rtt_samples = samples;
            }
        })
    };
    // 30 % of 9 us are 2.7 us.
    let run = of(1, 14_000, 12_000, 20);
    assert!(
        fired(&run, "mrc.path.slow").summary.contains("5.00 us slower"),
        "{:?}",
        run.findings
    );
    assert!(finding(&of(1, 11_600, 12_000, 20), "mrc.path.slow").is_none());
    assert!(finding(&of(1, 14_000, 12_000, 19), "mrc.path.slow").is_none());
    // A queue that is empty at times.
    assert!(finding(&of(1, 14_000, 8_500, 20), "mrc.path.slow").is_none());
    // Two of eight paths: those of a plane. One of them has fewer samples.
    assert!(finding(&of(2, 14_000, 12_000, 20), "mrc.path.slow").is_none());
    let plane = run_with(std::slice::from_ref(&row), |paths, _| {
        for (at, path) in paths.iter_mut().enumerate() {
            path.rtt_min_ns = Some(if at < 6 { 8_000 } else { 12_000 });
            path.rtt_p50_ns = Some(if at < 6 { 9_000 } else { 14_000 });
        }
        paths[7].rtt_samples = 10;
    });
    assert!(finding(&plane, "mrc.path.slow").is_none());
}

#[test]
fn planes_carry_even_parts() {
    let row = connection(0, 1);
    let of = |sent: u64, is_down: bool, scale: u64| {
        run_with(std::slice::from_ref(&row), move |paths, summary| {
            for path in &mut *paths {
                path.sent = 200 * scale;
            }
            (paths[0].sent, paths[1].sent) = (sent * scale, sent * scale);
            if is_down {
                summary.mrc_reports.ports = vec![MrcPortLoss {
                    host: host(9),
                    lost: 4,
                    time: Time(MS),
                }];
            }
        })
    };
    // 200 of 1,400 packets instead of a quarter: 14 % instead of 25 %.
    assert!(
        fired(&of(100, false, 1), "mrc.plane.uneven")
            .summary
            .contains("plane 0 carries 14 % instead of 25 %")
    );
    // 280 of 1,480 are 19 %. A random choice of 370 comes as far (5 x 19), and one of 740 does not (5 x 27).
    assert!(finding(&of(140, false, 1), "mrc.plane.uneven").is_none());
    assert!(finding(&of(140, false, 2), "mrc.plane.uneven").is_some());
    // 360 of 1,560 are 23 %.
    assert!(finding(&of(180, false, 1), "mrc.plane.uneven").is_none());
    let run = of(100, true, 1);
    assert!(
        finding(&run, "mrc.plane.uneven").is_none(),
        "the others take its part"
    );
    assert!(
        fired(&run, "mrc.port.down")
            .summary
            .contains("its port 2 is down")
    );
}

#[test]
fn a_responder_asks_more_than_once() {
    let of = |penalties, resources| {
        run_of_one(move |row| {
            (row.penalty_sacks, row.penalty_max, row.nacks_resources) = (penalties, 32, resources);
        })
    };
    // 1 % of 300 SACKs.
    assert!(
        fired(&of(3, 0), "mrc.responder.limit")
            .summary
            .contains("at most 32 of 127")
    );
    assert!(finding(&of(2, 1), "mrc.responder.limit").is_some());
    assert!(finding(&of(2, 0), "mrc.responder.limit").is_none());
    let single = run_of_one(|row| (row.sacks, row.nacks_resources) = (10, 1));
    assert!(finding(&single, "mrc.responder.limit").is_none(), "a single one");
}

#[test]
fn what_was_repeated_has_its_price() {
    let run = run_of_one(|row| (row.rtx_timeout, row.lost, row.repair_timeout_ns) = (1, 1, 65_536));
    let found = fired(&run, "mrc.retransmit.timeout");
    assert_eq!(found.waited_ns, Some(65_536));
    assert!(found.explained_by.has("mrc.loss.silent"));
    assert!(finding(&run_of_one(|row| row.rtx_hole = 1), "mrc.retransmit.timeout").is_none());
    let run =
        run_of_one(|row| (row.spurious, row.spurious_bytes, row.skew_max_ns) = (4, 16_384, Some(7_000)));
    assert!(
        fired(&run, "mrc.retransmit.spurious")
            .summary
            .contains("4 retransmissions (16.4 kB)"),
        "{:?}",
        run.findings
    );
    assert!(
        finding(
            &run_of_one(|row| row.retransmitted_packets = 4),
            "mrc.retransmit.spurious"
        )
        .is_none()
    );
}

#[test]
fn a_failed_connection_is_critical() {
    let run = run_of_one(|row| (row.failed, row.nacks_failed) = (true, 1));
    assert_eq!(fired(&run, "mrc.qp.failed").severity, Severity::Critical);
    // Traffic went on.
    assert!(finding(&run_of_one(|row| row.nacks_failed = 1), "mrc.qp.failed").is_none());
}

#[test]
fn a_part_of_the_paths_is_no_reason_to_act() {
    let run = run_of_one(|row| (row.lost, row.trimmed, row.confidence) = (3, 1, Confidence::Low));
    assert_eq!(fired(&run, "mrc.loss.silent").severity, Severity::Info);
}

/// Faults of RoCE are none of MRC: gaps at each tap, no CNPs, one flow with many ports and marks.
#[test]
fn rules_of_roce_are_silent() {
    let mut row = flow(1, 2);
    (row.network_lost, row.capture_lost, row.missing, row.runs_timeout) = (50, 20, 70, 3);
    (row.ce, row.ect0, row.dscp_values, row.retransmitted_packets) = (500, 500, 4, 50);
    assert!(!run_of(&[&row]).findings.is_empty());
    row.service = Service::Mrc.name();
    assert_eq!(run_of(&[&row]).findings, []);
}
