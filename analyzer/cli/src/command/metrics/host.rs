//! One reading of this host as metrics: its counters, and what its ports are.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::Args;
use roce_capture::{Sysfs, SystemFiles as _};
use roce_hosts::doctor::{Host, path_mtu};
use roce_hosts::hca::{Hcas, given, hcas};
use roce_metrics::{
    ALLOCATED, ALLOCATED_INFO, ALLOCATED_USABLE, COLLECTOR_ERRORS, Exposition, Label, PORT_INFO,
    PORT_MAX_RATE, PORT_MTU, PORT_RATE, PORT_UP,
};
use roce_model::{RdmaDevice, RdmaPort, value_of};
use roce_pipeline::time_of_day;
use roce_probe::{HostReader, SnapshotOptions, recorded_snapshot, running_snapshot};

/// Label of the host's own readings.
pub(super) const COLLECTOR: Label<'static> = ("collector", std::borrow::Cow::Borrowed("host"));

// Options of whoever reads the host. (A comment for the compiler would become the help's first line.)
#[derive(Args, Debug)]
pub(super) struct HostArguments {
    /// Another network interface to read; those of RDMA devices are always read
    #[arg(short, long, value_name = "NAME")]
    pub(super) interface: Vec<String>,

    /// Read a recorded host below DIR instead of this one
    #[arg(long, value_name = "DIR", conflicts_with = "interface")]
    pub(super) read: Option<PathBuf>,

    /// Read GPUs from FILE, which another program replaces: a text that `host gpus --read` takes, such as dcgm-exporter's metrics
    #[arg(long, value_name = "FILE", conflicts_with = "no_gpus")]
    pub(super) gpus: Option<PathBuf>,

    /// Read no GPUs; without it, nvidia-smi or amd-smi is run where it is installed
    #[arg(long)]
    pub(super) no_gpus: bool,
}

/// Reads the host.
pub(super) struct HostMetrics {
    reader: HostReader,
    /// Files that describe devices.
    sysfs: Sysfs,
    /// Path of the folder of RDMA devices, for remarks.
    devices: String,
    /// Highest rates of interfaces in bit/s. They are found at the start: drivers answer through sockets.
    most: HashMap<String, u64>,
    /// Devices that the environment gives to this container, which does not change while it runs; none outside of one.
    allocated: Option<Hcas>,
}

/// Devices that a device plugin gave to a container, by the variables `PCIDEVICE_*`.
fn allocated(host: &Host) -> Option<Hcas> {
    given(host).is_stated.then(|| hcas(host))
}

impl HostMetrics {
    /// Opens what readings need.
    ///
    /// # Errors
    /// `--read` names no recorded host.
    pub(super) fn open(arguments: &HostArguments) -> anyhow::Result<Self> {
        if let Some(folder) = &arguments.read {
            if !folder.join("sys").is_dir() {
                bail!(
                    "{}: not a recorded host\nhint: the folder has the files of /sys below sys, and texts in commands",
                    folder.display()
                );
            }
            let failed = || folder.display().to_string();
            let host = recorded_snapshot(folder, "host").ok();
            return Ok(Self {
                reader: HostReader::recorded(folder, &folder.to_string_lossy()).with_context(failed)?,
                sysfs: Sysfs::recorded(folder).with_context(failed)?,
                devices: folder.join("sys/class/infiniband").display().to_string(),
                most: HashMap::new(),
                allocated: host.as_ref().and_then(allocated),
            });
        }
        let sysfs = Sysfs::running();
        let devices = roce_capture::devices(&sysfs).rdma;
        let ports = devices.iter().flat_map(|device| &device.ports);
        let interfaces = ports.flat_map(RdmaPort::interfaces);
        let most = interfaces.filter_map(|name| Some((name.to_owned(), roce_probe::most_speed(name)?)));
        let is_given = |(name, _): (std::ffi::OsString, _)| name.to_string_lossy().starts_with("PCIDEVICE_");
        let host = std::env::vars_os().any(is_given).then(|| {
            let options = SnapshotOptions {
                interfaces: &[],
                process: None,
            };
            running_snapshot(&options, &|_| None).ok()
        });
        Ok(Self {
            most: most.collect(),
            allocated: host.flatten().as_ref().and_then(allocated),
            reader: HostReader::new(&arguments.interface),
            sysfs,
            devices: "/sys/class/infiniband".to_owned(),
        })
    }

    /// Sentences about what the last reading lacks, for whoever asks once: a scraper has the errors as metrics.
    pub(super) fn remarks(&self) -> Vec<String> {
        let mut remarks: Vec<String> = self.reader.notes().map(str::to_owned).collect();
        if roce_capture::rdma_devices(&self.sysfs).is_empty() {
            remarks.push(format!(
                "there is no RDMA device in {}: `roce-analyze doctor --only rdma` says what is missing; --interface NAME reads another interface",
                self.devices
            ));
        }
        for (source, reason, count) in self.reader.errors() {
            let mends = match reason {
                "permission" => "; root may read more: sudo roce-analyze metrics once",
                "timeout" => "; a driver that hangs does so",
                _ => "",
            };
            remarks.push(format!(
                "reads of {source} that failed ({reason}): {count}{mends}"
            ));
        }
        remarks
    }

    /// Reads everything. What cannot be read is absent.
    pub(super) fn read(&mut self) -> Exposition {
        let mut samples = Vec::new();
        self.reader.read(time_of_day(), &mut samples);
        let mut exposition = Exposition::default();
        // These come first: they are few, and have room whatever the counters need.
        let devices = roce_capture::rdma_devices(&self.sysfs);
        for device in &devices {
            for port in &device.ports {
                self.port(device, port, &mut exposition);
            }
        }
        if let Some(given) = &self.allocated {
            allocations(given, &devices, &mut exposition);
        }
        for sample in &samples {
            exposition.add(sample);
        }
        for (source, reason, count) in self.reader.errors() {
            let labels = [COLLECTOR, ("source", source.into()), ("reason", reason.into())];
            exposition.own(COLLECTOR_ERRORS, &labels, value_of(count));
        }
        exposition
    }

    fn port(&self, device: &RdmaDevice, port: &RdmaPort, into: &mut Exposition) {
        let number = port.number.to_string();
        let own: [Label<'_>; 2] = [
            ("device", device.name.as_str().into()),
            ("port", number.as_str().into()),
        ];
        let interfaces = port.interfaces();
        let netdev = interfaces.first().copied().unwrap_or_default();
        let attachment = &device.attachment;
        let node = attachment.numa_node.map(|node| node.to_string());
        let function = if attachment.parent.is_some() {
            "virtual"
        } else {
            "physical"
        };
        // Labels that are empty are as if they were absent.
        let mut labels = own.to_vec();
        for (name, value) in [
            ("netdev", netdev),
            ("driver", attachment.driver.as_deref().unwrap_or_default()),
            ("link_layer", &port.link_layer),
            ("state", &port.state),
            ("physical_state", &port.physical),
            ("firmware", device.firmware.as_deref().unwrap_or_default()),
            ("numa_node", node.as_deref().unwrap_or_default()),
            ("function", function),
        ] {
            if !value.is_empty() {
                labels.push((name, value.into()));
            }
        }
        into.own(PORT_INFO, &labels, 1.0);
        let up = if port.state == "ACTIVE" { 1.0 } else { 0.0 };
        into.own(PORT_UP, &own, up);
        if let Some(rate) = port.rate_bps {
            into.own(PORT_RATE, &own, value_of(rate) / 8.0);
        }
        let most = interfaces.iter().filter_map(|name| self.most.get(*name)).max();
        if let Some(most) = most {
            into.own(PORT_MAX_RATE, &own, value_of(*most) / 8.0);
        }
        let mtu = self.sysfs.content(&format!("class/net/{netdev}/mtu"));
        let mtu = mtu.and_then(|text| text.trim().parse().ok());
        if let Some(mtu) = mtu.and_then(path_mtu).filter(|_| !netdev.is_empty()) {
            into.own(PORT_MTU, &own, f64::from(mtu));
        }
    }
}

/// The devices that this container was given, and those of them that can be used as of this reading.
fn allocations(given: &Hcas, devices: &[RdmaDevice], into: &mut Exposition) {
    let active = |name: &str, number: u32| {
        let device = devices.iter().find(|device| device.name == name);
        let ports = device.into_iter().flat_map(|device| &device.ports);
        ports
            .into_iter()
            .any(|port| port.number == number && port.state == "ACTIVE")
    };
    let (mut all, mut usable) = (BTreeSet::new(), BTreeSet::new());
    for port in &given.ports {
        all.insert(port.device.as_str());
        if active(&port.device, port.port) {
            usable.insert(port.device.as_str());
        }
        let number = port.port.to_string();
        let labels = [
            ("resource", port.given_by.as_str().into()),
            ("pci_address", port.address.as_str().into()),
            ("device", port.device.as_str().into()),
            ("port", number.into()),
        ];
        into.own(ALLOCATED_INFO, &labels, 1.0);
    }
    into.own(ALLOCATED, &[], value_of((all.len() + given.missing.len()) as u64));
    into.own(ALLOCATED_USABLE, &[], value_of(usable.len() as u64));
}
