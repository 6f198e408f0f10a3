//! Answers of other programs: ping tries the path to peers, mstconfig shows settings of firmware. Both only read.

use std::net::IpAddr;
use std::process::Command;
use std::time::Duration;

use roce_hosts::doctor::Host;
use serde_json::json;

use roce_remote::program::{self, Limits};

/// Limits of ping, mstconfig and mlxconfig.
const LIMITS: Limits = Limits {
    patience: Duration::from_secs(10),
    output: 1 << 20,
    errors: 0,
};

/// Adds the answers of programs that are there.
pub(super) fn add_answers(host: &mut Host, peers: &[IpAddr]) {
    for peer in peers {
        let answer = ping(host, *peer);
        host.insert(
            &format!("answers/ping.{peer}.json"),
            answer.to_string().into_bytes(),
        );
    }
    // mstconfig opens the device by its PCI resource, which needs root.
    let is_root = rustix::process::geteuid().is_root();
    let adapters: Vec<String> = roce_hosts::doctor::physical_adapters(host);
    for address in adapters.iter().filter(|_| is_root) {
        for program in ["mstconfig", "mlxconfig"] {
            if let Some((true, text)) = run(program, &["-d", address, "-e", "query"]) {
                host.insert(&format!("answers/mstconfig.{address}.txt"), text.into_bytes());
                break;
            }
        }
    }
}

/// Sends one small and one large packet with the don't-fragment bit.
fn ping(host: &Host, peer: IpAddr) -> serde_json::Value {
    let mtus = roce_hosts::doctor::netdev_names(host)
        .into_iter()
        .filter_map(|name| host.number::<u32>(&format!("sys/class/net/{name}/mtu")).ok());
    let mtu = mtus.max().unwrap_or(1500);
    // Headers of IPv4 or IPv6, and 8 bytes of ICMP.
    let headers = if peer.is_ipv4() { 28 } else { 48 };
    let size = mtu.saturating_sub(headers);
    let peer = peer.to_string();
    let passes = |size: u32| {
        let size = size.to_string();
        run(
            "ping",
            &["-M", "do", "-c", "2", "-W", "1", "-q", "-s", &size, &peer],
        )
        .map(|(passed, _)| passed)
    };
    match (passes(size), passes(56)) {
        (Some(large), Some(small)) => json!({ "large": large, "small": small, "size": mtu }),
        _ => json!({ "error": "ping cannot be run; the package iputils-ping has it" }),
    }
}

/// Runs a program to its end: true if it succeeded, and its text; `None` when it cannot be run, or takes too long.
fn run(program: &str, arguments: &[&str]) -> Option<(bool, String)> {
    let ended = program::run(Command::new(program).args(arguments), LIMITS).ok()?;
    let text = String::from_utf8_lossy(&ended.output).into_owned();
    Some((ended.status.success(), text))
}
