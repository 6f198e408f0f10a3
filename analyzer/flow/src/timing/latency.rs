//! How long answers take: round trips, messages, READs, atomics; and how many bytes were in flight. Which answer covers
//! which request is said by the caller.

use std::collections::VecDeque;
use std::num::NonZeroU64;

use roce_model::{FlowRow, Span, TapMeasures, Time, prefetch};

use crate::timing::distribution::{Distribution, Summary};

/// Outstanding requests remembered of one flow: 40 bytes each, made as they are needed. With more of them in flight,
/// those beyond are not measured.
const MAX_OUTSTANDING: usize = 64;
/// A value is reported only if it is at least this many times the quantum of the stamps that it comes from.
const QUANTA: u64 = 4;

/// Kind of a request, as far as its time is concerned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum What {
    /// A packet of a SEND or WRITE, or of what is answered by an ACK as they are.
    Message,
    /// A READ, or what else is answered by READ responses.
    Read,
    /// An atomic.
    Atomic,
    /// Anything else.
    Other,
}

/// A request sent for the first time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SentRequest {
    pub(crate) first: u64,
    pub(crate) end: u64,
    pub(crate) time: Time,
    pub(crate) what: What,
    pub(crate) is_first: bool,
    pub(crate) is_last: bool,
    /// PSNs before it are missing.
    pub(crate) after_gap: bool,
    /// It is ack-requested (AckReq).
    pub(crate) ack_requested: bool,
    /// Bytes that the flow sent for the first time, its own included, modulo 2^32.
    pub(crate) bytes: u32,
}

/// An answer, as far as times are concerned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Answer {
    /// An ACK.
    Ack,
    /// A NAK of any kind: it covers the PSNs before it, but answers no ack-requested packet.
    Nak,
    /// A READ response that is not the last of its READ.
    ReadBegun,
    /// The last READ response of a READ.
    ReadDone,
    /// An atomic ACK.
    Atomic,
}

/// A request whose answer is awaited.
#[derive(Clone, Copy, Debug)]
struct Mark {
    /// One past its last PSN; of a READ, past its first.
    end: u64,
    time: Time,
    /// When its message began; 0: it does not end one, or that was not seen.
    begin: Time,
    bytes: u32,
    what: What,
    ack_requested: bool,
}

/// The times of one flow's requests: seven cache lines, of which most requests need the first alone, and ACKs
/// six.
#[derive(Clone, Debug, Default)]
#[repr(C, align(64))]
pub(crate) struct Times {
    marks: VecDeque<Mark>,
    /// Bytes acknowledged; `None` until that is known.
    acked_bytes: Option<u32>,
    /// When the open message began; 0: unknown.
    begin: Time,
    /// The most bytes in flight in the open bin.
    bin_inflight: Option<u64>,
    // The second line.
    stamps: Stamps,
    shortest: Span,
    /// A moving average of what ACKs took.
    usual: Span,
    inflight_max: Option<u64>,
    // The third and the fourth.
    ack_rtt: Distribution,
    /// PSNs that were in flight when some were retransmitted: an answer can be for either transmission.
    ambiguous: core::ops::Range<u64>,
    message: Distribution,
    /// PSNs of requests for which there was no room.
    unmarked: core::ops::Range<u64>,
    /// When the request was sent whose round trip the latest answer ended; 0: it ended none.
    measured: Time,
    // The fifth and the sixth.
    bin: BinSamples,
    // The last one, which ACKs do not need.
    /// Times of READs and atomics, once there are some.
    fetches: Option<Box<Fetches>>,
}

#[derive(Clone, Debug, Default)]
struct Fetches {
    read: Distribution,
    atomic: Distribution,
}

#[derive(Clone, Debug, Default)]
struct BinSamples {
    ack_rtt: Few,
    message: Few,
}

/// Times of a flow's answers in one bin. None of them is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct BinTimes {
    pub(crate) ack_rtt_p50: Option<NonZeroU64>,
    pub(crate) ack_rtt_max: Option<NonZeroU64>,
    pub(crate) message_p50: Option<NonZeroU64>,
    pub(crate) message_max: Option<NonZeroU64>,
    pub(crate) inflight_max: Option<u64>,
}

impl BinTimes {
    /// True if it has none.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Times {
    /// Takes a request that was sent for the first time; says whether the open bin has something new of the flow.
    pub(crate) fn sent(&mut self, sent: &SentRequest) -> bool {
        if sent.is_first {
            self.begin = sent.time;
        } else if sent.after_gap {
            self.begin = Time(0);
        }
        if !(sent.ack_requested || sent.is_last) {
            return false;
        }
        let begin = if sent.is_last {
            core::mem::take(&mut self.begin)
        } else {
            Time(0)
        };
        if self.marks.len() < MAX_OUTSTANDING {
            self.marks.push_back(Mark {
                end: if sent.what == What::Read {
                    sent.first + 1
                } else {
                    sent.end
                },
                time: sent.time,
                begin,
                bytes: sent.bytes,
                what: sent.what,
                ack_requested: sent.ack_requested,
            });
        } else if self.unmarked.is_empty() {
            self.unmarked = sent.first..sent.end;
        } else {
            self.unmarked.end = sent.end;
        }
        sent.ack_requested && self.in_flight(sent.bytes)
    }

    /// True if anything is in flight, after `sent` bytes, modulo 2^32; fewer than that are in flight.
    fn in_flight(&mut self, sent: u32) -> bool {
        let Some(acked) = self.acked_bytes else {
            return false;
        };
        let bytes = Some(u64::from(sent.wrapping_sub(acked)));
        if bytes > self.bin_inflight {
            self.bin_inflight = bytes;
            self.inflight_max = self.inflight_max.max(bytes);
        }
        bytes > Some(0)
    }

    /// Requests from `first` on are retransmitted; all before `next` have been sent.
    pub(crate) fn sent_again(&mut self, first: u64, next: u64) {
        let from = if self.ambiguous.is_empty() {
            first
        } else {
            self.ambiguous.start.min(first)
        };
        self.ambiguous = from..next;
    }

    /// An answer to all before `psn` at `time`, when `bytes` had been sent (as in [`SentRequest`]); says whether the open bin has something
    /// new of the flow. Times that the stamps are fine enough for also go to `measures`.
    pub(crate) fn answered(
        &mut self,
        answer: Answer,
        psn: u64,
        time: Time,
        bytes: u32,
        mut measures: Option<&mut TapMeasures>,
    ) -> bool {
        let mut any = self.in_flight(bytes);
        let mut newest = None;
        self.measured = Time(0);
        while let Some(mark) = self.marks.front().copied().filter(|mark| mark.end <= psn) {
            // A READ goes on until its last response, which is also in its place the next mark's first answer.
            if mark.what == What::Read && answer == Answer::ReadBegun {
                let next_too = self.marks.get(1).is_some_and(|next| next.end <= psn);
                if !next_too {
                    break;
                }
            }
            self.marks.pop_front();
            self.acked_bytes = Some(mark.bytes);
            any |= self.done(&mark, answer, psn, time, measures.as_deref_mut());
            newest = Some(mark);
        }
        if !self.unmarked.is_empty() && psn > self.unmarked.start {
            // The newest one covered may have had no mark, unless the answer names the very one.
            if newest.is_none_or(|mark| mark.end != psn && mark.end <= self.unmarked.end) {
                newest = None;
                self.acked_bytes = None;
            }
            if psn >= self.unmarked.end {
                self.unmarked = 0..0;
            }
        }
        if let Some(mark) = newest.filter(|mark| {
            let once = !self.ambiguous.contains(&(mark.end - 1));
            answer == Answer::Ack && mark.ack_requested && mark.what == What::Message && once
        }) {
            let took = time.since(mark.time);
            self.measured = mark.time;
            self.stamps.note(mark.time, time);
            self.note_shortest(took);
            // RFC 6298, 2.3: an eighth of each new one.
            self.usual = match self.usual {
                Span(0) => took,
                Span(usual) => Span(usual - usual / 8 + took.0 / 8),
            };
            self.ack_rtt.add(took.0);
            self.bin.ack_rtt.add(took.0);
            if let Some(measures) = measures
                && self.stamps.trusted(Some(took.0)).is_some()
            {
                measures.ack_rtt.add(took);
            }
            any = true;
        }
        if psn >= self.ambiguous.end {
            self.ambiguous = 0..0;
        }
        any
    }

    /// A mark's answer is complete.
    fn done(
        &mut self,
        mark: &Mark,
        answer: Answer,
        psn: u64,
        time: Time,
        measures: Option<&mut TapMeasures>,
    ) -> bool {
        let took = time.since(mark.time);
        match (mark.what, answer) {
            (What::Message, _) if mark.begin.0 > 0 => {
                let took = time.since(mark.begin);
                self.message.add(took.0);
                self.bin.message.add(took.0);
                self.stamps.note(mark.begin, time);
                if let Some(measures) = measures
                    && self.stamps.trusted(Some(took.0)).is_some()
                {
                    measures.message.add(took);
                }
                return true;
            }
            (What::Read, Answer::ReadDone) if self.marks.front().is_none_or(|next| next.end > psn) => {
                self.stamps.note(mark.time, time);
                self.note_shortest(took);
                self.fetches.get_or_insert_default().read.add(took.0);
            }
            (What::Atomic, Answer::Atomic) if mark.end == psn => {
                self.stamps.note(mark.time, time);
                self.note_shortest(took);
                self.fetches.get_or_insert_default().atomic.add(took.0);
            }
            _ => {}
        }
        false
    }

    fn note_shortest(&mut self, took: Span) {
        if took.0 > 0 && (self.shortest.0 == 0 || took < self.shortest) {
            self.shortest = took;
        }
    }

    /// When the request was sent whose round trip the latest answer ended.
    pub(crate) fn measured(&self) -> Option<Time> {
        (self.measured.0 != 0).then_some(self.measured)
    }

    /// Messages, and packets that ask for an answer, that await one.
    pub(crate) fn outstanding(&self) -> usize {
        self.marks.len()
    }

    /// The shortest time that an answer took; 0: not known.
    pub(crate) fn shortest(&self) -> Span {
        self.shortest
    }

    /// True if the time of some ACK was measured, be it 0.
    pub(crate) fn is_measured(&self) -> bool {
        self.ack_rtt.has_samples()
    }

    /// Usual time of an ACK; 0: not known.
    pub(crate) fn usual(&self) -> Span {
        self.usual
    }

    /// When the oldest request was sent that awaits an answer, or its message began; 0: not known.
    pub(crate) fn waiting_since(&self) -> Time {
        match self.marks.front() {
            Some(mark) if mark.begin.0 > 0 => mark.begin,
            Some(mark) => mark.time,
            None => self.begin,
        }
    }

    /// When the oldest request was sent that asked for an answer and has none. Requests that ask for none may stay without one (IBTA
    /// 9.7.5.1.2).
    pub(crate) fn unanswered_time(&self) -> Option<Time> {
        let asks = |mark: &&Mark| mark.ack_requested || mark.what != What::Message;
        self.marks.iter().find(asks).map(|mark| mark.time)
    }

    /// Prefetches what a request needs.
    #[inline]
    pub(crate) fn prefetch_for_request(&self) {
        prefetch(self);
    }

    /// Prefetches what an answer needs, as far as that is not behind pointers.
    #[inline]
    pub(crate) fn prefetch_for_answer(&self) {
        self.prefetch();
        prefetch(&self.ack_rtt);
        prefetch(&self.message);
    }

    /// Prefetches what is behind the pointers.
    #[inline]
    pub(crate) fn prefetch_behind(&self) {
        if let Some(mark) = self.marks.front() {
            prefetch(mark);
        }
        self.ack_rtt.prefetch();
        self.message.prefetch();
    }

    /// Prefetches the counts that another sample changes.
    #[inline]
    pub(crate) fn prefetch_counts(&self) {
        self.ack_rtt.prefetch_counts();
        self.message.prefetch_counts();
    }

    /// Distributions that every flow with answers has.
    #[inline]
    pub(crate) fn distributions(&self) -> [&Distribution; 2] {
        [&self.ack_rtt, &self.message]
    }

    /// Prefetches what the open bin needs.
    #[inline]
    pub(crate) fn prefetch(&self) {
        prefetch(self);
        prefetch(&self.stamps);
        prefetch(&self.bin.ack_rtt);
        prefetch(&self.bin.message);
    }

    /// Takes the times of the open bin; a new one begins.
    pub(crate) fn take_bin(&mut self) -> BinTimes {
        let bin = &mut self.bin;
        let trusted = |value| self.stamps.trusted(value).and_then(NonZeroU64::new);
        let times = BinTimes {
            ack_rtt_p50: trusted(bin.ack_rtt.median()),
            ack_rtt_max: trusted(bin.ack_rtt.max()),
            message_p50: trusted(bin.message.median()),
            message_max: trusted(bin.message.max()),
            inflight_max: self.bin_inflight.take(),
        };
        bin.ack_rtt.clear();
        bin.message.clear();
        times
    }

    /// How many round trips were measured, and their median.
    pub(crate) fn ack_rtt(&self) -> (u64, Option<u64>) {
        let summary = self.ack_rtt.summary();
        (summary.count(), self.stamps.trusted(summary.quantile(50)))
    }

    /// Fills in the times of a flow's row.
    pub(crate) fn write_flow(&self, row: &mut FlowRow) {
        macro_rules! fill {
            ($of:expr => $count:ident $min:ident $p50:ident $p90:ident $p99:ident $max:ident $stddev:ident) => {
                let summary = $of.summary();
                row.$count = summary.count();
                row.$min = self.stamps.trusted(summary.min());
                row.$p50 = self.stamps.trusted(summary.quantile(50));
                row.$p90 = self.stamps.trusted(summary.quantile(90));
                row.$p99 = self.stamps.trusted(summary.quantile(99));
                row.$max = self.stamps.trusted(summary.max());
                row.$stddev = self.stamps.trusted_deviation(&summary);
            };
        }
        fill!(self.ack_rtt => ack_rtt_count ack_rtt_min_ns ack_rtt_p50_ns ack_rtt_p90_ns ack_rtt_p99_ns ack_rtt_max_ns
            ack_rtt_stddev_ns);
        fill!(self.message => message_time_count message_time_min_ns message_time_p50_ns message_time_p90_ns
            message_time_p99_ns message_time_max_ns message_time_stddev_ns);
        if let Some(Fetches { read, atomic }) = self.fetches.as_deref() {
            fill!(read => read_time_count read_time_min_ns read_time_p50_ns read_time_p90_ns read_time_p99_ns
                read_time_max_ns read_time_stddev_ns);
            fill!(atomic => atomic_time_count atomic_time_min_ns atomic_time_p50_ns atomic_time_p90_ns atomic_time_p99_ns
                atomic_time_max_ns atomic_time_stddev_ns);
        }
        row.inflight_bytes_max = self.inflight_max;
    }
}

/// How fine the stamps are that a flow's times come from. A capture in microseconds shows itself by its stamps, all of
/// them whole microseconds; one that stamps packets in batches (the RDMA sniffer stamps what it finds when it polls)
/// by answers in the very moment of their requests.
#[derive(Clone, Copy, Debug, Default)]
struct Stamps {
    samples: u64,
    /// Answers in the moment of their request.
    zeros: u64,
    /// The shortest time that was not zero.
    least: u64,
    /// Some stamp is no whole microsecond.
    nanoseconds: bool,
}

impl Stamps {
    fn note(&mut self, from: Time, to: Time) {
        let took = to.since(from).0;
        self.samples += 1;
        self.zeros += u64::from(took == 0);
        if took > 0 && (self.least == 0 || took < self.least) {
            self.least = took;
        }
        self.nanoseconds |= !from.0.is_multiple_of(1_000) || !to.0.is_multiple_of(1_000);
    }

    /// The step of the stamps, in ns.
    fn quantum(&self) -> u64 {
        let resolution = if self.nanoseconds { 1 } else { 1_000 };
        // One in four is zero: the step is longer than a good part of the times. What is not zero took a step.
        if self.zeros * QUANTA > self.samples {
            self.least.max(resolution)
        } else {
            resolution
        }
    }

    fn trusted(&self, value: Option<u64>) -> Option<u64> {
        value.filter(|value| *value >= self.quantum() * QUANTA)
    }

    #[expect(clippy::cast_precision_loss, reason = "a step of stamps is below 2^53 ns")]
    fn trusted_deviation(&self, summary: &Summary) -> Option<f64> {
        let least = (self.quantum() * QUANTA) as f64;
        summary.stddev().filter(|deviation| *deviation >= least)
    }
}

/// A few samples: all of them up to 16, then evenly spaced ones, 8 to 16 of them. The largest is exact, the median that
/// of the kept ones.
#[derive(Clone, Debug, Default)]
struct Few {
    /// The first ones; the others have a place once there are some.
    first: [u64; Few::FIRST],
    others: Option<Box<[u64; Few::MAX_SAMPLES - Few::FIRST]>>,
    len: u8,
    /// One of so many is kept, as a power of two.
    spacing: u8,
    seen: u64,
    max: u64,
}

impl Few {
    const MAX_SAMPLES: usize = 16;
    const FIRST: usize = 4;

    fn add(&mut self, value: u64) {
        self.max = self.max.max(value);
        let at = self.seen;
        self.seen += 1;
        if !at.is_multiple_of(1 << self.spacing.min(63)) {
            return;
        }
        if usize::from(self.len) == Self::MAX_SAMPLES {
            let kept = self.kept();
            self.len = 0;
            for value in kept.into_iter().step_by(2) {
                self.keep(value);
            }
            self.spacing += 1;
        }
        self.keep(value);
    }

    fn keep(&mut self, value: u64) {
        let at = usize::from(self.len);
        match at.checked_sub(Self::FIRST) {
            None => self.first[at] = value,
            Some(at) => self.others.get_or_insert_default()[at] = value,
        }
        self.len += 1;
    }

    /// The kept samples, in front.
    fn kept(&self) -> [u64; Self::MAX_SAMPLES] {
        let mut kept = [0; Self::MAX_SAMPLES];
        kept[..Self::FIRST].copy_from_slice(&self.first);
        if let Some(others) = &self.others {
            kept[Self::FIRST..].copy_from_slice(&**others);
        }
        kept
    }

    /// No samples, as before the first.
    fn clear(&mut self) {
        (self.len, self.spacing, self.seen, self.max) = (0, 0, 0, 0);
    }

    fn max(&self) -> Option<u64> {
        (self.seen > 0).then_some(self.max)
    }

    /// Nearest rank, as the quantiles of a flow are.
    fn median(&self) -> Option<u64> {
        let middle = usize::from(self.len).checked_sub(1)? / 2;
        if self.len == 1 {
            return Some(self.first[0]);
        }
        let mut kept = self.kept();
        let kept = &mut kept[..usize::from(self.len)];
        kept.sort_unstable();
        kept.get(middle).copied()
    }
}

#[cfg(test)]
mod tests;
