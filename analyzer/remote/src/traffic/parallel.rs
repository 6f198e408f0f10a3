//! The machines of a run, and work on some of them at once.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use roce_fabric::inventory::{HostTarget, SshSettings};

use crate::Machine;

/// Hosts that are talked to at once.
pub(super) const MAX_AT_ONCE: usize = 16;

/// The machines of a run, by the names of their hosts.
pub type Machines = BTreeMap<String, Machine>;

/// Machines of hosts. A signal of the terminal does not reach their commands.
pub fn machines<'a>(hosts: impl IntoIterator<Item = &'a HostTarget>, ssh: &SshSettings) -> Machines {
    let ssh = Arc::new(ssh.clone());
    let all = hosts.into_iter();
    all.map(|host| (host.name.clone(), Machine::host(host, &ssh).with_own_groups()))
        .collect()
}

/// Does `work` for each of `items`, some at once; the results in their order.
pub(super) fn each<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, R)>> = Mutex::new(Vec::with_capacity(items.len()));
    std::thread::scope(|scope| {
        for _ in 0..items.len().min(MAX_AT_ONCE) {
            scope.spawn(|| {
                while let Some((place, item)) = {
                    let place = next.fetch_add(1, Ordering::Relaxed);
                    items.get(place).map(|item| (place, item))
                } {
                    let result = work(item);
                    if let Ok(mut done) = done.lock() {
                        done.push((place, result));
                    }
                }
            });
        }
    });
    let mut done = done
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    done.sort_by_key(|(place, _)| *place);
    done.into_iter().map(|(_, result)| result).collect()
}
