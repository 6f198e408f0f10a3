//! Shapes in which ranks or hosts send to each other: those of a log in one line, those of traffic one by one.

use roce_model::{CollectiveEvidence, CollectiveRow};

use super::field::field;
use super::ink::{Ink, clean, shorten};
use super::view::View;
use roce_spelling::{bytes, plural};

/// Shapes that are shown, those with the most data first.
const SHOWN: usize = 5;
/// Characters of the order of members.
const ORDER: usize = 60;

/// Section about collectives.
pub(super) fn shapes(view: &View<'_>) -> Vec<String> {
    let (run, style) = (view.run, view.style);
    let of =
        |evidence: CollectiveEvidence| run.collectives.iter().filter(move |row| row.evidence == evidence);
    let logged: Vec<&CollectiveRow> = of(CollectiveEvidence::Log).collect();
    let mut lines = Vec::new();
    if !logged.is_empty() {
        let kind = |name: &str| logged.iter().filter(|row| row.shape.name() == name).count() as u64;
        let mut communicators: Vec<&str> = logged
            .iter()
            .filter_map(|row| row.communicator.as_deref())
            .collect();
        communicators.sort_unstable();
        communicators.dedup();
        let facts = [
            plural(kind("ring"), "ring", "rings"),
            plural(kind("tree"), "tree", "trees"),
            format!(
                "of {}",
                plural(communicators.len() as u64, "communicator", "communicators")
            ),
        ];
        lines.extend(field("job's log", &facts, style));
    }
    let seen: Vec<&CollectiveRow> = of(CollectiveEvidence::Traffic).collect();
    for row in seen.iter().take(SHOWN) {
        let order = row.ranks.as_deref().or(row.hosts.as_deref()).unwrap_or_default();
        let facts: Vec<String> = [
            Some(Ink::Bold.paint(&format!(
                "{} of {}",
                row.shape.name().replace('_', " "),
                row.members
            ))),
            row.rail.map(|rail| format!("rail {rail}")),
            row.both_directions
                .filter(|both| *both && row.shape.name() == "ring")
                .map(|_| "both ways".to_owned()),
            row.payload_bytes.map(bytes),
            Some(format!("{} confidence", row.confidence.name())),
            Some(shorten(&clean(order), ORDER, style.unicode)),
        ]
        .into_iter()
        .flatten()
        .collect();
        lines.extend(field("traffic", &facts, style));
    }
    let left = seen.len().saturating_sub(SHOWN);
    if left > 0 {
        lines.push(format!(
            " and {} in the table collectives",
            plural(left as u64, "more shape", "more shapes")
        ));
    }
    if !lines.is_empty() {
        lines.insert(0, String::new());
    }
    lines
}
