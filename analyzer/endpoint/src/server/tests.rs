//! The endpoint over loopback, with limits that a test can wait for.

mod otlp;

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc;
use std::time::Instant;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use tokio::sync::oneshot;

use super::*;
use crate::{Endpoint, Notices, Protection};

const QUIET: Notices = Notices {
    warn: |_| {},
    note: |_| {},
};

struct FixedSource;

impl EndpointSource for FixedSource {
    fn part(&self, format: Format) -> String {
        let mut exposition = Exposition::default();
        exposition.own(
            roce_metrics::COLLECTOR_DURATION,
            &[("collector", "host".into())],
            0.25,
        );
        exposition.part(format)
    }

    fn add(&self, _into: &mut Exposition) {}
}

/// An endpoint in a thread of its own; it ends when this is dropped.
struct RunningEndpoint {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl RunningEndpoint {
    fn new(endpoint: Endpoint, limits: Limits) -> Self {
        let address = endpoint.listeners[0].local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let (ready, is_ready) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            ready.send(()).unwrap();
            let counts = Arc::new(Counts::default());
            let stop = async {
                let _ = stopped.await;
            };
            let mut shared = SharedState::new(
                Arc::new(FixedSource),
                counts,
                endpoint.users,
                endpoint.tls,
                limits,
            );
            shared.receiver = endpoint.receiver;
            runtime.block_on(async {
                serve(listening(endpoint.listeners).unwrap(), Arc::new(shared), stop).await;
            });
        });
        is_ready.recv().unwrap();
        Self {
            address,
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    }

    /// Sends bytes and returns the whole answer.
    fn ask(&self, request: &str) -> String {
        exchange(self.connect(), request)
    }
}

impl Drop for RunningEndpoint {
    fn drop(&mut self) {
        let _ = self.stop.take().unwrap().send(());
        self.thread.take().unwrap().join().unwrap();
    }
}

fn exchange(mut stream: impl Read + Write, request: &str) -> String {
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    match stream.read_to_end(&mut answer) {
        Ok(_) => {}
        // A server that closes with unread bytes resets the connection.
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::ConnectionReset | ErrorKind::UnexpectedEof
            ) => {}
        Err(error) => panic!("{error}: {}", String::from_utf8_lossy(&answer)),
    }
    String::from_utf8(answer).unwrap()
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
}

fn open() -> Endpoint {
    Endpoint::open(&["127.0.0.1:0".parse().unwrap()], &Protection::default(), QUIET).unwrap()
}

/// Limits that a test can wait for.
fn quick() -> Limits {
    Limits {
        connections: 4,
        head: Duration::from_millis(300),
        connection: Duration::from_millis(900),
        last: Duration::from_millis(300),
    }
}

#[test]
fn answers_are_whole() {
    let running = RunningEndpoint::new(open(), Limits::default());
    let answer = running.ask(&get("/metrics"));
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(
        head.contains("content-type: text/plain; version=0.0.4; charset=utf-8"),
        "{head}"
    );
    assert!(
        head.contains(&format!("content-length: {}", body.len())),
        "{head}"
    );
    assert!(
        body.contains("roce_collector_duration_seconds{collector=\"host\"} 0.25\n"),
        "{body}"
    );
    assert!(body.contains("roce_http_connections 1\n"), "{body}");
    let open = running.ask(
        "GET /metrics HTTP/1.1\r\nHost: a\r\nAccept: application/openmetrics-text\r\nConnection: close\r\n\r\n",
    );
    assert!(open.ends_with("\n# EOF\n"), "{open}");
    // Two requests were answered with 200 before.
    let third = running.ask(&get("/metrics"));
    assert!(
        third.contains("roce_http_requests_total{code=\"200\"} 2\n"),
        "{third}"
    );

    let head = running.ask("HEAD /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assert!(
        head.starts_with("HTTP/1.1 200 OK\r\n") && head.ends_with("\r\n\r\n"),
        "{head}"
    );
    assert!(running.ask(&get("/no")).starts_with("HTTP/1.1 404 "));
    assert!(
        running
            .ask("POST /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            .starts_with("HTTP/1.1 405 ")
    );
}

#[test]
fn long_and_broken_requests_are_refused() {
    let running = RunningEndpoint::new(open(), Limits::default());
    let long = format!(
        "GET /metrics HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n",
        "x".repeat(9000)
    );
    let answer = running.ask(&long);
    assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
    let many = "X: y\r\n".repeat(MAX_HEADERS + 1);
    let answer = running.ask(&format!("GET /metrics HTTP/1.1\r\nHost: a\r\n{many}\r\n"));
    assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
    for broken in [
        "\0\0\0\0\r\n\r\n",
        "GET\r\n\r\n",
        "GET /metrics HTTP/9.9\r\n\r\n",
        "\u{16}\u{3}\u{1}\r\n\r\n",
    ] {
        let answer = running.ask(broken);
        assert!(!answer.contains("200 OK"), "{broken:?}: {answer}");
    }
    // A body that never comes does not hold up the answer.
    let answer = running
        .ask("GET /-/healthy HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 1000000\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
}

#[test]
fn slow_and_silent_clients_lose_their_connections() {
    let running = RunningEndpoint::new(open(), quick());
    let begun = Instant::now();
    // A head that comes byte by byte and never ends.
    let mut slow = running.connect();
    let mut closed = false;
    for _ in 0..40 {
        std::thread::sleep(Duration::from_millis(50));
        if slow.write_all(b"G").is_err() {
            closed = true;
            break;
        }
    }
    assert!(closed || slow.read(&mut [0; 64]).is_ok());
    assert!(begun.elapsed() < Duration::from_secs(5));
    // Idle from the start, and idle behind an answer.
    let mut silent = running.connect();
    assert!(
        matches!(silent.read(&mut [0; 512]), Ok(0) | Err(_))
            || silent.read(&mut [0; 512]).is_ok_and(|read| read == 0)
    );
    let answer = running.ask("GET /-/healthy HTTP/1.1\r\nHost: a\r\n\r\n");
    assert!(
        answer.starts_with("HTTP/1.1 200 "),
        "it is closed by the server: {answer}"
    );
}

#[test]
fn a_silent_connection_gives_its_place_to_the_next_one() {
    let running = RunningEndpoint::new(open(), quick());
    let silent: Vec<TcpStream> = (0..4).map(|_| running.connect()).collect();
    std::thread::sleep(Duration::from_millis(50));
    let begun = Instant::now();
    let answer = running.ask(&get("/-/healthy"));
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    // It waits for none of the 250 ms that are left to the silent ones.
    assert!(
        begun.elapsed() < Duration::from_millis(150),
        "{:?}",
        begun.elapsed()
    );
    drop(silent);
}

#[test]
fn who_has_no_password_reads_nothing() {
    let endpoint = Endpoint {
        users: Users::new(vec![(
            "prometheus".to_owned(),
            bcrypt::hash("secret", 4).unwrap(),
        )]),
        ..open()
    };
    let running = RunningEndpoint::new(endpoint, Limits::default());
    for path in ["/metrics", "/-/healthy", "/no"] {
        let answer = running.ask(&get(path));
        assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
        assert!(answer.contains("www-authenticate: Basic realm="), "{answer}");
        assert!(!answer.contains("roce_"), "{answer}");
    }
    let with = |encoded: &str| {
        running.ask(&format!(
            "GET /metrics HTTP/1.1\r\nHost: a\r\nAuthorization: Basic {encoded}\r\nConnection: close\r\n\r\n"
        ))
    };
    // prometheus:secret and prometheus:secre, by coreutils' base64.
    assert!(with("cHJvbWV0aGV1czpzZWNyZXQ=").starts_with("HTTP/1.1 200 "));
    assert!(with("cHJvbWV0aGV1czpzZWNyZQ==").starts_with("HTTP/1.1 401 "));
}

/// A certificate of its own authority, with its key in PEM.
struct IssuedCertificate {
    certificate: rcgen::Certificate,
    key: rcgen::KeyPair,
}

fn issued(name: &str) -> IssuedCertificate {
    let rcgen::CertifiedKey { cert, signing_key } =
        rcgen::generate_simple_self_signed(vec![name.to_owned()]).unwrap();
    IssuedCertificate {
        certificate: cert,
        key: signing_key,
    }
}

/// Asks for the metrics over TLS. `host` is whose certificate is trusted, `own` the client's.
fn ask_by_tls(
    running: &RunningEndpoint,
    host: &IssuedCertificate,
    own: Option<&IssuedCertificate>,
) -> std::io::Result<String> {
    let mut roots = RootCertStore::empty();
    roots.add(host.certificate.der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let config = match own {
        Some(own) => {
            let key = own.key.serialize_der().try_into().unwrap();
            config
                .with_client_auth_cert(vec![own.certificate.der().clone()], key)
                .unwrap()
        }
        None => config.with_no_client_auth(),
    };
    let name = ServerName::try_from("localhost").unwrap();
    let client = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut stream = StreamOwned::new(client, running.connect());
    stream.write_all(get("/metrics").as_bytes())?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    Ok(String::from_utf8(answer).unwrap())
}

#[test]
fn changed_certificates_are_read_without_a_restart_and_broken_ones_are_not_taken() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second, third) = (issued("localhost"), issued("localhost"), issued("localhost"));
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    // As certificates are renewed: a whole file takes the place of the one before.
    let replace = |name: &str, text: &str| {
        write("new", text);
        std::fs::rename(folder.path().join("new"), folder.path().join(name)).unwrap();
    };
    write("host.crt", &first.certificate.pem());
    write("host.key", &first.key.serialize_pem());
    write(
        "web.yml",
        "tls_server_config:\n  cert_file: host.crt\n  key_file: host.key\n",
    );
    let arguments = Protection {
        web_config: Some(folder.path().join("web.yml")),
        ..Protection::default()
    };
    let endpoint = Endpoint::open(&["127.0.0.1:0".parse().unwrap()], &arguments, QUIET).unwrap();
    assert_eq!(
        endpoint.folders()[0],
        folder.path(),
        "a sandbox leaves it readable"
    );
    let running = RunningEndpoint::new(endpoint, Limits::default());
    let served = |host: &IssuedCertificate| ask_by_tls(&running, host, None).ok();
    let failures = |host: &IssuedCertificate| {
        let answer = served(host).unwrap();
        let line = answer
            .lines()
            .find_map(|line| line.strip_prefix("roce_tls_reload_failures_total "));
        line.unwrap().parse::<u32>().unwrap()
    };
    assert_eq!(failures(&first), 0);
    assert!(served(&second).is_none());
    // The certificate comes before its key: alone it cannot be used, and the pair before is.
    replace("host.crt", &second.certificate.pem());
    assert_eq!(failures(&first), 1);
    assert_eq!(failures(&first), 1, "one change counts once");
    replace("host.key", &second.key.serialize_pem());
    assert_eq!(failures(&second), 1);
    assert!(served(&first).is_none());
    // Broken, gone, and there again. The file is written in place.
    write("host.crt", "-----BEGIN CERTIFICATE-----\nAAAA\n");
    assert_eq!(failures(&second), 2);
    std::fs::remove_file(folder.path().join("host.crt")).unwrap();
    assert_eq!(failures(&second), 3);
    replace("host.key", &third.key.serialize_pem());
    replace("host.crt", &third.certificate.pem());
    assert_eq!(failures(&third), 3);
    let answer = served(&third).unwrap();
    let loaded = answer
        .lines()
        .find_map(|line| line.strip_prefix("roce_tls_certificate_loaded_timestamp_seconds "));
    let loaded: f64 = loaded.unwrap().parse().unwrap();
    let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs_f64();
    assert!((now - 60.0..=now).contains(&loaded), "{loaded}");
}

#[test]
fn tls_by_the_file_of_prometheus_exporters() {
    let folder = tempfile::tempdir().unwrap();
    let (host, client) = (issued("localhost"), issued("prometheus"));
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("host.crt", &host.certificate.pem());
    write("host.key", &host.key.serialize_pem());
    write("client.crt", &client.certificate.pem());
    let tls = "tls_server_config:\n  cert_file: host.crt\n  key_file: host.key\n";
    write("plain.yml", tls);
    write("mutual.yml", &format!("{tls}  client_ca_file: client.crt\n"));
    let running = |name: &str| {
        let arguments = Protection {
            web_config: Some(folder.path().join(name)),
            ..Protection::default()
        };
        let endpoint = Endpoint::open(&["127.0.0.1:0".parse().unwrap()], &arguments, QUIET).unwrap();
        assert!(endpoint.urls()[0].starts_with("https://127.0.0.1:"));
        RunningEndpoint::new(endpoint, quick())
    };
    let ask = |running: &RunningEndpoint, own: Option<&IssuedCertificate>| ask_by_tls(running, &host, own);
    let plain = running("plain.yml");
    assert!(ask(&plain, None).unwrap().starts_with("HTTP/1.1 200 OK"));
    // Without TLS nothing is read, and one who only connects is closed.
    assert!(!plain.ask(&get("/metrics")).contains("roce_"));
    let mutual = running("mutual.yml");
    assert!(ask(&mutual, None).is_err(), "a client without a certificate");
    assert!(
        ask(&mutual, Some(&issued("prometheus"))).is_err(),
        "a certificate of nobody"
    );
    assert!(
        ask(&mutual, Some(&client))
            .unwrap()
            .starts_with("HTTP/1.1 200 OK")
    );
}

#[test]
fn an_address_that_others_reach_needs_protection() {
    let anywhere = ["0.0.0.0:0".parse().unwrap()];
    let error = Endpoint::open(&anywhere, &Protection::default(), QUIET)
        .err()
        .unwrap();
    assert!(error.to_string().contains("--web-config"), "{error}");
    let allowed = Protection {
        listen_anywhere_unprotected: true,
        ..Protection::default()
    };
    assert!(Endpoint::open(&anywhere, &allowed, QUIET).is_ok());
}

#[test]
fn silent_clients_keep_nobody_out() {
    let limits = Limits {
        head: Duration::from_mins(1),
        connection: Duration::from_mins(1),
        ..quick()
    };
    let running = RunningEndpoint::new(open(), limits);
    // Some say nothing, others half of a head; there are four places.
    let silent: Vec<TcpStream> = (0..100)
        .map(|number| {
            let mut stream = running.connect();
            if number % 2 == 0 {
                stream.write_all(b"GET /metrics HT").unwrap();
            }
            stream
        })
        .collect();
    let begun = Instant::now();
    for _ in 0..4 {
        let answer = running.ask(&get("/metrics"));
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    }
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    drop(silent);
}
