//! Equal records in another file.

use roce_capture::write::ByteOrder;
use roce_capture::{Compression, Container};

use crate::answer::GivenRun;
use crate::draw::Draw;
use crate::input::Input;
use crate::transformation::InputCopy;

pub(super) fn other_container(input: &Input, _: &mut Draw) -> Option<InputCopy> {
    // A pcap file has one interface, and no place for losses.
    let mut tapes = input.tapes.iter();
    let is_plain = tapes.all(|tape| {
        tape.container != Container::Pcapng || (tape.interfaces.len() == 1 && !tape.counts_losses())
    });
    let change = |given: GivenRun| {
        given.encoded(|_, encoding| {
            encoding.container = match encoding.container {
                Container::Pcapng => Container::PcapNanos,
                _ => Container::Pcapng,
            }
        })
    };
    is_plain.then(|| change(GivenRun::of(input)).into())
}

pub(super) fn big_endian(input: &Input, _: &mut Draw) -> Option<InputCopy> {
    Some(
        GivenRun::of(input)
            .encoded(|_, encoding| encoding.order = ByteOrder::Big)
            .into(),
    )
}

pub(super) fn microseconds(input: &Input, _: &mut Draw) -> Option<InputCopy> {
    let cut = input.map(|tape| {
        let mut tape = tape.clone();
        for record in &mut tape.records {
            record.time -= record.time % 1_000;
        }
        for interface in &mut tape.interfaces {
            interface.quantum_ns = interface.quantum_ns.max(1_000);
        }
        if tape.container == Container::PcapNanos {
            tape.container = Container::Pcap;
        }
        tape
    });
    let is_other = cut
        .tapes
        .iter()
        .zip(&input.tapes)
        .any(|(cut, whole)| cut.records != whole.records);
    is_other.then(|| GivenRun::of(&cut).into())
}

pub(super) fn nanoseconds(input: &Input, _: &mut Draw) -> Option<InputCopy> {
    let is_coarse = |container| matches!(container, Container::Pcap | Container::PcapModified);
    let applies = input.tapes.iter().any(|tape| is_coarse(tape.container));
    let given = GivenRun::of(input).encoded(|_, encoding| {
        if is_coarse(encoding.container) {
            encoding.container = Container::PcapNanos;
        }
    });
    applies.then(|| given.into())
}

pub(super) fn gzip(input: &Input, _: &mut Draw) -> Option<InputCopy> {
    let compress =
        |given: GivenRun| given.encoded(|_, encoding| encoding.compression = Some(Compression::Gzip));
    Some(compress(GivenRun::of(input)).into())
}

pub(super) fn zstandard(input: &Input, _: &mut Draw) -> Option<InputCopy> {
    let compress =
        |given: GivenRun| given.encoded(|_, encoding| encoding.compression = Some(Compression::Zstd));
    Some(compress(GivenRun::of(input)).into())
}

pub(super) fn piped(input: &Input, _: &mut Draw) -> Option<InputCopy> {
    let mut given = GivenRun::of(input);
    given.is_piped = true;
    (given.files.len() == 1).then(|| given.into())
}

pub(super) fn sections(input: &Input, draw: &mut Draw) -> Option<InputCopy> {
    let mut given = GivenRun::of(input);
    for (tape, encoding) in &mut given.files {
        encoding.container = Container::Pcapng;
        encoding.sections = (0..2).map(|_| draw.place(tape.records.len() + 1)).collect();
    }
    Some(given.into())
}
