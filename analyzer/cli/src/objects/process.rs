//! The process that reads and writes objects, as the run sees it: it is started, gets requests over a socket, and ends.

use std::fs::File;
use std::io::{IoSlice, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use roce_store::Location;
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType, sendmsg,
    socketpair,
};

use super::serve;
use super::wire::{self, Cause, Verb};
use crate::own_process::own_process;

/// Objects that one run reads.
const MAX_INPUTS: usize = 1_000;
/// The process says nothing for this long only if it has stopped: it tries for less than a minute and a half by itself.
const PATIENCE: Duration = Duration::from_mins(5);

/// Why something was not done with an object.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) cause: Cause,
    text: String,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Failure {}

/// User as whom the process works.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Whose<'a> {
    /// That of this process.
    Own,
    /// That of a live run that root started: this one, or the one that such runs choose.
    Lower(Option<&'a str>),
    /// As `--no-sandbox` says.
    Unconfined,
}

/// The process that reads and writes objects.
#[derive(Debug)]
pub(crate) struct Objects {
    control: OwnedFd,
    child: Child,
}

impl Objects {
    /// Starts it. It can read the objects `reads`, and write and remove those at `writes` or below.
    ///
    /// # Errors
    /// The system gives no process.
    pub(crate) fn start(
        reads: &[Location],
        writes: Option<&Location>,
        whose: Whose<'_>,
    ) -> anyhow::Result<Arc<Self>> {
        if reads.len() > MAX_INPUTS {
            bail!(
                "{} objects: one run reads at most {MAX_INPUTS}\nhint: analyse each by itself into one dataset: docs/fleet.md",
                reads.len()
            );
        }
        let (control, other) = socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )
        .context("no socket for the process that reads and writes objects")?;
        let mut command = own_process();
        command.arg(serve::NAME);
        for read in reads {
            command.arg("--read").arg(read.to_string());
        }
        if let Some(write) = writes {
            command.arg("--write").arg(write.to_string());
        }
        match whose {
            Whose::Own => drop(command.arg("--own-user")),
            Whose::Lower(None) => {}
            Whose::Lower(Some(user)) => drop(command.args(["--user", user])),
            Whose::Unconfined => drop(command.arg("--no-sandbox")),
        }
        let child = command
            // A signal from the terminal is the run's: this process ends when the run does.
            .process_group(0)
            .stdin(Stdio::from(other))
            .stdout(Stdio::null())
            .spawn()
            .context("no process that reads and writes objects")?;
        Ok(Arc::new(Self { control, child }))
    }

    /// The size of an object.
    ///
    /// # Errors
    /// There is none, or it cannot be reached.
    pub(crate) fn size(&self, url: &str) -> Result<u64, Failure> {
        let mut answer = self.request(Verb::Size, url, None, PATIENCE)?;
        Ok(answer.begin()?.unwrap_or(0))
    }

    /// Begins to read an object; its size.
    ///
    /// # Errors
    /// As those of [`size`](Self::size).
    pub(crate) fn read(&self, url: &str) -> Result<(impl Read + Send + use<>, u64), Failure> {
        let mut answer = self.request(Verb::Read, url, None, PATIENCE)?;
        let size = answer.begin()?.unwrap_or(0);
        Ok((answer, size))
    }

    /// Makes a file the object at `url`, whole or not at all, within `patience`.
    ///
    /// # Errors
    /// It cannot be written, or not in this time.
    pub(crate) fn write(&self, url: &str, file: &File, patience: Duration) -> Result<(), Failure> {
        let mut answer = self.request(Verb::Write, url, Some(file.as_fd()), patience)?;
        answer.begin().map(drop)
    }

    /// Removes the object at `url`, if there is one.
    ///
    /// # Errors
    /// As those of [`write`](Self::write).
    pub(crate) fn remove(&self, url: &str, patience: Duration) -> Result<(), Failure> {
        let mut answer = self.request(Verb::Remove, url, None, patience)?;
        answer.begin().map(drop)
    }

    fn request(
        &self,
        verb: Verb,
        url: &str,
        file: Option<BorrowedFd<'_>>,
        patience: Duration,
    ) -> Result<Answer, Failure> {
        let gone = |error: std::io::Error| Failure::gone(url, &error);
        let (own, other) = UnixStream::pair().map_err(gone)?;
        own.set_read_timeout(Some(patience.max(Duration::from_millis(1))))
            .map_err(gone)?;
        let message = verb.with(url);
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        let given: Vec<BorrowedFd<'_>> = std::iter::once(other.as_fd()).chain(file).collect();
        if !ancillary.push(SendAncillaryMessage::ScmRights(&given)) {
            return Err(gone(std::io::Error::other("no room for open files")));
        }
        let parts = [IoSlice::new(&message)];
        sendmsg(&self.control, &parts, &mut ancillary, SendFlags::NOSIGNAL)
            .map_err(|errno| gone(errno.into()))?;
        Ok(Answer {
            from: own,
            url: url.to_owned(),
            left: 0,
            has_ended: false,
        })
    }
}

/// A place in a store under which files become objects.
#[derive(Clone, Debug)]
pub(crate) struct Destination {
    objects: Arc<Objects>,
    location: Location,
}

impl Destination {
    /// Starts the process for the place at `url`.
    ///
    /// # Errors
    /// The URL is wrong, or the system gives no process.
    pub(crate) fn start(url: &str, whose: Whose<'_>) -> anyhow::Result<Self> {
        let location = Location::parse(url)?;
        Ok(Self {
            objects: Objects::start(&[], Some(&location), whose)?,
            location,
        })
    }

    /// Makes a file the object `path` below the place, whole or not at all, within `patience`.
    ///
    /// # Errors
    /// It cannot be written, or not in this time.
    pub(crate) fn write(&self, path: &str, file: &File, patience: Duration) -> Result<(), Failure> {
        self.objects.write(&self.url(path), file, patience)
    }

    /// Removes the object `path` below the place, if there is one.
    ///
    /// # Errors
    /// As those of [`write`](Self::write).
    pub(crate) fn remove(&self, path: &str, patience: Duration) -> Result<(), Failure> {
        self.objects.remove(&self.url(path), patience)
    }

    fn url(&self, path: &str) -> String {
        format!("{}/{path}", self.location)
    }
}

impl std::fmt::Display for Destination {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.location.fmt(f)
    }
}

impl Drop for Objects {
    /// The process ends when the socket closes, which happens behind this; it is not waited for.
    fn drop(&mut self) {
        let _ = rustix::net::shutdown(&self.control, rustix::net::Shutdown::Both);
        let _ = self.child.wait();
    }
}

impl Failure {
    fn gone(url: &str, error: &std::io::Error) -> Self {
        let is_late = matches!(
            error.kind(),
            std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
        );
        let why = match error.kind() {
            _ if is_late => "the store has not answered in time".to_owned(),
            std::io::ErrorKind::UnexpectedEof
            | std::io::ErrorKind::BrokenPipe
            | std::io::ErrorKind::ConnectionReset
            | std::io::ErrorKind::NotConnected => {
                "the process that reads and writes objects has ended".to_owned()
            }
            _ => format!("the process that reads and writes objects cannot be asked: {error}"),
        };
        Self {
            cause: if is_late { Cause::Passing } else { Cause::Gone },
            text: format!("{url}: {why}"),
        }
    }

    /// The text without the URL in front, for messages that begin with it.
    pub(crate) fn without_url(&self, url: &str) -> &str {
        let rest = self
            .text
            .strip_prefix(url)
            .and_then(|rest| rest.strip_prefix(": "));
        rest.unwrap_or(&self.text)
    }
}

/// An answer that is being read.
struct Answer {
    from: UnixStream,
    url: String,
    /// Bytes of the current frame that were not read.
    left: usize,
    has_ended: bool,
}

impl Answer {
    /// The first frame: a size where it has one. Everything else of a request without data is its end.
    fn begin(&mut self) -> Result<Option<u64>, Failure> {
        let (kind, content) =
            wire::receive(&mut self.from).map_err(|error| Failure::gone(&self.url, &error))?;
        match kind {
            wire::FAILED => Err(self.failure(&content)),
            wire::SIZE => Ok(content.first_chunk().map(|size| u64::from_le_bytes(*size))),
            _ => {
                self.has_ended = true;
                Ok(None)
            }
        }
    }

    fn failure(&mut self, content: &[u8]) -> Failure {
        self.has_ended = true;
        let (cause, text) = wire::parse_failure(content);
        Failure { cause, text }
    }
}

impl Read for Answer {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        while self.left == 0 && !self.has_ended {
            let next = wire::head(&mut self.from);
            let (kind, length) = next.map_err(|error| {
                self.has_ended = true;
                std::io::Error::other(Failure::gone(&self.url, &error).without_url(&self.url).to_owned())
            })?;
            if kind == wire::DATA {
                self.left = length;
                continue;
            }
            let mut content = vec![0; length];
            self.from.read_exact(&mut content)?;
            self.has_ended = true;
            if kind == wire::FAILED {
                let failure = self.failure(&content);
                return Err(std::io::Error::other(failure.without_url(&self.url).to_owned()));
            }
        }
        if self.has_ended {
            return Ok(0);
        }
        let most = self.left.min(buffer.len());
        let read = self.from.read(buffer.get_mut(..most).unwrap_or_default())?;
        if read == 0 && most > 0 {
            self.has_ended = true;
            return Err(std::io::Error::other(
                "the process that reads and writes objects has ended",
            ));
        }
        self.left -= read;
        Ok(read)
    }
}
