//! Configuration of an Arista switch (EOS). The commands are those of Arista's AVD (templates of QoS profiles and of PFC's watchdog) and
//! of Broadcom's deployment guide for RoCE on Arista.

use super::settings::{Settings, cnp_priority};
use super::step::Step;
use crate::inventory::Cluster;

/// Configuration of the switch, and of interfaces.
pub fn eos(cluster: &Cluster, settings: &Settings, interfaces: &[String]) -> Vec<Step> {
    let Cluster {
        priority,
        dscp,
        cnp_dscp,
        ..
    } = cluster;
    let cnp = cnp_priority(cluster);
    let mut all = vec![
        Step::new(&["RoCE data and CNPs by their DSCPs to traffic classes, whose queues have the same numbers."])
            .comment(format!(
                "Link: stays up. Undo: no qos map dscp {dscp} {cnp_dscp}"
            ))
            .run(map_line(*dscp, *priority))
            .run(map_line(*cnp_dscp, cnp)),
        watchdog(),
        Step::new(&[
            "One profile for all ports: PFC of one priority, ECN and a share for its queue; CNPs go first.",
            "RoCE data has no strict priority: it would starve all others. Chips with unicast queues of their own: uc-tx-queue.",
            "Thresholds grow with the speed and the cables: --set ecn_min=150k --set ecn_max=3000k.",
            "Link: stays up. Undo: no qos profile ROCE",
        ])
        .run("qos profile ROCE")
        .run("   qos trust dscp")
        .run("   priority-flow-control on")
        .run(format!("   priority-flow-control priority {priority} no-drop"))
        .run(format!("   tx-queue {priority}"))
        .run("      no priority")
        .run(format!("      bandwidth percent {}", settings.bandwidth))
        .run(format!("      {}", ecn_line(settings)))
        .run(format!("   tx-queue {cnp}"))
        .run("      priority strict"),
    ];
    for interface in interfaces {
        all.push(
            Step::new(&[
                "802.3x pause off, and the profile. Link: an MTU that changes may take it down for a moment.",
                "Undo: no service-profile ROCE",
            ])
            .run(format!("interface {interface}"))
            .run("   flowcontrol receive off")
            .run("   flowcontrol send off")
            .run(format!("   mtu {}", settings.switch_mtu().min(9_214)))
            .run("   service-profile ROCE"),
        );
    }
    all.push(
        Step::new(&["See that it works, then save."])
            .run("show priority-flow-control")
            .run("show qos interfaces ecn")
            .run("write memory"),
    );
    all
}

/// PFC's watchdog. Times are in seconds.
pub(super) fn watchdog() -> Step {
    Step::new(&[
        "The watchdog ends a storm of pauses: packets of a stuck queue are dropped instead of the fabric standing still.",
        "Times in seconds. Link: stays up. Undo: no before each line",
    ])
    .run("priority-flow-control pause watchdog default timeout 0.20")
    .run("priority-flow-control pause watchdog default polling-interval 0.10")
    .run("priority-flow-control pause watchdog default recovery-time 0.20")
    .run("priority-flow-control pause watchdog action drop")
}

/// The line that maps a DSCP to a traffic class.
pub(super) fn map_line(dscp: u8, class: u8) -> String {
    format!("qos map dscp {dscp} to traffic-class {class}")
}

/// The line that makes a queue mark packets.
pub(super) fn ecn_line(settings: &Settings) -> String {
    let (min, max) = settings.kbytes();
    format!(
        "random-detect ecn minimum-threshold {min} kbytes maximum-threshold {max} kbytes max-mark-probability {}",
        settings.ecn_probability
    )
}
