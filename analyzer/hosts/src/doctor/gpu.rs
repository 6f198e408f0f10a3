//! Checks of GPUs: their distance from adapters, and how these reach their memory.

use roce_model::Severity;

use crate::doctor::check::{CERTAIN, Check, CheckRun, Outcome, each, host_outcome};
use crate::doctor::facts::{Facts, MELLANOX, NVIDIA, Plan, odd};
use crate::doctor::host::{Host, Unknown};
use crate::doctor::pci::{common, hardware};

pub(crate) const CHECKS: &[Check] = &[
    Check {
        id: "numa.gpu",
        title: "each GPU has an adapter nearby",
        read: "the PCI tree in /sys/devices: the nearest common bridge of each GPU and each adapter",
        method: "the nearest adapter is across sockets, and another GPU has one below its host bridge: warning; otherwise the distance as information",
        meaning: "Traffic across sockets shares the link between them. PIX: one bridge; PXB: several; PHB: one host bridge; NODE: one NUMA node; SYS: across sockets.",
        symptom: "One rank of a collective is slower than the others.",
        alternatives: "pcie.acs",
        source: "nvidia-smi topo -m, legend",
        severity: Severity::Warning,
        confidence: "certain; likely where the outcome says so",
        run: CheckRun::new("gpu", gpus),
        ..CERTAIN
    },
    Check {
        id: "gpu.peermem",
        title: "the kernel can register GPU memory",
        read: "/proc/modules (nvidia_peermem, nv_peer_mem); kernel version; /proc/driver/nvidia/version",
        method: "NVIDIA GPU and mlx5 adapter, and neither peermem nor dma-buf (kernel 5.12, open kernel module): warning",
        meaning: "Without either, data goes from the GPU through the host's memory.",
        symptom: "NCCL logs no GDRDMA.",
        alternatives: "gpu.dmabuf",
        source: "NVIDIA GPUDirect RDMA documentation",
        severity: Severity::Warning,
        run: CheckRun::new("gpu", peermem),
        ..CERTAIN
    },
    Check {
        id: "gpu.dmabuf",
        title: "NCCL can take dma-buf or peermem",
        read: "NCCL_DMABUF_ENABLE; kernel version; /proc/driver/nvidia/version; nvidia_peermem",
        method: "neither is possible, or NCCL_DMABUF_ENABLE=0 without peermem: warning; otherwise the way",
        meaning: "The way from GPU to host to adapter is a fraction of the direct one.",
        symptom: "35 instead of 194 GB/s.",
        alternatives: "gpu.peermem",
        source: "NVIDIA NCCL documentation, NCCL_DMABUF_ENABLE",
        severity: Severity::Warning,
        run: CheckRun::new("gpu", dmabuf),
        ..CERTAIN
    },
    Check {
        id: "gpu.direct",
        title: "the adapter can reach GPU memory",
        read: "the driver: mlx4 (ConnectX-3) has no dma-buf",
        method: "a GPU in the host and an adapter that cannot: warning",
        meaning: "Older adapters go through the host's memory.",
        symptom: "36 to 60 % of the possible throughput.",
        alternatives: "gpu.peermem",
        source: "Linux drivers/infiniband: reg_user_mr_dmabuf of mlx5, irdma, bnxt_re, efa",
        severity: Severity::Warning,
        run: CheckRun::new("gpu", direct),
        ..CERTAIN
    },
];

/// The distance of two PCI devices, by the names of nvidia-smi, nearest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Distance {
    Pix,
    Pxb,
    Phb,
    Node,
    Sys,
}

impl Distance {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Pix => "PIX",
            Self::Pxb => "PXB",
            Self::Phb => "PHB",
            Self::Node => "NODE",
            Self::Sys => "SYS",
        }
    }
}

/// The distance of two devices; `None`: the tree is not known.
pub(crate) fn distance(facts: &Facts<'_>, a: &str, b: &str) -> Option<Distance> {
    let shared = common(facts, a, b)?;
    let node = |address: &str| {
        facts
            .host
            .number::<i32>(&format!("sys/bus/pci/devices/{address}/numa_node"))
            .ok()
    };
    Some(match shared.len() {
        0 if node(a).is_some() && node(a) == node(b) && node(a) >= Some(0) => Distance::Node,
        0 => Distance::Sys,
        // The root complex alone, or it and the port below it: below that port there is no bridge in common.
        1 => Distance::Phb,
        _ => {
            // Bridges from the common one down to the farther of the two.
            let below = |address: &str| {
                facts
                    .pci_path(address)
                    .map_or(0, |path| path.len() - shared.len())
            };
            if below(a).max(below(b)) <= 2 {
                Distance::Pix
            } else {
                Distance::Pxb
            }
        }
    })
}

fn gpus(facts: &Facts<'_>) -> Vec<Outcome> {
    if hardware(facts).next().is_none() {
        return Vec::new();
    }
    let nearest = |gpu: &str| {
        let all = hardware(facts)
            .filter_map(|(device, pci)| Some((distance(facts, gpu, pci)?, device.name.clone())));
        all.min()
    };
    let any_near = facts
        .gpus()
        .filter_map(|gpu| nearest(&gpu.address))
        .any(|(distance, _)| distance < Distance::Sys);
    each(
        facts.gpus(),
        |gpu| gpu.address.clone(),
        |gpu| {
            let (distance, device) = nearest(&gpu.address).ok_or(Unknown {
                source: "the PCI tree".to_owned(),
                why: "paths of /sys/devices are not known".to_owned(),
            })?;
            let said = format!(
                "GPU {}: nearest adapter {device} ({})",
                gpu.address,
                distance.name()
            );
            Ok(if distance == Distance::Sys && any_near {
                Outcome::warning(&gpu.address, format!("{said}, across sockets"))
                    .expected("an adapter below the GPU's own host bridge")
                    .likely()
            } else {
                Outcome::info(&gpu.address, said)
            }
            .seen(&format!("sys/bus/pci/devices/{}", gpu.address), distance.name()))
        },
    )
}

/// How GPU memory can be registered: by peermem, by dma-buf.
fn paths(facts: &Facts<'_>) -> Result<(bool, bool), Unknown> {
    let unknown = |source: &str| Unknown {
        source: source.to_owned(),
        why: "it could not be read".to_owned(),
    };
    let modules = facts.modules().ok_or_else(|| unknown("/proc/modules"))?;
    let peermem = ["nvidia_peermem", "nv_peer_mem"]
        .iter()
        .any(|name| modules.contains(*name));
    if peermem {
        return Ok((true, false));
    }
    let kernel = facts.kernel().ok_or_else(|| unknown("uname()"))?;
    let version = facts.host.need("proc/driver/nvidia/version")?;
    Ok((false, kernel >= (5, 12) && version.contains("Open Kernel Module")))
}

fn has_pair(facts: &Facts<'_>) -> bool {
    facts.gpus().any(|gpu| gpu.vendor == NVIDIA)
        && hardware(facts).any(|(_, pci)| {
            facts
                .pci
                .iter()
                .any(|device| device.address == pci && device.vendor == MELLANOX)
        })
}

const FIX: &str = "modprobe nvidia_peermem";

fn peermem(facts: &Facts<'_>) -> Vec<Outcome> {
    if !has_pair(facts) {
        return Vec::new();
    }
    host_outcome(|| {
        let (peermem, dmabuf) = paths(facts)?;
        let seen = format!("peermem {peermem}, dma-buf {dmabuf}");
        Ok(if peermem || dmabuf {
            let way = if peermem { "nvidia_peermem" } else { "dma-buf" };
            Outcome::ok("host", format!("GPU memory can be registered by {way}"))
        } else {
            Outcome::warning(
                "host",
                "GPU memory cannot be registered: neither nvidia_peermem nor dma-buf",
            )
            .expected("one of the two")
            .fix(FIX)
        }
        .seen("proc/modules", seen))
    })
}

fn dmabuf(facts: &Facts<'_>) -> Vec<Outcome> {
    if !has_pair(facts) {
        return Vec::new();
    }
    host_outcome(|| {
        let (peermem, dmabuf) = paths(facts)?;
        let is_off = facts.host.variable("NCCL_DMABUF_ENABLE").as_deref() == Some("0");
        Ok(if peermem {
            Outcome::ok("host", "NCCL can take nvidia_peermem")
        } else if dmabuf && !is_off {
            Outcome::ok("host", "NCCL can take dma-buf")
        } else if is_off {
            Outcome::warning("host", "NCCL_DMABUF_ENABLE=0, and nvidia_peermem is not loaded")
                .expected("NCCL_DMABUF_ENABLE unset, or nvidia_peermem")
                .fix("unset NCCL_DMABUF_ENABLE")
        } else {
            Outcome::warning("host", "NCCL can take neither nvidia_peermem nor dma-buf")
                .expected("one of the two")
                .fix(FIX)
        }
        .seen("proc/modules", format!("peermem {peermem}, dma-buf {dmabuf}")))
    })
}

fn direct(facts: &Facts<'_>) -> Vec<Outcome> {
    if facts.gpus().next().is_none() {
        return Vec::new();
    }
    each(
        hardware(facts),
        |(device, _)| device.name.clone(),
        |(device, _)| {
            let path = format!("{}/device/uevent", device.path);
            let driver = device.driver.clone().ok_or_else(|| odd(&path, "no DRIVER"))?;
            let name = &device.name;
            Ok(match driver.as_str() {
                "mlx4_core" => Outcome::warning(
                    name,
                    format!("{name} ({driver}) reaches GPU memory through the host's memory alone"),
                )
                .expected("ConnectX-4 or later"),
                "mlx5_core" | "bnxt_en" | "ice" | "efa" => {
                    Outcome::ok(name, format!("{name} ({driver}) can reach GPU memory"))
                }
                _ => Outcome::info(
                    name,
                    format!("{name}: nothing is known of GPUDirect with {driver}"),
                ),
            }
            .seen(&path, driver))
        },
    )
}

/// The nearest GPU of a PCI device: its place among the GPUs, and the distance by nvidia-smi's names.
pub(crate) fn nearest_gpu(host: &Host, address: &str) -> Option<(usize, &'static str)> {
    let plan = Plan::default();
    let facts = Facts::new(host, &plan);
    let all = facts
        .gpus()
        .enumerate()
        .filter_map(|(place, gpu)| Some((distance(&facts, &gpu.address, address)?, place)));
    all.min().map(|(distance, place)| (place, distance.name()))
}
