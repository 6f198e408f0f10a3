//! Families of links that let some packets through: `optics`, `black-hole`, `lost-answers`, `lossy-acceleration`, `adaptive-gbn`.

use std::fmt::Write as _;

use crate::draw::Draw;
use crate::parts::{Load, Traffic, acknowledgements, flow, tap};
use crate::plan::{Plan, Ranges};

const RANGES: Ranges = Ranges {
    hosts: (2, 4),
    gigabits: &[25, 50, 100, 200, 400],
    mtus: &[1024, 2048, 4096],
    packets: 6_000,
    duration: (1_000, 8_000),
};

/// Traffic from the first host to the last, in a closed loop.
fn closed(plan: &mut Plan, draw: &mut Draw, operations: &[&'static str], outstanding: (u64, u64)) {
    let to = format!("h{}", plan.hosts);
    let traffic = Traffic {
        from: "h1",
        to: &to,
        op: draw.of(operations),
        message: draw.scaled(4_096, 262_144),
        qps: draw.between(1, 8),
        load: Load::Closed(draw.between(outstanding.0, outstanding.1)),
    };
    flow(plan, draw, &traffic, "jitter = \"20us\"\n");
}

/// Bits flip on the receiver's link, and its adapter drops what has a wrong ICRC. A bit error rate of 1e-8 to 1e-6 damages 0.03 to
/// 3 % of frames of 4 KB (IEEE 802.3 asks for 1e-12). The tap is on that link.
pub(super) fn optics(draw: &mut Draw) -> Plan {
    let mut plan = Plan::draw(draw, &RANGES);
    let timeout = draw.scaled(500, 4_000);
    acknowledgements(&mut plan, draw, timeout);
    closed(&mut plan, draw, &["write", "send"], (1, 4));
    let (from, to) = plan.last_link(plan.hosts);
    let what = format!("corrupt = {}\nonly = \"data\"", draw.share(300, 30_000));
    plan.impair(&from, &to, &what);
    let at = format!("h{}", plan.hosts);
    tap(&mut plan, draw, &at, "");
    plan
}

/// A switch on the way has a smaller MTU than the hosts: frames of 1,518 bytes pass, those of a path MTU of 2,048 or 4,096 bytes
/// never do. Small messages go on. Timers of 4.096 us x 2^8 to 2^10 end within the run (IBTA 9.7.6.1.3; the count of
/// retries is 7).
pub(super) fn black_hole(draw: &mut Draw) -> Plan {
    let mut plan = Plan::switched(draw, &RANGES);
    plan.mtu = draw.of(&[2_048, 4_096]);
    plan.duration = 40_000;
    let timeout = draw.of(&[1_049, 2_097, 4_194]);
    acknowledgements(&mut plan, draw, timeout);
    let to = format!("h{}", plan.hosts);
    let large = Traffic {
        from: "h1",
        to: &to,
        op: "write",
        message: plan.mtu * draw.of(&[1, 1, 4, 16]),
        qps: draw.between(1, 2),
        load: Load::Closed(1),
    };
    flow(&mut plan, draw, &large, "count = 4\nbegin = \"100us\"\n");
    let small = Traffic {
        op: draw.of(&["write", "send"]),
        message: draw.of(&[64, 256, 900]),
        load: Load::Every(draw.scaled(20_000, 200_000)),
        ..large
    };
    flow(&mut plan, draw, &small, "");
    let (from, to) = plan.last_link(plan.hosts);
    plan.impair(&from, &to, "loss = 1.0\nlonger_than = 1518");
    tap(&mut plan, draw, "h1", "");
    plan
}

/// Only answers are lost: data arrives, the sender waits and repeats it.
pub(super) fn lost_answers(draw: &mut Draw) -> Plan {
    let mut plan = Plan::draw(draw, &RANGES);
    let timeout = draw.scaled(300, 2_000);
    acknowledgements(&mut plan, draw, timeout);
    closed(&mut plan, draw, &["write", "send"], (1, 2));
    let (from, to) = plan.last_link(1);
    let what = format!("loss = {}\nonly = \"positive-ack\"", draw.share(20_000, 200_000));
    plan.impair(&from, &to, &what);
    tap(&mut plan, draw, "h1", "");
    if draw.one_in(2) {
        let at = format!("h{}", plan.hosts);
        let ahead = draw.scaled(10, 1_000_000);
        tap(&mut plan, draw, &at, &format!("clock_offset_ns = {ahead}\n"));
    }
    plan
}

/// Adapters that slow down on a loss: each NAK is followed by a CNP (Lumina, SIGCOMM 2023, section 6.3). No switch marks.
pub(super) fn lossy_acceleration(draw: &mut Draw) -> Plan {
    let mut plan = Plan::switched(draw, &RANGES);
    let timeout = draw.scaled(1_000, 8_000);
    acknowledgements(&mut plan, draw, timeout);
    let _ = writeln!(
        plan.nic,
        "cnp_after_nak = true\nrecovery = \"{}\"",
        draw.of(&["go-back-n", "selective"])
    );
    plan.switch.push_str("ecn = false\n");
    closed(&mut plan, draw, &["write", "send"], (2, 4));
    let (from, to) = plan.last_link(plan.hosts);
    let what = format!("loss = {}\nonly = \"data\"", draw.share(300, 8_000));
    plan.impair(&from, &to, &what);
    let at = draw.of(&["h1", "last"]);
    let last = format!("h{}", plan.hosts);
    tap(&mut plan, draw, if at == "last" { &last } else { at }, "");
    plan
}

/// Adaptive routing towards receivers that go back: packets overtake each other by 1 to 20 us, nothing is lost; two taps see it.
pub(super) fn adaptive_gbn(draw: &mut Draw) -> Plan {
    let mut plan = Plan::switched(draw, &RANGES);
    plan.leaves = 1;
    acknowledgements(&mut plan, draw, 67_000);
    let _ = writeln!(
        plan.network,
        "spray = {{ paths = {}, skew = \"{}ns\" }}",
        draw.of(&[2, 4, 8]),
        draw.scaled(1_000, 20_000)
    );
    let to = format!("h{}", plan.hosts);
    let message = draw.scaled(16_384, 131_072);
    let qps = draw.between(1, 4);
    let traffic = Traffic {
        from: "h1",
        to: &to,
        op: "write",
        message,
        qps,
        load: Load::Every(plan.message_time(message) * qps * draw.between(4, 12)),
    };
    flow(&mut plan, draw, &traffic, "jitter = \"20us\"\n");
    tap(&mut plan, draw, "h1", "");
    tap(&mut plan, draw, &to, "");
    plan
}
