//! Other stamps, or another order of the records.

use std::collections::BTreeMap;

use crate::answer::GivenRun;
use crate::draw::Draw;
use crate::input::Input;
use crate::transformation::InputCopy;

fn moved(input: &Input, change: impl Fn(u64) -> u64) -> InputCopy {
    let moved = input.map(|tape| {
        let mut tape = tape.clone();
        for record in &mut tape.records {
            record.time = change(record.time);
        }
        tape
    });
    GivenRun::of(&moved).into()
}

pub(super) fn shifted(input: &Input, _: &mut Draw) -> Option<InputCopy> {
    // No multiple of any bin.
    let by = input.step(7 * 86_400_000_000_000 + 123_457_000);
    Some(moved(input, |time| time + by))
}

pub(super) fn shifted_back(input: &Input, _: &mut Draw) -> Option<InputCopy> {
    let by = input.step(733_000);
    Some(moved(input, |time| time.saturating_sub(by)))
}

pub(super) fn disorder(input: &Input, draw: &mut Draw) -> Option<InputCopy> {
    let mixed = input.map(|tape| {
        let mut tape = tape.clone();
        // Records with equal stamps keep their order: nothing else tells it.
        let mut late: BTreeMap<u64, u64> = BTreeMap::new();
        tape.records.sort_by_cached_key(|record| {
            record.time + *late.entry(record.time).or_insert_with(|| draw.below(100_000))
        });
        tape
    });
    Some(GivenRun::of(&mixed).into())
}
