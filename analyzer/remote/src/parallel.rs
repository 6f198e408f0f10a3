//! Work on several hosts at once, in threads that end with it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

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
        for _ in 0..at_once.min(all.len()) {
            scope.spawn(take);
        }
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|(at, _)| *at);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

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
