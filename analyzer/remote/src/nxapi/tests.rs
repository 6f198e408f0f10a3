//! Answers as texts, and a server over TLS on this host.

mod hostile;

use std::io::{BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};

use roce_switches::inventory::Inventory;
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::*;

/// The password of all tests: it may be in no message and no answer.
const CANARY: &str = "canary-7f3a";

fn shown(outcome: &Outcome) -> Result<&str, Reason> {
    outcome.as_deref().map_err(|unanswered| unanswered.reason)
}

#[test]
fn one_command_has_an_object_and_several_have_a_list() {
    // Forms of the Programmability Guide.
    let one = br#"{"ins_api":{"type":"cli_show","version":"1.0","sid":"eoc","outputs":{"output":{
"input":"show clock","msg":"Success","code":"200","body":{"TABLE_a":{"ROW_a":{"rx":"18446744073709551615"}}}}}}}"#;
    let outcomes = super::outcomes(one, 1).unwrap();
    assert_eq!(
        shown(&outcomes[0]),
        Ok(r#"{"TABLE_a":{"ROW_a":{"rx":"18446744073709551615"}}}"#)
    );
    let several = br#"{"ins_api":{"outputs":{"output":[
{"input":"a","msg":"Success","code":"200","body":""},
{"input":"b","msg":"Input CLI command error","code":"400","clierror":"% Invalid command\n"},
{"input":"c","msg":"Success","code":200,"body":{"n":18446744073709551615}},
{"input":"d","msg":"x","code":"400","clierror":"% Permission denied for the role\n"},
{"input":"e","msg":"Structured output unsupported","code":"501"}]}}}"#;
    let outcomes = super::outcomes(several, 5).unwrap();
    let all: Vec<_> = outcomes.iter().map(shown).collect();
    assert_eq!(
        all,
        [
            Ok(""),
            Err(Reason::Unsupported),
            Ok("{\"n\":18446744073709551615}"),
            Err(Reason::Permission),
            Err(Reason::Unsupported)
        ]
    );
    assert_eq!(super::outcomes(several, 4).unwrap_err().reason, Reason::Parse);
}

#[test]
fn what_is_no_answer_says_so() {
    for (bytes, expected) in [
        (&b"<html><body>nginx</body></html>"[..], "HTML instead of JSON"),
        (
            b"{\"ins_api\":{\"outputs\":{\"output\":{\"code\":\"200\"",
            "cut short",
        ),
        (b"[]", "without ins_api"),
        (b"", "cut short"),
        (b"\xff\xfe", "cut short"),
    ] {
        let unanswered = outcomes(bytes, 1).unwrap_err();
        assert!(unanswered.text.contains(expected), "{}", unanswered.text);
    }
}

/// The server's answer to a request.
type Answer = Box<dyn Fn(&SeenRequest) -> Vec<u8> + Send + Sync>;

/// One request, as the server saw it.
struct SeenRequest {
    authorization: String,
    input: String,
    kind: String,
}

/// A server that answers each request with the bytes of a function, and sees what was asked.
struct Server {
    port: u16,
    fingerprint: String,
    certificate: String,
    seen: Receiver<SeenRequest>,
}

/// A connection of the server.
type Connection = BufReader<StreamOwned<ServerConnection, TcpStream>>;

impl Server {
    /// Starts it. It ends with the test's process: its threads hold nothing but a socket.
    fn start(answer: impl Fn(&SeenRequest) -> Vec<u8> + Send + Sync + 'static) -> Self {
        Self::talking(move |stream, sender| {
            while let Some(seen) = request(stream) {
                let bytes = answer(&seen);
                let _ = sender.send(seen);
                if stream.get_mut().write_all(&bytes).is_err() || bytes.ends_with(CUT) {
                    break;
                }
                let _ = stream.get_mut().flush();
            }
        })
    }

    /// Starts one that does this with each connection.
    fn talking(talk: impl Fn(&mut Connection, &Sender<SeenRequest>) + Send + Sync + 'static) -> Self {
        let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
        let der = made.cert.der().clone();
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![der.clone()], key.into())
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (sender, seen) = channel();
        let (config, talk, sender) = (Arc::new(config), Arc::new(talk), Mutex::new(sender));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (config, talk, sender) = (
                    Arc::clone(&config),
                    Arc::clone(&talk),
                    sender.lock().unwrap().clone(),
                );
                std::thread::spawn(move || {
                    let connection = ServerConnection::new(config).unwrap();
                    let mut stream = BufReader::new(StreamOwned::new(connection, stream.unwrap()));
                    talk(&mut stream, &sender);
                });
            }
        });
        Self {
            port,
            fingerprint: format!("sha256:{}", hex(&Sha256::digest(&der))),
            certificate: made.cert.pem(),
            seen,
        }
    }

    /// A client as an inventory describes it.
    fn client(&self, more: &str) -> Client {
        let folder = tempfile::tempdir().unwrap();
        let (password, ca) = (folder.path().join("password"), folder.path().join("ca.pem"));
        std::fs::write(&password, format!("{CANARY}\n")).unwrap();
        let owner_alone = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(&password, owner_alone).unwrap();
        std::fs::write(&ca, &self.certificate).unwrap();
        let more = more
            .replace("PINNED", &self.fingerprint)
            .replace("CA", ca.to_str().unwrap());
        let text = format!(
            "[ssh]\ntimeout = \"400ms\"\n[[switch]]\nname = \"leaf1\"\nkind = \"nexus\"\ntransport = \"nxapi\"\nuser = \"monitor\"\n\
             url = \"https://127.0.0.1:{}/ins\"\npassword_file = \"{}\"\n{more}\n",
            self.port,
            password.display()
        );
        let inventory = Inventory::parse(&text).unwrap();
        Client::new(&inventory.switches[0], &Arc::new(inventory.ssh)).unwrap()
    }
}

/// Behind these bytes the server closes the connection.
const CUT: &[u8] = b"!CUT!";

fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

/// Reads a request of HTTP/1.1.
fn request(stream: &mut impl std::io::BufRead) -> Option<SeenRequest> {
    let (mut length, mut authorization) = (0, String::new());
    let mut line = String::new();
    loop {
        line.clear();
        if stream.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let lower = line.to_lowercase();
        if let Some(count) = lower.strip_prefix("content-length:") {
            length = count.trim().parse().ok()?;
        }
        if lower.starts_with("authorization:") {
            line["authorization:".len()..]
                .trim()
                .clone_into(&mut authorization);
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    let body: Value = serde_json::from_slice(&body).ok()?;
    let text = |key: &str| body["ins_api"][key].as_str().map(str::to_owned);
    Some(SeenRequest {
        authorization,
        input: text("input")?,
        kind: text("type")?,
    })
}

/// An answer of HTTP.
fn http(status: &str, body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// Answers of a switch: to each command its own name, as a document or as a text; `bad` is unknown, and `old`
/// has no JSON.
fn switch(seen: &SeenRequest) -> String {
    let outputs: Vec<Value> = seen
        .input
        .split(" ;")
        .map(|command| match (command, seen.kind.as_str()) {
            ("bad", _) => {
                json!({"input": command, "msg": "Input CLI command error", "code": "400", "clierror": "% Invalid command\n"})
            }
            ("old", "cli_show") => json!({"input": command, "msg": "Structured output unsupported", "code": "501"}),
            (_, "cli_show") => json!({"input": command, "msg": "Success", "code": "200", "body": {"said": command}}),
            _ => json!({"input": command, "msg": "Success", "code": "200", "body": format!("{command}\n")}),
        })
        .collect();
    let output = match <[Value; 1]>::try_from(outputs) {
        Ok([one]) => one,
        Err(several) => Value::Array(several),
    };
    json!({"ins_api": {"type": seen.kind, "version": "1.0", "sid": "eoc", "outputs": {"output": output}}})
        .to_string()
}

fn questions(commands: &[&str]) -> Vec<Question> {
    commands.iter().map(|command| Question::each(command)).collect()
}

fn shown_all(outcomes: &[Outcome]) -> Vec<Result<&str, Reason>> {
    outcomes.iter().map(shown).collect()
}

#[test]
fn commands_go_in_few_requests_and_come_back_in_order() {
    let server = Server::start(|seen| http("200 OK", &switch(seen)));
    for more in ["fingerprint = \"PINNED\"", "ca = \"CA\""] {
        let mut client = server.client(more);
        let asked = questions(&[
            "show a | json",
            "bad | json",
            "show b",
            "old | json",
            "show c|json",
        ]);
        let outcomes = client.ask(&asked);
        assert_eq!(
            shown_all(&outcomes),
            [
                Ok("{\"said\":\"show a\"}"),
                Err(Reason::Unsupported),
                Ok("show b\n"),
                Ok("old\n"),
                Ok("show c|json\n"),
            ]
        );
        let seen: Vec<SeenRequest> = server.seen.try_iter().collect();
        let inputs: Vec<_> = seen
            .iter()
            .map(|seen| (seen.kind.as_str(), seen.input.as_str()))
            .collect();
        assert_eq!(
            inputs,
            [
                ("cli_show", "show a ;bad ;old"),
                ("cli_show_ascii", "show b ;old ;show c|json")
            ]
        );
        // RFC 7617: base64 of "monitor:canary-7f3a", by base64(1).
        assert!(
            seen.iter()
                .all(|seen| seen.authorization == "Basic bW9uaXRvcjpjYW5hcnktN2YzYQ==")
        );
        // One command: an object instead of a list.
        assert_eq!(
            shown_all(&client.ask(&questions(&["show a | json"]))),
            [Ok("{\"said\":\"show a\"}")]
        );
        let _ = server.seen.try_iter().count();
    }
    // 25 commands in requests of 10, 10 and 5.
    let many: Vec<String> = (0..25).map(|number| format!("show {number}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let outcomes = server.client("fingerprint = \"PINNED\"").ask(&questions(&many));
    assert_eq!(shown(&outcomes[24]), Ok("show 24\n"));
    assert_eq!(server.seen.try_iter().count(), 3);
}

#[test]
fn an_answer_in_chunks_is_put_together() {
    let server = Server::start(|seen| {
        let body = switch(seen);
        let mut bytes = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
        for part in body.as_bytes().chunks(7) {
            bytes.extend(format!("{:x}\r\n", part.len()).bytes());
            bytes.extend(part);
            bytes.extend(b"\r\n");
        }
        bytes.extend(b"0\r\n\r\n");
        bytes
    });
    let outcomes = server
        .client("fingerprint = \"PINNED\"")
        .ask(&questions(&["show a | json", "show b | json"]));
    assert_eq!(
        shown_all(&outcomes),
        [Ok("{\"said\":\"show a\"}"), Ok("{\"said\":\"show b\"}")]
    );
}

#[test]
fn failures_have_reasons_and_never_the_password() {
    let echo = |status: &'static str| {
        move |seen: &SeenRequest| http(status, &format!("{} {CANARY} {}", seen.authorization, seen.input))
    };
    let page = "<html><body>nginx canary-7f3a</body></html>";
    let cases: Vec<(Answer, Reason, &str)> = vec![
        (
            Box::new(echo("401 Unauthorized")),
            Reason::Permission,
            "401: the user",
        ),
        (
            Box::new(echo("403 Forbidden")),
            Reason::Permission,
            "403: the role",
        ),
        (
            Box::new(echo("404 Not Found")),
            Reason::Unreachable,
            "404: there is no NX-API",
        ),
        (
            Box::new(echo("302 Found\r\nlocation: https://127.0.0.1:9/")),
            Reason::Unreachable,
            "not followed",
        ),
        (
            Box::new(echo("500 Internal Server Error")),
            Reason::Parse,
            "500: an error inside",
        ),
        (
            Box::new(echo("502 Bad Gateway")),
            Reason::Unreachable,
            "does not run",
        ),
        (Box::new(echo("200 OK")), Reason::Parse, "no JSON document"),
        (
            Box::new(move |_: &SeenRequest| http("200 OK", page)),
            Reason::Parse,
            "HTML instead of JSON",
        ),
        (
            Box::new(|seen: &SeenRequest| {
                let body = switch(seen);
                let mut bytes =
                    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len() + 50).into_bytes();
                bytes.extend(body.bytes().take(30));
                bytes.extend(CUT);
                bytes
            }),
            Reason::Parse,
            "cut short",
        ),
        (
            Box::new(|_: &SeenRequest| b"no HTTP at all\r\n\r\n".to_vec()),
            Reason::Unreachable,
            "",
        ),
        (
            Box::new(|_: &SeenRequest| {
                let output = json!({"code": "400", "clierror": format!("% Invalid command {CANARY}")});
                http(
                    "200 OK",
                    &json!({"ins_api": {"outputs": {"output": output}}}).to_string(),
                )
            }),
            Reason::Unsupported,
            "% Invalid command (left out)",
        ),
        (
            Box::new(|_: &SeenRequest| {
                std::thread::sleep(Duration::from_secs(10));
                Vec::new()
            }),
            Reason::Timeout,
            "no answer within 0.4 s",
        ),
    ];
    for (answer, reason, expected) in cases {
        let server = Server::start(answer);
        let outcomes = server
            .client("fingerprint = \"PINNED\"")
            .ask(&questions(&["show a | json"]));
        let [Err(unanswered)] = &outcomes[..] else {
            panic!("{expected}: {outcomes:?}")
        };
        assert_eq!(unanswered.reason, reason, "{}", unanswered.text);
        assert!(
            unanswered.text.contains(expected),
            "{expected}: {}",
            unanswered.text
        );
        let all = format!("{outcomes:?}");
        assert!(!all.contains("canary") && !all.contains("bW9uaXRvc"), "{all}");
    }
}

#[test]
fn another_certificate_gets_no_password() {
    let server = Server::start(|seen| http("200 OK", &switch(seen)));
    let other = format!("fingerprint = \"sha256:{}\"", "0a".repeat(32));
    let found = format!("it has {}", server.fingerprint);
    // Nobody has signed it whom this host knows, or it is not the pinned one.
    for (more, expected) in [
        (other.as_str(), found.as_str()),
        ("", "signed by nobody whom this host knows"),
    ] {
        if more.is_empty() && rustls_native_certs::load_native_certs().certs.is_empty() {
            // A system without authorities is refused at the start.
            continue;
        }
        let outcomes = server.client(more).ask(&questions(&["show a | json"]));
        let [Err(unanswered)] = &outcomes[..] else {
            panic!("{outcomes:?}")
        };
        assert_eq!(unanswered.reason, Reason::Unreachable);
        assert!(unanswered.text.contains(expected), "{}", unanswered.text);
    }
    assert_eq!(server.seen.try_iter().count(), 0, "nothing was asked");
}

#[test]
fn one_command_that_breaks_the_switch_leaves_the_others() {
    let server = Server::start(|seen| {
        if seen.input.contains("heavy") {
            http("500 Internal Server Error", "")
        } else {
            http("200 OK", &switch(seen))
        }
    });
    let outcomes = server.client("fingerprint = \"PINNED\"").ask(&questions(&[
        "show a | json",
        "heavy | json",
        "show b | json",
    ]));
    assert_eq!(
        shown_all(&outcomes),
        [
            Ok("{\"said\":\"show a\"}"),
            Err(Reason::Parse),
            Ok("{\"said\":\"show b\"}")
        ]
    );
}

#[test]
fn a_switch_with_old_tls_is_one_for_ssh() {
    // It answers a ClientHello with the alert protocol_version (70), fatal (2), as a server of TLS 1.1 does (RFC 5246, 7.2).
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = std::io::Read::read(&mut stream, &mut [0; 4096]);
            let _ = stream.write_all(&[21, 3, 2, 0, 2, 2, 70]);
        }
    });
    let mut server = Server::start(|seen| http("200 OK", &switch(seen)));
    server.port = port;
    let outcomes = server
        .client("fingerprint = \"PINNED\"")
        .ask(&questions(&["show a | json"]));
    let [Err(unanswered)] = &outcomes[..] else {
        panic!("{outcomes:?}")
    };
    assert_eq!(unanswered.reason, Reason::Unreachable);
    assert!(
        unanswered.text.contains("transport = \"ssh\""),
        "{}",
        unanswered.text
    );
}
