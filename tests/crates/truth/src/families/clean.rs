//! Families of healthy traffic: `clean`, `ring`, `idle`.

use crate::draw::Draw;
use crate::parts::{Load, Traffic, acknowledgements, flow, place, tap};
use crate::plan::{Plan, Ranges};

/// Pairs of hosts, each at the rate of its links or below it.
pub(super) fn plan(draw: &mut Draw) -> Plan {
    let mut plan = Plan::draw(draw, &Ranges::default());
    plan.healthy = true;
    acknowledgements(&mut plan, draw, 20_000);
    let pairs = plan.hosts / 2;
    let qps = draw.scaled(1, 64);
    let message = draw.scaled(64, 262_144);
    let load = if draw.one_in(2) {
        // A tenth to a half of the link's rate.
        let time = plan.message_time(message) * qps * draw.between(2, 10);
        Load::Every(time)
    } else {
        Load::Closed(draw.between(1, 4))
    };
    let traffic = Traffic {
        from: &format!("h1..h{pairs}"),
        to: &format!("h{}..h{}", pairs + 1, pairs * 2),
        op: draw.of(&["write", "send", "read"]),
        message,
        qps,
        load,
    };
    let both = if traffic.op != "read" && draw.one_in(4) {
        "direction = \"both\"\n"
    } else {
        ""
    };
    let more = format!(
        "pattern = \"zip\"\njitter = \"{}us\"\npoisson = {}\n{both}",
        draw.below(100),
        draw.one_in(2)
    );
    flow(&mut plan, draw, &traffic, &more);
    let at = place(&plan, draw, 1, pairs + 1);
    tap(&mut plan, draw, &at, "");
    if draw.one_in(2) {
        plan.link_rate();
    }
    plan
}

/// A ring, or each to each with so little that no queue is full.
pub(super) fn ring(draw: &mut Draw) -> Plan {
    let ranges = Ranges {
        hosts: (3, 8),
        packets: 4_000,
        ..Ranges::default()
    };
    let mut plan = Plan::switched(draw, &ranges);
    plan.healthy = true;
    acknowledgements(&mut plan, draw, 20_000);
    let all = format!("h1..h{}", plan.hosts);
    let ring = draw.one_in(2);
    let message = draw.scaled(256, 65_536);
    // A ring gives one flow to each host, all-to-all gives all other hosts: a third of the link in both
    // cases.
    let senders = if ring { 1 } else { plan.hosts - 1 };
    let qps = draw.between(1, 4);
    let traffic = Traffic {
        from: &all,
        to: &all,
        op: draw.of(&["write", "send"]),
        message,
        qps,
        load: Load::Every(plan.message_time(message) * qps * senders * 3),
    };
    let pattern = if ring { "ring" } else { "cross" };
    // Queues stay short when messages do not begin at the same time; what is marked nevertheless shows in the truth.
    let more = format!("pattern = \"{pattern}\"\njitter = \"200us\"\npoisson = true\n");
    flow(&mut plan, draw, &traffic, &more);
    let at = place(&plan, draw, 1, 2);
    tap(&mut plan, draw, &at, "");
    plan
}

/// Many queue pairs that send a message now and then.
pub(super) fn idle(draw: &mut Draw) -> Plan {
    let ranges = Ranges {
        duration: (4_000, 8_000),
        ..Ranges::default()
    };
    let mut plan = Plan::draw(draw, &ranges);
    plan.healthy = true;
    acknowledgements(&mut plan, draw, 20_000);
    let qps = draw.scaled(8, 64);
    let message = draw.scaled(8, 4_096);
    let traffic = Traffic {
        from: "h1",
        to: "h2",
        op: draw.of(&["write", "send", "read"]),
        message,
        qps,
        load: Load::Every((plan.message_time(message) * qps * 4).max(draw.scaled(20_000, 2_000_000))),
    };
    flow(&mut plan, draw, &traffic, "poisson = true\njitter = \"100us\"\n");
    let at = place(&plan, draw, 1, 2);
    tap(&mut plan, draw, &at, "");
    plan
}
