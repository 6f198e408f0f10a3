//! Families `nvme-of` and `reconnects`: storage, and connections that fail and are made again.

use std::fmt::Write as _;

use crate::draw::Draw;
use crate::parts::{Load, Traffic, acknowledgements, flow, place, tap};
use crate::plan::{Plan, Ranges};

/// NVMe over RDMA: a command is a SEND of 64 bytes, the target reads or writes 4 to 128 KB of the initiator's memory, the answer
/// is a SEND of 16 bytes (NVMe RDMA transport specification 1.0, sections 2 and 3). Everybody asks for a part of a link, and in
/// half of the scenarios the target's link loses packets.
pub(super) fn nvme(draw: &mut Draw) -> Plan {
    let ranges = Ranges {
        hosts: (2, 5),
        gigabits: &[25, 50, 100, 200],
        mtus: &[1024, 4096],
        packets: 6_000,
        duration: (1_000, 8_000),
    };
    let mut plan = Plan::switched(draw, &ranges);
    acknowledgements(&mut plan, draw, 17_000);
    let target = plan.hosts;
    let initiators = format!("h1..h{}", target - 1);
    let to = format!("h{target}");
    let block = draw.of(&[4_096, 16_384, 65_536, 131_072]);
    let each = plan.message_time(block) * (target - 1) * draw.between(4, 10);
    // Ports that the kernel computes tell the four queue pairs of two hosts apart.
    let qpn = draw.of(&["random", "sequential"]);
    for (from, to, op, message) in [
        (&initiators, &to, "send", 64),
        (&to, &initiators, "read", block),
        (&to, &initiators, "write", block),
        (&to, &initiators, "send", 16),
    ] {
        let _ = writeln!(
            plan.tables,
            "\n[[flow]]\nfrom = \"{from}\"\nto = \"{to}\"\nop = \"{op}\"\nmessage = {message}\ninterval = \"{each}ns\"\npoisson = \
             true\njitter = \"50us\"\nqpn = \"{qpn}\""
        );
    }
    if draw.one_in(2) {
        let (from, to) = plan.last_link(target);
        let what = format!("loss = {}", draw.share(300, 8_000));
        plan.impair(&from, &to, &what);
    } else {
        // Exponential gaps let queues grow for a moment; nothing is lost.
        plan.switch.push_str("ecn = false\n");
        plan.healthy = true;
    }
    let at = place(&plan, draw, 1, target);
    tap(&mut plan, draw, &at, "");
    plan
}

/// A server is restarted under load: its queue pairs go away without a word and are made again, with the same numbers and other PSNs,
/// some by the connection manager. In half of the scenarios its link loses packets before and after.
pub(super) fn reconnects(draw: &mut Draw) -> Plan {
    let ranges = Ranges {
        hosts: (2, 4),
        packets: 5_000,
        duration: (2_000, 8_000),
        ..Ranges::default()
    };
    let mut plan = Plan::switched(draw, &ranges);
    let timeout = draw.scaled(300, 2_000);
    acknowledgements(&mut plan, draw, timeout);
    let to = format!("h{}", plan.hosts);
    let traffic = Traffic {
        from: "h1",
        to: &to,
        op: draw.of(&["write", "send"]),
        message: draw.scaled(1_024, 65_536),
        qps: draw.between(1, 8),
        load: Load::Closed(draw.between(1, 2)),
    };
    let again = format!(
        "reuse = \"{}us\"\n",
        draw.between(plan.duration / 3, plan.duration * 2 / 3)
    );
    flow(&mut plan, draw, &traffic, &again);
    if draw.one_in(2) {
        let (from, to) = plan.last_link(plan.hosts);
        let what = format!("loss = {}", draw.share(300, 5_000));
        plan.impair(&from, &to, &what);
    } else {
        plan.healthy = true;
    }
    let at = place(&plan, draw, 1, plan.hosts);
    tap(&mut plan, draw, &at, "");
    plan
}
