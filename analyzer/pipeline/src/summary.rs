//! The summary of a run: what its inputs, its decoder and its analysis counted.

use roce_capture::{Interface, Summary};
use roce_model::cast::float;
use roce_model::{ClockStep, RunSummary, TapRow};

use crate::align::{Alignment, Clock};
use crate::clock::RunStart;
use crate::run::RunOutcome;
use crate::taps::Taps;

/// Summary of reading one input.
pub(crate) struct ReadInput<'a> {
    /// Its frames, times and losses.
    pub(crate) summary: &'a Summary,
    /// Steps of its clock.
    pub(crate) clock_steps: &'a [roce_capture::ClockStep],
    /// Another input has all its records, too, and what both lost is counted there.
    pub(crate) is_repeated: bool,
    /// Its interfaces.
    pub(crate) interfaces: &'a [Interface],
}

impl<F> RunOutcome<F> {
    /// The summary of a run, but for its inputs, options and verdicts. `name` is that of an input.
    pub(crate) fn summary(
        &self,
        begun: RunStart,
        inputs: &[ReadInput<'_>],
        name: impl Fn(usize) -> String,
        alignment: &Alignment,
    ) -> RunSummary {
        let (decoder, conclusion) = (&self.decoder, &self.conclusion);
        let mut totals = self.totals();
        totals.frames_lost = inputs
            .iter()
            .filter(|input| !input.is_repeated)
            .map(|input| input.summary.lost_records)
            .fold(0, u64::saturating_add);
        let mut taps = decoder.taps.rows(name);
        for tap in &mut taps {
            let of = |counts: &[u64]| counts.get(tap.tap.0 as usize).copied().unwrap_or_default();
            (tap.copies, tap.matched_packets) = (of(&conclusion.copies), of(&conclusion.matched));
            let input = decoder.taps.first_input(tap.tap);
            if let Some(clock) = input.and_then(|input| alignment.clocks.get(input).copied().flatten()) {
                note_clock(tap, &clock, &decoder.taps);
            }
        }
        let mut clock_steps = Vec::new();
        for (input, read) in inputs.iter().enumerate() {
            let tap = decoder.taps.input_taps(input).next();
            clock_steps.extend(read.clock_steps.iter().filter_map(|step| {
                Some(ClockStep {
                    tap: tap?,
                    time: step.time,
                    by_ns: step.by_ns,
                })
            }));
            let mut disorder = read.summary.disorder;
            // Disorder by steps of the clock has been put right.
            let back = read.clock_steps.iter().filter(|step| step.by_ns < 0).count();
            disorder.records = disorder.records.saturating_sub(back as u64);
            if disorder.records == 0 {
                disorder.max_back_ns = 0;
            }
            // A file's own counts belong to its interfaces' taps: all of them to the first one.
            if let Some(tap) = decoder
                .taps
                .input_taps(input)
                .next()
                .and_then(|tap| taps.get_mut(tap.0 as usize))
            {
                tap.out_of_order += disorder.records;
                tap.out_of_order_max_ns = tap.out_of_order_max_ns.max(disorder.max_back_ns);
                let sorting = read.summary.sorting;
                tap.sorted_frames += sorting.frames;
                tap.sorted_first_time = match (tap.sorted_first_time, sorting.first) {
                    (Some(one), Some(other)) => Some(one.min(other)),
                    (one, other) => one.or(other),
                };
                tap.sorted_max_ns = tap.sorted_max_ns.max(sorting.furthest_ns);
                tap.sorted_too_late += sorting.too_late;
            }
            for (index, interface) in read.interfaces.iter().enumerate() {
                let tap = decoder.taps.interface_tap(input, index);
                if let Some(tap) = tap.and_then(|tap| taps.get_mut(tap.0 as usize)) {
                    tap.frames_lost = tap
                        .frames_lost
                        .saturating_add(interface.dropped.unwrap_or_default());
                }
            }
        }
        let credits = roce_flow::join_credits(&conclusion.credits);
        RunSummary {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started: begun.started,
            elapsed: begun.elapsed(),
            span: decoder.span,
            first_frame: decoder.first_frame,
            totals,
            taps,
            clock_steps,
            stretches: decoder.taps.stretches(),
            cnp_receivers: conclusion.cnp_receivers.clone(),
            attempts: conclusion.attempts.clone(),
            exchanges: conclusion.exchanges.clone(),
            hops: conclusion.hops.clone(),
            hop_timeline: conclusion.hop_timeline.clone(),
            credited: credits.connections,
            cut_rings: conclusion.cut_rings,
            credits: credits.rows,
            mrc_connections: conclusion.mrc.connections.clone(),
            mrc_paths: conclusion.mrc.paths.clone(),
            mrc_reports: conclusion.mrc.reports.clone(),
            uet_traffic: conclusion.mrc.traffic.clone(),
            hops_inband: conclusion.hops_inband.clone(),
            ..RunSummary::default()
        }
    }
}

/// Notes at a tap how its clock differs.
fn note_clock(tap: &mut TapRow, clock: &Clock, taps: &Taps) {
    let first = tap.first_time.unwrap_or(clock.correction.at);
    tap.clock_reference = taps.input_taps(clock.reference).next();
    // The offset is taken at its own time as if at its corrected time: the drift over the offset is far less
    // than a nanosecond.
    tap.clock_offset_ns = Some(
        clock.correction.ahead_at(first) + clock.correction.faster_ppb * 1e-9 * clock.correction.ahead_ns,
    );
    let length = tap.last_time.unwrap_or(first).since(first);
    let drifted = clock.correction.faster_ppb.abs() * 1e-9 * float(length.0);
    // A drift that the bound of the offset may hide, at either end, is not known.
    let is_known = |uncertainty: f64| drifted <= 0.0 || drifted > 2.0 * uncertainty;
    tap.clock_drift_ppb = clock
        .uncertainty_ns
        .is_some_and(is_known)
        .then_some(clock.correction.faster_ppb);
    tap.clock_uncertainty_ns = clock.uncertainty_ns;
}
