//! NX-API: the request for several commands, and the bodies in its answers, `ins_api` and JSON-RPC.

use serde_json::{Value, json};

use super::json::{Object, field, objects, text};
use crate::device::{Problem, Reason};
use crate::refusal::refusal_in;

/// Longest answer of NX-API that is read, in bytes: it has up to ten commands' answers.
pub const MAX_NXAPI_BYTES: u64 = 32 << 20;
/// Commands in one answer.
const MAX_OUTPUTS: usize = 1000;

/// The text of the problem of a command that has no JSON (NX-API's code 501).
pub const NXAPI_NO_JSON: &str = "it has no JSON for this command";

/// The body for each command, or why there is none.
pub type Bodies<T> = Vec<(String, Result<T, Problem>)>;

/// Form of the answers to one request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NxapiForm {
    /// JSON documents.
    Json,
    /// Texts, as a terminal shows them.
    Text,
}

impl NxapiForm {
    /// The request's `type`.
    fn name(self) -> &'static str {
        match self {
            Self::Json => "cli_show",
            Self::Text => "cli_show_ascii",
        }
    }
}

/// The body of an NX-API request (`ins_api`) for commands without ` | json`.
pub fn nxapi_request(commands: &[&str], form: NxapiForm) -> String {
    json!({
        "ins_api": {
            "version": "1.0",
            "type": form.name(),
            "chunk": "0",
            "sid": "1",
            "input": commands.join(" ;"),
            "output_format": "json",
        }
    })
    .to_string()
}

/// The body for each command in NX-API's answer, as JSON or, where the switch answers so, as text; an empty text where the switch has
/// nothing to say. The command is that of the answer's `input`; of JSON-RPC, which does not repeat it, the `id`.
///
/// # Errors
///
/// The document is not NX-API's: no JSON, cut short, a page of HTML, too long.
pub fn nxapi_bodies(document: &str) -> Result<Bodies<String>, Problem> {
    if document.len() as u64 > MAX_NXAPI_BYTES {
        return Err(broken("the answer has more than 32 MiB, and is not read"));
    }
    let document = document.trim_start_matches('\u{feff}').trim();
    if document.starts_with('<') {
        return Err(broken(
            "HTML instead of JSON: url does not lead to NX-API (`feature nxapi` has to be on, and url ends in /ins)",
        ));
    }
    let document: Value = serde_json::from_str(document).map_err(|error| {
        broken(&format!(
            "no JSON document, or one that is cut short; JSON was expected: {error}"
        ))
    })?;
    let bodies = bodies(&document)?;
    let as_text = |body: Value| match body {
        Value::String(text) => text,
        body => body.to_string(),
    };
    Ok(bodies
        .into_iter()
        .map(|(command, body)| (command, body.map(as_text)))
        .collect())
}

/// True if a document is NX-API's answer rather than the body of one.
pub(super) fn is_envelope(document: &Value) -> bool {
    objects(document)
        .next()
        .is_some_and(|object| object.contains_key("ins_api") || object.contains_key("jsonrpc"))
}

/// The body for each command. `{}`, null and the empty text are the empty text.
pub(super) fn bodies(document: &Value) -> Result<Bodies<Value>, Problem> {
    let mut found = Vec::new();
    let mut is_known = false;
    for object in objects(document) {
        if let Some(answer) = field(object, "ins_api") {
            is_known = true;
            for output in objects(answer)
                .filter_map(|answer| field(answer, "outputs"))
                .flat_map(objects)
                .filter_map(|outputs| field(outputs, "output"))
                .flat_map(objects)
                .take(MAX_OUTPUTS)
            {
                found.push(of_output(output));
            }
        } else if object.contains_key("result") || object.contains_key("error") {
            is_known = true;
            if found.len() < MAX_OUTPUTS {
                found.push(of_response(object));
            }
        }
    }
    if !is_known {
        return Err(broken(
            "a document without ins_api: the JSON has neither its outputs nor a result of JSON-RPC",
        ));
    }
    if found.is_empty() {
        return Err(broken("the answer has no output"));
    }
    Ok(found)
}

/// One `output` of `ins_api`.
fn of_output(output: &Object) -> (String, Result<Value, Problem>) {
    let command = text(output, &["input"]).unwrap_or_default();
    let code = text(output, &["code"]).unwrap_or_else(|| "200".to_owned());
    let said = text(output, &["clierror"]).filter(|said| !said.is_empty());
    if code == "200" && said.is_none() {
        return (command, Ok(body_of(output)));
    }
    let said = said.or_else(|| text(output, &["msg"])).unwrap_or_default();
    let problem = refused(&command, &code, &said);
    (command, Err(problem))
}

/// One response of JSON-RPC.
fn of_response(response: &Object) -> (String, Result<Value, Problem>) {
    let command = text(response, &["id"]).unwrap_or_default();
    let Some(error) = field(response, "error").and_then(Value::as_object) else {
        let body = match field(response, "result") {
            Some(Value::Object(result)) => body_of(result),
            _ => Value::String(String::new()),
        };
        return (command, Ok(body));
    };
    let data = field(error, "data").and_then(Value::as_object);
    let said = data
        .and_then(|data| text(data, &["msg"]))
        .or_else(|| text(error, &["message"]))
        .unwrap_or_default();
    let code = text(error, &["code"]).unwrap_or_default();
    let problem = refused(&command, &code, &said);
    (command, Err(problem))
}

fn body_of(output: &Object) -> Value {
    // `msg` is where JSON-RPC has the text of a command without structured output.
    match field(output, "body").or_else(|| field(output, "msg")) {
        Some(Value::Object(body)) if body.is_empty() => Value::String(String::new()),
        Some(body @ (Value::Object(_) | Value::Array(_) | Value::String(_))) => body.clone(),
        _ => Value::String(String::new()),
    }
}

/// Why a command was refused. -32602 is JSON-RPC's code for invalid parameters: the command.
fn refused(command: &str, code: &str, said: &str) -> Problem {
    if code == "501" {
        return Problem {
            reason: Reason::Unsupported,
            command: command.to_owned(),
            text: NXAPI_NO_JSON.to_owned(),
        };
    }
    // A line above the words points at the place of the mistake.
    let mut lines = said.lines().map(str::trim);
    let said = lines
        .find(|line| !line.is_empty() && *line != "^")
        .unwrap_or_default();
    let reason = refusal_in(said).unwrap_or(match code {
        "400" | "-32602" | "-32601" => Reason::Unsupported,
        "401" | "403" => Reason::Permission,
        _ => Reason::Parse,
    });
    Problem {
        reason,
        command: command.to_owned(),
        text: if said.is_empty() {
            format!("the switch answered with code {code}")
        } else {
            format!("{said} (code {code})")
        },
    }
}

fn broken(text: &str) -> Problem {
    Problem {
        reason: Reason::Parse,
        command: String::new(),
        text: text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // The answers of the NX-API guide, and of B.33.2 in shape.
    #[test]
    fn one_output_is_an_object_and_several_are_a_list() {
        let one = r#"{"ins_api":{"type":"cli_show","version":"1.0","sid":"eoc","outputs":{"output":{
            "input":"show clock ","msg":"Success","code":"200","body":{"a":"1"}}}}}"#;
        let bodies = nxapi_bodies(one).unwrap();
        assert_eq!(bodies, [("show clock".to_owned(), Ok(r#"{"a":"1"}"#.to_owned()))]);
        let several = r#"{"ins_api":{"outputs":{"output":[
            {"input":"a","msg":"Success","code":200,"body":""},
            {"input":"b","msg":"Success","code":"200","body":{}},
            {"input":"show foo","msg":"Input CLI command error","code":"400","clierror":"% Invalid command\n"},
            {"input":"c","msg":"Structured output unsupported","code":"501"},
            {"input":"d","msg":"Permission denied","code":"403"},
            {"input":"e","code":"200","body":"a text\n"}]}}}"#;
        let bodies = nxapi_bodies(several).unwrap();
        assert_eq!(bodies[0].1, Ok(String::new()));
        assert_eq!(bodies[1].1, Ok(String::new()));
        let reason = |at: usize| bodies[at].1.as_ref().unwrap_err().reason;
        assert_eq!(
            (bodies[2].0.as_str(), reason(2)),
            ("show foo", Reason::Unsupported)
        );
        assert_eq!(reason(3), Reason::Unsupported);
        let said = |at: usize| bodies[at].1.as_ref().unwrap_err().text.as_str();
        assert_eq!(
            (said(2), said(3)),
            ("% Invalid command (code 400)", NXAPI_NO_JSON)
        );
        assert_eq!(reason(4), Reason::Permission);
        assert_eq!(bodies[5].1, Ok("a text\n".to_owned()));
    }

    #[test]
    fn json_rpc_is_known_by_its_id() {
        let one = r#"{"jsonrpc":"2.0","result":{"body":{"a":1}},"id":1}"#;
        assert_eq!(
            nxapi_bodies(one).unwrap(),
            [("1".to_owned(), Ok(r#"{"a":1}"#.to_owned()))]
        );
        let several = r#"[{"jsonrpc":"2.0","result":null,"id":1},
            {"jsonrpc":"2.0","error":{"code":-32602,"message":"Invalid params","data":{"msg":"% Invalid command\n"}},"id":2}]"#;
        let bodies = nxapi_bodies(several).unwrap();
        assert_eq!(bodies[0], ("1".to_owned(), Ok(String::new())));
        assert_eq!(bodies[1].1.as_ref().unwrap_err().reason, Reason::Unsupported);
    }

    // An answer may have a code alone.
    #[test]
    fn codes_are_reasons_of_their_own() {
        for (code, reason) in [
            ("400", Reason::Unsupported),
            ("401", Reason::Permission),
            ("403", Reason::Permission),
            ("500", Reason::Parse),
            ("501", Reason::Unsupported),
        ] {
            let document =
                json!({"ins_api": {"outputs": {"output": {"input": "a", "msg": "", "code": code}}}});
            let bodies = nxapi_bodies(&document.to_string()).unwrap();
            assert_eq!(bodies[0].1.as_ref().unwrap_err().reason, reason, "{code}");
        }
        let document = json!({"jsonrpc": "2.0", "error": {"code": -32602, "message": ""}, "id": 1});
        let bodies = nxapi_bodies(&document.to_string()).unwrap();
        assert_eq!(bodies[0].1.as_ref().unwrap_err().reason, Reason::Unsupported);
    }

    #[test]
    fn the_words_of_a_refusal_are_below_a_pointer() {
        let said = "                          ^\n\n% Invalid command at '^' marker.\n";
        let document =
            json!({"ins_api": {"outputs": {"output": {"input": "a", "code": "400", "clierror": said}}}});
        let bodies = nxapi_bodies(&document.to_string()).unwrap();
        let problem = bodies[0].1.as_ref().unwrap_err();
        assert_eq!(problem.text, "% Invalid command at '^' marker. (code 400)");
    }

    #[test]
    fn what_is_not_nxapi_is_said() {
        for (document, word) in [
            ("<html><head><title>502 Bad Gateway</title>", "HTML"),
            (r#"{"ins_api":{"outputs":{"output":{"inp"#, "JSON was expected"),
            ("{}", "neither"),
            (r#"{"ins_api":{}}"#, "no output"),
            ("", "JSON was expected"),
        ] {
            let problem = nxapi_bodies(document).unwrap_err();
            assert!(problem.text.contains(word), "{document}: {}", problem.text);
        }
    }

    #[test]
    fn a_request_has_all_commands() {
        let request: Value =
            serde_json::from_str(&nxapi_request(&["show version", "show clock"], NxapiForm::Json)).unwrap();
        assert_eq!(request["ins_api"]["input"], "show version ;show clock");
        assert_eq!(request["ins_api"]["type"], "cli_show");
        assert_eq!(request["ins_api"]["output_format"], "json");
    }
}
