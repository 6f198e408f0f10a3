//! Clocks that were set forward while they recorded. One capture shows a silence there; a second one, whose packets go on meanwhile, shows the
//! step: no one difference of the two clocks fits, but one before it and another one behind it.

use roce_flow::clocks::{self, Comparison, MIN_PACKETS, StampedPacket};
use roce_model::Time;

/// A clock that was set forward.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct SetForward {
    /// It is the reference's clock, not the other one.
    pub(super) is_reference: bool,
    /// The first stamp behind the step.
    pub(super) at: Time,
    /// By how much, in nanoseconds.
    pub(super) by_ns: u64,
}

/// Packets on each side of a step that are compared.
const NEAR: usize = 8;
/// A smaller step is none: queues hold packets for some microseconds.
const MIN_STEP_NS: i128 = 10_000;

/// The step of one of two clocks with which their stamps fit. `quantum_ns` as for [`clocks::compare`].
pub(super) fn set_forward(packets: &[StampedPacket], quantum_ns: u64) -> Option<SetForward> {
    let steps = [false, true]
        .into_iter()
        .filter_map(|is_reference| candidate(packets, is_reference));
    steps.into_iter().find(|step| {
        matches!(
            clocks::compare(&undone(packets, *step), quantum_ns),
            Comparison::Fits(_)
        )
    })
}

/// The packets as the clock would have stamped them without the step.
fn undone(packets: &[StampedPacket], step: SetForward) -> Vec<StampedPacket> {
    let mut undone = packets.to_vec();
    for packet in &mut undone {
        let stamp = if step.is_reference {
            &mut packet.reference
        } else {
            &mut packet.other
        };
        if *stamp >= step.at {
            stamp.0 = stamp.0.saturating_sub(step.by_ns);
        }
    }
    undone
}

/// The silence of one clock that is by the most longer than that of the other one.
fn candidate(packets: &[StampedPacket], is_reference: bool) -> Option<SetForward> {
    if packets.len() < 2 * MIN_PACKETS {
        return None;
    }
    let mut stamps: Vec<(Time, i128)> = packets
        .iter()
        .map(|packet| {
            let (own, its) = if is_reference {
                (packet.reference, packet.other)
            } else {
                (packet.other, packet.reference)
            };
            (own, i128::from(own.0) - i128::from(its.0))
        })
        .collect();
    stamps.sort_unstable();
    let median = |part: &[(Time, i128)]| {
        let mut apart: Vec<i128> = part.iter().map(|(_, apart)| *apart).collect();
        apart.sort_unstable();
        apart.get(apart.len() / 2).copied().unwrap_or_default()
    };
    let rise = |at: usize| {
        let before = median(&stamps[at.saturating_sub(NEAR)..at]);
        median(&stamps[at..stamps.len().min(at + NEAR)]) - before
    };
    let places = MIN_PACKETS..stamps.len() + 1 - MIN_PACKETS;
    let (rise, at) = places.map(|at| (rise(at), at)).max_by_key(|(rise, at)| {
        // The one with the longest silence before it counts among equal ones.
        (*rise, stamps[*at].0.since(stamps[*at - 1].0))
    })?;
    // The silence is as long as the step, or the other clock has stepped.
    let silence = i128::from(stamps[at].0.since(stamps[at - 1].0).0);
    let is_step = rise >= MIN_STEP_NS && silence.saturating_mul(10) >= rise.saturating_mul(9);
    is_step.then_some(SetForward {
        is_reference,
        at: stamps[at].0,
        by_ns: u64::try_from(rise).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets each 20 us, there and back, 5 us from tap to tap; a clock is 1 ms ahead, and `by` more from the middle on.
    fn packets(by: u64, of_reference: bool) -> Vec<StampedPacket> {
        (0..200u64)
            .map(|number| {
                let forward = number % 2 == 0;
                let time = 1_000_000_000 + number * 20_000;
                let step = if number >= 100 { by } else { 0 };
                let (there, back) = if forward { (0, 5_000) } else { (5_000, 0) };
                let [own, its] = if of_reference { [step, 0] } else { [0, step] };
                StampedPacket {
                    reference: Time(time + there + own),
                    other: Time(time + back + 1_000_000 + its),
                    way: 1,
                    forward,
                    reference_first: None,
                }
            })
            .collect()
    }

    #[test]
    fn a_step_is_of_the_clock_with_the_silence() {
        for of_reference in [false, true] {
            let packets = packets(300_000_000, of_reference);
            assert_eq!(clocks::compare(&packets, 2), Comparison::Contradicts);
            let step = set_forward(&packets, 2).unwrap();
            assert_eq!(step.is_reference, of_reference);
            // The medians of both directions are 10 us apart at the most.
            assert!(step.by_ns.abs_diff(300_000_000) <= 10_000, "{step:?}");
        }
        assert_eq!(set_forward(&packets(0, false), 2), None);
    }
}
