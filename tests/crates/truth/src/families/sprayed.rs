//! Families of packets that take several paths: `sprayed`, `sprayed-lossy`, `spray-gbn`.

use std::fmt::Write as _;

use crate::draw::Draw;
use crate::parts::{acknowledgements, across};
use crate::plan::{Plan, Ranges};

/// Operations of the queue pairs: half of the plans write.
const OPERATIONS: &[&str] = &["write", "write", "send", "read"];

/// Hosts at two leaves, or at one cable, and paths between them with a skew of up to 500 us. Returns skew and jitter together,
/// in nanoseconds.
fn paths(plan: &mut Plan, draw: &mut Draw) -> u64 {
    if plan.leaves > 0 {
        plan.leaves = 2;
    }
    let skew = if draw.one_in(12) {
        0
    } else {
        draw.scaled(100, 500_000)
    };
    let jitter = if draw.one_in(3) {
        draw.scaled(100, 20_000)
    } else {
        0
    };
    let _ = writeln!(
        plan.network,
        "spray = {{ paths = {}, skew = \"{skew}ns\", jitter = \"{jitter}ns\", mode = \"{}\", choose = \"{}\", flowlet_gap = \
         \"{}us\" }}",
        draw.scaled(2, 64),
        draw.of(&["packet", "packet", "flowlet", "two-paths"]),
        draw.of(&["random", "turn"]),
        draw.scaled(5, 100)
    );
    skew + jitter
}

fn ranges() -> Ranges {
    Ranges {
        hosts: (2, 4),
        duration: (1_000, 8_000),
        ..Ranges::default()
    }
}

/// Receivers that take packets in any order, and lose none.
pub(super) fn healthy(draw: &mut Draw) -> Plan {
    let mut plan = Plan::draw(draw, &ranges());
    plan.healthy = true;
    acknowledgements(&mut plan, draw, 20_000);
    paths(&mut plan, draw);
    plan.nic.push_str("out_of_order = true\n");
    across(&mut plan, draw, OPERATIONS, 64);
    plan
}

/// Receivers of several paths, and links that lose packets.
pub(super) fn lossy(draw: &mut Draw) -> Plan {
    let mut plan = Plan::draw(draw, &ranges());
    let timeout = draw.scaled(1_500, 4_000);
    acknowledgements(&mut plan, draw, timeout);
    let spread = paths(&mut plan, draw);
    plan.nic.push_str("out_of_order = true\n");
    // Receivers wait for somewhat longer than packets can differ, or they name nothing: then only timeouts help.
    match draw.below(3) {
        0 => {}
        1 => {
            let after = spread * draw.between(110, 300) / 100 + 5_000;
            let _ = writeln!(plan.nic, "ooo_nak_after = \"{after}ns\"");
        }
        _ => {
            let packets = spread / plan.time_of(plan.mtu) + draw.between(8, 64);
            let _ = writeln!(plan.nic, "ooo_nak_packets = {packets}");
        }
    }
    across(&mut plan, draw, OPERATIONS, 64);
    let (from, to) = if draw.one_in(3) {
        plan.first_link(1)
    } else {
        plan.last_link(plan.hosts)
    };
    let what = draw.share(200, 10_000);
    plan.impair(&from, &to, &format!("loss = {what}"));
    plan
}

/// Receivers that go back N on several paths: late packets cause NAKs, and all behind them is
/// retransmitted.
pub(super) fn go_back_n(draw: &mut Draw) -> Plan {
    let mut plan = Plan::draw(draw, &ranges());
    let timeout = draw.scaled(1_500, 4_000);
    acknowledgements(&mut plan, draw, timeout);
    paths(&mut plan, draw);
    if draw.one_in(3) {
        plan.nic.push_str("recovery = \"selective\"\n");
    }
    let _ = writeln!(plan.nic, "window = \"{}KB\"", draw.scaled(32, 1_024));
    across(&mut plan, draw, OPERATIONS, 64);
    if draw.one_in(3) {
        let (from, to) = plan.last_link(plan.hosts);
        let what = draw.share(200, 5_000);
        plan.impair(&from, &to, &format!("loss = {what}"));
    }
    plan
}
