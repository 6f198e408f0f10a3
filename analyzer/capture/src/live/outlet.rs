//! A device's end of the queue, which its thread has: it counts, drops and reports frames. Leaves their order to `order`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::BytesMut;
use crossbeam_channel::{Receiver, Sender};
use roce_model::Time;

use super::error::Error;
use super::order::Portion;
use crate::batch::Batch;

/// A device's frames reach the queue within this time, in ns, of their stamps: the kernel hands over a block after
/// [`BLOCK_TIME`](super::device::BLOCK_TIME) at the latest, the rest is for threads that have to wait for a processor.
const LATENESS: u64 = 100_000_000;

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

    /// Number of offered frames that were dropped, because the queue was full: the reader fell behind.
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

/// A message of a device's thread.
#[derive(Debug)]
pub(super) enum Message {
    Portion(usize, Portion),
    Ended(usize, Option<Error>),
}

/// A device's end of the queue: the one place where frames are dropped when who reads them falls behind. Dropped, its device has ended.
#[derive(Debug)]
pub struct Outlet {
    pub(super) device: usize,
    pub(super) queue: Sender<Message>,
    pub(super) again: Receiver<BytesMut>,
    pub(super) counters: Arc<Counters>,
    /// Records lost that the stream does not know of yet.
    pub(super) owed: u64,
    /// Error that ended the device.
    pub(super) error: Option<Error>,
}

impl Outlet {
    /// The number of its interface, which its frames have to carry.
    pub fn interface(&self) -> u32 {
        u32::try_from(self.device).unwrap_or(u32::MAX)
    }

    /// Sends frames to the queue, without ever waiting; `until` is before the stamps of everything that will follow, and has to be given from time
    /// to time even without frames. False when nobody reads the queue any more.
    pub fn frames(&mut self, mut batch: Batch, until: Time) -> bool {
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
            batch.lost.push(crate::LostFrames {
                before: 0,
                interface,
                records: lost,
            });
        }
        match self.queue.try_send(Message::Portion(
            self.device,
            Portion {
                batch,
                time: Time(0),
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
                lost: vec![crate::LostFrames {
                    before: 0,
                    interface: self.interface(),
                    records: self.owed,
                }],
                ..Batch::default()
            };
            let portion = Portion {
                batch,
                time: Time(0),
                until: Time(u64::MAX),
            };
            // A closed queue has no reader: nothing is left to report.
            let _ = self.queue.send(Message::Portion(self.device, portion));
        }
        let _ = self.queue.send(Message::Ended(self.device, self.error.take()));
    }
}

/// The time of day, by the clock that the kernel stamps frames with.
pub(super) fn now() -> Time {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time(u64::try_from(now.as_nanos()).unwrap_or(u64::MAX))
}

/// Limit of time below which a device that was just read will send nothing more.
pub(super) fn settled() -> Time {
    Time(now().0.saturating_sub(LATENESS))
}

#[cfg(test)]
mod tests {
    use crossbeam_channel::bounded;

    use super::super::Notes;
    use super::*;
    use crate::frame::{Direction, Frame};

    fn batch(times: &[u64]) -> Batch {
        let frames = times.iter().map(|time| Frame {
            time: Time(*time),
            offset: 0,
            captured: 0,
            original: 60,
            interface: 0,
            fcs_bytes: 0,
            direction: Direction::Unknown,
            process: 0,
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
    fn frames_without_room_are_reported_before_the_next_frame() {
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
        assert!(outlet.frames(batch(&[1, 2]), Time(0)));
        // The queue is full: three and one are dropped, and the kernel dropped five.
        assert!(outlet.frames(batch(&[3, 4, 5]), Time(0)));
        outlet.dropped(5);
        assert!(outlet.frames(batch(&[6]), Time(0)));
        assert_eq!(taken(&queue), [(2, 0)]);
        // Without frames, losses have no place to precede.
        assert!(outlet.frames(batch(&[]), Time(0)));
        assert_eq!(taken(&queue), [(0, 0)]);
        assert!(outlet.frames(batch(&[7]), Time(0)));
        assert_eq!(taken(&queue), [(1, 9)]);
        assert_eq!(
            (counters.frames(), counters.overrun(), counters.kernel()),
            (7, 4, 5)
        );
        // At the end they are reported without a frame.
        outlet.dropped(2);
        let end = std::thread::spawn(move || drop(outlet));
        let mut lost = Vec::new();
        while let Ok(message) = queue.recv() {
            lost.push(match message {
                Message::Portion(_, portion) => portion.batch.lost.iter().map(|lost| lost.records).sum(),
                Message::Ended(..) => 0,
            });
        }
        end.join().unwrap();
        assert_eq!(lost, [2, 0]);
    }

    #[test]
    fn notes_leave_room_for_frames() {
        let (queue, taken) = bounded(4);
        let notes = Notes { source: 1, queue };
        let add = || notes.add(Time(0), 1, &[vec![1, 2], vec![3]]);
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
    fn the_error_without_a_sniffer_says_how_to_get_one() {
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
