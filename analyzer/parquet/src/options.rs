//! Options of writing a dataset.

use roce_files::Access;

/// Options of writing a dataset.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Replace the dataset that the folder holds: once the new one is complete, of a live run at once.
    pub overwrite: bool,
    /// The rows come from a live run: they go into parts, each with its name as soon as it is closed by
    /// [`Dataset::next_parts`](crate::Dataset::next_parts), and a dataset that is not finished keeps them.
    pub live: bool,
    /// Encode each row group on a thread of its own while the next rows come; else no thread but the caller's does any work.
    pub parallel: bool,
    /// Rows of a row group of the timeline. They are held in memory, 100 to 200 bytes each, and twice while they are
    /// written. Tables with more columns have fewer.
    pub row_group: usize,
    /// Level of zstd, 1 to 22.
    pub compression_level: i32,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            overwrite: false,
            live: false,
            parallel: false,
            row_group: 1 << 17,
            compression_level: 1,
        }
    }
}

impl Options {
    /// Results of live runs name processes: they are their owner's alone.
    pub(crate) const fn access(&self) -> Access {
        if self.live { Access::Private } else { Access::Umask }
    }
}
