//! Texts that somebody saved, and the command that reads each: said where another command was given one.

use roce_hosts::gpu;
use roce_jobs::results::results;
use roce_switches::pasted::pasted;

/// Words of a text of a host, what it is, and the command that reads it.
const TEXTS: [(&[&str], &str, &str); 8] = [
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
        "doctor, on the host itself",
    ),
    (
        &["hca_id:", "transport:"],
        "the text of `ibv_devinfo`",
        "doctor, on the host itself",
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
    let of_host = TEXTS
        .iter()
        .find(|(words, ..)| words.iter().all(|word| text.contains(word)));
    if let Some((_, what, command)) = of_host {
        return format!(": this is {what}, which `{command}` reads");
    }
    if pasted(text, "").is_some() {
        return ": this is an answer of a switch or hypervisor, which `fabric counters --read` reads"
            .to_owned();
    }
    if let Some(what) = gpu::described(text) {
        return format!(": this is {what}");
    }
    let found = results(text, None);
    if found.tool.is_empty() {
        String::new()
    } else {
        format!(
            ": this is the output of {}, which `traffic results` reads",
            found.tool
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_known_by_their_content() {
        for (text, command) in [
            ("NIC statistics:\n     rx_prio3_pause: 41210\n", "host counters"),
            ("DCBX mode: OS controlled\nPriority trust state: dscp\n", "doctor"),
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
    }
}
