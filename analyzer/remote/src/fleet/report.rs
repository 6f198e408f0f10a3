//! Report of a capture at its end: files, counters, messages, exit code.

use std::collections::BTreeMap;

use super::fields::{field, is_plain, text};

/// Files of one capture.
const MAX_FILES: usize = 64;
/// Messages of one capture.
const MAX_MESSAGES: usize = 32;
/// Counters of one capture.
const MAX_COUNTERS: usize = 4_096;
/// Bytes of a name.
const MAX_NAME_BYTES: usize = 128;
/// Counters of data are in units of four bytes (InfiniBand specification, PortXmitData).
const DATA_UNIT_BYTES: u64 = 4;

/// A counter of an RDMA device's port.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Counter {
    /// The device.
    pub device: String,
    /// The port's number.
    pub port: u32,
    /// The name of its file.
    pub name: String,
}

/// A file on a host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RemoteFile {
    /// Its name below the run's folder.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// SHA-256 in hexadecimal; `None`: the host has no sha256sum.
    pub sha256: Option<String>,
}

/// The end of a capture.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// Process number of its script.
    pub pid: Option<u32>,
    /// It captures.
    pub captures: bool,
    /// Another capture runs there: its process, its start and its controller.
    pub busy: Option<String>,
    /// Why it did not start.
    pub problem: Option<String>,
    /// The run's folder is not there.
    pub is_missing: bool,
    /// Counters before the capture.
    pub before: BTreeMap<Counter, u64>,
    /// Counters behind it.
    pub after: BTreeMap<Counter, u64>,
    /// Why it ended, if not by its duration: `size`, `input`.
    pub stopped: Option<String>,
    /// Its files.
    pub files: Vec<RemoteFile>,
    /// The last lines of its messages.
    pub messages: Vec<String>,
    /// Processor time of the capture: user and system, as the shell's `times` prints it.
    pub cpu: Option<String>,
    /// Its exit code.
    pub exit_code: Option<i32>,
    /// The script of a look has ended.
    pub is_complete: bool,
}

/// How far the counters of some interfaces rose.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Rise {
    /// Bytes received, by `port_rcv_data`; `None`: no such counter.
    pub received_bytes: Option<u64>,
    /// Bytes sent, by `port_xmit_data`.
    pub sent_bytes: Option<u64>,
    /// Packets received and sent, by the counters of Soft-RoCE.
    pub packets: Option<u64>,
}

impl Report {
    /// Takes one line.
    pub fn take(&mut self, line: &str) {
        let Some((key, value)) = field(line) else { return };
        match key {
            "pid" => self.pid = value.parse().ok(),
            "captures" => self.captures = true,
            "busy" => self.busy = text(value),
            "problem" => self.problem = text(value),
            "missing" => self.is_missing = true,
            "before" if self.before.len() < MAX_COUNTERS => self.before.extend(counter(value)),
            "after" if self.after.len() < MAX_COUNTERS => self.after.extend(counter(value)),
            "stopped" => self.stopped = text(value),
            "file" if self.files.len() < MAX_FILES => {
                // The report comes once, and twice where a run is looked for: the last one counts.
                if let Some(file) = file(value) {
                    self.files.retain(|known| known.name != file.name);
                    self.files.push(file);
                }
            }
            "message" if self.messages.len() < MAX_MESSAGES => self.messages.push(value.to_owned()),
            "cpu" => self.cpu = text(value),
            "exit" => self.exit_code = value.parse().ok(),
            "end" => self.is_complete = true,
            _ => {}
        }
    }

    /// Why the capture failed: the last error among its messages.
    pub fn reason(&self) -> Option<String> {
        let errors = self.messages.iter().rev();
        let mut errors = errors.filter(|line| line.starts_with("error") || line.starts_with("tcpdump: "));
        errors.next().or(self.messages.last()).cloned()
    }

    /// Frames that tcpdump's messages say were dropped.
    pub fn dropped(&self) -> Option<u64> {
        let of = |line: &String| {
            line.strip_suffix(" packets dropped by kernel")?
                .trim()
                .parse::<u64>()
                .ok()
        };
        let found: Vec<u64> = self.messages.iter().filter_map(of).collect();
        (!found.is_empty()).then(|| {
            found
                .iter()
                .fold(0_u64, |sum, dropped| sum.saturating_add(*dropped))
        })
    }

    /// How far counters of ports rose that `is_own` takes. One that fell was set back: what it has since then counts.
    pub fn rise(&self, is_own: impl Fn(&Counter) -> bool) -> Rise {
        let mut rise = Rise::default();
        for (counter, after) in self.after.iter().filter(|(counter, _)| is_own(counter)) {
            let Some(before) = self.before.get(counter) else {
                continue;
            };
            let change = after.checked_sub(*before).unwrap_or(*after);
            let (sum, unit) = match counter.name.as_str() {
                "port_rcv_data" => (&mut rise.received_bytes, DATA_UNIT_BYTES),
                "port_xmit_data" => (&mut rise.sent_bytes, DATA_UNIT_BYTES),
                "rcvd_pkts" | "sent_pkts" => (&mut rise.packets, 1),
                _ => continue,
            };
            *sum = Some(sum.unwrap_or(0).saturating_add(change.saturating_mul(unit)));
        }
        rise
    }
}

impl Rise {
    /// Bytes that are a few packets of management: a capture may miss those at its edges.
    pub const MIN_BYTES: u64 = 64 << 10;
    /// As many packets are a few of management, too.
    pub const MIN_PACKETS: u64 = 64;

    /// True if RDMA traffic passed that a capture must have seen.
    pub fn is_traffic(&self) -> bool {
        let bytes = self.received_bytes.unwrap_or(0).max(self.sent_bytes.unwrap_or(0));
        bytes >= Self::MIN_BYTES || self.packets.unwrap_or(0) >= Self::MIN_PACKETS
    }
}

fn counter(value: &str) -> Option<(Counter, u64)> {
    let mut words = value.split(' ');
    let counter = Counter {
        device: words.next().filter(|word| is_plain(word))?.to_owned(),
        port: words.next()?.parse().ok()?,
        name: words.next()?.to_owned(),
    };
    Some((counter, words.next()?.parse().ok()?))
}

fn file(value: &str) -> Option<RemoteFile> {
    let mut words = value.split(' ');
    let bytes = words.next()?.parse().ok()?;
    let hash = words.next()?;
    let name = words.next().filter(|name| is_file_name(name))?;
    let is_hash = hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    Some(RemoteFile {
        name: name.to_owned(),
        bytes,
        sha256: is_hash.then(|| hash.to_ascii_lowercase()),
    })
}

/// True for names of files that scripts give: plain words, with a known ending, nowhere upwards.
pub(crate) fn is_file_name(name: &str) -> bool {
    is_plain(name)
        && name.len() <= MAX_NAME_BYTES
        && !name.starts_with(['/', '-', '.'])
        && !name.split('/').any(|part| part == ".." || part.is_empty())
        && ending(name).is_some()
}

/// The ending of a capture's name: its format and compression.
pub fn ending(name: &str) -> Option<&'static str> {
    let known = ["pcapng.zst", "pcapng", "pcap.zst", "pcap.gz", "pcap"];
    known.into_iter().find(|ending| {
        let stem = name.strip_suffix(ending);
        stem.is_some_and(|stem| stem.len() > 1 && stem.ends_with('.'))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn report(lines: &[&str]) -> Report {
        let mut report = Report::default();
        for line in lines {
            report.take(line);
        }
        report
    }

    #[test]
    fn reports_have_files_messages_and_counters() {
        let hash = "ab".repeat(32);
        let report = report(&[
            "pid=77",
            "captures=1",
            "before=mlx5_0 1 port_rcv_data 1000",
            "before=mlx5_0 1 port_xmit_data 5",
            "before=mlx5_1 1 port_rcv_data 0",
            "after=mlx5_0 1 port_rcv_data 26000",
            "after=mlx5_0 1 port_xmit_data 5",
            "after=mlx5_1 1 port_rcv_data 1000000",
            &format!("file=24 {hash} capture.pcapng.zst"),
            "file=24 - tcpdump.0.pcap.gz",
            "message=4112 packets dropped by kernel",
            "message=tcpdump: eth0: No such device exists",
            "message=end of messages",
            "exit=1",
        ]);
        // 25,000 units of four bytes.
        let rise = report.rise(|counter| counter.device == "mlx5_0");
        assert_eq!((rise.received_bytes, rise.sent_bytes), (Some(100_000), Some(0)));
        assert!(rise.is_traffic());
        assert_eq!(report.files[0].sha256.as_deref(), Some(&*hash));
        assert_eq!(report.files[1].sha256, None);
        assert_eq!(report.dropped(), Some(4_112));
        assert_eq!(
            report.reason().as_deref(),
            Some("tcpdump: eth0: No such device exists")
        );
        assert_eq!(report.exit_code, Some(1));
    }

    #[test]
    fn counters_that_are_absent_are_not_zero() {
        let rise = report(&["after=rxe0 1 sent_pkts 10"]).rise(|_| true);
        assert_eq!(rise, Rise::default());
        assert!(!rise.is_traffic());
        let packets = report(&["before=rxe0 1 sent_pkts 10", "after=rxe0 1 sent_pkts 110"]).rise(|_| true);
        assert_eq!(packets.packets, Some(100));
        assert!(packets.is_traffic());
        // Set back in between: 70 since then.
        let set_back = report(&["before=rxe0 1 sent_pkts 500", "after=rxe0 1 sent_pkts 70"]).rise(|_| true);
        assert_eq!(set_back.packets, Some(70));
    }

    #[test]
    fn only_files_of_captures_are_files() {
        for good in [
            "capture.pcapng.zst",
            "live/recording.pcapng.zst",
            "tcpdump.3.pcap",
        ] {
            assert!(is_file_name(good), "{good}");
        }
        for wrong in [
            "/etc/a.pcap",
            "../a.pcap",
            "a/../b.pcap",
            "a b.pcap",
            "-a.pcap",
            ".pcap",
            "a.txt",
            "a//b.pcap",
        ] {
            assert!(!is_file_name(wrong), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn any_report_is_tolerated(lines in proptest::collection::vec(
            "(before|after|file|message|exit|pid|stopped)=[ -~]{0,60}|\\PC{0,40}", 0..80,
        )) {
            let mut report = Report::default();
            for line in &lines {
                report.take(line);
            }
            prop_assert!(report.files.iter().all(|file| is_file_name(&file.name)));
            prop_assert!(report.messages.len() <= MAX_MESSAGES);
        }
    }
}
