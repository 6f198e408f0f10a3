//! The process that reads and writes objects for a run. It connects to stores, and touches no file but those that resolve names and hold
//! credentials. Each request has a thread of its own; their number is bounded.

use std::any::Any;
use std::fs::File;
use std::io::{self, IoSliceMut, Read};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use clap::Args;
use roce_store::{Client, Error, Location};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use rustix::thread::CapabilitySet;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::wire::{self, Cause, Verb};
use crate::sandbox::{self, Identity, Outputs};

/// The name of the hidden command.
pub(super) const NAME: &str = "objects";
/// Requests at once: a run reads as many captures.
const MAX_REQUESTS: usize = 1_024;

/// The name of the thread of a request.
const REQUEST_THREAD: &str = "object";

/// Read and write objects for a run that started this process
#[derive(Args, Debug)]
#[command(hide = true)]
pub(crate) struct ServeArguments {
    /// An object that may be read
    #[arg(long, value_name = "URL")]
    read: Vec<String>,

    /// The place at and below which objects may be written and removed
    #[arg(long, value_name = "URL")]
    write: Option<String>,

    /// User as whom a process that root started works
    #[arg(long, value_name = "NAME", conflicts_with_all = ["no_sandbox", "own_user"])]
    user: Option<String>,

    /// Keep the user
    #[arg(long, conflicts_with = "no_sandbox")]
    own_user: bool,

    /// Keep the user, and do not limit files and system calls
    #[arg(long)]
    no_sandbox: bool,
}

/// Rights of the process: objects that it may read and write.
struct Service {
    client: Arc<Client>,
    reads: Vec<Location>,
    write: Option<Location>,
    requests: AtomicUsize,
}

/// Works until the run has gone.
pub(crate) fn serve(arguments: &ServeArguments) -> anyhow::Result<ExitCode> {
    sandbox::lower()?;
    let reads = arguments.read.iter().map(|url| Location::parse(url));
    let service = Service {
        client: Arc::new(Client::new()),
        reads: reads.collect::<Result<_, _>>()?,
        write: arguments.write.as_deref().map(Location::parse).transpose()?,
        requests: AtomicUsize::new(0),
    };
    let _signals = ignore_signals()?;
    // Credentials may be the caller's alone. What is wrong with the settings is said in the answers, with the URL.
    for location in service.reads.iter().chain(&service.write) {
        let _ = service.client.prepare(location);
    }
    let named = arguments.user.as_deref().map(Identity::named).transpose()?;
    sandbox::raise()?;
    let identity = if arguments.own_user || arguments.no_sandbox {
        None
    } else {
        let none = Outputs {
            dir: None,
            file: None,
            rotates: false,
        };
        none.identity(arguments.user.as_deref().zip(named))?
    };
    sandbox::give_up(identity, CapabilitySet::empty())?;
    if !arguments.no_sandbox {
        sandbox::confine_to_network(&roce_store::credential_folders(), &roce_store::ports())?;
    }
    hide_panics_of_requests();
    take(&Arc::new(service));
    // Threads in the middle of a request are not waited for: nobody is left who waits for their answers.
    std::process::exit(0);
}

/// From here on signals that end a run do not end this process: it is needed for the last upload, and ends with the run. A service manager may
/// signal all processes of a service.
fn ignore_signals() -> anyhow::Result<(Runtime, Vec<Signal>)> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let inside = runtime.enter();
    let kinds = [
        SignalKind::interrupt(),
        SignalKind::terminate(),
        SignalKind::hangup(),
    ];
    let signals = kinds.into_iter().map(signal).collect::<Result<_, _>>()?;
    drop(inside);
    Ok((runtime, signals))
}

/// A request whose thread panics gets that as its answer: nothing is said besides.
fn hide_panics_of_requests() {
    let say = panic::take_hook();
    panic::set_hook(Box::new(move |panicked| {
        if std::thread::current().name() != Some(REQUEST_THREAD) {
            say(panicked);
        }
    }));
}

/// Takes requests until the socket closes.
fn take(service: &Arc<Service>) {
    let stdin = io::stdin();
    let mut message = [0; wire::MAX_REQUEST];
    loop {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut parts = [IoSliceMut::new(&mut message)];
        let length = match recvmsg(&stdin, &mut parts, &mut ancillary, RecvFlags::CMSG_CLOEXEC) {
            Ok(received) if received.bytes > 0 => received.bytes,
            Err(rustix::io::Errno::INTR) => continue,
            Ok(_) | Err(_) => return,
        };
        let mut files = Vec::new();
        for given in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(given) = given {
                files.extend(given);
            }
        }
        let mut files = files.into_iter();
        let (Some(answer), file) = (files.next(), files.next()) else {
            continue;
        };
        let mut answer = UnixStream::from(answer);
        let Some((verb, url)) = Verb::parse(message.get(..length).unwrap_or_default()) else {
            continue;
        };
        if service.requests.fetch_add(1, Ordering::Relaxed) >= MAX_REQUESTS {
            service.requests.fetch_sub(1, Ordering::Relaxed);
            let text = format!("{url}: more than {MAX_REQUESTS} objects at once");
            let _ = wire::send(&mut answer, wire::FAILED, &wire::failure(Cause::Passing, &text));
            continue;
        }
        let (serving, url) = (Arc::clone(service), url.to_owned());
        let started = std::thread::Builder::new()
            .name(REQUEST_THREAD.to_owned())
            .spawn(move || {
                serving.answer(&mut answer, verb, &url, file);
                serving.requests.fetch_sub(1, Ordering::Relaxed);
            });
        if started.is_err() {
            // The answer's socket closes, which is an answer.
            service.requests.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Service {
    /// Does what is requested, and says so. An answer that nobody reads any more is dropped.
    fn answer(&self, to: &mut UnixStream, verb: Verb, url: &str, file: Option<OwnedFd>) {
        let done = match self.permitted(verb, url) {
            // `object_store` 0.13 panics at settings, credentials and answers that cannot be put into a request.
            Ok(location) => catch_unwind(AssertUnwindSafe(|| self.work(to, verb, &location, file)))
                .unwrap_or_else(|panicked| Err(Refusal::of_panic(&location, &*panicked))),
            Err(text) => Err(Refusal::new(Cause::Lasting, text)),
        };
        let _ = match done {
            Ok(()) => wire::send(to, wire::END, &[]),
            Err(refusal) => wire::send(to, wire::FAILED, &wire::failure(refusal.cause, &refusal.text)),
        };
    }

    /// The place, if this request may have it.
    fn permitted(&self, verb: Verb, url: &str) -> Result<Location, String> {
        let location = Location::parse(url).map_err(|error| error.to_string())?;
        let writes = self.write.as_ref().is_some_and(|place| place.contains(&location));
        let may = match verb {
            Verb::Read => self.reads.contains(&location),
            Verb::Size => writes || self.reads.contains(&location),
            Verb::Write | Verb::Remove => writes,
        };
        if may {
            return Ok(location);
        }
        Err(format!("{location}: not among the objects of this run"))
    }

    fn work(
        &self,
        to: &mut UnixStream,
        verb: Verb,
        location: &Location,
        file: Option<OwnedFd>,
    ) -> Result<(), Refusal> {
        match verb {
            Verb::Size | Verb::Read => {
                let mut object = self.client.open(location)?;
                wire::send(to, wire::SIZE, &object.size().to_le_bytes())?;
                if verb == Verb::Size {
                    return Ok(());
                }
                let mut block = vec![0; wire::MAX_FRAME];
                loop {
                    // An error here is one of the store, with its text; one of the socket ends the thread.
                    let count = object
                        .read(&mut block)
                        .map_err(|error| Refusal::new(Cause::Lasting, error.to_string()))?;
                    if count == 0 {
                        return Ok(());
                    }
                    wire::send(to, wire::DATA, block.get(..count).unwrap_or_default())?;
                }
            }
            Verb::Write => {
                let file =
                    file.ok_or_else(|| Refusal::new(Cause::Lasting, format!("{location}: no file")))?;
                let mut file = File::from(file);
                let size = file.metadata()?.len();
                Ok(self.client.write(location, &mut file, size)?)
            }
            Verb::Remove => Ok(self.client.remove(location)?),
        }
    }
}

/// Why a request is not done.
struct Refusal {
    cause: Cause,
    text: String,
}

impl Refusal {
    fn new(cause: Cause, text: String) -> Self {
        Self { cause, text }
    }

    /// The library ended in a panic.
    fn of_panic(location: &Location, panicked: &(dyn Any + Send)) -> Self {
        let text = panicked.downcast_ref::<&str>().copied();
        let text = text.or_else(|| panicked.downcast_ref::<String>().map(String::as_str));
        let reason = text.unwrap_or("it gives no reason");
        let text = format!(
            "{location}: the library of object stores cannot go on: {reason}\nhint: look at the variables of the store's account and address"
        );
        Self::new(Cause::Lasting, text)
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        let cause = match error {
            Error::Missing { .. } => Cause::Missing,
            _ if error.is_passing() => Cause::Passing,
            _ => Cause::Lasting,
        };
        Self::new(cause, error.to_string())
    }
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        Self::new(Cause::Lasting, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_reaches_its_own_objects_alone() {
        let place = |url: &str| Location::parse(url).unwrap();
        let service = Service {
            client: Arc::new(Client::new()),
            reads: vec![place("s3://in/a.pcap")],
            write: Some(place("s3://out/ds")),
            requests: AtomicUsize::new(0),
        };
        for (verb, url, may) in [
            (Verb::Read, "s3://in/a.pcap", true),
            (Verb::Read, "s3://in/b.pcap", false),
            (Verb::Read, "s3://out/ds/run.json", false),
            (Verb::Size, "s3://out/ds/run.json", true),
            (Verb::Write, "s3://out/ds/run/x", true),
            (Verb::Write, "s3://out/other", false),
            (Verb::Write, "s3://in/a.pcap", false),
            (Verb::Remove, "s3://in/a.pcap", false),
            (Verb::Remove, "s3://out/ds/x", true),
            (Verb::Write, "s3://out/ds/../x", false),
        ] {
            assert_eq!(service.permitted(verb, url).is_ok(), may, "{verb:?} {url}");
        }
    }
}
