//! A value of a pickle as serde's data: the types that JSON is read into take it, too.

use std::fmt;

use serde::de::value::{MapDeserializer, SeqDeserializer};
use serde::de::{self, Deserializer, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;

use super::{MAX_VALUES, Pickle, Value};

/// Values that are looked at: lists that are used many times are looked at as often.
const MAX_STEPS: usize = 2 * MAX_VALUES;

/// Levels of lists and dictionaries.
const MAX_DEPTH: u32 = 64;

/// One value of a pickle.
#[derive(Clone, Copy)]
pub(crate) struct PickleValue<'p, 'a> {
    pickle: &'p Pickle<'a>,
    place: u32,
    depth: u32,
}

/// A pickle that is not what was expected.
#[derive(Debug)]
pub(crate) struct ValueError {
    /// Offset of the value, as far as it is known.
    pub(crate) byte: usize,
    /// The words of it.
    pub(crate) reason: String,
}

impl fmt::Display for ValueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl std::error::Error for ValueError {}

impl de::Error for ValueError {
    fn custom<T: fmt::Display>(reason: T) -> Self {
        let reason = reason.to_string();
        Self {
            byte: 0,
            reason: roce_model::text::clean(&reason).into_owned(),
        }
    }
}

impl<'a> Pickle<'a> {
    /// The value that the pickle is.
    pub(crate) const fn root<'p>(&'p self) -> PickleValue<'p, 'a> {
        PickleValue {
            pickle: self,
            place: self.root,
            depth: 0,
        }
    }
}

impl<'p, 'a> PickleValue<'p, 'a> {
    const fn at(self, place: u32) -> Self {
        Self {
            place,
            depth: self.depth + 1,
            ..self
        }
    }

    fn visit<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ValueError> {
        let steps = &self.pickle.steps;
        steps.set(steps.get() + 1);
        if steps.get() > MAX_STEPS || self.depth > MAX_DEPTH {
            return Err(de::Error::custom("lists are used too often or hold themselves"));
        }
        match self.pickle.values.get(self.place as usize) {
            Some(Value::None | Value::Other | Value::Name) | None => visitor.visit_unit(),
            Some(Value::Bool(value)) => visitor.visit_bool(*value),
            Some(Value::Whole(value)) => match (i64::try_from(*value), u64::try_from(*value)) {
                (Ok(value), _) => visitor.visit_i64(value),
                (_, Ok(value)) => visitor.visit_u64(value),
                _ => visitor.visit_i128(*value),
            },
            Some(Value::Number(value)) => visitor.visit_f64(*value),
            Some(Value::Text(text)) => visitor.visit_str(text),
            Some(Value::List(items)) => {
                visitor.visit_seq(SeqDeserializer::new(items.iter().map(|item| self.at(*item))))
            }
            Some(Value::Map(items)) => {
                let items = items.iter().map(|(key, value)| (self.at(*key), self.at(*value)));
                visitor.visit_map(MapDeserializer::new(items))
            }
        }
    }
}

impl<'de> Deserializer<'de> for PickleValue<'_, '_> {
    type Error = ValueError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ValueError> {
        let byte = self
            .pickle
            .bytes
            .get(self.place as usize)
            .copied()
            .unwrap_or_default();
        self.visit(visitor).map_err(|error| ValueError {
            byte: if error.byte == 0 {
                byte as usize
            } else {
                error.byte
            },
            ..error
        })
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ValueError> {
        match self.pickle.values.get(self.place as usize) {
            Some(Value::None) | None => visitor.visit_none(),
            Some(_) => visitor.visit_some(self),
        }
    }

    // A value that nobody wants is not looked at: it may hold itself.
    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ValueError> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier
    }
}

impl<'de> IntoDeserializer<'de, ValueError> for PickleValue<'_, '_> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}
