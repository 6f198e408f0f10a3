//! The flows with the most data, and sums over all flows: what can be known from their rows as they close, in
//! little memory. How they are shown is left to `table`.

use roce_model::{Address, FlowId, FlowRow, Nanos, TapId};

/// Flows that are kept at least, whatever number is shown: a flow's epochs close apart and are added up, so that
/// one whose first epoch was small can still become large.
const KEPT: usize = 2_048;

/// A flow at a tap, its epochs added up.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct TopFlow {
    pub(super) flow_id: FlowId,
    pub(super) tap: TapId,
    pub(super) source: Address,
    pub(super) destination: Address,
    pub(super) destination_qpn: u32,
    pub(super) service: &'static str,
    pub(super) vlan: Option<u16>,
    pub(super) dscp: Option<u8>,
    pub(super) epochs: u64,
    pub(super) first_time: Nanos,
    pub(super) last_time: Nanos,
    pub(super) packets: u64,
    pub(super) payload_bytes: u64,
    pub(super) data_packets: u64,
    pub(super) ce: u64,
    pub(super) retransmitted_packets: u64,
    pub(super) missing: u64,
    pub(super) late: u64,
    pub(super) acks: u64,
    pub(super) naks: u64,
    pub(super) rnr_naks: u64,
    pub(super) messages: u64,
}

impl TopFlow {
    fn of(row: &FlowRow) -> Self {
        Self {
            flow_id: row.flow_id,
            tap: row.tap,
            source: row.source,
            destination: row.destination,
            destination_qpn: row.destination_qpn,
            service: row.service,
            vlan: row.vlan,
            dscp: row.dscp,
            epochs: 1,
            first_time: row.first_time,
            last_time: row.last_time,
            packets: row.packets,
            payload_bytes: row.payload_bytes,
            data_packets: row.data_packets,
            ce: row.ce,
            retransmitted_packets: row.retransmitted_packets,
            missing: row.missing,
            late: row.late,
            acks: row.acks,
            naks: row.naks,
            rnr_naks: row.rnr_naks,
            messages: row.messages,
        }
    }

    fn add(&mut self, other: &Self) {
        // The DSCP of the most packets, as far as the epochs tell.
        if other.packets > self.packets {
            self.dscp = other.dscp;
        }
        self.epochs += other.epochs;
        self.first_time = self.first_time.min(other.first_time);
        self.last_time = self.last_time.max(other.last_time);
        self.packets += other.packets;
        self.payload_bytes += other.payload_bytes;
        self.data_packets += other.data_packets;
        self.ce += other.ce;
        self.retransmitted_packets += other.retransmitted_packets;
        self.missing += other.missing;
        self.late += other.late;
        self.acks += other.acks;
        self.naks += other.naks;
        self.rnr_naks += other.rnr_naks;
        self.messages += other.messages;
    }
}

/// What all flows together counted that the totals do not say.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct FlowSums {
    pub(super) rows: u64,
    /// Rows of a flow's first epoch: about as many as there are flows.
    pub(super) first_epochs: u64,
    pub(super) payload_bytes: u64,
    pub(super) not_ect: u64,
    pub(super) ect0: u64,
    pub(super) ect1: u64,
    pub(super) ce: u64,
    pub(super) nak_sequence: u64,
    pub(super) nak_invalid_request: u64,
    pub(super) nak_remote_access: u64,
    pub(super) nak_remote_operational: u64,
    pub(super) nak_other: u64,
    pub(super) resend_runs: u64,
    pub(super) stale: u64,
}

/// Collects the rows of flows.
#[derive(Debug, Default)]
pub(super) struct TopFlows {
    flows: Vec<TopFlow>,
    kept: usize,
    pub(super) sums: FlowSums,
}

impl TopFlows {
    /// Will be asked for `top` flows.
    pub(super) fn new(top: usize) -> Self {
        Self {
            kept: top.saturating_mul(4).max(KEPT),
            ..Self::default()
        }
    }

    pub(super) fn add(&mut self, row: &FlowRow) {
        let sums = &mut self.sums;
        sums.rows += 1;
        sums.first_epochs += u64::from(row.epoch == 0);
        sums.payload_bytes += row.payload_bytes;
        sums.not_ect += row.not_ect;
        sums.ect0 += row.ect0;
        sums.ect1 += row.ect1;
        sums.ce += row.ce;
        sums.nak_sequence += row.nak_sequence;
        sums.nak_invalid_request += row.nak_invalid_request;
        sums.nak_remote_access += row.nak_remote_access;
        sums.nak_remote_operational += row.nak_remote_operational;
        sums.nak_other += row.nak_other;
        sums.resend_runs += row.resend_runs;
        sums.stale += row.stale;
        self.flows.push(TopFlow::of(row));
        if self.flows.len() >= self.kept.saturating_mul(2) {
            self.condense();
            self.flows.truncate(self.kept);
        }
    }

    /// The flows by data, the most first, then by packets; always in the same order.
    pub(super) fn sorted(&mut self) -> &[TopFlow] {
        self.condense();
        &self.flows
    }

    fn condense(&mut self) {
        self.flows.sort_by_key(|flow| (flow.flow_id, flow.tap));
        self.flows.dedup_by(|next, flow| {
            let same = (next.flow_id, next.tap) == (flow.flow_id, flow.tap);
            if same {
                flow.add(next);
            }
            same
        });
        self.flows.sort_by(|a, b| {
            let size = |flow: &TopFlow| (flow.payload_bytes, flow.packets);
            size(b)
                .cmp(&size(a))
                .then_with(|| (a.flow_id, a.tap).cmp(&(b.flow_id, b.tap)))
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(flow: u64, epoch: u32, payload_bytes: u64) -> FlowRow {
        FlowRow {
            flow_id: FlowId(flow),
            epoch,
            payload_bytes,
            packets: payload_bytes / 10,
            first_time: Nanos(u64::from(epoch) * 100),
            last_time: Nanos(u64::from(epoch) * 100 + 50),
            ..FlowRow::default()
        }
    }

    #[test]
    fn epochs_add_up() {
        let mut top = TopFlows::new(10);
        for row in [row(1, 0, 100), row(2, 0, 150), row(1, 1, 70)] {
            top.add(&row);
        }
        let flows = top.sorted();
        assert_eq!(
            flows
                .iter()
                .map(|flow| (flow.flow_id.0, flow.payload_bytes))
                .collect::<Vec<_>>(),
            [(1, 170), (2, 150)]
        );
        assert_eq!(
            (flows[0].epochs, flows[0].first_time, flows[0].last_time),
            (2, Nanos(0), Nanos(150))
        );
        assert_eq!(
            (top.sums.rows, top.sums.first_epochs, top.sums.payload_bytes),
            (3, 2, 320)
        );
    }

    #[test]
    fn a_million_flows_leave_the_largest() {
        let mut top = TopFlows::new(3);
        for flow in 0..50_000 {
            top.add(&row(flow, 0, flow * 7 % 50_000));
        }
        assert!(top.flows.len() < 2 * KEPT);
        let largest: Vec<u64> = top
            .sorted()
            .iter()
            .take(3)
            .map(|flow| flow.payload_bytes)
            .collect();
        assert_eq!(largest, [49_999, 49_998, 49_997]);
    }
}
