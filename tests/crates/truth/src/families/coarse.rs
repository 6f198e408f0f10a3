//! Family `coarse`: healthy traffic, seen by a tap whose stamps are coarse, or given in batches.

use crate::draw::Draw;
use crate::parts::{Load, Traffic, acknowledgements, flow, place, tap};
use crate::plan::{Plan, Ranges};

pub(super) fn plan(draw: &mut Draw) -> Plan {
    let mut plan = Plan::draw(draw, &Ranges::default());
    plan.healthy = true;
    acknowledgements(&mut plan, draw, 20_000);
    let message = draw.scaled(1_024, 131_072);
    let traffic = Traffic {
        from: "h1",
        to: "h2",
        op: draw.of(&["write", "send", "read"]),
        message,
        qps: draw.scaled(1, 32),
        load: Load::Closed(draw.between(1, 4)),
    };
    flow(&mut plan, draw, &traffic, "jitter = \"50us\"\n");
    let at = place(&plan, draw, 1, 2);
    let time = draw.scaled(1, 1_000);
    // libpcap's RDMA sniffer polls; a stamp of 1 ms is what some switches' collectors give.
    let more = if draw.one_in(2) {
        format!("quantum = \"{time}us\"\n")
    } else {
        format!("quantum = \"1ns\"\npoll = \"{time}us\"\n")
    };
    tap(&mut plan, draw, &at, &more);
    plan
}
