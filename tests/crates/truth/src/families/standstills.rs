//! Families `delaying-pauses` and `watchdog`: a receiver pauses its switch, and packets wait, or are dropped after a while.

use std::fmt::Write as _;

use crate::draw::Draw;
use crate::parts::{Load, Traffic, acknowledgements, flow, tap};
use crate::plan::{Plan, Ranges};

const RANGES: Ranges = Ranges {
    hosts: (2, 4),
    gigabits: &[25, 50, 100],
    mtus: &[1024, 2048, 4096],
    packets: 5_000,
    duration: (4_000, 12_000),
};

/// Lossless switches whose buffers hold what one receiver's queue pairs have outstanding.
fn lossless(plan: &mut Plan, draw: &mut Draw, window: u64) {
    let _ = writeln!(
        plan.switch,
        "pause = \"pfc\"\nxoff = \"32MB\"\nxon = \"16MB\"\nheadroom = \"16MB\"\nbuffer = \"256MB\"\necn = {}",
        draw.one_in(2)
    );
    let _ = writeln!(plan.nic, "window = \"{window}KB\"");
}

fn traffic(plan: &mut Plan, draw: &mut Draw) -> String {
    let to = format!("h{}", plan.hosts);
    let message = draw.scaled(16_384, 131_072);
    let qps = draw.between(1, 4);
    // From a twentieth to half of the link.
    let traffic = Traffic {
        from: "h1",
        to: &to,
        op: draw.of(&["write", "send"]),
        message,
        qps,
        load: Load::Every(plan.message_time(message) * qps * draw.between(2, 20)),
    };
    flow(plan, draw, &traffic, "jitter = \"20us\"\n");
    to
}

/// One or two pauses of 0.5 to 7 ms (RDMA over Commodity Ethernet at Scale, SIGCOMM 2016, section 4.4: slow receivers and NICs that
/// hang). No timer ends meanwhile: 4.096 us x 2^14 = 67 ms. Two taps have each packet, before and behind the wait.
pub(super) fn delaying(draw: &mut Draw) -> Plan {
    let mut plan = Plan::switched(draw, &RANGES);
    acknowledgements(&mut plan, draw, 67_000);
    let window = draw.scaled(256, 2_048);
    lossless(&mut plan, draw, window);
    let to = traffic(&mut plan, draw);
    let on = draw.scaled(500, 7_000).min(plan.duration / 2);
    let _ = writeln!(
        plan.tables,
        "\n[[pause]]\nhost = \"{to}\"\nbegin = \"{}us\"\non = \"{on}us\"",
        draw.between(plan.duration / 8, plan.duration / 3)
    );
    tap(&mut plan, draw, "h1", "pause_frames = true\n");
    tap(&mut plan, draw, &to, "pause_frames = true\n");
    if draw.one_in(2) {
        plan.link_rate();
    }
    plan
}

/// A standstill in which the switch's PFC watchdog drops packets for the port, once it has been paused for a
/// while. Detection times of SONiC's `pfcwd` are 100 ms and more; here they and the timers are shorter by a
/// factor of about 100, as the runs are.
pub(super) fn watchdog(draw: &mut Draw) -> Plan {
    let mut plan = Plan::switched(draw, &RANGES);
    let timeout = draw.scaled(2_000, 4_000);
    acknowledgements(&mut plan, draw, timeout);
    lossless(&mut plan, draw, 1_024);
    let _ = writeln!(plan.switch, "watchdog = \"{}us\"", draw.between(500, 1_500));
    let to = traffic(&mut plan, draw);
    let on = draw.between(2_000, 4_000).min(plan.duration / 2);
    let _ = writeln!(
        plan.tables,
        "\n[[pause]]\nhost = \"{to}\"\nbegin = \"{}us\"\non = \"{on}us\"",
        draw.between(plan.duration / 8, plan.duration / 4)
    );
    let at = draw.of(&["h1", "receiver"]);
    tap(
        &mut plan,
        draw,
        if at == "h1" { at } else { &to },
        "pause_frames = true\n",
    );
    plan
}
