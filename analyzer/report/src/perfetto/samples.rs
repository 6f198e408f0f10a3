//! Samples as counters: written while they come, so that none of them is kept.
//!
//! A gauge has its value from its reading on. A cumulative counter is drawn as its rate, from the reading before to this one.

use std::collections::HashMap;
use std::io::{self, Write};

use foldhash::fast::RandomState;
use roce_model::{Columns, SampleColumns, Span, Time};

use super::form::Form;
use super::track::Track;

/// Series with a track.
const MAX_SERIES: usize = 1 << 12;
/// Hosts, switches and others that have a process of their own.
const MAX_NODES: usize = 1 << 10;

/// The tracks of series and their nodes.
#[derive(Debug, Default)]
pub(super) struct SampleTracks {
    nodes: HashMap<String, Track, RandomState>,
    series: HashMap<String, Track, RandomState>,
    /// Samples of series without a track.
    pub(super) left_out: u64,
}

/// A text of a column; empty where it is absent.
macro_rules! text {
    ($column:expr, $row:expr) => {
        $column.at($row).map_or("", |text| text.as_ref())
    };
}

impl SampleTracks {
    /// Writes samples to the trace.
    pub(super) fn add(&mut self, rows: &SampleColumns, form: &mut Form<impl Write>) -> io::Result<()> {
        for row in 0..rows.len() {
            let Some((time, value, unit)) = drawn(rows, row) else {
                continue;
            };
            form.begin(time)?;
            match self.track(rows, row, &unit, form)? {
                Some(track) => form.value(&track, time, value)?,
                None => self.left_out += 1,
            }
        }
        Ok(())
    }

    fn track(
        &mut self,
        rows: &SampleColumns,
        row: usize,
        unit: &str,
        form: &mut Form<impl Write>,
    ) -> io::Result<Option<Track>> {
        let node = format!("{} {}", text!(rows.source, row), text!(rows.node, row));
        let mut name = format!("{} {}", text!(rows.object, row), text!(rows.counter, row));
        if let Some(priority) = rows.priority.at(row) {
            name = format!("{name}, priority {priority}");
        }
        for more in [rows.queue.at(row), rows.detail.at(row)].into_iter().flatten() {
            name = format!("{name}, {more}");
        }
        // No name has a zero byte that a driver could not write; a clash would only join two tracks.
        let key = format!("{node}\0{name}");
        if let Some(track) = self.series.get(&key) {
            return Ok(Some(track.clone()));
        }
        if self.series.len() >= MAX_SERIES {
            return Ok(None);
        }
        let process = match self.nodes.get(&node) {
            Some(process) => process.clone(),
            None if self.nodes.len() >= MAX_NODES => return Ok(None),
            None => {
                let process = form.process(&node)?;
                self.nodes.insert(node, process.clone());
                process
            }
        };
        let track = form.counter(&process, &name, unit)?;
        self.series.insert(key, track.clone());
        Ok(Some(track))
    }
}

/// The time from which a sample's value is drawn, the value, and its unit; `None` where nothing is known to draw.
fn drawn(rows: &SampleColumns, row: usize) -> Option<(Time, f64, String)> {
    let time = *rows.time.at(row)?;
    let unit = text!(rows.unit, row);
    if text!(rows.kind, row) == "gauge" {
        return Some((Time(time), *rows.value.at(row)?, unit.to_owned()));
    }
    let interval = *rows.interval_ns.at(row)?;
    let rate = rows.change.at(row)? / Span(interval).seconds();
    rate.is_finite()
        .then(|| (Time(time.saturating_sub(interval)), rate, format!("{unit}/s")))
}
