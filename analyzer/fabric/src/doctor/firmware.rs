//! Checks of firmware, virtual functions, and of what jobs are given.

use std::collections::BTreeMap;

use crate::doctor::check::{Check, Outcome, each};
use crate::doctor::facts::{Facts, RdmaDevice, RdmaPort, is_plain, odd};
use crate::doctor::gid::subnet;
use crate::doctor::host::Unknown;
use crate::doctor::rdma::opened;
use crate::hca::{self, NcclFilter};

pub(crate) const CHECKS: &[Check] = &[
    Check {
        id: "firmware.same",
        group: "firmware",
        title: "equal boards have equal firmware",
        read: "fw_ver and board_id of the RDMA devices",
        rule: "two versions on one kind of board: warning",
        why: "Equal adapters with different firmware behave differently under congestion.",
        symptom: "One of several equal hosts is slower.",
        alternatives: "firmware.settings",
        source: "Linux Documentation/ABI/stable/sysfs-class-infiniband",
        run: same,
    },
    Check {
        id: "firmware.least",
        group: "firmware",
        title: "firmware is new enough",
        read: "fw_ver; the versions of --expect-firmware",
        rule: "older than stated: warning; this program knows no version of its own",
        why: "Faults of firmware are mended by versions that the site knows.",
        symptom: "Depends on the fault.",
        alternatives: "firmware.same",
        source: "the site's own list",
        run: least,
    },
    Check {
        id: "firmware.settings",
        group: "firmware",
        title: "settings of the firmware are equal",
        read: "mstconfig -d ADDRESS -e query (as root, where the program is there)",
        rule: "a setting differs between adapters of one kind, or its next value from its current one: warning",
        why: "Settings such as MAX_ACC_OUT_READ and PCI_WR_ORDERING cost a multiple of the throughput. Advice about their values contradicts itself, so adapters are compared with each other.",
        symptom: "53 instead of 194 GB/s at equal firmware versions.",
        alternatives: "pcie.read_request",
        source: "mstflint, mstconfig(1)",
        run: settings,
    },
    Check {
        id: "firmware.hidden",
        group: "firmware",
        title: "advanced settings are visible",
        read: "as firmware.settings",
        rule: "MAX_ACC_OUT_READ is absent because ADVANCED_PCI_SETTINGS is off: information",
        why: "An absent setting is not an unsupported one.",
        symptom: "mstconfig does not show MAX_ACC_OUT_READ on some adapters.",
        alternatives: "",
        source: "mstflint, mstconfig(1)",
        run: hidden,
    },
    Check {
        id: "sriov.functions",
        group: "sriov",
        title: "virtual functions are usable",
        read: "sriov_numvfs, sriov_totalvfs, virtfnN of the physical function; node_guid of the function's RDMA device",
        rule: "a virtual function without driver, or with node GUID 0: warning; otherwise counts",
        why: "A function without a driver has no device; one without a GUID has no addresses.",
        symptom: "A pod gets a device that cannot be used.",
        alternatives: "sriov.pod",
        source: "Linux Documentation/PCI/pci-iov-howto.rst",
        run: functions,
    },
    Check {
        id: "sriov.pod",
        group: "pod",
        title: "devices that this container was given can be used",
        read: "PCIDEVICE_* in the environment, /sys/bus/pci, /dev/infiniband",
        rule: "a given device that cannot be opened: critical; one that is not visible: warning",
        why: "The device plugin of Kubernetes states the devices in the environment.",
        symptom: "The job loses a rail, or takes the device of another pod.",
        alternatives: "rdma.nodes",
        source: "k8snetworkplumbingwg/sriov-network-device-plugin, README",
        run: pod,
    },
    Check {
        id: "pod.networks",
        group: "pod",
        title: "given virtual functions have their interface here",
        read: "PCIDEVICE_* in the environment, /sys/bus/pci/devices/ADDRESS/net",
        rule: "a given RDMA device without a network interface in this namespace: warning",
        why: "Without its interface the device has no address of RoCE v2.",
        symptom: "The table of addresses is empty in the pod.",
        alternatives: "gid.rocev2",
        source: "Kubernetes network plumbing working group, multi-network specification",
        run: networks,
    },
    Check {
        id: "nccl.hca",
        group: "nccl",
        title: "NCCL_IB_HCA names what it means",
        read: "NCCL_IB_HCA of the environment (with --pid, of that process), /etc/nccl.conf, ~/.nccl.conf",
        rule: "a name that matches nothing: critical; a prefix that matches several devices, a port that is not ACTIVE, or blanks in it: warning",
        why: "The variable is a filter by prefix: mlx5_1 matches mlx5_10. Names that match nothing are skipped without a word.",
        symptom: "Half of the bandwidth, and no message.",
        alternatives: "nccl.rails",
        source: "NVIDIA/nccl, src/transport/net_ib",
        run: nccl_hca,
    },
    Check {
        id: "nccl.rails",
        group: "nccl",
        title: "rails do not need routes that are missing",
        read: "NCCL_CROSS_NIC; addresses of the active ports",
        rule: "devices in different subnets and NCCL_CROSS_NIC of 1 or 2: warning",
        why: "With NCCL_CROSS_NIC ranks talk across rails, which needs routes between their subnets.",
        symptom: "The job hangs or times out at its start.",
        alternatives: "routing.rails",
        source: "NVIDIA NCCL documentation, NCCL_CROSS_NIC",
        run: nccl_rails,
    },
    Check {
        id: "nccl.plugin",
        group: "nccl",
        title: "NCCL uses RDMA",
        read: "the log of --nccl-log: 'Using network X', 'NET/IB'",
        rule: "Socket on a host with RDMA devices: warning; otherwise the network",
        why: "NCCL falls back to TCP without an error.",
        symptom: "0.98 instead of 83 GiB/s.",
        alternatives: "gid.rocev2",
        source: "NVIDIA/nccl, src/init.cc",
        run: plugin,
    },
];

fn same(facts: &Facts<'_>) -> Vec<Outcome> {
    each(
        facts.devices.iter().filter(|device| device.pci.is_some()),
        |device| device.name.clone(),
        |device| {
            let path = format!("{}/fw_ver", device.path);
            let version = facts.host.need(&path)?;
            facts.host.need(&format!("{}/board_id", device.path))?;
            let mut versions = Vec::new();
            for other in facts.devices.iter().filter(|other| other.board == device.board) {
                versions.push(facts.host.need(&format!("{}/fw_ver", other.path))?);
            }
            versions.sort();
            versions.dedup();
            let name = &device.name;
            let board = device.board.as_deref().unwrap_or_default();
            Ok(if versions.len() > 1 {
                Outcome::warning(
                    name,
                    format!(
                        "{name}: firmware {version}; boards {board} have {}",
                        versions.join(", ")
                    ),
                )
                .expected("one version on equal boards")
                .fix(burn(device))
            } else {
                Outcome::ok(name, format!("{name}: firmware {version}"))
            }
            .seen(&path, version))
        },
    )
}

/// The command that writes another firmware to a device.
fn burn(device: &RdmaDevice) -> String {
    let address = device.pci.as_deref().unwrap_or("ADDRESS");
    format!("mstflint -d {address} -i IMAGE burn")
}

/// A version's numbers.
fn numbers(version: &str) -> Vec<u64> {
    version.split('.').map_while(|part| part.parse().ok()).collect()
}

fn least(facts: &Facts<'_>) -> Vec<Outcome> {
    let wanted = |device: &RdmaDevice| {
        let board = device.board.as_ref()?;
        let mut all = facts.plan.firmware.iter();
        all.find(|(other, _)| other == board)
            .map(|(_, version)| version.clone())
    };
    let stated = facts
        .devices
        .iter()
        .filter_map(|device| Some((device, wanted(device)?)));
    each(
        stated,
        |(device, _)| device.name.clone(),
        |(device, wanted)| {
            let path = format!("{}/fw_ver", device.path);
            let version = facts.host.need(&path)?;
            let name = &device.name;
            Ok(if numbers(&version) < numbers(wanted) {
                Outcome::warning(name, format!("{name}: firmware {version} is older than {wanted}"))
                    .expected(format!("{wanted} or later"))
                    .fix(burn(device))
            } else {
                Outcome::ok(name, format!("{name}: firmware {version}"))
            }
            .seen(&path, version))
        },
    )
}

/// A setting: its current value and that after the next boot.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Setting {
    current: Option<String>,
    next: String,
}

/// The number in `NAME(number)`, else the text.
fn plain(value: &str) -> String {
    let number = value.strip_suffix(')').and_then(|value| value.rsplit_once('('));
    number.map_or(value, |(_, number)| number).to_owned()
}

/// The settings in the text of `mstconfig query`, by their names.
fn mstconfig(text: &str) -> BTreeMap<String, Setting> {
    let mut lines = text
        .lines()
        .skip_while(|line| !line.trim_start().starts_with("Configurations:"));
    let columns = lines
        .next()
        .map_or(1, |head| if head.contains("Current") { 3 } else { 1 });
    let mut all = BTreeMap::new();
    for line in lines {
        let words: Vec<&str> = line
            .trim_start()
            .trim_start_matches('*')
            .split_whitespace()
            .collect();
        if words.len() != columns + 1
            || !words[0]
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        {
            continue;
        }
        let setting = Setting {
            current: (columns == 3).then(|| plain(words[2])),
            next: plain(words[columns]),
        };
        all.insert(words[0].to_owned(), setting);
    }
    all
}

type Settings = (String, BTreeMap<String, Setting>);

fn settings_of(facts: &Facts<'_>, device: &RdmaDevice) -> Result<Settings, Unknown> {
    let pci = device.pci.clone().unwrap_or_default();
    let path = format!("answers/mstconfig.{pci}.txt");
    let text = facts.host.need(&path).map_err(|mut unknown| {
        if unknown.why == "not there" {
            "mstconfig was not run: it needs root and the package mstflint".clone_into(&mut unknown.why);
        }
        unknown
    })?;
    let all = mstconfig(&text);
    if all.is_empty() {
        return Err(Unknown {
            source: format!("mstconfig {pci}"),
            why: "its text is not understood".to_owned(),
        });
    }
    Ok((path, all))
}

/// Physical functions of NVIDIA's adapters.
fn settable<'a>(facts: &'a Facts<'_>) -> impl Iterator<Item = &'a RdmaDevice> {
    facts.devices.iter().filter(|device| {
        device.pci.is_some() && !device.is_virtual && device.driver.as_deref() == Some("mlx5_core")
    })
}

/// Settings that are meant to differ between adapters, or between ports of one.
const OWN: [&str; 3] = ["NUM_OF_VFS", "SRIOV_EN", "LINK_TYPE"];

fn settings(facts: &Facts<'_>) -> Vec<Outcome> {
    each(
        settable(facts),
        |device| device.name.clone(),
        |device| {
            let (path, own) = settings_of(facts, device)?;
            let name = &device.name;
            let waiting: Vec<&str> = own
                .iter()
                .filter(|(_, setting)| {
                    setting
                        .current
                        .as_ref()
                        .is_some_and(|current| *current != setting.next)
                })
                .map(|(name, _)| name.as_str())
                .collect();
            let mut differ: Vec<String> = Vec::new();
            let alike = settable(facts).filter(|other| {
                other.name != device.name && other.board.is_some() && other.board == device.board
            });
            for other in alike {
                // A twin that cannot be read is not known to be equal.
                let (_, theirs) = settings_of(facts, other)?;
                for (setting, value) in &own {
                    let now = value.current.as_ref().unwrap_or(&value.next);
                    let there = theirs
                        .get(setting)
                        .map(|value| value.current.as_ref().unwrap_or(&value.next));
                    if let Some(there) = there.filter(|there| *there != now)
                        && !OWN.iter().any(|name| setting.starts_with(name))
                    {
                        differ.push(format!("{setting} {now}, on {} {there}", other.name));
                    }
                }
            }
            differ.sort();
            differ.dedup();
            Ok(if !differ.is_empty() {
                Outcome::warning(name, format!("{name}: settings differ: {}", differ.join("; ")))
                    .seen(&path, differ.join("; "))
                    .expected("equal settings on equal adapters")
                    .advice("which value is right is the site's decision; mstconfig sets it, and a cold reset makes it current")
            } else if !waiting.is_empty() {
                Outcome::warning(
                    name,
                    format!("{name}: settings wait for a reboot: {}", waiting.join(", ")),
                )
                .seen(&path, waiting.join(", "))
                .expected("current and next value are equal")
                .advice("a reboot, or mstfwreset")
            } else {
                Outcome::ok(
                    name,
                    format!("{name}: {} settings, none waits for a reboot", own.len()),
                )
                .seen(&path, format!("{} settings", own.len()))
            })
        },
    )
}

fn hidden(facts: &Facts<'_>) -> Vec<Outcome> {
    let mut all = Vec::new();
    for device in settable(facts) {
        let Ok((path, own)) = settings_of(facts, device) else {
            continue;
        };
        let is_off = own
            .get("ADVANCED_PCI_SETTINGS")
            .is_some_and(|setting| setting.current.as_ref().unwrap_or(&setting.next) == "0");
        if is_off && !own.contains_key("MAX_ACC_OUT_READ") {
            all.push(
                Outcome::info(
                    &device.name,
                    format!(
                        "{}: MAX_ACC_OUT_READ is hidden, because ADVANCED_PCI_SETTINGS is off",
                        device.name
                    ),
                )
                .seen(&path, "ADVANCED_PCI_SETTINGS 0"),
            );
        }
    }
    all
}

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

/// The value of NCCL_IB_HCA and where it is set: the environment first, then the user's file, then the system's.
fn nccl_variable(facts: &Facts<'_>, name: &str) -> Option<(String, &'static str)> {
    if let Some(value) = facts.host.variable(name) {
        return Some((value, "answers/env.json"));
    }
    ["home/.nccl.conf", "etc/nccl.conf"]
        .into_iter()
        .find_map(|path| Some((facts.host.field(path, name)?, path)))
}

fn nccl_hca(facts: &Facts<'_>) -> Vec<Outcome> {
    let Some((value, from)) = nccl_variable(facts, "NCCL_IB_HCA") else {
        return Vec::new();
    };
    let object = "NCCL_IB_HCA";
    let ports: Vec<(&str, &RdmaPort)> = facts
        .devices
        .iter()
        .flat_map(|device| device.ports.iter().map(|port| (device.name.as_str(), port)))
        .collect();
    let active: Vec<String> = ports
        .iter()
        .filter(|(_, port)| port.is_active())
        .map(|(_, port)| port.object.clone())
        .collect();
    let fix = format!("export NCCL_IB_HCA=={}", active.join(","));
    let filter = NcclFilter::parse(&value);
    let mut all = Vec::new();
    if value.chars().any(char::is_whitespace) || value.contains("found") {
        all.push(
            Outcome::warning(object, "it has blanks or words that are no names")
                .seen(from, &value)
                .expected("names by commas")
                .fix(fix.clone()),
        );
    }
    for entry in &filter.entries {
        let matched: Vec<&(&str, &RdmaPort)> = ports
            .iter()
            .filter(|(device, port)| entry.matches(device, port.number, filter.is_exact))
            .collect();
        let mut devices: Vec<&str> = matched.iter().map(|(device, _)| *device).collect();
        devices.dedup();
        let name = &entry.name;
        let outcome = if matched.is_empty() && !filter.is_excluding {
            Outcome::critical(object, format!("'{name}' matches no device here"))
        } else if devices.len() > 1 && !filter.is_exact {
            Outcome::warning(
                object,
                format!("'{name}' is a prefix of several devices: {}", devices.join(", ")),
            )
        } else if let Some((_, port)) = matched.iter().find(|(_, port)| !port.is_active())
            && !filter.is_excluding
            && (entry.port.is_some() || !matched.iter().any(|(_, port)| port.is_active()))
        {
            Outcome::warning(object, format!("{} is not active and is skipped", port.object))
        } else {
            all.push(Outcome::ok(object, format!("'{name}' is {}", devices.join(", "))).seen(from, &value));
            continue;
        };
        all.push(
            outcome
                .seen(from, &value)
                .expected("'=' in front, then device:port of active ports")
                .fix(fix.clone()),
        );
    }
    all
}

fn nccl_rails(facts: &Facts<'_>) -> Vec<Outcome> {
    let Some((value, from)) = nccl_variable(facts, "NCCL_CROSS_NIC") else {
        return Vec::new();
    };
    let mut subnets: Vec<String> = facts
        .ports()
        .filter(|(_, port)| port.is_active())
        .filter_map(|(_, port)| port.best_gid()?.routable())
        .map(subnet)
        .collect();
    subnets.sort();
    subnets.dedup();
    if subnets.len() < 2 {
        return Vec::new();
    }
    let object = "NCCL_CROSS_NIC";
    let outcome = if value == "1" || value == "2" {
        Outcome::warning(
            object,
            format!(
                "NCCL_CROSS_NIC={value}, and the devices are in {} subnets: {}",
                subnets.len(),
                subnets.join(", ")
            ),
        )
        .expected("0, or routes between the subnets of the rails")
        .fix("export NCCL_CROSS_NIC=0")
        .likely()
    } else {
        Outcome::ok(object, format!("NCCL_CROSS_NIC={value}"))
    };
    vec![outcome.seen(from, value)]
}

fn plugin(facts: &Facts<'_>) -> Vec<Outcome> {
    let Some(log) = &facts.plan.nccl_log else {
        return Vec::new();
    };
    let object = "NCCL";
    let network = log.lines().find_map(|line| line.split("Using network ").nth(1));
    let network = network.map(|network| network.split_whitespace().next().unwrap_or_default());
    let Some(network) = network else {
        return vec![Outcome::unknown(
            object,
            Unknown {
                source: "NCCL's log".to_owned(),
                why: "it has no line 'Using network'; run with NCCL_DEBUG=INFO".to_owned(),
            },
        )];
    };
    let outcome = if network == "Socket" && !facts.devices.is_empty() {
        Outcome::warning(
            object,
            "NCCL used sockets (TCP), although this host has RDMA devices",
        )
        .expected("IB, or a plugin")
        .advice("NCCL_DEBUG=INFO and NCCL_DEBUG_SUBSYS=INIT,NET show why, in the lines of NET/IB")
    } else {
        Outcome::info(object, format!("NCCL used the network {network}"))
    };
    let mut outcome = outcome;
    outcome.seen.push(crate::doctor::check::Seen {
        source: "NCCL's log".to_owned(),
        value: format!("Using network {network}"),
    });
    vec![outcome]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_come_in_one_or_three_columns() {
        let three = "\
Configurations:                                      Default         Current         Next Boot
        SRIOV_EN                                    False(0)        True(1)         True(1)
*       MAX_ACC_OUT_READ                            0               0               128
The '*' shows parameters with next value different from default/current value.
";
        let all = mstconfig(three);
        assert_eq!(all.len(), 2);
        assert_eq!(
            all["MAX_ACC_OUT_READ"],
            Setting {
                current: Some("0".into()),
                next: "128".into()
            }
        );
        assert_eq!(all["SRIOV_EN"].current.as_deref(), Some("1"));
        let one = "Configurations:                              Next Boot\n        CNP_DSCP_P1      48\n";
        assert_eq!(
            mstconfig(one)["CNP_DSCP_P1"],
            Setting {
                current: None,
                next: "48".into()
            }
        );
        assert!(mstconfig("").is_empty() && mstconfig("Configurations:\n*\n* *\n").is_empty());
    }

    #[test]
    fn versions_are_compared_by_numbers() {
        assert!(numbers("22.9.1000") < numbers("22.39"));
        assert!(numbers("22.39.1002") >= numbers("22.39"));
    }
}
