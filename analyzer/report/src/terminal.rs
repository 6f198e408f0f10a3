//! The terminal report: first the verdicts and the episodes, then the capture, congestion, losses and
//! flows, and at the end training steps, taps and hops.
//!
//! This file is the sink and the order of the screen: it keeps sums, the largest flows and strips of fixed size while
//! rows come. Tables are laid out by `grid`; nothing is coloured before all is laid out (`ink`).

mod about;
pub mod comparison;
mod counts;
pub(crate) mod devices;
mod draw;
mod episodes;
mod field;
mod grid;
mod ink;
mod live;
mod number;
mod page;
mod places;
pub(crate) mod samples;
mod screen;
mod steps;
mod strip;
mod summary;
mod table;
mod top;
mod verdicts;

use std::io::Write;

use roce_model::{FlowId, FlowRow, Nanos, RunSummary, Sink, SinkError, TapId, TimelineColumns, Values};

pub use live::{Counted, LiveReport};
pub use page::{Page, Tone};
pub use screen::{About, Command, Key, Screen, Standing};

use crate::Error;
use strip::{Activity, FlowStrips, WholeStrip};
use top::TopFlows;

/// Style of the report.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Style {
    /// Columns of the terminal; no line is longer, unless it is narrower than 60.
    pub width: usize,
    /// Colours, as ANSI escape sequences.
    pub color: bool,
    /// Blocks and other characters beyond ASCII.
    pub unicode: bool,
    /// How many flows to show.
    pub top: usize,
    /// Every finding with its numbers, and every episode.
    pub full: bool,
    /// Lines of the terminal, when there is one: text that is longer ends with the verdicts.
    pub rows: Option<usize>,
}

impl Default for Style {
    fn default() -> Self {
        Self {
            width: 80,
            color: false,
            unicode: true,
            top: 10,
            full: false,
            rows: None,
        }
    }
}

/// The narrowest screen that the report is laid out for.
const NARROWEST: usize = 60;

/// Writes one screen about the run when it ends.
#[derive(Debug)]
pub struct TerminalReport<W> {
    out: W,
    style: Style,
    bin: u64,
    whole: WholeStrip,
    strips: FlowStrips,
    top: TopFlows,
}

impl<W: Write> TerminalReport<W> {
    /// Will write to `out`.
    pub fn new(out: W, style: Style) -> Self {
        let style = Style {
            width: style.width.max(NARROWEST),
            ..style
        };
        Self {
            out,
            style,
            bin: 1,
            whole: WholeStrip::default(),
            strips: FlowStrips::default(),
            top: TopFlows::new(style.top),
        }
    }

    /// Where it wrote to.
    pub fn into_inner(self) -> W {
        self.out
    }

    /// The screen for a run of which the rows have come.
    fn render(&mut self, run: &RunSummary) -> String {
        let view = summary::View {
            run,
            style: &self.style,
            sums: &self.top.sums.clone(),
            totals: &top::once(&run.totals, &self.top.sums),
            whole: &self.whole,
        };
        let mut lines = verdicts::verdicts(&view);
        lines.extend(episodes::episodes(&view));
        lines.push(String::new());
        lines.extend(summary::lines(&view));
        lines.extend(summary::flows(&view, &self.top, &self.strips));
        lines.extend(steps::steps(&view));
        lines.extend(places::taps(&view));
        lines.extend(places::hops(&view));
        lines.extend(summary::troubles(&view));
        // A prompt follows: it takes a line, too.
        if self.style.rows.is_some_and(|rows| lines.len() + 1 > rows) {
            lines.extend(verdicts::again(&view));
        }
        ink::paint(&lines.join("\n"), self.style.color)
    }
}

impl<W: Write> Sink for TerminalReport<W> {
    fn begin(&mut self, bin: Nanos) -> Result<(), SinkError> {
        self.bin = bin.0.max(1);
        Ok(())
    }

    fn timeline(&mut self, rows: &TimelineColumns) -> Result<(), SinkError> {
        // Columns in which nothing is absent.
        fn plain<T: Default>(values: &Values<T>) -> impl Iterator<Item = &T> {
            values.without_nulls().unwrap_or_default().iter()
        }
        let flows = plain(&rows.time).zip(plain(&rows.flow_id).zip(plain(&rows.tap)));
        let sent = plain(&rows.payload_bytes).zip(plain(&rows.data_packets).zip(plain(&rows.ce)));
        let trouble = plain(&rows.retransmitted_packets).zip(plain(&rows.missing));
        for ((flow, sent), (resent, missing)) in flows.zip(sent).zip(trouble) {
            let ((time, (flow, tap)), (volume, (data, ce))) = (flow, sent);
            let missing = u32::try_from(*missing).unwrap_or(u32::MAX);
            let activity = Activity {
                volume: *volume,
                data: *data,
                ce: *ce,
                trouble: resent.saturating_add(missing),
            };
            self.whole.add(*time, self.bin, activity);
            self.strips
                .add(FlowId(*flow), TapId(*tap), *time, self.bin, activity);
        }
        Ok(())
    }

    fn flows_closed(&mut self, rows: &[FlowRow]) -> Result<(), SinkError> {
        for row in rows {
            self.top.add(row);
        }
        Ok(())
    }

    fn finish(&mut self, run: &RunSummary) -> Result<(), SinkError> {
        let screen = self.render(run);
        Ok(self
            .out
            .write_all(screen.as_bytes())
            .and_then(|()| self.out.flush())
            .map_err(Error::Text)?)
    }
}

#[cfg(test)]
mod tests;
