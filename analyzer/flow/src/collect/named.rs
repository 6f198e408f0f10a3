//! Ranks of flows: a log names the queue pair that a rank sends from, which is the receiver of the flow in the other direction.

use std::collections::HashMap;
use std::sync::Arc;

use roce_model::{FlowId, FlowKey, FlowRow, JobLog, RankEnd};

/// Flows to queue pairs that a log names, at most: some 64 MB.
const MAX_NAMED: usize = 1 << 20;

/// Flows whose receiver a log names.
#[derive(Debug)]
pub(super) struct NamedReceivers {
    job: Arc<JobLog>,
    receivers: HashMap<FlowId, RankEnd, foldhash::fast::RandomState>,
}

impl NamedReceivers {
    /// `None`: the log names no queue pair.
    pub(super) fn new(job: &Arc<JobLog>) -> Option<Self> {
        (!job.ranks.is_empty()).then(|| Self {
            job: Arc::clone(job),
            receivers: HashMap::default(),
        })
    }

    /// Flows that were opened.
    pub(super) fn open(&mut self, flows: &[(FlowKey, Option<u8>)]) {
        for (key, _) in flows {
            let owner = self.job.ranks.end(key.destination, key.destination_qpn.value());
            if let Some(owner) = owner.filter(|_| self.receivers.len() < MAX_NAMED) {
                self.receivers.insert(key.id(), owner.clone());
            }
        }
    }

    /// Names the ranks of these rows.
    pub(super) fn name(&self, rows: &mut [FlowRow]) {
        for row in rows {
            let to = self.receivers.get(&row.flow_id).map(RankEnd::reversed);
            let from = row.peer_flow_id.and_then(|peer| self.receivers.get(&peer));
            match (from, to) {
                (Some(from), Some(to)) => row.set_ranks(&from.with(&to)),
                (Some(only), None) => row.set_ranks(only),
                (None, Some(only)) => row.set_ranks(&only),
                (None, None) => (),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use roce_model::{Address, Qpn, Service};

    use super::*;

    #[test]
    fn both_directions_get_the_ranks() {
        let [one, other] = [1, 2].map(|host| Address::v4([10, 0, 0, host]));
        let mut job = JobLog::default();
        let owner = RankEnd {
            rank: Some(3),
            peer_rank: Some(11),
            channel: Some(2),
            ..RankEnd::default()
        };
        job.ranks.insert(one, 0x11, owner);
        let mut named = NamedReceivers::new(&Arc::new(job)).unwrap();
        assert!(NamedReceivers::new(&Arc::default()).is_none());
        let key = |source, destination, qpn| FlowKey {
            source,
            destination,
            destination_qpn: Qpn::new(qpn),
            source_qpn: Qpn::default(),
            vlan: None,
            vni: None,
            service: Service::Rc,
        };
        // Rank 3 sends from 0x11 to 0x12; answers come to 0x11. Another flow is of nobody.
        let (data, answers) = (key(one, other, 0x12), key(other, one, 0x11));
        let nobody = key(one, other, 0x99);
        named.open(&[(data, None), (answers, None), (nobody, None)]);
        let row = |key: &FlowKey, peer: Option<&FlowKey>| FlowRow {
            flow_id: key.id(),
            peer_flow_id: peer.map(FlowKey::id),
            ..FlowRow::default()
        };
        let mut rows = [
            row(&data, Some(&answers)),
            row(&answers, Some(&data)),
            row(&nobody, None),
        ];
        named.name(&mut rows);
        let shown = rows.map(|row| row.ranks().map(|ranks| ranks.to_string()));
        let expected = ["rank 3 > rank 11, channel 2", "rank 11 > rank 3, channel 2"];
        assert_eq!(
            shown,
            [Some(expected[0].to_owned()), Some(expected[1].to_owned()), None]
        );
    }
}
