//! The live screen: what flows do now, with small timelines, what was found until now, and what was lost; and one flow with its events.
//!
//! It has no terminal. [`Screen`] is a sink that keeps the latest intervals of a bounded number of
//! flows, takes keys, and draws into a buffer of cells; the owner of the terminal reads keys and shows
//! the cells. Handles are shared between threads, and locked only while rows are added or cells are
//! filled, never while anything is written. Intervals are those of the rows' own times: a recording
//! shows the same at any speed.

mod counters;
mod detail;
mod findings;
mod flows;
mod gpus;
mod head;
mod help;
mod history;
mod paint;
mod shown;
mod state;
#[cfg(test)]
mod tests;
mod view;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ratatui_core::buffer::Buffer;
use roce_model::{
    EventColumns, FlowKey, FlowRow, Progress, RunSummary, SampleColumns, Sink, SinkError, Span, Time,
    TimelineColumns,
};

pub use shown::{About, RunStanding};
pub use view::{Command, Key};

use super::style::Style;
use shown::ShownScreen;
use state::State;
use view::{Page, View};

/// The least columns and rows that the screen is laid out for.
const MIN_SIZE: (u16, u16) = (60, 15);

/// The screen; its clones are handles of the same.
#[derive(Clone, Debug)]
pub struct Screen(Arc<Mutex<Inner>>);

#[derive(Debug)]
struct Inner {
    about: About,
    style: Style,
    state: State,
    view: View,
}

impl Screen {
    /// A screen on which nothing has happened. Of `style`, the width is that of each drawing.
    pub fn new(about: About, style: Style) -> Self {
        let view = View {
            paced: about.paced,
            ..View::default()
        };
        Self(Arc::new(Mutex::new(Inner {
            state: State::new(about.interval, about.lead),
            about,
            style,
            view,
        })))
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The run begins paused: it waits for keys.
    pub fn pause(&self) {
        self.inner().view.paused = true;
    }

    /// Handles a key; returns its command, unless it affects the screen alone.
    pub fn key(&self, key: Key) -> Option<Command> {
        let inner = &mut *self.inner();
        inner.view.key(key, &inner.state)
    }

    /// Nothing was captured for a while: everything up to this time has come.
    pub fn quiet_until(&self, time: Time) {
        let state = &mut self.inner().state;
        state.complete = state.complete.max(time);
    }

    /// Fills the buffer.
    pub fn draw(&self, buffer: &mut Buffer, standing: &RunStanding) {
        let area = buffer.area;
        let inner = &mut *self.inner();
        inner
            .state
            .shown_until(standing.position.unwrap_or(Time(u64::MAX)));
        let style = Style {
            width: usize::from(area.width),
            ..inner.style
        };
        if area.width < MIN_SIZE.0 || area.height < MIN_SIZE.1 {
            let lines = [
                format!("{} x {} is too small:", area.width, area.height),
                format!("{} x {} at least", MIN_SIZE.0, MIN_SIZE.1),
                "q quits".to_owned(),
            ];
            return paint::lines(buffer, &lines, 0, style.color);
        }
        let shown = ShownScreen {
            about: &inner.about,
            style,
            state: &inner.state,
            interval: inner.view.shown(&inner.state),
            standing,
        };
        let rows = usize::from(area.height);
        let mut lines = head::head(&shown, &inner.view);
        let body = rows.saturating_sub(lines.len() + 1);
        let mut selected = None;
        match inner.view.page {
            Page::Flows => {
                lines.extend(findings::short(&shown, if rows < 24 { 2 } else { 4 }));
                let body = rows.saturating_sub(lines.len() + 1);
                let (table, at) = flows::table(&shown, &mut inner.view, body);
                selected = at.map(|at| lines.len() + at);
                lines.extend(table);
            }
            Page::Flow(flow) => lines.extend(page(detail::detail(&shown, flow), &mut inner.view, body)),
            Page::Findings => lines.extend(page(findings::all(&shown), &mut inner.view, body)),
            Page::Gpus => {
                let gpus = shown
                    .state
                    .gpus
                    .page(shown.interval.unwrap_or_default(), &shown.style);
                lines.extend(page(gpus, &mut inner.view, body));
            }
            Page::Help => lines.extend(page(help::help(&shown), &mut inner.view, body)),
        }
        lines.resize(rows.saturating_sub(1), String::new());
        lines.push(head::foot(&shown, &inner.view));
        paint::lines(buffer, &lines, 0, style.color);
        if let Some(at) = selected {
            paint::select(buffer, at);
        }
    }
}

/// The lines of a page that fit, from the user's scroll position on.
fn page(lines: Vec<String>, view: &mut View, room: usize) -> Vec<String> {
    view.top = view.top.min(lines.len().saturating_sub(room));
    view.rows = room;
    lines.into_iter().skip(view.top).take(room).collect()
}

impl Sink for Screen {
    fn begin(&mut self, bin: Span) -> Result<(), SinkError> {
        self.inner().state.begin(bin);
        Ok(())
    }

    fn flows_opened(&mut self, keys: &[FlowKey]) -> Result<(), SinkError> {
        self.inner().state.opened(keys);
        Ok(())
    }

    fn progress(&mut self, progress: &Progress<'_>) -> Result<(), SinkError> {
        self.inner().state.progress(progress);
        Ok(())
    }

    fn timeline(&mut self, rows: &TimelineColumns) -> Result<(), SinkError> {
        self.inner().state.timeline(rows);
        Ok(())
    }

    fn events(&mut self, rows: &EventColumns) -> Result<(), SinkError> {
        self.inner().state.events(rows);
        Ok(())
    }

    fn samples(&mut self, rows: &SampleColumns) -> Result<(), SinkError> {
        let state = &mut self.inner().state;
        let width = state.width;
        state.counters.add(rows, width);
        state.gpus.add(rows, width);
        Ok(())
    }

    fn flows_closed(&mut self, rows: &[FlowRow]) -> Result<(), SinkError> {
        self.inner().state.closed(rows);
        Ok(())
    }

    fn finish(&mut self, run: &RunSummary) -> Result<(), SinkError> {
        self.inner().state.finish(run);
        Ok(())
    }
}
