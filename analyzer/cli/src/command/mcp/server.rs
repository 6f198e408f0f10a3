//! The server: one thread reads messages and answers what needs no analysis; another one answers calls of tools, one at a time.

use std::collections::VecDeque;
use std::io::{self, BufRead, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::context::{KeptOutputs, ToolContext};
use super::inputs::ServedFolder;
use super::message::{
    BUSY, ClientMessage, INVALID_PARAMS, INVALID_REQUEST, Parameters, RequestError, RequestId, answer,
    failure, next_line,
};
use super::protocol::{Call, Era, Session, complete, listed};
use super::queries::Queries;
use super::runner::Bounds;
use super::{resources, tools};

/// Calls of tools that wait. More are refused.
const MAX_WAITING: usize = 64;

/// A call of a tool that waits or runs.
#[derive(Debug)]
struct WaitingCall {
    id: RequestId,
    era: Era,
    tool: &'static tools::Tool,
    arguments: Parameters,
    cancelled: Arc<AtomicBool>,
}

/// Calls that both threads know.
#[derive(Default, Debug)]
struct Calls {
    waiting: VecDeque<WaitingCall>,
    /// Id of the one that runs, and how it is cancelled.
    running: Option<(RequestId, Arc<AtomicBool>)>,
    /// No more calls come.
    is_ended: bool,
}

/// The server of a folder.
#[derive(Debug)]
pub(super) struct Server<W> {
    folder: ServedFolder,
    /// Time that one call may take.
    patience: Duration,
    calls: Mutex<Calls>,
    /// Calls have come, or the end.
    news: Condvar,
    output: Mutex<W>,
}

impl<W: Write + Send> Server<W> {
    pub(super) fn new(folder: ServedFolder, patience: Duration, output: W) -> Self {
        Self {
            folder,
            patience,
            calls: Mutex::default(),
            news: Condvar::new(),
            output: Mutex::new(output),
        }
    }

    /// Serves until the input ends, and what was asked before is answered.
    ///
    /// # Errors
    /// When the input cannot be read, or no thread can be started.
    pub(super) fn serve(&self, input: &mut impl BufRead, queries: Option<Queries>) -> io::Result<()> {
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name("tools".to_owned());
            thread.spawn_scoped(scope, move || self.answer_calls(queries))?;
            let read = self.read(input);
            self.lock().is_ended = true;
            self.news.notify_all();
            read
        })
    }

    fn lock(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads messages until the input ends.
    fn read(&self, input: &mut impl BufRead) -> io::Result<()> {
        let mut session = Session::default();
        while let Some(line) = next_line(input)? {
            let line = match line {
                Ok(line) => line,
                Err(error) => {
                    self.write(&failure(None, &error));
                    continue;
                }
            };
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            match ClientMessage::new(&line) {
                ClientMessage::Request {
                    id,
                    method,
                    parameters,
                } => {
                    if let Err(error) = self.request(&mut session, &id, &method, &parameters) {
                        self.write(&failure(Some(&id), &error));
                    }
                }
                ClientMessage::Notification { method, parameters } if method == "notifications/cancelled" => {
                    self.cancel(&parameters);
                }
                ClientMessage::Notification { .. } | ClientMessage::Response => {}
                ClientMessage::Unreadable(id, error) => self.write(&failure(id.as_ref(), &error)),
            }
        }
        Ok(())
    }

    /// Answers a request, or puts it among those that wait.
    fn request(
        &self,
        session: &mut Session,
        id: &RequestId,
        method: &str,
        parameters: &Parameters,
    ) -> Result<(), RequestError> {
        let result = match session.call(method, parameters)? {
            Call::Answered(result) => result,
            Call::ListTools(era) => listed(era, "tools", &tools::list()),
            Call::ListResources(era) => listed(era, "resources", &resources::list()),
            Call::ReadResource(era, uri) => listed(era, "contents", &resources::read(&uri, &self.folder)?),
            Call::Tool { era, name, arguments } => {
                let tool = tools::find(&name);
                let tool = tool.ok_or_else(|| RequestError::new(INVALID_PARAMS, "there is no such tool"))?;
                return self.wait(WaitingCall {
                    id: id.clone(),
                    era,
                    tool,
                    arguments,
                    cancelled: Arc::default(),
                });
            }
        };
        self.write(&answer(id, &result));
        Ok(())
    }

    /// Puts a call among those that wait.
    fn wait(&self, call: WaitingCall) -> Result<(), RequestError> {
        let mut calls = self.lock();
        let is_known = |id: &RequestId| *id == call.id;
        if calls.waiting.iter().any(|waiting| is_known(&waiting.id))
            || calls.running.as_ref().is_some_and(|(id, _)| is_known(id))
        {
            return Err(RequestError::new(
                INVALID_REQUEST,
                "a request with this id is not answered yet",
            ));
        }
        if calls.waiting.len() >= MAX_WAITING {
            return Err(RequestError::new(
                BUSY,
                format!("{MAX_WAITING} calls wait already"),
            ));
        }
        calls.waiting.push_back(call);
        drop(calls);
        self.news.notify_all();
        Ok(())
    }

    /// Cancels a call, which then has no answer (MCP, basic, "Cancellation").
    fn cancel(&self, parameters: &Parameters) {
        let Some(id) = parameters.get("requestId").and_then(RequestId::new) else {
            return;
        };
        let mut calls = self.lock();
        calls.waiting.retain(|call| call.id != id);
        if let Some((running, cancelled)) = &calls.running
            && *running == id
        {
            cancelled.store(true, Ordering::Relaxed);
        }
    }

    /// The thread of tools.
    fn answer_calls(&self, mut queries: Option<Queries>) {
        let mut kept = KeptOutputs::default();
        while let Some(call) = self.next_call() {
            let mut context = ToolContext {
                folder: &self.folder,
                bounds: Bounds {
                    cancelled: &call.cancelled,
                    until: Instant::now() + self.patience,
                },
                kept: &mut kept,
                queries: &mut queries,
            };
            let result = call.tool.call(&call.arguments, &mut context);
            let mut calls = self.lock();
            calls.running = None;
            // Whoever cancels it from here on is too late.
            let is_wanted = !call.cancelled.load(Ordering::Relaxed);
            drop(calls);
            if is_wanted {
                self.write(&answer(&call.id, &complete(call.era, result)));
            }
        }
    }

    /// The next call; `None` at the end.
    fn next_call(&self) -> Option<WaitingCall> {
        let mut calls = self.lock();
        loop {
            if let Some(call) = calls.waiting.pop_front() {
                calls.running = Some((call.id.clone(), Arc::clone(&call.cancelled)));
                return Some(call);
            }
            if calls.is_ended {
                return None;
            }
            calls = self.news.wait(calls).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Writes a line. A client that does not read any more has closed its side, and the input ends as well.
    fn write(&self, line: &str) {
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        let written = writeln!(output, "{line}").and_then(|()| output.flush());
        if written.is_err() {
            let mut calls = self.lock();
            calls.waiting.clear();
            if let Some((_, cancelled)) = &calls.running {
                cancelled.store(true, Ordering::Relaxed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Answers of a server to these lines, in no order.
    fn answers(lines: &[String]) -> Vec<Value> {
        let dir = tempfile::tempdir().unwrap();
        let folder = ServedFolder::at(dir.path());
        let server = Server::new(folder, Duration::from_secs(10), Vec::new());
        let input = lines.join("\n").into_bytes();
        server.serve(&mut input.as_slice(), None).unwrap();
        let output = server.output.into_inner().unwrap();
        let lines = output
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty());
        lines.map(|line| serde_json::from_slice(line).unwrap()).collect()
    }

    fn request(id: &Value, method: &str, parameters: &Value) -> String {
        json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": parameters }).to_string()
    }

    fn initialize() -> String {
        request(
            &json!(0),
            "initialize",
            &json!({ "protocolVersion": "2025-11-25" }),
        )
    }

    #[test]
    fn bad_lines_do_not_end_the_server() {
        let lines = [
            "nonsense".to_owned(),
            String::new(),
            "[1, 2]".to_owned(),
            initialize(),
            request(&json!(1), "no/such", &json!({})),
            request(&json!("two"), "ping", &json!({})),
            request(&json!(3), "tools/call", &json!({ "name": "no such" })),
            request(
                &json!(4),
                "tools/call",
                &json!({ "name": "verdict", "arguments": {} }),
            ),
            request(
                &json!(5),
                "tools/call",
                &json!({ "name": "verdict", "arguments": { "input": "../x" } }),
            ),
            request(
                &json!(6),
                "resources/read",
                &json!({ "uri": "file:///etc/passwd" }),
            ),
        ];
        let answers = answers(&lines);
        let code = |id: &Value| {
            let answer = answers.iter().find(|answer| answer["id"] == *id);
            answer.map(|answer| answer["error"]["code"].clone())
        };
        assert_eq!(
            answers.iter().filter(|answer| answer.get("id").is_none()).count(),
            2
        );
        assert_eq!(code(&json!(1)), Some(json!(-32601)));
        assert_eq!(code(&json!("two")), Some(Value::Null));
        assert_eq!(code(&json!(3)), Some(json!(-32602)));
        assert_eq!(code(&json!(6)), Some(json!(-32602)));
        for id in [4, 5] {
            let answer = answers.iter().find(|answer| answer["id"] == id).unwrap();
            assert_eq!(answer["result"]["isError"], true, "{answer}");
        }
    }

    #[test]
    fn calls_that_wait_are_limited_and_cancelled() {
        let dir = tempfile::tempdir().unwrap();
        let server = Server::new(ServedFolder::at(dir.path()), Duration::from_secs(10), Vec::new());
        let call = |id: usize| WaitingCall {
            id: RequestId::new(&json!(id)).unwrap(),
            era: Era::Legacy,
            tool: tools::find("explain").unwrap(),
            arguments: Parameters::new(),
            cancelled: Arc::default(),
        };
        for id in 0..MAX_WAITING {
            server.wait(call(id)).unwrap();
        }
        assert_eq!(server.wait(call(3)).unwrap_err().code, INVALID_REQUEST);
        assert_eq!(server.wait(call(MAX_WAITING)).unwrap_err().code, BUSY);
        for id in [json!(1), json!(2), json!("1"), json!(null), json!([])] {
            let Value::Object(parameters) = json!({ "requestId": id }) else {
                return;
            };
            server.cancel(&parameters);
        }
        assert_eq!(server.lock().waiting.len(), MAX_WAITING - 2);
    }
}
