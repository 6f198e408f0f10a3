//! Family `capture-loss`: nothing is wrong with the network, but the tap loses records; in one of three cases packets are
//! lost, too.

use crate::draw::Draw;
use crate::parts::{acknowledgements, closed, place, tap};
use crate::plan::{Plan, Ranges};

pub(super) fn plan(draw: &mut Draw) -> Plan {
    let mut plan = Plan::draw(draw, &Ranges::default());
    plan.healthy = true;
    acknowledgements(&mut plan, draw, 4_000);
    closed(&mut plan, draw);
    if draw.one_in(3) {
        let (from, to) = plan.last_link(plan.hosts);
        let what = draw.share(200, 5_000);
        plan.impair(&from, &to, &format!("loss = {what}"));
    }
    let loss = match draw.below(4) {
        0 => format!("loss = {}", draw.share(500, 50_000)),
        1 => format!(
            "loss = {{ every = {}, lose = {} }}",
            draw.scaled(100, 3_000),
            draw.scaled(1, 50)
        ),
        2 => format!(
            "loss = {{ buffer = \"{}KB\", rate = \"{}Mbps\" }}",
            draw.scaled(8, 128),
            plan.gigabits * 10 * draw.between(30, 95)
        ),
        _ => {
            let begin = draw.below(plan.duration / 2);
            let length = draw.scaled(10, plan.duration / 3);
            format!("loss = {{ from = \"{begin}us\", to = \"{}us\" }}", begin + length)
        }
    };
    let report = draw.of(&["silent", "silent", "statistics", "packets", "claims-none"]);
    let at = place(&plan, draw, 1, plan.hosts);
    tap(
        &mut plan,
        draw,
        &at,
        &format!("{loss}\nloss_report = \"{report}\"\n"),
    );
    plan
}
