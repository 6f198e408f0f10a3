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
    // iperf 2 names datagrams in its head, and 2.2 in other words of the table.
    for text in [
        "Client connecting to 10.0.0.2, UDP port 5001\n[ ID] Interval       Transfer     Bandwidth\n[  3]  0.0-10.0 sec  1.25 MBytes  1.05 Mbits/sec\n",
        "[ ID] Interval       Transfer     Bandwidth        Jitter   Lost/Total  Latency avg/min/max/stdev PPS  Rx/inP  NetPwr\n\
         [  1] 0.0000-10.0000 sec  1.25 MBytes  1.05 Mbits/sec   0.012 ms 5/896 (0.56%)\n",
    ] {
        assert_eq!(
            (one(text).what.as_str(), one(text).tool.as_str()),
            ("UDP", "iperf")
        );
    }
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

#[test]
fn documents_of_perftest() {
    // perftest 6, `--out_json`, with its names without quotes. 0.176528 M/s x 65,536 x 8 = 92.55 Gbit/s, and x 65,536 / 2^20 = 11,033 MiB/s.
    let document = |peak: &str, average: &str| {
        format!(
            "{{\n\"test_info\": {{\n\"test\": \"RDMA_Write_BW\",\n\"Dual_port\": OFF,\n\"Number_of_qps\": 4,\n\"Connection_type\": RC,\n\"Mtu\": 4096\n}},\n\
             \"results\": {{\n\"MsgSize\": 65536,\n\"n_iterations\": 5000,\n\"BW_peak\": {peak},\n\"BW_average\": {average},\n\"MsgRate\": 0.176528\n}}\n}}\n"
        )
    };
    for (peak, average) in [("92.57", "92.55"), ("11035.4", "11033.0")] {
        let row = one(&document(peak, average));
        assert!((row.goodput_bps.unwrap() / 1e9 - 92.55).abs() < 0.01, "{row:?}");
        assert_eq!(
            (row.tool.as_str(), row.streams, row.mtu, row.size_bytes),
            ("ib_write_bw", Some(4), Some(4096), Some(65_536))
        );
    }
    assert_eq!(rules(&results(&document("1", "5"), None)), ["perftest.unit"]);
    // 6.977012e6 x 2 x 8 is 0.1116 Gbit/s or 13.31 MiB/s: two digits behind the point are all there is.
    let small = |average: &str, rate: &str| {
        let sized = document("0.12", average).replace("65536", "2");
        sized.replace("0.176528", rate)
    };
    for (average, rate) in [("0.11", "6.977012"), ("0.11", "6.98"), ("13.31", "6.977012")] {
        let found = results(&small(average, rate), None);
        assert!(found.remarks.is_empty(), "{average} {rate}");
    }
    assert_eq!(
        rules(&results(&small("0.13", "6.977012"), None)),
        ["perftest.unit"]
    );
    // 0.625e6 x 16 is 10 Mbit/s.
    assert!(results(&small("0.01", "0.625"), None).remarks.is_empty());
    let latency = "{\"test_info\": {\"test\": \"Send_Lat\"}, \"results\": {\"MsgSize\": 2, \"n_iterations\": 1000, \"t_min\": 1.20, \"t_max\": 9.5, \"t_typical\": 1.31, \
                   \"t_avg\": 1.33, \"t_stdev\": 0.11, \"t_99_percentile\": 1.6, \"t_99.9_percentile\": 4.0}}";
    let row = one(latency);
    let found = row.latency.unwrap();
    assert_eq!(
        (row.tool.as_str(), found.typical, found.p99, found.p999),
        ("ib_send_lat", Some(1.31), Some(1.6), Some(4.0))
    );
    assert_eq!(
        rules(&results(
            "{\"test_info\": {\"test\": \"Send_BW\"}, \"results\": {}}",
            None
        )),
        ["results.cut"]
    );
}

#[test]
fn failures_of_perftest_before_its_table_are_results() {
    for text in [
        " Failed to modify QP 279 to RTR\n Unable to Connect the HCA's through the link\n",
        " Port number 1 state is Down\n Couldn't set the link layer\n Couldn't get context for the device\n",
        "Couldn't connect to 10.0.0.2:18515\nUnable to open file descriptor for socket connection Unable to init the socket connection\n",
    ] {
        let found = results(text, None);
        assert_eq!(
            (found.tool, found.remarks.len()),
            ("perftest", text.lines().count()),
            "{text}"
        );
        assert!(
            rules(&found).iter().all(|rule| *rule == "perftest.failed"),
            "{text}"
        );
    }
}

#[test]
fn failures_of_perftest_are_translated() {
    let text = format!(
        "{BANDWIDTH} Completion with error at client\n Failed status 12: wr_id 0 syndrom 0x81\nscnt=128, ccnt=0\n"
    );
    let found = results(&text, None);
    assert_eq!(rules(&found), ["perftest.failed"]);
    assert!(
        found.remarks[0]
            .text
            .contains("IBV_WC_RETRY_EXC_ERR: no answer after all retries"),
        "{:?}",
        found.remarks
    );
}

#[test]
fn the_benchmark_of_machine_learning_engineering() {
    // The project's own README, network/benchmarks: 4 ranks, so that busbw is 1.5 times algbw.
    let table = "The average bandwidth of all_reduce over 4 ranks (5 warmups / 20 trials):\n\n| payload |    busbw   |    algbw   |\n\
                 | ------: | ---------: | ---------: |\n|   32KiB |   1.18GBps |   0.79GBps |\n|    1MiB |  34.50GBps |  23.00GBps |\n";
    let found = results(table, None);
    let rows: Vec<_> = found
        .measurements
        .iter()
        .map(|row| (row.size_bytes, row.ranks))
        .collect();
    assert_eq!(rows, [(Some(32 << 10), Some(4)), (Some(1 << 20), Some(4))]);
    assert!(
        is_near(found.measurements[1].bus_bps, 34.5 * 8e9)
            && is_near(found.measurements[1].goodput_bps, 23.0 * 8e9)
    );
    assert_eq!(rules(&found), Vec::<&str>::new());
    // 2^20 bytes at 23 GB/s.
    assert!((found.measurements[1].time_us.unwrap() - 45.59).abs() < 0.01);
    let wrong = table.replace("34.50GBps |  23.00", "34.50GBps |  33.00");
    assert_eq!(rules(&results(&wrong, None)), ["bench.disagrees"]);
    // The paragraph of older versions, behind the prefix of a launcher. 239.742 x 2 x 15 / 16 = 449.516.
    let old = "[node-7:0]:The average bandwidth of all_reduce with a 4.0GB payload (50 trials, 16 ranks):\n[node-7:0]: algbw: 239.742 GBps (1917.9 Gbps)\n\
               [node-7:0]: busbw: 449.515 GBps (3596.1 Gbps)\n";
    let row = one(old);
    assert_eq!((row.size_bytes, row.ranks), (Some(4_000_000_000), Some(16)));
    assert!(is_near(row.bus_bps, 449.515 * 8e9), "{row:?}");
    assert_eq!(rules(&results(old, None)), Vec::<&str>::new());
}

#[test]
fn round_trips_of_iperf_2() {
    // iperf 2.1.9, `-e`: writes and errors, retransmissions, window and round trip.
    let text = "[  1] local 10.0.0.1%eth0 port 41814 connected with 10.0.0.2 port 5001 (icwnd/mss/irtt=14/1448/274) (ct=0.33 ms)\n\
                [ ID] Interval        Transfer    Bandwidth       Write/Err  Rtry     Cwnd/RTT(var)        NetPwr\n\
                [  1] 0.0000-10.0171 sec  10.9 GBytes  9.34 Gbits/sec  89456/0         7     3145K/412(29) us  2834912\n";
    let row = one(text);
    assert_eq!(
        (row.retransmits, row.latency.unwrap().kind),
        (Some(7), LatencyKind::TcpRoundTrip)
    );
    assert_eq!(row.latency.unwrap().average, Some(412.0));
    // Without `-e` only the first round trip is there.
    let plain = "[  1] local 10.0.0.1 port 41814 connected with 10.0.0.2 port 5001 (icwnd/mss/irtt=14/1448/274)\n\
                 [ ID] Interval       Transfer     Bandwidth\n[  1] 0.0000-10.0171 sec  10.9 GBytes  9.34 Gbits/sec\n";
    let first = one(plain).latency.unwrap();
    assert_eq!((first.kind, first.average), (LatencyKind::TcpFirst, Some(274.0)));
}

#[test]
fn tables_behind_the_prefixes_of_launchers() {
    for prefix in [
        "0: ",
        "[1,0]<stdout>:",
        "gpu-node-1: ",
        "[pod/launcher-x/nccl] ",
        "2026-11-25T18:00:01.123Z ",
    ] {
        let labelled = |text: &str| -> String {
            let lines: Vec<String> = text.lines().map(|line| format!("{prefix}{line}")).collect();
            lines.join("\n") + "\n"
        };
        assert_eq!(results(&labelled(NCCL), None), results(NCCL, None), "{prefix}");
        assert_eq!(
            results(&labelled(BANDWIDTH), None).measurements,
            results(BANDWIDTH, None).measurements,
            "{prefix}"
        );
    }
}

/// iperf 3.9 has no `sum_received`: the client's sum is what it sent. iperf 2 prints rows without a heading for each connection.
#[test]
fn what_a_client_of_datagrams_sent_is_not_what_arrived() {
    let sent = r#"{"start":{"test_start":{"protocol":"UDP","reverse":0}},"end":{"sum":{"bits_per_second":1e10,"lost_percent":4.0,"sender":true}}}"#;
    // 96 % of 10 Gbit/s.
    assert!(is_near(one(sent).goodput_bps, 9.6e9));
}

#[test]
fn rows_of_iperf_2_and_their_latency() {
    let rows = "[  4]  0.0-10.0 sec  5.50 GBytes  4.70 Gbits/sec\n[  3]  0.0-10.0 sec  5.50 GBytes  4.70 Gbits/sec\n[SUM]  0.0-10.0 sec  11.0 GBytes  9.40 Gbits/sec\n";
    assert!(is_near(one(rows).goodput_bps, 9.4e9));
    let enhanced = "[ ID] Interval            Transfer     Bandwidth        Jitter   Lost/Total  Latency avg/min/max/stdev PPS Read/Timeo/Trunc  NetPwr\n\
        [  1] 0.0000-10.0003 sec  1.15 GBytes   990 Mbits/sec   0.016 ms 12812/852311 (1.5%) 0.300/0.100/1.500/0.080 ms 83942 pps 839499/0/0  584066\n";
    let latency = one(enhanced).latency.unwrap();
    assert!(is_near(latency.average, 300.0) && is_near(latency.min, 100.0) && is_near(latency.max, 1_500.0));
}

/// The direction and the retransmissions of each result.
fn directions(text: &str) -> Vec<(String, Option<f64>, Option<u64>)> {
    let found = results(text, None);
    let of = |one: &Measurement| (one.what.clone(), one.goodput_bps, one.retransmits);
    found.measurements.iter().map(of).collect()
}

/// After iperf 3.16, `-R`: the server sends, and counts what it sends again.
#[test]
fn reversed_tests_of_iperf3_have_their_direction() {
    let rows = "[ ID] Interval           Transfer     Bitrate         Retr\n\
        [  5]   0.00-10.04  sec  10.9 GBytes  9.36 Gbits/sec   21             sender\n\
        [  5]   0.00-10.00  sec  10.9 GBytes  9.32 Gbits/sec                  receiver\n";
    let client = format!(
        "Connecting to host 10.0.0.2, port 5201\nReverse mode, remote host 10.0.0.2 is sending\n{rows}"
    );
    let received = vec![("TCP received".to_owned(), Some(9.32e9), Some(21))];
    assert_eq!(directions(&client), received);
    assert_eq!(directions(rows)[0].0, "TCP");
    let document = r#"{"start":{"connecting_to":{"host":"10.0.0.2"},"test_start":{"protocol":"TCP","num_streams":1,"reverse":1}},"end":{"sum_sent":{"bits_per_second":9.36e9,"retransmits":21,"sender":false},"sum_received":{"bits_per_second":9.32e9,"sender":false}}}"#;
    assert_eq!(directions(document), received);
    let server = document.replace("connecting_to", "accepted_connection");
    assert_eq!(directions(&server)[0].0, "TCP sent");
    let server = "Server listening on 5201 (test #1)\nAccepted connection from 10.0.0.1, port 41712\n\
        [  5]   0.00-10.04  sec  10.9 GBytes  9.36 Gbits/sec   21             sender\n";
    assert_eq!(
        directions(server),
        [("TCP sent".to_owned(), Some(9.36e9), Some(21))]
    );
    let forward = server.replace("  21             sender", "                 receiver");
    assert_eq!(directions(&forward)[0].0, "TCP");
    // iperf 2.1 marks the connection.
    let second = "Client connecting to 10.0.0.2, TCP port 5001\n[ *1] 0.0000-10.0150 sec  1.10 GBytes   941 Mbits/sec\n";
    assert_eq!(directions(second)[0].0, "TCP received");
}

/// After iperf 3.16 with `-u`: rows that were cut from their heading.
#[test]
fn datagrams_of_iperf3_are_known_by_their_columns() {
    let ends = "[  5]   0.00-10.00  sec  1.25 MBytes  1.05 Mbits/sec  0.000 ms  0/906 (0%)  sender\n\
        [  5]   0.00-10.04  sec  1.24 MBytes  1.04 Mbits/sec  0.012 ms  9/906 (0.99%)  receiver\n";
    let row = one(ends);
    assert_eq!((row.what.as_str(), row.retransmits), ("UDP", None));
    assert!(is_near(row.lost_ratio, 0.009_9) && is_near(row.jitter_us, 12.0));
    let sent = "[  5]   0.00-1.00   sec   129 KBytes  1.05 Mbits/sec  91\n";
    assert_eq!((one(sent).what.as_str(), one(sent).retransmits), ("UDP", None));
    // TCP has a window behind its retransmissions.
    let tcp = "[  5]   0.00-1.00   sec   558 MBytes  4.68 Gbits/sec    2    639 KBytes\n";
    assert_eq!((one(tcp).what.as_str(), one(tcp).retransmits), ("TCP", Some(2)));
}

/// After the documentation of qperf, and its `-v`.
#[test]
fn tests_of_qperf() {
    let text = "rc_bw:\n    bw        =   4.67 GB/sec\n    msg_rate  =  71.3 K/sec\n    msg_size  =  64 KiB (65,536)\n\
        rc_bi_bw:\n    bw  =  9.1 GB/sec\nud_lat:\n    latency  =  5.2 us\nrc_rdma_read_lat:\n    latency  =  21.4 us\n\
        ud_bw:\n    send_bw  =  676 MB/sec\n    recv_bw  =  660 MB/sec\nrc_fetch_add_mr:\n    msg_rate  =  2.5 M/sec\ntcp_bw:\n    bw  =  9.4 Gb/sec\n";
    let found = results(text, None);
    assert_eq!((found.tool, rules(&found).len()), ("qperf", 0));
    let all: Vec<(&str, Option<f64>)> = found
        .measurements
        .iter()
        .map(|one| (one.what.as_str(), one.goodput_bps.map(f64::round)))
        .collect();
    assert_eq!(
        all,
        [
            ("SEND", Some(4.67 * 8e9)),
            ("SEND", Some(9.1 * 8e9)),
            ("SEND UD", None),
            ("RDMA READ", None),
            // 660 MB/sec arrived.
            ("SEND UD", Some(5.28e9)),
            ("ATOMIC", None),
            ("TCP", Some(9.4e9)),
        ]
    );
    let rows = &found.measurements;
    assert_eq!(
        (rows[0].size_bytes, rows[0].messages_per_second),
        (Some(65_536), Some(71_300.0))
    );
    assert!(rows[1].is_bidirectional && !rows[0].is_bidirectional);
    let latency = |row: &Measurement| row.latency.map(|one| (one.kind, one.average.unwrap()));
    assert_eq!(latency(&rows[2]), Some((LatencyKind::OneWay, 5.2)));
    assert_eq!(latency(&rows[3]), Some((LatencyKind::RoundTrip, 21.4)));
    assert_eq!(rows[5].messages_per_second, Some(2.5e6));
    assert_eq!(
        rules(&results(
            "rc_bw:\n    bw  =\nrc_lat:\n    latency  =  1 us\n",
            None
        )),
        ["results.cut"]
    );
    let expectation: Expectation = "qperf.goodput<9GB/s".parse().unwrap();
    assert!(matches!(expectation.outcome(rows), Outcome::Holds(_)));
}

/// After OSU's micro-benchmarks 5.6 and 7.1. Their MB are 10^6 bytes.
#[test]
fn tables_of_osu() {
    let text = "# OSU MPI Bandwidth Test v5.6.2\n# Size      Bandwidth (MB/s)\n1                       5.90\n4194304             12080.31\n\
        # OSU MPI Latency Test v5.6.2\n# Size          Latency (us)\n0                       1.20\n8                       1.25\n\
        # OSU MPI-CUDA Allreduce Latency Test v7.1\n# Datatype: MPI_INT.\n# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations\n4                      10.10              9.0             12.2        1000\n\
        # OSU MPI Multiple Bandwidth / Message Rate Test v5.6\n# [ pairs: 2 ] [ window size: 64 ]\n# Size                  MB/s        Messages/s\n1                      10.50       10500000.00\n";
    let found = results(text, None);
    assert_eq!((found.tool, rules(&found).len()), ("osu", 0));
    let rows = &found.measurements;
    let tools: Vec<&str> = rows.iter().map(|row| row.tool.as_str()).collect();
    assert_eq!(
        tools,
        [
            "osu_bw",
            "osu_bw",
            "osu_latency",
            "osu_latency",
            "osu_allreduce",
            "osu_mbw_mr"
        ]
    );
    assert!(is_near(rows[1].goodput_bps, 12_080.31 * 8e6));
    assert_eq!(rows[1].size_bytes, Some(4_194_304));
    assert_eq!(
        rows[3].latency.map(|one| (one.kind, one.average)),
        Some((LatencyKind::OneWay, Some(1.25)))
    );
    assert_eq!(
        (rows[4].time_us, rows[4].latency, rows[4].what.as_str()),
        (Some(10.10), None, "MPI-CUDA Allreduce Latency")
    );
    assert_eq!(rows[5].messages_per_second, Some(1.05e7));
    // With `-c` the table says whether the data is right.
    let checked =
        "# OSU MPI Bandwidth Test v7.1\n# Size      Bandwidth (MB/s)        Validation\n8   40.1   Fail\n";
    assert_eq!(rules(&results(checked, None)), ["osu.wrong"]);
    assert_eq!(
        rules(&results(
            &text.replace("4194304             12080.31", "4194304"),
            None
        )),
        ["results.cut"]
    );
}

/// After ucx_perftest 1.15 (src/tools/perf/perftest.c) and libfabric's fabtests (common/shared.c).
#[test]
fn tables_of_ucx_and_libfabric() {
    let text = |title: &str, times: &str, row: &str| {
        format!(
            "| Test:         {title}      |\n| Message size: 65536      |\n|              |              |       {times} (usec)        |   bandwidth (MB/s)  |  message rate (msg/s) |\n|    Stage     | # iterations | 50.0%ile | average | overall |  average |  overall |  average  |  overall  |\n{row}\n"
        )
    };
    let bandwidth = one(&text(
        "tag match bandwidth",
        "overhead",
        "Final:                 10000      0.000     5.300     5.300    11792.45  11792.45      188679      188679",
    ));
    // 11792.45 x 2^20 x 8.
    assert!(is_near(bandwidth.goodput_bps, 11_792.45 * 8_388_608.0));
    assert_eq!((bandwidth.size_bytes, bandwidth.latency), (Some(65_536), None));
    assert_eq!(bandwidth.what, "tag match bandwidth");
    let latency = one(&text(
        "tag match latency",
        "latency",
        "Final:                 10000      1.510     1.620     1.620        4.71      4.71      617284      617284",
    ));
    let times = latency.latency.unwrap();
    assert_eq!(
        (times.kind, times.average, times.typical),
        (LatencyKind::OneWay, Some(1.62), Some(1.51))
    );
    assert_eq!(latency.goodput_bps, None);
    let cut = text(
        "tag match latency",
        "latency",
        "Final:                 10000      1.510",
    );
    assert_eq!(rules(&results(&cut, None)), ["results.cut"]);
    let table = "bytes   iters   total       time     MB/sec    usec/xfer   Mxfers/sec\n64k     1k      125m        0.01s   9876.50       6.60       0.15\n";
    let row = one(table);
    assert_eq!(
        (row.size_bytes, row.time_us, row.tool.as_str()),
        (Some(65_536), Some(6.6), "fabtests")
    );
    assert!(is_near(row.goodput_bps, 9_876.5 * 8e6));
}

/// After irtt's result.go: nanoseconds of a document, durations of Go in a text.
#[test]
fn round_trips_and_losses_of_irtt() {
    let document = r#"{"version":{"irtt":"0.9.1","protocol":1,"json_format":1},"config":{"length":60},"stats":{"rtt":{"n":599,"min":1000000,"max":9000000,"mean":2500000,"median":2000000,"stddev":400000},
        "send_delay":{"min":1,"max":2,"mean":700000,"median":600000,"stddev":3},"receive_delay":{},"packets_sent":600,"packets_received":594,"packet_loss_percent":1,
        "ipdv_round_trip":{"min":0,"max":5,"mean":50000,"median":40000,"stddev":3}},"round_trips":[]}"#;
    let text = "[Connecting] connecting to 10.0.0.2\n\n                         Min     Mean   Median      Max   Stddev\n                         ---     ----   ------      ---   ------\n                RTT      1ms    2.5ms      2ms      9ms  400\u{b5}s\n         send delay      1ns    700\u{b5}s    600\u{b5}s      2ns      3ns\n      IPDV (jitter)       0s     50\u{b5}s     40\u{b5}s      5ns      3ns\n\n                duration: 1m0s (wait 4.4ms)\n   packets sent/received: 600/594 (1.00% loss)\n           packet length: 60 bytes\n";
    for text in [document, text] {
        let found = results(text, None);
        assert_eq!((found.tool, found.measurements.len()), ("irtt", 2), "{found:?}");
        let trip = &found.measurements[0];
        let latency = trip.latency.unwrap();
        assert_eq!(latency.kind, LatencyKind::RoundTrip);
        assert!(is_near(latency.average, 2_500.0) && is_near(latency.typical, 2_000.0));
        assert!(is_near(latency.max, 9_000.0) && is_near(latency.stddev, 400.0));
        assert!(is_near(trip.lost_ratio, 0.01) && is_near(trip.jitter_us, 50.0));
        assert_eq!(trip.size_bytes, Some(60));
        assert!(is_near(found.measurements[1].latency.unwrap().average, 700.0));
    }
    assert_eq!(rules(&results(&document[..300], None)), ["results.cut"]);
}

#[test]
fn cut_numbers_and_documents_are_named() {
    let table = "# OSU MPI Bandwidth Test v7.3\n# Size      Bandwidth (MB/s)\n1                       4.81\n65536                11873.25\n";
    assert_eq!(results(table, None).measurements.len(), 2);
    // A pasted text may lack its last line end.
    assert_eq!(rules(&results(table.trim_end(), None)), [] as [&str; 0]);
    let cut = &table[..table.len() - 7];
    let found = results(cut, None);
    assert_eq!(
        (found.measurements.len(), rules(&found)),
        (1, vec!["results.cut"]),
        "{cut}"
    );
    let document = "{\n \"test_info\": {\n  \"test\": \"RDMA_Write\"\n },\n \"results\": {\n  \"MsgSize\": 65536,\n  \"n_iterations\": 5000,\n  \"BW_pe";
    let found = results(document, None);
    assert_eq!(
        (found.measurements.len(), rules(&found)),
        (0, vec!["results.cut"])
    );
}

/// No operation of nccl-tests makes more of its size over time than an all-reduce: 2 (n - 1) / n (doc/PERFORMANCE.md).
#[test]
fn a_bus_bandwidth_that_fits_no_operation_is_doubted() {
    let table = |start: &str, bus: &str| {
        format!(
            "{start}#  Rank  0 Group  0 Pid   4123 on      node1 device  0 [0x1b] NVIDIA H100\n#  Rank  1 Group  0 Pid   4123 on      node1 device  1 [0x2b] NVIDIA H100\n\
             #       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong\n\
              1073741824     268435456     float     sum      -1    11658   92.10  {bus}      0    11660   92.09   92.09      0\n"
        )
    };
    // Two ranks: an all-reduce has the factor 1.
    assert_eq!(rules(&results(&table("", "92.10"), None)), [] as [&str; 0]);
    assert_eq!(rules(&results(&table("", "250.0"), None)), ["nccl.disagrees"]);
    let named = table("$ ./build/all_gather_perf -b 1G -e 1G -g 2\n", "92.10");
    // An all-gather of two ranks has 1/2.
    assert_eq!(rules(&results(&named, None)), ["nccl.disagrees"; 2]);
}
