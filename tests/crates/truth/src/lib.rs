//! Precision and recall of the analysis. Random scenarios are simulated, their captures analysed as the
//! command does it, and its results compared with the simulation. For each class of results, recall is
//! the share of the visible events that was reported. Precision is the share of the reported ones that
//! is true, by the confidence of the report.
//!
//! `cargo xtask truth` prints the table; a part of it is a test. Each class has a file that says what its items are and
//! which of them are left out because the records of a tap cannot show them. Scenarios come in [`families`](FAMILIES), one
//! concern each.

mod case;
mod clocks;
mod cnps;
mod compare;
mod counts;
mod draw;
mod ends;
mod episodes;
mod families;
mod findings;
mod holes;
mod hops;
mod imbalance;
mod lateness;
mod many;
mod mrc;
mod pairing;
mod parts;
mod plan;
mod provenance;
mod reach;
mod reactions;
mod reads;
mod retransmissions;
mod roots;
mod runs;
mod score;
mod scores;
mod seen;
mod signs;
mod table;
mod thin;
mod times;
mod waits;

pub use case::Case;
pub use families::{CAUSES, FAMILIES, Family, LATENESS, MRC, cause_of, family_of, lateness_of, mrc_of};
pub use many::{Outcome, run_all, run_thinned};
pub use plan::{Cause, RandomScenario, Root};
pub use reach::{REACH, Reach};
pub use score::{Claims, Score, StatedConfidence};
pub use scores::{CLASSES, Confusion, Scores};
pub use seen::{Event, SeenRun, Wait};
pub use table::Table;
pub use thin::RecordThinning;
