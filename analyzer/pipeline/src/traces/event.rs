//! One event of a trace in Chrome's Trace Event Format: the few fields that tell collectives. Other fields are skipped, whatever they are,
//! and of a field that comes twice the last one counts.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Bytes of a text that are kept: names of kernels with their template arguments are longer.
const MAX_TEXT_BYTES: usize = 256;

/// A value that is neither an array nor an object.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) enum Scalar {
    Count(u64),
    Number(f64),
    Text(String),
    /// Nothing that is wanted.
    #[default]
    Other,
}

impl Scalar {
    /// The value as a whole number, from a number or from text.
    pub(super) fn count(&self) -> Option<u64> {
        match self {
            Self::Count(value) => Some(*value),
            Self::Text(text) => text.trim().parse().ok(),
            Self::Number(_) | Self::Other => None,
        }
    }

    /// The value as a number.
    pub(super) fn number(&self) -> Option<f64> {
        match self {
            Self::Count(value) => Some(roce_model::cast::float(*value)),
            Self::Number(value) => Some(*value),
            Self::Text(text) => text.trim().parse().ok(),
            Self::Other => None,
        }
        .filter(|value| value.is_finite())
    }

    /// The value as text.
    pub(super) fn text(&self) -> Option<String> {
        match self {
            Self::Count(value) => Some(value.to_string()),
            Self::Text(text) => Some(text.clone()),
            Self::Number(_) | Self::Other => None,
        }
    }
}

/// Reads a scalar; of text the first bytes.
pub(super) struct ScalarSeed;

impl<'de> DeserializeSeed<'de> for ScalarSeed {
    type Value = Scalar;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Scalar, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ScalarSeed {
    type Value = Scalar;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_u64<E>(self, value: u64) -> Result<Scalar, E> {
        Ok(Scalar::Count(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Scalar, E> {
        #[expect(
            clippy::cast_precision_loss,
            reason = "negative numbers are times before a start"
        )]
        let number = value as f64;
        Ok(u64::try_from(value).map_or(Scalar::Number(number), Scalar::Count))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Scalar, E> {
        Ok(Scalar::Number(value))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Scalar, E> {
        Ok(Scalar::Other)
    }

    fn visit_unit<E>(self) -> Result<Scalar, E> {
        Ok(Scalar::Other)
    }

    fn visit_str<E>(self, text: &str) -> Result<Scalar, E> {
        let end = text.floor_char_boundary(MAX_TEXT_BYTES);
        Ok(Scalar::Text(text.get(..end).unwrap_or_default().to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Scalar, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Scalar::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Scalar, A::Error> {
        while entries.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Scalar::Other)
    }
}

/// Reads the entries of an object whose names are wanted.
pub(super) struct Entries<F> {
    /// Takes a value under its name.
    pub(super) take: F,
    /// Names that are wanted.
    pub(super) wanted: &'static [&'static str],
}

/// Reads a name: its place among the wanted ones.
struct Name(&'static [&'static str]);

impl<'de> DeserializeSeed<'de> for Name {
    type Value = Option<&'static str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Name {
    type Value = Option<&'static str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(self.0.iter().copied().find(|name| *name == text))
    }
}

impl<'de, F: FnMut(&'static str, Scalar)> Visitor<'de> for Entries<F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut entries: A) -> Result<(), A::Error> {
        while let Some(name) = entries.next_key_seed(Name(self.wanted))? {
            match name {
                Some(name) => (self.take)(name, entries.next_value_seed(ScalarSeed)?),
                None => drop(entries.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }

    // Where an object is expected, writers have null or nothing of use, too.
    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }
}

impl<'de, F: FnMut(&'static str, Scalar)> DeserializeSeed<'de> for Entries<F> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

/// Fields of an event.
#[derive(Clone, Default, Debug)]
pub(super) struct Event {
    pub(super) phase: Scalar,
    pub(super) name: Scalar,
    pub(super) category: Scalar,
    pub(super) time: Scalar,
    pub(super) duration: Scalar,
    pub(super) id: Scalar,
    pub(super) process: Scalar,
    pub(super) arguments: Arguments,
}

/// Arguments of an event, as Kineto (libkineto/src/output_json.cpp) and NCCL's plugin (ext-profiler/example/print_event.cc) name them.
#[derive(Clone, Default, Debug)]
pub(super) struct Arguments {
    pub(super) collective: Scalar,
    pub(super) elements_in: Scalar,
    pub(super) elements_out: Scalar,
    pub(super) group_size: Scalar,
    pub(super) data_type: Scalar,
    pub(super) group: Scalar,
    pub(super) external_id: Scalar,
    pub(super) rank: Scalar,
    pub(super) communicator: Scalar,
    pub(super) count: Scalar,
    pub(super) sequence: Scalar,
    pub(super) queue_pair: Scalar,
}

impl Arguments {
    const WANTED: &'static [&'static str] = &[
        "Collective name",
        "In msg nelems",
        "Out msg nelems",
        "Group size",
        "dtype",
        "Datatype",
        "Process Group Name",
        "External id",
        "Rank",
        "CommHash",
        "Count",
        "SeqNum",
        "qp_num",
    ];

    fn take(&mut self, name: &str, value: Scalar) {
        let place = match name {
            "Collective name" => &mut self.collective,
            "In msg nelems" => &mut self.elements_in,
            "Out msg nelems" => &mut self.elements_out,
            "Group size" => &mut self.group_size,
            "dtype" | "Datatype" => &mut self.data_type,
            "Process Group Name" => &mut self.group,
            "External id" => &mut self.external_id,
            "Rank" => &mut self.rank,
            "CommHash" => &mut self.communicator,
            "Count" => &mut self.count,
            "SeqNum" => &mut self.sequence,
            "qp_num" => &mut self.queue_pair,
            _ => return,
        };
        *place = value;
    }
}

/// Reads an event.
pub(super) struct EventSeed;

impl<'de> DeserializeSeed<'de> for EventSeed {
    type Value = Event;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Event, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for EventSeed {
    type Value = Event;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an event, which is an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Event, A::Error> {
        const WANTED: &[&str] = &["ph", "name", "cat", "ts", "dur", "id", "pid", "args"];
        let mut event = Event::default();
        while let Some(name) = entries.next_key_seed(Name(WANTED))? {
            let place = match name {
                Some("ph") => &mut event.phase,
                Some("name") => &mut event.name,
                Some("cat") => &mut event.category,
                Some("ts") => &mut event.time,
                Some("dur") => &mut event.duration,
                Some("id") => &mut event.id,
                Some("pid") => &mut event.process,
                Some("args") => {
                    let arguments = &mut event.arguments;
                    entries.next_value_seed(Entries {
                        take: |name, value| arguments.take(name, value),
                        wanted: Arguments::WANTED,
                    })?;
                    continue;
                }
                _ => {
                    entries.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            *place = entries.next_value_seed(ScalarSeed)?;
        }
        Ok(event)
    }
}
