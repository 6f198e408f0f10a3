//! Statistics in text and JSON of `show queuing interface`, by the device's words.

use std::borrow::Cow;

use roce_model::Counter;

use super::super::json::number;
use super::super::sink::{NumberPlace, Sink};
use crate::switch::interface::Interface;

/// The values of one statistic of a queue, by cast.
#[derive(Default)]
pub(super) struct Casts {
    pub(super) unicast: Option<u64>,
    pub(super) oobfc: Option<u64>,
    pub(super) multicast: Option<u64>,
    /// Where the device gives one number only.
    pub(super) all: Option<u64>,
    /// True if one of them is there and not known: their sum is not known.
    pub(super) lacks: bool,
}

impl Casts {
    pub(super) fn sum(&self) -> Option<u64> {
        let values = [self.unicast, self.oobfc, self.multicast, self.all];
        let sum = values.into_iter().flatten().reduce(u64::saturating_add);
        sum.filter(|_| !self.lacks)
    }
}

/// Unit of a statistic.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Packets,
    Bytes,
}

/// The unit in the device's words.
pub(super) fn unit_of(word: &str) -> Option<Unit> {
    match word {
        "Pkts" | "Packets" => Some(Unit::Packets),
        "Byts" | "Bytes" => Some(Unit::Bytes),
        _ => None,
    }
}

/// `Ingress MMU Drop Pkts` as its name and its unit.
pub(super) fn split_unit(words: &str) -> Option<(&str, Unit)> {
    let (name, unit) = words.trim().rsplit_once(' ')?;
    Some((name.trim_end(), unit_of(unit)?))
}

/// A statistic of an egress queue: `Tx`, `Dropped`, `WRED/AFD & Tail Drop`, `ECN`, `Q Depth`. `WD & Tail Drop` is the watchdog's, which
/// another command counts.
pub(super) fn queue_statistic(
    interface: &Interface,
    queue: &str,
    name: &str,
    unit: Unit,
    casts: &Casts,
    sink: &mut Sink<'_>,
) {
    let place = NumberPlace::queue(interface, queue);
    let lower = name.to_ascii_lowercase();
    let (packets, bytes) = match lower.as_str() {
        "tx" => (
            Counter::SwitchQueueTransmittedPackets,
            Counter::SwitchQueueTransmittedBytes,
        ),
        "ecn" => {
            let counter = match unit {
                Unit::Packets => Counter::SwitchQueueEcnMarkedPackets,
                Unit::Bytes => Counter::SwitchQueueEcnMarkedBytes,
            };
            sink.put(place, counter, &[], casts.sum());
            return;
        }
        "q depth" => {
            if unit == Unit::Bytes {
                sink.put(place, Counter::SwitchQueueDepth, &[], casts.sum());
            }
            return;
        }
        "dropped" | "tail drop" | "wred & tail drop" | "wred/afd & tail drop" => (
            Counter::SwitchQueueDroppedPackets,
            Counter::SwitchQueueDroppedBytes,
        ),
        _ => return,
    };
    let counter = match unit {
        Unit::Packets => packets,
        Unit::Bytes => bytes,
    };
    for (cast, value) in [
        ("unicast", casts.unicast),
        ("oobfc", casts.oobfc),
        ("multicast", casts.multicast),
        ("all", casts.all),
    ] {
        sink.put(place, counter, &[cast.into()], value);
    }
}

/// A statistic of a port's egress as a whole.
pub(super) fn egress_statistic(
    interface: &Interface,
    name: &str,
    unit: Unit,
    value: Option<u64>,
    sink: &mut Sink<'_>,
) {
    let ecn = match name {
        "WRED Drop" => "capable",
        "WRED Non ECN Drop" => "not_capable",
        _ => return,
    };
    if unit == Unit::Packets {
        let place = NumberPlace::queue(interface, "port");
        sink.put(
            place,
            Counter::SwitchQueueWredDroppedPackets,
            &[ecn.into()],
            value,
        );
    }
}

/// A statistic of a port's ingress as a whole.
pub(super) fn ingress_statistic(
    interface: &Interface,
    name: &str,
    unit: Unit,
    value: Option<u64>,
    sink: &mut Sink<'_>,
) {
    if !matches!(name, "Ingress MMU Drop" | "Ingress Overflow Drop") {
        return;
    }
    let counter = match unit {
        Unit::Packets => Counter::SwitchMmuDroppedPackets,
        Unit::Bytes => Counter::SwitchMmuDroppedBytes,
    };
    sink.put(NumberPlace::interface(interface), counter, &[], value);
}

/// A statistic of the slice that a port belongs to. NX-OS gives it with each port and does not number the slice: its name is that of the
/// port, so that nobody takes it for a port's own and adds it up.
pub(super) fn slice_statistic(
    interface: &Interface,
    name: &str,
    unit: Unit,
    value: Option<u64>,
    sink: &mut Sink<'_>,
) {
    if name == "Ingress Overflow Drop" && unit == Unit::Packets {
        let slice: Cow<'static, str> = interface.name.clone().into();
        sink.put(
            NumberPlace::SWITCH,
            Counter::SwitchSliceDroppedPackets,
            &[slice],
            value,
        );
    }
}

/// A row of the ingress table: the thresholds of a lossless queue. `-` where the queue is not lossless.
pub(super) fn ingress_queue(
    interface: &Interface,
    queue: &str,
    pause: Option<&str>,
    resume: Option<&str>,
    sink: &mut Sink<'_>,
) {
    let place = NumberPlace::queue(interface, queue);
    let threshold = pause.and_then(number);
    let is_lossless = match (threshold, pause) {
        (Some(_), _) => Some(1),
        (None, Some("-")) => Some(0),
        _ => None,
    };
    sink.put(place, Counter::SwitchQueueNoDrop, &[], is_lossless);
    sink.put(place, Counter::SwitchQueuePauseThreshold, &[], threshold);
    sink.put(
        place,
        Counter::SwitchQueueResumeThreshold,
        &[],
        resume.and_then(number),
    );
}
