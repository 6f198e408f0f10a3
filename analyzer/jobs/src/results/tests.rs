//! The samples of `tests/data/results` are outputs as the tools print them; expected values are arithmetic on the numbers in them.

use proptest::prelude::*;

use super::*;
use crate::nccl::Edge;

mod units;

const BANDWIDTH: &str = include_str!("../../../../tests/data/results/rdma_bw.txt");
const LATENCY: &str = include_str!("../../../../tests/data/results/rdma_lat.txt");
const TCP: &str = include_str!("../../../../tests/data/results/tcp.json");
const NCCL: &str = include_str!("../../../../tests/data/results/nccl.txt");
const BENCH: &str = include_str!("../../../../tests/data/results/bench.txt");
const TABLE: &str = include_str!("../../../../tests/data/results/table.txt");
const LOG: &str = include_str!("../../../../tests/data/results/nccl.log");

fn one(text: &str) -> Measurement {
    let found = results(text, None);
    assert_eq!(found.measurements.len(), 1, "{found:?}");
    found.measurements[0].clone()
}

fn is_near(one: Option<f64>, other: f64) -> bool {
    one.is_some_and(|one| (one - other).abs() <= other.abs() * 1e-6)
}

fn rules(found: &Results) -> Vec<&'static str> {
    found.remarks.iter().map(|remark| remark.rule).collect()
}

#[test]
fn megabytes_of_perftest_are_powers_of_two() {
    let row = one(BANDWIDTH);
    // 4555.02 x 2^20 x 8.
    assert!(is_near(row.goodput_bps, 38_210_281_308.16), "{row:?}");
    assert!(is_near(row.messages_per_second, 72_880.0));
    assert_eq!(
        (
            row.tool.as_str(),
            row.what.as_str(),
            row.size_bytes,
            row.streams,
            row.mtu
        ),
        ("ib_write_bw", "RDMA WRITE", Some(65_536), Some(1), Some(2_048))
    );
    assert!(
        results(BANDWIDTH, None).remarks.is_empty(),
        "0.072880e6 x 65,536 x 8 is 38.21e9"
    );
    let gigabits = BANDWIDTH.replace("MB/sec", "Gb/sec").replace("4555.02", "38.21");
    assert!(is_near(one(&gigabits).goodput_bps, 38.21e9));
    let wrong = BANDWIDTH.replace("0.072880", "0.062880");
    assert_eq!(rules(&results(&wrong, None)), ["perftest.disagrees"]);
    // 6.977012e6 x 2 x 8 is 0.1116e9: two digits behind the point.
    let small = gigabits
        .replace("65536", "2")
        .replace("38.21", "0.11")
        .replace("0.072880", "6.977012");
    assert!(results(&small, None).remarks.is_empty());
    assert_eq!(
        rules(&results(&small.replace("0.11", "0.13"), None)),
        ["perftest.disagrees"]
    );
    let server =
        format!("************************************\n* Waiting for client to connect... *\n{BANDWIDTH}");
    assert!(one(&server).is_server);
    assert!(one(&BANDWIDTH.replace("BW Test", "Bidirectional BW Test")).is_bidirectional);
}

#[test]
fn a_rate_of_zero_is_none() {
    // perftest 4.5 prints this in an emulated machine.
    let zero = BANDWIDTH
        .replace("4555.75", "0.000000")
        .replace("4555.02", "0.000000")
        .replace("0.072880", "0.000000");
    let found = results(&zero, None);
    assert_eq!(rules(&found), ["perftest.no_rate"]);
    assert_eq!(
        (
            found.measurements[0].goodput_bps,
            found.measurements[0].messages_per_second
        ),
        (None, None)
    );
    assert_eq!(when(&zero), None);
}

#[test]
fn when_a_tool_ran() {
    // 5,000 messages at 72,880 a second.
    let Some(When::Lasted(seconds)) = when(BANDWIDTH) else {
        panic!("{:?}", when(BANDWIDTH));
    };
    assert!((seconds - 5_000.0 / 72_880.0).abs() < 1e-9, "{seconds}");
    // 1,000 round trips of twice 14.37 us.
    let titled = format!("                    RDMA_Write Latency Test\n{LATENCY}");
    let Some(When::Lasted(seconds)) = when(&titled) else {
        panic!("{:?}", when(&titled));
    };
    assert!((seconds - 0.02874).abs() < 1e-9, "{seconds}");
    let timed = TCP.replace(
        "\"version\"",
        "\"timestamp\":{\"timesecs\":1700000000},\"version\"",
    );
    assert_eq!(
        when(&timed),
        Some(When::At {
            begin: 1_700_000_000.0,
            end: 1_700_000_006.01
        })
    );
    for text in ["", NCCL, TCP, "{", "hello"] {
        assert_eq!(when(text), None);
    }
}

#[test]
fn latencies_say_which_way() {
    let titled = |title: &str| format!("                    {title} Latency Test\n{LATENCY}");
    let row = one(&titled("RDMA_Write"));
    let latency = row.latency.unwrap();
    assert_eq!(
        (row.tool.as_str(), latency.kind),
        ("ib_write_lat", LatencyKind::OneWay)
    );
    assert_eq!(
        (latency.min, latency.typical, latency.average, latency.max),
        (Some(4.73), Some(14.30), Some(14.37), Some(21.70))
    );
    assert_eq!(
        (latency.stddev, latency.p99, latency.p999),
        (Some(0.82), Some(15.85), Some(21.70))
    );
    assert_eq!(
        one(&titled("RDMA_Read")).latency.unwrap().kind,
        LatencyKind::RoundTrip
    );
    // The test runs for a time.
    let row = one(
        " #bytes        #iterations       t_avg[usec]    tps average\n 2             1000            14.37           69589.42\n",
    );
    assert_eq!(row.latency.unwrap().average, Some(14.37));
    assert!(is_near(row.messages_per_second, 69_589.42));
}

#[test]
fn a_line_that_was_cut_is_no_result() {
    let cut = BANDWIDTH.split("4555.02").next().unwrap();
    let found = results(cut, None);
    assert_eq!(
        (found.measurements.len(), rules(&found)),
        (0, vec!["results.cut"])
    );
    assert_eq!(found.remarks[0].line, BANDWIDTH[..cut.len()].lines().count());
    let cut = &NCCL[..NCCL.find("440900").unwrap()];
    assert_eq!(rules(&results(cut, None)), ["results.cut"]);
}

#[test]
fn iperf3_documents() {
    let row = one(TCP);
    // Bytes that arrived count, not those sent.
    assert!(is_near(row.goodput_bps, 4_665_000_000.0));
    assert_eq!(
        (row.retransmits, row.streams, row.mtu),
        (Some(3), Some(1), Some(1_500))
    );
    assert_eq!(row.latency.unwrap().average, Some(212.0));
    assert!(is_near(row.cpu_ratio, 0.173));
    assert_eq!(results(&format!("{TCP}\n{TCP}"), None).measurements.len(), 2);
    let failed = r#"{"start":{"connected":[],"version":"iperf 3.12"},"intervals":[],"end":{},"error":"unable to connect to server: Connection refused"}"#;
    let found = results(failed, None);
    assert_eq!((found.tool, rules(&found)), ("iperf3", vec!["iperf3.failed"]));
    let cut = results(&TCP[..TCP.len() / 2], None);
    assert_eq!((cut.measurements.len(), rules(&cut)), (0, vec!["results.cut"]));
    let datagrams = r#"{"start":{"test_start":{"protocol":"UDP","num_streams":1,"blksize":1448}},"end":{"sum":{"bits_per_second":1e9,"jitter_ms":0.012,"lost_packets":5,"packets":1000,"lost_percent":0.5}}}"#;
    let row = one(datagrams);
    assert!(
        is_near(row.lost_ratio, 0.005) && is_near(row.jitter_us, 12.0),
        "{row:?}"
    );
    assert_eq!((row.what.as_str(), row.retransmits), ("UDP", None));
}

#[test]
fn text_of_iperf() {
    let single = "\
[ ID] Interval           Transfer     Bitrate         Retr  Cwnd
[  5]   0.00-1.00   sec   558 MBytes  4.68 Gbits/sec    2    639 KBytes
[  5]   1.00-2.00   sec   556 MBytes  4.66 Gbits/sec    1    639 KBytes
- - - - - - - - - - - - - - - - - - - - - - - - -
[ ID] Interval           Transfer     Bitrate         Retr
[  5]   0.00-2.00   sec  1.09 GBytes  4.67 Gbits/sec    3             sender
[  5]   0.00-2.01   sec  1.08 GBytes  4.65 Gbits/sec                  receiver
";
    let row = one(single);
    assert!(is_near(row.goodput_bps, 4.65e9), "{row:?}");
    assert_eq!(
        (row.retransmits, row.streams, row.tool.as_str()),
        (Some(3), Some(1), "iperf3")
    );
    let several = "\
[ ID] Interval       Transfer     Bandwidth
[  1] 0.0000-1.0000 sec   112 MBytes   940 Mbits/sec
[  1] 0.0000-10.0150 sec  1.10 GBytes   941 Mbits/sec
[  2] 0.0000-10.0150 sec  1.10 GBytes   939 Mbits/sec
[SUM] 0.0000-10.0150 sec  2.19 GBytes  1.88 Gbits/sec
";
    let row = one(several);
    assert!(is_near(row.goodput_bps, 1.88e9));
    assert_eq!((row.streams, row.tool.as_str()), (Some(2), "iperf"));
    // Without a sum: both connections, over the whole time.
    let without = several
        .lines()
        .filter(|line| !line.contains("SUM"))
        .collect::<Vec<_>>()
        .join("\n");
    assert!(is_near(one(&without).goodput_bps, 1.88e9));
}

#[test]
fn tables_of_nccl_tests() {
    let found = results(NCCL, None);
    assert_eq!(
        (found.measurements.len(), rules(&found).len()),
        (6, 0),
        "{found:?}"
    );
    let last = &found.measurements[4];
    assert_eq!(
        (last.what.as_str(), last.ranks, last.size_bytes, last.wrong),
        ("all_reduce out of place", Some(4), Some(1 << 30), Some(0))
    );
    // 3.66 GB/s.
    assert!(is_near(last.bus_bps, 29.28e9) && is_near(last.time_us, 440_020.0));
    let wrong = NCCL.replace("3.65       0", "3.65       3");
    assert_eq!(rules(&results(&wrong, None)), ["nccl.wrong"]);
    assert_eq!(results(&wrong, None).remarks[0].weight, Weight::Critical);
    // A bus bandwidth of other ranks.
    let other = NCCL.replace("2.44    3.66", "2.44    4.27");
    assert_eq!(rules(&results(&other, None)), ["nccl.disagrees"]);
    let old = "\
#                                                     out-of-place                       in-place
#       size         count    type   redop     time   algbw   busbw  error     time   algbw   busbw  error
#        (B)    (elements)                     (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
   134217728      33554432   float     sum  55420.0    2.42    3.63  1e-06  55300.0    2.43    3.64    N/A
";
    let found = results(old, Some(4));
    assert_eq!(
        (found.measurements.len(), rules(&found).len()),
        (2, 0),
        "{found:?}"
    );
    assert_eq!(found.measurements[1].wrong, None);
    let document = r#"{"results":[{"size":134217728,"out_of_place":{"time":55420.0,"alg_bw":2.42,"bus_bw":3.63,"nwrong":2}}]}"#;
    let found = results(document, None);
    assert_eq!(
        (found.measurements[0].size_bytes, rules(&found)),
        (Some(134_217_728), vec!["nccl.wrong"])
    );
}

#[test]
fn benchmarks_of_pytorch() {
    let row = one(BENCH);
    // 268,435,456 x 8 / 0.005249, and that times 2 x 7 / 8: 83.34 GiB/s.
    assert!(is_near(row.goodput_bps, 409_122_432_463.326), "{row:?}");
    assert!(is_near(row.bus_bps, 715_964_256_810.821));
    assert!(results(BENCH, None).remarks.is_empty());
    assert_eq!(
        rules(&results(&BENCH.replace("83.34", "95.00"), None)),
        ["pytorch.disagrees"]
    );
    let gathered =
        "[bench] op=all_gather world=8 bytes=1073741824 iters=5 avg_sec=0.07 approx_alg_BW=100.00 GiB/s";
    assert!(results(gathered, None).remarks.is_empty(), "7 x 1 GiB in 0.07 s");
    let found = results(TABLE, Some(8));
    assert_eq!(found.measurements.len(), 2);
    // 194.60 GB/s of 8 ranks: over 2 x 7 / 8.
    assert!(is_near(found.measurements[1].goodput_bps, 889.6e9), "{found:?}");
    assert_eq!(found.measurements[1].size_bytes, Some(8_000_000_000));
    let unknown = results(TABLE, None);
    assert_eq!(
        (unknown.measurements[1].goodput_bps, rules(&unknown)),
        (None, vec!["pytorch.ranks"])
    );
}

#[test]
fn a_log_of_two_ranks() {
    let found = results(LOG, None);
    let log = found.log.clone().unwrap();
    assert_eq!(log.settings["NCCL_IB_HCA"], "=mlx5_7:1,mlx5_6:1");
    assert_eq!(log.devices, ["mlx5_6:1/RoCE", "mlx5_7:1/RoCE"]);
    assert!(log.is_relaxed && log.out_of_band.contains("eth0") && log.networks.contains("IB"));
    assert_eq!((log.world, log.ranks[&4].as_str()), (Some(8), "3b000"));
    let edge = |from, to, transport: &str| Edge {
        from,
        to,
        transport: transport.to_owned(),
    };
    assert_eq!(log.edges[&edge(3, 4, "NET/IB/0/GDRDMA")], 2);
    assert!(!edge(0, 1, "P2P/CUMEM").is_network());
    assert_eq!(rules(&found), ["nccl.completion_error", "nccl.no_gpudirect"]);
    let text = &found.remarks[0].text;
    for part in [
        "IBV_WC_LOC_PROT_ERR",
        "not the network",
        "vendor_err=81",
        "10.0.106.6",
        "mlx5_11",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let status = |name: &str| results(&LOG.replace("IBV_WC_LOC_PROT_ERR(4)", name), None).remarks[0].clone();
    assert!(status("IBV_WC_RETRY_EXC_ERR(12)").text.contains("drops"));
    assert_eq!(status("IBV_WC_WR_FLUSH_ERR(5)").weight, Weight::Info);
    let sockets = results(&LOG.replace("Using network IB", "Using network Socket"), None);
    assert!(rules(&sockets).contains(&"nccl.socket"));
    let none = results("h:1:2 [0] NCCL INFO NET/IB : No device found.", None);
    assert_eq!(rules(&none), ["nccl.no_device"]);
    // Two ranks of one host that are connected by its memory.
    let local = results(
        "h:1:2 [0] NCCL INFO NET/IB : No device found.\nh:1:2 [0] NCCL INFO Using network Socket\n\
         h:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM\n",
        None,
    );
    assert_eq!(rules(&local), [""; 0]);
}

#[test]
fn an_error_without_a_meaning_of_its_own_is_quoted() {
    let found = results(
        "[ 1000.1] mlx5_core 0000:3b:00.0: mlx5_cmd_out_err:835:(pid 9): CREATE_MKEY(0x200) op_mod(0x0) failed, status limits exceeded(0x8), syndrome (0x59c8a4), err(-12)\n",
        None,
    );
    let text = &found.remarks[0].text;
    assert!(
        text.contains("CREATE_MKEY(0x200) op_mod(0x0) failed, status limits exceeded(0x8)"),
        "{text}"
    );
    assert!(!text.contains("1000.1"), "{text}");
    // A line behind it says what it is (MPICH, src/mpid/ch4/netmod/ofi/ofi_init.c): the first one is not quoted.
    let found = results(
        "Abort(1091215) on node 0 (rank 0 in comm 0): Fatal error in PMPI_Init: Other MPI error, error stack:\n\
         MPIDI_OFI_mpi_init_hook(1209): OFI addrinfo() failed (ofi_init.c:1209:MPIDI_OFI_mpi_init_hook:No data available)\n",
        None,
    );
    let text = &found.remarks[0].text;
    assert!(text.starts_with("no provider: libfabric"), "{text}");
}

#[test]
fn expectations() {
    let outcome = |condition: &str, text: &str| {
        condition
            .parse::<Expectation>()
            .unwrap()
            .outcome(&results(text, None).measurements)
    };
    // 83.34 GiB/s.
    assert!(matches!(
        outcome("pytorch.busbw<80GiB/s", BENCH),
        Outcome::Holds(_)
    ));
    assert!(matches!(
        outcome("pytorch.busbw<90GiB/s", BENCH),
        Outcome::Fails(_)
    ));
    assert!(matches!(
        outcome("ib_write_bw.goodput<38 Gbit/s", BANDWIDTH),
        Outcome::Holds(_)
    ));
    assert!(matches!(
        outcome("perftest.goodput@4096<1Gbit/s", BANDWIDTH),
        Outcome::NotMeasured
    ));
    assert!(matches!(
        outcome("perftest.latency>15us", LATENCY),
        Outcome::Holds(_)
    ));
    assert!(matches!(outcome("nccl.wrong>0", NCCL), Outcome::Holds(_)));
    for wrong in [
        "busbw>=3",
        "nccl.speed<3",
        "nccl.busbw<3",
        "nccl.busbw=3GB/s",
        "x.goodput>=1GB/s",
        "nccl.goodput@a<1GB/s",
    ] {
        assert!(wrong.parse::<Expectation>().is_err(), "{wrong}");
    }
}

#[test]
fn what_is_too_much_is_not_kept() {
    let devices: Vec<String> = (0..1_000)
        .map(|device| format!("[{device}]mlx5_{device}:1/RoCE"))
        .collect();
    let devices = devices.join(" ");
    let found = results(&format!("h:1:2 [0] NCCL INFO NET/IB : Using {devices}"), None);
    assert_eq!(found.log.unwrap().devices.len(), 64);
    let document = format!("{{\"test_start\":\"{}\"}}", "x".repeat(MAX_DOCUMENT_BYTES));
    assert_eq!(rules(&results(&document, None)), ["results.too_large"]);
    // Each column once, in a head of 100,000, and 100,000 lines.
    let head = "# size time algbw busbw ".to_owned() + &"time ".repeat(100_000);
    let text = format!("{head}\n{}", "8 1.0 1.0 1.0\n".repeat(100_000));
    let found = results(&text, None);
    // Each line has a result, whose rates disagree, and a second column of times without any: 300,000 in all, of which 20,000 are kept.
    assert_eq!((found.measurements.len(), found.left_out), (10_000, 280_000));
}

#[test]
fn other_texts_are_none() {
    for text in ["", "hello\n", "{}", "[1,2]", "# size\n", "[ ID\n"] {
        assert_eq!(results(text, None).measurements, [], "{text}");
    }
    assert_eq!(results("hello\n", None).tool, "");
}

proptest! {
    /// A table that is printed from sizes, times and ranks agrees with itself.
    #[test]
    fn tables_agree_with_their_arithmetic(ranks in 2u32..1_025, size in 1u64 << 20..1 << 34, milliseconds in 1u32..10_000, operation in 0usize..4) {
        let name = ["all_reduce", "all_gather", "broadcast", "alltoall"][operation];
        let n = f64::from(ranks);
        let factor = [2.0 * (n - 1.0) / n, (n - 1.0) / n, 1.0, (n - 1.0) / n][operation];
        #[expect(clippy::cast_precision_loss, reason = "sizes of buffers")]
        let rate = size as f64 / (f64::from(milliseconds) * 1e-3) / 1e9;
        let mut text = format!("# Collective test starting: {name}_perf\n#  Rank {} Group 0\n", ranks - 1);
        text += "#       size         count      type   redop    root     time   algbw   busbw  #wrong\n";
        let busbw = rate * factor;
        let row = format!("{size} 1 float sum -1 {milliseconds}000 {rate:.2} {busbw:.2} 0\n");
        text.push_str(&row);
        let found = results(&text, None);
        prop_assert_eq!(found.measurements.len(), 1);
        prop_assert_eq!(found.remarks, []);
    }

    /// No text makes a parser panic.
    #[test]
    fn any_cut_of_any_sample_is_read(sample in 0usize..7, cut in 0.0f64..1.0, more in "[ -~\n]{0,80}") {
        let samples = [BANDWIDTH, LATENCY, TCP, NCCL, BENCH, TABLE, LOG];
        let text = samples[sample];
        #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a place in a short text")]
        let end = (text.len() as f64 * cut) as usize;
        results(&format!("{}{more}", &text[..end]), Some(4));
    }
}

/// Both forms of a test with `--bidir` (iperf3 3.7 and later): each direction is a result of its own.
#[test]
fn both_directions_of_iperf3_stay_apart() {
    let text = "[ ID][Role] Interval           Transfer     Bitrate         Retr\n\
                [  5][TX-C]   0.00-10.00  sec  10.9 GBytes  9.36 Gbits/sec   21             sender\n\
                [  5][TX-C]   0.00-10.04  sec  10.9 GBytes  9.32 Gbits/sec                  receiver\n\
                [  7][RX-C]   0.00-10.00  sec  5.80 GBytes  5.00 Gbits/sec    4             sender\n\
                [  7][RX-C]   0.00-10.04  sec  5.80 GBytes  4.96 Gbits/sec                  receiver\n";
    let document = r#"{"start":{"test_start":{"protocol":"TCP","num_streams":1}},"end":{
        "sum_sent":{"bits_per_second":9.36e9,"retransmits":21},"sum_received":{"bits_per_second":9.32e9},
        "sum_sent_bidir_reverse":{"bits_per_second":5.00e9,"retransmits":4},"sum_received_bidir_reverse":{"bits_per_second":4.96e9}}}"#;
    for input in [text, document] {
        let found = results(input, None);
        let all: Vec<_> = found
            .measurements
            .iter()
            .map(|one| (one.what.as_str(), one.goodput_bps, one.retransmits))
            .collect();
        assert_eq!(
            all,
            [
                ("TCP sent", Some(9.32e9), Some(21)),
                ("TCP received", Some(4.96e9), Some(4))
            ],
            "{input}"
        );
    }
}

#[test]
fn errors_of_other_programs_are_no_log_of_nccl() {
    // A log with failures of perftest and of others is none of perftest.
    let mixed = " Completion with error at client\n Failed status 12: wr_id 0 syndrom 0x81\nrpcrdma: Send: transport retry counter exceeded (12/0x81)\n";
    let found = results(mixed, None);
    let by: Vec<&str> = found
        .log
        .iter()
        .flat_map(|log| &log.errors)
        .map(|error| error.program.name())
        .collect();
    assert_eq!(by, ["perftest", "NFS over RDMA of the kernel"]);
    assert!(
        !found.remarks.iter().any(|remark| remark.text.contains("says")),
        "{:?}",
        found.remarks
    );
    let found = results(
        "nvme nvme3: SEND for CQE 0x0d failed with status transport retry counter exceeded (12)\n",
        None,
    );
    let log = found.log.unwrap();
    assert_eq!(log.other_programs(), Some(vec!["NVMe of the kernel"]));
    assert!(
        found.remarks[0].text.contains("by NVMe of the kernel"),
        "{:?}",
        found.remarks
    );
    let found = results(
        "gpu5:35917:35994 [0] NCCL INFO NCCL version 2.21.5+cuda12.4\n",
        None,
    );
    assert_eq!(found.log.unwrap().other_programs(), None);
}
