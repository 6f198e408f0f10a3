//! Rate that a sender would have been allowed, had it obeyed its CNPs: the test of whether a flow that
//! ignores them shows it.

use roce_model::Time;
use roce_sim::dcqcn::{Parameters, ReactionPoint};
use roce_sim::truth::Tap;

use crate::case::Case;

const MILLISECOND: u64 = 1_000_000;
/// Steps in which a rate is added up: well below the shortest timer, 55 us in SIGCOMM 2015.
const STEP: u64 = 10_000;
/// Multiple of the allowed rate from which on a flow ignores CNPs, if it lasts for [`BINS`].
const BEYOND: f64 = 1.5;
/// Milliseconds in which a flow that ignores CNPs sends too much.
const BINS: usize = 3;

/// No port is faster (IEEE 802.3df): where the records do not show how fast one is, it may be as fast as this.
const FASTEST_PORT: f64 = 800e9;
/// From this spacing of CNPs on, receivers are set up as those of the paper and of ns-3 (50 us), below it as NVIDIA's (4 us).
const WIDE: u64 = 25_000;

/// True if a flow sent far more, by a tap at its sender, than DCQCN allowed. The rules are the
/// parameters of the scenario, and each published rule for alpha with each rule for increases that
/// belongs to a spacing of CNPs such as this. CNPs count that the tap recorded.
#[expect(
    clippy::cast_precision_loss,
    reason = "bytes of a millisecond stay below 2^53"
)]
pub(crate) fn exceeds(case: &Case, tap: &Tap, id: &str) -> bool {
    let Some(flow) = case.flow(id) else {
        return false;
    };
    let is_sender = flow.source == tap.node || (!tap.at_host && flow.source == tap.neighbour);
    let cnps = case.truth.cnps.iter().filter(|cnp| cnp.flow_id == id);
    let cnps = cnps.filter(|cnp| cnp.recorded_by.contains(&tap.name));
    let mut times: Vec<u64> = cnps.filter_map(|cnp| cnp.received).collect();
    times.sort_unstable();
    if !is_sender || times.is_empty() || !case.is_paired_at(tap, id) {
        return false;
    }
    let (is_stated, is_shown) = (is_line_stated(case), is_line_shown(case, tap, &flow.source));
    let line = if is_stated || is_shown {
        case.parsed.network.rate.bits()
    } else {
        FASTEST_PORT
    };
    // Where the speed of the port is only inferred, the spacing of CNPs proves no set: a receiver whose flows share one pace spaces
    // those for each flow by a multiple of it, and this tap does not show its other flows.
    let is_wide = case.parsed.dcqcn.interval().0 >= WIDE && (is_stated || !is_shown);
    sets(is_wide)
        .into_iter()
        .chain([case.parsed.dcqcn.parameters()])
        .all(|set| {
            let allowed = allowed(set, line, &times, &flow.sent_bytes_per_ms);
            let sent = flow.sent_bytes_per_ms.iter().zip(&allowed);
            let beyond = sent.filter(|(sent, allowed)| **sent as f64 >= BEYOND * **allowed && **sent > 0);
            beyond.count() >= BINS
        })
}

/// True if the analysis is given the speed of the ports.
fn is_line_stated(case: &Case) -> bool {
    let mut arguments = case.scenario.arguments.iter();
    arguments.any(|argument| argument == "--link-rate")
}

/// True if the records show the speed of the sender's port: the flow has the port for itself, and stamps show how its packets follow
/// each other.
fn is_line_shown(case: &Case, tap: &Tap, host: &str) -> bool {
    let of_host = tap.flows.iter().filter(|here| here.data_packets > 0);
    let of_host = of_host.filter(|here| case.flow(&here.flow_id).is_some_and(|flow| flow.source == host));
    of_host.count() == 1 && case.quantum(tap) <= 1.0
}

/// NVIDIA's rule for increases with the shortest timer of a published set. Operators set the timer (`rpg_time_reset` of mlx5, 1 us and more), as the
/// families do, and no record shows it: a sender that obeys one of 80 us sends more than the default of 300 us allows.
const NVIDIA: Parameters = Parameters {
    rate_timer: Parameters::PAPER.rate_timer,
    ..Parameters::NVIDIA
};

/// Each published rule for alpha with each published rule for increases that belongs to a spacing of
/// CNPs. Alpha is 0 at first: no record shows how long ago a sender was notified before.
fn sets(is_wide: bool) -> Vec<Parameters> {
    let increases: &[Parameters] = if is_wide {
        &[Parameters::PAPER, Parameters::NS3]
    } else {
        &[Parameters::PAPER, Parameters::NS3, NVIDIA]
    };
    let alphas = [Parameters::PAPER, Parameters::NVIDIA];
    let of = |alpha: Parameters, increase: Parameters| Parameters {
        g: alpha.g,
        alpha_timer: alpha.alpha_timer,
        cut_period: alpha.cut_period,
        initial_alpha: 0.0,
        ..increase
    };
    let all = increases
        .iter()
        .flat_map(|increase| alphas.map(|alpha| of(alpha, *increase)));
    all.collect()
}

/// Bytes that a reaction point allows in each millisecond, when CNPs come at `times`.
#[expect(clippy::cast_precision_loss, reason = "steps of a millisecond")]
fn allowed(parameters: Parameters, line: f64, times: &[u64], sent: &[u64]) -> Vec<f64> {
    let mut point = ReactionPoint::new(parameters, line);
    let mut cnps = times.iter().peekable();
    let mut bins = Vec::with_capacity(sent.len());
    for (bin, bytes) in (0..).zip(sent) {
        let mut sum = 0.0;
        for step in 0..MILLISECOND / STEP {
            let now = bin * MILLISECOND + step * STEP;
            while let Some(time) = cnps.next_if(|time| **time <= now) {
                point.cnp(Time(*time));
            }
            point.sent(Time(now), bytes * STEP / MILLISECOND);
            // Bits in a second times a step in ns, in bytes.
            sum += point.rate(Time(now)) * STEP as f64 / 8e9;
        }
        bins.push(sum);
    }
    bins
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cnps_in_a_row_leave_little() {
        // No CNP: the line's rate, 80 Gbit/s, is 10 MB in a millisecond.
        let free = allowed(Parameters::PAPER, 80e9, &[], &[0, 0]);
        assert!(free.iter().all(|bytes| (bytes - 1e7).abs() < 1.0), "{free:?}");
        // One every 50 us from the begin on, alpha 1 at first: the rate halves 20 times, to a millionth, but for the least
        // rate; the first millisecond holds about 50 us (1 + 1/2 + 1/4 ...) of the line's rate.
        let times: Vec<u64> = (0..40).map(|number| number * 50_000).collect();
        let cut = allowed(Parameters::PAPER, 80e9, &times, &[0, 0]);
        assert!(cut[0] < 1.1e6 && cut[1] < 2e5, "{cut:?}");
    }
}
