//! Which document a file is, by its first bytes.

/// Bytes that tell the kind of a document.
pub const MAX_PREFIX: usize = 64 << 10;

/// Kinds of documents.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DocumentKind {
    /// NCCL Inspector's lines of JSON.
    Inspector,
    /// NCCL Inspector's metrics as Prometheus text.
    InspectorMetrics,
    /// Answers of NCCL's RAS service: JSON, text, events.
    Ras,
    /// PyTorch's flight recorder as JSON or as a pickle.
    FlightRecorder,
    /// A log: of NCCL, or of any program whose errors are known.
    Log,
    /// A trace in Chrome's format.
    Trace,
}

/// Names at the top of JSON that only one kind of document has.
const NAMES: [(&str, DocumentKind); 15] = [
    ("header", DocumentKind::Inspector),
    ("coll_perf", DocumentKind::Inspector),
    ("p2p_perf", DocumentKind::Inspector),
    ("communicators", DocumentKind::Ras),
    ("communicators_count", DocumentKind::Ras),
    ("event", DocumentKind::Ras),
    ("ras", DocumentKind::Ras),
    ("pg_config", DocumentKind::FlightRecorder),
    ("pg_status", DocumentKind::FlightRecorder),
    ("entries", DocumentKind::FlightRecorder),
    ("nccl_comm_state", DocumentKind::FlightRecorder),
    ("comm_lib_version", DocumentKind::FlightRecorder),
    ("traceEvents", DocumentKind::Trace),
    ("schemaVersion", DocumentKind::Trace),
    ("distributedInfo", DocumentKind::Trace),
];

/// Begins of lines of RAS's protocol and of its text.
const RAS_LINES: [&str; 6] = [
    "CLIENT PROTOCOL",
    "SERVER PROTOCOL",
    "NCCL version",
    "Job summary",
    "VERBOSE STATUS",
    "MONITOR",
];

/// The kind of a document by its first bytes; `None`: it is none that is known.
pub fn kind_of(prefix: &[u8]) -> Option<DocumentKind> {
    let prefix = prefix.get(..MAX_PREFIX).unwrap_or(prefix);
    // PROTO of a pickle, and its number.
    if let [0x80, 2..=5, ..] = prefix {
        return Some(DocumentKind::FlightRecorder);
    }
    let text = String::from_utf8_lossy(prefix);
    let text = text.trim_start_matches(['\u{feff}', ' ', '\t', '\r', '\n']);
    match text.as_bytes().first()? {
        b'[' if is_array(text) => Some(DocumentKind::Trace),
        b'{' => names_at_top(text)
            .find_map(|name| NAMES.iter().find(|(known, _)| *known == name))
            .map(|(_, kind)| *kind),
        _ => kind_of_lines(text),
    }
}

/// True if a text that begins with a bracket is JSON: logs have `[rank3]`, `[1,0]<stdout>` or times in brackets.
fn is_array(text: &str) -> bool {
    let rest = text.strip_prefix('[').unwrap_or(text).trim_start();
    rest.is_empty() || rest.starts_with(['{', ']', '"'])
}

fn kind_of_lines(text: &str) -> Option<DocumentKind> {
    if crate::nccl::is_log(text) {
        return Some(DocumentKind::Log);
    }
    for line in text.lines() {
        let line = line.trim_start_matches(['>', '<', ' ']);
        if super::metrics::is_metric(line) {
            return Some(DocumentKind::InspectorMetrics);
        }
        if RAS_LINES.iter().any(|begin| line.starts_with(begin)) {
            return Some(DocumentKind::Ras);
        }
    }
    crate::errors::has_error(text).then_some(DocumentKind::Log)
}

/// Names of the object that a text of JSON begins with, but not those of objects in it.
fn names_at_top(text: &str) -> impl Iterator<Item = &str> {
    let (mut depth, mut at) = (0_u32, 0);
    let bytes = text.as_bytes();
    std::iter::from_fn(move || {
        while let Some(byte) = bytes.get(at) {
            at += 1;
            match byte {
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth = depth.saturating_sub(1),
                b'"' => {
                    let begin = at;
                    while let Some(byte) = bytes.get(at).filter(|byte| **byte != b'"') {
                        at += if *byte == b'\\' { 2 } else { 1 };
                    }
                    let found = text.get(begin..at);
                    at += 1;
                    let rest = bytes.get(at..).unwrap_or_default();
                    let next = rest.iter().find(|byte| !byte.is_ascii_whitespace());
                    if depth == 1 && next == Some(&b':') {
                        return found;
                    }
                }
                _ => {}
            }
        }
        None
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_content_says_what_it_is() {
        use DocumentKind::{FlightRecorder, Inspector, InspectorMetrics, Log, Ras, Trace};
        for (text, kind) in [
            ("{\"header\": {\"id\": \"0x1\"}, \"metadata\"", Some(Inspector)),
            (
                "\n{\"metadata\": {\"event\": 1}, \"p2p_perf\": {}}",
                Some(Inspector),
            ),
            (
                "{\"nccl_version\": \"2.30.7\", \"communicators_count\": 1",
                Some(Ras),
            ),
            (
                "{ \"timestamp\" : \"x\", \"group\": \"A\", \"event\": \"PEER_DEAD\"}",
                Some(Ras),
            ),
            ("> CLIENT PROTOCOL 2\n< SERVER PROTOCOL 2\n", Some(Ras)),
            ("Job summary\n===========\n", Some(Ras)),
            (
                "{\"nccl_version\": \"2.27\", \"version\": \"2.7\", \"pg_config\": {}}",
                Some(FlightRecorder),
            ),
            ("\u{feff}[\n{\"name\": 1}", Some(Trace)),
            ("{\"schemaVersion\": 1, \"traceEvents\": []}", Some(Trace)),
            (
                "# HELP x y\nnccl_bus_bandwidth_gbs{node=\"h0\"} 1\n",
                Some(InspectorMetrics),
            ),
            ("h1:4100:4120 [0] NCCL INFO NET/IB", Some(Log)),
            // A name inside of another object says nothing, nor does a value.
            ("{\"a\": {\"header\": 1}, \"b\": \"entries\"}", None),
            ("{\"\\\"header\": 1", None),
            ("node_load1 0.5\n", None),
            ("", None),
        ] {
            assert_eq!(kind_of(text.as_bytes()), kind, "{text}");
        }
        assert_eq!(kind_of(b"\x80\x02}q\x00."), Some(FlightRecorder));
        assert_eq!(kind_of(b"\x80\x09}."), None);
    }
}
