//! Commands of this program, run as processes of their own: the command line answers, so that both say the same. Each has limits of time and
//! output, and ends when its question is cancelled or this process goes.

use std::io::{self, Read};
use std::process::{ChildStderr, ChildStdout, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

use crate::command::beside;
use crate::own_process::own_process;

/// Bytes of an output that are kept.
pub(super) const MAX_OUTPUT: usize = 32 << 20;
/// Bytes of messages that are kept.
const MAX_MESSAGES: u64 = 16 << 10;
/// How often a running command looks whether it was cancelled.
const LOOK: Duration = Duration::from_millis(20);
/// Blocks of output that wait.
const MAX_WAITING: usize = 4;

/// Reasons to end a command before its time.
#[derive(Debug)]
pub(super) struct Bounds<'a> {
    /// Set when the question is cancelled.
    pub cancelled: &'a AtomicBool,
    /// When it ends in any case.
    pub until: Instant,
}

/// Output of a command that ended by itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Output {
    pub text: Vec<u8>,
    /// Beyond [`MAX_OUTPUT`] there was more.
    pub is_cut: bool,
    /// Exit code: 2 says that an input could not be read to its end.
    pub code: i32,
    /// Its messages on standard error.
    pub messages: String,
}

/// Runs a command of this program with `words`, in the folder where this process is.
///
/// # Errors
/// When it cannot be started, takes too long, is cancelled, or ends by a signal.
pub(super) fn run(words: &[String], bounds: &Bounds<'_>) -> anyhow::Result<Output> {
    let mut command = beside::command(own_process().get_program());
    // Texts of the help are as wide as the terminal.
    command.args(words).env("COLUMNS", "100").env("NO_COLOR", "1");
    let command = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().context("an analysis cannot be started")?;
    let (sender, blocks) = sync_channel(MAX_WAITING);
    let reader = read_output(child.stdout.take(), sender);
    let threads = reader.and_then(|reader| Ok((reader, read_messages(child.stderr.take())?)));
    let (reader, messages) = threads.inspect_err(|_| {
        // It may have ended by itself just now.
        let _ = child.kill();
        let _ = child.wait();
    })?;
    let collected = collect(&blocks, bounds);
    if collected.is_err() {
        // It may have ended by itself just now.
        let _ = child.kill();
    }
    // A reader that waits for room ends with its channel.
    drop(blocks);
    let status = child.wait();
    let _ = reader.join();
    let messages = messages.join().unwrap_or_default();
    let (text, is_cut) = collected?;
    let code = status?.code();
    let code = code.with_context(|| format!("the analysis was ended by a signal {messages}"))?;
    Ok(Output {
        text,
        is_cut,
        code,
        messages,
    })
}

/// A thread that sends what a process prints.
fn read_output(
    output: Option<ChildStdout>,
    sender: SyncSender<io::Result<Vec<u8>>>,
) -> io::Result<JoinHandle<()>> {
    std::thread::Builder::new()
        .name("output".to_owned())
        .spawn(move || {
            let Some(mut output) = output else { return };
            loop {
                let mut block = Vec::new();
                let read = (&mut output).take(1 << 16).read_to_end(&mut block);
                let is_last = block.is_empty() || read.is_err();
                if sender.send(read.map(|_| block)).is_err() || is_last {
                    return;
                }
            }
        })
}

/// A thread that reads messages, and passes over those beyond the limit.
fn read_messages(messages: Option<ChildStderr>) -> io::Result<JoinHandle<String>> {
    std::thread::Builder::new()
        .name("messages".to_owned())
        .spawn(move || {
            let mut text = Vec::new();
            if let Some(mut messages) = messages {
                let _ = messages.by_ref().take(MAX_MESSAGES).read_to_end(&mut text);
                let _ = io::copy(&mut messages, &mut io::sink());
            }
            String::from_utf8_lossy(&text).into_owned()
        })
}

/// The output as far as it is kept, and true if there was more.
fn collect(blocks: &Receiver<io::Result<Vec<u8>>>, bounds: &Bounds<'_>) -> anyhow::Result<(Vec<u8>, bool)> {
    let (mut text, mut is_cut) = (Vec::new(), false);
    loop {
        if bounds.cancelled.load(Ordering::Relaxed) {
            bail!("cancelled");
        }
        if Instant::now() >= bounds.until {
            bail!(
                "the analysis took too long\nhint: a smaller capture, or a larger --time-limit of the server"
            );
        }
        match blocks.recv_timeout(LOOK) {
            Ok(block) => {
                let block = block?;
                let room = MAX_OUTPUT - text.len();
                is_cut |= block.len() > room;
                text.extend_from_slice(block.get(..room).unwrap_or(&block));
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok((text, is_cut)),
        }
    }
}
