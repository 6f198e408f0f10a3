//! Checks of a plan: what cannot work is an error, what measures something else than it seems to is a warning.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::plan::{Endpoint, TrafficPlan};
use super::stream::{Stream, streams};
use roce_model::cast::float;
use roce_spelling::rate_of;
use roce_switches::inventory::HostTarget;

/// The longest run without `--long`.
pub const MAX_DURATION: Duration = Duration::from_hours(1);

/// Concerns of one kind that are listed.
const MAX_LISTED: usize = 20;

/// How much a concern matters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Gravity {
    /// To be known.
    Note,
    /// It runs, and measures something else than it seems to.
    Warning,
    /// It cannot run.
    Error,
}

impl Gravity {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// Something to know about a plan.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Concern {
    /// How much it matters.
    pub gravity: Gravity,
    /// One sentence.
    pub text: String,
}

impl Concern {
    /// A concern.
    pub fn new(gravity: Gravity, text: String) -> Self {
        Self { gravity, text }
    }
}

/// Speeds of links in bit/s, where they are known, by host and device.
pub type Speeds = BTreeMap<(String, String), u64>;

/// Streams that an endpoint's link carries.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Load {
    /// The endpoint, as `host:device`.
    pub endpoint: String,
    /// Streams whose data it sends.
    pub sends: usize,
    /// Streams whose data it receives.
    pub receives: usize,
    /// Hosts that send to it.
    pub senders: usize,
    /// Speed of its link in bit/s.
    pub link_bps: Option<u64>,
}

/// Endpoints of a plan and the streams over their links, in the order of their names.
pub fn loads(plan: &TrafficPlan, speeds: &Speeds) -> Vec<Load> {
    let mut all: BTreeMap<String, (Load, BTreeSet<String>)> = BTreeMap::new();
    for stream in streams(plan) {
        let (source, target) = data_ends(plan, &stream);
        let mut count = |end: &Endpoint, sender: Option<&Endpoint>| {
            let name = end.to_string();
            let (load, senders) = all.entry(name.clone()).or_insert_with(|| {
                let load = Load {
                    endpoint: name,
                    sends: 0,
                    receives: 0,
                    senders: 0,
                    link_bps: speed(end, speeds),
                };
                (load, BTreeSet::new())
            });
            if let Some(sender) = sender {
                load.receives += 1;
                senders.insert(sender.host.clone());
            } else {
                load.sends += 1;
            }
        };
        count(source, None);
        count(target, Some(source));
    }
    all.into_values()
        .map(|(mut load, senders)| {
            load.senders = senders.len();
            load
        })
        .collect()
}

fn speed(end: &Endpoint, speeds: &Speeds) -> Option<u64> {
    let device = end.device.clone()?;
    speeds.get(&(end.host.clone(), device)).copied()
}

/// The ends from which, and to which, data flows.
fn data_ends<'a>(plan: &TrafficPlan, stream: &'a Stream) -> (&'a Endpoint, &'a Endpoint) {
    if plan.tool.is_read() {
        (&stream.server, &stream.client)
    } else {
        (&stream.client, &stream.server)
    }
}

/// Everything to know about a plan over these hosts. `is_long`: runs over an hour are wanted.
pub fn concerns(plan: &TrafficPlan, hosts: &[HostTarget], speeds: &Speeds, is_long: bool) -> Vec<Concern> {
    let streams = streams(plan);
    let mut all = Vec::new();
    let mut add = |gravity, text| all.push(Concern::new(gravity, text));
    if plan.duration > MAX_DURATION && !is_long {
        let text = format!(
            "the duration of {} s is over an hour\nhint: --long allows it",
            plan.duration.as_secs()
        );
        add(Gravity::Error, text);
    }
    let known: BTreeSet<&str> = hosts.iter().map(|host| host.name.as_str()).collect();
    let named: BTreeSet<&str> = streams
        .iter()
        .flat_map(|stream| [stream.client.host.as_str(), stream.server.host.as_str()])
        .collect();
    for host in named
        .iter()
        .filter(|host| !known.contains(*host))
        .take(MAX_LISTED)
    {
        let text = format!(
            "there is no host '{host}'\nhint: hosts are those of the inventory (--inventory FILE) or of --host"
        );
        add(Gravity::Error, text);
    }
    if let Some(stream) = streams.iter().find(|stream| stream.port.is_none()) {
        let count = streams
            .iter()
            .filter(|other| other.server.host == stream.server.host)
            .count();
        let text = format!(
            "host '{}' has {count} servers, and ports has {}: each server takes one client, and needs a port of its own",
            stream.server.host,
            plan.ports.count()
        );
        add(Gravity::Error, text);
    }
    let mut pairs: BTreeMap<(String, String), usize> = BTreeMap::new();
    for pair in &plan.pairs {
        let (from, to) = (pair.from.to_string(), pair.to.to_string());
        *pairs.entry((from.clone(), to.clone())).or_default() += 1;
        if pair.both {
            *pairs.entry((to, from)).or_default() += 1;
        }
    }
    for ((from, to), count) in pairs.iter().filter(|(_, count)| **count > 1).take(MAX_LISTED) {
        add(
            Gravity::Warning,
            format!("the pair from {from} to {to} is in the plan {count} times"),
        );
    }
    let own = plan.pairs.iter().filter(|pair| pair.from.host == pair.to.host);
    for pair in own.take(MAX_LISTED) {
        let text = format!(
            "{} and {} are one host: its traffic may not leave the adapter",
            pair.from, pair.to
        );
        add(Gravity::Warning, text);
    }
    if plan.tool.is_bandwidth() {
        all.extend(of_loads(plan, &streams, speeds));
    }
    all
}

/// Links that carry more streams than one, or slower ones than the senders'.
fn of_loads(plan: &TrafficPlan, streams: &[Stream], speeds: &Speeds) -> Vec<Concern> {
    let mut all = Vec::new();
    for load in loads(plan, speeds)
        .iter()
        .filter(|load| load.senders > 1)
        .take(MAX_LISTED)
    {
        let share = load.link_bps.map_or_else(String::new, |bps| {
            let receives = u64::try_from(load.receives).unwrap_or(u64::MAX).max(1);
            format!(
                ": each gets at most {} of its {}",
                rate_of(float(bps / receives)),
                rate_of(float(bps))
            )
        });
        let text = format!(
            "{} receives {} streams from {} hosts, which is an incast{share}",
            load.endpoint, load.receives, load.senders
        );
        all.push(Concern::new(Gravity::Note, text));
    }
    let mut seen = BTreeSet::new();
    for stream in streams {
        let (source, target) = data_ends(plan, stream);
        let (Some(sends), Some(receives)) = (speed(source, speeds), speed(target, speeds)) else {
            continue;
        };
        if sends > receives
            && seen.len() < MAX_LISTED
            && seen.insert((source.to_string(), target.to_string()))
        {
            let text = format!(
                "{source} sends at {} and {target} receives at {}: marks and pauses are to be expected",
                rate_of(float(sends)),
                rate_of(float(receives))
            );
            all.push(Concern::new(Gravity::Note, text));
        }
    }
    all
}
