//! Frames with a comment as lines of JSON: a program reads there in which frames of a capture something is seen.

use std::io::{self, Write};

use roce_model::text::escape_json;
use roce_pipeline::ListedFrame;
use roce_wire::transport::mrc;
use roce_wire::{ExtendedHeaders, Roce};
use serde_json::{Map, Value, json};

/// Writes a frame as one line.
pub(super) fn line(frame: &ListedFrame<'_>, out: &mut impl Write) -> io::Result<()> {
    let mut roles = frame.roles.to_vec();
    roles.sort_unstable();
    let roles: Vec<&str> = roles.iter().map(|role| role.name()).collect();
    let mut object = Map::new();
    object.insert("file".to_owned(), frame.capture.into());
    object.insert("frame".to_owned(), frame.number.into());
    // Times are text: a number of JSON has 53 bits for readers in JavaScript.
    object.insert("time".to_owned(), frame.time.0.to_string().into());
    object.insert("roles".to_owned(), roles.into());
    if let Some(roce) = frame.roce {
        fields(roce, &mut object);
    }
    object.insert("comment".to_owned(), frame.comment.into());
    let line = serde_json::to_string(&object).map_err(io::Error::other)?;
    writeln!(out, "{}", escape_json(&line))
}

/// Decoded fields of a packet.
fn fields(roce: &Roce, object: &mut Map<String, Value>) {
    let has_ip = roce.carrier.has_ip();
    // Headers of MRC, which are not decoded with the packet.
    let headers = mrc::header_bytes(&roce.bth).and_then(|bytes| u32::try_from(bytes).ok());
    let fields = json!({
        "operation": roce.operation().to_string(),
        "source": roce.source.to_string(),
        "destination": roce.destination.to_string(),
        "destination_qpn": roce.bth.destination_qpn().value(),
        "psn": roce.bth.psn().value(),
        "payload_bytes": roce.payload_bytes.saturating_sub(headers.unwrap_or(0)),
        "message_bytes": roce.seen.has(ExtendedHeaders::RETH).then_some(roce.dma_length),
        "dscp": has_ip.then(|| roce.dscp()),
        "ecn": has_ip.then(|| roce.ecn() as u8),
    });
    if let Value::Object(fields) = fields {
        object.extend(fields);
    }
}
