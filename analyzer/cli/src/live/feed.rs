//! The feed of a live run: the devices' ordered stream on its way to the analysis, and beside it to the files that keep it.
//!
//! Everything behind the devices' queue sees the same stream, in the same order and with the same losses. Who has more to add to it, such as
//! events of the host, does so by [`Stream::notes`]: they are brought into the order of time, recorded and analysed with the frames.

use std::sync::Arc;
use std::time::Duration;

use roce_capture::Interface;
use roce_capture::live::{Next as Captured, Stop, Stream};

use super::packets::PacketFiles;
use crate::decode::Work;
use crate::pipeline::{Feed, Next};

/// After so long without a frame, what has come before goes on to the analysis.
const PATIENCE: Duration = Duration::from_millis(50);

/// The stream of devices.
pub(crate) struct LiveFeed {
    pub(crate) stream: Stream,
    name: Arc<str>,
    interfaces: Arc<Vec<Interface>>,
    /// Who keeps the packets.
    files: Vec<PacketFiles>,
    stop: Stop,
    /// What went wrong; the run ends then.
    pub(crate) errors: Vec<anyhow::Error>,
}

impl LiveFeed {
    pub(crate) fn new(stream: Stream, name: &str, files: Vec<PacketFiles>, stop: Stop) -> Self {
        let interfaces = Arc::new(stream.interfaces().to_vec());
        Self {
            stream,
            name: name.into(),
            interfaces,
            files,
            stop,
            errors: Vec::new(),
        }
    }

    /// Has each file do something; one that fails is given up, and the run ends.
    fn keep(&mut self, mut keep: impl FnMut(&mut PacketFiles) -> anyhow::Result<()>) {
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
                Next::Quiet
            }
            Captured::Ended => {
                for file in std::mem::take(&mut self.files) {
                    if let Err(error) = file.finish() {
                        self.errors.push(error);
                    }
                }
                let errors = self.stream.take_errors();
                self.errors.extend(errors.into_iter().map(anyhow::Error::new));
                Next::Ended
            }
        }
    }

    fn recycle(&mut self, work: Work) {
        self.stream.recycle(work.run);
    }
}
