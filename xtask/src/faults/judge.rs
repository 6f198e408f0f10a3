//! The judgement of a run of which one call failed.
//!
//! A run that is not harmed ends like the good one. A run that is harmed says so: by the text of the error that was injected, or by the name
//! of the file whose call failed. Its exit code is 2 with an error, or that of the good run with whole results.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::cases::{Fault, FaultCase};

/// The mark of strace on a call that failed by its order.
pub(super) const INJECTED: &str = "(INJECTED)";
/// The loader of a process that a command starts. It names the library in its own words.
const LOADER: &str = "error while loading shared libraries: ";
/// Shortest name of a file that a message can be recognised by, in bytes.
const MIN_NAME: usize = 3;

/// How a run ended.
pub(super) struct End {
    /// `None`: by a signal.
    pub(super) code: Option<i32>,
    pub(super) output: Vec<u8>,
    pub(super) errors: String,
    /// Files that it wrote: paths below its folder, and bytes of each.
    pub(super) files: BTreeMap<PathBuf, Vec<u8>>,
    pub(super) trace: String,
}

/// The fault of an end; `None`: it is a good one.
pub(super) fn judge(fault: &Fault, good: &End, end: &End) -> Option<String> {
    let injected: Vec<&str> = end.trace.lines().filter(|line| line.contains(INJECTED)).collect();
    let first = injected.first()?;
    // Who cannot write to the standard error cannot say so.
    let is_mute = injected
        .iter()
        .any(|line| line.contains(" write(2,") || line.contains(" write(2<"));
    let wrong = if end.errors.contains("panicked at") {
        "it panics"
    } else if end.code == Some(137) {
        "it hangs"
    } else if !matches!(end.code, Some(0..=2)) {
        "it is killed, or ends with a number of its own"
    } else if is_mute {
        return None;
    } else if end.code == good.code {
        of_success(fault, good, end, first)?
    } else {
        of_failure(fault, good, end, first)?
    };
    Some(format!(
        "{}, {} {} at {}: {wrong} (code {:?}): {first}\n       {}",
        fault.case.name,
        fault.call,
        fault.error,
        fault.at,
        end.code,
        end.errors.lines().next().unwrap_or_default()
    ))
}

/// The fault of an end with the exit code of the good one: results are whole, and a difference is said.
fn of_success(fault: &Fault, good: &End, end: &End, injected: &str) -> Option<&'static str> {
    let is_live = fault.case.is_live;
    let news = news(&good.errors, &end.errors);
    let is_named = is_named(good, end, injected);
    if end.code == Some(0) && news.iter().any(|line| line.starts_with("error: ")) {
        Some("an error is said, and the exit code is that of success")
    } else if !news.is_empty() && !is_named && !is_live {
        Some("something is said, and it does not name what failed")
    } else if !is_live && end.output.len() < good.output.len() && good.output.starts_with(&end.output) {
        Some("its output is cut, and the exit code is that of success")
    } else if !is_live && end.output != good.output && !is_named {
        Some("another answer, and what failed is not named")
    } else if fault.call.starts_with("unlink") {
        // Whoever cannot give a file back has lost nothing.
        None
    } else if !stems(good).eq(&stems(end)) && !is_named {
        Some("other files, and what failed is not named")
    } else if !is_live && is_other_file(fault.case, good, end) && !is_named {
        Some("another file, and what failed is not named")
    } else {
        None
    }
}

/// The fault of an end with another exit code: it is 2, the cause is named, and what is there is whole.
fn of_failure(fault: &Fault, good: &End, end: &End, injected: &str) -> Option<&'static str> {
    if end.code != Some(2) {
        Some("its exit code is not that of an error")
    } else if !end.errors.lines().any(|line| line.starts_with("error: "))
        && !is_in_output(good, end, injected)
    {
        Some("it fails, and no error is said")
    } else if !is_named(good, end, injected) {
        Some("it fails, and what failed is not named")
    } else if fault.call.starts_with("unlink") {
        None
    } else if is_half(fault.case, good, end) {
        Some("it fails, and a half result is there")
    } else if !stems(end).iter().all(|name| stems(good).contains(name)) {
        Some("it fails, and a file of its own is left")
    } else {
        None
    }
}

/// True if a message names what failed: the error by its text, or the file by the last part of its path.
fn is_named(good: &End, end: &End, injected: &str) -> bool {
    let names = names(injected);
    let is_new = |line: &&str| line.contains(LOADER) || names.iter().any(|name| line.contains(name));
    news(&good.errors, &end.errors).iter().any(is_new) || is_in_output(good, end, injected)
}

/// True if the output names what failed, as the problems of a device or a host are, and the good one does not. Its lines are folded.
fn is_in_output(good: &End, end: &End, injected: &str) -> bool {
    let squeezed = |text: &str| text.split_whitespace().collect::<String>();
    let output = |end: &End| squeezed(&String::from_utf8_lossy(&end.output));
    let (good, end) = (output(good), output(end));
    let names = names(injected);
    let mut names = names.iter().map(|name| squeezed(name));
    names.any(|name| end.contains(&name) && !good.contains(&name))
}

/// The text of the error and the names of the files in a line of strace.
fn names(injected: &str) -> Vec<&str> {
    let cause = Some(cause(injected)).filter(|cause| !cause.is_empty());
    files(injected).into_iter().chain(cause).collect()
}

/// Lines that the good end does not have.
fn news<'a>(good: &str, text: &'a str) -> Vec<&'a str> {
    let known: Vec<&str> = good.lines().collect();
    text.lines().filter(|line| !known.contains(line)).collect()
}

/// The text of the error in a line of strace: `= -1 EIO (Input/output error) (INJECTED)`.
fn cause(injected: &str) -> &str {
    let end = injected.rsplit_once(") (INJECTED)").map_or("", |(text, _)| text);
    end.rsplit_once('(').map_or("", |(_, text)| text)
}

/// Last parts of the paths in a line of strace, or the whole paths where those are short: texts in quotes, and those of open files, `3</tmp/a>`.
fn files(injected: &str) -> Vec<&str> {
    let quoted = injected.split('"').skip(1).step_by(2);
    let open = injected
        .split('<')
        .skip(1)
        .filter_map(|rest| Some(rest.split_once('>')?.0));
    quoted
        .chain(open)
        .filter_map(|path| {
            let name = path.trim_end_matches('/').rsplit('/').next()?;
            Some(if name.len() >= MIN_NAME { name } else { path })
        })
        .filter(|name| name.len() >= MIN_NAME)
        .collect()
}

/// Names of an end's files without what differs from run to run: ids, and values such as dates in names of folders.
fn stems(end: &End) -> Vec<String> {
    let is_kept = |glyph: &char| !glyph.is_ascii_digit() && !('a'..='f').contains(glyph);
    let stem = |path: &PathBuf| {
        let text = path.display().to_string();
        let parts = text
            .split('/')
            .map(|part| part.split_once('=').map_or(part, |(key, _)| key));
        let parts: Vec<&str> = parts.collect();
        parts.join("/").chars().filter(is_kept).collect()
    };
    end.files.keys().map(stem).collect()
}

/// True if the file that a command is to write has other bytes.
fn is_other_file(case: &FaultCase, good: &End, end: &End) -> bool {
    let bytes = |end: &End| {
        case.writes
            .and_then(|path| end.files.get(Path::new(path)).cloned())
    };
    bytes(good) != bytes(end)
}

/// True if a run that failed left a result that looks whole: the file that it was to write with other bytes, or the document that makes a
/// folder of results visible.
fn is_half(case: &FaultCase, good: &End, end: &End) -> bool {
    let Some(path) = case.writes.map(Path::new) else {
        return false;
    };
    match (good.files.get(path), end.files.get(path)) {
        (Some(good), Some(found)) if case.is_live => good.len() > found.len(),
        (Some(good), Some(found)) => good != found,
        (Some(_), None) => false,
        _ => {
            let mark = path.join("run.json");
            end.files.contains_key(&mark) && end.files.len() < good.files.len()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::cases::CASES;
    use super::*;

    const TRACE: &str = "7 read(3</in/rnr.pcap>, 0x7f, 24) = -1 EIO (Input/output error) (INJECTED)\n";

    fn end(code: Option<i32>, output: &str, errors: &str, files: &[(&str, &str)]) -> End {
        let files = files
            .iter()
            .map(|(path, text)| (PathBuf::from(path), text.as_bytes().to_vec()));
        End {
            code,
            output: output.into(),
            errors: errors.to_owned(),
            files: files.collect(),
            trace: TRACE.to_owned(),
        }
    }

    #[test]
    fn a_line_of_strace_has_the_cause_and_the_file() {
        assert_eq!(cause(TRACE.trim_end()), "Input/output error");
        assert_eq!(files(TRACE), ["rnr.pcap"]);
        assert_eq!(files("9 statx(AT_FDCWD, \"/in/b\", 0) = -1"), ["/in/b"]);
        let opened =
            "8 openat(5</var/out>, \"run.json\", O_RDONLY) = -1 EMFILE (Too many open files) (INJECTED)";
        assert_eq!(cause(opened), "Too many open files");
        assert_eq!(files(opened), ["run.json", "out"]);
    }

    #[test]
    fn ends_are_judged() {
        let case = CASES.iter().find(|case| case.name == "annotate").unwrap();
        let fault = Fault {
            case,
            call: "read",
            error: "EIO",
            at: 1,
        };
        let whole = &[("out.pcapng", "whole")];
        let good = end(Some(0), "yes", "", whole);
        let wrong = |end: &End| judge(&fault, &good, end);
        assert_eq!(wrong(&good), None);
        for (code, output, errors, files) in [
            (2, "", "error: x: Input/output error (os error 5)", &[][..]),
            (2, "", "error: /in/rnr.pcap: it has vanished", &[]),
            (2, "problems: /in/rnr.\n   pcap", "", &[]),
            (2, "", "error: rnr.pcap: it has vanished", whole),
            (0, "no", "warning: rnr.pcap: it has no times", whole),
            (0, "yes", "warning: x: Input/output error", whole),
            (0, "yes\n warning x: Input/output\n   error", "", whole),
        ] {
            assert_eq!(wrong(&end(Some(code), output, errors, files)), None, "{errors}");
        }
        for (code, output, errors, files, words) in [
            (Some(0), "no", "", &whole[..], "not named"),
            (Some(0), "no", "warning: something", whole, "does not name"),
            (Some(0), "ye", "warning: rnr.pcap: why", whole, "is cut"),
            (Some(0), "yes", "error: rnr.pcap: why", whole, "that of success"),
            (Some(0), "yes", "", &[], "other files"),
            (Some(0), "yes", "", &[("out.pcapng", "hole")], "another file"),
            (Some(1), "", "error: rnr.pcap", &[], "not that of an error"),
            (Some(2), "", "", &[], "no error is said"),
            (Some(2), "", "error: it does not work", &[], "not named"),
            (
                Some(2),
                "",
                "error: rnr.pcap",
                &[("out.pcapng", "wh")],
                "half result",
            ),
            (Some(2), "", "error: rnr.pcap", &[("tmp.x", "")], "is left"),
            (Some(2), "", "thread panicked at x", &[], "panics"),
            (Some(137), "", "", &[], "hangs"),
            (None, "", "", &[], "killed"),
        ] {
            let said = wrong(&end(code, output, errors, files)).unwrap_or_default();
            assert!(said.contains(words), "{words}: {said}");
        }
        // A call that did not come to fail says nothing.
        let mut other = end(Some(101), "", "", &[]);
        other.trace.clear();
        assert_eq!(wrong(&other), None);
    }
}
