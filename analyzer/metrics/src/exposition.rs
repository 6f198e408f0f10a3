//! Values with labels, and the text that a scrape gets.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write;

use roce_model::text::steers;
use roce_model::{Sample, SampleSource};

use crate::families::{Own, SERIES_LEFT_OUT, family_of};
use crate::family::{Family, MetricKind};

/// Series in one exposition; of more, the rest is left out and counted.
const MAX_SERIES: usize = 50_000;

/// A label: its name and its value.
pub type Label<'a> = (&'static str, Cow<'a, str>);

/// The form of the text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// Prometheus' text format, version 0.0.4.
    Prometheus,
    /// OpenMetrics, version 1.0.0.
    OpenMetrics,
}

impl Format {
    /// The media type of an answer in this form.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// The values of one scrape: families in order of their names, series in order of their labels, each once.
#[derive(Debug, Default)]
pub struct Exposition {
    families: BTreeMap<String, (Family, BTreeMap<String, f64>)>,
    histograms: BTreeMap<&'static str, (Family, BTreeMap<String, Buckets>)>,
    count: usize,
    left_out: usize,
}

/// Measurements in buckets.
#[derive(Clone, Debug, Default)]
pub struct Buckets {
    /// Upper bound and number of the measurements in each bucket, those of lower ones not included.
    pub counts: Vec<(f64, u64)>,
    /// Number of measurements beyond the last bound.
    pub beyond: u64,
    /// Sum of all measurements.
    pub sum: f64,
}

impl Exposition {
    /// Adds a sample. Later samples of a series replace earlier ones.
    pub fn add(&mut self, sample: &Sample) {
        let mut labels: Vec<Label<'_>> = Vec::new();
        match sample.source {
            // A port of an RDMA device has a number, an interface has none.
            SampleSource::Host
                if sample.counter.name().starts_with("port_") || sample.object.contains(':') =>
            {
                let (device, port) = sample.object.rsplit_once(':').unwrap_or((&sample.object, ""));
                labels.push(("device", device.into()));
                if !port.is_empty() {
                    labels.push(("port", port.into()));
                }
            }
            SampleSource::Host => labels.push(("netdev", sample.object.as_ref().into())),
            SampleSource::Gpu => {
                let number = sample.object.strip_prefix("gpu").unwrap_or(&sample.object);
                labels.push(("gpu", number.trim_start().into()));
            }
            SampleSource::Switch => {
                labels.push(("switch", sample.node.as_ref().into()));
                // Values of the whole switch, of a slice or of a buffer belong to no interface.
                if !sample.object.is_empty() {
                    labels.push(("interface", sample.object.as_ref().into()));
                }
            }
            SampleSource::Hypervisor => {
                labels.push(("hypervisor", sample.node.as_ref().into()));
                if !sample.object.is_empty() {
                    labels.push(("vmnic", sample.object.as_ref().into()));
                }
            }
            SampleSource::Tool => labels.push(("tool", sample.object.as_ref().into())),
        }
        if let Some(priority) = sample.priority {
            labels.push(("priority", priority.to_string().into()));
        }
        if let Some(queue) = &sample.queue {
            labels.push(("queue", queue.as_ref().into()));
        }
        let names = sample.counter.labels().iter().copied();
        labels.extend(names.zip(sample.details.iter().map(|detail| Cow::Borrowed(detail.as_ref()))));
        self.put(family_of(sample.counter), &labels, sample.value);
    }

    /// Sets a metric about the program itself.
    pub fn own(&mut self, (name, kind, help): Own, labels: &[Label<'_>], value: f64) {
        let name = name.to_owned();
        self.put(Family { name, kind, help }, labels, value);
    }

    /// Sets a histogram.
    pub fn histogram(&mut self, (name, kind, help): Own, labels: &[Label<'_>], buckets: Buckets) {
        // Each bound is a series; so are infinity, the sum and the count.
        let more = buckets.counts.len() + 3;
        if self.count + more > MAX_SERIES {
            self.left_out += more;
            return;
        }
        let (_, all) = self.histograms.entry(name).or_insert_with(|| {
            let name = name.to_owned();
            (Family { name, kind, help }, BTreeMap::new())
        });
        if all.insert(label_text(labels), buckets).is_none() {
            self.count += more;
        }
    }

    fn put(&mut self, family: Family, labels: &[Label<'_>], value: f64) {
        let key = label_text(labels);
        let (_, series) = self
            .families
            .entry(family.name.clone())
            .or_insert_with(|| (family, BTreeMap::new()));
        if let Some(before) = series.get_mut(&key) {
            *before = value;
        } else if self.count < MAX_SERIES {
            series.insert(key, value);
            self.count += 1;
        } else {
            self.left_out += 1;
        }
    }

    /// Takes the values of another one, histograms excepted. Its values replace those of the same series.
    pub fn merge(&mut self, other: Self) {
        self.left_out += other.left_out;
        for (family, series) in other.families.into_values() {
            let (_, all) = self
                .families
                .entry(family.name.clone())
                .or_insert_with(|| (family, BTreeMap::new()));
            for (labels, value) in series {
                if self.count >= MAX_SERIES && !all.contains_key(&labels) {
                    self.left_out += 1;
                } else if all.insert(labels, value).is_none() {
                    self.count += 1;
                }
            }
        }
    }

    /// Number of series that found no room.
    pub fn left_out(&self) -> usize {
        self.left_out
    }

    /// The text of a scrape.
    pub fn text(&self, format: Format) -> String {
        let mut text = self.part(format);
        if self.left_out > 0 {
            let (name, kind, help) = SERIES_LEFT_OUT;
            let name = name.to_owned();
            let family = Family { name, kind, help };
            head(&mut text, &family, format);
            line(
                &mut text,
                &family.name,
                "",
                roce_model::value_of(self.left_out as u64),
            );
        }
        end(&mut text, format);
        text
    }

    /// A part of the text of a scrape, whose other parts have other families; [`end`] completes it. The number of series that were
    /// left out is not in it.
    pub fn part(&self, format: Format) -> String {
        let mut text = String::new();
        for (family, series) in self.families.values().filter(|(_, series)| !series.is_empty()) {
            head(&mut text, family, format);
            for (labels, value) in series {
                line(&mut text, &family.name, labels, *value);
            }
        }
        for (family, all) in self.histograms.values() {
            head(&mut text, family, format);
            for (labels, buckets) in all {
                histogram(&mut text, &family.name, labels, buckets);
            }
        }
        text
    }
}

/// Parts of the text of a scrape as one part: the series of a family that several parts have are together, as the formats demand.
pub fn joined<'a>(parts: impl IntoIterator<Item = &'a str>) -> String {
    let mut families: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut length = 0;
    for part in parts {
        length += part.len();
        let mut rest = part;
        while !rest.is_empty() {
            // A family begins with its HELP.
            let end = rest.get(1..).and_then(|text| text.find(FAMILY)).map(|at| at + 2);
            let (family, behind) = rest.split_at(end.unwrap_or(rest.len()));
            let name = family.split(' ').nth(2).unwrap_or_default();
            let all = families.entry(name).or_default();
            let is_first = all.is_empty();
            let skipped = family
                .lines()
                .take_while(|line| !is_first && line.starts_with("# "));
            let skipped: usize = skipped.map(|line| line.len() + 1).sum();
            all.extend(family.get(skipped..));
            rest = behind;
        }
    }
    let mut text = String::with_capacity(length);
    text.extend(families.into_values().flatten());
    text
}

/// Beginning of a family behind another one.
const FAMILY: &str = "\n# HELP ";

/// Completes the text of a scrape.
pub fn end(text: &mut String, format: Format) {
    if format == Format::OpenMetrics {
        text.push_str("# EOF\n");
    }
}

/// HELP and TYPE of a family, and UNIT where the format has it.
fn head(text: &mut String, family: &Family, format: Format) {
    let name = match format {
        Format::Prometheus => &family.name,
        Format::OpenMetrics => family.base(),
    };
    let kind = match family.kind {
        MetricKind::Counter => "counter",
        MetricKind::Gauge => "gauge",
        MetricKind::Histogram => "histogram",
    };
    // Writing to a String cannot fail.
    let _ = writeln!(
        text,
        "# HELP {name} {}",
        escape(family.help, format == Format::OpenMetrics)
    );
    let _ = writeln!(text, "# TYPE {name} {kind}");
    if let (Format::OpenMetrics, Some(unit)) = (format, family.unit()) {
        let _ = writeln!(text, "# UNIT {name} {unit}");
    }
}

/// The series of a histogram: each bucket has the measurements of all lower ones, too.
fn histogram(text: &mut String, name: &str, labels: &str, buckets: &Buckets) {
    let others = labels
        .strip_suffix('}')
        .map_or_else(|| "{".to_owned(), |labels| format!("{labels},"));
    let mut sum = 0_u64;
    let last = (f64::INFINITY, buckets.beyond);
    for (bound, count) in buckets.counts.iter().chain([&last]) {
        sum = sum.saturating_add(*count);
        let bound = if bound.is_infinite() {
            "+Inf".to_owned()
        } else {
            bound.to_string()
        };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{name}_bucket{others}le=\"{bound}\"}} {sum}");
    }
    line(text, &format!("{name}_sum"), labels, buckets.sum);
    let _ = writeln!(text, "{name}_count{labels} {sum}");
}

fn line(text: &mut String, name: &str, labels: &str, value: f64) {
    let _ = if value.is_infinite() {
        let sign = if value > 0.0 { '+' } else { '-' };
        writeln!(text, "{name}{labels} {sign}Inf")
    } else {
        // An integer has no point, a fraction the shortest digits that give it again; NaN is "NaN".
        writeln!(text, "{name}{labels} {value}")
    };
}

/// `{device="mlx5_0",port="1"}`; nothing without labels.
fn label_text(labels: &[Label<'_>]) -> String {
    if labels.is_empty() {
        return String::new();
    }
    let mut text = String::from("{");
    for (index, (name, value)) in labels.iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        let _ = write!(text, "{name}=\"{}\"", escape(value, true));
    }
    text.push('}');
    text
}

/// Text with backslashes and line ends escaped, and quotation marks where `quotes` is set. A character that steers a terminal, or turns or hides text, becomes `?`.
fn escape(text: &str, quotes: bool) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\\' => escaped.push_str("\\\\"),
            '\n' => escaped.push_str("\\n"),
            '"' if quotes => escaped.push_str("\\\""),
            other if steers(other) => escaped.push('?'),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::families::{COLLECTOR_SUCCESS, LIVE_ACK_RTT};
    use roce_model::{Counter, Time};

    fn sample(object: &str, counter: Counter, value: f64) -> Sample {
        Sample {
            time: Time(1),
            source: SampleSource::Host,
            node: "a".into(),
            object: object.into(),
            counter,
            priority: None,
            queue: None,
            details: Vec::new(),
            value,
            bits: 64,
        }
    }

    fn exposition() -> Exposition {
        let mut exposition = Exposition::default();
        exposition.add(&sample("mlx5_0:1", Counter::PortCnpSent, 34_569_335.0));
        exposition.add(&Sample {
            details: vec!["write".into()],
            ..sample("mlx5_0:1", Counter::PortRequestsReceived, 12.0)
        });
        exposition.add(&Sample {
            priority: Some(3),
            ..sample("ens1f0np0", Counter::PfcReceivePausedSeconds, 12.034_511)
        });
        exposition.add(&Sample {
            details: vec!["qp".into()],
            ..sample("mlx5_0:1", Counter::PortObjects, 49.0)
        });
        exposition
    }

    #[test]
    fn parts_of_several_devices_have_each_family_once() {
        let part = |switch: &'static str, format| {
            let mut exposition = Exposition::default();
            let labels: [Label<'_>; 1] = [("switch", switch.into())];
            exposition.own(crate::SWITCH_INFO, &labels, 1.0);
            if switch == "b" {
                exposition.own(crate::SWITCH_NEIGHBOR, &labels, 1.0);
            }
            exposition.part(format)
        };
        for format in [Format::Prometheus, Format::OpenMetrics] {
            let mut whole = Exposition::default();
            for switch in ["a", "b", "c"] {
                whole.own(crate::SWITCH_INFO, &[("switch", switch.into())], 1.0);
            }
            whole.own(crate::SWITCH_NEIGHBOR, &[("switch", "b".into())], 1.0);
            let parts = ["a", "b", "c"].map(|switch| part(switch, format));
            let text = joined(parts.iter().map(String::as_str));
            assert_eq!(text, whole.part(format));
        }
        assert_eq!(joined([]), "");
        assert_eq!(joined(["", ""]), "");
    }

    #[test]
    fn text_of_prometheus() {
        let expected = "\
# HELP roce_pfc_receive_paused_seconds_total Time in which received PFC frames kept this port from sending.
# TYPE roce_pfc_receive_paused_seconds_total counter
roce_pfc_receive_paused_seconds_total{netdev=\"ens1f0np0\",priority=\"3\"} 12.034511
# HELP roce_port_cnp_sent_total CNPs sent: the receiver of marked packets notifies the sender.
# TYPE roce_port_cnp_sent_total counter
roce_port_cnp_sent_total{device=\"mlx5_0\",port=\"1\"} 34569335
# HELP roce_port_objects Objects that exist on the device now: queue pairs, completion queues, memory regions.
# TYPE roce_port_objects gauge
roce_port_objects{device=\"mlx5_0\",port=\"1\",kind=\"qp\"} 49
# HELP roce_port_requests_received_total Requests received, by operation.
# TYPE roce_port_requests_received_total counter
roce_port_requests_received_total{device=\"mlx5_0\",port=\"1\",operation=\"write\"} 12
";
        assert_eq!(exposition().text(Format::Prometheus), expected);
    }

    #[test]
    fn text_of_openmetrics() {
        let text = exposition().text(Format::OpenMetrics);
        // The family has no _total, its series have; the unit is the name's end.
        assert!(text.contains("# TYPE roce_pfc_receive_paused_seconds counter\n# UNIT roce_pfc_receive_paused_seconds seconds\nroce_pfc_receive_paused_seconds_total{"));
        assert!(text.ends_with("# EOF\n"));
    }

    #[test]
    fn buckets_of_a_histogram_add_up() {
        let mut exposition = Exposition::default();
        let buckets = Buckets {
            counts: vec![(0.000_001, 2), (0.000_002, 0), (0.000_004, 3)],
            beyond: 1,
            sum: 0.5,
        };
        exposition.histogram(LIVE_ACK_RTT, &[("tap", "v1".into())], buckets);
        let expected = "\
# TYPE roce_live_ack_rtt_seconds histogram
# UNIT roce_live_ack_rtt_seconds seconds
roce_live_ack_rtt_seconds_bucket{tap=\"v1\",le=\"0.000001\"} 2
roce_live_ack_rtt_seconds_bucket{tap=\"v1\",le=\"0.000002\"} 2
roce_live_ack_rtt_seconds_bucket{tap=\"v1\",le=\"0.000004\"} 5
roce_live_ack_rtt_seconds_bucket{tap=\"v1\",le=\"+Inf\"} 6
roce_live_ack_rtt_seconds_sum{tap=\"v1\"} 0.5
roce_live_ack_rtt_seconds_count{tap=\"v1\"} 6
# EOF
";
        assert!(exposition.text(Format::OpenMetrics).ends_with(expected));
    }

    #[test]
    fn label_values_are_escaped() {
        let mut exposition = Exposition::default();
        exposition.add(&sample(
            "a \"b\" \\ c\nd\u{1b}\u{202e}\u{2028}e",
            Counter::PauseReceivedFrames,
            1.0,
        ));
        let text = exposition.text(Format::Prometheus);
        assert!(
            text.ends_with("{netdev=\"a \\\"b\\\" \\\\ c\\nd???e\"} 1\n"),
            "{text}"
        );
    }

    #[test]
    fn values_of_all_kinds() {
        let text = |value| {
            let mut exposition = Exposition::default();
            exposition.own(COLLECTOR_SUCCESS, &[("collector", "host".into())], value);
            exposition
                .text(Format::Prometheus)
                .lines()
                .last()
                .unwrap_or_default()
                .to_owned()
        };
        for (value, expected) in [
            (1.0, "1"),
            (0.02, "0.02"),
            (133_704_872.0, "133704872"),
            (f64::NAN, "NaN"),
            (f64::INFINITY, "+Inf"),
            (f64::NEG_INFINITY, "-Inf"),
        ] {
            assert_eq!(
                text(value),
                format!("roce_collector_success{{collector=\"host\"}} {expected}")
            );
        }
    }

    #[test]
    fn a_series_is_there_once_and_their_number_is_bounded() {
        let mut exposition = Exposition::default();
        exposition.add(&sample("eth0", Counter::PauseReceivedFrames, 1.0));
        exposition.add(&sample("eth0", Counter::PauseReceivedFrames, 2.0));
        assert_eq!(exposition.count, 1);
        for number in 0..MAX_SERIES + 9 {
            exposition.add(&sample(
                &format!("eth{}", number + 1),
                Counter::PauseReceivedFrames,
                1.0,
            ));
        }
        assert_eq!(exposition.count, MAX_SERIES);
        assert!(
            exposition
                .text(Format::Prometheus)
                .ends_with("\nroce_series_left_out 10\n")
        );
    }
}
