//! One capture in several files, as a capture with rotation leaves them.

use roce_capture::Container;

use crate::answer::GivenRun;
use crate::draw::Draw;
use crate::encoding::TapeEncoding;
use crate::input::Input;
use crate::tape::Tape;
use crate::transformation::InputCopy;

/// Files of a tape that is cut before these records. Their names do not tell their order.
fn cut(tape: &Tape, cuts: &[usize], draw: &mut Draw) -> Vec<Tape> {
    let mut cuts = cuts.to_vec();
    cuts.extend([0, tape.records.len()]);
    cuts.sort_unstable();
    cuts.dedup();
    let mut letters: Vec<char> = ('a'..='z').collect();
    draw.shuffle(&mut letters);
    let stem = tape
        .name
        .rsplit_once('.')
        .map_or(tape.name.as_str(), |(stem, _)| stem);
    let parts = cuts.windows(2).zip(letters);
    parts
        .map(|(part, letter)| {
            let ending = if tape.container == Container::Pcapng {
                "pcapng"
            } else {
                "pcap"
            };
            tape.with(
                format!("{stem}-{letter}.{ending}"),
                tape.records[part[0]..part[1]].to_vec(),
            )
        })
        .collect()
}

/// An input whose tapes are in files of their own each.
fn in_parts(
    input: &Input,
    draw: &mut Draw,
    mut parts: impl FnMut(&Tape, &mut Draw) -> Vec<Tape>,
) -> Option<GivenRun> {
    // The losses that a file states are those of the whole file.
    if input.tapes.iter().any(Tape::counts_losses) {
        return None;
    }
    let mut given = GivenRun::of(input);
    given.files.clear();
    for tape in &input.tapes {
        for part in parts(tape, draw) {
            let encoding = TapeEncoding::of(if part.interfaces.len() > 1 {
                Container::Pcapng
            } else {
                part.container
            });
            given.files.push((part, encoding));
        }
    }
    given.order = (0..given.files.len()).collect();
    (given.files.len() > input.tapes.len()).then_some(given)
}

pub(super) fn two_reversed(input: &Input, draw: &mut Draw) -> Option<InputCopy> {
    let mut given = in_parts(input, draw, |tape, draw| {
        cut(tape, &[tape.records.len() / 2], draw)
    })?;
    given.order.reverse();
    Some(given.into())
}

pub(super) fn seven_in_any_order(input: &Input, draw: &mut Draw) -> Option<InputCopy> {
    let mut given = in_parts(input, draw, |tape, draw| {
        let cuts: Vec<usize> = (0..6).map(|_| draw.place(tape.records.len())).collect();
        cut(tape, &cuts, draw)
    })?;
    draw.shuffle(&mut given.order);
    Some(given.into())
}

pub(super) fn between_equal_stamps(input: &Input, draw: &mut Draw) -> Option<InputCopy> {
    let mut given = in_parts(input, draw, |tape, draw| {
        let pairs = tape.records.windows(2).enumerate();
        let ties: Vec<usize> = pairs
            .filter(|(_, pair)| pair[0].time == pair[1].time)
            .map(|(place, _)| place + 1)
            .collect();
        if ties.is_empty() {
            return vec![tape.clone()];
        }
        let cuts = [ties[draw.place(ties.len())], ties[draw.place(ties.len())]];
        cut(tape, &cuts, draw)
    })?;
    draw.shuffle(&mut given.order);
    Some(given.into())
}

pub(super) fn overlapping(input: &Input, draw: &mut Draw) -> Option<InputCopy> {
    let given = in_parts(input, draw, |tape, draw| {
        let middle = tape.records.len() / 2;
        let more = draw.place(middle.min(40) + 1);
        let mut parts = cut(tape, &[middle], draw);
        if let Some(last) = parts.last_mut() {
            last.records = tape.records[middle - more..].to_vec();
        }
        parts
    })?;
    Some(given.into())
}

/// The input with a second of silence in the longest pause of its only tape, and the record after it.
fn with_silence(input: &Input) -> Option<(Input, usize)> {
    let [tape] = input.tapes.as_slice() else {
        return None;
    };
    let is_sorted = tape.records.is_sorted_by_key(|record| record.time);
    let pairs = tape.records.windows(2).enumerate();
    let (place, _) = pairs.max_by_key(|(_, pair)| pair[1].time.saturating_sub(pair[0].time))?;
    let mut quiet = input.clone();
    for record in &mut quiet.tapes[0].records[place + 1..] {
        record.time += 1_000_000_000;
    }
    is_sorted.then_some((quiet, place + 1))
}

pub(super) fn quiet_between_files(input: &Input, draw: &mut Draw) -> Option<InputCopy> {
    let (quiet, place) = with_silence(input)?;
    let given = in_parts(&quiet, draw, |tape, draw| cut(tape, &[place], draw))?;
    Some(InputCopy::of(quiet, given))
}

pub(super) fn quiet_between_sections(input: &Input, _: &mut Draw) -> Option<InputCopy> {
    let (quiet, place) = with_silence(input)?;
    let mut given = GivenRun::of(&quiet);
    for (_, encoding) in &mut given.files {
        encoding.container = Container::Pcapng;
        encoding.sections = vec![place];
    }
    Some(InputCopy::of(quiet, given))
}
