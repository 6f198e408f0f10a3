//! Uneven use of equal-cost links: the finding `path.imbalance`.
//!
//! An item: a switch on whose equal-cost ports flows collide so that one of them had less than [`REACHED`] of its fair share, by
//! the rates of the links and by the rate that it reached. Observable: counters of all ports, or taps at two of its equal-cost ports.
//! Found: a finding whose evidence names the port that they share, or the switch.
//! Said: findings at `warning` or over are right if they name such a port or switch; those below also if a collision costs nothing.
//!
//! *ECMP collisions*: an item is a port with such a collision. Found: a finding names the port itself.

use roce_model::{Fact, FindingRow, Severity};
use roce_sim::truth::{Collision, UplinkGroup};

use crate::case::Case;
use crate::provenance::{Nodes, names};
use crate::score::StatedConfidence;
use crate::scores::Scores;

/// Nine tenths of what is fair is as good as fair.
const REACHED: (u64, u64) = (9, 10);
/// The finding about it.
pub(crate) const FINDING: &str = "path.imbalance";

/// True if one of the flows that collide had less than it should.
fn costs(case: &Case, collision: &Collision) -> bool {
    let mut rates = case.truth.fair_rates.iter();
    let lost = rates.any(|rate| {
        collision.flows.contains(&rate.flow_id)
            && u128::from(rate.reached_bps) * u128::from(REACHED.1)
                < u128::from(rate.fair_bps) * u128::from(REACHED.0)
    });
    collision.costs && lost
}

/// Collisions that cost something, with their groups.
fn costly(case: &Case) -> Vec<(&UplinkGroup, &Collision)> {
    let groups = case.truth.uplinks.iter();
    let all = groups.flat_map(|group| group.collisions.iter().map(move |one| (group, one)));
    all.filter(|(_, collision)| costs(case, collision)).collect()
}

/// True if flows had less than their share because others took the link that they took, of several equal ones.
pub(crate) fn happened(case: &Case) -> bool {
    !costly(case).is_empty()
}

fn is_observable(case: &Case, group: &UplinkGroup) -> bool {
    let at_group = case.truth.taps.iter().filter(|tap| {
        let place = format!("{}->{}", tap.node, tap.neighbour);
        group.ports.iter().any(|port| port.place == place)
    });
    case.scenario.counters || at_group.count() > 1
}

/// True if a finding names a switch.
fn names_node(finding: &FindingRow, node: &str) -> bool {
    finding.evidence.0.iter().any(|(_, fact)| match fact {
        Fact::Text(text) => text
            .split(|c: char| !c.is_ascii_alphanumeric())
            .any(|word| word == node),
        Fact::Count(_) | Fact::Number(_) => false,
    })
}

/// True if a finding about uneven use is right.
pub(crate) fn is_right(case: &Case, finding: &FindingRow) -> bool {
    let nodes = Nodes::new(case);
    case.truth.uplinks.iter().any(|group| {
        let mut collisions = group.collisions.iter();
        let named = names_node(finding, &group.node);
        collisions.any(|collision| {
            (named || names(&nodes, finding, &collision.place))
                && (finding.severity < Severity::Warning || costs(case, collision))
        })
    })
}

pub(crate) fn compare(case: &Case, scores: &mut Scores) {
    let said = case.seen.summary.findings.iter();
    let said: Vec<&FindingRow> = said
        .filter(|finding| finding.id == FINDING && finding.severity > Severity::Ok)
        .collect();
    let class = format!("finding {FINDING}");
    let nodes = Nodes::new(case);
    for (group, collision) in costly(case) {
        if !is_observable(case, group) {
            scores.of_class(&class).hidden();
            continue;
        }
        let named = |finding: &&FindingRow| names(&nodes, finding, &collision.place);
        let ports = said.iter().any(named);
        let note = || {
            format!(
                "{} flows on {}, {} has {} of {} bytes",
                collision.flows.len(),
                collision.place,
                collision.other,
                collision.other_bytes,
                collision.bytes
            )
        };
        scores.of_class("ECMP collisions").expect(ports, note);
        let found = ports || said.iter().any(|finding| names_node(finding, &group.node));
        scores.of_class(&class).expect(found, note);
    }
    for finding in said {
        let right = is_right(case, finding);
        let (degree, note) = (StatedConfidence::of(finding.confidence), || {
            finding.summary.to_string()
        });
        scores
            .calibration
            .entry(finding.id)
            .or_default()
            .tell_with(degree, right, note);
        if finding.severity >= Severity::Warning {
            scores.of_class(&class).tell_with(degree, right, note);
        }
    }
}
