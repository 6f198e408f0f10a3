//! Traffic beside, behind and before the capture, and other taps.

use roce_capture::{Container, Interface};
use roce_wire::{Carrier, LinkType};

use super::names;
use crate::answer::GivenRun;
use crate::draw::Draw;
use crate::input::Input;
use crate::packet;
use crate::simulated;
use crate::tape::{Record, Tape};
use crate::transformation::InputCopy;

const TEN_SECONDS: u64 = 10_000_000_000;

/// An ARP request: no RoCE.
fn foreign(time: u64) -> Record {
    let mut data = vec![0xff; 6];
    data.extend([
        2, 0, 0, 0, 0, 9, 8, 6, 0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 9, 198, 51, 100, 1,
    ]);
    data.extend([0, 0, 0, 0, 0, 0, 198, 51, 100, 2]);
    data.resize(60, 0);
    Record {
        time,
        original: 60,
        interface: 0,
        data,
    }
}

/// Healthy traffic from a time on, with stamps as coarse as those of the input.
fn healthy_at(input: &Input, time: u64) -> impl Iterator<Item = Record> {
    let step = input.step(1);
    simulated::healthy().iter().cloned().map(move |mut record| {
        record.time = (time + record.time) / step * step;
        record
    })
}

/// Two lists as one: a record of the second comes before the first record of the first list that is later. Neither list changes its
/// order.
fn merged(first: Vec<Record>, second: impl IntoIterator<Item = Record>) -> Vec<Record> {
    let mut second = second.into_iter().peekable();
    let mut all = Vec::new();
    for record in first {
        while let Some(other) = second.next_if(|other| other.time < record.time) {
            all.push(other);
        }
        all.push(record);
    }
    all.extend(second);
    all
}

/// The input with more records in its first tape, in the order of time.
fn with_more(input: &Input, more: impl IntoIterator<Item = Record>) -> Option<InputCopy> {
    let mut other = input.clone();
    let tape = other.tapes.first_mut().filter(|tape| tape.is_ethernet())?;
    tape.records = merged(std::mem::take(&mut tape.records), more);
    Some(GivenRun::of(&other).into())
}

pub(super) fn healthy(input: &Input, draw: &mut Draw) -> Option<InputCopy> {
    let (first, last) = input.span()?;
    with_more(input, healthy_at(input, first + draw.below(last - first + 1)))
}

pub(super) fn healthy_often(input: &Input, _: &mut Draw) -> Option<InputCopy> {
    let (first, _) = input.span()?;
    // Other hosts each time.
    let often = (0..8).flat_map(|number: u8| {
        healthy_at(input, first).map(move |mut record| {
            let link = LinkType::ETHERNET;
            if let Some(roce) = packet::roce(link, &record) {
                packet::change(link, &mut record, &roce, |data, roce| {
                    debug_assert_eq!(roce.carrier, Carrier::RoceV2Ipv4);
                    let network = usize::from(roce.network_offset);
                    (data[network + 14], data[network + 18]) = (100 + number, 100 + number);
                    (data[3], data[9]) = (number, number);
                });
            }
            record
        })
    });
    with_more(input, often)
}

pub(super) fn quiet(input: &Input, _: &mut Draw) -> Option<InputCopy> {
    let (_, last) = input.span()?;
    with_more(input, [foreign(last + TEN_SECONDS)])
}

pub(super) fn healthy_behind(input: &Input, _: &mut Draw) -> Option<InputCopy> {
    let (_, last) = input.span()?;
    with_more(input, healthy_at(input, last + TEN_SECONDS))
}

/// The input, and after ten seconds of silence `again`.
fn and_again(input: &Input, again: &Input) -> Option<InputCopy> {
    let (first, last) = input.span()?;
    // A whole number of seconds.
    let by = (last - first).div_ceil(1_000_000_000) * 1_000_000_000 + TEN_SECONDS;
    let mut other = input.clone();
    for (tape, again) in other.tapes.iter_mut().zip(&again.tapes) {
        let later = again.records.iter().cloned().map(|mut record| {
            record.time += by;
            record
        });
        tape.records.extend(later);
    }
    Some(GivenRun::of(&other).into())
}

pub(super) fn repeated(input: &Input, _: &mut Draw) -> Option<InputCopy> {
    and_again(input, input)
}

pub(super) fn repeated_renamed(input: &Input, draw: &mut Draw) -> Option<InputCopy> {
    and_again(input, &names::with_qpns(input, draw)?)
}

/// Every frame a second time, 3 us later (more where stamps are coarser), as `change` makes it.
fn twice(input: &Input, change: impl Fn(&mut Record, LinkType)) -> InputCopy {
    let by = input.step(3_000);
    let other = input.map(|tape| {
        let mut tape = tape.clone();
        let copies: Vec<Record> = tape
            .records
            .iter()
            .map(|record| {
                let mut copy = record.clone();
                copy.time += by;
                change(&mut copy, tape.link(record));
                copy
            })
            .collect();
        tape.records = merged(tape.records, copies);
        tape
    });
    GivenRun::of(&other).into()
}

/// True if a packet and its copy can be told from two packets: CNPs and pause frames are equal to the byte.
fn can_be_doubled(input: &Input) -> bool {
    let records = || {
        input
            .tapes
            .iter()
            .flat_map(|tape| tape.records.iter().map(|record| (tape.link(record), record)))
    };
    records().all(|(link, record)| {
        packet::roce(link, record).is_some_and(|roce| packet::is_bare(&roce) && !roce.bth.opcode().is_cnp())
    })
}

pub(super) fn doubled(input: &Input, _: &mut Draw) -> Option<InputCopy> {
    can_be_doubled(input).then(|| twice(input, |_, _| ()))
}

pub(super) fn doubled_routed(input: &Input, _: &mut Draw) -> Option<InputCopy> {
    let applies = can_be_doubled(input) && input.tapes.iter().all(Tape::is_ethernet);
    let route = |record: &mut Record, link: LinkType| {
        if let Some(roce) = packet::roce(link, record) {
            packet::change(link, record, &roce, |data, roce| {
                let network = usize::from(roce.network_offset);
                (data[5], data[11]) = (data[5] ^ 0x40, data[11] ^ 0x40);
                // The TTL, or the hop limit.
                data[network + if roce.carrier == Carrier::RoceV2Ipv4 { 8 } else { 7 }] -= 1;
            });
        }
    };
    applies.then(|| twice(input, route))
}

pub(super) fn same_file_twice(input: &Input, _: &mut Draw) -> Option<InputCopy> {
    let mut given = GivenRun::of(input);
    let (tape, encoding) = given.files.first()?;
    let again = tape.with(format!("again-{}", tape.name), tape.records.clone());
    let encoding = encoding.clone();
    given.order.push(given.files.len());
    given.files.push((again, encoding));
    Some(given.into())
}

pub(super) fn same_path_twice(input: &Input, _: &mut Draw) -> Option<InputCopy> {
    let mut given = GivenRun::of(input);
    given.order.push(0);
    Some(given.into())
}

/// The input and another file, which is given first.
fn and_tap(input: &Input, records: Vec<Record>) -> InputCopy {
    let mut other = input.clone();
    let interface = Interface {
        link: LinkType::ETHERNET,
        name: None,
        description: None,
        snaplen: 0,
        fcs_bytes: 0,
        quantum_ns: 1,
        dropped: None,
        section: 0,
    };
    other.tapes.insert(
        0,
        Tape {
            name: "other.pcap".to_owned(),
            container: Container::PcapNanos,
            interfaces: vec![interface],
            records,
        },
    );
    GivenRun::of(&other).into()
}

pub(super) fn empty_tap(input: &Input, _: &mut Draw) -> Option<InputCopy> {
    Some(and_tap(input, Vec::new()))
}

pub(super) fn foreign_tap(input: &Input, _: &mut Draw) -> Option<InputCopy> {
    let (first, last) = input.span()?;
    Some(and_tap(input, vec![foreign(first.midpoint(last))]))
}

pub(super) fn tap_before(input: &Input, _: &mut Draw) -> Option<InputCopy> {
    let (first, _) = input.span()?;
    Some(and_tap(input, healthy_at(input, first - 1_000_000_000).collect()))
}

pub(super) fn tap_unrelated(input: &Input, _: &mut Draw) -> Option<InputCopy> {
    let (first, last) = input.span()?;
    Some(and_tap(input, healthy_at(input, first.midpoint(last)).collect()))
}

/// The records of a tape up to a time, each somewhat later.
fn seen_later(tape: &Tape, until: u64, by: u64) -> Vec<Record> {
    let seen = tape.records.iter().filter(|record| record.time <= until);
    seen.cloned()
        .map(|mut record| {
            record.time += by;
            record
        })
        .collect()
}

pub(super) fn tap_part(input: &Input, _: &mut Draw) -> Option<InputCopy> {
    let [tape] = input.tapes.as_slice() else {
        return None;
    };
    let (first, last) = tape.span()?;
    let mut other = input.clone();
    let records = seen_later(tape, first + (last - first) / 5 * 2, input.step(2_000));
    other
        .tapes
        .push(tape.with(format!("part-{}", tape.name), records));
    Some(GivenRun::of(&other).into())
}

pub(super) fn tap_overlap(input: &Input, _: &mut Draw) -> Option<InputCopy> {
    let [tape] = input.tapes.as_slice() else {
        return None;
    };
    let (first, last) = tape.span()?;
    let from = first + (last - first) / 5 * 2;
    let late = tape.records.iter().filter(|record| record.time >= from);
    let mut base = input.clone();
    base.tapes = vec![tape.with(&tape.name, late.cloned().collect())];
    let mut other = base.clone();
    let records = seen_later(tape, first + (last - first) / 2, input.step(2_000));
    other
        .tapes
        .push(tape.with(format!("part-{}", tape.name), records));
    Some(InputCopy::of(base, GivenRun::of(&other)))
}
