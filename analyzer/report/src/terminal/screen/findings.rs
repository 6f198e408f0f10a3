//! Current findings: a few lines above the table, and a page of all of them.

use roce_model::{EpisodeKind, EpisodeRow, FindingRow, Severity};

use super::super::field::wrapped;
use super::super::grid::end_cut;
use super::super::ink::{Ink, clean};
use super::super::verdicts::{branch, mark};
use super::head::moment;
use super::shown::ShownScreen;
use roce_spelling::plural;

/// Lines above the table: the worst findings, and the latest episode. At most `room`.
pub(super) fn short(shown: &ShownScreen<'_>, room: usize) -> Vec<String> {
    let findings = &shown.state.conclusions.findings;
    let style = &shown.style;
    let mut lines = Vec::new();
    let sentence = clean(&shown.state.conclusions.sentence);
    if !sentence.is_empty() {
        lines.push(Ink::Bold.paint(&end_cut(&sentence, style.width, style.unicode)));
    }
    let roots = || findings.iter().filter(|finding| finding.is_root());
    let listed = roots().count().min(room.saturating_sub(1 + lines.len()));
    for finding in roots().take(listed) {
        let (ink, symbol) = mark(finding.severity, style.unicode);
        let text = format!("{}: {}", clean(finding.id), clean(&finding.summary));
        let head = format!("{symbol} {} ", finding.severity.name());
        let text = end_cut(
            &text,
            style.width.saturating_sub(head.chars().count()),
            style.unicode,
        );
        lines.push(format!("{}{text}", ink.paint(&head)));
    }
    let mut last = Vec::new();
    if roots().count() > listed {
        last.push(format!("{} more", roots().count() - listed));
    }
    if shown.state.conclusions.too_many {
        last.push("too many flows for findings before the end".to_owned());
    } else if findings.is_empty() {
        last.push(
            if !shown.state.conclusions.anything {
                "no findings yet"
            } else if shown.state.conclusions.ended {
                "no finding"
            } else {
                "no finding yet"
            }
            .to_owned(),
        );
    }
    if let Some(latest) = shown.state.episodes().max_by_key(|episode| episode.end_time) {
        last.push(format!("last {}", episode(shown, latest)));
    }
    let line = last.join("; ");
    lines.push(end_cut(&line, style.width, style.unicode));
    lines
}

/// `incast to 10.0.0.7, 18:00:12 for 1.20 s: 5 senders at once into 10.0.0.7`.
fn episode(shown: &ShownScreen<'_>, row: &EpisodeRow) -> String {
    let start = moment(shown, row.start_time, shown.width());
    let length = row.end_time - row.start_time;
    format!(
        "{} at {start} for {length}: {}",
        ink(row.kind).paint(row.kind.name()),
        clean(&row.cause)
    )
}

/// True if an episode is about losses, or about congestion.
fn ink(kind: EpisodeKind) -> Ink {
    match kind {
        EpisodeKind::Loss | EpisodeKind::Rnr | EpisodeKind::Stall => Ink::Bad,
        EpisodeKind::Ecn | EpisodeKind::Incast | EpisodeKind::Pause => Ink::Warn,
    }
}

/// The page of all findings and of the latest episodes.
pub(super) fn all(shown: &ShownScreen<'_>) -> Vec<String> {
    let state = shown.state;
    let style = &shown.style;
    let mut lines = vec![Ink::Bold.paint(if state.conclusions.ended {
        "Findings"
    } else {
        "Findings up to now"
    })];
    if !state.conclusions.sentence.is_empty() {
        lines.extend(wrapped(
            "",
            &words(&clean(&state.conclusions.sentence)),
            Ink::Bold,
            style,
        ));
    }
    if !state.conclusions.ended {
        let text = "Shown during the run: nak.fatal, loss.trimmed, loss.network, retransmit.timeout, rnr, incast, stall. Later packets cannot \
                    revoke them; their numbers may grow. The other findings need the whole run, and come at its end.";
        lines.extend(wrapped("", &words(text), Ink::Faint, style));
    }
    if state.conclusions.too_many {
        lines.push("Too many flows are live for findings during the run: they come at its end.".to_owned());
    } else if !state.conclusions.anything {
        lines.push("none yet".to_owned());
    } else if state.conclusions.findings.is_empty() {
        lines.push("none".to_owned());
    }
    for finding in &state.conclusions.findings {
        lines.extend(finding_lines(finding, shown));
    }
    lines.push(String::new());
    let heading = plural(state.episodes().count() as u64, "episode", "episodes");
    lines.push(Ink::Bold.paint(&format!("The latest {heading}, the last first")));
    for row in state.episodes().rev() {
        let text = episode(shown, row);
        lines.push(end_cut(&format!("  {text}"), style.width, style.unicode));
    }
    lines
}

fn finding_lines(finding: &FindingRow, shown: &ShownScreen<'_>) -> Vec<String> {
    let (ink, symbol) = mark(finding.severity, shown.style.unicode);
    let text = format!("{}: {}", clean(finding.id), clean(&finding.summary));
    if !finding.is_root() {
        let branch = branch(shown.style.unicode);
        return wrapped(branch, &words(&format!("{symbol} {text}")), ink, &shown.style);
    }
    let name = format!("{symbol} {}", finding.severity.name());
    let mut lines = wrapped(&name, &words(&text), ink, &shown.style);
    if finding.severity >= Severity::Warning {
        let next = format!("next: {}", clean(&finding.next_step));
        lines.extend(wrapped("", &words(&next), Ink::Faint, &shown.style));
    }
    lines
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}
