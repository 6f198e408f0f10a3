//! Batches that wait for threads: their memory, and who finds their routes.

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
    let (outlet, mut inlets) = ways(1, &RouteFinder::new(1, 0..u64::MAX));
    let inlet = inlets.remove(0);
    let most = std::thread::scope(|scope| {
        scope.spawn(move || while inlet.next().is_some() {});
        let never = AtomicBool::new(false);
        let signals = (&never, &AtomicBool::new(false));
        read(feed, outlet, signals, |_| ()).most
    });
    // 4 batches wait, one is worked on, one waits to be sent and one is filled; each has 4 buffers of 256 KiB.
    assert!(most <= (MAX_WAITING + 3) * (BATCH_BYTES / BUFFER), "{most}");
}

#[test]
fn one_shard_finds_the_routes_for_all_ahead_of_its_own_work() {
    let mut feed = FramelessFeed {
        left: 3,
        data: Bytes::new(),
        batches: Vec::new(),
        most: 0,
    };
    let (mut outlet, inlets) = ways(2, &RouteFinder::new(2, 0..u64::MAX));
    let mut sent = Vec::new();
    while let Next::Work(work) = feed.next() {
        outlet.send(FrameBatch {
            works: vec![work],
            routes: OnceLock::new(),
            now: None,
            snapshot: false,
        });
        sent.extend(outlet.emitted.back().cloned());
    }
    let routed = || -> Vec<bool> { sent.iter().map(|batch| batch.routes.get().is_some()).collect() };
    assert_eq!(routed(), [false; 3], "the thread that reads finds none");
    // Each batch that a shard takes brings the routes of one more.
    for (number, batch) in sent.iter().enumerate() {
        let taken = inlets[0].next().unwrap();
        assert!(Arc::ptr_eq(&taken, batch), "in the order of the file");
        assert_eq!(
            routed().iter().filter(|is_routed| **is_routed).count(),
            number + 1
        );
    }
    for batch in &sent {
        let taken = inlets[1].next().unwrap();
        assert!(Arc::ptr_eq(&taken, batch));
        assert!(std::ptr::eq(inlets[0].routes(batch), inlets[1].routes(batch)));
    }
}
