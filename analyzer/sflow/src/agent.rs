//! One agent: its sources, the sums of each way through it, its opcodes and its busiest pairs of hosts.

use std::collections::{BTreeMap, BTreeSet};

use roce_model::cast::float;
use roce_wire::{Content, DecodedFrame, Opcode};

use crate::datagram::{DataSource, Datagram, Fault, FlowSample, Port, Sample};
use crate::interval::{Estimate, WeightSum};
use crate::order::{Arrival, DatagramOrder};
use crate::source::{SampledSource, TotalBasis};
use crate::summary::{
    AgentKey, AgentSummary, Estimates, OpcodeShare, Place, SampleCounts, ShareEstimate, TalkerShare,
};
use crate::talkers::TalkerTable;
use crate::tally::{ClassSum, SampleTally, decoded, pair_share};

/// Sources of one agent. Samples of further ones are left out, and counted.
const MAX_SOURCES: usize = 4_096;

/// Samples of a lost datagram, in multiples of those of one that arrived.
const MAX_LOST_SAMPLES: f64 = 4.0;

/// Time at which a packet is sampled.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Direction {
    /// As it comes, or it is not known.
    Ingress,
    /// As it goes: the source is the interface by which it goes.
    Egress,
}

impl Direction {
    fn new(sample: &FlowSample<'_>) -> Self {
        let is_own = |port| sample.source.kind == 0 && port == Port::Interface(sample.source.index);
        if is_own(sample.output) && !is_own(sample.input) {
            Self::Egress
        } else {
            Self::Ingress
        }
    }
}

/// A way through an agent: where packets are sampled, by which interface they come and by which they go.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Way {
    source: DataSource,
    direction: Direction,
    input: Port,
    output: Port,
}

/// RoCE packets that were sampled in one direction.
#[derive(Clone, Debug)]
struct RoceTables {
    all: WeightSum,
    opcodes: BTreeMap<u8, ClassSum>,
    talkers: TalkerTable,
}

/// Everything of one agent.
#[derive(Clone, Default, Debug)]
pub(crate) struct Agent {
    order: DatagramOrder,
    counts: SampleCounts,
    sources: BTreeMap<DataSource, SampledSource>,
    ways: BTreeMap<Way, SampleTally>,
    roce: BTreeMap<Direction, RoceTables>,
}

impl Agent {
    /// Adds a datagram. `ways_left` are the ways for which there is room in all agents.
    ///
    /// # Errors
    /// The first place that is not as the specification has it. What could be read is added.
    pub(crate) fn add(&mut self, datagram: &Datagram<'_>, ways_left: &mut usize) -> Result<(), Fault> {
        if self.order.take(datagram.sequence, datagram.uptime_ms) == Arrival::Copy {
            return Ok(());
        }
        self.counts.datagrams += 1;
        let mut first = Ok(());
        for sample in datagram.samples() {
            let taken = match sample {
                Sample::Flow(sample) => self.sample(&sample, ways_left),
                Sample::Broken(fault) => Err(fault),
                Sample::Counters => {
                    self.counts.counters += 1;
                    Ok(())
                }
                Sample::Discarded => {
                    self.counts.discarded += 1;
                    Ok(())
                }
                Sample::Unknown(_) => {
                    self.counts.unknown += 1;
                    Ok(())
                }
            };
            self.counts.broken += u64::from(taken.is_err());
            first = first.and(taken);
        }
        first
    }

    fn sample(&mut self, sample: &FlowSample<'_>, ways_left: &mut usize) -> Result<(), Fault> {
        let header = sample.header()?;
        let Some(header) = header else {
            self.counts.without_header += 1;
            return Ok(());
        };
        let way = Way {
            source: sample.source,
            direction: Direction::new(sample),
            input: sample.input,
            output: sample.output,
        };
        let is_known = self.ways.contains_key(&way);
        let has_source = self.sources.len() < MAX_SOURCES || self.sources.contains_key(&sample.source);
        if !has_source || !is_known && *ways_left == 0 {
            self.counts.left_out += 1;
            return Ok(());
        }
        *ways_left -= usize::from(!is_known);
        let frame = decoded(&header);
        self.counts.without_header += u64::from(frame.is_none());
        let weight = self.sources.entry(sample.source).or_default().take(sample);
        let tally = self.ways.entry(way).or_default();
        tally.add(weight, header.frame_bytes, frame.as_ref());
        if let Some(frame) = &frame {
            self.roce(way.direction, sample.rate.max(1), header.frame_bytes, frame);
        }
        Ok(())
    }

    fn roce(&mut self, direction: Direction, rate: u32, bytes: u32, frame: &DecodedFrame) {
        let Content::Roce(roce) = &frame.content else {
            return;
        };
        let tables = self.roce.entry(direction).or_insert_with(|| RoceTables {
            all: WeightSum::default(),
            opcodes: BTreeMap::new(),
            talkers: TalkerTable::default(),
        });
        let weight = f64::from(rate);
        tables.all.add(weight);
        tables.opcodes.entry(roce.bth.opcode().0).or_default().add(weight);
        tables
            .talkers
            .add((roce.source, roce.destination), rate, weight * f64::from(bytes));
    }

    /// The results, with `top` pairs of hosts; `number` is the agent's own in the summary.
    pub(crate) fn summary(&self, key: AgentKey, number: usize, top: usize) -> AgentSummary {
        let directions: BTreeSet<Direction> = self.ways.keys().map(|way| way.direction).collect();
        let places = self.places(&directions);
        let direction = directions.first().copied().unwrap_or(Direction::Ingress);
        let mut summary = AgentSummary {
            key,
            counts: self.counts(),
            has_both_directions: directions.len() > 1,
            places,
            opcodes: Vec::new(),
            talkers: Vec::new(),
        };
        let Some(tables) = self.roce.get(&direction) else {
            return summary;
        };
        let shares = tables.opcodes.iter().map(|(opcode, sum)| OpcodeShare {
            opcode: Opcode(*opcode),
            share: sum.of(&tables.all),
        });
        summary.opcodes = shares.collect();
        summary
            .opcodes
            .sort_by_key(|found| (std::cmp::Reverse(found.share.samples), found.opcode));
        let all = summary.places.first().map(|(_, estimates)| *estimates);
        let factor = all.map_or(1.0, |all| scale(&all, &tables.all));
        summary.talkers = talkers(tables, number, top, factor);
        summary
    }

    /// True if the numbers of samples say which did not arrive. Each source has its own by the specification; where many more are missing
    /// than lost datagrams can have had, the agent counts otherwise, and nothing is known of missing ones.
    fn counts_missing(&self) -> bool {
        let sum =
            |value: fn(&SampledSource) -> u64| self.sources.values().map(value).fold(0, u64::saturating_add);
        let (missing, samples) = (sum(|source| source.missing), sum(|source| source.samples));
        let of_one = float(samples) / float(self.counts.datagrams.max(1));
        float(missing) <= float(self.order.lost) * of_one.max(1.0) * MAX_LOST_SAMPLES
    }

    fn counts(&self) -> SampleCounts {
        let mut counts = SampleCounts {
            lost_datagrams: self.order.lost,
            late_datagrams: self.order.late,
            copies: self.order.copies,
            restarts: self.order.restarts,
            sources: u64::try_from(self.sources.len()).unwrap_or(u64::MAX),
            ..self.counts
        };
        let counts_missing = self.counts_missing();
        for source in self.sources.values() {
            counts.missing_samples += if counts_missing { source.missing } else { 0 };
            counts.dropped_samples += source.drops;
            counts.rate_changes += source.rate_changes;
            let basis = source.factor(counts_missing).1;
            counts.sources_by_pool += u64::from(basis == TotalBasis::Pool);
            counts.sources_without_pool += u64::from(basis == TotalBasis::RateForWrongPool);
            counts.highest_rate = counts.highest_rate.max(source.highest_rate);
            let lowest = counts.lowest_rate;
            counts.lowest_rate = if lowest == 0 {
                source.lowest_rate
            } else {
                lowest.min(source.lowest_rate)
            };
        }
        counts
    }

    /// Estimates of all, of the inputs, and of the outputs. Where packets are sampled as they come, all of them and those by input are
    /// of these samples alone; those of an output are of the samples as they go, if it has any.
    fn places(&self, directions: &BTreeSet<Direction>) -> Vec<(Place, Estimates)> {
        let first = directions.first();
        let counts_missing = self.counts_missing();
        let leaving: BTreeSet<Port> = self
            .ways
            .keys()
            .filter(|way| way.direction == Direction::Egress)
            .map(|way| way.output)
            .collect();
        let mut tallies: BTreeMap<Place, BTreeMap<DataSource, SampleTally>> = BTreeMap::new();
        for (way, tally) in &self.ways {
            let mut add = |place| {
                let sources = tallies.entry(place).or_default();
                sources.entry(way.source).or_default().add_scaled(tally, 1.0);
            };
            if Some(&way.direction) == first {
                add(Place::All);
                add(Place::Input(way.input));
            }
            if leaving.contains(&way.output) == (way.direction == Direction::Egress) {
                add(Place::Output(way.output));
            }
        }
        let estimates = tallies.iter().map(|(place, sources)| {
            let mut all = SampleTally::default();
            for (source, tally) in sources {
                if let Some(source) = self.sources.get(source) {
                    all.add_source(tally, source, counts_missing);
                }
            }
            (*place, all.estimates())
        });
        estimates.collect()
    }
}

/// RoCE packets of the agent for each that the samples stand for by their rates.
fn scale(all: &Estimates, roce: &WeightSum) -> f64 {
    let packets = all
        .roce
        .share
        .map_or(0.0, |share| share.value * all.packets.value);
    if roce.sum > 0.0 { packets / roce.sum } else { 1.0 }
}

/// The busiest pairs of hosts.
fn talkers(tables: &RoceTables, agent: usize, top: usize, factor: f64) -> Vec<TalkerShare> {
    let all = tables.all.sum * factor;
    let pairs = tables.talkers.top(top).into_iter();
    pairs
        .map(|((source, destination), entry)| {
            let (least, most) = (float(entry.weight - entry.error), float(entry.weight));
            let share = pair_share(least, most, &tables.all);
            let packets = share.unwrap_or_default();
            TalkerShare {
                source,
                destination,
                agent,
                share: ShareEstimate {
                    samples: entry.samples,
                    of_samples: tables.all.samples,
                    share,
                },
                packets: Estimate {
                    value: packets.value * all,
                    low: packets.low * all,
                    high: packets.high * all,
                },
                bytes: (entry.error == 0).then_some(entry.bytes * factor),
            }
        })
        .collect()
}
