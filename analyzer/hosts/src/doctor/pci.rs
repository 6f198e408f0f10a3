//! Checks of the PCI tree: IOMMU, links, requests, and the way between GPUs and adapters.

use roce_model::Severity;

use crate::doctor::check::{CERTAIN, Check, CheckResult, CheckRun, Outcome, each};
use crate::doctor::config_space::{ConfigSpace, UNPRIVILEGED};
use crate::doctor::facts::{Facts, RdmaDevice, odd};
use crate::doctor::host::Unknown;

pub(crate) const CHECKS: &[Check] = &[
    Check {
        id: "iommu.mode",
        title: "the IOMMU passes the adapter through",
        read: "/sys/bus/pci/devices/ADDRESS/iommu_group/type; no group: no IOMMU is active, whatever the kernel's arguments say",
        method: "DMA or DMA-FQ (both translate) with a GPU in the host: warning; without a GPU: information; identity, or no group: ok",
        meaning: "A translating IOMMU breaks or slows access between GPU and adapter.",
        symptom: "IBV_WC_LOC_PROT_ERR(4) with vendor error 81 (0x51); fallback to TCP. A limit of locked memory shows alike.",
        alternatives: "memlock: neither of the two is the cause before the other is excluded",
        source: "Linux Documentation/ABI/testing/sysfs-kernel-iommu_groups",
        severity: Severity::Warning,
        confidence: "certain; likely where the outcome says so",
        run: CheckRun::new("pcie", iommu),
        ..CERTAIN
    },
    Check {
        id: "pcie.link",
        title: "PCIe links run at full width and speed",
        read: "current_link_width, max_link_width, current_link_speed, max_link_speed of the device",
        method: "less than the device's maximum: warning",
        meaning: "A slot of fewer lanes, a riser or a badly seated card halves the throughput.",
        symptom: "Throughput below the link's speed; pauses are sent although no network is congested.",
        alternatives: "link.speed",
        source: "Linux Documentation/ABI/testing/sysfs-bus-pci",
        severity: Severity::Warning,
        run: CheckRun::new("pcie", link),
        ..CERTAIN
    },
    Check {
        id: "pcie.payload",
        title: "sizes of PCIe payloads and read requests",
        read: "configuration space of the device, Device Control; beyond byte 64 it needs root",
        method: "read requests below 512 bytes, or another payload than an adapter of the same kind: warning",
        meaning: "Small requests cost throughput on PCIe.",
        symptom: "Throughput below the link's speed.",
        alternatives: "pcie.link",
        source: "PCI Express Base Specification, 7.5.3.4",
        severity: Severity::Warning,
        run: CheckRun::new("pcie", payload),
        ..CERTAIN
    },
    Check {
        id: "pcie.read_request",
        title: "adapters of one kind have one size of read requests",
        read: "configuration space, Device Control bits 14:12",
        method: "less than another adapter of the same board: warning",
        meaning: "setpci sets it, and a reboot forgets it.",
        symptom: "One of several equal adapters is slower.",
        alternatives: "firmware.settings",
        source: "PCI Express Base Specification, 7.5.3.4",
        severity: Severity::Warning,
        run: CheckRun::new("pcie", read_request),
        ..CERTAIN
    },
    Check {
        id: "pcie.acs",
        title: "bridges between GPU and adapter do not redirect",
        read: "configuration space of the bridges above, Access Control Services: request redirect, completion redirect, upstream forwarding",
        method: "any of the three on a bridge above both a GPU and an adapter, outside of virtual machines: warning",
        meaning: "A redirect sends packets between GPU and adapter through the root complex.",
        symptom: "GPUDirect runs at the root complex's rate.",
        alternatives: "iommu.mode",
        source: "PCI Express Base Specification, 7.7.8.3",
        severity: Severity::Warning,
        run: CheckRun::new("pcie", acs),
        ..CERTAIN
    },
    Check {
        id: "pcie.ats",
        title: "address translation services",
        read: "configuration space of the device, control bit 15; the flag hypervisor in /proc/cpuinfo",
        method: "off in a virtual machine with a GPU: warning; otherwise information",
        meaning: "In a virtual machine GPUDirect needs translated requests.",
        symptom: "GPUDirect is slow in a virtual machine alone.",
        alternatives: "pcie.acs",
        source: "PCI Express Base Specification, 10.5.1",
        severity: Severity::Warning,
        confidence: "certain; likely where the outcome says so",
        run: CheckRun::new("pcie", ats),
        ..CERTAIN
    },
];

pub(crate) fn hardware<'a>(facts: &'a Facts<'_>) -> impl Iterator<Item = (&'a RdmaDevice, &'a str)> {
    let all = facts.devices.iter();
    all.filter_map(|device| Some((device, device.pci.as_deref()?)))
}

fn iommu(facts: &Facts<'_>) -> Vec<Outcome> {
    let has_gpu = facts.gpus().next().is_some();
    each(
        hardware(facts),
        |(device, _)| device.name.clone(),
        |(device, pci)| {
            let group = format!("sys/bus/pci/devices/{pci}/iommu_group");
            let path = format!("{group}/type");
            let name = format!("{} ({pci})", device.name);
            if !facts.host.has(&group) {
                // A device that was not read has no group either.
                facts.host.need(&format!("sys/bus/pci/devices/{pci}/vendor"))?;
                return Ok(Outcome::ok(
                    &device.name,
                    format!("{name} is in no IOMMU group: no IOMMU is active"),
                )
                .seen(&group, "not there"));
            }
            let kind = facts.host.need(&path)?;
            let outcome = match kind.as_str() {
                "identity" => Outcome::ok(&device.name, format!("{name} is passed through by the IOMMU")),
                "DMA" | "DMA-FQ" => {
                    let said = format!("{name} is in an IOMMU group of type {kind}, which translates");
                    if has_gpu {
                        Outcome::warning(&device.name, said)
                            .expected("identity")
                            .advice("kernel argument iommu=pt (with intel_iommu=on on Intel), then a reboot")
                            .likely()
                    } else {
                        Outcome::info(&device.name, format!("{said}; it matters with a GPU"))
                    }
                }
                _ => return Err(odd(&path, &kind)),
            };
            Ok(outcome.seen(&path, kind))
        },
    )
}

fn link(facts: &Facts<'_>) -> Vec<Outcome> {
    each(
        hardware(facts).filter(|(device, _)| !device.is_virtual),
        |(device, _)| device.name.clone(),
        |(device, pci)| {
            let file = |name: &str| format!("sys/bus/pci/devices/{pci}/{name}");
            let (width, most): (u32, u32) = (
                facts.host.number(&file("current_link_width"))?,
                facts.host.number(&file("max_link_width"))?,
            );
            let (speed, fastest) = (
                facts.host.need(&file("current_link_speed"))?,
                facts.host.need(&file("max_link_speed"))?,
            );
            let rate = |text: &str| text.split_whitespace().next()?.parse::<f64>().ok();
            let (Some(now), Some(best)) = (rate(&speed), rate(&fastest)) else {
                return Err(odd(&file("current_link_speed"), &speed));
            };
            let seen = format!("x{width} {speed} of x{most} {fastest}");
            let name = &device.name;
            Ok(if width < most || now < best {
                Outcome::warning(name, format!("{name} ({pci}) runs at {seen}"))
                    .expected(format!("x{most} {fastest}"))
                    .advice("a slot of full width and generation; look at risers and BIOS settings")
            } else {
                Outcome::ok(name, format!("{name} ({pci}) runs at x{width} {speed}"))
            }
            .seen(&file("current_link_width"), seen))
        },
    )
}

/// Bytes of a device's configuration space beyond those that everybody may read.
fn space<'a>(facts: &'a Facts<'_>, pci: &str) -> Result<&'a [u8], Unknown> {
    let path = format!("sys/bus/pci/devices/{pci}/config");
    let bytes = facts.host.bytes(&path)?;
    if bytes.len() <= UNPRIVILEGED {
        return Err(Unknown {
            source: format!("/{path}"),
            why: "reading beyond byte 64 needs root".to_owned(),
        });
    }
    Ok(bytes)
}

fn sizes(facts: &Facts<'_>, pci: &str) -> Result<(u32, u32), Unknown> {
    ConfigSpace(space(facts, pci)?).sizes().ok_or_else(|| Unknown {
        source: format!("/sys/bus/pci/devices/{pci}/config"),
        why: "it has no PCI Express capability".to_owned(),
    })
}

/// Sizes of another adapter of the same board for which a comparison holds.
fn alike<'a>(facts: &'a Facts<'_>, device: &'a RdmaDevice) -> impl Iterator<Item = (u32, u32)> + 'a {
    let others = hardware(facts).filter(move |(other, _)| {
        other.name != device.name && other.board.is_some() && other.board == device.board
    });
    others.filter_map(|(_, pci)| sizes(facts, pci).ok())
}

fn payload(facts: &Facts<'_>) -> Vec<Outcome> {
    each(
        hardware(facts).filter(|(device, _)| !device.is_virtual),
        |(device, _)| device.name.clone(),
        |(device, pci)| {
            let (payload, request) = sizes(facts, pci)?;
            let seen = format!("payload {payload}, read request {request} bytes");
            let name = &device.name;
            let outcome = if request < 512 {
                Outcome::warning(name, format!("{name}: read requests of {request} bytes"))
                    .expected("512 bytes or more")
                    .fix(format!("setpci -s {pci} CAP_EXP+8.w=5000:7000"))
            } else if let Some((other, _)) = alike(facts, device).find(|(other, _)| *other > payload) {
                Outcome::warning(
                    name,
                    format!("{name}: payload of {payload} bytes, and {other} on an adapter of the same kind"),
                )
                .expected(format!("{other} bytes"))
            } else {
                Outcome::ok(name, format!("{name}: {seen}"))
            };
            Ok(outcome.seen(&format!("sys/bus/pci/devices/{pci}/config"), seen))
        },
    )
}

fn read_request(facts: &Facts<'_>) -> Vec<Outcome> {
    each(
        hardware(facts).filter(|(device, _)| !device.is_virtual),
        |(device, _)| device.name.clone(),
        |(device, pci)| {
            let (_, request) = sizes(facts, pci)?;
            let best = alike(facts, device).map(|(_, other)| other).max();
            let name = &device.name;
            Ok(match best.filter(|best| *best > request) {
                Some(best) => Outcome::warning(
                    name,
                    format!(
                        "{name}: read requests of {request} bytes, and {best} on an adapter of the same kind"
                    ),
                )
                .expected(format!("{best} bytes"))
                .fix(format!("setpci -s {pci} CAP_EXP+8.w=5000:7000")),
                None => Outcome::ok(name, format!("{name}: read requests of {request} bytes")),
            }
            .seen(
                &format!("sys/bus/pci/devices/{pci}/config"),
                format!("read request {request}"),
            ))
        },
    )
}

/// Bridges above both of two devices; `None`: the tree is not known.
pub(crate) fn common(facts: &Facts<'_>, a: &str, b: &str) -> Option<Vec<String>> {
    let (a, b) = (facts.pci_path(a)?, facts.pci_path(b)?);
    let shared = a.iter().zip(&b).take_while(|(a, b)| a == b);
    Some(shared.map(|(a, _)| a.clone()).collect())
}

fn acs(facts: &Facts<'_>) -> Vec<Outcome> {
    let gpus: Vec<String> = facts.gpus().map(|gpu| gpu.address.clone()).collect();
    if gpus.is_empty() || facts.is_virtual_machine() == Some(true) {
        return Vec::new();
    }
    each(
        hardware(facts).filter(|(device, _)| !device.is_virtual),
        |(device, _)| device.name.clone(),
        |(device, pci)| -> CheckResult {
            let tree = Unknown {
                source: "the PCI tree".to_owned(),
                why: "paths of /sys/devices are not known".to_owned(),
            };
            let path = facts.pci_path(pci).ok_or(tree)?;
            let root = path.first().cloned().unwrap_or_default();
            let near = gpus.iter().any(|gpu| {
                facts
                    .pci_path(gpu)
                    .is_some_and(|path| path.first() == Some(&root))
            });
            let name = &device.name;
            if !near {
                return Ok(
                    Outcome::ok(name, format!("{name} shares no root complex with a GPU"))
                        .seen(&format!("sys/bus/pci/devices/{pci}"), path.join("/")),
                );
            }
            let mut on = Vec::new();
            for bridge in path.iter().skip(1).filter(|bridge| *bridge != pci) {
                let bytes = space(facts, bridge)?;
                let space = ConfigSpace(bytes);
                if !space.is_whole() {
                    return Err(Unknown {
                        source: format!("/sys/bus/pci/devices/{bridge}/config"),
                        why: "extended configuration space could not be read".to_owned(),
                    });
                }
                // Request redirect, completion redirect, upstream forwarding: bits 2, 3 and 4.
                if space.acs().is_some_and(|control| control & 0x1c != 0) {
                    on.push(bridge.clone());
                }
            }
            let source = format!("sys/bus/pci/devices/{pci}");
            Ok(if on.is_empty() {
                Outcome::ok(name, format!("{name}: no bridge above it redirects"))
                    .seen(&source, "no redirect")
            } else {
                let list = on.join(", ");
                let mut outcome = Outcome::warning(
                    name,
                    format!("{name}: bridges redirect packets between GPU and adapter: {list}"),
                )
                .seen(&source, format!("ACS redirect on {list}"))
                .expected("no redirect");
                for bridge in &on {
                    outcome = outcome.fix(format!("setpci -s {bridge} ECAP_ACS+6.w=0:1c"));
                }
                outcome
            })
        },
    )
}

fn ats(facts: &Facts<'_>) -> Vec<Outcome> {
    if facts.gpus().next().is_none() {
        return Vec::new();
    }
    let is_machine = facts.is_virtual_machine();
    each(
        hardware(facts).filter(|(device, _)| !device.is_virtual),
        |(device, _)| device.name.clone(),
        |(device, pci)| {
            let space = ConfigSpace(space(facts, pci)?);
            let path = format!("sys/bus/pci/devices/{pci}/config");
            if !space.is_whole() {
                return Err(Unknown {
                    source: format!("/{path}"),
                    why: "extended configuration space could not be read".to_owned(),
                });
            }
            let name = &device.name;
            let said = match space.ats() {
                Some(true) => "on",
                Some(false) => "off",
                None => "not there",
            };
            let text = format!("{name}: address translation services are {said}");
            Ok(if space.ats() == Some(false) && is_machine == Some(true) {
                Outcome::warning(name, text)
                    .expected("on in a virtual machine with GPUDirect")
                    .fix(format!("mlxconfig -d {pci} set ATS_ENABLED=1"))
                    .likely()
            } else {
                Outcome::info(name, text)
            }
            .seen(&path, said))
        },
    )
}
