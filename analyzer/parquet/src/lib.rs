//! The results as a Parquet dataset: `DIR/TABLE/part-0.parquet` for each of [`TABLES`], and a reader of such a dataset.
//!
//! [`Dataset`] is the sink. Rows are written while they come, one row group at a time, under a temporary name;
//! only a run that ends well gives the files their names. Those of a live run are closed from time to time, `part-0.parquet`,
//! `part-1.parquet`, and are whole from then on. The columns come from the descriptions in `roce-model`:
//! nothing here knows a column by name. Integers are signed, a time is a column of microseconds and one of nanoseconds, and the
//! names of the run come first: every engine reads these types.
//!
//! A dataset of many runs has the layout of a fleet ([`Dataset::create_run`]): `TABLE/date=YYYY-MM-DD/host=NAME/RUN_ID.parquet`
//! ([`Partition`]) in a folder or another [`Storage`]. The file in `run` is written last, and is the commit of the run.
//!
//! This is the only crate that knows polars, and no polars type crosses its border. It does not know what the
//! numbers mean, and prints nothing.

mod check;
mod column;
mod compact;
mod dataset;
mod encode;
mod error;
mod file;
mod marks;
mod names;
mod options;
mod partition;
mod read;
mod rows;
mod storage;
mod table;

pub use compact::{CompactedDay, compact, compacted_runs, days, is_day};
pub use dataset::{Dataset, TableSize};
pub use error::Error;
pub use names::{SCHEMA_VERSION, TABLES};
pub use options::Options;
pub use partition::{Partition, UNKNOWN, date};
pub use read::{ColumnValues, TableData, read_file, read_table};
pub use rows::Rows;
pub use storage::{BegunFile, FolderStorage, PendingFile, Storage};

#[cfg(test)]
mod tests;
