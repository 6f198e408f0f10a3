//! Family `rnr`: SENDs for which the receiver has not posted enough buffers.

use std::fmt::Write as _;

use crate::draw::Draw;
use crate::parts::{Load, Traffic, acknowledgements, flow, place, tap};
use crate::plan::{Plan, Ranges};

pub(super) fn plan(draw: &mut Draw) -> Plan {
    let ranges = Ranges {
        hosts: (2, 4),
        packets: 4_000,
        duration: (2_000, 10_000),
        ..Ranges::default()
    };
    let mut plan = Plan::draw(draw, &ranges);
    acknowledgements(&mut plan, draw, 4_000);
    // Codes 1 to 10 are 10 us to 0.24 ms (IBTA, table of RNR NAK timer values).
    let _ = writeln!(plan.nic, "rnr_timer = {}", draw.between(1, 10));
    let to = format!("h{}", plan.hosts);
    let qps = draw.scaled(1, 16);
    let message = draw.scaled(64, 65_536);
    let each = plan.message_time(message) * qps;
    let traffic = Traffic {
        from: "h1",
        to: &to,
        op: "send",
        message,
        qps,
        load: Load::Closed(draw.between(1, 8)),
    };
    let more = format!(
        "receives = {}\nrefill = \"{}ns\"\n",
        draw.scaled(1, 32),
        each * draw.between(90, 300) / 100 + 1
    );
    flow(&mut plan, draw, &traffic, &more);
    if draw.one_in(4) {
        let (from, to) = plan.last_link(plan.hosts);
        let what = draw.share(200, 5_000);
        plan.impair(&from, &to, &format!("loss = {what}"));
    }
    let at = place(&plan, draw, 1, plan.hosts);
    tap(&mut plan, draw, &at, "");
    plan
}
