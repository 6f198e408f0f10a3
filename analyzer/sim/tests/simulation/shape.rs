//! The shape of a published lab capture: ConnectX-4 Lx on 25, 40 and 100 Gb/s, one saturated receiver (rdma-ai-cluster,
//! ECN_CNP_DCQCN_SUMMARY.md): 121,321 of 808,992 packets CE (15 %), the others ECT(0); 1,955 CNPs of 74 bytes with DSCP 48,
//! while the data has DSCP 0.

use roce_capture::{Options, Reader};
use roce_sim::{Scenario, simulate_in_memory};
use roce_wire::{Content, Ecn, LinkType, decode};

#[test]
fn a_saturated_receiver_looks_like_the_lab() {
    let scenario = Scenario::parse(
        r#"
        duration = "20ms"
        [network]
        hosts = 11
        rate = "25Gbps"
        [switch]
        ecn_priorities = [0]
        kmin = "20KB"
        kmax = "420KB"
        pmax = 0.8
        [nic]
        mtu = 4096
        dscp = 0
        ack_every = 16
        [[flow]]
        from = "h1..h10"
        to = "h11"
        message = "512KiB"
        outstanding = 1
        jitter = "1ms"
        [[tap]]
        at = "h11"
        snaplen = 128
        "#,
    )
    .unwrap();
    let (truth, captures) = simulate_in_memory(&scenario).unwrap();
    let file = std::io::Cursor::new(captures[0].bytes.clone());
    let mut reader = Reader::from_read("lab", Box::new(file), &Options::default()).unwrap();
    let (mut packets, mut ce, mut ect0, mut cnps, mut bytes) = (0_u32, 0_u32, 0_u32, 0_u32, 0_u64);
    while let Some(batch) = reader.next_batch().unwrap() {
        for frame in batch.frames() {
            let decoded = decode(LinkType::ETHERNET, batch.bytes(frame), frame.original);
            let Content::Roce(roce) = decoded.content else {
                panic!("{decoded:?}");
            };
            packets += 1;
            bytes += u64::from(roce.payload_bytes);
            ce += u32::from(roce.ecn() == Ecn::Ce);
            ect0 += u32::from(roce.ecn() == Ecn::Ect0);
            if roce.bth.opcode().is_cnp() {
                cnps += 1;
                assert_eq!((frame.original, roce.dscp()), (74, 48));
            } else {
                assert_eq!(roce.dscp(), 0);
            }
        }
    }
    assert_eq!(ce + ect0, packets);
    let share = f64::from(ce) / f64::from(packets);
    assert!((0.10..0.20).contains(&share), "{share}");
    // Each of 10 flows gets at most one CNP in 50 us of 20 ms, and only when a packet was marked.
    assert!(cnps > 100 && cnps <= 10 * 400 && cnps < ce, "{cnps} of {ce}");
    assert_eq!(cnps as usize, truth.cnps.len());
    // Saturated: 25 Gb/s for 20 ms are 62.5 MB on the line.
    assert!(bytes as f64 > 0.9 * 62.5e6 * 4096.0 / 4178.0, "{bytes}");
}
