//! `show queuing interface`: queues, marks, drops on ingress, PFC by priority. Text and JSON have the same words for what they count, and
//! give them to the functions here.

mod document;
mod text;

use std::borrow::Cow;

use roce_model::Counter;

use super::answer::Body;
use super::json::number;
use super::sink::{Place, Sink};
use crate::switch::interface::Interface;

/// Adds what the answer says.
pub(super) fn read(body: &Body, command: &str, sink: &mut Sink<'_>) -> bool {
    match body {
        Body::Json(documents) => document::read(documents, command, sink),
        Body::Text(text) => text::read(text, command, sink),
    }
}

/// The values of one statistic of a queue, by cast.
#[derive(Default)]
struct Casts {
    unicast: Option<u64>,
    oobfc: Option<u64>,
    multicast: Option<u64>,
    /// Where the device gives one number only.
    all: Option<u64>,
}

impl Casts {
    fn sum(&self) -> Option<u64> {
        let values = [self.unicast, self.oobfc, self.multicast, self.all];
        values.into_iter().flatten().reduce(u64::saturating_add)
    }
}

/// Unit of a statistic.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unit {
    Packets,
    Bytes,
}

/// The unit in the device's words.
fn unit_of(word: &str) -> Option<Unit> {
    match word {
        "Pkts" | "Packets" => Some(Unit::Packets),
        "Byts" | "Bytes" => Some(Unit::Bytes),
        _ => None,
    }
}

/// `Ingress MMU Drop Pkts` as its name and its unit.
fn split_unit(words: &str) -> Option<(&str, Unit)> {
    let (name, unit) = words.trim().rsplit_once(' ')?;
    Some((name.trim_end(), unit_of(unit)?))
}

/// A statistic of an egress queue: `Tx`, `Dropped`, `WRED/AFD & Tail Drop`, `ECN`, `Q Depth`. `WD & Tail Drop` is the watchdog's, which
/// another command counts.
fn queue_statistic(
    interface: &Interface,
    queue: &str,
    name: &str,
    unit: Unit,
    casts: &Casts,
    sink: &mut Sink<'_>,
) {
    let place = Place::queue(interface, queue);
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
fn egress_statistic(interface: &Interface, name: &str, unit: Unit, value: Option<u64>, sink: &mut Sink<'_>) {
    let ecn = match name {
        "WRED Drop" => "capable",
        "WRED Non ECN Drop" => "not_capable",
        _ => return,
    };
    if unit == Unit::Packets {
        let place = Place::queue(interface, "port");
        sink.put(
            place,
            Counter::SwitchQueueWredDroppedPackets,
            &[ecn.into()],
            value,
        );
    }
}

/// A statistic of a port's ingress as a whole.
fn ingress_statistic(interface: &Interface, name: &str, unit: Unit, value: Option<u64>, sink: &mut Sink<'_>) {
    if !matches!(name, "Ingress MMU Drop" | "Ingress Overflow Drop") {
        return;
    }
    let counter = match unit {
        Unit::Packets => Counter::SwitchMmuDroppedPackets,
        Unit::Bytes => Counter::SwitchMmuDroppedBytes,
    };
    sink.put(Place::interface(interface), counter, &[], value);
}

/// A statistic of the slice that a port belongs to. NX-OS gives it with each port and does not number the slice: its name is that of the
/// port, so that nobody takes it for a port's own and adds it up.
fn slice_statistic(interface: &Interface, name: &str, unit: Unit, value: Option<u64>, sink: &mut Sink<'_>) {
    if name == "Ingress Overflow Drop" && unit == Unit::Packets {
        let slice: Cow<'static, str> = interface.name.clone().into();
        sink.put(Place::SWITCH, Counter::SwitchSliceDroppedPackets, &[slice], value);
    }
}

/// A row of the ingress table: the thresholds of a lossless queue. `-` where the queue is not lossless.
fn ingress_queue(
    interface: &Interface,
    queue: &str,
    pause: Option<&str>,
    resume: Option<&str>,
    sink: &mut Sink<'_>,
) {
    let place = Place::queue(interface, queue);
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
