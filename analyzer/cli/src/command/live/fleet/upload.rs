//! The thread that takes parts to the store, the oldest first, each with its file of `run` last. It waits longer after each failure, and never holds
//! up the capture: that parts do not fill the disk is the spool's concern.

use std::fs::File;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Context;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use roce_capture::live::Stop;

use super::counts::PartCounts;
use super::spool::{Part, Spool};
use crate::objects::{Backoff, Cause, Destination};
use crate::output::messages;

/// In front of messages about uploads.
const ABOUT: &str = "upload";
/// The first and the longest wait after a failure.
const WAITS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_mins(1));
/// Limit of one file's upload.
const PATIENCE: Duration = Duration::from_mins(5);
/// Messages to the thread that wait; a part that finds no room is seen with the one before.
const MAX_MESSAGES: usize = 16;

/// The place that parts are taken to, and time as it passes on the way: the system's, or that of a simulation.
trait UploadTarget {
    /// Makes a file the object `path`, whole or not at all, within `patience`.
    ///
    /// # Errors
    /// The cause, and its text.
    fn write(&self, path: &str, file: &File, patience: Duration) -> Result<(), (Cause, String)>;

    /// Removes the object `path`, if there is one. False: it may be there.
    fn remove(&self, path: &str, patience: Duration) -> bool;

    /// This moment.
    fn now(&self) -> Instant;

    /// The wait behind a failure.
    fn wait(&self, backoff: &mut Backoff) -> Duration;

    /// The next news before a moment, or at any time.
    fn news(&self, news: &Receiver<News>, until: Option<Instant>) -> Result<News, RecvTimeoutError>;
}

impl UploadTarget for Destination {
    fn write(&self, path: &str, file: &File, patience: Duration) -> Result<(), (Cause, String)> {
        Self::write(self, path, file, patience).map_err(|failure| (failure.cause, failure.to_string()))
    }

    fn remove(&self, path: &str, patience: Duration) -> bool {
        Self::remove(self, path, patience).is_ok()
    }

    fn now(&self) -> Instant {
        Instant::now()
    }

    fn wait(&self, backoff: &mut Backoff) -> Duration {
        backoff.wait()
    }

    fn news(&self, news: &Receiver<News>, until: Option<Instant>) -> Result<News, RecvTimeoutError> {
        let Some(until) = until else {
            return news.recv().map_err(|_| RecvTimeoutError::Disconnected);
        };
        let next = news.recv_deadline(until);
        if next == Err(RecvTimeoutError::Disconnected) {
            std::thread::sleep(until.saturating_duration_since(Instant::now()));
        }
        next
    }
}

/// News for the uploading thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum News {
    /// There is another part.
    Part,
    /// The run has ended: what is left may take until then.
    End(Instant),
}

/// The thread.
pub(super) struct Uploader {
    news: Sender<News>,
    has_ended: Receiver<()>,
    thread: JoinHandle<()>,
}

impl Uploader {
    /// Starts it. It requests the `end` of the run if the process that uploads has gone.
    ///
    /// # Errors
    /// The system gives no thread.
    pub(super) fn start(
        spool: Arc<Spool>,
        to: Destination,
        counts: Arc<PartCounts>,
        end: Stop,
    ) -> anyhow::Result<Self> {
        let (news, learns) = bounded(MAX_MESSAGES);
        let (ended, has_ended) = bounded(1);
        let work = Work::new(spool, to, counts, end);
        let thread = std::thread::Builder::new()
            .name("upload".to_owned())
            .spawn(move || {
                work.run(&learns);
                let _ = ended.send(());
            })
            .context("no thread for uploads")?;
        Ok(Self {
            news,
            has_ended,
            thread,
        })
    }

    /// There is another part.
    pub(super) fn note(&self) {
        let _ = self.news.try_send(News::Part);
    }

    /// Waits until all parts are uploaded, but no longer than `wait`.
    pub(super) fn end(self, wait: Duration) {
        let until = Instant::now() + wait;
        let _ = self.news.send_timeout(News::End(until), wait);
        if self
            .has_ended
            .recv_deadline(until + Duration::from_secs(1))
            .is_ok()
        {
            // A panic in it has been reported.
            let _ = self.thread.join();
        }
    }
}

/// Why a part was not uploaded.
enum UploadFailure {
    /// It was dropped in the meantime.
    Dropped,
    /// The store or this machine failed.
    With(Cause, String),
}

struct Work<T> {
    spool: Arc<Spool>,
    to: T,
    counts: Arc<PartCounts>,
    end: Stop,
    /// The part that is being uploaded, and how many of its files are in the store.
    done: Option<(Part, usize)>,
    is_failing: bool,
    backoff: Backoff,
}

impl<T: UploadTarget> Work<T> {
    fn new(spool: Arc<Spool>, to: T, counts: Arc<PartCounts>, end: Stop) -> Self {
        Self {
            spool,
            to,
            counts,
            end,
            done: None,
            is_failing: false,
            backoff: Backoff::new(WAITS.0, WAITS.1),
        }
    }

    fn run(mut self, news: &Receiver<News>) {
        let mut until: Option<Instant> = None;
        loop {
            self.learn(news, &mut until);
            let Some(part) = self.spool.oldest() else {
                if until.is_some() {
                    return;
                }
                match self.to.news(news, None) {
                    Ok(News::Part) => {}
                    Ok(News::End(at)) => until = Some(at),
                    Err(_) => return,
                }
                continue;
            };
            if until.is_some_and(|until| until <= self.to.now()) {
                return;
            }
            match self.upload(&part, news, &mut until) {
                Ok(()) => self.succeeded(),
                Err(UploadFailure::Dropped) => self.forget(),
                Err(UploadFailure::With(cause, text)) => {
                    self.counts.add_failure();
                    if cause == Cause::Gone {
                        messages::warn(ABOUT, &format!("{text}: the run ends"));
                        self.end.stop();
                        return;
                    }
                    if !self.is_failing {
                        messages::warn(
                            ABOUT,
                            &format!("{text}; it is tried again, parts are kept here until then"),
                        );
                        self.is_failing = true;
                    }
                    self.wait(news, &mut until);
                }
            }
        }
    }

    /// Waits for the next attempt; the end of the run makes it come at once, once.
    fn wait(&mut self, news: &Receiver<News>, until: &mut Option<Instant>) {
        let mut next = self.to.now() + self.to.wait(&mut self.backoff);
        if let Some(until) = until {
            next = next.min(*until);
        }
        loop {
            match self.to.news(news, Some(next)) {
                Ok(News::Part) => {}
                Ok(News::End(at)) => {
                    *until = Some(at);
                    self.backoff.reset();
                    return;
                }
                Err(_) => return,
            }
        }
    }

    /// Takes the news that are there.
    fn learn(&self, news: &Receiver<News>, until: &mut Option<Instant>) {
        while let Ok(next) = self.to.news(news, Some(self.to.now())) {
            if let News::End(at) = next {
                *until = Some(at);
            }
        }
    }

    /// Takes the files of a part to the store that are not there, each within [`PATIENCE`] and before the end of the run.
    fn upload(
        &mut self,
        part: &Part,
        news: &Receiver<News>,
        until: &mut Option<Instant>,
    ) -> Result<(), UploadFailure> {
        let files = self.spool.files(part);
        let done = match &self.done {
            Some((known, done)) if known == part => *done,
            _ => 0,
        };
        self.done = Some((part.clone(), done));
        for (place, path) in files.iter().enumerate().skip(done) {
            let file = match self.spool.open_file(path) {
                Ok(Some(file)) => file,
                Ok(None) | Err(_) if !self.spool.has(part) => return Err(UploadFailure::Dropped),
                Ok(None) => return Err(UploadFailure::With(Cause::Lasting, format!("{path}: it is gone"))),
                Err(error) => {
                    return Err(UploadFailure::With(
                        Cause::Lasting,
                        format!("{:#}", anyhow::Error::new(error)),
                    ));
                }
            };
            self.learn(news, until);
            let left = until.map(|until| until.saturating_duration_since(self.to.now()));
            let patience = left.unwrap_or(PATIENCE).min(PATIENCE);
            let written = self.to.write(path, &file, patience);
            written.map_err(|(cause, text)| UploadFailure::With(cause, text))?;
            self.done = Some((part.clone(), place + 1));
        }
        match self.spool.uploaded(part) {
            Ok(true) => Ok(()),
            Ok(false) => Err(UploadFailure::Dropped),
            Err(error) => Err(UploadFailure::With(
                Cause::Lasting,
                format!("{:#}", anyhow::Error::new(error)),
            )),
        }
    }

    fn succeeded(&mut self) {
        self.done = None;
        self.backoff.reset();
        if self.is_failing {
            self.is_failing = false;
            let waiting = self.counts.waiting.parts();
            messages::warn(ABOUT, &format!("works again; {waiting} parts wait"));
        }
    }

    /// Removes from the store what it has of a part that was dropped before all of it was there: without `run` nobody reads it.
    fn forget(&mut self) {
        let Some((part, done)) = self.done.take() else {
            return;
        };
        let files = self.spool.files(&part);
        if done == files.len() {
            // All of it was there before it was dropped here.
            return;
        }
        // The one behind those that are there may have come although its answer did not. `run` goes first: while it is there, readers need
        // the others.
        for path in files.iter().take(done + 1).rev() {
            if !self.to.remove(path, PATIENCE) {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests;
