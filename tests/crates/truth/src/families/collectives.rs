//! Families `nccl-ring`, `nccl-tree` and `rails`: collectives, and hosts that have one network for each of their adapters.

use std::fmt::Write as _;

use crate::draw::Draw;
use crate::parts::{acknowledgements, tap};
use crate::plan::{Plan, Ranges};

const RANGES: Ranges = Ranges {
    hosts: (4, 8),
    gigabits: &[100, 200, 400],
    mtus: &[1024, 4096],
    packets: 5_000,
    duration: (500, 5_000),
};

/// Identities as NCCL's: PSNs from 0 on (net_ib.cc, `rq_psn` and `sq_psn`), and queue pairs that are made one after another.
const NCCL: &str = "psn = \"zero\"\nqpn = \"sequential\"\nsource_port = \"kernel\"\n";

/// Queue pairs of a channel: `NCCL_IB_QPS_PER_CONNECTION`, 1 by default; 2 and 4 are common.
fn pairs(draw: &mut Draw) -> u64 {
    draw.of(&[1, 1, 2, 4])
}

/// A link that loses, in half of the scenarios; otherwise nothing is wrong.
fn lossy_or_healthy(plan: &mut Plan, draw: &mut Draw, host: u64) {
    if draw.one_in(2) {
        plan.healthy = true;
        return;
    }
    let (from, to) = plan.last_link(host);
    let what = format!("loss = {}", draw.share(300, 8_000));
    plan.impair(&from, &to, &what);
}

/// Rings: each rank sends chunks of a channel's buffer to the next (`NCCL_BUFFSIZE` of 4 MB in 8 steps: 512 KB), 1 to 4 of them
/// at once.
pub(super) fn ring(draw: &mut Draw) -> Plan {
    let mut plan = Plan::switched(draw, &RANGES);
    acknowledgements(&mut plan, draw, 67_000);
    let _ = writeln!(
        plan.tables,
        "\n[[flow]]\nfrom = \"h1..h{}\"\npattern = \"ring\"\nop = \"write\"\nmessage = {}\nqps = {}\noutstanding = {}\njitter = \
         \"10us\"\n{NCCL}",
        plan.hosts,
        draw.of(&[131_072, 262_144, 524_288]),
        pairs(draw),
        draw.between(1, 2)
    );
    let victim = draw.between(1, plan.hosts);
    lossy_or_healthy(&mut plan, draw, victim);
    let at = format!("h{victim}");
    tap(&mut plan, draw, &at, "");
    plan
}

/// Binary trees: each rank but the root sends up to its parent, and each parent down to its children (NCCL 2.4's double binary
/// trees). Two children send at most half of the parent's link together.
pub(super) fn tree(draw: &mut Draw) -> Plan {
    let mut plan = Plan::switched(draw, &RANGES);
    acknowledgements(&mut plan, draw, 67_000);
    let message = draw.of(&[32_768, 131_072, 262_144]);
    let qps = pairs(draw);
    let each = plan.message_time(message) * qps * draw.between(6, 12);
    for child in 2..=plan.hosts {
        let parent = child / 2;
        for (from, to) in [(child, parent), (parent, child)] {
            let _ = writeln!(
                plan.tables,
                "\n[[flow]]\nfrom = \"h{from}\"\nto = \"h{to}\"\nop = \"write\"\nmessage = {message}\nqps = {qps}\ninterval = \
                 \"{each}ns\"\njitter = \"30us\"\n{NCCL}"
            );
        }
    }
    let victim = draw.between(1, plan.hosts);
    lossy_or_healthy(&mut plan, draw, victim);
    let at = format!("h{victim}");
    tap(&mut plan, draw, &at, "");
    plan
}

/// Rails: the adapters of number 1 of all servers are at one switch, those of number 2 at another (Meta, SIGCOMM 2024, section
/// 3.1). Traffic stays in its rail. In half of the scenarios one rail's link loses packets, and the other rail is fine.
pub(super) fn rails(draw: &mut Draw) -> Plan {
    let mut plan = Plan::draw(draw, &RANGES);
    plan.hosts = draw.of(&[4, 8]);
    plan.leaves = 2;
    acknowledgements(&mut plan, draw, 67_000);
    let half = plan.hosts / 2;
    let message = draw.of(&[65_536, 262_144]);
    let qps = pairs(draw);
    for first in [1, half + 1] {
        let last = first + half - 1;
        let _ = writeln!(
            plan.tables,
            "\n[[flow]]\nfrom = \"h{first}..h{last}\"\npattern = \"ring\"\nop = \"write\"\nmessage = {message}\nqps = \
             {qps}\noutstanding = 1\njitter = \"10us\"\n{NCCL}"
        );
    }
    lossy_or_healthy(&mut plan, draw, 1);
    // Two adapters of one server, in one capture.
    let rails = [1, half + 1].map(|host| format!("at = \"h{host}\"\nfile = \"server\"\nsnaplen = 128\n"));
    for rail in rails {
        let _ = writeln!(plan.tables, "\n[[tap]]\n{rail}");
    }
    plan
}
