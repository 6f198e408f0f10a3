//! NVIDIA Cumulus Linux: NVUE's JSON, `ethtool -S` of switchd's ports, the kernel's files of the ports, and lldpd.
//!
//! `nv show interface PORT counters qos -o json` has `egress-queue-stats`, `pfc-stats` and `ingress-buffer-stats` by number: the columns
//! are those of NVIDIA's documentation, the form is that of public programs that read it. Where NVUE puts them below (`operational`,
//! the interface) differs, so they are looked for. The tables of the same command round what is larger than a kilobyte, and print frames
//! with a unit of bytes: of recordings, the numbers that are exact are read.
//! Names of `ethtool -S` are those of NVIDIA's NetQ (`HwIfInPfc3Pkt`); `HwIfInPfc3PauseFrames` of other releases is unverified.

mod ethtool;
mod nvue;
mod ports;

use std::collections::{BTreeMap, BTreeSet};

use roce_model::Counter;

use super::answer::{self, object_of};
use super::netstat;
use crate::device::{Answers, Question, Reading, file_name};

const UPTIME: &str = "cat /proc/uptime";
const RELEASE: &str = "cat /etc/lsb-release";
const SYSTEM: &str = "nv show platform -o json";
const LLDP: &str = "lldpcli show neighbors -f json";
/// The kernel's files of all ports, each line with its path.
pub(crate) const PORTS: &str = "grep -s . /sys/class/net/*/carrier /sys/class/net/*/speed /sys/class/net/*/mtu /sys/class/net/*/statistics/rx_bytes /sys/class/net/*/statistics/tx_bytes";
/// Start and end of the command for the counters of one port.
const QOS: (&str, &str) = ("nv show interface ", " counters qos -o json");
/// Start and end of the command for packets that were trimmed on their way out of one port, by traffic class (from 5.15 on). Its table is
/// documented, its JSON is not.
const TRIMS: (&str, &str) = ("nv show interface ", " counters packet-trim");
/// Start and ends of the commands of recordings for one port: tables of queues and PFC, and the kernel's statistics.
const QOS_TABLES: (&str, &str) = ("nv show interface ", " counters qos");
const STATISTICS: [(&str, &str); 4] = [
    ("nv show interface ", " link stats -o json"),
    ("nv show interface ", " link stats"),
    ("nv show interface ", " -o json"),
    ("nv show interface ", ""),
];
/// The table of all interfaces, in recordings.
const NETSTAT: &str = "cl-netstat";
/// Start of the command for the statistics of one port.
const ETHTOOL: &str = "ethtool -S ";

/// Loop over the ports whose link is up: one section for each command and port. NVUE takes about a second for each, so that it is asked for
/// trimmed packets only where its configuration has them.
const LOOP: &str = "for dir in /sys/class/net/swp*; do port=${dir##*/}; [ \"$(cat $dir/carrier 2>/dev/null)\" = 1 ] || continue; \
    echo; echo \"== nv show interface $port counters qos -o json\"; nv show interface $port counters qos -o json 2>&1; \
    grep -qs packet-trim /etc/nvue.d/startup.yaml && { echo; echo \"== nv show interface $port counters packet-trim\"; nv show interface $port counters packet-trim 2>&1; }; \
    echo; echo \"== ethtool -S $port\"; ethtool -S $port 2>&1; done";

/// Commands: one script at the start and once an hour, one at each reading.
pub(super) fn questions(_known: &Answers) -> Vec<Question> {
    let slow = answer::script(&[RELEASE, SYSTEM, LLDP]);
    let each = answer::script(&[UPTIME, PORTS]);
    vec![
        Question {
            is_slow: true,
            ..Question::script(&slow)
        },
        Question::script(&format!("{each}; {LOOP}")),
    ]
}

/// Adds what the answers say. Statistics of `ethtool` are read for the counters of a port that NVUE did not give.
pub(super) fn read(answers: &Answers, reading: &mut Reading) {
    if let Some(text) = answers.get(RELEASE) {
        ports::release(text, reading);
    }
    if let Some(text) = answers.get(SYSTEM)
        && let Some(platform) = object_of(text, SYSTEM, reading)
    {
        nvue::platform(&platform, reading);
    }
    if let Some(seconds) = answers.get(UPTIME).and_then(answer::uptime) {
        reading.push(Counter::SwitchUptime, "", seconds);
    }
    if let Some(text) = answers.get(LLDP)
        && let Some(neighbors) = object_of(text, LLDP, reading)
    {
        ports::neighbors(&neighbors, reading);
    }
    if let Some(text) = answers.get(PORTS) {
        answer::read_table(text, PORTS, reading, |text, reading| {
            ports::files(text, reading);
            true
        });
    }
    for (name, text) in of_ports(answers, QOS.0, QOS.1) {
        let command = format!("{}{name}{}", QOS.0, QOS.1);
        if let Some(document) = object_of(text, &command, reading) {
            nvue::qos(name, &document, reading);
        }
    }
    for (name, text) in of_ports(answers, TRIMS.0, TRIMS.1) {
        nvue::trims(name, text, reading);
    }
    add(reading, |fresh| {
        for (name, text) in of_ports(answers, ETHTOOL, "") {
            let command = format!("{ETHTOOL}{name}");
            answer::read_table(text, &command, fresh, |text, fresh| {
                ethtool::read(name, text, fresh)
            });
        }
    });
    add(reading, |fresh| {
        for (name, text) in of_ports(answers, QOS_TABLES.0, QOS_TABLES.1) {
            nvue::qos_tables(name, text, fresh);
        }
    });
    add(reading, |fresh| {
        for (before, behind) in STATISTICS {
            // The last form fits the names of the other commands' files, too.
            let all = of_ports(answers, before, behind).into_iter();
            for (name, text) in all.filter(|(name, _)| !name.contains([' ', '_'])) {
                nvue::statistics(name, text, fresh);
            }
        }
    });
    if let Some(text) = answers.get(NETSTAT) {
        add(reading, |fresh| {
            answer::read_table(text, NETSTAT, fresh, netstat::read);
        });
    }
}

/// Adds what `read` finds, without counters of an interface that an earlier answer gave.
fn add(reading: &mut Reading, read: impl FnOnce(&mut Reading)) {
    let mut fresh = Reading::new(reading.source, &reading.node, reading.time);
    read(&mut fresh);
    let known: BTreeSet<_> = reading
        .samples
        .iter()
        .map(|sample| (sample.counter, sample.object.clone()))
        .collect();
    let is_new = |sample: &roce_model::Sample| !known.contains(&(sample.counter, sample.object.clone()));
    reading.problems.append(&mut fresh.problems);
    reading.samples.extend(fresh.samples.into_iter().filter(is_new));
}

/// The answers to a command about one port, by the port's name. Those of a recorded folder have the names of their files: the script
/// does not name the ports.
fn of_ports<'a>(answers: &'a Answers, before: &str, behind: &str) -> BTreeMap<&'a str, &'a str> {
    let ends = [
        (before.to_owned(), behind.to_owned()),
        (file_name(before), file_name(behind)),
    ];
    let port = |command: &'a str| {
        let mut names = ends.iter().filter_map(|(before, behind)| {
            let rest = command.strip_prefix(before.as_str())?;
            rest.strip_suffix(behind.as_str())
        });
        names.next()
    };
    answers
        .iter()
        .filter_map(|(command, text)| Some((port(command)?, text)))
        .collect()
}

#[cfg(test)]
mod tests;
