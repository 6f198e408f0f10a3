//! Checks that several fuzz targets share, and captures built from their inputs.

mod analysis;
mod kind;
mod parts;
mod reader;
mod trimmed;

pub use analysis::check_analysis;
pub use kind::kind;
pub use parts::{Block, Parts, frame, section};
pub use reader::check_reader;
pub use trimmed::{TrimForm, trimmed_capture};
