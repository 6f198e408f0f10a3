//! A host in one text that somebody pasted: outputs of tools one behind the other, recognised by their content.
//!
//! Each output becomes the files and answers of a [`Host`] that say the same. What the text does not have is not known.
//! Read are `ibv_devinfo`, `ibstat`, `show_gids`, `rdma link`, `ibdev2netdev`, `lspci -vv`, `mlxlink`, `mlnx_qos`, `dcb pfc` and `dcb app`, `lldptool -V PFC`, `ethtool` (its
//! settings, `-a`, `-i`, `-S`, `--show-fec`), `ip link`, `ip addr`, `sysctl`, `ulimit`, `cma_roce_tos`, `cat` of files behind a prompt, variables of NCCL and UCX, and files behind their paths.

mod files;
mod mlxlink;
mod pci;
mod settings;
mod verbs;

use std::collections::BTreeMap;

use crate::doctor::Host;
use crate::terminal::without_terminal;
use files::PastedFiles;

/// The host that a text describes; `None`: it has nothing but counters, or nothing that is known. `name` is that of its file, which can name
/// the interface.
pub fn pasted_host(text: &str, name: &str) -> Option<Host> {
    let text = without_terminal(text);
    let mut found = PastedFiles::default();
    found.paths(&text);
    found.shown(&text);
    found.named(&text, name);
    verbs::read(&text, &mut found);
    settings::read(&text, name, &mut found);
    pci::read(&text, &mut found);
    mlxlink::read(&text, name, &mut found);
    found.variables(&text);
    found.limits(&text);
    let is_counter = |path: &String| path.contains("counters/") || path.starts_with("commands/ethtool_-S_");
    if found.files.keys().all(is_counter) {
        return None;
    }
    found.statistics(&text, name);
    let mut host = Host::new(name, true);
    host.is_partial = true;
    for (path, bytes) in found.files {
        host.insert(&path, bytes);
    }
    Some(host)
}

/// Files that a text has behind their paths, by those paths without a leading slash: `grep . FILES`, `PATH = TEXT` and their like.
pub fn pasted_files(text: &str) -> BTreeMap<String, Vec<u8>> {
    let mut found = PastedFiles::default();
    found.paths(&without_terminal(text));
    found.files
}

/// Interfaces whose priorities with PFC a text says: by `mlnx_qos`, `dcb pfc` or `lldptool`. `name` is that of an interface which the text
/// does not name.
pub fn pasted_pfc(text: &str, name: &str) -> Vec<(String, [bool; 8])> {
    let mut found = PastedFiles::default();
    settings::read(&without_terminal(text), name, &mut found);
    let answers = found.files.into_iter().filter_map(|(path, bytes)| {
        let interface = path.strip_prefix("answers/dcb-pfc.")?.strip_suffix(".json")?;
        let answer: serde_json::Value = serde_json::from_slice(&bytes).ok()?;
        let on: Option<Vec<bool>> = answer["prio_pfc"]
            .as_array()?
            .iter()
            .map(serde_json::Value::as_bool)
            .collect();
        Some((interface.to_owned(), <[bool; 8]>::try_from(on?).ok()?))
    });
    answers.collect()
}

#[cfg(test)]
mod tests;
