//! Requests of OTLP/HTTP to a Collector: one at a time, and what its answer asks for (OTLP specification, "OTLP/HTTP Response").

use std::time::Duration;

use ureq::Agent;
use ureq::unversioned::resolver::DefaultResolver;
use ureq::unversioned::transport::{Connector as _, TcpConnector};

use crate::nxapi::Tls;
use crate::reader::ReaderError;

/// Bytes of an answer that are read: it is a sentence.
const MAX_ANSWER: u64 = 64 << 10;
/// Bytes of the head of an answer.
const MAX_HEAD: usize = 64 << 10;
/// Time for a connection, and for a whole request: the default of OpenTelemetry's exporters.
const TIMES: [Duration; 2] = [Duration::from_secs(5), Duration::from_secs(10)];

/// A Collector, or another receiver of OTLP/HTTP.
pub struct PushTarget {
    agent: Agent,
    url: String,
    authorization: Option<String>,
}

/// Outcome of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PushOutcome {
    /// It was taken.
    Taken,
    /// It can be sent again, after the time that the receiver names.
    Later(Option<Duration>, String),
    /// It may not be sent again.
    Refused(String),
}

/// An error of TLS, which NX-API uses as well, under this option's name.
fn of_push(error: ReaderError) -> ReaderError {
    match error {
        ReaderError::Nxapi(text) => ReaderError::Push(text),
        other => other,
    }
}

impl PushTarget {
    /// The receiver at a URL of http or https. `ca` is a file with the certificates that sign the receiver's; `None`: the system's.
    /// A `token` is sent with each request (RFC 6750).
    ///
    /// # Errors
    /// The URL is no such URL, or the certificates cannot be read.
    pub fn new(url: &str, ca: Option<&str>, token: Option<&str>) -> Result<Self, ReaderError> {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            // Another address may not see the token.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .proxy(None)
            .max_response_header_size(MAX_HEAD)
            .timeout_connect(Some(TIMES[0]))
            .timeout_global(Some(TIMES[1]))
            .user_agent("roce-analyze")
            .build();
        let (tcp, resolver) = (TcpConnector::default(), DefaultResolver::default());
        let agent = if url.starts_with("https://") {
            Agent::with_parts(config, tcp.chain(Tls::new(None, ca).map_err(of_push)?), resolver)
        } else if url.starts_with("http://") {
            Agent::with_parts(config, tcp, resolver)
        } else {
            return Err(ReaderError::Push(format!("'{url}' is no URL of http or https")));
        };
        Ok(Self {
            agent,
            url: whole_url(url),
            authorization: token.map(|token| format!("Bearer {token}")),
        })
    }

    /// The URL that requests are sent to.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Sends a request in protobuf, and waits for its answer.
    pub fn send(&self, request: &[u8]) -> PushOutcome {
        let mut post = self
            .agent
            .post(&self.url)
            .header("content-type", "application/x-protobuf");
        if let Some(authorization) = &self.authorization {
            post = post.header("authorization", authorization);
        }
        let mut answer = match post.send(request) {
            Ok(answer) => answer,
            // A server that cannot be reached, or disconnects, is tried again.
            Err(error) => return PushOutcome::Later(None, error.to_string()),
        };
        let status = answer.status().as_u16();
        let after = answer.headers().get("retry-after");
        let after = after.and_then(|value| value.to_str().ok()?.trim().parse().ok());
        // Read to its end, so that the connection can be used again.
        let _ = answer.body_mut().with_config().limit(MAX_ANSWER).read_to_vec();
        match status {
            200 => PushOutcome::Taken,
            429 | 502 | 503 | 504 => {
                PushOutcome::Later(after.map(Duration::from_secs), format!("status {status}"))
            }
            _ => PushOutcome::Refused(format!("status {status}")),
        }
    }
}

/// A URL with the default path of metrics where it has none.
fn whole_url(url: &str) -> String {
    let host = url.split_once("://").map_or(url, |(_, host)| host);
    match host.split_once('/') {
        None => format!("{url}/v1/metrics"),
        Some((_, "")) => format!("{url}v1/metrics"),
        Some(_) => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    #[test]
    fn a_url_without_a_path_has_that_of_metrics() {
        for (url, whole) in [
            ("http://a:4318", "http://a:4318/v1/metrics"),
            ("http://a:4318/", "http://a:4318/v1/metrics"),
            ("https://a/otlp/v1/metrics", "https://a/otlp/v1/metrics"),
        ] {
            assert_eq!(PushTarget::new(url, None, None).unwrap().url(), whole);
        }
        assert!(PushTarget::new("ftp://a", None, None).is_err());
    }

    #[test]
    fn answers_say_what_becomes_of_a_request() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        // The retryable codes of the specification are 429, 502, 503 and 504, and no others.
        let later = |after| PushOutcome::Later(after, String::new());
        let cases = [
            ("200 OK\r\n", PushOutcome::Taken),
            (
                "429 Slow\r\nRetry-After: 7\r\n",
                later(Some(Duration::from_secs(7))),
            ),
            ("502 Bad\r\n", later(None)),
            ("503 Busy\r\nRetry-After: soon\r\n", later(None)),
            ("504 Late\r\n", later(None)),
            ("400 Bad\r\n", PushOutcome::Refused(String::new())),
            ("500 Broken\r\n", PushOutcome::Refused(String::new())),
            (
                "301 Moved\r\nLocation: /x\r\n",
                PushOutcome::Refused(String::new()),
            ),
        ];
        let heads: Vec<String> = cases.iter().map(|(head, _)| (*head).to_owned()).collect();
        let server = std::thread::spawn(move || {
            for head in heads {
                let (mut stream, _) = listener.accept().unwrap();
                let mut request = [0; 4096];
                let count = stream.read(&mut request).unwrap();
                let request = String::from_utf8_lossy(&request[..count]).to_lowercase();
                assert!(request.starts_with("post /v1/metrics http/1.1\r\n"), "{request}");
                assert!(request.contains("authorization: bearer abc\r\n"), "{request}");
                assert!(
                    request.contains("content-type: application/x-protobuf\r\n"),
                    "{request}"
                );
                let answer = format!("HTTP/1.1 {head}Content-Length: 0\r\nConnection: close\r\n\r\n");
                stream.write_all(answer.as_bytes()).unwrap();
            }
        });
        let target = PushTarget::new(&url, None, Some("abc")).unwrap();
        for (head, expected) in cases {
            let outcome = match target.send(b"") {
                PushOutcome::Later(after, _) => later(after),
                PushOutcome::Refused(_) => PushOutcome::Refused(String::new()),
                PushOutcome::Taken => PushOutcome::Taken,
            };
            assert_eq!(outcome, expected, "{head}");
        }
        server.join().unwrap();
        // Nobody listens any more.
        assert!(matches!(target.send(b""), PushOutcome::Later(None, _)));
    }
}
