//! Where the time of each connection went, between its first credit and its last packet.

use crate::graph::{Graph, LagKind, NOBODY, Owner};
use crate::job::{Job, Link};
use crate::needs::{FIRST_OUT, LAST_IN, LAST_OUT, MARKS};
use crate::normal::ExpectedLags;
use crate::outcome::ConnectionTimes;

fn add(sum: &mut u64, time: i64) {
    *sum = sum.saturating_add(u64::try_from(time).unwrap_or(0));
}

/// Time by which each message was under way for longer than is usual, by link and place.
pub(crate) fn excess(graph: &Graph, expected: &ExpectedLags<'_>, first_event: u32) -> i64 {
    [LAST_OUT, LAST_IN]
        .into_iter()
        .filter_map(|mark| {
            let id = first_event + mark;
            let need = graph.last_need(id)?;
            let event = &graph.events[id as usize];
            if event.owner == NOBODY || event.is_blind {
                return None;
            }
            let excess = need.lag - expected.lag(event, need);
            (excess > graph.error(event, need)).then_some(excess)
        })
        .sum()
}

/// Sums of one connection. `first_event` is the number of the first event of its first message.
pub(crate) fn connection_times(
    (job, link): (&Job, &Link),
    (graph, expected): (&Graph, &ExpectedLags<'_>),
    first_event: u32,
) -> ConnectionTimes {
    let mut times = ConnectionTimes::default();
    let is_cut = job.collectives() > 1;
    for (place, message) in (0_u32..).zip(&link.messages) {
        let event = first_event + place * MARKS;
        let slow = excess(graph, expected, event);
        let under_way = message.last_in - message.first_out;
        add(&mut times.network_late_ns, slow.min(under_way));
        add(&mut times.transfer_ns, under_way - slow.min(under_way));
        let Some(before) = place.checked_sub(1).map(|before| link.messages[before as usize]) else {
            continue;
        };
        let from = before.last_in.min(message.first_out);
        let gap = message.first_out - from;
        if message.number != before.number + 1 {
            add(&mut times.unknown_ns, gap);
        } else if message.collective != before.collective {
            add(&mut times.rest_ns, gap);
        } else if !is_cut {
            // A credit that is there and no data are also the rest between two collectives.
            let without = (message.credit_in - from).clamp(0, gap);
            add(&mut times.receiver_late_ns, without);
            add(&mut times.unknown_ns, gap - without);
        } else {
            let without = (message.credit_in - from).clamp(0, gap);
            add(&mut times.receiver_late_ns, without);
            let first = &graph.events[(event + FIRST_OUT) as usize];
            let behind_others = graph
                .last_need(event + FIRST_OUT)
                .filter(|need| need.kind != LagKind::Begin && first.owner != NOBODY)
                .filter(|_| matches!(graph.owners[first.owner as usize], Owner::Way(..)))
                .map_or(0, |need| need.lag.clamp(0, gap - without));
            add(&mut times.network_late_ns, behind_others);
            add(&mut times.sender_late_ns, gap - without - behind_others);
        }
    }
    times
}
