//! Hosts as receivers: RNR NAKs that they sent, bytes that came while they paused, and how long their pauses surely lasted.

use std::collections::HashMap;

use roce_model::{Address, EventRow, FlowId, Groups, MacAddress, PauseFrame, PauseKind, TapId};

use super::super::bin_rows::PairTraffic;
use super::super::directory::Directory;
use super::readings::LINK;
use super::series::{Series, Window};

type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// Flows of RNR NAKs, hosts and senders of pauses that are followed, each at most.
const MAX_KEPT: usize = 1 << 12;
/// Bit times of a quantum (IEEE 802.3, 31B.2).
const QUANTUM_BITS: u64 = 512;
/// The fastest link there is, in Gbit/s: at it a pause is as short as it can be.
const FASTEST: u64 = 800;

/// RNR NAKs in one flow.
#[derive(Clone, Copy, Debug)]
struct Naks {
    first: u64,
    last: u64,
    count: u64,
}

/// Pauses of one sender and priority, as long as they surely lasted.
#[derive(Clone, Copy, Debug, Default)]
struct Surely {
    until: u64,
    last: u64,
    total: u64,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Receivers {
    rnr: Map<(TapId, FlowId), Naks>,
    /// Bytes to a host at a tap with pauses, by the hash of both.
    received: Map<u64, Series>,
    paused: Map<(TapId, u8, MacAddress), Surely>,
}

impl Receivers {
    pub(super) fn rnr(&mut self, event: &EventRow) {
        let Some(flow) = event.flow_id else { return };
        let key = (event.tap, flow);
        if self.rnr.len() >= MAX_KEPT && !self.rnr.contains_key(&key) {
            return;
        }
        let time = event.time.0;
        let naks = self.rnr.entry(key).or_insert(Naks {
            first: time,
            last: time,
            count: 0,
        });
        naks.first = naks.first.min(time);
        naks.last = naks.last.max(time);
        naks.count += 1;
    }

    pub(super) fn pause(&mut self, frame: &PauseFrame) {
        for class in 0..=LINK {
            let is_of = match frame.pause.kind {
                PauseKind::Link => class == LINK,
                PauseKind::Priority => class < LINK,
            };
            let quanta = frame.pause.quanta_of(class % LINK).filter(|_| is_of);
            let Some(quanta) = quanta else { continue };
            let key = (frame.tap, class, frame.pause.source);
            if !self.paused.contains_key(&key) && (quanta == 0 || self.paused.len() >= MAX_KEPT) {
                continue;
            }
            let paused = self.paused.entry(key).or_insert(Surely {
                last: frame.time.0,
                ..Surely::default()
            });
            let stopped = paused.until.min(frame.time.0).saturating_sub(paused.last);
            paused.total = paused.total.saturating_add(stopped);
            paused.last = paused.last.max(frame.time.0);
            // A bit of a Gbit/s takes a nanosecond.
            let length = u64::from(quanta) * QUANTUM_BITS / FASTEST;
            paused.until = frame.time.0.saturating_add(length);
        }
    }

    pub(super) fn has_pauses(&self) -> bool {
        !self.paused.is_empty()
    }

    pub(super) fn received(&mut self, time: u64, width: u64, traffic: &PairTraffic) {
        let key = traffic.groups.destination;
        if self.received.len() >= MAX_KEPT && !self.received.contains_key(&key) {
            return;
        }
        let series = self.received.entry(key).or_default();
        let by = roce_model::value_of(traffic.all_wire_bytes);
        match series.windows.last_mut() {
            // Several pairs send to it in a bin.
            Some(last) if last.to > time => {
                last.by += by;
                series.sum += by;
            }
            _ => series.add(Window {
                from: time,
                to: time.saturating_add(width),
                by,
            }),
        }
    }

    /// RNR NAKs of a host between these times.
    pub(super) fn rnr_naks(&self, directory: &Directory, host: Address, from: u64, to: u64) -> u64 {
        let naks = self.rnr.iter().filter(|((tap, flow), naks)| {
            let is_its = directory
                .party(*tap, *flow)
                .is_some_and(|party| party.source == host);
            is_its && naks.first <= to && naks.last >= from
        });
        naks.map(|(_, naks)| naks.count).fold(0, u64::saturating_add)
    }

    /// Bytes per second that came to a host at a tap in these windows. `None`: not counted.
    pub(super) fn rate(&self, tap: TapId, host: Address, windows: &[Window]) -> Option<f64> {
        let series = self.received.get(&Groups::new(tap, host, host).destination);
        if series.is_none() && self.received.len() >= MAX_KEPT {
            return None;
        }
        // Without a packet in any bin since the first pause there is no series.
        let within = |window: &Window| series.map_or(0.0, |series| series.within(window.from, window.to).0);
        let bytes: f64 = windows.iter().map(within).sum();
        let time: u64 = windows.iter().map(Window::length).sum();
        (time > 0).then(|| bytes * 1e9 / roce_model::value_of(time))
    }

    /// Time for which a priority was surely paused, whatever the link's speed.
    pub(super) fn surely(&self, tap: TapId, priority: u8, mac: MacAddress) -> u64 {
        let paused = self.paused.get(&(tap, priority, mac));
        paused.map_or(0, |paused| paused.total)
    }
}
