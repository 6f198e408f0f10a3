//! Runs another program to its end, with limits of its time and of its output.

use std::io::{self, Read};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// How often a program's end is looked for.
const LOOK: Duration = Duration::from_millis(10);

/// Limits of one run.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Time until it ends, and then until its output is closed.
    pub patience: Duration,
    /// Bytes of standard output; what follows is cut off.
    pub output: u64,
    /// Bytes of standard error; 0: it goes nowhere.
    pub errors: u64,
}

/// A program that has ended.
#[derive(Debug)]
pub struct EndedProgram {
    /// How it ended.
    pub status: ExitStatus,
    /// Standard output.
    pub output: Vec<u8>,
    /// Standard error.
    pub errors: Vec<u8>,
}

/// Why a program has not ended by itself.
#[derive(Debug)]
pub enum Failure {
    /// The system could not start it, or not wait for it.
    System(io::Error),
    /// It took too long, and was ended.
    NoAnswer,
    /// It was ended because the caller wants to stop.
    Stopped,
}

/// Runs `command`, which reads nothing, to its end.
///
/// # Errors
/// If it cannot be started, or takes longer than allowed: then it is ended.
pub fn run(command: &mut Command, limits: Limits) -> Result<EndedProgram, Failure> {
    run_unless(command, limits, || false)
}

/// Runs `command`, which reads nothing, to its end, or until `stops` is true.
///
/// # Errors
/// As for [`run`], and if it was ended because of `stops`.
pub fn run_unless(
    command: &mut Command,
    limits: Limits,
    stops: impl Fn() -> bool,
) -> Result<EndedProgram, Failure> {
    let errors = if limits.errors == 0 {
        Stdio::null()
    } else {
        Stdio::piped()
    };
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(errors)
        .spawn()
        .map_err(Failure::System)?;
    let output = child.stdout.take().map(|pipe| collect(pipe, limits.output));
    let errors = child.stderr.take().map(|pipe| collect(pipe, limits.errors));
    let (output, errors) = match (output.transpose(), errors.transpose()) {
        (Ok(output), Ok(errors)) => (output, errors),
        (Err(error), _) | (_, Err(error)) => {
            let _ = child.kill();
            let _ = child.wait();
            return Err(Failure::System(error));
        }
    };
    let start = Instant::now();
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if start.elapsed() < limits.patience && !stops() => std::thread::sleep(LOOK),
            ended => {
                // It may have ended in between.
                let _ = child.kill();
                let _ = child.wait();
                let failure = if stops() {
                    Failure::Stopped
                } else {
                    Failure::NoAnswer
                };
                return Err(ended.err().map_or(failure, Failure::System));
            }
        }
    };
    // A program that it left in the background may hold its output open.
    let text = |pipe: Option<Receiver<Vec<u8>>>| pipe.map(|pipe| heard(&pipe, limits.patience, &stops));
    match text(output) {
        Some(Ok(output)) => Ok(EndedProgram {
            status,
            output,
            errors: text(errors).and_then(Result::ok).unwrap_or_default(),
        }),
        Some(Err(failure)) => Err(failure),
        None => Err(Failure::NoAnswer),
    }
}

/// Bytes that a pipe's thread has read, once it is closed.
fn heard(
    pipe: &Receiver<Vec<u8>>,
    patience: Duration,
    stops: &impl Fn() -> bool,
) -> Result<Vec<u8>, Failure> {
    let start = Instant::now();
    loop {
        match pipe.recv_timeout(LOOK.min(patience)) {
            Ok(bytes) => return Ok(bytes),
            Err(_) if stops() => return Err(Failure::Stopped),
            Err(RecvTimeoutError::Timeout) if start.elapsed() < patience => {}
            Err(_) => return Err(Failure::NoAnswer),
        }
    }
}

/// Reads a pipe up to `limit` bytes in another thread.
fn collect(pipe: impl Read + Send + 'static, limit: u64) -> io::Result<Receiver<Vec<u8>>> {
    let (sender, receiver) = channel();
    std::thread::Builder::new().spawn(move || {
        let mut bytes = Vec::new();
        // Bytes that cannot be read are absent, and nobody may wait for them any more.
        let _ = pipe.take(limit).read_to_end(&mut bytes);
        let _ = sender.send(bytes);
    })?;
    Ok(receiver)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, patience: Duration) -> Result<EndedProgram, Failure> {
        let limits = Limits {
            patience,
            output: 8,
            errors: 4,
        };
        run(Command::new("sh").args(["-c", script]), limits)
    }

    #[test]
    fn output_status_and_their_limits() {
        let ended = shell(
            "printf 1234567890; printf abcdef >&2; exit 3",
            Duration::from_secs(20),
        )
        .unwrap();
        assert_eq!(ended.status.code(), Some(3));
        assert_eq!(
            (&ended.output[..], &ended.errors[..]),
            (&b"12345678"[..], &b"abcd"[..])
        );
    }

    #[test]
    fn a_program_that_takes_too_long_is_ended() {
        let failure = shell("sleep 600", Duration::from_millis(50)).unwrap_err();
        assert!(matches!(failure, Failure::NoAnswer), "{failure:?}");
        let limits = Limits {
            patience: Duration::from_mins(1),
            output: 0,
            errors: 0,
        };
        let stopped = run_unless(Command::new("sh").args(["-c", "sleep 600"]), limits, || true).unwrap_err();
        assert!(matches!(stopped, Failure::Stopped), "{stopped:?}");
        let missing = run(
            &mut Command::new("/nonexistent/program"),
            Limits {
                patience: Duration::ZERO,
                output: 0,
                errors: 0,
            },
        );
        assert!(matches!(missing, Err(Failure::System(_))), "{missing:?}");
    }
}
