//! Hosts of captures: from an inventory, or from the capture's path.

use std::path::Path;

use anyhow::bail;
use roce_files::read_text;

use crate::options::names::{parse_name, plain_name};

/// Maximum size of an inventory in bytes.
const MAX_BYTES: u64 = 64 << 20;

/// Hosts by path.
#[derive(Debug, Default)]
pub(crate) struct Hosts {
    /// Path of a capture or a folder, and its host; sorted by path.
    rows: Vec<(String, String)>,
}

impl Hosts {
    /// Reads an inventory: lines `PATH,HOST`, where the path is that of a capture or of a folder, from the folder that is mapped. Lines that are
    /// empty or begin with `#` are passed over, and so is a first line `path,host`.
    ///
    /// # Errors
    /// When the file cannot be read, or a line has no path, no host, or a host that is no name; the line's number is named.
    pub(crate) fn read(path: &Path) -> anyhow::Result<Self> {
        Self::parse(&read_text(path, MAX_BYTES)?, &path.display().to_string())
    }

    fn parse(text: &str, file: &str) -> anyhow::Result<Self> {
        let mut rows = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') || number == 0 && line == "path,host" {
                continue;
            }
            let number = number + 1;
            let Some((path, host)) = line.rsplit_once(',') else {
                bail!("{file}: line {number}: a path and a host are expected, such as rack7/h12,h12");
            };
            let (path, host) = (path.trim().trim_matches('/'), host.trim());
            let host = parse_name(host).map_err(|error| anyhow::anyhow!("{file}: line {number}: {error}"))?;
            if path.is_empty() {
                bail!("{file}: line {number}: the path is empty");
            }
            rows.push((path.to_owned(), host));
        }
        rows.sort();
        let mut neighbours = rows.iter().zip(rows.iter().skip(1));
        if let Some(((path, _), _)) = neighbours.find(|(one, next)| one.0 == next.0) {
            bail!("{file}: the path {path} has two hosts");
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
        let text = "path,host\n# racks\nrack7,r7\nrack7/h12/,h12\nrack7/h12/odd,name.pcap,h13\n\n";
        let hosts = Hosts::parse(text, "hosts.csv").unwrap();
        assert_eq!(hosts.host("rack7/h12/odd,name.pcap"), "h13");
        assert_eq!(hosts.host("rack7/h12/a.pcap"), "h12");
        assert_eq!(hosts.host("rack7/h1/a.pcap"), "r7");
        assert_eq!(hosts.host("rack70/a.pcap"), "rack70");
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        for (text, said) in [
            ("rack7", "line 1: a path and a host"),
            ("a,b\nc,../d", "line 2: a name"),
            (",h1", "line 1: the path is empty"),
            ("a,b\na/,c", "the path a has two hosts"),
        ] {
            let error = Hosts::parse(text, "hosts.csv").unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    }
}
