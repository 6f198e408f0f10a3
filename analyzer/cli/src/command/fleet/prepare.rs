//! Before a capture: hosts are asked, the means are chosen, and what will go wrong is said.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hasher as _};
use std::time::Duration;

use anyhow::{Context, anyhow};
use roce_remote::clock::Offset;
use roce_remote::each;
use roce_remote::fleet::manifest::{HostRow, HostState};
use roce_remote::fleet::preflight::{By, Facts, How, PushedProgram, Question, Unable, ask, push};

use super::targets::Target;
use crate::output::messages;

/// Hosts that are asked at once.
const MAX_AT_ONCE: usize = 32;
/// Time for the copy of a program to a host.
const PUSH_PATIENCE: Duration = Duration::from_mins(5);
/// A clock that is off by more is worth a word.
const MAX_CLOCK_OFF_NS: i64 = 1_000_000_000;
/// Bytes of a frame that RoCE's headers may take: 58 up to the UDP header and its payload's begin, 20 of BTH, AETH and iCRC.
const MIN_SNAPLEN: u32 = 78;
/// Mean length of a frame, for an estimate of the disk: a path MTU of 1,024 bytes and its headers.
const MEAN_FRAME_BYTES: u64 = 1_082;
/// Bytes of a record in a file beside its packet.
const RECORD_BYTES: u64 = 32;

/// Wishes of a run that hosts have to meet.
#[derive(Clone, Debug, Default)]
pub(super) struct WantedRun {
    pub(super) interfaces: Vec<String>,
    pub(super) base: String,
    pub(super) by: By,
    pub(super) push: bool,
    pub(super) snaplen: u32,
    pub(super) duration: Option<Duration>,
    pub(super) max_bytes: Option<u64>,
}

/// A host that can capture.
#[derive(Clone, Debug)]
pub(super) struct Ready {
    pub(super) facts: Facts,
    pub(super) how: How,
    pub(super) interfaces: Vec<String>,
    pub(super) offset: Option<Offset>,
    pub(super) max_bytes: u64,
}

/// Asks all hosts. For each: its row, and what it is ready for. `goes_on` is asked while the program is pushed.
///
/// # Errors
/// This program cannot be read, to be pushed.
pub(super) fn prepare(
    targets: &[Target],
    wanted: &WantedRun,
    goes_on: &(dyn Fn() -> bool + Sync),
) -> anyhow::Result<Vec<(HostRow, Option<Ready>)>> {
    let own = std::env::current_exe().ok();
    let own = own.as_deref().and_then(|path| path.to_str()).unwrap_or_default();
    let pushed = wanted.push.then(program).transpose()?;
    let mut all = each(targets, MAX_AT_ONCE, |_, target| {
        let mut row = HostRow {
            name: target.name().to_owned(),
            ..HostRow::default()
        };
        match ready(target, wanted, own, pushed.as_ref(), &mut row, goes_on) {
            Ok(ready) => {
                row.state = HostState::Ready;
                row.how = Some(ready.how.name().to_owned());
                row.interfaces.clone_from(&ready.interfaces);
                (row, Some(ready))
            }
            Err(error) => {
                row.state = HostState::Failed;
                row.error = Some(format!("{error:#}"));
                (row, None)
            }
        }
    });
    compare(&mut all);
    for (row, _) in &all {
        for warning in &row.warnings {
            messages::warn(&row.name, warning);
        }
    }
    Ok(all)
}

/// Asks one host, and chooses the means.
fn ready(
    target: &Target,
    wanted: &WantedRun,
    own: &str,
    pushed: Option<&PushedProgram>,
    row: &mut HostRow,
    goes_on: &dyn Fn() -> bool,
) -> anyhow::Result<Ready> {
    let machine = &target.machine;
    let question = Question {
        base: &wanted.base,
        own: if machine.is_local() { own } else { "" },
        pushed: pushed.map_or("", |pushed| &*pushed.name),
    };
    let patience = machine.patience();
    let (mut facts, offset) = ask(machine, question, patience)?;
    note(row, &facts, offset);
    if let Some(problem) = &facts.problem {
        return Err(anyhow!("{problem}"));
    }
    let base = facts.base.clone().context("it names no folder for captures")?;
    if facts.net.is_none() {
        return Err(anyhow!(
            "it does not say its network namespace: /proc/self/ns/net cannot be read"
        ));
    }
    if let Some(busy) = &facts.busy {
        return Err(anyhow!("{}", taken(busy)));
    }
    let version = env!("CARGO_PKG_VERSION");
    let mut how = facts.choose(version, wanted.by);
    if let (Err(Unable::NoProgram { .. }) | Ok(How::Tcpdump), Some(program)) = (&how, pushed)
        && wanted.by != By::Tcpdump
    {
        let here = std::env::consts::ARCH;
        if facts.machine.as_deref() == Some(here) {
            match push(machine, &base, program, PUSH_PATIENCE, goes_on) {
                Ok(()) => {
                    facts = ask(machine, question, patience)?.0;
                    how = facts.choose(version, wanted.by);
                }
                Err(error) => row.warnings.push(format!("--push: {error}")),
            }
        } else {
            let there = facts.machine.as_deref().unwrap_or("unknown");
            row.warnings.push(format!(
                "--push: this program is for {here}, and the host is {there}"
            ));
        }
    }
    let how = how?;
    let named = if wanted.interfaces.is_empty() {
        &target.host.interfaces
    } else {
        &wanted.interfaces
    };
    let interfaces = facts.chosen(named).map_err(|reason| anyhow!("{reason}"))?;
    if !facts.tools.contains("sha256sum") {
        row.warnings
            .push("it has no sha256sum: files are compared by their size alone".to_owned());
    }
    warn_about_disk(row, &facts, &interfaces, wanted);
    let free = facts.free_bytes.map_or(u64::MAX, |free| free / 10 * 9);
    Ok(Ready {
        max_bytes: wanted.max_bytes.unwrap_or(free).max(1),
        facts,
        how,
        interfaces,
        offset,
    })
}

/// Fills in what a host says of itself.
fn note(row: &mut HostRow, facts: &Facts, offset: Option<Offset>) {
    row.hostname.clone_from(&facts.hostname);
    row.boot.clone_from(&facts.boot);
    row.release.clone_from(&facts.release);
    row.machine.clone_from(&facts.machine);
    row.sync.clone_from(&facts.sync);
    row.base.clone_from(&facts.base);
    row.net.clone_from(&facts.net);
    row.clock = offset;
    match offset {
        Some(offset) if offset.ahead_ns.abs() > MAX_CLOCK_OFF_NS + offset.bound_ns => {
            row.warnings
                .push(format!("its clock is {}", off(offset.ahead_ns)));
        }
        Some(_) => {}
        None => row
            .warnings
            .push("its clock could not be compared: it starts by its own time".to_owned()),
    }
}

/// How far a clock is off, in words.
fn off(ahead_ns: i64) -> String {
    let seconds = ahead_ns.unsigned_abs() / 1_000_000_000;
    let time = match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        _ => format!(
            "{:.1} h",
            std::time::Duration::from_secs(seconds).as_secs_f64() / 3600.0
        ),
    };
    format!("{time} {}", if ahead_ns > 0 { "fast" } else { "slow" })
}

/// A lock's process, start and controller in words.
pub(super) fn taken(busy: &str) -> String {
    let mut words = busy.split(' ');
    let (pid, since, who) = (words.next(), words.next(), words.next());
    let since = since
        .and_then(|since| since.parse::<i64>().ok())
        .and_then(|since| jiff::Timestamp::from_second(since).ok());
    let since = since.map_or_else(String::new, |since| format!(" since {since}"));
    format!(
        "another fleet capture runs there: by {}{since} (process {})",
        who.unwrap_or("an unknown user"),
        pid.unwrap_or("unknown")
    )
}

/// Warns if a capture at the link's full rate would not fit.
fn warn_about_disk(row: &mut HostRow, facts: &Facts, interfaces: &[String], wanted: &WantedRun) {
    let (Some(mbps), Some(free), Some(duration)) =
        (facts.speed_mbps(interfaces), facts.free_bytes, wanted.duration)
    else {
        return;
    };
    let bytes = estimate(mbps, wanted.snaplen, duration);
    if bytes > free {
        row.warnings.push(format!(
            "at the link's full rate the capture takes up to {} MB, and {} MB are free: it ends when 90 % of them are used",
            bytes / 1_000_000,
            free / 1_000_000
        ));
    }
}

/// Bytes of a capture at the full rate of a link, uncompressed.
fn estimate(mbps: u64, snaplen: u32, duration: Duration) -> u64 {
    let frames_per_second = mbps.saturating_mul(125_000) / MEAN_FRAME_BYTES;
    let frame_bytes = u64::from(snaplen).min(MEAN_FRAME_BYTES) + RECORD_BYTES;
    let milliseconds = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    frames_per_second
        .saturating_mul(frame_bytes)
        .saturating_mul(milliseconds)
        / 1_000
}

/// Compares the answers: one machine twice cannot capture twice, and two machines should not have one name.
fn compare(all: &mut [(HostRow, Option<Ready>)]) {
    let mut places: BTreeMap<(String, String), String> = BTreeMap::new();
    let mut names: BTreeMap<String, (String, Option<String>)> = BTreeMap::new();
    for (row, ready) in all {
        if ready.is_none() {
            continue;
        }
        if let (Some(boot), Some(net)) = (row.boot.clone(), row.net.clone()) {
            if let Some(first) = places.get(&(boot.clone(), net.clone())) {
                row.state = HostState::Failed;
                row.error = Some(format!(
                    "it is the same machine, in the same network namespace, as {first}"
                ));
                *ready = None;
                continue;
            }
            places.insert((boot, net), row.name.clone());
        }
        if let Some(hostname) = row.hostname.clone() {
            match names.get(&hostname) {
                Some((first, boot)) if *boot != row.boot => {
                    row.warnings.push(format!(
                        "it calls itself {hostname}, as {first} does: they are two machines"
                    ));
                }
                _ => drop(names.insert(hostname, (row.name.clone(), row.boot.clone()))),
            }
        }
    }
}

/// Warns if the headers and checksums of RoCE are cut off.
pub(super) fn warn_about_snaplen(snaplen: u32) {
    if snaplen < MIN_SNAPLEN {
        messages::warn(
            "--snaplen",
            &format!(
                "{snaplen} bytes cut RoCE's acknowledgements and checksums off: {MIN_SNAPLEN} is the least that keeps them"
            ),
        );
    }
}

/// This program, to be copied to hosts.
fn program() -> anyhow::Result<PushedProgram> {
    let path = std::env::current_exe().context("this program cannot be found, to be pushed")?;
    let bytes = std::fs::read(&path).with_context(|| format!("{} cannot be read", path.display()))?;
    let name = format!("roce-analyze-{}-{}", env!("CARGO_PKG_VERSION"), digest(&bytes));
    let bytes = bytes.into();
    Ok(PushedProgram { bytes, name })
}

/// The name of a program's content: sixteen hexadecimal digits. The host compares its size, and runs it.
fn digest(bytes: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    format!("{:016x}", hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_estimate_is_the_rate_of_frames_by_what_is_kept() {
        // 100 Gbit/s are 12.5 GB/s: 11,552,680 frames of 1,082 bytes; of each 160 bytes and 32 of the record, for 10 s.
        assert_eq!(
            estimate(100_000, 160, Duration::from_secs(10)),
            11_552_680 * 192 * 10
        );
        assert_eq!(estimate(0, 160, Duration::from_secs(10)), 0);
    }

    #[test]
    fn clocks_are_off_in_words() {
        assert_eq!(off(7_200_000_000_000), "2.0 h fast");
        assert_eq!(off(-1_500_000_000), "1 s slow");
        assert_eq!(off(600_000_000_000), "10 min fast");
        assert_eq!(
            taken("77 1000000000 root@ctl"),
            "another fleet capture runs there: by root@ctl since 2001-09-09T01:46:40Z (process 77)"
        );
    }

    fn host(name: &str, hostname: &str, boot: &str, net: &str) -> (HostRow, Option<Ready>) {
        let row = HostRow {
            name: name.to_owned(),
            hostname: Some(hostname.to_owned()),
            boot: Some(boot.to_owned()),
            net: Some(net.to_owned()),
            ..HostRow::default()
        };
        let ready = Ready {
            facts: Facts::default(),
            how: How::Tcpdump,
            interfaces: Vec::new(),
            offset: None,
            max_bytes: 1,
        };
        (row, Some(ready))
    }

    #[test]
    fn one_machine_twice_and_two_machines_of_one_name_are_said() {
        let mut all = [
            host("a", "gpu1", "boot1", "1"),
            host("b", "gpu1", "boot2", "1"),
            host("c", "gpu1", "boot1", "2"),
            host("d", "gpu9", "boot1", "1"),
        ];
        compare(&mut all);
        assert_eq!(
            all[1].0.warnings,
            ["it calls itself gpu1, as a does: they are two machines"]
        );
        assert!(
            all[2].0.warnings.is_empty() && all[2].1.is_some(),
            "another namespace"
        );
        assert!(all[3].1.is_none(), "the same machine");
        assert!(all[3].0.error.as_deref().unwrap().ends_with("as a"));
    }
}
