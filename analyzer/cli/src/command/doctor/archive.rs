//! Recordings of hosts as one file: those of `--record`, which are tar compressed with zstd, and trees of files that somebody packed:
//! tar, plain or compressed with gzip or zstd.
//!
//! An archive is read into memory and never unpacked: devices and odd names are left out, links are resolved within it, and files, bytes
//! and the window of the compression are bounded.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Component, Path};

use anyhow::{Context, bail};
use roce_files::{Access, FilePlace, FileTree, MemberTree};
use roce_hosts::doctor::{Host, UNREADABLE};
use roce_probe::tree_snapshot;
use serde_json::{Map, Value, json};

/// Decompressed bytes of a recording.
const MAX_BYTES: u64 = 128 << 20;
/// Bytes of one file in it.
const MAX_FILE_BYTES: u64 = 16 << 20;
/// Entries of it.
const MAX_ENTRIES: usize = 1 << 17;
/// Characters of a path or of a link's target (Linux, `PATH_MAX`).
const MAX_PATH: usize = 4_096;
/// Folders that a member may be in, one in another: sysfs has some twenty.
const MAX_DEPTH: usize = 64;
/// Folders that a host's tree has at its root.
const ROOTS: [&str; 3] = ["sys", "proc", "answers"];
/// Window of the compression, as a power of two: 8 MiB.
const MAX_WINDOW_LOG: u32 = 23;
/// The file that names the host.
const ABOUT: &str = "answers/recorded.json";

fn write_to<W: Write>(host: &Host, out: W) -> anyhow::Result<W> {
    let mut tar = tar::Builder::new(zstd::Encoder::new(out, 3)?);
    let mut add = |path: &str, bytes: &[u8]| -> std::io::Result<()> {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        header.set_mtime(0);
        header.set_cksum();
        tar.append_data(&mut header, path, bytes)
    };
    add(
        ABOUT,
        json!({ "name": host.name, "version": 1 }).to_string().as_bytes(),
    )?;
    let unreadable: Map<String, Value> = host
        .unreadable()
        .map(|(path, why)| (path.to_owned(), why.into()))
        .collect();
    add(UNREADABLE, Value::Object(unreadable).to_string().as_bytes())?;
    for (path, bytes) in host
        .files()
        .filter(|(path, _)| *path != UNREADABLE && *path != ABOUT)
    {
        add(path, bytes)?;
    }
    Ok(tar.into_inner()?.finish()?)
}

/// Writes a recording to a file.
pub(super) fn write(host: &Host, place: &FilePlace, overwrite: bool) -> anyhow::Result<()> {
    let output = place.begin(overwrite, Access::Private)?;
    write_to(host, output)?.finish()?;
    Ok(())
}

/// Writes a recording to standard output, for who reads it over ssh.
pub(super) fn write_stdout(host: &Host) -> anyhow::Result<()> {
    write_to(host, std::io::stdout().lock())?.flush()?;
    Ok(())
}

/// The parts of a path that stays below its root, joined again; `None`: it leads out, or is no text.
fn inside(path: &Path) -> Option<String> {
    let mut parts = Vec::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => parts.push(name.to_str()?),
            Component::CurDir => {}
            _ => return None,
        }
    }
    let path = parts.join("/");
    let is_short = path.len() <= MAX_PATH && parts.len() <= MAX_DEPTH;
    (!path.is_empty() && is_short).then_some(path)
}

/// True of an archive that is read, by the file's first bytes; gzip compresses other files, too.
pub(super) fn is_kind(begin: &[u8]) -> bool {
    let is_tar = |begin: &[u8]| begin.get(257..).is_some_and(|rest| rest.starts_with(b"ustar"));
    let mut inner = Vec::new();
    if begin.starts_with(&GZIP) {
        // The rest of the stream is not here: its end is an error.
        let decoder = flate2::bufread::GzDecoder::new(begin);
        let _ = decoder.take(roce_files::LOOKED_AT as u64).read_to_end(&mut inner);
    }
    is_tar(begin) || begin.starts_with(&ZSTD) || is_tar(&inner)
}

/// True of a file that is such an archive.
pub(in crate::command) fn is_archive(path: &Path) -> bool {
    let mut begin = Vec::new();
    let read = roce_files::open_regular(path)
        .map(|file| file.take(roce_files::LOOKED_AT as u64).read_to_end(&mut begin));
    read.is_ok_and(|read| read.is_ok()) && is_kind(&begin)
}

/// First bytes of files that zstd and gzip compressed.
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The bytes of an archive, decompressed and bounded.
fn decompressed<'a>(from: impl Read + 'a) -> anyhow::Result<Box<dyn Read + 'a>> {
    let mut from = BufReader::new(from);
    let begin = from.fill_buf()?;
    Ok(if begin.starts_with(&GZIP) {
        Box::new(flate2::bufread::MultiGzDecoder::new(from).take(MAX_BYTES))
    } else if begin.starts_with(&ZSTD) {
        let mut decoder = zstd::Decoder::with_buffer(from).context("not a recording")?;
        decoder.window_log_max(MAX_WINDOW_LOG)?;
        Box::new(decoder.take(MAX_BYTES))
    } else {
        Box::new(from.take(MAX_BYTES))
    })
}

/// A member of an archive that counts.
enum Member {
    File(Vec<u8>),
    Link(String),
    Folder,
}

/// The members of an archive with their paths; no devices, no FIFOs, no hard links, nothing that leads out.
fn members(from: impl Read) -> anyhow::Result<Vec<(String, Member)>> {
    let mut tar = tar::Archive::new(decompressed(from)?);
    let mut all = Vec::new();
    for (count, entry) in tar.entries().context("not a recording")?.enumerate() {
        if count >= MAX_ENTRIES {
            bail!("more than {MAX_ENTRIES} files");
        }
        let entry = entry.context("the recording is damaged or too large")?;
        let Some(path) = inside(&entry.path()?) else {
            continue;
        };
        let kind = entry.header().entry_type();
        let member = if kind.is_dir() {
            Member::Folder
        } else if kind.is_symlink() {
            let target = entry
                .link_name()?
                .and_then(|target| target.to_str().map(str::to_owned));
            match target.filter(|target| target.len() <= MAX_PATH) {
                Some(target) => Member::Link(target),
                None => continue,
            }
        } else if kind.is_file() {
            let mut bytes = Vec::new();
            let size = entry.size();
            entry
                .take(MAX_FILE_BYTES)
                .read_to_end(&mut bytes)
                .context("the recording is damaged or too large")?;
            if size > bytes.len() as u64 {
                bail!("{path}: larger than {MAX_FILE_BYTES} bytes, or cut");
            }
            Member::File(bytes)
        } else {
            continue;
        };
        all.push((path, member));
    }
    Ok(all)
}

/// The folder that a host's tree is in: what is before the first part of a path that such a tree has at its root.
fn folder_of(path: &str) -> Option<&str> {
    let mut at = 0;
    for part in path.split('/') {
        if ROOTS.contains(&part) {
            return path.get(..at);
        }
        at += part.len() + 1;
    }
    None
}

/// Bytes of a file as the kernel showed them: `tar` fills up what is shorter than sysfs states. `None`: procfs states no length, and
/// `tar` took nothing.
fn shown(path: &str, mut bytes: Vec<u8>) -> Option<Vec<u8>> {
    if path.starts_with("sys/") && !path.ends_with("/config") {
        let end = bytes
            .iter()
            .rposition(|byte| *byte != 0)
            .map_or(0, |last| last + 1);
        bytes.truncate(end);
    }
    (!path.starts_with("proc/") || !bytes.is_empty()).then_some(bytes)
}

/// The tree of the one host in an archive, and its name; `name` is that of the file.
fn tree(from: impl Read, name: &str) -> anyhow::Result<(MemberTree, String)> {
    let members = members(from)?;
    let mut folders: Vec<&str> = members.iter().filter_map(|(path, _)| folder_of(path)).collect();
    folders.sort_unstable();
    folders.dedup();
    let Some(folder) = folders.first().map(|folder| (*folder).to_owned()) else {
        bail!(
            "not a recording of a host\nhint: roce-analyze doctor --record FILE writes one; other archives have the host's files below sys and proc"
        );
    };
    if let Some(other) = folders.get(1) {
        bail!(
            "two hosts in one archive: {folder} and {other}\nhint: unpack it, and give each folder with --read"
        );
    }
    let mut tree = MemberTree::default();
    for (path, member) in members {
        let Some(path) = path.strip_prefix(&folder) else {
            continue;
        };
        // A path makes all folders that it names.
        if tree.folders() > MAX_ENTRIES {
            bail!("more than {MAX_ENTRIES} folders");
        }
        match member {
            Member::File(bytes) => {
                if let Some(bytes) = shown(path, bytes) {
                    tree.add_file(path, bytes);
                }
            }
            Member::Link(target) => tree.add_link(path, &target),
            Member::Folder => tree.add_folder(path),
        }
    }
    let own = folder
        .trim_end_matches('/')
        .rsplit('/')
        .next()
        .unwrap_or_default();
    let name = if own.is_empty() { name } else { own };
    Ok((tree, name.to_owned()))
}

/// Name of the host in an archive's file: `gpu1` of `gpu1.tar.zst`.
fn name_of(path: &Path) -> String {
    let name = path
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let mut name = name.as_str();
    for end in [".zst", ".gz", ".tgz", ".tzst", ".tar"] {
        name = name.strip_suffix(end).unwrap_or(name);
    }
    name.to_owned()
}

/// The files of a host in an archive, and its name.
pub(in crate::command) fn files(path: &Path) -> anyhow::Result<(FileTree, String)> {
    let (tree, name) = tree(roce_files::open_regular(path)?, &name_of(path))?;
    Ok((FileTree::of_members(tree), name))
}

/// The host in an archive.
pub(super) fn host(path: &Path) -> anyhow::Result<Host> {
    read(roce_files::open_regular(path)?, &name_of(path))
}

/// Reads an archive; `name` is that of the host, if the archive has none.
pub(super) fn read(from: impl Read, name: &str) -> anyhow::Result<Host> {
    let (tree, name) = tree(from, name)?;
    let Some(about) = tree.file(ABOUT) else {
        return Ok(tree_snapshot(&FileTree::of_members(tree), &name));
    };
    let mut host = Host::new(&name, true);
    let about: Value = serde_json::from_slice(about).unwrap_or_default();
    if let Some(name) = about.get("name").and_then(Value::as_str) {
        host.name = name.chars().take(64).collect();
    }
    for (path, bytes) in tree.into_files() {
        host.insert(&path, bytes);
    }
    Ok(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host() -> Host {
        let mut host = Host::new("gpu1", false);
        host.insert("sys/class/net/a/mtu", b"1500\n".to_vec());
        host.insert("answers/uname.json", br#"{"release":"6.8.0"}"#.to_vec());
        host.insert_unreadable("proc/1/cgroup", "permission denied");
        host
    }

    #[test]
    fn a_recording_gives_what_was_recorded() {
        let bytes = write_to(&host(), Vec::new()).unwrap();
        let back = read(bytes.as_slice(), "x").unwrap();
        assert_eq!(back.name, "gpu1");
        assert!(back.is_recorded);
        assert_eq!(back.need("sys/class/net/a/mtu").unwrap(), "1500");
        assert_eq!(back.need("proc/1/cgroup").unwrap_err().why, "permission denied");
    }

    fn recording(add: impl Fn(&mut tar::Builder<Vec<u8>>)) -> Vec<u8> {
        let mut tar = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_size(2);
        header.set_cksum();
        tar.append_data(&mut header, ABOUT, &b"{}"[..]).unwrap();
        add(&mut tar);
        zstd::encode_all(tar.into_inner().unwrap().as_slice(), 1).unwrap()
    }

    #[test]
    fn links_and_paths_that_lead_out_are_left_out() {
        let bytes = recording(|tar| {
            let mut link = tar::Header::new_gnu();
            link.set_entry_type(tar::EntryType::Symlink);
            link.set_size(0);
            tar.append_link(&mut link, "sys/class/net/a/mtu", "/etc/shadow")
                .unwrap();
            let mut header = tar::Header::new_gnu();
            // The crate refuses such a path, so that it is written into the header's bytes.
            header.as_old_mut().name[..10].copy_from_slice(b"../../evil");
            header.set_size(1);
            header.set_cksum();
            tar.append(&header, &b"x"[..]).unwrap();
        });
        let host = read(bytes.as_slice(), "x").unwrap();
        assert_eq!(host.files().count(), 1);
    }

    /// A tree as `tar` packs a folder, with a link as sysfs has it.
    fn packed(prefix: &str) -> Vec<u8> {
        let mut tar = tar::Builder::new(Vec::new());
        let mut add = |path: &str, bytes: &[u8]| {
            let mut header = tar::Header::new_gnu();
            header.set_size(bytes.len() as u64);
            header.set_cksum();
            tar.append_data(&mut header, format!("{prefix}{path}"), bytes)
                .unwrap();
        };
        let port = "sys/devices/pci0000:3a/0000:3b:00.0/infiniband/mlx5_0/ports/1";
        // tar fills up to the 4,096 bytes that sysfs states.
        let mut state = b"4: ACTIVE\n".to_vec();
        state.resize(4_096, 0);
        add(&format!("{port}/state"), &state);
        add(&format!("{port}/rate"), b"100 Gb/sec (4X EDR)\n");
        add("proc/modules", b"");
        for (path, target) in [
            (
                "sys/class/infiniband/mlx5_0",
                "../../devices/pci0000:3a/0000:3b:00.0/infiniband/mlx5_0",
            ),
            ("sys/class/infiniband/mlx5_1", "/etc"),
            ("sys/class/infiniband/mlx5_2", "mlx5_2"),
        ] {
            let mut link = tar::Header::new_gnu();
            link.set_entry_type(tar::EntryType::Symlink);
            link.set_size(0);
            tar.append_link(&mut link, format!("{prefix}{path}"), target)
                .unwrap();
        }
        let mut device = tar::Header::new_gnu();
        device.set_entry_type(tar::EntryType::Char);
        device.set_size(0);
        tar.append_data(&mut device, format!("{prefix}proc/kmsg"), &b""[..])
            .unwrap();
        tar.into_inner().unwrap()
    }

    #[test]
    fn packed_trees_are_read_as_their_folders() {
        let plain = packed("./gpu7/");
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&plain).unwrap();
        for bytes in [
            plain.clone(),
            gzip.finish().unwrap(),
            zstd::encode_all(plain.as_slice(), 1).unwrap(),
        ] {
            assert!(is_kind(&bytes));
            let host = read(bytes.as_slice(), "x").unwrap();
            assert_eq!(host.name, "gpu7");
            let port = "sys/class/infiniband/mlx5_0/ports/1";
            assert_eq!(host.need(&format!("{port}/state")).unwrap(), "4: ACTIVE");
            // Links that lead out or in a circle have nothing; files of procfs that were not taken are not there.
            assert!(!host.has("sys/class/infiniband/mlx5_1/ports") && !host.has("proc/modules"));
            assert!(!host.has("proc/kmsg"));
        }
        assert_eq!(read(packed("").as_slice(), "gpu8").unwrap().name, "gpu8");
        let mut two = tar::Builder::new(Vec::new());
        for path in ["a/sys/x", "b/sys/x"] {
            let mut header = tar::Header::new_gnu();
            header.set_size(1);
            header.set_cksum();
            two.append_data(&mut header, path, &b"1"[..]).unwrap();
        }
        let error = read(two.into_inner().unwrap().as_slice(), "x").unwrap_err();
        assert!(error.to_string().contains("two hosts"), "{error:#}");
    }

    #[test]
    fn what_is_cut_foreign_or_bloated_is_refused() {
        let whole = write_to(&host(), Vec::new()).unwrap();
        for length in 0..whole.len() {
            // A cut recording is an error, or has fewer files; never a panic.
            let _ = read(&whole[..length], "x");
        }
        assert!(read(&b"no recording"[..], "x").is_err());
        assert!(read(zstd::encode_all(&b"text"[..], 1).unwrap().as_slice(), "x").is_err());
        // Paths that make many folders each.
        let deep = "a/".repeat(MAX_DEPTH - 4);
        let wide = recording(|tar| {
            for number in 0..MAX_ENTRIES / (MAX_DEPTH - 4) + 2 {
                let mut header = tar::Header::new_gnu();
                header.set_size(0);
                header.set_cksum();
                let path = format!("sys/{number}/{deep}x");
                tar.append_data(&mut header, path, &b""[..]).unwrap();
            }
        });
        assert!(read(wide.as_slice(), "x").is_err());
        // A file that states more than it may have.
        let large = recording(|tar| {
            let mut header = tar::Header::new_gnu();
            header.set_size(MAX_FILE_BYTES + 1);
            header.set_cksum();
            let zeros = std::io::repeat(0).take(MAX_FILE_BYTES + 1);
            tar.append_data(&mut header, "proc/modules", zeros).unwrap();
        });
        assert!(read(large.as_slice(), "x").is_err());
    }
}
