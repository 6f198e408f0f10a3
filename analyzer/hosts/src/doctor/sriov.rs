//! Checks of virtual functions, and of those that a container was given.

use roce_model::Severity;

use crate::doctor::check::{CERTAIN, Check, CheckRun, Outcome, each};
use crate::doctor::facts::{Facts, RdmaDevice, is_plain, odd};
use crate::doctor::host::Unknown;
use crate::doctor::rdma::opened;
use crate::hca;

pub(crate) const CHECKS: &[Check] = &[
    Check {
        id: "sriov.functions",
        title: "virtual functions are usable",
        read: "sriov_numvfs, sriov_totalvfs, virtfnN of the physical function; node_guid of the function's RDMA device",
        method: "a virtual function without driver, or with node GUID 0: warning; otherwise counts",
        meaning: "A function without a driver has no device; one without a GUID has no addresses.",
        symptom: "A pod gets a device that cannot be used.",
        alternatives: "sriov.pod",
        source: "Linux Documentation/PCI/pci-iov-howto.rst",
        severity: Severity::Warning,
        confidence: "certain; likely where the outcome says so",
        run: CheckRun::new("sriov", functions),
        ..CERTAIN
    },
    Check {
        id: "sriov.pod",
        title: "devices that this container was given can be used",
        read: "PCIDEVICE_* in the environment, /sys/bus/pci, /dev/infiniband",
        method: "a given device that cannot be opened: critical; one that is not visible: warning",
        meaning: "The device plugin of Kubernetes states the devices in the environment.",
        symptom: "The job loses a rail, or takes the device of another pod.",
        alternatives: "rdma.nodes",
        source: "k8snetworkplumbingwg/sriov-network-device-plugin, README",
        severity: Severity::Critical,
        run: CheckRun::new("pod", pod),
        ..CERTAIN
    },
    Check {
        id: "pod.networks",
        title: "given virtual functions have their interface here",
        read: "PCIDEVICE_* in the environment, /sys/bus/pci/devices/ADDRESS/net",
        method: "a given RDMA device without a network interface in this namespace: warning",
        meaning: "Without its interface the device has no address of RoCE v2.",
        symptom: "The table of addresses is empty in the pod.",
        alternatives: "gid.rocev2",
        source: "Kubernetes network plumbing working group, multi-network specification",
        severity: Severity::Warning,
        run: CheckRun::new("pod", networks),
        ..CERTAIN
    },
];

fn functions(facts: &Facts<'_>) -> Vec<Outcome> {
    const ZERO: &str = "0000:0000:0000:0000";
    let mut all = Vec::new();
    for device in facts.devices.iter().filter(|device| !device.is_virtual) {
        let Some(pci) = &device.pci else { continue };
        let folder = format!("sys/bus/pci/devices/{pci}");
        let (Ok(count), Ok(total)) = (
            facts.host.number::<u32>(&format!("{folder}/sriov_numvfs")),
            facts.host.number::<u32>(&format!("{folder}/sriov_totalvfs")),
        ) else {
            continue;
        };
        let bare: Vec<String> = (0..count.min(4096))
            .filter_map(|number| {
                let function = format!("{folder}/virtfn{number}/uevent");
                let address = facts
                    .host
                    .field(&function, "PCI_SLOT_NAME")
                    .filter(|pci| is_plain(pci))?;
                facts.host.field(&function, "DRIVER").is_none().then_some(address)
            })
            .collect();
        let seen = format!("{count} of {total}");
        let outcome = if bare.is_empty() {
            Outcome::info(&device.name, format!("{}: {seen} virtual functions", device.name))
        } else {
            Outcome::warning(
                &device.name,
                format!(
                    "{}: virtual functions without a driver: {}",
                    device.name,
                    bare.join(", ")
                ),
            )
            .expected("a driver for each function that is used")
            .fix(format!("echo {} > /sys/bus/pci/drivers_probe", bare[0]))
            .likely()
        };
        all.push(outcome.seen(&format!("{folder}/sriov_numvfs"), seen));
    }
    all.extend(each(
        facts.devices.iter().filter(|device| device.is_virtual),
        |device| device.name.clone(),
        |device| {
            let path = format!("{}/node_guid", device.path);
            let guid = facts.host.need(&path)?;
            let name = &device.name;
            // Recordings have `set` instead of the number.
            let is_guid =
                guid.len() == ZERO.len() && guid.bytes().all(|byte| byte == b':' || byte.is_ascii_hexdigit());
            if guid != "set" && !is_guid {
                return Err(odd(&path, &guid));
            }
            Ok(if guid == ZERO {
                Outcome::warning(name, format!("{name}: the virtual function has no node GUID"))
                    .expected("a GUID")
                    .fix("ip link set INTERFACE vf NUMBER node_guid GUID")
                    .seen(&path, guid)
            } else {
                Outcome::ok(name, format!("{name}: the virtual function has a node GUID")).seen(&path, "set")
            })
        },
    ));
    all
}

fn pod(facts: &Facts<'_>) -> Vec<Outcome> {
    each(
        hca::given(facts.host).given,
        |given| given.address.clone(),
        |given| {
            let object = &given.address;
            let Some(device) = &given.device else {
                // A text shows a device that is not there only by a list of devices with their addresses.
                let is_listed = |device: &RdmaDevice| device.pci.is_some();
                if facts.host.is_partial && (facts.devices.is_empty() || !facts.devices.iter().all(is_listed))
                {
                    return Err(Unknown {
                        source: format!("sys/bus/pci/devices/{object}"),
                        why: "the text has no list of RDMA devices with their PCI addresses".to_owned(),
                    });
                }
                return Ok(Outcome::warning(
                    object,
                    format!("{object} was given ({}) and is not visible here", given.resource),
                )
                .seen("answers/env.json", &given.variable)
                .expected("an RDMA device of this address"));
            };
            let node = given.node.clone().unwrap_or_default();
            Ok(match opened(facts, &node)?.as_deref() {
                Some("ok") => Outcome::ok(object, format!("{object} is {device}, and can be opened")),
                other => Outcome::critical(
                    object,
                    format!(
                        "{object} is {device} and cannot be opened: {}",
                        other.unwrap_or("no node in /dev/infiniband")
                    ),
                )
                .expected("its node in /dev/infiniband, with the right to open it")
                .advice("Kubernetes: request the resource of the device plugin in the container that runs the job"),
            }
            .seen("answers/env.json", &given.variable))
        },
    )
}

fn networks(facts: &Facts<'_>) -> Vec<Outcome> {
    each(
        hca::given(facts.host).given,
        |given| given.address.clone(),
        |given| {
            let folder = format!("sys/bus/pci/devices/{}/net", given.address);
            let names = facts.host.names(&folder);
            let object = &given.address;
            if names.is_empty() && facts.host.is_partial {
                return Err(Unknown {
                    source: folder,
                    why: "the text does not show the interfaces of this device".to_owned(),
                });
            }
            Ok(match names.first() {
                Some(name) => {
                    Outcome::ok(object, format!("{object} has the interface {name}")).seen(&folder, name)
                }
                None => Outcome::warning(
                    object,
                    format!("{object} has no interface in this network namespace: no address"),
                )
                .seen(&folder, "none")
                .expected("its interface, moved here by the CNI plugin")
                .advice(
                    "Kubernetes: name the network in the annotation k8s.v1.cni.cncf.io/networks of the pod",
                ),
            })
        },
    )
}
