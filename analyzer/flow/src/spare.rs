//! Room for rows that have been emitted, for bins to come: fresh memory costs more than filling it.

use std::sync::{Arc, Mutex, PoisonError};

use roce_verdict::BinRows;

/// Bins whose room is kept, at most.
const MAX_BINS: usize = 24;
/// Room for more rows than this is given back: it takes some 8 MB.
const MAX_ROWS: usize = 1 << 15;

/// Room for rows, which the shards of a run and its collector share.
#[derive(Clone, Debug, Default)]
pub struct Spare(Arc<Mutex<Vec<BinRows>>>);

impl Spare {
    /// Room of another bin, if there is some.
    pub(crate) fn take(&self) -> Option<BinRows> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    /// These rows have been emitted.
    pub(crate) fn put(&self, mut rows: BinRows) {
        if rows.pair_of_row.capacity() > MAX_ROWS {
            return;
        }
        rows.clear();
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() < MAX_BINS {
            all.push(rows);
        }
    }
}
