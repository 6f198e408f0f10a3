//! Less evidence: frames cut short, packets missing.

use roce_wire::{LinkType, Opcode, Operation};

use crate::answer::GivenRun;
use crate::compare::Relation;
use crate::draw::Draw;
use crate::input::Input;
use crate::packet;
use crate::tape::Record;
use crate::transformation::InputCopy;

fn cut(input: &Input, most: usize) -> Option<InputCopy> {
    let applies = input
        .tapes
        .iter()
        .any(|tape| tape.records.iter().any(|record| record.data.len() > most));
    let short = input.map(|tape| {
        let mut tape = tape.clone();
        for record in &mut tape.records {
            record.data.truncate(most);
        }
        for interface in &mut tape.interfaces {
            interface.snaplen = u32::try_from(most).unwrap_or_default();
        }
        tape
    });
    applies.then(|| GivenRun::of(&short).into())
}

pub(super) fn snaplen_60(input: &Input, _: &mut Draw) -> Option<InputCopy> {
    cut(input, 60)
}

pub(super) fn snaplen_96(input: &Input, _: &mut Draw) -> Option<InputCopy> {
    cut(input, 96)
}

/// The input with the records that `keeps` wants; `None` where too little is missing for anybody to see it, or nothing is left.
fn only(input: &Input, mut keeps: impl FnMut(&Record, LinkType) -> bool) -> Option<InputCopy> {
    let mut missing = 0;
    let mut left = 0;
    let holed = input.map(|tape| {
        let kept = tape.records.iter().filter(|record| {
            let is_kept = keeps(record, tape.link(record));
            if is_kept {
                left += 1;
            } else {
                missing += 1;
            }
            is_kept
        });
        tape.with(&tape.name, kept.cloned().collect())
    });
    (missing >= 5 && left > 0).then(|| GivenRun::of(&holed).into())
}

/// The packets of one direction, and what is no RoCE packet.
fn one_way(input: &Input, is_up: bool) -> Option<InputCopy> {
    let copied = only(input, |record, link| {
        packet::roce(link, record).is_none_or(|roce| (roce.source < roce.destination) == is_up)
    })?;
    Some(unless_proven(input, copied))
}

/// Leaves out copies in which two taps of one direction prove a loss between them.
fn unless_proven(input: &Input, mut copied: InputCopy) -> InputCopy {
    if input.tapes.len() > 1 {
        copied.relation = Some(Relation::Weaker { never_high: false });
    }
    copied
}

pub(super) fn only_up(input: &Input, _: &mut Draw) -> Option<InputCopy> {
    one_way(input, true)
}

pub(super) fn only_down(input: &Input, _: &mut Draw) -> Option<InputCopy> {
    one_way(input, false)
}

pub(super) fn no_answers(input: &Input, _: &mut Draw) -> Option<InputCopy> {
    let is_answer = |opcode: Opcode| {
        matches!(
            opcode.operation(),
            Operation::Acknowledge | Operation::AtomicAcknowledge
        )
    };
    let copied = only(input, |record, link| {
        packet::roce(link, record).is_none_or(|roce| !is_answer(roce.bth.opcode()))
    })?;
    Some(unless_proven(input, copied))
}

pub(super) fn one_percent(input: &Input, draw: &mut Draw) -> Option<InputCopy> {
    only(input, |_, _| !draw.one_in(100))
}

pub(super) fn half(input: &Input, draw: &mut Draw) -> Option<InputCopy> {
    only(input, |_, _| !draw.one_in(2))
}

pub(super) fn every_tenth(input: &Input, _: &mut Draw) -> Option<InputCopy> {
    let mut number = 0;
    only(input, |_, _| {
        number += 1;
        number % 10 == 0
    })
}

pub(super) fn tenth(input: &Input, draw: &mut Draw) -> Option<InputCopy> {
    only(input, |_, _| draw.one_in(10))
}

/// The packets that a mirror by opcode keeps: the first and last ones of messages, answers and CNPs.
pub(super) fn ends(input: &Input, _: &mut Draw) -> Option<InputCopy> {
    only(input, |record, link| {
        packet::roce(link, record).is_some_and(|roce| {
            let opcode = roce.bth.opcode();
            !opcode.carries_data() || opcode.is_first() || opcode.is_last()
        })
    })
}

/// The copy with an option that says what it holds.
fn declared(copied: Option<InputCopy>, sampled: &str) -> Option<InputCopy> {
    copied.map(|copied| InputCopy {
        given: copied.given.option("--sampled", sampled),
        ..copied
    })
}

pub(super) fn every_tenth_declared(input: &Input, draw: &mut Draw) -> Option<InputCopy> {
    declared(every_tenth(input, draw), "10")
}

pub(super) fn tenth_declared(input: &Input, draw: &mut Draw) -> Option<InputCopy> {
    declared(tenth(input, draw), "10")
}

pub(super) fn ends_declared(input: &Input, draw: &mut Draw) -> Option<InputCopy> {
    declared(ends(input, draw), "ends")
}

pub(super) fn bursts(input: &Input, draw: &mut Draw) -> Option<InputCopy> {
    let mut missing = 0;
    only(input, |_, _| {
        // Runs of 20 to 200 records, 110 on average, one in about every thousand.
        if missing == 0 && draw.one_in(990) {
            missing = draw.between(20, 200);
        }
        let is_kept = missing == 0;
        missing = missing.saturating_sub(1);
        is_kept
    })
}
