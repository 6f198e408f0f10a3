//! Answers of a device in one text that somebody pasted: a session with prompts, or one answer alone, recognised by its content.

use std::collections::BTreeMap;

use roce_hosts::without_terminal;

use crate::device::file_name;
use crate::inventory::SwitchKind;
use crate::switch::cumulus::PORTS;
use crate::switch::text::typed_behind_prompt;

/// Answers that are kept of a text.
const MAX_ANSWERS: usize = 4_096;

/// The device whose answers a text has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PastedDevice {
    /// A switch.
    Switch(SwitchKind),
    /// ESXi.
    Hypervisor,
}

/// Answers in a text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PastedText {
    /// The device.
    pub device: PastedDevice,
    /// The answers by the names of their files, without endings ([`file_name`]).
    pub answers: BTreeMap<String, String>,
}

/// Words that the answer to a command of a device has.
type Mark = (PastedDevice, &'static str, &'static [&'static str]);

const NEXUS: PastedDevice = PastedDevice::Switch(SwitchKind::Nexus);
const SONIC: PastedDevice = PastedDevice::Switch(SwitchKind::Sonic);
const EOS: PastedDevice = PastedDevice::Switch(SwitchKind::Eos);
const CUMULUS: PastedDevice = PastedDevice::Switch(SwitchKind::Cumulus);
const OTHER: PastedDevice = PastedDevice::Switch(SwitchKind::Other);
const ESXI: PastedDevice = PastedDevice::Hypervisor;

/// The commands whose answers are known by their content. `{}` is the adapter, or the port.
const MARKS: [Mark; 72] = [
    // Ports of Cumulus have the names of Linux, and statistics of switchd.
    (CUMULUS, "ethtool -S {}", &["NIC statistics:", "HwIf"]),
    (
        CUMULUS,
        "nv show interface {} counters qos -o json",
        &["\"egress-queue-stats\""],
    ),
    (
        CUMULUS,
        "nv show interface {} counters qos -o json",
        &["\"pfc-stats\""],
    ),
    (CUMULUS, "cat /etc/lsb-release", &["DISTRIB_ID=\"Cumulus"]),
    (CUMULUS, PORTS, &["/sys/class/net/swp"]),
    (CUMULUS, "cl-netstat", &["RX_OK", "TX_DRP", "Flg"]),
    (
        CUMULUS,
        "nv show interface {} counters qos",
        &["PFC Statistics", "rx-pause-frames"],
    ),
    (
        CUMULUS,
        "nv show interface {} link stats",
        &["\ncarrier-transitions ", "in-pkts"],
    ),
    (NEXUS, "show queuing interface", &["Queuing for Ethernet"]),
    (
        NEXUS,
        "show queuing interface",
        &["Ethernet", "queuing information:"],
    ),
    (NEXUS, "show queuing interface", &["TABLE_queuing_interface"]),
    (NEXUS, "show queuing pfc-queue detail", &["watch-dog interval ["]),
    (
        NEXUS,
        "show interface priority-flow-control detail",
        &["Admin Mode:", "Ethernet"],
    ),
    (NEXUS, "show interface priority-flow-control", &["Oper(VL bmap)"]),
    (
        NEXUS,
        "show interface priority-flow-control",
        &["TABLE_pfc_interface"],
    ),
    (NEXUS, "show interface counters errors", &["Align-Err", "FCS-Err"]),
    (
        NEXUS,
        "show interface counters",
        &["InOctets", "InUcastPkts", "\nEth"],
    ),
    (
        NEXUS,
        "show interface flowcontrol",
        &["Send FlowControl", "RxPause", "\nEth"],
    ),
    (NEXUS, "show interface", &[" input packets ", " output packets "]),
    (NEXUS, "show interface", &["TABLE_interface", "eth_inpause"]),
    (
        NEXUS,
        "show policy-map system type network-qos",
        &["Type network-qos policy-maps"],
    ),
    (
        NEXUS,
        "show policy-map system type queuing",
        &["Service-policy (queuing)"],
    ),
    (NEXUS, "show version", &["Cisco Nexus Operating System"]),
    (SONIC, "show pfc counters", &["Port Rx", "PFC0"]),
    (SONIC, "show pfc counters", &["Port Tx", "PFC0"]),
    (SONIC, "show pfc priority", &["Interface", "Lossless priorities"]),
    (SONIC, "show queue wredcounters", &["WredDrp/pkts"]),
    (SONIC, "show queue counters", &["TxQ", "Counter/pkts", "Ethernet"]),
    (SONIC, "pfcwd show stats", &["STORM DETECTED/RESTORED"]),
    (SONIC, "show version", &["SONiC Software Version"]),
    (SONIC, "show interfaces counters", &["IFACE", "STATE", "RX_OK"]),
    (SONIC, "show interfaces counters", &["IFACE", "STATE", "RX_ERR"]),
    (
        SONIC,
        "show priority-group drop counters",
        &["PG dropped packets", "PG0"],
    ),
    (
        SONIC,
        "show queue watermark unicast",
        &["occupancy per unicast queue", "UC0"],
    ),
    (EOS, "show priority-flow-control counters", &["RxPfc", "TxPfc"]),
    (
        EOS,
        "show interfaces counters errors",
        &["Align ", "Symbol ", " Runts"],
    ),
    (
        EOS,
        "show interfaces counters discards",
        &["InDiscards", "OutDiscards", "\nEt"],
    ),
    (
        EOS,
        "show interfaces counters queue detail",
        &["TxQ", "Counter/pkts", "\nEt"],
    ),
    (
        EOS,
        "show interfaces counters queue",
        &["EnqPkts", "DropPkts", "DropOctets"],
    ),
    (
        EOS,
        "show priority-flow-control",
        &["Port ", "Priorities", "PFC receive processing"],
    ),
    (
        EOS,
        "show priority-flow-control",
        &["Port ", " Enabled ", " Priorities ", " Active", "\nEt"],
    ),
    (
        EOS,
        "show interfaces counters queue | json",
        &["\"ingressVoqCounters\""],
    ),
    (
        EOS,
        "show interfaces counters queue",
        &["InDroppedPkts", "OutUcDroppedPkts"],
    ),
    (
        EOS,
        "show interfaces counters",
        &["InOctets", "InUcastPkts", "\nEt"],
    ),
    (EOS, "show interfaces", &["PAUSE input", "packets input"]),
    (EOS, "show interfaces status", &["Port ", "Duplex", "\nEt"]),
    (
        EOS,
        "show interfaces flow-control",
        &["Send FlowControl", "RxPause", "\nEt"],
    ),
    (
        EOS,
        "show priority-flow-control counters watchdog",
        &["Port ", "TxQ", "recovered"],
    ),
    (
        EOS,
        "show interfaces | json",
        &["\"interfaceCounters\"", "\"inOctets\""],
    ),
    (
        EOS,
        "show interfaces counters | json",
        &["\"interfaces\"", "\"inOctets\""],
    ),
    (
        EOS,
        "show interfaces counters discards | json",
        &["\"interfaces\"", "\"inDiscards\""],
    ),
    (
        EOS,
        "show interfaces counters errors | json",
        &["\"interfaceErrorCounters\""],
    ),
    (
        EOS,
        "show interfaces counters queue detail | json",
        &["\"egressQueueCounters\""],
    ),
    (EOS, "show interfaces status | json", &["\"interfaceStatuses\""]),
    (
        EOS,
        "show interfaces flow-control | json",
        &["\"interfaceFlowControls\""],
    ),
    (
        EOS,
        "show priority-flow-control counters | json",
        &["\"interfaceCounters\"", "\"rxFrames\""],
    ),
    (
        EOS,
        "show priority-flow-control counters watchdog | json",
        &["\"stuckCount\""],
    ),
    (
        EOS,
        "show qos interfaces ecn counters queue | json",
        &["\"intfQueueCounters\""],
    ),
    (
        OTHER,
        "show interfaces extensive",
        &["Physical interface: ", "Link-level type"],
    ),
    (
        OTHER,
        "show interfaces queue",
        &["Physical interface: ", "Queue: ", "Transmitted:"],
    ),
    (
        OTHER,
        "show queuing statistics",
        &["Queue", "Packets", "Dropped-Packets"],
    ),
    (
        OTHER,
        "show interface",
        &["line protocol is", "Input statistics:", "Output statistics:"],
    ),
    (
        OTHER,
        "show interface priority-flow-control details",
        &["PFC Priorities:", "Cos", "Rx", "Tx"],
    ),
    (OTHER, "openconfig", &["\"openconfig-interfaces:"]),
    (OTHER, "openconfig", &["\"openconfig-qos:"]),
    (OTHER, "openconfig", &["\"interface", "\"in-octets\""]),
    (OTHER, "openconfig", &["\"interface", "\"dropped-pkts\""]),
    (OTHER, "openconfig", &["\"Path\"", "\"values\"", "interface["]),
    (
        ESXI,
        "esxcli network nic stats get -n {}",
        &["NIC statistics for vmnic"],
    ),
    (
        ESXI,
        "vsish -e get /net/pNics/{}/stats",
        &["-- General Statistics:"],
    ),
    (
        ESXI,
        "esxcli network nic pauseParams list",
        &["Pause Params Supported"],
    ),
    (
        ESXI,
        "esxcli network nic dcb status get -n {}",
        &["Nic Name: vmnic", "Mode:"],
    ),
];

/// The answers in a text. `name` is that of its file, which can name the adapter. `None`: there is none that is known.
pub fn pasted(text: &str, name: &str) -> Option<PastedText> {
    let text = without_terminal(text);
    let mut answers: Vec<(String, String)> = Vec::new();
    for line in text.lines() {
        if let Some(command) = command_of(line) {
            if !command.is_empty() && answers.len() < MAX_ANSWERS {
                answers.push((command.to_owned(), String::new()));
            }
            continue;
        }
        if let Some((_, answer)) = answers.last_mut() {
            answer.push_str(line);
            answer.push('\n');
        }
    }
    answers.retain(|(_, answer)| !answer.trim().is_empty());
    if answers.is_empty() {
        return alone(&text, name);
    }
    session(answers, name)
}

/// Answers behind their commands.
fn session(answers: Vec<(String, String)>, name: &str) -> Option<PastedText> {
    let device = answers.iter().find_map(|(command, answer)| {
        let is_hypervisor = command.starts_with("esxcli ") || command.starts_with("vsish ");
        let by_content = marks(answer).next().map(|(device, ..)| *device);
        let starts = |starts: &[&str]| starts.iter().any(|start| command.starts_with(start));
        let is_cumulus = starts(&["nv show ", "ethtool -S swp", "cl-netstat"]);
        let is_sonic = starts(&["sonic-db-dump ", "portstat", "pfcwd ", "queuestat", "pfcstat"]);
        let by_command = is_hypervisor.then_some(ESXI).or(is_cumulus.then_some(CUMULUS));
        let by_command = by_command.or(is_sonic.then_some(SONIC));
        by_command.or(by_content)
    })?;
    let mut found = PastedText {
        device,
        answers: BTreeMap::new(),
    };
    for (command, answer) in answers {
        found.add(&command, &answer);
        // `show queuing interface ethernet1/1/1` has a part of what `show queuing interface` has.
        let by_content = spelled_otherwise(device, &answer);
        let is_document = answer.trim_start().starts_with('{') && by_content.is_some();
        let whole = if is_document {
            by_content
        } else {
            whole_command(device, &command, name).or(by_content)
        };
        if let Some(whole) = whole.filter(|whole| *whole != command) {
            found.add(&whole, &answer);
        }
    }
    Some(found)
}

/// One answer, or several without their commands, by their content.
fn alone(text: &str, name: &str) -> Option<PastedText> {
    let device = marks(text).next()?.0;
    let mut found = PastedText {
        device,
        answers: BTreeMap::new(),
    };
    let mut last = "";
    for (_, command, _) in marks(text).filter(|(of, ..)| *of == device) {
        if *command != last {
            let object = if device == CUMULUS {
                name.strip_prefix("ethtool_-S_").unwrap_or(name).to_owned()
            } else {
                adapter(text, name)
            };
            found.add(&command.replace("{}", &object), text);
        }
        last = command;
    }
    Some(found)
}

fn marks(text: &str) -> impl Iterator<Item = &'static Mark> {
    MARKS
        .iter()
        .filter(move |(.., words)| words.iter().all(|word| text.contains(word)))
}

impl PastedText {
    /// Adds an answer to a command, behind those that are there.
    fn add(&mut self, command: &str, answer: &str) {
        self.answers
            .entry(file_name(command))
            .or_default()
            .push_str(answer);
    }
}

/// The command that is known for such an answer: releases spell commands otherwise (`show pfcwd stats`, `pfcwd show stats`).
fn spelled_otherwise(device: PastedDevice, answer: &str) -> Option<String> {
    let mut known = marks(answer).filter(|(of, command, _)| *of == device && !command.contains("{}"));
    known.next().map(|(_, command, _)| (*command).to_owned())
}

/// The command without the interface that it is about, where all interfaces have one.
fn whole_command(device: PastedDevice, command: &str, name: &str) -> Option<String> {
    let is_interface = |word: &str| {
        let word = word.to_ascii_lowercase();
        let rest = ["ethernet", "eth", "et", "e"]
            .iter()
            .find_map(|prefix| word.strip_prefix(prefix));
        rest.is_some_and(|rest| rest.starts_with(|glyph: char| glyph.is_ascii_digit()))
            || word.starts_with(|glyph: char| glyph.is_ascii_digit()) && word.contains('/')
            || word == "ethernet"
    };
    let command = command.split('|').next().unwrap_or_default();
    // Words before the command itself: `do show ...` of a configuration mode, `sudo`.
    let words: Vec<&str> = command
        .split_whitespace()
        .skip_while(|word| ["do", "sudo"].contains(word))
        .filter(|word| !is_interface(word))
        .collect();
    let known = MARKS
        .iter()
        .filter(|(of, known, _)| *of == device && words.join(" ") == known.replace("{}", name));
    known.map(|(_, known, _)| (*known).to_owned()).next()
}

/// The command of a line with a prompt, of a shell of ESXi, or of a section.
fn command_of(line: &str) -> Option<&str> {
    let line = line.trim();
    if let Some(command) = line.strip_prefix("== ") {
        return Some(command.trim());
    }
    if let Some((prompt, command)) = line.strip_prefix('[').and_then(|rest| rest.split_once(']'))
        && prompt.contains('@')
    {
        return Some(command.trim());
    }
    typed_behind_prompt(line)
}

/// The adapter that an answer of ESXi is about: it names it, or the file does.
fn adapter(text: &str, name: &str) -> String {
    let named = |text: &str| {
        let at = text.find("vmnic")?;
        let digits = text.get(at + 5..)?;
        let end = digits
            .find(|glyph: char| !glyph.is_ascii_digit())
            .unwrap_or(digits.len());
        (end > 0).then(|| format!("vmnic{}", digits.get(..end).unwrap_or_default()))
    };
    named(text)
        .or_else(|| named(name))
        .unwrap_or_else(|| "vmnic0".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(found: &PastedText) -> Vec<&str> {
        found.answers.keys().map(String::as_str).collect()
    }

    #[test]
    fn commands_of_other_releases_by_their_answers() {
        let text = "admin@sonic:~$ show pfcwd stats\n  QUEUE  STATUS  STORM DETECTED/RESTORED  TX OK/DROP\nEthernet12:3  operational  41/41  0/9\n";
        let found = pasted(text, "out").unwrap();
        assert_eq!(found.device, SONIC);
        assert!(
            found.answers.contains_key(&file_name("pfcwd show stats")),
            "{:?}",
            names(&found)
        );
    }

    /// After openconfig-interfaces.yang, and NVUE's `nv show interface PORT link stats`.
    #[test]
    fn carrier_transitions_are_of_openconfig_and_of_cumulus() {
        let tree = r#"{"openconfig-interfaces:interfaces": {"interface": [{"name": "Ethernet8", "state": {"counters": {"in-pkts": "7", "carrier-transitions": "2"}}}]}}"#;
        assert_eq!(pasted(tree, "x").unwrap().device, OTHER);
        let table = "                     operational  applied\n-------------------  -----------  -------\ncarrier-transitions  6\nin-bytes             4.37 MB\nin-pkts              50\n";
        assert_eq!(pasted(table, "swp3").unwrap().device, CUMULUS);
    }

    #[test]
    fn one_answer_by_its_content() {
        let queuing =
            include_str!("../../../tests/data/fabric/nexus-first-generation/show_queuing_interface.txt");
        let found = pasted(queuing, "paste").unwrap();
        assert_eq!(
            (found.device, names(&found)),
            (NEXUS, vec!["show_queuing_interface"])
        );
        let counters = include_str!("../../../tests/data/fabric/sonic-leaf/show_pfc_counters.txt");
        assert_eq!(pasted(counters, "x").unwrap().device, SONIC);
        let vsish =
            include_str!("../../../tests/data/fabric/esxi-pfc/vsish_-e_get__net_pNics_vmnic3_stats.txt");
        let found = pasted(vsish, "vmnic3").unwrap();
        assert_eq!(
            (found.device, names(&found)),
            (ESXI, vec!["vsish_-e_get__net_pNics_vmnic3_stats"])
        );
        for other in ["", "hello", "NIC statistics:\n     rx_prio3_pause: 5\n", "{}"] {
            assert_eq!(pasted(other, "x"), None, "{other}");
        }
    }

    #[test]
    fn texts_of_interfaces_are_known_by_their_content() {
        let paragraph =
            "Ethernet1/3 is up\n  RX\n    5 input packets  64 bytes\n  TX\n    5 output packets  64 bytes\n";
        let table = "Port  InOctets  InUcastPkts\n";
        for (text, device, command) in [
            (paragraph.to_owned(), NEXUS, "show interface"),
            (format!("{table}Eth1/1  5  1\n"), NEXUS, "show interface counters"),
            (format!("{table}Et1/1  5  1\n"), EOS, "show interfaces counters"),
            (
                "Et1 is up\n 5 packets input, 64 bytes\n 0 PAUSE input\n".to_owned(),
                EOS,
                "show interfaces",
            ),
            (
                "IFACE  STATE  RX_OK\n".to_owned(),
                SONIC,
                "show interfaces counters",
            ),
            (
                "Iface  MTU  RX_OK  TX_DRP  Flg\n".to_owned(),
                CUMULUS,
                "cl-netstat",
            ),
            (
                "{\"interfaceErrorCounters\": {}}\n".to_owned(),
                EOS,
                "show interfaces counters errors | json",
            ),
        ] {
            let found = pasted(&text, "x").unwrap();
            assert_eq!(found.device, device, "{text}");
            assert!(
                found.answers.contains_key(&file_name(command)),
                "{text}: {:?}",
                names(&found)
            );
        }
        // Several ports, one after the other, in the spellings that people type.
        let text = format!(
            "leaf1# show interface ethernet 1/3\n{paragraph}leaf1(config)# do sh int e1/4 | no-more\n{paragraph}leaf1# \n"
        );
        let found = pasted(&text, "x").unwrap();
        assert_eq!(
            found.answers[&file_name("show interface")]
                .matches("Ethernet1/3 is up")
                .count(),
            2
        );
    }

    #[test]
    fn a_session_has_an_answer_for_each_command() {
        let text = "leaf1# show queuing interface ethernet1/1/1\n\nEgress Queuing for Ethernet1/1/1 [System]\n a\nleaf1# show queuing interface e1/1/2\n\
                    Egress Queuing for Ethernet1/1/2 [System]\n b\nleaf1# show interface priority-flow-control detail\nEthernet1/1/1\n    Admin Mode: On\nleaf1# \n";
        let found = pasted(text, "x").unwrap();
        assert_eq!(found.device, NEXUS);
        let both = &found.answers["show_queuing_interface"];
        assert!(both.contains(" a\n") && both.contains(" b\n"), "{both}");
        assert!(
            found
                .answers
                .contains_key("show_interface_priority-flow-control_detail")
        );
        let text =
            "[root@esx1:~] vsish -e get /net/pNics/vmnic4/stats\ndevice {\n   -- General Statistics:\n}\n";
        let found = pasted(text, "x").unwrap();
        assert_eq!(
            (found.device, names(&found)),
            (ESXI, vec!["vsish_-e_get__net_pNics_vmnic4_stats"])
        );
    }
}
