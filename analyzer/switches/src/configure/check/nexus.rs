//! A running configuration of a Nexus 9000: which DSCP reaches which group, which group is lossless, which queue marks, and what
//! interfaces have.

use std::collections::{BTreeMap, BTreeSet};

use super::super::blocks::{Block, dscps, interfaces, named, number, parse, starting, threshold};
use super::super::change::{Change, Changes};
use super::super::nexus::{
    NETWORK_LINE, NexusGeneration, QUEUING_LINE, classification, ecn_line, network, queuing,
};
use super::super::settings::Settings;
use super::super::step::Step;
use crate::inventory::Cluster;

/// A configuration with what is expected of it.
struct Configuration<'a> {
    cluster: &'a Cluster,
    settings: &'a Settings,
    generation: NexusGeneration,
    /// Input policies by name.
    inputs: BTreeMap<&'a str, Input<'a>>,
    /// Policies of the types network-qos and queuing by name.
    policies: [BTreeMap<&'a str, &'a Block>; 2],
    /// Maps of classes of these types by name.
    maps: [BTreeMap<&'a str, &'a Block>; 2],
    /// Children of `system qos`.
    system: Block,
}

/// An input policy: the classes that RoCE data and CNPs reach, with their groups.
struct Input<'a> {
    data: Option<(&'a str, Option<u8>)>,
    cnp: Option<(&'a str, Option<u8>)>,
    /// The first class.
    first: Option<&'a str>,
}

/// Types of policies with groups of the system.
#[derive(Clone, Copy)]
enum Kind {
    Network,
    Queuing,
}

impl Kind {
    const ALL: [Self; 2] = [Self::Network, Self::Queuing];

    fn name(self) -> &'static str {
        match self {
            Self::Network => "network-qos",
            Self::Queuing => "queuing",
        }
    }
}

/// Changes that a running configuration needs. No generation: that of its classes. No interfaces: all Ethernet ports that are not shut
/// down.
///
/// # Errors
/// If the text is no configuration, or an interface is not in it.
pub fn check_nexus(
    cluster: &Cluster,
    settings: &Settings,
    generation: Option<NexusGeneration>,
    text: &str,
    chosen: &[String],
) -> Result<Vec<Change>, String> {
    let blocks = parse(text)?;
    let ports = interfaces(&blocks, chosen)?;
    if ports.is_empty() {
        return Err(
            "the text has no interface that is a port and not shut down; 'show running-config' is expected"
                .to_owned(),
        );
    }
    let is_first = || text.contains("c-out-q") || text.contains("c-nq");
    let generation = generation.unwrap_or_else(|| {
        if is_first() && !text.contains("-8q-") {
            NexusGeneration::First
        } else {
            NexusGeneration::CloudScale
        }
    });
    let system = starting(&blocks, "system qos").flat_map(|(_, block)| block.children.clone());
    let policies = |kind: Kind| named(&blocks, &format!("policy-map type {}", kind.name()));
    let maps = |kind: Kind| named(&blocks, &format!("class-map type {}", kind.name()));
    let configuration = Configuration {
        cluster,
        settings,
        generation,
        inputs: inputs(&blocks, cluster),
        policies: Kind::ALL.map(policies),
        maps: Kind::ALL.map(maps),
        system: Block {
            line: String::new(),
            children: system.collect(),
        },
    };
    let mut changes = Changes::default();
    let mut groups = BTreeSet::new();
    for (name, port) in &ports {
        groups.insert(configuration.input(name, port, &mut changes));
    }
    for (group, _) in &groups {
        configuration.network(*group, &mut changes);
    }
    let global = configuration.system.rest("service-policy type queuing output");
    let mut policies = BTreeSet::new();
    for (name, port) in &ports {
        let own = port.rest("service-policy type queuing output");
        // The port that has a policy of the system gets another one; other policies are changed, whoever uses them.
        let user = own.filter(|policy| is_of_system(policy)).map(|_| name.as_str());
        policies.insert((own.or(global), user));
    }
    for (policy, user) in policies {
        for groups in &groups {
            configuration.queuing((policy, user), *groups, &mut changes);
        }
    }
    if !blocks
        .iter()
        .any(|block| block.line == "priority-flow-control watch-dog-interval on")
    {
        changes.add(
            Change::new(
                "switch.no_watchdog",
                "PFC's watchdog is off",
                &["priority-flow-control watch-dog-interval on"],
            )
            .comment("Link: stays up. Undo: no priority-flow-control watch-dog-interval on"),
        );
    }
    for (name, port) in &ports {
        configuration.port(name, port, &mut changes);
    }
    Ok(changes.into_vec())
}

impl Configuration<'_> {
    /// Checks the input policy of a port; the groups that RoCE data and CNPs reach, or shall reach.
    fn input(&self, name: &str, port: &Block, changes: &mut Changes) -> (u8, u8) {
        const ID: &str = "switch.queue_unclassified";
        let (dscp, cnp_dscp) = (self.cluster.dscp, self.cluster.cnp_dscp);
        let wanted = self.generation.data_group(self.cluster);
        let policy = port
            .rest("service-policy type qos input")
            .or_else(|| self.system.rest("service-policy type qos input"));
        let Some(policy) = policy else {
            // A policy that classifies both is there, and not used at this port.
            let known = self.inputs.iter().find_map(|(policy, input)| {
                let ((_, data), (_, cnp)) = input.data.zip(input.cnp)?;
                let data = data.filter(|data| *data > 0 && cnp != Some(*data))?;
                Some((*policy, (data, cnp.unwrap_or(0))))
            });
            let (policy, groups) =
                known.unwrap_or(("ROCE_IN", (wanted, self.generation.cnp_group(self.cluster))));
            let mut change = Change::new(
                ID,
                format!("{name}: no input policy, DSCP {dscp} shares the default queue"),
                &[],
            )
            .comment("Link: stays up. Undo: no before the line of the interface");
            if known.is_none() {
                let step = classification(self.cluster, self.generation);
                changes.add(Change {
                    id: ID,
                    text: format!(
                        "no policy gives DSCP {dscp} (RoCE data) and {cnp_dscp} (CNPs) a group of their own"
                    ),
                    step,
                });
            }
            change.step.commands = vec![
                format!("interface {name}"),
                format!("  service-policy type qos input {policy}"),
            ];
            changes.add(change);
            return groups;
        };
        let input = self.inputs.get(policy);
        let data = input.and_then(|input| input.data);
        let group = match data {
            Some((_, Some(group))) if group > 0 => group,
            other => {
                self.classify(
                    policy,
                    other.map(|(class, _)| class),
                    "ROCE",
                    (dscp, wanted),
                    changes,
                );
                wanted
            }
        };
        let cnp_group = self.generation.cnp_group(self.cluster);
        let cnp_group = if cnp_group == group { group - 1 } else { cnp_group };
        let cnp = input.and_then(|input| input.cnp);
        let known = cnp.and_then(|(_, group)| group);
        let known = known.filter(|known| *known != group && *known != 0);
        if known.is_none() {
            let class = cnp.map(|(class, _)| class);
            // A class of both DSCPs is not changed: a class of CNPs alone goes before it.
            let class = class.filter(|class| data.is_none_or(|(data, _)| data != *class));
            self.classify(policy, class, "CNP", (cnp_dscp, cnp_group), changes);
        }
        (group, known.unwrap_or(cnp_group))
    }

    /// Gives a DSCP its group in a policy: in its class, or in a new one.
    fn classify(
        &self,
        policy: &str,
        class: Option<&str>,
        new: &str,
        (dscp, group): (u8, u8),
        changes: &mut Changes,
    ) {
        let mut lines = Vec::new();
        if class.is_none() {
            lines.push(format!("class-map type qos match-any {new}"));
            lines.push(format!("  match dscp {dscp}"));
        }
        lines.push(format!("policy-map type qos {policy}"));
        let first = self.inputs.get(policy).and_then(|input| input.first);
        lines.push(match (class, first) {
            (Some(class), _) => format!("  class {class}"),
            (None, Some(first)) => format!("  class {new} insert-before {first}"),
            (None, None) => format!("  class {new}"),
        });
        lines.push(format!("    set qos-group {group}"));
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        changes.add(
            Change::new(
                "switch.queue_unclassified",
                format!("policy {policy}: DSCP {dscp} ({new}) has no group of its own"),
                &lines,
            )
            .comment("Link: stays up. Undo: no class in the policy"),
        );
    }

    /// Checks that the group is lossless by PFC of its priority, no other one is, and its MTU.
    fn network(&self, group: u8, changes: &mut Changes) {
        const LINK: &str = "Link: the buffers are divided again; links of some models flap.";
        let priority = self.cluster.priority;
        let mtu = self.settings.switch_mtu();
        let active = self.system.rest("service-policy type network-qos");
        let Some(name) = active.filter(|name| !is_of_system(name)) else {
            let step = network(self.cluster, self.settings, self.generation, group);
            let change = unused(
                "switch.not_lossless",
                Kind::Network,
                active,
                step,
                ("system qos", NETWORK_LINE),
            );
            changes.add(change);
            return;
        };
        let policy = self.policy(Kind::Network, name);
        let classes = policy.map_or_else(Vec::new, |block| self.classes(block, Kind::Network));
        let header = format!("policy-map type network-qos {name}");
        let own = classes.iter().find(|(_, known, _)| *known == Some(group));
        let class = own.map_or_else(
            || self.generation.network_class(group),
            |(class, ..)| (*class).to_owned(),
        );
        let class = format!("  class type network-qos {class}");
        let pause = own.and_then(|(_, _, block)| block.rest("pause"));
        let priorities = pause.map(pause_priorities).unwrap_or_default();
        if !priorities.contains(&priority) {
            let line = format!("    pause pfc-cos {priority}");
            let text = match pause {
                Some(pause) => format!("group {group} has 'pause {pause}', not PFC of priority {priority}"),
                None => format!("group {group} of RoCE data is not lossless"),
            };
            let id = if pause.is_some() {
                "switch.pfc_other_priority"
            } else {
                "switch.not_lossless"
            };
            changes.add(Change::new(id, text, &[&header, &class, &line]).comment(LINK));
        }
        for (other, known, block) in &classes {
            let pauses = block.rest("pause").filter(|_| *known != Some(group));
            if let Some(pause) = pauses {
                let other = format!("  class type network-qos {other}");
                let line = format!("    no pause {pause}");
                let text = format!("a group without RoCE data is lossless too: 'pause {pause}'");
                changes.add(
                    Change::new("switch.pfc_other_priority", text, &[&header, &other, &line]).comment(LINK),
                );
            }
        }
        let known = own
            .and_then(|(_, _, block)| number(block.rest("mtu")?))
            .unwrap_or(1_500);
        if known < mtu {
            let line = format!("    mtu {mtu}");
            let text = format!("group {group} has an MTU of {known} bytes");
            changes.add(Change::new("switch.mtu", text, &[&header, &class, &line]).comment(LINK));
        }
    }

    /// Checks the queue of the data's group: ECN, no strict priority, thresholds below those of PFC. `user` is the port that has a policy
    /// of the system, if a port has one by itself.
    fn queuing(
        &self,
        (active, user): (Option<&str>, Option<&str>),
        (group, cnp): (u8, u8),
        changes: &mut Changes,
    ) {
        const LINK: &str = "Link: stays up.";
        let Some(name) = active.filter(|name| !is_of_system(name)) else {
            let step = queuing(self.settings, self.generation, (group, cnp));
            let place = user.map_or_else(|| "system qos".to_owned(), |port| format!("interface {port}"));
            changes.add(unused(
                "switch.ecn_off",
                Kind::Queuing,
                active,
                step,
                (&place, QUEUING_LINE),
            ));
            return;
        };
        let policy = self.policy(Kind::Queuing, name);
        let header = format!("policy-map type queuing {name}");
        let classes = policy
            .map(|policy| self.classes(policy, Kind::Queuing))
            .unwrap_or_default();
        let own = classes.iter().find(|(_, known, _)| *known == Some(group));
        let class = own.map_or_else(
            || self.generation.queue_class(group),
            |(class, ..)| (*class).to_owned(),
        );
        let class = format!("  class type queuing {class}");
        let share = format!("    bandwidth remaining percent {}", self.settings.bandwidth);
        let lowered = self.lowered(&classes, group);
        let lowered = || lowered.iter().map(String::as_str);
        if let Some(level) = own.and_then(|(_, _, block)| block.rest("priority")) {
            let line = format!("    no priority {level}");
            let mut lines = vec![header.as_str()];
            lines.extend(lowered());
            lines.extend([class.as_str(), &line, &share]);
            let text = format!(
                "{name}: RoCE data (group {group}) has 'priority {level}': it starves all others, and CNPs gain nothing"
            );
            changes.add(Change::new("switch.rdma_strict_priority", text, &lines).comment(LINK));
        }
        let detect = own.and_then(|(_, _, block)| block.rest("random-detect"));
        let marks = detect.is_some_and(|line| line.split(' ').any(|word| word == "ecn"));
        let (min, max) = self.settings.kbytes();
        let bounds = detect.map(|line| {
            (
                threshold(line, "minimum-threshold"),
                threshold(line, "maximum-threshold"),
            )
        });
        let line = format!("    {}", ecn_line(self.settings));
        if !marks {
            let text = format!("{name}: the queue of RoCE data (group {group}) does not mark packets");
            let mut lines = vec![header.as_str()];
            if own.is_none() {
                lines.extend(lowered());
                lines.extend([class.as_str(), &share]);
            } else {
                lines.push(&class);
            }
            lines.push(&line);
            changes.add(Change::new("switch.ecn_off", text, &lines).comment(LINK));
        } else if self.settings.has_thresholds && bounds != Some((Some(min * 1_000), Some(max * 1_000))) {
            let text = format!("{name}: other thresholds: '{}'", detect.unwrap_or_default());
            changes.add(Change::new("switch.ecn_threshold", text, &[&header, &class, &line]).comment(LINK));
        } else if let (Some((Some(min), _)), Some(pause)) = (bounds, self.pause_threshold(group))
            && min >= pause
        {
            let text = format!(
                "{name}: packets are marked from {min} bytes on, and PFC pauses from {pause} bytes on: PFC comes first"
            );
            changes.add(Change::new("switch.ecn_above_pfc", text, &[&header, &class, &line]).comment(LINK));
        }
    }

    /// Lines that lower the shares of the other queues where they leave none for the data's: the switch refuses a sum above 100 %.
    fn lowered(&self, classes: &[(&str, Option<u8>, &Block)], group: u8) -> Vec<String> {
        const WORDS: [&str; 2] = ["bandwidth remaining percent", "bandwidth percent"];
        let others = classes.iter().filter(|(_, known, _)| *known != Some(group));
        let shares: Vec<(String, u64)> = others
            .filter_map(|(class, _, block)| {
                let share = |words: &&str| {
                    Some((
                        format!("  class type queuing {class}\n    {words}"),
                        number(block.rest(words)?)?,
                    ))
                };
                WORDS.iter().find_map(share)
            })
            .collect();
        self.settings.lowered(&shares)
    }

    /// Checks PFC, 802.3x pause, the watchdog and the MTU of a port.
    fn port(&self, name: &str, port: &Block, changes: &mut Changes) {
        let header = format!("interface {name}");
        let mut add = |id, text: String, line: &str| {
            let line = format!("  {line}");
            changes.add(Change::new(id, text, &[&header, &line]).comment("Link: may go down for a moment."));
        };
        let mode = port.rest("priority-flow-control mode").unwrap_or("auto");
        // Words behind "on" choose details.
        if mode.split(' ').next() != Some("on") {
            add(
                "switch.pfc_off",
                format!("{name}: PFC's mode is {mode}: it is off unless LLDP agrees"),
                "priority-flow-control mode on",
            );
        }
        for direction in ["receive", "send"] {
            if port.has(&format!("flowcontrol {direction} on")) {
                add(
                    "switch.llfc_and_pfc",
                    format!("{name}: 802.3x pause is on ({direction}): it excludes PFC"),
                    &format!("no flowcontrol {direction} on"),
                );
            }
        }
        if port.has("priority-flow-control watch-dog-interface off") {
            add(
                "switch.no_watchdog",
                format!("{name}: PFC's watchdog is off"),
                "priority-flow-control watch-dog-interface on",
            );
        }
        let mtu = self.settings.switch_mtu();
        let known = port.rest("mtu").and_then(number).unwrap_or(1_500);
        if self.generation == NexusGeneration::CloudScale && known < mtu {
            add(
                "switch.mtu",
                format!("{name}: the MTU is {known} bytes"),
                &format!("mtu {mtu}"),
            );
        }
    }

    /// The policy of a type and a name.
    fn policy(&self, kind: Kind, name: &str) -> Option<&Block> {
        self.policies[kind as usize].get(name).copied()
    }

    /// Classes of a policy with their groups.
    fn classes<'b>(&self, policy: &'b Block, kind: Kind) -> Vec<(&'b str, Option<u8>, &'b Block)> {
        let words = format!("type {} ", kind.name());
        let all = policy.below("class").map(|(line, block)| {
            let class = line.strip_prefix(&words).unwrap_or(line);
            (class, self.class_group(class, kind), block)
        });
        all.collect()
    }

    /// The group of a class: in the name of the system's (`c-8q-nq3`, `c-out-q3`), or in its map.
    fn class_group(&self, class: &str, kind: Kind) -> Option<u8> {
        if class.starts_with("c-") || class == "class-default" {
            if class.ends_with("default") {
                return Some(0);
            }
            let (_, number) = class.rsplit_once('q')?;
            return number.parse().ok();
        }
        let map = self.maps[kind as usize].get(class)?;
        let group = number(map.rest("match qos-group")?)?;
        u8::try_from(group).ok()
    }

    /// Use of the buffer from which PFC pauses the group, where the policy says it.
    fn pause_threshold(&self, group: u8) -> Option<u64> {
        let name = self.system.rest("service-policy type network-qos")?;
        let policy = self.policy(Kind::Network, name)?;
        let classes = self.classes(policy, Kind::Network);
        let (.., block) = classes.iter().find(|(_, known, _)| *known == Some(group))?;
        let mut words = block
            .rest("pause")?
            .split(' ')
            .skip_while(|word| *word != "pause-threshold");
        words.nth(1)?.parse().ok()
    }
}

/// True of policies that NX-OS has by itself: `default-8q-out-policy`, `default-nq-policy`. They cannot be changed, and neither have a
/// lossless group nor mark packets (Cisco's QoS configuration guide of the Nexus 9000: `qos copy policy-map` makes policies of them).
fn is_of_system(policy: &str) -> bool {
    policy.starts_with("default-")
}

/// A new policy of a type, and its use, because none is used or only one of the system.
fn unused(
    id: &'static str,
    kind: Kind,
    active: Option<&str>,
    mut step: Step,
    (place, line): (&str, &str),
) -> Change {
    let text = match active {
        Some(policy) => {
            let lacks = match kind {
                Kind::Network => "has no lossless group",
                Kind::Queuing => "does not mark packets",
            };
            format!("{policy} {lacks}, and cannot be changed: it is a policy of the system")
        }
        None => format!("no policy of the type {} is used", kind.name()),
    };
    step.commands.extend([place.to_owned(), line.to_owned()]);
    Change { id, text, step }
}

/// Input policies, with the classes of both DSCPs.
fn inputs<'a>(blocks: &'a [Block], cluster: &Cluster) -> BTreeMap<&'a str, Input<'a>> {
    let maps = named(blocks, "class-map type qos");
    let has = |class: &str, dscp: u8| {
        let lines = maps
            .get(class)
            .into_iter()
            .flat_map(|map| map.below("match dscp"));
        lines.into_iter().any(|(list, _)| dscps(list).contains(&dscp))
    };
    let input = |policy: &'a Block| {
        let mut input = Input {
            data: None,
            cnp: None,
            first: None,
        };
        for (class, block) in policy.below("class") {
            let class = class.strip_prefix("type qos ").unwrap_or(class);
            let group = block.rest("set qos-group").and_then(number);
            let reached = Some((class, group.and_then(|group| u8::try_from(group).ok())));
            input.first = input.first.or(Some(class));
            if input.data.is_none() && has(class, cluster.dscp) {
                input.data = reached;
            }
            if input.cnp.is_none() && has(class, cluster.cnp_dscp) {
                input.cnp = reached;
            }
        }
        input
    };
    let policies = named(blocks, "policy-map type qos");
    policies
        .into_iter()
        .map(|(name, policy)| (name, input(policy)))
        .collect()
}

/// Priorities of `pfc-cos 3`, or of `buffer-size 1 ... pfc-cos 3,4`.
fn pause_priorities(pause: &str) -> Vec<u8> {
    let mut words = pause.split(' ').skip_while(|word| *word != "pfc-cos");
    let list = words.nth(1).unwrap_or_default();
    list.split(',')
        .filter_map(|priority| priority.parse().ok())
        .collect()
}
