//! Who is late in a job: a ring of three ranks, each of which sends one message in a collective when it has computed for 1 ms, and
//! posts its next receive 5 us after the one before has come.

use roce_model::{CreditedConnection, CreditedMessage, FlowId, Passage};

use super::*;

const US: u64 = 1_000;
const RANKS: usize = 3;
const COLLECTIVES: usize = 8;
const COMPUTE: u64 = MS;
/// From one port to the other.
const WAY: u64 = 2 * US;
/// First to last packet of a message.
const SEND: u64 = 10 * US;
/// By how much something is late in each collective.
const LATE: u64 = 500 * US;
const IDS: [&str; 4] = ["rank.late", "receiver.late", "network.late", "job.cannot_tell"];

/// The late thing of a ring.
#[derive(Clone, Copy, PartialEq)]
enum Late {
    Nothing,
    /// Rank 1's GPU.
    Gpu,
    /// Rank 1's host, which posts 20 us before the rank begins.
    Host,
    /// Messages from rank 1 to rank 2.
    Way,
}

/// Connections of the ring, and when its last collective ends.
fn ring(late: Late) -> (Vec<CreditedConnection>, u64) {
    let mut messages = vec![Vec::new(); RANKS];
    let mut ready = vec![MS; RANKS];
    for collective in 0..COLLECTIVES {
        let start: Vec<u64> = (0..RANKS)
            .map(|rank| {
                let is_late = rank == 1 && matches!(late, Late::Gpu | Late::Host);
                ready[rank] + COMPUTE + if is_late { LATE } else { 0 }
            })
            .collect();
        let mut ends = start.clone();
        for sender in 0..RANKS {
            let receiver = (sender + 1) % RANKS;
            let posted = if receiver == 1 && late == Late::Host {
                start[1] - 20 * US
            } else {
                ready[receiver] + 5 * US
            };
            let first = start[sender].max(posted + WAY + US);
            let slow = if sender == 1 && late == Late::Way { LATE } else { 0 };
            let last = first + SEND;
            let came = last + WAY + slow;
            let passage = |departure: u64, arrival: u64| Passage {
                departure: Some(Time(departure)),
                arrival: Some(Time(arrival)),
            };
            messages[sender].push(CreditedMessage {
                number: collective as u64,
                buffer: 0x1000,
                bytes: 65_536,
                credit: passage(posted, posted + WAY),
                first: passage(first, first + WAY),
                last: passage(last, came),
                acknowledgement: passage(came, came + WAY),
                retransmissions: 0,
            });
            ends[receiver] = ends[receiver].max(came);
        }
        ready = ends;
    }
    let connection = |(sender, messages): (usize, Vec<CreditedMessage>)| CreditedConnection {
        sender: host(u8::try_from(sender).unwrap() + 1),
        receiver: host(u8::try_from((sender + 1) % RANKS).unwrap() + 1),
        sender_rank: u32::try_from(sender).ok(),
        receiver_rank: u32::try_from((sender + 1) % RANKS).ok(),
        layout: None,
        data_flows: vec![FlowId(sender as u64)],
        credit_flows: vec![FlowId(10 + sender as u64)],
        messages,
        left_out: 0,
    };
    let connections = messages.into_iter().enumerate().map(connection).collect();
    (connections, ready.into_iter().max().unwrap())
}

fn run_with(credited: Vec<CreditedConnection>) -> RunSummary {
    let mut run = TestRun::new();
    run.summary.credited = credited;
    run.conclude()
}

/// By how much a late thing makes the last collective end later: the price.
fn price(late: Late) -> u64 {
    ring(late).1 - ring(Late::Nothing).1
}

fn check_price(finding: &FindingRow, late: Late) {
    let (said, price) = (finding.waited_ns.unwrap(), price(late));
    assert!(said.abs_diff(price) * 10 <= price, "{said} of {price}");
}

fn text<'a>(finding: &'a FindingRow, name: &str) -> Option<&'a str> {
    finding.evidence.0.iter().find_map(|(known, fact)| match fact {
        Fact::Text(text) if *known == name => Some(&**text),
        _ => None,
    })
}

#[test]
fn nobody_is_late_in_a_ring_without_waits() {
    let run = run_with(ring(Late::Nothing).0);
    for id in IDS {
        assert!(finding(&run, id).is_none(), "{id}: {:?}", run.findings);
    }
}

#[test]
fn a_rank_is_late_by_its_gpu_or_its_host() {
    for (late, place) in [(Late::Gpu, "gpu"), (Late::Host, "host")] {
        let run = run_with(ring(late).0);
        let finding = fired(&run, "rank.late");
        assert_eq!(
            (finding.severity, finding.confidence),
            (Severity::Warning, Confidence::High)
        );
        assert_eq!(finding.aggressors.0, ["10.0.0.2[rank1]"]);
        assert_eq!(text(finding, "rank"), Some("1 (10.0.0.2)"));
        assert_eq!(text(finding, "place"), Some(place));
        check_price(finding, late);
        for id in IDS.into_iter().filter(|id| *id != "rank.late") {
            assert!(super::finding(&run, id).is_none(), "{id}");
        }
    }
}

#[test]
fn a_slow_way_is_no_rank() {
    let run = run_with(ring(Late::Way).0);
    let finding = fired(&run, "network.late");
    assert!(finding.summary.contains("10.0.0.2"), "{}", finding.summary);
    check_price(finding, Late::Way);
    assert!(super::finding(&run, "rank.late").is_none());
    assert!(super::finding(&run, "receiver.late").is_none());
}

#[test]
fn one_capture_tells_on_which_side_the_cause_is() {
    // The tap beside rank 2, behind rank 1 in the ring, sees arrivals there and departures from there.
    let mut connections = ring(Late::Gpu).0;
    connections.retain(|connection| [connection.sender, connection.receiver].contains(&host(3)));
    for connection in &mut connections {
        let is_sender = connection.sender == host(3);
        for message in &mut connection.messages {
            let (out, back) = (
                [&mut message.first, &mut message.last],
                [&mut message.credit, &mut message.acknowledgement],
            );
            let keep = |passage: &mut Passage, departure: bool| {
                *(if departure {
                    &mut passage.arrival
                } else {
                    &mut passage.departure
                }) = None;
            };
            for passage in out {
                keep(passage, is_sender);
            }
            for passage in back {
                keep(passage, !is_sender);
            }
        }
    }
    let run = run_with(connections);
    let finding = fired(&run, "job.cannot_tell");
    assert_eq!(
        (finding.severity, finding.confidence),
        (Severity::Info, Confidence::Low)
    );
    for id in &IDS[..3] {
        assert!(super::finding(&run, id).is_none(), "{id}: {:?}", run.findings);
    }
}

#[test]
fn credits_whose_addresses_were_cut_off_are_named() {
    let run_of = |credited| {
        let mut run = TestRun::new();
        run.summary.credited = credited;
        run.summary.cut_rings = 4;
        run.conclude()
    };
    let run = run_of(Vec::new());
    let finding = fired(&run, "job.cannot_tell");
    assert_eq!(
        (finding.severity, finding.confidence),
        (Severity::Info, Confidence::Medium)
    );
    assert!(
        finding.summary.contains("credits of 4 connections"),
        "{}",
        finding.summary
    );
    assert!(finding.next_step.contains("-s 192"));
    assert!(super::finding(&run_of(ring(Late::Nothing).0), "job.cannot_tell").is_none());
}
