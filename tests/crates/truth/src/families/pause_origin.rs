//! Family `pause-origin`: pauses over two levels of switches, or round a ring of them, from each kind of root; and networks
//! that hardly pause, or not at all.
//!
//! Ranges: 40 to 400 KB of a port's buffer before it pauses (DCQCN paper, SIGCOMM 2015, section 4: 24.5 KB at 40 Gbit/s; shallow
//! buffers of 100 Gbit/s and more hold several hundred KB); receivers that take 10 to 90 % of their link and storms of every duty
//! (RDMA over Commodity Ethernet at Scale, SIGCOMM 2016, sections 4.3 and 4.4); incasts of 2 to 12 (Hawkeye, SIGCOMM 2025, section 4);
//! circles of buffers (Deadlocks in Datacenter Networks, HotNets 2016; Tagger, CoNEXT 2017).

use std::fmt::Write as _;

use crate::draw::Draw;
use crate::parts::{Load, Traffic, acknowledgements, flow};
use crate::plan::{Plan, Ranges};

/// Kind of a scenario's root.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Root {
    Contention,
    SlowReceiver,
    Storm,
    Deadlock,
    /// Many send to one, and marking keeps the queue short of pauses.
    None,
    /// A host pauses for a moment, long enough to be counted and too short to cost anything.
    Short,
}

const KINDS: [Root; 10] = [
    Root::Contention,
    Root::Contention,
    Root::Contention,
    Root::SlowReceiver,
    Root::SlowReceiver,
    Root::Storm,
    Root::Storm,
    Root::Deadlock,
    Root::None,
    Root::Short,
];

pub(super) fn plan(draw: &mut Draw) -> Plan {
    let kind = draw.of(&KINDS);
    let ranges = Ranges {
        hosts: (4, 16),
        gigabits: &[25, 40, 50, 100, 200, 400],
        mtus: &[1024, 2048, 4096],
        packets: 6_000,
        duration: (1_000, 6_000),
    };
    let mut plan = Plan::switched(draw, &ranges);
    acknowledgements(&mut plan, draw, 100_000);
    plan.counters = true;
    let xoff = draw.scaled(40, 400);
    // Bytes on their way when a pause begins: twice the cable of at most 5 us at the fastest link, and two
    // frames.
    let headroom = 100 + plan.gigabits * 8;
    let _ = writeln!(
        plan.switch,
        "pause = \"pfc\"\nxoff = \"{xoff}KB\"\nxon = \"{}KB\"\nheadroom = \"{headroom}KB\"\nbuffer = \"256MB\"\necn = {}",
        xoff * draw.between(30, 90) / 100,
        kind == Root::None || draw.one_in(3)
    );
    if kind == Root::Deadlock {
        circle(&mut plan, draw);
        return plan;
    }
    plan.leaves = if plan.hosts > 8 { draw.between(2, 3) } else { 2 };
    plan.spines = draw.of(&[1, 1, 2, 2, 4, 8]);
    // From uplinks as fast as a host's link to ones that never limit.
    let block = plan.hosts.div_ceil(plan.leaves);
    plan.uplink = plan.gigabits * draw.between(1, block);
    if plan.uplink == plan.gigabits {
        plan.link_rate();
    }
    match kind {
        Root::None | Root::Short => healthy(&mut plan, draw, kind),
        _ => faulty(&mut plan, draw, kind),
    }
    taps(&mut plan, draw);
    plan
}

/// Traffic to the last host, which is the root, and of victims that go past it.
fn faulty(plan: &mut Plan, draw: &mut Draw, kind: Root) {
    let root = plan.hosts;
    let to = format!("h{root}");
    let senders = match kind {
        Root::Contention => draw.between(2, 12.min(root - 1)),
        _ => draw.between(1, 3.min(root - 1)),
    };
    // From the first leaf on: most of them come by a spine.
    let traffic = Traffic {
        from: &format!("h1..h{senders}"),
        to: &to,
        op: draw.of(&["write", "write", "send"]),
        message: draw.scaled(32_768, 524_288),
        qps: draw.between(1, 2),
        load: Load::Closed(draw.between(1, 3)),
    };
    flow(plan, draw, &traffic, "jitter = \"20us\"\n");
    match kind {
        Root::SlowReceiver => {
            let percent = draw.between(10, 90);
            let xoff = draw.scaled(64, 512);
            let _ = writeln!(
                plan.tables,
                "\n[[host]]\nname = \"{to}\"\ndrain = \"{}Mbps\"\nxoff = \"{xoff}KB\"\nxon = \"{}KB\"",
                plan.gigabits * 10 * percent,
                xoff / 2
            );
        }
        Root::Storm => {
            let on = draw.scaled(20, 500);
            let duty = draw.between(10, 95);
            let _ = writeln!(
                plan.tables,
                "\n[[pause]]\nhost = \"{to}\"\nbegin = \"{}us\"\non = \"{on}us\"\noff = \"{}us\"",
                draw.between(50, plan.duration / 3),
                (on * (100 - duty) / duty).max(1)
            );
        }
        _ => {}
    }
    // Victims: to another host of the root's leaf, and between two others.
    let neighbour = root - 1;
    let first = draw.between(1, neighbour - 1);
    let message = draw.scaled(16_384, 131_072);
    let victim = Traffic {
        from: &format!("h{first}"),
        to: &format!("h{neighbour}"),
        op: "write",
        message,
        qps: 1,
        load: if draw.one_in(2) {
            Load::Closed(2)
        } else {
            Load::Every(plan.message_time(message) * draw.between(2, 10))
        },
    };
    flow(plan, draw, &victim, "");
}

/// Traffic that no switch pauses, or one pause that nobody notices.
fn healthy(plan: &mut Plan, draw: &mut Draw, kind: Root) {
    plan.healthy = true;
    let last = plan.hosts;
    let message = draw.scaled(16_384, 65_536);
    // Each sender has a part of the receiver's link: a fifth is left.
    let senders = draw.between(2, last - 1);
    let traffic = Traffic {
        from: &format!("h1..h{senders}"),
        to: &format!("h{last}"),
        op: "write",
        message,
        qps: 1,
        load: Load::Every(plan.message_time(message) * senders * 5 / 4),
    };
    flow(plan, draw, &traffic, "jitter = \"50us\"\n");
    if kind == Root::Short {
        // 1 to 3 us: fewer bytes than any threshold, once.
        let _ = writeln!(
            plan.tables,
            "\n[[pause]]\nhost = \"h{last}\"\nbegin = \"{}us\"\non = \"{}us\"",
            plan.duration / 2,
            draw.between(1, 3)
        );
    }
}

/// A ring of switches in which each host sends to one two switches on.
fn circle(plan: &mut Plan, draw: &mut Draw) {
    plan.ring = true;
    plan.leaves = draw.between(3, 6);
    let each = draw.between(1, 2);
    plan.hosts = plan.leaves * each;
    plan.link_rate();
    for host in 1..=plan.hosts {
        let to = (host - 1 + 2 * each) % plan.hosts + 1;
        let traffic = Traffic {
            from: &format!("h{host}"),
            to: &format!("h{to}"),
            op: "write",
            message: 262_144,
            qps: 1,
            load: Load::Closed(4),
        };
        flow(plan, draw, &traffic, "jitter = \"5us\"\n");
    }
    for leaf in 1..=2 {
        let _ = writeln!(
            plan.tables,
            "\n[[tap]]\nat = \"leaf{leaf}:leaf{}\"\nsnaplen = 96\npause_frames = true\n\n[[tap]]\nat = \"leaf{leaf}:h{}\"\nsnaplen = \
             96\npause_frames = true",
            leaf + 1,
            (leaf - 1) * each + 1
        );
    }
}

/// Taps with pause frames: at the port to the root, at that to a sender, and at an uplink of each end.
fn taps(plan: &mut Plan, draw: &mut Draw) {
    let last = plan.hosts;
    let spine = draw.between(1, plan.spines);
    let mut places = vec![
        format!("{}:h{last}", plan.neighbour(last)),
        format!("{}:h1", plan.neighbour(1)),
    ];
    if draw.one_in(2) {
        places.push(format!("{}:spine{spine}", plan.neighbour(last)));
        places.push(format!("{}:spine{spine}", plan.neighbour(1)));
    }
    for place in places {
        let _ = writeln!(
            plan.tables,
            "\n[[tap]]\nat = \"{place}\"\nsnaplen = 96\npause_frames = true"
        );
    }
}
