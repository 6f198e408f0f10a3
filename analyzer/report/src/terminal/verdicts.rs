//! First section of the summary: the first sentence, the findings with what they explain below them, and the classes of missing packets.
//! Without findings, it says what could not be seen from this capture point.

use roce_model::cast::{float, whole};
use roce_model::{
    Confidence, EpisodeKind, Fact, FindingRow, Period, RunSummary, Severity, Span, Time, Vantage,
};

use super::counts::no_packet;
use super::field::{field, wrapped};
use super::ink::{Ink, clean};
use super::style::Style;
use super::view::View;
use roce_spelling::{bytes, count, percent, plural, rate, rate_of};

/// Findings from `warning` on that are shown with their numbers and next step.
const IN_FULL: usize = 3;
/// Findings that are shown at all; the others are counted.
const SHOWN: usize = 8;

/// Colour, symbol and word of a severity, so that each is enough alone.
pub(super) fn mark(severity: Severity, unicode: bool) -> (Ink, &'static str) {
    match (severity, unicode) {
        (Severity::Critical, true) => (Ink::Bad, "✗"),
        (Severity::Critical, false) => (Ink::Bad, "X"),
        (Severity::Warning, true) => (Ink::Warn, "▲"),
        (Severity::Warning, false) => (Ink::Warn, "!"),
        (Severity::Info, true) => (Ink::Bold, "•"),
        (Severity::Info, false) => (Ink::Bold, "i"),
        (Severity::Ok, true) => (Ink::Good, "✓"),
        (Severity::Ok, false) => (Ink::Good, "+"),
    }
}

/// The name of a finding that follows from the one above it.
pub(super) const fn branch(unicode: bool) -> &'static str {
    if unicode { "   └ so" } else { "   ` so" }
}

/// The first sentence, in the colour of the first finding.
pub(super) fn first_sentence(run: &RunSummary, style: &Style) -> Vec<String> {
    let first = run.findings.first();
    let severity = first.map_or(Severity::Ok, |first| first.severity);
    let (ink, _) = mark(severity, style.unicode);
    let words: Vec<String> = clean(&run.sentence)
        .split_whitespace()
        .map(|word| Ink::Bold.paint(word))
        .collect();
    wrapped("verdict", &words, ink, style)
}

/// The first sentence, the number of findings by severity, the holes, and the findings one by one.
pub(super) fn verdicts(view: &View<'_>) -> Vec<String> {
    let findings = &view.run.findings;
    let mut lines = first_sentence(view.run, view.style);
    lines.extend(field("findings", &counts(view), view.style));
    lines.extend(field("congested", &congested(view), view.style));
    lines.extend(reaction(view));
    lines.extend(field("holes", &holes(view), view.style));
    if findings.is_empty() {
        lines.extend(field("blind to", &blind(view), view.style));
        return lines;
    }
    lines.push(String::new());
    let shown = if view.style.full { findings.len() } else { SHOWN };
    let mut roots = 0;
    for finding in findings.iter().take(shown) {
        roots += usize::from(finding.is_root());
        // The worst one has room for more numbers than the others, and what follows from them has none.
        let numbers = match roots.saturating_sub(1) {
            _ if view.style.full => usize::MAX,
            _ if finding.severity < Severity::Warning || !finding.is_root() => 0,
            0 => 2,
            1..IN_FULL => 1,
            _ => 0,
        };
        lines.extend(said(finding, numbers, view));
    }
    if let Some(left) = findings.get(shown..).filter(|left| !left.is_empty()) {
        let ids: Vec<String> = left.iter().map(|finding| clean(finding.id)).collect();
        let title = format!("and {} more", left.len());
        lines.extend(field(&title, &ids, view.style));
    }
    let hint = "roce-analyze explain ID: its meaning, what would make it surer";
    lines.extend(field("", &[Ink::Faint.paint(hint)], view.style));
    lines
}

/// The verdicts for the end of text that does not fit the terminal: a sentence for each finding, as many as fit on half a screen.
pub(super) fn again(view: &View<'_>) -> Vec<String> {
    let mut lines = vec![String::new()];
    lines.extend(first_sentence(view.run, view.style));
    lines.extend(field("findings", &counts(view), view.style));
    let room = view.style.rows.unwrap_or(usize::MAX) / 2;
    for (place, finding) in view.run.findings.iter().enumerate() {
        let more = said(finding, 0, view);
        if place > 0 && lines.len() + more.len() > room {
            break;
        }
        lines.extend(more);
    }
    lines.push(String::new());
    lines
}

/// A sender whose rate did not change behind its CNPs, where no finding says that it ignores them: a slow share of a port, and an
/// increase as NVIDIA documents it, look alike.
fn reaction(view: &View<'_>) -> Vec<String> {
    let is_said = view
        .run
        .findings
        .iter()
        .any(|finding| finding.id == "cnp.ignored");
    let Some(unmoved) = view.sums.unmoved.as_ref().filter(|_| !is_said) else {
        return Vec::new();
    };
    let words = format!(
        "{} came for {}, and it went on with {} of its rate{}; whether that breaks DCQCN needs --dcqcn",
        plural(unmoved.cnp, "CNP", "CNPs"),
        unmoved.name,
        unmoved.percent.map_or_else(
            || "seven eighths or more".to_owned(),
            |percent| format!("{percent} %")
        ),
        rate(unmoved.payload_bytes, unmoved.time).map_or_else(String::new, |rate| format!(", {rate}")),
    );
    let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
    wrapped("reaction", &words, Ink::Faint, view.style)
}

/// Share of the time with congestion, and the state of the control loop: many episodes and an ok verdict
/// do not contradict each other.
fn congested(view: &View<'_>) -> Vec<String> {
    let run = view.run;
    let Some(length) = run.span.map(Period::length).filter(|length| length.0 > 0) else {
        return Vec::new();
    };
    let congestion = || {
        run.episodes.iter().filter(|row| {
            matches!(
                row.kind,
                EpisodeKind::Ecn | EpisodeKind::Incast | EpisodeKind::Pause
            )
        })
    };
    let (congested, intervals) = union(congestion().map(|row| (row.start_time, row.end_time)));
    if congested.0 == 0 {
        return Vec::new();
    }
    // A bin that begins before the last frame can end behind it.
    let congested = congested.min(length);
    let share = percent(congested.0, length.0).unwrap_or_default();
    let mut items = vec![format!(
        "{congested} of {length} ({share}), in {}",
        plural(intervals, "interval", "intervals")
    )];
    let works = run.findings.iter().find(|finding| finding.id == "ecn.working");
    let is_quiet = run
        .findings
        .iter()
        .all(|finding| finding.severity < Severity::Warning)
        && run.totals.network_lost == 0
        && run.totals.lost_downstream == 0
        && run.totals.pause_frames == 0;
    if let Some(works) = works.filter(|_| is_quiet) {
        let slowed = ["flows_slowed", "receivers_with_fewer_arrivals"]
            .iter()
            .any(|name| {
                works
                    .evidence
                    .0
                    .iter()
                    .any(|(known, fact)| known == name && *fact != Fact::Count(0))
            });
        items.push(if slowed {
            "no loss seen, senders slowed down: the control loop kept up".to_owned()
        } else {
            "no loss seen: packets were marked, not dropped".to_owned()
        });
    }
    items
}

/// The length of all intervals together, each moment counted once, and how many are left where those that touch are one.
fn union(intervals: impl Iterator<Item = (Time, Time)>) -> (Span, u64) {
    let mut intervals: Vec<(Time, Time)> = intervals.collect();
    intervals.sort_unstable();
    let (mut sum, mut until, mut left) = (0u64, Time(0), 0u64);
    for (start, end) in intervals {
        left += u64::from(left == 0 || start > until);
        sum = sum.saturating_add(end.since(start.max(until)).0);
        until = until.max(end);
    }
    (Span(sum), left)
}

/// `1 critical, 2 warnings, 3 that follow`: what another finding explains is no finding of its own.
fn counts(view: &View<'_>) -> Vec<String> {
    let run = view.run;
    if run.findings.is_empty() {
        return vec![if run.totals.roce_packets == 0 && run.totals.uet_packets == 0 {
            format!("nothing to judge: {}", no_packet(view))
        } else {
            "none".to_owned()
        }];
    }
    let words = [
        (Severity::Critical, "critical", "critical"),
        (Severity::Warning, "warning", "warnings"),
        (Severity::Info, "info", "info"),
        (Severity::Ok, "ok", "ok"),
    ];
    let roots = || run.findings.iter().filter(|finding| finding.is_root());
    let follow = (run.findings.len() - roots().count()) as u64;
    let follow = (follow > 0).then(|| plural(follow, "that follows", "that follow"));
    words
        .iter()
        .filter_map(|(severity, one, many)| {
            let of_it = roots().filter(|finding| finding.severity == *severity).count();
            let (ink, symbol) = mark(*severity, view.style.unicode);
            let text = plural(of_it as u64, one, many);
            (of_it > 0).then(|| format!("{} {}", ink.paint(symbol), ink.paint(&text)))
        })
        .chain(follow)
        .collect()
}

/// A finding: one sentence; with lines for its numbers, these too, and what to check next.
fn said(finding: &FindingRow, lines_of_numbers: usize, view: &View<'_>) -> Vec<String> {
    let style = view.style;
    let (ink, symbol) = mark(finding.severity, style.unicode);
    let (name, mut words) = if finding.is_root() {
        (format!("{symbol} {}", finding.severity.name()), Vec::new())
    } else {
        (branch(style.unicode).to_owned(), vec![ink.paint(symbol)])
    };
    words.push(Ink::Bold.paint(&format!("{}:", clean(finding.id))));
    words.extend(clean(&finding.summary).split_whitespace().map(str::to_owned));
    words.extend(times(finding, view.run).split_whitespace().map(str::to_owned));
    // With --flow, verdicts are about all traffic all the same.
    let concerns = match finding.concerns_shown {
        Some(true) => "(the flows shown, too)",
        Some(false) => "(not the flows shown)",
        None => "",
    };
    words.extend(concerns.split_whitespace().map(str::to_owned));
    if lines_of_numbers == 0 && finding.confidence != Confidence::High {
        words.push("(confidence".to_owned());
        words.push(format!("{})", finding.confidence.name()));
    }
    let mut lines = wrapped(&name, &words, ink, style);
    if lines_of_numbers == 0 {
        return lines;
    }
    let mut numbers = numbers(finding);
    if finding.confidence != Confidence::High {
        numbers.insert(0, format!("confidence {}", finding.confidence.name()));
    }
    let facts = field("", &numbers, style).into_iter().take(lines_of_numbers);
    let kept = lines.len();
    lines.extend(facts);
    if let Some(last) = lines.get_mut(kept..).and_then(<[String]>::last_mut)
        && last.ends_with(',')
    {
        last.pop();
    }
    let next = clean(&finding.next_step);
    let words: Vec<String> = std::iter::once(Ink::Bold.paint("next:"))
        .chain(next.split_whitespace().map(str::to_owned))
        .collect();
    if words.len() > 1 {
        lines.extend(wrapped("", &words, Ink::Faint, style));
    }
    lines
}

/// From when to when, from the first packet on.
fn times(finding: &FindingRow, run: &RunSummary) -> String {
    let Some(first) = finding.first_time else {
        return String::new();
    };
    let last = finding.last_time.unwrap_or(first);
    match (first.since(run.zero()), last.since(run.zero())) {
        (first, last) if first < last => format!("(+{first} to +{last})"),
        (first, _) => format!("(+{first})"),
    }
}

/// The facts that a finding rests on, in words; their names tell their units.
fn numbers(finding: &FindingRow) -> Vec<String> {
    let facts = finding.evidence.0.iter();
    facts
        .filter_map(|(name, fact)| {
            let value = match fact {
                // A count of zero is in the document alone.
                Fact::Count(0) => return None,
                Fact::Count(value) if name.ends_with("_ns") => Span(*value).to_string(),
                Fact::Count(value) if name.ends_with("_bps") => rate_of(float(*value)),
                Fact::Count(value) if name.ends_with("bytes") => bytes(*value),
                Fact::Count(value) if name.ends_with("port") => value.to_string(),
                Fact::Count(value) if ["ev", "pdc", "qpn"].iter().any(|end| name.ends_with(end)) => {
                    format!("{value:#x}")
                }
                Fact::Count(value) => count(*value),
                Fact::Number(value) if !value.is_finite() => return None,
                Fact::Number(value) if name.ends_with("_ns") => nanoseconds(*value),
                Fact::Number(value) if name.ends_with("_bps") => rate_of(*value),
                Fact::Number(value) if name.contains("share") => {
                    format!("{} %", three_digits(value * 100.0))
                }
                Fact::Number(value) => three_digits(*value),
                Fact::Text(value) if value.is_empty() => return None,
                Fact::Text(value) => clean(value),
            };
            // One word on the screen for what the columns call ambiguous.
            let name = if *name == "ambiguous" { "unclear" } else { *name };
            let name = name.trim_end_matches("_ns").trim_end_matches("_bps");
            Some(format!("{} {value}", clean(&name.replace('_', " "))))
        })
        .collect()
}

/// A time with a sign, in the unit that reads best.
pub(super) fn nanoseconds(value: f64) -> String {
    let length = Span(whole(value.abs()));
    let sign = if value < 0.0 && length.0 > 0 { "-" } else { "" };
    format!("{sign}{length}")
}

/// A number in three digits, or more where it is larger.
pub(super) fn three_digits(value: f64) -> String {
    let size = value.abs();
    if size > 0.0 && size < 0.001 {
        return if value < 0.0 { ">-0.001" } else { "<0.001" }.to_owned();
    }
    let decimals = match size {
        0.0..0.9995 => 3,
        ..9.995 => 2,
        ..99.95 => 1,
        _ => 0,
    };
    let text = format!("{value:.decimals$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// Classes of the missing packets.
fn holes(view: &View<'_>) -> Vec<String> {
    let totals = view.totals;
    let part = |value: u64, what: &str, ink: Option<Ink>| {
        (value > 0).then(|| {
            let text = format!("{} {what}", count(value));
            ink.map_or(text.clone(), |ink| ink.paint(&text))
        })
    };
    let mut items = Vec::new();
    if totals.missing > 0 {
        let classes = [
            part(
                totals.network_lost.saturating_sub(totals.network_lost_again),
                "lost by the network",
                Some(Ink::Bad),
            ),
            part(totals.reordered, "came late", None),
            part(totals.capture_lost, "not captured", Some(Ink::Warn)),
            part(totals.ambiguous, "unclear (inside go-back-N runs)", None),
            part(totals.unresolved, "unresolved", Some(Ink::Warn)),
        ];
        let mut classes = classes.into_iter().flatten();
        let title = Ink::Bold.paint(&plural(totals.missing, "PSN missing", "PSNs missing"));
        items.push(
            classes
                .next()
                .map_or(title.clone(), |first| format!("{title}: {first}")),
        );
        items.extend(classes);
    }
    items.extend(part(
        totals.network_lost_again,
        "lost again when retransmitted",
        Some(Ink::Bad),
    ));
    items.extend(part(
        totals.lost_downstream,
        "captured here and lost behind this tap",
        Some(Ink::Bad),
    ));
    if totals.response_missing > 0 {
        let classes = [
            part(
                totals.response_network_lost,
                "lost by the network",
                Some(Ink::Bad),
            ),
            part(totals.response_capture_lost, "not captured", Some(Ink::Warn)),
        ];
        let mut classes = classes.into_iter().flatten();
        let title = format!(
            "{} or more READ responses missing",
            count(totals.response_missing)
        );
        items.push(
            classes
                .next()
                .map_or(title.clone(), |first| format!("{title}: {first}")),
        );
        items.extend(classes);
    }
    items
}

/// Facts that cannot be seen from this capture point, and that no finding covers.
fn blind(view: &View<'_>) -> Vec<String> {
    let (run, sums) = (view.run, view.sums);
    if run.totals.roce_packets == 0 {
        return Vec::new();
    }
    let at = |vantage| run.taps.iter().any(|tap| tap.vantage == Some(vantage));
    let mut items = Vec::new();
    if sums.paired == 0 {
        items.push("losses, ACK times and CNPs by flow (no other direction is known)".to_owned());
    } else if sums.paired < sums.rows {
        items.push(format!(
            "losses and ACK times of {}",
            plural(
                sums.rows - sums.paired,
                "flow without another direction",
                "flows without another direction"
            )
        ));
    }
    if at(Vantage::Sender) && !at(Vantage::Receiver) {
        items.push("CE marks set behind this tap (sender side)".to_owned());
    } else if !at(Vantage::Sender) {
        items.push("how senders react to CNPs (no sender-side tap)".to_owned());
    }
    if run.totals.pause_frames == 0 {
        items.push("PFC (few capture points see it)".to_owned());
    }
    if let Some(unchecked) = (run.totals.icrc_checked < run.totals.roce_packets)
        .then(|| {
            percent(
                run.totals.roce_packets - run.totals.icrc_checked,
                run.totals.roce_packets,
            )
        })
        .flatten()
    {
        items.push(format!("ICRCs of {unchecked} of the packets (cut)"));
    }
    items
}

#[cfg(test)]
mod tests {
    use roce_model::Evidence;

    use super::*;

    #[test]
    fn facts_say_their_units() {
        let mut evidence = Evidence::default();
        evidence
            .count("silence_ns", 69_000)
            .count("wasted_bytes", 3_072)
            .count("rate_bps", 25_000_000_000)
            .count("psns", 1_640)
            .count("none", 0)
            .number("ce_share_peak", 0.1234)
            .number("jain", 0.5)
            .number("nothing", f64::INFINITY)
            .text("flow", "a\u{1b}b");
        let finding = FindingRow {
            evidence,
            ..FindingRow::default()
        };
        assert_eq!(
            numbers(&finding),
            [
                "silence 69.0 us",
                "wasted bytes 3.07 kB",
                "rate 25.0 Gbit/s",
                "psns 1,640",
                "ce share peak 12.3 %",
                "jain 0.5",
                "flow a?b"
            ]
        );
    }

    #[test]
    fn moments_count_once() {
        let union = |intervals: &[(u64, u64)]| {
            let (length, left) = super::union(intervals.iter().map(|(a, b)| (Time(*a), Time(*b))));
            (length.0, left)
        };
        assert_eq!(union(&[]), (0, 0));
        // 0 to 10 and 20 to 25; 2 to 5 lies inside, 8 to 12 adds two.
        assert_eq!(union(&[(20, 25), (0, 10), (2, 5), (8, 12)]), (17, 2));
    }

    #[test]
    fn numbers_of_every_size() {
        for (value, text) in [
            (0.0, "0"),
            (0.000_4, "<0.001"),
            (0.812_3, "0.812"),
            (1.0, "1"),
            (9.876, "9.88"),
            (98.76, "98.8"),
            (100.0, "100"),
            (12_345.6, "12346"),
            (-0.5, "-0.5"),
        ] {
            assert_eq!(three_digits(value), text);
        }
        assert_eq!(nanoseconds(-1_250_000.0), "-1.25 ms");
        assert_eq!(nanoseconds(850.4), "850 ns");
    }
}
