//! Counters of a host's port, by their common names.

use roce_model::{Counter, value_of};

use super::{Samples, sum};
use crate::network::count::{PortCount, Traffic};
use crate::network::topology::LINK_CLASS;

/// Adds the samples of a host's port. `peer` has the counters of the switch's port at the other end: how long it was paused.
pub(super) fn samples(samples: &mut Samples, own: &PortCount, peer: &PortCount, priorities: &[u8]) {
    let packets = |traffic: &[Traffic; 8]| traffic.map(|one| one.packets);
    let bytes = |traffic: &[Traffic; 8]| traffic.map(|one| one.bytes);
    for (counter, value) in [
        (Counter::PortReceivedBytes, sum(&bytes(&own.received))),
        (Counter::PortTransmittedBytes, sum(&bytes(&own.sent))),
        (Counter::PortReceivedPackets, sum(&packets(&own.received))),
        (Counter::PortTransmittedPackets, sum(&packets(&own.sent))),
        (Counter::PortEcnMarkedPacketsReceived, own.ce_received),
        (Counter::PortCnpSent, own.cnps_sent),
        (Counter::PortCnpHandled, own.cnps_handled),
        (Counter::PortCnpIgnored, own.cnps_ignored),
        (Counter::PortIcrcErrors, own.icrc_errors),
        (Counter::PortAckTimeouts, own.ack_timeouts),
        (Counter::PortPacketSequenceErrors, own.sequence_naks),
        (Counter::PortRnrNaksReceived, own.rnr_naks),
    ] {
        samples.push(counter, value_of(value));
    }
    let link = usize::from(LINK_CLASS);
    for (counter, value) in [
        (Counter::PauseReceivedFrames, value_of(own.pauses_received[link])),
        (Counter::PauseTransmittedFrames, value_of(own.pauses_sent[link])),
        (Counter::PauseReceivePausedSeconds, own.paused[link].seconds()),
        (Counter::PauseTransmitPausedSeconds, peer.paused[link].seconds()),
        (Counter::PauseTransitions, value_of(own.transitions[link])),
    ] {
        samples.push(counter, value);
    }
    for priority in priorities {
        let class = usize::from(*priority);
        for (counter, value) in [
            (
                Counter::PriorityReceivedBytes,
                value_of(own.received[class].bytes),
            ),
            (Counter::PriorityTransmittedBytes, value_of(own.sent[class].bytes)),
            (
                Counter::PriorityReceivedPackets,
                value_of(own.received[class].packets),
            ),
            (
                Counter::PriorityTransmittedPackets,
                value_of(own.sent[class].packets),
            ),
            (Counter::PfcReceivedFrames, value_of(own.pauses_received[class])),
            (Counter::PfcTransmittedFrames, value_of(own.pauses_sent[class])),
            (Counter::PfcReceivePausedSeconds, own.paused[class].seconds()),
            (Counter::PfcTransmitPausedSeconds, peer.paused[class].seconds()),
            (Counter::PfcTransitions, value_of(own.transitions[class])),
        ] {
            samples.of_priority(counter, *priority, value, &[]);
        }
    }
}
