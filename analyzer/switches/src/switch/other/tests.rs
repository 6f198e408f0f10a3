//! Outputs after Junos' CLI reference, the OS10 user guide and OpenConfig's models; expected values are the numbers in them.

use roce_model::Counter;

use super::super::recorded::{check, reading_of};
use super::*;
use crate::inventory::SwitchKind;
use crate::pasted::pasted;

/// The reading of a pasted text.
fn of(text: &str) -> Reading {
    let found = pasted(text, "x").unwrap_or_else(|| panic!("{text}"));
    let mut answers = Answers::default();
    for command in ANSWERS {
        if let Some(answer) = found.answers.get(&crate::device::file_name(command)) {
            answers.insert(command, answer);
        }
    }
    let reading = reading_of(SwitchKind::Other, &answers);
    assert_eq!(reading.problems, []);
    reading
}

#[test]
fn interfaces_of_junos() {
    let reading = of("Physical interface: et-0/0/10, Enabled, Physical link is Up
  Link-level type: Ethernet, MTU: 9216, LAN-PHY mode, Speed: 100Gbps, BPDU Error: None
  Traffic statistics:
   Input  bytes  :           1234567890                    0 bps
   Output bytes  :           2345678901                    0 bps
  Input errors:
    Errors: 5, Drops: 6, Framing errors: 0
  Output errors:
    Carrier transitions: 3, Errors: 0, Drops: 512, Collisions: 0
  Ingress queues: 8 supported, 4 in use
  Queue counters:       Queued packets  Transmitted packets      Dropped packets
    0                         23456789             23456277                  512
    3 no-loss                  1000000               999999                    1
  Queue number:         Mapped forwarding classes
    0                   best-effort
  MAC statistics:                      Receive         Transmit
    Unicast packets                        100              200
    CRC/Align errors                         7                0
    MAC pause frames                         8                9
  MAC Priority Flow Control Statistics:
    Priority :  3                     41             1207
  Logical interface et-0/0/10.0 (Index 560)
    Traffic statistics:
     Input  bytes  :           99
");
    check(
        &reading,
        Counter::SwitchInterfaceReceivedBytes,
        &["et-0/0/10 port 1234567890"],
    );
    // 100 Gbit/s.
    check(
        &reading,
        Counter::SwitchInterfaceRate,
        &["et-0/0/10 port 12500000000"],
    );
    check(
        &reading,
        Counter::SwitchInterfaceDiscards,
        &["et-0/0/10 port received 6", "et-0/0/10 port transmitted 512"],
    );
    check(
        &reading,
        Counter::SwitchQueueDroppedPackets,
        &["et-0/0/10 q0 port all 512", "et-0/0/10 q3 port all 1"],
    );
    check(&reading, Counter::SwitchInterfaceFcsErrors, &["et-0/0/10 port 7"]);
    check(
        &reading,
        Counter::SwitchPauseTransmittedFrames,
        &["et-0/0/10 port 9"],
    );
    check(
        &reading,
        Counter::SwitchPriorityPfcTransmittedFrames,
        &["et-0/0/10 p3 port 1207"],
    );
}

#[test]
fn queues_of_junos() {
    let reading = of("Physical interface: et-0/0/11, Enabled, Physical link is Up
Egress queues: 8 supported, 4 in use
Queue: 3, Forwarding classes: no-loss
  Queued:
    Packets              :              2000                     0 pps
  Transmitted:
    Packets              :              1988                     0 pps
    Bytes                :           3000000                     0 bps
    Tail-dropped packets :                 5                     0 pps
    RED-dropped packets  :                 7                     0 pps
     Low                 :                 7                     0 pps
    ECN-CE packets       :                40                     0 pps
");
    check(
        &reading,
        Counter::SwitchQueueTransmittedPackets,
        &["et-0/0/11 q3 port all 1988"],
    );
    check(
        &reading,
        Counter::SwitchQueueDroppedPackets,
        &["et-0/0/11 q3 port all 12"],
    );
    check(
        &reading,
        Counter::SwitchQueueEcnMarkedPackets,
        &["et-0/0/11 q3 port 40"],
    );
}

#[test]
fn answers_of_os10() {
    let reading = of("OS10# show queuing statistics interface ethernet 1/1/1
Interface ethernet1/1/1
Description:
Queue         Packets             Bytes            Dropped-Packets   Dropped-Bytes
0             1234                123456           0                 0
3             9876                987654           12                9600
OS10# show interface ethernet 1/1/1
Ethernet 1/1/1 is up, line protocol is up
MTU 9216 bytes, IP MTU 9184 bytes
Input statistics:
     1234 packets, 567890 octets
     4 Multicasts, 2 Broadcasts, 1228 Unicasts
     3 CRC, 0 overrun, 8 discarded
Output statistics:
     55 packets, 66 octets
     0 throttles, 12 discarded, 0 Collisions,  0 wred drops
Rate Info(interval 30 seconds):
     Input 9 Mbits/sec, 8 packets/sec, 0% of line rate
OS10# show interface ethernet 1/1/1 priority-flow-control details
ethernet1/1/1
Admin Mode: On
PFC Priorities: 3,4
Total Rx PFC Frames: 300
Cos     Rx      Tx
------------------
3       300     200
");
    check(
        &reading,
        Counter::SwitchQueueDroppedPackets,
        &["Ethernet1/1/1 q0 port all 0", "Ethernet1/1/1 q3 port all 12"],
    );
    check(
        &reading,
        Counter::SwitchInterfaceDiscards,
        &[
            "Ethernet1/1/1 port received 8",
            "Ethernet1/1/1 port transmitted 12",
        ],
    );
    check(
        &reading,
        Counter::SwitchInterfaceReceivedBytes,
        &["Ethernet1/1/1 port 567890"],
    );
    check(
        &reading,
        Counter::SwitchInterfaceMtu,
        &["Ethernet1/1/1 port 9216"],
    );
    check(
        &reading,
        Counter::SwitchPriorityPfcReceivedFrames,
        &["Ethernet1/1/1 p3 port 300"],
    );
    let on = reading
        .of(Counter::SwitchPfcEnabled)
        .filter(|sample| sample.value > 0.5);
    assert_eq!(
        on.filter_map(|sample| sample.priority).collect::<Vec<_>>(),
        [3, 4]
    );
}

#[test]
fn documents_of_openconfig() {
    let tree = r#"{"openconfig-interfaces:interfaces":{"interface":[{"name":"Ethernet0","state":{"oper-status":"UP","mtu":9100,
        "counters":{"in-octets":"123456","out-discards":"12"}},"openconfig-if-ethernet:ethernet":{"state":{"counters":{"in-mac-pause-frames":"4"}}}},
        {"name":"Vlan10","state":{"counters":{"in-octets":"9"}}}]},
        "openconfig-qos:qos":{"interfaces":{"interface":[{"interface-id":"Ethernet0","output":{"queues":{"queue":[
        {"name":"Ethernet0:3","state":{"transmit-pkts":"1000","dropped-pkts":"42"}}]}}}]}}}"#;
    let updates = r#"[{"source":"leaf1:6030","updates":[
        {"Path":"interfaces/interface[name=Ethernet0]/state/counters","values":{"interfaces/interface/state/counters":{"in-octets":"123456","out-discards":"12"}}},
        {"Path":"interfaces/interface[name=Ethernet0]/ethernet/state/counters/in-mac-pause-frames","values":{"interfaces/interface/ethernet/state/counters/in-mac-pause-frames":"4"}},
        {"Path":"qos/interfaces/interface[interface-id=Ethernet0]/output/queues/queue[name=3]/state","values":{"qos/interfaces/interface/output/queues/queue/state":{"transmit-pkts":"1000","dropped-pkts":"42"}}}]}]"#;
    for text in [tree, updates] {
        let reading = of(text);
        check(
            &reading,
            Counter::SwitchInterfaceReceivedBytes,
            &["Ethernet0 port 123456"],
        );
        check(
            &reading,
            Counter::SwitchInterfaceDiscards,
            &["Ethernet0 port transmitted 12"],
        );
        check(
            &reading,
            Counter::SwitchPauseReceivedFrames,
            &["Ethernet0 port 4"],
        );
        check(
            &reading,
            Counter::SwitchQueueDroppedPackets,
            &["Ethernet0 q3 port all 42"],
        );
    }
}
