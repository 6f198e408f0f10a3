//! The feed of a live run: the devices' ordered stream on its way to the analysis, and beside it to the files that keep it.
//!
//! Everything behind the devices' queue sees the same stream, in the same order and with the same losses. Who has more to add to it, such as
//! events of the host, does so by [`Stream::notes`]: they are brought into the order of time, recorded and analysed with the frames.

use std::sync::Arc;
use std::time::Duration;

use roce_capture::Interface;
use roce_capture::live::{Next as Captured, Notes, Stop, Stream};
use roce_model::{InputSummary, Nanos, Recorded, RunSummary};

use crate::align::Alignment;
use crate::clock::{RunStart, time_of_day};
use crate::error::Error;
use crate::feed::{Feed, Next, Work};
use crate::inputs::as_live;
use crate::packet_files::PacketFiles;
use crate::run::Done;
use crate::summary::Read;

/// After so long without a frame, what has come before goes on to the analysis.
const PATIENCE: Duration = Duration::from_millis(50);

/// What a device stamps reaches the stream within this time, with some room.
const SETTLED: u64 = 200_000_000;
/// So often the stream is told how far time has come while it is quiet, ...
const TOLD_EVERY: u64 = 100_000_000;
/// ... and so long after its last frame: all rows are complete by then.
const TOLD_FOR: u64 = 5 * Nanos::SECOND;

/// The stream of devices.
pub struct LiveFeed {
    /// The stream itself.
    pub stream: Stream,
    notes: Notes,
    /// How far time has come, as the stream was told.
    told: Nanos,
    name: Arc<str>,
    /// Width of a bin.
    bin: Nanos,
    interfaces: Arc<Vec<Interface>>,
    /// Who keeps the packets.
    files: Vec<PacketFiles>,
    stop: Stop,
    /// What went wrong; the run ends then.
    pub errors: Vec<Error>,
}

impl LiveFeed {
    /// The stream of devices called `name`, which `files` keep.
    pub fn new(stream: Stream, name: &str, bin: Nanos, files: Vec<PacketFiles>, stop: Stop) -> Self {
        let interfaces = Arc::new(stream.interfaces().to_vec());
        Self {
            notes: stream.notes(),
            told: Nanos(0),
            stream,
            name: name.into(),
            bin,
            interfaces,
            files,
            stop,
            errors: Vec::new(),
        }
    }

    /// While no frame says it, the stream is told how far time has come: rows close then, and are shown. What is told is a part of
    /// the stream, so that a replay has it, too.
    fn tell_time(&mut self) {
        let Some(last) = self.stream.summary().last_time else {
            return;
        };
        let now = Nanos(time_of_day().0.saturating_sub(SETTLED));
        if now > last && now.since(self.told).0 >= TOLD_EVERY && now.since(last).0 < TOLD_FOR + 8 * self.bin.0
        {
            self.told = now;
            // When there is no room for it the stream is not quiet.
            let _ = self
                .notes
                .add(now, Recorded::TIME, &[now.0.to_le_bytes().to_vec()]);
        }
    }

    /// Has each file do something; one that fails is given up, and the run ends.
    fn keep(&mut self, mut keep: impl FnMut(&mut PacketFiles) -> Result<(), Error>) {
        let (stop, errors) = (&self.stop, &mut self.errors);
        self.files.retain_mut(|file| match keep(file) {
            Ok(()) => true,
            Err(error) => {
                errors.push(error);
                stop.stop();
                false
            }
        });
    }
}

impl Feed for LiveFeed {
    fn next(&mut self) -> Next {
        match self.stream.next(PATIENCE) {
            Captured::Run(run) => {
                self.keep(|file| file.write(&run));
                Next::Work(Work {
                    run,
                    capture: Arc::clone(&self.name),
                    interfaces: Arc::clone(&self.interfaces),
                    ended: Vec::new(),
                })
            }
            Captured::Quiet => {
                self.keep(PacketFiles::flush);
                self.tell_time();
                Next::Quiet(None)
            }
            Captured::Ended => {
                for file in std::mem::take(&mut self.files) {
                    if let Err(error) = file.finish() {
                        self.errors.push(error);
                    }
                }
                let errors = self.stream.take_errors();
                self.errors.extend(errors.into_iter().map(Error::from));
                Next::Ended
            }
        }
    }

    fn recycle(&mut self, work: Work) {
        self.stream.recycle(work.run);
    }
}

impl Done<LiveFeed> {
    /// The summary of a live run on the devices called `name`, but for its bins, options and verdicts; `error` is what went wrong first.
    pub fn live_summary(&self, begun: RunStart, name: &str, error: Option<String>) -> RunSummary {
        let stream = &self.feed.stream;
        let counted = stream.summary();
        let mut input = InputSummary {
            frames: counted.frames,
            first_time: counted.first_time,
            last_time: counted.last_time,
            error,
            ..InputSummary::default()
        };
        as_live(&mut input, name);
        let read = [Read {
            summary: counted,
            interfaces: stream.interfaces(),
        }];
        RunSummary {
            inputs: vec![input],
            ..self.summary(begun, &read, |_| name.to_owned(), &Alignment::none(1))
        }
    }
}
