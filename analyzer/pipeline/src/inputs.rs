//! Opens the inputs, and makes their summaries and messages afterwards.

use std::fmt::Write;
use std::io;
use std::path::{Path, PathBuf};

use roce_capture::{Error, Merge, Options, Reader};
use roce_model::{InputSummary, Span, Time};
use sha2::{Digest, Sha256};

use crate::feed::MergedInputs;
use crate::names::input_keys;

/// The inputs that could be opened, and what is known of those that could not.
pub(crate) struct OpenedInputs {
    pub(crate) readers: Vec<Reader>,
    /// For each reader, its place among the arguments.
    pub(crate) places: Vec<usize>,
    /// Arguments that could not be opened.
    pub(crate) failed: Vec<(usize, Error)>,
}

/// Opens `paths`; one that fails does not stop the others.
pub(crate) fn open(paths: &[PathBuf], read_ahead: bool, max_bytes: Option<u64>) -> OpenedInputs {
    let options = Options {
        read_ahead,
        max_bytes,
        ..Options::default()
    };
    let mut opened = OpenedInputs {
        readers: Vec::new(),
        places: Vec::new(),
        failed: Vec::new(),
    };
    // Many files are not all kept open.
    let park = paths.len() >= 64;
    for (place, path) in paths.iter().enumerate() {
        match Reader::open(path, &options) {
            Ok(mut reader) => {
                if park {
                    reader.park();
                }
                opened.readers.push(reader);
                opened.places.push(place);
            }
            Err(error) => opened.failed.push((place, error)),
        }
    }
    opened
}

/// Brings the inputs into the order of their first stamps: what they answer does not depend on the order of the arguments. Of two that
/// begin at one time, the one comes first that ends earlier, because a file may end where the next one begins. Streams come last.
/// Returns the number that each of them had. One whose begin the system fails to read comes last, with a warning by that number.
pub(crate) fn sort(
    opened: &mut OpenedInputs,
    paths: &[PathBuf],
    warnings: &mut Vec<(usize, String)>,
) -> Vec<usize> {
    if opened.readers.len() < 2 {
        return (0..opened.readers.len()).collect();
    }
    let mut begin = |number: usize, place: usize| {
        let path = paths.get(place).filter(|path| path.as_path() != Path::new("-"));
        let path = path.filter(|path| roce_capture::is_whole(path));
        let times = path.map_or(Ok(None), |path| crate::span::times(path, Span(0)));
        times
            .unwrap_or_else(|error| {
                let text = format!(
                    "it is taken for the last of the inputs: {}",
                    crate::error::reason(path.map(PathBuf::as_path), &error)
                );
                warnings.push((number, text));
                None
            })
            .unwrap_or((Time(u64::MAX), Time(u64::MAX)))
    };
    let readers = std::mem::take(&mut opened.readers);
    let places = std::mem::take(&mut opened.places);
    let mut sorted: Vec<_> = readers
        .into_iter()
        .zip(places)
        .enumerate()
        .map(|(number, (reader, place))| (begin(number, place), number, reader, place))
        .collect();
    sorted.sort_by_key(|(begin, ..)| *begin);
    let mut order = Vec::new();
    for (_, number, reader, place) in sorted {
        order.push(number);
        opened.readers.push(reader);
        opened.places.push(place);
    }
    order
}

/// Summary of each input, in the order of the arguments. `errors` are by place, `warnings` by reader.
pub(crate) fn summaries(
    paths: &[PathBuf],
    merge: &Merge,
    places: &[usize],
    errors: &[(usize, String)],
    warnings: &[(usize, String)],
    hash: bool,
) -> Result<Vec<InputSummary>, crate::error::Error> {
    let mut inputs: Vec<InputSummary> = input_keys(paths)
        .into_iter()
        .map(|key| InputSummary {
            input: key,
            ..InputSummary::default()
        })
        .collect();
    for (reader, warning) in warnings {
        if let Some(input) = places.get(*reader).and_then(|place| inputs.get_mut(*place)) {
            input.warnings.push(warning.clone());
        }
    }
    for (reader, place) in merge.readers().iter().zip(places) {
        let Some(input) = inputs.get_mut(*place) else {
            continue;
        };
        let summary = reader.summary();
        input.format = summary.format.to_string();
        input.bytes = reader.progress().total;
        input.frames = summary.frames;
        input.first_time = summary.first_time;
        input.last_time = summary.last_time;
        if let Some(truncation) = summary.truncation {
            input.truncated = true;
            input.warnings.push(truncation.to_string());
        }
        if summary.format.compression.is_some()
            && let Some(warning) = expansion(reader.expanded(), reader.progress().bytes)
        {
            input.warnings.push(warning);
        }
        if summary.untimed > 0 {
            input.warnings.push(format!(
                "{} records have no time of their own: they take that of the record before",
                summary.untimed
            ));
        }
        if summary.unstamped > 0 {
            input.warnings.push(format!(
                "{} records have a time that does not fit 64 bits of nanoseconds: they count as frames and are not analysed",
                summary.unstamped
            ));
        }
    }
    for (place, error) in errors {
        if let Some(input) = inputs.get_mut(*place) {
            input.error = Some(error.clone());
        }
    }
    if hash {
        for (input, path) in inputs.iter_mut().zip(paths) {
            if path != Path::new("-") && roce_capture::is_whole(path) {
                input.sha256 = Some(sha256(path).map_err(crate::error::Error::io(path, "cannot be hashed"))?);
            }
        }
    }
    Ok(inputs)
}

/// A message about each input with records that another one has, too. `recorders` are by input.
pub(crate) fn left_out(
    source: &MergedInputs,
    recorders: &[Option<usize>],
    name: impl Fn(usize) -> String,
) -> Vec<(usize, String)> {
    let readers = source.merge.readers();
    let inputs = readers.iter().enumerate().filter_map(|(input, reader)| {
        let records = source.left_out(input);
        let same = |other: &usize| *other != input && recorders.get(*other) == recorders.get(input);
        let other = name((0..readers.len()).find(same)?);
        let all = reader.summary().frames;
        let text = if other == name(input) {
            "it is given more than once: its records count once".to_owned()
        } else {
            format!(
                "{records} of its {all} records are in {other}, too, with the same stamps: each counts once"
            )
        };
        (records > 0).then_some((input, text))
    });
    inputs.collect()
}

/// A warning about a compressed capture that is far longer than its file, as no real one is.
fn expansion(expanded: u64, stored: u64) -> Option<String> {
    let times = expanded / stored.max(1);
    roce_capture::is_bomb(expanded, stored).then(|| {
        format!(
            "decompressed it is {expanded} bytes, {times} times the size of the file: it may be made to take time; \
             --max-input limits it"
        )
    })
}

/// Rewrites an input's summary for the devices of a live run, called `name`: they are no file.
pub(crate) fn as_live(input: &mut InputSummary, name: &str) {
    name.clone_into(&mut input.input);
    "live".clone_into(&mut input.format);
    input.bytes = None;
    input.sha256 = None;
}

fn sha256(path: &Path) -> io::Result<String> {
    let mut file = roce_capture::bytes(path)?;
    let mut hash = Sha256::new();
    let mut block = vec![0; 1 << 20];
    loop {
        match file.read(&mut block)? {
            0 => break,
            read => hash.update(&block[..read]),
        }
    }
    let mut text = String::new();
    for byte in hash.finalize() {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_large_captures_of_a_high_ratio_are_warned_about() {
        let gib = 1 << 30;
        assert_eq!(expansion(gib, 1_000), None, "not over 1 GiB");
        assert_eq!(expansion(2 * gib, 2 * gib / 1_000), None, "1,000 times");
        assert_eq!(expansion(100 * gib, 10 * gib), None);
        // 270 kB that become 8 GiB: 31,814 times.
        let warning = expansion(8 * gib, 270_000).unwrap();
        assert!(
            warning.starts_with("decompressed it is 8589934592 bytes, 31814 times"),
            "{warning}"
        );
    }
}
