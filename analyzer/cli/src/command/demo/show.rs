//! Layout of a lesson: its parts on pages in the style of the report.

use roce_report::{Page, Style, Tone};

use super::catalogue::CatalogueEntry;
use super::frames::DemoFrame;
use super::lesson::{Lesson, LessonFrames};
use super::verdict::{Agreement, VerdictLine};

/// The list of demos.
pub(crate) fn list(demos: &[CatalogueEntry], style: Style) -> String {
    let mut page = Page::new(style);
    page.text(
        "Each demo simulates a network in which one thing is wrong (or nothing is), captures its packets, analyses the \
         capture as any other, and explains what the packets show. The truth is known, so the verdict can be checked.",
    );
    page.space();
    let longest = demos.iter().map(|demo| demo.name.len()).max().unwrap_or(0);
    for demo in demos {
        let name = format!("{:longest$} ", demo.name);
        page.item(0, &name, demo.title);
    }
    page.space();
    page.text("`roce-analyze demo NAME` runs one; `-o FILE` keeps its capture.");
    page.finish()
}

/// The lesson before the analysis: the situation, the steps through the packets, the advice.
pub(crate) fn before(
    demo: &CatalogueEntry,
    lesson: &Lesson,
    found: &LessonFrames,
    files: &[String],
    style: Style,
) -> anyhow::Result<String> {
    let mut page = Page::new(style);
    page.title(&format!("{}: {}", demo.name, demo.title));
    page.space();
    page.text(&found.fill(&lesson.situation)?);
    if !lesson.picture.is_empty() {
        page.space();
        page.verbatim(&lesson.picture);
    }
    page.title("What the packets show");
    for (place, step) in lesson.step.iter().enumerate() {
        page.heading(&format!("{}. {}", place + 1, step.heading));
        page.text(&found.fill(&step.text)?);
        for look in step.look.iter().filter(|look| !look.says.is_empty()) {
            use super::find::Labels as _;
            if let Some(seen) = found.seen(&look.label) {
                frame(&mut page, seen, &found.fill(&look.says)?, files);
            }
        }
        if !step.filter.is_empty() {
            page.entry(2, "Wireshark:", &found.fill(&step.filter)?, 6);
        }
    }
    page.title("What to do");
    page.space();
    for advice in &lesson.advice {
        page.item(0, "-", &found.fill(advice)?);
    }
    Ok(page.finish())
}

/// A frame: where it is, what it says, what it shows.
fn frame(page: &mut Page, seen: &DemoFrame, says: &str, files: &[String]) {
    let file = match files {
        [_, _, ..] => files.get(seen.file).map(|file| format!(" of {file}")),
        _ => None,
    };
    let place = format!(
        "frame {}{}, +{}:",
        seen.number,
        file.unwrap_or_default(),
        seen.offset
    );
    page.entry(2, &place, &seen.decoded(), 6);
    page.item(6, "->", says);
}

/// The command line of the analysis, above its output.
pub(crate) fn analysis(command: &[String], style: Style) -> String {
    let mut page = Page::new(style);
    page.title("What roce-analyze says");
    page.space();
    page.command(command);
    page.space();
    page.finish()
}

/// The lesson after the analysis: truth against verdict, sources, and next steps.
pub(crate) fn after(lines: &[VerdictLine], lesson: &Lesson, kept: &[String], style: Style) -> String {
    let mut page = Page::new(style);
    page.title("Truth against verdict");
    page.space();
    let (good, bad) = if style.unicode { ("✓", "✗") } else { ("+", "X") };
    let rows: Vec<Vec<(String, Tone)>> = lines
        .iter()
        .map(|line| {
            let (mark, tone) = match line.agreement {
                Agreement::Same => (format!("{good} agrees"), Tone::Good),
                Agreement::AsSeen => (format!("{good} as far as seen"), Tone::Good),
                Agreement::Differs => (format!("{bad} differs"), Tone::Bad),
            };
            vec![
                (line.about.clone(), Tone::Plain),
                (line.truth.clone(), Tone::Plain),
                (line.verdict.clone(), Tone::Plain),
                (mark, tone),
            ]
        })
        .collect();
    page.table(&["", "simulated", "analysed", ""], &rows);
    page.space();
    let wrong = lines
        .iter()
        .filter(|line| line.agreement == Agreement::Differs)
        .count();
    page.text(&if wrong == 0 {
        "The analysis agrees with the simulation.".to_owned()
    } else {
        format!(
            "In {wrong} of {} lines the analysis differs from the simulation.",
            lines.len()
        )
    });
    page.title("Sources");
    page.space();
    for source in &lesson.sources {
        page.item(0, "-", source);
    }
    page.title("Go on");
    page.space();
    for line in kept {
        page.text(line);
    }
    page.finish()
}
