//! Findings about congestion notifications: senders that ignore them, and receivers that send them too fast or too late.

use std::collections::{HashMap, HashSet};

use roce_model::{
    Address, Confidence, Evidence, FindingRow, FlowId, FlowRow, Severity, Span, TapId, Time, Vantage,
};

use super::super::directory::name_of;
use super::super::numbers::{counted, reaches, some};
use super::super::thresholds::Thresholds;
use super::rule::{Context, FindingOf as _, Rule};
use super::worst::Worst;

type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// Coarser stamps than a twentieth of a window (200 us) show no rates over it.
const COARSEST_STAMPS: u64 = 10_000;
/// Flows and hosts that are kept at most.
const MAX_KEPT: usize = 1 << 16;

pub(super) const IGNORED: Rule = Rule {
    id: "cnp.ignored",
    title: "senders ignore CNPs",
    meaning: "Congestion notifications reach a sender, and it goes on faster than DCQCN lets it: its reaction point is off, \
              or another congestion control does not listen to CNPs.",
    method: "From the CNPs that surely are for a flow, DCQCN is replayed as an upper bound: with each known way of alpha \
             and of increasing (paper, ns-3, NVIDIA), alpha 0 at first, from the speed of the sender's port; the way that allows most counts. That speed is --link-rate, or \
             the speed of Ethernet at which runs of 8 of the flow's packets follow each other, where no other flow of the sender \
             was captured that may share its port; else 800 Gbit/s. With --dcqcn only that set, with its own alpha. In windows of 200 us and 64 packets at \
             least the flow's rate is compared with it. A flow counts if it sent 1.5 times the bound or more in more than \
             a quarter of the windows that tell. A window tells if the flow did so in it, or if 1.5 times the bound was no more than \
             the flow's mean rate. Fires for the flows of senders that have ignored_windows such windows or more. A rate that stays below the bound shows nothing: a share of the port or the application may set \
             it. Judged where the tap stands at the sender's side, where CNPs come and none of its 500 packets or more was marked or lost before the \
             tap, or where it is the first of several on the flow's way, and where stamps are not coarser than 10 us.",
    source: "DCQCN (SIGCOMM 2015, section 3.1): each CNP cuts the rate by alpha/2. NVIDIA's documented byte reset makes up for \
             a CNP each 50 us from 25 Gbit/s on: then no packet can tell who ignores CNPs, unless --dcqcn names another set.",
    thresholds: &["ignored_windows"],
    severity: Severity::Warning,
    confidence: "high with four times ignored_windows windows over the bound, nine in ten of those that tell, at a tap on the \
                 sender's side, where the speed of the port is stated or 800 Gbit/s, and CNPs come closer together than 40 us, \
                 so that every known set was checked; medium otherwise",
    ..Rule::TALLIED
};

/// CNPs never less than this apart are those of the paper: only its rules of increase are replayed then (see `dcqcn::bound`).
const WIDE: u64 = 40_000;

pub(super) const PACING: Rule = Rule {
    id: "cnp.pacing",
    title: "CNPs come too fast or too late",
    meaning: "CNPs closer together than a notification point sends them cut a sender's rate again before the first cut \
              shows; late ones let the queue grow for too long.",
    method: "Too fast: the median of cnp_interval is under cnp_interval_least. Too late: the median of ce_to_cnp (from the first \
             mark of a train after the last CNP, to the next CNP; of a train that is answered later than 500 us only the first) is over \
             cnp_delay_most, plus cnp_interval_usual for each other marked flow of the same receiver, which may be \
             served in turn. Both with at least least_measurements, or \
             where every train is answered half as late again, and not where stamps are coarser than a quarter \
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
    confidence: "high when they are too fast: their times show it; medium when they are late at the receiver's side; low when \
                 they are late elsewhere, where the way to the tap takes its time, too",
    ..Rule::TALLIED
};

/// A flow whose CNPs look too fast or too late.
#[derive(Debug)]
struct Odd {
    tap: TapId,
    flow: FlowId,
    name: String,
    destination: Address,
    median_ns: u64,
    first: Time,
    at_receiver: bool,
}

/// A flow that sent more than DCQCN allows.
#[derive(Debug)]
struct Over {
    tap: TapId,
    flow: FlowId,
    epoch: u32,
    source: Address,
    name: String,
    cnp: u64,
    windows: u64,
    exceeded: u64,
    excess: f64,
    /// The tap stands at the sender's side.
    at_sender: bool,
    /// The flow's rate there is that of its sender; if not, nothing shows that the tap stands behind a congested place.
    shows_sent_rate: bool,
    /// Nothing was taken for granted: neither the speed of the port nor the set of parameters.
    sure: bool,
    /// The speed of the sender's port was taken from this flow.
    needs_own_port: bool,
    first: Time,
}

/// True if a flow was over the bound in more than a quarter of the windows that tell. An application that sends bursts leaves the rest
/// below it; a sender that obeys is over it in none.
pub(super) fn is_often_over(row: &FlowRow) -> bool {
    row.cnp_windows_over.saturating_mul(4) > row.cnp_windows
}

/// True if a flow did not slow down after CNPs, as far as its tap shows that.
pub(super) fn ignores_cnps(row: &FlowRow) -> bool {
    let exceeds = row.cnp_windows_over > 0 && is_often_over(row);
    // Behind a congested place a queue goes on sending for a while.
    let undisturbed = row.ce == 0 && row.network_lost == 0 && row.vantage != Some(Vantage::Receiver);
    exceeds && (row.shows_sent_rate() || undisturbed)
}

#[derive(Debug, Default)]
pub(super) struct CnpTally {
    over: Vec<Over>,
    fast: Vec<Odd>,
    late: Vec<Odd>,
    /// Marked flows by tap and receiver.
    marked: Map<(TapId, Address), u64>,
    /// Senders by tap: one of their flows with data, and whether there are others.
    senders: Map<(TapId, Address), (FlowId, bool)>,
    /// The speed of the ports is stated.
    stated: bool,
}

impl CnpTally {
    pub(super) fn new(stated: bool) -> Self {
        Self {
            stated,
            ..Self::default()
        }
    }

    /// True if no other flow of a sender was captured at a tap.
    fn is_alone(&self, tap: TapId, sender: Address) -> bool {
        self.senders
            .get(&(tap, sender))
            .is_some_and(|(_, others)| !others)
    }

    pub(super) fn flow(&mut self, row: &FlowRow, thresholds: &Thresholds) {
        self.reaction(row);
        let sender = (row.tap, row.source);
        if row.data_packets > 0 && (self.senders.len() < MAX_KEPT || self.senders.contains_key(&sender)) {
            let (flow, others) = self.senders.entry(sender).or_insert((row.flow_id, false));
            *others |= *flow != row.flow_id;
        }
        if row.ce > 0 {
            let key = (row.tap, row.destination);
            if self.marked.len() < MAX_KEPT || self.marked.contains_key(&key) {
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
            at_receiver: row.vantage == Some(Vantage::Receiver),
        };
        if let Some(median) = row.cnp_interval_p50_ns
            && row.cnp_interval_count >= enough
            && median < thresholds.cnp_interval_least.0
            && self.fast.len() < MAX_KEPT
        {
            self.fast.push(odd(median));
        }
        if let Some(median) = row.ce_to_cnp_p50_ns
            && (row.ce_to_cnp_count >= enough || are_all_late(row, thresholds))
            && median > thresholds.cnp_delay_most.0
            && row.vantage != Some(Vantage::Sender)
            && self.late.len() < MAX_KEPT
        {
            self.late.push(odd(median));
        }
    }

    fn reaction(&mut self, row: &FlowRow) {
        if !ignores_cnps(row) || self.over.len() >= MAX_KEPT {
            return;
        }
        self.over.push(Over {
            tap: row.tap,
            flow: row.flow_id,
            epoch: row.epoch,
            source: row.source,
            name: name_of(row),
            cnp: row.cnp.unwrap_or_default(),
            windows: row.cnp_windows,
            exceeded: row.cnp_windows_over,
            excess: row
                .cnp_over_p50
                .filter(|excess| excess.is_finite())
                .unwrap_or(1.0),
            at_sender: row.vantage == Some(Vantage::Sender),
            shows_sent_rate: row.shows_sent_rate(),
            sure: (self.stated || row.cnp_port_bps.is_none())
                && row.cnp_interval_min_ns.is_some_and(|least| least < WIDE),
            needs_own_port: !self.stated && row.cnp_port_bps.is_some(),
            first: row.first_time,
        });
    }

    pub(super) fn ignored(&self, context: &Context<'_>) -> Option<FindingRow> {
        let upstream = |over: &&Over| over.shows_sent_rate || context.is_first_on_way(over.tap, over.flow);
        let fine = |over: &&Over| context.quantum(over.tap) <= COARSEST_STAMPS;
        let has_port = |over: &&Over| !over.needs_own_port || self.is_alone(over.tap, over.source);
        let mut flows: Vec<&Over> = self
            .over
            .iter()
            .filter(upstream)
            .filter(fine)
            .filter(has_port)
            .collect();
        // The tap at the sender's side speaks for a flow that several taps judged.
        flows.sort_by_key(|over| {
            (
                over.flow,
                over.epoch,
                core::cmp::Reverse(over.at_sender),
                over.tap,
            )
        });
        flows.dedup_by_key(|over| (over.flow, over.epoch));
        // One adapter paces all flows of a sender: their windows count together.
        let mut by_sender: Map<Address, u64> = Map::default();
        for over in &flows {
            let windows = by_sender.entry(over.source).or_default();
            *windows = windows.saturating_add(over.exceeded);
        }
        let least = context.thresholds.ignored_windows.max(1);
        flows.retain(|over| by_sender[&over.source] >= least);
        let first = flows.iter().map(|over| over.first).min()?;
        let mut worst = Worst::default();
        let (mut cnp, mut windows, mut windows_over, mut most) = (0u64, 0u64, 0u64, 0.0f64);
        let mut sure = false;
        for over in flows {
            worst.add(over.exceeded, || over.name.clone());
            cnp = cnp.saturating_add(over.cnp);
            windows = windows.saturating_add(over.exceeded);
            windows_over = windows_over.saturating_add(over.windows);
            most = most.max(over.excess);
            sure |= over.sure
                && over.at_sender
                && over.exceeded >= least.saturating_mul(4)
                && reaches(over.exceeded, over.windows, 0.9);
        }
        let mut evidence = Evidence::default();
        evidence
            .count("flows", worst.all())
            .count("cnp", cnp)
            .count("windows_over", windows)
            .count("windows", windows_over)
            .number("rate_over_bound", most)
            .text("worst", worst.list());
        Some(IGNORED.finding(
            (
                Severity::Warning,
                if sure { Confidence::High } else { Confidence::Medium },
            ),
            format!(
                "{} sent {most:.1} times what DCQCN allows at most after {} ({} of {}): {}",
                counted(worst.all(), "flow"),
                counted(cnp, "CNP"),
                windows,
                counted(windows_over, "window"),
                worst.names()
            ),
            evidence,
            "At {senders}, check that the reaction point is enabled for the priority that CNPs come with (roce_rp), and the counter of \
             CNPs handled.",
            Some(first),
        ))
    }

    pub(super) fn pacing(&self, context: &Context<'_>) -> Option<FindingRow> {
        let thresholds = context.thresholds;
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
                .filter(|odd| context.quantum(odd.tap) <= odd.median_ns / 4),
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
                Span(worst.median_ns),
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
                Span(worst.median_ns),
                worst.name
            ));
        }
        let severity = if late.is_empty() {
            Severity::Info
        } else {
            Severity::Warning
        };
        let confidence = match late.last() {
            None => Confidence::High,
            Some(worst) if worst.at_receiver => Confidence::Medium,
            Some(_) => Confidence::Low,
        };
        Some(PACING.finding(
            (severity, confidence),
            parts.join("; "),
            evidence,
            "Check the notification point's minimum time between CNPs, and whether CNPs leave in a queue of their own.",
            Some(first),
        ))
    }
}

/// True if not one of the flow's trains of marks was answered in time, by far. Such a delay counts only with several marks in it, and later
/// ones of its train do not: one tells.
fn are_all_late(row: &FlowRow, thresholds: &Thresholds) -> bool {
    let by_far = thresholds.cnp_delay_most.0.saturating_mul(3) / 2;
    row.ce >= thresholds.least_marks && row.ce_to_cnp_min_ns.is_some_and(|least| least > by_far)
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
