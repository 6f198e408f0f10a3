//! Findings about receivers that refuse: no buffers, and errors that end a connection.

use std::collections::{BTreeMap, HashMap};

use roce_model::{
    Address, Confidence, EpisodeKind, EventKind, EventRow, Evidence, FindingRow, FlowId, FlowRow, RnrTimer,
    Severity, Span, TapId, Time,
};

use super::super::directory::name_of;
use super::super::numbers::{counted, note_first};
use super::alone::Facts;
use super::rule::{Context, FindingOf as _, Needs, Rule};
use super::worst::Worst;

/// Flows of receivers that are kept at most, at each tap.
const MAX_FLOWS: usize = 1 << 16;

pub(super) const RNR: Rule = Rule {
    id: "rnr",
    title: "receivers had no buffer posted",
    meaning: "A SEND (or a WRITE with immediate) came while the receive queue was empty: the sender has to wait for the \
              time that the NAK names and send everything again from there on.",
    method: "RNR NAKs, by the host that sent them, with the sum of the times that they name, and the codes of these times.",
    source: "IBTA 9.7.5.2.8 (RNR NAK); enum ib_rnr_timeout in Linux include/rdma/ib_verbs.h (its timer).",
    thresholds: &[],
    severity: Severity::Warning,
    confidence: "high: each NAK says it",
    needs: Needs::Any,
    ..Rule::TALLIED
};

pub(super) const NAK_FATAL: Rule = Rule {
    id: "nak.fatal",
    title: "connections ended with an error",
    meaning: "The responder refused a request: a wrong opcode or length, a key or an address that is not allowed, or its own \
              failure. The queue pair of the requester goes to the error state; its work is lost.",
    method: "NAKs with the codes invalid request, remote access error, remote operational error or invalid RD request.",
    source: "IBTA 9.7.5.2 (NAK codes); check_ack in Linux drivers/infiniband/sw/rxe/rxe_comp.c (completion errors).",
    thresholds: &[],
    severity: Severity::Critical,
    confidence: "high: each NAK says it",
    needs: Needs::Any,
    ..Rule::TALLIED
};

/// Kinds of fatal NAKs: invalid request, remote access, remote operational, other.
type Codes = [u64; 4];

/// Requests of one connection that a receiver refused, as one tap shows it.
#[derive(Clone, Debug)]
struct RefusedRequests {
    receiver: Address,
    name: String,
    rnr: u64,
    timers_ns: u64,
    codes: Codes,
    /// The tap's rows of this flow count.
    counted: bool,
}

impl RefusedRequests {
    fn fatal(&self) -> u64 {
        self.codes.into_iter().fold(0, u64::saturating_add)
    }
}

/// A NAK at one time.
#[derive(Clone, Copy, Debug)]
enum Refusal {
    /// The amount is the timer in ns.
    Rnr,
    /// The place of its code.
    Fatal(usize),
}

#[derive(Clone, Debug, Default)]
pub(super) struct ReceiverTally {
    flows: BTreeMap<(FlowId, TapId), RefusedRequests>,
    /// Timers of RNR NAKs, by flow and tap.
    timers: HashMap<(FlowId, TapId), u64, foldhash::fast::RandomState>,
    refusals: Facts<Refusal>,
    /// How long senders stood still because of RNR NAKs.
    wait_ns: u64,
    /// The shortest and the longest timer, in ns.
    timer_range: Option<(u64, u64)>,
    first_fatal: Option<Time>,
}

impl ReceiverTally {
    pub(super) fn event(&mut self, event: &EventRow) {
        let value = event.value.unwrap_or_default();
        let code = (event.kind == EventKind::Nak).then(|| code_of(value)).flatten();
        let is_rnr = event.kind == EventKind::RnrNak;
        if code.is_some() {
            note_first(&mut self.first_fatal, event.time);
        }
        let Some(flow) = event.flow_id.filter(|_| is_rnr || code.is_some()) else {
            return;
        };
        let key = (flow, event.tap);
        let refusal = code.map_or(Refusal::Rnr, Refusal::Fatal);
        let amount = if is_rnr { value } else { 1 };
        if is_rnr {
            let (least, most) = self.timer_range.unwrap_or((value, value));
            self.timer_range = Some((least.min(value), most.max(value)));
        }
        self.refusals.note(key, event.time, refusal, amount);
        if is_rnr && (self.timers.len() < MAX_FLOWS || self.timers.contains_key(&key)) {
            let sum = self.timers.entry(key).or_default();
            *sum = sum.saturating_add(value);
        }
    }

    /// A flow at any tap.
    pub(super) fn flow(&mut self, row: &FlowRow) {
        if row.counted {
            self.wait_ns = self.wait_ns.saturating_add(row.time_rnr_ns.unwrap_or_default());
        }
        let codes = [
            row.nak_invalid_request,
            row.nak_remote_access,
            row.nak_remote_operational,
            row.nak_other,
        ];
        let key = (row.flow_id, row.tap);
        let has_room = self.flows.len() < MAX_FLOWS || self.flows.contains_key(&key);
        if row.rnr_naks == 0 && codes == Codes::default() || !has_room {
            return;
        }
        let refused = self.flows.entry(key).or_insert_with(|| RefusedRequests {
            receiver: row.source,
            name: name_of(row),
            rnr: 0,
            timers_ns: 0,
            codes: Codes::default(),
            counted: false,
        });
        refused.counted |= row.counted;
        refused.rnr = refused.rnr.saturating_add(row.rnr_naks);
        for (sum, more) in refused.codes.iter_mut().zip(codes) {
            *sum = sum.saturating_add(more);
        }
    }

    /// Refused requests, each once: those of the taps whose rows count, and those that others saw while these
    /// did not record.
    fn refused(&self, context: &Context<'_>) -> Vec<RefusedRequests> {
        let counts_at = |flow, tap| {
            self.flows
                .get(&(flow, tap))
                .is_some_and(|refused| refused.counted)
        };
        let counted = self.flows.iter().filter(|(_, refused)| refused.counted);
        let mut all: BTreeMap<(FlowId, TapId), RefusedRequests> = counted
            .map(|(key, refused)| {
                let timers_ns = self.timers.get(key).copied().unwrap_or_default();
                let refused = RefusedRequests {
                    timers_ns,
                    ..refused.clone()
                };
                (*key, refused)
            })
            .collect();
        self.refusals
            .each(context.run, counts_at, |flow, tap, refusal, amount| {
                let Some(known) = self.flows.get(&(flow, tap)) else {
                    return;
                };
                let refused = all.entry((flow, tap)).or_insert_with(|| RefusedRequests {
                    rnr: 0,
                    timers_ns: 0,
                    codes: Codes::default(),
                    ..known.clone()
                });
                match refusal {
                    Refusal::Rnr => {
                        refused.rnr += 1;
                        refused.timers_ns = refused.timers_ns.saturating_add(amount);
                    }
                    Refusal::Fatal(code) => {
                        if let Some(sum) = refused.codes.get_mut(code) {
                            *sum += amount;
                        }
                    }
                }
            });
        all.into_values().collect()
    }

    pub(super) fn rnr(&self, context: &Context<'_>) -> Option<FindingRow> {
        let refused = self.refused(context);
        let sum = |of: fn(&RefusedRequests) -> u64| refused.iter().map(of).fold(0, u64::saturating_add);
        let (naks, timers_ns) = (sum(|flow| flow.rnr), sum(|flow| flow.timers_ns));
        if naks == 0 {
            return None;
        }
        let mut receivers: BTreeMap<Address, u64> = BTreeMap::new();
        for flow in refused.iter().filter(|flow| flow.rnr > 0) {
            let sum = receivers.entry(flow.receiver).or_default();
            *sum = sum.saturating_add(flow.rnr);
        }
        let mut worst = Worst::default();
        for (receiver, naks) in receivers {
            worst.add(naks, || receiver.to_string());
        }
        let mut evidence = Evidence::default();
        evidence
            .count("rnr_naks", naks)
            .count("receivers", worst.all())
            .count("timers_ns", timers_ns)
            .count("stood_still_ns", self.wait_ns)
            .text("worst", worst.list());
        let timers = self
            .timer_range
            .map_or_else(String::new, |(least, most)| match timer(least) {
                _ if least < most => format!(" (from {} to {})", timer(least), timer(most)),
                each => format!(" (each {each})"),
            });
        let waited = match self.wait_ns {
            0 => String::new(),
            wait => format!(", senders stood still for {}", Span(wait)),
        };
        Some(RNR.finding(
            (Severity::Warning, Confidence::High),
            format!(
                "{} of {}: no receive buffer was posted; their timers add up to {}{timers}{waited}: {}",
                counted(naks, "RNR NAK"),
                counted(worst.all(), "receiver"),
                Span(timers_ns),
                worst.names()
            ),
            evidence,
            "At {receivers}, check why the application posts receives too late or too few, and the depth of its receive queue.",
            context.first(&[EpisodeKind::Rnr]),
        ))
    }

    pub(super) fn fatal(&self, context: &Context<'_>) -> Option<FindingRow> {
        let mut fatal = Worst::default();
        let mut codes = Codes::default();
        for flow in self.refused(context).iter().filter(|flow| flow.fatal() > 0) {
            fatal.add(flow.fatal(), || flow.name.clone());
            for (sum, more) in codes.iter_mut().zip(flow.codes) {
                *sum = sum.saturating_add(more);
            }
        }
        if fatal.sum() == 0 {
            return None;
        }
        let [invalid, access, operational, other] = codes;
        let mut evidence = Evidence::default();
        evidence
            .count("naks", fatal.sum())
            .count("invalid_request", invalid)
            .count("remote_access", access)
            .count("remote_operational", operational)
            .count("other", other)
            .text("from", fatal.list());
        let kinds = [
            (invalid, "invalid request"),
            (access, "remote access error"),
            (operational, "remote operational error"),
            (other, "another error"),
        ];
        let kinds: Vec<String> = kinds
            .into_iter()
            .filter(|(naks, _)| *naks > 0)
            .map(|(naks, name)| format!("{name}: {naks}"))
            .collect();
        Some(NAK_FATAL.finding(
            (Severity::Critical, Confidence::High),
            format!(
                "{} ({}) ended connections: {}",
                counted(fatal.sum(), "fatal NAK"),
                kinds.join(", "),
                fatal.names()
            ),
            evidence,
            "Look at the request before the NAK (its PSN is in the events): its rkey, address and length against what {receivers} registered; and at the completion errors of the application at {senders}.",
            self.first_fatal,
        ))
    }
}

/// A timer of an RNR NAK, and the code that stands for it (IBTA 9.7.5.2.8, table 45).
fn timer(nanos: u64) -> String {
    let code = (0..32).find(|code| RnrTimer::new(*code).nanos() == nanos);
    code.map_or_else(
        || Span(nanos).to_string(),
        |code| format!("{}, code {code}", Span(nanos)),
    )
}

/// Place of the code of a NAK that means an error: every one but a PSN sequence error.
fn code_of(syndrome: u64) -> Option<usize> {
    match syndrome {
        0x61 => Some(0),
        0x62 => Some(1),
        0x63 => Some(2),
        0x64 => Some(3),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_have_the_codes_of_the_standard() {
        // IBTA table 45: 0 is 655.36 ms, 1 is 0.01 ms, 12 is 0.64 ms, 31 is 491.52 ms.
        for (nanos, text) in [
            (655_360_000, "655 ms, code 0"),
            (10_000, "10.0 us, code 1"),
            (640_000, "640 us, code 12"),
            (491_520_000, "492 ms, code 31"),
            (700, "700 ns"),
        ] {
            assert_eq!(timer(nanos), text);
        }
    }
}
