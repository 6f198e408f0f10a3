//! Family `shared-port`: a sender's queue pairs share its port. Each gets so small a part of the rate that a CNP, which halves
//! at most what DCQCN allows it, changes nothing: no sender ignores anything.

use std::fmt::Write as _;

use crate::draw::Draw;
use crate::parts::{Load, Traffic, acknowledgements, dcqcn, flow, tap};
use crate::plan::{Plan, Ranges};

pub(super) fn plan(draw: &mut Draw) -> Plan {
    let ranges = Ranges {
        hosts: (3, 6),
        gigabits: &[10, 25, 40, 100, 200, 400],
        mtus: &[1024, 2048, 4096],
        packets: 16_000,
        duration: (2_000, 10_000),
    };
    let mut plan = Plan::switched(draw, &ranges);
    plan.leaves = 1;
    plan.healthy = true;
    acknowledgements(&mut plan, draw, 20_000);
    dcqcn(&mut plan, draw);
    // A little more than what one packet takes is marked with a small probability: CNPs come now and then.
    let kmin = plan.mtu * draw.between(1, 3) / 1_000 + 1;
    let _ = writeln!(
        plan.switch,
        "kmin = \"{kmin}KB\"\nkmax = \"{}KB\"\npmax = {}",
        kmin + draw.between(100, 400),
        draw.share(5_000, 200_000)
    );
    let to = format!("h2..h{}", plan.hosts);
    let qps = draw.between(8, 32).div_ceil(plan.hosts - 1);
    let traffic = Traffic {
        from: "h1",
        to: &to,
        op: draw.of(&["write", "send"]),
        message: draw.scaled(65_536, 524_288),
        qps,
        load: Load::Closed(draw.between(2, 4)),
    };
    flow(&mut plan, draw, &traffic, "");
    // Traffic of another host fills the queues of the receivers now and then.
    let last = format!("h{}", plan.hosts);
    let burst = draw.between(2, 8);
    let other = Traffic {
        from: &last,
        to: "h2",
        op: "write",
        message: 32_768,
        qps: 1,
        load: Load::Every(plan.message_time(32_768) * burst * draw.between(4, 12)),
    };
    if draw.one_in(2) {
        // No other host: a link that is hardly faster than what comes by it holds a short queue.
        let percent = 100 / (plan.hosts - 1) * draw.between(102, 130) / 100;
        let _ = writeln!(
            plan.tables,
            "\n[[host]]\nname = \"h2\"\nrate = \"{}Mbps\"",
            plan.gigabits * 10 * percent
        );
    } else {
        flow(&mut plan, draw, &other, &format!("burst = {burst}\n"));
    }
    tap(&mut plan, draw, "h1", "");
    plan
}
