//! iperf3's JSON documents and text, and iperf 2's text.

use std::collections::BTreeMap;

use serde_json::{Deserializer, Value};

use super::measured::{Latency, LatencyKind, Measurement, Results, Weight};
use super::text::{number, numbered};

/// Headers of IPv4 and TCP, with TCP's time stamps.
const IPV4_HEADERS: u64 = 52;
/// Headers of IPv6 and TCP, with TCP's time stamps.
const IPV6_HEADERS: u64 = 72;
/// Connections of a text.
const MAX_STREAMS: usize = 1_024;

/// True for iperf3's document of a test that did not begin.
pub(super) fn is_failure(start: &str) -> bool {
    start.starts_with('{') && start.contains("\"intervals\"") && start.contains("\"error\"")
}

/// True if a text has results of iperf.
pub(super) fn is_text(text: &str) -> bool {
    text.lines()
        .any(|line| line.contains("] Interval") || interval(0, line).is_some())
        || text.lines().any(|line| line.starts_with("iperf3: error"))
}

/// The tests of iperf3's JSON: one document or several, one behind the other.
pub(super) fn documents(text: &str) -> Results {
    let mut found = Results {
        tool: "iperf3",
        ..Results::default()
    };
    let mut documents = Deserializer::from_str(text).into_iter::<Value>();
    while let Some(document) = documents.next() {
        match document {
            Ok(document) => test(&mut found, &document),
            Err(error) => {
                let line = error.line();
                let text = format!("byte {}: {error}: the document was cut", documents.byte_offset());
                found.remark(Weight::Critical, "results.cut", line, text);
                break;
            }
        }
    }
    found
}

fn real(value: &Value) -> Option<f64> {
    value
        .as_f64()
        .filter(|number| number.is_finite() && *number >= 0.0)
}

fn test(found: &mut Results, document: &Value) {
    if let Some(error) = document["error"].as_str() {
        let text = format!("iperf3 says: {error}");
        found.remark(Weight::Critical, "iperf3.failed", 0, text);
    }
    // With `--bidir` the other direction has sums of its own.
    let end = &document["end"];
    let is_bidirectional = end["sum_sent_bidir_reverse"].is_object();
    let start = &document["start"];
    if is_bidirectional {
        direction(found, document, Some(Direction::Sent), "");
        direction(found, document, Some(Direction::Received), "_bidir_reverse");
    } else if start["test_start"]["reverse"] == 1 {
        // The server has the client's test in its document, and an `accepted_connection`.
        let is_server = start["accepted_connection"].is_object();
        direction(found, document, Some(Direction::reversed(is_server)), "");
    } else {
        direction(found, document, None, "");
    }
}

/// Direction of a test that is bidirectional or reversed, as the side sees it that printed the result.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Direction {
    Sent,
    Received,
}

impl Direction {
    /// Direction of a reversed test: the server sends.
    fn reversed(is_server: bool) -> Self {
        if is_server { Self::Sent } else { Self::Received }
    }

    /// The protocol with the direction.
    fn named(direction: Option<Self>, protocol: &str) -> String {
        match direction {
            None => protocol.to_owned(),
            Some(Self::Sent) => format!("{protocol} sent"),
            Some(Self::Received) => format!("{protocol} received"),
        }
    }
}

/// One direction of a test, whose sums have names that end with `suffix`.
fn direction(found: &mut Results, document: &Value, direction: Option<Direction>, suffix: &str) {
    let (start, end) = (&document["start"], &document["end"]);
    let about = &start["test_start"];
    let protocol = about["protocol"].as_str().unwrap_or("TCP");
    let what = Direction::named(direction, protocol);
    let is_datagrams = protocol == "UDP";
    let is_received = direction == Some(Direction::Received);
    let of = |name: &str| &end[format!("{name}{suffix}")];
    let (received, sent) = (of("sum_received"), of("sum_sent"));
    let sum = if is_datagrams { of("sum") } else { received };
    // Without the receiver's report iperf3 prints 0 as what arrived: then it is what was sent.
    let rate = |sum: &Value| real(&sum["bits_per_second"]);
    // A client's `sum` of datagrams is what it sent (iperf3 to 3.9 has no `sum_received`): what was lost did not arrive.
    let is_sent_alone = is_datagrams
        && !received.is_object()
        && (sum["sender"] == true || start["connecting_to"].is_object() && about["reverse"] == 0);
    let arrived = || {
        let lost = real(&sum["lost_percent"])?;
        Some(rate(sum)? * (1.0 - (lost / 100.0).min(1.0)))
    };
    let goodput = rate(received)
        .or_else(|| arrived().filter(|_| is_sent_alone))
        .filter(|rate| *rate > 0.0)
        .or_else(|| rate(sum).filter(|rate| *rate > 0.0))
        .or_else(|| rate(sent))
        .or_else(|| rate(sum));
    let Some(goodput_bps) = goodput else {
        if document["error"].is_null() {
            let text = "the document has no sum at its end: the test did not end".to_owned();
            found.remark(Weight::Critical, "results.cut", 0, text);
        }
        return;
    };
    let latencies: Vec<&Value> = end["streams"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|stream| &stream["sender"])
        // The client's own adapter measures round trips of what it sends.
        .filter(|_| !is_received)
        .collect();
    // In microseconds: the mean of the streams' means, the least and the greatest of all.
    let all = |key: &'static str| {
        latencies
            .iter()
            .filter_map(move |sender| real(&sender[key]))
            .filter(|time| *time > 0.0)
    };
    #[expect(clippy::cast_precision_loss, reason = "streams")]
    let average =
        (all("mean_rtt").count() > 0).then(|| all("mean_rtt").sum::<f64>() / all("mean_rtt").count() as f64);
    let headers = if start["connected"][0]["remote_host"]
        .as_str()
        .is_some_and(|host| host.contains(':') && !host.starts_with("::ffff:"))
    {
        IPV6_HEADERS
    } else {
        IPV4_HEADERS
    };
    let mss = start["tcp_mss_default"].as_u64().filter(|mss| *mss > 0);
    let count = |value: &Value| value.as_u64().and_then(|count| u32::try_from(count).ok());
    found.measured(Measurement {
        tool: "iperf3".to_owned(),
        size_bytes: about["blksize"].as_u64(),
        streams: count(&about["num_streams"]),
        mtu: mss
            .filter(|_| !is_datagrams)
            .and_then(|mss| u32::try_from(mss.saturating_add(headers)).ok()),
        is_bidirectional: false,
        goodput_bps: Some(goodput_bps),
        latency: average.map(|average| Latency {
            kind: LatencyKind::TcpRoundTrip,
            average: Some(average),
            min: all("min_rtt").reduce(f64::min),
            max: all("max_rtt").reduce(f64::max),
            ..Latency::default()
        }),
        retransmits: sent["retransmits"].as_u64().filter(|_| !is_datagrams),
        lost_ratio: real(&sum["lost_percent"])
            .filter(|_| is_datagrams)
            .map(|percent| percent / 100.0),
        jitter_us: real(&sum["jitter_ms"])
            .filter(|_| is_datagrams)
            .map(|milliseconds| milliseconds * 1e3),
        cpu_ratio: real(&end["cpu_utilization_percent"]["host_total"]).map(|percent| percent / 100.0),
        what,
        ..Measurement::default()
    });
}

/// The longest interval of a connection, or of their sum.
#[derive(Default)]
struct Longest {
    line: usize,
    seconds: f64,
    bps: f64,
    retransmits: Option<u64>,
    jitter_us: Option<f64>,
    lost_ratio: Option<f64>,
    /// The line has a column that datagrams alone have.
    is_datagrams: bool,
    /// The smoothed round trip at its end, in microseconds (iperf 2, `-e`).
    round_trip_us: Option<f64>,
    /// The way of datagrams: mean, least, greatest and deviation in microseconds (iperf 2, `-e`).
    one_way_us: Option<[f64; 4]>,
}

/// The results of iperf's text: the sum's line, else those of the connections together.
pub(super) fn parse(text: &str) -> Results {
    let is_third = text.contains("sender")
        || text.contains("receiver")
        || text.contains("iperf3")
        || text.contains("Retr");
    let tool = if is_third { "iperf3" } else { "iperf" };
    let mut found = Results {
        tool,
        ..Results::default()
    };
    // By role and connection, for each direction.
    let mut directions: BTreeMap<Option<Direction>, Connections<'_>> = BTreeMap::new();
    // iperf3's client says it in its head; its server has the sender's line at the end.
    let is_server = ["Accepted connection", "Server listening"]
        .iter()
        .any(|words| text.contains(words));
    let has_end = |role: &str| text.lines().any(|line| line.trim_end().ends_with(role));
    let is_reversed = text.contains("Reverse mode, remote host")
        || is_server && has_end(" sender") && !has_end(" receiver");
    let mut first_round_trips = Vec::new();
    for (at, line) in numbered(text) {
        if line.contains("error - ") {
            let text = format!("iperf says: {}", line.trim());
            found.remark(Weight::Critical, "iperf3.failed", at, text);
        }
        first_round_trips.extend(first_round_trip(line).filter(|_| first_round_trips.len() < MAX_STREAMS));
        let Some((direction, role, name, interval)) = interval(at, line) else {
            continue;
        };
        // iperf 2 marks connections of `--reverse` by a star.
        let is_reversed = is_reversed || name.starts_with('*');
        let direction = direction.or_else(|| is_reversed.then(|| Direction::reversed(is_server)));
        let longest = directions.entry(direction).or_default();
        if longest.len() < MAX_STREAMS || longest.contains_key(&(role, name)) {
            let known = longest.entry((role, name)).or_default();
            if interval.seconds >= known.seconds {
                *known = interval;
            }
        }
    }
    for (direction, longest) in &directions {
        if let Some(measurement) = summed(text, tool, *direction, longest, &first_round_trips) {
            found.measured(measurement);
        }
    }
    found
}

/// Longest intervals by role and connection.
type Connections<'a> = BTreeMap<(&'static str, &'a str), Longest>;

/// The result of one direction; `None`: it has no interval.
fn summed(
    text: &str,
    tool: &str,
    direction: Option<Direction>,
    longest: &Connections<'_>,
    first_round_trips: &[f64],
) -> Option<Measurement> {
    let is_third = tool == "iperf3";
    let roles = ["receiver", "", "sender"];
    let has = |role: &str| longest.keys().any(|(of, _)| *of == role);
    let role = roles.into_iter().find(|role| has(role))?;
    // A text with final lines has intervals without a role, too.
    let role = if role.is_empty() && has("sender") {
        "sender"
    } else {
        role
    };
    let of_role = || longest.iter().filter(|((of, _), _)| *of == role);
    let streams = of_role().filter(|((_, name), _)| *name != "SUM").count();
    let sum = longest.get(&(role, "SUM"));
    let first = sum.or_else(|| of_role().next().map(|(_, one)| one));
    let is_datagrams = longest.values().any(|one| one.is_datagrams)
        || ["Lost/Total", ", UDP port ", "datagrams"]
            .iter()
            .any(|words| text.contains(words));
    let sent = longest.get(&("sender", "SUM")).or_else(|| {
        longest
            .iter()
            .find(|((of, _), _)| *of == "sender")
            .map(|(_, one)| one)
    });
    Some(Measurement {
        line: first.map_or(0, |first| first.line),
        tool: tool.to_owned(),
        what: Direction::named(direction, if is_datagrams { "UDP" } else { "TCP" }),
        streams: u32::try_from(streams).ok(),
        goodput_bps: sum
            .map(|sum| sum.bps)
            .or_else(|| Some(of_role().map(|(_, one)| one.bps).sum())),
        // iperf 2 does not say which side an interval is of.
        retransmits: sent
            .or(first.filter(|_| !is_third))
            .and_then(|sent| sent.retransmits)
            .filter(|_| !is_datagrams),
        jitter_us: first.and_then(|first| first.jitter_us),
        lost_ratio: first.and_then(|first| first.lost_ratio),
        latency: latency(
            &of_role()
                .filter_map(|(_, one)| one.round_trip_us)
                .collect::<Vec<_>>(),
            LatencyKind::TcpRoundTrip,
        )
        .or_else(|| latency(first_round_trips, LatencyKind::TcpFirst))
        .or_else(|| {
            let [average, min, max, stddev] = first?.one_way_us?.map(Some);
            Some(Latency {
                kind: LatencyKind::OneWay,
                min,
                average,
                max,
                stddev,
                ..Latency::default()
            })
        }),
        ..Measurement::default()
    })
}

/// The latency that several connections have.
fn latency(times: &[f64], kind: LatencyKind) -> Option<Latency> {
    #[expect(clippy::cast_precision_loss, reason = "streams")]
    let count = times.len() as f64;
    (!times.is_empty()).then(|| Latency {
        kind,
        min: times.iter().copied().reduce(f64::min),
        average: Some(times.iter().sum::<f64>() / count),
        max: times.iter().copied().reduce(f64::max),
        ..Latency::default()
    })
}

/// iperf 2 prints the round trip of a connection's first segments behind its addresses: `(icwnd/mss/irtt=14/1448/274)`, in microseconds.
fn first_round_trip(line: &str) -> Option<f64> {
    let (names, values) = line.rsplit_once('(')?.1.split_once('=')?;
    let place = names.split('/').position(|name| name == "irtt")?;
    number(values.split(['/', ')']).nth(place)?)
}

/// A line such as `[  5]   0.00-6.00   sec  3.27 GBytes  4.67 Gbits/sec    3             sender`: role, connection and values.
/// With `--bidir` the direction stands behind the connection: `[  5][TX-C]`, `[  7][RX-C]`, and `TX-S` of the server.
fn interval(at: usize, line: &str) -> Option<(Option<Direction>, &'static str, &str, Longest)> {
    let rest = line.trim_start().strip_prefix('[')?;
    let (name, rest) = rest.split_once(']')?;
    let (direction, rest) = match rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some(("TX-C" | "TX-S", rest)) => (Some(Direction::Sent), rest),
        Some(("RX-C" | "RX-S", rest)) => (Some(Direction::Received), rest),
        _ => (None, rest),
    };
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let second = fields.iter().position(|field| *field == "sec")?;
    let (begin, end) = fields.get(second.checked_sub(1)?)?.split_once('-')?;
    let rate = fields
        .iter()
        .position(|field| field.ends_with("bits/sec"))
        .filter(|rate| *rate > second)?;
    let unit = match *fields.get(rate)? {
        "bits/sec" => 1.0,
        "Kbits/sec" => 1e3,
        "Mbits/sec" => 1e6,
        "Gbits/sec" => 1e9,
        "Tbits/sec" => 1e12,
        _ => return None,
    };
    let role = match *fields.last()? {
        "sender" => "sender",
        "receiver" => "receiver",
        _ => "",
    };
    let behind = fields.get(rate + 1..).unwrap_or_default();
    let jitter = behind.iter().position(|field| *field == "ms");
    let enhanced = enhanced(behind);
    // The client's rows of datagrams have their count alone; those of TCP have a window, too.
    let is_counted_alone = matches!(behind, [count] if count.parse::<u64>().is_ok());
    let percent = behind
        .iter()
        .find_map(|field| field.strip_prefix('(')?.strip_suffix("%)"));
    Some((
        direction,
        role,
        name.trim(),
        Longest {
            line: at,
            seconds: number(end)? - number(begin)?,
            bps: number(fields.get(rate.checked_sub(1)?)?)? * unit,
            retransmits: enhanced
                .map(|(count, _)| count)
                .or_else(|| behind.first().filter(|_| jitter.is_none())?.parse().ok()),
            round_trip_us: enhanced.map(|(_, time)| time),
            jitter_us: jitter
                .and_then(|jitter| number(behind.get(jitter.checked_sub(1)?)?))
                .map(|milliseconds| milliseconds * 1e3),
            is_datagrams: jitter.is_some() || percent.is_some() || is_counted_alone,
            lost_ratio: percent.and_then(number).map(|percent| percent / 100.0),
            one_way_us: one_way(behind),
        },
    ))
}

/// Retransmissions and round trip of iperf 2 with `-e`: `89456/0  3  3145K/412(29) us`, which are writes, retransmissions, window and time.
fn enhanced(behind: &[&str]) -> Option<(u64, f64)> {
    let unit = behind.iter().position(|field| *field == "us")?;
    let (_, time) = behind.get(unit.checked_sub(1)?)?.split_once('/')?;
    let count = behind.get(unit.checked_sub(2)?)?.parse().ok()?;
    Some((count, number(time.split('(').next()?)?))
}

/// Latency of iperf 2's datagrams with `-e`: `0.211/0.105/1.331/0.088 ms`, which are mean, least, greatest and deviation. The clocks of both
/// hosts have to agree.
fn one_way(behind: &[&str]) -> Option<[f64; 4]> {
    let (times, unit) = behind
        .iter()
        .zip(behind.iter().skip(1))
        .find(|(times, unit)| times.matches('/').count() == 3 && (**unit == "ms" || **unit == "us"))?;
    let scale = if *unit == "ms" { 1e3 } else { 1.0 };
    let mut values = times.split('/').map(|time| number(time).map(|time| time * scale));
    Some([values.next()??, values.next()??, values.next()??, values.next()??])
}
