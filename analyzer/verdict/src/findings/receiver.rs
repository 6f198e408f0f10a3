//! Findings about receivers that refuse: no buffers, and errors that end a connection.

use std::collections::HashMap;

use roce_model::{
    Address, Confidence, EpisodeKind, EventKind, EventRow, Evidence, FindingRow, FlowRow, Nanos, Severity,
};

use super::super::directory::name_of;
use super::super::numbers::counted;
use super::rule::{Context, Rule};
use super::worst::Worst;

/// Receivers that are kept at most.
const MAX_RECEIVERS: usize = 1 << 16;

pub(super) const RNR: Rule = Rule {
    id: "rnr",
    title: "receivers had no buffer posted",
    meaning: "A SEND (or a WRITE with immediate) came while the receive queue was empty: the sender has to wait for the \
              time that the NAK names and send everything again from there on.",
    method: "RNR NAKs, by the host that sent them, with the sum of the times that they name.",
    source: "IBTA 9.7.5.2.8 (RNR NAK); enum ib_rnr_timeout in Linux include/rdma/ib_verbs.h (its timer).",
    thresholds: &[],
    severity: Severity::Warning,
    otherwise: "",
    confidence: "high: each NAK says it",
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
    otherwise: "",
    confidence: "high: each NAK says it",
};

#[derive(Clone, Debug, Default)]
pub(super) struct ReceiverTally {
    rnr: u64,
    receivers: HashMap<Address, u64, foldhash::fast::RandomState>,
    timers_ns: u64,
    /// How long senders stood still because of them.
    wait_ns: u64,
    fatal: Worst,
    /// Invalid request, remote access, remote operational, other.
    codes: [u64; 4],
    first_fatal: Option<Nanos>,
}

impl ReceiverTally {
    pub(super) fn event(&mut self, event: &EventRow) {
        let value = event.value.unwrap_or_default();
        if event.kind == EventKind::RnrNak {
            self.timers_ns = self.timers_ns.saturating_add(value);
        }
        if event.kind == EventKind::Nak && is_fatal(value) {
            self.first_fatal = Some(self.first_fatal.map_or(event.time, |first| first.min(event.time)));
        }
    }

    pub(super) fn flow(&mut self, row: &FlowRow) {
        self.wait_ns = self.wait_ns.saturating_add(row.rnr_wait_ns);
        if row.rnr_naks > 0 {
            self.rnr = self.rnr.saturating_add(row.rnr_naks);
            if self.receivers.len() < MAX_RECEIVERS || self.receivers.contains_key(&row.source) {
                let sum = self.receivers.entry(row.source).or_default();
                *sum = sum.saturating_add(row.rnr_naks);
            }
        }
        let codes = [
            row.nak_invalid_request,
            row.nak_remote_access,
            row.nak_remote_operational,
            row.nak_other,
        ];
        let fatal = codes.into_iter().fold(0, u64::saturating_add);
        if fatal > 0 {
            self.fatal.add(fatal, || name_of(row));
            for (sum, more) in self.codes.iter_mut().zip(codes) {
                *sum = sum.saturating_add(more);
            }
        }
    }

    pub(super) fn rnr(&self, context: &Context<'_>) -> Option<FindingRow> {
        if self.rnr == 0 {
            return None;
        }
        let mut sorted: Vec<_> = self.receivers.iter().collect();
        sorted.sort_unstable();
        let mut worst = Worst::default();
        for (receiver, naks) in sorted {
            worst.add(*naks, || receiver.to_string());
        }
        let mut evidence = Evidence::default();
        evidence
            .count("rnr_naks", self.rnr)
            .count("receivers", worst.all())
            .count("timers_ns", self.timers_ns)
            .count("stood_still_ns", self.wait_ns)
            .text("worst", worst.list());
        let waited = match self.wait_ns {
            0 => String::new(),
            wait => format!(", senders stood still for {}", Nanos(wait)),
        };
        Some(RNR.finding(
            (Severity::Warning, Confidence::High),
            format!(
                "{} of {}: no receive buffer was posted; their timers add up to {}{waited}: {}",
                counted(self.rnr, "RNR NAK"),
                counted(worst.all(), "receiver"),
                Nanos(self.timers_ns),
                worst.names()
            ),
            evidence,
            "Check at the receiver why its application posts receives too late or too few, and the depth of its receive \
             queue.",
            context.first(&[EpisodeKind::Rnr]),
        ))
    }

    pub(super) fn fatal(&self) -> Option<FindingRow> {
        if self.fatal.sum() == 0 {
            return None;
        }
        let [invalid, access, operational, other] = self.codes;
        let mut evidence = Evidence::default();
        evidence
            .count("naks", self.fatal.sum())
            .count("invalid_request", invalid)
            .count("remote_access", access)
            .count("remote_operational", operational)
            .count("other", other)
            .text("from", self.fatal.list());
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
                counted(self.fatal.sum(), "fatal NAK"),
                kinds.join(", "),
                self.fatal.names()
            ),
            evidence,
            "Look at the request before the NAK (its PSN is in the events): its rkey, address and length against what the \
             responder registered; and at the completion errors of the application.",
            self.first_fatal,
        ))
    }
}

/// True if the syndrome of a NAK means an error: every code but a PSN sequence error.
fn is_fatal(syndrome: u64) -> bool {
    (0x61..=0x64).contains(&syndrome)
}
