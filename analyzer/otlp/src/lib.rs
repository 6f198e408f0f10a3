//! OTLP's metrics (opentelemetry-proto 1.x): what switches and Collectors send, as [`roce_model::Sample`]s.
//!
//! [`read_protobuf`] and [`read_json`] read one `ExportMetricsServiceRequest`, as OTLP/HTTP and a Collector's file exporter have it.
//! A [`Translator`] knows the names of Cumulus Linux, SONiC and OpenConfig. It counts what it does not know, and guesses nothing.
//! Everything here is a function of bytes: no files, no sockets, no clocks.
//!
//! A crate was looked for and not taken: opentelemetry-proto brings 30 crates, and its types hold every message in memory.

mod answer;
mod error;
mod json;
mod meaning;
mod protobuf;
mod request;
mod translator;
mod write;

pub use answer::{RequestForm, failure, success};
pub use error::OtlpError;
pub use json::read_json;
pub use request::read_protobuf;
pub use translator::{PointTally, Translator};
pub use write::request_of_text;

/// Bytes of one request, or of one line of a file, after they are unpacked. The specification recommends 20 MiB; a switch of 512 ports
/// sends less than 4 MiB.
pub const MAX_REQUEST: usize = 4 << 20;
