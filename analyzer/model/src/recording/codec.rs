//! Host events and samples as bytes: of events a tag for what happened, then its fields in the order of their declaration. Numbers are little-endian, texts and
//! lists of bytes have their length (2 bytes) before them, what can be absent has a byte 0 or 1 before it, names stand as texts.
//!
//! A crate was looked for and not taken: postcard needs serde's derives on these types, which this crate
//! is kept without (`tests/command/architecture.rs`). Its format also follows the order of fields in the source;
//! here a reordered field would be a change of this file.

use std::borrow::Cow;
use std::sync::Arc;

use roce_wire::{Address, Psn, Qpn, RnrTimer};

use crate::host::{Element, HostChange, HostEvent, Process, QueuePairChange, QueuePairKind, QueuePairState};
use crate::{Counter, CounterChange, SampleRow, SampleSource, Span, Time};

impl HostEvent {
    /// The type of its block in a recording: "roh" behind the bit of local use.
    pub const BLOCK: u32 = 0x8072_6f68;

    /// The body of its block.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.put(&mut out);
        out
    }

    /// Reads a body, with or without the padding of its block; `None` when it is none of this version.
    pub fn decode(body: &[u8]) -> Option<Self> {
        Self::take(&mut { body })
    }
}

impl SampleRow {
    /// The type of its block in a recording: "ros" behind the bit of local use.
    pub const BLOCK: u32 = 0x8072_6f73;

    /// The body of its block: all columns in their order but `kind` and `unit`, which follow from the counter.
    pub fn encode(&self) -> Vec<u8> {
        // Most rows have about 100 bytes.
        let mut out = Vec::with_capacity(128);
        self.put(&mut out);
        out
    }

    /// Reads a body, with or without the padding of its block; `None` when it is none of this version, or of a counter that
    /// this version does not know.
    pub fn decode(body: &[u8]) -> Option<Self> {
        Self::take(&mut { body })
    }
}

/// Something that is written as bytes and read back.
trait Field: Sized {
    fn put(&self, out: &mut Vec<u8>);
    fn take(from: &mut &[u8]) -> Option<Self>;
}

fn bytes<'a>(from: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, rest) = from.split_at_checked(count)?;
    *from = rest;
    Some(taken)
}

macro_rules! numbers {
    ($($number:ty),+) => { $(
        impl Field for $number {
            fn put(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }

            fn take(from: &mut &[u8]) -> Option<Self> {
                let taken = bytes(from, size_of::<Self>())?;
                Some(Self::from_le_bytes(taken.try_into().ok()?))
            }
        }
    )+ };
}

numbers!(u8, u16, u32, u64, i32, f64);

/// Types that are a number underneath.
macro_rules! as_other {
    ($($type:ty as $other:ty: $to:expr, $of:expr;)+) => { $(
        impl Field for $type {
            fn put(&self, out: &mut Vec<u8>) {
                let to: fn(&$type) -> $other = $to;
                to(self).put(out);
            }

            fn take(from: &mut &[u8]) -> Option<Self> {
                let of: fn($other) -> Option<$type> = $of;
                of(<$other>::take(from)?)
            }
        }
    )+ };
}

as_other! {
    Time as u64: |time| time.0, |time| Some(Time(time));
    Span as u64: |length| length.0, |length| Some(Span(length));
    Qpn as u32: |qpn| qpn.value(), |qpn| Some(Qpn::new(qpn));
    Psn as u32: |psn| psn.value(), |psn| Some(Psn::new(psn));
    RnrTimer as u8: |timer| timer.code(), |code| Some(RnrTimer::new(code));
    bool as u8: |value| u8::from(*value), |value| (value < 2).then_some(value == 1);
}

fn named<T: Copy>(all: &[T], name_of: fn(T) -> &'static str, name: &str) -> Option<T> {
    all.iter().copied().find(|one| name_of(*one) == name)
}

/// Writes the length of a text and its bytes. A text that is longer than any name keeps its beginning.
fn put_text(text: &str, out: &mut Vec<u8>) {
    let end = text.floor_char_boundary(u16::MAX.into());
    u16::try_from(end).unwrap_or(u16::MAX).put(out);
    out.extend_from_slice(text.as_bytes().get(..end).unwrap_or_default());
}

/// Reads what `put_text` wrote.
fn take_text<'a>(from: &mut &'a [u8]) -> Option<&'a str> {
    let length = u16::take(from)?;
    std::str::from_utf8(bytes(from, length.into())?).ok()
}

/// Types that are a text underneath.
macro_rules! as_text {
    ($($type:ty: $to:expr, $of:expr;)+) => { $(
        impl Field for $type {
            fn put(&self, out: &mut Vec<u8>) {
                let to: for<'a> fn(&'a $type) -> &'a str = $to;
                put_text(to(self), out);
            }

            fn take(from: &mut &[u8]) -> Option<Self> {
                let of: fn(&str) -> Option<$type> = $of;
                of(take_text(from)?)
            }
        }
    )+ };
}

as_text! {
    Arc<str>: |text| text, |text| Some(text.into());
    Cow<'static, str>: |text| text, |text| Some(Cow::Owned(text.to_owned()));
    QueuePairKind: |kind| kind.name(), |name| named(QueuePairKind::ALL, QueuePairKind::name, name);
    QueuePairState: |state| state.name(), |name| named(QueuePairState::ALL, QueuePairState::name, name);
    CounterChange: |change| change.name(), |name| named(CounterChange::ALL, CounterChange::name, name);
    Counter: |counter| counter.name(), Counter::from_name;
    SampleSource: |source| source.name(), |name| named(&SampleSource::ALL, SampleSource::name, name);
}

impl Field for Address {
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.octets());
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        Some(Self::v6(bytes(from, 16)?.try_into().ok()?))
    }
}

impl<T: Field> Field for Option<T> {
    fn put(&self, out: &mut Vec<u8>) {
        u8::from(self.is_some()).put(out);
        if let Some(value) = self {
            value.put(out);
        }
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        match u8::take(from)? {
            0 => Some(None),
            1 => Some(Some(T::take(from)?)),
            _ => None,
        }
    }
}

impl Field for SampleRow {
    fn put(&self, out: &mut Vec<u8>) {
        // Both names are words of their catalogues: `kind` and `unit` are left out.
        self.time.put(out);
        put_text(self.source, out);
        self.node.put(out);
        self.object.put(out);
        put_text(self.counter, out);
        self.priority.put(out);
        self.queue.put(out);
        self.detail.put(out);
        self.value.put(out);
        self.change.put(out);
        self.interval_ns.put(out);
        self.reset.put(out);
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        let time = Field::take(from)?;
        let source = SampleSource::take(from)?;
        let (node, object) = (Field::take(from)?, Field::take(from)?);
        let counter = Counter::take(from)?;
        let row = Self {
            time,
            source: source.name(),
            node,
            object,
            counter: counter.name(),
            priority: Field::take(from)?,
            queue: Field::take(from)?,
            detail: Field::take(from)?,
            kind: counter.kind().name(),
            value: Field::take(from)?,
            change: Field::take(from)?,
            interval_ns: Field::take(from)?,
            unit: counter.unit(),
            reset: Field::take(from)?,
        };
        let is_number = row.value.is_finite() && row.change.is_none_or(f64::is_finite);
        is_number.then_some(row)
    }
}

impl Field for HostEvent {
    fn put(&self, out: &mut Vec<u8>) {
        let Self {
            time,
            device,
            process,
            what,
        } = self;
        time.put(out);
        device.put(out);
        process.put(out);
        what.put(out);
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        Some(Self {
            time: Field::take(from)?,
            device: Field::take(from)?,
            process: Field::take(from)?,
            what: Field::take(from)?,
        })
    }
}

/// Presence of a process: 0 none, 1 one that the kernel reports, 2 one that reports itself; then its
/// fields.
impl Field for Option<Process> {
    fn put(&self, out: &mut Vec<u8>) {
        let Some(Process {
            pid,
            comm,
            cgroup,
            claims,
        }) = self
        else {
            return 0_u8.put(out);
        };
        (1 + u8::from(*claims)).put(out);
        pid.put(out);
        comm.put(out);
        cgroup.put(out);
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        let claims = match u8::take(from)? {
            0 => return Some(None),
            1 => false,
            2 => true,
            _ => return None,
        };
        Some(Some(Process {
            pid: Field::take(from)?,
            comm: Field::take(from)?,
            cgroup: Field::take(from)?,
            claims,
        }))
    }
}

/// Structs: field by field.
macro_rules! fields {
    ($($type:ident { $($field:ident),+ $(,)? })+) => { $(
        impl Field for $type {
            fn put(&self, out: &mut Vec<u8>) {
                let Self { $($field),+ } = self;
                $($field.put(out);)+
            }

            fn take(from: &mut &[u8]) -> Option<Self> {
                $(let $field = Field::take(from)?;)+
                Some(Self { $($field),+ })
            }
        }
    )+ };
}

fields! {
    QueuePairChange {
        state, destination_qpn, source, destination, sq_psn, rq_psn, path_mtu, timeout, retry_count, rnr_retry, min_rnr_timer,
        traffic_class, source_gid_index, port,
    }
}

impl<T: Field> Field for Box<T> {
    fn put(&self, out: &mut Vec<u8>) {
        (**self).put(out);
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        T::take(from).map(Self::new)
    }
}

/// Enumerations: a tag, then the fields of the variant.
macro_rules! variants {
    ($type:ident { $($tag:literal $variant:ident { $($field:ident),* })+ }) => {
        impl Field for $type {
            fn put(&self, out: &mut Vec<u8>) {
                match self {
                    $(Self::$variant { $($field),* } => {
                        out.push($tag);
                        $($field.put(out);)*
                    })+
                }
            }

            fn take(from: &mut &[u8]) -> Option<Self> {
                match u8::take(from)? {
                    $($tag => {
                        $(let $field = Field::take(from)?;)*
                        Some(Self::$variant { $($field),* })
                    })+
                    _ => None,
                }
            }
        }
    };
}

variants!(HostChange {
    1 Created { qpn, kind }
    2 Modified { qpn, set }
    3 Destroyed { qpn }
    4 Connection { event, status, qpn, local, remote }
    5 Asynchronous { event, about }
    6 RetransmitTimer { qpn }
    7 RnrTimer { qpn }
    8 QueuePairError { qpn }
    9 Dropped { source, destination, qpn, psn, reason }
    11 Lost { count }
    12 Address { address }
    13 Counter { change, name, priority, detail, by }
});

impl Field for Element {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::Device => out.push(0),
            Self::Port(port) => {
                out.push(1);
                port.put(out);
            }
            Self::QueuePair(qpn) => {
                out.push(2);
                qpn.put(out);
            }
            Self::Queue => out.push(3),
        }
    }

    fn take(from: &mut &[u8]) -> Option<Self> {
        match u8::take(from)? {
            0 => Some(Self::Device),
            1 => u8::take(from).map(Self::Port),
            2 => Qpn::take(from).map(Self::QueuePair),
            3 => Some(Self::Queue),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(what: HostChange) -> HostEvent {
        HostEvent {
            time: Time(1_795_000_000_000_000_000),
            device: Some("rxe0".into()),
            process: Some(Process {
                pid: 71,
                comm: "ib_send_bw \u{fc}".into(),
                cgroup: 7,
                claims: true,
            }),
            what,
        }
    }

    fn all() -> Vec<HostEvent> {
        let qpn = Qpn::new(0x11);
        let (local, remote) = (Address::v4([10, 0, 0, 1]), Address::v6([0xfe; 16]));
        let set = QueuePairChange {
            state: Some(QueuePairState::ReadyToReceive),
            destination_qpn: Some(Qpn::new(0x12)),
            source: Some(local),
            min_rnr_timer: Some(RnrTimer::new(12)),
            timeout: Some(Span(4_096 << 14)),
            port: Some(1),
            ..QueuePairChange::default()
        };
        let mut events: Vec<HostEvent> = [
            HostChange::Created {
                qpn,
                kind: QueuePairKind::XrcTarget,
            },
            HostChange::Modified {
                qpn,
                set: Box::new(set),
            },
            HostChange::Destroyed { qpn },
            HostChange::Connection {
                event: "rejected".into(),
                status: -111,
                qpn: None,
                local: Some(local),
                remote: Some(remote),
            },
            HostChange::RetransmitTimer { qpn },
            HostChange::RnrTimer { qpn },
            HostChange::QueuePairError { qpn },
            HostChange::Dropped {
                source: local,
                destination: remote,
                qpn,
                psn: Psn::new(0xff_ffff),
                reason: "QDISC_DROP".into(),
            },
            HostChange::Counter {
                change: CounterChange::Reset,
                name: "priority_discards".into(),
                priority: Some(3),
                detail: Some("buffer".into()),
                by: u64::MAX,
            },
            HostChange::Lost { count: 9 },
            HostChange::Address { address: remote },
        ]
        .map(event)
        .into();
        for about in [
            Element::Device,
            Element::Port(2),
            Element::QueuePair(qpn),
            Element::Queue,
        ] {
            events.push(HostEvent {
                device: None,
                process: None,
                ..event(HostChange::Asynchronous {
                    event: "port_err".into(),
                    about,
                })
            });
        }
        events
    }

    #[test]
    fn events_are_read_back_with_their_padding() {
        for event in all() {
            let mut body = event.encode();
            body.resize(body.len().next_multiple_of(4), 0);
            assert_eq!(HostEvent::decode(&body), Some(event));
        }
    }

    #[test]
    fn what_is_cut_or_unknown_is_no_event() {
        for event in all() {
            let body = event.encode();
            for end in 0..body.len() {
                assert_eq!(HostEvent::decode(&body[..end]), None);
            }
        }
        let mut body = event(HostChange::Lost { count: 9 }).encode();
        let tag = body.len() - 9;
        assert_eq!(body[tag], 11);
        body[tag] = 200;
        assert_eq!(HostEvent::decode(&body), None);
    }

    fn sample() -> SampleRow {
        let counter = Counter::PriorityDiscards;
        SampleRow {
            time: Time(1_795_000_000_000_000_000),
            source: SampleSource::Host.name(),
            node: "h\u{fc}".into(),
            object: "ens1f0np0".into(),
            counter: counter.name(),
            priority: Some(3),
            queue: None,
            detail: Some("buffer".into()),
            kind: counter.kind().name(),
            value: 12.5,
            change: Some(0.5),
            interval_ns: Some(1_000_000_000),
            unit: counter.unit(),
            reset: true,
        }
    }

    #[test]
    fn samples_are_read_back_with_their_padding() {
        let first = SampleRow {
            change: None,
            interval_ns: None,
            reset: false,
            ..sample()
        };
        for row in [sample(), first] {
            let mut body = row.encode();
            let length = body.len();
            body.resize(length.next_multiple_of(4), 0);
            assert_eq!(SampleRow::decode(&body), Some(row));
            for end in 0..length {
                assert_eq!(SampleRow::decode(&body[..end]), None, "{end}");
            }
        }
    }

    #[test]
    fn samples_of_unknown_counters_and_no_numbers_are_none() {
        let unknown = SampleRow {
            counter: "gravity",
            ..sample()
        };
        assert_eq!(SampleRow::decode(&unknown.encode()), None);
        for value in [f64::NAN, f64::INFINITY] {
            let row = SampleRow { value, ..sample() };
            assert_eq!(SampleRow::decode(&row.encode()), None);
        }
    }

    #[test]
    fn the_layout_is_as_documented() {
        let event = HostEvent {
            time: Time(5),
            device: Some("a".into()),
            process: None,
            what: HostChange::Destroyed { qpn: Qpn::new(0x11) },
        };
        let body = [
            5, 0, 0, 0, 0, 0, 0, 0, // time
            1, 1, 0, b'a', // there is a device of one byte
            0,    // no process
            3, 0x11, 0, 0, 0, // destroyed, QPN
        ];
        assert_eq!(event.encode(), body);
    }
}
