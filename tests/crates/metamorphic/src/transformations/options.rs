//! Options and the order of arguments.

use crate::answer::GivenRun;
use crate::draw::Draw;
use crate::input::Input;
use crate::transformation::InputCopy;

pub(super) fn reversed(input: &Input, _: &mut Draw) -> Option<InputCopy> {
    let mut given = GivenRun::of(input);
    given.order.reverse();
    (given.order.len() > 1).then(|| given.into())
}

fn bin(input: &Input, width: &str) -> Option<InputCopy> {
    let has_bin = input.arguments.iter().any(|argument| argument == "--bin");
    (!has_bin).then(|| GivenRun::of(input).option("--bin", width).into())
}

pub(super) fn bin_10us(input: &Input, _: &mut Draw) -> Option<InputCopy> {
    bin(input, "10us")
}

pub(super) fn bin_100us(input: &Input, _: &mut Draw) -> Option<InputCopy> {
    bin(input, "100us")
}

pub(super) fn bin_1ms(input: &Input, _: &mut Draw) -> Option<InputCopy> {
    bin(input, "1ms")
}

pub(super) fn bin_10ms(input: &Input, _: &mut Draw) -> Option<InputCopy> {
    bin(input, "10ms")
}

pub(super) fn bin_100ms(input: &Input, _: &mut Draw) -> Option<InputCopy> {
    bin(input, "100ms")
}

pub(super) fn threads_2(input: &Input, _: &mut Draw) -> Option<InputCopy> {
    Some(GivenRun::of(input).option("--threads", "2").into())
}

pub(super) fn threads_4(input: &Input, _: &mut Draw) -> Option<InputCopy> {
    Some(GivenRun::of(input).option("--threads", "4").into())
}
