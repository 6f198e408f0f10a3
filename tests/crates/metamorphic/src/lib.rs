//! Properties of answers. A capture is transformed in a way that keeps what happened on the network, or that only takes evidence
//! away, and the verdicts on the copy are compared with those on the capture.
//!
//! `cargo xtask metamorphic` prints the table; a fixed set of copies is a test. [`TRANSFORMATIONS`] has one line for each
//! transformation; [`relation`](Relation) is what has to hold for its copies.

mod answer;
mod cell;
mod compare;
mod draw;
mod encoding;
mod hunt;
mod input;
mod load;
mod open;
mod packet;
mod project;
mod simulated;
mod table;
mod tape;
mod transformation;
mod transformations;

pub use answer::{Analyst, Answer, GivenRun, Verdict};
pub use cell::{Cell, cells};
pub use compare::{Change, Numbers, Relation, compare};
pub use draw::Draw;
pub use encoding::TapeEncoding;
pub use hunt::{CopyOutcome, hunt};
pub use input::{Input, InputSource};
pub use open::OpenList;
pub use project::{project_sources, root};
pub use simulated::simulated_sources;
pub use table::Table;
pub use tape::{Record, Tape};
pub use transformation::Transformation;
pub use transformations::TRANSFORMATIONS;
