//! The class that alone loses packets, where others go to the same hosts and lose none.

use std::collections::{BTreeMap, BTreeSet};

use roce_model::cast::float;
use roce_model::{Address, Qpn};

use super::super::directory::{Directory, Party};
use super::super::numbers::share;
use super::losses_there::LosingClass;
use super::rule::MAX_MANAGEMENT_QPN;
use crate::chance::UNLIKELY;

/// The packets of one DSCP to hosts that miss some.
#[derive(Default)]
struct ClassSums {
    data: u64,
    lost: u64,
    senders: BTreeSet<Address>,
}

/// The class that alone lost packets: where chance would leave the other packets to the same hosts out in less than 1 of 20 captures.
pub(super) fn losing_class(directory: &Directory) -> Option<LosingClass> {
    let lost = |party: &Party| party.lost.saturating_add(party.lost_behind);
    let is_data = |party: &&Party| {
        party.counted && party.data_packets > 0 && party.qpn() > Qpn::new(MAX_MANAGEMENT_QPN)
    };
    let parties = || directory.flows().map(|(.., party)| party).filter(is_data);
    let there: BTreeSet<Address> = parties()
        .filter(|party| lost(party) > 0)
        .map(|party| party.destination)
        .collect();
    let mut classes: BTreeMap<u8, ClassSums> = BTreeMap::new();
    for party in parties().filter(|party| there.contains(&party.destination)) {
        let sums = classes.entry(party.dscp?).or_default();
        sums.data = sums.data.saturating_add(party.data_packets);
        sums.lost = sums.lost.saturating_add(lost(party));
        sums.senders.insert(party.source);
    }
    let mut losing = classes.iter().filter(|(_, sums)| sums.lost > 0);
    let (Some((dscp, class)), None) = (losing.next(), losing.next()) else {
        return None;
    };
    let mut others = classes.iter().filter(|(_, sums)| sums.lost == 0);
    let spared = others
        .clone()
        .fold(0, |sum: u64, (_, sums)| sum.saturating_add(sums.data));
    let part = share(class.data, class.data.saturating_add(spared)).unwrap_or(1.0);
    if part.powf(float(class.lost)) >= UNLIKELY {
        return None;
    }
    let mut senders = class.senders.iter();
    Some(LosingClass {
        dscp: *dscp,
        sender: senders.next().copied().filter(|_| senders.next().is_none()),
        spared,
        other: others
            .next()
            .map(|(dscp, _)| *dscp)
            .filter(|_| others.next().is_none()),
    })
}
