//! Requests that another encoder made.

use super::*;
use roce_model::{Counter, Time};

/// `ExportMetricsServiceRequest` of opentelemetry-proto 1.45.2 for Python, in hex: a resource with host.name leaf1, and six metrics.
const REQUEST: &str = "\
0aad040a160a140a09686f73742e6e616d6512070a056c656166311292040a030a0178125d0a266e767377697463685f696e7465726661\
63655f74635f74785f65636e5f6d61726b65645f74632a330a31190000faed517286182100000000004893403a130a09696e7465726661\
636512060a04737770313a080a0274631202180312600a246e767377697463685f696e746572666163655f74635f637572725f6f636375\
70616e63791a0242792a340a3219a086fbed5172861821000000000000f0403a130a09696e7465726661636512060a04737770313a090a\
02746312030a01331281010a2d696e74657266616365735f696e746572666163655f73746174655f636f756e746572735f696e5f6f6374\
6574733a500a4a190000faed5172861831ffffffffffff1f003a170a06736f75726365120d0a0b6c656166323a35373430303a1d0a0e69\
6e746572666163655f6e616d65120b0a0945746865726e65743410021801124a0a1d6e767377697463685f696e746572666163655f756e\
68656172645f6f662a290a27190000faed5172861821000000000000f03f3a130a09696e7465726661636512060a047377703112330a24\
6e767377697463685f686973746f6772616d5f696e746572666163655f6c6174656e63794a0b0a0921030000000000000012450a1f6e76\
7377697463685f696e746572666163655f69665f696e5f6f63746574732a220a20190000faed517286183a130a09696e74657266616365\
12060a04737770314001";

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

#[test]
fn points_of_another_encoder_become_samples() {
    let mut translator = Translator::new(None);
    let mut samples = Vec::new();
    read_protobuf(&bytes(REQUEST), &mut translator, &mut samples).unwrap();
    let seen: Vec<_> = samples
        .iter()
        .map(|sample| {
            let queue = sample.queue.as_deref();
            (
                &*sample.node,
                &*sample.object,
                sample.counter,
                queue,
                sample.value,
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            (
                "leaf1",
                "swp1",
                Counter::SwitchQueueEcnMarkedPackets,
                Some("3"),
                1_234.0
            ),
            ("leaf1", "swp1", Counter::SwitchQueueDepth, Some("3"), 65_536.0),
            // 2^53 - 1 as an integer, from a target of gNMI with its port.
            (
                "leaf2",
                "Ethernet4",
                Counter::SwitchInterfaceReceivedBytes,
                None,
                9_007_199_254_740_991.0
            ),
        ]
    );
    // 2026-01-01, and 100 us later.
    assert_eq!(samples[0].time, Time(1_767_225_600_000_000_000));
    assert_eq!(samples[1].time, Time(1_767_225_600_000_100_000));
    assert_eq!(samples[0].details, ["port"]);
    let tally = translator.tally();
    assert_eq!((tally.taken, tally.left_out()), (3, 3));
    assert_eq!(tally.unknown.get("nvswitch_interface_unheard_of"), Some(&1));
    // A histogram, and a point with the flag "no recorded value".
    assert_eq!((tally.distributions, tally.no_value), (1, 1));
}

#[test]
fn each_beginning_of_a_request_ends_cleanly() {
    let whole = bytes(REQUEST);
    for end in 0..whole.len() {
        let (mut translator, mut samples) = (Translator::new(None), Vec::new());
        let outcome = read_protobuf(&whole[..end], &mut translator, &mut samples);
        // The outermost field has all bytes: of a part of them its length is wrong.
        assert_eq!(outcome.is_ok(), end == 0, "{end}");
    }
}

#[test]
fn changed_bytes_are_read_or_refused() {
    let whole = bytes(REQUEST);
    for place in 0..whole.len() {
        for bit in 0..8 {
            let mut changed = whole.clone();
            changed[place] ^= 1 << bit;
            let (mut translator, mut samples) = (Translator::new(None), Vec::new());
            let _ = read_protobuf(&changed, &mut translator, &mut samples);
            assert!(samples.len() <= 6);
        }
    }
}
