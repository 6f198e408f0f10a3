//! Credits and data of simulated NCCL rings against the simulation's own times.

#![expect(clippy::unwrap_used, reason = "tests, in functions of their own")]

use std::collections::BTreeMap;
use std::path::PathBuf;

use roce_model::{CreditedConnection, CreditedMessage, Passage, RunSummary, Time};
use roce_pipeline::RunRequest;

fn folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/credits"))
}

/// The run of a ring's captures at these hosts.
fn run(name: &str, hosts: &[u32], threads: u32) -> RunSummary {
    let files = hosts
        .iter()
        .map(|host| folder().join(format!("{name}-h{host}.pcap.gz")));
    let mut request = RunRequest::new(files.collect());
    request.plan.threads = threads;
    request.run(Vec::new()).unwrap().summary
}

type Key = (String, u64, u64);

/// The messages of a ring by sender, buffer and number.
fn truth(name: &str) -> BTreeMap<Key, CreditedMessage> {
    let text = std::fs::read_to_string(folder().join(format!("{name}.csv"))).unwrap();
    let message = |line: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        let number = |at: usize| fields[at].parse::<u64>().unwrap();
        let passage = |at: usize| Passage {
            departure: Some(Time(number(at))),
            arrival: Some(Time(number(at + 1))),
        };
        let message = CreditedMessage {
            number: number(3),
            buffer: number(14),
            bytes: number(4),
            credit: passage(5),
            first: passage(7),
            last: passage(9),
            acknowledgement: passage(11),
            retransmissions: u32::try_from(number(13)).unwrap(),
        };
        ((fields[0].to_owned(), message.buffer, message.number), message)
    };
    text.lines().skip(1).map(message).collect()
}

fn found(credited: &[CreditedConnection]) -> BTreeMap<Key, CreditedMessage> {
    let key = |connection: &CreditedConnection, message: &CreditedMessage| {
        (connection.sender.to_string(), message.buffer, message.number)
    };
    let messages = credited.iter().flat_map(|connection| {
        connection
            .messages
            .iter()
            .map(move |message| (key(connection, message), *message))
    });
    messages.collect()
}

#[test]
fn every_message_has_the_times_of_the_simulation() {
    for (name, layout, flows, messages) in [("adaptive", "2.30", 1, 12), ("turns", "2.12 to 2.18", 2, 24)] {
        let run = run(name, &[1, 2, 3, 4], 1);
        assert_eq!(found(&run.credited), truth(name), "{name}");
        // Two channels of four ranks.
        assert_eq!(run.credited.len(), 8);
        for (row, connection) in run.credits.iter().zip(&run.credited) {
            // The host 10.77.1.N has rank N - 1.
            let rank = u32::from(connection.sender.octets()[15]) - 1;
            assert_eq!(
                (row.sender_rank, row.receiver_rank),
                (Some(rank), Some((rank + 1) % 4))
            );
            assert_eq!((row.layout.as_deref(), row.data_flows), (Some(layout), flows));
            assert_eq!((row.messages, row.left_out, row.credits_unused), (messages, 0, 0));
            // 64 KiB each; four credits at once for a ring's AllReduce.
            assert_eq!(
                (row.bytes, row.outstanding_bytes, row.depth),
                (messages << 16, 0, 4)
            );
        }
    }
}

#[test]
fn threads_change_nothing() {
    let (one, three) = (run("turns", &[1, 2, 3, 4], 1), run("turns", &[1, 2, 3, 4], 3));
    assert_eq!(one.credited, three.credited);
    assert_eq!(one.credits, three.credits);
}

#[test]
fn one_host_tells_its_own_side() {
    let run = run("adaptive", &[2], 1);
    let (truth, found) = (truth("adaptive"), found(&run.credited));
    // Two channels in, two out, twelve messages each.
    assert_eq!(found.len(), 48);
    for (key, message) in found {
        let whole = truth[&key];
        let departs = |passage: Passage| Passage {
            arrival: None,
            ..passage
        };
        let arrives = |passage: Passage| Passage {
            departure: None,
            ..passage
        };
        let expected = if key.0 == "10.77.1.2" {
            (
                arrives(whole.credit),
                departs(whole.first),
                departs(whole.last),
                arrives(whole.acknowledgement),
            )
        } else {
            (
                departs(whole.credit),
                arrives(whole.first),
                arrives(whole.last),
                departs(whole.acknowledgement),
            )
        };
        let times = (
            message.credit,
            message.first,
            message.last,
            message.acknowledgement,
        );
        assert_eq!(times, expected, "{key:?}");
    }
}
