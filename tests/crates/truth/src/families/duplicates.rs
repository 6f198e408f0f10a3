//! Family `net-duplicates`: the network delivers up to 5 % of the packets twice, the second one up to 10 ms later. In one of
//! three cases packets are lost, too.

use std::fmt::Write as _;

use crate::draw::Draw;
use crate::parts::{Load, Traffic, acknowledgements, flow, place, tap};
use crate::plan::{Plan, Ranges};

pub(super) fn plan(draw: &mut Draw) -> Plan {
    let mut plan = Plan::draw(draw, &Ranges::default());
    let timeout = draw.scaled(1_000, 4_000);
    acknowledgements(&mut plan, draw, timeout);
    let _ = writeln!(
        plan.nic,
        "duplicate_ack = \"{}\"",
        draw.of(&["requested", "always"])
    );
    if draw.one_in(3) {
        plan.nic.push_str("recovery = \"selective\"\n");
    }
    let to = format!("h{}", plan.hosts);
    let traffic = Traffic {
        from: "h1",
        to: &to,
        op: draw.of(&["write", "write", "send", "read"]),
        message: draw.scaled(1_024, 262_144),
        qps: draw.scaled(1, 32),
        load: Load::Closed(draw.between(1, 4)),
    };
    flow(&mut plan, draw, &traffic, "jitter = \"20us\"\n");
    let (from, to) = if draw.one_in(2) {
        plan.first_link(1)
    } else {
        plan.last_link(plan.hosts)
    };
    let most = draw.scaled(1_000, 10_000_000);
    let least = if draw.one_in(2) {
        0
    } else {
        most / draw.between(2, 10)
    };
    let what = format!(
        "duplicate = {}\nduplicate_after = \"{least}ns..{most}ns\"\nloss = {}",
        draw.share(500, 50_000),
        if draw.one_in(3) {
            draw.share(200, 5_000)
        } else {
            "0.0".to_owned()
        }
    );
    plan.impair(&from, &to, &what);
    let at = place(&plan, draw, 1, plan.hosts);
    tap(&mut plan, draw, &at, "");
    plan
}
