//! Live captures by libpcap: devices are opened, each is read on a thread of its own, and their frames come in one order
//! of time.
//!
//! A device's thread copies frames out of libpcap's buffer once, into shared blocks, and sends them
//! through one bounded queue. It never waits for the reader of the queue. Frames that find no room in
//! the queue are dropped and counted. The stream reports them as [`Lost`](crate::Lost), as it does the
//! kernel's drops. `device` opens and reads one device; `order` merges several.

mod device;
mod link;
mod order;
mod send;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::BytesMut;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use roce_model::Nanos;

use crate::frame::{Batch, Interface};
use crate::merge::Run;
use crate::summary::{Container, Format, Summary, Times};
pub use device::{Device, rdma_support, version};
pub use link::most_speed;
use order::{Order, Portion};
pub use send::Injector;

/// Options of capturing from devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Bytes kept of each frame at most.
    pub snaplen: u32,
    /// Bytes of the kernel's buffer for each device.
    pub buffer: u32,
    /// True to capture frames for other hosts, too (promiscuous mode).
    pub promiscuous: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            snaplen: 384,
            buffer: 64 << 20,
            promiscuous: false,
        }
    }
}

/// Why a device cannot be captured from, or not any further.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The system has no such device.
    #[error("{device}: there is no such device\nhint: `roce-analyze devices` lists what there is")]
    Missing {
        /// The device.
        device: String,
    },
    /// It is an RDMA device, and libpcap was built without support for them.
    #[error(
        "{device}: an RDMA device, and this system's libpcap is built without RDMA support ({version})\nhint: build libpcap 1.9 or newer \
with libibverbs' headers installed (Debian: libibverbs-dev; `./configure --enable-rdma`), and start with LD_LIBRARY_PATH \
set to where it was installed; or capture from the port's network interface, whose captures have the packets that pass through the kernel"
    )]
    NoRdma {
        /// The device.
        device: String,
        /// libpcap's version, as it says it.
        version: String,
    },
    /// libpcap says why it cannot be opened.
    #[error("{device}: cannot be opened: {reason}")]
    Open {
        /// The device.
        device: String,
        /// Cause, from libpcap.
        reason: String,
    },
    /// libpcap says why it cannot be read any more.
    #[error("{device}: cannot be read: {reason}")]
    Read {
        /// The device.
        device: String,
        /// Cause, from libpcap.
        reason: String,
    },
    /// A frame could not be sent.
    #[error("{device}: a frame of {bytes} bytes cannot be sent: {reason}")]
    Send {
        /// The device.
        device: String,
        /// The frame's length.
        bytes: usize,
        /// Cause, from libpcap.
        reason: String,
    },
    /// The system gave no thread.
    #[error("{device}: no thread to read it")]
    Thread {
        /// The device.
        device: String,
        /// Cause, from the system.
        source: std::io::Error,
    },
}

/// Limit of the batches of one device that wait in the queue.
const MAX_WAITING: usize = 256;
/// A device's frames reach the queue within this time, in ns, of their stamps: the kernel hands over a block after
/// [`device::BLOCK_TIME`] at the latest, the rest is for threads that have to wait for a processor.
const LATENESS: u64 = 100_000_000;
/// Blocks that are kept to be used again.
const SPARE: usize = 64;

/// Counts of the devices' threads, readable while they run.
#[derive(Debug, Default)]
pub struct Counters {
    frames: AtomicU64,
    overrun: AtomicU64,
    kernel: AtomicU64,
}

impl Counters {
    /// Frames taken from libpcap.
    pub fn frames(&self) -> u64 {
        self.frames.load(Ordering::Relaxed)
    }

    /// Of these, dropped since the queue was full: who reads fell behind.
    pub fn overrun(&self) -> u64 {
        self.overrun.load(Ordering::Relaxed)
    }

    /// Frames that the kernel or the interface says it dropped before libpcap could take them.
    pub fn kernel(&self) -> u64 {
        self.kernel.load(Ordering::Relaxed)
    }
}

/// Ends a capture from another thread.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Ends reading: frames in the kernel's buffer at this moment are still read, later ones are not.
    pub fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// True if it was stopped.
    pub fn is_requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Next item of a live capture.
#[derive(Debug)]
pub enum Next {
    /// Frames, and losses.
    Run(Run),
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

/// A message of a device's thread.
#[derive(Debug)]
enum Message {
    Portion(usize, Portion),
    Ended(usize, Option<Error>),
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

    fn count(&mut self, run: &Run) {
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
    pub fn recycle(&mut self, run: Run) {
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
    pub fn settled(&self, until: Nanos) {
        let portion = Portion {
            batch: Batch::default(),
            time: Nanos(0),
            until,
        };
        // When the queue is full, the next portion includes this one's time.
        let _ = self.queue.try_send(Message::Portion(self.source, portion));
    }

    /// Adds notes of a `time`; they come behind the frames up to that time, or keep their place when
    /// they are late. Half of the queue is reserved for frames. False when the other half is full, or
    /// the stream has ended: the notes are lost, and the caller counts them.
    pub fn add(&self, time: Nanos, kind: u32, bodies: &[Vec<u8>]) -> bool {
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
            until: Nanos(0),
        };
        self.queue
            .try_send(Message::Portion(self.source, portion))
            .is_ok()
    }
}

/// A device's end of the queue: the one place where frames are dropped when who reads them falls behind. Dropped, its device has ended.
#[derive(Debug)]
pub struct Outlet {
    device: usize,
    queue: Sender<Message>,
    again: Receiver<BytesMut>,
    counters: Arc<Counters>,
    /// Records lost that the stream does not know of yet.
    owed: u64,
    /// Error that ended the device.
    error: Option<Error>,
}

impl Outlet {
    /// The number of its interface, which its frames have to carry.
    pub fn interface(&self) -> u32 {
        u32::try_from(self.device).unwrap_or(u32::MAX)
    }

    /// Sends frames to the queue, without ever waiting; `until` is before the stamps of everything that will follow, and has to be given from time
    /// to time even without frames. False when nobody reads the queue any more.
    pub fn frames(&mut self, mut batch: Batch, until: Nanos) -> bool {
        let frames = batch.frames.len() as u64;
        self.counters.frames.fetch_add(frames, Ordering::Relaxed);
        let interface = self.interface();
        // Losses lie before a frame: those that nothing has followed yet wait for one.
        let lost = if frames > 0 {
            std::mem::take(&mut self.owed)
        } else {
            0
        };
        if lost > 0 {
            batch.lost.push(crate::Lost {
                before: 0,
                interface,
                records: lost,
            });
        }
        match self.queue.try_send(Message::Portion(
            self.device,
            Portion {
                batch,
                time: Nanos(0),
                until,
            },
        )) {
            Ok(()) => true,
            Err(error) if error.is_full() => {
                self.owed += lost + frames;
                self.counters.overrun.fetch_add(frames, Ordering::Relaxed);
                true
            }
            Err(_) => false,
        }
    }

    /// Adds `records` that the kernel dropped.
    pub fn dropped(&mut self, records: u64) {
        self.owed += records;
        self.counters.kernel.fetch_add(records, Ordering::Relaxed);
    }
}

impl Drop for Outlet {
    /// The device has ended, for any reason. Losses since its last frame are still reported.
    fn drop(&mut self) {
        if self.owed > 0 {
            let batch = Batch {
                lost: vec![crate::Lost {
                    before: 0,
                    interface: self.interface(),
                    records: self.owed,
                }],
                ..Batch::default()
            };
            let portion = Portion {
                batch,
                time: Nanos(0),
                until: Nanos(u64::MAX),
            };
            // A closed queue has no reader: nothing is left to report.
            let _ = self.queue.send(Message::Portion(self.device, portion));
        }
        let _ = self.queue.send(Message::Ended(self.device, self.error.take()));
    }
}

/// The time of day, by the clock that the kernel stamps frames with.
fn now() -> Nanos {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Nanos(u64::try_from(now.as_nanos()).unwrap_or(u64::MAX))
}

/// Limit of time below which a device that was just read will send nothing more.
fn settled() -> Nanos {
    Nanos(now().0.saturating_sub(LATENESS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{Direction, Frame};

    fn batch(times: &[u64]) -> Batch {
        let frames = times.iter().map(|time| Frame {
            time: Nanos(*time),
            offset: 0,
            captured: 0,
            original: 60,
            interface: 0,
            fcs_bytes: 0,
            direction: Direction::Unknown,
        });
        Batch {
            frames: frames.collect(),
            ..Batch::default()
        }
    }

    /// Frames and lost records of each message in the queue.
    fn taken(queue: &Receiver<Message>) -> Vec<(usize, u64)> {
        let portions = queue.try_iter().filter_map(|message| match message {
            Message::Portion(_, portion) => Some(portion.batch),
            Message::Ended(..) => None,
        });
        portions
            .map(|batch| {
                (
                    batch.frames.len(),
                    batch.lost.iter().map(|lost| lost.records).sum(),
                )
            })
            .collect()
    }

    #[test]
    fn what_finds_no_room_is_told_before_the_next_frame() {
        let (sender, queue) = bounded(1);
        let (_spare, again) = bounded(1);
        let counters = Arc::new(Counters::default());
        let mut outlet = Outlet {
            device: 0,
            queue: sender,
            again,
            counters: Arc::clone(&counters),
            owed: 0,
            error: None,
        };
        assert!(outlet.frames(batch(&[1, 2]), Nanos(0)));
        // The queue is full: three and one are dropped, and the kernel dropped five.
        assert!(outlet.frames(batch(&[3, 4, 5]), Nanos(0)));
        outlet.dropped(5);
        assert!(outlet.frames(batch(&[6]), Nanos(0)));
        assert_eq!(taken(&queue), [(2, 0)]);
        // Without frames, losses have no place to precede.
        assert!(outlet.frames(batch(&[]), Nanos(0)));
        assert_eq!(taken(&queue), [(0, 0)]);
        assert!(outlet.frames(batch(&[7]), Nanos(0)));
        assert_eq!(taken(&queue), [(1, 9)]);
        assert_eq!(
            (counters.frames(), counters.overrun(), counters.kernel()),
            (7, 4, 5)
        );
        // At the end they are reported without a frame.
        outlet.dropped(2);
        let end = std::thread::spawn(move || drop(outlet));
        let mut told = Vec::new();
        while let Ok(message) = queue.recv() {
            told.push(match message {
                Message::Portion(_, portion) => portion.batch.lost.iter().map(|lost| lost.records).sum(),
                Message::Ended(..) => 0,
            });
        }
        end.join().unwrap();
        assert_eq!(told, [2, 0]);
    }

    #[test]
    fn notes_leave_room_for_frames() {
        let (queue, taken) = bounded(4);
        let notes = Notes { source: 1, queue };
        let add = || notes.add(Nanos(0), 1, &[vec![1, 2], vec![3]]);
        assert!(add() && add());
        assert!(!add(), "the rest is for frames");
        let Ok(Message::Portion(1, portion)) = taken.try_recv() else {
            panic!("no portion")
        };
        let bodies = portion.batch.notes.iter().map(|note| portion.batch.note(note));
        assert_eq!(bodies.collect::<Vec<_>>(), [&[1, 2][..], &[3]]);
        assert!(add());
    }

    #[test]
    fn who_has_no_sniffer_is_told_how_to_get_one() {
        let error = Error::NoRdma {
            device: "mlx5_0".to_owned(),
            version: "libpcap.so.1.10.3".to_owned(),
        };
        let text = error.to_string();
        for said in [
            "mlx5_0: ",
            "libpcap.so.1.10.3",
            "libibverbs-dev",
            "--enable-rdma",
            "\nhint: ",
        ] {
            assert!(text.contains(said), "{text}");
        }
    }
}
