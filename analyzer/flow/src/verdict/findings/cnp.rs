//! Findings about congestion notifications: senders that ignore them, and receivers that send them too fast or too late.

use std::collections::{HashMap, HashSet};

use roce_model::{Address, Confidence, Evidence, FindingRow, FlowId, FlowRow, Nanos, Severity, TapId};

use super::super::directory::name_of;
use super::super::numbers::{counted, percent, some};
use super::super::thresholds::Thresholds;
use super::worst::Worst;
use super::{Context, Rule};

type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// Flows and hosts that are kept at most.
const MOST: usize = 1 << 16;

pub(super) const IGNORED: Rule = Rule {
    id: "cnp.ignored",
    title: "senders ignore CNPs",
    meaning: "Congestion notifications reach a sender that has enough to send, and its rate stays as it was: its \
              reaction point is off, or another congestion control does not listen to CNPs.",
    method: "Flows at whose sender the tap stands, with at least reaction_trains trains of CNPs (one after 300 us \
             without) while the flow was backlogged: the median of the payload rate after over before is at least \
             reaction_ignored. Never judged anywhere else: behind a bottleneck a tap sees the bottleneck's rate.",
    source: "DCQCN (SIGCOMM 2015, section 3.1): each CNP cuts the rate by alpha/2, alpha being 1 at first. RTT-based or \
             programmable congestion control need not react.",
    thresholds: &["reaction_trains", "reaction_ignored"],
    severity: Severity::Warning,
    otherwise: "",
};

pub(super) const PACING: Rule = Rule {
    id: "cnp.pacing",
    title: "CNPs come too fast or too late",
    meaning: "CNPs closer together than a notification point sends them cut a sender's rate again before the first cut \
              shows; late ones let the queue grow for too long.",
    method: "Too fast: the median of cnp_interval is under cnp_interval_least. Too late: the median of ce_to_cnp is over \
             cnp_delay_most, plus cnp_interval_usual for each other marked flow of the same receiver, which may be \
             served in turn. Both with at least least_measurements, and not where stamps are coarser than a quarter \
             of the interval.",
    source: "DCQCN (SIGCOMM 2015, section 3.1): at most one CNP a flow in 50 us; MIN_TIME_BETWEEN_CNPS = 4 us in mlxconfig.",
    thresholds: &[
        "cnp_interval_least",
        "cnp_interval_usual",
        "cnp_delay_most",
        "least_measurements",
    ],
    severity: Severity::Warning,
    otherwise: "info when they are too fast only",
};

/// A flow whose CNPs look too fast or too late.
#[derive(Debug)]
struct Odd {
    tap: TapId,
    flow: FlowId,
    name: String,
    destination: Address,
    median_ns: u64,
    first: Nanos,
}

#[derive(Debug, Default)]
pub(super) struct Gathered {
    ignored: Worst,
    ignored_cnp: u64,
    ignored_flows: HashSet<(FlowId, u32)>,
    trains: u64,
    weakest: f64,
    /// Of the flows that ignore CNPs, such as also send faster than DCQCN would let them.
    over_expected: u64,
    first: Option<Nanos>,
    fast: Vec<Odd>,
    late: Vec<Odd>,
    /// Marked flows by tap and receiver.
    marked: Map<(TapId, Address), u64>,
}

impl Gathered {
    pub(super) fn flow(&mut self, row: &FlowRow, thresholds: &Thresholds) {
        self.reaction(row, thresholds);
        if row.ce > 0 {
            let key = (row.tap, row.destination);
            if self.marked.len() < MOST || self.marked.contains_key(&key) {
                *self.marked.entry(key).or_default() += 1;
            }
        }
        let enough = thresholds.least_measurements;
        let odd = |median_ns| Odd {
            tap: row.tap,
            flow: row.flow_id,
            name: name_of(row),
            destination: row.destination,
            median_ns,
            first: row.first_time,
        };
        if let Some(median) = row.cnp_interval_p50_ns
            && row.cnp_interval_count >= enough
            && median < thresholds.cnp_interval_least.0
            && self.fast.len() < MOST
        {
            self.fast.push(odd(median));
        }
        if let Some(median) = row.ce_to_cnp_p50_ns
            && row.ce_to_cnp_count >= enough
            && median > thresholds.cnp_delay_most.0
            && row.vantage != Some("sender")
            && self.late.len() < MOST
        {
            self.late.push(odd(median));
        }
    }

    fn reaction(&mut self, row: &FlowRow, thresholds: &Thresholds) {
        let Some(reaction) = row.cnp_reaction_p50.filter(|reaction| reaction.is_finite()) else {
            return;
        };
        let ignores = row.vantage == Some("sender")
            && row.cnp_trains >= thresholds.reaction_trains.max(1)
            && reaction >= thresholds.reaction_ignored;
        if !ignores
            || self.ignored_flows.len() >= MOST
            || !self.ignored_flows.insert((row.flow_id, row.epoch))
        {
            return;
        }
        let cnp = row.cnp.unwrap_or_default();
        self.ignored.add(cnp, || name_of(row));
        self.ignored_cnp = self.ignored_cnp.saturating_add(cnp);
        self.trains = self.trains.saturating_add(row.cnp_trains);
        self.weakest = self.weakest.max(reaction);
        self.over_expected += u64::from(row.dcqcn_deviation.is_some_and(|deviation| deviation > 0.0));
        self.first = Some(
            self.first
                .map_or(row.first_time, |first| first.min(row.first_time)),
        );
    }

    pub(super) fn ignored(&self) -> Option<FindingRow> {
        if self.ignored.all() == 0 {
            return None;
        }
        let mut evidence = Evidence::default();
        evidence
            .count("flows", self.ignored.all())
            .count("cnp", self.ignored_cnp)
            .count("trains", self.trains)
            .number("rate_after_cnp_max", self.weakest)
            .count("flows_over_dcqcn_rate", self.over_expected)
            .text("worst", self.ignored.list());
        let confidence = if self.over_expected > 0 {
            Confidence::High
        } else {
            Confidence::Medium
        };
        Some(IGNORED.finding(
            (Severity::Warning, confidence),
            format!(
                "{} kept the rate through {} ({}; up to {} of the rate before): {}",
                counted(self.ignored.all(), "flow"),
                counted(self.trains, "train") + " of CNPs",
                counted(self.ignored_cnp, "CNP"),
                percent(self.weakest),
                self.ignored.names()
            ),
            evidence,
            "Check at the sender that its reaction point is enabled for the priority that CNPs come with (roce_rp), and \
             its counter of CNPs handled.",
            self.first,
        ))
    }

    pub(super) fn pacing(&self, context: &Context<'_>) -> Option<FindingRow> {
        let thresholds = context.thresholds;
        let quantum = |tap: TapId| {
            let taps = context.run.taps.iter();
            taps.filter(|row| row.tap == tap)
                .map(|row| row.stamp_quantum_ns)
                .max()
                .unwrap_or_default()
        };
        let allowed = |odd: &Odd| {
            let others = self
                .marked
                .get(&(odd.tap, odd.destination))
                .copied()
                .unwrap_or(1)
                .saturating_sub(1);
            thresholds
                .cnp_delay_most
                .0
                .saturating_add(thresholds.cnp_interval_usual.0.saturating_mul(others))
        };
        let fast = once(
            self.fast
                .iter()
                .filter(|odd| quantum(odd.tap) <= odd.median_ns / 4),
        );
        let late = once(self.late.iter().filter(|odd| odd.median_ns > allowed(odd)));
        let first = fast.iter().chain(&late).map(|odd| odd.first).min()?;
        let mut evidence = Evidence::default();
        let mut parts = Vec::new();
        if let Some(worst) = late.last() {
            evidence
                .count("flows_late", late.len() as u64)
                .count("ce_to_cnp_p50_ns", worst.median_ns)
                .text("late", names(&late));
            parts.push(format!(
                "CNPs for {} leave up to {} after the mark (median of {})",
                counted(late.len() as u64, "flow"),
                Nanos(worst.median_ns),
                worst.name
            ));
        }
        if let Some(worst) = fast.first() {
            evidence
                .count("flows_fast", fast.len() as u64)
                .count("cnp_interval_p50_ns", worst.median_ns)
                .text("fast", names(&fast));
            parts.push(format!(
                "CNPs for {} come {} apart (median of {})",
                counted(fast.len() as u64, "flow"),
                Nanos(worst.median_ns),
                worst.name
            ));
        }
        let severity = if late.is_empty() {
            Severity::Info
        } else {
            Severity::Warning
        };
        Some(PACING.finding(
            (severity, Confidence::Medium),
            parts.join("; "),
            evidence,
            "Check the notification point's minimum time between CNPs, and whether CNPs leave in a queue of their own.",
            Some(first),
        ))
    }
}

/// Each flow once, the shortest median first.
fn once<'a>(odd: impl Iterator<Item = &'a Odd>) -> Vec<&'a Odd> {
    let mut all: Vec<&Odd> = odd.collect();
    all.sort_by_key(|odd| (odd.median_ns, &odd.name));
    let mut seen: HashSet<FlowId> = HashSet::new();
    all.retain(|odd| seen.insert(odd.flow));
    all
}

fn names(odd: &[&Odd]) -> String {
    let mut names: Vec<&str> = odd.iter().map(|odd| odd.name.as_str()).collect();
    names.sort_unstable();
    some(&names, 5, names.len())
}
