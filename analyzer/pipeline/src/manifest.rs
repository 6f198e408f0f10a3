//! The manifest line of a run in a dataset of many: which capture it was, where its rows are, how many there are, and how it ended.

use roce_model::text::escape_json;
use roce_model::{RunKey, RunSummary};
use serde_json::{Map, Value, json};

/// One capture and its rows in the dataset, as one line of JSON.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Manifest {
    /// Names of the run.
    pub key: RunKey,
    /// Day of the first frame in UTC, YYYY-MM-DD: the partition. `None` without frames.
    pub date: Option<String>,
    /// Rows by table; tables without rows are not there.
    pub rows: Vec<(String, u64)>,
    /// Size of the capture as stored, in bytes; `None` for a stream.
    pub bytes: Option<u64>,
    /// Size of the written files in bytes.
    pub written_bytes: u64,
    /// Frames that were read.
    pub frames: u64,
    /// Duration of the run in seconds.
    pub seconds: f64,
    /// Error that ended the run or one of its inputs. `None`: there was none.
    pub error: Option<String>,
}

impl Manifest {
    /// The manifest of a run that came to its end, without what is known of its files.
    pub fn new(run: &RunSummary) -> Self {
        let errors: Vec<&str> = run
            .inputs
            .iter()
            .filter_map(|input| input.error.as_deref())
            .collect();
        let sizes: Option<Vec<u64>> = run.inputs.iter().map(|input| input.bytes).collect();
        Self {
            key: run.key.clone(),
            bytes: sizes.map(|sizes| sizes.into_iter().fold(0, u64::saturating_add)),
            frames: run.totals.frames,
            seconds: run.elapsed.seconds(),
            error: (!errors.is_empty()).then(|| errors.join("; ")),
            ..Self::default()
        }
    }

    /// The manifest of a run that wrote nothing, for this reason.
    pub fn failed(key: &RunKey, error: &str) -> Self {
        Self {
            key: key.clone(),
            error: Some(error.to_owned()),
            ..Self::default()
        }
    }

    /// The line, with its line feed.
    pub fn line(&self) -> String {
        let rows: Map<String, Value> = self
            .rows
            .iter()
            .map(|(table, rows)| (table.clone(), json!(rows)))
            .collect();
        let line = json!({
            "run_id": self.key.run_id,
            "host": self.key.host,
            "capture": self.key.capture,
            "date": self.date,
            "rows": rows,
            "bytes": self.bytes,
            "written_bytes": self.written_bytes,
            "frames": self.frames,
            "seconds": self.seconds,
            "error": self.error,
        });
        format!("{}\n", escape_json(&line.to_string()))
    }

    /// Reads a line; `None` when it is none. Keys that are not known are passed over.
    pub fn parse(line: &str) -> Option<Self> {
        let line: Value = serde_json::from_str(line).ok()?;
        let text = |key: &str| line.get(key)?.as_str().map(str::to_owned);
        let number = |key: &str| line.get(key)?.as_u64();
        let rows = line.get("rows")?.as_object()?.iter();
        Some(Self {
            key: RunKey {
                run_id: text("run_id")?,
                host: text("host")?,
                capture: text("capture")?,
            },
            date: text("date"),
            rows: rows
                .map(|(table, rows)| Some((table.clone(), rows.as_u64()?)))
                .collect::<Option<_>>()?,
            bytes: number("bytes"),
            written_bytes: number("written_bytes")?,
            frames: number("frames")?,
            seconds: line.get("seconds")?.as_f64()?,
            error: text("error"),
        })
    }
}

#[cfg(test)]
mod tests {
    use roce_model::{InputSummary, Span, Totals};

    use super::*;

    fn key() -> RunKey {
        RunKey {
            run_id: "0cc16b3648ffa64b".to_owned(),
            host: "h7".to_owned(),
            capture: "h7/\u{1b}[2Ja.pcap".to_owned(),
        }
    }

    #[test]
    fn a_line_says_what_was_written_and_how_it_ended() {
        let input = |bytes, error: Option<&str>| InputSummary {
            bytes,
            error: error.map(str::to_owned),
            ..InputSummary::default()
        };
        let mut run = RunSummary {
            key: key(),
            elapsed: Span(1_500_000_000),
            totals: Totals {
                frames: 12,
                ..Totals::default()
            },
            inputs: vec![input(Some(24), None), input(Some(76), Some("cut at byte 70"))],
            ..RunSummary::default()
        };
        let manifest = Manifest {
            date: Some("2026-11-24".to_owned()),
            rows: vec![("flows".to_owned(), 3), ("run".to_owned(), 2)],
            written_bytes: 999,
            ..Manifest::new(&run)
        };
        let line = manifest.line();
        assert_eq!(
            line,
            "{\"run_id\":\"0cc16b3648ffa64b\",\"host\":\"h7\",\"capture\":\"h7/\\u001b[2Ja.pcap\",\"date\":\"2026-11-24\",\
             \"rows\":{\"flows\":3,\"run\":2},\"bytes\":100,\"written_bytes\":999,\"frames\":12,\"seconds\":1.5,\
             \"error\":\"cut at byte 70\"}\n"
        );
        assert_eq!(Manifest::parse(&line), Some(manifest));
        // The size of a stream is not known, and neither is that of a run over one.
        run.inputs[0].bytes = None;
        assert_eq!(Manifest::new(&run).bytes, None);
    }

    #[test]
    fn other_lines_are_no_manifest() {
        let failed = Manifest::failed(&key(), "no capture");
        assert_eq!(Manifest::parse(&failed.line()), Some(failed));
        for line in [
            "",
            "{}",
            "[1]",
            "null",
            "{\"run_id\":\"a\"}",
            "error: no such file",
        ] {
            assert_eq!(Manifest::parse(line), None, "{line}");
        }
    }
}
