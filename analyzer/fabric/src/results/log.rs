//! NCCL's log (`NCCL_DEBUG=INFO`): settings, network, devices, edges between ranks, and completions with an error. Versions differ, so
//! lines are recognized by a part of them, and fields are read behind it.

use super::measured::{Edge, NcclLog, Results, Weight};
use super::text::{after, numbered};

/// RDMA devices that are kept: NCCL takes 32 of a host.
const MAX_DEVICES: usize = 64;

/// Settings, edges and ranks that are kept of each.
const MAX_KEPT: usize = 65_536;

/// True if a text has lines of NCCL's log.
pub(super) fn is_one(text: &str) -> bool {
    text.contains("NCCL INFO") || text.contains("NCCL WARN")
}

/// Reads the log into `found`.
pub(super) fn parse(text: &str, found: &mut Results) {
    let mut log = NcclLog::default();
    let mut sockets = None;
    for (at, line) in numbered(text) {
        if line.contains("Got completion") {
            completion(found, at, line);
        } else if line.contains("NET/IB : No device found") {
            let text = "NCCL found no RDMA device".to_owned();
            found.remark(Weight::Critical, "nccl.no_device", at, text);
        } else if line.contains("NCCL WARN") {
            let text = line.split_once("NCCL WARN").map_or(line, |(_, rest)| rest).trim();
            found.remark(Weight::Warning, "nccl.warning", at, format!("NCCL says: {text}"));
        } else if line.contains("NCCL INFO") {
            found.left_out += u64::from(!information(&mut log, line));
        }
        if line.contains("via NET/Socket") || line.contains("Using network Socket") {
            sockets.get_or_insert(at);
        }
    }
    if let Some(at) = sockets {
        let text = if log.devices.is_empty() {
            "ranks are connected by TCP sockets, not by RDMA".to_owned()
        } else {
            "ranks are connected by TCP sockets although the host has RDMA devices".to_owned()
        };
        found.remark(Weight::Warning, "nccl.socket", at, text);
    }
    let staged = log
        .edges
        .keys()
        .filter(|edge| edge.is_network() && !edge.is_direct() && edge.transport.starts_with("NET/IB"))
        .count();
    if staged > 0 {
        let text = format!("connections that copy over host memory, without GPUDirect RDMA: {staged}");
        found.remark(Weight::Info, "nccl.no_gpudirect", 0, text);
    }
    if found.tool.is_empty() || found.measurements.is_empty() {
        found.tool = "nccl";
    }
    found.log = Some(log);
}

/// Reads a line; false: it has an edge beyond those that are kept.
fn information(log: &mut NcclLog, line: &str) -> bool {
    let Some((_, rest)) = line.split_once("NCCL INFO ") else {
        return true;
    };
    if let Some((name, value)) = setting(rest) {
        if log.settings.len() < MAX_KEPT {
            log.settings.insert(name.to_owned(), value.to_owned());
        }
    } else if let Some((_, devices)) = rest.split_once("NET/IB : Using ") {
        let (devices, out_of_band) = devices.split_once("; OOB ").unwrap_or((devices, ""));
        for field in devices.split_whitespace() {
            if field == "[RO]" {
                log.is_relaxed = true;
            } else if let Some((_, device)) = field.split_once(']')
                && !device.is_empty()
                && log.devices.len() < MAX_DEVICES
                && !log.devices.iter().any(|known| known == device)
            {
                log.devices.push(device.to_owned());
            }
        }
        if let Some((interface, _)) = out_of_band.split_once(':')
            && log.out_of_band.len() < MAX_KEPT
        {
            log.out_of_band.insert(interface.trim().to_owned());
        }
    } else if let Some((_, network)) = rest.split_once("Using network ") {
        if log.networks.len() < MAX_KEPT {
            log.networks.insert(network.trim().to_owned());
        }
    } else if rest.starts_with("Channel ")
        && let Some(edge) = edge(rest)
    {
        if log.edges.len() >= MAX_KEPT && !log.edges.contains_key(&edge) {
            return false;
        }
        *log.edges.entry(edge).or_default() += 1;
    } else if rest.contains("Init COMPLETE") {
        let rank = after(rest, " rank ").and_then(|text| text.parse::<u32>().ok());
        let world = after(rest, " nranks ").and_then(|text| text.parse::<u32>().ok());
        log.world = log.world.max(world);
        if let (Some(rank), Some(bus)) = (rank, after(rest, " busId "))
            && log.ranks.len() < MAX_KEPT
        {
            log.ranks.insert(rank, bus.to_owned());
        }
    }
    true
}

/// A setting: `NCCL_IB_HCA set to =mlx5_7:1`, or `NCCL_IB_TC set by environment to 106.`
fn setting(rest: &str) -> Option<(&str, &str)> {
    let (name, value) = rest.split_once(" set ")?;
    let name = name.trim();
    let is_name = name.starts_with("NCCL_") && !name.contains(' ');
    let (_, value) = value.split_once("to ")?;
    is_name.then(|| (name, value.trim().trim_end_matches('.')))
}

/// An edge: `Channel 00/0 : 3[3] -> 4[0] [send] via NET/IB/0/GDRDMA`. Ranks may have a bus id behind them.
fn edge(rest: &str) -> Option<Edge> {
    let (_, rest) = rest.split_once(" : ")?;
    let (from, rest) = rest.split_once(" -> ")?;
    let (_, transport) = rest.split_once(" via ")?;
    let rank = |text: &str| text.trim().split('[').next()?.parse::<u32>().ok();
    Some(Edge {
        from: rank(from)?,
        to: rank(rest)?,
        transport: transport.split_whitespace().next()?.to_owned(),
    })
}

/// A completion with an error: its status (libibverbs, `enum ibv_wc_status`) says where to look first.
fn completion(found: &mut Results, at: usize, line: &str) {
    let status = after(line, "status=").unwrap_or_default();
    let (name, number) = status.split_once('(').map_or((status, None), |(name, rest)| {
        (name, rest.trim_end_matches(')').parse::<u32>().ok())
    });
    let number = number.or_else(|| status.trim_end_matches([',', ')']).parse().ok());
    let (weight, advice) = match number {
        Some(4) => (
            Weight::Critical,
            "the memory was not registered, or freed: check memlock and IOMMU; not the network",
        ),
        Some(5) => (
            Weight::Info,
            "flushed after another error: look for the first one of this queue pair",
        ),
        Some(10) => (Weight::Critical, "the peer does not allow access to this memory"),
        Some(12) => (
            Weight::Critical,
            "no answer after all retries: look for drops, the link, and rails that are not connected",
        ),
        Some(13) => (Weight::Critical, "the receiver had no buffer, after all retries"),
        _ => (Weight::Critical, "the work request failed"),
    };
    let field = |name: &str| after(line, name).map(|value| format!("{}{value}", name.trim_start()));
    let about: Vec<String> = [
        field(" vendor_err="),
        field(" opcode="),
        after(line, "localGid ").map(|gid| format!("local GID {gid}")),
        after(line, "remoteGids").map(|gid| format!("remote GID {gid}")),
        after(line, " hca ").map(|device| format!("device {device}")),
    ]
    .into_iter()
    .flatten()
    .collect();
    let name = if name.is_empty() { "unknown status" } else { name };
    let text = format!("{name}: {advice} ({})", about.join(", "));
    found.remark(weight, "nccl.completion_error", at, text);
}
