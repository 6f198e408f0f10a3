//! Counters of a switch's port, by their common names.

use roce_model::{Counter, value_of};

use super::{Port, Samples, sum};
use crate::network::count::{PortCount, Traffic};
use crate::network::topology::LINK_CLASS;

/// Label `kind` of a port that others see, as opposed to one inside a switch.
const PORT: &str = "port";
/// Label `cast`: RoCE has no other.
const UNICAST: &str = "unicast";

/// Adds the samples of a switch's port. `depths` are the bytes in its egress queues now.
pub(super) fn samples(
    samples: &mut Samples,
    port: &Port,
    own: &PortCount,
    depths: &[u64; 8],
    priorities: &[u8],
) {
    let packets = |traffic: &[Traffic; 8]| value_of(sum(&traffic.map(|one| one.packets)));
    let bytes = |traffic: &[Traffic; 8]| value_of(sum(&traffic.map(|one| one.bytes)));
    let link = usize::from(LINK_CLASS);
    #[rustfmt::skip]
    let interface: [(Counter, f64, &[&'static str]); 11] = [
        (Counter::SwitchInterfaceRate, port.rate.bits() / 8.0, &[PORT]),
        (Counter::SwitchInterfaceReceivedBytes, bytes(&own.received), &[PORT]),
        (Counter::SwitchInterfaceTransmittedBytes, bytes(&own.sent), &[PORT]),
        (Counter::SwitchInterfaceReceivedPackets, packets(&own.received), &[PORT, UNICAST]),
        (Counter::SwitchInterfaceTransmittedPackets, packets(&own.sent), &[PORT, UNICAST]),
        (Counter::SwitchPfcReceivedFrames, value_of(sum(&own.pauses_received[..link])), &[PORT]),
        (Counter::SwitchPfcTransmittedFrames, value_of(sum(&own.pauses_sent[..link])), &[PORT]),
        (Counter::SwitchPauseReceivedFrames, value_of(own.pauses_received[link]), &[PORT]),
        (Counter::SwitchPauseTransmittedFrames, value_of(own.pauses_sent[link]), &[PORT]),
        (Counter::SwitchMmuDroppedPackets, packets(&own.refused), &[PORT]),
        (Counter::SwitchMmuDroppedBytes, bytes(&own.refused), &[PORT]),
    ];
    for (counter, value, details) in interface {
        if let Some(sample) = samples.push(counter, value) {
            sample.details = details.iter().map(|text| (*text).into()).collect();
        }
    }
    for priority in priorities {
        let class = usize::from(*priority);
        for (counter, value) in [
            (
                Counter::SwitchPriorityPfcReceivedFrames,
                value_of(own.pauses_received[class]),
            ),
            (
                Counter::SwitchPriorityPfcTransmittedFrames,
                value_of(own.pauses_sent[class]),
            ),
            (
                Counter::SwitchPriorityPfcReceivePausedSeconds,
                own.paused[class].seconds(),
            ),
            (
                Counter::SwitchPriorityPfcTransitions,
                value_of(own.transitions[class]),
            ),
        ] {
            samples.of_priority(counter, *priority, value, &[PORT]);
        }
        queue(samples, own, depths[class], *priority);
    }
}

/// The egress queue of a priority.
fn queue(samples: &mut Samples, own: &PortCount, depth: u64, priority: u8) {
    let class = usize::from(priority);
    let (sent, dropped, marked) = (own.sent[class], own.dropped[class], own.marked[class]);
    #[rustfmt::skip]
    let values: [(Counter, u64, &[&'static str]); 9] = [
        (Counter::SwitchQueueTransmittedPackets, sent.packets, &[PORT, UNICAST]),
        (Counter::SwitchQueueTransmittedBytes, sent.bytes, &[PORT, UNICAST]),
        (Counter::SwitchQueueDroppedPackets, dropped.packets, &[PORT, UNICAST]),
        (Counter::SwitchQueueDroppedBytes, dropped.bytes, &[PORT, UNICAST]),
        (Counter::SwitchQueueEcnMarkedPackets, marked.packets, &[PORT]),
        (Counter::SwitchQueueEcnMarkedBytes, marked.bytes, &[PORT]),
        (Counter::SwitchQueueDepth, depth, &[PORT]),
        (Counter::SwitchQueuePeak, own.peak[class], &[PORT]),
        (Counter::SwitchPriorityGroupDroppedPackets, own.refused[class].packets, &[PORT]),
    ];
    for (counter, value, details) in values {
        if let Some(sample) = samples.push(counter, value_of(value)) {
            sample.queue = Some(priority.to_string().into());
            sample.details = details.iter().map(|text| (*text).into()).collect();
        }
    }
}
