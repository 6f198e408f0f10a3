//! Default width of a bin: some hundred bins over the captures. So a burst of a few milliseconds does
//! not disappear in one bin, and a long capture does not become millions of rows.

use std::path::{Path, PathBuf};

use roce_capture::Error;
use roce_model::{Span, Time};

use crate::align::look;
use crate::error::reason;

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

/// The width of a bin for these captures. `warn` gets a capture that the system fails to read, with a text: the width follows from the
/// others then.
pub fn bin(paths: &[PathBuf], warn: &mut dyn FnMut(&Path, &str)) -> Span {
    length(paths, warn).map_or(WIDEST, bin_of)
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
fn length(paths: &[PathBuf], warn: &mut dyn FnMut(&Path, &str)) -> Option<Span> {
    let long = WIDEST * MIN_BINS;
    let (mut first, mut last) = (Time(u64::MAX), Time(0));
    for path in paths {
        if path.as_path() == Path::new("-") || !roce_capture::is_whole(path) {
            return None;
        }
        let found = times(path, long).unwrap_or_else(|error| {
            let why = reason(Some(path), &error);
            warn(path, &format!("the width of bins does not follow from it: {why}"));
            None
        });
        let Some((begin, end)) = found else {
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
///
/// # Errors
/// The system fails to read it. Errors of its content are reported when it is read for the run.
pub(crate) fn times(path: &Path, long: Span) -> Result<Option<(Time, Time)>, Error> {
    let Some(mut reader) = look::opened(path)? else {
        return Ok(None);
    };
    let (mut first, mut last) = (Time(u64::MAX), Time(0));
    let mut bytes = 0;
    while let Some(batch) = look::next(&mut reader)? {
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
    Ok((first <= last).then_some((first, last)))
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

    /// A process's own memory is a regular file without a length, and the page at 0 is never there: reading it fails with EIO.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_look_that_the_system_fails_is_told() {
        let mut warnings = Vec::new();
        let captures = [PathBuf::from("/proc/self/mem")];
        let width = bin(&captures, &mut |path, text| {
            warnings.push(format!("{}: {text}", path.display()));
        });
        assert_eq!(width, WIDEST);
        let [warning] = warnings.as_slice() else {
            panic!("{warnings:?}");
        };
        assert!(
            warning.starts_with("/proc/self/mem: the width of bins does not follow from it: "),
            "{warning}"
        );
        assert!(warning.ends_with("Input/output error (os error 5)"), "{warning}");
        assert_eq!(warning.matches("/proc/self/mem").count(), 1, "{warning}");
    }

    #[test]
    fn what_can_be_read_once_has_the_widest() {
        let mut warn = |path: &Path, text: &str| panic!("{}: {text}", path.display());
        assert_eq!(bin(&[PathBuf::from("-")], &mut warn), WIDEST);
        assert_eq!(bin(&[PathBuf::from("/nowhere/at/all.pcap")], &mut warn), WIDEST);
    }
}
