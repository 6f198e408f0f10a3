//! Options of reading a capture.

/// Options of a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Bytes read at once, and at most of frames and what is between them in a batch (a record that is longer
    /// than this makes its own batch). Kept between 1 B and 64 MiB.
    pub block_bytes: usize,
    /// True if files that are not compressed are read on a thread of its own, too. Compressed ones always are.
    pub read_ahead: bool,
    /// Bytes of a capture, decompressed, after which it ends with an error. What comes before was delivered.
    pub max_bytes: Option<u64>,
}

impl Default for Options {
    fn default() -> Self {
        // Blocks and the frames found in them stay in the second-level cache; larger ones are slower.
        Self {
            block_bytes: 256 << 10,
            read_ahead: false,
            max_bytes: None,
        }
    }
}
