//! MRC: lost and trimmed packets, the path of each loss, and the cause of each retransmission.
//!
//! Items are transmissions that a tap at the sender's NIC recorded. A loss is an item where the packets of that tap decide it:
//!
//! - its packet was sent again, and the sender heard that this arrived: an analysis knows no sooner;
//! - some packet of its EV arrived: how long that path takes can be known;
//! - when the receiver made a SACK that the sender heard, and in which the packet is missing, the network had had more time for it than for any
//!   packet of its EV that arrived. The simulator knows these times; an analysis knows round trips of those packets that SACKs name.
//!
//! Nothing tells of others if they were lost or late. They are no items, and what is said of one that was lost is not wrong. Among the packets that
//! were sent again after a hole or a timeout, the class of what is decided counts those of which the analysis says something: it must not evade.
//! A trim is an item where its NACK reached the sender. In a healthy run each finding is wrong.

use std::collections::BTreeMap;

use roce_model::Severity;
use roce_sim::truth::{MrcCause, MrcConnection};

use crate::case::Case;
use crate::scores::Scores;
use crate::seen::Event;

const LOST: &str = "MRC lost";
const LOST_COUNTS: &str = "MRC lost, counts";
const DECIDED: &str = "MRC decided";
const TRIMMED: &str = "MRC trimmed";
const CAUSES: &str = "MRC causes";
const PATHS: &str = "MRC paths of losses";
const HEALTHY: &str = "MRC healthy";

pub(crate) fn compare(case: &Case, scores: &mut Scores) {
    for connection in &case.truth.mrc {
        let judged = JudgedConnection::new(case, connection);
        judged.losses(scores);
        judged.decided(scores);
        judged.trims(scores);
        judged.causes(scores);
    }
    if !case.truth.mrc.is_empty() && case.scenario.healthy {
        let findings = case.seen.summary.findings.iter();
        let said: Vec<_> = findings
            .filter(|finding| finding.id.starts_with("mrc.") || finding.severity >= Severity::Warning)
            .map(|finding| format!("{}: {}", finding.id, finding.summary))
            .collect();
        scores.of_class(HEALTHY).expect(said.is_empty(), || {
            format!("nothing is wrong, said {}", said.join("; "))
        });
    }
}

/// UDP source port and flow label of a path.
type PathName = (Option<u32>, Option<u32>);

/// A connection and what the analysis says of it.
struct JudgedConnection<'a> {
    truth: &'a MrcConnection,
    /// Its name in notes.
    name: String,
    events: Vec<&'a Event>,
    /// Number of the connection in the tables, where it has one.
    lost: Option<u64>,
    /// Packets of which the analysis says that they were lost or not, and those of which it says that nothing shows it.
    decided: u64,
    undecided: u64,
    paths: BTreeMap<u64, PathName>,
}

impl<'a> JudgedConnection<'a> {
    fn new(case: &'a Case, truth: &'a MrcConnection) -> Self {
        let name = format!(
            "{} -> {}[{:#x}]",
            truth.requestor.host, truth.responder.host, truth.responder.qpn
        );
        let flows: Vec<String> = case
            .seen
            .flows
            .iter()
            .filter(|flow| {
                // Its data, and its answers, which events about trims are of.
                let ends = [&truth.requestor, &truth.responder];
                [ends, [ends[1], ends[0]]].iter().any(|[from, to]| {
                    flow.source.to_string() == from.address
                        && flow.destination.to_string() == to.address
                        && flow.destination_qpn == to.qpn
                })
            })
            .map(|flow| flow.flow_id.to_string())
            .collect();
        let events = case.seen.events.iter();
        let events = events.filter(|event| flows.contains(&event.flow)).collect();
        let summary = &case.seen.summary;
        let row = summary.mrc_connections.iter().find(|row| {
            row.requestor.to_string() == truth.requestor.address
                && row.responder.to_string() == truth.responder.address
                && row.responder_qpn == Some(truth.responder.qpn)
        });
        let number = row.map(|row| row.connection);
        let paths = summary
            .mrc_paths
            .iter()
            .filter(|path| Some(path.connection) == number);
        Self {
            truth,
            name,
            events,
            lost: row.map(|row| row.lost),
            decided: row.map_or(0, |row| row.lost + row.spurious),
            undecided: row.map_or(0, |row| row.undecided),
            paths: paths
                .map(|path| (path.path.into(), (path.udp_source_port, path.flow_label)))
                .collect(),
        }
    }

    /// Its events of a kind by PSN, in the order of time.
    fn events(&self, kind: &str) -> BTreeMap<u32, Vec<&'a Event>> {
        let mut found: BTreeMap<u32, Vec<&Event>> = BTreeMap::new();
        for event in self.events.iter().filter(|event| event.kind == kind) {
            found.entry(event.psn).or_default().push(event);
        }
        found
    }

    fn losses(&self, scores: &mut Scores) {
        let mut said = self.events("mrc_loss");
        let repaired = |seen: bool, loss: &roce_sim::truth::MrcLoss| {
            loss.repaired && loss.shown && loss.sent_seen.is_empty() != seen
        };
        let shown: Vec<_> = self
            .truth
            .losses
            .iter()
            .filter(|loss| repaired(true, loss))
            .collect();
        for loss in &self.truth.losses {
            if !shown.iter().any(|other| std::ptr::eq(*other, loss)) {
                scores.of_class(LOST).hidden();
            }
        }
        for loss in &shown {
            let events = said.entry(loss.psn).or_default();
            let label = (loss.path.flow_label != 0).then_some(loss.path.flow_label);
            let path = (Some(u32::from(loss.path.udp_source_port)), label);
            let is_here = |event: &&Event| {
                let known = event.value.and_then(|value| self.paths.get(&value));
                known.is_some_and(|known| known.0 == path.0 && known.1.filter(|label| *label != 0) == path.1)
            };
            let about = || {
                format!(
                    "{} PSN {} attempt {} at {}",
                    self.name, loss.psn, loss.attempt, loss.time
                )
            };
            let place = events.iter().position(is_here);
            let found = place.or((!events.is_empty()).then_some(0));
            let event = found.map(|place| events.remove(place));
            scores.of_class(LOST).expect(event.is_some(), about);
            if event.is_some() {
                scores.of_class(LOST).tell(true, about);
                scores.of_class(PATHS).expect(place.is_some(), about);
                scores.of_class(PATHS).tell(place.is_some(), about);
            }
        }
        for event in said.into_values().flatten() {
            // The end of the capture may come before the sender hears of it, or nothing shows it.
            let open = self
                .truth
                .losses
                .iter()
                .any(|loss| loss.psn == event.psn && !(loss.repaired && loss.shown));
            if !open {
                let about = || format!("{} PSN {} said lost at {}", self.name, event.psn, event.time);
                scores.of_class(LOST).tell(false, about);
            }
        }
        if self.truth.losses.iter().all(|loss| loss.repaired && loss.shown) {
            let (count, lost) = (shown.len() as u64, self.lost.unwrap_or(0));
            let about = || format!("{}: {count} lost, said {lost}", self.name);
            scores.of_class(LOST_COUNTS).expect_many(count, lost, about);
            scores
                .of_class(LOST_COUNTS)
                .tell_many(crate::StatedConfidence::Plain, lost, count, about);
        }
    }

    fn decided(&self, scores: &mut Scores) {
        let (decided, all) = (self.decided, self.decided + self.undecided);
        let about = || format!("{}: {} undecided of {all}", self.name, self.undecided);
        scores.of_class(DECIDED).expect_many(all, decided, about);
    }

    fn trims(&self, scores: &mut Scores) {
        let mut said = self.events("mrc_trim");
        for trim in &self.truth.trims {
            if !trim.nacked {
                scores.of_class(TRIMMED).hidden();
                continue;
            }
            let events = said.entry(trim.psn).or_default();
            let reason = Some(u64::from(trim.reason));
            let place = events.iter().position(|event| event.value == reason);
            let about = || format!("{} PSN {} trimmed at {}", self.name, trim.psn, trim.time);
            scores.of_class(TRIMMED).expect(place.is_some(), about);
            if let Some(place) = place {
                events.remove(place);
                scores.of_class(TRIMMED).tell(true, about);
            }
        }
        for event in said.into_values().flatten() {
            let about = || format!("{} PSN {} said trimmed at {}", self.name, event.psn, event.time);
            scores.of_class(TRIMMED).tell(false, about);
        }
    }

    fn causes(&self, scores: &mut Scores) {
        let mut said = self.events("mrc_retransmit");
        for again in &self.truth.retransmissions {
            if again.sent_seen.is_empty() {
                scores.of_class(CAUSES).hidden();
                continue;
            }
            let cause = match again.cause {
                MrcCause::Nack(1) => "trimmed",
                MrcCause::Nack(2) => "trimmed_lasthop",
                MrcCause::Nack(_) => "refused",
                MrcCause::Hole => "hole",
                MrcCause::Timeout => "timeout",
            };
            let events = said.entry(again.psn).or_default();
            let event = (!events.is_empty()).then(|| events.remove(0));
            let stated = event.map_or("nothing", |event| event.detail.as_str());
            let about = || {
                let (psn, time) = (again.psn, again.time);
                format!(
                    "{} PSN {psn} sent again at {time}: {cause}, said {stated}",
                    self.name
                )
            };
            scores.of_class(CAUSES).expect(stated == cause, about);
            if stated != "nothing" && stated != "unknown" {
                scores.of_class(CAUSES).tell(stated == cause, about);
            }
        }
        for event in said.into_values().flatten() {
            let about = || format!("{} PSN {} said to be sent again", self.name, event.psn);
            scores.of_class(CAUSES).tell(false, about);
        }
    }
}
