//! Family `path-imbalance`: flows that a hash puts on equal-cost uplinks: all on one, as chance has it, so many that chance evens
//! out, or so few that nothing is lost by it.
//!
//! Ranges: 2 to 8 uplinks; uplinks that carry all hosts of a leaf at once or half of that (Clos networks without and with twofold
//! oversubscription); few large flows, as collectives have them (FlowTracer, 2024; RDMA over Ethernet for Distributed AI Training at
//! Meta Scale, SIGCOMM 2024, section 3).

use std::fmt::Write as _;

use crate::draw::Draw;
use crate::parts::{Load, Traffic, acknowledgements, dcqcn, flow};
use crate::plan::{Plan, Ranges};

pub(super) fn plan(draw: &mut Draw) -> Plan {
    let ranges = Ranges {
        hosts: (4, 16),
        gigabits: &[25, 50, 100, 200, 400],
        mtus: &[2048, 4096],
        packets: 4_000,
        duration: (1_000, 5_000),
    };
    let mut plan = Plan::switched(draw, &ranges);
    plan.hosts += plan.hosts % 2;
    plan.leaves = 2;
    plan.spines = draw.between(2, 8);
    plan.counters = true;
    plan.vlan = false;
    acknowledgements(&mut plan, draw, 50_000);
    dcqcn(&mut plan, draw);
    // Room for what waits: nothing is dropped.
    let kmin = draw.scaled(20, 200);
    let _ = writeln!(
        plan.switch,
        "queue_limit = \"60MB\"\nbuffer = \"256MB\"\nkmin = \"{kmin}KB\"\nkmax = \"{}KB\"\npmax = {}",
        kmin * draw.between(3, 10),
        draw.share(50_000, 500_000)
    );
    let half = plan.hosts / 2;
    plan.uplink = (plan.gigabits * half)
        .div_ceil(plan.spines * draw.between(1, 2))
        .max(1);
    match draw.below(5) {
        0 => one_port(&mut plan, draw),
        1 | 2 => by_chance(&mut plan, draw),
        3 => many(&mut plan, draw),
        _ => unavoidable(&mut plan, draw),
    }
    for spine in 1..=plan.spines.min(4) {
        let _ = writeln!(
            plan.tables,
            "\n[[tap]]\nat = \"leaf1:spine{spine}\"\nsnaplen = 96"
        );
    }
    plan
}

/// Pairs of hosts of both leaves: h1 and the first of the second leaf, and so on.
fn pairs(plan: &mut Plan, draw: &mut Draw, pairs: u64, qps: u64, load: Load, more: &str) {
    let half = plan.hosts / 2;
    let message = draw.scaled(65_536, 524_288);
    for host in 1..=pairs.min(half) {
        let traffic = Traffic {
            from: &format!("h{host}"),
            to: &format!("h{}", half + host),
            op: "write",
            message,
            qps,
            load,
        };
        flow(plan, draw, &traffic, more);
    }
}

/// All queue pairs of a host have one source port: one uplink for all of them.
fn one_port(plan: &mut Plan, draw: &mut Draw) {
    let (qps, port) = (draw.between(2, 8), draw.between(49_152, 65_535));
    let half = plan.hosts / 2;
    let _ = writeln!(
        plan.tables,
        "\n[[flow]]\nfrom = \"h1\"\nto = \"h{}\"\nqps = {qps}\nsource_port = {port}\nmessage = 131072\noutstanding = 2\npsn = \
         \"random\"\nqpn = \"sequential\"",
        half + 1
    );
}

/// A few large flows of each host, where the hash has them.
fn by_chance(plan: &mut Plan, draw: &mut Draw) {
    let hosts = draw.between(2, (plan.hosts / 2).max(2));
    let qps = draw.between(1, 4);
    pairs(plan, draw, hosts, qps, Load::Closed(2), "jitter = \"20us\"\n");
}

/// Many small flows: the uplinks are about as full as each other.
fn many(plan: &mut Plan, draw: &mut Draw) {
    plan.healthy = true;
    let hosts = draw.between(2, (plan.hosts / 2).max(2));
    let qps = plan.spines * 24 / hosts + 1;
    // A third of the uplinks' rate in all.
    let gigabits = (plan.uplink * plan.spines / 3).max(1);
    let pace = gigabits * 1_000 / (hosts * qps);
    let more = format!("pace = \"{}Mbps\"\njitter = \"100us\"\n", pace.max(1));
    pairs(plan, draw, hosts, qps, Load::Closed(1), &more);
}

/// One flow, or a few that are limited by their application: uneven, and nobody loses.
fn unavoidable(plan: &mut Plan, draw: &mut Draw) {
    plan.healthy = true;
    let hosts = draw.between(1, 2);
    // Together below what one uplink carries.
    let pace = (plan.uplink.min(plan.gigabits) * 1_000 / (hosts * 3)).max(1);
    let more = format!("pace = \"{pace}Mbps\"\n");
    pairs(plan, draw, hosts, 1, Load::Closed(1), &more);
}
