//! The machines of a run, and work on some of them at once.

use std::collections::BTreeMap;
use std::sync::Arc;

use roce_switches::inventory::{HostTarget, SshSettings};

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
    crate::parallel::each(items, MAX_AT_ONCE, |_, item| work(item))
}
