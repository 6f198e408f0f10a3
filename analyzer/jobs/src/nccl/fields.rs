//! Fields of lines about the library and its devices, and of connections.

use std::collections::BTreeSet;

use super::log::Edge;

/// RDMA devices that are kept of a host: NCCL takes 32.
pub(super) const MAX_DEVICES: usize = 64;
/// Settings, edges, ranks, communicators and processes that are kept of each.
pub(super) const MAX_KEPT: usize = 65_536;
/// Longest text of a setting, a name or a warning that is kept.
const MAX_TEXT: usize = 1_024;

/// `NCCL version 2.21.5+cuda12.4`, `RCCL version : 2.30.4-HEAD:2b22ab0`; before 2.23 a line of its own.
pub(super) fn version(line: &str) -> Option<&str> {
    for library in ["RCCL version", "NCCL version"] {
        if let Some(at) = line.find(library) {
            let rest = line.get(at + library.len()..)?.trim_start_matches([' ', ':']);
            let is_version = rest.starts_with(|glyph: char| glyph.is_ascii_digit());
            return is_version.then(|| line.get(at..).unwrap_or_default().trim());
        }
    }
    None
}

/// `[0]mlx5_6:1/RoCE [1]mlx5_7:1/RoCE`; since 2.20 with adapters of one network device in braces: `[0]={[0] mlx5_2:1/RoCE, ...}`.
pub(super) fn devices_of(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    for part in text.split(['[', '{', '}', ',', ' ']) {
        let name = part.rsplit(']').next().unwrap_or_default();
        let is_name = name.contains(':') && name.contains('/') && name.len() <= MAX_TEXT;
        if is_name && names.len() < MAX_DEVICES {
            names.push(name.to_owned());
        }
    }
    names
}

pub(super) fn keep(names: &mut BTreeSet<String>, name: &str) {
    if names.len() < MAX_KEPT {
        names.insert(short(name));
    }
}

/// The first part of a text, at a character's border.
pub(super) fn short(text: &str) -> String {
    let end = (0..=MAX_TEXT.min(text.len()))
        .rev()
        .find(|end| text.is_char_boundary(*end))
        .unwrap_or_default();
    text.get(..end).unwrap_or_default().to_owned()
}

/// A setting: `NCCL_IB_HCA set to =mlx5_7:1`, or `NCCL_IB_TC set by environment to 106.`
pub(super) fn setting(text: &str) -> Option<(&str, &str)> {
    let (name, value) = text.split_once(" set ")?;
    let name = name.trim();
    let is_name = ["NCCL_", "RCCL_"].iter().any(|prefix| name.starts_with(prefix)) && !name.contains(' ');
    let (_, value) = value.split_once("to ")?;
    is_name.then(|| (name, value.trim().trim_end_matches('.')))
}

/// An edge: `Channel 00/0 : 3[3] -> 4[0] [send] via NET/IB/0/GDRDMA`. Ranks may have a bus id behind them.
pub(super) fn edge(text: &str) -> Option<Edge> {
    let (_, rest) = text.strip_prefix("Channel ")?.split_once(" : ")?;
    let (from, rest) = rest.split_once(" -> ")?;
    let (_, transport) = rest.split_once(" via ")?;
    let rank = |text: &str| text.trim().split('[').next()?.parse::<u32>().ok();
    Some(Edge {
        from: rank(from)?,
        to: rank(rest)?,
        transport: short(transport.split_whitespace().next()?),
    })
}
