//! Reading and writing against a server that speaks as much of S3 as these requests take, and misbehaves on request.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use object_store::aws::AmazonS3Builder;
use object_store::{ClientOptions, RetryConfig};

use crate::{Client, Error, Location};

const CANARY: &str = "CANARY-secret-key";

/// A request as it came.
#[derive(Clone, Debug)]
struct Request {
    /// Method and path with its query.
    line: String,
    headers: Vec<(String, String)>,
    body: usize,
}

impl Request {
    fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(known, _)| known == name);
        found.next().map(|(_, value)| value.as_str())
    }

    /// `bytes=FIRST-LAST`, inclusive (RFC 9110, 14.1.2).
    fn range(&self) -> Option<(usize, usize)> {
        let (first, last) = self.header("range")?.strip_prefix("bytes=")?.split_once('-')?;
        Some((first.parse().ok()?, last.parse().ok()?))
    }
}

/// An answer: its head without lengths, the bytes that come, and the length that it claims.
struct Answer {
    head: String,
    body: Vec<u8>,
    claims: usize,
}

impl Answer {
    fn of(status: &str, headers: &str, body: impl Into<Vec<u8>>) -> Self {
        let body = body.into();
        Self {
            head: format!("HTTP/1.1 {status}\r\n{headers}"),
            claims: body.len(),
            body,
        }
    }
}

struct Server {
    client: Arc<Client>,
    seen: Arc<Mutex<Vec<Request>>>,
}

impl Server {
    /// The thread ends with the test's process.
    fn new(mut answer: impl FnMut(usize, &Request) -> Answer + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let requests = Arc::clone(&seen);
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                let mut connection = connection.unwrap();
                let Some(request) = request(&mut connection) else {
                    continue;
                };
                let number = {
                    let mut all = requests.lock().unwrap();
                    all.push(request.clone());
                    all.len() - 1
                };
                let answer = answer(number, &request);
                let head = format!(
                    "{}content-length: {}\r\nconnection: close\r\n\r\n",
                    answer.head, answer.claims
                );
                let _ = connection.write_all(head.as_bytes());
                if !request.line.starts_with("HEAD") {
                    let _ = connection.write_all(&answer.body);
                }
            }
        });
        let store = AmazonS3Builder::new()
            .with_bucket_name("b")
            .with_region("us-east-1")
            .with_endpoint(format!("http://{address}"))
            .with_access_key_id("id")
            .with_secret_access_key(CANARY)
            .with_client_options(ClientOptions::new().with_allow_http(true))
            .with_retry(RetryConfig {
                max_retries: 0,
                ..RetryConfig::default()
            })
            .build()
            .unwrap();
        Self {
            client: Arc::new(Client::with("b", Arc::new(store))),
            seen,
        }
    }

    fn seen(&self) -> Vec<Request> {
        self.seen.lock().unwrap().clone()
    }

    fn lines(&self) -> Vec<String> {
        self.seen().into_iter().map(|request| request.line).collect()
    }
}

fn request(connection: &mut TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(connection);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut headers = Vec::new();
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        let Some((name, value)) = header.trim_end().split_once(": ") else {
            break;
        };
        headers.push((name.to_ascii_lowercase(), value.to_owned()));
    }
    let mut request = Request {
        line: line.rsplit_once(' ')?.0.to_owned(),
        headers,
        body: 0,
    };
    let length: u64 = request
        .header("content-length")
        .and_then(|text| text.parse().ok())
        .unwrap_or(0);
    request.body =
        usize::try_from(std::io::copy(&mut reader.take(length), &mut std::io::sink()).ok()?).ok()?;
    Some(request)
}

fn place(key: &str) -> Location {
    Location::parse(&format!("s3://b/{key}")).unwrap()
}

const ABOUT: &str = "etag: \"one\"\r\nlast-modified: Thu, 01 Jan 2026 00:00:00 GMT\r\n";

/// The bytes of a range, of which `most` come.
fn ranged(data: &[u8], request: &Request, etag: &str, most: usize) -> Answer {
    let (first, last) = request.range().unwrap();
    let last = last.min(data.len() - 1);
    let body = &data[first..=last];
    Answer {
        head: format!(
            "HTTP/1.1 206 Partial Content\r\netag: \"{etag}\"\r\nlast-modified: Thu, 01 Jan 2026 00:00:00 GMT\r\n\
             content-range: bytes {first}-{last}/{}\r\n",
            data.len()
        ),
        claims: body.len(),
        body: body[..body.len().min(most)].to_vec(),
    }
}

fn data(bytes: usize) -> Vec<u8> {
    (0..bytes)
        .map(|at| u8::try_from(at * 31 % 251).unwrap())
        .collect()
}

#[test]
fn a_cut_read_goes_on_where_it_was_cut_and_in_the_same_object() {
    let whole = data(100_000);
    let copy = whole.clone();
    // Each answer ends after 30,000 bytes: four answers are needed.
    let server = Server::new(move |_, request| {
        if request.line.starts_with("HEAD") {
            return Answer::of("200 OK", ABOUT, copy.clone());
        }
        ranged(&copy, request, "one", 30_000)
    });
    let mut object = server.client.open(&place("a.pcap")).unwrap();
    assert_eq!(object.size(), 100_000);
    let mut read = Vec::new();
    object.read_to_end(&mut read).unwrap();
    assert!(read == whole);
    let seen = server.seen();
    assert_eq!(seen[0].line, "HEAD /b/a.pcap");
    let starts: Vec<_> = seen[1..]
        .iter()
        .map(|request| request.range().unwrap().0)
        .collect();
    assert_eq!(starts, [0, 30_000, 60_000, 90_000]);
    assert!(
        seen[1..]
            .iter()
            .all(|request| request.header("if-match") == Some("\"one\"")),
        "{seen:?}"
    );
}

#[test]
fn an_object_that_was_replaced_is_an_error_with_the_offset() {
    let whole = data(100_000);
    let server = Server::new(move |number, request| match number {
        0 => Answer::of("200 OK", ABOUT, whole.clone()),
        1 => ranged(&whole, request, "one", 40_000),
        _ => Answer::of("412 Precondition Failed", "", ""),
    });
    let mut object = server.client.open(&place("a.pcap")).unwrap();
    let mut read = Vec::new();
    let error = object.read_to_end(&mut read).unwrap_err().to_string();
    assert_eq!(read.len(), 40_000, "all that came before is there");
    assert_eq!(error, "s3://b/a.pcap: replaced at byte 40000 while it was read");
    assert_eq!(object.read(&mut [0; 10]).unwrap(), 0);
}

#[test]
fn a_store_that_stays_away_is_an_error_after_some_attempts() {
    let whole = data(50_000);
    let server = Server::new(move |number, request| match number {
        0 => Answer::of("200 OK", ABOUT, whole.clone()),
        1 => ranged(&whole, request, "one", 10_000),
        _ => Answer::of("503 Slow Down", "", format!("<Error>try later {CANARY}</Error>")),
    });
    let mut object = server.client.open(&place("a.pcap")).unwrap();
    let mut read = Vec::new();
    let error = object.read_to_end(&mut read).unwrap_err().to_string();
    assert_eq!(read.len(), 10_000);
    assert!(
        error.starts_with("s3://b/a.pcap: cannot be read at byte 10000: "),
        "{error}"
    );
    // One HEAD, the GET that is cut, which is the first failure of six, and five attempts.
    assert_eq!(server.seen().len(), 7);
}

#[test]
fn missing_and_refused_objects_differ_and_are_final() {
    let server = Server::new(|_, request| match request.line.as_str() {
        "HEAD /b/none" => Answer::of("404 Not Found", "", ""),
        _ => Answer::of("403 Forbidden", "", ""),
    });
    assert!(matches!(
        server.client.open(&place("none")),
        Err(Error::Missing { .. })
    ));
    let refused = server.client.open(&place("secret")).unwrap_err();
    assert!(matches!(refused, Error::Refused { .. }), "{refused:?}");
    assert!(!format!("{refused} {refused:?}").contains(CANARY));
    assert_eq!(server.seen().len(), 2, "neither is tried a second time");
}

#[test]
fn an_empty_object_has_no_bytes() {
    let server = Server::new(|_, _| Answer::of("200 OK", ABOUT, ""));
    let mut object = server.client.open(&place("empty")).unwrap();
    assert_eq!(object.read(&mut [0; 10]).unwrap(), 0);
    assert_eq!(server.seen().len(), 1);
}

/// Answers of a store that takes everything.
fn takes(_: usize, request: &Request) -> Answer {
    let line = &request.line;
    if line.starts_with("POST") && line.ends_with("?uploads=") || line.ends_with("?uploads") {
        return Answer::of(
            "200 OK",
            "",
            "<InitiateMultipartUploadResult><Bucket>b</Bucket><Key>k</Key><UploadId>U1</UploadId></InitiateMultipartUploadResult>",
        );
    }
    if line.starts_with("POST") {
        return Answer::of(
            "200 OK",
            "",
            "<CompleteMultipartUploadResult><ETag>\"two\"</ETag></CompleteMultipartUploadResult>",
        );
    }
    if line.starts_with("DELETE") {
        return Answer::of("204 No Content", "", "");
    }
    Answer::of("200 OK", "etag: \"part\"\r\n", "")
}

#[test]
fn a_small_file_is_one_request() {
    let server = Server::new(takes);
    let file = data(70_000);
    server
        .client
        .write(&place("ds/x.parquet"), &mut &file[..], 70_000)
        .unwrap();
    assert_eq!(server.lines(), ["PUT /b/ds/x.parquet"]);
    assert_eq!(server.seen()[0].body, 70_000);
}

#[test]
fn a_large_file_is_parts_that_become_visible_together() {
    let server = Server::new(takes);
    // 20 MiB are parts of 8, 8 and 4 MiB.
    let size = 20 << 20;
    let file = data(size);
    server
        .client
        .write(&place("big"), &mut &file[..], size as u64)
        .unwrap();
    let seen = server.seen();
    let bodies: Vec<usize> = seen
        .iter()
        .filter(|request| request.line.starts_with("PUT"))
        .map(|request| request.body)
        .collect();
    assert_eq!(bodies, [8 << 20, 8 << 20, 4 << 20]);
    assert!(
        seen.last().unwrap().line.starts_with("POST /b/big?uploadId=U1"),
        "{:?}",
        server.lines()
    );
}

#[test]
fn a_file_that_is_shorter_than_said_leaves_nothing() {
    let server = Server::new(takes);
    let file = data(9 << 20);
    let error = server
        .client
        .write(&place("big"), &mut &file[..], 20 << 20)
        .unwrap_err();
    assert!(matches!(error, Error::File { .. }), "{error}");
    let lines = server.lines();
    assert!(
        lines.last().unwrap().starts_with("DELETE /b/big?uploadId=U1"),
        "{lines:?}"
    );
    assert!(
        !lines.iter().any(|line| line.starts_with("POST /b/big?uploadId")),
        "{lines:?}"
    );
    let grown = server
        .client
        .write(&place("small"), &mut &file[..], 1_000)
        .unwrap_err();
    assert!(matches!(grown, Error::File { .. }), "{grown}");
    assert!(!server.lines().iter().any(|line| line == "PUT /b/small"));
}

#[test]
fn a_store_that_refuses_a_write_says_so_without_secrets() {
    let server = Server::new(|_, _| {
        Answer::of(
            "400 Bad Request",
            "",
            format!(
                "<Error><Code>Odd</Code><Message>{}</Message></Error>",
                "x".repeat(5_000)
            ),
        )
    });
    let error = server.client.write(&place("k"), &mut &b"abc"[..], 3).unwrap_err();
    let text = error.to_string();
    assert!(
        text.starts_with("s3://b/k: cannot be written: ") && text.len() < 400,
        "{text}"
    );
    assert!(!text.contains(CANARY));
}
