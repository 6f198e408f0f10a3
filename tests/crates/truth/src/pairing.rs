//! Pairing. An item: a connection whose packets a tap recorded. Observable: RC, both directions recorded, at least three
//! responses. LossReport: two flows of a tap that name each other. Flows of the connection manager's queue pair are left out.

use std::collections::{BTreeMap, BTreeSet};

use crate::case::Case;
use crate::score::Score;

pub(crate) fn compare(case: &Case, score: &mut Score) {
    let pair = |a: &str, b: &str| {
        if a < b {
            (a.to_owned(), b.to_owned())
        } else {
            (b.to_owned(), a.to_owned())
        }
    };
    for tap in &case.truth.taps {
        // Connections that use the numbers of others again are one here.
        let mut true_pairs: BTreeMap<(String, String), bool> = BTreeMap::new();
        for connection in &case.truth.connections {
            let here = connection.taps.iter().find(|here| here.tap == tap.name);
            let Some(here) = here.filter(|here| here.a_packets + here.b_packets > 0) else {
                continue;
            };
            *true_pairs
                .entry(pair(&connection.a.flow_id, &connection.b.flow_id))
                .or_default() |= here.observable && connection.service == "RC";
        }
        let said: BTreeSet<(String, String)> = case
            .flows_at(tap)
            .filter(|row| row.destination_qpn > 1)
            .filter_map(|row| Some(pair(&row.flow_id.to_string(), &row.peer_flow_id?.to_string())))
            .collect();
        for (pair, observable) in &true_pairs {
            if *observable {
                score.expect(said.contains(pair), || {
                    format!("{}: {} and {} are a connection", tap.name, pair.0, pair.1)
                });
            } else {
                score.hidden();
            }
        }
        for pair in &said {
            score.tell(true_pairs.contains_key(pair), || {
                let how = case
                    .flows_at(tap)
                    .find(|row| row.flow_id.to_string() == pair.0)
                    .and_then(|row| row.pairing);
                format!("{}: {} and {} are none ({how:?})", tap.name, pair.0, pair.1)
            });
        }
    }
}
