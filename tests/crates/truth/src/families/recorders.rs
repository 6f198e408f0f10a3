//! Families of captures that show healthy traffic otherwise than it was: `clock-step`, `late-mirror`, `vxlan-copies`, `thinned`.

use std::fmt::Write as _;

use crate::draw::Draw;
use crate::parts::{Load, Traffic, acknowledgements, flow, tap};
use crate::plan::{Plan, Ranges};

const RANGES: Ranges = Ranges {
    hosts: (2, 4),
    gigabits: &[25, 50, 100, 200],
    mtus: &[1024, 2048, 4096],
    packets: 4_000,
    duration: (1_000, 8_000),
};

/// Traffic from the first host to the last, half of the link at most, with timers that never end: 4.096 us x 2^14 = 67 ms.
fn healthy(draw: &mut Draw) -> (Plan, String) {
    let mut plan = Plan::switched(draw, &RANGES);
    plan.healthy = true;
    acknowledgements(&mut plan, draw, 67_000);
    let to = format!("h{}", plan.hosts);
    let message = draw.scaled(2_048, 131_072);
    let qps = draw.between(1, 6);
    let traffic = Traffic {
        from: "h1",
        to: &to,
        op: draw.of(&["write", "send", "read"]),
        message,
        qps,
        load: Load::Every(plan.message_time(message) * qps * draw.between(2, 8)),
    };
    flow(&mut plan, draw, &traffic, "jitter = \"20us\"\n");
    (plan, to)
}

/// A clock is set while it records: by -300 ms, +300 ms (a first answer of NTP; RFC 5905 steps above 128 ms), or -40 us (a PTP client that
/// changes its master). One tap, or two.
pub(super) fn clock_step(draw: &mut Draw) -> Plan {
    let (mut plan, to) = healthy(draw);
    let by = draw.of(&[-300_000_000_i64, 300_000_000, -40_000, 40_000]);
    let at = draw.between(plan.duration / 4, plan.duration * 3 / 4);
    let step = format!("clock_step_at = \"{at}us\"\nclock_step_ns = {by}\n");
    if draw.one_in(2) {
        tap(&mut plan, draw, "h1", "");
        tap(&mut plan, draw, &to, &step);
    } else {
        tap(&mut plan, draw, "h1", &step);
    }
    plan
}

/// A mirror's copies are 10 to 40 us late, each by another time, or all by the same beside a tap at the sender: mirrored
/// frames wait in the queue of the mirror's port.
pub(super) fn late_mirror(draw: &mut Draw) -> Plan {
    let (mut plan, to) = healthy(draw);
    let mirror = format!("{}:{to}", plan.neighbour(plan.hosts));
    let least = draw.scaled(5_000, 20_000);
    if draw.one_in(2) {
        let most = least + draw.scaled(1_000, 20_000);
        tap(
            &mut plan,
            draw,
            &mirror,
            &format!("late = \"{least}ns..{most}ns\"\n"),
        );
    } else {
        tap(&mut plan, draw, "h1", "");
        tap(
            &mut plan,
            draw,
            &mirror,
            &format!("late = \"{least}ns..{least}ns\"\n"),
        );
    }
    plan
}

/// A host's capture of all interfaces has each packet bare and in VXLAN (RFC 7348): the copy is some hundred nanoseconds to some
/// microseconds later.
pub(super) fn vxlan_copies(draw: &mut Draw) -> Plan {
    let (mut plan, to) = healthy(draw);
    let least = draw.scaled(200, 1_500);
    let more = format!(
        "doubled = \"{least}ns..{}ns\"\ndoubled_in = \"vxlan\"\nsession = {}\n",
        least + draw.between(10, 300),
        draw.between(1, 9_999)
    );
    let at = draw.of(&["h1", "receiver"]);
    let at = if at == "h1" { at.to_owned() } else { to };
    // The copy's headers take 50 bytes more than the frame's.
    let snaplen = draw.of(&[0, 192, 256]);
    let _ = write!(
        plan.tables,
        "\n[[tap]]\nat = \"{at}\"\nsnaplen = {snaplen}\n{more}"
    );
    plan
}

/// One packet in 2 to 20 is kept at random: sFlow's agents and `tcpdump` on a busy host do that to all, healthy or not. In half of the
/// scenarios a link loses packets, too.
pub(super) fn thinned(draw: &mut Draw) -> Plan {
    let (mut plan, to) = healthy(draw);
    if draw.one_in(2) {
        plan.healthy = false;
        let (from, host) = plan.last_link(plan.hosts);
        let what = format!("loss = {}", draw.share(300, 5_000));
        plan.impair(&from, &host, &what);
    }
    let lost = draw.of(&["0.5", "0.8", "0.9", "0.95"]);
    let at = draw.of(&["h1", "receiver"]);
    tap(
        &mut plan,
        draw,
        if at == "h1" { at } else { &to },
        &format!("loss = {lost}\n"),
    );
    plan
}
