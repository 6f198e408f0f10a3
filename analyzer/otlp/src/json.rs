//! `ExportMetricsServiceRequest` in JSON: OTLP's JSON encoding of protobuf (OTLP specification, "JSON Protobuf Encoding").
//!
//! Keys are in lowerCamelCase, unknown keys are skipped, 64-bit integers are numbers or text of decimal digits.

use std::borrow::Cow;

use roce_model::Sample;
use serde::Deserialize;
use serde::de::{Deserializer, Error as _, Visitor};

use crate::error::OtlpError;
use crate::translator::{Attribute, AttributeValue, MAX_ATTRIBUTES, Translator};

/// JSON objects of a request. A point with two attributes has five in some 170 bytes; one object takes about 100 bytes of memory.
const MAX_OBJECTS: usize = 200_000;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request<'a> {
    #[serde(default, borrow)]
    resource_metrics: Vec<ResourceMetrics<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResourceMetrics<'a> {
    #[serde(default, borrow)]
    resource: Resource<'a>,
    #[serde(default, borrow)]
    scope_metrics: Vec<ScopeMetrics<'a>>,
}

#[derive(Default, Deserialize)]
struct Resource<'a> {
    #[serde(default, borrow)]
    attributes: Vec<KeyValue<'a>>,
}

#[derive(Deserialize)]
struct ScopeMetrics<'a> {
    #[serde(default, borrow)]
    metrics: Vec<Metric<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metric<'a> {
    #[serde(default, borrow)]
    name: Cow<'a, str>,
    #[serde(default, borrow)]
    unit: Cow<'a, str>,
    #[serde(borrow)]
    gauge: Option<Points<'a>>,
    #[serde(borrow)]
    sum: Option<Points<'a>>,
    histogram: Option<Distribution>,
    exponential_histogram: Option<Distribution>,
    summary: Option<Distribution>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Points<'a> {
    #[serde(default, borrow)]
    data_points: Vec<Point<'a>>,
    #[serde(default)]
    aggregation_temporality: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Distribution {
    #[serde(default)]
    data_points: Vec<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Point<'a> {
    #[serde(default, borrow)]
    attributes: Vec<KeyValue<'a>>,
    #[serde(default)]
    time_unix_nano: Integer,
    as_double: Option<Double>,
    as_int: Option<Integer>,
    #[serde(default)]
    flags: u64,
}

#[derive(Deserialize)]
struct KeyValue<'a> {
    #[serde(default, borrow)]
    key: Cow<'a, str>,
    #[serde(default, borrow)]
    value: AnyValue<'a>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct AnyValue<'a> {
    /// Empty where the value is none: an empty text names nothing either.
    #[serde(default, borrow)]
    string_value: Cow<'a, str>,
    int_value: Option<Integer>,
}

/// A 64-bit integer: a number, or its decimal digits.
#[derive(Clone, Copy, Default)]
struct Integer(i128);

/// A double: a number, or `NaN`, `Infinity` and `-Infinity` as text.
struct Double(f64);

struct NumberVisitor;

impl Visitor<'_> for NumberVisitor {
    type Value = (i128, f64);

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a number, or its digits as text")
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "a count over 2^53 is read to 16 digits"
    )]
    fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
        Ok((value.into(), value as f64))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
        Ok((value.into(), roce_model::value_of(value)))
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "proto3 reads 1.0 as the integer 1"
    )]
    fn visit_f64<E>(self, value: f64) -> Result<Self::Value, E> {
        Ok((value as i128, value))
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "a count over 2^53 is read to 16 digits"
    )]
    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Self::Value, E> {
        if let Ok(number) = text.parse::<i64>() {
            return Ok((number.into(), number as f64));
        }
        if let Ok(number) = text.parse::<u64>() {
            return Ok((number.into(), roce_model::value_of(number)));
        }
        match text.parse::<f64>() {
            Ok(number) => Ok((0, number)),
            Err(_) => Err(E::custom("text that is no number")),
        }
    }
}

impl<'de> Deserialize<'de> for Integer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (number, value) = deserializer.deserialize_any(NumberVisitor)?;
        if value.is_finite() {
            Ok(Self(number))
        } else {
            Err(D::Error::custom("an integer that is not finite"))
        }
    }
}

impl<'de> Deserialize<'de> for Double {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(deserializer.deserialize_any(NumberVisitor)?.1))
    }
}

/// Reads one request. Its samples are added to `samples`, and the translator counts the rest.
///
/// # Errors
/// The text is no such document. Nothing was added.
#[expect(
    clippy::naive_bytecount,
    reason = "4 MiB take less than a millisecond, and a crate for it is one more"
)]
pub fn read_json(
    text: &[u8],
    translator: &mut Translator,
    samples: &mut Vec<Sample>,
) -> Result<(), OtlpError> {
    if text.iter().filter(|byte| **byte == b'{').count() > MAX_OBJECTS {
        return Err(OtlpError::TooManyObjects { limit: MAX_OBJECTS });
    }
    if !text.trim_ascii_start().starts_with(b"{") {
        return Err(OtlpError::Json("no object of JSON".to_owned()));
    }
    let request: Request<'_> =
        serde_json::from_slice(text).map_err(|error| OtlpError::Json(error.to_string()))?;
    for all in &request.resource_metrics {
        translator.begin_resource(&attributes(&all.resource.attributes));
        for metric in all.scope_metrics.iter().flat_map(|scope| &scope.metrics) {
            translator.begin_metric(&metric.name, &metric.unit);
            for points in [&metric.gauge, &metric.sum].into_iter().flatten() {
                translator.set_delta(points.aggregation_temporality == 1);
                for point in &points.data_points {
                    add(point, translator, samples);
                }
            }
            let others = [&metric.histogram, &metric.exponential_histogram, &metric.summary];
            for _ in others.into_iter().flatten().flat_map(|other| &other.data_points) {
                translator.skip_distribution();
            }
        }
    }
    Ok(())
}

fn add(point: &Point<'_>, translator: &mut Translator, samples: &mut Vec<Sample>) {
    let double = point.as_double.as_ref().map(|double| double.0);
    #[expect(
        clippy::cast_precision_loss,
        reason = "a count over 2^53 is read to 16 digits"
    )]
    let value = double.or(point.as_int.map(|integer| integer.0 as f64));
    let time = u64::try_from(point.time_unix_nano.0).unwrap_or(0);
    translator.point(&attributes(&point.attributes), time, value, point.flags, samples);
}

fn attributes<'a>(pairs: &'a [KeyValue<'_>]) -> Vec<Attribute<'a>> {
    let pairs = pairs.iter().take(MAX_ATTRIBUTES);
    pairs
        .map(|pair| Attribute {
            key: &pair.key,
            value: match pair.value.int_value {
                None => AttributeValue::Text(&pair.value.string_value),
                Some(number) => u64::try_from(number.0).map_or(AttributeValue::Other, AttributeValue::Number),
            },
        })
        .collect()
}

#[cfg(test)]
mod tests;
