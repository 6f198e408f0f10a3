//! Family `reordered`: a link lets packets overtake others; the receiver goes back N, so that some are
//! retransmitted although none was lost.

use crate::draw::Draw;
use crate::parts::{Load, Traffic, acknowledgements, flow, place, tap};
use crate::plan::{Plan, Ranges};

pub(super) fn plan(draw: &mut Draw) -> Plan {
    let mut plan = Plan::draw(draw, &Ranges::default());
    let timeout = draw.scaled(1_000, 4_000);
    acknowledgements(&mut plan, draw, timeout);
    if draw.one_in(3) {
        plan.nic.push_str("recovery = \"selective\"\n");
    }
    let to = format!("h{}", plan.hosts);
    let traffic = Traffic {
        from: "h1",
        to: &to,
        op: draw.of(&["write", "send", "read"]),
        message: draw.scaled(4_096, 524_288),
        qps: draw.scaled(1, 16),
        load: Load::Closed(draw.between(1, 4)),
    };
    flow(&mut plan, draw, &traffic, "");
    let (from, to) = if draw.one_in(2) {
        plan.first_link(1)
    } else {
        plan.last_link(plan.hosts)
    };
    let what = format!(
        "reorder = {}\nreorder_delay = \"{}ns\"",
        draw.share(200, 20_000),
        draw.scaled(100, 100_000)
    );
    plan.impair(&from, &to, &what);
    let at = place(&plan, draw, 1, plan.hosts);
    tap(&mut plan, draw, &at, "");
    plan
}
