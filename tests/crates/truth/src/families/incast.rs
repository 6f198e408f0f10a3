//! Family `incast`: many hosts send to one, whose queue marks or drops.

use std::fmt::Write as _;

use crate::draw::Draw;
use crate::parts::{Load, Traffic, acknowledgements, dcqcn, flow, place, tap};
use crate::plan::{Plan, Ranges};

pub(super) fn plan(draw: &mut Draw) -> Plan {
    let ranges = Ranges {
        hosts: (4, 17),
        gigabits: &[10, 25, 40, 100, 200, 400, 800],
        mtus: &[1024, 2048, 4096],
        packets: 10_000,
        duration: (1_000, 8_000),
    };
    let mut plan = Plan::switched(draw, &ranges);
    acknowledgements(&mut plan, draw, draw_timeout());
    dcqcn(&mut plan, draw);
    let kmin = draw.scaled(5, 200);
    let _ = writeln!(
        plan.switch,
        "kmin = \"{kmin}KB\"\nkmax = \"{}KB\"\npmax = {}",
        kmin * draw.between(2, 20),
        draw.share(10_000, 1_000_000)
    );
    if draw.one_in(2) {
        let _ = writeln!(plan.switch, "queue_limit = \"{}KB\"", draw.scaled(150, 2_000));
    }
    let receiver = plan.hosts;
    let from = format!("h1..h{}", draw.between(2, plan.hosts - 1));
    let to = format!("h{receiver}");
    let qps = draw.between(1, 4);
    let traffic = Traffic {
        from: &from,
        to: &to,
        op: draw.of(&["write", "write", "send", "read"]),
        message: draw.scaled(8_192, 524_288),
        qps,
        load: Load::Closed(draw.between(1, 3)),
    };
    let more = format!("jitter = \"{}us\"\n", draw.below(200));
    flow(&mut plan, draw, &traffic, &more);
    let at = place(&plan, draw, 1, receiver);
    tap(&mut plan, draw, &at, "");
    plan
}

/// In microseconds: an adapter's usual least.
const fn draw_timeout() -> u64 {
    2_000
}
