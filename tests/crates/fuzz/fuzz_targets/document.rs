//! Any bytes as a `run.json`. One that is taken is written and read again without a change, and shown without characters that steer
//! a terminal.

#![no_main]

use libfuzzer_sys::fuzz_target;
use roce_model::text::steers;
use roce_model::{RunSummary, Sink};
use roce_report::terminal::Style;
use roce_report::{HtmlReport, TerminalReport, json};

fuzz_target!(|data: &[u8]| {
    let Ok(run) = json::read(data) else {
        return;
    };
    let written = document(&run);
    let again = json::read(written.as_slice()).expect("what was written is read");
    assert_eq!(document(&again), written);

    for (width, unicode, full) in [(60, false, false), (120, true, true)] {
        let style = Style {
            width,
            unicode,
            full,
            ..Style::default()
        };
        let mut report = TerminalReport::new(Vec::new(), style);
        report.begin(run.bin).expect("a vector takes everything");
        report.finish(&run).expect("a vector takes everything");
        let text = String::from_utf8(report.into_inner()).expect("text is UTF-8");
        let bad = text.chars().find(|glyph| steers(*glyph) && *glyph != '\n');
        assert_eq!(bad, None, "{text}");
    }
    let mut page = HtmlReport::new(Vec::new());
    page.begin(run.bin).expect("a vector takes everything");
    page.finish(&run).expect("a vector takes everything");
    drop(page);
});

fn document(run: &RunSummary) -> Vec<u8> {
    let mut written = Vec::new();
    json::document(run, &[], &mut written).expect("a vector takes everything");
    written
}
