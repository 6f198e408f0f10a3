use super::*;
use crate::counts::{Counts, Rare};
use crate::key::slot;

const MS: u64 = 1_000_000;

fn row(flow: u64, packets: u32) -> Row {
    let counts = Counts {
        packets,
        ..Counts::default()
    };
    Row {
        flow_id: FlowId(flow),
        tap: TapId(0),
        epoch: 0,
        pair: 0,
        paired: false,
        times: BinTimes::default(),
        knows_cnp: false,
        counts,
        limits: Limits::default(),
        active: Active::ALL,
    }
}

fn bins() -> Bins {
    let mut bins = Bins::new(Span(MS));
    bins.advance(100);
    bins
}

/// The current bin ends with these rows.
fn advance(bins: &mut Bins, number: u64, rows: Vec<Row>) {
    for row in rows {
        let (_, pair) = bins.place_row(&mut 0, &Groups::default(), row.tap);
        bins.latest.push(Row { pair, ..row });
    }
    bins.advance(number);
}

/// Adds packets to a flow's row; says whether the bin is still there.
fn add(bins: &mut Bins, number: u64, flow: u64, packets: u32) -> bool {
    bins.add_earlier(number, row(flow, packets), &Groups::default())
        .is_none()
}

/// Flows and packets of a bin's rows.
fn rows(bin: &Bin) -> Vec<(u64, u32)> {
    assert!(bin.rows.is_whole());
    let columns = &bin.rows.columns;
    let packets = columns.packets.iter().flatten().copied();
    columns.flow_id.iter().flatten().copied().zip(packets).collect()
}

#[test]
fn times_fall_into_bins() {
    let bins = bins();
    assert_eq!(bins.place(Time(100 * MS)), BinPlace::Current);
    assert_eq!(bins.place(Time(101 * MS - 1)), BinPlace::Current);
    assert_eq!(bins.place(Time(101 * MS)), BinPlace::Later(101));
    assert_eq!(bins.place(Time(100 * MS - 1)), BinPlace::Earlier(99));
    assert_eq!(bins.time(100), Time(100 * MS));
    assert_eq!(
        Bins::new(Span(MS)).place(Time(0)),
        BinPlace::Later(0),
        "time zero, too, begins a bin"
    );
}

#[test]
fn a_bin_stays_changeable_for_ten_milliseconds() {
    let mut bins = bins();
    advance(&mut bins, 101, vec![row(1, 5)]);
    advance(&mut bins, 110, vec![row(1, 7)]);
    assert!(bins.take_done(false).is_none());
    assert_eq!(bins.watermark(), 100);
    bins.advance(111);
    assert_eq!(bins.watermark(), 101);
    let done = bins.take_done(false).unwrap();
    assert_eq!((done.number, rows(&done)), (100, vec![(1, 5)]));
    assert!(bins.take_done(false).is_none(), "101 is next and not over");
    assert_eq!(bins.take_done(true).unwrap().number, 101);
    assert!(bins.take_done(true).is_none());
}

#[test]
fn windows_have_a_least_and_a_most() {
    // 10 ms are no bin of 1 s, 4 are kept; of 10 us they are 1,000; of 1 us 10,000, 1,024 are kept.
    for (width, window) in [(1_000 * MS, 4), (MS, 10), (10_000, 1_000), (1_000, 1_024)] {
        let mut bins = Bins::new(Span(width));
        bins.advance(2_000);
        assert_eq!(bins.watermark(), 2_000 - window);
    }
}

#[test]
fn counts_of_an_earlier_bin() {
    let mut bins = bins();
    advance(&mut bins, 105, vec![row(1, 5), row(2, 6)]);
    assert!(add(&mut bins, 100, 2, 1));
    assert!(add(&mut bins, 100, 3, 2));
    assert!(bins.add_at(100, 0, &row(1, 1)), "the first row is that of flow 1");
    assert!(!bins.add_at(100, 1, &row(1, 1)), "the second is not");
    assert!(add(&mut bins, 103, 1, 3));
    assert!(!add(&mut bins, 94, 1, 9), "11 bins ago");
    assert!(add(&mut bins, 95, 1, 4));
    let all: Vec<_> = core::iter::from_fn(|| bins.take_done(true))
        .map(|bin| (bin.number, rows(&bin)))
        .collect();
    let expected = [
        (95, vec![(1, 4)]),
        (100, vec![(1, 6), (2, 7), (3, 2)]),
        (103, vec![(1, 3)]),
    ];
    assert_eq!(all, expected, "in order, no row twice");
}

#[test]
fn a_cut_ends_all_bins() {
    let mut bins = bins();
    advance(&mut bins, 101, vec![row(1, 5), row(2, 6)]);
    bins.latest.push(row(3, 7));
    bins.cut();
    assert_eq!((bins.watermark(), bins.current()), (102, 101));
    let all: Vec<_> = core::iter::from_fn(|| bins.take_done(false))
        .map(|bin| (bin.number, rows(&bin)))
        .collect();
    assert_eq!(all, [(100, vec![(1, 5), (2, 6)]), (101, vec![(3, 7)])]);
    assert_eq!(bins.held(), 0);
    assert!(!add(&mut bins, 100, 1, 1), "a row of its own");
    // Time has not moved: the bin goes on, and is emitted once more.
    assert_eq!(bins.place(Time(101 * MS + 1)), BinPlace::Current);
    advance(&mut bins, 102, vec![row(3, 8)]);
    let again = bins.take_done(false).unwrap();
    assert_eq!((again.number, rows(&again)), (101, vec![(3, 8)]));
    advance(&mut bins, 103, vec![row(3, 9)]);
    assert_eq!(bins.held(), 1);
    assert!(bins.take_done(false).is_none(), "102 was not cut");
}

#[test]
fn undecided_flows_are_settled_before_their_bin_goes() {
    let mut bins = bins();
    bins.undecided_at(100, slot(7));
    advance(&mut bins, 101, vec![row(1, 5)]);
    bins.undecided_at(100, slot(8));
    bins.advance(111);
    assert_eq!(bins.undecided_in_done(false), [slot(7), slot(8)]);
    assert!(bins.undecided_in_done(false).is_empty(), "once");
    // Its time is over, and still the row can be corrected.
    let late = Rare {
        late: 1,
        ..Rare::default()
    };
    let late = Row {
        counts: late.into(),
        ..row(1, 0)
    };
    assert!(bins.add_earlier(100, late, &Groups::default()).is_none());
    let done = bins.take_done(false).unwrap();
    assert_eq!(done.rows.columns.late.at(0), Some(&1));
    assert!(!add(&mut bins, 100, 1, 0), "now it is gone");
}
