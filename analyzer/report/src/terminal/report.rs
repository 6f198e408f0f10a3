//! The sink of the terminal report, and the order of its sections. It keeps sums, the largest flows and strips of fixed
//! size while rows come, and writes when the run ends.

use std::io::Write;

use roce_model::{FlowId, FlowRow, RunSummary, Sink, SinkError, Span, TapId, TimelineColumns, Values};

use super::strip::{Activity, FlowStrips, WholeStrip};
use super::style::{MIN_WIDTH, Style};
use super::top::{self, TopFlows};
use super::view::View;
use super::{collectives, ends, episodes, inband, ink, mrc, places, shapes, steps, summary, verdicts, waits};
use crate::Error;

/// Writes one screen about the run when it ends.
#[derive(Debug)]
pub struct TerminalReport<W> {
    pub(super) out: W,
    pub(super) style: Style,
    bin: u64,
    whole: WholeStrip,
    strips: FlowStrips,
    top: TopFlows,
}

impl<W: Write> TerminalReport<W> {
    /// Will write to `out`.
    pub fn new(out: W, style: Style) -> Self {
        let style = Style {
            width: style.width.max(MIN_WIDTH),
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
        let view = View {
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
        lines.extend(ends::ends(&view));
        lines.extend(waits::waits(&view));
        lines.extend(steps::steps(&view));
        lines.extend(shapes::shapes(&view));
        lines.extend(collectives::collectives(&view));
        lines.extend(mrc::mrc(&view));
        lines.extend(inband::inband(&view));
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
    fn begin(&mut self, bin: Span) -> Result<(), SinkError> {
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
        for ((flow, sent), (retransmitted, missing)) in flows.zip(sent).zip(trouble) {
            let ((time, (flow, tap)), (volume, (data, ce))) = (flow, sent);
            let missing = u32::try_from(*missing).unwrap_or(u32::MAX);
            let activity = Activity {
                volume: *volume,
                data: *data,
                ce: *ce,
                trouble: retransmitted.saturating_add(missing),
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
