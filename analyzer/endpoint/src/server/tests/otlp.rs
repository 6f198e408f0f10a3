//! Requests of OTLP over loopback: answers as the OTLP specification says ("OTLP/HTTP").

use std::io::Write as _;
use std::sync::Mutex;

use roce_model::Sample;

use super::*;
use crate::{SampleReceiver, Tokens};

/// Samples that came.
#[derive(Default)]
struct KeptSamples(Mutex<Vec<Sample>>);

impl SampleReceiver for KeptSamples {
    fn take(&self, samples: Vec<Sample>) -> u64 {
        self.0.lock().unwrap().extend(samples);
        0
    }
}

impl KeptSamples {
    /// Objects and values, which are forgotten.
    fn drain(&self) -> Vec<(String, f64)> {
        let samples = std::mem::take(&mut *self.0.lock().unwrap());
        samples
            .iter()
            .map(|sample| (sample.object.to_string(), sample.value))
            .collect()
    }
}

fn receiving(tokens: Tokens, limits: Limits) -> (RunningEndpoint, Arc<KeptSamples>) {
    let kept = Arc::new(KeptSamples::default());
    let samples = Arc::clone(&kept) as Arc<dyn SampleReceiver>;
    (
        RunningEndpoint::new(open().receiving(tokens, samples), limits),
        kept,
    )
}

/// A request with one point of swp1 at leaf1, in JSON.
fn json(name: &str) -> Vec<u8> {
    format!(
        r#"{{"resourceMetrics":[{{"resource":{{"attributes":[{{"key":"host.name","value":{{"stringValue":"leaf1"}}}}]}},
        "scopeMetrics":[{{"metrics":[{{"name":"{name}","gauge":{{"dataPoints":[{{"attributes":[
        {{"key":"interface","value":{{"stringValue":"swp1"}}}}],"timeUnixNano":"1","asDouble":12}}]}}}}]}}]}}]}}"#
    )
    .into_bytes()
}

/// That request in protobuf, with the value 12 as an integer: made by hand from the field numbers of `metrics.proto`.
fn protobuf() -> Vec<u8> {
    fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        let mut whole = vec![number << 3 | 2, u8::try_from(bytes.len()).unwrap()];
        whole.extend_from_slice(bytes);
        whole
    }
    let pair =
        |key: &str, value: &str| [field(1, key.as_bytes()), field(2, &field(1, value.as_bytes()))].concat();
    let time = [&[3 << 3 | 1][..], &1_u64.to_le_bytes()].concat();
    let value = [&[6 << 3 | 1][..], &12_u64.to_le_bytes()].concat();
    let point = [field(7, &pair("interface", "swp1")), time, value].concat();
    let name = field(1, b"nvswitch_interface_if_in_octets");
    let metric = [name, field(5, &field(1, &point))].concat();
    let resource = field(1, &field(1, &pair("host.name", "leaf1")));
    let scope = field(2, &field(2, &metric));
    field(1, &[resource, scope].concat())
}

/// Sends a body with these lines of the head, and returns the whole answer. The body may be longer than what is read of it.
fn post(running: &RunningEndpoint, head: &str, body: &[u8]) -> (u16, String, Vec<u8>) {
    let mut stream = running.connect();
    let head = format!("POST /v1/metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{head}\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    // A server that has refused reads no further.
    let _ = stream.write_all(body);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    let head = String::from_utf8(answer[..end].to_vec()).unwrap();
    let status = head[9..12].parse().unwrap();
    (status, head, answer[end + 4..].to_vec())
}

fn sized(lines: &str, body: &[u8]) -> String {
    format!("{lines}Content-Length: {}\r\n", body.len())
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

const JSON: &str = "Content-Type: application/json\r\n";
const PROTOBUF: &str = "Content-Type: application/x-protobuf\r\n";

#[test]
fn points_are_taken_in_both_encodings_packed_or_not() {
    let (running, kept) = receiving(Tokens::default(), Limits::default());
    let known = json("nvswitch_interface_if_in_octets");
    let packed = "Content-Encoding: gzip\r\n";
    for (head, body, kind, expected) in [
        (JSON.to_owned(), known.clone(), "application/json", &b"{}"[..]),
        (PROTOBUF.to_owned(), protobuf(), "application/x-protobuf", b""),
        (format!("{JSON}{packed}"), gzip(&known), "application/json", b"{}"),
        (
            format!("{PROTOBUF}{packed}"),
            gzip(&protobuf()),
            "application/x-protobuf",
            b"",
        ),
    ] {
        let (status, answer, text) = post(&running, &sized(&head, &body), &body);
        assert_eq!((status, text.as_slice()), (200, expected), "{answer}");
        assert!(answer.contains(&format!("content-type: {kind}")), "{answer}");
        assert_eq!(kept.drain(), [("swp1".to_owned(), 12.0)]);
    }
    // An empty request is a success.
    assert_eq!(post(&running, &sized(PROTOBUF, b""), b"").0, 200);
    // A name that nobody knows: 200, and how many points were rejected.
    let body = json("of_tomorrow");
    let (status, _, text) = post(&running, &sized(JSON, &body), &body);
    let text = String::from_utf8(text).unwrap();
    assert!(
        status == 200 && text.contains("\"rejectedDataPoints\":\"1\"") && text.contains("of_tomorrow"),
        "{text}"
    );
    assert!(kept.drain().is_empty());
    let metrics = running.ask(&get("/metrics"));
    for line in [
        "roce_otlp_points_total{outcome=\"taken\"} 4\n",
        "roce_otlp_points_total{outcome=\"unknown_name\"} 1\n",
        "roce_otlp_unknown_names 1\n",
    ] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
}

#[test]
fn what_is_no_request_is_refused_with_a_status() {
    let (running, kept) = receiving(Tokens::default(), Limits::default());
    let zeros = vec![b' '; 5 << 20];
    let bomb = gzip(&zeros);
    assert!(bomb.len() < 10_000);
    let chunked = "Transfer-Encoding: chunked\r\n";
    let mut endless = format!("{:x}\r\n", zeros.len()).into_bytes();
    endless.extend_from_slice(&zeros);
    endless.extend_from_slice(b"\r\n0\r\n\r\n");
    for (head, body, expected) in [
        (sized(JSON, b"{"), b"{".to_vec(), 400),
        (sized(PROTOBUF, &[0x0b]), vec![0x0b], 400),
        (
            sized(&format!("{JSON}Content-Encoding: gzip\r\n"), b"{}"),
            b"{}".to_vec(),
            400,
        ),
        (sized("Content-Type: text/plain\r\n", b"{}"), b"{}".to_vec(), 415),
        (sized("", b"{}"), b"{}".to_vec(), 415),
        (
            sized(&format!("{JSON}Content-Encoding: br\r\n"), b"{}"),
            b"{}".to_vec(),
            415,
        ),
        // By its length, by what comes, and by what it becomes.
        (sized(JSON, &zeros), zeros.clone(), 413),
        (format!("{JSON}{chunked}"), endless, 413),
        (
            sized(&format!("{JSON}Content-Encoding: gzip\r\n"), &bomb),
            bomb,
            413,
        ),
    ] {
        let (status, answer, _) = post(&running, &head, &body);
        assert_eq!(status, expected, "{answer}");
    }
    // google.rpc.Status: field 2 is its message; in JSON `message`.
    let (_, answer, status) = post(&running, &sized(PROTOBUF, &[0x0b]), &[0x0b]);
    assert!(
        answer.contains("content-type: application/x-protobuf"),
        "{answer}"
    );
    assert_eq!(status[0], 2 << 3 | 2);
    assert!(String::from_utf8_lossy(&status[2..]).starts_with("byte 0: a wire type"));
    let (_, _, status) = post(&running, &sized(JSON, b"{"), b"{");
    assert!(status.starts_with(br#"{"message":"#));
    let get = running.ask(&get("/v1/metrics"));
    assert!(
        get.starts_with("HTTP/1.1 405 ") && get.contains("allow: POST\r\n"),
        "{get}"
    );
    assert!(kept.drain().is_empty());
}

#[test]
fn nothing_is_taken_where_nobody_asked_for_it() {
    let running = RunningEndpoint::new(open(), Limits::default());
    let body = json("nvswitch_interface_if_in_octets");
    assert_eq!(post(&running, &sized(JSON, &body), &body).0, 404);
}

#[test]
fn a_token_sends_and_reads_nothing_else() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    writeln!(file, "# of the Collector\n0123456789abcdef").unwrap();
    let (running, kept) = receiving(Tokens::read(file.path()).unwrap(), Limits::default());
    let body = json("nvswitch_interface_if_in_octets");
    for (authorization, expected) in [
        ("", 401),
        ("Authorization: Bearer 0123456789abcdee\r\n", 401),
        ("Authorization: Basic 0123456789abcdef\r\n", 401),
        ("Authorization: Bearer 0123456789abcdef\r\n", 200),
    ] {
        let head = sized(&format!("{JSON}{authorization}"), &body);
        let (status, answer, _) = post(&running, &head, &body);
        assert_eq!(status, expected, "{answer}");
        assert_eq!(answer.contains("www-authenticate: Bearer"), expected == 401);
    }
    assert_eq!(kept.drain().len(), 1);
    for (text, expected) in [
        ("", "has no token"),
        ("# nothing\n", "has no token"),
        ("short\n", "line 1 is no token"),
        ("\n0123456789 abcdef\n", "line 2 is no token"),
    ] {
        std::fs::write(file.path(), text).unwrap();
        let error = Tokens::read(file.path()).err().unwrap().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn who_sends_too_much_at_once_is_told_to_come_back() {
    let (running, kept) = receiving(Tokens::default(), Limits::default());
    let body = json("nvswitch_interface_if_in_octets");
    let head = sized(JSON, &body);
    let begin = |stream: &mut TcpStream| {
        let begun = format!("POST /v1/metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{head}\r\n");
        stream.write_all(begun.as_bytes()).unwrap();
        stream.write_all(&body[..10]).unwrap();
    };
    // Eight bodies are in memory at one time.
    let mut slow: Vec<TcpStream> = (0..8).map(|_| running.connect()).collect();
    slow.iter_mut().for_each(begin);
    let deadline = Instant::now() + Duration::from_secs(10);
    let refused = loop {
        let (status, answer, _) = post(&running, &head, &body);
        if status == 503 {
            break answer;
        }
        assert!(Instant::now() < deadline, "never refused");
    };
    assert!(refused.contains("retry-after: 1"), "{refused}");
    kept.drain();
    for stream in &mut slow {
        stream.write_all(&body[10..]).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    }
    assert_eq!(kept.drain().len(), 8);
}

#[test]
fn a_body_that_does_not_come_ends() {
    let (running, _) = receiving(Tokens::default(), quick());
    let (status, ..) = post(&running, &format!("{JSON}Content-Length: 100\r\n"), b"{");
    assert_eq!(status, 408);
}
