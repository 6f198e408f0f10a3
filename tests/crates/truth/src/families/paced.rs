//! Family `app-paced`: the application, or a limit of the queue pair, sends less than DCQCN allows. CNPs change nothing
//! visible, and no sender ignores them.

use std::fmt::Write as _;

use crate::draw::Draw;
use crate::parts::{Load, Traffic, acknowledgements, dcqcn, flow, tap};
use crate::plan::{Plan, Ranges};

pub(super) fn plan(draw: &mut Draw) -> Plan {
    let ranges = Ranges {
        hosts: (3, 5),
        gigabits: &[10, 25, 40, 100, 200, 400],
        mtus: &[1024, 2048, 4096],
        packets: 16_000,
        duration: (2_000, 10_000),
    };
    let mut plan = Plan::switched(draw, &ranges);
    plan.healthy = true;
    acknowledgements(&mut plan, draw, 20_000);
    dcqcn(&mut plan, draw);
    let kmin = plan.mtu * draw.between(1, 4) / 1_000 + 1;
    let _ = writeln!(
        plan.switch,
        "kmin = \"{kmin}KB\"\nkmax = \"{}KB\"\npmax = {}",
        kmin + draw.between(50, 400),
        draw.share(20_000, 1_000_000)
    );
    let receiver = plan.hosts;
    let to = format!("h{receiver}");
    let message = draw.scaled(16_384, 262_144);
    let qps = draw.of(&[1, 1, 2, 4]);
    let rate = plan.gigabits * 10 * draw.between(2, 40) / qps;
    let mut more = match draw.below(3) {
        0 => format!("rate_limit = \"{rate}Mbps\"\n"),
        _ => format!("pace = \"{rate}Mbps\"\n"),
    };
    if draw.one_in(3) {
        let on = draw.scaled(50, 1_000);
        let _ = writeln!(more, "on = \"{on}us\"\noff = \"{}us\"", on * draw.between(1, 5));
    }
    let traffic = Traffic {
        from: "h1",
        to: &to,
        op: draw.of(&["write", "send"]),
        message,
        qps,
        load: Load::Closed(draw.between(1, 4)),
    };
    flow(&mut plan, draw, &traffic, &more);
    // Bursts of another host, or of the same one to a slower link, fill the queue at the receiver now and then.
    let alone = draw.one_in(2);
    if alone {
        let percent = draw.between(50, 90);
        let _ = writeln!(
            plan.tables,
            "\n[[host]]\nname = \"{to}\"\nrate = \"{}Mbps\"",
            plan.gigabits * 10 * percent
        );
    }
    let burst = draw.between(4, 16);
    let other = Traffic {
        from: if alone { "h1" } else { "h2" },
        to: &to,
        op: "write",
        message: 65_536,
        qps: 1,
        load: Load::Every((plan.message_time(65_536) * burst * draw.between(3, 8)).max(350_000)),
    };
    flow(&mut plan, draw, &other, &format!("burst = {burst}\n"));
    let at = if draw.one_in(2) {
        "h1".to_owned()
    } else {
        format!("{}:h1", plan.neighbour(1))
    };
    tap(&mut plan, draw, &at, "");
    if draw.one_in(2) {
        plan.link_rate();
    }
    plan
}
