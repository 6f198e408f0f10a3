//! Work on several hosts at once, in threads that end with it.

use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Does something with all, with a limit of how many at once; results are in their order.
pub fn each<T: Sync, R: Send>(all: &[T], at_once: usize, work: impl Fn(usize, &T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::with_capacity(all.len()));
    let take = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = all.get(at) else { return };
            let result = work(at, item);
            let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
            results.push((at, result));
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..at_once.min(all.len()) {
            // Without another thread this one does it all.
            let _ = std::thread::Builder::new().spawn_scoped(scope, take);
        }
        take();
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|(at, _)| *at);
    results.into_iter().map(|(_, result)| result).collect()
}

/// As [`each`], of what changes in the work, such as connections.
pub fn each_mut<T: Send, R: Send>(
    all: &mut [T],
    at_once: usize,
    work: impl Fn(&mut T) -> R + Sync,
) -> Vec<R> {
    // Each is locked by the one thread that does its work.
    let all: Vec<Mutex<&mut T>> = all.iter_mut().map(Mutex::new).collect();
    each(&all, at_once, |_, item| {
        let mut item = item.lock().unwrap_or_else(PoisonError::into_inner);
        work(&mut item)
    })
}

/// Does something with all of them again and again, in at most `at_once` threads: each when the time that its work has returned has passed
/// since the work's start. Returns when the work of each has returned `None`.
pub fn each_again<T: Send>(all: Vec<T>, at_once: usize, work: impl Fn(&mut T) -> Option<Duration> + Sync) {
    let threads = at_once.min(all.len());
    let begun = Instant::now();
    let waiting = all.into_iter().enumerate().map(|(at, item)| Due {
        time: begun,
        at,
        item,
    });
    let waiting = Mutex::new(waiting.collect::<BinaryHeap<Due<T>>>());
    let go_on = || {
        loop {
            let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let Some(mut due) = next else { return };
            // Those that wait in the heap are due later, so that nothing is late because this thread sleeps: one that another thread puts
            // there is taken by that thread, if it is due earlier.
            std::thread::sleep(due.time.saturating_duration_since(Instant::now()));
            let begun = Instant::now();
            if let Some(every) = work(&mut due.item) {
                due.time = begun + every;
                let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
                waiting.push(due);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            // As above.
            let _ = std::thread::Builder::new().spawn_scoped(scope, go_on);
        }
        go_on();
    });
}

/// An item, and when its work is due. The earliest is the greatest.
struct Due<T> {
    time: Instant,
    at: usize,
    item: T,
}

impl<T> Ord for Due<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (other.time, other.at).cmp(&(self.time, self.at))
    }
}

impl<T> PartialOrd for Due<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Due<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<T> Eq for Due<T> {}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts how many are in the work at once.
    #[derive(Default)]
    struct Gauge {
        now: AtomicUsize,
        most: AtomicUsize,
    }

    impl Gauge {
        fn pass(&self) {
            let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
            self.most.fetch_max(now, Ordering::SeqCst);
            std::thread::sleep(Duration::from_millis(2));
            self.now.fetch_sub(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn no_more_than_the_limit_work_at_once() {
        let gauge = Gauge::default();
        let mut all: Vec<u32> = (0..40).collect();
        let results = each_mut(&mut all, 4, |number| {
            gauge.pass();
            *number += 1;
            *number
        });
        assert_eq!(results, (1..=40).collect::<Vec<u32>>());
        assert_eq!(all, results);
        let most = gauge.most.load(Ordering::SeqCst);
        assert!((2..=4).contains(&most), "{most}");
    }

    #[test]
    fn each_is_done_again_at_its_own_pace() {
        let gauge = Gauge::default();
        let done = Mutex::new(vec![0_u32; 20]);
        // The first one is slow and rare: it holds up no other.
        let all: Vec<usize> = (0..20).collect();
        each_again(all, 3, |at| {
            gauge.pass();
            let mut done = done.lock().unwrap();
            done[*at] += 1;
            let goal = if *at == 0 { 2 } else { 5 };
            let every = if *at == 0 { 60 } else { 1 };
            (done[*at] < goal).then(|| Duration::from_millis(every))
        });
        let done = done.into_inner().unwrap();
        assert_eq!((done[0], &done[1..]), (2, &[5; 19][..]));
        let most = gauge.most.load(Ordering::SeqCst);
        assert!((2..=3).contains(&most), "{most}");
        each_again(Vec::<u8>::new(), 3, |_| None);
    }

    #[test]
    fn work_is_done_in_parallel_and_results_keep_their_order() {
        let all: Vec<u32> = (0..50).collect();
        let squares = each(&all, 4, |at, number| (at, number * number));
        assert!(
            squares
                .iter()
                .enumerate()
                .all(|(at, found)| found.0 == at && found.1 as usize == at * at)
        );
        assert_eq!(squares.len(), 50);
    }
}
