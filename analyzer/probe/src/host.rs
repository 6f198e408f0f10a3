//! One reading of a host's counters: those of RDMA devices (sysfs, netlink), of their network interfaces (ethtool), and of PFC (DCB).

mod netlink;
mod rates;
mod text;

pub use text::interface_of;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use roce_files::FileTree;
use roce_hosts::{CounterPlace, MappedCounter, ethtool_statistics, mapped, of_classes, pasted_pfc};
use roce_model::{Counter, Sample, SampleSource, SystemStart, Time, repeated, value_of};

use crate::dcb::{Dcb, DcbReading};
use crate::ethtool::Ethtool;
use crate::rdma::Rdma;
use netlink::{NetlinkPort, netlink_port, optional};
use rates::Rates;

/// A counter's file is a number, other files that are read a line; one that says more is none.
const MAX_TEXT_FILE: u64 = 4096;
/// Bytes of `/proc/stat`, which has a line for each processor and a number for each interrupt.
const MAX_STAT: u64 = 16 << 20;
/// The text of one interface's statistics in a recorded tree.
const MAX_TEXT_BYTES: u64 = 8 << 20;
/// ENODEV, EPROTONOSUPPORT and EOPNOTSUPP (Linux include/uapi/asm-generic/errno.h): the interface has gone, the kernel has no RDMA, or
/// the driver has no such statistics.
const GONE: [i32; 3] = [19, 93, 95];
/// Names that are remembered with what they stand for.
const MAX_NAMES: usize = 1 << 16;

/// Reads the counters of this host, or of a recorded one.
///
/// A recorded host is a folder with the files of its `/sys` below `sys`, and the text of `ethtool -S IF` in `commands/ethtool_-S_IF.txt`.
pub struct HostReader {
    /// Its files; `None` for texts alone.
    files: Option<FileTree>,
    node: Arc<str>,
    interfaces: Vec<String>,
    /// Sockets for the running system's drivers; `None` for a recorded host.
    drivers: Option<Drivers>,
    names: HashMap<(CounterPlace, String), Option<Arc<MappedCounter>>>,
    notes: BTreeSet<String>,
    lifespan: Option<Duration>,
    errors: BTreeMap<(&'static str, &'static str), u64>,
    /// Counters of queue pairs are read, too.
    queue_pairs: bool,
    /// Ports by their object, once netlink has answered; `None`: it has no more counters of the port than sysfs.
    ports: HashMap<String, Option<NetlinkPort>>,
    rates: Rates,
    /// RDMA ports by their network interface.
    owners: HashMap<String, String>,
    /// Devices that are virtual functions.
    virtual_functions: BTreeSet<String>,
    /// Start of the system, as the last text said it.
    text_start: SystemStart,
}

/// Sockets are opened at once, because a process that has given up its rights opens none.
struct Drivers {
    ethtool: Option<Ethtool>,
    dcb: Option<Dcb>,
    rdma: Option<Rdma>,
}

impl HostReader {
    /// Reads the running system: all RDMA devices, their network interfaces, and these other interfaces.
    pub fn new(interfaces: &[String]) -> Self {
        let node = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let mut reader = Self::with_files(FileTree::running().ok(), &node);
        reader.interfaces = interfaces.to_vec();
        let drivers = Drivers {
            ethtool: reader.checked("ethtool", Ethtool::open()),
            dcb: reader.checked("dcb", Dcb::open()),
            rdma: reader.checked("rdma", Rdma::open()),
        };
        reader.drivers = Some(drivers);
        reader
    }

    /// Calls the host by this name instead of its own.
    #[must_use]
    pub fn named(mut self, node: &str) -> Self {
        self.node = node.into();
        self
    }

    /// Reads a recorded host below `root`, which is called `node`. Nothing leads out of that folder.
    ///
    /// # Errors
    /// When the folder cannot be opened.
    pub fn recorded(root: &Path, node: &str) -> io::Result<Self> {
        Ok(Self::with_files(Some(FileTree::recorded(root)?), node))
    }

    /// Reads a recorded host in a tree, which is called `node`.
    pub fn of_tree(files: FileTree, node: &str) -> Self {
        Self::with_files(Some(files), node)
    }

    /// Reads texts of a host alone.
    pub fn of_texts() -> Self {
        Self::with_files(None, "")
    }

    fn with_files(files: Option<FileTree>, node: &str) -> Self {
        Self {
            files,
            node: node.into(),
            interfaces: Vec::new(),
            drivers: None,
            names: HashMap::new(),
            notes: BTreeSet::new(),
            lifespan: None,
            errors: BTreeMap::new(),
            queue_pairs: false,
            ports: HashMap::new(),
            rates: Rates::default(),
            owners: HashMap::new(),
            virtual_functions: BTreeSet::new(),
            text_start: SystemStart::default(),
        }
    }

    /// Reads the counters of queue pairs, too, where somebody has bound queue pairs to counters (`rdma statistic qp set`).
    #[must_use]
    pub fn with_queue_pairs(mut self) -> Self {
        self.queue_pairs = true;
        self
    }

    /// Remarks about what was read, each once, in alphabetical order.
    pub fn notes(&self) -> impl Iterator<Item = &str> {
        self.notes.iter().map(String::as_str)
    }

    /// The longest time for which a driver keeps the values of its counters: reading more often gives the same values again.
    pub fn lifespan(&self) -> Option<Duration> {
        self.lifespan
    }

    /// The host's name.
    pub fn node(&self) -> &str {
        &self.node
    }

    /// The highest rate, in packets per second, at which anything can have been counted between the last two readings of a port
    /// (`mlx5_0:1`) or of all ports of a device (`mlx5_0`); `None`: nobody says how fast it is.
    pub fn max_per_second(&self, object: &str) -> Option<f64> {
        self.rates.max_per_second(object)
    }

    /// The rate of a port (`mlx5_0:1`), or of the port of an interface, in bit/s; `None`: nobody says how fast it is, or it is a virtual
    /// function, which shares the rate.
    pub fn bits_per_second(&self, object: &str) -> Option<f64> {
        let port = self.port_of(object).unwrap_or(object);
        let device = port.split(':').next().unwrap_or_default();
        if self.virtual_functions.contains(device) {
            return None;
        }
        self.rates.bits_per_second(object)
    }

    /// The RDMA port of a network interface, as samples name it.
    pub fn port_of(&self, interface: &str) -> Option<&str> {
        self.owners.get(interface).map(String::as_str)
    }

    /// Start of the system, as far as a recording says it.
    pub fn start(&self) -> SystemStart {
        let text = |path: &str| self.file(path, MAX_STAT).unwrap_or_default();
        if self.text_start != SystemStart::default() {
            return self.text_start;
        }
        SystemStart::from_texts(
            &text("proc/uptime"),
            &text("proc/sys/kernel/random/boot_id"),
            &text("proc/stat"),
        )
    }

    /// Number of reads that failed since the start, by source (sysfs, ethtool, dcb) and reason. A quantity that a driver does not have
    /// is no error.
    pub fn errors(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
        self.errors
            .iter()
            .map(|((source, reason), count)| (*source, *reason, *count))
    }

    /// The value, or `None` and a count of the error.
    fn checked<T>(&mut self, source: &'static str, result: io::Result<T>) -> Option<T> {
        use io::ErrorKind::{Interrupted, NotFound, PermissionDenied, TimedOut, Unsupported, WouldBlock};
        let error = match result {
            Ok(value) => return Some(value),
            Err(error) => error,
        };
        let reason = match error.kind() {
            PermissionDenied => "permission",
            TimedOut | WouldBlock | Interrupted => "timeout",
            // Devices come and go, and drivers lack statistics.
            NotFound | Unsupported => return None,
            _ if error.raw_os_error().is_some_and(|code| GONE.contains(&code)) => return None,
            _ => "unreadable",
        };
        *self.errors.entry((source, reason)).or_default() += 1;
        None
    }

    /// Adds a sample of every counter that can be read; `time` is now. What cannot be read is absent: devices come and go, and
    /// drivers show files that they cannot fill.
    pub fn read(&mut self, time: Time, into: &mut Vec<Sample>) {
        let mut interfaces = self.interfaces.clone();
        self.rates.begin();
        let devices = "sys/class/infiniband";
        for device in self.names_in(devices) {
            let folder = format!("{devices}/{device}");
            self.read_folder(
                time,
                &device,
                &format!("{folder}/hw_counters"),
                CounterPlace::Hardware,
                into,
            );
            let is_virtual = |files: &FileTree| files.has(&format!("{folder}/device/physfn"));
            if self.files.as_ref().is_some_and(is_virtual) {
                self.virtual_functions.insert(device.clone());
                self.notes.insert(format!(
                    "{device} is a virtual function: counters of the physical port, PFC and pauses are not visible here"
                ));
            }
            for port in self.names_in(&format!("{folder}/ports")) {
                let object = format!("{device}:{port}");
                self.read_optional(time, &device, &port, into);
                let folder = format!("{folder}/ports/{port}");
                let rate = self.line(&format!("{folder}/rate"));
                self.rates.add(&device, &port, rate.as_deref());
                let counters = format!("{folder}/counters");
                self.read_folder(time, &object, &counters, CounterPlace::Port, into);
                self.read_folder(
                    time,
                    &object,
                    &format!("{folder}/hw_counters"),
                    CounterPlace::Hardware,
                    into,
                );
                let ndevs = format!("{folder}/gid_attrs/ndevs");
                for index in self.names_in(&ndevs) {
                    let Some(interface) = self.line(&format!("{ndevs}/{index}")) else {
                        continue;
                    };
                    let interface = self.physical(interface);
                    self.rates.add_interface(&interface, &object);
                    if self.owners.len() < MAX_NAMES {
                        self.owners.insert(interface.clone(), object.clone());
                    }
                    interfaces.push(interface);
                }
            }
        }
        if self.queue_pairs {
            self.read_queue_pairs(time, into);
        }
        let mut interfaces: Vec<String> = interfaces.into_iter().map(|name| self.physical(name)).collect();
        interfaces.sort();
        interfaces.dedup();
        for interface in interfaces {
            self.read_interface(time, &interface, into);
        }
    }

    /// Adds a sample of every counter in the text of `rdma statistic show`, or in that of `ethtool -S` of an interface. Returns false
    /// if it has none.
    pub fn read_text(&mut self, time: Time, text: &str, interface: &str, into: &mut Vec<Sample>) -> bool {
        let first = into.len();
        for counter in text::counters(text, interface) {
            let object: Arc<str> = counter.object.into();
            match counter.place {
                Some(place) => self.add(time, &object, place, &counter.name, counter.value, into),
                None => into.push(optional(time, &self.node, &object, counter.name, counter.value)),
            }
        }
        keep_largest(into, first);
        self.text_start = text::start(text);
        let has_counters = into.len() > first;
        // Settings beside the counters say which class is lossless.
        for (interface, on) in pasted_pfc(text, interface) {
            self.add_pfc(time, &interface.into(), on, into);
        }
        has_counters
    }

    /// The names in a folder, in order; none when it cannot be read.
    fn names_in(&self, folder: &str) -> Vec<String> {
        let files = self.files.as_ref();
        files
            .and_then(|files| files.names(folder).ok())
            .unwrap_or_default()
    }

    /// The text of a file.
    fn file(&self, path: &str, max_bytes: u64) -> io::Result<String> {
        let files = self.files.as_ref().ok_or(io::ErrorKind::NotFound)?;
        files.text(path, max_bytes)
    }

    /// A short file's text without blanks around it; some files are there but give an error.
    fn line(&self, path: &str) -> Option<String> {
        let text = self.file(path, MAX_TEXT_FILE).ok()?;
        Some(text.trim().to_owned())
    }

    /// The interface that a VLAN interface lies on; any other interface is its own.
    fn physical(&self, interface: String) -> String {
        let folder = format!("sys/class/net/{interface}");
        let about = self.line(&format!("{folder}/uevent"));
        if about.is_some_and(|text| text.lines().any(|line| line == "DEVTYPE=vlan")) {
            let lower = self
                .names_in(&folder)
                .into_iter()
                .find_map(|name| name.strip_prefix("lower_").map(str::to_owned));
            return lower.unwrap_or(interface);
        }
        interface
    }

    /// The counters in a folder of sysfs.
    fn read_folder(
        &mut self,
        time: Time,
        object: &str,
        folder: &str,
        place: CounterPlace,
        into: &mut Vec<Sample>,
    ) {
        let object: Arc<str> = object.into();
        let first = into.len();
        for name in self.names_in(folder) {
            let text = self.file(&format!("{folder}/{name}"), MAX_TEXT_FILE);
            // Drivers show files that they cannot fill; only a right that is missing can be mended.
            let text = match text {
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    self.checked("sysfs", Err(error))
                }
                text => text.ok(),
            };
            let Some(value) = text.and_then(|text: String| text.trim().parse().ok()) else {
                continue;
            };
            if name == "lifespan" {
                let lifespan = Duration::from_millis(value);
                self.lifespan = Some(self.lifespan.map_or(lifespan, |longest| longest.max(lifespan)));
                continue;
            }
            self.add(time, &object, place, &name, value, into);
        }
        keep_largest(into, first);
    }

    /// The optional counters of a port that are on: netlink alone has them.
    fn read_optional(&mut self, time: Time, device: &str, port: &str, into: &mut Vec<Sample>) {
        let Some(rdma) = self.drivers.as_mut().and_then(|drivers| drivers.rdma.as_mut()) else {
            return;
        };
        let object = format!("{device}:{port}");
        if !self.ports.contains_key(&object) && self.ports.len() < MAX_NAMES {
            let found = netlink_port(rdma, device, port, &mut self.notes);
            self.ports.insert(object.clone(), found);
        }
        let Some(Some(known)) = self.ports.get(&object) else {
            return;
        };
        let values = rdma.counters(known.device, known.port).unwrap_or_default();
        let object: Arc<str> = object.into();
        for (name, value) in values
            .into_iter()
            .filter(|(name, _)| known.optional.contains(name))
        {
            into.push(optional(time, &self.node, &object, name, value));
        }
    }

    /// Counters of queue pairs, of all devices.
    fn read_queue_pairs(&mut self, time: Time, into: &mut Vec<Sample>) {
        let Some(rdma) = self.drivers.as_mut().and_then(|drivers| drivers.rdma.as_mut()) else {
            return;
        };
        let mut found = Vec::new();
        for device in rdma.devices().unwrap_or_default() {
            let counters = rdma.queue_pairs(device.index).unwrap_or_default();
            found.extend(
                counters
                    .into_iter()
                    .map(|counters| (device.name.clone(), counters)),
            );
        }
        if found.is_empty() {
            self.notes.insert(
                "no counters of queue pairs: none are bound (`rdma statistic qp set link DEVICE/PORT auto type on`)".to_owned(),
            );
        }
        for (device, counters) in found {
            let object: Arc<str> = format!("{device}:{}", counters.port).into();
            let queue: Arc<str> = match counters.queue_pairs.as_slice() {
                [qpn] => format!("QP {qpn:#x}").into(),
                _ => format!("counter {}", counters.id).into(),
            };
            let first = into.len();
            for (name, value) in &counters.values {
                self.add(time, &object, CounterPlace::Hardware, name, *value, into);
            }
            for sample in into.iter_mut().skip(first) {
                sample.queue = Some(Arc::clone(&queue));
            }
        }
    }

    /// The statistics of an interface, and its PFC.
    fn read_interface(&mut self, time: Time, interface: &str, into: &mut Vec<Sample>) {
        let object: Arc<str> = interface.into();
        let statistics: Vec<(String, u64)> = if let Some(drivers) = &mut self.drivers {
            let ethtool = drivers.ethtool.as_mut();
            let statistics = ethtool.map_or(Ok(Vec::new()), |ethtool| ethtool.statistics(interface));
            let mut statistics = self.checked("ethtool", statistics).unwrap_or_default();
            let named: Vec<(&str, u64)> = statistics
                .iter()
                .map(|(name, value)| (name.as_str(), *value))
                .collect();
            let classes = of_classes(&named);
            statistics.extend(classes);
            statistics
        } else {
            let path = format!("commands/ethtool_-S_{interface}.txt");
            let text = self.file(&path, MAX_TEXT_BYTES).unwrap_or_default();
            let statistics = ethtool_statistics(&text).into_iter();
            statistics
                .map(|statistic| (statistic.name, statistic.value))
                .collect()
        };
        let first = into.len();
        for (name, value) in statistics {
            self.add(time, &object, CounterPlace::Netdev, &name, value, into);
        }
        let dcb = self.drivers.as_mut().and_then(|drivers| drivers.dcb.as_mut());
        let reading = match dcb {
            Some(dcb) => dcb.reading(interface),
            None => Ok(self.recorded_dcb(interface)),
        };
        let (pfc, dscps) = self.checked("dcb", reading).unwrap_or_default();
        self.add_recorded_pfc(time, interface, into);
        let gauge = |counter, priority, details, value| Sample {
            time,
            source: SampleSource::Host,
            node: Arc::clone(&self.node),
            object: Arc::clone(&object),
            counter,
            priority,
            queue: None,
            details,
            value,
            bits: 64,
        };
        for (dscp, priority) in dscps.into_iter().filter(|(dscp, _)| *dscp < 64) {
            let dscp = vec![dscp.to_string().into()];
            into.push(gauge(Counter::DscpPriority, None, dscp, f64::from(priority)));
        }
        let Some(pfc) = pfc else { return };
        // The driver's own statistics come first: not every driver fills those of DCB.
        let has_frames = into[first..].iter().any(|sample| {
            matches!(
                sample.counter,
                Counter::PfcReceivedFrames | Counter::PfcTransmittedFrames
            )
        });
        for priority in 0..8_u8 {
            let mut add = |counter, value: f64| {
                into.push(gauge(counter, Some(priority), Vec::new(), value));
            };
            add(Counter::PfcEnabled, f64::from(pfc.enabled >> priority & 1));
            if !has_frames {
                add(
                    Counter::PfcReceivedFrames,
                    value_of(pfc.received[usize::from(priority)]),
                );
                add(
                    Counter::PfcTransmittedFrames,
                    value_of(pfc.sent[usize::from(priority)]),
                );
            }
        }
    }

    /// Settings of DCB in a recorded host, as `doctor --record` writes them: priorities of DSCPs. It has no counts of PFC frames; priorities
    /// with PFC are added by [`Self::add_recorded_pfc`].
    fn recorded_dcb(&self, interface: &str) -> DcbReading {
        let path = format!("answers/dcb-app.{interface}.json");
        let text = self.file(&path, MAX_TEXT_BYTES).unwrap_or_default();
        let document: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        let list = document["dscp_prio"].as_array().into_iter().flatten();
        let pairs = list.filter_map(|pair| {
            let number = |place: usize| pair[place].as_u64();
            Some((u16::try_from(number(0)?).ok()?, u8::try_from(number(1)?).ok()?))
        });
        (None, pairs.collect())
    }

    /// Adds the priorities with PFC that a recording has.
    fn add_recorded_pfc(&self, time: Time, interface: &str, into: &mut Vec<Sample>) {
        if self.drivers.is_some() {
            return;
        }
        let path = format!("answers/dcb-pfc.{interface}.json");
        let text = self.file(&path, MAX_TEXT_BYTES).unwrap_or_default();
        let document: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        let list = document["prio_pfc"].as_array().into_iter().flatten();
        let on: Vec<bool> = list.filter_map(serde_json::Value::as_bool).collect();
        if let Ok(on) = <[bool; 8]>::try_from(on) {
            self.add_pfc(time, &interface.into(), on, into);
        }
    }

    /// Adds the priorities with PFC of an interface.
    fn add_pfc(&self, time: Time, object: &Arc<str>, on: [bool; 8], into: &mut Vec<Sample>) {
        into.extend((0_u8..).zip(on).map(|(priority, is_on)| Sample {
            time,
            source: SampleSource::Host,
            node: Arc::clone(&self.node),
            object: Arc::clone(object),
            counter: Counter::PfcEnabled,
            priority: Some(priority),
            queue: None,
            details: Vec::new(),
            value: f64::from(u8::from(is_on)),
            bits: 64,
        }));
    }

    /// Adds the sample of a driver's counter, if it is of interest.
    fn add(
        &mut self,
        time: Time,
        object: &Arc<str>,
        place: CounterPlace,
        name: &str,
        value: u64,
        into: &mut Vec<Sample>,
    ) {
        let key = (place, name.to_owned());
        let found = self.names.get(&key).cloned().unwrap_or_else(|| {
            let found = mapped(place, name).map(Arc::new);
            if self.names.len() < MAX_NAMES {
                self.names.insert(key, found.clone());
            }
            found
        });
        let Some(mapped) = found else { return };
        into.push(Sample {
            time,
            source: SampleSource::Host,
            node: Arc::clone(&self.node),
            object: Arc::clone(object),
            counter: mapped.counter,
            priority: mapped.priority,
            queue: None,
            details: mapped.details.clone(),
            value: value_of(value) * mapped.factor,
            bits: mapped.bits,
        });
    }
}

/// Leaves out samples from `first` on that repeat a quantity under another of its driver's names.
fn keep_largest(samples: &mut Vec<Sample>, first: usize) {
    let repeats = repeated(samples.get(first..).unwrap_or_default());
    if repeats.contains(&true) {
        let mut at = 0_usize;
        samples.retain(|_| {
            at += 1;
            let repeat = at.checked_sub(first + 1).and_then(|at| repeats.get(at));
            repeat != Some(&true)
        });
    }
}

#[cfg(test)]
mod tests;
