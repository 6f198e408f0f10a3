//! A family's plan for a seed: a scenario, put together section by section.

use std::fmt::Write as _;

use crate::draw::Draw;

/// Why a scenario goes wrong.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Cause {
    /// Nothing is wrong with the network and its hosts.
    Healthy,
    /// Senders do not say that they can ECN, and overrun a queue.
    NoEcn,
    /// Data is sent in a class that neither marks nor pauses.
    WrongDscp,
    /// A queue drops before it marks.
    HighThreshold,
    /// A receiver answers marks with no CNPs.
    NoCnps,
    /// A sender does not slow down on CNPs.
    IgnoredCnps,
    /// A host pauses its port of its own accord.
    PauseStorm,
    /// A host takes packets more slowly than its link brings them.
    SlowReceiver,
    /// A link loses packets.
    BadLink,
    /// A link damages packets.
    DamagedPackets,
    /// Answers are lost on their way back.
    LostAnswers,
    /// A receiver posts too few buffers.
    NoBuffers,
    /// A responder refuses a request for good.
    Refused,
    /// A responder answers nothing any more, or never did.
    DeadPeer,
    /// A receiver posts no buffers, until the sender gives up.
    BuffersExhausted,
    /// A link drops what is longer than its MTU.
    BlackHole,
}

/// The root of what goes wrong in a scenario.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Root {
    /// The cause.
    pub cause: Cause,
    /// Hosts that suffer.
    pub victims: Vec<String>,
    /// Hosts that cause it.
    pub aggressors: Vec<String>,
}

/// A scenario, and what belongs to it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RandomScenario {
    /// Its family.
    pub family: &'static str,
    /// Its seed.
    pub seed: u64,
    /// The scenario, as the simulator reads it.
    pub toml: String,
    /// Nothing in it is meant to go wrong.
    pub healthy: bool,
    /// Arguments of the analysis.
    pub arguments: Vec<String>,
    /// The analysis is given the counters of all ports.
    pub counters: bool,
    /// Each capture is analysed alone, too.
    pub alone: bool,
    /// The one fault of the scenario and its cause, where it has one.
    pub root: Option<Root>,
}

/// Ranges that a network is drawn from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ranges {
    pub(crate) hosts: (u64, u64),
    pub(crate) gigabits: &'static [u64],
    pub(crate) mtus: &'static [u64],
    /// Data packets that a full link carries in one run.
    pub(crate) packets: u64,
    /// Bounds of the length of a run, in microseconds.
    pub(crate) duration: (u64, u64),
}

impl Default for Ranges {
    fn default() -> Self {
        Self {
            hosts: (2, 6),
            gigabits: &[10, 25, 40, 50, 100, 200, 400, 800],
            mtus: &[256, 512, 1024, 2048, 4096],
            packets: 6_000,
            duration: (300, 8_000),
        }
    }
}

/// A scenario that is being put together.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) hosts: u64,
    /// 0: a cable; 1: one switch; more: leaves below two spines.
    pub(crate) leaves: u64,
    pub(crate) gigabits: u64,
    pub(crate) mtu: u64,
    /// In microseconds.
    pub(crate) duration: u64,
    pub(crate) ipv6: bool,
    pub(crate) vlan: bool,
    pub(crate) network: String,
    pub(crate) switch: String,
    pub(crate) nic: String,
    pub(crate) dcqcn: String,
    /// Flows, taps, impairments and the other tables.
    pub(crate) tables: String,
    pub(crate) healthy: bool,
    pub(crate) arguments: Vec<String>,
    /// Spines above two leaves or more.
    pub(crate) spines: u64,
    /// Rate of the links between switches, in Gbit/s; 0: as much as half of the hosts have.
    pub(crate) uplink: u64,
    /// The leaves are in a ring.
    pub(crate) ring: bool,
    pub(crate) counters: bool,
    pub(crate) alone: bool,
    pub(crate) root: Option<Root>,
}

/// Bytes of headers and trailer of a WRITE's first packet on Ethernet and IPv4: 14 + 20 + 8 + 12 + 16 + 4 + 4.
const HEADERS: u64 = 78;

/// A policy of IPv4 identifications.
fn identification(draw: &mut Draw) -> String {
    let policy = draw.of(&["count-flow", "count-flow", "count-host", "zero", "random"]);
    format!("ip_id = \"{policy}\"\n")
}

impl Plan {
    /// A network out of these ranges.
    pub(crate) fn draw(draw: &mut Draw, ranges: &Ranges) -> Self {
        let hosts = draw.between(ranges.hosts.0, ranges.hosts.1);
        let leaves = match hosts {
            2 => draw.below(2),
            _ if draw.one_in(4) => 2,
            _ => 1,
        };
        let gigabits = draw.of(ranges.gigabits);
        let mtu = draw.of(ranges.mtus);
        let full = ranges.packets * (mtu + HEADERS) * 8 / (gigabits * 1_000);
        Self {
            hosts,
            leaves,
            gigabits,
            mtu,
            duration: full.clamp(ranges.duration.0, ranges.duration.1),
            ipv6: draw.one_in(5),
            vlan: draw.one_in(5),
            network: format!("delay = \"{}ns\"\n", draw.scaled(100, 5_000)),
            switch: String::new(),
            nic: identification(draw),
            dcqcn: String::new(),
            tables: String::new(),
            healthy: false,
            arguments: Vec::new(),
            spines: 2,
            uplink: 0,
            ring: false,
            counters: false,
            alone: false,
            root: None,
        }
    }

    /// A plan with a switch in any case.
    pub(crate) fn switched(draw: &mut Draw, ranges: &Ranges) -> Self {
        let mut plan = Self::draw(draw, ranges);
        plan.leaves = plan.leaves.max(1);
        plan
    }

    /// Time of `bytes` on a link, in nanoseconds, rounded up.
    pub(crate) fn time_of(&self, bytes: u64) -> u64 {
        (bytes * 8).div_ceil(self.gigabits).max(1)
    }

    /// Time of a message of `bytes` on a link with its headers, in nanoseconds.
    pub(crate) fn message_time(&self, bytes: u64) -> u64 {
        self.time_of(bytes + bytes.div_ceil(self.mtu).max(1) * HEADERS)
    }

    /// The switch at the other end of a host's link; the other host, when there is none.
    pub(crate) fn neighbour(&self, host: u64) -> String {
        if self.leaves == 0 {
            return format!("h{}", 3 - host);
        }
        let block = self.hosts.div_ceil(self.leaves);
        format!("leaf{}", (host - 1) / block + 1)
    }

    /// The analysis knows the links' rate.
    pub(crate) fn link_rate(&mut self) {
        self.arguments
            .extend(["--link-rate".to_owned(), format!("{}G", self.gigabits)]);
    }

    /// A link that does something to packets.
    pub(crate) fn impair(&mut self, from: &str, to: &str, what: &str) {
        let _ = writeln!(
            self.tables,
            "\n[[impairment]]\nfrom = \"{from}\"\nto = \"{to}\"\n{what}"
        );
    }

    /// The last link on the path to a host, as `from` and `to` of an impairment.
    pub(crate) fn last_link(&self, host: u64) -> (String, String) {
        (self.neighbour(host), format!("h{host}"))
    }

    /// The first link on the path from a host.
    pub(crate) fn first_link(&self, host: u64) -> (String, String) {
        (format!("h{host}"), self.neighbour(host))
    }

    /// Names the cause of what goes wrong, and the hosts that suffer from it and bring it about.
    pub(crate) fn root(&mut self, cause: Cause, victims: &[u64], aggressors: &[u64]) {
        let names = |hosts: &[u64]| hosts.iter().map(|host| format!("h{host}")).collect();
        self.root = Some(Root {
            cause,
            victims: names(victims),
            aggressors: names(aggressors),
        });
    }

    /// The scenario.
    pub(crate) fn finish(self, family: &'static str, seed: u64) -> RandomScenario {
        let topology = match self.leaves {
            _ if self.ring => "ring",
            0 => "direct",
            1 => "leaf",
            _ => "leaf-spine",
        };
        let mut toml = format!(
            "title = \"{family} {seed}\"\nseed = {seed}\nduration = \"{}us\"\n\n[network]\nhosts = {}\ntopology = \
             \"{topology}\"\nrate = \"{}Gbps\"\nipv6 = {}\n{}",
            self.duration, self.hosts, self.gigabits, self.ipv6, self.network
        );
        if self.leaves > 1 {
            let uplink = match (self.ring, self.uplink) {
                (true, _) => self.gigabits,
                (false, 0) => self.gigabits * self.hosts.div_ceil(2),
                (false, uplink) => uplink,
            };
            let _ = writeln!(
                toml,
                "leaves = {}\nspines = {}\nuplink_rate = \"{uplink}Gbps\"",
                self.leaves, self.spines
            );
        }
        if self.vlan {
            toml.push_str("vlan = 100\n");
        }
        if self.leaves > 0 {
            let _ = write!(toml, "\n[switch]\n{}", self.switch);
        }
        let _ = write!(
            toml,
            "\n[nic]\nmtu = {}\n{}\n[dcqcn]\n{}{}",
            self.mtu, self.nic, self.dcqcn, self.tables
        );
        RandomScenario {
            family,
            seed,
            toml,
            healthy: self.healthy,
            arguments: self.arguments,
            counters: self.counters,
            alone: self.alone,
            root: self.root,
        }
    }
}
