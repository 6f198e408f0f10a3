//! `metrics push`: the process that sends metrics to a Collector, because whoever serves them opens no socket.
//!
//! It reads whole texts of metrics from its standard input, each behind the other, and ends with it. Texts that cannot be sent at once
//! wait in a queue with a bound: of too many the oldest is dropped.

use std::collections::VecDeque;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Condvar, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Args;
use roce_otlp::request_of_text;
use roce_pipeline::time_of_day;
use roce_remote::{PushOutcome, PushTarget};
use rustix::thread::CapabilitySet;

use crate::command::confinement::Confinement;
use crate::options::names::this_machine;
use crate::output::messages;
use crate::sandbox::Outputs;

/// End of a text.
pub(crate) const END: &str = "# EOF\n";
/// Requests that wait.
const MAX_WAITING: usize = 16;
/// Bytes of requests that wait.
const MAX_WAITING_BYTES: usize = 32 << 20;
/// Bytes of one text: 50,000 series of 200 bytes are 10 MB.
const MAX_TEXT: u64 = 16 << 20;
/// Bytes of a file with a token.
pub(crate) const MAX_TOKEN: u64 = 16 << 10;
/// Time until a request is sent again, at first and at most; it doubles in between.
const DELAYS: [Duration; 2] = [Duration::from_secs(1), Duration::from_mins(1)];
/// Time for what still waits when whoever serves has ended.
const LAST_WAIT: Duration = Duration::from_secs(2);
/// Longest time that a receiver's Retry-After is followed.
const MAX_RETRY_AFTER: Duration = Duration::from_mins(5);

/// Send metrics that come on standard input by OTLP/HTTP
#[derive(Args, Debug)]
pub(super) struct Push {
    /// Address of the receiver
    #[arg(long, value_name = "URL")]
    url: String,

    /// File with the token that is sent
    #[arg(long, value_name = "FILE")]
    token: Option<PathBuf>,

    /// File with the certificates that sign the receiver's
    #[arg(long, value_name = "FILE")]
    ca: Option<String>,

    /// User that a process started by root continues as
    #[arg(long, value_name = "NAME", conflicts_with = "no_sandbox")]
    user: Option<String>,

    /// Keep the user
    #[arg(long)]
    no_sandbox: bool,
}

/// Sends until standard input ends.
pub(super) fn push(arguments: &Push) -> anyhow::Result<ExitCode> {
    // Whoever started it has given up rights already, and is the user that it keeps.
    let begin = || Confinement::begin(arguments.user.as_deref(), false);
    let confinement = (!arguments.no_sandbox).then(begin).transpose()?;
    crate::sandbox::raise()?;
    let token = arguments.token.as_deref();
    let token = token
        .map(|path| roce_files::read_text(path, MAX_TOKEN))
        .transpose()?;
    let nothing = Outputs {
        dir: None,
        file: None,
        rotates: false,
    };
    match confinement {
        Some(confinement) => confinement.give_up(&nothing, CapabilitySet::empty())?,
        None => crate::sandbox::give_up(None, CapabilitySet::empty())?,
    }
    let token = token.as_deref().map(str::trim);
    let target = PushTarget::new(&arguments.url, arguments.ca.as_deref(), token)?;
    let queue = Arc::new(WaitingRequests::default());
    let (ended, has_ended) = mpsc::channel::<()>();
    let sent = Arc::clone(&queue);
    std::thread::Builder::new()
        .name("push".to_owned())
        .spawn(move || {
            // Dropped at its end, be that a panic, which has been reported.
            let _ended = ended;
            send(&target, &sent);
        })
        .context("no thread for requests")?;
    read(&queue);
    // Whoever serves has ended. A receiver that is silent is not waited for.
    let _ = has_ended.recv_timeout(LAST_WAIT);
    Ok(ExitCode::SUCCESS)
}

/// Takes texts until standard input ends.
fn read(queue: &WaitingRequests) {
    let host = this_machine();
    let resource = [("service.name", "roce-analyze"), ("host.name", host.as_str())];
    let mut input = BufReader::new(std::io::stdin().lock());
    let mut text = String::new();
    loop {
        let begin = text.len();
        let room = MAX_TEXT.saturating_sub(begin as u64);
        let count = input.by_ref().take(room).read_line(&mut text).unwrap_or(0);
        if count == 0 {
            break;
        }
        if text[begin..] == *END {
            queue.push(request_of_text(&text, time_of_day(), &resource));
            text.clear();
        }
    }
    queue.end();
}

/// Sends what waits, until the queue has ended and is empty, or a request would have to wait after its end.
fn send(target: &PushTarget, queue: &WaitingRequests) {
    let mut is_failing = false;
    while let Some(request) = queue.next() {
        let mut delay = DELAYS[0];
        loop {
            let (after, text) = match target.send(&request) {
                PushOutcome::Taken => {
                    if std::mem::take(&mut is_failing) {
                        messages::note("push", &format!("{} takes metrics again", target.url()));
                    }
                    break;
                }
                PushOutcome::Refused(text) => {
                    if !std::mem::replace(&mut is_failing, true) {
                        messages::warn("push", &format!("{} refuses metrics: {text}", target.url()));
                    }
                    break;
                }
                PushOutcome::Later(after, text) => (after, text),
            };
            if !std::mem::replace(&mut is_failing, true) {
                messages::warn("push", &format!("{} takes no metrics: {text}", target.url()));
            }
            if !queue.wait(after.map_or_else(|| jittered(delay), |time| time.min(MAX_RETRY_AFTER))) {
                return;
            }
            delay = (delay * 2).min(DELAYS[1]);
        }
    }
}

/// Between a half and the whole of a time, at random: many senders do not come back at one moment.
fn jittered(delay: Duration) -> Duration {
    let random = RandomState::new().hash_one(0) % 1_000;
    delay / 2 + delay.mul_f64(roce_model::value_of(random) / 2_000.0)
}

/// Requests that wait, the oldest first.
#[derive(Default)]
struct WaitingRequests {
    state: Mutex<QueueState>,
    changed: Condvar,
}

#[derive(Default)]
struct QueueState {
    requests: VecDeque<Vec<u8>>,
    bytes: usize,
    dropped: u64,
    has_ended: bool,
}

impl WaitingRequests {
    fn state(&self) -> std::sync::MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a request; of too many, the oldest are dropped.
    fn push(&self, request: Vec<u8>) {
        let mut state = self.state();
        state.bytes += request.len();
        state.requests.push_back(request);
        while state.requests.len() > MAX_WAITING || state.bytes > MAX_WAITING_BYTES {
            let oldest = state.requests.pop_front().unwrap_or_default();
            state.bytes -= oldest.len();
            state.dropped += 1;
            if state.dropped == 1 {
                messages::warn("push", "requests wait for too long: the oldest are dropped");
            }
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Nothing more comes.
    fn end(&self) {
        self.state().has_ended = true;
        self.changed.notify_all();
    }

    /// The oldest request, once there is one; `None` at the end.
    fn next(&self) -> Option<Vec<u8>> {
        let mut state = self.state();
        loop {
            if let Some(request) = state.requests.pop_front() {
                state.bytes -= request.len();
                return Some(request);
            }
            if state.has_ended {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits for a time. False if the queue has ended: nobody waits for what cannot be sent.
    fn wait(&self, time: Duration) -> bool {
        let until = Instant::now() + time;
        let mut state = self.state();
        while !state.has_ended {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_too_many_requests_the_oldest_are_dropped() {
        let queue = WaitingRequests::default();
        for number in 0..20 {
            queue.push(vec![number]);
        }
        // 20 came, 16 have room.
        assert_eq!(queue.next(), Some(vec![4]));
        assert_eq!(queue.state().dropped, 4);
        queue.push(vec![0; MAX_WAITING_BYTES]);
        assert_eq!(queue.next(), Some(vec![0; MAX_WAITING_BYTES]));
        queue.end();
        assert_eq!(queue.next(), None);
        assert!(!queue.wait(Duration::from_mins(1)));
    }

    #[test]
    fn delays_are_between_a_half_and_the_whole() {
        for _ in 0..100 {
            let delay = jittered(Duration::from_secs(2));
            assert!((1.0..=2.0).contains(&delay.as_secs_f64()), "{delay:?}");
        }
    }
}
