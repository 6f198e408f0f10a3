//! Vantages of taps as seen from each host: those of the host's flows at the tap, combined. The analysis
//! finds a flow's own vantage: *sender*, *receiver* or *between*.

use std::collections::HashMap;

use roce_model::{Address, FlowRow, HostVantage, RunSummary, TapId, TapRow, Vantage, VantageRow};

use super::numbers::{counted, reaches};

type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// Hosts at taps that are kept, at most: some 20 MB.
const MAX_HOSTS: usize = 1 << 17;
/// Flows that disagree with the others up to this share do not matter: a flow of a few packets may be misled.
const AGREEMENT: f64 = 0.9;

const NEAR: usize = 0;
const FAR: usize = 1;
const BETWEEN: usize = 2;

/// Vantages of one host's flows at one tap.
#[derive(Clone, Copy, Debug, Default)]
struct Host {
    sent: u32,
    received: u32,
    /// Flows that say near, far, between.
    votes: [u32; 3],
    /// Data packets, and marked ones among them, that it sends and that it receives.
    data_sent: u64,
    ce_sent: u64,
    data_received: u64,
    ce_received: u64,
}

/// Vantages of the data flows at a tap.
#[derive(Clone, Copy, Debug)]
enum Tap {
    All(Vantage),
    Mixed,
}

/// The hosts of a run.
#[derive(Debug, Default)]
pub(super) struct Vantages {
    hosts: Map<(TapId, Address), Host>,
    taps: Map<TapId, Tap>,
}

impl Vantages {
    pub(super) fn flow(&mut self, row: &FlowRow) {
        // Near the sender is far from the receiver, for a flow on its path.
        let (of_source, of_destination) = match row.vantage {
            Some(Vantage::Sender) => (Some(NEAR), Some(FAR)),
            Some(Vantage::Receiver) => (Some(FAR), Some(NEAR)),
            Some(Vantage::Between) => (Some(BETWEEN), Some(BETWEEN)),
            None => (None, None),
        };
        if let Some(host) = self.host(row.tap, row.source) {
            host.sent = host.sent.saturating_add(1);
            host.data_sent = host.data_sent.saturating_add(row.data_packets);
            host.ce_sent = host.ce_sent.saturating_add(row.ce);
            if let Some(vote) = of_source {
                host.votes[vote] = host.votes[vote].saturating_add(1);
            }
        }
        if let Some(host) = self.host(row.tap, row.destination) {
            host.received = host.received.saturating_add(1);
            host.data_received = host.data_received.saturating_add(row.data_packets);
            host.ce_received = host.ce_received.saturating_add(row.ce);
            if let Some(vote) = of_destination {
                host.votes[vote] = host.votes[vote].saturating_add(1);
            }
        }
        // A flow of ACKs looks from the other end than the data that it acknowledges.
        if let Some(vantage) = row.vantage.filter(|_| row.data_packets > 0) {
            let tap = self.taps.entry(row.tap).or_insert(Tap::All(vantage));
            if matches!(tap, Tap::All(known) if *known != vantage) {
                *tap = Tap::Mixed;
            }
        }
    }

    fn host(&mut self, tap: TapId, host: Address) -> Option<&mut Host> {
        if self.hosts.len() >= MAX_HOSTS && !self.hosts.contains_key(&(tap, host)) {
            return None;
        }
        Some(self.hosts.entry((tap, host)).or_default())
    }

    /// Fills in the run's vantages and those of its taps.
    pub(super) fn conclude(self, run: &mut RunSummary) {
        for TapRow { tap, vantage, .. } in &mut run.taps {
            if let Some(Tap::All(known)) = self.taps.get(tap) {
                *vantage = Some(*known);
            }
        }
        run.vantages = self
            .hosts
            .iter()
            .map(|((tap, address), host)| host.row(*tap, *address))
            .collect();
        run.vantages.sort_by_key(|row| (row.tap, row.address));
    }
}

impl Host {
    fn row(&self, tap: TapId, host: Address) -> VantageRow {
        let votes: u64 = self.votes.iter().copied().map(u64::from).sum();
        let most = (0..HostVantage::ALL.len())
            .max_by_key(|vote| (self.votes[*vote], core::cmp::Reverse(*vote)))
            .filter(|vote| reaches(self.votes[*vote].into(), votes, AGREEMENT));
        VantageRow {
            tap,
            address: host,
            vantage: most.map(|vote| HostVantage::ALL[vote]),
            flows_sent: self.sent.into(),
            flows_received: self.received.into(),
            evidence: self.evidence(votes).into(),
        }
    }

    fn evidence(&self, votes: u64) -> String {
        let mut parts = Vec::new();
        if votes == 0 {
            parts.push("no flow tells".to_owned());
        } else {
            let each: Vec<String> = HostVantage::ALL
                .iter()
                .zip(self.votes)
                .filter(|(_, votes)| *votes > 0)
                .map(|(vantage, votes)| format!("{} by {}", vantage.name(), counted(votes.into(), "flow")))
                .collect();
            parts.push(format!(
                "{} of {}",
                each.join(", "),
                u64::from(self.sent) + u64::from(self.received)
            ));
        }
        for (what, ce, data) in [
            ("sends", self.ce_sent, self.data_sent),
            ("receives", self.ce_received, self.data_received),
        ] {
            if data > 0 {
                parts.push(format!("CE on {ce} of {data} data packets that it {what}"));
            }
        }
        parts.join("; ")
    }
}

#[cfg(test)]
mod tests {
    use super::super::rows::{flow, host};
    use super::*;

    fn concluded(rows: &[FlowRow]) -> RunSummary {
        let mut vantages = Vantages::default();
        for row in rows {
            vantages.flow(row);
        }
        let mut run = RunSummary {
            taps: vec![TapRow::default()],
            ..RunSummary::default()
        };
        vantages.conclude(&mut run);
        run
    }

    #[test]
    fn a_tap_at_the_sender_is_near_it_and_far_from_the_receiver() {
        let mut data = flow(1, 2);
        data.vantage = Some(Vantage::Sender);
        let mut acks = flow(2, 1);
        (acks.vantage, acks.data_packets) = (Some(Vantage::Receiver), 0);
        let run = concluded(&[data, acks]);
        let vantages: Vec<_> = run
            .vantages
            .iter()
            .map(|row| (row.address, row.vantage))
            .collect();
        assert_eq!(
            vantages,
            [
                (host(1), Some(HostVantage::Near)),
                (host(2), Some(HostVantage::Far))
            ]
        );
        assert_eq!(
            (run.vantages[0].flows_sent, run.vantages[0].flows_received),
            (1, 1)
        );
        assert_eq!(
            run.vantages[0].evidence,
            "near by 2 flows of 2; CE on 0 of 1000 data packets that it sends"
        );
        assert_eq!(
            run.taps[0].vantage,
            Some(Vantage::Sender),
            "the flow of ACKs has no say"
        );
    }

    #[test]
    fn a_tap_that_mirrors_several_hosts_has_no_single_vantage() {
        let mut first = flow(1, 2);
        first.vantage = Some(Vantage::Sender);
        let mut second = flow(3, 4);
        second.vantage = Some(Vantage::Receiver);
        let run = concluded(&[first, second, flow(5, 6)]);
        assert_eq!(run.taps[0].vantage, None);
        let vantage = |of| {
            run.vantages
                .iter()
                .find(|row| row.address == host(of))
                .unwrap()
                .vantage
        };
        assert_eq!(
            (vantage(1), vantage(3), vantage(4), vantage(5)),
            (
                Some(HostVantage::Near),
                Some(HostVantage::Far),
                Some(HostVantage::Near),
                None
            )
        );
    }

    #[test]
    fn one_flow_in_ten_may_be_misled() {
        let flows = |near: usize, far: usize| {
            let one = |vantage| {
                let mut row = flow(1, 2);
                row.vantage = Some(vantage);
                row
            };
            let mut rows = vec![one(Vantage::Sender); near];
            rows.extend(vec![one(Vantage::Receiver); far]);
            concluded(&rows).vantages[0].vantage
        };
        assert_eq!(flows(9, 1), Some(HostVantage::Near));
        assert_eq!(flows(8, 1), None, "8 of 9 is less than 0.9");
    }
}
