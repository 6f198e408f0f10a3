//! Uploads in simulated time, from seeds: a store that is slow, away, full, cuts what comes, or takes it and loses the answer, while parts come
//! and go, and the run ends.
//!
//! One thread is the whole world: while an upload or a wait takes its time, the rest of the world goes on.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{Read as _, Write as _};
use std::rc::Rc;

use roce_files::{Access, Directory};
use roce_model::random::{Random, stream};
use roce_model::seeds::{below, each, once_in};
use roce_model::{RunKey, Span, Time};

use super::*;

const DAY: &str = "date=2026-11-24";
/// `date -u -d 2026-11-24 +%s` is 1795478400.
const FIRST: Time = Time(1_795_478_400 * Span::SECOND.0);
/// Tables of a part, in the order of their upload.
const PART_TABLES: [&str; 3] = ["flows", "timeline", "run"];

/// One thing that happens beside the uploads.
#[derive(Clone, Copy, Debug)]
enum WorldEvent {
    /// A part is complete; parts beyond the bound are dropped.
    Part,
    /// The run ends: what is left may take this time.
    End(Duration),
}

/// Everything that uploads touch.
struct World {
    random: Random,
    begun: Instant,
    elapsed: Duration,
    events: VecDeque<(Duration, WorldEvent)>,
    spool: Arc<Spool>,
    root: Directory,
    keep: Option<u64>,
    /// Bytes of each object.
    store: BTreeMap<String, Vec<u8>>,
    /// Bytes of each file of each part that ever was, by path.
    truth: BTreeMap<String, Vec<u8>>,
    /// Names of parts that were dropped.
    dropped: BTreeSet<String>,
    parts: u64,
    /// The store is away until then.
    away: Duration,
    /// Attempts that failed.
    failures: u64,
    /// It loses its process at this attempt.
    gone_at: Option<u64>,
    attempts: u64,
    /// Longest time behind the end that is allowed.
    until: Option<Duration>,
}

impl World {
    /// A part is written, as the analysis does.
    fn add_part(&mut self) {
        let run = format!("{:04}", self.parts);
        self.parts += 1;
        for table in PART_TABLES {
            let folder = self.root.below(table, Access::Private).unwrap();
            let folder = folder.below(DAY, Access::Private).unwrap();
            let folder = folder.below("host=h7", Access::Private).unwrap();
            let name = format!("{run}.parquet");
            let mut file = folder.create(&name, true, Access::Private).unwrap();
            let length = 1 + below(&mut self.random, 300);
            let bytes: Vec<u8> = (0..length)
                .map(|_| u8::try_from(below(&mut self.random, 256)).unwrap())
                .collect();
            file.write_all(&bytes).unwrap();
            self.truth.insert(format!("{table}/{DAY}/host=h7/{name}"), bytes);
        }
        let key = RunKey {
            run_id: run,
            host: "h7".to_owned(),
            capture: "v1".to_owned(),
        };
        self.spool.add(&key, FIRST).unwrap();
        for part in self.spool.bound(self.keep).unwrap() {
            let commit = self.spool.files(&part).pop().unwrap();
            self.dropped.insert(commit.rsplit('/').next().unwrap().to_owned());
        }
    }

    /// Lets time pass, up to the next event if there is one before. The event is returned as news.
    fn pass_to(&mut self, until: Duration) -> Option<News> {
        match self.events.front() {
            Some((at, _)) if *at <= until => {
                let (at, event) = self.events.pop_front().unwrap();
                self.elapsed = self.elapsed.max(at);
                Some(match event {
                    WorldEvent::Part => {
                        self.add_part();
                        News::Part
                    }
                    WorldEvent::End(left) => {
                        self.until = Some(self.elapsed + left);
                        News::End(self.begun + self.elapsed + left)
                    }
                })
            }
            _ => {
                self.elapsed = self.elapsed.max(until);
                None
            }
        }
    }
}

/// The world as uploads see it, and news that came while they wrote.
struct SimulatedTarget {
    world: Rc<RefCell<World>>,
    waiting: RefCell<VecDeque<News>>,
}

impl SimulatedTarget {
    /// An attempt takes time, in which the world goes on.
    fn take(&self, time: Duration) {
        let mut world = self.world.borrow_mut();
        let until = world.elapsed + time;
        while world.elapsed < until {
            if let Some(news) = world.pass_to(until) {
                self.waiting.borrow_mut().push_back(news);
            }
        }
    }
}

impl UploadTarget for SimulatedTarget {
    fn write(&self, path: &str, mut file: &File, patience: Duration) -> Result<(), (Cause, String)> {
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).unwrap();
        let (kind, took) = {
            let mut world = self.world.borrow_mut();
            world.attempts += 1;
            if world.gone_at.is_some_and(|at| world.attempts >= at) {
                world.failures += 1;
                return Err((Cause::Gone, "the process that uploads has ended".to_owned()));
            }
            let kind = below(&mut world.random, 12);
            let took = match below(&mut world.random, 10) {
                // Slower than anybody waits for.
                0 => Duration::from_secs(below(&mut world.random, 600)),
                _ => Duration::from_millis(1 + below(&mut world.random, 3_000)),
            };
            (kind, took)
        };
        self.take(took.min(patience));
        let mut world = self.world.borrow_mut();
        if kind == 0 {
            let seconds = below(&mut world.random, 400);
            world.away = world.elapsed + Duration::from_secs(seconds);
        }
        let failure = if took > patience {
            // The whole of it may have come.
            Some((kind == 1, Cause::Passing, "no answer"))
        } else if world.elapsed < world.away {
            Some((false, Cause::Passing, "status 503"))
        } else {
            match kind {
                1 => Some((true, Cause::Passing, "the answer was cut")),
                2 => Some((false, Cause::Passing, "the connection was reset")),
                3 => Some((false, Cause::Lasting, "the bucket is full")),
                _ => None,
            }
        };
        let (is_there, outcome) = match failure {
            None => (true, Ok(())),
            Some((is_there, cause, text)) => (is_there, Err((cause, text.to_owned()))),
        };
        if is_there {
            world.store.insert(path.to_owned(), bytes);
        }
        world.failures += u64::from(outcome.is_err());
        outcome
    }

    fn remove(&self, path: &str, _: Duration) -> bool {
        self.take(Duration::from_millis(5));
        let mut world = self.world.borrow_mut();
        let stays = once_in(&mut world.random, 8);
        if !stays {
            world.store.remove(path);
        }
        !stays
    }

    fn now(&self) -> Instant {
        let world = self.world.borrow();
        world.begun + world.elapsed
    }

    fn wait(&self, backoff: &mut Backoff) -> Duration {
        let random = below(&mut self.world.borrow_mut().random, 1 << 32);
        backoff.wait_by(u32::try_from(random).unwrap())
    }

    fn news(&self, _: &Receiver<News>, until: Option<Instant>) -> Result<News, RecvTimeoutError> {
        if let Some(news) = self.waiting.borrow_mut().pop_front() {
            return Ok(news);
        }
        let mut world = self.world.borrow_mut();
        let moment = until.map_or(Duration::MAX, |until| {
            until.saturating_duration_since(world.begun)
        });
        if until.is_none() && world.events.is_empty() {
            return Err(RecvTimeoutError::Disconnected);
        }
        world.pass_to(moment).ok_or(RecvTimeoutError::Timeout)
    }
}

/// Parts, pauses, and an end of the run.
fn events(random: &mut Random) -> VecDeque<(Duration, WorldEvent)> {
    let mut at = Duration::ZERO;
    let mut events = VecDeque::new();
    for _ in 0..below(random, 60) {
        at += Duration::from_millis(below(random, 60_000));
        events.push_back((at, WorldEvent::Part));
    }
    at += Duration::from_millis(below(random, 60_000));
    let left = Duration::from_secs(below(random, 300));
    events.push_back((at, WorldEvent::End(left)));
    events
}

fn uploads(seed: u64) {
    let mut random = stream(seed, "world");
    let folder = tempfile::tempdir().unwrap();
    let root = Directory::named(folder.path(), Access::Private).unwrap();
    let counts = Arc::new(PartCounts::default());
    let key = RunKey {
        run_id: "any".to_owned(),
        host: "h7".to_owned(),
        capture: "v1".to_owned(),
    };
    let spool = Arc::new(Spool::open(root.clone(), &key, &counts).unwrap());
    let keep = once_in(&mut random, 2).then(|| 300 + below(&mut random, 3_000));
    let world = Rc::new(RefCell::new(World {
        events: events(&mut random),
        gone_at: once_in(&mut random, 8).then(|| 1 + below(&mut random, 60)),
        begun: Instant::now(),
        elapsed: Duration::ZERO,
        spool: Arc::clone(&spool),
        root,
        keep,
        store: BTreeMap::new(),
        truth: BTreeMap::new(),
        dropped: BTreeSet::new(),
        parts: 0,
        away: Duration::ZERO,
        failures: 0,
        attempts: 0,
        until: None,
        random,
    }));
    let target = SimulatedTarget {
        world: Rc::clone(&world),
        waiting: RefCell::default(),
    };
    let end = Stop::default();
    let (_, learns) = bounded(1);
    Work::new(Arc::clone(&spool), target, Arc::clone(&counts), end.clone()).run(&learns);
    holds(&world.borrow(), &counts, &end);
}

/// Properties of the end.
fn holds(world: &World, counts: &PartCounts, end: &Stop) {
    let is_gone = world.gone_at.is_some_and(|at| world.attempts >= at);
    assert_eq!(
        end.is_requested(),
        is_gone,
        "a process that has gone ends the run"
    );
    if !is_gone {
        // It ended because the run did, and in time: a request that is under way ends with its patience.
        let until = world.until.expect("the run has ended");
        assert!(
            world.elapsed <= until + Duration::from_secs(1) + PATIENCE,
            "{:?}",
            world.elapsed
        );
        let (waiting, has_time) = (counts.waiting.parts(), world.elapsed < until);
        assert!(
            waiting == 0 || !has_time,
            "{waiting} parts wait, and there was time"
        );
    }
    // Each part is counted once.
    let fates = [&counts.uploaded, &counts.dropped, &counts.waiting].map(super::super::counts::Count::parts);
    assert_eq!(counts.written.parts(), world.parts);
    assert_eq!(fates.iter().sum::<u64>(), world.parts, "{fates:?}");
    assert_eq!(counts.failures(), world.failures, "attempts that failed");
    assert_eq!(counts.dropped.parts(), world.dropped.len() as u64);
    if let Some(keep) = world.keep {
        assert!(counts.waiting.bytes() <= keep, "{} bytes", counts.waiting.bytes());
    }
    // Objects are whole, and a part that a reader finds has all of its files.
    for (path, bytes) in &world.store {
        assert_eq!(Some(bytes), world.truth.get(path), "{path}");
    }
    let committed: Vec<&String> = world
        .store
        .keys()
        .filter(|path| path.starts_with("run/"))
        .collect();
    for commit in &committed {
        for table in PART_TABLES {
            let path = commit.replacen("run", table, 1);
            assert!(world.store.contains_key(&path), "{path} of {commit}");
        }
    }
    assert!(
        committed.len() as u64 >= counts.uploaded.parts(),
        "fewer than were said"
    );
}

#[test]
fn whatever_a_store_does_parts_are_whole_and_counted_once() {
    each(uploads);
}
