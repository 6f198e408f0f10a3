//! Families about CNPs: `obeying`, `ignoring`, `pacing`.

use std::fmt::Write as _;

use crate::draw::Draw;
use crate::parts::{Load, Traffic, acknowledgements, dcqcn, flow, tap};
use crate::plan::{Plan, Ranges};

const RANGES: Ranges = Ranges {
    hosts: (2, 4),
    gigabits: &[10, 25, 40, 50, 100, 200, 400],
    mtus: &[1024, 2048, 4096],
    packets: 24_000,
    duration: (2_000, 12_000),
};

/// A switch that marks, and a receiver's link that is slower than the sender's: one sender alone fills its queue.
fn bottleneck(plan: &mut Plan, draw: &mut Draw) {
    let kmin = draw.scaled(10, 200);
    let _ = writeln!(
        plan.switch,
        "kmin = \"{kmin}KB\"\nkmax = \"{}KB\"\npmax = {}",
        kmin * draw.between(2, 10),
        draw.share(10_000, 1_000_000)
    );
    let percent = draw.between(20, 80);
    let _ = writeln!(
        plan.tables,
        "\n[[host]]\nname = \"h{}\"\nrate = \"{}Mbps\"",
        plan.hosts,
        plan.gigabits * 10 * percent
    );
}

/// Large messages to the last host.
fn stream<'a>(draw: &mut Draw, from: &'a str, to: &'a str, qps: u64) -> Traffic<'a> {
    Traffic {
        from,
        to,
        op: draw.of(&["write", "write", "send"]),
        message: draw.scaled(65_536, 1_048_576),
        qps,
        load: Load::Closed(draw.between(2, 4)),
    }
}

/// One sender or a few, at the rate of its link, whose reaction point works.
pub(super) fn obeying(draw: &mut Draw) -> Plan {
    let mut plan = Plan::switched(draw, &RANGES);
    plan.healthy = true;
    acknowledgements(&mut plan, draw, 20_000);
    dcqcn(&mut plan, draw);
    bottleneck(&mut plan, draw);
    let senders = if draw.one_in(3) { plan.hosts.min(3) - 1 } else { 1 };
    let (from, to) = (format!("h1..h{senders}"), format!("h{}", plan.hosts));
    let qps = draw.of(&[1, 1, 2, 4]);
    let traffic = stream(draw, &from, &to, qps);
    flow(&mut plan, draw, &traffic, "");
    sender_side(&mut plan, draw);
    plan
}

/// Marked traffic as above, but the reaction point is off, of all flows or of one.
pub(super) fn ignoring(draw: &mut Draw) -> Plan {
    let mut plan = Plan::switched(draw, &RANGES);
    plan.duration = plan.duration.max(5_000);
    acknowledgements(&mut plan, draw, 20_000);
    dcqcn(&mut plan, draw);
    // A sender that does not slow down loses nothing: the link pauses it at most, or it has a share of the rate to offer
    // that the receiver's link carries for a part of the time.
    bottleneck(&mut plan, draw);
    let to = format!("h{}", plan.hosts);
    let qps = draw.of(&[1, 1, 2, 4]);
    let mut traffic = stream(draw, "h1", &to, qps);
    let mut more = "react = false\n".to_owned();
    if draw.one_in(2) {
        // Trains of CNPs: bursts of 250 to 500 us with rests between them, a train for each. The others are steady.
        let burst = draw
            .between(250_000, 500_000)
            .div_ceil(plan.message_time(traffic.message));
        let time = plan.message_time(traffic.message) * burst + draw.between(350_000, 700_000);
        traffic.load = Load::Every(time);
        plan.duration = plan.duration.max(time * 14 / 1_000);
        traffic.qps = 1;
        let _ = writeln!(more, "burst = {burst}");
    }
    flow(&mut plan, draw, &traffic, &more);
    if plan.hosts > 2 && draw.one_in(3) {
        let other = stream(draw, "h2", &to, 1);
        flow(&mut plan, draw, &other, "react = true\n");
    }
    sender_side(&mut plan, draw);
    plan
}

/// Several queue pairs between few hosts, whose receiver spaces CNPs.
pub(super) fn pacing(draw: &mut Draw) -> Plan {
    let mut plan = Plan::switched(draw, &RANGES);
    acknowledgements(&mut plan, draw, 20_000);
    dcqcn(&mut plan, draw);
    bottleneck(&mut plan, draw);
    let _ = writeln!(
        plan.dcqcn,
        "cnp_scope = \"{}\"\ncnp_interval = \"{}us\"",
        draw.of(&["qp", "ip", "port"]),
        draw.scaled(4, 200)
    );
    let to = format!("h{}", plan.hosts);
    let from = format!("h1..h{}", plan.hosts - 1);
    let qps = draw.between(2, 16);
    let traffic = stream(draw, &from, &to, qps);
    flow(&mut plan, draw, &traffic, "");
    let at = if draw.one_in(2) { "h1".to_owned() } else { to };
    tap(&mut plan, draw, &at, "");
    plan
}

/// A tap at the sender, or at its port of the switch.
fn sender_side(plan: &mut Plan, draw: &mut Draw) {
    let at = if draw.one_in(2) {
        "h1".to_owned()
    } else {
        format!("{}:h1", plan.neighbour(1))
    };
    tap(plan, draw, &at, "");
    if draw.one_in(2) {
        plan.link_rate();
    }
}
