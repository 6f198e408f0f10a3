//! Family `one-direction`: a tap sees what a node receives, or what it sends, but not both; with loss or without.

use crate::draw::Draw;
use crate::parts::{acknowledgements, closed, place, tap};
use crate::plan::{Plan, Ranges};

pub(super) fn plan(draw: &mut Draw) -> Plan {
    let mut plan = Plan::draw(draw, &Ranges::default());
    let timeout = draw.scaled(500, 3_000);
    acknowledgements(&mut plan, draw, timeout);
    closed(&mut plan, draw);
    if draw.one_in(2) {
        let (from, to) = plan.last_link(plan.hosts);
        let what = draw.share(200, 10_000);
        plan.impair(&from, &to, &format!("loss = {what}"));
    } else {
        plan.healthy = true;
    }
    let at = place(&plan, draw, 1, plan.hosts);
    let direction = draw.of(&["rx", "tx"]);
    tap(&mut plan, draw, &at, &format!("direction = \"{direction}\"\n"));
    plan
}
