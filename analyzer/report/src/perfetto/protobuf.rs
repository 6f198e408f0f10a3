//! Perfetto's protobuf trace: a sequence of `TracePacket`.
//!
//! The numbers of fields are those of Perfetto's schema: `protos/perfetto/trace/trace_packet.proto`, `clock_snapshot.proto`, and
//! `track_event/{track_event,track_descriptor,counter_descriptor,process_descriptor,debug_annotation}.proto`.

use std::io::{self, Write};

use roce_model::{Evidence, Fact, Time};

use super::track::{Slice, Track, bounded};
use super::wire::Fields;

/// `Trace.packet`.
const TRACE_PACKET: u32 = 1;

/// Fields of `TracePacket`.
mod packet {
    pub(super) const CLOCK_SNAPSHOT: u32 = 6;
    pub(super) const TIMESTAMP: u32 = 8;
    pub(super) const TRUSTED_PACKET_SEQUENCE_ID: u32 = 10;
    pub(super) const TRACK_EVENT: u32 = 11;
    pub(super) const SEQUENCE_FLAGS: u32 = 13;
    pub(super) const TIMESTAMP_CLOCK_ID: u32 = 58;
    pub(super) const TRACK_DESCRIPTOR: u32 = 60;
    pub(super) const FIRST_PACKET_ON_SEQUENCE: u32 = 87;
}

/// Fields of `ClockSnapshot` and its `Clock`, and the numbers of clocks.
mod clock {
    pub(super) const CLOCKS: u32 = 1;
    pub(super) const PRIMARY_TRACE_CLOCK: u32 = 2;
    pub(super) const CLOCK_ID: u32 = 1;
    pub(super) const TIMESTAMP: u32 = 2;
    pub(super) const REALTIME: u64 = 1;
    pub(super) const BOOTTIME: u64 = 6;
}

/// Fields of `TrackDescriptor`, `ProcessDescriptor` and `CounterDescriptor`.
mod descriptor {
    pub(super) const UUID: u32 = 1;
    pub(super) const NAME: u32 = 2;
    pub(super) const PROCESS: u32 = 3;
    pub(super) const PARENT_UUID: u32 = 5;
    pub(super) const COUNTER: u32 = 8;
    pub(super) const CHILD_ORDERING: u32 = 11;
    pub(super) const SIBLING_ORDER_RANK: u32 = 12;
    pub(super) const PID: u32 = 1;
    pub(super) const PROCESS_NAME: u32 = 6;
    pub(super) const UNIT_NAME: u32 = 6;
    /// `ChildTracksOrdering.EXPLICIT`: by rank.
    pub(super) const EXPLICIT: u64 = 3;
}

/// Fields of `TrackEvent` and its types.
mod event {
    pub(super) const DEBUG_ANNOTATIONS: u32 = 4;
    pub(super) const TYPE: u32 = 9;
    pub(super) const TRACK_UUID: u32 = 11;
    pub(super) const CATEGORIES: u32 = 22;
    pub(super) const NAME: u32 = 23;
    pub(super) const DOUBLE_COUNTER_VALUE: u32 = 44;
    pub(super) const FLOW_IDS: u32 = 47;
    pub(super) const TERMINATING_FLOW_IDS: u32 = 48;
    pub(super) const SLICE_BEGIN: u64 = 1;
    pub(super) const SLICE_END: u64 = 2;
    pub(super) const INSTANT: u64 = 3;
    pub(super) const COUNTER: u64 = 4;
}

/// Fields of `DebugAnnotation`.
mod annotation {
    pub(super) const UINT_VALUE: u32 = 3;
    pub(super) const DOUBLE_VALUE: u32 = 5;
    pub(super) const STRING_VALUE: u32 = 6;
    pub(super) const NAME: u32 = 10;
}

/// The only sequence of packets.
const SEQUENCE: u64 = 1;
/// `SEQ_INCREMENTAL_STATE_CLEARED`.
const STATE_CLEARED: u64 = 1;

#[derive(Debug)]
pub(super) struct Protobuf<W> {
    out: W,
    packet: Fields,
}

impl<W: Write> Protobuf<W> {
    pub(super) fn new(out: W) -> Self {
        Self {
            out,
            packet: Fields::default(),
        }
    }

    pub(super) fn into_inner(self) -> W {
        self.out
    }

    /// The trace's clock is CLOCK_REALTIME. The clock that readers take where none is named shows the same time.
    pub(super) fn begin(&mut self, time: Time) -> io::Result<()> {
        self.packet(|packet| {
            packet.number(packet::SEQUENCE_FLAGS, STATE_CLEARED);
            packet.number(packet::FIRST_PACKET_ON_SEQUENCE, 1);
            packet.message(packet::CLOCK_SNAPSHOT, |snapshot| {
                for id in [clock::REALTIME, clock::BOOTTIME] {
                    snapshot.message(clock::CLOCKS, |reading| {
                        reading.number(clock::CLOCK_ID, id);
                        reading.number(clock::TIMESTAMP, time.0);
                    });
                }
                snapshot.number(clock::PRIMARY_TRACE_CLOCK, clock::REALTIME);
            });
        })
    }

    pub(super) fn process(&mut self, process: &Track, name: &str) -> io::Result<()> {
        self.packet(|packet| {
            packet.message(packet::TRACK_DESCRIPTOR, |track| {
                track.number(descriptor::UUID, process.number);
                track.message(descriptor::PROCESS, |about| {
                    about.number(descriptor::PID, process.pid.into());
                    about.text(descriptor::PROCESS_NAME, name);
                });
                track.number(descriptor::CHILD_ORDERING, descriptor::EXPLICIT);
            });
        })
    }

    /// A track below another, those of lower numbers first.
    pub(super) fn track(
        &mut self,
        track: &Track,
        parent: u64,
        name: &str,
        unit: Option<&str>,
    ) -> io::Result<()> {
        self.packet(|packet| {
            packet.message(packet::TRACK_DESCRIPTOR, |about| {
                about.number(descriptor::UUID, track.number);
                about.number(descriptor::PARENT_UUID, parent);
                about.text(descriptor::NAME, name);
                match unit {
                    Some(unit) => about.message(descriptor::COUNTER, |counter| {
                        counter.text(descriptor::UNIT_NAME, unit);
                    }),
                    None => about.number(descriptor::CHILD_ORDERING, descriptor::EXPLICIT),
                }
                let rank = track.number.min(i32::MAX.unsigned_abs().into());
                about.number(descriptor::SIBLING_ORDER_RANK, rank);
            });
        })
    }

    pub(super) fn slice(&mut self, track: &Track, slice: &Slice<'_>) -> io::Result<()> {
        self.event(slice.start, |event| {
            let kind = if slice.end.is_some() {
                event::SLICE_BEGIN
            } else {
                event::INSTANT
            };
            event.number(event::TYPE, kind);
            event.number(event::TRACK_UUID, track.number);
            event.text(event::CATEGORIES, slice.category);
            event.text(event::NAME, slice.name);
            for arrow in slice.out {
                event.fixed64(event::FLOW_IDS, *arrow);
            }
            for arrow in slice.into {
                event.fixed64(event::TERMINATING_FLOW_IDS, *arrow);
            }
            annotations(event, slice.facts);
        })?;
        let Some(end) = slice.end else {
            return Ok(());
        };
        self.event(end, |event| {
            event.number(event::TYPE, event::SLICE_END);
            event.number(event::TRACK_UUID, track.number);
        })
    }

    pub(super) fn value(&mut self, counter: &Track, time: Time, value: f64) -> io::Result<()> {
        self.event(time, |event| {
            event.number(event::TYPE, event::COUNTER);
            event.number(event::TRACK_UUID, counter.number);
            event.double(event::DOUBLE_COUNTER_VALUE, value);
        })
    }

    pub(super) fn finish(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn event(&mut self, time: Time, fill: impl FnOnce(&mut Fields)) -> io::Result<()> {
        self.packet(|packet| {
            packet.number(packet::TIMESTAMP, time.0);
            packet.number(packet::TIMESTAMP_CLOCK_ID, clock::REALTIME);
            packet.message(packet::TRACK_EVENT, fill);
        })
    }

    fn packet(&mut self, fill: impl FnOnce(&mut Fields)) -> io::Result<()> {
        self.packet.clear();
        self.packet.message(TRACE_PACKET, |packet| {
            packet.number(packet::TRUSTED_PACKET_SEQUENCE_ID, SEQUENCE);
            fill(packet);
        });
        self.out.write_all(self.packet.bytes())
    }
}

/// The facts of an event, which viewers show beside it.
fn annotations(event: &mut Fields, facts: &Evidence) {
    for (name, fact) in &facts.0 {
        event.message(event::DEBUG_ANNOTATIONS, |about| {
            about.text(annotation::NAME, name);
            match fact {
                Fact::Count(value) => about.number(annotation::UINT_VALUE, *value),
                Fact::Number(value) => about.double(annotation::DOUBLE_VALUE, *value),
                Fact::Text(text) => about.text(annotation::STRING_VALUE, &bounded(text)),
            }
        });
    }
}
