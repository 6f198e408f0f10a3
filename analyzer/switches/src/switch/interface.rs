//! Names of switches' interfaces: one spelling for each interface, and its kind.

/// Longest name of an interface, in bytes.
const MAX_NAME: usize = 64;

/// Abbreviations of kinds that carry a number, in lower case, and their canonical spelling. Longer ones go before their beginnings.
const PREFIXES: [(&str, &str); 13] = [
    ("port-channel", "port-channel"),
    ("portchannel", "port-channel"),
    ("po", "port-channel"),
    ("ethernet", "Ethernet"),
    ("eth", "Ethernet"),
    ("et", "Ethernet"),
    ("management", "Management"),
    ("mgmt", "mgmt"),
    ("ma", "Management"),
    ("vlan", "Vlan"),
    ("loopback", "loopback"),
    ("lo", "loopback"),
    ("ii", "ii"),
];

/// Beginnings of counted names of SONiC, EOS and Cumulus Linux, which a digit follows.
const NUMBERED: [&str; 7] = [
    "Ethernet",
    "Et",
    "PortChannel",
    "Port-Channel",
    "port-channel",
    "Po",
    "swp",
];

/// Kind of an interface.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum InterfaceKind {
    /// A port for a cable.
    Port,
    /// A connection between parts of the switch: `ii1/1/1`, `inband`, a backplane port.
    Internal,
    /// A group of ports: `port-channel7`, `bond1`.
    Aggregate,
    /// The switch's own port for its management. Its numbers are left out.
    Management,
    /// An interface without a port (`Vlan10`, `loopback0`), or a part of one (`Ethernet1/1.100`), whose traffic the port counts. Its
    /// numbers are left out.
    Virtual,
}

impl InterfaceKind {
    /// Its name in metrics and JSON.
    pub fn label(self) -> &'static str {
        match self {
            Self::Port => "port",
            Self::Internal => "internal",
            Self::Aggregate => "aggregate",
            Self::Management => "management",
            Self::Virtual => "virtual",
        }
    }

    /// True if its numbers are part of a reading: it forwards traffic between hosts.
    pub fn is_counted(self) -> bool {
        matches!(self, Self::Port | Self::Internal | Self::Aggregate)
    }
}

/// An interface of a switch.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Interface {
    /// Its canonical name: `Ethernet1/1/1`, `port-channel7`, `ii1/1/1`, `swp1s0`.
    pub name: String,
    /// Its kind.
    pub kind: InterfaceKind,
}

impl Interface {
    /// The interface of this name in any spelling: `Eth1/1/1`, `eth1/1/1` and `ethernet 1/1/1` are `Ethernet1/1/1`.
    ///
    /// `None` of a word that is no interface: the empty one, one with other characters than names have, one without a number.
    pub fn parse(name: &str) -> Option<Self> {
        let name = name.trim();
        if name.is_empty() || name.len() > MAX_NAME || !name.is_ascii() {
            return None;
        }
        let lower = name.to_ascii_lowercase();
        if matches!(lower.as_str(), "inband" | "cpu") {
            return Some(Self::new(lower, InterfaceKind::Internal));
        }
        let is_number =
            |rest: &str| rest.starts_with(|first: char| first.is_ascii_digit()) && is_location(rest);
        for (short, long) in PREFIXES {
            let Some(rest) = lower.strip_prefix(short) else {
                continue;
            };
            let rest = rest.trim_start();
            // `eth0` of SONiC and Cumulus Linux is their port for management. NX-OS' names have a slash.
            if short == "eth" && name.starts_with("eth") && !rest.contains('/') {
                break;
            }
            if is_number(rest) {
                let kind = if rest.contains('.') {
                    InterfaceKind::Virtual
                } else {
                    kind_of(long)
                };
                return Some(Self::new(format!("{long}{rest}"), kind));
            }
        }
        // Names of other systems are kept as they are.
        let has_number = name.bytes().any(|byte| byte.is_ascii_digit());
        let starts = name.starts_with(|first: char| first.is_ascii_alphabetic());
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:".contains(&byte);
        if !has_number || !starts || !name.bytes().all(is_name) {
            return None;
        }
        Some(Self::new(name.to_owned(), other_kind(&lower)))
    }

    fn new(name: String, kind: InterfaceKind) -> Self {
        Self { name, kind }
    }
}

/// The canonical name of an interface in any spelling; `name` itself, without blanks around it, where it is none.
pub fn canonical(name: &str) -> String {
    Interface::parse(name).map_or_else(|| name.trim().to_owned(), |interface| interface.name)
}

/// The interface of a name in the tables and documents of SONiC, EOS and Cumulus Linux, if its numbers are part of a reading; `None`
/// also of words that these systems give to no interface: their tables have such words in the same column.
pub fn counted(name: &str) -> Option<Interface> {
    let name = name.trim();
    let is_numbered = |prefix: &&str| {
        let rest = name.strip_prefix(*prefix);
        rest.is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
    };
    // `Ethernet-BP0` of a SONiC chassis connects its chips.
    let is_known =
        NUMBERED.iter().any(is_numbered) || name.starts_with("Ethernet-") || name.starts_with("bond");
    Interface::parse(name).filter(|interface| is_known && interface.kind.is_counted())
}

/// True of the number of an interface: `1/1/1`, `0/1.100`, `7`, `1/1:2`.
fn is_location(rest: &str) -> bool {
    rest.bytes()
        .all(|byte| byte.is_ascii_digit() || b"/.:".contains(&byte))
}

fn kind_of(prefix: &str) -> InterfaceKind {
    match prefix {
        "port-channel" => InterfaceKind::Aggregate,
        "ii" => InterfaceKind::Internal,
        "Management" | "mgmt" => InterfaceKind::Management,
        "Vlan" | "loopback" => InterfaceKind::Virtual,
        _ => InterfaceKind::Port,
    }
}

/// Kind of an interface whose name is kept as it is.
fn other_kind(lower: &str) -> InterfaceKind {
    let starts = |prefixes: &[&str]| prefixes.iter().any(|prefix| lower.starts_with(prefix));
    if lower.contains('.') {
        // A part of a port or of a group.
        InterfaceKind::Virtual
    } else if starts(&[
        "ethernet-bp",
        "ethernet-ib",
        "ethernet-rec",
        "fabric",
        "recirc",
        "sup-",
        "cpu",
    ]) {
        // SONiC on a chassis: Ethernet-BP0, Ethernet-IB0, Ethernet-Rec0.
        InterfaceKind::Internal
    } else if starts(&["bond", "lag"]) {
        InterfaceKind::Aggregate
    } else if starts(&["eth", "usb"]) {
        InterfaceKind::Management
    } else if starts(&["nve", "vxlan", "tunnel", "br", "vni", "bdi", "peerlink"]) {
        InterfaceKind::Virtual
    } else {
        InterfaceKind::Port
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(names: &[&str], canonical: &str, kind: InterfaceKind) {
        for name in names {
            let interface = Interface::parse(name).unwrap_or_else(|| panic!("{name} is an interface"));
            assert_eq!(
                (interface.name.as_str(), interface.kind),
                (canonical, kind),
                "{name}"
            );
        }
    }

    // The spellings of B.33.4, and those of SONiC, EOS and Cumulus Linux.
    #[test]
    fn spellings_of_one_interface_are_one_name() {
        use InterfaceKind::{Aggregate, Internal, Management, Port, Virtual};
        check(
            &[
                "Ethernet1/1/1",
                "Eth1/1/1",
                "eth1/1/1",
                "ethernet1/1/1",
                "Ethernet 1/1/1",
                " Et1/1/1 ",
            ],
            "Ethernet1/1/1",
            Port,
        );
        check(&["Ethernet1/1/10"], "Ethernet1/1/10", Port);
        check(
            &["port-channel7", "Po7", "Port-Channel7", "PortChannel7"],
            "port-channel7",
            Aggregate,
        );
        check(&["ii1/1/1", "II1/1/1"], "ii1/1/1", Internal);
        check(&["inband", "Inband"], "inband", Internal);
        check(&["mgmt0"], "mgmt0", Management);
        check(&["Management1", "Ma1"], "Management1", Management);
        check(&["eth0"], "eth0", Management);
        check(&["Ethernet0", "Et0"], "Ethernet0", Port);
        check(&["Ethernet-BP0"], "Ethernet-BP0", Internal);
        check(&["swp1s0"], "swp1s0", Port);
        check(&["bond1"], "bond1", Aggregate);
        check(&["Vlan10", "vlan10"], "Vlan10", Virtual);
        check(&["Eth1/1.100"], "Ethernet1/1.100", Virtual);
        check(&["swp1.100"], "swp1.100", Virtual);
        check(&["Lo0", "loopback0"], "loopback0", Virtual);
    }

    #[test]
    fn words_that_are_no_interfaces() {
        for word in [
            "",
            " ",
            "Port",
            "--",
            "-",
            "1",
            "Ethernet",
            "a b1",
            "eth\u{e9}1",
            "\u{1b}[1m",
            "x=1",
        ] {
            assert_eq!(Interface::parse(word), None, "{word}");
        }
        assert_eq!(Interface::parse(&format!("Ethernet{}", "1".repeat(100))), None);
        assert_eq!(canonical(" nothing "), "nothing");
        assert_eq!(canonical("Eth1/2"), "Ethernet1/2");
    }

    #[track_caller]
    fn check_counted(name: &str, expected: Option<(&str, &str)>) {
        let found = counted(name);
        let found = found
            .as_ref()
            .map(|interface| (interface.name.as_str(), interface.kind.label()));
        assert_eq!(found, expected, "{name}");
    }

    // Names of sonic-utilities' tests, Arista's tables and Cumulus Linux' documentation.
    #[test]
    fn ports_and_aggregates_are_counted() {
        check_counted("Ethernet0", Some(("Ethernet0", "port")));
        check_counted("Ethernet1/1", Some(("Ethernet1/1", "port")));
        check_counted("Et1/1", Some(("Ethernet1/1", "port")));
        check_counted("swp1s0", Some(("swp1s0", "port")));
        check_counted("Ethernet-BP4", Some(("Ethernet-BP4", "internal")));
        check_counted("PortChannel0002", Some(("port-channel0002", "aggregate")));
        check_counted("Port-Channel7", Some(("port-channel7", "aggregate")));
        check_counted("Po7", Some(("port-channel7", "aggregate")));
        check_counted("bond1", Some(("bond1", "aggregate")));
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
            "bond1.100",
            "Ethernet1/1.5",
            "Ethernet 0",
            "\u{e9}1",
        ] {
            check_counted(name, None);
        }
        check_counted(&format!("Ethernet{}", "1".repeat(70)), None);
    }
}
