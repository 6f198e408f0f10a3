//! Answers of tools: one form for all, within a limit of bytes, with texts that steer nothing.

use roce_model::text::clean_lines;
use serde_json::{Map, Value, json};

/// Longest answer as JSON, in bytes. A message has it twice, as a structure and as text: both together are 256 KB.
pub(super) const MAX_ANSWER: usize = 128 << 10;
/// Longest text in an answer, in characters: rows have names from captures and logs.
const MAX_TEXT: usize = 64 << 10;
/// Sentences about what is not shown.
const MAX_NOT_SHOWN: usize = 64;

/// Frames of one capture that an answer rests on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct EvidenceFrames {
    /// The capture's path below the served folder.
    pub file: String,
    /// Numbers of frames in it, from 1, in order.
    pub frames: Vec<u64>,
}

/// An answer.
#[derive(Clone, Default, Debug)]
pub(super) struct ToolAnswer {
    /// The answer in words.
    pub answer: String,
    /// high, medium or low, as the finding that the answer is about; counted: rows that nobody judged; none: there is no finding.
    pub confidence: String,
    pub evidence: Vec<EvidenceFrames>,
    /// Things that the packets do not show, and those that this answer leaves out.
    pub not_shown: Vec<String>,
    /// Rows, in the tool's own form.
    pub rows: Vec<Value>,
    /// Rows that were left out.
    pub left_out: u64,
    /// There is more, or less of it was looked at.
    pub truncated: bool,
    /// The command that repeats it in a shell.
    pub command: String,
    /// How to ask for less.
    pub less: &'static str,
}

impl ToolAnswer {
    /// The answer as JSON, with as many rows as fit.
    pub(super) fn into_json(mut self) -> Value {
        self.not_shown.truncate(MAX_NOT_SHOWN);
        self.not_shown.dedup();
        if self.left_out > 0 {
            let left_out = self.left_out;
            let rows = roce_spelling::plural(left_out, "row", "rows");
            self.not_shown
                .push(format!("{rows} beyond the limit: a larger limit, {}", self.less));
        }
        let mut rows = std::mem::take(&mut self.rows);
        for row in &mut rows {
            tame(row);
        }
        // Each row with its comma.
        let lengths: Vec<usize> = rows.iter().map(|row| row.to_string().len() + 1).collect();
        let mut whole = self.object(&[]);
        let mut room = MAX_ANSWER.saturating_sub(whole.to_string().len() + 1024);
        let fitting = lengths.iter().take_while(|length| {
            let fits = **length <= room;
            room = room.saturating_sub(**length);
            fits
        });
        let fitting = fitting.count();
        if fitting < rows.len() {
            self.truncated = true;
            self.left_out += (rows.len() - fitting) as u64;
            rows.truncate(fitting);
            let fit = fitting.to_string();
            self.answer.extend([" ", &fit, " rows fit into this answer."]);
            let limit = MAX_ANSWER >> 10;
            self.not_shown
                .push(format!("the rows beyond {limit} KB of answer: {}", self.less));
        }
        whole = self.object(&rows);
        whole
    }

    fn object(&self, rows: &[Value]) -> Value {
        let evidence = self
            .evidence
            .iter()
            .map(|evidence| json!({ "file": evidence.file, "frames": evidence.frames }));
        let mut whole = json!({
            "answer": self.answer,
            "confidence": self.confidence,
            "evidence": evidence.collect::<Vec<_>>(),
            "not_shown": self.not_shown,
            "rows": rows,
            "left_out": self.left_out,
            "truncated": self.truncated,
            "command": self.command,
        });
        tame(&mut whole);
        whole
    }
}

/// Cleans all texts: characters that steer a terminal, change the direction of text or are invisible become `?`, and long texts are cut.
pub(super) fn tame(value: &mut Value) {
    match value {
        Value::String(text) => *text = tamed(text),
        Value::Array(values) => values.iter_mut().for_each(tame),
        Value::Object(object) => {
            let is_wild = |name: &String| tamed(name) != *name;
            if object.keys().any(is_wild) {
                let all = std::mem::take(object);
                object.extend(all.into_iter().map(|(name, value)| (tamed(&name), value)));
            }
            object.values_mut().for_each(tame);
        }
        _ => {}
    }
}

fn tamed(text: &str) -> String {
    let clean = clean_lines(text);
    match clean.char_indices().nth(MAX_TEXT) {
        Some((end, _)) => format!("{} ... (cut)", clean.get(..end).unwrap_or_default()),
        None => clean.into_owned(),
    }
}

/// The schema of an answer, whose rows have these properties among others.
pub(super) fn schema(rows: &str) -> Value {
    let frame = json!({ "type": "integer", "minimum": 1 });
    let properties = json!({
        "answer": { "type": "string", "description": "The answer in words." },
        "confidence": {
            "type": "string",
            "enum": ["high", "medium", "low", "counted", "none"],
            "description": "Of the finding that the answer is about. counted: rows that nobody judged. none: there is no finding."
        },
        "evidence": {
            "type": "array",
            "description": "Frames that it rests on, numbered from 1 as in the capture. Without frames, not_shown says why.",
            "items": {
                "type": "object",
                "properties": { "file": { "type": "string" }, "frames": { "type": "array", "items": frame } },
                "required": ["file", "frames"]
            }
        },
        "not_shown": {
            "type": "array",
            "items": { "type": "string" },
            "description": "What the packets do not show, and what this answer leaves out."
        },
        "rows": { "type": "array", "items": { "type": "object" }, "description": rows },
        "left_out": { "type": "integer", "minimum": 0, "description": "Rows that were left out." },
        "truncated": { "type": "boolean", "description": "There is more; not_shown says how to ask for less." },
        "command": { "type": "string", "description": "The command that repeats it in a shell." }
    });
    let names: Vec<String> = match &properties {
        Value::Object(properties) => properties.keys().cloned().collect(),
        _ => Vec::new(),
    };
    let mut schema = Map::new();
    schema.insert("type".to_owned(), "object".into());
    schema.insert("properties".to_owned(), properties);
    schema.insert("required".to_owned(), names.into());
    Value::Object(schema)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_have_a_limit() {
        let answer = ToolAnswer {
            rows: vec![json!({ "name": "x".repeat(1000) }); 1000],
            less: "a smaller limit",
            ..ToolAnswer::default()
        };
        let whole = answer.into_json();
        assert!(whole.to_string().len() <= MAX_ANSWER);
        let rows = whole["rows"].as_array().unwrap().len() as u64;
        assert!(rows > 100, "{rows}");
        assert_eq!(
            (whole["truncated"].clone(), whole["left_out"].clone()),
            (true.into(), (1000 - rows).into())
        );
        assert!(
            whole["not_shown"][0]
                .as_str()
                .unwrap()
                .contains("a smaller limit")
        );
    }

    #[test]
    fn texts_from_outside_steer_nothing() {
        let mut value = json!({ "a\u{1b}[31m": ["b\u{202e}c\u{7}", { "d": "e".repeat(MAX_TEXT + 5) }] });
        tame(&mut value);
        assert_eq!(value["a?[31m"][0], "b?c?");
        assert!(value["a?[31m"][1]["d"].as_str().unwrap().ends_with("e ... (cut)"));
    }
}
