//! Events of NCCL's network transport in the trace of its example profiler: what its proxy waits for (NET), and work requests with their
//! queue pairs (NET_IB, where NCCL was built with `NET_PROFILER=1`).

use std::collections::{BTreeSet, HashMap};

use super::event::Event;

/// Waits that have begun.
const MAX_OPEN: usize = 1 << 16;
/// Queue pairs of one trace.
const MAX_QUEUE_PAIRS: usize = 1 << 12;

/// Network events of one trace.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NetworkEvents {
    /// Time in which sends waited for data of the GPU, in nanoseconds.
    pub send_gpu_wait_ns: u64,
    /// Time in which they waited for credits.
    pub send_peer_wait_ns: u64,
    /// Time in which they waited for the network.
    pub send_wait_ns: u64,
    /// Numbers of queue pairs of the rank that sent.
    pub queue_pairs: BTreeSet<u32>,
}

/// Network events while a trace is read.
#[derive(Default)]
pub(super) struct OpenNetworkEvents {
    found: NetworkEvents,
    has_any: bool,
    /// Begins of waits: name, process and number.
    open: HashMap<(String, Option<String>, Option<String>), i64, foldhash::fast::RandomState>,
}

impl OpenNetworkEvents {
    pub(super) fn event(&mut self, event: &Event, (category, name): (&str, &str), time: i64, is_begin: bool) {
        self.has_any = true;
        if category == "NET_IB" {
            let number = event
                .arguments
                .queue_pair
                .count()
                .and_then(|number| u32::try_from(number).ok());
            if let Some(number) = number.filter(|_| self.found.queue_pairs.len() < MAX_QUEUE_PAIRS) {
                self.found.queue_pairs.insert(number);
            }
            return;
        }
        let sum = match name {
            "SendGpuWait" => &mut self.found.send_gpu_wait_ns,
            "SendPeerWait" => &mut self.found.send_peer_wait_ns,
            "SendWait" => &mut self.found.send_wait_ns,
            _ => return,
        };
        let key = (name.to_owned(), event.process.text(), event.id.text());
        if !is_begin {
            let begun = self.open.remove(&key);
            let length = begun.map_or(0, |begin| u64::try_from(time.saturating_sub(begin)).unwrap_or(0));
            *sum = sum.saturating_add(length);
        } else if self.open.len() < MAX_OPEN {
            self.open.insert(key, time);
        }
    }

    /// All of them; `None`: the trace has none.
    pub(super) fn finish(self) -> Option<NetworkEvents> {
        self.has_any.then_some(self.found)
    }
}
