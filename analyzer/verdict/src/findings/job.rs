//! The finding about connections that a job's own log reports as failed.

use std::collections::HashMap;

use roce_model::{
    Address, Confidence, EndKind, EndRow, Evidence, FindingRow, FlowId, JobError, JobLog, Severity, TapId,
};

use super::super::directory::Directory;
use super::super::numbers::counted;
use super::rule::{Context, FindingOf as _, Rule};
use super::worst::Worst;

/// Longest place of an error that is shown.
const MAX_PLACE: usize = 200;

pub(super) const COMPLETION: Rule = Rule {
    id: "nccl.completion_error",
    title: "the job's log reports completions with an error",
    meaning: "A queue pair of the job ended with an error, which ends its communicator. The status says where to look first: no answer \
              (retry exceeded), a receiver without buffers, a refusal by the peer, or the own memory.",
    method: "Lines of NCCL's log with 'Got completion', each with the captured flow of its queue pair, or with the connection between its \
             addresses that ended as its status says (table `ends`). Where none did, no flow is named. Flushed requests are left out: they \
             follow another error.",
    source: "NVIDIA/nccl, src/transport/net_ib.cc (its lines); libibverbs, enum ibv_wc_status.",
    thresholds: &[],
    severity: Severity::Critical,
    confidence: "high: the log says it",
    ..Rule::TALLIED
};

/// Flows by their ends.
struct Flows<'a> {
    to_queue_pair: HashMap<(Address, u32), (TapId, FlowId)>,
    ends: HashMap<(Address, Address), Vec<&'a EndRow>>,
}

impl<'a> Flows<'a> {
    fn new(directory: &Directory, ends: &'a [EndRow]) -> Self {
        let counted = directory.flows().filter(|(.., party)| party.counted);
        let to_queue_pair =
            counted.map(|(tap, flow, party)| ((party.destination, party.qpn().value()), (tap, flow)));
        let mut flows = Self {
            to_queue_pair: to_queue_pair.collect(),
            ends: HashMap::new(),
        };
        for row in ends.iter().filter(|row| row.outcome != EndKind::Closed) {
            let key = (row.source, row.destination);
            flows.ends.entry(key).or_default().push(row);
        }
        flows
    }

    /// The flow from the side that reports an error.
    fn of(&self, error: &JobError, directory: &Directory) -> Option<String> {
        let own = error.local.zip(error.queue_pair);
        let answers = own.and_then(|key| self.to_queue_pair.get(&key));
        let sent = answers.and_then(|(tap, flow)| Some((*tap, directory.party(*tap, *flow)?.peer?)));
        let ends = error.local.zip(error.remote).and_then(|key| self.ends.get(&key));
        let fits = |row: &&&EndRow| {
            error
                .number
                .and_then(|status| row.outcome.explains(status))
                .unwrap_or_default()
        };
        let fitting = ends.and_then(|rows| rows.iter().find(fits));
        let (tap, flow) = sent.or(fitting.map(|row| (row.tap, row.flow_id)))?;
        Some(directory.name(tap, flow))
    }
}

pub(super) fn completion(context: &Context<'_>, job: &JobLog) -> Option<FindingRow> {
    let first: Vec<&JobError> = job.errors.iter().filter(|error| !error.is_consequence).collect();
    let earliest = first.first()?;
    let flows = Flows::new(context.directory, &context.run.ends);
    let mut worst = Worst::default();
    let (mut captured, mut named) = (0, None);
    for error in &first {
        let flow = flows.of(error, context.directory);
        captured += u64::from(flow.is_some());
        let flow = flow.unwrap_or_else(|| "no captured connection ended so".to_owned());
        named.get_or_insert_with(|| flow.clone());
        worst.add(1, || format!("{} {}: {flow}", error.status, short(&error.place)));
    }
    let by = earliest
        .rank
        .map(|rank| format!(" of rank {rank}"))
        .unwrap_or_default();
    let mut evidence = Evidence::default();
    evidence
        .count("errors", worst.all())
        .count("captured", captured)
        .count("flushed", (job.errors.len() - first.len()) as u64)
        .text("first", short(&earliest.place))
        .text("status", earliest.status.clone())
        .text("errors_and_flows", worst.names());
    Some(COMPLETION.finding(
        (Severity::Critical, Confidence::High),
        format!(
            "{} in the job's log; the first: {}{by} ({}): {}: {}",
            counted(worst.all(), "completion error"),
            earliest.status,
            short(&earliest.place),
            named.unwrap_or_default(),
            earliest.meaning
        ),
        evidence,
        "`explain LINE CAPTURE` with the line of the log says what the packets show of the end of this connection.",
        None,
    ))
}

/// The end of a place: the file's name and the line.
fn short(place: &str) -> &str {
    let begin = place.len().saturating_sub(MAX_PLACE);
    let begin = (begin..place.len()).find(|at| place.is_char_boundary(*at));
    begin.and_then(|begin| place.get(begin..)).unwrap_or_default()
}
