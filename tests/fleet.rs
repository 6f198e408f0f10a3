//! `fleet` over hosts that are network namespaces at one bridge: without ssh, and over a real sshd in each. Only root can make those:
//! elsewhere these tests say why they are skipped.

mod ends;
mod floods;
mod hosts;
mod over_ssh;
mod runs;

use crate::cli::refusal;

#[test]
fn wrong_arguments_of_fleet() {
    let says = |arguments: &[&str], text: &str| {
        let message = refusal(arguments);
        assert!(message.contains(text), "{arguments:?}: {message}");
    };
    says(&["fleet", "capture", "gpu1"], "--output");
    says(
        &[
            "fleet",
            "capture",
            "-o",
            "run",
            "--duration",
            "1s",
            "--until-interrupted",
        ],
        "cannot be used with",
    );
    says(
        &[
            "fleet",
            "capture",
            "gpu1",
            "-o",
            "run",
            "--by",
            "tcpdump",
            "--counters",
        ],
        "--counters needs `roce-analyze live`",
    );
    says(
        &[
            "fleet",
            "capture",
            "gpu1",
            "-o",
            "run",
            "--remote-folder",
            "/tmp/$(reboot)",
        ],
        "absolute path",
    );
    says(&["fleet", "capture", "-o", "run"], "there is no host");
    says(
        &["fleet", "capture", "-oProxyCommand=x", "-o", "run"],
        "cannot be used multiple times",
    );
    says(&["fleet", "run", "gpu1"], "<COMMAND>");
    says(&["fleet", "collect", "captures"], "fleet.json");
}
