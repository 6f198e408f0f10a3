//! The end of a connection in words and as a document.

use std::fmt::Write as _;

use roce_model::text::clean;
use roce_model::{Aeth, AethKind, EndKind, JobError, Nak, Span, Time};
use serde_json::{Value, json};

use super::end::End;
use super::sink::{By, Ends, ExplainedError};
use crate::terminal::episodes::after;
use roce_spelling::count;

/// Times of retransmission runs that are shown.
const SHOWN: usize = 8;

impl Ends {
    /// Lines of text: each error of the log, and the packets' evidence. Times count from the first frame of the
    /// capture.
    pub fn text(&self) -> String {
        let all: Vec<String> = self
            .explained
            .iter()
            .map(|explained| explained.text(self.start))
            .collect();
        let mut text = all.join("\n");
        if self.left_out > 0 {
            let _ = writeln!(
                text,
                "   {} flows between these addresses found no room",
                count(self.left_out)
            );
        }
        text
    }

    /// The result as a document: times in ns since 1970.
    pub fn document(&self) -> Value {
        json!({
            "errors": self.explained.iter().map(ExplainedError::document).collect::<Vec<_>>(),
            "flows_left_out": self.left_out,
        })
    }
}

/// A time after the start of the capture.
fn moment(time: Time, start: Time) -> String {
    after(time, start)
}

impl ExplainedError {
    fn text(&self, start: Time) -> String {
        let mut text = head(&self.error);
        if self.ends.is_empty() {
            let _ = writeln!(text, "   packets    {}", nothing(&self.error));
            return text;
        }
        let found = match self.by {
            By::QueuePair => "found by the number of the queue pair".to_owned(),
            By::Addresses => format!("found by both addresses: {}", unnumbered(&self.error)),
            By::Address => format!("found by one address: {}", unnumbered(&self.error)),
            By::Nothing => {
                "found by its end alone: the line names no address, and no queue pair of the capture"
                    .to_owned()
            }
        };
        let all = self.ends.len() + self.others;
        let which = match (self.by, all) {
            (By::QueuePair, _) | (By::Addresses | By::Address, 1) => found,
            _ => format!(
                "{found}; {} of {all} connections are shown, those that end as the status says first",
                self.ends.len()
            ),
        };
        let _ = writeln!(text, "   packets    {which}");
        for end in &self.ends {
            text.push_str(&lines(&self.error, end, start));
        }
        text
    }

    fn document(&self) -> Value {
        let error = &self.error;
        let ends: Vec<Value> = self.ends.iter().map(|end| document(error, end)).collect();
        let mut values = error_document(error);
        values["found_by"] = json!(match self.by {
            By::QueuePair => Some("queue_pair"),
            By::Addresses => Some("addresses"),
            By::Address => Some("address"),
            By::Nothing => None,
        });
        values["connections"] = json!(ends);
        values["connections_left_out"] = json!(self.others);
        values
    }
}

/// Why no queue pair told the connection.
fn unnumbered(error: &JobError) -> &'static str {
    if error.queue_pair.or(error.remote_queue_pair).is_some() {
        "no captured connection is known to have the line's queue pair"
    } else {
        "the line has no queue pair"
    }
}

/// The status and who reports it.
fn head(error: &JobError) -> String {
    let mut text = format!(" {}", clean(&error.status));
    if let Some(number) = error.number {
        let _ = write!(text, " ({number})");
    }
    if let Some(code) = error.vendor_error {
        let _ = write!(text, ", vendor error {code} ({code:#x})");
    }
    if let Some(rank) = error.rank {
        let _ = write!(text, ", reported by rank {rank}");
    }
    if !error.place.is_empty() {
        let _ = write!(text, ", {}", clean(&error.place));
    }
    if !error.program.is_empty() {
        let _ = write!(text, ", by {}", error.program);
    }
    let _ = writeln!(text, "\n   means      {}", error.meaning);
    let named = named(error);
    if !named.is_empty() {
        let _ = writeln!(text, "   names      {}", named.join(", "));
    }
    text
}

/// The names in the line: both sides, and the adapter.
fn named(error: &JobError) -> Vec<String> {
    let side = |address: Option<roce_model::Address>, number: Option<u32>| {
        let number = number.map(|number| format!("QP {number:#x}"));
        let address = address.map(|address| address.to_string());
        [address, number]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join(" ")
    };
    let own = side(error.local, error.queue_pair);
    let other = side(error.remote.or(error.peer), error.remote_queue_pair);
    let adapter = error.adapter.as_deref().unwrap_or_default();
    [
        ("own", own),
        ("other", other),
        ("adapter", clean(adapter).into_owned()),
    ]
    .into_iter()
    .filter(|(_, value)| !value.is_empty())
    .map(|(name, value)| format!("{name} {value}"))
    .collect()
}

/// An error alone, without a capture.
pub fn error_text(error: &JobError) -> String {
    head(error)
}

/// An error alone as a document.
pub fn error_document(error: &JobError) -> Value {
    json!({
        "place": error.place,
        "program": error.program,
        "status": error.status,
        "status_number": error.number,
        "vendor_error": error.vendor_error,
        "meaning": error.meaning,
        "rank": error.rank,
        "local": error.local.map(|address| address.to_string()),
        "remote": error.remote.map(|address| address.to_string()),
        "peer": error.peer.map(|address| address.to_string()),
        "adapter": error.adapter,
        "queue_pair": error.queue_pair,
        "remote_queue_pair": error.remote_queue_pair,
    })
}

/// Why there is no connection.
fn nothing(error: &JobError) -> String {
    match (error.local, error.remote) {
        (Some(local), Some(remote)) => {
            format!(
                "the capture has none between {local} and {remote}: it was taken elsewhere, or at another time"
            )
        }
        (Some(one), None) | (None, Some(one)) => format!("the capture has none of {one}"),
        (None, None) => "no connection of the capture is known to be it: none ended so".to_owned(),
    }
}

fn lines(error: &JobError, end: &End, start: Time) -> String {
    let mut text = String::new();
    let mut line = |title: &str, words: String| {
        let _ = writeln!(text, "   {title:<10} {words}");
    };
    let at = |time: Time| moment(time, start);
    let ranks = end
        .ranks
        .as_ref()
        .map(|ranks| format!(" [{ranks}]"))
        .unwrap_or_default();
    let own = end
        .queue_pair
        .map(|number| format!(", answers to QP {number:#x}"));
    line(
        "connection",
        format!("{}{}{ranks}", end.name, own.unwrap_or_default()),
    );
    match (end.packets, end.last_sent) {
        (Some(packets), Some(last)) => {
            let psn = end
                .last_psn
                .map(|psn| format!(", highest PSN {psn}"))
                .unwrap_or_default();
            let place = end
                .vantage
                .map(|vantage| format!("; the tap is at the {vantage} side"))
                .unwrap_or_default();
            let place = place.replace("at the between side", "between the hosts");
            line(
                "sent",
                format!(
                    "{} packets, the last one at {}{psn}{place}",
                    count(packets),
                    at(last)
                ),
            );
        }
        _ => line(
            "sent",
            "no packet of the side that reports the error was captured".to_owned(),
        ),
    }
    line("answered", answered(end, &at));
    if let Some(words) = retried(end, start) {
        line("retries", words);
    }
    if let Some((time, syndrome)) = end.last_nak {
        let kind = nak(syndrome);
        line(
            "NAKs",
            format!("{}, the last one at {}: {kind}", count(end.naks), at(time)),
        );
    }
    if let Some((time, timer)) = end.last_rnr {
        line(
            "RNR NAKs",
            format!(
                "{}, the last one at {}: wait {}",
                count(end.rnr_naks),
                at(time),
                Span(timer)
            ),
        );
    }
    if let Some(silence) = end.silence() {
        let words = if silence.0 < 1_000_000 {
            "the capture ends with it: what followed was not captured".to_owned()
        } else {
            format!("nothing more of this connection for {silence}, until the capture ends")
        };
        line("then", words);
    }
    line("shown", shown(error, end));
    line("next", next(error, end).to_owned());
    text
}

fn answered(end: &End, at: &dyn Fn(Time) -> String) -> String {
    let mut words = match (end.last_answer, end.unanswered()) {
        (Some(last), Some(time)) => format!(
            "{} packets, the last one at {}, {time} before the sender's last one",
            count(end.answers),
            at(last)
        ),
        (Some(last), None) => format!(
            "{} packets, the last one at {}, not before the sender's last one",
            count(end.answers),
            at(last)
        ),
        (None, _) if end.is_paired => "nothing".to_owned(),
        (None, _) => "no packet of the peer on this connection is known in the capture".to_owned(),
    };
    if let Some(other) = end.peer_elsewhere {
        let later = end.last_answer.is_none_or(|answer| other > answer);
        if later {
            let _ = write!(
                words,
                "; its address sent on other queue pairs until {}",
                at(other)
            );
        } else {
            let _ = write!(
                words,
                "; on other queue pairs its address sent nothing later than {}",
                at(other)
            );
        }
    }
    words
}

fn retried(end: &End, start: Time) -> Option<String> {
    let retries = &end.retries;
    if retries.runs == 0 {
        return (end.retransmitted > 0).then(|| {
            format!(
                "none after the last answer; {} packets were retransmitted before",
                count(end.retransmitted)
            )
        });
    }
    let times: Vec<String> = retries
        .times
        .iter()
        .take(SHOWN)
        .map(|time| moment(*time, start))
        .collect();
    let more = retries.times.len().saturating_sub(SHOWN);
    let more = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    let mut words = format!(
        "{} without an answer, {} of them by timeout: {}{more}",
        count(retries.runs),
        count(retries.by_timeout),
        times.join(", ")
    );
    if let (Some(interval), Some((lowest, highest))) = (retries.interval, retries.timeouts) {
        let _ = write!(
            words,
            "; about {interval} apart, which fits a timeout setting of {lowest} to {highest} (4.096 us x 2^N, waited for up to four times)"
        );
    }
    Some(words)
}

/// The meaning of a NAK's syndrome.
fn nak(syndrome: u64) -> &'static str {
    let syndrome = u8::try_from(syndrome).unwrap_or(u8::MAX);
    match Aeth([syndrome, 0, 0, 0]).kind() {
        AethKind::Nak(Nak::PsnSequenceError) => "PSN sequence error, a packet was missing",
        AethKind::Nak(reason) => reason.name(),
        _ => "a code that is not known",
    }
}

/// Conclusion from the packets for the status, and no more.
fn shown(error: &JobError, end: &End) -> String {
    let lossy = if end.lost_records > 0 {
        format!(
            ". The capture lost {} records, so that packets can be missing here",
            count(end.lost_records)
        )
    } else {
        String::new()
    };
    let words = match error.number.or_else(|| shown_status(end)) {
        Some(12) if !end.is_paired && is_unanswered(end) => {
            "the sender sent its request again and again after a timer: no answer reached it".to_owned()
        }
        Some(12) if !end.is_paired => {
            "only one direction of the connection is known, so that nothing can be said about answers"
                .to_owned()
        }
        Some(12) => match (end.unanswered(), end.retries.runs) {
            (Some(time), runs) if runs > 0 => {
                let where_ = match end.vantage {
                    Some("sender") => "they left the sender",
                    Some("receiver") => "they came as far as the receiver's side",
                    _ => "they passed the tap",
                };
                format!(
                    "the sender retransmitted {runs} times over {time} and nothing came back: {where_}, and no answer passed the tap"
                )
            }
            (Some(time), _) => format!(
                "the sender's last packets had no answer for {time}, and no retransmission passed the tap: they were lost before it, or the capture ends too early"
            ),
            (None, _) => {
                "the peer has answered as far as the capture goes: the end that the line reports is not in it"
                    .to_owned()
            }
        },
        Some(13) if end.rnr_naks > 0 => format!(
            "the peer refused {} times because it had no receive buffer",
            count(end.rnr_naks)
        ),
        Some(13) => {
            "no RNR NAK passed the tap: the end that the line reports is not in the capture".to_owned()
        }
        Some(9..=11) => match end.last_nak {
            Some((_, syndrome @ 0x61..=0x64)) => format!("the peer refused a request: {}", nak(syndrome)),
            _ => "no NAK with an error passed the tap: the end that the line reports is not in the capture"
                .to_owned(),
        },
        Some(5) => {
            "a flushed request is the consequence of an earlier error of the same queue pair".to_owned()
        }
        Some(4) => {
            "this is an error of the adapter that reports it with its own memory; packets do not show it"
                .to_owned()
        }
        _ => "the status is about the side that reports it; packets do not show its cause".to_owned(),
    };
    format!("{words}{lossy}")
}

/// The status that would follow from the end of a connection, where a line has none.
fn shown_status(end: &End) -> Option<u32> {
    let outcome = end.outcome?;
    [12, 13, 10]
        .into_iter()
        .find(|status| outcome.explains(*status) == Some(true))
}

/// True if requests were repeated and nobody answered, which the requester alone shows.
fn is_unanswered(end: &End) -> bool {
    matches!(
        end.outcome,
        Some(EndKind::NeverAnswered | EndKind::RetriesUnanswered)
    )
}

/// The next step.
fn next(error: &JobError, end: &End) -> &'static str {
    let is_alive = end
        .peer_elsewhere
        .is_some_and(|other| end.last_answer.is_none_or(|answer| other > answer));
    match error.number.or_else(|| shown_status(end)) {
        Some(12) => match (
            is_unanswered(end) || end.is_paired && end.unanswered().is_some(),
            is_alive,
            end.vantage,
        ) {
            (false, _, _) => "capture both ends of this connection until the error is reported",
            (true, true, _) => {
                "the peer's address still sent on other queue pairs: look for this path's drops (switch counters, `fabric counters`), and \
                 for the peer's queue pair: its process may have ended, or closed it"
            }
            (true, false, Some("receiver")) => {
                "look at the peer: its adapter, its process, and its pauses (`doctor`, `fabric pauses`)"
            }
            (true, false, _) => {
                "look for drops and pauses between the hosts (`fabric counters`, `fabric pauses`) and for the peer's link (`doctor`); a capture \
                 at the peer tells whether the packets came"
            }
        },
        Some(13) => {
            "look why the receiver posts no buffers: its process stands still, or waits for another rank"
        }
        Some(9..=11) => {
            "look at the peer's log: its memory was freed or never registered for this access, or versions differ"
        }
        Some(5) => "explain the first error that this queue pair reported, not this one",
        Some(4) => "check memlock, IOMMU and GPUDirect of the host that reports it (`doctor`)",
        _ => "look at the log of the host that reports it (`dmesg`), and at the first error of the job",
    }
}

fn document(error: &JobError, end: &End) -> Value {
    let retries = &end.retries;
    json!({
        "flow": end.name,
        "ranks": end.ranks,
        "queue_pair": end.queue_pair,
        "vantage": end.vantage,
        "packets": end.packets,
        "payload_bytes": end.packets.map(|_| end.payload_bytes),
        "last_psn": end.last_psn,
        "last_sent_ns": end.last_sent.map(|time| time.0),
        "answers": end.answers,
        "last_answer_ns": end.last_answer.map(|time| time.0),
        "peer_elsewhere_ns": end.peer_elsewhere.map(|time| time.0),
        "retransmission_runs": retries.runs,
        "runs_timeout": retries.by_timeout,
        "run_times_ns": retries.times.iter().map(|time| time.0).collect::<Vec<_>>(),
        "run_interval_ns": retries.interval.map(|time| time.0),
        "timeout_settings": retries.timeouts.map(|(lowest, highest)| [lowest, highest]),
        "naks": end.naks,
        "last_nak_ns": end.last_nak.map(|(time, _)| time.0),
        "last_nak_syndrome": end.last_nak.map(|(_, syndrome)| syndrome),
        "rnr_naks": end.rnr_naks,
        "last_rnr_nak_ns": end.last_rnr.map(|(time, _)| time.0),
        "silence_ns": end.silence().map(|time| time.0),
        "shown": shown(error, end),
        "next_step": next(error, end),
    })
}
