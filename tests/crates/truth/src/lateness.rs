//! Lateness: which rank, receiver or link a job waits for, and what that costs.
//!
//! An item: a job with one root that costs it [`COSTS`] of its time or more, and [`MIN_STEP_COST_NS`] in each step: less is not named. Found: the first of the findings about lateness has the kind
//! of the root and names its host among the aggressors. Said: all findings about lateness, right when a root of that kind
//! and host costs something. In a healthy job each is wrong. From one capture alone, "cannot tell" is an answer as well.

use roce_model::FindingRow;
use roce_sim::truth::InjectedRoot;

use crate::case::Case;
use crate::roots;
use crate::score::StatedConfidence;
use crate::scores::Scores;
use crate::seen::SeenRun;

/// Findings about lateness.
pub(crate) const FINDINGS: &[&str] = &["rank.late", "receiver.late", "network.late"];
/// The finding that packets do not tell.
pub(crate) const CANNOT_TELL: &str = "job.cannot_tell";
/// Least share of a job's time that a root costs, in percent, to be expected in a report.
const COSTS: i64 = 5;
/// Least cost of a root in each step to be expected, in nanoseconds: what a report names at all.
const MIN_STEP_COST_NS: i64 = 50_000;
/// Error of a cost that is allowed, in percent.
const ERROR: u64 = 10;

/// A root of a job, and its cost in all steps.
struct CostlyRoot<'a> {
    root: &'a InjectedRoot,
    cost: i64,
    is_large: bool,
}

/// The root of a case whose steps have one at most.
fn root_of(case: &Case) -> Option<CostlyRoot<'_>> {
    let steps = case.truth.collectives.iter().flat_map(|job| &job.steps);
    let root = steps.clone().find_map(|step| step.roots.first())?;
    // After its last step the same root may still cost: its ranks begin later ones apart.
    let cost: i64 = steps.clone().map(|step| step.cost_ns).sum();
    let length: u64 = steps.clone().map(|step| step.length_ns).sum();
    let count = i64::try_from(steps.count()).unwrap_or(i64::MAX);
    Some(CostlyRoot {
        root,
        cost,
        is_large: cost * 100 >= length.cast_signed() * COSTS
            && cost >= count.saturating_mul(MIN_STEP_COST_NS),
    })
}

/// The findings about lateness in a run of the analysis, as they are ordered.
fn said(seen: &SeenRun) -> impl Iterator<Item = &FindingRow> {
    let findings = seen.summary.findings.iter();
    findings.filter(|finding| FINDINGS.contains(&finding.id))
}

/// True if a finding has the kind of a root and names its host: among the aggressors, or as one end of a way on which nobody is one.
fn names(case: &Case, finding: &FindingRow, root: &InjectedRoot) -> bool {
    let Some(address) = case.address(&root.host).filter(|_| finding.id == root.kind) else {
        return false;
    };
    let aggressors = &finding.aggressors.0;
    let mut hosts = aggressors
        .iter()
        .map(|name| name.split('[').next().unwrap_or_default());
    let is_way = finding.id == "network.late" && aggressors.is_empty();
    hosts.any(|host| host.trim() == address) || is_way && roots::names(&finding.summary, address)
}

/// True if the evidence of a finding says where a rank is late: `place` is `gpu` or `host`.
fn has_place(finding: &FindingRow, root: &InjectedRoot) -> bool {
    let evidence = finding.evidence.to_string();
    root.kind != "rank.late" || evidence.contains(&format!("\"place\":\"{}\"", root.place))
}

/// True if no tap captured six bytes of the addresses in credits, behind all headers.
fn is_cut(case: &Case) -> bool {
    let network = &case.parsed.network;
    let (ethernet, ip) = (
        if network.vlan.is_some() { 18 } else { 14 },
        if network.ipv6 { 40 } else { 20 },
    );
    let least = ethernet + ip + 8 + 12 + 16 + 6;
    let mut taps = case.truth.taps.iter();
    taps.all(|tap| (1..least).contains(&tap.snaplen))
}

/// Captures that show no address of a credit: nobody is named, and that this is not shown is said.
fn cut(case: &Case, scores: &mut Scores) {
    for seen in std::iter::once(&case.seen).chain(&case.alone) {
        let is_silent = said(seen).next().is_none();
        let mut findings = seen.summary.findings.iter();
        let is_right = is_silent && findings.any(|finding| finding.id == CANNOT_TELL);
        scores.of_class("late: cut").expect(is_right, || list(seen));
    }
}

pub(crate) fn compare(case: &Case, scores: &mut Scores) {
    if case.truth.collectives.is_empty() {
        return;
    }
    if is_cut(case) {
        return cut(case, scores);
    }
    match root_of(case) {
        None if case.scenario.healthy => healthy(case, scores),
        None => {}
        Some(root) => {
            together(case, &root, scores);
            for alone in &case.alone {
                one_capture(case, alone, &root, scores);
            }
        }
    }
}

fn list(seen: &SeenRun) -> String {
    let findings = seen.summary.findings.iter();
    let about = findings.filter(|finding| FINDINGS.contains(&finding.id) || finding.id == CANNOT_TELL);
    let texts: Vec<String> = about
        .map(|finding| {
            format!(
                "{} ({}): {}",
                finding.id,
                finding.confidence.name(),
                finding.summary
            )
        })
        .collect();
    if texts.is_empty() {
        "nothing".to_owned()
    } else {
        texts.join("; ")
    }
}

/// A healthy job: nothing is late, from all captures and from each alone.
fn healthy(case: &Case, scores: &mut Scores) {
    for seen in std::iter::once(&case.seen).chain(&case.alone) {
        let is_calm = said(seen).next().is_none();
        scores.of_class("late: healthy").expect(is_calm, || list(seen));
    }
}

/// All captures together.
fn together(case: &Case, root: &CostlyRoot<'_>, scores: &mut Scores) {
    let truth = root.root;
    let about = || {
        let what = format!(
            "{} {} {}, {} us",
            truth.kind,
            truth.host,
            truth.place,
            root.cost / 1_000
        );
        format!("{what}; said: {}", list(&case.seen))
    };
    let first = said(&case.seen).next();
    let named = first.filter(|finding| names(case, finding, truth));
    if root.is_large {
        scores.of_class("late: root").expect(named.is_some(), about);
        if let Some(named) = named {
            let placed = has_place(named, truth);
            scores.of_class("late: place").expect(placed, about);
            let cost = named.waited_ns.unwrap_or(0);
            let allowed = root.cost.unsigned_abs() * ERROR / 100;
            let is_near = cost.abs_diff(root.cost.unsigned_abs()) <= allowed;
            let text = || format!("{} us; {}", cost / 1_000, about());
            scores.of_class("late: cost").expect(is_near, text);
        }
    } else {
        scores.of_class("late: root").hidden();
    }
    tell(case, &case.seen, root, "late: root", scores);
}

/// Each finding about lateness is right or wrong.
fn tell(case: &Case, seen: &SeenRun, root: &CostlyRoot<'_>, class: &str, scores: &mut Scores) {
    for finding in said(seen) {
        let right = root.cost > 0 && names(case, finding, root.root);
        let confidence = StatedConfidence::of(finding.confidence);
        let text = || format!("{} {}: {}", root.root.kind, root.root.host, finding.summary);
        scores.of_class(class).tell_with(confidence, right, text);
    }
}

/// One capture alone: the root, or that it cannot tell.
fn one_capture(case: &Case, alone: &SeenRun, root: &CostlyRoot<'_>, scores: &mut Scores) {
    const CLASS: &str = "late: one capture";
    let input = alone.summary.taps.first().map_or("", |tap| &*tap.input);
    if root.is_large {
        let named = said(alone).any(|finding| names(case, finding, root.root));
        let mut others = alone.summary.findings.iter();
        let cannot_tell = others.any(|finding| finding.id == CANNOT_TELL);
        scores.of_class(CLASS).expect(named || cannot_tell, || {
            format!(
                "{input}: {} {}; said: {}",
                root.root.kind,
                root.root.host,
                list(alone)
            )
        });
    } else {
        scores.of_class(CLASS).hidden();
    }
    tell(case, alone, root, CLASS, scores);
}
