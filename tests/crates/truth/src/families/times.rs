//! Families of the ways in which the time of a flow goes: timers, buffers, pauses, DCQCN, windows, steps of an application, a late rank.

use std::fmt::Write as _;

use crate::draw::Draw;
use crate::parts::{Load, Traffic, acknowledgements, dcqcn, flow, place, tap};
use crate::plan::{Cause, Plan, Ranges};

const RANGES: Ranges = Ranges {
    hosts: (2, 4),
    gigabits: &[25, 50, 100, 200, 400],
    mtus: &[1024, 2048, 4096],
    packets: 10_000,
    duration: (1_000, 10_000),
};

/// One sender, the first host; one receiver, the last.
fn traffic<'a>(to: &'a str, op: &'static str, message: u64, load: Load) -> Traffic<'a> {
    Traffic {
        from: "h1",
        to,
        op,
        message,
        qps: 1,
        load,
    }
}

/// Single packets of a paced application get lost now and then: nothing but the timer notices. Codes 8 to 18 of the local ACK timeout
/// (IBTA 9.7.6.1.3: 4.096 us x 2^code, 1.05 ms to 1.07 s).
pub(super) fn timers(draw: &mut Draw) -> Plan {
    let mut plan = Plan::draw(draw, &RANGES);
    let timeout = (4_096 << draw.between(8, 18)) / 1_000;
    plan.duration = timeout * draw.between(10, 20);
    let _ = writeln!(plan.nic, "timeout = \"{timeout}us\"");
    let to = format!("h{}", plan.hosts);
    let message = plan.mtu;
    // A message in a sixteenth of the timer, or as seldom as one Mbit/s says it.
    let rate = (message * 8 * 16 / timeout).max(1);
    flow(
        &mut plan,
        draw,
        &traffic(&to, "write", message, Load::Closed(1)),
        &format!("pace = \"{rate}Mbps\"\n"),
    );
    let (from, host) = plan.last_link(plan.hosts);
    let what = format!("loss = {}\nonly = \"data\"", draw.share(20_000, 80_000));
    plan.impair(&from, &host, &what);
    let at = place(&plan, draw, 1, plan.hosts);
    tap(&mut plan, draw, &at, "");
    plan
}

/// Microseconds of an RNR timer's code (IBTA, table of RNR NAK timer values).
fn rnr_timer(code: u64) -> u64 {
    match code {
        0 => 655_360,
        1 => 10,
        _ if code.is_multiple_of(2) => 20 << ((code - 2) / 2),
        _ => 30 << ((code - 3) / 2),
    }
}

/// SENDs for which buffers are posted too slowly, with each code of the RNR timer.
pub(super) fn buffers(draw: &mut Draw) -> Plan {
    let mut plan = Plan::draw(draw, &RANGES);
    let code = draw.below(32);
    let timer = rnr_timer(code);
    plan.duration = (timer * draw.between(10, 20)).max(2_000);
    let _ = writeln!(
        plan.nic,
        "rnr_timer = {code}\ntimeout = \"{}us\"",
        timer * 8 + 4_000
    );
    let to = format!("h{}", plan.hosts);
    let message = draw.scaled(64, 4_096);
    let more = format!(
        "receives = {}\nrefill = \"{}us\"\n",
        draw.between(1, 8),
        timer * draw.between(20, 300) / 100 + 1
    );
    flow(
        &mut plan,
        draw,
        &traffic(&to, "send", message, Load::Closed(1)),
        &more,
    );
    let at = place(&plan, draw, 1, plan.hosts);
    tap(&mut plan, draw, &at, "");
    plan.root(Cause::NoBuffers, &[1], &[plan.hosts]);
    plan
}

/// A host pauses the sender's port, again and again; the tap is at that cable.
pub(super) fn storms(draw: &mut Draw) -> Plan {
    let mut plan = Plan::draw(draw, &RANGES);
    (plan.hosts, plan.leaves) = (2, 0);
    acknowledgements(&mut plan, draw, 67_000);
    let _ = writeln!(plan.nic, "window = \"{}KB\"", draw.scaled(64, 1_024));
    let message = draw.scaled(16_384, 262_144);
    let load = if draw.one_in(2) {
        Load::Closed(draw.between(2, 8))
    } else {
        Load::Every(plan.message_time(message) * draw.between(11, 30) / 10)
    };
    flow(&mut plan, draw, &traffic("h2", "write", message, load), "");
    let on = draw.scaled(30, 700);
    let _ = writeln!(
        plan.tables,
        "\n[[pause]]\nhost = \"h2\"\nkind = \"{}\"\nbegin = \"{}us\"\non = \"{on}us\"\noff = \"{}us\"",
        draw.of(&["pfc", "pfc", "802.3x"]),
        draw.between(0, plan.duration / 4),
        on * draw.between(20, 300) / 100 + 1
    );
    let at = draw.of(&["h1", "h2"]);
    tap(&mut plan, draw, at, "pause_frames = true\n");
    plan.link_rate();
    plan.root(Cause::PauseStorm, &[1], &[2]);
    plan
}

/// One sender at the rate of its port, a slower receiver, and a reaction point that works. Nothing is lost.
pub(super) fn slowed(draw: &mut Draw) -> Plan {
    let mut plan = Plan::switched(draw, &RANGES);
    plan.healthy = true;
    acknowledgements(&mut plan, draw, 20_000);
    dcqcn(&mut plan, draw);
    let kmin = draw.scaled(10, 200);
    let _ = writeln!(
        plan.switch,
        "kmin = \"{kmin}KB\"\nkmax = \"{}KB\"\npmax = {}",
        kmin * draw.between(2, 10),
        draw.share(10_000, 1_000_000)
    );
    let percent = draw.between(20, 80);
    let to = format!("h{}", plan.hosts);
    let _ = writeln!(
        plan.tables,
        "\n[[host]]\nname = \"{to}\"\nrate = \"{}Mbps\"",
        plan.gigabits * 10 * percent
    );
    let message = draw.scaled(65_536, 1_048_576);
    let load = Load::Closed(draw.between(2, 8));
    flow(&mut plan, draw, &traffic(&to, "write", message, load), "");
    let at = if draw.one_in(2) {
        "h1".to_owned()
    } else {
        format!("{}:h1", plan.neighbour(1))
    };
    tap(&mut plan, draw, &at, "");
    plan.link_rate();
    plan.root(Cause::Healthy, &[], &[]);
    plan
}

/// A long way and a window that is a tenth to nine tenths of what the way holds.
pub(super) fn windows(draw: &mut Draw) -> Plan {
    let mut plan = Plan::draw(draw, &RANGES);
    plan.healthy = true;
    let delay = draw.scaled(3_000, 100_000);
    plan.network = format!("delay = \"{delay}ns\"\n");
    let links = if plan.leaves > 1 { 8 } else { 2 * (plan.leaves + 1) };
    // Bytes of the way there and back, at the rate of a link.
    let way = delay * links * plan.gigabits / 8;
    let window = (way * draw.between(10, 90) / 100).max(plan.mtu * 4);
    acknowledgements(&mut plan, draw, 67_000);
    let _ = writeln!(plan.nic, "window = {window}");
    plan.duration = plan.duration.max(delay * links / 1_000 * 20);
    let to = format!("h{}", plan.hosts);
    let message = draw.scaled(65_536, 1_048_576).max(window * 2);
    let load = Load::Closed(draw.between(2, 4));
    flow(&mut plan, draw, &traffic(&to, "write", message, load), "");
    let at = place(&plan, draw, 1, plan.hosts);
    tap(&mut plan, draw, &at, "");
    plan.root(Cause::Healthy, &[], &[]);
    plan
}

/// Bursts at line rate, and between them the application computes. Nothing is wrong with the network.
pub(super) fn steps(draw: &mut Draw) -> Plan {
    let mut plan = Plan::draw(draw, &RANGES);
    plan.healthy = true;
    acknowledgements(&mut plan, draw, 67_000);
    let to = format!("h{}", plan.hosts);
    let message = draw.scaled(32_768, 1_048_576);
    let burst = draw.between(1, 6);
    let qps = draw.of(&[1, 1, 2, 4]);
    let every = plan.message_time(message) * burst * qps * draw.between(20, 200) / 10;
    plan.duration = plan.duration.max(every * draw.between(8, 20) / 1_000);
    let more = format!("burst = {burst}\n");
    let load = Load::Every(every);
    let op = draw.of(&["write", "send"]);
    let bursts = Traffic {
        qps,
        ..traffic(&to, op, message, load)
    };
    flow(&mut plan, draw, &bursts, &more);
    let at = place(&plan, draw, 1, plan.hosts);
    tap(&mut plan, draw, &at, "");
    plan.root(Cause::Healthy, &[], &[]);
    plan
}

/// A ring all-reduce whose ranks wait for one of them.
pub(super) fn late_rank(draw: &mut Draw) -> Plan {
    let mut plan = Plan::switched(draw, &RANGES);
    plan.hosts = draw.between(3, 6);
    acknowledgements(&mut plan, draw, 67_000);
    let bytes = draw.scaled(100_000, 1_000_000);
    let busy = plan.time_of(bytes * 2);
    let compute = busy * draw.between(1, 10);
    let factor = draw.between(15, 40);
    plan.duration = (compute * factor / 10 + busy * 2) * draw.between(6, 10) / 1_000;
    let _ = writeln!(
        plan.tables,
        "\n[[training]]\nranks = \"h1..h{}\"\ncompute = \"{compute}ns\"\nbytes = {bytes}\nslow_rank = {}\nslow_factor = {}.{}\nqps = {}",
        plan.hosts,
        draw.below(plan.hosts),
        factor / 10,
        factor % 10,
        draw.between(1, 2)
    );
    let at = place(&plan, draw, 1, 2);
    tap(&mut plan, draw, &at, "");
    plan.root(Cause::Healthy, &[], &[]);
    plan
}
