//! An exchange of all hosts with all, of one or two ranks on each: what is said of one rank whose host is late.

#![expect(clippy::unwrap_used, reason = "tests, in functions of their own")]

use roce_lateness::{LateKind, LateStart, find_lateness};
use roce_model::{CreditedConnection, CreditedMessage, FlowId, Passage, Time};
use roce_wire::Address;

const US: u64 = 1_000;
const MS: u64 = 1_000_000;
const HOSTS: usize = 4;
const COLLECTIVES: usize = 8;
/// From one port to the other.
const WAY: u64 = 2 * US;
/// 64 KiB at 100 Gbit/s.
const SEND: u64 = 5_300;
const COMPUTE: u64 = 4 * MS;
/// From the end of a collective until a host posts the receives of the next one.
const AHEAD: u64 = 20 * US;

/// Host of the late rank, which is the last one there, and by how much it is late.
const LATE_HOST: usize = 2;
const LATE: u64 = 3 * MS;

/// One message of each connection in each collective. A rank sends when it has computed and has the credit; the next collective
/// follows the last arrival of this one.
fn connections(late_by: u64, ranks_per_host: usize) -> (Vec<CreditedConnection>, u64) {
    let host = |host: usize| Address::v4([10, 0, 0, u8::try_from(host + 1).unwrap()]);
    let late = |of: (usize, usize)| {
        if of == (LATE_HOST, ranks_per_host - 1) {
            late_by
        } else {
            0
        }
    };
    let pairs = (0..HOSTS).flat_map(|from| (0..HOSTS).map(move |to| (from, to)));
    let ways: Vec<(usize, usize, usize)> = pairs
        .filter(|(from, to)| from != to)
        .flat_map(|(from, to)| (0..ranks_per_host).map(move |place| (from, to, place)))
        .collect();
    let mut all: Vec<Vec<CreditedMessage>> = vec![Vec::new(); ways.len()];
    let mut end = 10_000 * MS;
    for number in 0..COLLECTIVES as u64 {
        let before = end;
        for (&(from, to, place), messages) in ways.iter().zip(&mut all) {
            let jitter = (from * 7 + to * 3 + place * 5) as u64 % 11 * US;
            // The late host posts its receives when it begins.
            let ahead = match late((to, place)) {
                0 => AHEAD,
                by => COMPUTE + by - 30 * US,
            };
            let credit = before + ahead + jitter / 4;
            let ready = before + COMPUTE + late((from, place)) + jitter;
            let first = ready.max(credit + WAY + US);
            let last = first + SEND;
            let passage = |out: u64| Passage {
                departure: Some(Time(out)),
                arrival: Some(Time(out + WAY)),
            };
            messages.push(CreditedMessage {
                number,
                buffer: number % 4,
                bytes: 65_536,
                credit: passage(credit),
                first: passage(first),
                last: passage(last),
                acknowledgement: passage(last + WAY),
                retransmissions: 0,
            });
            end = end.max(last + WAY);
        }
    }
    let connection = |((at, &(from, to, _)), messages): ((usize, &(usize, usize, usize)), Vec<_>)| {
        let flow = 2 * at as u64;
        CreditedConnection {
            sender: host(from),
            receiver: host(to),
            sender_rank: None,
            receiver_rank: None,
            layout: None,
            data_flows: vec![FlowId(flow)],
            credit_flows: vec![FlowId(flow + 1)],
            left_out: 0,
            messages,
        }
    };
    (ways.iter().enumerate().zip(all).map(connection).collect(), end)
}

/// Checks the only root of the exchange with a late host. Its price is how much earlier the same exchange without it ends.
#[track_caller]
fn check_late_host(ranks_per_host: usize) {
    let (late, end) = connections(LATE, ranks_per_host);
    let lateness = find_lateness(&late, |_| None, &[], &[]);
    assert_eq!(lateness.jobs.len(), 1);
    let roots = &lateness.jobs[0].roots;
    assert_eq!(roots.len(), 1, "{roots:?}");
    assert!(
        matches!(roots[0].kind, LateKind::Start(rank, LateStart::Host) if rank.host == Address::v4([10, 0, 0, 3])),
        "{roots:?}"
    );
    let cost = end - connections(0, ranks_per_host).1;
    let error = roots[0].cost_ns.abs_diff(cost);
    assert!(error * 100 <= cost * 10, "{} of {cost} ns", roots[0].cost_ns);
}

#[test]
fn a_host_that_posts_the_first_receives_late_gives_no_used_buffer_back_late() {
    check_late_host(2);
}

#[test]
fn a_late_host_of_one_rank_is_named() {
    check_late_host(1);
}

#[test]
fn a_healthy_exchange_has_no_root() {
    for ranks_per_host in [1, 2] {
        let (healthy, _) = connections(0, ranks_per_host);
        let lateness = find_lateness(&healthy, |_| None, &[], &[]);
        assert!(lateness.jobs.iter().all(|job| job.roots.is_empty()));
    }
}
