//! Units, bounds and less frequent forms of results: expected values are arithmetic on the numbers in the texts.

use super::*;

#[test]
fn peaks_processors_and_failures_of_perftest() {
    // 4555.75 x 2^20 x 8.
    assert!(is_near(one(BANDWIDTH).peak_bps, 38_216_400_896.0));
    let busy = BANDWIDTH
        .replace("MsgRate[Mpps]", "MsgRate[Mpps]   CPU_Util[%]")
        .replace("0.072880", "0.072880   12.50");
    assert!(is_near(one(&busy).cpu_ratio, 0.125), "12.5 %");
    let failed = format!("{BANDWIDTH}Failed to modify QP 292 to RTR\n");
    assert_eq!(rules(&results(&failed, None)), ["perftest.failed"]);
    let atomic = format!("                    Atomic FETCH_AND_ADD Latency Test\n{LATENCY}");
    assert_eq!(one(&atomic).latency.unwrap().kind, LatencyKind::RoundTrip);
}

#[test]
fn units_and_datagrams_of_iperf() {
    let rate =
        |line: &str| one(&format!("[ ID] Interval       Transfer     Bandwidth\n{line}\n")).goodput_bps;
    // iperf's units of bits are decimal.
    assert!(is_near(
        rate("[  1] 0.0000-10.0000 sec   640 KBytes   524 Kbits/sec"),
        524_000.0
    ));
    assert!(is_near(
        rate("[  1] 0.0000-10.0000 sec  1000 Bytes   800 bits/sec"),
        800.0
    ));
    // The longest interval counts, not the last one.
    assert!(is_near(
        rate(
            "[  1] 0.00-10.00 sec  1.10 GBytes   941 Mbits/sec\n[  1] 10.00-10.02 sec  2.0 KBytes   819 Kbits/sec"
        ),
        941e6
    ));
    let row = one(
        "[ ID] Interval           Transfer     Bitrate         Jitter    Lost/Total Datagrams\n\
         [  5]   0.00-10.00  sec  1.25 MBytes  1.05 Mbits/sec  0.012 ms  5/906 (0.55%)  receiver\n",
    );
    assert_eq!((row.what.as_str(), row.retransmits), ("UDP", None));
    assert!(
        is_near(row.jitter_us, 12.0) && is_near(row.lost_ratio, 0.0055),
        "{row:?}"
    );
}

#[test]
fn other_documents_of_iperf3() {
    // 40 bytes of IPv6, 20 of TCP and 12 of its time stamps beside the segment of 1428.
    let six = TCP.replace("1448", "1428").replace(
        "\"version\"",
        "\"connected\":[{\"remote_host\":\"2001:db8::1\"}],\"version\"",
    );
    assert_eq!(one(&six).mtu, Some(1_500));
    // The receiver's report did not come: the sender's counts.
    let sent = TCP.replace("4665000000", "0");
    assert!(is_near(one(&sent).goodput_bps, 4_670_000_000.0));
    let two = TCP.replace(
        "\"streams\":[",
        "\"streams\":[{\"sender\":{\"max_rtt\":500,\"min_rtt\":100,\"mean_rtt\":300}},",
    );
    let latency = one(&two).latency.unwrap();
    assert_eq!(
        (latency.min, latency.average, latency.max),
        (Some(100.0), Some(256.0), Some(500.0)),
        "150 and 100, 212 and 300, 410 and 500"
    );
    // Two tests, in both orders of their documents: from 1,000 s to 2,006.01 s.
    let timed = |seconds: u32| {
        let stamp = format!("\"timestamp\":{{\"timesecs\":{seconds}}},\"version\"");
        TCP.replace("\"version\"", &stamp)
    };
    for both in [timed(2_000) + &timed(1_000), timed(1_000) + &timed(2_000)] {
        let span = When::At {
            begin: 1_000.0,
            end: 2_006.01,
        };
        assert_eq!(when(&both), Some(span), "{both}");
    }
}

#[test]
fn what_scripts_expect_in_other_units() {
    let holds = |condition: &str, text: &str| {
        let expectation: Expectation = condition.parse().unwrap();
        match expectation.outcome(&results(text, Some(4)).measurements) {
            Outcome::Holds(_) => true,
            Outcome::Fails(_) => false,
            Outcome::NotMeasured => panic!("{condition}: nothing"),
        }
    };
    // 38,210,281,308 bit/s are 4,776.285 MB/s.
    assert!(holds("perftest.goodput<4776MB/s", BANDWIDTH) && !holds("perftest.goodput<4777MB/s", BANDWIDTH));
    // The typical time, 14.30 us.
    assert!(holds("perftest.latency>14300ns", LATENCY) && !holds("perftest.latency>14299ns", LATENCY));
    assert!(holds("nccl.wrong<0", NCCL), "a bound is reached by its value");
    let lost = r#"{"start":{"test_start":{"protocol":"UDP"}},"end":{"sum":{"bits_per_second":1e9,"lost_percent":0.5}}}"#;
    assert!(holds("iperf.lost>0.5%", lost) && !holds("iperf.lost>0.4%", lost));
    let second =
        "[ ID] Interval       Transfer     Bandwidth\n[  1] 0.0-10.0 sec  1.10 GBytes   941 Mbits/sec\n";
    assert!(holds("iperf.goodput<0.9Gbit/s", second), "iperf 2");
    // The highest rate and the lowest latency count.
    let sweep = format!("{BANDWIDTH} 2          5000             3.00            2.00\t\t     1.048576\n");
    assert!(holds("perftest.goodput<38Gbit/s", &sweep));
    let sweep = format!(
        "{LATENCY} 65536   1000          14.73           31.70        24.30  	       24.37     	0.82		25.85 		31.70   \n"
    );
    assert!(holds("perftest.latency>15us", &sweep));
    let expectation: Expectation = "nccl.busbw<80GiB/s".parse().unwrap();
    // 2^33 bits are a GiB.
    assert_eq!(expectation.in_unit(17_179_869_184.0), (2.0, "GiB/s"));
}

/// Factors of doc/PERFORMANCE.md of nccl-tests.
#[test]
fn factors_of_collective_operations() {
    for (operation, factor) in [
        ("all_reduce_perf", 1.5),
        ("all_gather", 0.75),
        ("reduce_scatter", 0.75),
        ("alltoall", 0.75),
        ("broadcast", 1.0),
        ("reduce", 1.0),
        ("sendrecv", 1.0),
    ] {
        assert_eq!(bus_factor(operation, 4), Some(factor), "{operation}");
    }
    assert_eq!(
        (bus_factor("hypercube", 4), bus_factor("reduce", 0)),
        (None, None)
    );
    let out = NCCL.replace("Out of bounds values : 0 OK", "Out of bounds values : 3 FAILED");
    assert_eq!(rules(&results(&out, None)), ["nccl.wrong"]);
    let runs = format!("=== Run 2 / 3 ===\n{TABLE}");
    let found = results(&runs, Some(8));
    assert_eq!(found.measurements[1].what, "all_reduce run 2 / 3");
    // 194.99 GB/s.
    assert!(is_near(found.measurements[1].peak_bps, 1_559.92e9));
    // Connections by GPUDirect alone are as they should be.
    let direct = "h:1:2 [0] NCCL INFO Channel 00/0 : 3[3] -> 4[0] [send] via NET/IB/0/GDRDMA\n";
    assert_eq!(rules(&results(direct, None)), [] as [&str; 0]);
    assert_eq!(
        rules(&results(&direct.replace("/GDRDMA", ""), None)),
        ["nccl.no_gpudirect"]
    );
    // The number of an opcode is a part of its name.
    let text = &results(LOG, None).remarks[0].text;
    assert!(text.contains("opcode=IBV_WC_SEND(0),"), "{text}");
}
