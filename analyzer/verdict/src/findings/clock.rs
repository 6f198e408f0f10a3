//! The finding about clocks that were set while they recorded.

use roce_model::{Confidence, Evidence, FindingRow, Severity, Span};

use super::super::numbers::counted;
use super::rule::{Context, FindingOf as _, Needs, Rule};

pub(super) const CLOCK: Rule = Rule {
    id: "capture.clock",
    title: "a capture's clock was set while it recorded",
    meaning: "The stamps of a capture step, as when NTP or PTP sets a clock. The run is cut there: what is behind the step is moved by it, and \
              times across it are as exact as the step is known.",
    method: "Back: stamps go back by 10 us or more while the PSNs of their flows go on; three packets prove it, and eight times as many as those whose \
             PSN goes back, too, which are records out of order. Forward: only a second tap shows it, where no one difference of the two clocks fits, \
             but two do, and one tap is silent for as long as the other one goes on.",
    source: "The PSN of a packet follows on that of the one before (IBTA 9.7.2), whatever the clock shows.",
    thresholds: &[],
    severity: Severity::Info,
    confidence: "high: the packets prove it",
    needs: Needs::Any,
    ..Rule::TALLIED
};

/// Steps that are named.
const NAMED: usize = 3;

pub(super) fn clock(context: &Context<'_>) -> Option<FindingRow> {
    let steps = &context.run.clock_steps;
    let first = steps.iter().min_by_key(|step| step.time)?;
    let start = context.run.zero();
    let names = context.run.tap_names();
    let each: Vec<String> = steps
        .iter()
        .take(NAMED)
        .map(|step| {
            format!(
                "{} {} by {}, {} after the first frame",
                names.name(step.tap),
                if step.by_ns < 0 { "back" } else { "forward" },
                Span(step.by_ns.unsigned_abs()),
                step.time.since(start)
            )
        })
        .collect();
    let more = steps.len().saturating_sub(NAMED);
    let more = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    let mut evidence = Evidence::default();
    evidence.count("steps", steps.len() as u64).count(
        "step_max_ns",
        steps
            .iter()
            .map(|step| step.by_ns.unsigned_abs())
            .max()
            .unwrap_or_default(),
    );
    Some(CLOCK.finding(
        (Severity::Info, Confidence::High),
        format!(
            "a clock was set while it recorded, {}: {}{more}; the run is cut there, and what is behind is moved",
            counted(steps.len() as u64, "time"),
            each.join("; ")
        ),
        evidence,
        "Capture again when the host's clock is synchronised, and let NTP or PTP slew instead of step (chrony: makestep).",
        Some(first.time),
    ))
}
