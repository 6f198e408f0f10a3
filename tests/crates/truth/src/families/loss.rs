//! Families of links that lose packets: `lossy-gbn`, `lossy-selective`, `timeouts`, `nak-loss`, `repeated-loss`.

use std::fmt::Write as _;

use crate::draw::Draw;
use crate::parts::{Load, Traffic, acknowledgements, across, flow, place, tap};
use crate::plan::{Plan, Ranges};

const RANGES: Ranges = Ranges {
    hosts: (2, 4),
    gigabits: &[10, 25, 40, 100, 200, 400, 800],
    mtus: &[256, 512, 1024, 2048, 4096],
    packets: 8_000,
    duration: (1_000, 10_000),
};

/// The first link or the last one.
fn link(plan: &Plan, draw: &mut Draw) -> (String, String) {
    if draw.one_in(3) {
        plan.first_link(1)
    } else {
        plan.last_link(plan.hosts)
    }
}

fn lossy(draw: &mut Draw, recovery: &str) -> Plan {
    let mut plan = Plan::draw(draw, &RANGES);
    let timeout = draw.scaled(300, 4_000);
    acknowledgements(&mut plan, draw, timeout);
    let _ = writeln!(
        plan.nic,
        "recovery = \"{recovery}\"\nwindow = \"{}KB\"",
        draw.scaled(64, 4_096)
    );
    across(&mut plan, draw, &["write", "send"], 32);
    let (from, to) = link(&plan, draw);
    let what = format!(
        "{} = {}\nonly = \"{}\"",
        draw.of(&["loss", "loss", "loss", "corrupt"]),
        draw.share(200, 20_000),
        draw.of(&["all", "data"])
    );
    plan.impair(&from, &to, &what);
    plan
}

/// Receivers drop what comes behind a gap.
pub(super) fn go_back_n(draw: &mut Draw) -> Plan {
    lossy(draw, "go-back-n")
}

/// Receivers keep it.
pub(super) fn selective(draw: &mut Draw) -> Plan {
    lossy(draw, "selective")
}

/// Short messages whose last packets are lost, or a link that fails for some time: only silence shows
/// it.
pub(super) fn timeouts(draw: &mut Draw) -> Plan {
    let ranges = Ranges {
        duration: (4_000, 12_000),
        ..RANGES
    };
    let mut plan = Plan::draw(draw, &ranges);
    let timeout = draw.scaled(300, 3_000);
    acknowledgements(&mut plan, draw, timeout);
    let to = format!("h{}", plan.hosts);
    let qps = draw.scaled(1, 16);
    let message = draw.scaled(64, plan.mtu * 3);
    let (from_link, to_link) = link(&plan, draw);
    let load = if draw.one_in(2) {
        Load::Closed(1)
    } else {
        Load::Every(draw.scaled(50_000, 2_000_000))
    };
    let traffic = Traffic {
        from: "h1",
        to: &to,
        op: draw.of(&["write", "send"]),
        message,
        qps,
        load,
    };
    // A closed loop of short messages at a fast link is very many of them: some are enough.
    let more = format!("count = {}\njitter = \"20us\"\n", 4_000 / qps);
    flow(&mut plan, draw, &traffic, &more);
    let what = if draw.one_in(2) {
        format!("loss = {}", draw.share(1_000, 30_000))
    } else {
        let begin = draw.between(200, plan.duration / 2);
        let length = draw.scaled(20, timeout * 2);
        format!(
            "loss = 1.0\nbegin = \"{begin}us\"\nend = \"{}us\"",
            begin + length
        )
    };
    plan.impair(&from_link, &to_link, &what);
    let at = place(&plan, draw, 1, plan.hosts);
    tap(&mut plan, draw, &at, "");
    plan
}

/// Data is lost, and so are some of the NAKs and ACKs for it.
pub(super) fn naks(draw: &mut Draw) -> Plan {
    let mut plan = Plan::draw(draw, &RANGES);
    let timeout = draw.scaled(300, 3_000);
    acknowledgements(&mut plan, draw, timeout);
    across(&mut plan, draw, &["write", "send"], 32);
    let (from, to) = link(&plan, draw);
    let what = format!("loss = {}\nonly = \"data\"", draw.share(500, 10_000));
    plan.impair(&from, &to, &what);
    let (from, to) = if draw.one_in(2) {
        plan.first_link(plan.hosts)
    } else {
        plan.last_link(1)
    };
    let only = draw.of(&["ack", "nak", "nak"]);
    let what = format!("loss = {}\nonly = \"{only}\"", draw.share(50_000, 900_000));
    plan.impair(&from, &to, &what);
    plan
}

/// Retransmissions are lost with a larger probability, or a number of times in a row.
pub(super) fn repeated(draw: &mut Draw) -> Plan {
    let mut plan = Plan::draw(draw, &RANGES);
    let timeout = draw.scaled(300, 2_000);
    acknowledgements(&mut plan, draw, timeout);
    if draw.one_in(2) {
        plan.nic.push_str("recovery = \"selective\"\n");
    }
    across(&mut plan, draw, &["write", "send"], 32);
    let (from, to) = link(&plan, draw);
    let what = if draw.one_in(2) {
        let again = draw.share(50_000, 600_000);
        format!(
            "loss = {}\nlose_retransmissions = {again}",
            draw.share(200, 5_000)
        )
    } else {
        let times = draw.between(2, 4);
        format!("loss = {}\ntimes = {times}", draw.share(200, 3_000))
    };
    plan.impair(&from, &to, &what);
    plan
}
