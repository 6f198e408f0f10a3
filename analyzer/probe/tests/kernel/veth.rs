//! Packets over a pair of interfaces: those seen and those reported lost are together those sent.

use std::net::UdpSocket;
use std::time::Duration;

use roce_model::Time;
use roce_probe::{Direction, HostReader, Options, Packets};

use crate::namespaces::{PORT, Pair, swallow, write_middle};
use crate::{classifier, open, skip};

/// Sends `count` packets from 10.88.0.1, with a rest after each `burst`, and as many to another port.
fn send(count: u32, burst: u32, rest: Duration) {
    let socket = UdpSocket::bind(("10.88.0.1", 49_152)).unwrap();
    for psn in 0..count {
        socket
            .send_to(&write_middle(0x11, psn, 64), ("10.88.0.2", PORT))
            .unwrap();
        if psn % burst == 0 {
            socket
                .send_to(&write_middle(0x12, psn, 64), ("10.88.0.2", 4_792))
                .unwrap();
            std::thread::sleep(rest);
        }
    }
}

fn pair(test: &str) -> Option<Pair> {
    match Pair::make() {
        Ok(pair) => Some(pair),
        Err(reason) => {
            skip(test, &reason);
            None
        }
    }
}

#[test]
fn at_a_low_rate_nothing_is_lost() {
    let test = "packets over veth at a low rate";
    let Some(pair) = pair(test) else { return };
    pair.enter('b');
    let options = Options {
        interfaces: vec!["vb".to_owned()],
        packets: Packets::All,
        ..classifier()
    };
    let Some(mut probe) = open(test, &options) else {
        return;
    };
    let _receiver = swallow();
    let sent = 2_000;
    pair.within('a', move || send(sent, 10, Duration::from_millis(1)));
    let (mut psns, mut last) = (Vec::new(), 0);
    let untold = probe
        .packets(|packet| {
            let mut frame = Vec::new();
            packet.frame(&mut frame);
            // Ethernet 14, IPv4 20, UDP 8, BTH 12, 64 of data, ICRC 4; a record has 96 of them.
            assert_eq!((packet.original, frame.len()), (122, 96));
            assert_eq!(packet.direction, Direction::Ingress);
            assert!(packet.time.0 >= last, "in order of time");
            last = packet.time.0;
            psns.push(u32::from_be_bytes([0, frame[51], frame[52], frame[53]]));
        })
        .unwrap();
    assert_eq!(untold, 0);
    assert!(
        psns.iter().copied().eq(0..sent),
        "{} of {sent} records",
        psns.len()
    );
    let counts = probe.counts().unwrap();
    let [flow] = counts.as_slice() else {
        panic!("{counts:?}")
    };
    assert_eq!(
        (flow.source.to_string(), flow.destination.to_string()),
        ("10.88.0.1".into(), "10.88.0.2".into())
    );
    assert_eq!((flow.qpn.value(), flow.direction), (0x11, Direction::Ingress));
    assert_eq!(flow.counts.packets, u64::from(sent));
    assert_eq!(flow.counts.wire_bytes, u64::from(sent) * 122);
    assert_eq!(flow.counts.payload_bytes, u64::from(sent) * 64);
    // The realtime clock, give or take what a test machine does.
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap();
    assert!(
        now.as_nanos().abs_diff(u128::from(last)) < 60_000_000_000,
        "{last} is now"
    );
}

#[test]
fn at_overload_losses_are_counted() {
    let test = "packets over veth at overload";
    let Some(pair) = pair(test) else { return };
    pair.enter('a');
    let options = Options {
        interfaces: vec!["va".to_owned()],
        packets: Packets::All,
        // Room for about 500 records.
        packet_buffer: 1 << 16,
        ..classifier()
    };
    let Some(mut probe) = open(test, &options) else {
        return;
    };
    let _receiver = pair.within('b', swallow);
    let sent = 20_000;
    let sender = std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            pair.enter('a');
            send(sent, 100_000, Duration::ZERO);
        });
        let (mut seen, mut lost) = (0_u64, 0);
        while !thread.is_finished() {
            lost += probe.packets(|_| seen += 1).unwrap();
            // A reader that cannot keep up.
            std::thread::sleep(Duration::from_millis(20));
        }
        thread.join().unwrap();
        lost += probe.packets(|_| seen += 1).unwrap();
        (seen, lost)
    });
    let (seen, lost) = sender;
    assert_eq!(seen + lost, u64::from(sent), "seen {seen}, reported lost {lost}");
    assert!(lost > 0, "it was no overload");
    let counts = probe.counts().unwrap();
    assert_eq!(
        counts.iter().map(|flow| flow.counts.packets).sum::<u64>(),
        u64::from(sent),
        "all are counted"
    );
    assert!(counts.iter().all(|flow| flow.direction == Direction::Egress));
}

#[test]
fn statistics_of_a_driver_are_read() {
    let test = "statistics of veth";
    let Some(pair) = pair(test) else { return };
    pair.enter('b');
    let mut reader = HostReader::new(&["vb".to_owned()]);
    let mut samples = Vec::new();
    reader.read(Time(1), &mut samples);
    let drops: Vec<f64> = samples
        .iter()
        .filter(|sample| &*sample.object == "vb" && sample.details.iter().any(|name| name.contains("drop")))
        .map(|sample| sample.value)
        .collect();
    // Linux drivers/net/veth.c: rx_queue_N_drops of every queue; nothing was dropped.
    assert!(
        !drops.is_empty() && drops.iter().all(|drops| *drops == 0.0),
        "{samples:?}"
    );
}
