//! Texts that somebody saved, and the command that reads each: said where another command was given one.

use roce_hosts::gpu;
use roce_jobs::results::results;
use roce_switches::inventory::SwitchKind;
use roce_switches::pasted::pasted;

/// Words of a text of a host, what it is, and the command that reads it.
const TEXTS: [(&[&str], &str, &str); 15] = [
    (
        &["ounters: Lid ", "PortXmit"],
        "the text of `perfquery`",
        "host counters --read",
    ),
    (
        &["NIC statistics:"],
        "the text of `ethtool -S`",
        "host counters --read",
    ),
    (
        &["link ", "rx_write_requests"],
        "the text of `rdma statistic show`",
        "host counters --read",
    ),
    (
        &["\"ifname\"", "\"rx_write_requests\""],
        "the document of `rdma statistic show -j`",
        "host counters --read",
    ),
    (
        &["/sys/class/infiniband/", "counters/"],
        "counters of sysfs",
        "host counters --read",
    ),
    (
        &["Priority trust state"],
        "the text of `mlnx_qos`",
        "doctor --read",
    ),
    (
        &["hca_id:", "transport:"],
        "the text of `ibv_devinfo`",
        "doctor --read",
    ),
    (
        &["CA '", "Physical state:"],
        "the text of `ibstat`",
        "doctor --read",
    ),
    (
        &["prio-pfc ", "pfc-cap "],
        "the text of `dcb pfc show`",
        "doctor --read",
    ),
    (
        &["DEV", "PORT", "INDEX", "GID", "VER"],
        "the text of `show_gids`",
        "doctor --read",
    ),
    (
        &["physical_state", "state", "netdev"],
        "the text of `rdma link`",
        "doctor --read",
    ),
    (
        &["LnkCap:", "LnkSta:"],
        "the text of `lspci -vv`",
        "doctor --read",
    ),
    (
        &["Pause parameters for"],
        "the text of `ethtool -a`",
        "doctor --read",
    ),
    (&["NCCL INFO"], "a log of NCCL", "CAPTURE --nccl-log"),
    (
        &["<nvidia_smi_log"],
        "the document of nvidia-smi -q -x",
        "host gpus --read",
    ),
];

/// The kind of a text in words, for the error of a command that does not read it: `: this is ..., which ... reads`. Empty: it is not known.
pub(super) fn described(text: &str) -> String {
    described_but("", text)
}

/// As [`described`], and empty where the text is of a kind that the command `own` reads: its error says what is missing in it.
pub(super) fn described_but(own: &str, text: &str) -> String {
    match kind(text) {
        Some((_, Some(command))) if command == own => String::new(),
        Some((what, Some(command))) => format!(": this is {what}, which `{command}` reads"),
        Some((what, None)) => format!(": this is {what}"),
        None => String::new(),
    }
}

/// The kind of a text in words, and the command that reads it, if one does.
fn kind(text: &str) -> Option<(String, Option<String>)> {
    let of_host = TEXTS
        .iter()
        .find(|(words, ..)| words.iter().all(|word| text.contains(word)));
    let read_by = |what: &str, command: &str| Some((what.to_owned(), Some(command.to_owned())));
    if let Some((_, what, command)) = of_host {
        return read_by(what, command);
    }
    if pasted(text, "").is_some() {
        return read_by("an answer of a switch or hypervisor", "fabric counters --read");
    }
    if let Some((kind, what)) = configuration(text) {
        let command = format!("fabric configure switch --kind {} --check --read", kind.name());
        return read_by(what, &command);
    }
    if let Some(what) = gpu::described(text) {
        return Some((what.to_owned(), None));
    }
    let tool = results(text, None).tool;
    (!tool.is_empty()).then(|| {
        (
            format!("the output of {tool}"),
            Some("traffic results".to_owned()),
        )
    })
}

/// The kind of a switch whose configuration a text is, and the configuration in words.
pub(super) fn configuration(text: &str) -> Option<(SwitchKind, &'static str)> {
    let begins = |start: &str| text.lines().any(|line| line.trim_start().starts_with(start));
    let found = if begins("nv set ") {
        (SwitchKind::Cumulus, "a configuration of Cumulus")
    } else if text.contains("\"PORT_QOS_MAP\"") || text.contains("\"DEVICE_METADATA\"") {
        (SwitchKind::Sonic, "a config_db.json of SONiC")
    } else if begins("class-map type") || begins("policy-map type network-qos") || begins("system qos") {
        (SwitchKind::Nexus, "a configuration of NX-OS")
    } else if text.contains("EOS-") || begins("qos rewrite") || begins("priority-flow-control priority") {
        (SwitchKind::Eos, "a configuration of EOS")
    } else {
        return None;
    };
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_known_by_their_content() {
        for (text, command) in [
            ("NIC statistics:\n     rx_prio3_pause: 41210\n", "host counters"),
            (
                "DCBX mode: OS controlled\nPriority trust state: dscp\n",
                "doctor --read",
            ),
            (
                "  Port Rx    PFC0    PFC1\n---------  ------  ------\nEthernet0       0       0\n",
                "fabric counters",
            ),
            (
                " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n",
                "traffic results",
            ),
        ] {
            assert!(described(text).contains(command), "{text}");
        }
        assert_eq!(described("hello"), "");
        // A part of a text of its own kind is no text of another command.
        let statistics = "NIC statistics:\n";
        assert_eq!(described_but("host counters --read", statistics), "");
        assert!(described_but("doctor --read", statistics).contains("host counters"));
    }
}
