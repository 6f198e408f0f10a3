//! Family `read-loss`: READ requests, their responses, or the last of these are lost.

use crate::draw::Draw;
use crate::parts::{Load, Traffic, acknowledgements, flow, place, tap};
use crate::plan::{Plan, Ranges};

pub(super) fn plan(draw: &mut Draw) -> Plan {
    let ranges = Ranges {
        hosts: (2, 4),
        packets: 8_000,
        duration: (1_000, 10_000),
        ..Ranges::default()
    };
    let mut plan = Plan::draw(draw, &ranges);
    let timeout = draw.scaled(300, 3_000);
    acknowledgements(&mut plan, draw, timeout);
    let to = format!("h{}", plan.hosts);
    // Short READs are answered by one packet or a few: what is lost of them is a tail often.
    let message = if draw.one_in(2) {
        draw.scaled(64, plan.mtu * 4)
    } else {
        draw.scaled(4_096, 262_144)
    };
    let qps = draw.scaled(1, 16);
    let traffic = Traffic {
        from: "h1",
        to: &to,
        op: "read",
        message,
        qps,
        load: Load::Closed(draw.between(1, 8)),
    };
    let more = format!(
        "count = {}\njitter = \"20us\"\n",
        (8_000 / qps / message.div_ceil(plan.mtu)).max(8)
    );
    flow(&mut plan, draw, &traffic, &more);
    // Requests go from the first host to the last, responses back.
    let responses = !draw.one_in(3);
    let (from, to) = match (responses, draw.one_in(2)) {
        (true, true) => plan.first_link(plan.hosts),
        (true, false) => plan.last_link(1),
        (false, true) => plan.first_link(1),
        (false, false) => plan.last_link(plan.hosts),
    };
    let loss = if responses {
        draw.share(500, 10_000)
    } else {
        draw.share(5_000, 50_000)
    };
    let only = match (responses, draw.one_in(3)) {
        (true, true) => format!("only = \"read-tail\"\ntail = {}", draw.between(1, 4)),
        (true, false) => "only = \"all\"".to_owned(),
        (false, _) => "only = \"read-request\"".to_owned(),
    };
    plan.impair(&from, &to, &format!("loss = {loss}\n{only}"));
    let at = place(&plan, draw, 1, plan.hosts);
    tap(&mut plan, draw, &at, "");
    plan
}
