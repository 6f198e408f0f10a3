//! Stories: each counter is a base and a rate from one moment to another, so that every row is known by arithmetic.

use roce_model::{Counter, Sample, SampleSource, Span, Time};

use super::super::*;
use crate::device::Reading;

/// Start of the command in ms.
pub(super) const START: u64 = 100_000;
pub(super) const PORT: &str = "Ethernet1/1/2";

/// `per_second` from `from` to `to`, in ms since the start of the command; before, `base`.
#[derive(Clone, Copy)]
pub(super) struct Rate {
    base: u64,
    per_second: u64,
    from: i64,
    to: i64,
}

impl Rate {
    fn at(self, ms: i64) -> f64 {
        let lasted = u64::try_from(ms.clamp(self.from, self.to) - self.from).unwrap();
        roce_model::value_of(self.base + self.per_second * lasted / 1_000)
    }
}

pub(super) fn rate(base: u64, per_second: u64, from: i64, to: i64) -> Rate {
    Rate {
        base,
        per_second,
        from,
        to,
    }
}

pub(super) const STILL: Rate = Rate {
    base: 7,
    per_second: 0,
    from: 0,
    to: 0,
};

/// One counter of a story.
#[derive(Clone)]
pub(super) struct StoryLine {
    pub(super) source: SampleSource,
    pub(super) node: &'static str,
    pub(super) object: &'static str,
    pub(super) counter: Counter,
    pub(super) priority: Option<u8>,
    pub(super) rates: Vec<Rate>,
}

pub(super) fn line(
    source: SampleSource,
    place: (&'static str, &'static str),
    counter: Counter,
    rates: &[Rate],
) -> StoryLine {
    let (node, object) = place;
    let is_by_priority = counter.name().contains("pfc") && source != SampleSource::Switch;
    StoryLine {
        source,
        node,
        object,
        counter,
        priority: is_by_priority.then_some(3),
        rates: rates.to_vec(),
    }
}

pub(super) const LEAF: (&str, &str) = ("leaf1", PORT);
pub(super) const INSIDE: (&str, &str) = ("leaf1", "ii1/1/5");
pub(super) const VMNIC: (&str, &str) = ("esxi1", "vmnic5");

pub(super) fn switch(place: (&'static str, &'static str), counter: Counter, rates: &[Rate]) -> StoryLine {
    line(SampleSource::Switch, place, counter, rates)
}

pub(super) fn hypervisor(counter: Counter, rates: &[Rate]) -> StoryLine {
    line(SampleSource::Hypervisor, VMNIC, counter, rates)
}

pub(super) fn host(node: &'static str, object: &'static str, counter: Counter, rates: &[Rate]) -> StoryLine {
    line(SampleSource::Host, (node, object), counter, rates)
}

/// Times of a run in ms since the start of the command.
#[derive(Clone, Copy)]
pub(super) struct StoryTimes {
    pub(super) first: i64,
    pub(super) end: i64,
    pub(super) last: i64,
    pub(super) every: i64,
}

pub(super) fn time(ms: i64) -> Time {
    Time((i64::try_from(START).unwrap() + ms).unsigned_abs() * 1_000_000)
}

pub(super) fn reading(source: SampleSource, node: &str, story: &[StoryLine], ms: i64) -> Reading {
    let mut reading = Reading::new(source, node, time(ms));
    for line in story
        .iter()
        .filter(|line| line.source == source && line.node == node)
    {
        let value: f64 = line.rates.iter().map(|rate| rate.at(ms)).sum();
        let sample: &mut Sample = reading.push(line.counter, line.object, value);
        sample.priority = line.priority;
        if source == SampleSource::Switch {
            let kind = if line.object.starts_with("ii") {
                "internal"
            } else {
                "port"
            };
            let mut details = vec![kind.into()];
            details.resize(line.counter.labels().len(), "unicast".into());
            sample.details = details;
        }
    }
    reading
}

/// Reads every target at every tick.
pub(super) fn collect(story: &[StoryLine], run: StoryTimes) -> PauseCollector {
    let mut collector = PauseCollector::with_command(Span(run.every.unsigned_abs() * 1_000_000));
    let mut nodes: Vec<(SampleSource, &str)> = story.iter().map(|line| (line.source, line.node)).collect();
    nodes.sort_unstable();
    nodes.dedup();
    let mut ms = run.first;
    let (mut has_begun, mut has_ended) = (false, false);
    while ms <= run.last {
        if ms > 0 && !has_begun {
            collector.mark_start(time(0));
            has_begun = true;
        }
        if ms > run.end && !has_ended {
            collector.mark_end(time(run.end));
            has_ended = true;
        }
        for (source, node) in &nodes {
            let reading = reading(*source, node, story, ms);
            match source {
                SampleSource::Host => collector.add_samples(&reading.samples),
                _ => collector.add_reading(&reading),
            }
        }
        ms += run.every;
    }
    collector
}

pub(super) fn inventory() -> Inventory {
    Inventory::parse(
        "[[switch]]\nname = \"leaf1\"\nkind = \"nexus\"\n\
         [[hypervisor]]\nname = \"esxi1\"\nswitch_ports = { vmnic5 = \"leaf1:Eth1/1/2\" }\n\
         [[host]]\nname = \"gpu5\"\nhypervisor = \"esxi1\"\n\
         [[host]]\nname = \"gpu7\"\nswitch_ports = { ens1 = \"leaf1:Ethernet1/1/7\" }\n",
    )
    .unwrap()
}

pub(super) fn finish(story: &[StoryLine], run: StoryTimes) -> Pauses {
    collect(story, run).finish(&inventory())
}

pub(super) fn row<'a>(pauses: &'a Pauses, place: &str, kind: Kind) -> &'a Row {
    let mut rows = pauses
        .rows
        .iter()
        .filter(|row| row.place() == place && row.kind == kind);
    let first = rows.next().unwrap_or_else(|| panic!("{place} {kind:?}"));
    assert!(rows.next().is_none(), "{place} {kind:?} twice");
    first
}

pub(super) fn changes(row: &Row) -> [Option<f64>; 3] {
    [row.before, row.during, row.after]
}

/// Marks from 1.0 s, so that the reading at 1.2 s shows the first; pauses from 3.6 s, so that the one at 3.8 s does.
pub(super) fn incast() -> Vec<StoryLine> {
    let pauses = [rate(500, 100, 3_600, 10_000)];
    vec![
        host(
            "gpu5",
            "rocep11s0:1",
            Counter::PortEcnMarkedPacketsReceived,
            &[rate(1_000, 4_560, 1_000, 10_000)],
        ),
        host(
            "gpu5",
            "rocep11s0:1",
            Counter::PortCnpSent,
            &[rate(1_000, 4_000, 1_000, 10_000)],
        ),
        host(
            "gpu1",
            "rocep19s0:1",
            Counter::PortCnpHandled,
            &[rate(9, 3_960, 1_000, 10_000)],
        ),
        switch(LEAF, Counter::SwitchPfcTransmittedFrames, &pauses),
        switch(LEAF, Counter::SwitchPfcReceivedFrames, &[STILL]),
        switch(LEAF, Counter::SwitchMmuDroppedPackets, &[STILL]),
        switch(
            ("leaf1", "Ethernet1/1/3"),
            Counter::SwitchPfcTransmittedFrames,
            &[STILL],
        ),
        hypervisor(Counter::HypervisorPfcReceivedFrames, &pauses),
        hypervisor(Counter::HypervisorPfcTransmittedFrames, &[STILL]),
    ]
}

pub(super) const SHORT: StoryTimes = StoryTimes {
    first: -10_000,
    end: 10_000,
    last: 15_000,
    every: 200,
};

pub(super) fn incast_with_a_virtual_function() -> Pauses {
    let mut collector = collect(&incast(), SHORT);
    collector.unseen(Unseen {
        level: Level::Server,
        node: "gpu5".into(),
        object: "ens192".into(),
        kind: Kind::PfcReceived,
        why: "not visible in a virtual function".into(),
    });
    collector.finish(&inventory())
}

/// 30 s before, 20 s of command, 10 s after, as in the design's example.
pub(super) const LONG: StoryTimes = StoryTimes {
    first: -30_000,
    end: 20_000,
    last: 60_000 - 30_000,
    every: 1_000,
};

pub(super) fn global() -> Vec<StoryLine> {
    // 17 a second for 30 s are 510; 2,400 a second for 20 s are 48,000.
    let pauses = [rate(0, 17, -30_000, 0), rate(0, 2_400, 0, 20_000)];
    vec![
        switch(LEAF, Counter::SwitchPauseTransmittedFrames, &pauses),
        switch(LEAF, Counter::SwitchPauseReceivedFrames, &[STILL]),
        switch(LEAF, Counter::SwitchPfcTransmittedFrames, &[STILL]),
        switch(LEAF, Counter::SwitchPfcReceivedFrames, &[STILL]),
        hypervisor(Counter::HypervisorPauseReceivedFrames, &pauses),
        hypervisor(Counter::HypervisorPauseTransmittedFrames, &[STILL]),
        host(
            "gpu5",
            "rocep11s0:1",
            Counter::PortEcnMarkedPacketsReceived,
            &[STILL],
        ),
    ]
}
