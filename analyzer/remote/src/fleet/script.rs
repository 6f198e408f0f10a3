//! The scripts that capture, look and clean up on a host, from what is wanted there.

use std::time::Duration;

use super::preflight::How;
use super::shell::{COMMON, head, set};
use crate::machine::{RemoteError, quoted};

/// Filter of RoCE, MRC, UET and pauses: UDP port 4791 is that of RoCEv2 and MRC, 4971 MRC's other one, 4793 UET's; 0x8808 is the type of
/// MAC control frames. `vlan` moves the offsets of all that follows it, so it is last (pcap-filter(7)).
pub const ROCE_FILTER: &str = "udp port 4791 or udp port 4793 or udp port 4971 or ether proto 0x8808 or \
                               (vlan and (udp port 4791 or udp port 4793 or udp port 4971))";
/// Silence of its standard input that ends a capture: the controller writes a line each second.
pub const SILENCE: Duration = Duration::from_secs(15);
/// Period of those lines.
pub const BEAT: Duration = Duration::from_secs(1);
/// A capture by tcpdump without a duration ends after a day, whatever happens.
const MAX_SECONDS: u64 = 86_400;

/// Names of a run on a host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostRunNames {
    /// The folder for captures.
    pub base: String,
    /// Number of the network namespace, which the lock is for.
    pub net: String,
    /// The run's identifier: 16 hexadecimal digits.
    pub id: String,
}

impl HostRunNames {
    /// The run's own folder.
    pub fn folder(&self) -> String {
        format!("{}/{}-{}", self.base, self.id, self.net)
    }
}

/// A capture on a host.
#[derive(Clone, Debug)]
pub struct Capture {
    /// Where its files are.
    pub place: HostRunNames,
    /// Name and user of the controller, for the lock.
    pub who: String,
    /// The host's name in results.
    pub name: String,
    /// The means.
    pub how: How,
    /// Its interfaces.
    pub interfaces: Vec<String>,
    /// Bytes kept of each packet.
    pub snaplen: u32,
    /// Start, in nanoseconds since 1970 by the host's clock.
    pub start_ns: i64,
    /// Time from the start to the end; `None`: it ends with its standard input.
    pub duration: Option<Duration>,
    /// Size of its files at which it ends.
    pub max_bytes: u64,
    /// Filter of libpcap; `None`: all frames.
    pub filter: Option<String>,
    /// Processors that it may use, as `taskset -c` takes them.
    pub cpus: Option<String>,
    /// Keep counters of the host as samples.
    pub has_counters: bool,
    /// Follow queue pairs by the probe.
    pub has_probe: bool,
    /// Read GPUs.
    pub has_gpus: bool,
}

impl Capture {
    /// True if packets and samples are in one recording.
    pub fn is_recording(&self) -> bool {
        self.has_counters || self.has_probe || self.has_gpus
    }

    /// The whole script.
    ///
    /// # Errors
    /// If a text has a NUL character.
    pub fn script(&self) -> Result<String, RemoteError> {
        let folder = self.place.folder();
        let mut script = head(&[
            ("base", &self.place.base),
            ("net", &self.place.net),
            ("id", &self.place.id),
            ("run", &folder),
            ("who", &self.who),
        ])?;
        script += COMMON;
        script += include_str!("begin.sh");
        match &self.how {
            How::Live { program } => {
                let words = self.live(program, &folder);
                script += &set(&words)?;
                script += include_str!("live.sh");
            }
            How::Tcpdump => {
                script += &self.tcpdump()?;
                script += include_str!("tcpdump.sh");
            }
        }
        script += include_str!("end.sh");
        Ok(script)
    }

    /// The file that shows that it captures, and the command of `roce-analyze live`.
    fn live(&self, program: &str, folder: &str) -> Vec<String> {
        let file = if self.is_recording() {
            format!("{folder}/live/recording.pcapng.zst")
        } else {
            format!("{folder}/capture.pcapng.zst")
        };
        let mut words = vec![file.clone()];
        if let Some(cpus) = &self.cpus {
            words.extend(["taskset", "-c", cpus].map(str::to_owned));
        }
        words.extend([program, "live", "--no-tui", "--format", "none"].map(str::to_owned));
        if self.is_recording() {
            words.extend([
                "--output".to_owned(),
                format!("{folder}/live"),
                "--record".to_owned(),
            ]);
        } else {
            words.extend(["--write".to_owned(), file]);
        }
        words.extend(["--host-name".to_owned(), self.name.clone()]);
        words.extend(["--snaplen".to_owned(), self.snaplen.to_string()]);
        words.extend(["--from".to_owned(), seconds(self.start_ns)]);
        words.push(format!("--until-stdin-closes={}s", SILENCE.as_secs()));
        words.extend(["--max-size".to_owned(), self.max_bytes.max(1).to_string()]);
        if let Some(filter) = &self.filter {
            words.extend(["--filter".to_owned(), filter.clone()]);
        }
        if let Some(duration) = self.duration {
            words.extend([
                "--duration".to_owned(),
                format!("{}ms", duration.as_millis().max(10)),
            ]);
        }
        for (wanted, option) in [(self.has_probe, "--probe"), (self.has_gpus, "--gpus")] {
            if wanted {
                words.push(option.to_owned());
            }
        }
        for interface in &self.interfaces {
            words.extend(["--interface".to_owned(), interface.clone()]);
        }
        words
    }

    /// Variables of the script for tcpdump, and the interfaces as its words.
    fn tcpdump(&self) -> Result<String, RemoteError> {
        let start = self.start_ns.div_euclid(1_000_000_000);
        let seconds = self.duration.map(|duration| duration.as_secs_f64().ceil());
        let until = seconds.map_or_else(String::new, |seconds| {
            // Durations of the command are days at most: no digits are lost.
            format!("{}", start.saturating_add(whole(seconds)))
        });
        let limit = seconds.map_or(MAX_SECONDS, |seconds| {
            whole(seconds).unsigned_abs().saturating_add(5)
        });
        let pinned = match &self.cpus {
            Some(cpus) => quoted(["taskset", "-c", cpus])?,
            None => String::new(),
        };
        let mut text = head(&[
            ("start", &start.to_string()),
            ("until", &until),
            ("limit", &limit.to_string()),
            ("silence", &SILENCE.as_secs().to_string()),
            ("snaplen", &self.snaplen.to_string()),
            ("max_bytes", &self.max_bytes.to_string()),
            ("filter", self.filter.as_deref().unwrap_or_default()),
            ("pinned", &pinned),
        ])?;
        text += &set(&self.interfaces)?;
        Ok(text)
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "rounded up before, and days at most"
)]
fn whole(seconds: f64) -> i64 {
    seconds as i64
}

/// Seconds since 1970 with nine digits of a fraction.
fn seconds(ns: i64) -> String {
    let ns = ns.max(0);
    format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}

/// A script about a run: `look`, or `remove` with the programs that were pushed.
fn about(place: &HostRunNames, all: bool, script: &str) -> Result<String, RemoteError> {
    let head = head(&[
        ("base", &place.base),
        ("net", &place.net),
        ("id", &place.id),
        ("run", &place.folder()),
        ("all", if all { "1" } else { "" }),
    ])?;
    Ok([&head, COMMON, script].concat())
}

/// The script that says what a run has left.
///
/// # Errors
/// If a text has a NUL character.
pub fn look(place: &HostRunNames) -> Result<String, RemoteError> {
    about(place, false, include_str!("look.sh"))
}

/// The script that removes what a run has left; with `all` also programs that were pushed.
///
/// # Errors
/// If a text has a NUL character.
pub fn remove(place: &HostRunNames, all: bool) -> Result<String, RemoteError> {
    about(place, all, include_str!("remove.sh"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capture(how: How) -> Capture {
        Capture {
            place: HostRunNames {
                base: "/var/tmp/roce-fleet-0".to_owned(),
                net: "4026531840".to_owned(),
                id: "0123456789abcdef".to_owned(),
            },
            who: "root@here".to_owned(),
            name: "gpu1".to_owned(),
            how,
            interfaces: vec!["eth0".to_owned(), "eth1".to_owned()],
            snaplen: 160,
            start_ns: 1_795_000_000_500_000_000,
            duration: Some(Duration::from_millis(2_500)),
            max_bytes: 1_000,
            filter: Some(ROCE_FILTER.to_owned()),
            cpus: None,
            has_counters: false,
            has_probe: false,
            has_gpus: false,
        }
    }

    /// A shell reads the whole script, and the words are those of the options.
    #[track_caller]
    fn is_a_script(script: &str) {
        let checked = std::process::Command::new("sh")
            .args(["-n", "-c", script])
            .output()
            .unwrap();
        assert!(
            checked.status.success(),
            "{}",
            String::from_utf8_lossy(&checked.stderr)
        );
    }

    #[test]
    fn scripts_are_shell() {
        let live = capture(How::Live {
            program: "/usr/bin/roce-analyze".to_owned(),
        });
        let script = live.script().unwrap();
        is_a_script(&script);
        assert!(script.contains("--from 1795000000.500000000 "), "{script}");
        assert!(script.contains("--until-stdin-closes=15s"), "{script}");
        assert!(script.contains("--duration 2500ms"), "{script}");
        let tcpdump = capture(How::Tcpdump).script().unwrap();
        is_a_script(&tcpdump);
        // 2.5 s are three whole seconds, and five more for the limit.
        assert!(
            tcpdump.contains("until=1795000003\n") && tcpdump.contains("limit=8\n"),
            "{tcpdump}"
        );
        is_a_script(&look(&live.place).unwrap());
        is_a_script(&remove(&live.place, true).unwrap());
    }

    #[test]
    fn samples_need_a_recording() {
        let mut live = capture(How::Live {
            program: "/usr/bin/roce-analyze".to_owned(),
        });
        live.has_counters = true;
        let script = live.script().unwrap();
        assert!(script.contains("/live --record"), "{script}");
        assert!(!script.contains("--write"), "{script}");
    }
}
