//! The scenarios that teach: one thing each, small enough that their captures can be looked at whole.

/// A scenario that shows one thing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Demo {
    /// Its name.
    pub name: &'static str,
    /// Title of one line.
    pub title: &'static str,
    /// The scenario.
    pub toml: &'static str,
}

macro_rules! demos {
    ($(($name:literal, $title:literal),)*) => {
        /// All of them, in the order in which they are best read.
        pub const DEMOS: &[Demo] = &[$(Demo {
            name: $name,
            title: $title,
            toml: include_str!(concat!("../scenarios/", $name, ".toml")),
        }),*];
    };
}

demos![
    (
        "clean",
        "nothing is wrong: two hosts, two connections, no congestion"
    ),
    ("incast", "six senders to one host, and ECN works"),
    (
        "no-ecn",
        "ECN is not enabled at the senders: the queue can only drop"
    ),
    (
        "no-cnp",
        "packets are marked, but the receiver's notification point is off"
    ),
    ("cnp-ignored", "CNPs arrive, but the senders do not slow down"),
    ("shared-port", "CNPs arrive, but a shared port is the limit"),
    (
        "wrong-dscp",
        "one direction of each connection has the wrong DSCP"
    ),
    (
        "lossy",
        "a link loses packets: go-back-N sends much more again than was lost"
    ),
    ("rnr", "the receiver does not post receive buffers fast enough"),
    (
        "pause-storm",
        "a host sends pauses, and a flow to another host suffers"
    ),
    ("pause-origin", "a full port two switches away stops another flow"),
    (
        "capture-loss",
        "the capture lost records; the network lost nothing"
    ),
    (
        "span-doubled",
        "a mirror shows every frame twice; nothing is retransmitted"
    ),
    (
        "sprayed",
        "packets overtake each other on several paths; none is lost"
    ),
    (
        "ecmp-collision",
        "all queue pairs share one uplink, the other idles"
    ),
    ("training", "all-reduce steps with one slow rank"),
    (
        "late-rank",
        "credits show that one rank's GPU is late, and who waits for it"
    ),
    (
        "slow-link",
        "credits show that one link is slow, and no rank is late"
    ),
    (
        "mrc-bad-path",
        "one path of MRC drops everything, and its sender leaves it"
    ),
];

/// The demo of a name.
pub fn named(name: &str) -> Option<&'static Demo> {
    DEMOS.iter().find(|demo| demo.name == name)
}

#[cfg(test)]
mod tests;
