//! Causes and their effects, the order in which they are told, and the first sentence.

use std::collections::BTreeSet;

use roce_model::Vantage;

use super::super::causes::MECHANISMS;
use super::*;

/// A flow that lost packets, waited for a timer for 5 ms, and stood still meanwhile.
fn lossy(lost_at: u64, timeout_at: u64) -> RunSummary {
    let mut run = TestRun::new();
    let mut data = flow(1, 2);
    (
        data.network_lost,
        data.losses_proven,
        data.runs_timeout,
        data.runs_timeout_sure,
    ) = (40, 40, 1, 1);
    (data.retransmission_runs, data.time_timeout_ns) = (1, Some(5 * MS));
    run.summary.span = Some(roce_model::Period {
        first: Time(0),
        last: Time(1_000 * MS),
    });
    let lost = event(EventKind::Hole, &data, lost_at, 40, "network_lost");
    let timeout = event(EventKind::RetransmissionRun, &data, timeout_at, 1, "timeout");
    run.verdicts().event(&lost);
    run.verdicts().event(&timeout);
    run.closed(&data);
    run.conclude()
}

#[test]
fn losses_explain_the_timeouts_that_follow() {
    let run = lossy(10 * MS, 15 * MS);
    let (loss, timeout) = (fired(&run, "loss.network"), fired(&run, "retransmit.timeout"));
    assert!(loss.explains.has("retransmit.timeout") && loss.is_root());
    assert_eq!(timeout.explained_by.to_string(), "loss.network");
    // Each moment of a flow once: the root has the price of what it explains.
    assert_eq!((loss.waited_ns, timeout.waited_ns), (Some(5 * MS), Some(5 * MS)));
    assert_eq!(loss.victims.to_string(), "10.0.0.1");
    assert!(loss.severity >= timeout.severity);
    let ids: Vec<&str> = run.findings.iter().map(|row| row.id).collect();
    assert_eq!(ids[..2], ["loss.network", "retransmit.timeout"]);
    assert!(
        run.sentence
            .starts_with("The network lost 40 packets from 10.0.0.1 to 10.0.0.2"),
        "{}",
        run.sentence
    );
    assert!(
        run.sentence.ends_with("5.00 ms of waiting in 1 timeout."),
        "{}",
        run.sentence
    );
}

#[test]
fn what_comes_later_is_no_cause() {
    let run = lossy(500 * MS, 15 * MS);
    assert!(fired(&run, "retransmit.timeout").is_root());
    assert!(fired(&run, "loss.network").explains.0.is_empty());
}

#[test]
fn what_is_partly_explained_stays_a_root() {
    let mut run = TestRun::new();
    for sender in 1..=2 {
        let mut data = flow(sender, 9);
        (data.runs_timeout, data.runs_timeout_sure, data.time_timeout_ns) = (1, 1, Some(5 * MS));
        if sender == 1 {
            (data.network_lost, data.losses_proven) = (40, 40);
        }
        run.closed(&data);
    }
    let run = run.conclude();
    assert!(fired(&run, "retransmit.timeout").is_root());
}

#[test]
fn a_healthy_run_is_said_to_be_one() {
    let mut data = flow(1, 2);
    let acks = back(&data);
    data.peer_flow_id = Some(acks.flow_id);
    let mut run = TestRun::new();
    run.summary.totals.roce_packets = 2_000;
    run.summary.totals.ect0 = 1_000;
    run.closed(&data);
    run.closed(&acks);
    let sentence = run.conclude().sentence;
    assert!(
        sentence.starts_with("Nothing is wrong with the network in these"),
        "{sentence}"
    );
    // Two more flows without an answer: of most nobody knows if they arrived.
    let mut run = TestRun::new();
    run.summary.totals.roce_packets = 4_000;
    let unanswered = |host| FlowRow {
        peer_flow_id: None,
        ..flow(1, host)
    };
    for row in [&data, &acks, &unanswered(3), &unanswered(4)] {
        run.closed(row);
    }
    let sentence = run.conclude().sentence;
    assert!(
        sentence.starts_with("No fault of the network is seen in these"),
        "{sentence}"
    );
    let nothing = TestRun::new().conclude().sentence;
    assert_eq!(nothing, "No frame was captured: there is nothing to judge.");
}

#[test]
fn no_finding_explains_itself_on_any_way() {
    // Whatever has no cause left is taken away, until nothing is left or a circle.
    let mut edges: Vec<(&str, &str)> = MECHANISMS.iter().map(|edge| (edge.cause, edge.effect)).collect();
    loop {
        let effects: BTreeSet<&str> = edges.iter().map(|(_, effect)| *effect).collect();
        let before = edges.len();
        edges.retain(|(cause, _)| effects.contains(cause));
        if edges.len() == before {
            break;
        }
    }
    assert_eq!(edges, []);
}

#[test]
fn each_mechanism_is_about_two_rules_and_stands_once() {
    let ids: BTreeSet<&str> = RULES.iter().map(|rule| rule.id).collect();
    let mut pairs = BTreeSet::new();
    for edge in MECHANISMS {
        for id in [edge.cause, edge.effect].into_iter().chain(edge.with) {
            assert!(ids.contains(id), "{id}");
        }
        assert!(pairs.insert((edge.cause, edge.effect)), "{edge:?}");
        assert!(edge.how.ends_with('.') && edge.how.len() > 20, "{edge:?}");
    }
}

/// A sender that was over the bound in a few windows, or is seen behind the bottleneck, is not accused in the first sentence either.
#[test]
fn senders_that_slow_down_are_not_named() {
    let mut data = flow(1, 2);
    (data.cnp, data.vantage) = (Some(40), Some(Vantage::Sender));
    (data.cnp_windows, data.cnp_windows_over, data.cnp_over_p50) = (15, 15, Some(4.0));
    let (mut seldom, mut behind) = (data.clone(), data.clone());
    (seldom.flow_id, seldom.source, seldom.cnp_windows_over) = (flow(3, 2).flow_id, flow(3, 2).source, 1);
    (behind.flow_id, behind.source) = (flow(4, 2).flow_id, flow(4, 2).source);
    behind.vantage = Some(Vantage::Receiver);
    let run = run_of(&[&data, &seldom, &behind]);
    assert!(
        run.sentence.starts_with("10.0.0.1 did not slow down after CNPs"),
        "{}",
        run.sentence
    );
}
