//! Family `pauses`: switches, a receiver that empties its buffer slowly, or a NIC that hangs send pauses.

use std::fmt::Write as _;

use crate::draw::Draw;
use crate::parts::{Load, Traffic, acknowledgements, flow, place, tap};
use crate::plan::{Plan, Ranges};

pub(super) fn plan(draw: &mut Draw) -> Plan {
    let ranges = Ranges {
        hosts: (3, 6),
        gigabits: &[10, 25, 40, 100, 200, 400],
        mtus: &[1024, 2048, 4096],
        packets: 10_000,
        duration: (2_000, 10_000),
    };
    let mut plan = Plan::switched(draw, &ranges);
    acknowledgements(&mut plan, draw, 50_000);
    let xoff = draw.scaled(40, 400);
    let kind = draw.of(&["pfc", "pfc", "802.3x"]);
    let _ = writeln!(
        plan.switch,
        "pause = \"{kind}\"\nxoff = \"{xoff}KB\"\nxon = \"{}KB\"\nheadroom = \"{}KB\"\nbuffer = \"64MB\"\necn = {}",
        xoff / 2,
        100 + plan.gigabits * 2,
        draw.one_in(2)
    );
    let receiver = plan.hosts;
    let to = format!("h{receiver}");
    let from = format!("h1..h{}", receiver - 1);
    match draw.below(3) {
        0 => {
            let _ = writeln!(
                plan.tables,
                "\n[[host]]\nname = \"{to}\"\ndrain = \"{}Mbps\"",
                plan.gigabits * 10 * draw.between(20, 90)
            );
        }
        1 => {
            let on = draw.scaled(20, 400);
            let _ = writeln!(
                plan.tables,
                "\n[[pause]]\nhost = \"{to}\"\nkind = \"{kind}\"\nbegin = \"{}us\"\non = \"{on}us\"\noff = \"{}us\"",
                draw.between(100, plan.duration / 2),
                on * draw.between(1, 40)
            );
        }
        _ => {}
    }
    let traffic = Traffic {
        from: &from,
        to: &to,
        op: draw.of(&["write", "send"]),
        message: draw.scaled(16_384, 524_288),
        qps: draw.between(1, 4),
        load: Load::Closed(draw.between(1, 3)),
    };
    flow(&mut plan, draw, &traffic, "jitter = \"50us\"\n");
    let at = place(&plan, draw, 1, receiver);
    tap(&mut plan, draw, &at, "pause_frames = true\n");
    plan.link_rate();
    plan
}
