//! Family `two-taps`: two captures of the same traffic, in files of their own with clocks of their own; packets are lost
//! before the first tap, between the two, or behind the second.

use crate::draw::Draw;
use crate::parts::{Load, Traffic, acknowledgements, flow, tap};
use crate::plan::{Plan, Ranges};

pub(super) fn plan(draw: &mut Draw) -> Plan {
    let ranges = Ranges {
        hosts: (2, 4),
        packets: 6_000,
        duration: (1_000, 10_000),
        ..Ranges::default()
    };
    let mut plan = Plan::switched(draw, &ranges);
    let timeout = draw.scaled(500, 3_000);
    acknowledgements(&mut plan, draw, timeout);
    if draw.one_in(3) {
        plan.nic.push_str("recovery = \"selective\"\n");
    }
    let receiver = plan.hosts;
    let to = format!("h{receiver}");
    let traffic = Traffic {
        from: "h1",
        to: &to,
        op: draw.of(&["write", "send", "write", "read"]),
        message: draw.scaled(2_048, 262_144),
        qps: draw.scaled(1, 16),
        load: Load::Closed(draw.between(1, 4)),
    };
    flow(&mut plan, draw, &traffic, "jitter = \"20us\"\n");
    if !draw.one_in(4) {
        let (from, to) = if draw.one_in(2) {
            plan.first_link(1)
        } else {
            plan.last_link(receiver)
        };
        let what = format!("loss = {}", draw.share(200, 10_000));
        plan.impair(&from, &to, &what);
    } else if draw.one_in(2) {
        plan.healthy = true;
    }
    let sender = if draw.one_in(2) {
        "h1".to_owned()
    } else {
        format!("{}:h1", plan.neighbour(1))
    };
    let far = if draw.one_in(2) {
        to
    } else {
        format!("{}:h{receiver}", plan.neighbour(receiver))
    };
    let offset = |draw: &mut Draw| {
        // Clocks of hosts without PTP differ by milliseconds (NTP) and drift by some 10 ppm.
        let ahead = draw.scaled(10, 50_000_000);
        let drift = draw.of(&[0, 0, 500, 20_000]);
        format!("clock_offset_ns = {ahead}\nclock_drift_ppb = {drift}\n")
    };
    let mut places = [sender, far];
    if draw.one_in(2) {
        places.reverse();
    }
    let [first, second] = places;
    tap(&mut plan, draw, &first, "");
    let mut more = offset(draw);
    if draw.one_in(5) {
        more.push_str("loss = 0.002\n");
    }
    tap(&mut plan, draw, &second, &more);
    plan
}
