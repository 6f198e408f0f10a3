//! Reads Perfetto's trace, by the description of the wire format (protobuf.dev, "Encoding") and the numbers of fields in Perfetto's schema.
//! It shares no code with what writes traces.

use std::collections::{BTreeMap, BTreeSet};

/// A field's value.
#[derive(Clone, Copy, Debug)]
enum Field<'a> {
    Number(u64),
    Fixed(u64),
    Bytes(&'a [u8]),
}

impl<'a> Field<'a> {
    fn number(self) -> u64 {
        match self {
            Field::Number(value) | Field::Fixed(value) => value,
            Field::Bytes(bytes) => panic!("{bytes:?} is no number"),
        }
    }

    fn bytes(self) -> &'a [u8] {
        match self {
            Field::Bytes(bytes) => bytes,
            other => panic!("{other:?} is no text or message"),
        }
    }

    fn text(self) -> String {
        String::from_utf8(self.bytes().to_vec()).expect("texts are UTF-8")
    }
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0_u64;
    for shift in (0..70).step_by(7) {
        let (first, rest) = bytes.split_first().expect("a whole varint");
        *bytes = rest;
        value |= u64::from(first & 0x7f).checked_shl(shift).unwrap_or_default();
        if first & 0x80 == 0 {
            return value;
        }
    }
    panic!("a varint of more than ten bytes")
}

/// The fields of a message in their order.
fn fields(mut bytes: &[u8]) -> Vec<(u64, Field<'_>)> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let value = match key & 7 {
            0 => Field::Number(varint(&mut bytes)),
            1 => {
                let (value, rest) = bytes.split_at(8);
                bytes = rest;
                Field::Fixed(u64::from_le_bytes(value.try_into().unwrap()))
            }
            2 => {
                let length = usize::try_from(varint(&mut bytes)).unwrap();
                let (value, rest) = bytes.split_at(length);
                bytes = rest;
                Field::Bytes(value)
            }
            kind => panic!("wire type {kind}"),
        };
        found.push((key >> 3, value));
    }
    found
}

/// A track's description.
#[derive(Clone, Debug, Default)]
pub(crate) struct DescribedTrack {
    pub(crate) parent: Option<u64>,
    pub(crate) name: String,
    /// A process: its number.
    pub(crate) pid: Option<u64>,
    /// A counter: its unit.
    pub(crate) unit: Option<String>,
}

/// Types of events.
pub(crate) const BEGIN: u64 = 1;
pub(crate) const END: u64 = 2;
pub(crate) const INSTANT: u64 = 3;
pub(crate) const COUNTER: u64 = 4;

/// An event.
#[derive(Clone, Debug, Default)]
pub(crate) struct Event {
    pub(crate) time: u64,
    pub(crate) kind: u64,
    pub(crate) track: u64,
    pub(crate) name: String,
    pub(crate) value: Option<f64>,
    pub(crate) out: Vec<u64>,
    pub(crate) into: Vec<u64>,
    pub(crate) facts: BTreeMap<String, String>,
}

/// A trace.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    pub(crate) tracks: BTreeMap<u64, DescribedTrack>,
    pub(crate) events: Vec<Event>,
    /// Clocks of the snapshots and their times, and the primary clock.
    pub(crate) clocks: Vec<(u64, u64)>,
    pub(crate) primary: Option<u64>,
}

impl Trace {
    /// Reads a trace. It panics where it is none.
    pub(crate) fn read(bytes: &[u8]) -> Self {
        let mut trace = Self::default();
        for (field, packet) in fields(bytes) {
            assert_eq!(field, 1, "`Trace` has packets alone");
            trace.packet(packet.bytes());
        }
        trace
    }

    fn packet(&mut self, bytes: &[u8]) {
        let (mut time, mut clock, mut sequence, mut event) = (None, None, None, None);
        for (field, value) in fields(bytes) {
            match field {
                6 => self.snapshot(value.bytes()),
                8 => time = Some(value.number()),
                10 => sequence = Some(value.number()),
                11 => event = Some(value.bytes()),
                13 | 87 => assert_eq!(value.number(), 1),
                58 => clock = Some(value.number()),
                60 => self.track(value.bytes()),
                other => panic!("field {other} of a packet"),
            }
        }
        assert_eq!(sequence, Some(1));
        if let Some(event) = event {
            assert_eq!(clock, Some(1), "CLOCK_REALTIME");
            self.event(time.expect("an event has a time"), event);
        }
    }

    fn snapshot(&mut self, bytes: &[u8]) {
        for (field, value) in fields(bytes) {
            match field {
                1 => {
                    let reading = fields(value.bytes());
                    let of = |wanted| {
                        let found = reading.iter().find(|(field, _)| *field == wanted);
                        found.expect("a clock has a number and a time").1.number()
                    };
                    self.clocks.push((of(1), of(2)));
                }
                2 => self.primary = Some(value.number()),
                other => panic!("field {other} of a snapshot"),
            }
        }
    }

    fn track(&mut self, bytes: &[u8]) {
        let mut track = DescribedTrack::default();
        let mut uuid = None;
        for (field, value) in fields(bytes) {
            match field {
                1 => uuid = Some(value.number()),
                2 => track.name = value.text(),
                3 => {
                    for (field, value) in fields(value.bytes()) {
                        match field {
                            1 => track.pid = Some(value.number()),
                            6 => track.name = value.text(),
                            other => panic!("field {other} of a process"),
                        }
                    }
                }
                5 => track.parent = Some(value.number()),
                8 => {
                    let unit = fields(value.bytes()).into_iter().find(|(field, _)| *field == 6);
                    track.unit = Some(unit.expect("a counter has a unit").1.text());
                }
                11 | 12 => {}
                other => panic!("field {other} of a track"),
            }
        }
        if let Some(parent) = track.parent {
            assert!(self.tracks.contains_key(&parent), "a parent comes first");
        }
        let uuid = uuid.expect("a track has a number");
        assert!(
            self.tracks.insert(uuid, track).is_none(),
            "track {uuid} is described twice"
        );
    }

    fn event(&mut self, time: u64, bytes: &[u8]) {
        let mut event = Event {
            time,
            ..Event::default()
        };
        for (field, value) in fields(bytes) {
            match field {
                4 => {
                    let (mut name, mut fact) = (String::new(), String::new());
                    for (field, value) in fields(value.bytes()) {
                        match field {
                            10 => name = value.text(),
                            3 => fact = value.number().to_string(),
                            5 => fact = f64::from_bits(value.number()).to_string(),
                            6 => fact = value.text(),
                            other => panic!("field {other} of an annotation"),
                        }
                    }
                    event.facts.insert(name, fact);
                }
                9 => event.kind = value.number(),
                11 => event.track = value.number(),
                22 => assert!(!value.text().is_empty()),
                23 => event.name = value.text(),
                44 => event.value = Some(f64::from_bits(value.number())),
                47 => event.out.push(value.number()),
                48 => event.into.push(value.number()),
                other => panic!("field {other} of an event"),
            }
        }
        self.events.push(event);
    }

    /// Checks what holds of each trace: the clock; events on described tracks of their kind, in the order of time; slices that end, and nest;
    /// arrows with one begin and one end, which is not earlier.
    pub(crate) fn check(&self) {
        assert_eq!(self.primary, Some(1));
        let ids: BTreeSet<u64> = self.clocks.iter().map(|(id, _)| *id).collect();
        assert_eq!(ids, BTreeSet::from([1, 6]));
        let times: BTreeSet<u64> = self.clocks.iter().map(|(_, time)| *time).collect();
        assert_eq!(times.len(), 1, "both clocks show one time");
        let mut open: BTreeMap<u64, u64> = BTreeMap::new();
        let mut last: BTreeMap<(u64, bool), u64> = BTreeMap::new();
        let (mut out, mut into) = (BTreeMap::new(), BTreeMap::new());
        for event in &self.events {
            let track = self.tracks.get(&event.track).expect("the track is described");
            assert_eq!(track.unit.is_some(), event.kind == COUNTER, "{event:?}");
            assert_eq!(event.value.is_some(), event.kind == COUNTER, "{event:?}");
            // Slices and instants of one track are written one kind after the other.
            let last = last.entry((event.track, event.kind == INSTANT)).or_default();
            assert!(*last <= event.time, "{event:?} after {last}");
            *last = event.time;
            let open = open.entry(event.track).or_default();
            match event.kind {
                BEGIN => *open += 1,
                END => *open = open.checked_sub(1).expect("a slice begins before it ends"),
                INSTANT | COUNTER => {}
                other => panic!("an event of type {other}"),
            }
            assert!(*open <= 1, "slices of one track do not overlap: {event:?}");
            for arrow in &event.out {
                assert!(
                    out.insert(*arrow, event.time).is_none(),
                    "arrow {arrow} begins twice"
                );
            }
            for arrow in &event.into {
                assert!(
                    into.insert(*arrow, event.time).is_none(),
                    "arrow {arrow} ends twice"
                );
            }
        }
        assert!(open.values().all(|open| *open == 0), "each slice ends");
        assert_eq!(
            out.keys().collect::<Vec<_>>(),
            into.keys().collect::<Vec<_>>(),
            "arrows"
        );
        assert!(out.iter().all(|(arrow, time)| into[arrow] >= *time));
    }

    /// Begins of slices, and instants, on tracks of a name.
    pub(crate) fn on(&self, name: &str) -> Vec<&Event> {
        self.events
            .iter()
            .filter(|event| matches!(event.kind, BEGIN | INSTANT) && self.tracks[&event.track].name == name)
            .collect()
    }

    /// The time at which a slice ends: its end is the next event of its track.
    pub(crate) fn end_of(&self, begin: &Event) -> u64 {
        let mut after = self
            .events
            .iter()
            .skip_while(|event| !std::ptr::eq(*event, begin))
            .filter(|event| event.track == begin.track && event.kind == END);
        after.next().expect("the slice ends").time
    }

    /// Counters of a name: their tracks.
    pub(crate) fn counters(&self, name: &str) -> Vec<u64> {
        let named = self.tracks.iter();
        named
            .filter(|(_, track)| track.unit.is_some() && track.name == name)
            .map(|(track, _)| *track)
            .collect()
    }

    /// A counter's values over time, added up: value times seconds.
    pub(crate) fn integral(&self, track: u64) -> f64 {
        let values: Vec<&Event> = self.events.iter().filter(|event| event.track == track).collect();
        let steps = values.windows(2).map(|pair| {
            let seconds = std::time::Duration::from_nanos(pair[1].time - pair[0].time).as_secs_f64();
            pair[0].value.unwrap() * seconds
        });
        assert_eq!(
            values.last().and_then(|last| last.value),
            Some(0.0),
            "it falls to 0"
        );
        steps.sum()
    }
}
