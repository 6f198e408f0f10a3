//! The finding about connections that a job's own log reports as failed.

use std::collections::HashMap;

use roce_model::{
    Address, Confidence, EndKind, EndRow, Evidence, FindingRow, FlowId, JobError, JobLog, Severity, TapId,
};

use super::super::directory::Directory;
use super::super::numbers::counted;
use super::rule::{Context, FindingOf as _, Needs, Rule};
use super::worst::Worst;

/// Longest place of an error that is shown.
const MAX_PLACE: usize = 200;

pub(super) const COMPLETION: Rule = Rule {
    id: "nccl.completion_error",
    title: "a log of the job reports failed requests",
    meaning: "A queue pair of the job ended with an error, which ends its communicator. The status says where to look first: no answer \
              (retry exceeded), a receiver without buffers, a refusal by the peer, or the own memory.",
    method: "Lines of NCCL, UCX, libfabric, MPI, perftest, the kernel and others that report a failed request, each with the captured flow of its \
             queue pair, or with the connection between its addresses that ended as its status says (table `ends`). Where none did, no flow is \
             named. Flushed requests are left out: they follow another error.",
    source: "libibverbs, enum ibv_wc_status; the sources of these programs, such as NVIDIA/nccl, src/transport/net_ib.cc.",
    thresholds: &[],
    severity: Severity::Critical,
    confidence: "high: the log says it",
    needs: Needs::Any,
    ..Rule::TALLIED
};

/// Flows by their ends.
struct Flows<'a> {
    to_queue_pair: HashMap<(Address, u32), (TapId, FlowId)>,
    /// Connections that did not end in an orderly way.
    ends: Vec<&'a EndRow>,
}

impl<'a> Flows<'a> {
    fn new(directory: &Directory, ends: &'a [EndRow]) -> Self {
        let counted = directory.flows().filter(|(.., party)| party.counted);
        let to_queue_pair =
            counted.map(|(tap, flow, party)| ((party.destination, party.qpn().value()), (tap, flow)));
        Self {
            to_queue_pair: to_queue_pair.collect(),
            ends: ends.iter().filter(|row| row.outcome != EndKind::Closed).collect(),
        }
    }

    /// The flow from the side that reports an error.
    fn of(&self, error: &JobError, directory: &Directory) -> Option<String> {
        let own = error.local.zip(error.queue_pair);
        let answers = own.and_then(|key| self.to_queue_pair.get(&key));
        let sent = answers.and_then(|(tap, flow)| Some((*tap, directory.party(*tap, *flow)?.peer?)));
        let to_other = error.remote.zip(error.remote_queue_pair);
        let to_other = to_other.and_then(|key| self.to_queue_pair.get(&key)).copied();
        let (tap, flow) = sent.or(to_other).or_else(|| self.ended_so(error))?;
        Some(directory.name(tap, flow))
    }
}

impl Flows<'_> {
    /// The flow of a connection that ended as the status of an error says: the first between both addresses, or the only one where the error
    /// does not name both.
    fn ended_so(&self, error: &JobError) -> Option<(TapId, FlowId)> {
        let names =
            |address: Option<Address>, of_row: Address| address.is_none_or(|address| address == of_row);
        let mut fitting = self.ends.iter().filter(|row| {
            let ends_so = error.number.and_then(|status| row.outcome.explains(status));
            ends_so == Some(true) && names(error.local, row.source) && names(error.remote, row.destination)
        });
        let first = fitting.next()?;
        let is_sure =
            error.local.and(error.remote).is_some() || fitting.all(|row| row.flow_id == first.flow_id);
        is_sure.then_some((first.tap, first.flow_id))
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
            counted(worst.all(), "error"),
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
