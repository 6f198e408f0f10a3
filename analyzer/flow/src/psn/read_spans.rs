//! READs of which it is not known how many PSNs they take. Whatever comes behind one is in order, until the path MTU shows its span;
//! then it shows as well whether requests between were missing.

use core::ops::Range;

use roce_model::Time;

use crate::psn::request::Request;

/// READs of unknown span whose distance from the next request is remembered, and such that came behind them.
const MAX_READS: usize = 16;

/// The spans of a flow's READs.
#[derive(Clone, Debug, Default)]
pub(super) struct ReadSpans {
    /// Those of unknown span, once there were some that may hide missing requests.
    unsure: Option<Box<UnsureReads>>,
    /// PSNs of the latest READ of known span; 0: there was none.
    latest: u32,
    /// The latest request is a READ of unknown span: whatever comes next is in order.
    is_open: bool,
}

/// READs of unknown span before which, or among whose PSNs, others came.
#[derive(Clone, Debug, Default)]
struct UnsureReads {
    /// PSNs that they may have taken: whether there were requests between, nobody knows.
    psns: Range<u64>,
    /// These READs, until the path MTU shows how many PSNs they take.
    reads: Vec<UnsureRead>,
    /// READs that came behind those, among PSNs that they may have taken.
    behind: Vec<ReadBehind>,
}

/// A READ of which it was not known how many PSNs it takes.
#[derive(Clone, Copy, Debug)]
struct UnsureRead {
    at: u64,
    length: u32,
    /// Where the next request began, and when it came.
    next: u64,
    time: Time,
    ip_id: Option<u16>,
}

/// A READ that came behind the highest PSN, where nobody knew whether requests were missing.
#[derive(Clone, Copy, Debug)]
struct ReadBehind {
    at: u64,
    length: u32,
    time: Time,
    is_late: bool,
}

/// Requests that were missing behind a READ, as its span shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct GapBehindRead {
    pub(super) first: u64,
    pub(super) end: u64,
    /// When the next request came, and its IP identification.
    pub(super) time: Time,
    pub(super) ip_id: Option<u16>,
}

/// PSNs that a READ took which came behind others of unknown span.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct FilledByRead {
    pub(super) first: u64,
    pub(super) end: u64,
    pub(super) time: Time,
    pub(super) is_late: bool,
}

impl ReadSpans {
    /// A request comes; `is_whole`: it is no rest of a READ that was retransmitted.
    pub(super) fn note(&mut self, request: &Request, is_whole: bool) {
        let packet = &request.packet;
        if packet.is_read && (is_whole || self.latest == 0) {
            self.latest = packet.span.unwrap_or(self.latest);
        }
    }

    /// The latest request takes `span` PSNs; says whether that of the one before was unknown, so that this one is in order.
    pub(super) fn go_on(&mut self, span: Option<u32>) -> bool {
        core::mem::replace(&mut self.is_open, span.is_none())
    }

    /// True if whatever comes next is in order.
    pub(super) fn is_open(&self) -> bool {
        self.is_open
    }

    /// The span of the latest request is known after all.
    pub(super) fn close(&mut self) {
        self.is_open = false;
    }

    /// PSNs that a missing packet takes, as far as is known. `only_reads`: the flow has no other requests.
    pub(super) fn of_packet(&self, only_reads: bool) -> u32 {
        if only_reads { self.latest.max(1) } else { 1 }
    }

    /// True if a READ of unknown span may have taken `at`.
    pub(super) fn may_have_taken(&self, at: u64) -> bool {
        self.unsure
            .as_ref()
            .is_some_and(|unsure| unsure.psns.contains(&at))
    }

    /// `request` comes at `next`, behind a READ of unknown span whose PSNs end at `gap` or later.
    pub(super) fn jump(&mut self, gap: u64, next: u64, request: &Request) {
        let unsure = self.unsure.get_or_insert_default();
        let begin = if unsure.psns.is_empty() {
            gap
        } else {
            unsure.psns.start
        };
        unsure.psns = begin..next;
        if unsure.reads.len() < MAX_READS {
            unsure.reads.push(UnsureRead {
                at: gap - 1,
                length: request.flow.read_before,
                next,
                time: request.packet.time,
                ip_id: request.packet.ids.map(|ids| ids.id),
            });
        }
    }

    /// A READ came at `at`, among PSNs that others of unknown span may have taken.
    pub(super) fn came_behind(&mut self, at: u64, request: &Request, is_late: bool) {
        let unsure = self.unsure.get_or_insert_default();
        if unsure.behind.len() < MAX_READS {
            unsure.behind.push(ReadBehind {
                at,
                length: request.packet.read_length,
                time: request.packet.time,
                is_late,
            });
        }
    }

    /// The longest of the READs that wait for the path MTU; `None` without any.
    pub(super) fn longest(&self) -> Option<u32> {
        let unsure = self.unsure.as_ref().filter(|unsure| !unsure.reads.is_empty())?;
        let reads = unsure.reads.iter().map(|read| read.length);
        reads.chain(unsure.behind.iter().map(|read| read.length)).max()
    }

    /// `span_of` gives the PSNs of a READ by its length: the path MTU is known now. Gives what was missing behind READs of unknown span, and
    /// the PSNs that others took among these; nothing where some READs were not remembered, or not their lengths.
    pub(super) fn learn(
        &mut self,
        span_of: impl Fn(u32) -> Option<u32>,
    ) -> (Vec<GapBehindRead>, Vec<FilledByRead>) {
        let Some(unsure) = &mut self.unsure else {
            return Default::default();
        };
        let reads = core::mem::take(&mut unsure.reads);
        let behind = core::mem::take(&mut unsure.behind);
        let is_full = reads.len() == MAX_READS || behind.len() == MAX_READS;
        let mut lengths = reads.iter().map(|read| read.length);
        let mut lengths_behind = behind.iter().map(|read| read.length);
        if is_full || lengths.any(|length| length == 0) || lengths_behind.any(|length| length == 0) {
            return Default::default();
        }
        self.unsure = None;
        let gap = |read: &UnsureRead| GapBehindRead {
            first: read.at + u64::from(span_of(read.length).unwrap_or(u32::MAX)),
            end: read.next,
            time: read.time,
            ip_id: read.ip_id,
        };
        let filled = |read: &ReadBehind| FilledByRead {
            first: read.at,
            end: read.at + u64::from(span_of(read.length).unwrap_or(1)),
            time: read.time,
            is_late: read.is_late,
        };
        let gaps = reads.iter().map(gap).filter(|gap| gap.first < gap.end);
        (gaps.collect(), behind.iter().map(filled).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(length: u32) -> Request {
        let mut request = Request::default();
        request.packet.is_read = true;
        request.packet.read_length = length;
        request.flow.read_before = length;
        request
    }

    /// READs of 4 KiB with a path MTU of 1 KiB take 4 PSNs.
    fn span_of(length: u32) -> Option<u32> {
        (length > 0).then(|| length.div_ceil(1024))
    }

    #[test]
    fn what_is_further_apart_than_a_read_takes_was_missing() {
        let mut spans = ReadSpans::default();
        assert!(!spans.go_on(None) && spans.is_open());
        // READs at 10, 14 and 22: one at 18 is missing.
        assert!(spans.go_on(None));
        spans.jump(11, 14, &read(4096));
        assert!(spans.go_on(None));
        spans.jump(15, 22, &read(4096));
        assert!(spans.may_have_taken(11) && spans.may_have_taken(21) && !spans.may_have_taken(22));
        assert_eq!(spans.longest(), Some(4096));
        spans.came_behind(18, &read(4096), true);
        let (gaps, filled) = spans.learn(span_of);
        assert_eq!(
            gaps.iter().map(|gap| (gap.first, gap.end)).collect::<Vec<_>>(),
            [(18, 22)]
        );
        assert_eq!(
            filled
                .iter()
                .map(|read| (read.first, read.end))
                .collect::<Vec<_>>(),
            [(18, 22)]
        );
        assert!(spans.longest().is_none() && !spans.may_have_taken(18));
    }

    #[test]
    fn lengths_that_were_not_captured_say_nothing() {
        let mut spans = ReadSpans::default();
        spans.jump(11, 14, &read(4096));
        spans.jump(15, 22, &read(0));
        assert_eq!(spans.learn(span_of), (Vec::new(), Vec::new()));
        assert!(spans.may_have_taken(18), "still unknown");
    }

    #[test]
    fn the_rest_of_a_read_shows_no_span() {
        let mut spans = ReadSpans::default();
        let mut request = read(4096);
        request.packet.span = Some(4);
        spans.note(&request, true);
        request.packet.span = Some(2);
        spans.note(&request, false);
        assert_eq!((spans.of_packet(true), spans.of_packet(false)), (4, 1));
    }
}
