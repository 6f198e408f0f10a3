//! Family `reuse`: healthy connections that end, and others that take their numbers.

use crate::draw::Draw;
use crate::parts::{Load, Traffic, acknowledgements, flow, place, tap};
use crate::plan::{Plan, Ranges};

pub(super) fn plan(draw: &mut Draw) -> Plan {
    let mut plan = Plan::draw(draw, &Ranges::default());
    plan.healthy = true;
    acknowledgements(&mut plan, draw, 20_000);
    let to = format!("h{}", plan.hosts);
    let qps = draw.scaled(1, 32);
    let message = draw.scaled(256, 65_536);
    let traffic = Traffic {
        from: "h1",
        to: &to,
        op: draw.of(&["write", "send", "read"]),
        message,
        qps,
        load: Load::Every(plan.message_time(message) * qps * draw.between(2, 8)),
    };
    let reuse = plan.duration / draw.between(2, 5);
    flow(&mut plan, draw, &traffic, &format!("reuse = \"{reuse}us\"\n"));
    let at = place(&plan, draw, 1, plan.hosts);
    tap(&mut plan, draw, &at, "");
    plan
}
