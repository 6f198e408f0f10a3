//! Kinds of interfaces of SONiC, Arista EOS and Cumulus Linux, and one spelling for each name.

/// Longest name of an interface, in bytes.
const MAX_NAME: usize = 64;

/// The canonical name and the label `kind` of an interface whose numbers are part of a reading; `None` of management ports, interfaces
/// without a port (`Vlan10`, `Loopback0`), parts of a port (`swp1.100`: its numbers are in the port's), and words that are no interface.
///
/// `Et1/1` of EOS' tables is `Ethernet1/1`; `PortChannel7`, `Port-Channel7` and `Po7` are `port-channel7`. `eth0` of SONiC and Cumulus
/// Linux is their port for management. `Ethernet-BP0` of a SONiC chassis connects its chips.
pub(super) fn counted(name: &str) -> Option<(String, &'static str)> {
    let name = name.trim();
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_/:".contains(&byte);
    if name.len() > MAX_NAME || !name.bytes().all(is_name) || !name.bytes().any(|byte| byte.is_ascii_digit())
    {
        return None;
    }
    let numbered = |prefix: &str| {
        let rest = name.strip_prefix(prefix)?;
        rest.starts_with(|first: char| first.is_ascii_digit())
            .then_some(rest)
    };
    if let Some(rest) = numbered("Ethernet").or_else(|| numbered("Et")) {
        return Some((format!("Ethernet{rest}"), "port"));
    }
    let aggregate = ["PortChannel", "Port-Channel", "port-channel", "Po"];
    if let Some(rest) = aggregate.iter().find_map(|prefix| numbered(prefix)) {
        return Some((format!("port-channel{rest}"), "aggregate"));
    }
    if name.starts_with("Ethernet-") {
        return Some((name.to_owned(), "internal"));
    }
    if numbered("swp").is_some() {
        return Some((name.to_owned(), "port"));
    }
    name.starts_with("bond").then(|| (name.to_owned(), "aggregate"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, expected: Option<(&str, &str)>) {
        let found = counted(name);
        let found = found.as_ref().map(|(name, kind)| (name.as_str(), *kind));
        assert_eq!(found, expected, "{name}");
    }

    // Names of sonic-utilities' tests, Arista's tables and Cumulus Linux' documentation.
    #[test]
    fn ports_and_aggregates_are_counted() {
        check("Ethernet0", Some(("Ethernet0", "port")));
        check("Ethernet1/1", Some(("Ethernet1/1", "port")));
        check("Et1/1", Some(("Ethernet1/1", "port")));
        check("swp1s0", Some(("swp1s0", "port")));
        check("Ethernet-BP4", Some(("Ethernet-BP4", "internal")));
        check("PortChannel0002", Some(("port-channel0002", "aggregate")));
        check("Port-Channel7", Some(("port-channel7", "aggregate")));
        check("Po7", Some(("port-channel7", "aggregate")));
        check("bond1", Some(("bond1", "aggregate")));
    }

    #[test]
    fn management_and_virtual_interfaces_are_not() {
        for name in [
            "eth0",
            "Management1",
            "Ma1",
            "Vlan10",
            "Loopback0",
            "lo",
            "",
            "Port",
            "---------",
            "swp",
            "x=1",
            "swp1.100",
            "Ethernet1/1.5",
            "Ethernet 0",
            "\u{e9}1",
        ] {
            check(name, None);
        }
        check(&format!("Ethernet{}", "1".repeat(70)), None);
    }
}
