use proptest::prelude::*;

use roce_wire::Pause;

use super::links::MAX_AT_TAP;
use super::*;

const GIGABIT: u64 = 1_000_000_000;

fn host(number: u8) -> Address {
    Address::v4([10, 0, 0, number])
}

fn mac(number: u8) -> MacAddress {
    MacAddress([2, 0, 0, 0, 0, number])
}

fn pfc(time: u64, from: u8, priority: u8, quanta: u16) -> PauseFrame {
    let mut all = [0; 8];
    all[usize::from(priority)] = quanta;
    PauseFrame {
        before: 0,
        time: Time(time),
        tap: TapId(0),
        pause: Pause {
            source: mac(from),
            destination: MacAddress::PAUSE,
            kind: PauseKind::Priority,
            enabled: 1 << priority,
            quanta: all,
            present: 8,
        },
        reported: true,
    }
}

fn whole_link(time: u64, from: u8, quanta: u16) -> PauseFrame {
    let mut frame = pfc(time, from, 0, quanta);
    (frame.pause.kind, frame.pause.enabled, frame.pause.present) = (PauseKind::Link, 0, 1);
    frame
}

/// Host 1 at the link sends to 2, host 2 is at its other end.
fn pauses(link_rate: u64) -> Pauses {
    let mut pauses = Pauses::new(Some(link_rate));
    pauses.link(&LinkAddresses {
        before: 0,
        time: Time(0),
        tap: TapId(0),
        source: host(1),
        destination: host(2),
        source_mac: mac(1),
        destination_mac: mac(2),
        hop_limit: 64,
    });
    pauses
}

fn overlap(pauses: &Pauses, priority: u8, end: u64) -> Option<u64> {
    let found = pauses.overlap(TapId(0), (host(1), host(2)), Some(priority), Time(end));
    found.map(|found| found.in_bin)
}

fn in_all(pauses: &Pauses, end: u64) -> Option<u64> {
    let found = pauses.overlap(TapId(0), (host(1), host(2)), Some(3), Time(end));
    found.and_then(|found| found.in_all)
}

/// Start, length and class of the reported pauses, and the events' words.
fn reported(events: &[EventRow]) -> Vec<(u64, u64, u32)> {
    events
        .iter()
        .map(|event| (event.time.0, event.value.unwrap(), event.psn.unwrap()))
        .collect()
}

#[test]
fn a_quantum_is_512_bit_times() {
    // 512 / 10 = 51.2, 512 / 25 = 20.48, 512 / 100 = 5.12 ns; 65,535 of them: 3,355,392, 1,342,156.8 and 335,539.2 ns.
    for (gigabits, quanta, nanos) in [
        (10, 1, 51),
        (10, 65_535, 3_355_392),
        (25, 100, 2_048),
        (25, 65_535, 1_342_156),
        (40, 10, 128),
        (100, 100, 512),
        (100, 65_535, 335_539),
        (400, 65_535, 83_884),
    ] {
        assert_eq!(length(quanta, Some(gigabits * GIGABIT)), nanos, "{gigabits} Gb/s");
    }
}

#[test]
fn a_pause_ends_by_itself() {
    let mut events = Vec::new();
    let mut pauses = pauses(10 * GIGABIT);
    // 1,000 quanta at 10 Gb/s: 51,200 ns.
    pauses.frame(&pfc(100_000, 2, 3, 1_000), &mut events);
    assert_eq!(overlap(&pauses, 3, 1_000_000), Some(51_200));
    assert_eq!(overlap(&pauses, 4, 1_000_000), Some(0), "another priority");
    assert!(events.is_empty());
    pauses.end_bin(Time(1_000_000), &mut events);
    assert_eq!(reported(&events), [(100_000, 51_200, 3)]);
    assert_eq!(
        events[0].detail.as_deref(),
        Some("by 02:00:00:00:00:02, refreshed 0 times")
    );
    assert_eq!(overlap(&pauses, 3, 2_000_000), Some(0));
}

#[test]
fn a_pause_is_refreshed_and_ended() {
    let mut events = Vec::new();
    let mut pauses = pauses(100 * GIGABIT);
    // 65,535 quanta at 100 Gb/s: 335,539 ns. Refreshed before they are over, and ended in the next bin.
    pauses.frame(&pfc(800_000, 2, 3, 65_535), &mut events);
    pauses.frame(&pfc(900_000, 2, 3, 65_535), &mut events);
    assert_eq!(overlap(&pauses, 3, 1_000_000), Some(200_000));
    pauses.end_bin(Time(1_000_000), &mut events);
    assert!(events.is_empty());
    assert_eq!(
        overlap(&pauses, 3, 2_000_000),
        Some(235_539),
        "up to 900,000 + 335,539"
    );
    pauses.frame(&pfc(1_050_000, 2, 3, 0), &mut events);
    assert_eq!(reported(&events), [(800_000, 250_000, 3)]);
    assert_eq!(
        events[0].detail.as_deref(),
        Some("by 02:00:00:00:00:02, refreshed 1 times")
    );
    assert_eq!(overlap(&pauses, 3, 2_000_000), Some(50_000));
    pauses.frame(&pfc(1_060_000, 2, 3, 0), &mut events);
    assert_eq!(events.len(), 1, "there was nothing to end");
}

#[test]
fn a_frame_sets_the_time_anew() {
    let mut events = Vec::new();
    let mut pauses = pauses(10 * GIGABIT);
    pauses.frame(&pfc(0, 2, 3, 10_000), &mut events); // up to 512,000
    pauses.frame(&pfc(100_000, 2, 3, 1_000), &mut events); // up to 151,200
    pauses.frame(&pfc(400_000, 2, 3, 1_000), &mut events); // another pause
    assert_eq!(reported(&events), [(0, 151_200, 3)]);
    assert_eq!(overlap(&pauses, 3, 1_000_000), Some(151_200 + 51_200));
}

#[test]
fn a_pause_over_many_bins() {
    let mut events = Vec::new();
    let mut pauses = pauses(10 * GIGABIT);
    pauses.frame(&pfc(500_000, 2, 3, 65_535), &mut events); // 3,355,392: up to 3,855,392
    let mut in_bins = Vec::new();
    for bin in 1..=5 {
        in_bins.push(overlap(&pauses, 3, bin * 1_000_000));
        pauses.end_bin(Time(bin * 1_000_000), &mut events);
    }
    assert_eq!(
        in_bins,
        [
            Some(500_000),
            Some(1_000_000),
            Some(1_000_000),
            Some(855_392),
            Some(0)
        ]
    );
    assert_eq!(reported(&events), [(500_000, 3_355_392, 3)]);
}

#[test]
fn bins_without_rows_are_left_out() {
    let mut events = Vec::new();
    let mut pauses = pauses(10 * GIGABIT);
    pauses.frame(&pfc(500_000, 2, 3, 65_535), &mut events);
    assert_eq!(in_all(&pauses, 1_000_000), Some(500_000));
    // From bin 0 straight to bin 3.
    pauses.end_bin(Time(3_000_000), &mut events);
    assert_eq!(overlap(&pauses, 3, 4_000_000), Some(855_392));
    assert_eq!(in_all(&pauses, 4_000_000), Some(3_355_392));
}

#[test]
fn a_pause_of_the_whole_link_holds_for_every_priority() {
    let mut events = Vec::new();
    let mut pauses = pauses(100 * GIGABIT);
    pauses.frame(&whole_link(0, 2, 1_000), &mut events);
    assert_eq!(
        (overlap(&pauses, 0, 10_000), overlap(&pauses, 7, 10_000)),
        (Some(5_120), Some(5_120))
    );
    pauses.finish(Time(2_000), &mut events);
    assert_eq!(
        reported(&events),
        [(0, 2_000, 8)],
        "the capture ends before the pause"
    );
}

#[test]
fn without_the_speed_of_the_link_frames_tell_the_ends() {
    let mut events = Vec::new();
    let mut pauses = Pauses::new(None);
    pauses.frame(&pfc(0, 2, 3, 65_535), &mut events);
    pauses.frame(&pfc(200_000, 2, 3, 65_535), &mut events);
    pauses.frame(&pfc(250_000, 2, 3, 0), &mut events);
    // The next one is never ended; a frame 3,355,392 ns (at 10 Gb/s) after its last one is another's.
    pauses.frame(&pfc(1_000_000, 2, 3, 65_535), &mut events);
    pauses.frame(&pfc(2_000_000, 2, 3, 65_535), &mut events);
    pauses.frame(&pfc(9_000_000, 2, 3, 65_535), &mut events);
    pauses.finish(Time(10_000_000), &mut events);
    assert_eq!(
        reported(&events),
        [(0, 250_000, 3), (1_000_000, 1_000_000, 3), (9_000_000, 0, 3)]
    );
    assert_eq!(overlap(&pauses, 3, 10_000_000), None);
}

#[test]
fn what_is_not_known_is_absent() {
    let mut events = Vec::new();
    let mut pauses = pauses(100 * GIGABIT);
    assert!(!pauses.any());
    assert_eq!(
        overlap(&pauses, 3, 1_000),
        None,
        "no pause frame was ever seen at this tap"
    );
    pauses.frame(&pfc(0, 9, 3, 100), &mut events);
    assert!(pauses.any());
    assert_eq!(overlap(&pauses, 3, 1_000), None, "nobody knows where 9 stands");
    assert_eq!(
        overlap(&pauses, 4, 1_000),
        Some(0),
        "wherever it stands, it is silent of 4"
    );
    assert_eq!(
        pauses.overlap(TapId(0), (host(1), host(2)), None, Time(1_000)),
        None
    );
    assert_eq!(
        pauses.overlap(TapId(1), (host(1), host(2)), Some(4), Time(1_000)),
        None,
        "another tap"
    );
}

#[test]
fn only_one_part_of_a_run_tells() {
    let mut events = Vec::new();
    let mut pauses = pauses(100 * GIGABIT);
    let frame = PauseFrame {
        reported: false,
        ..pfc(0, 2, 3, 100)
    };
    pauses.frame(&frame, &mut events);
    assert_eq!(overlap(&pauses, 3, 1_000), Some(512));
    pauses.finish(Time(1_000), &mut events);
    assert!(events.is_empty());
}

#[test]
fn senders_without_number() {
    let mut events = Vec::new();
    let mut pauses = Pauses::new(Some(GIGABIT));
    for sender in 0..5_000_u16 {
        let [high, low] = sender.to_be_bytes();
        let mut frame = pfc(u64::from(sender), 0, 3, 1);
        frame.pause.source = MacAddress([2, 0, 0, 0, high, low]);
        pauses.frame(&frame, &mut events);
    }
    assert_eq!(pauses.senders.len(), MAX_AT_TAP);
    for tap in 1..1_000 {
        for sender in 0..64 {
            let frame = PauseFrame {
                tap: TapId(tap),
                ..pfc(0, sender, 3, 1)
            };
            pauses.frame(&frame, &mut events);
        }
    }
    assert_eq!(pauses.senders.len(), MAX_SENDERS);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn a_bin_is_paused_no_longer_than_it_lasts(
        frames in prop::collection::vec((0..400_000_u64, 1..4_u8, 0..3_u8, any::<u16>(), any::<bool>()), 0..60),
        gigabits in 1..400_u64,
    ) {
        let mut events = Vec::new();
        let mut pauses = pauses(gigabits * GIGABIT);
        let (mut time, mut bin, mut sum) = (0, 0, 0);
        for (after, from, priority, quanta, whole) in frames {
            time += after;
            while time >= (bin + 1) * 1_000_000 {
                let paused = overlap(&pauses, 0, (bin + 1) * 1_000_000);
                prop_assert!(paused.is_none_or(|paused| paused <= 1_000_000));
                sum += pauses.active[0].iter().map(|place| {
                    pauses.senders[*place].classes[0].in_bin(Time((bin + 1) * 1_000_000))
                }).sum::<u64>();
                bin += 1;
                pauses.end_bin(Time(bin * 1_000_000), &mut events);
            }
            let frame = if whole { whole_link(time, from, quanta) } else { pfc(time, from, priority, quanta) };
            pauses.frame(&frame, &mut events);
        }
        sum += pauses.active[0].iter().map(|place| {
            pauses.senders[*place].classes[0].in_bin(Time((bin + 1) * 1_000_000))
        }).sum::<u64>();
        pauses.finish(Time((bin + 1) * 1_000_000), &mut events);
        // The pauses of a class add up to what the bins had of them.
        let reported: u64 = events.iter().filter(|event| event.psn == Some(0)).filter_map(|event| event.value).sum();
        prop_assert_eq!(reported, sum);
    }

    #[test]
    fn any_frame_is_no_harm(
        frames in prop::collection::vec((any::<u64>(), any::<u8>(), any::<u8>(), any::<u16>(), 0..10_u8), 0..60),
        bins in prop::collection::vec(any::<u64>(), 60),
    ) {
        let mut events = Vec::new();
        let mut pauses = pauses(1);
        for ((time, from, enabled, quanta, present), bin) in frames.into_iter().zip(bins) {
            let mut frame = pfc(time, from, 0, quanta);
            (frame.pause.enabled, frame.pause.present, frame.pause.quanta) = (enabled, present, [quanta; 8]);
            pauses.frame(&frame, &mut events);
            overlap(&pauses, enabled, bin);
            if bin % 3 == 0 {
                pauses.end_bin(Time(bin), &mut events);
            }
        }
        pauses.finish(Time(u64::MAX), &mut events);
    }
}
