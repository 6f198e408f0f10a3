//! Verdicts of the rules of MRC about connections and paths, and the finding that sums them up.

use roce_model::{Confidence, Evidence, FindingRow, MrcConnectionRow, MrcPathRow, Span, Time};

use crate::findings::rule::{Context, FindingOf as _, Rule};

/// Hosts that a finding names, at most.
pub(super) const MAX_HOSTS: usize = 8;

/// One connection with its paths.
#[derive(Clone, Copy)]
pub(super) struct MrcConnection<'a> {
    pub(super) row: &'a MrcConnectionRow,
    pub(super) paths: &'a [MrcPathRow],
}

/// A verdict about one connection, or about one of its paths.
pub(super) struct Hit<'a> {
    pub(super) of: MrcConnection<'a>,
    /// The one with the highest weight is named.
    pub(super) weight: u64,
    pub(super) price_ns: Option<u64>,
    /// The verdict in words, without its hosts.
    pub(super) what: String,
    pub(super) evidence: Evidence,
    pub(super) first: Time,
    pub(super) confidence: Confidence,
}

impl<'a> Hit<'a> {
    pub(super) fn new(of: MrcConnection<'a>, weight: u64, what: String) -> Self {
        Self {
            of,
            weight,
            price_ns: None,
            what,
            evidence: Evidence::default(),
            first: of.row.first_time,
            confidence: of.row.confidence,
        }
    }

    pub(super) fn waited(mut self, ns: u64) -> Self {
        self.price_ns = Some(ns);
        self
    }

    pub(super) fn with(mut self, name: &'static str, count: u64) -> Self {
        self.evidence.count(name, count);
        self
    }
}

/// The finding of a rule: the worst of what it found, and how many more there are.
pub(super) fn finding(rule: &'static Rule, hits: Vec<Hit<'_>>) -> Option<FindingRow> {
    let all = hits.len();
    let price = hits
        .iter()
        .filter_map(|hit| hit.price_ns)
        .reduce(u64::saturating_add);
    let first = hits.iter().map(|hit| hit.first).min();
    let mut victims: Vec<String> = Vec::new();
    for hit in &hits {
        let host = hit.of.row.requestor.to_string();
        if victims.len() < MAX_HOSTS && !victims.contains(&host) {
            victims.push(host);
        }
    }
    let worst = hits.into_iter().max_by_key(|hit| (hit.price_ns, hit.weight))?;
    let more = match all - 1 {
        0 => String::new(),
        more => format!("; {more} more"),
    };
    let waited = price.filter(|price| *price > 0);
    let cost = waited.map_or_else(String::new, |price| format!(", which took {}", Span(price)));
    let row = worst.of.row;
    let mut evidence = worst.evidence;
    evidence
        .text("requestor", row.requestor.to_string())
        .text("responder", row.responder.to_string())
        .text("transport", row.transport.name())
        .count("found", all as u64);
    match row.requestor_pdc {
        Some(pdc) => evidence.count("requestor_pdc", pdc.into()),
        None => evidence.count("responder_qpn", row.responder_qpn.unwrap_or_default().into()),
    };
    let mut finding = rule.finding(
        (rule.severity, worst.confidence),
        format!(
            "{} to {}: {}{cost}{more}",
            row.requestor, row.responder, worst.what
        ),
        evidence,
        rule.next,
        first,
    );
    finding.last_time = Some(row.last_time);
    finding.waited_ns = waited;
    finding.victims = victims.into_iter().collect();
    Some(finding)
}

/// The connections with their paths.
pub(super) fn connections<'a>(context: &Context<'a>) -> Vec<MrcConnection<'a>> {
    let paths = &context.run.mrc_paths;
    context
        .run
        .mrc_connections
        .iter()
        .map(|row| {
            let from = paths.partition_point(|path| path.connection < row.connection);
            let to = paths.partition_point(|path| path.connection <= row.connection);
            MrcConnection {
                row,
                paths: paths.get(from..to).unwrap_or_default(),
            }
        })
        .collect()
}
