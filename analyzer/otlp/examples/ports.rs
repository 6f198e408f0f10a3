//! Measures what the points of many switch ports cost: `cargo run --release -p roce-otlp --example ports [PORTS]`.
//!
//! Each port has 40 points a second, as Cumulus Linux sends them: 18 of the interface, six of each of three traffic classes, four of a
//! priority. They come in requests of at most 4 MiB, are decoded and become rows of the table `samples`, as in a live run.

use std::io::Write as _;

use roce_model::{SampleSeries, Time};
use roce_otlp::{MAX_REQUEST, Translator, read_json, read_protobuf};

/// Seconds that are simulated.
const SECONDS: u64 = 10;

const INTERFACE: [&str; 18] = [
    "if_in_octets",
    "if_out_octets",
    "if_in_ucast_pkts",
    "if_in_multicast_pkts",
    "if_in_broadcast_pkts",
    "if_out_ucast_pkts",
    "if_out_multicast_pkts",
    "if_out_broadcast_pkts",
    "if_in_discards",
    "if_out_discards",
    "if_in_errors",
    "if_out_errors",
    "dot3_stats_fcs_errors",
    "dot3_in_pause_frames",
    "dot3_out_pause_frames",
    "oper_state",
    "mtu_bytes",
    "oper_aggregate_speed",
];
const CLASS: [&str; 6] = [
    "tc_tx_frames",
    "tc_tx_octet",
    "tc_tx_ecn_marked_tc",
    "tc_tx_no_buffer_discard_uc",
    "tc_tx_wred_discard",
    "tc_curr_occupancy",
];
const PRIORITY: [&str; 4] = [
    "sp_rx_pause",
    "sp_tx_pause",
    "sp_rx_pause_transition",
    "sp_rx_pause_duration",
];

/// A field of bytes.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut whole = vec![number << 3 | 2];
    let mut length = bytes.len();
    while length >= 0x80 {
        whole.push(length.to_le_bytes()[0] | 0x80);
        length >>= 7;
    }
    whole.push(length.to_le_bytes()[0]);
    whole.extend_from_slice(bytes);
    whole
}

fn text(key: &str, value: &str) -> Vec<u8> {
    [field(1, key.as_bytes()), field(2, &field(1, value.as_bytes()))].concat()
}

/// A metric of these ports at one time, in protobuf and in JSON.
fn metric(
    name: &str,
    place: Option<(&str, &str)>,
    ports: std::ops::Range<u32>,
    time: u64,
) -> (Vec<u8>, String) {
    let (mut data, mut lines) = (Vec::new(), Vec::new());
    for port in ports {
        let port = format!("swp{port}");
        let mut one = field(7, &text("interface", &port));
        let mut attributes = format!(r#"{{"key":"interface","value":{{"stringValue":"{port}"}}}}"#);
        if let Some((key, value)) = place {
            one.extend(field(7, &text(key, value)));
            let more = format!(r#",{{"key":"{key}","value":{{"stringValue":"{value}"}}}}"#);
            attributes.push_str(&more);
        }
        let value = roce_model::value_of(time % 1_000_003);
        one.push(3 << 3 | 1);
        one.extend(time.to_le_bytes());
        one.push(4 << 3 | 1);
        one.extend(value.to_le_bytes());
        data.extend(field(1, &one));
        lines.push(format!(
            r#"{{"attributes":[{attributes}],"timeUnixNano":"{time}","asDouble":{value}}}"#
        ));
    }
    let unit = match name {
        "tc_curr_occupancy" => "By",
        "sp_rx_pause_duration" => "us",
        _ => "",
    };
    let name = format!("nvswitch_interface_{name}");
    let whole = [
        field(1, name.as_bytes()),
        field(3, unit.as_bytes()),
        field(5, &data),
    ]
    .concat();
    let json = format!(
        r#"{{"name":"{name}","unit":"{unit}","gauge":{{"dataPoints":[{}]}}}}"#,
        lines.join(",")
    );
    (field(2, &whole), json)
}

/// The requests of one second: 64 ports each, as of one switch.
fn requests(ports: u32, time: u64) -> Vec<(Vec<u8>, String)> {
    let mut requests = Vec::new();
    for (switch, first) in (0..ports).step_by(64).enumerate() {
        let all = first..(first + 64).min(ports);
        let mut metrics: Vec<(Vec<u8>, String)> = Vec::new();
        metrics.extend(INTERFACE.map(|name| metric(name, None, all.clone(), time)));
        for class in ["0", "3", "6"] {
            metrics.extend(CLASS.map(|name| metric(name, Some(("tc", class)), all.clone(), time)));
        }
        metrics.extend(PRIORITY.map(|name| metric(name, Some(("sp", "3")), all.clone(), time)));
        let leaf = format!("leaf{switch}");
        let bytes: Vec<u8> = metrics.iter().flat_map(|(bytes, _)| bytes.clone()).collect();
        let lines: Vec<&str> = metrics.iter().map(|(_, json)| json.as_str()).collect();
        let resource = field(1, &field(1, &text("host.name", &leaf)));
        let request = field(1, &[resource, field(2, &bytes)].concat());
        let json = format!(
            r#"{{"resourceMetrics":[{{"resource":{{"attributes":[{{"key":"host.name","value":{{"stringValue":"{leaf}"}}}}]}},"scopeMetrics":[{{"metrics":[{}]}}]}}]}}"#,
            lines.join(",")
        );
        assert!(request.len() <= MAX_REQUEST && json.len() <= MAX_REQUEST);
        requests.push((request, json));
    }
    requests
}

/// Time that this thread has had on a processor (Linux Documentation/scheduler/sched-stats.rst): other work does not count.
fn on_cpu() -> std::time::Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = text.split(' ').next().and_then(|nanos| nanos.parse().ok());
    std::time::Duration::from_nanos(nanos.unwrap_or(0))
}

fn main() -> std::io::Result<()> {
    let ports = std::env::args()
        .nth(1)
        .and_then(|text| text.parse().ok())
        .unwrap_or(1_000);
    let mut out = std::io::stdout();
    for is_json in [false, true] {
        let (mut translator, mut series) = (Translator::new(None), SampleSeries::default());
        let (mut samples, mut rows, mut bytes) = (Vec::new(), 0, 0);
        let mut spent = std::time::Duration::ZERO;
        for second in 1..=SECONDS {
            let requests = requests(ports, 1_767_225_600_000_000_000 + Time(second * 1_000_000_000).0);
            let begun = on_cpu();
            for (request, json) in &requests {
                samples.clear();
                let read = if is_json {
                    bytes += json.len();
                    read_json(json.as_bytes(), &mut translator, &mut samples)
                } else {
                    bytes += request.len();
                    read_protobuf(request, &mut translator, &mut samples)
                };
                assert!(read.is_ok(), "{read:?}");
                for sample in &samples {
                    rows += series.row(sample, None).encode().len();
                }
            }
            spent += on_cpu().saturating_sub(begun);
        }
        let points = translator.tally().taken;
        let each = spent.as_secs_f64() / roce_model::value_of(SECONDS);
        writeln!(
            out,
            "{}: {ports} ports, {points} points and {bytes} bytes in {SECONDS} s, {rows} bytes of rows: {:.2} % of a core, {:.0} ns a point",
            if is_json { "JSON" } else { "protobuf" },
            100.0 * each,
            1e9 * spent.as_secs_f64() / roce_model::value_of(points),
        )?;
    }
    Ok(())
}
