//! Finished episodes as rows: addresses for hashes, and what brought them about in words, with how sure that is.

use std::borrow::Cow;
use std::collections::BTreeSet;

use roce_model::{Address, Confidence, EpisodeKind, EpisodeRow, FlowId};

use super::super::directory::{Directory, Party};
use super::super::numbers::{counted, percent, some};
use super::FinishedEpisode;
use super::facts::SilenceEnd;
use super::pauses::LINK;

/// Number of marked packets that is no accident.
const MARKS_FOR_SURE: u64 = 10;

/// An episode as a row, with the facts that findings need besides.
#[derive(Clone, Debug)]
pub(in super::super) struct Episode {
    pub(in super::super) row: EpisodeRow,
    pub(in super::super) facts: FinishedEpisode,
    /// True if totals take the flows' rows of this tap: another tap may have seen the same.
    pub(in super::super) counted: bool,
}

/// The rows of all episodes, numbered in their order.
pub(in super::super) fn tell(finished: Vec<FinishedEpisode>, directory: &Directory) -> Vec<Episode> {
    let number = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
    finished
        .into_iter()
        .enumerate()
        .map(|(at, facts)| Episode {
            counted: is_counted(&facts, directory),
            row: row(number(at), &facts, directory),
            facts,
        })
        .collect()
}

/// True if the rows of any of its flows count, or none is known.
fn is_counted(facts: &FinishedEpisode, directory: &Directory) -> bool {
    let flows = facts.aggressors.iter().map(|(flow, _)| flow).chain(&facts.named);
    let mut known = flows
        .filter_map(|flow| directory.party(facts.tap, *flow))
        .peekable();
    known.peek().is_none() || known.any(|party| party.counted)
}

fn row(episode: u32, facts: &FinishedEpisode, directory: &Directory) -> EpisodeRow {
    let destination = match (&facts.stall, facts.destination) {
        (Some(stall), _) => stall.destination,
        (None, hash) => hash.and_then(|hash| directory.host(hash)),
    };
    // RNR NAKs are carried by the flow back; the requests are its peer's.
    let of_request = |flow: &FlowId| {
        let peer = directory.party(facts.tap, *flow).and_then(|party| party.peer);
        peer.filter(|_| facts.kind == EpisodeKind::Rnr).unwrap_or(*flow)
    };
    let name = |flow: &FlowId| directory.name(facts.tap, of_request(flow));
    let slow: Vec<String> = facts.victims.iter().map(name).collect();
    let victims = match (slow.is_empty(), facts.kind) {
        (false, _) => some(&slow, slow.len(), facts.victims_all),
        // Where nobody was slower than the others, the way to the destination was too narrow for all.
        (true, EpisodeKind::Incast | EpisodeKind::Ecn) => {
            destination.map_or_else(String::new, |there| there.to_string())
        }
        (true, _) => hosts(&sources(facts, directory)),
    };
    let ids: Vec<String> = facts
        .named
        .iter()
        .map(|flow| of_request(flow).to_string())
        .collect();
    let (cause, confidence) = cause(facts, destination, directory);
    EpisodeRow {
        episode,
        tap: facts.tap,
        kind: facts.kind,
        start_time: facts.start,
        end_time: facts.end,
        destination,
        priority: facts.pause.map(|pause| pause.priority),
        flows: u32::try_from(facts.flows).unwrap_or(u32::MAX),
        flow_ids: ids.join(" ").into(),
        senders_max: facts.senders_max,
        data_packets: facts.sum.data_packets,
        ce: facts.sum.ce,
        ce_share_peak: facts.ce_share_peak,
        cnp: facts.sum.cnp,
        lost: facts.sum.lost,
        retransmitted_bytes: facts.sum.retransmitted_bytes,
        rnr_naks: facts.sum.rnr_naks,
        pause_ns: facts.pause_ns,
        jain: facts.jain,
        aggressors: aggressors(facts, directory),
        victims: victims.into(),
        cause: cause.into(),
        confidence,
    }
}

/// Hosts that are named of an episode, at most.
const NAMED_HOSTS: usize = 5;

/// The senders of the flows with signs, each once, in the order of their addresses.
fn sources(facts: &FinishedEpisode, directory: &Directory) -> Vec<Address> {
    let parties = facts
        .named
        .iter()
        .filter_map(|flow| directory.party(facts.tap, *flow));
    let sources: BTreeSet<Address> = parties.map(|party| party.source).collect();
    sources.into_iter().collect()
}

fn hosts(hosts: &[Address]) -> String {
    some(hosts, NAMED_HOSTS, hosts.len())
}

fn aggressors(facts: &FinishedEpisode, directory: &Directory) -> Cow<'static, str> {
    let overran = facts.incast_meanwhile || matches!(facts.kind, EpisodeKind::Incast | EpisodeKind::Ecn);
    if facts.aggressors.is_empty() && facts.senders > 1 && overran {
        return format!("{} alike", hosts(&sources(facts, directory))).into();
    }
    let each: Vec<String> = facts
        .aggressors
        .iter()
        .map(|(flow, share)| format!("{} ({})", directory.name(facts.tap, *flow), percent(*share)))
        .collect();
    each.join(", ").into()
}

fn cause(
    facts: &FinishedEpisode,
    destination: Option<Address>,
    directory: &Directory,
) -> (String, Confidence) {
    let there = destination.map_or_else(|| "one destination".to_owned(), |host| host.to_string());
    match facts.kind {
        EpisodeKind::Incast => incast(facts, &there),
        EpisodeKind::Ecn => ecn(facts, &there),
        EpisodeKind::Loss => loss(facts, &there, directory),
        EpisodeKind::Rnr => (format!("receiver {there} posts no buffers"), Confidence::High),
        EpisodeKind::Pause => pause(facts),
        EpisodeKind::Stall => stall(facts, directory),
    }
}

/// Certain when marks show it; CNPs, pauses or losses alone can have another cause on the path.
fn incast(facts: &FinishedEpisode, there: &str) -> (String, Confidence) {
    let confidence = match &facts.sum {
        sum if sum.ce >= MARKS_FOR_SURE => Confidence::High,
        sum if sum.ce > 0 || sum.cnp > 0 || sum.pause_ns > 0 => Confidence::Medium,
        _ => Confidence::Low,
    };
    (
        format!(
            "{} at once into {there}",
            counted(facts.senders_max.into(), "sender")
        ),
        confidence,
    )
}

fn ecn(facts: &FinishedEpisode, there: &str) -> (String, Confidence) {
    let who = match facts.senders_max {
        0 | 1 => format!("one sender is faster than the way to {there}"),
        senders => format!("{senders} senders share the way to {there}"),
    };
    if facts.is_thin && facts.sum.ce > 0 {
        (
            format!("packets to {there} are marked below a quarter of the link's speed: a low threshold"),
            Confidence::Medium,
        )
    } else if facts.sum.ce >= MARKS_FOR_SURE {
        (who, Confidence::High)
    } else if facts.sum.ce > 0 {
        (who, Confidence::Medium)
    } else {
        // The marks were made behind this tap.
        (
            format!("CNPs came back from {there}: the way behind this tap is congested"),
            Confidence::Medium,
        )
    }
}

/// Sure when all losses of its flows are proven, and the capture missed nothing of them: then those of this episode are. Doubtful when packets
/// of all its flows overtake each other or come twice, or are missing in the capture for the most part.
fn loss(facts: &FinishedEpisode, there: &str, directory: &Directory) -> (String, Confidence) {
    let meanwhile = if facts.incast_meanwhile {
        " while many senders sent there at once"
    } else {
        ""
    };
    if facts.sum.lost > 0 {
        let lost = counted(facts.sum.lost, "packet");
        let mut parties = facts.named.iter().map(|flow| directory.party(facts.tap, *flow));
        let is_disturbed =
            |party: &Party| party.coverage.is_sparse() || directory.is_way_disturbed(facts.tap, party);
        let is_proven = |party: &Party| {
            let is_certain = party.lost_behind == 0 && party.coverage.missed == 0;
            party.proven >= party.lost && is_certain && !is_disturbed(party)
        };
        let proven = parties.clone().all(|party| party.is_some_and(is_proven));
        let doubtful = parties.all(|party| party.is_some_and(is_disturbed));
        let are_known = !facts.named.is_empty() && facts.named.len() == facts.flows;
        let confidence = match (proven, doubtful) {
            (_, true) if are_known => Confidence::Low,
            (true, _) if are_known => Confidence::High,
            _ => Confidence::Medium,
        };
        return (
            format!("{lost} to {there} lost in the network{meanwhile}"),
            confidence,
        );
    }
    let requests = facts.named.iter().map(|flow| directory.party(facts.tap, *flow));
    let mut requests = requests.peekable();
    let lost_responses = |party: Option<&Party>| {
        let peer = party.and_then(|party| directory.party(facts.tap, party.peer?));
        peer.is_some_and(|peer| peer.lost > 0) && party.is_some_and(|party| party.lost == 0)
    };
    let what = if requests.peek().is_some() && requests.all(lost_responses) {
        format!("responses of {there} were lost{meanwhile}, and requested again")
    } else {
        format!("packets to {there} were retransmitted{meanwhile}; what was lost is not in the capture")
    };
    (what, Confidence::Medium)
}

fn pause(facts: &FinishedEpisode) -> (String, Confidence) {
    let Some(pause) = facts.pause else {
        return ("paused".to_owned(), Confidence::Low);
    };
    let what = if pause.priority == LINK {
        "802.3x pause of the whole link".to_owned()
    } else {
        format!("PFC pause of priority {}", pause.priority)
    };
    let from = pause
        .source
        .map_or_else(String::new, |source| format!(" from {source}"));
    let flows = match facts.flows {
        0 => String::new(),
        flows => format!(" while {} had that priority", counted(flows as u64, "flow")),
    };
    let confidence = if pause.total_ns.is_some() {
        Confidence::High
    } else {
        Confidence::Medium
    };
    (format!("{what}{from}{flows}"), confidence)
}

fn stall(facts: &FinishedEpisode, directory: &Directory) -> (String, Confidence) {
    let Some(stall) = facts.stall else {
        return ("silence in the middle of a message".to_owned(), Confidence::Low);
    };
    let who = directory.name(facts.tap, stall.flow);
    let longest = stall.longest;
    let coverage = directory.party(facts.tap, stall.flow).map(|party| party.coverage);
    if stall.by_timeout {
        // Packets that were not captured may have been sent meanwhile.
        let is_whole = coverage.is_some_and(|coverage| coverage.missed == 0);
        (
            format!("{who} stood still for {longest}, until the sender's timeout"),
            if is_whole {
                Confidence::High
            } else {
                Confidence::Medium
            },
        )
    } else {
        let how = match stall.ended_by {
            SilenceEnd::Answer => format!("waited {longest} for an answer"),
            SilenceEnd::NextPacket => format!("stood still for {longest} in the middle of a message"),
            SilenceEnd::Retransmission => format!("stood still for {longest} before a retransmission"),
        };
        (format!("{who} {how}"), Confidence::Medium)
    }
}
