//! OTLP/gRPC: the unary call `MetricsService/Export` over HTTP/2, as Cumulus Linux sends it.
//!
//! Source: gRPC's "PROTOCOL-HTTP2" and its status codes; OTLP specification, "OTLP/gRPC". One call is one request: no streams, no
//! reflection, no health service. A crate was looked for and not taken: tonic brings 76 crates, and HTTP/2 is in hyper.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::time::Duration;

use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::server::conn::http2;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use roce_otlp::{PointTally, RequestForm, success};

use super::answer::Answer;
use super::receiver::Refusal;

/// The path of the call.
pub(super) const PATH: &str = "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export";
/// First bytes of a connection of HTTP/2 (RFC 9113, 3.4).
pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0";
/// Name of HTTP/2 in the handshake of TLS (ALPN).
pub(super) const ALPN: &[u8] = b"h2";

/// Calls at one time in one connection.
const MAX_STREAMS: u32 = 8;
/// Bytes of the head of a call.
const MAX_HEAD: u32 = 8 << 10;
/// Time after which a silent client is asked for a sign, and within which it has to give one.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// Fields behind the body of an answer.
#[derive(Clone)]
struct Trailers(HeaderMap);

/// The body of an answer as it is sent.
pub(super) type SentBody = UnsyncBoxBody<Bytes, Infallible>;

/// Settings of connections of HTTP/2.
pub(super) fn builder() -> http2::Builder<TokioExecutor> {
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(MAX_STREAMS)
        .max_header_list_size(MAX_HEAD)
        .keep_alive_interval(KEEP_ALIVE)
        .keep_alive_timeout(KEEP_ALIVE);
    builder
}

/// True of a call of gRPC, whatever it calls.
pub(super) fn is_call(request: &Request<Incoming>) -> bool {
    let kind = request.headers().get(CONTENT_TYPE);
    request.method() == Method::POST
        && kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc"))
}

/// The answer to a call: a message and a status behind it, or a status alone.
pub(super) fn answer(outcome: Result<PointTally, Refusal>) -> Answer {
    let mut answer = Response::new(Vec::new());
    let kind = HeaderValue::from_static("application/grpc");
    answer.headers_mut().insert(CONTENT_TYPE, kind);
    match outcome {
        Ok(tally) => {
            let message = success(RequestForm::Protobuf, &tally);
            let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
            let body = answer.body_mut();
            body.push(0);
            body.extend_from_slice(&length.to_be_bytes());
            body.extend_from_slice(&message);
            let mut trailers = HeaderMap::new();
            trailers.insert("grpc-status", HeaderValue::from_static("0"));
            answer.extensions_mut().insert(Trailers(trailers));
        }
        Err(refusal) => {
            let headers = answer.headers_mut();
            headers.insert("grpc-status", HeaderValue::from_static(code(refusal.status)));
            if let Ok(text) = HeaderValue::from_str(&percent(&refusal.text)) {
                headers.insert("grpc-message", text);
            }
        }
    }
    answer
}

/// The answer to a call of something else.
pub(super) fn unknown() -> Answer {
    answer(Err(Refusal {
        status: StatusCode::NOT_FOUND,
        text: "only MetricsService/Export".to_owned(),
    }))
}

/// The status code of gRPC. Of these, `UNAVAILABLE` and `DEADLINE_EXCEEDED` are tried again (OTLP specification, "OTLP/gRPC Response").
fn code(status: StatusCode) -> &'static str {
    match status {
        StatusCode::BAD_REQUEST => "3",       // INVALID_ARGUMENT
        StatusCode::REQUEST_TIMEOUT => "4",   // DEADLINE_EXCEEDED
        StatusCode::PAYLOAD_TOO_LARGE => "8", // RESOURCE_EXHAUSTED
        StatusCode::NOT_FOUND | StatusCode::UNSUPPORTED_MEDIA_TYPE => "12", // UNIMPLEMENTED
        StatusCode::SERVICE_UNAVAILABLE => "14", // UNAVAILABLE
        StatusCode::UNAUTHORIZED => "16",     // UNAUTHENTICATED
        _ => "13",                            // INTERNAL
    }
}

/// Text as `grpc-message` has it: `%` and what is not printable ASCII as hexadecimal digits.
fn percent(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if (b' '..=b'~').contains(&byte) && byte != b'%' {
            encoded.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

/// An answer as it is sent, with the fields behind its body.
pub(super) fn sent(mut answer: Answer) -> Response<SentBody> {
    let trailers = answer.extensions_mut().remove::<Trailers>();
    answer.map(|body| {
        let body = Full::new(Bytes::from(body));
        match trailers {
            Some(Trailers(fields)) => body
                .with_trailers(std::future::ready(Some(Ok(fields))))
                .boxed_unsync(),
            None => body.boxed_unsync(),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_percent_encoded() {
        // The example of gRPC's description: bytes outside of %x20-%x7E and `%` itself.
        assert_eq!(percent("50% of 1\u{fc}\n"), "50%25 of 1%C3%BC%0A");
    }
}
