//! NCCL Inspector's metrics as Prometheus text (2.29.7 on): a file for each GPU, written again each 30 s or more. They have a node and no
//! rank, and sums over what happened since the last time.

use super::error::DocumentError;
use super::text::name;

/// Values that are kept.
const MAX_METRICS: usize = 1 << 14;
/// Labels of one value.
const MAX_LABELS: usize = 64;
const EXPECTED: &str = "a metric of NCCL Inspector: name{label=\"text\",...} number";

/// Names of metrics, of collectives and of messages between two ranks.
const NAMES: [(&str, bool); 4] = [
    ("nccl_bus_bandwidth_gbs", true),
    ("nccl_collective_exec_time_microseconds", false),
    ("nccl_p2p_bus_bandwidth_gbs", true),
    ("nccl_p2p_exec_time_microseconds", false),
];

/// One value.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct InspectorMetric {
    /// Name of the host.
    pub node: Option<String>,
    /// Name of the GPU on the host.
    pub gpu: Option<String>,
    /// Number of ranks of the communicator.
    pub ranks: Option<u32>,
    /// The operation.
    pub operation: Option<String>,
    /// Range of sizes of messages: `1-2MB`.
    pub message_size: Option<String>,
    /// Bus bandwidth in 10^9 bytes a second, if it is one.
    pub bus_bandwidth_gbs: Option<f64>,
    /// Mean length in microseconds, if it is one.
    pub duration_us: Option<f64>,
}

/// True if a line is one of these metrics.
pub(super) fn is_metric(line: &str) -> bool {
    NAMES.iter().any(|(name, _)| {
        let rest = line.strip_prefix(name);
        rest.is_some_and(|rest| rest.starts_with(['{', ' ']))
    })
}

/// Reads the metrics of a file; those of others are left out.
///
/// # Errors
/// When a line has not the form of a metric, or there are too many.
pub fn inspector_metrics(text: &[u8], file: &str) -> Result<Vec<InspectorMetric>, DocumentError> {
    let text = String::from_utf8_lossy(text);
    let mut metrics = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        let line = line.trim();
        let known = NAMES.iter().find_map(|(name, is_bandwidth)| {
            let rest = line.strip_prefix(name)?;
            rest.starts_with(['{', ' ']).then_some((rest, *is_bandwidth))
        });
        let Some((rest, is_bandwidth)) = known else {
            continue;
        };
        if metrics.len() >= MAX_METRICS {
            let reason = format!("more than {MAX_METRICS} values; expected one for each collective and size");
            return Err(DocumentError::at_line(file, number, reason));
        }
        let metric = metric(rest, is_bandwidth);
        let metric =
            metric.ok_or_else(|| DocumentError::at_line(file, number, format!("expected {EXPECTED}")))?;
        metrics.push(metric);
    }
    Ok(metrics)
}

fn metric(rest: &str, is_bandwidth: bool) -> Option<InspectorMetric> {
    let mut metric = InspectorMetric::default();
    let value = match rest.strip_prefix('{') {
        Some(labels) => take_labels(labels, &mut metric)?,
        None => rest,
    };
    let value: f64 = value.split_ascii_whitespace().next()?.parse().ok()?;
    let value = Some(value).filter(|value| value.is_finite() && *value >= 0.0);
    if is_bandwidth {
        metric.bus_bandwidth_gbs = value;
    } else {
        metric.duration_us = value;
    }
    Some(metric)
}

/// Takes labels up to the bracket behind them, and returns the text after it.
fn take_labels<'a>(mut text: &'a str, metric: &mut InspectorMetric) -> Option<&'a str> {
    for _ in 0..MAX_LABELS {
        text = text.trim_start_matches([',', ' ']);
        if let Some(rest) = text.strip_prefix('}') {
            return Some(rest);
        }
        let (label, rest) = text.split_once('=')?;
        let rest = rest.trim_start().strip_prefix('"')?;
        let mut value = String::new();
        let mut glyphs = rest.char_indices();
        let end = loop {
            match glyphs.next()? {
                (at, '"') => break at,
                (_, '\\') => match glyphs.next()?.1 {
                    'n' => value.push('\n'),
                    other => value.push(other),
                },
                (_, other) => value.push(other),
            }
        };
        text = rest.get(end + 1..)?;
        let value = name(&value);
        match label.trim() {
            "node" => metric.node = Some(value),
            "gpu" => metric.gpu = Some(value),
            "nranks" => metric.ranks = value.parse().ok(),
            "collective" | "p2p_operation" => metric.operation = Some(value),
            "message_size" => metric.message_size = Some(value),
            _ => {}
        }
    }
    None
}
