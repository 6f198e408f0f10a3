//! Messages of JSON-RPC 2.0, one a line: what a client sends is read with bounds, and what cannot be read becomes an error that goes back.
//!
//! The crate `rmcp` was looked at and not taken: it brings an asynchronous runtime and 65 crates, and had three major versions in five months.

use std::io::{self, BufRead};

use serde_json::{Map, Value, json};

/// Longest line that is read, in bytes.
pub(super) const MAX_LINE: usize = 1 << 20;
/// Longest id that a request may have as text, in bytes: answers repeat it.
const MAX_ID: usize = 256;

/// JSON-RPC 2.0, 5.1: the text is no JSON.
pub(super) const PARSE_ERROR: i64 = -32700;
/// The JSON is no request.
pub(super) const INVALID_REQUEST: i64 = -32600;
/// There is no such method.
pub(super) const METHOD_NOT_FOUND: i64 = -32601;
/// The parameters do not fit the method.
pub(super) const INVALID_PARAMS: i64 = -32602;
/// The server's own limit: too many requests wait.
pub(super) const BUSY: i64 = -32000;
/// MCP 2026-07-28: the server does not speak the version of the request.
pub(super) const UNSUPPORTED_VERSION: i64 = -32022;

/// The id of a request: a text or a whole number.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct RequestId(Value);

impl RequestId {
    /// The id that a message has; `None` if requests cannot have such.
    pub(super) fn new(value: &Value) -> Option<Self> {
        let is_id = match value {
            Value::String(text) => text.len() <= MAX_ID,
            Value::Number(number) => number.is_i64() || number.is_u64(),
            _ => false,
        };
        is_id.then(|| Self(value.clone()))
    }
}

/// An error of a request.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct RequestError {
    pub code: i64,
    pub message: String,
    pub data: Option<Value>,
}

impl RequestError {
    pub(super) fn new(code: i64, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
        }
    }
}

/// Parameters of a request or a notification, by name.
pub(super) type Parameters = Map<String, Value>;

/// A message of the client.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum ClientMessage {
    /// It wants an answer.
    Request {
        id: RequestId,
        method: String,
        parameters: Parameters,
    },
    /// It wants none.
    Notification { method: String, parameters: Parameters },
    /// An answer to a request of the server, which sends none.
    Response,
    /// No message: the error goes back, with the id if that could be read.
    Unreadable(Option<RequestId>, RequestError),
}

impl ClientMessage {
    /// Reads a line.
    pub(super) fn new(line: &[u8]) -> Self {
        let value: Value = match serde_json::from_slice(line) {
            Ok(value) => value,
            Err(error) => {
                let error = format!("the line is not JSON: {error}");
                return Self::Unreadable(None, RequestError::new(PARSE_ERROR, error));
            }
        };
        let Value::Object(mut object) = value else {
            let text = "a message is one JSON object; batches are not part of MCP";
            return Self::Unreadable(None, RequestError::new(INVALID_REQUEST, text));
        };
        let id = object.get("id").map(RequestId::new);
        let known = id.clone().flatten();
        let invalid = |text: &str| Self::Unreadable(known.clone(), RequestError::new(INVALID_REQUEST, text));
        if object.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
            return invalid("jsonrpc has to be \"2.0\"");
        }
        let method = match object.remove("method") {
            Some(Value::String(method)) => method,
            None if object.contains_key("result") || object.contains_key("error") => {
                return Self::Response;
            }
            _ => return invalid("method has to be a text"),
        };
        let parameters = match object.remove("params") {
            Some(Value::Object(parameters)) => parameters,
            None => Parameters::new(),
            Some(_) => {
                let error = RequestError::new(INVALID_PARAMS, "params has to be an object");
                return Self::Unreadable(known.clone(), error);
            }
        };
        match id {
            None => Self::Notification { method, parameters },
            Some(Some(id)) => Self::Request {
                id,
                method,
                parameters,
            },
            Some(None) => invalid("id has to be a text of at most 256 bytes, or a whole number"),
        }
    }
}

/// The answer to a request as a line, without its line feed.
pub(super) fn answer(id: &RequestId, result: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id.0, "result": result }).to_string()
}

/// An error as a line. Without an id it has none (MCP 2026-07-28, JSONRPCErrorResponse).
pub(super) fn failure(id: Option<&RequestId>, error: &RequestError) -> String {
    let mut object = json!({ "code": error.code, "message": error.message });
    if let (Some(data), Value::Object(object)) = (&error.data, &mut object) {
        object.insert("data".to_owned(), data.clone());
    }
    let mut line = json!({ "jsonrpc": "2.0", "error": object });
    if let (Some(id), Value::Object(line)) = (id, &mut line) {
        line.insert("id".to_owned(), id.0.clone());
    }
    line.to_string()
}

/// Reads the next line, without its line feed; `None` at the end. The inner error is that of a line which is too long, and passed over.
///
/// # Errors
/// When the input cannot be read.
pub(super) fn next_line(input: &mut impl BufRead) -> io::Result<Option<Result<Vec<u8>, RequestError>>> {
    let (mut line, mut is_too_long, mut has_read) = (Vec::new(), false, false);
    loop {
        let buffer = match input.fill_buf() {
            Ok(buffer) => buffer,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if buffer.is_empty() {
            break;
        }
        has_read = true;
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let some = buffer.get(..end.unwrap_or(buffer.len())).unwrap_or_default();
        if line.len() + some.len() > MAX_LINE {
            is_too_long = true;
            line = Vec::new();
        } else if !is_too_long {
            line.extend_from_slice(some);
        }
        let used = some.len() + usize::from(end.is_some());
        input.consume(used);
        if end.is_some() {
            break;
        }
    }
    Ok(has_read.then(|| {
        if is_too_long {
            let text = format!("the line has more than {MAX_LINE} bytes");
            Err(RequestError::new(INVALID_REQUEST, text))
        } else {
            Ok(line)
        }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(line: &str) -> i64 {
        match ClientMessage::new(line.as_bytes()) {
            ClientMessage::Unreadable(_, error) => error.code,
            message => panic!("{line}: {message:?}"),
        }
    }

    #[test]
    fn messages_are_told_apart() {
        // JSON-RPC 2.0, 4: a request has an id, a notification has none.
        let request = r#"{"jsonrpc":"2.0","id":"a","method":"ping","params":{"x":1}}"#;
        let ClientMessage::Request {
            id,
            method,
            parameters,
        } = ClientMessage::new(request.as_bytes())
        else {
            panic!("no request");
        };
        assert_eq!((id, method.as_str()), (RequestId("a".into()), "ping"));
        assert_eq!(parameters.get("x"), Some(&1.into()));
        let notification = br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        assert!(matches!(
            ClientMessage::new(notification),
            ClientMessage::Notification { .. }
        ));
        let response = br#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
        assert_eq!(ClientMessage::new(response), ClientMessage::Response);
    }

    #[test]
    fn hostile_lines_become_errors() {
        // Codes: JSON-RPC 2.0, 5.1.
        for (line, expected) in [
            ("{", PARSE_ERROR),
            ("", PARSE_ERROR),
            ("[]", INVALID_REQUEST),
            (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, INVALID_REQUEST),
            ("1", INVALID_REQUEST),
            (r#"{"id":1,"method":"ping"}"#, INVALID_REQUEST),
            (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":1}"#, INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":1,"method":3}"#, INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":[1],"method":"ping"}"#, INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":true,"method":"ping"}"#, INVALID_REQUEST),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}"#,
                INVALID_PARAMS,
            ),
        ] {
            assert_eq!(code(line), expected, "{line}");
        }
        let deep = format!(r#"{{"jsonrpc":"2.0","params":{}"#, "[".repeat(100_000));
        assert_eq!(code(&deep), PARSE_ERROR);
        assert!(matches!(
            ClientMessage::new(b"{\"jsonrpc\":\"2.0\",\"id\":\"\xff\",\"method\":\"ping\"}"),
            ClientMessage::Unreadable(
                None,
                RequestError {
                    code: PARSE_ERROR,
                    ..
                }
            )
        ));
    }

    #[test]
    fn long_lines_are_passed_over() {
        let mut input = vec![b'x'; MAX_LINE + 1];
        input.extend_from_slice(b"\nnext\nlast");
        let mut input = io::BufReader::with_capacity(4096, input.as_slice());
        let error = next_line(&mut input).unwrap().unwrap().unwrap_err();
        assert_eq!(error.code, INVALID_REQUEST);
        assert_eq!(next_line(&mut input).unwrap().unwrap().unwrap(), b"next");
        assert_eq!(next_line(&mut input).unwrap().unwrap().unwrap(), b"last");
        assert!(next_line(&mut input).unwrap().is_none());
    }

    #[test]
    fn answers_are_single_lines() {
        let id = RequestId::new(&"a\nb".into()).unwrap();
        let line = answer(&id, &json!({ "text": "c\nd" }));
        assert!(!line.contains('\n'));
        let error = RequestError::new(PARSE_ERROR, "e\nf");
        assert_eq!(
            failure(None, &error),
            r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"e\nf"}}"#
        );
    }
}
