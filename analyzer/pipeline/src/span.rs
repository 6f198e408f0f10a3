//! Default width of a bin: some hundred bins over the captures. So a burst of a few milliseconds does
//! not disappear in one bin, and a long capture does not become millions of rows.

use std::path::{Path, PathBuf};

use roce_capture::{Options, Reader};
use roce_model::{Span, Time};

/// The widest bin, for captures of 250 ms and more, and where the length cannot be known: standard input, pipes, live runs.
pub const WIDEST: Span = Span(1_000_000);
/// The narrowest: at 100 Gbit/s it has 30 packets of 4 KB.
const NARROWEST: Span = Span(10_000);
/// Least number of bins.
const MIN_BINS: u64 = 250;
/// Limit of the bytes of a capture that are sampled: about a tenth of a second of reading. A longer
/// capture that covers less than the widest bin needs by then (at 100 Gbit/s 256 MB are 20 ms of whole
/// packets) gets its length from its size.
const MAX_BYTES: u64 = 256 << 20;

/// The width of a bin for these captures.
pub fn bin(paths: &[PathBuf]) -> Span {
    length(paths).map_or(WIDEST, bin_of)
}

/// The widest of 1, 2, 5, 10, ... us with which a run of this length has enough bins.
fn bin_of(length: Span) -> Span {
    let wanted = (length / MIN_BINS).clamp(NARROWEST, WIDEST);
    let mut bin = NARROWEST;
    for power in [10_000, 100_000, 1_000_000] {
        for step in [1, 2, 5] {
            let next = Span(power * step);
            if next <= wanted {
                bin = next;
            }
        }
    }
    bin
}

/// From the first frame of all captures to the last, or a time that is long enough for the widest bin. `None` where one of them can
/// be read only once.
fn length(paths: &[PathBuf]) -> Option<Span> {
    let long = WIDEST * MIN_BINS;
    let (mut first, mut last) = (Time(u64::MAX), Time(0));
    for path in paths {
        if path.as_path() == Path::new("-") || !roce_capture::is_whole(path) {
            return None;
        }
        let Some((begin, end)) = times(path, long) else {
            continue;
        };
        (first, last) = (first.min(begin), last.max(end));
        if last.since(first) >= long {
            break;
        }
    }
    (first <= last).then(|| last.since(first))
}

/// The first and the last time of a capture; what goes over `long` is not looked at, but one batch always is.
pub(crate) fn times(path: &Path, long: Span) -> Option<(Time, Time)> {
    let mut reader = Reader::open(path, &Options::default()).ok()?;
    let (mut first, mut last) = (Time(u64::MAX), Time(0));
    let mut bytes = 0;
    // Errors are reported when the capture is read for the run.
    while let Ok(Some(batch)) = reader.next_batch() {
        for frame in batch.frames() {
            first = first.min(frame.time);
            last = last.max(frame.time);
        }
        bytes += batch.data().len() as u64;
        reader.recycle(batch);
        if first <= last && last.since(first) >= long {
            break;
        }
        if bytes >= MAX_BYTES {
            let size = reader.progress().total.unwrap_or(bytes).max(bytes);
            let covered = last.since(first).0;
            last = Time(first.0.saturating_add(covered.saturating_mul(size / bytes)));
            break;
        }
    }
    (first <= last).then_some((first, last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bin_is_a_250th_or_less() {
        for (length, bin) in [
            (0, 10_000),
            (3_000_000, 10_000),
            // 4.9 ms / 250 is 19.6 us; 5 ms / 250 is 20 us.
            (4_900_000, 10_000),
            (5_000_000, 20_000),
            (12_500_000, 50_000),
            (100_000_000, 200_000),
            (249_000_000, 500_000),
            (250_000_000, 1_000_000),
            (60_000_000_000, 1_000_000),
        ] {
            assert_eq!(bin_of(Span(length)), Span(bin), "{length}");
        }
    }

    #[test]
    fn what_can_be_read_once_has_the_widest() {
        assert_eq!(bin(&[PathBuf::from("-")]), WIDEST);
        assert_eq!(bin(&[PathBuf::from("/nowhere/at/all.pcap")]), WIDEST);
    }
}
