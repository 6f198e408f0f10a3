//! Other names and numbers for the same parties: addresses, queue pairs, PSNs.

use std::collections::{BTreeMap, BTreeSet};

use roce_wire::{Carrier, ExtendedHeaders, Opcode, Roce};

use crate::answer::GivenRun;
use crate::draw::Draw;
use crate::input::Input;
use crate::packet::{self, number24, put24};
use crate::tape::Tape;
use crate::transformation::InputCopy;

/// Opcodes of MRC: requests and answers of endpoints, which always go to queue pair 2.
const MRC_ENDPOINT: [u8; 2] = [0xd8, 0xd9];
/// SACK, NACK and probe of MRC.
const MRC_CONTROL: [u8; 3] = [0xdc, 0xdd, 0xde];

/// Every RoCE packet of a tape.
fn packets(tape: &Tape) -> impl Iterator<Item = Roce> {
    let records = tape.records.iter();
    records.filter_map(|record| packet::roce(tape.link(record), record))
}

/// True if all packets are in front of us as they were sent, by IP, and none is of queue pair 1, whose messages name queue pairs and
/// PSNs in their payload.
fn is_plain(input: &Input) -> bool {
    let mut packets = input.tapes.iter().flat_map(packets);
    packets.all(|roce| packet::is_bare(&roce) && roce.bth.destination_qpn().value() > 1)
}

/// The input with every RoCE packet changed.
fn changed(input: &Input, mut change: impl FnMut(&mut [u8], &Roce)) -> Input {
    input.map(|tape| {
        let mut tape = tape.clone();
        let links: Vec<_> = tape.records.iter().map(|record| tape.link(record)).collect();
        for (record, link) in tape.records.iter_mut().zip(links) {
            if let Some(roce) = packet::roce(link, record) {
                packet::change(link, record, &roce, &mut change);
            }
        }
        tape
    })
}

/// Other bytes for each address that occurs, at random.
fn renamed<const N: usize>(
    old: BTreeSet<[u8; N]>,
    draw: &mut Draw,
    name: impl Fn([u8; N], u8) -> [u8; N],
) -> BTreeMap<[u8; N], [u8; N]> {
    let mut numbers: Vec<u8> = (1..=254).collect();
    draw.shuffle(&mut numbers);
    old.into_iter()
        .zip(numbers)
        .map(|(old, number)| (old, name(old, number)))
        .collect()
}

fn bytes<const N: usize>(data: &[u8], place: usize) -> [u8; N] {
    let found = data.get(place..place + N).and_then(|bytes| bytes.try_into().ok());
    found.unwrap_or([0; N])
}

fn put(data: &mut [u8], place: usize, new: &[u8]) {
    if let Some(bytes) = data.get_mut(place..place + new.len()) {
        bytes.copy_from_slice(new);
    }
}

pub(super) fn addresses(input: &Input, draw: &mut Draw) -> Option<InputCopy> {
    let mut all = input.tapes.iter().flat_map(packets);
    let is_bare = all.all(|roce| packet::is_bare(&roce)) && input.tapes.iter().all(Tape::is_ethernet);
    let (mut short, mut long, mut macs) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for tape in &input.tapes {
        for record in &tape.records {
            macs.extend([bytes::<6>(&record.data, 0), bytes::<6>(&record.data, 6)]);
            let Some(roce) = packet::roce(tape.link(record), record) else {
                continue;
            };
            let network = usize::from(roce.network_offset);
            if roce.carrier == Carrier::RoceV2Ipv4 {
                short.extend([
                    bytes::<4>(&record.data, network + 12),
                    bytes::<4>(&record.data, network + 16),
                ]);
            } else {
                long.extend([
                    bytes::<16>(&record.data, network + 8),
                    bytes::<16>(&record.data, network + 24),
                ]);
            }
        }
    }
    if !is_bare || short.len().max(long.len()).max(macs.len()) > 254 {
        return None;
    }
    // Addresses of groups mean what they are.
    macs.retain(|mac| mac[0] & 1 == 0);
    let short = renamed(short, draw, |_, number| [172, 20, 33, number]);
    let long = renamed(long, draw, |_, number| {
        let mut address = [0; 16];
        (address[0], address[1], address[15]) = (0xfd, 0x77, number);
        address
    });
    let macs = renamed(macs, draw, |_, number| [0x02, 0x5e, 0x11, 0, 0, number]);
    let mut other = changed(input, |data, roce| {
        let network = usize::from(roce.network_offset);
        if roce.carrier == Carrier::RoceV2Ipv4 {
            for place in [network + 12, network + 16] {
                put(data, place, &short[&bytes::<4>(data, place)]);
            }
        } else {
            for place in [network + 8, network + 24] {
                put(data, place, &long[&bytes::<16>(data, place)]);
            }
        }
    });
    for record in other.tapes.iter_mut().flat_map(|tape| &mut tape.records) {
        for place in [0, 6] {
            if let Some(mac) = macs.get(&bytes::<6>(&record.data, place)) {
                put(&mut record.data, place, mac);
            }
        }
    }
    Some(GivenRun::of(&other).into())
}

/// The input with other queue pair numbers; `None` where they stand in payloads, too.
pub(super) fn with_qpns(input: &Input, draw: &mut Draw) -> Option<Input> {
    if !is_plain(input) {
        return None;
    }
    let mut used: BTreeSet<u32> = BTreeSet::new();
    for roce in input.tapes.iter().flat_map(packets) {
        used.insert(roce.bth.destination_qpn().value());
        used.insert(roce.source_qpn);
    }
    // Numbers that are equal stay equal; 0, 1 and 0xffffff have meanings of their own.
    let by = loop {
        let by = u32::try_from(draw.between(1, 0x00ff_fffe)).unwrap_or(1);
        if used.iter().all(|qpn| !matches!(qpn ^ by, 0 | 1 | 0x00ff_ffff)) {
            break by;
        }
    };
    Some(changed(input, |data, roce| {
        let bth = usize::from(roce.bth_offset);
        let other = number24(&data[bth + 5..]) ^ by;
        if !MRC_ENDPOINT.contains(&data[bth]) {
            put24(&mut data[bth + 5..], other);
        }
        if MRC_CONTROL.contains(&data[bth]) && data.len() >= bth + 24 {
            // Behind the BTH: eight bytes, then the low 16 bits of two queue pairs (OCP-MRC-1.0, SETH, NETH and PETH).
            for place in [bth + 20, bth + 22] {
                let [.., high, low] = by.to_be_bytes();
                let id = u16::from_be_bytes(bytes(data, place)) ^ u16::from_be_bytes([high, low]);
                put(data, place, &id.to_be_bytes());
            }
        }
        if roce.seen.has(ExtendedHeaders::DETH) && roce.bth.opcode().extended().has(ExtendedHeaders::DETH) {
            // Behind the BTH: the queue key, a reserved byte, the source queue pair (IBTA 9.3.2).
            let other = number24(&data[bth + 17..]) ^ by;
            put24(&mut data[bth + 17..], other);
        }
    }))
}

pub(super) fn qpns(input: &Input, draw: &mut Draw) -> Option<InputCopy> {
    with_qpns(input, draw).map(|other| GivenRun::of(&other).into())
}

/// True if a packet has a PSN of a sequence: a CNP has not.
fn has_psn(roce: &Roce) -> bool {
    !matches!(roce.bth.opcode(), Opcode::CNP | Opcode::INFINIBAND_CNP)
}

/// The input with `by` added to all PSNs, modulo 2^24.
fn with_psns(input: &Input, by: u32) -> InputCopy {
    let other = changed(input, |data, roce| {
        if has_psn(roce) {
            let bth = usize::from(roce.bth_offset);
            let other = number24(&data[bth + 9..]).wrapping_add(by) & 0x00ff_ffff;
            put24(&mut data[bth + 9..], other);
        }
    });
    GivenRun::of(&other).into()
}

/// PSNs of the data of the flow that has the most of them, in the order of the file.
fn busiest(input: &Input) -> Option<Vec<u32>> {
    let mut flows: BTreeMap<_, Vec<u32>> = BTreeMap::new();
    let data = input.tapes.iter().flat_map(packets);
    for roce in data.filter(|roce| has_psn(roce) && roce.bth.opcode().is_request()) {
        let key = (roce.source, roce.destination, roce.bth.destination_qpn().value());
        flows.entry(key).or_default().push(roce.bth.psn().value());
    }
    flows.into_values().max_by_key(Vec::len)
}

pub(super) fn psns_wrap(input: &Input, _: &mut Draw) -> Option<InputCopy> {
    let psns = is_plain(input).then(|| busiest(input))??;
    let middle = psns.get(psns.len() / 2)?;
    Some(with_psns(input, middle.wrapping_neg() & 0x00ff_ffff))
}

pub(super) fn psn_zero(input: &Input, _: &mut Draw) -> Option<InputCopy> {
    let psns = is_plain(input).then(|| busiest(input))??;
    let mut pairs = psns.windows(2);
    // The first PSN that is at most half of all PSNs behind the one before it.
    let again = pairs.find(|pair| pair[0].wrapping_sub(pair[1]) & 0x00ff_ffff < 1 << 23)?[1];
    Some(with_psns(input, again.wrapping_neg() & 0x00ff_ffff))
}
