//! The end of a connection, as its packets show it.

use roce_model::{
    AckTimeout, EndKind, EndRow, FlowId, FlowRow, JobError, RunSummary, Span, TapId, Time, Vantage,
};

use super::followed::{Event, FollowedFlow, Last};

/// Retransmission runs without an answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Retries {
    /// Their number.
    pub runs: u64,
    /// Those of them whose trigger was a timeout.
    pub by_timeout: u64,
    /// When they began, in the order of time.
    pub times: Vec<Time>,
    /// The median time from one to the next.
    pub interval: Option<Span>,
    /// The values of the local ACK timeout that allow this interval, the lowest and the highest.
    pub timeouts: Option<(u32, u32)>,
}

/// The end of a connection, at the tap that saw most of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct End {
    /// The direction of the side that reports the error.
    pub name: String,
    /// The ranks of sender and receiver.
    pub ranks: Option<String>,
    /// The queue pair that answers go to.
    pub queue_pair: Option<u32>,
    /// How well it fits the status: 2 it ends as the status says, 1 it does not end, 0 it ends otherwise.
    pub fit: u8,
    /// Position of the tap on the way of the sender's packets.
    pub vantage: Option<&'static str>,
    /// Packets of the sender; `None`: none was captured.
    pub packets: Option<u64>,
    /// Data of the sender, in bytes.
    pub payload_bytes: u64,
    /// Its highest PSN.
    pub last_psn: Option<u32>,
    /// The last packet of the sender.
    pub last_sent: Option<Time>,
    /// The last packet of the peer on this connection.
    pub last_answer: Option<Time>,
    /// Packets of the peer on this connection.
    pub answers: u64,
    /// The last packet of the peer's address on any other queue pair.
    pub peer_elsewhere: Option<Time>,
    /// The later one of the last packets.
    pub last_time: Time,
    /// Retransmissions after the last answer.
    pub retries: Retries,
    /// Packets that were retransmitted in the whole capture.
    pub retransmitted: u64,
    /// NAKs of the peer: their number, and the last one's time and syndrome.
    pub naks: u64,
    /// The last NAK: time and syndrome.
    pub last_nak: Option<(Time, u64)>,
    /// RNR NAKs of the peer.
    pub rnr_naks: u64,
    /// The last RNR NAK: time and its timer in ns.
    pub last_rnr: Option<(Time, u64)>,
    /// The end of the capture.
    pub capture_end: Option<Time>,
    /// Records that the capture lost at this tap.
    pub lost_records: u64,
    /// The capture has both directions.
    pub is_paired: bool,
    /// Outcome of the connection, as the table `ends` has it.
    pub outcome: Option<EndKind>,
}

impl End {
    /// Silence from the last packet of the connection to the end of the capture.
    pub fn silence(&self) -> Option<Span> {
        Some(self.capture_end?.since(self.last_time))
    }

    /// Time for which nothing came back although the sender went on.
    pub fn unanswered(&self) -> Option<Span> {
        let (sent, answer) = (self.last_sent?, self.last_answer?);
        (sent > answer).then(|| sent.since(answer))
    }
}

/// The end of a connection of which at least one direction was captured.
pub(super) fn end(
    error: &JobError,
    sent: Option<&FollowedFlow>,
    answers: Option<&FollowedFlow>,
    last: &Last,
    run: &RunSummary,
) -> Option<End> {
    let tap = best_tap(sent.or(answers)?)?;
    let rows = |flow: Option<&FollowedFlow>| -> Vec<FlowRow> {
        let flow = flow.into_iter().flat_map(|flow| flow.rows.iter());
        flow.filter(|((of, _), _)| *of == tap)
            .map(|(_, row)| row.clone())
            .collect()
    };
    let (sent_rows, answer_rows) = (rows(sent), rows(answers));
    let sum =
        |rows: &[FlowRow], value: fn(&FlowRow) -> u64| rows.iter().map(value).fold(0, u64::saturating_add);
    let last_of = |rows: &[FlowRow]| rows.iter().map(|row| row.last_time).max();
    let (last_sent, last_answer) = (last_of(&sent_rows), last_of(&answer_rows));
    let name = match (sent, answers) {
        (Some(sent), _) => format!(
            "{} > {} QP {}",
            sent.key.source, sent.key.destination, sent.key.destination_qpn
        ),
        (None, Some(answers)) => format!("{} > {}", answers.key.destination, answers.key.source),
        (None, None) => return None,
    };
    let ranks = sent_rows
        .iter()
        .chain(&answer_rows)
        .find_map(FlowRow::ranks)
        .map(|ranks| {
            if sent_rows.is_empty() {
                ranks.reversed()
            } else {
                ranks
            }
        });
    let ids: Vec<FlowId> = [sent, answers]
        .into_iter()
        .flatten()
        .map(|flow| flow.key.id())
        .collect();
    let peer = sent.map_or_else(
        || answers.map(|answers| answers.key.source),
        |sent| Some(sent.key.destination),
    );
    let peer_elsewhere = peer
        .and_then(|peer| last.get(&(tap, peer)))
        .and_then(|last| last.iter().rev().find(|(_, flow)| !ids.contains(flow)))
        .map(|(time, _)| *time);
    let events = |flow: Option<&FollowedFlow>, kind: &str| -> Vec<Event> {
        let events = flow.into_iter().flat_map(|flow| flow.events.iter());
        events
            .filter(|(of, event)| *of == tap && event.kind == kind)
            .map(|(_, event)| event.clone())
            .collect()
    };
    let last_event = |kind: &str| {
        let events = events(answers, kind);
        events
            .last()
            .map(|event| (event.time, event.value.unwrap_or_default()))
    };
    let mut end = End {
        name,
        ranks: ranks.map(|ranks| ranks.to_string()),
        queue_pair: answers.map(|answers| answers.key.destination_qpn.value()),
        vantage: sent_rows.iter().find_map(|row| row.vantage).map(Vantage::name),
        packets: sent.map(|_| sum(&sent_rows, |row| row.packets)),
        payload_bytes: sum(&sent_rows, |row| row.payload_bytes),
        last_psn: sent_rows.last().and_then(|row| row.last_psn),
        last_sent,
        last_answer,
        answers: sum(&answer_rows, |row| row.packets),
        peer_elsewhere,
        last_time: last_sent.max(last_answer).unwrap_or_default(),
        retries: retries(&events(sent, "retransmission_run"), last_answer),
        retransmitted: sum(&sent_rows, |row| row.retransmitted_packets),
        naks: sum(&answer_rows, |row| row.naks),
        last_nak: last_event("nak"),
        rnr_naks: sum(&answer_rows, |row| row.rnr_naks),
        last_rnr: last_event("rnr_nak"),
        capture_end: run.span.map(|span| span.last),
        lost_records: run.tap(tap).map_or(0, roce_model::TapRow::records_lost),
        is_paired: sent.is_some() && answers.is_some(),
        ..End::default()
    };
    // The side that reports an error is the one whose requests ended so.
    let own = |row: &&EndRow| sent.map_or(ids.contains(&row.flow_id), |sent| row.flow_id == sent.key.id());
    let outcomes: Vec<EndKind> = run.ends.iter().filter(own).map(|row| row.outcome).collect();
    end.outcome = outcomes
        .iter()
        .copied()
        .find(|outcome| *outcome != EndKind::Closed);
    end.fit = fit(error.number, &outcomes, end.silence());
    Some(end)
}

/// The tap at which a flow has the most packets.
fn best_tap(flow: &FollowedFlow) -> Option<TapId> {
    let mut taps: Vec<(u64, TapId)> = flow
        .rows
        .iter()
        .map(|((tap, _), row)| (row.packets, *tap))
        .collect();
    taps.sort_unstable_by_key(|(packets, tap)| (std::cmp::Reverse(*packets), *tap));
    taps.first().map(|(_, tap)| *tap)
}

/// Retransmission runs after the last answer.
fn retries(runs: &[Event], last_answer: Option<Time>) -> Retries {
    let after: Vec<&Event> = runs
        .iter()
        .filter(|run| last_answer.is_none_or(|answer| run.time > answer))
        .collect();
    let times: Vec<Time> = after.iter().map(|run| run.time).collect();
    let mut intervals: Vec<u64> = times.windows(2).map(|pair| pair[1].since(pair[0]).0).collect();
    intervals.sort_unstable();
    let interval = intervals.get(intervals.len() / 2).copied();
    Retries {
        runs: after.len() as u64,
        by_timeout: after
            .iter()
            .filter(|run| run.detail.as_deref() == Some("timeout"))
            .count() as u64,
        interval: interval.map(Span),
        timeouts: interval.and_then(timeouts),
        times,
    }
}

/// The codes of the local ACK timeouts, the lowest and the highest, that let a sender wait for `interval`, in nanoseconds.
fn timeouts(interval: u64) -> Option<(u32, u32)> {
    let (lowest, highest) = AckTimeout::fitting(0..32, interval, interval)?;
    Some((lowest.code().into(), highest.code().into()))
}

/// Fit of a connection that ended as the status says.
pub(super) const FITS: u8 = 2;

/// How well the end of a connection fits a status. An error without one fits all ends but an orderly one.
fn fit(status: Option<u32>, outcomes: &[EndKind], silence: Option<Span>) -> u8 {
    let ends_so = |outcome: &EndKind| {
        status.map_or(*outcome != EndKind::Closed, |status| {
            outcome.explains(status).unwrap_or_default()
        })
    };
    let has_ended = outcomes.iter().any(|outcome| *outcome != EndKind::Closed);
    match silence {
        _ if outcomes.iter().any(ends_so) => FITS,
        // Packets came until the end of the capture, as far as its last millisecond shows it.
        Some(silence) if !has_ended && silence.0 < 1_000_000 => 1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_tell_the_timeout() {
        // 4.096 us x 2^14 is 67.1 ms: a sender that waits 67.2 ms has 14, or 13 if it waits longer. Four times 16.8 ms (12) is less.
        assert_eq!(timeouts(67_200_000), Some((13, 14)));
        // 4.096 us x 2^18 is 1.0737 s.
        assert_eq!(timeouts(1_073_741_824), Some((16, 18)));
        assert_eq!(timeouts(4_000), None, "less than the least");
    }

    #[test]
    fn runs_before_an_answer_are_no_retries() {
        let run = |time: u64, detail: &str| Event {
            time: Time(time),
            kind: "retransmission_run",
            value: Some(1),
            detail: Some(detail.to_owned()),
        };
        let runs = [
            run(10, "nak"),
            run(100, "timeout"),
            run(300, "timeout"),
            run(500, "unknown"),
        ];
        let found = retries(&runs, Some(Time(50)));
        assert_eq!(
            (found.runs, found.by_timeout, found.interval),
            (3, 2, Some(Span(200)))
        );
        assert_eq!(retries(&runs, None).runs, 4);
        assert_eq!(retries(&[], None), Retries::default());
    }
}
