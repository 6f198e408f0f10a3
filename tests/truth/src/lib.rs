//! How often the analysis is right. Random scenarios are simulated, their captures analysed as the command does it, and its
//! results compared with what happened: for each category how much of what could be seen was told (recall), and how much
//! of what was told is true (precision).
//!
//! `cargo xtask truth` prints the table; a part of it is a test. Each category has a file that says what its items are and
//! which of them are left out because the records of a tap cannot show them.

mod case;
mod clocks;
mod cnps;
mod episodes;
mod findings;
mod holes;
mod pairing;
mod random;
mod resends;
mod score;
mod seen;
mod signs;
mod table;

pub use case::Case;
pub use random::{RandomScenario, scenario};
pub use score::Score;
pub use seen::{Event, Seen};
pub use table::{CATEGORIES, Category, Table};
