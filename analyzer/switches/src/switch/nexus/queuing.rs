//! `show queuing interface`: queues, marks, drops on ingress, PFC by priority. Text and JSON have the same words for what they count.

mod document;
mod statistic;
mod text;

use super::answer::Body;
use super::sink::Sink;

/// Adds what the answer says.
pub(super) fn read(body: &Body, command: &str, sink: &mut Sink<'_>) -> bool {
    match body {
        Body::Json(documents) => document::read(documents, command, sink),
        Body::Text(text) => text::read(text, command, sink),
    }
}
