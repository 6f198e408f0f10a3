//! Live captures by libpcap: devices are opened, each is read on a thread of its own, and their frames come in one order
//! of time.
//!
//! A device's thread copies frames out of libpcap's buffer once, into shared blocks, and sends them
//! through one bounded queue. It never waits for the reader of the queue. Frames that find no room in
//! the queue are dropped and counted. The stream reports them as [`LostFrames`](crate::LostFrames), as it does the
//! kernel's drops. `device` opens and reads one device; `order` merges several.

mod device;
mod error;
mod order;
mod outlet;
mod pipe;
mod send;

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use roce_model::Time;

use crate::batch::Batch;
use crate::frame::Interface;
use crate::merge::FrameRun;
use crate::summary::{Container, Format, Summary, Times};
pub use device::{Device, rdma_support, version};
pub use error::{Error, Options};
use order::{Order, Portion};
use outlet::Message;
pub use outlet::{Counters, Outlet, Stop};
pub use send::Injector;

/// Limit of the batches of one device that wait in the queue.
const MAX_WAITING: usize = 256;
/// Blocks that are kept to be used again.
const SPARE: usize = 64;

/// Next item of a live capture.
#[derive(Debug)]
pub enum Next {
    /// Frames, and losses.
    Run(FrameRun),
    /// Nothing for now.
    Quiet,
    /// All devices have ended.
    Ended,
}

/// The frames of all devices, in one order of time.
///
/// All devices are interfaces of one input, as in a pcapng file. A frame that comes after later ones of
/// another device were emitted keeps its place, and counts as out of order.
#[derive(Debug)]
pub struct Stream {
    queue: Receiver<Message>,
    note_queue: Sender<Message>,
    spare: Sender<BytesMut>,
    order: Order,
    /// True if all that has come was given, and that was said.
    is_quiet: bool,
    interfaces: Vec<Interface>,
    times: Times,
    summary: Summary,
    counters: Arc<Counters>,
    errors: Vec<Error>,
}

impl Stream {
    /// Begins to capture from `devices`. They end when `stop` says so, or when the stream is dropped. Of each of `others`, which somebody else
    /// captures from, there is an outlet; the stream ends when these are dropped, too.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn start(
        devices: Vec<Device>,
        others: &[Interface],
        stop: &Stop,
    ) -> Result<(Self, Vec<Outlet>), Error> {
        let own = devices.iter().map(Device::interface);
        let interfaces: Vec<Interface> = own.chain(others).cloned().collect();
        let counters = Arc::new(Counters::default());
        let (sender, queue) = bounded(MAX_WAITING * interfaces.len().max(1));
        let (spare, again) = bounded(SPARE);
        let order = Order::new(interfaces.len());
        let mut outlets = (0..interfaces.len()).map(|device| Outlet {
            device,
            queue: sender.clone(),
            again: again.clone(),
            counters: Arc::clone(&counters),
            owed: 0,
            error: None,
        });
        for (device, outlet) in devices.into_iter().zip(&mut outlets) {
            let name = device.name().to_owned();
            let stop = stop.clone();
            std::thread::Builder::new()
                .name(format!("capture {name}"))
                .spawn(move || device.read(outlet, &stop))
                .map_err(|source| Error::Thread { device: name, source })?;
        }
        let outlets = outlets.collect();
        let stream = Self {
            queue,
            note_queue: sender,
            spare,
            order,
            is_quiet: true,
            interfaces,
            times: Times::default(),
            summary: Summary::new(Format {
                container: Container::Pcapng,
                compression: None,
            }),
            counters,
            errors: Vec::new(),
        };
        Ok((stream, outlets))
    }

    /// Adds notes to the stream, from another thread.
    pub fn notes(&self) -> Notes {
        Notes {
            source: self.interfaces.len(),
            queue: self.note_queue.clone(),
        }
    }

    /// Returns the next item. When the queue is empty it reports one quiet moment; then it waits for
    /// more, at most for `patience`.
    pub fn next(&mut self, patience: Duration) -> Next {
        let begun = Instant::now();
        loop {
            if let Some(run) = self.order.next() {
                self.count(&run);
                self.is_quiet = false;
                return Next::Run(run);
            }
            if self.order.has_ended() {
                return Next::Ended;
            }
            let patience = if self.is_quiet { patience } else { Duration::ZERO };
            let left = patience.saturating_sub(begun.elapsed());
            match self.queue.recv_timeout(left) {
                Ok(Message::Portion(device, portion)) => self.order.push(device, portion),
                Ok(Message::Ended(device, error)) => {
                    self.order.end(device);
                    self.errors.extend(error);
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    self.is_quiet = true;
                    return Next::Quiet;
                }
            }
        }
    }

    fn count(&mut self, run: &FrameRun) {
        self.summary.frames += run.frames().len() as u64;
        for frame in run.frames() {
            self.times.note(frame.time.0);
        }
        for lost in run.lost() {
            self.summary.lost_records += lost.records;
            if let Some(interface) = self.interfaces.get_mut(lost.interface as usize) {
                let dropped = interface.dropped.get_or_insert(0);
                *dropped += lost.records;
            }
        }
        self.times.report(&mut self.summary);
    }

    /// Takes back a run that is not used any more, so that its memory is used for the next ones.
    pub fn recycle(&mut self, run: FrameRun) {
        if let Some(batch) = Arc::into_inner(run.batch)
            && let Ok(mut block) = batch.data.try_into_mut()
        {
            block.clear();
            // A full queue of spare blocks is no error.
            let _ = self.spare.try_send(block);
        }
    }

    /// The devices, as frames' `interface` names them; what each has lost grows.
    pub fn interfaces(&self) -> &[Interface] {
        &self.interfaces
    }

    /// Summary of the frames until now.
    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    /// The counts of the summary, and the losses of each device, start from 0 again: what comes next is another part of the stream.
    pub fn restart_counts(&mut self) {
        self.times = Times::default();
        self.summary = Summary::new(self.summary.format);
        for interface in &mut self.interfaces {
            interface.dropped = interface.dropped.map(|_| 0);
        }
    }

    /// Counters of the devices' threads.
    pub fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    /// The errors since the last call; each ended its device.
    pub fn take_errors(&mut self) -> Vec<Error> {
        std::mem::take(&mut self.errors)
    }
}

/// Adds to the stream what is no frame, by time: blocks of local use, such as events of the host.
#[derive(Clone, Debug)]
pub struct Notes {
    source: usize,
    queue: Sender<Message>,
}

impl Notes {
    /// Says that notes that will be added are of a later time than `until`: frames wait for them from then on, but no longer than 100 ms.
    /// Unsaid, no frame waits.
    pub fn settled(&self, until: Time) {
        let portion = Portion {
            batch: Batch::default(),
            time: Time(0),
            until,
        };
        // When the queue is full, the next portion includes this one's time.
        let _ = self.queue.try_send(Message::Portion(self.source, portion));
    }

    /// Adds notes of a `time`; they come behind the frames up to that time, or keep their place when
    /// they are late. Half of the queue is reserved for frames. False when the other half is full, or
    /// the stream has ended: the notes are lost, and the caller counts them.
    pub fn add(&self, time: Time, kind: u32, bodies: &[Vec<u8>]) -> bool {
        let limit = self.queue.capacity().map_or(usize::MAX, |room| room / 2);
        if self.queue.len() >= limit {
            return false;
        }
        let place = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        let mut data = Vec::new();
        let mut notes = Vec::new();
        for body in bodies {
            notes.push(crate::Note {
                before: 0,
                kind,
                offset: place(data.len()),
                length: place(body.len()),
            });
            data.extend_from_slice(body);
        }
        let batch = Batch {
            data: data.into(),
            notes,
            ..Batch::default()
        };
        let portion = Portion {
            batch,
            time,
            until: Time(0),
        };
        self.queue
            .try_send(Message::Portion(self.source, portion))
            .is_ok()
    }
}
