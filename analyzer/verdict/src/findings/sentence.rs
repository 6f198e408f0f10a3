//! The first sentence: what was wrong, for whom, from when to when and at what price, for somebody who reads nothing else. It is built from
//! the first root and what that explains, and claims nothing that the packets do not show.

use std::collections::BTreeSet;

use roce_model::{Address, Confidence, Fact, FindingRow, Period, Qpn, Severity, Span, Time};

use super::super::directory::Party;
use super::super::numbers::{counted, percent, some};
use super::causes::{RelatedFinding, Side, Subjects, affected};
use super::rule::{Context, MAX_MANAGEMENT_QPN};
use super::thin::ThinCapture;

/// Hosts that the sentence names.
const NAMED: usize = 2;

/// Rules whose findings are no trouble of the network: of the capture, of paths, of settings. The first sentence passes over them.
pub const NO_TROUBLE: &[&str] = &[
    "capture.clock",
    "capture.quality",
    "capture.thin",
    "loss.capture",
    "path.spread",
    "ecmp.entropy",
    "mtu",
    "cnp.class",
    "dscp.none",
    "not.network",
    "gpu.waits",
    "ecn.working",
    "unfair",
    "path.imbalance",
    "adapter.idle",
    "ecn.not-capable",
    "drops.switch",
];

/// The sentence about a run whose findings are in their order.
pub(super) fn first_sentence(
    findings: &[RelatedFinding],
    context: &Context<'_>,
    thin: Option<ThinCapture>,
) -> String {
    let acts = |finding: &&RelatedFinding| finding.row.is_root() && finding.row.severity >= Severity::Warning;
    let hints = |finding: &&RelatedFinding| {
        finding.row.is_root()
            && finding.row.severity == Severity::Info
            && !NO_TROUBLE.contains(&finding.row.id)
    };
    let sure = |finding: &&RelatedFinding| finding.row.confidence != Confidence::Low;
    let mut all = findings.iter();
    let root = all.clone().find(acts);
    let root = root
        .or_else(|| all.clone().filter(hints).find(sure))
        .or_else(|| all.find(hints));
    match root {
        Some(root) => RootStory::new(root, findings, context).sentence(),
        None if context.run.totals.roce_packets == 0 && context.run.totals.uet_packets > 0 => {
            uet_alone(context)
        }
        None if context.run.totals.roce_packets == 0 => nothing_to_judge(context),
        None => match thin {
            Some(thin) => thin.no_fault(context.run.totals.naks),
            None => nothing_wrong(findings, context),
        },
    }
}

/// No RoCE packet: nothing is known.
fn nothing_to_judge(context: &Context<'_>) -> String {
    let run = context.run;
    if run.totals.filtered > 0 {
        return "The filter left out all RoCE packets: there is nothing to judge.".to_owned();
    }
    match run.totals.frames {
        0 if run.inputs.iter().any(|input| input.frames > 0) => {
            "No frame lies between --from and --to: there is nothing to judge.".to_owned()
        }
        0 => "No frame was captured: there is nothing to judge.".to_owned(),
        frames => format!(
            "No RoCE packet is among {}: there is nothing to judge.",
            counted(frames, "frame")
        ),
    }
}

/// Packets of UET alone, without a finding: what they show.
fn uet_alone(context: &Context<'_>) -> String {
    let run = context.run;
    let packets = counted(run.totals.uet_packets, "packet");
    if run.mrc_connections.is_empty() {
        return if run.totals.uet_encrypted == 0 {
            format!("{packets} of UET, none of a connection: there is nothing to judge.")
        } else {
            format!(
                "{packets} of UET, {} of them encrypted: losses and connections cannot be seen.",
                run.totals.uet_encrypted
            )
        };
    }
    let lost: u64 = run.mrc_connections.iter().map(|row| row.lost).sum();
    let is_judged = run
        .mrc_connections
        .iter()
        .all(|row| row.sacks > 0 && row.open == 0 && row.confidence == Confidence::High);
    let connections = counted(run.mrc_connections.len() as u64, "connection");
    match (lost, is_judged) {
        (0, true) => format!("Nothing is wrong in {connections} of UET: nothing was lost."),
        (0, false) => {
            format!("No fault is seen in {connections} of UET; whether packets were lost is not shown.")
        }
        _ => format!("{} of {connections} of UET were lost.", counted(lost, "packet")),
    }
}

/// A capture that misses more than one data packet in this number proves of none that it was not lost.
const MISSED_PART: u64 = 10;

/// No trouble: what the packets show to be in order.
fn nothing_wrong(findings: &[RelatedFinding], context: &Context<'_>) -> String {
    let run = context.run;
    let row = |id: &str| {
        findings
            .iter()
            .map(|finding| &finding.row)
            .find(|row| row.id == id)
    };
    let all = || context.directory.flows().map(|(.., party)| party);
    let asks = |party: &&Party| party.qpn() > Qpn::new(MAX_MANAGEMENT_QPN);
    let has_data = all().filter(asks).any(|party| party.data_packets > 0);
    // Atomic operations are no data: then all flows are asked.
    let judged = all()
        .filter(asks)
        .filter(|party| party.data_packets > 0 || !has_data);
    let (data, answered) = judged.fold((0u64, 0u64), |(data, answered), party| {
        (data + 1, answered + u64::from(party.peer.is_some()))
    });
    let totals = &run.totals;
    let is_whole = totals.unresolved | totals.ambiguous | totals.network_lost | totals.lost_downstream == 0;
    let is_quiet = totals.retransmitted_packets == 0 && totals.response_missing == 0;
    let missed = match row("loss.capture").and_then(|row| fact(row, "capture_lost")) {
        Some(Fact::Count(missed)) => *missed,
        _ => 0,
    };
    // In a sample a lost packet and one that was not captured look alike.
    let is_sample = row("capture.quality").is_some_and(|row| fact(row, "sparse_flows").is_some())
        || missed.saturating_mul(MISSED_PART) > totals.data_packets;
    let mut claims = Vec::new();
    if row("ecn.working").is_some() {
        claims.push("ECN works".to_owned());
    } else if totals.data_ce == 0 && totals.cnp == 0 && totals.ect0 | totals.ect1 > 0 {
        claims.push("no packet was marked".to_owned());
    }
    let unmoved = totals.cnp > 0 && row("ecn.working").is_none();
    let of_losses = claims.len();
    if data > 0 && is_whole && is_quiet && !is_sample {
        if answered == data {
            claims.push("nothing was lost".to_owned());
        } else if answered > 0 {
            claims.push(format!(
                "nothing was lost in {answered} of {}",
                counted(data, "flow")
            ));
        }
    }
    let open = match (unmoved, claims.len() == of_losses) {
        (true, _) => {
            let senders = unmoved_senders(context);
            let what = match senders.as_slice() {
                [] => "whether senders slowed down is not shown".to_owned(),
                senders => format!("{} went on at the same rate", hosts(senders, "sender")),
            };
            format!("; {} came, and {what}", counted(totals.cnp, "CNP"))
        }
        (false, true) => "; whether packets were lost is not shown".to_owned(),
        (false, false) => String::new(),
    };
    if missed > 0 {
        claims.push(format!("the capture missed {}", counted(missed, "packet")));
    }
    if let Some(spread) = row("path.spread") {
        claims.push(clause(&spread.summary));
    }
    let length = run.span.map(Period::length).unwrap_or_default();
    let claims = if claims.is_empty() {
        String::new()
    } else {
        format!(": {}", claims.join(", "))
    };
    // A fault may hide behind what is open.
    let is_known = answered.saturating_mul(2) >= data;
    let begin = if open.is_empty() && is_known {
        "Nothing is wrong with the network"
    } else {
        "No fault of the network is seen"
    };
    format!("{begin} in these {length}{claims}{open}.")
}

/// Senders that went on with their rate, whatever CNPs came.
fn unmoved_senders(context: &Context<'_>) -> Vec<String> {
    let flows = context.directory.flows().filter(|(.., party)| party.unmoved);
    let senders: BTreeSet<Address> = flows.map(|(.., party)| party.source).collect();
    senders.iter().map(Address::to_string).collect()
}

/// A summary as a sentence of its own.
pub(super) fn sentence_of(summary: &str) -> String {
    let mut letters = summary.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string());
    format!("{}{}.", first.unwrap_or_default(), letters.as_str())
}

/// The first part of a summary, up to its first list or remark.
fn clause(summary: &str) -> String {
    let end = summary.find([':', ';']).unwrap_or(summary.len());
    summary[..end].to_owned()
}

fn fact<'a>(row: &'a FindingRow, name: &str) -> Option<&'a Fact> {
    row.evidence
        .0
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, fact)| fact)
}

/// A root that is told, and what it explains.
struct RootStory<'a> {
    root: &'a RelatedFinding,
    effects: Vec<&'a RelatedFinding>,
    /// Its flows that what follows is about; all of them where nothing follows.
    subjects: Subjects,
    /// Senders that CNPs did not slow.
    unmoved: Vec<String>,
    /// All findings of the run.
    beside: &'a [RelatedFinding],
    zero: Time,
}

impl<'a> RootStory<'a> {
    fn new(root: &'a RelatedFinding, findings: &'a [RelatedFinding], context: &Context<'_>) -> Self {
        let mut ids = BTreeSet::from([root.row.id]);
        // They are in an order in which causes come first.
        let effects: Vec<&RelatedFinding> = findings
            .iter()
            .filter(|finding| {
                let causes = &finding.row.explained_by.0;
                let follows = causes.iter().any(|cause| ids.contains(&**cause));
                if follows {
                    ids.insert(finding.row.id);
                }
                follows
            })
            .collect();
        let mut unmoved = unmoved_senders(context);
        let senders = root.subjects.hosts(Side::Source);
        unmoved.retain(|sender| senders.contains(sender));
        let affected = affected(&root.subjects, effects.iter().map(|effect| &effect.subjects));
        Self {
            root,
            effects,
            subjects: affected.unwrap_or_else(|| root.subjects.clone()),
            unmoved,
            beside: findings,
            zero: context.run.zero(),
        }
    }

    fn found(&self, id: &str) -> Option<&'a FindingRow> {
        let mut all = std::iter::once(&self.root).chain(&self.effects);
        all.find(|finding| finding.row.id == id)
            .map(|finding| &finding.row)
    }

    fn count(&self, id: &str, name: &str) -> u64 {
        match self.found(id).and_then(|row| fact(row, name)) {
            Some(Fact::Count(count)) => *count,
            _ => 0,
        }
    }

    fn share(&self, id: &str, name: &str) -> Option<f64> {
        match self.found(id).and_then(|row| fact(row, name)) {
            Some(Fact::Number(share)) if *share > 0.0 => Some(*share),
            _ => None,
        }
    }

    fn sentence(&self) -> String {
        let price = self.price();
        let price = if price.is_empty() {
            String::new()
        } else {
            format!(": {}", price.join(", "))
        };
        let doubt = match self.root.row.confidence {
            Confidence::Low => " (low confidence)",
            _ => "",
        };
        match self.what() {
            Some(what) => format!("{what}{}{price}{doubt}.", self.times()),
            None => self.summary(doubt),
        }
    }

    /// A finding without words of its own here: its summary, and when.
    fn summary(&self, doubt: &str) -> String {
        let summary = self.root.row.summary.trim_end_matches('.');
        let mut letters = summary.chars();
        let word = summary.split(' ').next().unwrap_or_default();
        // An address stays as it is.
        let first = match letters.next() {
            Some(first) if word.chars().all(char::is_alphabetic) => first.to_uppercase().to_string(),
            Some(first) => first.to_string(),
            None => String::new(),
        };
        // Its words are about itself, not about what follows.
        let row = &self.root.row;
        let times = self.span(row.first_time, row.last_time.or(row.first_time));
        format!("{first}{}{times}{doubt}.", letters.as_str())
    }

    /// From when to when: of what follows from the root, where anything does. Settings are there all the time.
    fn times(&self) -> String {
        let mut rows = self.effects.iter().map(|effect| &effect.row).peekable();
        let own = [&self.root.row];
        let of_effects = rows.peek().is_some() && self.is_a_setting();
        let rows: Vec<&FindingRow> = if of_effects {
            rows.collect()
        } else {
            own.into_iter().chain(rows).collect()
        };
        let first = rows.iter().filter_map(|row| row.first_time).min();
        let last = rows
            .iter()
            .filter_map(|row| row.last_time.or(row.first_time))
            .max();
        self.span(first, last)
    }

    fn span(&self, first: Option<Time>, last: Option<Time>) -> String {
        match first
            .zip(last)
            .map(|(first, last)| (first.since(self.zero), last.since(self.zero)))
        {
            Some((first, last)) if first < last => format!(" from +{first} to +{last}"),
            Some((first, _)) => format!(" at +{first}"),
            None => String::new(),
        }
    }

    fn is_a_setting(&self) -> bool {
        matches!(self.root.row.id, "ecn.not-capable" | "dscp.mismatch")
    }

    /// The root in words, without its times and its price. `None`: as its summary says.
    fn what(&self) -> Option<String> {
        let senders = self.subjects.hosts(Side::Source);
        let receivers = self.subjects.hosts(Side::Destination);
        let there = hosts(&self.to(&receivers), "destination");
        let overran = || format!("overran the port to {there}");
        Some(match self.root.row.id {
            "loss.network" if !senders.is_empty() => format!(
                "The network lost {} from {} to {}",
                self.lost_words(),
                hosts(&senders, "sender"),
                hosts(&receivers, "receiver")
            ),
            "loss.trimmed" if !senders.is_empty() => format!(
                "A full queue before the tap took the data out of {} from {} to {}",
                counted(self.count("loss.trimmed", "trimmed"), "packet"),
                hosts(&senders, "sender"),
                hosts(&receivers, "receiver")
            ),
            "ecn.not-capable" if self.found("incast").is_some() => {
                format!("{} without ECN {}", of_hosts(&senders, "sender"), overran())
            }
            "dscp.mismatch" if self.found("incast").is_some() => {
                let senders = self.sources_to_incast();
                format!(
                    "{} in another class than their answers {}",
                    of_hosts(&senders, "sender"),
                    overran()
                )
            }
            "ecn.marks-without-cnp" if !receivers.is_empty() => format!(
                "{} got marked packets and sent no CNP",
                hosts(&receivers, "receiver")
            ),
            "cnp.ignored" if !senders.is_empty() => {
                format!("{} did not slow down after CNPs", hosts(&senders, "sender"))
            }
            "incast" if !senders.is_empty() => {
                format!("{} sent to {there} at once", of_hosts(&senders, "sender"))
            }
            "retransmit.timeout" if !senders.is_empty() => format!(
                "{} waited for answers of {} until timers expired",
                hosts(&senders, "sender"),
                hosts(&receivers, "receiver")
            ),
            "nak.fatal" if !receivers.is_empty() => format!(
                "{} refused requests of {} ({}), which ended {}",
                hosts(&receivers, "receiver"),
                hosts(&senders, "sender"),
                self.refusals(),
                counted(self.subjects.flows.len() as u64, "connection")
            ),
            "pause.storm" => self.pausers()?,
            "rnr" if !receivers.is_empty() => format!(
                "{} had no receive buffer posted for {}",
                hosts(&receivers, "receiver"),
                hosts(&senders, "sender")
            ),
            "stall" if !senders.is_empty() && self.awaits_answers() => format!(
                "{} waited for late answers of {}",
                hosts(&senders, "sender"),
                hosts(&receivers, "receiver")
            ),
            "stall" if !senders.is_empty() => format!(
                "{} stood still in the middle of messages to {}",
                hosts(&senders, "sender"),
                hosts(&receivers, "receiver")
            ),
            _ => return None,
        })
    }

    /// The losses of the network, with the bound that its finding has: `about 62 packets`.
    fn lost_words(&self) -> String {
        let words = self.root.row.summary.strip_prefix("the network lost ");
        let words = words.and_then(|words| words.split(" of ").next());
        words.unwrap_or("packets").to_owned()
    }

    /// True if all of its silences are waits for answers.
    fn awaits_answers(&self) -> bool {
        let waits = self.count("stall", "awaiting_answers");
        waits > 0 && waits == self.count("stall", "stalls")
    }

    /// Which kinds of fatal NAKs came.
    fn refusals(&self) -> String {
        let kinds = [
            ("invalid_request", "invalid request"),
            ("remote_access", "remote access error"),
            ("remote_operational", "remote operational error"),
            ("other", "another error"),
        ];
        let kinds = kinds
            .into_iter()
            .filter(|(name, _)| self.count("nak.fatal", name) > 0);
        let kinds: Vec<&str> = kinds.map(|(_, words)| words).collect();
        kinds.join(", ")
    }

    /// Who paused what: of `priority 3 by 02:00:00:00:00:07 for 54 % of the time`.
    fn pausers(&self) -> Option<String> {
        let Some(Fact::Text(paused)) = fact(&self.root.row, "paused_most") else {
            return None;
        };
        let (what, by) = paused.split_once(" by ")?;
        let by = by.split([' ', ',']).next()?;
        let victims = &self.root.row.victims.0;
        let waited = match victims.as_slice() {
            [] => String::new(),
            names => {
                let names: Vec<String> = names.iter().map(ToString::to_string).collect();
                format!(", and {} waited", hosts(&names, "sender"))
            }
        };
        Some(format!("{by} paused {what} of its link{waited}"))
    }

    /// The destinations of the incast in what is told, else those of the flows.
    fn to(&self, receivers: &[String]) -> Vec<String> {
        let incast = std::iter::once(&self.root)
            .chain(&self.effects)
            .find(|finding| finding.row.id == "incast");
        let there = incast.map(|incast| incast.subjects.destinations.keys().map(Address::to_string));
        let there: Vec<String> = there.map(Iterator::collect).unwrap_or_default();
        if there.is_empty() {
            receivers.to_vec()
        } else {
            there
        }
    }

    /// Those of its hosts that send to where many do.
    fn sources_to_incast(&self) -> Vec<String> {
        let incast = self.effects.iter().find(|effect| effect.row.id == "incast");
        incast.map_or_else(
            || self.subjects.hosts(Side::Source),
            |incast| incast.subjects.hosts(Side::Source),
        )
    }

    /// Its price: packets, time.
    fn price(&self) -> Vec<String> {
        let mut price = Vec::new();
        if let Some(marked) = self.share("incast", "ce_share_peak") {
            price.push(format!("up to {} marked", percent(marked)));
        }
        let lost = self.count("loss.network", "lost");
        let lost = if lost > 0 {
            lost
        } else {
            self.count("incast", "lost")
        };
        if self.root.row.id == "loss.network" {
            // Its first words say how many.
            if let Some(Fact::Text(class)) = fact(&self.root.row, "class") {
                price.push(class.clone());
            }
        } else if lost > 0 {
            price.push(format!("{} lost", thousands(lost, "packet")));
        } else if self.root.row.id == "incast" {
            price.push("nothing lost".to_owned());
            let (ce, cnp) = (self.count("incast", "ce"), self.count("incast", "cnp"));
            if !self.unmoved.is_empty() {
                price.push(format!(
                    "{} went on at the same rate after CNPs",
                    hosts(&self.unmoved, "sender")
                ));
            } else if self.beside.iter().any(|finding| finding.row.id == "ecn.working") {
                price.push("ECN works".to_owned());
            } else if ce > 0 && cnp == 0 {
                price.push("no CNP seen".to_owned());
            }
        }
        if let Some(share) = self.share("pause.storm", "share_at_least") {
            price.push(format!("at least {} of the time", percent(share)));
        } else if let Some(share) = self.share("pause.storm", "share") {
            price.push(format!("{} of the time", percent(share)));
        }
        let naks = self.count("rnr", "rnr_naks");
        if naks > 0 {
            price.push(thousands(naks, "RNR NAK"));
        }
        let marks = self.count("ecn.marks-without-cnp", "ce");
        if marks > 0 {
            price.push(format!("{} without a notification", thousands(marks, "mark")));
        }
        if let Some(waited) = self.root.row.waited_ns.filter(|waited| *waited > 0) {
            let timeouts = self.count("retransmit.timeout", "runs_timeout");
            let stalls = self.count("stall", "stalls");
            let how = match (timeouts, stalls) {
                (0, 0) => String::new(),
                (0, stalls) if self.awaits_answers() => format!(" in {}", thousands(stalls, "wait")),
                (0, stalls) => format!(" in {}", thousands(stalls, "stall")),
                (timeouts, _) => format!(" in {}", thousands(timeouts, "timeout")),
            };
            price.push(format!("{} of waiting{how}", Span(waited)));
        }
        price
    }
}

/// A count with its noun, which takes an s, with commas between thousands.
fn thousands(count: u64, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", roce_spelling::count(count))
}

/// Hosts, where they are few; else how many.
fn hosts(hosts: &[String], noun: &str) -> String {
    if hosts.len() > NAMED {
        of_hosts(hosts, noun)
    } else {
        some(hosts, NAMED, hosts.len())
    }
}

/// How many hosts, and the first of them: `3 senders (10.0.0.1, 10.0.0.2 and 1 more)`.
fn of_hosts(hosts: &[String], noun: &str) -> String {
    format!(
        "{} ({})",
        counted(hosts.len() as u64, noun),
        some(hosts, NAMED, hosts.len())
    )
}
