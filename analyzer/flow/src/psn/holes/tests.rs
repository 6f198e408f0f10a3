use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

fn left(holes: &Holes) -> Vec<u64> {
    holes.kept.iter().flat_map(|hole| hole.first..hole.end).collect()
}

fn add(holes: &mut Holes, first: u64, end: u64) {
    holes.add(first, end, Time(first), None, MIN_OPEN_HOLES);
}

fn filled(holes: &mut Holes, first: u64, end: u64) -> Vec<u64> {
    holes
        .fill(first, end)
        .iter()
        .flat_map(|part| part.first..part.end)
        .collect()
}

/// A decision: first, end, class.
fn decided(holes: &mut Holes) -> Vec<(u64, u64, LossClass)> {
    let taken = holes.take_decided(true, false, 1, Time(u64::MAX));
    taken
        .iter()
        .map(|hole| (hole.first, hole.end, hole.class))
        .collect()
}

#[test]
fn filling_splits_and_joins_nothing() {
    let mut holes = Holes::default();
    add(&mut holes, 10, 15);
    assert_eq!(filled(&mut holes, 12, 13), [12]);
    assert_eq!(left(&holes), [10, 11, 13, 14]);
    assert!(!holes.contains(12), "filled once");
    assert!(holes.contains(11));
    assert_eq!(filled(&mut holes, 9, 12), [10, 11]);
    assert_eq!(filled(&mut holes, 13, 113), [13, 14]);
    assert!(left(&holes).is_empty());
}

#[test]
fn the_oldest_is_forgotten_and_counted() {
    let mut holes = Holes::default();
    for i in 0..=MIN_OPEN_HOLES as u64 {
        add(&mut holes, i * 4, i * 4 + 3);
    }
    assert_eq!(holes.kept.len(), MIN_OPEN_HOLES);
    assert!(!holes.contains(0));
    assert_eq!(decided(&mut holes), [(0, 3, LossClass::Unresolved)]);
    assert_eq!(filled(&mut holes, 5, 6), [5], "the split makes one too many");
    assert_eq!(holes.kept.len(), MIN_OPEN_HOLES);
    assert_eq!(decided(&mut holes), [(4, 5, LossClass::Unresolved)]);
    assert!(holes.contains(6));
}

#[test]
fn an_ack_covers_the_part_before_it() {
    let mut holes = Holes::default();
    add(&mut holes, 10, 15);
    holes.cover(12, Time(1_000));
    assert!(decided(&mut holes).is_empty(), "it may show up yet");
    holes.decide_covered(Time(1_000_999), Time(0));
    assert!(decided(&mut holes).is_empty());
    holes.decide_covered(Time(1_001_000), Time(0));
    assert_eq!(decided(&mut holes), [(10, 12, LossClass::CaptureLost)]);
    assert_eq!(left(&holes), [10, 11, 12, 13, 14], "their places are kept");
    holes.close(Time(0), Time(0));
    assert_eq!(
        decided(&mut holes),
        [(12, 15, LossClass::Unresolved)],
        "once each"
    );
    assert_eq!(holes.fates(), [0, 0, 2, 0, 3]);
}

#[test]
fn a_nak_names_the_rest_of_a_hole() {
    let mut holes = Holes::default();
    add(&mut holes, 10, 15);
    add(&mut holes, 20, 22);
    holes.cover(12, Time(1));
    holes.decide_at(12, LossClass::NetworkLost);
    assert_eq!(decided(&mut holes), [(12, 15, LossClass::NetworkLost)]);
    holes.decide_at(13, LossClass::Ambiguous);
    assert_eq!(decided(&mut holes), [], "counted before");
    holes.decide_at(16, LossClass::NetworkLost);
    holes.cover(30, Time(2));
    holes.close(Time(0), Time(0));
    assert_eq!(
        decided(&mut holes),
        [(10, 12, LossClass::CaptureLost), (20, 22, LossClass::CaptureLost)]
    );
}

#[test]
fn what_a_nak_names_may_come_late() {
    let mut holes = Holes::default();
    add(&mut holes, 10, 14);
    holes.decide_at(10, LossClass::NetworkLost);
    for part in &holes.fill(11, 12) {
        holes.came_late(part);
    }
    assert_eq!(
        decided(&mut holes),
        [
            (11, 12, LossClass::Reordered),
            (10, 11, LossClass::NetworkLost),
            (12, 14, LossClass::NetworkLost)
        ],
        "nothing was reported yet"
    );
    assert!(holes.take_revoked().is_empty());
    for part in &holes.fill(12, 14) {
        holes.came_late(part);
    }
    assert_eq!(decided(&mut holes), [], "reported");
    assert_eq!(holes.take_revoked(), [12, 13]);
    holes.take_back(LossClass::NetworkLost);
    assert_eq!(holes.fates(), [2, 2, 0, 0, 0]);
}

#[test]
fn without_the_other_direction_only_what_came_late_is_known() {
    let mut holes = Holes::default();
    add(&mut holes, 10, 12);
    add(&mut holes, 20, 22);
    add(&mut holes, 30, 32);
    holes.decide_at(10, LossClass::NetworkLost);
    let late = holes.fill(20, 22);
    holes.came_late(&late[0]);
    let fates =
        |taken: Vec<DecidedHole>| -> Vec<_> { taken.iter().map(|hole| (hole.first, hole.class)).collect() };
    assert_eq!(
        fates(holes.clone().take_decided(false, false, 1, Time(u64::MAX))),
        [(20, LossClass::Reordered)]
    );
    let mut paired = holes.clone();
    paired.take_decided(false, false, 1, Time(u64::MAX));
    assert_eq!(
        fates(paired.take_decided(true, false, 1, Time(u64::MAX))),
        [(10, LossClass::NetworkLost)]
    );
    holes.close(Time(0), Time(0));
    assert_eq!(
        fates(holes.take_decided(false, true, 1, Time(u64::MAX))),
        [
            (10, LossClass::Unresolved),
            (20, LossClass::Reordered),
            (30, LossClass::Unresolved)
        ]
    );
    assert_eq!(holes.fates(), [2, 0, 0, 0, 4]);
    let mut many = Holes::default();
    for i in 0..=MIN_OPEN_HOLES as u64 {
        add(&mut many, i * 4, i * 4 + 1);
        many.decide_at(i * 4, LossClass::NetworkLost);
    }
    assert_eq!(
        fates(many.take_decided(false, false, 1, Time(u64::MAX))),
        [(0, LossClass::Unresolved)],
        "bounded"
    );
}

#[test]
fn a_request_of_many_psns_decides_every_hole_that_it_takes() {
    let mut holes = Holes::default();
    add(&mut holes, 10, 12);
    add(&mut holes, 20, 22);
    add(&mut holes, 30, 32);
    holes.decide_within(11..25, LossClass::Ambiguous);
    assert_eq!(
        decided(&mut holes),
        [(11, 12, LossClass::Ambiguous), (20, 22, LossClass::Ambiguous)]
    );
}

proptest! {
    /// The intervals equal a plain set of numbers, and every number has one class in the end.
    #[test]
    fn as_a_set(gaps in prop::collection::vec((1u64..20, 1u64..5), 1..20),
                acts in prop::collection::vec((0u64..400, 1u64..30, 0u8..5), 1..40)) {
        let mut holes = Holes::default();
        let mut set = BTreeSet::new();
        let mut next = 0;
        for (psns, seen) in gaps {
            add(&mut holes, next, next + psns);
            set.extend(next..next + psns);
            next += psns + seen;
        }
        let missing = set.len() as u64;
        for (now, (first, psns, act)) in (0..).zip(acts) {
            match act {
                0 => holes.cover(first, Time(now * 400_000)),
                1 => holes.decide_covered(Time(now * 400_000), Time(0)),
                2 => holes.decide_at(first, LossClass::NetworkLost),
                3 => holes.decide_at(first, LossClass::Ambiguous),
                _ => {
                    let taken: Vec<u64> = set.range(first..first + psns).copied().collect();
                    set.retain(|psn| !(first..first + psns).contains(psn));
                    let parts = holes.fill(first, first + psns);
                    let psns: Vec<u64> = parts.iter().flat_map(|part| part.first..part.end).collect();
                    prop_assert_eq!(psns, taken);
                    for part in &parts {
                        holes.came_late(part);
                    }
                }
            }
            prop_assert_eq!(left(&holes), set.iter().copied().collect::<Vec<_>>());
        }
        holes.close(Time(0), Time(0));
        let events = decided(&mut holes);
        prop_assert_eq!(holes.fates().iter().sum::<u64>(), missing);
        prop_assert_eq!(events.iter().map(|(first, end, _)| end - first).sum::<u64>(), missing);
    }
}

#[test]
fn a_loss_waits_for_as_long_as_its_packet_may_come_late() {
    // Gaps at 100 ns and at 500 ns, both filled by retransmissions; packets of this flow come up to 200 ns late.
    let mut holes = Holes::default();
    let max = MIN_OPEN_HOLES;
    for (psn, time) in [(10, 100), (20, 500)] {
        holes.add(psn, psn + 1, Time(time), None, max);
        holes.decide_at(psn, LossClass::NetworkLost);
    }
    let fates =
        |taken: Vec<DecidedHole>| -> Vec<_> { taken.iter().map(|hole| (hole.first, hole.class)).collect() };
    // At 600 ns only what was missing at 400 ns or before is lost for sure.
    assert_eq!(
        fates(holes.take_decided(true, false, 1, Time(400))),
        [(10, LossClass::NetworkLost)]
    );
    assert!(holes.any_decided());
    // Its original comes at 650 ns: nothing has to be taken back.
    let mut late = holes.clone();
    late.came_after_all(20);
    assert_eq!(
        fates(late.take_decided(true, false, 1, Time(450))),
        [(20, LossClass::Reordered)]
    );
    assert!(late.take_revoked().is_empty() && !late.any_decided());
    // At 701 ns it would have come.
    assert_eq!(
        fates(holes.clone().take_decided(true, false, 1, Time(501))),
        [(20, LossClass::NetworkLost)]
    );
    // The capture ends at 600 ns: nobody knows.
    assert_eq!(
        fates(holes.take_decided(true, true, 1, Time(400))),
        [(20, LossClass::Unresolved)]
    );
}
