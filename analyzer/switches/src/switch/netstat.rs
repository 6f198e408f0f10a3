//! The table of interfaces that SONiC's `portstat` (`show interfaces counters`) prints, and Cumulus Linux's `cl-netstat`: a line for each
//! interface with `RX_OK`, `RX_ERR`, `RX_DRP` and their like.
//!
//! The forms are the expected texts of sonic-utilities' tests (`tests/portstat_test.py`) and those of the documentation of Cumulus Linux
//! (`nv show interface --view=counters` has the same columns). Rates, and what ran over, are left out: `RX_OVR` counts frames by their length.

use roce_model::{Counter, value_of};

use super::answer::count;
use super::port::{Port, PortPlace};
use crate::device::Reading;

/// Columns with counts, and the value of their label. `RX_OK` has packets of all casts.
const COLUMNS: [(&str, Counter, Option<&str>); 7] = [
    ("MTU", Counter::SwitchInterfaceMtu, None),
    ("RX_OK", Counter::SwitchInterfaceReceivedPackets, Some("all")),
    ("RX_ERR", Counter::SwitchInterfaceErrors, Some("received")),
    ("RX_DRP", Counter::SwitchInterfaceDiscards, Some("received")),
    ("TX_OK", Counter::SwitchInterfaceTransmittedPackets, Some("all")),
    ("TX_ERR", Counter::SwitchInterfaceErrors, Some("transmitted")),
    ("TX_DRP", Counter::SwitchInterfaceDiscards, Some("transmitted")),
];

/// Words that are a unit behind the number of their cell (`0.00 B/s`).
const UNITS: [&str; 9] = ["B/s", "KB/s", "MB/s", "GB/s", "TB/s", "B", "KB", "MB", "GB"];

/// Adds the counts of the table's interfaces. False if there is no such table.
///
/// A table of routed interfaces (`show interfaces counters rif`) has neither states nor MTUs, and counts other packets.
pub(super) fn read(text: &str, reading: &mut Reading) -> bool {
    let mut is_table = false;
    let mut columns: Vec<&str> = Vec::new();
    for line in text.lines() {
        let cells: Vec<&str> = line
            .split_whitespace()
            .filter(|word| !UNITS.contains(word))
            .take(32)
            .collect();
        match cells.as_slice() {
            ["IFACE" | "Iface" | "Interface", names @ ..] => {
                let is_of_ports = ["STATE", "MTU"].iter().any(|name| names.contains(name));
                let has_counts = names.iter().any(|name| name.starts_with("RX_"));
                columns.clear();
                if is_of_ports && has_counts {
                    is_table = true;
                    columns.extend(names);
                }
            }
            [name, values @ ..] if !columns.is_empty() && values.len() == columns.len() => {
                let Some(mut port) = Port::new(reading, name) else {
                    continue;
                };
                for (column, value) in columns.iter().zip(values) {
                    put(&mut port, column, value);
                }
            }
            _ => {}
        }
    }
    is_table
}

fn put(port: &mut Port<'_>, column: &str, value: &str) {
    let is_up = match (column, value) {
        ("STATE", "U") => Some(true),
        // Down, and disabled by an administrator.
        ("STATE", "D" | "X") => Some(false),
        ("Flg", flags) => Some(flags.contains('R')),
        _ => None,
    };
    let up = is_up.map(|is_up| f64::from(u8::from(is_up)));
    port.put(Counter::SwitchInterfaceUp, PortPlace::default(), up);
    if let Some((_, counter, detail)) = COLUMNS.iter().find(|(name, ..)| *name == column) {
        let place = detail.map_or_else(PortPlace::default, PortPlace::detail);
        port.put(*counter, place, count(value).map(value_of));
    }
}

#[cfg(test)]
mod tests {
    use roce_model::{SampleSource, Time};

    use super::super::recorded::check;
    use super::*;

    #[test]
    fn units_are_no_cells_and_routed_interfaces_are_no_ports() {
        let mut reading = Reading::new(SampleSource::Switch, "leaf1", Time(0));
        // `show interfaces counters -a`: packets per second have a unit of bytes in some releases.
        let text = "    IFACE    STATE    RX_OK     RX_BPS    RX_PPS    RX_UTIL    RX_ERR    RX_DRP    RX_OVR    TX_OK    TX_BPS    TX_PPS    TX_UTIL    TX_ERR    TX_DRP    TX_OVR\n\
                    ---------  -------  -------  ---------  --------  ---------  --------  --------  --------  -------  --------  --------  ---------  --------  --------  --------\n\
                    Ethernet0        U    1,000  12.00 MB/s  0.00/s      0.00%         1         2         3        4  0.00 B/s  0.00 B/s      0.00%         5         6       N/A\n\
                    Ethernet4        X        8  0.00 B/s    0.00/s      0.00%         0         0       N/A       10  0.00 B/s  0.00/s       0.00%       N/A       N/A       N/A\n";
        assert!(read(text, &mut reading));
        check(
            &reading,
            Counter::SwitchInterfaceReceivedPackets,
            &["Ethernet0 port all 1000", "Ethernet4 port all 8"],
        );
        check(
            &reading,
            Counter::SwitchInterfaceDiscards,
            &[
                "Ethernet0 port received 2",
                "Ethernet0 port transmitted 6",
                "Ethernet4 port received 0",
            ],
        );
        check(
            &reading,
            Counter::SwitchInterfaceUp,
            &["Ethernet0 port 1", "Ethernet4 port 0"],
        );
        let mut reading = Reading::new(SampleSource::Switch, "leaf1", Time(0));
        let routed = "    IFACE    RX_OK    RX_BPS    RX_PPS    RX_ERR    TX_OK    TX_BPS    TX_PPS    TX_ERR\nEthernet0  12  1.00 B/s  1.00/s  0  9  1.00 B/s  1.00/s  0\n";
        assert!(!read(routed, &mut reading));
        assert!(reading.samples.is_empty());
        let kernel = "Iface      MTU    RX_OK    RX_ERR    RX_DRP    RX_OVR    TX_OK    TX_ERR    TX_DRP    TX_OVR  Flg\neth0 1500 611 0 0 0 487 0 0 0 BMRU\nswp2 9216 1000 0 3 0 2000 0 4 0 BMU\n";
        assert!(read(kernel, &mut reading));
        check(&reading, Counter::SwitchInterfaceMtu, &["swp2 port 9216"]);
        check(&reading, Counter::SwitchInterfaceUp, &["swp2 port 0"]);
    }
}
