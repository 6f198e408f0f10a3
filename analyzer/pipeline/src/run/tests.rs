//! Memory of the batches that wait for threads.

use bytes::Bytes;
use roce_capture::Batch;

use super::*;

/// Bytes of a buffer, as a reader has them.
const BUFFER: usize = 256 << 10;

/// Buffers that have notes or skipped blocks and no frames.
struct FramelessFeed {
    left: usize,
    data: Bytes,
    batches: Vec<std::sync::Weak<Batch>>,
    /// The most buffers that were there at once.
    most: usize,
}

impl Feed for FramelessFeed {
    fn next(&mut self) -> Next {
        self.batches.retain(|batch| batch.strong_count() > 0);
        self.most = self.most.max(self.batches.len());
        let Some(left) = self.left.checked_sub(1) else {
            return Next::Ended;
        };
        self.left = left;
        let batch = Arc::new(Batch::new(self.data.clone(), Vec::new(), Vec::new()));
        self.batches.push(Arc::downgrade(&batch));
        Next::Work(Work {
            run: FrameRun {
                input: 0,
                batch,
                range: 0..0,
            },
            capture: "a.pcapng".into(),
            interfaces: Arc::default(),
            processes: Arc::default(),
            ended: Vec::new(),
            correction: None,
        })
    }

    fn recycle(&mut self, _: Work) {}
}

#[test]
fn buffers_without_frames_wait_within_the_bound() {
    let feed = FramelessFeed {
        left: 20_000,
        data: Bytes::from(vec![0; BUFFER]),
        batches: Vec::new(),
        most: 0,
    };
    let (sender, work) = bounded(MAX_WAITING);
    let most = std::thread::scope(|scope| {
        scope.spawn(move || work.iter().for_each(drop));
        let never = AtomicBool::new(false);
        let finder = RouteFinder::new(1, 0..u64::MAX);
        let signals = (&never, &AtomicBool::new(false));
        read(feed, (finder, vec![sender]), signals, |_| ()).most
    });
    // 4 batches wait, one is worked on, one waits to be sent and one is filled; each has 4 buffers of 256 KiB.
    assert!(most <= (MAX_WAITING + 3) * (BATCH_BYTES / BUFFER), "{most}");
}
