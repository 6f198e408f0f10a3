//! Hosts of captures: from the inventory, or from the capture's path.

use std::path::Path;

use anyhow::{anyhow, bail};
use roce_switches::inventory::Inventory;

use crate::options::fabric;
use crate::options::names::{parse_name, plain_name};

/// Hosts by path.
#[derive(Debug, Default)]
pub(crate) struct Hosts {
    /// Path of a capture or a folder, and its host; sorted by path.
    rows: Vec<(String, String)>,
}

impl Hosts {
    /// Reads an inventory: `captures` of a host are paths of captures or of folders, from the folder that is mapped.
    ///
    /// # Errors
    /// When the file cannot be read, a path is empty or has two hosts, or a host with captures has a name that no dataset has.
    pub(crate) fn read(path: &Path) -> anyhow::Result<Self> {
        Self::from_inventory(&fabric::read(path)?).map_err(|error| anyhow!("{}: {error}", path.display()))
    }

    fn from_inventory(inventory: &Inventory) -> anyhow::Result<Self> {
        let mut rows = Vec::new();
        for host in &inventory.hosts {
            for path in &host.captures {
                let name =
                    parse_name(&host.name).map_err(|error| anyhow!("host '{}': {error}", host.name))?;
                let path = path.trim_matches('/');
                if path.is_empty() {
                    bail!("host '{}': the path of a capture is empty", host.name);
                }
                rows.push((path.to_owned(), name));
            }
        }
        rows.sort();
        let mut neighbours = rows.iter().zip(rows.iter().skip(1));
        if let Some(((path, _), _)) = neighbours.find(|(one, next)| one.0 == next.0) {
            bail!("the path {path} has two hosts");
        }
        Ok(Self { rows })
    }

    /// The host of a capture: that of the longest path in the inventory that is the capture or a folder above it. Without one it is the first
    /// folder of the key, or the name before its first dot; bytes that a name does not have become `-`.
    pub(crate) fn host(&self, key: &str) -> String {
        let mut path = key;
        loop {
            let found = self.rows.binary_search_by(|(known, _)| known.as_str().cmp(path));
            if let Some((_, host)) = found.ok().and_then(|at| self.rows.get(at)) {
                return host.clone();
            }
            match path.rsplit_once('/') {
                Some((folder, _)) => path = folder,
                None => break,
            }
        }
        let first = match key.split_once('/') {
            Some((folder, _)) => folder,
            None => key.split('.').next().unwrap_or(key),
        };
        plain_name(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_an_inventory_the_path_names_the_host() {
        let hosts = Hosts::default();
        assert_eq!(hosts.host("h1/2026/a.pcap"), "h1");
        assert_eq!(hosts.host("gpu-7.2026-11-24.pcapng.zst"), "gpu-7");
        assert_eq!(hosts.host("rack 7/a.pcap"), "rack-7");
        assert_eq!(hosts.host("\u{e9}/a.pcap"), "unknown");
    }

    #[test]
    fn the_longest_path_of_the_inventory_counts() {
        let text = "[[host]]\nname = \"r7\"\ncaptures = [\"rack7\"]\n[[host]]\nname = \"h12\"\ncaptures = [\"rack7/h12/\"]\n\
                    [[host]]\nname = \"h13\"\ncaptures = [\"rack7/h12/odd,name.pcap\"]\n";
        let hosts = Hosts::from_inventory(&Inventory::parse(text).unwrap()).unwrap();
        assert_eq!(hosts.host("rack7/h12/odd,name.pcap"), "h13");
        assert_eq!(hosts.host("rack7/h12/a.pcap"), "h12");
        assert_eq!(hosts.host("rack7/h1/a.pcap"), "r7");
        assert_eq!(hosts.host("rack70/a.pcap"), "rack70");
    }

    #[test]
    fn mistakes_are_named() {
        for (text, said) in [
            (
                "[[host]]\nname = \"h1\"\ncaptures = [\"/\"]\n",
                "host 'h1': the path of a capture is empty",
            ),
            (
                "[[host]]\nname = \"b\"\ncaptures = [\"a\"]\n[[host]]\nname = \"c\"\ncaptures = [\"a/\"]\n",
                "the path a has two hosts",
            ),
        ] {
            let error = Hosts::from_inventory(&Inventory::parse(text).unwrap()).unwrap_err();
            assert!(error.to_string().contains(said), "{error}");
        }
    }
}
