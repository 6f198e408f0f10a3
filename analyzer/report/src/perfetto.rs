//! The trace of a run for trace viewers: Perfetto's protobuf form, or the JSON form that Chrome's viewer and Kineto share.
//!
//! A process for each host has its counters and a track for each connection on which it sends: counters, retransmission runs, stalls, NAKs,
//! and the episodes that slowed it. A process for the network has findings, episodes, steps and pauses; each host, switch or GPU that was
//! read has one for its counters, and each rank of a merged trace one for its collectives. Arrows lead from an episode to what it slowed,
//! and from a NAK to its retransmission run.
//!
//! Samples are written while they come; all else is gathered in bounded memory (`crate::series`, `crate::moments`) and written at the end, since the
//! connections that get tracks are known then. The trace says what is summed or left out. Messages are no slices: the analysis counts
//! them in bins and does not list them.

mod chrome;
mod counters;
mod ending;
mod facts;
mod form;
mod hosts;
mod lanes;
mod network;
mod protobuf;
mod ranks;
mod samples;
mod track;
mod wire;

use std::collections::HashSet;
use std::io::{self, Write};

use foldhash::fast::RandomState;
use roce_model::{
    Columns, EventColumns, Evidence, FlowId, FlowKey, FlowRow, Period, RunSummary, SampleColumns, Sink,
    SinkError, Span, TimelineColumns,
};

use crate::Error;
use crate::moments::{Moments, event};
use crate::series::{SeriesStore, ShownSeries, Subject};
use ending::{Arrows, Events, LeftOut, flows_named};
use form::Form;
use hosts::Hosts;
use network::Network;
use ranks::Ranks;
use samples::SampleTracks;
use track::{Slice, Track};

pub use form::TraceForm;

/// Writes the trace: samples while they come, the rest when the run ends.
#[derive(Debug)]
pub struct TraceReport<W> {
    form: Form<W>,
    gathered: SeriesStore,
    moments: Moments,
    samples: SampleTracks,
}

impl<W: Write> TraceReport<W> {
    /// Will write to `out`, which should be buffered.
    pub fn new(out: W, form: TraceForm) -> Self {
        Self {
            form: Form::new(out, form),
            gathered: SeriesStore::new(Span(0)),
            moments: Moments::new(),
            samples: SampleTracks::default(),
        }
    }

    /// The destination.
    pub fn into_inner(self) -> W {
        self.form.into_inner()
    }

    fn write(&mut self, run: &RunSummary) -> io::Result<()> {
        let span = run.span.unwrap_or(Period::at(run.started));
        self.form.begin(span.first)?;
        let events = Events::from_moments(&self.moments);
        let episodes = run
            .episodes
            .iter()
            .flat_map(|episode| flows_named(&episode.flow_ids));
        let named: HashSet<FlowId, RandomState> = events.flows().chain(episodes).collect();
        let width = self.gathered.width();
        let shown = self.gathered.take(&named);
        let arrows = Arrows::new(run, &shown, &events, &mut self.form);

        let process = self.form.process("RoCE network")?;
        let about = self.form.track(&process, "about this trace")?;
        let mut network = Network {
            run,
            taps: run.tap_names(),
            span,
            form: &mut self.form,
            process,
            left_out: LeftOut::default(),
        };
        let begun = network.write(&events, &arrows)?;
        let mut left_out = network.left_out;
        let mut hosts = Hosts {
            run,
            shown: &shown,
            events: &events,
            arrows: &arrows,
            begun: &begun,
            width,
            form: &mut self.form,
            left_out,
        };
        hosts.write()?;
        let mut ranks = Ranks {
            run,
            arrows: &arrows,
            begun: &begun,
            left_out: hosts.left_out,
            form: &mut self.form,
        };
        ranks.write()?;
        left_out = ranks.left_out;
        self.about(run, span, &about, &shown, left_out)?;
        self.form.finish()
    }

    /// The slice that says from what the trace was made, and what is not in it.
    fn about(
        &mut self,
        run: &RunSummary,
        span: Period,
        track: &Track,
        shown: &[ShownSeries],
        left_out: LeftOut,
    ) -> io::Result<()> {
        let connections = shown
            .iter()
            .filter(|shown| matches!(shown.subject, Subject::Flow(_)))
            .count();
        let options = run.options.iter().map(|(name, value)| format!("{name}={value}"));
        let inputs = run.inputs.iter().map(|input| input.input.as_str());
        let mut facts = Evidence::default();
        facts
            .text("capture", run.key.capture.clone())
            .text("inputs", inputs.collect::<Vec<_>>().join(" "))
            .text("options", options.collect::<Vec<_>>().join(" "))
            .count("frames", run.totals.frames)
            .count("bin_ns", run.bin.0)
            .count("slot_ns", self.gathered.width())
            .count("connections", connections as u64)
            .count("flows_summed", self.gathered.folded())
            .count("series_seen_again", self.gathered.seen_again)
            .count("events_thinned", self.moments.thinned())
            .count("events_without_track", left_out.events)
            .count("slices_left_out", left_out.slices)
            .count("samples_left_out", self.samples.left_out);
        self.form.slice(
            track,
            &Slice {
                start: span.first,
                end: Some(span.last),
                name: &format!("roce-analyze {}", run.version),
                category: "about",
                facts: &facts,
                out: &[],
                into: &[],
            },
        )
    }
}

impl<W: Write> Sink for TraceReport<W> {
    fn begin(&mut self, bin: Span) -> Result<(), SinkError> {
        self.gathered.begin(bin)
    }

    fn flows_opened(&mut self, keys: &[FlowKey]) -> Result<(), SinkError> {
        self.gathered.flows_opened(keys)
    }

    fn timeline(&mut self, rows: &TimelineColumns) -> Result<(), SinkError> {
        self.gathered.timeline(rows)
    }

    fn events(&mut self, rows: &EventColumns) -> Result<(), SinkError> {
        for row in 0..rows.len() {
            self.moments.add(&event(rows, row));
        }
        Ok(())
    }

    fn samples(&mut self, rows: &SampleColumns) -> Result<(), SinkError> {
        Ok(self.samples.add(rows, &mut self.form).map_err(Error::Trace)?)
    }

    fn flows_closed(&mut self, rows: &[FlowRow]) -> Result<(), SinkError> {
        self.gathered.flows_closed(rows)
    }

    fn finish(&mut self, run: &RunSummary) -> Result<(), SinkError> {
        Ok(self.write(run).map_err(Error::Trace)?)
    }
}

#[cfg(test)]
mod tests;
