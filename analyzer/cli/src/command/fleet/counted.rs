//! Frames of a collected file: their number, bytes, times and losses.

use std::path::Path;

use roce_capture::{Options, Reader};
use roce_model::Time;

/// Counts of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct FileCounts {
    /// Frames.
    pub(super) frames: u64,
    /// Their bytes on the wire.
    pub(super) wire_bytes: u64,
    /// Time of the first one.
    pub(super) first: Option<Time>,
    /// Frames that the file says were lost; `None`: it says nothing.
    pub(super) lost: Option<u64>,
    /// It ends inside a record.
    pub(super) is_cut: bool,
}

/// Counts the frames of a file. One that ends early has what comes before that. `None`: `goes_on` said no, which is asked for each batch.
///
/// # Errors
/// If it is no capture.
pub(super) fn count(
    path: &Path,
    goes_on: &dyn Fn() -> bool,
) -> Result<Option<FileCounts>, roce_capture::Error> {
    let mut reader = Reader::open(path, &Options::default())?;
    let mut counted = FileCounts::default();
    loop {
        if !goes_on() {
            return Ok(None);
        }
        match reader.next_batch() {
            Ok(Some(batch)) => {
                let bytes = batch.frames().iter().map(|frame| u64::from(frame.original));
                counted.wire_bytes = bytes.fold(counted.wire_bytes, u64::saturating_add);
                reader.recycle(batch);
            }
            Ok(None) => break,
            Err(_) => {
                counted.is_cut = true;
                break;
            }
        }
    }
    let summary = reader.summary();
    counted.frames = summary.frames;
    counted.first = summary.first_time;
    counted.is_cut |= summary.truncation.is_some();
    let lost: Vec<u64> = reader
        .interfaces()
        .iter()
        .filter_map(|interface| interface.dropped)
        .collect();
    counted.lost = (!lost.is_empty()).then(|| lost.iter().fold(0_u64, |sum, lost| sum.saturating_add(*lost)));
    Ok(Some(counted))
}
