//! The counters that a host keeps by itself, polled: those of RDMA devices (sysfs) and, of network interfaces, what tells of pauses,
//! congestion and discards (ethtool). What has moved becomes an event.
//!
//! Names are the kernel's: `1/hw_counters/out_of_sequence` is a file below the device's `ports`, `hw_counters/...` one below the
//! device itself, and the statistics of an interface have the names that its driver gives them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use roce_fabric::{Place, mapped};
use roce_model::{CounterUnit, HostChange, HostEvent, Nanos, SampleKind, has_wrapped, value_of};

use crate::ethtool::Ethtool;

/// Folder in which Linux shows its devices.
const SYSFS: &str = "/sys";

/// Counters of data are in words of four bytes, whatever the link (IBTA 16.1.3.5, PortXmitData).
const WORD_BYTES: u64 = 4;

/// Statistics of interfaces that become events: parts of their names.
const KEPT_STATISTICS: [&str; 11] = [
    "pause",
    "pfc",
    "discard",
    "drop",
    "out_of_buffer",
    "ecn",
    "cnp",
    "marked",
    "xoff",
    "stalled",
    "link_down",
];

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
    /// The width of the register.
    bits: u8,
}

impl Reading {
    /// A driver's counter; `None` for gauges and for what is of no interest.
    fn new(device: &Arc<str>, place: Place, path: &str, name: &str, value: u64) -> Option<Self> {
        let name = name.trim();
        let mapped = mapped(place, name)?;
        if mapped.counter.kind() == SampleKind::Gauge {
            return None;
        }
        let (unit, scale) = match mapped.counter.unit() {
            "bytes" if mapped.factor > 1.0 => (CounterUnit::Bytes, WORD_BYTES),
            "bytes" => (CounterUnit::Bytes, 1),
            // Drivers count time in microseconds; the factor makes seconds of them.
            "s" if mapped.factor < 1.0 => (CounterUnit::Microseconds, 1),
            _ => (CounterUnit::Count, 1),
        };
        Some(Self {
            device: Arc::clone(device),
            name: format!("{path}{name}").into(),
            value: value.saturating_mul(scale),
            unit,
            bits: mapped.bits,
        })
    }
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
                bits,
            } = reading;
            let before = self.last.insert((Arc::clone(&device), Arc::clone(&name)), value);
            let change = match before {
                Some(before) if value >= before => value - before,
                Some(before) if has_wrapped(value_of(before), value_of(value), bits, None) => {
                    value + (1 << 32) - before
                }
                Some(_) => value,
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
            let statistics = statistics.unwrap_or_default();
            readings.extend(statistics.iter().filter_map(|(name, value)| {
                let reading = Reading::new(&device, Place::Netdev, "", name, *value)?;
                KEPT_STATISTICS
                    .iter()
                    .any(|part| reading.name.contains(part))
                    .then_some(reading)
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
    let place = if path.ends_with("hw_counters") {
        Place::Hardware
    } else {
        Place::Port
    };
    for file in names(&folder) {
        // Some are there but say "N/A", or an error.
        let Ok(text) = std::fs::read_to_string(folder.join(&file)) else {
            continue;
        };
        let Ok(value) = text.trim().parse::<u64>() else {
            continue;
        };
        into.extend(Reading::new(device, place, &format!("{path}/"), &file, value));
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
    fn gauges_are_no_counters_and_times_have_their_unit() {
        let device: Arc<str> = "bnxt_re0".into();
        assert!(Reading::new(&device, Place::Hardware, "hw_counters/", "active_qps", 49).is_none());
        let unit = |name: &str| {
            Reading::new(&device, Place::Netdev, "", name, 5).map(|reading| (reading.unit, reading.value))
        };
        for name in [
            "rx_prio3_pause_duration",
            "rx_pause_duration_prio_3",
            "rx_pfc_pri3_duration_us",
        ] {
            assert_eq!(unit(name), Some((CounterUnit::Microseconds, 5)), "{name}");
        }
        assert_eq!(unit("rx_prio3_pause"), Some((CounterUnit::Count, 5)));
        assert_eq!(unit("rx_discards_phy"), Some((CounterUnit::Count, 5)));
        let blank = Reading::new(&device, Place::Netdev, "", "tx_pause_storm_warning_events ", 1).unwrap();
        assert_eq!(&*blank.name, "tx_pause_storm_warning_events");
    }

    #[test]
    fn registers_of_32_bits_wrap() {
        let folder = device();
        let path = "ports/1/hw_counters/out_of_sequence";
        set(folder.path(), path, "4294967290\n");
        let mut counters = Counters::below(folder.path(), &[]);
        moved(&mut counters, 1);
        set(folder.path(), path, "10\n");
        let events = moved(&mut counters, 2);
        // 6 up to the wrap and 10 after it.
        assert_eq!(
            events,
            [(
                "1/hw_counters/out_of_sequence".to_owned(),
                16,
                10,
                CounterUnit::Count
            )]
        );
    }
}
