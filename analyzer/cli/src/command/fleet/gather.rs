//! Files that hosts have captured are fetched, counted and removed there.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use roce_model::text::clean;
use roce_remote::fleet::manifest::{CountersRow, FileRow, HostRow, HostState, RunState};
use roce_remote::fleet::preflight::RdmaPort;
use roce_remote::fleet::report::{Report, ending};
use roce_remote::fleet::script::{HostRunNames, SILENCE, look, remove};
use roce_remote::fleet::transfer::collect;
use roce_remote::{Machine, RemoteError, each};

use super::book::Book;
use super::counted::{FileCounts, count};
use super::interrupt::Interrupts;
use super::prepare::taken;
use super::targets::Target;
use crate::output::progress::bar;

/// Hosts that files are fetched from at once.
const MAX_AT_ONCE: usize = 4;
/// Time in which a host hashes what a run has left.
const LOOK_PATIENCE: Duration = Duration::from_mins(10);
/// Bytes of an answer.
const MAX_ANSWER_BYTES: u64 = 1 << 20;
/// Pause between two looks at a capture that is about to end.
const PAUSE: Duration = Duration::from_millis(500);
/// Period of the progress bar.
const EVERY: Duration = Duration::from_millis(200);

/// Fetches all that is pending. `targets` are in the order of the manifest's hosts; `None`: it is not in the inventory.
pub(super) fn gather(book: &Book, targets: &[Option<Target>], interrupts: &Interrupts) {
    book.change(|manifest| manifest.state = RunState::Collecting);
    interrupts.collects();
    let rows = book.now().hosts;
    let done: Vec<AtomicU64> = rows.iter().map(|_| AtomicU64::new(0)).collect();
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        // Without a thread the files come all the same, and nothing shows how far they are.
        let shown = std::thread::Builder::new().spawn_scoped(scope, || show(book, &done, &is_over));
        each(&rows, MAX_AT_ONCE, |at, row| {
            if let (Some(Some(target)), Some(done), true) = (
                targets.get(at),
                done.get(at),
                row.is_pending() && !interrupts.ends_all(),
            ) {
                fetch(book, at, target, done, interrupts);
            }
        });
        is_over.store(true, Ordering::Relaxed);
        if let Ok(shown) = shown {
            shown.thread().unpark();
        }
    });
    book.change(|manifest| {
        let is_pending = manifest.hosts.iter().any(HostRow::is_pending);
        manifest.state = if is_pending {
            RunState::Incomplete
        } else {
            RunState::Done
        };
    });
}

/// A progress bar of all bytes, on a terminal.
fn show(book: &Book, done: &[AtomicU64], is_over: &std::sync::atomic::AtomicBool) {
    let bar = bar(Some(0));
    while !is_over.load(Ordering::Relaxed) {
        std::thread::park_timeout(EVERY);
        book.settle();
        let rows = book.now().hosts;
        bar.set_length(
            rows.iter()
                .flat_map(|row| &row.files)
                .map(|file| file.bytes)
                .sum(),
        );
        bar.set_position(done.iter().map(|bytes| bytes.load(Ordering::Relaxed)).sum());
    }
    bar.finish_and_clear();
}

/// Fetches what a host has.
fn fetch(book: &Book, at: usize, target: &Target, done: &AtomicU64, interrupts: &Interrupts) {
    let Some(row) = book.now().hosts.get(at).cloned() else {
        return;
    };
    let Some(place) = row.place(&book.now().run) else {
        return;
    };
    if row.state == HostState::Capturing && !found(book, at, target, &place, interrupts) {
        return;
    }
    let files = book.host(at, |row| row.files.clone()).unwrap_or_default();
    let total = AtomicU64::new(0);
    for (number, file) in files.iter().enumerate() {
        if file.is_here {
            continue;
        }
        if interrupts.ends_all() {
            return;
        }
        let goes_on = || {
            done.store(total.load(Ordering::Relaxed), Ordering::Relaxed);
            !interrupts.ends_all()
        };
        let to = (book.folder(), &*file.name);
        match collect(&target.machine, &place, &file.remote(), to, &total, &goes_on) {
            Ok(_) => {
                book.host(at, |row| {
                    if let Some(file) = row.files.get_mut(number) {
                        file.is_here = true;
                    }
                });
            }
            Err(error) => {
                book.host(at, |row| row.error = Some(format!("{}: {error}", file.name)));
                return;
            }
        }
    }
    conclude(book, at, interrupts);
    // The bytes are here, and verified: they need not be there any more.
    if let Err(error) = clear(&target.machine, &place, false) {
        book.host(at, |row| {
            row.warnings.push(format!("its files are still there: {error}"));
        });
    }
}

/// Asks what a capture has left whose end was not seen. False: nothing is to be fetched yet.
fn found(book: &Book, at: usize, target: &Target, place: &HostRunNames, interrupts: &Interrupts) -> bool {
    let until = target.machine.now() + SILENCE + Duration::from_secs(10);
    loop {
        let report = match ask(&target.machine, place, &|| !interrupts.ends_all()) {
            Ok(report) => report,
            Err(error) => {
                book.host(at, |row| row.error = Some(error.to_string()));
                return false;
            }
        };
        if report.is_missing {
            book.host(at, |row| {
                row.state = HostState::Failed;
                row.error = Some("the host has nothing of this run any more".to_owned());
            });
            return false;
        }
        let Some(busy) = &report.busy else {
            book.host(at, |row| take(row, &report, &[]));
            return book.now().hosts.get(at).is_some_and(HostRow::is_pending);
        };
        if interrupts.ends_all() || target.machine.now() > until {
            book.host(at, |row| {
                row.error = Some(format!("it still captures: {}", taken(busy)));
            });
            return false;
        }
        target.machine.sleep(PAUSE);
    }
}

/// Report about the files that a run has left on a host.
fn ask(machine: &Machine, place: &HostRunNames, goes_on: &dyn Fn() -> bool) -> Result<Report, RemoteError> {
    let answer = machine.run_while(&look(place)?, LOOK_PATIENCE, MAX_ANSWER_BYTES, goes_on)?;
    let mut report = Report::default();
    for line in String::from_utf8_lossy(&answer).lines() {
        report.take(line);
    }
    Ok(report)
}

/// Removes what a run has left on a host. True: there was something.
///
/// # Errors
/// If it cannot be removed, or the capture goes on.
pub(super) fn clear(machine: &Machine, place: &HostRunNames, all: bool) -> anyhow::Result<bool> {
    let answer = machine.run(&remove(place, all)?, MAX_ANSWER_BYTES)?;
    let mut report = Report::default();
    let answer = String::from_utf8_lossy(&answer).into_owned();
    for line in answer.lines() {
        report.take(line);
    }
    if let Some(busy) = &report.busy {
        anyhow::bail!("{}", taken(busy));
    }
    Ok(answer.lines().any(|line| line == "removed=1"))
}

/// Takes the end of a capture into its row. `rdma` are the ports of its devices.
pub(super) fn take(row: &mut HostRow, report: &Report, rdma: &[RdmaPort]) {
    row.pid = report.pid.or(row.pid);
    row.exit_code = report.exit_code.or(row.exit_code);
    row.stopped.clone_from(&report.stopped);
    row.cpu.clone_from(&report.cpu);
    row.dropped = report.dropped();
    let is_own = |counter: &roce_remote::fleet::report::Counter| {
        let mut ports = rdma
            .iter()
            .filter(|port| row.interfaces.contains(&port.interface));
        // A host that was asked by an earlier command: its only counters are those of its captures.
        rdma.is_empty() || ports.any(|port| port.device == counter.device && port.port == counter.port)
    };
    let rise = report.rise(is_own);
    row.counters = (rise != roce_remote::fleet::report::Rise::default()).then_some(CountersRow {
        received_bytes: rise.received_bytes,
        sent_bytes: rise.sent_bytes,
        packets: rise.packets,
    });
    row.files = report
        .files
        .iter()
        .filter_map(|file| {
            Some(FileRow {
                name: file_name(row, &file.name)?,
                remote: file.name.clone(),
                bytes: file.bytes,
                sha256: file.sha256.clone(),
                is_here: false,
            })
        })
        .collect();
    let reason = || {
        report
            .reason()
            .map_or_else(String::new, |reason| format!(": {}", clean(&reason)))
    };
    row.state = HostState::Captured;
    row.error = None;
    if row.files.is_empty() {
        row.state = HostState::Failed;
        row.error = Some(format!("the capture failed{}", reason()));
    } else if let Some(code) = row.exit_code.filter(|code| *code != 0) {
        row.error = Some(format!("the capture ended with exit code {code}{}", reason()));
    } else if row.exit_code.is_none() {
        row.warnings
            .push("the capture did not end by itself: its file may be cut".to_owned());
    }
    match row.stopped.as_deref() {
        Some("size") => row
            .warnings
            .push("the capture ended at its largest size (--max-size)".to_owned()),
        Some("input") => row
            .warnings
            .push("the capture ended early: the connection was lost".to_owned()),
        _ => {}
    }
}

/// A file's name here: the host, its interface, and the format.
fn file_name(row: &HostRow, remote: &str) -> Option<String> {
    let ending = ending(remote)?;
    let plain = |text: &str| -> String {
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_+@".contains(letter);
        text.chars()
            .map(|letter| if is_plain(letter) { letter } else { '_' })
            .take(100)
            .collect()
    };
    let number = remote
        .strip_prefix("tcpdump.")
        .and_then(|rest| rest.split('.').next());
    let interface = match number.map(str::parse::<usize>) {
        Some(Ok(number)) => plain(row.interfaces.get(number)?),
        _ => plain(&row.interfaces.join("+")),
    };
    Some(format!("{}.{interface}.{ending}", plain(&row.name)))
}

/// Counts the frames of a host's files, and judges them.
fn conclude(book: &Book, at: usize, interrupts: &Interrupts) {
    let Some(row) = book.now().hosts.get(at).cloned() else {
        return;
    };
    let mut all = FileCounts::default();
    let mut warnings = Vec::new();
    let mut is_counted = true;
    for file in &row.files {
        match count(&book.folder().path_of(&file.name), &|| !interrupts.ends_all()) {
            Ok(None) => {
                is_counted = false;
                warnings.push(format!("{} was not counted: interrupted", file.name));
            }
            Ok(Some(counted)) => {
                all.frames += counted.frames;
                all.wire_bytes = all.wire_bytes.saturating_add(counted.wire_bytes);
                all.first = match (all.first, counted.first) {
                    (Some(one), Some(other)) => Some(one.min(other)),
                    (one, other) => one.or(other),
                };
                all.lost = counted.lost.map(|lost| all.lost.unwrap_or(0) + lost).or(all.lost);
                if counted.is_cut {
                    warnings.push(format!("{} ends inside a record", file.name));
                }
            }
            Err(error) => {
                is_counted = false;
                warnings.push(format!("{} cannot be read: {error}", file.name));
            }
        }
    }
    book.host(at, |row| {
        row.state = HostState::Collected;
        row.warnings.append(&mut warnings);
        if is_counted {
            row.frames = Some(all.frames);
            row.wire_bytes = Some(all.wire_bytes);
            row.first_frame_ns = all.first.and_then(|first| i64::try_from(first.0).ok());
        }
        row.dropped = row.dropped.or(all.lost);
        judge(row);
    });
}

/// Name of the check that a capture without frames fails although RDMA traffic passed.
pub(super) const BLIND: &str = "capture.blind";

/// A capture without frames, while the counters of the RDMA ports rose, has not seen the traffic.
fn judge(row: &mut HostRow) {
    let Some(counters) = row.counters else { return };
    let rise = roce_remote::fleet::report::Rise {
        received_bytes: counters.received_bytes,
        sent_bytes: counters.sent_bytes,
        packets: counters.packets,
    };
    if row.frames != Some(0) || !rise.is_traffic() {
        return;
    }
    row.check = Some(BLIND.to_owned());
    let counted = match (counters.received_bytes, counters.sent_bytes, counters.packets) {
        (None, None, Some(packets)) => roce_spelling::plural(packets, "packet", "packets"),
        (received, sent, _) => format!(
            "{} bytes received and {} sent",
            received.unwrap_or(0),
            sent.unwrap_or(0)
        ),
    };
    row.error = Some(format!(
        "{BLIND}: no frame was captured, while the RDMA ports counted {counted}\nhint: RDMA that bypasses the kernel is not seen at {}: \
         `roce-analyze devices` on the host says what can be captured; else capture by the RDMA device (libpcap with verbs), or at a mirror port of the switch",
        row.interfaces.join(", ")
    ));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> HostRow {
        HostRow {
            name: "gpu 1".to_owned(),
            interfaces: vec!["ens1f0np0".to_owned(), "ens1f1np1".to_owned()],
            ..HostRow::default()
        }
    }

    #[test]
    fn files_are_named_by_host_and_interface() {
        let row = row();
        assert_eq!(
            file_name(&row, "capture.pcapng.zst").as_deref(),
            Some("gpu_1.ens1f0np0+ens1f1np1.pcapng.zst")
        );
        assert_eq!(
            file_name(&row, "tcpdump.1.pcap.gz").as_deref(),
            Some("gpu_1.ens1f1np1.pcap.gz")
        );
        assert_eq!(file_name(&row, "tcpdump.9.pcap"), None);
        assert_eq!(file_name(&row, "notes.txt"), None);
    }

    #[test]
    fn zero_frames_while_counters_rose_is_an_error() {
        let judged = |frames, received_bytes, packets| {
            let mut row = row();
            row.frames = frames;
            row.counters = Some(CountersRow {
                received_bytes,
                sent_bytes: None,
                packets,
            });
            judge(&mut row);
            row.check
        };
        // Gigabytes by the port, and no frame.
        assert_eq!(judged(Some(0), Some(4 << 30), None).as_deref(), Some(BLIND));
        assert_eq!(judged(Some(0), None, Some(1_000)).as_deref(), Some(BLIND));
        // Some packets of management, frames, and frames that were not counted.
        assert_eq!(judged(Some(0), Some(500), None), None);
        assert_eq!(judged(Some(1), Some(4 << 30), None), None);
        assert_eq!(judged(None, Some(4 << 30), None), None);
    }

    #[test]
    fn only_ports_of_the_captured_interfaces_count() {
        let mut report = Report::default();
        for line in [
            "before=mlx5_0 1 port_rcv_data 0",
            "before=mlx5_9 1 port_rcv_data 0",
            "after=mlx5_0 1 port_rcv_data 1",
            "after=mlx5_9 1 port_rcv_data 1000000",
            "file=5 - capture.pcapng.zst",
            "exit=0",
        ] {
            report.take(line);
        }
        let port = |device: &str, interface: &str| RdmaPort {
            device: device.to_owned(),
            port: 1,
            interface: interface.to_owned(),
        };
        let mut row = row();
        take(
            &mut row,
            &report,
            &[port("mlx5_0", "ens1f0np0"), port("mlx5_9", "ib9")],
        );
        assert_eq!(row.counters.unwrap().received_bytes, Some(4));
        assert_eq!((row.state, row.error), (HostState::Captured, None));
    }
}
