//! Answers of NCCL's RAS service (2.24 on; JSON from 2.28.7 on, events from 2.29 on): the state of each communicator's ranks.
//!
//! A file has one answer or several, as `nc` or `ncclras` printed them, with or without the lines of the protocol. Hosts are those of the
//! management network, and times are local ones in whole seconds without a zone. Counts are those of launched operations: a rank that is
//! one behind is normal while a job runs.
//!
//! Source: NVIDIA/nccl, `src/ras/client_support.cc`; docs/userguide, `troubleshooting/ras.rst`.

mod records;
mod text;

use std::collections::BTreeMap;

use serde::Deserialize;

use super::error::DocumentError;
use super::json::Loose;
use super::text::hash;
pub use records::{
    RasAnswers, RasCommunicator, RasCount, RasEvent, RasProcess, RasRank, RasRankState, RasStatus,
};
use text::TextReader;

/// Answers and events of one file.
const MAX_ANSWERS: usize = 1 << 12;
const EXPECTED: &str = "an answer of NCCL's RAS: communicators or an event as JSON, or the text of STATUS";

#[derive(Deserialize)]
struct Document {
    #[serde(default)]
    timestamp: Loose,
    communicators: Option<Vec<Communicator>>,
    event: Option<String>,
    #[serde(default)]
    peer: Peer,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Peer {
    host: Loose,
    pid: Loose,
}

#[derive(Deserialize)]
struct Communicator {
    hash: String,
    #[serde(default)]
    size: Loose,
    #[serde(default)]
    ranks: Vec<Rank>,
    #[serde(default)]
    missing_ranks: Vec<Rank>,
}

#[derive(Deserialize)]
struct Rank {
    #[serde(rename = "rank")]
    number: u32,
    #[serde(default)]
    host: Loose,
    #[serde(default)]
    pid: Loose,
    #[serde(default)]
    status: Status,
    #[serde(default)]
    collective_counts: BTreeMap<String, u64>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Status {
    async_error: Loose,
    considered_dead: bool,
    /// False of a missing rank that has left the communicator.
    unresponsive: Option<bool>,
}

impl Rank {
    fn rank(self, is_missing: bool) -> RasRank {
        // ncclSuccess is 0, ncclInProgress is 7 (nccl.h).
        let has_failed = self
            .status
            .async_error
            .whole()
            .is_some_and(|error: u32| error != 0 && error != 7);
        let state = if self.status.considered_dead {
            RasRankState::Dead
        } else if is_missing && self.status.unresponsive != Some(false) {
            RasRankState::Missing
        } else if has_failed {
            RasRankState::Failed
        } else {
            RasRankState::Answered
        };
        let counts = self.collective_counts.into_iter();
        RasRank {
            rank: self.number,
            host: self.host.text(),
            process: self.pid.whole(),
            state,
            counts: counts
                .map(|(operation, launched)| RasCount {
                    operation: super::text::name(&operation),
                    launched,
                })
                .collect(),
        }
    }
}

/// Reads the answers of a file.
///
/// # Errors
/// When JSON in it is broken or no answer, or the file has nothing of RAS.
pub fn ras(bytes: &[u8], file: &str) -> Result<RasAnswers, DocumentError> {
    let mut answers = RasAnswers::default();
    let mut text = TextReader::default();
    let (mut at, mut lines, mut is_ras) = (0, 0_u64, false);
    while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
        if rest.trim_ascii_start().first() == Some(&b'{') {
            let before = rest.len() - rest.trim_ascii_start().len();
            lines += newlines(rest.get(..before).unwrap_or_default());
            at += before;
            let document = rest.get(before..).unwrap_or_default();
            let mut parser = serde_json::Deserializer::from_slice(document).into_iter::<Document>();
            let found = match parser.next() {
                Some(Ok(found)) => found,
                Some(Err(error)) => return Err(DocumentError::of_json(file, lines, &error, EXPECTED)),
                None => break,
            };
            let length = parser.byte_offset().max(1);
            answers.take(found, file, lines + 1)?;
            lines += newlines(document.get(..length).unwrap_or_default());
            at += length;
            is_ras = true;
            continue;
        }
        let end = rest
            .iter()
            .position(|byte| *byte == b'\n')
            .map_or(rest.len(), |end| end + 1);
        let line = String::from_utf8_lossy(rest.get(..end).unwrap_or_default());
        is_ras |= text.line(line.trim_end());
        lines += 1;
        at += end;
    }
    if !is_ras {
        return Err(DocumentError::at_line(file, 1, format!("expected {EXPECTED}")));
    }
    if let Some(status) = text.finish() {
        answers.push(status);
    }
    Ok(answers)
}

fn newlines(bytes: &[u8]) -> u64 {
    bytes.split(|byte| *byte == b'\n').count() as u64 - 1
}

impl RasAnswers {
    fn push(&mut self, status: RasStatus) {
        if self.statuses.len() < MAX_ANSWERS {
            self.statuses.push(status);
        } else {
            self.left_out += 1;
        }
    }

    fn take(&mut self, found: Document, file: &str, line: u64) -> Result<(), DocumentError> {
        let local_seconds = found.timestamp.text().and_then(|text| local_seconds(&text));
        if let Some(communicators) = found.communicators {
            let mut status = RasStatus {
                local_seconds,
                ..RasStatus::default()
            };
            for communicator in communicators {
                let hash = hash(&communicator.hash).ok_or_else(|| {
                    let reason = "the hash of a communicator is no hexadecimal number";
                    DocumentError::at_line(file, line, format!("{reason}; expected {EXPECTED}"))
                })?;
                let answered = communicator.ranks.into_iter().map(|rank| rank.rank(false));
                let missing = communicator.missing_ranks.into_iter().map(|rank| rank.rank(true));
                let mut one = RasCommunicator {
                    hash,
                    size: communicator.size.whole(),
                    ranks: answered.chain(missing).collect(),
                    highest: Vec::new(),
                };
                let counts: Vec<RasCount> = one.ranks.iter().flat_map(|rank| &rank.counts).cloned().collect();
                for count in counts {
                    one.note(&count.operation, count.launched);
                }
                status.communicators.push(one);
            }
            self.push(status);
        } else if let Some(event) = found.event {
            if self.events.len() < MAX_ANSWERS {
                self.events.push(RasEvent {
                    local_seconds,
                    name: super::text::name(&event),
                    host: found.peer.host.text(),
                    process: found.peer.pid.whole(),
                });
            } else {
                self.left_out += 1;
            }
        } else {
            let reason = format!("neither communicators nor an event; expected {EXPECTED}");
            return Err(DocumentError::at_line(file, line, reason));
        }
        Ok(())
    }
}

/// `2026-09-21 14:13:20` as seconds since 1970 at the same place.
fn local_seconds(text: &str) -> Option<i64> {
    let time: jiff::civil::DateTime = text.trim().parse().ok()?;
    Some(
        time.to_zoned(jiff::tz::TimeZone::UTC)
            .ok()?
            .timestamp()
            .as_second(),
    )
}

#[cfg(test)]
mod tests {
    use super::local_seconds;

    #[test]
    fn times_are_seconds_without_a_zone() {
        // `date -u -d '2026-09-21 14:13:20' +%s` and so on.
        for (text, seconds) in [
            ("2026-09-21 14:13:20", Some(1_790_000_000)),
            ("1970-01-01 00:00:00", Some(0)),
            ("2024-02-29T23:59:59", Some(1_709_251_199)),
            ("2026-13-01 00:00:00", None),
            ("2026-09", None),
            ("99999999999999999999-01-01 00:00:00", None),
            ("2026-09-21 1:é3:20", None),
        ] {
            assert_eq!(local_seconds(text), seconds, "{text}");
        }
    }
}
