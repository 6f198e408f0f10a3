//! Common part of the fuzz targets: a capture read to its end, with everything checked that a reader
//! guarantees.

use std::io::Cursor;

use roce_capture::{Options, Reader, Summary};

/// More frames than any input can have but a compressed one.
const MANY: u64 = 1 << 20;

/// One frame, for comparison.
#[derive(Debug, PartialEq, Eq)]
struct SeenFrame {
    time: u64,
    interface: u32,
    original: u32,
    fcs_bytes: u8,
    bytes: Vec<u8>,
}

/// Everything that reading gave.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    frames: Vec<SeenFrame>,
    lost: u64,
    summary: Option<Summary>,
    error: Option<String>,
    /// Stamps were moved, because the clock was set back.
    has_steps: bool,
}

/// Reads `file` twice, in blocks of different sizes, checks what every reading must hold, and that both are alike.
pub fn check_reader(file: &[u8]) {
    let whole = read(file, 1 << 20, false);
    // One other variant for each input keeps the target fast. A thread of its own costs the most, so it
    // is rare.
    let (block, ahead) = match file.len() % 16 {
        0 => (64, true),
        odd if odd % 2 == 1 && file.len() < 512 => (1, false),
        _ => (61, false),
    };
    let parts = read(file, block, ahead);
    if whole.has_steps || parts.has_steps {
        // A step of the clock is proven by packets of one block: the smallest ones have too few.
        return;
    }
    assert_eq!(
        whole, parts,
        "blocks of {block} bytes give another result than large ones"
    );
}

fn read(file: &[u8], block_bytes: usize, read_ahead: bool) -> Outcome {
    let options = Options {
        block_bytes,
        read_ahead,
        ..Options::default()
    };
    let mut outcome = Outcome {
        frames: Vec::new(),
        lost: 0,
        summary: None,
        error: None,
        has_steps: false,
    };
    let mut reader = match Reader::from_read("input", Box::new(Cursor::new(file.to_vec())), &options) {
        Ok(reader) => reader,
        Err(error) => {
            outcome.error = Some(said(&error));
            return outcome;
        }
    };
    let mut batches = 0_u64;
    loop {
        match reader.next_batch() {
            Ok(Some(batch)) => {
                batches += 1;
                assert!(
                    !(batch.frames().is_empty() && batch.lost().is_empty() && batch.notes().is_empty()),
                    "a batch of nothing"
                );
                for note in batch.notes() {
                    assert_eq!(
                        batch.note(note).len(),
                        note.length as usize,
                        "a note beyond its batch"
                    );
                }
                for frame in batch.frames() {
                    let bytes = batch.bytes(frame);
                    let end = u64::from(frame.offset) + u64::from(frame.captured);
                    assert!(end <= batch.data().len() as u64, "a frame beyond its batch");
                    assert_eq!(
                        bytes.len(),
                        frame.captured as usize,
                        "a frame of another length than it says"
                    );
                    assert!(
                        (frame.interface as usize) < reader.interfaces().len(),
                        "a frame without an interface"
                    );
                    outcome.frames.push(SeenFrame {
                        time: frame.time.0,
                        interface: frame.interface,
                        original: frame.original,
                        fcs_bytes: frame.fcs_bytes,
                        bytes: bytes.to_vec(),
                    });
                }
                let places: Vec<u32> = batch.lost().iter().map(|lost| lost.before).collect();
                assert!(places.is_sorted(), "losses out of order");
                assert!(
                    places.iter().all(|place| *place as usize <= batch.frames().len()),
                    "a loss beyond its batch"
                );
                outcome.lost += batch.lost().iter().map(|lost| lost.records).sum::<u64>();
                reader.recycle(batch);
            }
            Ok(None) => break,
            Err(error) => {
                outcome.error = Some(said(&error));
                assert!(
                    matches!(reader.next_batch(), Ok(None)),
                    "something after an error"
                );
                break;
            }
        }
        if batches > MANY || outcome.frames.len() as u64 > MANY {
            break;
        }
    }
    let summary = reader.summary();
    assert_eq!(
        summary.frames,
        outcome.frames.len() as u64,
        "frames counted otherwise than delivered"
    );
    assert_eq!(
        summary.lost_records, outcome.lost,
        "losses counted otherwise than delivered"
    );
    let unstamped = outcome.frames.iter().filter(|seen| seen.time == u64::MAX).count();
    assert_eq!(
        summary.unstamped, unstamped as u64,
        "stamps that do not fit counted otherwise than delivered"
    );
    if let (Some(first), Some(last)) = (summary.first_time, summary.last_time) {
        assert!(first <= last, "the end before the beginning");
        // Frames without a stamp of their own carry 0 when no stamp came before. Stamps that do not fit are the largest number. Where the clock
        // was set back, frames have other times than their stamps.
        let within =
            |seen: &SeenFrame| (first.0..=last.0).contains(&seen.time) || [0, u64::MAX].contains(&seen.time);
        assert!(
            !reader.clock_steps().is_empty() || outcome.frames.iter().all(within),
            "a frame outside of the file's time"
        );
    }
    outcome.summary = Some(summary.clone());
    outcome.has_steps = !reader.clock_steps().is_empty();
    outcome
}

/// An error and its causes. The number of bytes read from a compressed file depends on the blocks, and
/// is left out.
fn said(error: &roce_capture::Error) -> String {
    match error {
        roce_capture::Error::Decompress { .. } => "the compression is broken".to_owned(),
        other => other.to_string(),
    }
}
