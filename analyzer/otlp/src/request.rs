//! `ExportMetricsServiceRequest` in protobuf (opentelemetry-proto, `metrics/v1/metrics.proto`).
//!
//! A message is walked where it lies. Fields of a level may come in any order, so each level is read twice: first its names.

use crate::error::OtlpError;
use crate::protobuf::{Field, FieldValue, Message};
use crate::translator::{Attribute, AttributeValue, MAX_ATTRIBUTES, Translator};
use roce_model::Sample;

/// `AGGREGATION_TEMPORALITY_DELTA`: values are changes, not counts.
const DELTA: u64 = 1;

/// Reads one request. Its samples are added to `samples`, and the translator counts the rest.
///
/// # Errors
/// The bytes are no such message. Samples before the error were added.
pub fn read_protobuf(
    bytes: &[u8],
    translator: &mut Translator,
    samples: &mut Vec<Sample>,
) -> Result<(), OtlpError> {
    let mut attributes = Vec::new();
    for field in Message::new(bytes) {
        if let Some(resource) = message(field?, 1) {
            read_resource(resource, translator, &mut attributes, samples)?;
        }
    }
    Ok(())
}

/// The message in a field of this number.
fn message(field: Field<'_>, number: u64) -> Option<Message<'_>> {
    match field.value {
        FieldValue::Bytes(message) if field.number == number => Some(message),
        _ => None,
    }
}

/// `ResourceMetrics{1 resource, 2 scope_metrics}`; `Resource{1 attributes}`; `ScopeMetrics{2 metrics}`.
fn read_resource<'a>(
    resource: Message<'a>,
    translator: &mut Translator,
    attributes: &mut Vec<Attribute<'a>>,
    samples: &mut Vec<Sample>,
) -> Result<(), OtlpError> {
    attributes.clear();
    for field in resource {
        if let Some(about) = message(field?, 1) {
            for field in about {
                if let Some(pair) = message(field?, 1) {
                    add_attribute(pair, attributes)?;
                }
            }
        }
    }
    translator.begin_resource(attributes);
    for field in resource {
        let Some(scope) = message(field?, 2) else { continue };
        for field in scope {
            if let Some(metric) = message(field?, 2) {
                read_metric(metric, translator, attributes, samples)?;
            }
        }
    }
    Ok(())
}

/// `Metric{1 name, 3 unit, 5 gauge, 7 sum, 9 histogram, 10 exponential_histogram, 11 summary}`.
fn read_metric<'a>(
    metric: Message<'a>,
    translator: &mut Translator,
    attributes: &mut Vec<Attribute<'a>>,
    samples: &mut Vec<Sample>,
) -> Result<(), OtlpError> {
    let (mut name, mut unit) = ("", "");
    for field in metric {
        let field = field?;
        if let Some(text) = message(field, 1) {
            name = text.text()?;
        } else if let Some(text) = message(field, 3) {
            unit = text.text()?;
        }
    }
    translator.begin_metric(name, unit);
    for field in metric {
        let Field {
            number: number @ (5 | 7 | 9 | 10 | 11),
            value: FieldValue::Bytes(data),
        } = field?
        else {
            continue;
        };
        if number == 7 {
            // Sum{1 data_points, 2 aggregation_temporality, 3 is_monotonic}.
            let mut is_delta = false;
            for field in data {
                let field = field?;
                is_delta |= field.number == 2 && matches!(field.value, FieldValue::Varint(DELTA));
            }
            translator.set_delta(is_delta);
        }
        for field in data {
            match message(field?, 1) {
                Some(point) if matches!(number, 5 | 7) => {
                    read_point(point, translator, attributes, samples)?;
                }
                Some(_) => translator.skip_distribution(),
                None => {}
            }
        }
    }
    Ok(())
}

/// `NumberDataPoint{7 attributes, 3 time_unix_nano, 4 as_double, 6 as_int, 8 flags}`.
fn read_point<'a>(
    point: Message<'a>,
    translator: &mut Translator,
    attributes: &mut Vec<Attribute<'a>>,
    samples: &mut Vec<Sample>,
) -> Result<(), OtlpError> {
    attributes.clear();
    let (mut time, mut value, mut flags) = (0, None, 0);
    for field in point {
        let field = field?;
        match (field.number, field.value) {
            (7, FieldValue::Bytes(pair)) => add_attribute(pair, attributes)?,
            (3, FieldValue::Fixed64(nanos)) => time = nanos,
            (4, FieldValue::Fixed64(bits)) => value = Some(f64::from_bits(bits)),
            (6, FieldValue::Fixed64(bits)) => value = Some(signed(bits)),
            (8, FieldValue::Varint(bits)) => flags = bits,
            _ => {}
        }
    }
    translator.point(attributes, time, value, flags, samples);
    Ok(())
}

/// An integer of two's complement; beyond 2^53 it is rounded.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_wrap,
    reason = "sfixed64 is two's complement; a count over 2^53 is read to 16 digits"
)]
fn signed(bits: u64) -> f64 {
    bits as i64 as f64
}

/// `KeyValue{1 key, 2 value}`; `AnyValue{1 string, 2 bool, 3 int, 4 double}`. Values of other kinds name nothing.
fn add_attribute<'a>(pair: Message<'a>, attributes: &mut Vec<Attribute<'a>>) -> Result<(), OtlpError> {
    let (mut key, mut value) = ("", AttributeValue::Other);
    for field in pair {
        let field = field?;
        if let Some(text) = message(field, 1) {
            key = text.text()?;
        } else if let Some(any) = message(field, 2) {
            for field in any {
                let field = field?;
                value = match (field.number, field.value) {
                    (1, FieldValue::Bytes(text)) => AttributeValue::Text(text.text()?),
                    (3, FieldValue::Varint(number)) => AttributeValue::Number(number),
                    _ => AttributeValue::Other,
                };
            }
        }
    }
    if attributes.len() < MAX_ATTRIBUTES {
        attributes.push(Attribute { key, value });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
