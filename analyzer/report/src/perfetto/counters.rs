//! Series as counters: a value from the start of a slot to the start of the next one that differs.
//!
//! In these formats no counter is ever absent. Rates, shares and counts fall to 0 where a subject sent nothing; what is measured (time to an
//! acknowledgement, bytes in flight) keeps its value until it is measured again.

use std::io::{self, Write};

use roce_model::{Span, Time, value_of};

use super::form::Form;
use super::track::Track;
use crate::series::Slot;

/// A quantity of a series.
pub(super) struct Quantity {
    name: &'static str,
    unit: &'static str,
    /// The value in a slot of a width in ns. Absent: not known there.
    value: fn(&Slot, u64) -> Option<f64>,
    /// The value where there is no slot. Absent: the last value stays.
    idle: Option<f64>,
}

/// Payload in bits a second.
pub(super) const RATE: Quantity = Quantity {
    name: "rate",
    unit: "bit/s",
    value: |slot, width| Some(value_of(slot.payload_bytes) * 8.0 / Span(width).seconds()),
    idle: Some(0.0),
};
/// As [`RATE`], of a host that sends.
pub(super) const SENT: Quantity = Quantity { name: "sent", ..RATE };
/// As [`RATE`], of a host that receives.
pub(super) const RECEIVED: Quantity = Quantity {
    name: "received",
    ..RATE
};
/// Marked data packets among all.
pub(super) const CE_SHARE: Quantity = Quantity {
    name: "CE share",
    unit: "ratio",
    value: |slot, _| Some(value_of(slot.ce) / value_of(slot.data_packets.max(1))),
    idle: Some(0.0),
};
/// Congestion notifications that slow a flow, in each slot.
pub(super) const CNPS: Quantity = Quantity {
    name: "CNPs",
    unit: "packets in each bin",
    value: |slot, _| Some(value_of(slot.cnp)),
    idle: Some(0.0),
};
/// Bytes that are not yet acknowledged.
pub(super) const IN_FLIGHT: Quantity = Quantity {
    name: "in flight, most",
    unit: "bytes",
    value: |slot, _| slot.in_flight.map(value_of),
    idle: None,
};
/// The time from a request to the response that covers it: the round trip, as far as the point of capture sees it.
pub(super) const ACK_TIME: Quantity = Quantity {
    name: "RTT, longest",
    unit: "ns",
    value: |slot, _| slot.ack_time.map(value_of),
    idle: None,
};

/// Writes the counter of a quantity below a track. One that is 0 or unknown all the time gets no track.
pub(super) fn counter<W: Write>(
    parent: &Track,
    quantity: &Quantity,
    slots: &[Slot],
    width: u64,
    form: &mut Form<W>,
) -> io::Result<()> {
    let is_there = |slot: &Slot| (quantity.value)(slot, width).is_some_and(|value| value != 0.0);
    if !slots.iter().any(is_there) {
        return Ok(());
    }
    let track = form.counter(parent, quantity.name, quantity.unit)?;
    let mut shown = None;
    let mut show = |slot: u64, value: Option<f64>, form: &mut Form<W>| {
        let Some(value) = value.filter(|value| shown != Some(*value)) else {
            return Ok(());
        };
        shown = Some(value);
        form.value(&track, Time(slot.saturating_mul(width)), value)
    };
    let mut next = None;
    for slot in slots {
        if let Some(next) = next.filter(|next| *next < slot.at) {
            show(next, quantity.idle, form)?;
        }
        show(slot.at, (quantity.value)(slot, width), form)?;
        next = Some(slot.at.saturating_add(1));
    }
    match next {
        Some(next) => show(next, quantity.idle, form),
        None => Ok(()),
    }
}
