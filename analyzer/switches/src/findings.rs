//! Findings of switches and hypervisors from one reading or two: a table of rules, and [`judge`], which applies it.
//!
//! A count of one reading has an unknown start: it is worth a note at most. Of two readings the growth decides; a reset between them is
//! no growth. What was not read decides nothing: it gives no finding, and is never taken for good.
//! Which readings are compared, how findings are shown, and exit codes are left to others.

mod facts;
mod hypervisor;
mod rule;
mod switch;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use roce_model::{SampleSource, Severity, SystemStart};
use roce_rules::counters::{self, CounterReading, Growths};

use crate::device::Reading;
use crate::inventory::Cluster;
use facts::Facts;
pub use rule::{DeviceFinding, DeviceRule, DeviceRun, Needs};

/// Findings of one rule that are kept; more are counted in the last one.
const MAX_FINDINGS_OF_RULE: usize = 64;

/// All rules, in the order in which they are shown.
pub fn rules() -> impl Iterator<Item = &'static DeviceRule> {
    switch::RULES.iter().chain(hypervisor::RULES)
}

/// The rule of this name.
pub fn rule_of(id: &str) -> Option<&'static DeviceRule> {
    rules().find(|rule| rule.id == id)
}

/// Findings about one device, the worst first.
///
/// `before` is an earlier reading of the same device: without it counts are totals since an unknown start, and findings out of them
/// are of the severity info. Settings need one reading alone.
pub fn judge(before: Option<&Reading>, now: &Reading, cluster: &Cluster) -> Vec<DeviceFinding> {
    let of_source = match now.source {
        SampleSource::Switch => switch::RULES,
        SampleSource::Hypervisor => hypervisor::RULES,
        SampleSource::Host | SampleSource::Gpu | SampleSource::Tool => return Vec::new(),
    };
    let reading = |samples| CounterReading {
        samples,
        start: SystemStart::default(),
    };
    let before = before.map(|before| reading(before.samples.as_slice()));
    let growths = Growths::new(before, reading(&now.samples), &());
    let facts = Facts::new(&growths, now, cluster);
    let mut all = Vec::new();
    for rule in of_source {
        let found = (rule.run.judge)(&facts);
        all.extend(found.into_iter().map(|found| DeviceFinding {
            id: rule.id,
            severity: found.severity,
            node: now.node.to_string(),
            object: found.object,
            text: found.text,
            evidence: found.evidence,
            next: rule.next,
            confidence: rule.confidence,
        }));
    }
    all.extend(of_counters(&growths, now));
    join_watchdogs(&mut all);
    limit(&mut all);
    // Equal ones stay in the order of the table.
    all.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    all
}

/// Findings by the rules about counters that hosts have, too.
fn of_counters(growths: &Growths<'_>, now: &Reading) -> Vec<DeviceFinding> {
    let found = counters::judge(growths).into_iter();
    found
        .map(|found| DeviceFinding {
            id: found.id,
            severity: found.severity,
            node: now.node.to_string(),
            text: match neighbor(now, &found.object).filter(|_| found.severity > Severity::Info) {
                Some(name) => format!("{} (the neighbour is {name})", found.text),
                None => found.text,
            },
            object: found.object,
            evidence: found.evidence,
            next: found.next,
            confidence: found.confidence,
        })
        .collect()
}

/// A queue that the watchdog keeps shut, and how often it shut it between the readings, are one matter: the counts say what it cost.
fn join_watchdogs(all: &mut Vec<DeviceFinding>) {
    let (stormed, mut others): (Vec<_>, Vec<_>) = std::mem::take(all)
        .into_iter()
        .partition(|finding| finding.id == switch::STORMED);
    for finding in stormed {
        let counted = others.iter_mut().find(|other| {
            other.id == "counters.watchdog"
                && other.object == finding.object
                && other.severity > Severity::Info
        });
        match counted {
            Some(counted) => {
                counted.severity = finding.severity;
                if !counted.text.contains("shut now") {
                    counted.text = format!("{}; {}", counted.text, finding.text);
                }
            }
            None => others.push(finding),
        }
    }
    *all = others;
}

/// The other end of an interface's cable, by LLDP.
fn neighbor(reading: &Reading, interface: &str) -> Option<String> {
    let mut ends = reading.neighbors.iter();
    let end = ends.find(|end| end.interface == interface && !end.node.is_empty())?;
    Some(format!("{} {}", end.node, end.port).trim_end().to_owned())
}

/// Keeps some findings of each rule, and counts the others in the last one.
fn limit(all: &mut Vec<DeviceFinding>) {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut at_limit = Vec::new();
    let mut at = 0;
    all.retain(|finding| {
        let count = counts.entry(finding.id).or_default();
        *count += 1;
        if *count == MAX_FINDINGS_OF_RULE {
            at_limit.push(at);
        }
        let is_kept = *count <= MAX_FINDINGS_OF_RULE;
        at += usize::from(is_kept);
        is_kept
    });
    for at in at_limit {
        if let Some(last) = all.get_mut(at) {
            let beyond = counts.get(last.id).copied().unwrap_or(0) - MAX_FINDINGS_OF_RULE;
            if beyond > 0 {
                // Writing into a text does not fail.
                let _ = write!(last.text, " ({beyond} more places have this finding)");
            }
        }
    }
}

/// The worst severity; `None` without findings.
pub fn worst_of(findings: &[DeviceFinding]) -> Option<Severity> {
    findings.iter().map(|finding| finding.severity).max()
}

#[cfg(test)]
mod tests;
