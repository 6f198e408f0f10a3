//! Family `training`: steps of computing and ring all-reduce; healthy, but for a rank that is slow or a link that loses.

use std::fmt::Write as _;

use crate::draw::Draw;
use crate::parts::{acknowledgements, place, tap};
use crate::plan::{Plan, Ranges};

pub(super) fn plan(draw: &mut Draw) -> Plan {
    let ranges = Ranges {
        hosts: (2, 6),
        gigabits: &[25, 50, 100, 200, 400],
        mtus: &[1024, 4096],
        packets: 30_000,
        duration: (8_000, 30_000),
    };
    let mut plan = Plan::switched(draw, &ranges);
    plan.healthy = true;
    acknowledgements(&mut plan, draw, 4_000);
    // A step takes a fifth to a tenth of the run, an all-reduce less than a half of it: each rank sends twice the bytes.
    let step = plan.duration * 1_000 / draw.between(5, 10);
    let busy = step * draw.between(5, 40) / 100;
    let bytes = (busy * plan.gigabits / 8 / 2).min(3_000_000);
    let _ = writeln!(
        plan.tables,
        "\n[[training]]\nranks = \"h1..h{}\"\ncompute = \"{}ns\"\nbytes = {}\nspread = 0.0{}\nqps = {}",
        plan.hosts,
        step - busy,
        bytes.max(plan.hosts * 64),
        draw.below(10),
        draw.between(1, 4)
    );
    match draw.below(4) {
        0 => {
            plan.healthy = false;
            let _ = writeln!(
                plan.tables,
                "slow_rank = 0\nslow_factor = 1.{}",
                draw.between(1, 9)
            );
        }
        1 => {
            let (from, to) = plan.last_link(2);
            let what = draw.share(100, 3_000);
            plan.impair(&from, &to, &format!("loss = {what}"));
        }
        _ => {}
    }
    let at = place(&plan, draw, 1, 2);
    tap(&mut plan, draw, &at, "");
    plan
}
