//! Metrics in Prometheus' text format as an `ExportMetricsServiceRequest` in protobuf. Names and labels stay as they are.
//!
//! The text is this program's own: each family has its HELP and TYPE, and a histogram its buckets, then its sum and count. Lines of
//! another form are left out.

use std::borrow::Cow;

use roce_model::Time;

use crate::answer::{put_bytes, put_varint};

/// `AGGREGATION_TEMPORALITY_CUMULATIVE`.
const CUMULATIVE: u64 = 2;

/// Kind of a family.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FamilyKind {
    Gauge,
    Counter,
    Histogram,
}

/// A family whose points are collected.
struct Family<'a> {
    name: &'a str,
    help: &'a str,
    kind: FamilyKind,
    /// `data_points` of its gauge, sum or histogram, encoded.
    points: Vec<u8>,
    histogram: Buckets<'a>,
}

/// The series of a histogram with the same labels.
#[derive(Default)]
struct Buckets<'a> {
    labels: Vec<(&'a str, Cow<'a, str>)>,
    bounds: Vec<f64>,
    /// Counts up to each bound, the last one without a bound.
    counts: Vec<f64>,
    sum: f64,
}

/// The request of a text, whose values are of `time`. `resource` has attributes such as `service.name`.
pub fn request_of_text(text: &str, time: Time, resource: &[(&str, &str)]) -> Vec<u8> {
    let mut metrics = Vec::new();
    let mut help = "";
    let mut family: Option<Family<'_>> = None;
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            help = rest.split_once(' ').map_or("", |(_, help)| help);
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            finish(family.take(), &mut metrics);
            let (name, kind) = rest.split_once(' ').unwrap_or((rest, ""));
            let kind = match kind {
                "counter" => FamilyKind::Counter,
                "histogram" => FamilyKind::Histogram,
                _ => FamilyKind::Gauge,
            };
            family = Some(Family {
                name,
                help,
                kind,
                points: Vec::new(),
                histogram: Buckets::default(),
            });
        } else if let (Some(family), Some(series)) = (&mut family, Series::parse(line)) {
            family.add(series, time);
        }
    }
    finish(family, &mut metrics);
    let mut about = Vec::new();
    for (key, value) in resource {
        put_attribute(1, key, value, &mut about);
    }
    let mut all = Vec::new();
    put_bytes(1, &about, &mut all);
    put_bytes(2, &metrics, &mut all);
    let mut request = Vec::new();
    put_bytes(1, &all, &mut request);
    request
}

/// One line of the text.
struct Series<'a> {
    name: &'a str,
    labels: Vec<(&'a str, Cow<'a, str>)>,
    value: f64,
}

impl<'a> Series<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let end = line.find(['{', ' '])?;
        let (name, mut rest) = line.split_at(end);
        let mut labels = Vec::new();
        if let Some(inside) = rest.strip_prefix('{') {
            rest = inside;
            loop {
                rest = rest.strip_prefix(',').unwrap_or(rest);
                if let Some(behind) = rest.strip_prefix('}') {
                    rest = behind;
                    break;
                }
                let (key, value) = rest.split_once("=\"")?;
                let end = closing_quote(value)?;
                labels.push((key, unescaped(&value[..end])));
                rest = &value[end + 1..];
            }
        }
        let value = match rest.strip_prefix(' ')? {
            "+Inf" => f64::INFINITY,
            "-Inf" => f64::NEG_INFINITY,
            number => number.parse().ok()?,
        };
        Some(Self { name, labels, value })
    }
}

/// Place of the quotation mark that ends a value: the first one without a backslash that belongs to it.
fn closing_quote(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    text.bytes().position(|byte| {
        let ends = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        ends
    })
}

fn unescaped(text: &str) -> Cow<'_, str> {
    if !text.contains('\\') {
        return text.into();
    }
    let mut whole = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        whole.push(match letter {
            '\\' => match letters.next() {
                Some('n') => '\n',
                Some(other) => other,
                None => '\\',
            },
            other => other,
        });
    }
    whole.into()
}

impl<'a> Family<'a> {
    fn add(&mut self, mut series: Series<'a>, time: Time) {
        if self.kind != FamilyKind::Histogram {
            let mut point = Vec::new();
            put_labels(7, &series.labels, &mut point);
            put_fixed(3, time.0, &mut point);
            put_fixed(4, series.value.to_bits(), &mut point);
            put_bytes(1, &point, &mut self.points);
            return;
        }
        let histogram = &mut self.histogram;
        match series.name.strip_prefix(self.name) {
            Some("_bucket") => {
                // `le` is the last label.
                let bound = series.labels.pop().and_then(|(_, bound)| bound.parse().ok());
                histogram
                    .bounds
                    .extend(bound.filter(|bound: &f64| bound.is_finite()));
                histogram.counts.push(series.value);
                histogram.labels = series.labels;
            }
            Some("_sum") => histogram.sum = series.value,
            Some("_count") => {
                let whole = std::mem::take(histogram);
                put_bytes(1, &whole.encoded(series.value, time), &mut self.points);
            }
            _ => {}
        }
    }
}

impl Buckets<'_> {
    /// `HistogramDataPoint{9 attributes, 3 time, 4 count, 5 sum, 6 bucket_counts, 7 explicit_bounds}`.
    fn encoded(&self, count: f64, time: Time) -> Vec<u8> {
        let mut point = Vec::new();
        put_labels(9, &self.labels, &mut point);
        put_fixed(3, time.0, &mut point);
        put_fixed(4, whole(count), &mut point);
        put_fixed(5, self.sum.to_bits(), &mut point);
        let before = std::iter::once(&0.0).chain(&self.counts);
        let own = self
            .counts
            .iter()
            .zip(before)
            .map(|(upto, before)| whole(upto - before));
        let counts: Vec<u8> = own.flat_map(u64::to_le_bytes).collect();
        put_bytes(6, &counts, &mut point);
        let bounds: Vec<u8> = self.bounds.iter().flat_map(|bound| bound.to_le_bytes()).collect();
        put_bytes(7, &bounds, &mut point);
        point
    }
}

/// A count that was written as a number.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "counts are whole and not negative; the conversion saturates"
)]
fn whole(count: f64) -> u64 {
    count as u64
}

/// Adds `Metric{1 name, 2 description, 5 gauge, 7 sum, 9 histogram}` to `ScopeMetrics.metrics`.
fn finish(family: Option<Family<'_>>, metrics: &mut Vec<u8>) {
    let Some(family) = family.filter(|family| !family.points.is_empty()) else {
        return;
    };
    let mut metric = Vec::new();
    put_bytes(1, family.name.as_bytes(), &mut metric);
    put_bytes(2, family.help.as_bytes(), &mut metric);
    let mut data = family.points;
    let number = match family.kind {
        FamilyKind::Gauge => 5,
        FamilyKind::Counter => {
            put_number(2, CUMULATIVE, &mut data);
            put_number(3, 1, &mut data);
            7
        }
        FamilyKind::Histogram => {
            put_number(2, CUMULATIVE, &mut data);
            9
        }
    };
    put_bytes(number, &data, &mut metric);
    put_bytes(2, &metric, metrics);
}

fn put_labels(number: u8, labels: &[(&str, Cow<'_, str>)], into: &mut Vec<u8>) {
    for (key, value) in labels {
        put_attribute(number, key, value, into);
    }
}

/// Adds `KeyValue{1 key, 2 value{1 string_value}}`.
fn put_attribute(number: u8, key: &str, value: &str, into: &mut Vec<u8>) {
    let mut any = Vec::new();
    put_bytes(1, value.as_bytes(), &mut any);
    let mut pair = Vec::new();
    put_bytes(1, key.as_bytes(), &mut pair);
    put_bytes(2, &any, &mut pair);
    put_bytes(number, &pair, into);
}

fn put_number(number: u8, value: u64, into: &mut Vec<u8>) {
    into.push(number << 3);
    put_varint(value, into);
}

fn put_fixed(number: u8, bits: u64, into: &mut Vec<u8>) {
    into.push(number << 3 | 1);
    into.extend_from_slice(&bits.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Translator, read_protobuf};

    #[test]
    fn values_names_and_labels_stay_as_they_are() {
        let text = "# HELP roce_port_up 1 if the port is ACTIVE.\n# TYPE roce_port_up gauge\n\
            roce_port_up{device=\"a\\\"b\\\\\"} 1\nnonsense\n# TYPE roce_x_total counter\nroce_x_total 7\n";
        let bytes = request_of_text(text, Time(5), &[("service.name", "roce-analyze")]);
        let contains = |part: &[u8]| bytes.windows(part.len()).any(|window| window == part);
        // A label a"b\ with its length of 4; the counter is cumulative (10 02) and monotonic (18 01).
        assert!(contains(b"\x0a\x06device\x12\x06\x0a\x04a\"b\\"));
        assert!(contains(b"\x10\x02\x18\x01"));
        assert!(contains(b"1 if the port is ACTIVE."));
        // Points with time and value: both are read, and neither name is a switch's.
        let mut translator = Translator::new(None);
        read_protobuf(&bytes, &mut translator, &mut Vec::new()).unwrap();
        let unknown: Vec<&str> = translator.tally().unknown.keys().map(String::as_str).collect();
        assert_eq!(unknown, ["roce_port_up", "roce_x_total"]);
    }

    #[test]
    fn a_histogram_has_the_counts_of_its_own_buckets() {
        let text = "# HELP h About.\n# TYPE h histogram\nh_bucket{tap=\"a\",le=\"1\"} 2\nh_bucket{tap=\"a\",le=\"2\"} 5\n\
            h_bucket{tap=\"a\",le=\"+Inf\"} 6\nh_sum{tap=\"a\"} 9.5\nh_count{tap=\"a\"} 6\n";
        let bytes = request_of_text(text, Time(5), &[]);
        let numbers = |values: [u64; 3]| {
            values
                .iter()
                .flat_map(|value| value.to_le_bytes())
                .collect::<Vec<u8>>()
        };
        let contains = |part: &[u8]| bytes.windows(part.len()).any(|window| window == part);
        // 2, 5 - 2 and 6 - 5 measurements, as packed fixed64 in field 6.
        assert!(contains(
            &[&[6 << 3 | 2, 24], numbers([2, 3, 1]).as_slice()].concat()
        ));
        assert!(contains(
            &[
                &[7 << 3 | 2, 16],
                1_f64.to_le_bytes().as_slice(),
                &2_f64.to_le_bytes()
            ]
            .concat()
        ));
    }
}
