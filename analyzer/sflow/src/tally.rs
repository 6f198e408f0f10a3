//! Contents of sampled packets, RoCE, data, marks, CNPs, and the sums from which shares are.

use roce_model::cast::float;
use roce_wire::{Content, DecodedFrame, Ecn, LinkType, decode};

use crate::datagram::PacketHeader;
use crate::interval::{Estimate, WeightSum, bounded, wilson};
use crate::source::{SampledSource, TotalBasis};
use crate::summary::{Estimates, ShareEstimate};

/// Protocols of sampled headers that the decoder knows (sFlow version 5, `header_protocol`).
const LINKS: [(u32, LinkType); 3] = [
    (1, LinkType::ETHERNET),
    (11, LinkType::IPV4),
    (12, LinkType::IPV6),
];

/// Decodes a sampled packet; `None` where its first header is not known.
pub(crate) fn decoded(header: &PacketHeader<'_>) -> Option<DecodedFrame> {
    let (_, link) = LINKS.iter().find(|(protocol, _)| *protocol == header.protocol)?;
    let there = u32::try_from(header.bytes.len()).unwrap_or(u32::MAX);
    let original = header.frame_bytes.saturating_sub(header.stripped).max(there);
    Some(decode(*link, header.bytes, original))
}

/// Samples of a class and the packets that they stand for.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub(crate) struct ClassSum {
    pub(crate) samples: u64,
    pub(crate) sum: f64,
}

impl ClassSum {
    pub(crate) fn add(&mut self, weight: f64) {
        self.samples += 1;
        self.sum += weight;
    }

    fn add_scaled(&mut self, other: &Self, factor: f64) {
        self.samples += other.samples;
        self.sum += other.sum * factor;
    }

    /// The share of the class in `whole`.
    pub(crate) fn of(&self, whole: &WeightSum) -> ShareEstimate {
        ShareEstimate {
            samples: self.samples,
            of_samples: whole.samples,
            share: (whole.samples > 0).then(|| wilson(self.sum / whole.sum, whole.equal_samples())),
        }
    }
}

/// Sums over samples of one place.
#[derive(Clone, Default, Debug)]
pub(crate) struct SampleTally {
    all: WeightSum,
    /// Variance of the packets that they stand for.
    packets_variance: f64,
    bytes: WeightSum,
    roce: WeightSum,
    /// RoCE packets with data under an IP header: those that can be marked.
    data: WeightSum,
    marked: ClassSum,
    /// Data whose sender does not say that it hears marks.
    not_capable: ClassSum,
    cnps: ClassSum,
    uet: ClassSum,
}

impl SampleTally {
    /// Adds a sample that stands for `weight` packets of `bytes` bytes.
    pub(crate) fn add(&mut self, weight: f64, bytes: u32, frame: Option<&DecodedFrame>) {
        self.all.add(weight);
        self.bytes.add(weight * f64::from(bytes));
        match frame.map(|frame| &frame.content) {
            Some(Content::Roce(roce)) => {
                self.roce.add(weight);
                let opcode = roce.bth.opcode();
                if opcode.is_cnp() {
                    self.cnps.add(weight);
                } else if opcode.carries_data() && roce.carrier.has_ip() {
                    self.data.add(weight);
                    match roce.ecn() {
                        Ecn::Ce => self.marked.add(weight),
                        Ecn::NotEct => self.not_capable.add(weight),
                        _ => {}
                    }
                }
            }
            Some(Content::Uet(_)) => self.uet.add(weight),
            _ => {}
        }
    }

    /// Adds the sums of another place, of which each sample stands for `factor` times its own.
    pub(crate) fn add_scaled(&mut self, other: &Self, factor: f64) {
        self.all.add_scaled(&other.all, factor);
        self.bytes.add_scaled(&other.bytes, factor);
        self.roce.add_scaled(&other.roce, factor);
        self.data.add_scaled(&other.data, factor);
        self.marked.add_scaled(&other.marked, factor);
        self.not_capable.add_scaled(&other.not_capable, factor);
        self.cnps.add_scaled(&other.cnps, factor);
        self.uet.add_scaled(&other.uet, factor);
    }

    /// Adds the sums of a source at this place. Of a source that counts its packets only the share of this place in them is estimated:
    /// its variance is less by this share, and nothing is left of it where all of them were here but what passed before the first sample
    /// and behind the last.
    pub(crate) fn add_source(&mut self, other: &Self, source: &SampledSource, counts_missing: bool) {
        let (factor, basis) = source.factor(counts_missing);
        self.add_scaled(other, factor);
        let variance = other.all.squares * factor * factor;
        self.packets_variance += if basis == TotalBasis::Pool {
            let share = other.all.sum / source.weight;
            let one = factor * source.weight / float(source.samples.max(1));
            variance * (1.0 - share).max(0.0) + 2.0 * one * one
        } else {
            variance
        };
    }

    /// Estimates by the sums.
    pub(crate) fn estimates(&self) -> Estimates {
        let roce = ClassSum {
            samples: self.roce.samples,
            sum: self.roce.sum,
        };
        Estimates {
            samples: self.all.samples,
            packets: bounded(self.all.sum, self.packets_variance),
            bytes: self.bytes.total(),
            roce: roce.of(&self.all),
            uet: self.uet.of(&self.all),
            marked: self.marked.of(&self.data),
            not_capable: self.not_capable.of(&self.data),
            cnps: self.cnps.of(&self.roce),
        }
    }
}

/// The share of a pair of hosts, of which the table knows that it has `low` to `high` of `whole`.
pub(crate) fn pair_share(low: f64, high: f64, whole: &WeightSum) -> Option<Estimate> {
    (whole.samples > 0).then(|| {
        let of = |weight: f64| wilson(weight / whole.sum, whole.equal_samples());
        let (low, high) = (of(low), of(high));
        Estimate {
            value: low.value,
            low: low.low,
            high: high.high,
        }
    })
}
