//! Findings about single paths: dead, marked, slow, uneven planes, and a switch that all dead paths share.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;

use roce_model::cast::float;
use roce_model::{Confidence, MrcPathRow, MrcPathState, Span};

use super::hits::{Hit, MrcConnection};
use crate::chance::{UNLIKELY, at_least};
use crate::numbers::{counted, percent, share};

/// Lost packets of a path that are no chance.
const MIN_LOST: u64 = 2;
/// How many times as many marks as the median path has are many.
const MARKED: f64 = 3.0;
/// Samples of a path's time that tell it from others.
const MIN_SAMPLES: u64 = 20;
/// Samples of a path that show if others are as slow.
const SOME_SAMPLES: u64 = 5;
/// A path is slow by this at least, in ns and as a share of the median.
const SLOWER_NS: u64 = 2_000;
const SLOWER: f64 = 0.3;
/// Several paths that are slow share what is slow where they are one of so many or more: an adapter has eight ports at most.
const SHARED: usize = 8;
/// Packets that show how a connection uses its planes, and how far off an even share is too far.
const MIN_PACKETS: u64 = 1_000;
const UNEVEN: f64 = 0.2;
/// Standard deviations of a count of packets that chance does not reach, where each packet draws its plane.
const NO_CHANCE: f64 = 5.0;
/// Bytes of an SRv6 address before its switches, and of each switch (RFC 9800: a block of 32 bits, identifiers of 16).
const BLOCK: usize = 4;

/// A path in words.
fn name(path: &MrcPathRow) -> String {
    let entropy = path
        .ev
        .map_or_else(|| format!("number {}", path.path), |ev| format!("{ev:#x}"));
    match path.plane {
        Some(plane) => format!("path {entropy} of plane {plane}"),
        None => format!("path {entropy}"),
    }
}

/// True of a path that its sender left after losses, and that carried nothing later: no packet, or not its probe.
fn is_dead(path: &MrcPathRow) -> bool {
    let silent = path.last_arrived_time < path.last_loss_time;
    let left = match path.state {
        MrcPathState::Dead => true,
        MrcPathState::Retired => silent,
        MrcPathState::InUse | MrcPathState::Unknown => false,
    };
    left && path.lost >= MIN_LOST
}

/// Paths that are dead.
pub(super) fn dead<'a>(all: &[MrcConnection<'a>]) -> Vec<Hit<'a>> {
    let mut hits = Vec::new();
    for of in all {
        // Packets of several paths may have waited at the same time.
        let mut left = of.row.repair_loss_ns.saturating_add(of.row.repair_timeout_ns);
        for path in of.paths.iter().filter(|path| is_dead(path)) {
            let (Some(first), Some(last)) = (path.first_loss_time, path.last_sent_time) else {
                continue;
            };
            let probe = match path.probes_unanswered {
                0 => "",
                _ => ", and a probe of it was not answered",
            };
            let what = format!(
                "{} lost {} of {}; the sender left it after {}{probe}",
                name(path),
                path.lost,
                counted(path.sent, "packet"),
                Span(last.since(first).0)
            );
            let price = path.repair_ns.min(left);
            left -= price;
            let mut hit = Hit::new(*of, path.lost, what)
                .waited(price)
                .with("ev", path.ev.unwrap_or_default().into())
                .with("udp_source_port", path.udp_source_port.unwrap_or_default().into())
                .with("lost", path.lost)
                .with("sent", path.sent)
                .with("probes_unanswered", path.probes_unanswered);
            hit.first = first;
            hits.push(hit);
        }
    }
    hits
}

/// Lost packets of dead paths.
pub(super) fn lost_on_dead(all: &[MrcConnection<'_>]) -> u64 {
    let paths = all.iter().flat_map(|of| of.paths);
    paths.filter(|path| is_dead(path)).map(|path| path.lost).sum()
}

/// The median of numbers; 0 of none.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values
        .get(values.len().saturating_sub(1) / 2)
        .copied()
        .unwrap_or_default()
}

/// Few paths that carry the marks.
pub(super) fn marked<'a>(all: &[MrcConnection<'a>]) -> Vec<Hit<'a>> {
    let mut hits = Vec::new();
    for of in all {
        let paths: Vec<&MrcPathRow> = of.paths.iter().filter(|path| path.sacks > 0).collect();
        let of_path = |path: &&MrcPathRow| share(path.marked, path.sacks).unwrap_or_default();
        let usual = median(paths.iter().map(of_path).collect());
        let (marks, sacks) = paths.iter().fold((0, 0), |(marks, sacks), path| {
            (marks + path.marked, sacks + path.sacks)
        });
        let even = share(marks, sacks).unwrap_or_default();
        let is_many = |path: &&&MrcPathRow| {
            path.marked > 0
                && of_path(path) >= MARKED * usual
                && at_least(path.marked, path.sacks, even) * float(paths.len() as u64) < UNLIKELY
        };
        let many: Vec<&&MrcPathRow> = paths.iter().filter(is_many).collect();
        if many.is_empty() || many.len() * 2 > paths.len() {
            continue;
        }
        let of_many: u64 = many.iter().map(|path| path.marked).sum();
        let names: Vec<String> = many.iter().take(3).map(|path| name(path)).collect();
        let what = format!(
            "{} of {} marks on {} of {} ({}): load is uneven",
            of_many,
            marks,
            many.len(),
            counted(paths.len() as u64, "path"),
            names.join(", ")
        );
        let mut hit = Hit::new(*of, of_many, what)
            .with("marked", of_many)
            .with("all_marked", marks)
            .with("paths", many.len() as u64)
            .with("all_paths", paths.len() as u64);
        // SACKs alone name the path and the mark.
        if hit.confidence == Confidence::Low {
            hit.confidence = Confidence::Medium;
        }
        hits.push(hit);
    }
    hits
}

/// Paths whose packets take longer than those of the others: usually, and the fastest of them as well. What takes longer in a part of the
/// time waits in a queue. Where many paths do, it is not a path that is slow, but what they share: a plane, the port of a host.
pub(super) fn slow<'a>(all: &[MrcConnection<'a>]) -> Vec<Hit<'a>> {
    let mut hits = Vec::new();
    for of in all {
        let known: Vec<(&MrcPathRow, u64, u64)> = of
            .paths
            .iter()
            .filter(|path| path.rtt_samples >= SOME_SAMPLES)
            .filter_map(|path| Some((path, path.rtt_p50_ns?, path.rtt_min_ns?)))
            .collect();
        if known.len() < 3 {
            continue;
        }
        let usual = median(known.iter().map(|(_, time, _)| float(*time)).collect());
        let fastest = median(known.iter().map(|(_, _, least)| float(*least)).collect());
        let limit = (usual * SLOWER).max(float(SLOWER_NS));
        let is_late = |(_, time, _): &&(&MrcPathRow, u64, u64)| float(*time) > usual + limit;
        let late: Vec<_> = known.iter().filter(is_late).collect();
        if late.len() > 1 && late.len() * SHARED >= known.len() {
            continue;
        }
        let always = |(_, _, least): &&(&MrcPathRow, u64, u64)| float(*least) > fastest + limit;
        let is_sure = |(path, ..): &&(&MrcPathRow, u64, u64)| path.rtt_samples >= MIN_SAMPLES;
        for (path, time, _) in late.iter().copied().filter(is_sure).filter(always) {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a time in ns"
            )]
            let by = (float(*time) - usual) as u64;
            let what = format!("{} is {} slower than the others", name(path), Span(by));
            hits.push(
                Hit::new(*of, by, what)
                    .with("ev", path.ev.unwrap_or_default().into())
                    .with("udp_source_port", path.udp_source_port.unwrap_or_default().into())
                    .with("slower_ns", by)
                    .with("rtt_p50_ns", *time)
                    .with("samples", path.rtt_samples),
            );
        }
    }
    hits
}

/// Planes that carry more or less than their part. Only SRv6 names them all; where a port is down, the others take its part.
pub(super) fn uneven<'a>(all: &[MrcConnection<'a>], is_port_down: bool) -> Vec<Hit<'a>> {
    let mut hits = Vec::new();
    for of in all
        .iter()
        .filter(|of| !is_port_down && of.row.confidence == Confidence::High)
    {
        let mut planes: BTreeMap<u32, u64> = BTreeMap::new();
        for path in of.paths.iter().filter(|path| path.srv6.is_some()) {
            *planes.entry(path.plane.unwrap_or_default()).or_default() += path.sent;
        }
        let sent: u64 = planes.values().sum();
        if planes.len() < 2 || sent < MIN_PACKETS {
            continue;
        }
        let even = 1.0 / float(planes.len() as u64);
        let off = |part: u64| (share(part, sent).unwrap_or_default() / even - 1.0).abs();
        let Some((plane, part)) = planes.iter().max_by(|a, b| off(*a.1).total_cmp(&off(*b.1))) else {
            continue;
        };
        let expected = float(sent) * even;
        let by_chance = (float(*part) - expected).abs() <= NO_CHANCE * expected.sqrt();
        if off(*part) <= UNEVEN || by_chance {
            continue;
        }
        let what = format!(
            "plane {plane} carries {} instead of {}",
            percent(share(*part, sent).unwrap_or_default()),
            percent(even)
        );
        hits.push(
            Hit::new(*of, sent, what)
                .with("plane", (*plane).into())
                .with("sent", *part)
                .with("all_sent", sent)
                .with("planes", planes.len() as u64),
        );
    }
    hits
}

/// The switches of an SRv6 destination, 16 bits each.
fn switches(path: &MrcPathRow) -> BTreeSet<u16> {
    let address = path
        .srv6
        .as_deref()
        .and_then(|text| text.parse::<Ipv6Addr>().ok());
    let octets = address.map(|address| address.octets()).unwrap_or_default();
    let ids = octets[BLOCK..]
        .chunks_exact(2)
        .map(|id| u16::from_be_bytes([id[0], id[1]]));
    ids.filter(|id| *id != 0).collect()
}

/// A switch that all dead paths pass and no other one. At the receiver the addresses no longer name it.
pub(super) fn suspect<'a>(all: &[MrcConnection<'a>]) -> Option<Hit<'a>> {
    let mut common: Option<BTreeSet<u16>> = None;
    let mut good: BTreeSet<u16> = BTreeSet::new();
    let mut dead = Vec::new();
    for of in all.iter().filter(|of| !of.row.at_receiver) {
        for path in of.paths.iter().filter(|path| path.srv6.is_some()) {
            if is_dead(path) {
                let passed = switches(path);
                common = Some(common.map_or_else(|| passed.clone(), |common| &common & &passed));
                dead.push((*of, path.lost));
            } else if path.state == MrcPathState::InUse {
                good.extend(switches(path));
            }
        }
    }
    let suspects: Vec<u16> = common?.difference(&good).copied().collect();
    let (of, _) = *dead.first().filter(|_| dead.len() >= 2 && !suspects.is_empty())?;
    let names: Vec<String> = suspects.iter().map(|id| format!("{id:04x}")).collect();
    let what = format!(
        "switch {} is on all {} dead paths and on no other",
        names.join(" or "),
        dead.len()
    );
    let lost = dead.iter().map(|(_, lost)| lost).sum();
    let mut hit = Hit::new(of, lost, what).with("dead_paths", dead.len() as u64);
    hit.evidence.text("usid", names.join(" "));
    Some(hit)
}
