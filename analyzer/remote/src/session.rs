//! A script on a machine that goes on while this process reads its lines and writes to its standard input; and bytes from or to one.
//!
//! The child is in a process group of its own: a Ctrl-C at the terminal reaches this process alone, which decides what ends.

use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, channel, sync_channel};
use std::time::{Duration, Instant};

use roce_files::lines_of;

pub use crate::link::SessionLine;
use crate::link::{Script, ScriptBlock};
use crate::machine::{Machine, RemoteError};
use crate::program::EndedProgram;

/// Bytes of one line; a longer one is cut into several.
const MAX_LINE_BYTES: u64 = 16 << 10;
/// Lines that wait to be read; the script waits when there are more.
const MAX_WAITING_LINES: usize = 256;
/// Lines that a script may say before the one that ends them.
const MAX_SAID_LINES: usize = 4_096;
/// Time for all of these lines, as a multiple of the time for one.
const MAX_LINE_TIMES: u32 = 4;
/// Bytes of standard error that are kept: the last ones.
const MAX_ERROR_BYTES: usize = 64 << 10;
/// Bytes of a block of a file.
const BLOCK_BYTES: usize = 256 << 10;
/// Blocks that wait to be written.
const MAX_WAITING_BLOCKS: usize = 4;
/// Period of looking at a child that should end.
const LOOK: Duration = Duration::from_millis(10);
/// Longest time until a transfer sees that its caller does not go on.
const ASK: Duration = Duration::from_millis(100);
/// Time for standard error behind the end of the child.
const ERRORS_PATIENCE: Duration = Duration::from_millis(500);

/// Bounds of what a script may send, and how slowly.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Bytes that may come. Of more nothing is written.
    pub bytes: u64,
    /// Time without a byte after which it is given up.
    pub stall: Duration,
    /// In each such period that ends before the script does, [`least`](Self::least) bytes must come.
    pub period: Duration,
    /// Bytes of a period.
    pub least: u64,
}

/// A running script. Dropped, ssh or the local shell is ended, which closes the script's standard input.
#[derive(Debug)]
pub struct Session {
    pub(crate) machine: Machine,
    script: Box<dyn Script>,
}

/// A script over ssh or the local shell.
#[derive(Debug)]
struct SystemScript {
    machine: Machine,
    child: Child,
    input: Option<ChildStdin>,
    output: ScriptOutput,
    errors: Receiver<Vec<u8>>,
}

/// The output of a script, as another thread reads it.
#[derive(Debug)]
enum ScriptOutput {
    Lines(Receiver<String>),
    Blocks(Receiver<Vec<u8>>),
}

impl Machine {
    /// Starts a POSIX shell script whose standard input is open.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn session(&self, script: &str) -> Result<Session, RemoteError> {
        let script = match self.link() {
            Some(link) => link.start(script)?,
            None => self.system_script(script, true)?,
        };
        Ok(Session {
            machine: self.clone(),
            script,
        })
    }

    /// Starts a script that is read by lines, with a standard input; or by blocks, without one.
    fn system_script(&self, script: &str, has_lines: bool) -> Result<Box<dyn Script>, RemoteError> {
        let input = if has_lines { Stdio::piped() } else { Stdio::null() };
        let mut child = started(&mut self.shell(script)?, input)?;
        let pipe = child.stdout.take();
        let output = if has_lines {
            let (sender, lines) = sync_channel(MAX_WAITING_LINES);
            if let Some(pipe) = pipe {
                beside(&mut child, move || read_lines(pipe, &sender))?;
            }
            ScriptOutput::Lines(lines)
        } else {
            let (sender, blocks) = sync_channel(MAX_WAITING_BLOCKS);
            if let Some(pipe) = pipe {
                beside(&mut child, move || read_blocks(pipe, &sender))?;
            }
            ScriptOutput::Blocks(blocks)
        };
        let errors = errors_of(&mut child)?;
        Ok(Box::new(SystemScript {
            machine: self.clone(),
            input: child.stdin.take(),
            errors,
            child,
            output,
        }))
    }

    /// Copies the standard output of a script to `sink`, within `bounds`. Returns its number of bytes. `goes_on` is asked before each
    /// block, and ten times a second while none comes.
    ///
    /// # Errors
    /// If the script fails, the sink fails, more than the bounds allow comes or too little, or `goes_on` says no (as
    /// [`RemoteError::Interrupted`]).
    pub fn fetch(
        &self,
        script: &str,
        sink: &mut dyn Write,
        bounds: Bounds,
        goes_on: &dyn Fn() -> bool,
    ) -> Result<u64, RemoteError> {
        let mut script = match self.link() {
            Some(link) => link.start(script)?,
            None => self.system_script(script, false)?,
        };
        let bytes = drain(self, script.as_mut(), sink, bounds, goes_on)?;
        script.finish(bounds.stall)?;
        Ok(bytes)
    }

    /// Gives a script the bytes of `source` as its standard input, and returns its output, up to 64 KiB. `goes_on` is asked ten times a
    /// second while they are sent.
    ///
    /// # Errors
    /// If the script fails, the source cannot be read, a block of 256 KiB is not taken within `patience`, it takes longer than that
    /// behind the last byte, or `goes_on` says no (as [`RemoteError::Interrupted`]).
    pub fn feed(
        &self,
        script: &str,
        source: impl Read + Send + 'static,
        patience: Duration,
        goes_on: &dyn Fn() -> bool,
    ) -> Result<Vec<u8>, RemoteError> {
        let mut child = started(&mut self.shell(script)?, Stdio::piped())?;
        let errors = errors_of(&mut child)?;
        let (sender, output) = channel();
        if let Some(pipe) = child.stdout.take() {
            beside(&mut child, move || {
                let mut bytes = Vec::new();
                // Bytes that cannot be read are absent.
                let _ = pipe.take(64 << 10).read_to_end(&mut bytes);
                let _ = sender.send(bytes);
            })?;
        }
        let copied = match child.stdin.take() {
            Some(input) => sent(&mut child, source, input, patience, goes_on)?,
            None => Ok(()),
        };
        // A script that fails says why; the broken pipe is a result of that.
        ended(self, &mut child, &errors, patience)?;
        copied.map_err(RemoteError::Sink)?;
        Ok(output.recv_timeout(patience).unwrap_or_default())
    }
}

fn started(command: &mut Command, input: Stdio) -> Result<Child, RemoteError> {
    let program = command.get_program().to_string_lossy().into_owned();
    command
        .process_group(0)
        .stdin(input)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|source| RemoteError::Start { program, source })
}

/// Does something in another thread. Where there is none, the child ends.
fn beside(child: &mut Child, work: impl FnOnce() + Send + 'static) -> Result<(), RemoteError> {
    let thread = std::thread::Builder::new().spawn(work);
    thread.map(drop).map_err(|source| {
        end(child);
        RemoteError::Thread(source)
    })
}

/// Reads standard error in another thread, and keeps its end.
fn errors_of(child: &mut Child) -> Result<Receiver<Vec<u8>>, RemoteError> {
    let (sender, receiver) = channel();
    if let Some(mut pipe) = child.stderr.take() {
        beside(child, move || {
            let mut kept = Vec::new();
            let mut block = [0; 4096];
            while let Ok(read @ 1..) = pipe.read(&mut block) {
                kept.extend_from_slice(&block[..read]);
                if kept.len() > 2 * MAX_ERROR_BYTES {
                    kept.drain(..kept.len() - MAX_ERROR_BYTES);
                }
            }
            let _ = sender.send(kept);
        })?;
    }
    Ok(receiver)
}

fn read_lines(pipe: impl Read, sender: &SyncSender<String>) {
    for line in lines_of(pipe, MAX_LINE_BYTES) {
        let Ok(mut line) = line else { return };
        while line.last().is_some_and(|byte| matches!(byte, b'\n' | b'\r')) {
            line.pop();
        }
        if sender.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
            return;
        }
    }
}

fn read_blocks(mut pipe: impl Read, sender: &SyncSender<Vec<u8>>) {
    loop {
        let mut block = vec![0; BLOCK_BYTES];
        match pipe.read(&mut block) {
            Ok(read @ 1..) => {
                block.truncate(read);
                if sender.send(block).is_err() {
                    return;
                }
            }
            _ => return,
        }
    }
}

fn drain(
    machine: &Machine,
    script: &mut dyn Script,
    sink: &mut dyn Write,
    bounds: Bounds,
    goes_on: &dyn Fn() -> bool,
) -> Result<u64, RemoteError> {
    let mut bytes = 0;
    let mut heard = machine.now();
    let (mut period, mut before) = (heard, 0);
    loop {
        if !goes_on() {
            return Err(RemoteError::Interrupted);
        }
        let block = script.block(ASK.min(bounds.stall));
        let now = machine.now();
        match block {
            ScriptBlock::Bytes(block) => {
                let sum = bytes + block.len() as u64;
                if sum > bounds.bytes {
                    return Err(RemoteError::TooMuch(bounds.bytes));
                }
                sink.write_all(&block).map_err(RemoteError::Sink)?;
                bytes = sum;
                heard = now;
            }
            ScriptBlock::Silence if now.duration_since(heard) >= bounds.stall => {
                return Err(RemoteError::NoAnswer(bounds.stall));
            }
            ScriptBlock::Silence => {}
            ScriptBlock::Closed => return Ok(bytes),
        }
        if now.duration_since(period) >= bounds.period {
            if bytes - before < bounds.least {
                return Err(RemoteError::TooSlow(bounds.period));
            }
            (period, before) = (now, bytes);
        }
    }
}

/// Writes `source` into the standard input of a child, in another thread: a child that reads nothing would hold this one up for ever.
fn sent(
    child: &mut Child,
    mut source: impl Read + Send + 'static,
    mut input: ChildStdin,
    patience: Duration,
    goes_on: &dyn Fn() -> bool,
) -> Result<io::Result<()>, RemoteError> {
    let (sender, blocks) = channel();
    beside(child, move || {
        let mut block = vec![0; BLOCK_BYTES];
        loop {
            let written = match source.read(&mut block) {
                Ok(0) => return,
                Ok(read) => input.write_all(&block[..read]),
                Err(error) => Err(error),
            };
            let is_last = written.is_err();
            if sender.send(written).is_err() || is_last {
                return;
            }
        }
    })?;
    let mut heard = Instant::now();
    loop {
        let failure = match blocks.recv_timeout(ASK.min(patience)) {
            Err(RecvTimeoutError::Disconnected) => return Ok(Ok(())),
            Ok(Err(error)) => return Ok(Err(error)),
            _ if !goes_on() => RemoteError::Interrupted,
            Ok(Ok(())) => {
                heard = Instant::now();
                continue;
            }
            Err(RecvTimeoutError::Timeout) if heard.elapsed() < patience => continue,
            Err(RecvTimeoutError::Timeout) => RemoteError::NoAnswer(patience),
        };
        end(child);
        return Err(failure);
    }
}

/// Waits for a child's end, and judges it.
fn ended(
    machine: &Machine,
    child: &mut Child,
    errors: &Receiver<Vec<u8>>,
    patience: Duration,
) -> Result<(), RemoteError> {
    let Some(status) = waited(child, patience) else {
        end(child);
        return Err(RemoteError::NoAnswer(patience));
    };
    let ended = EndedProgram {
        status,
        output: Vec::new(),
        errors: errors.recv_timeout(ERRORS_PATIENCE).unwrap_or_default(),
    };
    let said = machine.judged(ended)?;
    said.failure.map_or(Ok(()), Err)
}

fn waited(child: &mut Child, patience: Duration) -> Option<ExitStatus> {
    let start = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if start.elapsed() < patience => std::thread::sleep(LOOK),
            _ => return None,
        }
    }
}

/// Ends ssh, or the local shell: a process that this one has started, and not waited for.
fn end(child: &mut Child) {
    // It may have ended in between.
    let _ = child.kill();
    let _ = child.wait();
}

/// An item of a thread that reads; `silence` where none came in time; `closed` behind the last one.
fn received<T, R>(
    from: &Receiver<T>,
    patience: Duration,
    (some, silence, closed): (impl FnOnce(T) -> R, R, R),
) -> R {
    match from.recv_timeout(patience) {
        Ok(item) => some(item),
        Err(RecvTimeoutError::Timeout) => silence,
        Err(RecvTimeoutError::Disconnected) => closed,
    }
}

impl Script for SystemScript {
    fn block(&mut self, patience: Duration) -> ScriptBlock {
        let ScriptOutput::Blocks(blocks) = &self.output else {
            return ScriptBlock::Closed;
        };
        let ways = (ScriptBlock::Bytes, ScriptBlock::Silence, ScriptBlock::Closed);
        received(blocks, patience, ways)
    }

    fn line(&mut self, patience: Duration) -> SessionLine {
        let ScriptOutput::Lines(lines) = &self.output else {
            return SessionLine::Closed;
        };
        let ways = (SessionLine::Text, SessionLine::Silence, SessionLine::Closed);
        received(lines, patience, ways)
    }

    fn say(&mut self, line: &str) -> bool {
        let input = self.input.as_mut();
        let line = format!("{line}\n");
        input.is_some_and(|input| input.write_all(line.as_bytes()).is_ok())
    }

    fn close_input(&mut self) {
        self.input = None;
    }

    fn finish(&mut self, patience: Duration) -> Result<(), RemoteError> {
        self.input = None;
        ended(&self.machine, &mut self.child, &self.errors, patience)
    }
}

impl Drop for SystemScript {
    fn drop(&mut self) {
        self.input = None;
        if !matches!(self.child.try_wait(), Ok(Some(_))) {
            end(&mut self.child);
        }
    }
}

impl Session {
    /// Writes a line to the script. False: it does not read any more.
    pub fn say(&mut self, line: &str) -> bool {
        self.script.say(line)
    }

    /// Closes the script's standard input.
    pub fn close_input(&mut self) {
        self.script.close_input();
    }

    /// The script's next line.
    pub fn line(&mut self, patience: Duration) -> SessionLine {
        self.script.line(patience)
    }

    /// The script's next lines, up to the one of which `is_last` is true, or its end. Each one may take `patience`, and all of them a few times
    /// that: a machine that says a word now and then holds nobody up.
    ///
    /// # Errors
    /// If it is silent for too long, or goes on for too long.
    pub(crate) fn lines(
        &mut self,
        patience: Duration,
        mut is_last: impl FnMut(&str) -> bool,
    ) -> Result<(), RemoteError> {
        let (begun, longest) = (self.machine.now(), patience * MAX_LINE_TIMES);
        for _ in 0..MAX_SAID_LINES {
            match self.line(patience) {
                SessionLine::Text(line) if is_last(&line) => break,
                SessionLine::Text(_) if self.machine.now().duration_since(begun) > longest => {
                    return Err(RemoteError::TooSlow(longest));
                }
                SessionLine::Text(_) => {}
                SessionLine::Silence => return Err(RemoteError::NoAnswer(patience)),
                SessionLine::Closed => break,
            }
        }
        Ok(())
    }

    /// Closes the script's standard input, and waits for its end.
    ///
    /// # Errors
    /// If it failed, the connection was lost, or it does not end.
    pub fn finish(mut self, patience: Duration) -> Result<(), RemoteError> {
        self.script.finish(patience)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use roce_switches::inventory::SshSettings;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(20);
    const BOUNDS: Bounds = Bounds {
        bytes: 1_000_000,
        stall: PATIENCE,
        period: PATIENCE,
        least: 1,
    };

    fn here() -> Machine {
        Machine::new("here", "local", None, &Arc::new(SshSettings::default()))
    }

    #[test]
    fn a_session_answers_line_by_line_and_ends_with_its_input() {
        let mut session = here()
            .session("while read -r line; do echo \"got $line\"; done; echo over")
            .unwrap();
        assert!(session.say("one"));
        assert_eq!(session.line(PATIENCE), SessionLine::Text("got one".to_owned()));
        assert_eq!(session.line(Duration::from_millis(20)), SessionLine::Silence);
        session.close_input();
        assert_eq!(session.line(PATIENCE), SessionLine::Text("over".to_owned()));
        assert_eq!(session.line(PATIENCE), SessionLine::Closed);
        session.finish(PATIENCE).unwrap();
        let dripping = "while echo; do sleep 0.02; done";
        let slow = here()
            .session(dripping)
            .unwrap()
            .lines(Duration::from_millis(50), |_| false);
        assert!(matches!(slow, Err(RemoteError::TooSlow(_))), "{slow:?}");
        let failed = here().session("echo why >&2; exit 4").unwrap().finish(PATIENCE);
        assert!(
            matches!(&failed, Err(RemoteError::Failed { code: 4, text }) if text == "why"),
            "{failed:?}"
        );
    }

    #[test]
    fn files_come_and_go_as_bytes() {
        let mut sink = Vec::new();
        // 1,000,000 bytes, from the second one on.
        let script = "head -c 1000000 /dev/zero | tail -c +2";
        let bytes = here().fetch(script, &mut sink, BOUNDS, &|| true).unwrap();
        assert_eq!((bytes, sink.len()), (999_999, 999_999));
        let stall = Duration::from_millis(100);
        let stalled = here().fetch("echo; sleep 60", &mut sink, Bounds { stall, ..BOUNDS }, &|| true);
        assert!(matches!(stalled, Err(RemoteError::NoAnswer(_))), "{stalled:?}");
        let stopped = here().fetch("echo; sleep 60", &mut sink, BOUNDS, &|| false);
        assert!(matches!(stopped, Err(RemoteError::Interrupted)), "{stopped:?}");
        let text = vec![b'x'; 300_000];
        let answer = here().feed("wc -c", io::Cursor::new(text), PATIENCE, &|| true);
        assert_eq!(String::from_utf8(answer.unwrap()).unwrap().trim(), "300000");
    }

    /// A pipe holds 64 KiB: the rest waits for a reader (pipe(7)).
    #[test]
    fn a_script_that_reads_nothing_is_ended() {
        let text = || io::Cursor::new(vec![b'x'; 300_000]);
        let patience = Duration::from_millis(300);
        let asleep = here().feed("exec sleep 600", text(), patience, &|| true);
        assert!(matches!(asleep, Err(RemoteError::NoAnswer(_))), "{asleep:?}");
        let stopped = here().feed("exec sleep 600", text(), PATIENCE, &|| false);
        assert!(matches!(stopped, Err(RemoteError::Interrupted)), "{stopped:?}");
    }

    #[test]
    fn a_script_that_sends_too_much_or_too_slowly_is_ended() {
        let mut sink = Vec::new();
        let flood = here().fetch("cat /dev/zero", &mut sink, BOUNDS, &|| true);
        assert!(matches!(flood, Err(RemoteError::TooMuch(1_000_000))), "{flood:?}");
        assert!(sink.len() <= 1_000_000, "{} bytes were kept", sink.len());
        // A byte each 50 ms is no silence, and would take 14 hours for a megabyte.
        let period = Duration::from_millis(400);
        let slow = Bounds {
            period,
            least: 100,
            ..BOUNDS
        };
        let begun = Instant::now();
        let slow = here().fetch(
            "while :; do echo; sleep 0.05; done",
            &mut Vec::new(),
            slow,
            &|| true,
        );
        assert!(
            matches!(slow, Err(RemoteError::TooSlow(limit)) if limit == period),
            "{slow:?}"
        );
        assert!(begun.elapsed() < PATIENCE);
        // A signal is seen while nothing comes.
        let begun = Instant::now();
        let stops = || begun.elapsed() < Duration::from_millis(300);
        let stopped = here().fetch("echo; sleep 60", &mut Vec::new(), BOUNDS, &stops);
        assert!(matches!(stopped, Err(RemoteError::Interrupted)), "{stopped:?}");
        assert!(begun.elapsed() < PATIENCE / 2, "{:?}", begun.elapsed());
    }
}
