//! Errors of a log, line by line: several lines can be about one error.

use super::program::Program;
use super::recognition::SERVER_BACK;
use super::report::{ErrorReport, nfs_server, report};
use super::status::Status;

/// Errors that are kept.
const MAX_ERRORS: usize = 10_000;
/// Latest errors among which that of a line is looked for: those of as many processes come between two lines of one.
const MAX_OPEN: usize = 16;
/// Lines after an error that can be about it.
const MAX_DISTANCE: usize = 30;
/// Bytes of a completion of mlx5 in a line of its dump.
const DUMPED_BYTES: usize = 16;

/// Reads errors line by line, in memory that does not grow with the log.
#[derive(Debug, Default)]
pub struct ErrorReader {
    errors: Vec<WrittenReport>,
    left_out: u64,
    /// Lines of a dump without addresses that were read.
    dumped_lines: usize,
}

/// An error, and who wrote it, as far as the line's first word in brackets tells.
#[derive(Debug)]
struct WrittenReport {
    report: ErrorReport,
    writer: Option<String>,
}

impl ErrorReader {
    /// Reads a line, which is number `at` of file `file`; true if it is about an error.
    pub fn line(&mut self, line: &str, file: usize, at: usize) -> bool {
        if self.is_detail(line, at) || self.is_recovery(line, file) {
            return true;
        }
        let Some(found) = report(line) else { return false };
        let writer = writer(line);
        let found = ErrorReport {
            file,
            line: at,
            ..found
        };
        let is_full = self.errors.len() >= MAX_ERRORS;
        if let Some(open) = self.open(&found, writer.as_deref(), at) {
            open.complete(found);
        } else if is_full {
            self.left_out += 1;
        } else {
            self.errors.push(WrittenReport {
                report: found,
                writer,
            });
        }
        self.dumped_lines = 0;
        true
    }

    /// The error that another line about it, `found`, continues.
    fn open(&mut self, found: &ErrorReport, writer: Option<&str>, at: usize) -> Option<&mut ErrorReport> {
        let latest = self.errors.iter_mut().rev().take(MAX_OPEN);
        let mut open = latest.filter(|known| {
            known.report.file == found.file
                && at.saturating_sub(known.report.line) <= MAX_DISTANCE
                && known.writer.as_deref() == writer
                && continues(&known.report, found, at)
        });
        open.next().map(|known| &mut known.report)
    }

    /// Reads a line that says that a server of NFS answers again (Linux `net/sunrpc/clnt.c`, `call_decode`).
    fn is_recovery(&mut self, line: &str, file: usize) -> bool {
        let Some(server) = nfs_server(line, " OK") else {
            return false;
        };
        let mut is_known = false;
        for WrittenReport { report, .. } in &mut self.errors {
            let is_silent = report
                .symptom
                .is_some_and(|symptom| symptom.name == "server silent");
            if is_silent && report.file == file && report.peer.as_deref() == Some(server) {
                report.symptom = Some(&SERVER_BACK);
                is_known = true;
            }
        }
        is_known
    }

    /// Reads a line that is no error without the one before it: a dump of the completion, or who the peer is.
    fn is_detail(&mut self, line: &str, at: usize) -> bool {
        let Some(WrittenReport { report, .. }) = self.errors.last_mut() else {
            return false;
        };
        if at.saturating_sub(report.line) > MAX_DISTANCE {
            return false;
        }
        if report.program == Program::OpenMpi
            && let Some((name, value)) = line.split_once(':')
        {
            let value = value.trim();
            return match name.trim() {
                "Local device" | "Device" => report.adapter.get_or_insert_with(|| value.to_owned()) == value,
                "Peer host" | "Remote host" => report.peer.get_or_insert_with(|| value.to_owned()) == value,
                _ => false,
            };
        }
        if report.program != Program::Mlx5 {
            return false;
        }
        let Some((offset, bytes)) = dumped(line) else {
            return false;
        };
        self.dumped_lines += 1;
        let is_last = offset.map_or(self.dumped_lines == 4, |offset| offset == 0x30);
        if is_last {
            self.dumped_lines = 0;
            let [.., vendor, syndrome, _, high, middle, low, _, _, _, _] = bytes;
            report.vendor_error = report.vendor_error.or(Some(u32::from(vendor)));
            report.status = report
                .status
                .or(Status::of_syndrome(syndrome.into()).map(|status| status.number));
            report.queue_pair = report
                .queue_pair
                .or(Some(u32::from_be_bytes([0, high, middle, low])));
        }
        true
    }

    /// The errors, and how many found no room.
    pub fn finish(self) -> (Vec<ErrorReport>, u64) {
        (
            self.errors.into_iter().map(|known| known.report).collect(),
            self.left_out,
        )
    }
}

/// True if line `at` is about an error that is known: it says what the other one lacks, and nothing else.
fn continues(known: &ErrorReport, found: &ErrorReport, at: usize) -> bool {
    if known.program != found.program {
        return false;
    }
    let is_next = at <= known.line + 4;
    match found.program {
        // The second line of an error has the queue pair, and no status.
        Program::Ucx => found.status.is_none() && found.queue_pair.is_some() && known.queue_pair.is_none(),
        // The first line has no status.
        Program::Perftest => known.status.is_none() && is_next,
        // Each error has two lines, or a line and a paragraph.
        Program::Mvapich | Program::OpenMpi => {
            is_next && (known.status == found.status || known.status.is_none() && known.symptom.is_none())
        }
        // The syndromes stand in a line behind the one that names the completion queue.
        Program::Mlx5 => {
            let adds_nothing = found.status.is_none() && found.queue_pair.is_none();
            let is_open = known.status.is_none() && known.vendor_error.is_none();
            is_next && found.symptom.is_none() && known.symptom.is_none() && (adds_nothing || is_open)
        }
        // The second line names the peer.
        Program::Lustre | Program::Mpich => {
            is_next && known.remote.is_none() && known.peer.is_none() && known.status == found.status
        }
        _ => false,
    }
}

/// The first word in brackets, such as `[node1:37049:0:37049]`.
fn writer(line: &str) -> Option<String> {
    let (_, rest) = line.split_once('[')?;
    let (writer, _) = rest.split_once(']')?;
    writer.contains(':').then(|| writer.to_owned())
}

/// A line of a dump: its offset, where it has one, and its bytes. `00000030: 00 00 ...` and `00000000 00008813 08000107 b22a02d2`.
fn dumped(line: &str) -> Option<(Option<u32>, [u8; DUMPED_BYTES])> {
    let mut words: Vec<&str> = line.split_whitespace().rev().take(DUMPED_BYTES + 1).collect();
    words.reverse();
    let groups_of = |length: usize, words: &[&str]| {
        let is_hex = |word: &&str| word.len() == length && word.bytes().all(|byte| byte.is_ascii_hexdigit());
        words.iter().all(is_hex)
    };
    let (offset, digits) = match words.as_slice() {
        [offset, bytes @ ..] if bytes.len() == DUMPED_BYTES && groups_of(2, bytes) => {
            let offset = u32::from_str_radix(offset.strip_suffix(':')?, 16).ok()?;
            (Some(offset), bytes.concat())
        }
        [.., one, two, three, four] if groups_of(8, &[one, two, three, four]) => {
            (None, [*one, two, three, four].concat())
        }
        _ => return None,
    };
    let mut bytes = [0; DUMPED_BYTES];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(digits.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some((offset, bytes))
}
