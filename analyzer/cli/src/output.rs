//! Output of a run for people and programs: text, pages, the live screen, messages, the exit code.

pub(crate) mod chosen;
pub(crate) mod columns;
pub(crate) mod common;
pub(crate) mod csv;
#[cfg(feature = "parquet")]
pub(crate) mod dataset;
pub(crate) mod exit_code;
#[cfg(feature = "live")]
pub(crate) mod findings;
pub(crate) mod messages;
pub(crate) mod overview;
pub(crate) mod progress;
#[cfg(feature = "live")]
pub(crate) mod running;
#[cfg(feature = "live")]
pub(crate) mod screen;
pub(crate) mod style;
pub(crate) mod table;
pub(crate) mod trace;
