//! Switches that attack whoever asks them: answers without an end, by bytes, by headers, by time.

use std::io::{self, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use super::*;

/// A part of an answer that is sent again and again.
struct EndlessAnswer {
    name: &'static str,
    head: &'static [u8],
    again: &'static [u8],
    pause: Duration,
}

const fn endless(name: &'static str, head: &'static [u8], again: &'static [u8]) -> EndlessAnswer {
    EndlessAnswer {
        name,
        head,
        again,
        pause: Duration::ZERO,
    }
}

/// Forms of RFC 9112: a header, a body up to the end of the connection, a length, chunks, answers before the last one.
const ENDLESS: [EndlessAnswer; 8] = [
    endless(
        "headers",
        b"HTTP/1.1 200 OK\r\n",
        b"x-noise: 0123456789abcdef\r\n",
    ),
    endless("one header", b"HTTP/1.1 200 OK\r\nx-noise: ", b"0123456789abcdef"),
    endless("a body", b"HTTP/1.1 200 OK\r\n\r\n", b"[[[[[[[[[[[[[[[["),
    endless(
        "a length",
        b"HTTP/1.1 200 OK\r\ncontent-length: 18446744073709551615\r\n\r\n",
        b"{\"ins_api\":{\"a\":",
    ),
    endless(
        "chunks",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
        b"10\r\n0123456789abcdef\r\n",
    ),
    endless(
        "one chunk",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffff\r\n",
        b"0123456789abcdef",
    ),
    endless(
        "answers before the last one",
        b"",
        b"HTTP/1.1 100 Continue\r\n\r\n",
    ),
    EndlessAnswer {
        pause: Duration::from_millis(20),
        ..endless("bytes in a trickle", b"HTTP/1.1 200 OK\r\n\r\n", b" ")
    },
];

/// The limits are 32 MiB and, in these tests, 0.4 s; the rest is in buffers of two hosts.
#[test]
fn an_answer_without_an_end_is_given_up() {
    for EndlessAnswer {
        name,
        head,
        again,
        pause,
    } in ENDLESS
    {
        let sent = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&sent);
        let server = Server::talking(move |stream, _| {
            if request(stream).is_none() {
                return;
            }
            let block = if pause.is_zero() {
                again.repeat(4_096)
            } else {
                again.to_vec()
            };
            let mut write = |bytes: &[u8]| -> io::Result<()> {
                stream.get_mut().write_all(bytes)?;
                count.fetch_add(bytes.len() as u64, Ordering::Relaxed);
                stream.get_mut().flush()
            };
            if write(head).is_ok() {
                while write(&block).is_ok() {
                    std::thread::sleep(pause);
                }
            }
        });
        let begun = Instant::now();
        let outcomes = server
            .client("fingerprint = \"PINNED\"")
            .ask(&questions(&["show a | json", "show b | json"]));
        // 2 requests for each of 2 forms at most, and the time to read what has come.
        assert!(
            begun.elapsed() < Duration::from_secs(20),
            "{name}: {:?}",
            begun.elapsed()
        );
        assert!(outcomes.iter().all(Result::is_err), "{name}: {outcomes:?}");
        let text = format!("{outcomes:?}");
        assert!(
            text.len() < 4_096 && !text.contains("canary"),
            "{name}: {} bytes",
            text.len()
        );
        let sent = sent.load(Ordering::Relaxed);
        assert!(
            sent < 8 * (MAX_NXAPI_BYTES + (16 << 20)),
            "{name}: {sent} bytes were taken"
        );
    }
}

#[test]
fn a_connection_that_never_speaks_tls_is_given_up() {
    for greeting in [&b""[..], b"HTTP/1.1 200 OK\r\n\r\n{}", &[0x16, 3, 3, 0xff, 0xff]] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let thread = std::thread::spawn(move || {
            let mut held = Vec::new();
            for stream in listener.incoming().take(2) {
                let mut stream = stream.unwrap();
                let _ = stream.write_all(greeting);
                held.push(stream);
            }
            std::thread::sleep(Duration::from_secs(30));
        });
        let (sender, seen) = channel();
        drop(sender);
        let server = Server {
            port,
            fingerprint: format!("sha256:{}", "0a".repeat(32)),
            certificate: String::new(),
            seen,
        };
        let begun = Instant::now();
        let outcomes = server
            .client("fingerprint = \"PINNED\"")
            .ask(&questions(&["show a | json"]));
        assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
        assert!(outcomes.iter().all(Result::is_err), "{outcomes:?}");
        // It ends with the test's process.
        drop(thread);
    }
}

/// Documents that a parser could fall over: depth, a name that is repeated, numbers beyond all types, half of a pair of surrogates.
#[test]
fn documents_of_a_hostile_switch_are_errors() {
    let deep = format!("{{\"ins_api\":{}", "{\"outputs\":".repeat(100_000));
    let arrays = format!("{{\"ins_api\":{{\"outputs\":{{\"output\":{}", "[".repeat(100_000));
    let many = format!(
        "{{\"ins_api\":{{\"outputs\":{{\"output\":[{}]}}}}}}",
        "{\"code\":\"200\",\"body\":{}},"
            .repeat(10_000)
            .trim_end_matches(',')
    );
    for body in [
        deep.as_str(),
        &arrays,
        &many,
        r#"{"ins_api":{"outputs":{"output":{"code":1e999999,"body":{}}}}}"#,
        r#"{"ins_api":{"outputs":{"output":{"code":"200","body":"\ud800"}}}}"#,
        r#"{"ins_api":{"ins_api":1,"outputs":[]},"ins_api":2}"#,
    ] {
        let unanswered = outcomes(body.as_bytes(), 2);
        assert!(unanswered.is_err(), "{}", body.get(..80).unwrap_or(body));
    }
}
