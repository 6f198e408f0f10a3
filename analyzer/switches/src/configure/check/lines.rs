//! Recordings of Cumulus Linux and ESXi.

use std::collections::BTreeSet;

use super::super::change::Change;
use super::super::cumulus::{lines, mtu_line};
use super::super::esxi::esxi;
use super::super::settings::Settings;
use crate::inventory::Cluster;

/// Lines of a recording that are looked at.
const MAX_LINES: usize = 200_000;

/// Changes that the output of `nv config show -o commands` needs.
///
/// # Errors
/// If the text has no such command.
pub fn check_cumulus(
    cluster: &Cluster,
    settings: &Settings,
    text: &str,
    named: &[String],
) -> Result<Vec<Change>, String> {
    let known: BTreeSet<String> = text
        .lines()
        .take(MAX_LINES)
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .filter(|line| line.starts_with("nv set "))
        .collect();
    if known.is_empty() {
        return Err("the text has no line 'nv set'; nv config show -o commands is expected".to_owned());
    }
    let wanted = lines(cluster, settings)
        .into_iter()
        .map(|line| ("switch.not_lossless", line));
    let wanted = wanted.chain(named.iter().map(|name| ("switch.mtu", mtu_line(settings, name))));
    let missing = wanted.filter(|(_, line)| !known.contains(line));
    let change = |(id, line): (&'static str, String)| {
        Change::new(id, format!("'{line}' is not set"), &[&line])
            .comment("Nothing changes before nv config apply.")
    };
    Ok(missing.map(change).collect())
}

/// Changes that the output of `esxcli network nic dcb status get -n VMNIC` needs.
///
/// # Errors
/// If the text has no line `PFC Configuration`.
pub fn check_esxi(
    cluster: &Cluster,
    settings: &Settings,
    text: &str,
    vmnic: &str,
) -> Result<Vec<Change>, String> {
    let value = |name: &str| {
        let mut lines = text
            .lines()
            .take(MAX_LINES)
            .filter_map(|line| line.split_once(':'));
        lines.find_map(|(known, value)| (known.trim() == name).then(|| value.trim()))
    };
    let bits = value("PFC Configuration").ok_or_else(|| {
        "the text has no line 'PFC Configuration'; esxcli network nic dcb status get is expected".to_owned()
    })?;
    let is_enabled = value("PFC Enabled") != Some("false");
    let enabled: Vec<u8> = (0_u8..)
        .zip(bits.split_whitespace())
        .filter(|(priority, bit)| *priority < 8 && *bit == "1" && is_enabled)
        .map(|(priority, _)| priority)
        .collect();
    if enabled == [cluster.priority] {
        return Ok(Vec::new());
    }
    let id = if enabled.contains(&cluster.priority) {
        "pfc.others"
    } else {
        "pfc.enabled"
    };
    let step = esxi(cluster, settings, vmnic)
        .into_iter()
        .find(|step| step.commands.iter().any(|command| command.contains("pfctx")));
    let names: Vec<String> = enabled.iter().map(u8::to_string).collect();
    let names = match names.as_slice() {
        [] => "no priority".to_owned(),
        [one] => format!("priority {one}"),
        more => format!("priorities {}", more.join(", ")),
    };
    Ok(vec![Change {
        id,
        text: format!(
            "{vmnic}: PFC is on for {names}, not for {} alone",
            cluster.priority
        ),
        step: step.unwrap_or_default(),
    }])
}
