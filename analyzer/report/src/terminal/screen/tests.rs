//! The screen as people see it, in ratatui's test backend, and what keys do. The numbers in the snapshots are sums of the rows below:
//! each test says which.

use ratatui_core::backend::TestBackend;
use ratatui_core::terminal::Terminal;
use roce_model::{
    Address, Columns, Confidence, Counter, EpisodeKind, EpisodeRow, EventColumns, EventKind, EventRow,
    Evidence, FindingRow, FlowKey, FlowRow, Packet, Period, Progress, Qpn, RunSummary, SampleColumns,
    SampleRow, Severity, Sink, Snapshot, Span, TapId, Time, TimelineColumns, TimelineRow,
};

use super::super::live::CaptureCounts;
use super::{About, Command, Key, RunStanding, Screen};
use crate::Style;

mod keys;

/// 2026-11-21 18:00:00 UTC.
const START: u64 = 1_795_284_000 * Span::SECOND.0;
const BIN: Span = Span(100_000_000);

fn key(source: u8, destination: u8, qpn: u32) -> FlowKey {
    FlowKey {
        source: Address::v4([10, 77, 0, source]),
        destination: Address::v4([10, 77, 0, destination]),
        destination_qpn: Qpn::new(qpn),
        ..FlowKey::from_packet(&Packet::default().roce)
    }
}

/// The flow that does well, the one that is marked, the one that loses packets, and the ACKs of the first.
fn keys() -> [FlowKey; 4] {
    [key(1, 2, 0x11), key(3, 2, 0x12), key(4, 5, 0x13), key(2, 1, 0x21)]
}

/// The rows of bin number `bin`, ten of which make a second.
fn rows(bin: u64) -> TimelineColumns {
    let [well, marked, lossy, acks] = keys();
    let row = |key: FlowKey, packets, bytes| TimelineRow {
        time: Time(START + bin * BIN.0),
        flow_id: key.id(),
        packets,
        data_packets: packets,
        payload_bytes: bytes,
        cnp: Some(0),
        ..TimelineRow::default()
    };
    let mut rows = TimelineColumns::default();
    // 12.5 MB in 100 ms: 1 Gbit/s.
    rows.push(&TimelineRow {
        ack_rtt_p50_ns: Some(10_000 + 1_000 * (bin % 10)),
        ack_rtt_max_ns: Some(40_000),
        inflight_bytes_max: Some(65_536),
        senders_to_destination: 2,
        ..row(well, 1_000, 12_500_000)
    });
    // Half of it, as another tap saw it: that does not count twice.
    rows.push(&TimelineRow {
        tap: TapId(1),
        ..row(well, 500, 6_250_000)
    });
    // 250 Mbit/s, a tenth of it marked.
    rows.push(&TimelineRow {
        ce: 25,
        cnp: Some(3),
        senders_to_destination: 2,
        ..row(marked, 250, 3_125_000)
    });
    // 1 Mbit/s, in every second bin with losses.
    rows.push(&TimelineRow {
        retransmitted_packets: u32::from(bin.is_multiple_of(2)) * 4,
        missing: u64::from(bin.is_multiple_of(2)) * 2,
        cnp: None,
        ..row(lossy, 10, 12_500)
    });
    rows.push(&TimelineRow {
        data_packets: 0,
        cnp: None,
        ..row(acks, 100, 0)
    });
    rows
}

fn events() -> EventColumns {
    let mut events = EventColumns::default();
    let lossy = keys()[2].id();
    let mut add = |after: u64, kind, flow_id, psn, value, detail: &'static str| {
        events.push(&EventRow {
            time: Time(START + after),
            kind,
            flow_id,
            psn,
            value: Some(value),
            detail: (!detail.is_empty()).then(|| detail.into()),
            ..EventRow::default()
        });
    };
    add(1_200_000, EventKind::Gap, Some(lossy), Some(7), 2, "");
    add(
        1_450_000,
        EventKind::RetransmissionRun,
        Some(lossy),
        Some(7),
        4,
        "timeout",
    );
    add(
        2_000_000,
        EventKind::Stall,
        Some(lossy),
        Some(7),
        1_500_000,
        "evil\u{1b}[2Jname\u{202e}",
    );
    add(2_100_000, EventKind::Asynchronous, None, None, 0, "port down");
    events
}

fn snapshot() -> Snapshot {
    let row = |key: FlowKey| FlowRow {
        flow_id: key.id(),
        source: key.source,
        destination: key.destination,
        destination_qpn: key.destination_qpn.value(),
        counted: true,
        dscp: Some(26),
        ..FlowRow::default()
    };
    let [well, marked, lossy, acks] = keys();
    Snapshot {
        flows: vec![
            FlowRow {
                pid: Some(4_711),
                comm: Some("ib_write\u{1b}[31mbw".into()),
                cgroup: Some(99),
                peer_flow_id: Some(acks.id()),
                pairing: Some("psn"),
                pairing_matches: Some(12),
                path_mtu: Some(4_096),
                packets: 30_000,
                payload_bytes: 375_000_000,
                data_packets: 30_000,
                messages: 300,
                ack_rtt_p50_ns: Some(14_000),
                ack_rtt_p99_ns: Some(39_000),
                ..row(well)
            },
            FlowRow {
                dscp: Some(10),
                ..row(marked)
            },
            row(lossy),
            FlowRow {
                counted: false,
                dscp: Some(63),
                tap: TapId(1),
                ..row(well)
            },
        ],
        episodes: vec![EpisodeRow {
            kind: EpisodeKind::Ecn,
            start_time: Time(START),
            end_time: Time(START + 2_900_000_000),
            cause: "2 senders share the way to 10.77.0.2".into(),
            ..EpisodeRow::default()
        }],
        findings: vec![FindingRow {
            id: "loss.network",
            severity: Severity::Warning,
            summary: "the network lost 60 packets of 1 flow".into(),
            evidence: Evidence::default(),
            confidence: Confidence::High,
            next_step: "Look at the discard counters.".into(),
            ..FindingRow::default()
        }],
        too_many: false,
        ..Snapshot::default()
    }
}

fn about(paced: bool) -> About {
    About {
        what: if paced { "incast.pcapng" } else { "mlx5_0" }.to_owned(),
        paced,
        interval: Span::SECOND,
        lead: Span(0),
        has_host: !paced,
    }
}

const PLAIN: Style = Style {
    width: 80,
    color: false,
    unicode: true,
    top: 10,
    full: false,
    rows: None,
};

fn live() -> RunStanding {
    RunStanding {
        counted: Some(CaptureCounts {
            now: Time(START + 3_200_000_000),
            frames: 50_000,
            ..CaptureCounts::default()
        }),
        ..RunStanding::default()
    }
}

fn replayed() -> RunStanding {
    RunStanding {
        span: Some(Period {
            first: Time(START),
            last: Time(START + 8 * Span::SECOND.0),
        }),
        speed: Some("1x".to_owned()),
        ..RunStanding::default()
    }
}

fn complete(seconds: u64) -> Progress<'static> {
    Progress {
        complete: Time(START + seconds * Span::SECOND.0),
        snapshot: None,
    }
}

/// A run with three complete seconds, and half of the fourth.
fn running(paced: bool, style: Style) -> Screen {
    let mut screen = Screen::new(about(paced), style);
    screen.begin(BIN).unwrap();
    screen.flows_opened(&keys()).unwrap();
    for bin in 0..35 {
        screen.timeline(&rows(bin)).unwrap();
    }
    screen.events(&events()).unwrap();
    let snapshot = snapshot();
    let progress = Progress {
        snapshot: Some(&snapshot),
        ..complete(3)
    };
    screen.progress(&progress).unwrap();
    screen
}

fn drawn(screen: &Screen, standing: &RunStanding, columns: u16, rows: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
    terminal
        .draw(|frame| screen.draw(frame.buffer_mut(), standing))
        .unwrap();
    terminal.backend().to_string()
}

/// Readings of a host: in the second before `after` seconds, this much more of each counter.
fn readings(after: u64, changes: &[(Counter, f64)]) -> SampleColumns {
    let mut rows = SampleColumns::default();
    for (counter, change) in changes {
        rows.push(&SampleRow {
            time: Time(START + after * Span::SECOND.0),
            source: "host",
            node: "h1".into(),
            object: "ens1".into(),
            counter: counter.name(),
            change: Some(*change),
            interval_ns: Some(Span::SECOND.0),
            ..SampleRow::default()
        });
    }
    rows
}

#[test]
fn counters_have_a_line() {
    let mut screen = running(false, PLAIN);
    assert!(
        !drawn(&screen, &live(), 80, 24).contains("counters:"),
        "nobody read any"
    );
    // The longer pause of two priorities counts, and the frames of both. The read at 2 s belongs to the third
    // second.
    let rows = readings(
        2,
        &[
            (Counter::PfcReceivePausedSeconds, 0.25),
            (Counter::PfcReceivePausedSeconds, 0.5),
            (Counter::PfcReceivedFrames, 700.0),
            (Counter::PfcReceivedFrames, 800.0),
            (Counter::PauseReceivedFrames, 0.0),
            (Counter::PortCnpSent, 2.5),
            (Counter::PortReceivedBytes, 1.25e9),
        ],
    );
    screen.samples(&rows).unwrap();
    let seen = drawn(&screen, &live(), 80, 24);
    assert_eq!(
        line(&seen, "counters:").trim_matches(['"', ' ']),
        "counters: paused by PFC 50.0 %, PFC in 1,500/s, CNPs out 2.5/s, in 10.0 Gbit/s,…"
    );
    // 802.3x alone is never called PFC.
    let mut screen = running(false, PLAIN);
    screen
        .samples(&readings(2, &[(Counter::PauseReceivedFrames, 133.0)]))
        .unwrap();
    let seen = drawn(&screen, &live(), 80, 24);
    let text = line(&seen, "counters:");
    assert!(
        text.contains("802.3x in 133/s") && !text.contains("PFC"),
        "{text}"
    );
    let mut screen = running(false, PLAIN);
    screen
        .samples(&readings(2, &[(Counter::PortCnpSent, 0.0)]))
        .unwrap();
    let seen = drawn(&screen, &live(), 80, 24);
    assert!(seen.contains("counters: no pause, mark, CNP or drop"), "{seen}");
}

#[test]
fn gpus_have_a_line() {
    let gpu = |object: &'static str, counter: Counter, detail: Option<&'static str>, value: f64| SampleRow {
        time: Time(START + 2 * Span::SECOND.0),
        source: "gpu",
        node: "h1".into(),
        object: object.into(),
        counter: counter.name(),
        detail: detail.map(Into::into),
        value,
        ..SampleRow::default()
    };
    let mut rows = SampleColumns::default();
    for row in [
        gpu("gpu10", Counter::GpuUtilization, None, 0.97),
        gpu("gpu9", Counter::GpuUtilization, None, 0.41),
        gpu("gpu9", Counter::GpuThrottled, Some("hw_thermal_slowdown"), 1.0),
        gpu("gpu0", Counter::GpuUtilization, None, 0.98),
        gpu("gpu0", Counter::GpuThrottled, Some("sw_power_cap"), 1.0),
        gpu("gpu0", Counter::GpuPower, None, 681.0),
        gpu("gpu9", Counter::GpuPower, None, 300.4),
        // It says nothing of its load.
        gpu("gpu1", Counter::GpuPower, None, 20.0),
        gpu("gpu0", Counter::GpuMemoryUsed, None, 75_822_530_560.0),
        gpu("gpu0", Counter::GpuClock, Some("sm"), 1.755e9),
        gpu("gpu0", Counter::GpuPcieRate, Some("received"), 2e9),
        gpu("gpu0", Counter::GpuPcieRate, Some("sent"), 1e9),
        gpu("gpu0", Counter::GpuPcieRate, Some("sent"), 4e9),
    ] {
        rows.push(&row);
    }
    let mut screen = running(false, PLAIN);
    assert!(
        !drawn(&screen, &live(), 80, 24).contains("gpus:"),
        "nobody read any"
    );
    screen.samples(&rows).unwrap();
    let seen = drawn(&screen, &live(), 80, 24);
    assert_eq!(
        line(&seen, "gpus:").trim_matches(['"', ' ']),
        "gpus: 98 - 41! 97 %, 1001 W, ! clocks held down"
    );
    assert!(
        !seen.contains("counters:"),
        "gauges of GPUs are no counters: {seen}"
    );
    press(&screen, "g");
    let page = drawn(&screen, &live(), 100, 24);
    let words = |text: &str| -> Vec<String> {
        let line = line(&page, text).trim_matches('"');
        line.split_whitespace().map(str::to_owned).collect()
    };
    // 75,822,530,560 bytes are 70.6 GiB; 3 GB/s of PCIe are 24 Gbit/s.
    assert_eq!(words("gpu0")[..6], ["gpu0", "98", "71", "681", "-", "1755"]);
    assert!(line(&page, "gpu0").contains("24.0 Gbit/s"), "{page}");
    assert!(line(&page, "gpu9").contains("held down"), "{page}");
    press(&screen, "g");
    assert!(!drawn(&screen, &live(), 100, 24).contains("LOAD %"));
}

/// The line that holds `text`.
fn line<'a>(screen: &'a str, text: &str) -> &'a str {
    screen
        .lines()
        .find(|line| line.contains(text))
        .unwrap_or_else(|| panic!("'{text}' is not in\n{screen}"))
}

fn press(screen: &Screen, text: &str) {
    for letter in text.chars() {
        assert_eq!(screen.key(Key::Char(letter)), None);
    }
}

/// Shows the third second: ten rows of each flow.
#[test]
fn flows_80() {
    let text = drawn(&running(false, PLAIN), &live(), 80, 24);
    // 125 + 31.25 + 0.125 MB in a second; the other tap's half of the first flow is left out.
    let bits = (125_000_000 + 31_250_000 + 125_000) * 8;
    assert_eq!(bits, 1_251_000_000);
    assert!(line(&text, "all in").contains("1.25 Gbit/s"));
    // 10,000 + 2,500 + 100 + 1,000 packets, 250 of 12,600 data packets marked, CNPs 30, retransmitted 5 x 4, missing 5 x 2.
    let sums = "1.25 Gbit/s, 10 missing, 20 retrans, CE 1.98 %, 30 CNPs, 4 of";
    assert!(line(&text, "all in").contains(sums), "{text}");
    // 10 us + the mean of 0 to 9 us: 14.5 us.
    assert!(line(&text, "0x11").contains("14.5 us"));
    insta::assert_snapshot!(text);
}

#[test]
fn flows_160() {
    let text = drawn(&running(false, PLAIN), &live(), 160, 24);
    assert!(line(&text, "all in").contains("4 of 4 flows, 13,600 packets"));
    insta::assert_snapshot!(text);
}

#[test]
fn flows_ascii() {
    let style = Style {
        unicode: false,
        ..PLAIN
    };
    let text = drawn(&running(false, style), &live(), 80, 24);
    assert!(text.is_ascii(), "{text}");
}

#[test]
fn colour_says_what_symbols_say_too() {
    use ratatui_core::style::Color;
    let colours = |color| {
        let screen = running(false, Style { color, ..PLAIN });
        let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
        terminal
            .draw(|frame| screen.draw(frame.buffer_mut(), &live()))
            .unwrap();
        let cells = terminal.backend().buffer().content.clone();
        let of = |wanted: Color| cells.iter().filter(|cell| cell.fg == wanted).count();
        (of(Color::Red), of(Color::Yellow))
    };
    let (red, yellow) = colours(true);
    assert!(red > 0 && yellow > 0);
    assert_eq!(colours(false), (0, 0));
}

#[test]
fn losses_of_the_capture_stand_in_the_header() {
    let mut screen = running(false, PLAIN);
    assert!(drawn(&screen, &live(), 80, 24).contains("capture: no loss known        "));
    let counted = CaptureCounts {
        overrun: 5_000,
        kernel: 1,
        ..live().counted.unwrap()
    };
    let mut events = EventColumns::default();
    // All that the stream tells of: 5,001 frames that were counted, and 7 that a ring buffer had no room for.
    for (kind, value) in [(EventKind::CaptureLost, 5_008), (EventKind::HostEventsLost, 2)] {
        events.push(&EventRow {
            kind,
            value: Some(value),
            ..EventRow::default()
        });
    }
    screen.events(&events).unwrap();
    let standing = RunStanding {
        counted: Some(counted),
        ..RunStanding::default()
    };
    insta::assert_snapshot!(
        line(&drawn(&screen, &standing, 120, 24), "LOST"),
        @r#""CAPTURE LOST: 1 frame dropped by the kernel, 5,000 frames not taken in time, 7 frames lost on the way, 2 host events    ""#
    );
    // Far behind: what is shown is old.
    let late = RunStanding {
        counted: Some(CaptureCounts {
            now: Time(START + 13 * Span::SECOND.0),
            ..counted
        }),
        ..RunStanding::default()
    };
    assert!(drawn(&running(false, PLAIN), &late, 160, 24).contains("10.0 s behind"));
}

/// The flows of a screen, from the top.
fn order(screen: &Screen) -> Vec<String> {
    let text = drawn(screen, &live(), 80, 24);
    let names = text.lines().filter(|line| line.contains(" > 10."));
    names
        .filter_map(|line| line.split_whitespace().find(|word| word.starts_with("0x")))
        .map(str::to_owned)
        .collect()
}

#[test]
fn a_flow_with_all_that_is_known() {
    let screen = running(false, PLAIN);
    // The third from the top.
    for _ in 0..3 {
        drawn(&screen, &live(), 80, 24);
        screen.key(Key::Down);
    }
    assert!(drawn(&screen, &live(), 80, 24).contains('>'));
    screen.key(Key::Enter);
    let text = drawn(&screen, &live(), 100, 30);
    // 31.25 of 156.25 MB to the same host: a fifth.
    assert!(line(&text, "sharing").contains("this one 80.0 %") && line(&text, "sharing").contains("20.0 %"));
    assert!(!text.contains('\u{1b}'), "a process may not steer the terminal");
    insta::assert_snapshot!(text);
    screen.key(Key::Escape);
    assert_eq!(order(&screen).len(), 4);
}

#[test]
fn enter_opens_the_first_flow_when_none_was_chosen() {
    let screen = running(false, PLAIN);
    let first = order(&screen)[0].clone();
    screen.key(Key::Enter);
    let page = drawn(&screen, &live(), 100, 30);
    assert!(page.contains("events") && page.contains(&first), "{page}");
    assert!(order(&screen).len() <= 1, "only one flow is shown: {page}");
}

#[test]
fn events_of_a_flow() {
    let screen = running(false, PLAIN);
    drawn(&screen, &live(), 80, 24);
    screen.key(Key::Down);
    screen.key(Key::Enter);
    let text = drawn(&screen, &live(), 80, 35);
    assert!(!text.contains('\u{1b}') && !text.contains('\u{202e}'));
    let events: Vec<&str> = text
        .lines()
        .skip_while(|line| !line.contains("events,"))
        .take(6)
        .collect();
    insta::assert_snapshot!(events.join("\n"), @r#"
    "events, the latest first                                                        "
    "  18:00:00.002000  stall, PSN 7, 1.50 ms, evil?[2Jname?                         "
    "  18:00:00.001450  retransmission run, PSN 7, 4 packets, timeout                "
    "  18:00:00.001200  gap, PSN 7, 2 packets                                        "
    "events of no flow: of hosts, of the capture                                     "
    "  18:00:00.002100  async event, 0, port down                                    "
    "#);
}

#[test]
fn findings_and_help() {
    let screen = running(false, PLAIN);
    press(&screen, "f");
    insta::assert_snapshot!("findings_80", drawn(&screen, &live(), 80, 24));
    press(&screen, "?");
    insta::assert_snapshot!("help_80", drawn(&screen, &live(), 80, 40));
    press(&screen, "?");
    assert!(order(&screen).len() == 4, "back to where one came from");
    let replay = running(true, PLAIN);
    press(&replay, "h");
    assert!(drawn(&replay, &replayed(), 80, 40).contains("replay twice as fast"));
}

#[test]
fn small_terminals() {
    let screen = running(false, PLAIN);
    for (columns, rows) in [(60, 15), (300, 100), (61, 15)] {
        let text = drawn(&screen, &live(), columns, rows);
        assert!(text.contains("0x13"), "{text}");
    }
    for (columns, rows) in [(59, 15), (60, 14), (20, 3), (1, 1)] {
        assert!(!drawn(&screen, &live(), columns, rows).contains("0x13"));
    }
    assert!(drawn(&screen, &live(), 40, 10).contains("40 x 10 is too small"));
}

#[test]
fn nothing_has_come_yet() {
    let mut screen = Screen::new(about(false), PLAIN);
    screen.begin(BIN).unwrap();
    let text = drawn(&screen, &live(), 80, 24);
    assert!(text.contains("no RoCE packet yet (50,000 frames read)"), "{text}");
    assert!(
        text.contains("no findings yet"),
        "that there is none is not known"
    );
    for key in [
        Key::Up,
        Key::Down,
        Key::Left,
        Key::Right,
        Key::Enter,
        Key::End,
        Key::PageDown,
    ] {
        assert!(matches!(screen.key(key), None | Some(Command::Pause(true))));
        drawn(&screen, &live(), 80, 24);
    }
}

#[test]
fn memory_is_bounded() {
    let mut screen = Screen::new(about(false), PLAIN);
    screen.begin(BIN).unwrap();
    for flow in 0..5_000 {
        let mut rows = TimelineColumns::default();
        let key = key(1, 2, flow);
        screen.flows_opened(&[key]).unwrap();
        rows.push(&TimelineRow {
            time: Time(START),
            flow_id: key.id(),
            packets: 1,
            data_packets: 1,
            payload_bytes: 1_000,
            ..TimelineRow::default()
        });
        screen.timeline(&rows).unwrap();
    }
    screen.progress(&complete(1)).unwrap();
    let text = drawn(&screen, &live(), 80, 24);
    // All of them count: 5,000 packets of 8,000 bits.
    assert!(line(&text, "all in").contains("40.0 Mbit/s") && line(&text, "all in").contains("5,000 packets"));
    assert!(
        text.contains("of 4096") && line(&text, "all in").contains("4,096 of 4,096 flows"),
        "{text}"
    );
    // After a silence longer than the kept intervals, other flows find room.
    screen.progress(&complete(500)).unwrap();
    let mut rows = TimelineColumns::default();
    rows.push(&TimelineRow {
        time: Time(START + 500 * Span::SECOND.0),
        flow_id: keys()[1].id(),
        packets: 1,
        ..TimelineRow::default()
    });
    screen.timeline(&rows).unwrap();
    screen.progress(&complete(501)).unwrap();
    assert!(line(&drawn(&screen, &live(), 80, 24), "all in").contains("1 of 1 flow,"));
}
