//! Configuration of a Cisco Nexus 9000: a template, to be compared with the guide of the switch's release.

use super::settings::Settings;
use super::step::Step;
use crate::inventory::Cluster;

/// The line that uses the policy of [`network`].
pub(super) const NETWORK_LINE: &str = "  service-policy type network-qos ROCE_NQ";
/// The line that uses the policy of [`queuing`].
pub(super) const QUEUING_LINE: &str = "  service-policy type queuing output ROCE_OUT";

/// Generation of the switch's chip.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NexusGeneration {
    /// First generation: four queues.
    First,
    /// Cloud Scale (EX, FX, GX and later): eight queues.
    CloudScale,
}

impl NexusGeneration {
    /// The system's class of a group in a policy of the type network-qos.
    pub(super) fn network_class(self, group: u8) -> String {
        match (self, group) {
            (Self::First, 0) => "c-nq-default".to_owned(),
            (Self::First, group) => format!("c-nq{group}"),
            (Self::CloudScale, 0) => "c-8q-nq-default".to_owned(),
            (Self::CloudScale, group) => format!("c-8q-nq{group}"),
        }
    }

    /// The system's class of a group in a policy of the type queuing.
    pub(super) fn queue_class(self, group: u8) -> String {
        match (self, group) {
            (Self::First, 0) => "c-out-q-default".to_owned(),
            (Self::First, group) => format!("c-out-q{group}"),
            (Self::CloudScale, 0) => "c-out-8q-q-default".to_owned(),
            (Self::CloudScale, group) => format!("c-out-8q-q{group}"),
        }
    }

    /// The group of RoCE data: that of the lossless priority, or the highest of four queues.
    pub(super) fn data_group(self, cluster: &Cluster) -> u8 {
        match self {
            Self::First => cluster.priority.clamp(1, 3),
            Self::CloudScale => cluster.priority.max(1),
        }
    }

    /// The group of CNPs: the last queue, but not that of the data.
    pub(super) fn cnp_group(self, cluster: &Cluster) -> u8 {
        let last = match self {
            Self::First => 3,
            Self::CloudScale => 7,
        };
        if self.data_group(cluster) == last {
            last - 1
        } else {
            last
        }
    }
}

/// Configuration of the switch, and of interfaces.
pub fn nexus(
    cluster: &Cluster,
    settings: &Settings,
    generation: NexusGeneration,
    interfaces: &[String],
) -> Vec<Step> {
    let mut all = vec![
        classification(cluster, generation),
        network(cluster, settings, generation, generation.data_group(cluster)),
        queuing(
            settings,
            generation,
            (generation.data_group(cluster), generation.cnp_group(cluster)),
        ),
        system(),
        Step::new(&[
            "The watchdog ends a storm of pauses: a queue that cannot send for a while is shut down instead of the fabric.",
            "Link: stays up. Undo: no priority-flow-control watch-dog-interval on",
        ])
        .run("priority-flow-control watch-dog-interval on"),
    ];
    all.extend(interfaces.iter().map(|interface| port(settings, interface)));
    all.push(
        Step::new(&["See that it works, then save."])
            .run("show interface priority-flow-control")
            .run("show queuing interface")
            .run("copy running-config startup-config"),
    );
    all
}

/// Classes of DSCPs and their groups.
pub(super) fn classification(cluster: &Cluster, generation: NexusGeneration) -> Step {
    Step::new(&[
        "A template: compare with the QoS guide of the switch's release.",
        "RoCE data and CNPs by their DSCPs. Without a group of their own they share the default queue.",
        "Link: stays up. Undo: no policy-map type qos ROCE_IN",
    ])
    .run("class-map type qos match-any ROCE")
    .run(format!("  match dscp {}", cluster.dscp))
    .run("class-map type qos match-any CNP")
    .run(format!("  match dscp {}", cluster.cnp_dscp))
    .run("policy-map type qos ROCE_IN")
    .run("  class ROCE")
    .run(format!("    set qos-group {}", generation.data_group(cluster)))
    .run("  class CNP")
    .run(format!("    set qos-group {}", generation.cnp_group(cluster)))
}

/// The policy of the type network-qos, in which this group is lossless.
pub(super) fn network(
    cluster: &Cluster,
    settings: &Settings,
    generation: NexusGeneration,
    group: u8,
) -> Step {
    let mtu = settings.switch_mtu();
    Step::new(&[])
        .comment(format!(
            "Group {group} is lossless, by PFC of priority {}.",
            cluster.priority
        ))
        .comment("Link: the buffers are divided again when it is applied; links of some models flap. Undo: no policy-map type network-qos ROCE_NQ")
        .run("policy-map type network-qos ROCE_NQ")
        .run(format!(
            "  class type network-qos {}",
            generation.network_class(group)
        ))
        .run(format!("    mtu {mtu}"))
        .run(format!("    pause pfc-cos {}", cluster.priority))
        .run(format!("  class type network-qos {}", generation.network_class(0)))
        .run(format!("    mtu {mtu}"))
}

/// The policy of the type queuing, for the groups of RoCE data and of CNPs.
pub(super) fn queuing(settings: &Settings, generation: NexusGeneration, (data, cnp): (u8, u8)) -> Step {
    let last = if generation == NexusGeneration::First {
        3
    } else {
        7
    };
    let mut step = Step::new(&[
        "CNPs go first: they are few and urgent. RoCE data has a share and ECN, not strict priority: it would starve all others.",
        "Thresholds grow with the speed and the cables: --set ecn_min=150k --set ecn_max=3000k. Link: stays up.",
        "Undo: no policy-map type queuing ROCE_OUT",
    ])
    .run("policy-map type queuing ROCE_OUT");
    for group in (0..=last).rev() {
        step = step.run(format!("  class type queuing {}", generation.queue_class(group)));
        step = if group == cnp {
            step.run("    priority level 1")
        } else if group == data {
            step.run(format!("    bandwidth remaining percent {}", settings.bandwidth))
                .run(format!("    {}", ecn_line(settings)))
        } else if group == 0 {
            step.run(format!(
                "    bandwidth remaining percent {}",
                100 - settings.bandwidth
            ))
        } else {
            step.run("    bandwidth remaining percent 0")
        };
    }
    step
}

/// The line that makes a queue mark packets.
pub(super) fn ecn_line(settings: &Settings) -> String {
    let (min, max) = settings.kbytes();
    format!(
        "random-detect minimum-threshold {min} kbytes maximum-threshold {max} kbytes drop-probability {} weight 0 ecn",
        settings.ecn_probability
    )
}

fn system() -> Step {
    Step::new(&[
        "Both policies become those of the whole switch. Apply it in a window for maintenance.",
        "Undo: no service-policy of each below system qos",
    ])
    .run("system qos")
    .run(NETWORK_LINE)
    .run(QUEUING_LINE)
}

fn port(settings: &Settings, interface: &str) -> Step {
    Step::new(&[
        "PFC on, whatever LLDP says, its watchdog, and 802.3x pause off. Link: an MTU or PFC that changes may take it down for a moment.",
        "Undo: no before each line",
    ])
    .run(format!("interface {interface}"))
    .run("  priority-flow-control mode on")
    .run("  priority-flow-control watch-dog-interface on")
    .run("  service-policy type qos input ROCE_IN")
    .run(format!("  mtu {}", settings.switch_mtu()))
    .run("  no flowcontrol receive on")
    .run("  no flowcontrol send on")
}
