//! The counters that a host keeps by itself, polled: those of RDMA devices (sysfs) and, of network interfaces, what tells of pauses,
//! congestion and discards (ethtool). What has moved becomes an event.
//!
//! Names are the kernel's: `1/hw_counters/out_of_sequence` is a file below the device's `ports`, `hw_counters/...` one below the
//! device itself, and the statistics of an interface have the names that its driver gives them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use roce_model::{CounterUnit, HostChange, HostEvent, Nanos};

use crate::ethtool::Ethtool;

/// Folder in which Linux shows its devices.
const SYSFS: &str = "/sys";

/// Files among the counters that are none: how long the kernel keeps the values of `hw_counters`, in ms.
const SETTINGS: [&str; 1] = ["lifespan"];

/// Counters of data are in words of four bytes, whatever the link (IBTA 16.1.3.5, PortXmitData).
const WORD_BYTES: u64 = 4;

/// Statistics of interfaces that are of interest: parts of their names.
const TELLING: [&str; 7] = ["pause", "pfc", "discard", "drop", "out_of_buffer", "ecn", "cnp"];

/// Polls counters. The first poll gives the base; only changes from there are reported.
pub struct Counters {
    sysfs: PathBuf,
    interfaces: Vec<String>,
    /// Opened with it, because a process that has given up its rights opens no socket; `None`: the system gives none.
    ethtool: Option<Ethtool>,
    /// By device and name.
    last: HashMap<(Arc<str>, Arc<str>), u64>,
}

/// One reading.
struct Reading {
    device: Arc<str>,
    name: Arc<str>,
    value: u64,
    unit: CounterUnit,
}

impl Counters {
    /// Of all RDMA devices, their network interfaces, and these others.
    pub fn new(interfaces: &[String]) -> Self {
        Self::below(Path::new(SYSFS), interfaces)
    }

    /// Counters of RDMA devices in another folder than /sys: for tests.
    pub fn below(sysfs: &Path, interfaces: &[String]) -> Self {
        Self {
            sysfs: sysfs.to_owned(),
            interfaces: interfaces.to_vec(),
            ethtool: Ethtool::open().ok(),
            last: HashMap::new(),
        }
    }

    /// Reads them all and adds an event for each that has moved since the poll before; `time` is now, on the capture's clock.
    ///
    /// What cannot be read is left out: devices come and go, and drivers show files that they cannot fill. A counter that falls
    /// was set back, by the driver or by a person: it starts again.
    pub fn poll(&mut self, time: Nanos, into: &mut Vec<HostEvent>) {
        let first = self.last.is_empty();
        for reading in self.readings() {
            let Reading {
                device,
                name,
                value,
                unit,
            } = reading;
            let before = self.last.insert((Arc::clone(&device), Arc::clone(&name)), value);
            let change = match before {
                Some(before) => value.checked_sub(before).unwrap_or(value),
                // A device that has come meanwhile counts from zero.
                None if !first => value,
                None => 0,
            };
            if change > 0 {
                into.push(HostEvent {
                    time,
                    device: Some(device),
                    process: None,
                    what: HostChange::Counter {
                        name,
                        change,
                        value,
                        unit,
                    },
                });
            }
        }
    }

    /// The devices and names that were found, in no particular order.
    pub fn names(&self) -> impl Iterator<Item = (&str, &str)> {
        self.last.keys().map(|(device, name)| (&**device, &**name))
    }

    /// All counters, in order of device and name.
    fn readings(&mut self) -> Vec<Reading> {
        let mut readings = Vec::new();
        let mut interfaces = self.interfaces.clone();
        let devices = self.sysfs.join("class/infiniband");
        for device in names(&devices) {
            let name: Arc<str> = device.as_str().into();
            let folder = devices.join(&device);
            read_folder(&name, &folder, "hw_counters", &mut readings);
            let ports = folder.join("ports");
            for port in names(&ports) {
                for kind in ["counters", "hw_counters"] {
                    read_folder(&name, &ports, &format!("{port}/{kind}"), &mut readings);
                }
                // The interface of the port's first GID.
                let interface = ports.join(&port).join("gid_attrs/ndevs/0");
                if let Ok(interface) = std::fs::read_to_string(interface) {
                    interfaces.push(interface.trim().to_owned());
                }
            }
        }
        interfaces.sort();
        interfaces.dedup();
        for interface in interfaces {
            let device: Arc<str> = interface.as_str().into();
            let ethtool = self.ethtool.as_mut();
            let statistics = ethtool.and_then(|ethtool| ethtool.statistics(&interface).ok());
            let telling = statistics
                .unwrap_or_default()
                .into_iter()
                .filter(|(name, _)| TELLING.iter().any(|part| name.contains(part)));
            readings.extend(telling.map(|(name, value)| Reading {
                device: Arc::clone(&device),
                unit: unit_of_statistic(&name),
                name: name.into(),
                value,
            }));
        }
        readings
    }
}

/// The names in a folder, in order; none when it cannot be read.
fn names(folder: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    names.sort();
    names
}

/// The counters in `below/path`, named by that path.
fn read_folder(device: &Arc<str>, below: &Path, path: &str, into: &mut Vec<Reading>) {
    let folder = below.join(path);
    for file in names(&folder) {
        if SETTINGS.contains(&file.as_str()) {
            continue;
        }
        // Some are there but say "N/A", or an error.
        let Ok(text) = std::fs::read_to_string(folder.join(&file)) else {
            continue;
        };
        let Ok(value) = text.trim().parse::<u64>() else {
            continue;
        };
        let is_data = matches!(file.as_str(), "port_xmit_data" | "port_rcv_data");
        let (value, unit) = if is_data {
            (value.saturating_mul(WORD_BYTES), CounterUnit::Bytes)
        } else {
            (value, CounterUnit::Count)
        };
        into.push(Reading {
            device: Arc::clone(device),
            name: format!("{path}/{file}").into(),
            value,
            unit,
        });
    }
}

/// mlx5 counts how long it was paused in microseconds (`rx_prio3_pause_duration`: Linux Documentation, ethernet/mellanox/mlx5/counters).
fn unit_of_statistic(name: &str) -> CounterUnit {
    if name.ends_with("pause_duration") {
        CounterUnit::Microseconds
    } else if name.ends_with("_bytes") {
        CounterUnit::Bytes
    } else {
        CounterUnit::Count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A device as sysfs shows it, with what drivers put there.
    fn device() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (path, value) in [
            ("ports/1/counters/port_xmit_data", "1000\n"),
            ("ports/1/counters/port_rcv_errors", "0\n"),
            ("ports/1/counters/VL15_dropped", "N/A (no PMA)\n"),
            ("ports/1/hw_counters/out_of_sequence", "7\n"),
            ("ports/1/hw_counters/lifespan", "10\n"),
            ("hw_counters/duplicate_request", "3\n"),
        ] {
            set(folder.path(), path, value);
        }
        folder
    }

    fn set(folder: &Path, path: &str, value: &str) {
        let path = folder.join("class/infiniband/mlx5_0").join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, value).unwrap();
    }

    fn moved(counters: &mut Counters, at: u64) -> Vec<(String, u64, u64, CounterUnit)> {
        let mut events = Vec::new();
        counters.poll(Nanos(at), &mut events);
        let rows = events.into_iter().map(|event| {
            assert_eq!((event.time, event.device.as_deref()), (Nanos(at), Some("mlx5_0")));
            let HostChange::Counter {
                name,
                change,
                value,
                unit,
            } = event.what
            else {
                panic!("{:?}", event.what)
            };
            (name.to_string(), change, value, unit)
        });
        rows.collect()
    }

    #[test]
    fn a_change_is_reported_once() {
        let folder = device();
        let mut counters = Counters::below(folder.path(), &[]);
        assert_eq!(moved(&mut counters, 1), [], "what was there before is no event");
        assert_eq!(moved(&mut counters, 2), []);
        set(folder.path(), "ports/1/counters/port_xmit_data", "1250\n");
        set(folder.path(), "ports/1/hw_counters/out_of_sequence", "9\n");
        set(folder.path(), "ports/1/hw_counters/lifespan", "20\n");
        assert_eq!(
            moved(&mut counters, 3),
            [
                // 250 words of four bytes; 1,250 of them.
                (
                    "1/counters/port_xmit_data".to_owned(),
                    1_000,
                    5_000,
                    CounterUnit::Bytes
                ),
                (
                    "1/hw_counters/out_of_sequence".to_owned(),
                    2,
                    9,
                    CounterUnit::Count
                ),
            ]
        );
        assert_eq!(moved(&mut counters, 4), []);
    }

    #[test]
    fn counters_that_are_set_back_or_go_do_no_harm() {
        let folder = device();
        let mut counters = Counters::below(folder.path(), &[]);
        moved(&mut counters, 1);
        set(folder.path(), "hw_counters/duplicate_request", "1\n");
        assert_eq!(
            moved(&mut counters, 2),
            [(
                "hw_counters/duplicate_request".to_owned(),
                1,
                1,
                CounterUnit::Count
            )],
            "it was set back to zero and has counted one since"
        );
        std::fs::remove_dir_all(folder.path().join("class")).unwrap();
        assert_eq!(moved(&mut counters, 3), []);
        set(folder.path(), "hw_counters/new", "5\n");
        assert_eq!(
            moved(&mut counters, 4),
            [("hw_counters/new".to_owned(), 5, 5, CounterUnit::Count)]
        );
    }

    #[test]
    fn names_say_the_unit() {
        assert_eq!(
            unit_of_statistic("rx_prio3_pause_duration"),
            CounterUnit::Microseconds
        );
        assert_eq!(unit_of_statistic("rx_prio3_pause"), CounterUnit::Count);
        assert_eq!(unit_of_statistic("rx_discards_phy"), CounterUnit::Count);
    }
}
