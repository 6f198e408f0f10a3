//! Parts that families share: traffic, identities of queue pairs, DCQCN, taps.

use std::fmt::Write as _;

use crate::draw::Draw;
use crate::plan::Plan;

/// Traffic of one flow table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Traffic<'a> {
    pub(crate) from: &'a str,
    pub(crate) to: &'a str,
    pub(crate) op: &'static str,
    pub(crate) message: u64,
    pub(crate) qps: u64,
    pub(crate) load: Load,
}

/// Amount of traffic.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Load {
    /// A closed loop of this number of messages.
    Closed(u64),
    /// A message at each such time, in nanoseconds.
    Every(u64),
}

/// Numbers and ports of queue pairs. Several queue pairs between two hosts never have both PSNs from 0
/// on and random ports: when they send the same messages at the same time, no packet shows which two
/// flows belong together.
pub(crate) fn identities(draw: &mut Draw, qps: u64) -> String {
    let port = if draw.one_in(4) && qps < 8 {
        "random"
    } else {
        "kernel"
    };
    let is_found_by_psn = port == "random" && qps > 1;
    let psn = if draw.one_in(4) && !is_found_by_psn {
        "zero"
    } else {
        "random"
    };
    let qpn = draw.of(&["random", "random", "sequential", "same"]);
    let cm = if draw.one_in(6) { "cm = true\n" } else { "" };
    format!("psn = \"{psn}\"\nqpn = \"{qpn}\"\nsource_port = \"{port}\"\n{cm}")
}

/// Adds a flow table; `more` are further keys.
pub(crate) fn flow(plan: &mut Plan, draw: &mut Draw, traffic: &Traffic<'_>, more: &str) {
    let load = match traffic.load {
        Load::Closed(messages) => format!("outstanding = {messages}"),
        Load::Every(time) => format!("interval = \"{time}ns\""),
    };
    let identities = identities(draw, traffic.qps);
    let _ = writeln!(
        plan.tables,
        "\n[[flow]]\nfrom = \"{}\"\nto = \"{}\"\nop = \"{}\"\nmessage = {}\nqps = {}\n{load}\n{identities}{more}",
        traffic.from, traffic.to, traffic.op, traffic.message, traffic.qps
    );
}

/// Traffic from the first host to the last in a closed loop, by up to 32 queue pairs.
pub(crate) fn closed(plan: &mut Plan, draw: &mut Draw) {
    let to = format!("h{}", plan.hosts);
    let traffic = Traffic {
        from: "h1",
        to: &to,
        op: draw.of(&["write", "send", "read"]),
        message: draw.scaled(1_024, 262_144),
        qps: draw.scaled(1, 32),
        load: Load::Closed(draw.between(1, 4)),
    };
    flow(plan, draw, &traffic, "jitter = \"20us\"\n");
}

/// Traffic from the first host to the last, in a closed loop or at times of its own, by up to `max_qps`
/// queue pairs; and a tap on its path.
pub(crate) fn across(plan: &mut Plan, draw: &mut Draw, operations: &[&'static str], max_qps: u64) {
    let to = format!("h{}", plan.hosts);
    let qps = draw.scaled(1, max_qps);
    let message = draw.scaled(1_024, 524_288);
    let load = if draw.one_in(3) {
        Load::Every(plan.message_time(message) * qps * draw.between(2, 6))
    } else {
        Load::Closed(draw.between(1, 4))
    };
    let traffic = Traffic {
        from: "h1",
        to: &to,
        op: draw.of(operations),
        message,
        qps,
        load,
    };
    flow(plan, draw, &traffic, "jitter = \"20us\"\n");
    let at = place(plan, draw, 1, plan.hosts);
    tap(plan, draw, &at, "");
}

/// Settings of ACKs, and the longest wait of a sender for them.
pub(crate) fn acknowledgements(plan: &mut Plan, draw: &mut Draw, timeout: u64) {
    let _ = writeln!(
        plan.nic,
        "ack_every = {}\nack_coalesce = {}\ntimeout = \"{timeout}us\"",
        draw.of(&[0, 0, 1, 4, 16]),
        draw.of(&[1, 1, 2, 4])
    );
}

/// A parameter set of DCQCN, with some of its parameters drawn around their published values: g from 1/1024 to 1/16, timers
/// from a half to twice.
pub(crate) fn dcqcn(plan: &mut Plan, draw: &mut Draw) {
    let set = draw.of(&["paper", "ns3", "nvidia"]);
    let _ = writeln!(plan.dcqcn, "set = \"{set}\"");
    if draw.one_in(2) {
        let _ = writeln!(plan.dcqcn, "g = {}", draw.share(977, 62_500));
    }
    // SIGCOMM 2015: 55 us for both timers; ns-3 and NVIDIA's defaults differ by factors up to 6.
    if draw.one_in(3) {
        let _ = writeln!(plan.dcqcn, "alpha_timer = \"{}us\"", draw.between(28, 110));
    }
    if draw.one_in(3) {
        let _ = writeln!(plan.dcqcn, "rate_timer = \"{}us\"", draw.scaled(28, 900));
    }
}

/// Adds a tap that sees all frames: 96 bytes of them or more, or all. `more` are further keys.
pub(crate) fn tap(plan: &mut Plan, draw: &mut Draw, at: &str, more: &str) {
    let mirrored = at.contains(':') && draw.one_in(3) && !more.contains("mirror");
    // An ERSPAN mirror puts 50 or 62 bytes before the frame.
    let least = if mirrored || more.contains("mirror") {
        160
    } else {
        96
    };
    let snaplen = if draw.one_in(4) {
        0
    } else {
        draw.between(least, 300)
    };
    let _ = writeln!(
        plan.tables,
        "\n[[tap]]\nat = \"{at}\"\nsnaplen = {snaplen}\n{more}"
    );
    if mirrored {
        let _ = writeln!(plan.tables, "mirror = \"{}\"", draw.of(&["erspan2", "erspan3"]));
    }
    if draw.one_in(8) && !more.contains("quantum") {
        plan.tables.push_str("quantum = \"1us\"\n");
    }
}

/// One of the places on the path from a host to another: the sender, the switch's ports, the receiver.
pub(crate) fn place(plan: &Plan, draw: &mut Draw, from: u64, to: u64) -> String {
    let mut places = vec![format!("h{from}"), format!("h{to}")];
    if plan.leaves > 0 {
        places.push(format!("{}:h{from}", plan.neighbour(from)));
        places.push(format!("{}:h{to}", plan.neighbour(to)));
    }
    let place = draw.below(places.len() as u64);
    places.swap_remove(usize::try_from(place).unwrap_or_default())
}
