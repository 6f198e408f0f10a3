//! Frames of captures, numbered as in them, by what the analysis says of each; and those that a finding rests on.

use std::collections::BTreeMap;

use anyhow::{anyhow, bail};
use roce_pipeline::PacketRole;
use serde_json::Value;

use super::document::{text, time};
use crate::command::mcp::answer::EvidenceFrames;
use crate::command::mcp::context::ToolContext;
use crate::command::mcp::inputs::Input;

/// One frame, as `annotate --format jsonl` prints it.
#[derive(Clone, Debug)]
pub(super) struct FrameRow {
    pub row: Value,
}

impl FrameRow {
    fn is(&self, role: &str) -> bool {
        super::document::names(&self.row, "roles").any(|has| has == role)
    }

    /// True if it has one of these roles.
    pub(super) fn is_one_of(&self, roles: &[&str]) -> bool {
        roles.iter().any(|role| self.is(role))
    }

    fn time(&self) -> u64 {
        time(&self.row, "time").unwrap_or_default()
    }

    /// True of a packet of this flow, or of the way back between its hosts.
    fn is_between(&self, source: &str, destination: &str) -> bool {
        let ends = (text(&self.row, "source"), text(&self.row, "destination"));
        ends == (source, destination) || ends == (destination, source)
    }
}

/// Frames of captures.
#[derive(Debug)]
pub(super) struct Frames {
    pub rows: Vec<FrameRow>,
    /// Why there are none, or fewer.
    pub reason: Option<String>,
    /// The command that prints them.
    pub command: String,
}

impl Frames {
    /// Frames that the analysis has something to say about; with a flow, all of its packets.
    ///
    /// # Errors
    /// When the question is cancelled, or takes too long.
    pub(super) fn new(
        inputs: &[Input],
        flow: Option<&str>,
        context: &mut ToolContext<'_>,
    ) -> anyhow::Result<Self> {
        let mut words = vec!["annotate".to_owned()];
        words.extend(inputs.iter().map(Input::word));
        if let Some(flow) = flow {
            words.extend([format!("--flow={flow}"), "--all".to_owned()]);
        }
        words.extend(["--format", "jsonl"].map(str::to_owned));
        let command = context.command(&words);
        if let Some(folder) = inputs.iter().find(|input| input.is_folder) {
            return Ok(Self {
                rows: Vec::new(),
                reason: Some(format!("frames of {}: a folder of results has none", folder.path)),
                command,
            });
        }
        let output = context.run(&words, inputs)?;
        let lines = output
            .text
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty());
        let rows: Vec<FrameRow> = lines.filter_map(row).collect();
        let reason = if rows.is_empty() && output.code != 0 {
            if flow.is_some() {
                bail!("{}", output.messages.trim());
            }
            Some(format!("frames: {}", output.messages.trim()))
        } else if output.is_cut {
            Some("frames at the end of the captures: there are too many with something to say".to_owned())
        } else {
            None
        };
        Ok(Self {
            rows,
            reason,
            command,
        })
    }

    /// Frames that a finding rests on: of its kinds, within its time, between its hosts where it names a flow. The error says why there are
    /// none.
    pub(super) fn of_finding(&self, finding: &Value) -> Result<Vec<&FrameRow>, String> {
        let id = text(finding, "id");
        let roles = roles(id);
        if roles.is_empty() {
            return Err(format!("frames of {id}: it is about counts of the whole run"));
        }
        let (from, to) = (time(finding, "first_time"), time(finding, "last_time"));
        let is_within = |frame: &&FrameRow| {
            from.is_none_or(|from| from <= frame.time()) && to.is_none_or(|to| frame.time() <= to)
        };
        let fitting = self
            .rows
            .iter()
            .filter(|frame| frame.is_one_of(roles))
            .filter(is_within);
        let fitting: Vec<&FrameRow> = fitting.collect();
        let worst = finding
            .get("evidence")
            .map(|evidence| text(evidence, "worst"))
            .unwrap_or_default();
        let of_flow = match ends(worst) {
            Some((source, destination)) => {
                let frames = fitting
                    .iter()
                    .filter(|frame| frame.is_between(source, destination));
                frames.copied().collect()
            }
            None => Vec::new(),
        };
        let found = if of_flow.is_empty() { fitting } else { of_flow };
        if found.is_empty() {
            return Err(match &self.reason {
                Some(reason) => reason.clone(),
                None => format!("frames of {id}: none of the captured ones shows it by itself"),
            });
        }
        Ok(found)
    }
}

/// Reads a line.
fn row(line: &[u8]) -> Option<FrameRow> {
    let mut row: Value = serde_json::from_slice(line).ok()?;
    let file = text(&row, "file");
    let file = file.strip_prefix("./").unwrap_or(file).to_owned();
    row.get("frame").and_then(Value::as_u64)?;
    row.as_object_mut()?.insert("file".to_owned(), file.into());
    Some(FrameRow { row })
}

/// Source and destination of a flow that begins a text: `10.0.0.1 > 10.0.0.2 QP 0x11: 62`.
fn ends(text: &str) -> Option<(&str, &str)> {
    let (source, rest) = text.split_once(" > ")?;
    let destination = rest.split_whitespace().next()?;
    Some((source, destination.trim_end_matches(':')))
}

/// Roles of the frames that a finding rests on, by its id.
fn roles(id: &str) -> &'static [&'static str] {
    let family = id.split_once('.').map_or(id, |(family, _)| family);
    match (family, id) {
        (_, "loss.capture") => &["missing", "records_lost"],
        (_, "loss.trimmed") => &["missing", "retransmission"],
        ("loss", _) => &["missing", "nak", "retransmission"],
        ("retransmit", _) => &["retransmission"],
        ("stall", _) => &["stall"],
        ("rnr", _) => &["rnr_nak"],
        ("nak" | "connection", _) => &["nak", "management", "retransmission"],
        ("pause", _) => &["pause"],
        (_, "ecn.marks-without-cnp") => &["mark"],
        (_, "ecn.working") | ("incast", _) => &["mark", "cnp"],
        ("cnp", _) => &["cnp"],
        ("rank" | "receiver", _) | (_, "network.late") => &["credit", "message"],
        (_, "path.faulty") | ("drops", _) => &["missing", "retransmission"],
        (_, "path.spread") => &["late"],
        ("mrc", _) => &["mrc"],
        _ => &[],
    }
}

/// Numbers of frames by file, at most `most`, in order.
pub(super) fn evidence<'a>(
    frames: impl IntoIterator<Item = &'a FrameRow>,
    most: usize,
) -> Vec<EvidenceFrames> {
    let mut by_file: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for frame in frames.into_iter().take(most) {
        let number = frame.row.get("frame").and_then(Value::as_u64);
        by_file
            .entry(text(&frame.row, "file"))
            .or_default()
            .extend(number);
    }
    let sorted = by_file.into_iter().map(|(file, mut frames)| {
        frames.sort_unstable();
        frames.dedup();
        EvidenceFrames {
            file: file.to_owned(),
            frames,
        }
    });
    sorted.collect()
}

/// The role of this name.
///
/// # Errors
/// When there is none.
pub(super) fn role(name: &str) -> anyhow::Result<&'static str> {
    let known = PacketRole::ALL
        .iter()
        .map(|role| role.name())
        .find(|known| *known == name);
    known.ok_or_else(|| {
        let all: Vec<&str> = PacketRole::ALL.iter().map(|role| role.name()).collect();
        anyhow!("there is no such role: there are {}", all.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_role_of_a_finding_exists() {
        for rule in roce_verdict::RULES {
            for name in roles(rule.id) {
                assert!(role(name).is_ok(), "{}: {name}", rule.id);
            }
        }
        assert!(role("x").is_err());
    }

    #[test]
    fn flows_are_found_in_texts() {
        assert_eq!(
            ends("10.0.0.1 > 10.0.0.2 QP 0x11: 62"),
            Some(("10.0.0.1", "10.0.0.2"))
        );
        assert_eq!(ends("fd00::1 > fd00::2 QP 0x11"), Some(("fd00::1", "fd00::2")));
        assert_eq!(ends("none"), None);
    }
}
