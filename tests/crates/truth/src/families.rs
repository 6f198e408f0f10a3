//! Families of scenarios: each is about one concern, and draws what it is made of from ranges. One file for each.

mod capture_loss;
mod causes;
mod clean;
mod coarse;
mod collectives;
mod duplicates;
mod incast;
mod lateness;
mod links;
mod loss;
mod mirrored;
mod mixed;
mod mrc;
mod notifications;
mod one_direction;
mod paced;
mod path_imbalance;
mod pause_origin;
mod pauses;
mod reads;
mod recorders;
mod refusals;
mod reordered;
mod reuse;
mod serving;
mod shared_port;
mod sprayed;
mod standstills;
mod storage;
mod times;
mod training;
mod two_taps;

use crate::draw::Draw;
use crate::plan::{Plan, RandomScenario};

/// A kind of scenarios.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    /// Its name.
    pub name: &'static str,
    /// Subject of the family.
    pub about: &'static str,
    make: Make,
}

#[derive(Clone, Copy, Debug)]
enum Make {
    Plan(fn(&mut Draw) -> Plan),
    Scenario(fn(u64) -> RandomScenario),
}

const fn family(name: &'static str, about: &'static str, make: fn(&mut Draw) -> Plan) -> Family {
    Family {
        name,
        about,
        make: Make::Plan(make),
    }
}

/// All families. Seeds are dealt to them in turn.
pub const FAMILIES: &[Family] = &[
    family("clean", "enough room on every link", clean::plan),
    family(
        "ring",
        "each host sends to the next, or to all others",
        clean::ring,
    ),
    family("idle", "sparse messages, many queue pairs", clean::idle),
    family("coarse", "nothing is wrong but the tap's stamps", coarse::plan),
    family("reuse", "connections take the numbers of others", reuse::plan),
    family(
        "sprayed",
        "several paths, receivers that take any order",
        sprayed::healthy,
    ),
    family(
        "sprayed-lossy",
        "the same, and links lose packets",
        sprayed::lossy,
    ),
    family(
        "spray-gbn",
        "several paths, receivers that do not expect it",
        sprayed::go_back_n,
    ),
    family(
        "mid-flow",
        "the capture starts in the middle of traffic",
        mirrored::mid_flow,
    ),
    family(
        "disorder",
        "records of several receive queues, out of order",
        mirrored::disorder,
    ),
    family("doubled", "a mirror shows frames twice", mirrored::doubled),
    family(
        "obeying",
        "a sender slows down on CNPs, by each parameter set",
        notifications::obeying,
    ),
    family(
        "ignoring",
        "senders do not slow down on CNPs",
        notifications::ignoring,
    ),
    family(
        "pacing",
        "CNPs are spaced by queue pair, address or port",
        notifications::pacing,
    ),
    family(
        "shared-port",
        "CNPs change nothing: a flow has only a share of its port",
        shared_port::plan,
    ),
    family(
        "app-paced",
        "CNPs change nothing: the application sends less than it may",
        paced::plan,
    ),
    family("incast", "many send to one", incast::plan),
    family(
        "lossy-gbn",
        "links lose packets, receivers go back N",
        loss::go_back_n,
    ),
    family(
        "lossy-selective",
        "links lose packets, only those are retransmitted",
        loss::selective,
    ),
    family(
        "timeouts",
        "what ends a burst is lost, or all for some time",
        loss::timeouts,
    ),
    family("nak-loss", "NAKs and ACKs are lost", loss::naks),
    family("repeated-loss", "retransmissions are lost again", loss::repeated),
    family(
        "net-duplicates",
        "the network delivers packets twice",
        duplicates::plan,
    ),
    family(
        "reordered",
        "a link reorders packets before a go-back-N receiver",
        reordered::plan,
    ),
    family("read-loss", "READs and their responses are lost", reads::plan),
    family(
        "two-taps",
        "loss before, between and behind two taps",
        two_taps::plan,
    ),
    family(
        "one-direction",
        "a tap sees one direction only",
        one_direction::plan,
    ),
    family("rnr", "receive buffers run out", refusals::plan),
    family("pauses", "slow receivers and switches send pauses", pauses::plan),
    family("capture-loss", "a tap loses records", capture_loss::plan),
    family("training", "steps of computing and all-reduce", training::plan),
    Family {
        name: "mixed",
        about: "anything with anything",
        make: Make::Scenario(mixed::scenario),
    },
    family(
        "pause-origin",
        "pauses over two levels of switches, and where they come from",
        pause_origin::plan,
    ),
    family(
        "path-imbalance",
        "a hash puts flows on equal-cost uplinks",
        path_imbalance::plan,
    ),
    family(
        "serving",
        "KV caches move between hosts of inference",
        serving::serving,
    ),
    family("moe", "all-to-all of experts, round by round", serving::moe),
    family(
        "nccl-ring",
        "rings of collectives, PSNs from 0 on",
        collectives::ring,
    ),
    family(
        "nccl-tree",
        "trees of collectives, up and down",
        collectives::tree,
    ),
    family(
        "rails",
        "adapters of a server with a network for each",
        collectives::rails,
    ),
    family(
        "nvme-of",
        "commands, blocks and answers of storage",
        storage::nvme,
    ),
    family(
        "reconnects",
        "connections are made again under load",
        storage::reconnects,
    ),
    family("optics", "bits flip on the receiver's link", links::optics),
    family(
        "black-hole",
        "large packets never pass, small ones do",
        links::black_hole,
    ),
    family(
        "lost-answers",
        "data arrives, its ACKs are lost",
        links::lost_answers,
    ),
    family(
        "lossy-acceleration",
        "CNPs follow NAKs, and nothing is marked",
        links::lossy_acceleration,
    ),
    family(
        "adaptive-gbn",
        "receivers go back although nothing is lost",
        links::adaptive_gbn,
    ),
    family(
        "delaying-pauses",
        "pauses hold packets back between two taps",
        standstills::delaying,
    ),
    family(
        "watchdog",
        "a switch drops what waits for a paused port",
        standstills::watchdog,
    ),
    family(
        "clock-step",
        "the clock of a capture is set anew",
        recorders::clock_step,
    ),
    family(
        "late-mirror",
        "a mirror's stamps are late",
        recorders::late_mirror,
    ),
    family(
        "vxlan-copies",
        "each packet bare and in VXLAN",
        recorders::vxlan_copies,
    ),
    family(
        "thinned",
        "a capture keeps one packet in some",
        recorders::thinned,
    ),
];

/// Families in which one thing takes the time of flows, or one cause is behind everything. [`cause_of`] deals seeds to them.
pub const CAUSES: &[Family] = &[
    family("timers", "timers of each code expire", times::timers),
    family(
        "buffers",
        "receive buffers come late, timers of each code",
        times::buffers,
    ),
    family("storms", "a host pauses the sender's port", times::storms),
    family("slowed", "a sender obeys DCQCN", times::slowed),
    family("windows", "the window is smaller than the way", times::windows),
    family(
        "steps",
        "bursts at line rate, and an application that computes",
        times::steps,
    ),
    family(
        "late-rank",
        "a ring waits for a rank that computes longer",
        times::late_rank,
    ),
    family("no-ecn", "senders without ECN overrun a queue", causes::no_ecn),
    family("wrong-dscp", "data in a class that drops", causes::wrong_dscp),
    family(
        "high-threshold",
        "the queue is full before it marks",
        causes::high_threshold,
    ),
    family("no-cnps", "marks, and no CNPs", causes::no_cnps),
    family("ignored-cnps", "CNPs, and the rate stays", causes::ignored_cnps),
    family(
        "pause-storm",
        "a host pauses its link of its own accord",
        causes::pause_storm,
    ),
    family(
        "slow-receiver",
        "a host takes less than its link brings",
        causes::slow_receiver,
    ),
    family("bad-link", "a link loses packets at any load", causes::bad_link),
    family("damaged", "a link damages packets", causes::damaged),
    family(
        "answers",
        "answers get lost on their way back",
        causes::lost_answers,
    ),
    family("refused", "a request is refused for good", causes::refused),
    family("dead-peer", "retries stay unanswered", causes::dead_peer),
    family("silent-peer", "a request waits for ever", causes::silent_peer),
    family(
        "no-buffers",
        "RNR NAKs until the sender gives up",
        causes::buffers_exhausted,
    ),
    family("small-mtu", "large packets never pass", causes::black_hole),
];

/// Jobs with NCCL's messages, and what they wait for. [`lateness_of`] deals seeds to them.
pub const LATENESS: &[Family] = &[
    family(
        "nccl-healthy",
        "credits and data, nothing is late",
        lateness::healthy,
    ),
    family("nccl-rank", "a rank begins collectives late", lateness::rank),
    family(
        "nccl-receiver",
        "a rank gives its buffers back late",
        lateness::receiver,
    ),
    family("nccl-link", "a host has a slower link", lateness::link),
    family(
        "nccl-loss",
        "a host's link loses packets of a job",
        lateness::loss,
    ),
    family(
        "nccl-others",
        "trees and exchanges, with a late rank or without",
        lateness::others,
    ),
];

impl Family {
    /// The family of this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        all().find(|family| family.name == name)
    }

    /// Its scenario of a seed.
    pub fn scenario(&self, seed: u64) -> RandomScenario {
        match self.make {
            Make::Plan(make) => make(&mut Draw::new(seed, self.name)).finish(self.name, seed),
            Make::Scenario(make) => make(seed),
        }
    }
}

/// Families of MRC. The first one is that of every second seed.
pub const MRC: &[Family] = &[
    family("mrc-healthy", "nothing is wrong, packets overtake", mrc::healthy),
    family("mrc-loss", "paths lose packets", mrc::loss),
    family("mrc-trims", "queues in the fabric trim", mrc::trims),
    family("mrc-incast", "the last hop trims", mrc::incast),
    family("mrc-hasty", "what was overtaken is sent again", mrc::hasty),
    family("mrc-mixed", "marks, a port that is down, penalties", mrc::mixed),
];

/// The families of all lists.
pub(crate) fn all() -> impl Iterator<Item = &'static Family> {
    FAMILIES.iter().chain(CAUSES).chain(LATENESS).chain(MRC)
}

/// The family that a seed is dealt to.
pub fn family_of(seed: u64) -> &'static Family {
    let count = FAMILIES.len() as u64;
    &FAMILIES[usize::try_from(seed % count).unwrap_or_default()]
}

/// The family of [`CAUSES`] that a seed is dealt to.
pub fn cause_of(seed: u64) -> &'static Family {
    let count = CAUSES.len() as u64;
    &CAUSES[usize::try_from(seed % count).unwrap_or_default()]
}

/// The family of [`LATENESS`] that a seed is dealt to.
pub fn lateness_of(seed: u64) -> &'static Family {
    let count = LATENESS.len() as u64;
    &LATENESS[usize::try_from(seed % count).unwrap_or_default()]
}

/// The family of [`MRC`] that a seed is dealt to.
pub fn mrc_of(seed: u64) -> &'static Family {
    if seed % 2 == 1 {
        return &MRC[0];
    }
    let count = MRC.len() as u64 - 1;
    &MRC[1 + usize::try_from(seed / 2 % count).unwrap_or_default()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use roce_sim::Scenario;

    #[test]
    fn every_seed_of_every_family_is_a_scenario() {
        for family in all() {
            for seed in 0..60 {
                let found = family.scenario(seed);
                assert_eq!(found, family.scenario(seed));
                let parsed = Scenario::parse(&found.toml);
                assert!(
                    parsed.is_ok(),
                    "{} {seed}: {parsed:?}\n{}",
                    family.name,
                    found.toml
                );
            }
        }
    }

    #[test]
    fn names_are_distinct_and_seeds_reach_all() {
        let distinct: std::collections::BTreeSet<_> = all().map(|family| family.name).collect();
        assert_eq!(distinct.len(), all().count());
        let names: std::collections::BTreeSet<_> = FAMILIES.iter().map(|family| family.name).collect();
        let reached: std::collections::BTreeSet<_> = (0..FAMILIES.len() as u64)
            .map(|seed| family_of(seed).name)
            .collect();
        assert_eq!(reached, names);
        assert!(Family::named("mixed").is_some() && Family::named("no such").is_none());
    }
}
