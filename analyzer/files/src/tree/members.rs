//! A tree of files in memory: the members of an archive, whose links are resolved within it.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

/// Links that one path may lead through (Linux, `MAXSYMLINKS`).
const MAX_LINKS: usize = 40;
/// Folders above a file, at most.
const MAX_DEPTH: usize = 128;
/// Names that one path may lead through.
const MAX_STEPS: usize = 4_096;

/// The members of an archive. A path has no slash at its start and no `..`.
#[derive(Debug, Default)]
pub struct MemberTree {
    files: BTreeMap<String, Vec<u8>>,
    links: BTreeMap<String, String>,
    folders: BTreeSet<String>,
}

impl MemberTree {
    /// Adds a file, and the folders that it is in.
    pub fn add_file(&mut self, path: &str, bytes: Vec<u8>) {
        self.add_above(path);
        self.files.insert(path.to_owned(), bytes);
    }

    /// Adds a link with its target, which is looked for in this tree alone.
    pub fn add_link(&mut self, path: &str, target: &str) {
        self.add_above(path);
        self.links.insert(path.to_owned(), target.to_owned());
    }

    /// Adds a folder, which may be empty.
    pub fn add_folder(&mut self, path: &str) {
        self.add_above(path);
        self.folders.insert(path.to_owned());
    }

    fn add_above(&mut self, path: &str) {
        for (at, _) in path.rmatch_indices('/') {
            let folder = path.get(..at).unwrap_or_default();
            if !self.folders.insert(folder.to_owned()) {
                break;
            }
        }
    }

    /// Number of folders.
    pub fn folders(&self) -> usize {
        self.folders.len()
    }

    /// The bytes of a file at its own place.
    pub fn file(&self, path: &str) -> Option<&[u8]> {
        self.files.get(path).map(Vec::as_slice)
    }

    /// All files with their paths.
    pub fn into_files(self) -> impl Iterator<Item = (String, Vec<u8>)> {
        self.files.into_iter()
    }

    /// The place that a path leads to, as if the root of the tree were `/`; `None`: through too many links or names.
    fn resolved(&self, path: &str) -> Option<String> {
        let mut ahead: Vec<&str> = path.split('/').rev().collect();
        let mut at: Vec<&str> = Vec::new();
        let (mut links, mut steps) = (0, 0);
        while let Some(part) = ahead.pop() {
            steps += 1;
            if steps > MAX_STEPS || at.len() > MAX_DEPTH {
                return None;
            }
            match part {
                "" | "." => {}
                ".." => {
                    at.pop();
                }
                part => {
                    at.push(part);
                    if let Some(target) = self.links.get(&at.join("/")) {
                        links += 1;
                        if links > MAX_LINKS {
                            return None;
                        }
                        at.pop();
                        if target.starts_with('/') {
                            at.clear();
                        }
                        ahead.extend(target.split('/').rev());
                    }
                }
            }
        }
        Some(at.join("/"))
    }

    /// The place of a file or folder that is there.
    fn found(&self, path: &str) -> io::Result<String> {
        let place = self.resolved(path).ok_or(io::ErrorKind::NotFound)?;
        let is_there = self.files.contains_key(&place) || self.is_folder_at(&place);
        is_there.then_some(place).ok_or(io::ErrorKind::NotFound.into())
    }

    fn is_folder_at(&self, place: &str) -> bool {
        place.is_empty() || self.folders.contains(place)
    }

    pub(super) fn names(&self, folder: &str, limit: usize) -> io::Result<Vec<String>> {
        let place = self.found(folder)?;
        if !self.is_folder_at(&place) {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        let start = if place.is_empty() { place } else { place + "/" };
        let mut names = BTreeSet::new();
        // The files below a folder are passed over: `0` follows the slash. Names such as `ens1.100` are between a folder and what is in it.
        let mut add = |path: &String| {
            let rest = path.strip_prefix(&start)?;
            let (name, next) = match rest.split_once('/') {
                Some((name, _)) => (name, '0'),
                None => (rest, '\0'),
            };
            names.insert(name.to_owned());
            Some(format!("{start}{name}{next}")).filter(|_| names.len() < limit)
        };
        let mut next = Some(start.clone());
        while let Some(from) = next {
            next = self.files.range(from..).next().and_then(|(path, _)| add(path));
        }
        let mut next = Some(start.clone());
        while let Some(from) = next {
            next = self.links.range(from..).next().and_then(|(path, _)| add(path));
        }
        let mut next = Some(start.clone());
        while let Some(from) = next {
            next = self.folders.range(from..).next().and_then(&mut add);
        }
        Ok(names.into_iter().take(limit).collect())
    }

    pub(super) fn read(&self, path: &str, limit: u64) -> io::Result<Vec<u8>> {
        let place = self.found(path)?;
        let bytes = self
            .files
            .get(&place)
            .ok_or_else(|| io::Error::other("not a regular file"))?;
        let end = bytes.len().min(usize::try_from(limit).unwrap_or(usize::MAX));
        Ok(bytes.get(..end).unwrap_or_default().to_vec())
    }

    pub(super) fn is_folder(&self, path: &str) -> bool {
        self.found(path).is_ok_and(|place| self.is_folder_at(&place))
    }

    pub(super) fn has(&self, path: &str) -> bool {
        self.found(path).is_ok()
    }

    pub(super) fn link(&self, folder: &str, name: &str) -> Option<String> {
        let place = self.found(folder).ok()?;
        let path = if place.is_empty() {
            name.to_owned()
        } else {
            format!("{place}/{name}")
        };
        self.links.get(&path).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_resolved_within_the_tree() {
        let mut tree = MemberTree::default();
        tree.add_file("sys/devices/a/mtu", b"9000".to_vec());
        tree.add_file("etc/hosts", b"inside".to_vec());
        tree.add_link("sys/class/net/a", "../../devices/a");
        tree.add_link("sys/up", "../../../../etc");
        tree.add_link("sys/absolute", "/etc");
        tree.add_link("sys/one", "two");
        tree.add_link("sys/two", "one");
        tree.add_link("sys/deep", "deep/deep/deep");
        tree.add_folder("sys/class/infiniband");
        assert_eq!(tree.read("sys/class/net/a/mtu", 2).unwrap(), b"90");
        assert_eq!(
            tree.link("sys/class/net", "a").as_deref(),
            Some("../../devices/a")
        );
        // The root of the tree is as far up as `..` leads.
        for path in ["sys/up/hosts", "sys/absolute/hosts"] {
            assert_eq!(tree.read(path, 99).unwrap(), b"inside", "{path}");
        }
        for path in ["sys/one", "sys/two/x", "sys/deep", "sys/devices/a/mtu/x", "none"] {
            assert!(!tree.has(path), "{path}");
        }
        assert!(tree.read("sys/devices/a", 9).is_err());
        assert_eq!(tree.names("sys/class", 9).unwrap(), ["infiniband", "net"]);
        assert!(tree.names("sys/class/infiniband", 9).unwrap().is_empty());
    }

    #[test]
    fn names_between_a_folder_and_its_files_are_listed() {
        let mut tree = MemberTree::default();
        for path in [
            "net/ens1/mtu",
            "net/ens1/speed",
            "net/ens1.100/mtu",
            "net/ens1-x",
            "net/ens10/mtu",
        ] {
            tree.add_file(path, Vec::new());
        }
        assert_eq!(
            tree.names("net", 9).unwrap(),
            ["ens1", "ens1-x", "ens1.100", "ens10"]
        );
        assert_eq!(tree.names("", 9).unwrap(), ["net"]);
        assert_eq!(tree.names("net", 2).unwrap().len(), 2);
    }
}
