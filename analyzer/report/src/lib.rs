//! The results for people and programs: the terminal's one screen, the JSON document, the HTML page, traces for trace viewers, two
//! runs compared, and the page that describes every table.
//!
//! [`TerminalReport`], [`JsonReport`], [`HtmlReport`] and [`TraceReport`] are sinks: they keep what they need while rows
//! come, and write to their destination at the end. `roce-flow` and `roce-verdict` compute the numbers;
//! the descriptions in `roce-model` name the columns.

pub mod compare;
pub mod devices;
pub mod ends;
mod error;
#[cfg(test)]
mod fixture;
mod html;
pub mod json;
mod kept;
mod kpi;
pub mod markup;
mod moments;
mod perfetto;
pub mod samples;
pub mod schema;
pub mod series;
pub mod terminal;

pub use error::Error;
pub use html::HtmlReport;
pub use json::{JsonFlows, JsonReport};
pub use kpi::{Kpi, KpiForm, KpiReport};
pub use perfetto::{TraceForm, TraceReport};
pub use terminal::{
    About, CaptureCounts, Command, Key, LiveReport, Page, RunStanding, Screen, Style, TerminalReport, Tone,
};
