//! Families of taps that do not show what passed as it passed: `disorder`, `doubled`, `mid-flow`.

use std::fmt::Write as _;

use crate::draw::Draw;
use crate::parts::{Load, Traffic, acknowledgements, flow, place, tap};
use crate::plan::{Plan, Ranges};

/// Traffic from the first host to the last; in one of `often` cases a link loses packets, otherwise it is healthy.
fn traffic(plan: &mut Plan, draw: &mut Draw, often: u64) {
    plan.healthy = true;
    let lossy = draw.one_in(often);
    let timeout = if lossy { draw.scaled(500, 3_000) } else { 20_000 };
    acknowledgements(plan, draw, timeout);
    let to = format!("h{}", plan.hosts);
    let qps = draw.scaled(1, 64);
    let message = draw.scaled(256, 262_144);
    let load = if draw.one_in(3) {
        Load::Every(plan.message_time(message) * qps * draw.between(2, 8))
    } else {
        Load::Closed(draw.between(1, 4))
    };
    let traffic = Traffic {
        from: "h1",
        to: &to,
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
    flow(plan, draw, &traffic, &format!("jitter = \"50us\"\n{both}"));
    if lossy {
        let (from, to) = plan.last_link(plan.hosts);
        let what = draw.share(200, 10_000);
        plan.impair(&from, &to, &format!("loss = {what}"));
    }
}

/// Records of several receive queues, up to 1 ms from the order of their stamps.
pub(super) fn disorder(draw: &mut Draw) -> Plan {
    let mut plan = Plan::draw(draw, &Ranges::default());
    traffic(&mut plan, draw, 4);
    let at = place(&plan, draw, 1, plan.hosts);
    let most = draw.scaled(1, 1_000);
    let more = format!(
        "queues = {}\ndisorder = \"{}us..{most}us\"\n",
        draw.between(2, 16),
        most / draw.between(2, 10)
    );
    tap(&mut plan, draw, &at, &more);
    plan
}

/// A mirror that shows frames twice, all or some, unchanged or behind a router.
pub(super) fn doubled(draw: &mut Draw) -> Plan {
    let mut plan = Plan::switched(draw, &Ranges::default());
    traffic(&mut plan, draw, 4);
    let node = if draw.one_in(2) { 1 } else { plan.hosts };
    let at = format!("{}:h{node}", plan.neighbour(node));
    // From the time in one switch to the time on a congested path through several.
    let least = draw.scaled(300, 20_000);
    let mut more = format!("doubled = \"{least}ns..{}ns\"\n", least + draw.scaled(1, 100_000));
    if draw.one_in(3) {
        let _ = writeln!(more, "doubled_share = {}", draw.share(50_000, 950_000));
    }
    if draw.one_in(3) {
        more.push_str("doubled_routed = true\n");
    }
    tap(&mut plan, draw, &at, &more);
    plan
}

/// A capture that starts in the middle of traffic, or ends before it does.
pub(super) fn mid_flow(draw: &mut Draw) -> Plan {
    let mut plan = Plan::draw(draw, &Ranges::default());
    traffic(&mut plan, draw, 3);
    let at = place(&plan, draw, 1, plan.hosts);
    let from = draw.between(plan.duration / 10, plan.duration / 2);
    let mut more = format!("from = \"{from}us\"\n");
    if draw.one_in(3) {
        let until = draw.between(from + plan.duration / 5, plan.duration);
        let _ = writeln!(more, "until = \"{until}us\"");
    }
    tap(&mut plan, draw, &at, &more);
    plan
}
