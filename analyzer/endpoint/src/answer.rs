//! The answer to one request: its path and method, and the form that the scraper wants. No sockets.

use hyper::header::{
    ACCEPT, ACCEPT_ENCODING, ALLOW, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue, VARY,
    WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use hyper::{Method, Response, StatusCode, Uri};
use roce_metrics::Format;

/// Shorter answers are not compressed.
const MIN_COMPRESSED: usize = 1024;

const PLAIN: &str = "text/plain; charset=utf-8";
const PAGE: &str = "<!DOCTYPE html>\n<html lang=\"en\"><head><title>roce-analyze</title></head>\
<body><h1>roce-analyze</h1><p><a href=\"/metrics\">Metrics</a></p><p><a href=\"/-/healthy\">Health</a></p></body></html>\n";

/// The body of an answer, before it is compressed.
pub(super) type Answer = Response<Vec<u8>>;

/// Texts that a request can ask for.
pub(super) struct AskedTexts<M, P> {
    /// Makes the text of all metrics.
    pub(super) metrics: M,
    /// Makes the text of one target, by its name and kind; `None`: there is no such target.
    pub(super) target: P,
}

/// Answers a request of a user who may read.
pub(super) fn answer<M, P>(method: &Method, uri: &Uri, headers: &HeaderMap, asked: AskedTexts<M, P>) -> Answer
where
    M: FnOnce(Format) -> String,
    P: FnOnce(&str, Option<&str>, Format) -> Option<String>,
{
    let path = uri.path();
    if !matches!(path, "/metrics" | "/probe" | "/-/healthy" | "/healthz" | "/") {
        return plain(StatusCode::NOT_FOUND, "not found\n");
    }
    if !matches!(*method, Method::GET | Method::HEAD) {
        let mut refused = plain(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD\n");
        refused
            .headers_mut()
            .insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return refused;
    }
    match path {
        "/metrics" => scrape(headers, asked.metrics),
        "/probe" => {
            // Names of targets have no character that is escaped in a query.
            let value = |key: &str| {
                let pairs = uri.query().unwrap_or_default().split('&');
                let mut pairs = pairs.filter_map(|pair| pair.split_once('='));
                pairs.find(|(name, _)| *name == key).map(|(_, value)| value)
            };
            let target =
                value("target").and_then(|name| (asked.target)(name, value("module"), format_of(headers)));
            match target {
                Some(text) => scrape(headers, |_| text),
                None => plain(
                    StatusCode::BAD_REQUEST,
                    "no such target: /probe?target=NAME with a switch or hypervisor of the inventory\n",
                ),
            }
        }
        "/" => with(StatusCode::OK, "text/html; charset=utf-8", PAGE.into()),
        _ => plain(StatusCode::OK, "healthy\n"),
    }
}

/// The answer to who may not read.
pub(super) fn unauthorized() -> Answer {
    let mut answer = plain(StatusCode::UNAUTHORIZED, "unauthorized\n");
    let realm = HeaderValue::from_static("Basic realm=\"metrics\", charset=\"UTF-8\"");
    answer.headers_mut().insert(WWW_AUTHENTICATE, realm);
    answer
}

fn format_of(headers: &HeaderMap) -> Format {
    if wants_openmetrics(headers) {
        Format::OpenMetrics
    } else {
        Format::Prometheus
    }
}

fn scrape(headers: &HeaderMap, metrics: impl FnOnce(Format) -> String) -> Answer {
    let format = format_of(headers);
    let text = metrics(format).into_bytes();
    let (body, is_compressed) = if takes_gzip(headers) && text.len() >= MIN_COMPRESSED {
        match compress(&text) {
            Ok(body) => (body, true),
            Err(_) => (text, false),
        }
    } else {
        (text, false)
    };
    let mut answer = with(StatusCode::OK, format.content_type(), body);
    let added = answer.headers_mut();
    added.insert(VARY, HeaderValue::from_static("Accept, Accept-Encoding"));
    if is_compressed {
        added.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    answer
}

fn plain(status: StatusCode, text: &str) -> Answer {
    with(status, PLAIN, text.into())
}

fn with(status: StatusCode, kind: &'static str, body: Vec<u8>) -> Answer {
    let mut answer = Response::new(body);
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    answer
}

fn compress(text: &[u8]) -> std::io::Result<Vec<u8>> {
    use std::io::Write;
    let mut out =
        flate2::write::GzEncoder::new(Vec::with_capacity(text.len() / 8), flate2::Compression::fast());
    out.write_all(text)?;
    out.finish()
}

/// Each item of a header's list, in lower case: its name, its parameters, and its weight `q`, 1 where it has none (RFC 9110, 12.4.2).
fn items(headers: &HeaderMap, name: hyper::header::HeaderName) -> Vec<(String, Vec<String>, f32)> {
    let values = headers
        .get_all(name)
        .iter()
        .filter_map(|value| value.to_str().ok());
    let items = values.flat_map(|value| value.split(',')).map(|item| {
        let mut parts = item.split(';').map(|part| part.trim().to_ascii_lowercase());
        let name = parts.next().unwrap_or_default();
        let (weights, parameters): (Vec<String>, Vec<String>) =
            parts.partition(|part| part.starts_with("q="));
        let weight = weights.first().and_then(|weight| weight[2..].parse::<f32>().ok());
        let weight = weight
            .filter(|weight| (0.0..=1.0).contains(weight))
            .unwrap_or(1.0);
        (name, parameters, weight)
    });
    items.collect()
}

/// True if OpenMetrics 1.0 is wanted by name, and no less than text. A wildcard gets text.
fn wants_openmetrics(headers: &HeaderMap) -> bool {
    let items = items(headers, ACCEPT);
    let weight = |is_wanted: &dyn Fn(&str, &[String]) -> bool| {
        let wanted = items
            .iter()
            .filter(|(name, parameters, _)| is_wanted(name, parameters));
        wanted.map(|(_, _, weight)| *weight).fold(0.0, f32::max)
    };
    let open = weight(&|name, parameters| {
        name == "application/openmetrics-text"
            && parameters
                .iter()
                .filter_map(|parameter| parameter.strip_prefix("version="))
                .all(|version| version.trim_matches('"') == "1.0.0")
    });
    let text = weight(&|name, _| matches!(name, "text/plain" | "text/*"));
    open > 0.0 && open >= text
}

fn takes_gzip(headers: &HeaderMap) -> bool {
    let items = items(headers, ACCEPT_ENCODING);
    let named = |wanted: &str| {
        items
            .iter()
            .find(|(name, ..)| name == wanted)
            .map(|(.., weight)| *weight)
    };
    named("gzip")
        .or_else(|| named("*"))
        .is_some_and(|weight| weight > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answer of a server that has one target: the Nexus switch leaf1.
    fn asked(method: &Method, uri: &str, headers: &HeaderMap, text: &str) -> Answer {
        let asked = AskedTexts {
            metrics: |_| text.to_owned(),
            target: |name: &str, module: Option<&str>, _| {
                let is_it = name == "leaf1" && module.is_none_or(|module| module == "nexus");
                is_it.then(|| text.to_owned())
            },
        };
        answer(method, &uri.parse().unwrap(), headers, asked)
    }

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pairs = pairs.iter().map(|(name, value)| {
            let name = hyper::header::HeaderName::from_static(name);
            (name, HeaderValue::from_static(value))
        });
        pairs.collect()
    }

    #[test]
    fn openmetrics_is_for_those_who_name_it() {
        for (accept, expected) in [
            // Prometheus 2.42.
            (
                "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
                true,
            ),
            // Prometheus 3 with its defaults.
            (
                "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,text/plain;version=0.0.4;q=0.2,*/*;q=0.1",
                true,
            ),
            // Prometheus with scrape_protocols that prefer the text.
            (
                "text/plain;version=0.0.4;q=0.6,application/openmetrics-text;version=1.0.0;q=0.5",
                false,
            ),
            ("application/openmetrics-text;version=0.0.1", false),
            ("application/openmetrics-text;q=0", false),
            ("application/openmetrics-text", true),
            ("Application/OpenMetrics-Text; Version=\"1.0.0\"", true),
            ("*/*", false),
            ("text/html,application/xhtml+xml,*/*;q=0.8", false),
            (";;q=,,=;q=nan", false),
        ] {
            assert_eq!(
                wants_openmetrics(&headers(&[("accept", accept)])),
                expected,
                "{accept}"
            );
        }
        assert!(!wants_openmetrics(&HeaderMap::new()));
    }

    #[test]
    fn gzip_is_for_those_who_take_it() {
        for (encodings, expected) in [
            ("gzip", true),
            ("deflate, GZIP;q=0.5", true),
            ("gzip;q=0", false),
            ("gzip;q=0, *", false),
            ("*;q=0.1", true),
            ("identity", false),
        ] {
            let found = takes_gzip(&headers(&[("accept-encoding", encodings)]));
            assert_eq!(found, expected, "{encodings}");
        }
        let headers = headers(&[("accept-encoding", "gzip")]);
        let answer = asked(&Method::GET, "/metrics", &headers, &"a 1\n".repeat(1000));
        assert_eq!(answer.headers()[CONTENT_ENCODING], "gzip");
        let mut text = String::new();
        std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(&answer.body()[..]), &mut text)
            .unwrap();
        assert_eq!(text, "a 1\n".repeat(1000));
    }

    #[test]
    fn paths_and_methods() {
        for (method, path, status) in [
            (Method::GET, "/metrics", 200),
            (Method::HEAD, "/metrics", 200),
            (Method::POST, "/metrics", 405),
            (Method::OPTIONS, "/healthz", 405),
            (Method::GET, "/-/healthy", 200),
            (Method::GET, "/healthz", 200),
            (Method::GET, "/", 200),
            (Method::GET, "/metrics/", 404),
            (Method::GET, "/../etc/passwd", 404),
            (Method::POST, "/other", 404),
            (Method::GET, "/probe?target=leaf1", 200),
            (Method::GET, "/probe?module=nexus&target=leaf1", 200),
            (Method::GET, "/probe?target=leaf1&module=sonic", 400),
            (Method::GET, "/probe?target=leaf2", 400),
            (Method::GET, "/probe?target=", 400),
            (Method::GET, "/probe", 400),
            (Method::POST, "/probe?target=leaf1", 405),
        ] {
            let answer = asked(&method, path, &HeaderMap::new(), "");
            assert_eq!(answer.status(), status, "{method} {path}");
        }
        let answer = asked(&Method::DELETE, "/metrics", &HeaderMap::new(), "");
        assert_eq!(answer.headers()[ALLOW], "GET, HEAD");
    }
}
