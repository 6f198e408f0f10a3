//! How connections ended.

use super::names::Names;
use crate::engine::run::Simulation;
use crate::network::topology::number;
use crate::scenario::ServiceName;
use crate::truth::{ConnectionEnd, Outcome};
use crate::units::Picos;
use crate::workload::endpoint::{Endpoint, low};
use crate::workload::requester::Failure;

/// The longest time that a requester waits with a local ACK timeout of 2^16: 4.096 us x 2^18 (IBTA 9.7.6.1.3, four times the timer).
const LONGEST_WAIT: Picos = Picos::from_nanos(4_096 << 18);

/// The ends of all reliable connections, for each side that sent requests.
pub(super) fn ends(simulation: &Simulation<'_>, names: &Names) -> Vec<ConnectionEnd> {
    let all = simulation.ends.iter().enumerate();
    let all = all.filter(|(_, own)| own.service == ServiceName::Rc && own.activities.requests);
    let rows = all.map(|(place, own)| {
        let outstanding = own.requester.outstanding();
        ConnectionEnd {
            connection: number(place / 2),
            flow_id: names.flow(number(place)),
            outcome: outcome(own, simulation.now),
            last_sent: own.last_sent.nanos(),
            psn: outstanding.map(|(seq, _)| own.first_psn.plus(low(seq)).value()),
            repeats: outstanding.map_or(0, |(_, repeats)| repeats),
        }
    });
    rows.collect()
}

fn outcome(own: &Endpoint, now: Picos) -> Outcome {
    let outstanding = own.requester.outstanding();
    match own.requester.failure {
        Some(Failure::Refused) => Outcome::Refused,
        Some(Failure::RnrRetries) => Outcome::RnrExhausted,
        Some(Failure::Retries) if own.requester.answered => Outcome::RetriesUnanswered,
        Some(Failure::Retries) => Outcome::NeverAnswered,
        _ if outstanding.is_none() => Outcome::Closed,
        None if outstanding.is_some_and(|(_, repeats)| repeats == 0)
            && now.since(own.last_sent) > LONGEST_WAIT =>
        {
            Outcome::Silent
        }
        None | Some(Failure::Destroyed) => Outcome::Unfinished,
    }
}
