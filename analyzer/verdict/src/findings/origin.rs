//! The finding about the origin of pauses: which port or host the flows that stood still waited for in the end.

use roce_model::{Confidence, Evidence, FindingRow, RootKind, Severity, Span, Time};

use super::super::numbers::{counted, percent, some};
use super::super::pauses::Chain;
use super::rule::{Context, FindingOf as _, Rule};
use super::worst::Worst;

pub(super) const ORIGIN: Rule = Rule {
    id: "pause.origin",
    title: "flows waited, in pauses, for one port or host",
    meaning: "Pauses spread from port to port against the direction of traffic. Flows stood still whose own way may have been free: they \
              waited for ports that waited for others, up to one root. The root is named with its kind: flows that compete for a port \
              (contention), a host that takes packets too slowly (slow_receiver), a host that pauses without need (pause_storm), or ports \
              that wait for one another (loop).",
    method: "A cable is paused where pause frames were captured on it, or where the counters of one of its ends rose, for pause_least or \
             by wait_frames. It waits for another paused cable behind the switch that paused it, in the same time and not later, if flows \
             pass both. The last one's root: a host, with RNR NAKs or counters of missing buffers (slow_receiver); or one that paused \
             for pause_share_critical of the time while less than storm_rate of the link's rate came (pause_storm); or a port of \
             the switch that nobody pauses, with overlapping senders, marks, drops or a full link (contention); or a circle none of whose \
             ports sent anything in the end (loop). Flows are related to cables by --inventory: without it by the link addresses at the tap. Nothing is \
             said where no captured flow passes a paused cable. Times are known to the resolution of the readings, which the finding states.",
    source: "Hawkeye (SIGCOMM 2025): provenance of PFC pauses as a graph of ports and flows; deadlocks: Hu et al., HotNets 2016; storms: Guo et \
             al., SIGCOMM 2016, section 4.3.",
    thresholds: &["pause_least", "wait_frames", "pause_share_critical", "storm_rate"],
    severity: Severity::Warning,
    otherwise: "critical for a loop; info when the root is unclear or the confidence is low",
    confidence: "high when the host's own pause frames were captured on its link, and there RNR NAKs, or that next to nothing came; medium by \
                 counters of switches and hosts whose cables are known, or by frames and captured senders that overlap; low when \
                 several ports fit, cables are unknown, the ends of a cable contradict each other, or a host paused while data came and nothing \
                 shows what it lacked",
    ..Rule::TALLIED
};

/// Flows that a finding names.
const MAX_NAMED: usize = 3;

/// The worst root that flows waited for.
pub(super) fn origin(context: &Context<'_>) -> Option<FindingRow> {
    let fabric = context.fabric?;
    let flow = |place: &usize| fabric.flows.all.get(*place);
    let is_about = |chain: &&Chain| {
        let mut victims = chain.victims.iter().filter_map(flow);
        match context.only {
            Some(only) => victims.any(|victim| only.contains(&victim.flow)),
            None => victims.next().is_some(),
        }
    };
    let mut chains = fabric.chains.iter().filter(is_about);
    let chain = chains.next()?;
    let others = chains
        .filter(|other| other.root.kind != RootKind::Unclear)
        .count();
    let root = &chain.root;
    let mut victims = Worst::default();
    for victim in chain.victims.iter().filter_map(flow) {
        victims.add(victim.wire_bytes, || victim.name());
    }
    let mut evidence = Evidence::default();
    evidence
        .text("root", root.place.clone())
        .text("root_kind", root.kind.name())
        .text("reason", root.reason.clone())
        .text("way", chain.path.clone())
        .count("victims", chain.victims.len() as u64)
        .count("victims_elsewhere", chain.elsewhere)
        .count("victims_possible", chain.possible)
        .count("cables_paused", chain.holds)
        .count("pause_frames", chain.frames);
    if let Some(paused) = chain.paused_ns {
        evidence.count("paused_most_ns", paused);
    }
    evidence.count("resolution_ns", chain.resolution);
    let shares: Vec<String> = root
        .shares
        .iter()
        .take(MAX_NAMED)
        .filter_map(|(place, share)| Some(format!("{} {}", flow(place)?.name(), percent(*share))))
        .collect();
    let shares = some(&shares, MAX_NAMED, root.shares.len());
    if !shares.is_empty() {
        evidence
            .count("flows_competing", root.shares.len() as u64)
            .text("shares", shares.clone());
    }
    evidence.count("other_roots", others as u64);
    if chain.left_out > 0 {
        evidence.count("cables_left_out", chain.left_out);
    }
    evidence.text("worst", victims.names());
    let (severity, next_step) = match (root.kind, root.confidence) {
        (RootKind::Unclear, _) | (_, Confidence::Low) => (Severity::Info, UNCLEAR),
        (RootKind::Loop, _) => (Severity::Critical, LOOP),
        (RootKind::Contention, _) => (Severity::Warning, CONTENTION),
        (RootKind::SlowReceiver, _) => (Severity::Warning, SLOW),
        (RootKind::PauseStorm, _) => (Severity::Warning, STORM),
    };
    let what = match root.kind {
        RootKind::Contention => format!(
            "{} compete there ({shares})",
            counted(root.shares.len() as u64, "flow")
        ),
        RootKind::SlowReceiver => "a slow receiver".to_owned(),
        RootKind::PauseStorm => "a pause storm".to_owned(),
        RootKind::Loop => "a circle of ports that wait for one another".to_owned(),
        RootKind::Unclear => "its cause is unclear".to_owned(),
    };
    let elsewhere = match chain.elsewhere {
        0 => String::new(),
        flows => format!(", {flows} of them on the way to others"),
    };
    let mut finding = ORIGIN.finding(
        (severity, root.confidence),
        format!(
            "pauses of {} go back to {}: {what}, {}; way {}; times are known to {}{elsewhere}",
            counted(chain.victims.len() as u64, "flow"),
            root.place,
            root.reason,
            chain.path,
            Span(chain.resolution),
        ),
        evidence,
        next_step,
        Some(Time(chain.first)),
    );
    finding.next_step = next_step.replace("{place}", &root.place).into();
    Some(finding)
}

const UNCLEAR: &str = "Read the switches and hosts on this way, too (--samples), name their cables (--inventory), and look at the table waits.";
const LOOP: &str =
    "Break the circle: find the routes that go down and up again, and switch on the PFC watchdog.";
const CONTENTION: &str = "Spread {senders} in time or over more receivers, and mark earlier at this port: ECN is to act before PFC.";
const SLOW: &str =
    "Look at {place}: receives that are posted too late, PCIe, memory and NUMA placement of the adapter.";
const STORM: &str =
    "Look at the adapter of {place} (a hang, firmware), and check the PFC watchdog of its switch port.";
