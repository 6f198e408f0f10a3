//! Documents that a job leaves beside its log: NCCL's Inspector, its RAS service, and PyTorch's flight recorder. The content says which
//! one it is.
//!
//! Readers take bytes and give records, with bounds on both: a document is text of strangers. An error names the file, the line or byte,
//! and what was expected there. What the records mean for packets is left to others.

mod error;
mod flight;
mod inspector;
mod json;
mod kind;
mod metrics;
mod pickle;
mod ras;
mod text;

pub use error::{DocumentError, DocumentPlace};
pub use flight::{FlightEntry, FlightGroup, FlightRecorder, FlightState, flight_recorder, rank_of_name};
pub use inspector::{InspectorDump, InspectorProcess, InspectorReader, InspectorRecord};
pub use kind::{DocumentKind, MAX_PREFIX, kind_of};
pub use metrics::{InspectorMetric, inspector_metrics};
pub use ras::{
    RasAnswers, RasCommunicator, RasCount, RasEvent, RasProcess, RasRank, RasRankState, RasStatus, ras,
};

/// Bytes of a document that is read as a whole. Inspector's files are read line by line instead, and may be longer.
pub const MAX_DOCUMENT_BYTES: u64 = 64 << 20;

#[cfg(test)]
mod tests;
