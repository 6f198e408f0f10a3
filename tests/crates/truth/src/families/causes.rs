//! Families of causes: one thing is wrong, or nothing, and the hosts that suffer and bring it about are known.

use std::fmt::Write as _;

use crate::draw::Draw;
use crate::parts::{Load, Traffic, acknowledgements, dcqcn, flow, tap};
use crate::plan::{Cause, Plan, Ranges};

const RANGES: Ranges = Ranges {
    hosts: (3, 6),
    gigabits: &[25, 50, 100, 200],
    mtus: &[1024, 2048, 4096],
    packets: 10_000,
    duration: (2_000, 8_000),
};

/// All hosts but the last send to it.
fn many(plan: &mut Plan, draw: &mut Draw, outstanding: (u64, u64), more: &str) {
    let (from, to) = (format!("h1..h{}", plan.hosts - 1), format!("h{}", plan.hosts));
    let traffic = Traffic {
        from: &from,
        to: &to,
        op: draw.of(&["write", "write", "send"]),
        message: draw.scaled(32_768, 262_144),
        qps: draw.between(1, 3),
        load: Load::Closed(draw.between(outstanding.0, outstanding.1)),
    };
    flow(plan, draw, &traffic, &format!("jitter = \"50us\"\n{more}"));
}

/// The first host sends to the last now and then: a tenth to a third of the link.
fn few<'a>(plan: &Plan, draw: &mut Draw, to: &'a str, op: &'static str) -> Traffic<'a> {
    let message = draw.scaled(8_192, 131_072);
    let qps = draw.between(1, 4);
    Traffic {
        from: "h1",
        to,
        op,
        message,
        qps,
        load: Load::Every(plan.message_time(message) * qps * draw.between(3, 10)),
    }
}

fn last(plan: &Plan) -> String {
    format!("h{}", plan.hosts)
}

fn senders(plan: &Plan) -> Vec<u64> {
    (1..plan.hosts).collect()
}

/// A switch whose queue holds less than the senders have outstanding.
fn small_queue(plan: &mut Plan, draw: &mut Draw) -> u64 {
    let limit = draw.scaled(60, 250);
    let _ = writeln!(plan.switch, "queue_limit = \"{limit}KB\"");
    limit
}

/// Senders do not say that they can ECN. The queue drops what it cannot mark.
pub(super) fn no_ecn(draw: &mut Draw) -> Plan {
    let mut plan = Plan::switched(draw, &RANGES);
    let timeout = draw.scaled(500, 4_000);
    acknowledgements(&mut plan, draw, timeout);
    dcqcn(&mut plan, draw);
    small_queue(&mut plan, draw);
    many(&mut plan, draw, (2, 4), "ecn = false\n");
    let at = if draw.one_in(2) {
        last(&plan)
    } else {
        format!("{}:h{}", plan.neighbour(plan.hosts), plan.hosts)
    };
    tap(&mut plan, draw, &at, "");
    let all = senders(&plan);
    plan.root(Cause::NoEcn, &all, &all);
    plan
}

/// Both ends write, and what comes back has the DSCP of another class: its queue neither marks nor pauses, and drops.
pub(super) fn wrong_dscp(draw: &mut Draw) -> Plan {
    let mut plan = Plan::switched(draw, &RANGES);
    plan.hosts = plan.hosts.max(4);
    plan.leaves = 1;
    let timeout = draw.scaled(500, 2_000);
    acknowledgements(&mut plan, draw, timeout);
    let _ = writeln!(
        plan.switch,
        "pause = \"pfc\"\nkmin = \"20KB\"\nkmax = \"400KB\"\npmax = 0.2\nqueue_limit = \"{}KB\"",
        draw.between(40, 60)
    );
    let message = draw.scaled(32_768, 65_536);
    let others = format!("h2..h{}", plan.hosts);
    let each = plan.message_time(message) * (plan.hosts - 1);
    let traffic = Traffic {
        from: "h1",
        to: &others,
        op: "write",
        message,
        qps: 1,
        load: Load::Every(each * draw.between(12, 25) / 10),
    };
    let more = format!(
        "direction = \"both\"\nreverse_dscp = {}\n",
        draw.of(&[0, 8, 16, 40])
    );
    flow(&mut plan, draw, &traffic, &more);
    tap(&mut plan, draw, "h1", "");
    let victims: Vec<u64> = (2..=plan.hosts).collect();
    plan.root(Cause::WrongDscp, &victims, &victims);
    plan
}

/// Data is ECN-capable, and the queue is full before its threshold is reached.
pub(super) fn high_threshold(draw: &mut Draw) -> Plan {
    let mut plan = Plan::switched(draw, &RANGES);
    let timeout = draw.scaled(500, 4_000);
    acknowledgements(&mut plan, draw, timeout);
    dcqcn(&mut plan, draw);
    let limit = small_queue(&mut plan, draw);
    let kmin = limit * draw.between(11, 40) / 10;
    let _ = writeln!(
        plan.switch,
        "kmin = \"{kmin}KB\"\nkmax = \"{}KB\"\npmax = 0.2",
        kmin * 4
    );
    many(&mut plan, draw, (2, 4), "");
    let at = last(&plan);
    tap(&mut plan, draw, &at, "");
    let all = senders(&plan);
    plan.root(Cause::HighThreshold, &all, &[]);
    plan
}

/// A switch that marks early.
fn marks(plan: &mut Plan, draw: &mut Draw) {
    let kmin = draw.scaled(10, 100);
    let _ = writeln!(
        plan.switch,
        "kmin = \"{kmin}KB\"\nkmax = \"{}KB\"\npmax = {}",
        kmin * draw.between(2, 10),
        draw.share(100_000, 1_000_000)
    );
}

/// The receiver's notification point is off.
pub(super) fn no_cnps(draw: &mut Draw) -> Plan {
    let mut plan = Plan::switched(draw, &RANGES);
    acknowledgements(&mut plan, draw, 20_000);
    plan.dcqcn.push_str("notify = false\n");
    marks(&mut plan, draw);
    many(&mut plan, draw, (2, 6), "");
    let at = last(&plan);
    tap(&mut plan, draw, &at, "");
    let (all, to) = (senders(&plan), plan.hosts);
    plan.root(Cause::NoCnps, &all, &[to]);
    plan
}

/// A sender with a slower link keeps its rate through trains of CNPs that bursts of others bring about.
pub(super) fn ignored_cnps(draw: &mut Draw) -> Plan {
    let mut plan = Plan::switched(draw, &RANGES);
    plan.hosts = plan.hosts.max(4);
    plan.leaves = 1;
    plan.duration = draw.between(8_000, 20_000);
    acknowledgements(&mut plan, draw, 20_000);
    marks(&mut plan, draw);
    let _ = writeln!(
        plan.tables,
        "\n[[host]]\nname = \"h1\"\nrate = \"{}Gbps\"",
        plan.gigabits * 2 / 5
    );
    let to = last(&plan);
    let steady = Traffic {
        from: "h1",
        to: &to,
        op: "write",
        message: 65_536,
        qps: 1,
        load: Load::Closed(8),
    };
    flow(&mut plan, draw, &steady, "react = false\n");
    let message = 65_536 * draw.between(2, 6);
    let bursts = Traffic {
        from: "h2..h3",
        message,
        load: Load::Every((plan.message_time(message) * 2 + 500_000).max(700_000)),
        ..steady
    };
    flow(&mut plan, draw, &bursts, "begin = \"300us\"\n");
    tap(&mut plan, draw, "h1", "");
    // The rate of a sender after CNPs depends on its link and its adapter's parameters; no packet tells them.
    let rate = format!("{}G", plan.gigabits * 2 / 5);
    plan.arguments
        .extend(["--link-rate", &rate, "--dcqcn", "paper"].map(str::to_owned));
    plan.root(Cause::IgnoredCnps, &[], &[1]);
    plan
}

/// A switch without loss: what fills it is paused.
fn lossless(plan: &mut Plan) {
    plan.switch
        .push_str("pause = \"pfc\"\necn = false\nxoff = \"60KB\"\nxon = \"40KB\"\nheadroom = \"100KB\"\n");
    plan.nic.push_str("timeout = \"67ms\"\n");
}

/// Two flows of the first host: one to a host that stops its link or takes little, one to another host, which suffers.
fn victim(plan: &mut Plan, draw: &mut Draw) {
    plan.hosts = 3;
    plan.leaves = 1;
    let message = draw.scaled(32_768, 131_072);
    let every = plan.message_time(message) * draw.between(25, 50) / 10;
    for to in ["h3", "h2"] {
        let traffic = Traffic {
            from: "h1",
            to,
            op: "write",
            message,
            qps: 1,
            load: Load::Every(every),
        };
        flow(plan, draw, &traffic, "");
    }
    tap(plan, draw, "leaf1:h1", "pause_frames = true\n");
    tap(plan, draw, "leaf1:h3", "pause_frames = true\n");
    plan.link_rate();
}

/// A host sends pauses of its own accord (SIGCOMM 2016, "RDMA over Commodity Ethernet at Scale", section 4.3).
pub(super) fn pause_storm(draw: &mut Draw) -> Plan {
    let mut plan = Plan::switched(draw, &RANGES);
    lossless(&mut plan);
    victim(&mut plan, draw);
    let on = draw.between(200, 600);
    let _ = writeln!(
        plan.tables,
        "\n[[pause]]\nhost = \"h3\"\nbegin = \"{}us\"\non = \"{on}us\"\noff = \"{}us\"",
        draw.between(200, 800),
        draw.between(30, 100)
    );
    plan.root(Cause::PauseStorm, &[1], &[3]);
    plan
}

/// A host takes packets at a tenth to a fifth of its link's rate.
pub(super) fn slow_receiver(draw: &mut Draw) -> Plan {
    let mut plan = Plan::switched(draw, &RANGES);
    lossless(&mut plan);
    victim(&mut plan, draw);
    let _ = writeln!(
        plan.tables,
        "\n[[host]]\nname = \"h3\"\ndrain = \"{}Mbps\"\nxoff = \"60KB\"\nxon = \"40KB\"",
        plan.gigabits * 10 * draw.between(8, 18)
    );
    plan.root(Cause::SlowReceiver, &[1], &[3]);
    plan
}

/// One link loses what it carries now and then, at any load.
pub(super) fn bad_link(draw: &mut Draw) -> Plan {
    let mut plan = Plan::draw(draw, &RANGES);
    let timeout = draw.scaled(1_000, 8_000);
    acknowledgements(&mut plan, draw, timeout);
    let (to, op) = (last(&plan), draw.of(&["write", "send"]));
    let mut traffic = few(&plan, draw, &to, op);
    traffic.message = traffic.message.max(plan.mtu * 16);
    flow(&mut plan, draw, &traffic, "");
    let (from, host) = plan.last_link(plan.hosts);
    let what = format!("loss = {}\nonly = \"data\"", draw.share(5_000, 30_000));
    plan.impair(&from, &host, &what);
    let at = if draw.one_in(2) {
        "h1".to_owned()
    } else {
        to.clone()
    };
    tap(&mut plan, draw, &at, "");
    let receiver = plan.hosts;
    plan.root(Cause::BadLink, &[1, receiver], &[]);
    plan
}

/// The receiver's link damages frames; the whole frames are captured there.
pub(super) fn damaged(draw: &mut Draw) -> Plan {
    let mut plan = Plan::draw(draw, &RANGES);
    let timeout = draw.scaled(1_000, 8_000);
    acknowledgements(&mut plan, draw, timeout);
    let (to, op) = (last(&plan), draw.of(&["write", "send"]));
    let traffic = few(&plan, draw, &to, op);
    flow(&mut plan, draw, &traffic, "");
    let (from, host) = plan.last_link(plan.hosts);
    plan.impair(
        &from,
        &host,
        &format!("corrupt = {}\nonly = \"data\"", draw.share(3_000, 30_000)),
    );
    let _ = writeln!(plan.tables, "\n[[tap]]\nat = \"{to}\"\nsnaplen = 0");
    let receiver = plan.hosts;
    plan.root(Cause::DamagedPackets, &[1, receiver], &[]);
    plan
}

/// Data arrives, and its answers get lost.
pub(super) fn lost_answers(draw: &mut Draw) -> Plan {
    let mut plan = Plan::draw(draw, &RANGES);
    let timeout = draw.scaled(300, 1_000);
    acknowledgements(&mut plan, draw, timeout);
    plan.duration = plan.duration.max(timeout * 30);
    let to = last(&plan);
    let traffic = Traffic {
        from: "h1",
        to: &to,
        op: draw.of(&["write", "send"]),
        message: draw.scaled(1_024, 65_536),
        qps: draw.between(1, 4),
        load: Load::Closed(1),
    };
    let pace = plan.message_time(traffic.message) * 8;
    let pace = (traffic.message * 8_000 / pace).max(1);
    flow(
        &mut plan,
        draw,
        &traffic,
        &format!("pace = \"{}Mbps\"\n", pace.min(2_000)),
    );
    let (from, host) = plan.last_link(1);
    let what = format!("loss = {}\nonly = \"positive-ack\"", draw.share(30_000, 200_000));
    plan.impair(&from, &host, &what);
    tap(&mut plan, draw, "h1", "");
    plan.root(Cause::LostAnswers, &[1], &[]);
    plan
}

/// Two hosts of several end a connection in one way, and others go on between the same hosts.
fn ending(draw: &mut Draw, duration: u64) -> Plan {
    let mut plan = Plan::draw(draw, &RANGES);
    plan.duration = duration;
    let to = last(&plan);
    let other = Traffic {
        from: "h1",
        to: &to,
        op: "write",
        message: draw.scaled(64, 4_096),
        qps: draw.between(1, 2),
        load: Load::Every(duration * 1_000 / draw.between(100, 400)),
    };
    flow(&mut plan, draw, &other, "");
    plan
}

/// Messages of the connection that ends.
fn ended(plan: &mut Plan, draw: &mut Draw, op: &'static str, more: &str) {
    let to = last(plan);
    let traffic = Traffic {
        from: "h1",
        to: &to,
        op,
        message: draw.scaled(64, 65_536),
        qps: 1,
        load: Load::Closed(1),
    };
    flow(plan, draw, &traffic, more);
    let at = if draw.one_in(3) {
        to.clone()
    } else {
        "h1".to_owned()
    };
    tap(plan, draw, &at, "");
}

/// A rate at which the connection sends some hundred messages before it ends.
fn gentle(draw: &mut Draw) -> String {
    format!("pace = \"{}Mbps\"\n", draw.between(100, 1_000))
}

/// A responder refuses a request for good: a NAK for a remote access error.
pub(super) fn refused(draw: &mut Draw) -> Plan {
    let mut plan = ending(draw, 20_000);
    let more = format!("{}fatal = \"{}us\"\n", gentle(draw), draw.between(0, 8_000));
    let op = draw.of(&["write", "send", "read"]);
    ended(&mut plan, draw, op, &more);
    let to = plan.hosts;
    plan.root(Cause::Refused, &[1], &[to]);
    plan
}

/// A responder is gone, from the begin on or from some time on; the timer, which doubles, expires eight times.
pub(super) fn dead_peer(draw: &mut Draw) -> Plan {
    let timeout = (4_096 << draw.between(7, 9)) / 1_000;
    let dies = if draw.one_in(2) {
        0
    } else {
        draw.between(500, 5_000)
    };
    // 1 + 2 + 4 + ... + 128 timers, and a tenth more.
    let mut plan = ending(draw, dies + timeout * 280);
    let _ = writeln!(plan.nic, "timeout = \"{timeout}us\"\nretries = 7");
    let more = format!("{}dies = \"{dies}us\"\n", gentle(draw));
    let op = draw.of(&["write", "send", "read"]);
    ended(&mut plan, draw, op, &more);
    let to = plan.hosts;
    plan.root(Cause::DeadPeer, &[1], &[to]);
    plan
}

/// A responder is gone, and the requester's timer is longer than the run: silence, with a request outstanding.
pub(super) fn silent_peer(draw: &mut Draw) -> Plan {
    let dies = draw.between(500, 50_000);
    // 4.096 us x 2^18 = 1.074 s.
    let waits = draw.between(1_200_000, 3_000_000);
    let mut plan = ending(draw, dies + waits);
    plan.nic.push_str("timeout = \"100s\"\n");
    let more = format!("{}dies = \"{dies}us\"\n", gentle(draw));
    ended(&mut plan, draw, "write", &more);
    let to = plan.hosts;
    plan.root(Cause::DeadPeer, &[1], &[to]);
    plan
}

/// A receiver posts some buffers and then none; the sender bears seven RNR NAKs.
pub(super) fn buffers_exhausted(draw: &mut Draw) -> Plan {
    let code = draw.between(4, 14);
    let mut plan = ending(draw, 60_000);
    let _ = writeln!(
        plan.nic,
        "rnr_timer = {code}\nrnr_retries = {}\ntimeout = \"67ms\"",
        draw.between(2, 7)
    );
    let more = format!("{}receives = {}\n", gentle(draw), draw.between(1, 200));
    ended(&mut plan, draw, "send", &more);
    let to = plan.hosts;
    plan.root(Cause::BuffersExhausted, &[1], &[to]);
    plan
}

/// A switch on the way takes frames of 1,518 bytes at most: large packets never pass, small ones do.
pub(super) fn black_hole(draw: &mut Draw) -> Plan {
    let timeout = (4_096 << draw.between(6, 8)) / 1_000;
    let mut plan = ending(draw, timeout * 280 + 1_000);
    plan.mtu = draw.of(&[2_048, 4_096]);
    plan.leaves = plan.leaves.max(1);
    let _ = writeln!(plan.nic, "timeout = \"{timeout}us\"\nretries = 7");
    let to = last(&plan);
    let large = Traffic {
        from: "h1",
        to: &to,
        op: "write",
        message: plan.mtu * draw.of(&[1, 1, 4, 16]),
        qps: draw.between(1, 3),
        load: Load::Closed(1),
    };
    flow(&mut plan, draw, &large, "begin = \"100us\"\n");
    let small = Traffic {
        message: draw.of(&[64, 256, 900]),
        load: Load::Every(plan.duration * 1_000 / draw.between(100, 400)),
        ..large
    };
    flow(&mut plan, draw, &small, "");
    let (from, host) = plan.last_link(plan.hosts);
    plan.impair(&from, &host, "loss = 1.0\nlonger_than = 1518");
    tap(&mut plan, draw, "h1", "");
    let receiver = plan.hosts;
    plan.root(Cause::BlackHole, &[1, receiver], &[]);
    plan
}
