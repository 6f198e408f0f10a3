//! Families of inference: `serving`, whose KV caches move from hosts that read prompts to hosts that write answers, and `moe`, whose
//! experts are spread over hosts.

use crate::draw::Draw;
use crate::parts::{Load, Traffic, acknowledgements, flow, place, tap};
use crate::plan::{Plan, Ranges};

/// A KV cache of one layer holds 64 KB to 2 MB of a prompt (DistServe, OSDI 2024, section 3.3; Mooncake, FAST 2025, section 2);
/// descriptors and completions are SENDs of some hundred bytes. All together ask for half of a link at most.
pub(super) fn serving(draw: &mut Draw) -> Plan {
    let ranges = Ranges {
        hosts: (4, 6),
        gigabits: &[100, 200, 400],
        mtus: &[1024, 4096],
        packets: 6_000,
        duration: (500, 6_000),
    };
    let mut plan = Plan::switched(draw, &ranges);
    plan.healthy = true;
    acknowledgements(&mut plan, draw, 67_000);
    let half = plan.hosts / 2;
    let message = draw.scaled(65_536, 524_288);
    let qps = draw.between(1, 4);
    let writers = format!("h1..h{half}");
    let readers = format!("h{}..h{}", half + 1, half * 2);
    let caches = Traffic {
        from: &writers,
        to: &readers,
        op: draw.of(&["write", "read"]),
        message,
        qps,
        load: Load::Every(plan.message_time(message) * qps * draw.between(3, 8)),
    };
    flow(&mut plan, draw, &caches, "pattern = \"zip\"\njitter = \"40us\"\n");
    let words = Traffic {
        from: &readers,
        to: &writers,
        op: "send",
        message: draw.scaled(64, 1_024),
        qps: 1,
        load: Load::Every(draw.scaled(10_000, 100_000)),
    };
    flow(&mut plan, draw, &words, "pattern = \"zip\"\njitter = \"10us\"\n");
    let at = place(&plan, draw, 1, half + 1);
    tap(&mut plan, draw, &at, "");
    plan
}

/// Each token goes to the hosts of its experts and back: an all-to-all of 4 to 64 KB for each pair, twice in each layer, some
/// hundred microseconds apart (`DeepEP`'s README: 7,168 bytes a token and 8 experts; Tutel, `MLSys` 2023, section 2). The
/// messages of one round take a third of the time until the next at most.
pub(super) fn moe(draw: &mut Draw) -> Plan {
    let ranges = Ranges {
        hosts: (4, 8),
        gigabits: &[100, 200, 400],
        mtus: &[1024, 4096],
        packets: 5_000,
        duration: (500, 5_000),
    };
    let mut plan = Plan::switched(draw, &ranges);
    acknowledgements(&mut plan, draw, 67_000);
    let message = draw.scaled(4_096, 65_536);
    let all = format!("h1..h{}", plan.hosts);
    let round = plan.message_time(message) * (plan.hosts - 1);
    let lossy = draw.one_in(2);
    // A buffer of 12 MB holds what one round brings, so that nothing is lost but by a link.
    plan.switch.push_str("queue_limit = \"8MB\"\n");
    let traffic = Traffic {
        from: &all,
        to: &all,
        op: draw.of(&["write", "send"]),
        message,
        qps: 1,
        load: Load::Every(round * draw.between(3, 8)),
    };
    flow(&mut plan, draw, &traffic, "jitter = \"5us\"\n");
    if lossy {
        let (from, to) = plan.last_link(plan.hosts);
        let what = format!("loss = {}", draw.share(300, 5_000));
        plan.impair(&from, &to, &what);
    }
    let at = place(&plan, draw, 1, plan.hosts);
    tap(&mut plan, draw, &at, "");
    plan
}
