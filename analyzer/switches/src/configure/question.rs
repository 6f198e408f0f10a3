//! The commands whose answers are a device's running configuration, as the checks take it.

use crate::inventory::SwitchKind;

/// The command of a switch. That of SONiC prints the running configuration as a config_db.json (SONiC's Command-Reference.md).
pub fn switch_question(kind: SwitchKind) -> &'static str {
    match kind {
        SwitchKind::Nexus | SwitchKind::Eos => "show running-config",
        SwitchKind::Sonic => "sonic-cfggen -d --print-data",
        SwitchKind::Cumulus => "nv config show -o commands",
        SwitchKind::Other => "show configuration",
    }
}

/// The command of an ESXi host, for an adapter whose name is one of [`check_name`](super::check_name).
pub fn esxi_question(vmnic: &str) -> String {
    format!("esxcli network nic dcb status get -n {vmnic}")
}
