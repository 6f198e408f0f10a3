//! `ethtool -S PORT` of switchd: `     HwIfInPfc3Pkt: 5`.

use roce_model::{Counter, value_of};

use super::super::answer::count;
use super::super::port::{Port, PortPlace};
use crate::device::Reading;

/// Statistics of a port, with the value of their label.
const PORT: [(&str, Counter, Option<&str>); 14] = [
    ("HwIfInOctets", Counter::SwitchInterfaceReceivedBytes, None),
    ("HwIfOutOctets", Counter::SwitchInterfaceTransmittedBytes, None),
    (
        "HwIfInUcastPkts",
        Counter::SwitchInterfaceReceivedPackets,
        Some("unicast"),
    ),
    (
        "HwIfInMcastPkts",
        Counter::SwitchInterfaceReceivedPackets,
        Some("multicast"),
    ),
    (
        "HwIfInBcastPkts",
        Counter::SwitchInterfaceReceivedPackets,
        Some("broadcast"),
    ),
    (
        "HwIfOutUcastPkts",
        Counter::SwitchInterfaceTransmittedPackets,
        Some("unicast"),
    ),
    (
        "HwIfOutMcastPkts",
        Counter::SwitchInterfaceTransmittedPackets,
        Some("multicast"),
    ),
    (
        "HwIfOutBcastPkts",
        Counter::SwitchInterfaceTransmittedPackets,
        Some("broadcast"),
    ),
    (
        "HwIfInDiscards",
        Counter::SwitchInterfaceDiscards,
        Some("received"),
    ),
    (
        "HwIfOutDiscards",
        Counter::SwitchInterfaceDiscards,
        Some("transmitted"),
    ),
    ("HwIfInErrors", Counter::SwitchInterfaceErrors, Some("received")),
    (
        "HwIfOutErrors",
        Counter::SwitchInterfaceErrors,
        Some("transmitted"),
    ),
    ("HwIfInPausePkt", Counter::SwitchPauseReceivedFrames, None),
    ("HwIfOutPausePkt", Counter::SwitchPauseTransmittedFrames, None),
];

/// Adds the statistics of a port. False if the text has none.
pub(super) fn read(name: &str, text: &str, reading: &mut Reading) -> bool {
    let Some(mut port) = Port::new(reading, name) else {
        // Another interface: nothing is expected of it.
        return true;
    };
    let mut is_known = false;
    let mut received = [None; 8];
    let mut transmitted = [None; 8];
    // Switches without a sum of what they did not send count it by reason.
    let (mut unsent, mut has_sum) = (None::<u64>, false);
    for line in text.lines() {
        let Some((name, value)) = line.split_once(':') else {
            continue;
        };
        let (name, Some(value)) = (name.trim(), count(value)) else {
            continue;
        };
        is_known = true;
        has_sum |= name == "HwIfOutDiscards";
        if matches!(name, "HwIfOutQDrops" | "HwIfOutNonQDrops") {
            unsent = Some(unsent.unwrap_or_default().saturating_add(value));
        } else if let Some((_, counter, detail)) = PORT.iter().find(|(known, ..)| *known == name) {
            let place = detail.map_or_else(PortPlace::default, PortPlace::detail);
            port.put(*counter, place, Some(value_of(value)));
        } else if let Some(priority) = numbered(name, "HwIfInPfc", &["Pkt", "PauseFrames"]) {
            received[priority] = Some(value);
        } else if let Some(priority) = numbered(name, "HwIfOutPfc", &["Pkt", "PauseFrames"]) {
            transmitted[priority] = Some(value);
        } else if let Some(queue) = numbered(name, "HwIfOutQ", &["WredDrops"]) {
            let queue = queue.to_string();
            port.put(
                Counter::SwitchQueueWredDroppedPackets,
                PortPlace::queue(&queue).with("any"),
                Some(value_of(value)),
            );
        }
    }
    port.put_pfc(&received, &transmitted);
    let place = PortPlace::detail("transmitted");
    let unsent = unsent.filter(|_| !has_sum).map(value_of);
    port.put(Counter::SwitchInterfaceDiscards, place, unsent);
    is_known
}

/// The number, 0 to 7, between `start` and one of `ends`.
fn numbered(name: &str, start: &str, ends: &[&str]) -> Option<usize> {
    let rest = name.strip_prefix(start)?;
    let number = ends.iter().find_map(|end| rest.strip_suffix(end))?;
    number.parse().ok().filter(|number| *number < 8)
}
