//! The end of connections that a job's log reports as failed: a sink that keeps what the packets show of them, and says it. A log's line has
//! a status, addresses and sometimes a queue pair; packets have the rest. What they do not show is not said.

mod end;
mod followed;
mod sink;
mod text;

pub use end::{End, Retries};
pub use sink::{By, Ends, ExplainedError, MAX_ERRORS};
pub use text::{error_document, error_text};

#[cfg(test)]
mod tests;
