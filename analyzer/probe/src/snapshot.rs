//! Snapshots of a host for its checks: files below a root, and the answers of drivers and system calls.
//!
//! The running system and a recorded folder are read by the same patterns. A recorded folder is not trusted: links are resolved within
//! it, and files, names and bytes are bounded.

mod answers;
mod options;
mod patterns;

use std::io;
use std::path::Path;

use roce_files::FileTree;
use roce_hosts::doctor::{Host, LATER};

pub use answers::environment_json;
pub use options::SnapshotOptions;

use patterns::{add_all, add_gids, add_later, add_links, add_pci};

/// Reads a recorded host below `root`.
///
/// # Errors
/// When the folder cannot be opened.
pub fn recorded_snapshot(root: &Path, name: &str) -> io::Result<Host> {
    Ok(tree_snapshot(&FileTree::recorded(root)?, name))
}

/// A recorded host in a tree.
pub fn tree_snapshot(tree: &FileTree, name: &str) -> Host {
    let mut host = Host::new(name, true);
    add_all(tree, &mut host, None);
    add_gids(tree, &mut host);
    add_pci(tree, &mut host);
    add_links(tree, &mut host);
    add_later(tree, &mut host, &format!("{LATER}/"));
    host
}

/// Reads the running system. `most_speed` gives the highest speed of an interface's port in bit/s.
///
/// # Errors
/// When the root folder cannot be opened.
pub fn running_snapshot(
    options: &SnapshotOptions<'_>,
    most_speed: &dyn Fn(&str) -> Option<u64>,
) -> io::Result<Host> {
    let tree = FileTree::running()?;
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let mut host = Host::new(&name, false);
    add_all(&tree, &mut host, options.process);
    add_gids(&tree, &mut host);
    add_pci(&tree, &mut host);
    add_links(&tree, &mut host);
    answers::add_answers(&mut host, options, most_speed);
    Ok(host)
}

/// Reads the counters of the running system a second time, below `later`.
///
/// # Errors
/// When the root folder cannot be opened.
pub fn add_second_reading(host: &mut Host, options: &SnapshotOptions<'_>) -> io::Result<()> {
    let tree = FileTree::running()?;
    let mut second = Host::new("", false);
    add_later(&tree, &mut second, "");
    answers::add_statistics(host, &mut second, options);
    let files: Vec<(String, Vec<u8>)> = second
        .files()
        .map(|(path, bytes)| (format!("{LATER}/{path}"), bytes.to_vec()))
        .collect();
    for (path, bytes) in files {
        host.insert(&path, bytes);
    }
    Ok(())
}
