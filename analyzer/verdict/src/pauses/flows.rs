//! Flows as far as rules about several levels need them.

use std::collections::HashMap;

use roce_model::{Address, FlowId, FlowRow, Qpn, TapId};

use super::series::Window;

type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// Flows at taps that are followed, at most: some 10 MB.
const MAX_FLOWS: usize = 1 << 16;
/// Queue pairs 0 and 1 only manage.
const MAX_MANAGEMENT_QPN: u32 = 1;

/// A flow with data at one tap.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct FlowFacts {
    pub(in super::super) flow: FlowId,
    pub(in super::super) tap: TapId,
    pub(in super::super) source: Address,
    pub(in super::super) destination: Address,
    pub(in super::super) qpn: u32,
    pub(in super::super) counted: bool,
    pub(in super::super) wire_bytes: u64,
    pub(in super::super) data_packets: u64,
    pub(in super::super) ce: u64,
    pub(in super::super) lost: u64,
    pub(in super::super) first: u64,
    pub(in super::super) last: u64,
    pub(in super::super) source_port: Option<u16>,
    pcp: Option<u8>,
    dscp: Option<u8>,
}

impl FlowFacts {
    /// The flow for people.
    pub(in super::super) fn name(&self) -> String {
        format!("{} > {} QP {}", self.source, self.destination, Qpn::new(self.qpn))
    }

    /// True if it had packets in one of the windows, by its first and last packet.
    pub(super) fn is_in(&self, windows: &[Window]) -> bool {
        let first = windows.partition_point(|window| window.to <= self.first);
        windows.get(first).is_some_and(|window| window.from <= self.last)
    }

    /// True if packets of the flow have this priority: 8 is the whole link. `None`: not known. Without a tag it follows from the DSCP by its
    /// upper three bits, as class selectors have it (RFC 2474); other maps are possible.
    pub(super) fn has_priority(&self, priority: Option<u8>) -> Option<bool> {
        match (priority, self.pcp, self.dscp) {
            (None | Some(super::readings::LINK), ..) => Some(true),
            (Some(priority), Some(pcp), _) => Some(priority == pcp),
            (Some(priority), None, Some(dscp)) if dscp >> 3 == priority => Some(true),
            _ => None,
        }
    }
}

/// All flows with data.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Flows {
    pub(in super::super) all: Vec<FlowFacts>,
    places: Map<(TapId, FlowId), usize>,
    /// Flows that found no room.
    pub(in super::super) left_out: u64,
}

impl Flows {
    pub(super) fn add(&mut self, row: &FlowRow) {
        if row.data_packets == 0 || row.destination_qpn <= MAX_MANAGEMENT_QPN {
            return;
        }
        let key = (row.tap, row.flow_id);
        let place = match self.places.get(&key) {
            Some(place) => *place,
            None if self.all.len() < MAX_FLOWS => {
                self.places.insert(key, self.all.len());
                self.all.push(FlowFacts {
                    flow: row.flow_id,
                    tap: row.tap,
                    source: row.source,
                    destination: row.destination,
                    qpn: row.destination_qpn,
                    counted: row.counted,
                    wire_bytes: 0,
                    data_packets: 0,
                    ce: 0,
                    lost: 0,
                    first: row.first_time.0,
                    last: row.last_time.0,
                    source_port: row.source_port,
                    pcp: row.pcp,
                    dscp: row.dscp,
                });
                self.all.len() - 1
            }
            None => {
                self.left_out += 1;
                return;
            }
        };
        let Some(flow) = self.all.get_mut(place) else {
            return;
        };
        // Epochs of one flow.
        flow.wire_bytes = flow.wire_bytes.saturating_add(row.wire_bytes);
        flow.data_packets = flow.data_packets.saturating_add(row.data_packets);
        flow.ce = flow.ce.saturating_add(row.ce);
        let behind = super::super::directory::lost_behind(row);
        flow.lost = flow.lost.saturating_add(row.network_lost).saturating_add(behind);
        flow.first = flow.first.min(row.first_time.0);
        flow.last = flow.last.max(row.last_time.0);
        flow.counted &= row.counted;
    }

    /// Sorts the flows by their first packets. They come in the order in which they close, which depends on the number of threads.
    pub(super) fn in_order(mut self) -> Self {
        self.all
            .sort_unstable_by_key(|flow| (flow.first, flow.tap, flow.flow));
        let all = self.all.iter().enumerate();
        self.places = all.map(|(place, flow)| ((flow.tap, flow.flow), place)).collect();
        self
    }

    /// The flows that count, each once.
    pub(in super::super) fn counted(&self) -> impl Iterator<Item = (usize, &FlowFacts)> {
        self.all.iter().enumerate().filter(|(_, flow)| flow.counted)
    }
}

#[cfg(test)]
mod tests {
    use roce_model::Time;

    use super::*;

    #[test]
    fn flows_are_in_one_order_whichever_closes_first() {
        let row = |flow, first| FlowRow {
            flow_id: FlowId(flow),
            destination_qpn: 17,
            data_packets: 1,
            first_time: Time(first),
            ..FlowRow::default()
        };
        let rows = [row(3, 10), row(1, 20), row(2, 20)];
        let ids = |rows: &mut dyn Iterator<Item = &FlowRow>| {
            let mut flows = Flows::default();
            rows.for_each(|row| flows.add(row));
            let flows = flows.in_order();
            assert_eq!(flows.places[&(TapId(0), FlowId(2))], 2);
            flows.all.iter().map(|flow| flow.flow.0).collect::<Vec<_>>()
        };
        assert_eq!(ids(&mut rows.iter()), [3, 1, 2]);
        assert_eq!(ids(&mut rows.iter().rev()), [3, 1, 2]);
    }
}
