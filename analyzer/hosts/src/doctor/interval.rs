//! The check of what counters did while the host was watched, by the rules that `host counters` and `fabric counters` have, too.

use roce_model::Severity;
use roce_rules::counters::rules;

use crate::doctor::check::{CERTAIN, Check, CheckRun, Outcome, ReadValue, Status};
use crate::doctor::counters::LATER;
use crate::doctor::facts::Facts;
use crate::doctor::link::is_of_link;

pub(crate) const CHECKS: &[Check] = &[Check {
    id: "counters.interval",
    title: "counters show no trouble while the host is watched",
    read: "counters of RDMA devices and of their interfaces (ethtool -S), twice: --duration",
    method: "the rules counters.* (`explain counters.paused` ...): pauses as a share of time with their direction, CNPs without marks or of slow \
             restarts, missing receive buffers, losses in a class without PFC, discards, ports that differ from their twins. Totals of a life are \
             never judged",
    meaning: "Counters tell what happens now only by their change, and the cause only by their relations.",
    symptom: "A job is slow, and every setting is right.",
    alternatives: "link.errors",
    source: "the sources of each rule",
    severity: Severity::Warning,
    confidence: "as the rule says",
    run: CheckRun::new("counters", interval),
    ..CERTAIN
}];

/// Rules that checks of their own judge, with these.
const SHOWN_ELSEWHERE: [(&str, &str); 2] = [
    ("counters.cnp_not_sent", "ecn.np"),
    ("counters.cnp_ignored", "cc.ignored"),
];

fn interval(facts: &Facts<'_>) -> Vec<Outcome> {
    if !facts.host.has(LATER) {
        return Vec::new();
    }
    let found = facts.found.iter().filter(|found| {
        // Links of Ethernet are shown by `link.errors`, those of InfiniBand here.
        let mut interfaces = facts.ports_of_hosts();
        let is_shown_there = is_of_link(found) && interfaces.any(|interface| interface.name == found.object);
        !is_shown_there
    });
    let outcomes: Vec<Outcome> = found
        .map(|found| {
            // A check of its own judges it, and this one names it.
            let check = SHOWN_ELSEWHERE.iter().find(|(rule, _)| *rule == found.id);
            let status = match check {
                Some(_) => Status::Info.min(Status::from_severity(found.severity)),
                None => Status::from_severity(found.severity),
            };
            let mut outcome = if found.object.is_empty() {
                Outcome::new(status, "host", &found.text)
            } else {
                Outcome::new(status, &found.object, format!("{}: {}", found.object, found.text))
            };
            outcome.seen.push(ReadValue {
                source: found.id.to_owned(),
                value: found.evidence_words(),
            });
            outcome.confidence = found.confidence;
            if let Some((_, check)) = check {
                outcome = outcome.advice(format!("The check {check} judges it."));
            }
            if status > Status::Info {
                outcome = outcome.advice(found.next);
            }
            outcome
        })
        .collect();
    if outcomes.is_empty() && !facts.counters.is_empty() {
        let said = format!("{} rules about counters found nothing", rules().count());
        return vec![Outcome::ok("host", said)];
    }
    outcomes
}
