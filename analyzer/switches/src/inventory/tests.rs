//! Inventories and their mistakes.

use super::*;

const WHOLE: &str = r#"
[cluster]
name = "rdma"
priority = 3
dscp = 26
cnp_dscp = 48

[ssh]
connect_timeout = "5s"
control_persist = "60s"

[[host]]
name = "gpu1"
address = "gpu1.example"
hypervisor = "esxi1"
interfaces = ["ens1f0np0"]
switch_ports = { ens1f0np0 = "leaf1:Ethernet1/1/1" }

[[switch]]
name = "leaf1"
kind = "nexus"
address = "192.0.2.29"
transport = "ssh"
user = "monitor"
every = "15s"

[[hypervisor]]
name = "esxi1"
kind = "esxi"
address = "192.0.2.32"
user = "root"
vmnics = ["vmnic5", "vmnic6"]
"#;

#[test]
fn a_whole_inventory() {
    let inventory = Inventory::parse(WHOLE).unwrap();
    assert_eq!(inventory.cluster.name, "rdma");
    assert_eq!(inventory.host("gpu1").unwrap().address(), "gpu1.example");
    let leaf = inventory.switch("leaf1").unwrap();
    assert_eq!((leaf.kind, leaf.transport), (SwitchKind::Nexus, Transport::Ssh));
    assert_eq!(leaf.every, Duration::from_secs(15));
    assert_eq!(inventory.hypervisor("esxi1").unwrap().vmnics.len(), 2);
    assert_eq!(Inventory::parse("").unwrap(), Inventory::default());
}

#[test]
fn mistakes_name_their_line() {
    let cases = [
        ("[cluster]\npriority = 9\n", 1, "from 0 to 7"),
        ("\n[[host]]\nname = \"a\"\nadress = \"b\"\n", 4, "adress"),
        (
            "[[host]]\nname = \"a\"\n[[host]]\nname = \"a\"\n",
            3,
            "two targets",
        ),
        (
            "[[host]]\nname = \"a\"\nhypervisor = \"e\"\n",
            1,
            "no [[hypervisor]] 'e'",
        ),
        (
            "[[host]]\nname = \"a\"\nswitch_ports = { e = \"leaf9:1\" }\n",
            1,
            "no [[switch]] 'leaf9'",
        ),
        (
            "[[host]]\nname = \"a\"\naddress = \"-oProxyCommand=x\"\n",
            1,
            "no address",
        ),
        ("[[host]]\nname = \"../a\"\n", 1, "is no name"),
        (
            "[[hypervisor]]\nname = \"e\"\nvmnics = [\"$(reboot)\"]\n",
            1,
            "'$(reboot)' is no adapter",
        ),
        (
            "[[switch]]\nname = \"s\"\nkind = \"nexus\"\nevery = \"15\"\n",
            4,
            "'15' is not a time",
        ),
        ("[[switch]]\nname = \"s\"\nkind = \"junos\"\n", 3, "junos"),
        (
            "[[switch]]\nname = \"s\"\nkind = \"sonic\"\ntransport = \"nxapi\"\n",
            1,
            "NX-API is for",
        ),
        (
            "[[switch]]\nname = \"s\"\nkind = \"nexus\"\ntransport = \"nxapi\"\nurl = \"http://s/ins\"\n",
            1,
            "https://",
        ),
        (
            "[[switch]]\nname = \"s\"\nkind = \"nexus\"\npassword = \"secret\"\n",
            4,
            "password",
        ),
    ];
    for (text, line, expected) in cases {
        let error = Inventory::parse(text).unwrap_err();
        assert_eq!(error.line, line, "{text}: {error}");
        assert!(error.text.contains(expected), "{text}: {error}");
    }
}

#[test]
fn times_have_bounds() {
    assert_eq!(parse_time("500ms"), Some(Duration::from_millis(500)));
    assert_eq!(parse_time("24h"), Some(Duration::from_hours(24)));
    for wrong in [
        "",
        "5",
        "s",
        "0s",
        "25h",
        "99999999999999999999s",
        "-1s",
        "1 s",
        "18446744073709551615h",
    ] {
        assert_eq!(parse_time(wrong), None, "{wrong}");
    }
}

/// Bounds and pairs of settings, each just beyond what is allowed.
#[test]
fn values_beyond_their_bounds_are_mistakes() {
    let nexus = "[[switch]]\nname = \"s\"\nkind = \"nexus\"\n";
    let nxapi = format!("{nexus}transport = \"nxapi\"\nurl = \"https://s/ins\"\n");
    let cases = [
        ("[cluster]\npriority = 8\n".to_owned(), "from 0 to 7"),
        ("[cluster]\ndscp = 64\n".to_owned(), "dscp 64 is not from 0 to 63"),
        ("[cluster]\ncnp_dscp = 64\n".to_owned(), "from 0 to 63"),
        (
            "[cluster]\npriority = \"3\"\n".to_owned(),
            "expected a number from 0 to 255",
        ),
        (
            "[[host]]\nname = \"a\"\naddress = \"a b\"\n".to_owned(),
            "'a b' is no address",
        ),
        (format!("[[host]]\nname = \"{}\"\n", "a".repeat(65)), "is no name"),
        (
            format!("{nxapi}user = \"u\"\npassword_file = \"f\"\npassword_env = \"E\"\n"),
            "one of them",
        ),
        (format!("{nxapi}password_env = \"E\"\n"), "needs user"),
        (
            format!("{nexus}switch_ports = {{ e = \"leaf9:1\" }}\n"),
            "no [[switch]] 'leaf9'",
        ),
        (
            "[[hypervisor]]\nname = \"e\"\nswitch_ports = { vmnic5 = \"leaf9:1\" }\n".to_owned(),
            "no [[switch]] 'leaf9'",
        ),
        (
            "[[hypervisor]]\nname = \"e\"\naddress = \"-oProxyCommand=x\"\n".to_owned(),
            "no address",
        ),
        (
            "[[hypervisor]]\nname = \"e\"\ntransport = \"files\"\n".to_owned(),
            "need read = ",
        ),
        (
            (0..=32_768)
                .map(|host| format!("[[host]]\nname = \"h{host}\"\n"))
                .collect::<Vec<_>>()
                .concat(),
            "32769 targets are more than 32768",
        ),
    ];
    for (text, expected) in cases {
        let error = Inventory::parse(&text).unwrap_err();
        assert!(error.text.contains(expected), "{expected}: {error}");
    }
    let longest = format!("[[host]]\nname = \"{}\"\n", "a".repeat(64));
    for text in ["[cluster]\npriority = 7\ndscp = 63\ncnp_dscp = 63\n", &longest] {
        assert!(Inventory::parse(text).is_ok(), "{text}");
    }
}

/// The design's defaults: 5 s for a connection, which stays open for 60 s; 10 s for a command; a reading each 15 s.
#[test]
fn times_have_defaults() {
    let ssh = Inventory::parse("").unwrap().ssh;
    let seconds = Duration::from_secs;
    assert_eq!(
        (ssh.connect_timeout, ssh.control_persist, ssh.timeout),
        (seconds(5), seconds(60), seconds(10))
    );
    let text = "[[switch]]\nname = \"s\"\nkind = \"sonic\"\n[[hypervisor]]\nname = \"e\"\n";
    let inventory = Inventory::parse(text).unwrap();
    assert_eq!(inventory.switch("s").unwrap().every, seconds(15));
    assert_eq!(inventory.hypervisor("e").unwrap().every, seconds(15));
    // Without an address the name is it.
    assert_eq!(inventory.switch("s").unwrap().address(), "s");
    assert_eq!(parse_time("5m"), Some(seconds(300)));
    assert_eq!(parse_time("2h"), Some(seconds(7_200)));
}

#[test]
fn a_folder_is_read_in_place_of_the_device() {
    // The second spelling is that of version 0.2.0.
    for keys in ["read = \"leaf1\"", "transport = \"files\"\nfiles = \"leaf1\""] {
        let text = format!(
            "[[switch]]\nname = \"a\"\nkind = \"nexus\"\n{keys}\n[[hypervisor]]\nname = \"b\"\n{keys}\n"
        );
        let inventory = Inventory::parse(&text).unwrap();
        let (switch, hypervisor) = (&inventory.switches[0], &inventory.hypervisors[0]);
        assert_eq!(
            (switch.transport, hypervisor.transport),
            (Transport::Files, Transport::Files)
        );
        assert_eq!(switch.files.as_deref(), Some("leaf1"));
        assert_eq!(hypervisor.files.as_deref(), Some("leaf1"));
    }
}
