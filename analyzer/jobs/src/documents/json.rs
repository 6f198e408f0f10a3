//! Values of JSON that writers give in several forms: a number, the same as text, or nothing.

use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// A value that is neither an array nor an object; these are skipped.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) enum Loose {
    Whole(i128),
    Number(f64),
    Text(String),
    #[default]
    Absent,
}

impl Loose {
    /// A whole number, from a number or from text.
    pub(super) fn whole<T: TryFrom<i128>>(&self) -> Option<T> {
        let value = match self {
            Self::Whole(value) => *value,
            Self::Text(text) => text.trim().parse().ok()?,
            Self::Number(_) | Self::Absent => return None,
        };
        T::try_from(value).ok()
    }

    /// A number that is finite.
    pub(super) fn number(&self) -> Option<f64> {
        #[expect(
            clippy::cast_precision_loss,
            reason = "whole numbers of documents are far below 2^53"
        )]
        let value = match self {
            Self::Whole(value) => *value as f64,
            Self::Number(value) => *value,
            Self::Text(text) => text.trim().parse().ok()?,
            Self::Absent => return None,
        };
        value.is_finite().then_some(value)
    }

    pub(super) fn text(&self) -> Option<String> {
        match self {
            Self::Text(text) => Some(super::text::name(text)),
            Self::Whole(value) => Some(value.to_string()),
            Self::Number(_) | Self::Absent => None,
        }
    }
}

impl<'de> Deserialize<'de> for Loose {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LooseVisitor)
    }
}

struct LooseVisitor;

impl<'de> Visitor<'de> for LooseVisitor {
    type Value = Loose;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Loose, E> {
        Ok(Loose::Whole(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Loose, E> {
        Ok(Loose::Whole(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Loose, E> {
        Ok(Loose::Whole(value.into()))
    }

    fn visit_i128<E>(self, value: i128) -> Result<Loose, E> {
        Ok(Loose::Whole(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Loose, E> {
        Ok(Loose::Number(value))
    }

    fn visit_str<E>(self, text: &str) -> Result<Loose, E> {
        Ok(Loose::Text(super::text::name(text)))
    }

    fn visit_unit<E>(self) -> Result<Loose, E> {
        Ok(Loose::Absent)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Loose, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Loose::Absent)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Loose, A::Error> {
        while entries.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Loose::Absent)
    }
}
