//! Recordings of hosts as one file: tar, compressed with zstd.
//!
//! A recording is read into memory and never unpacked: its links, devices and odd names are left out, and files, bytes and the window
//! of the compression are bounded.

use std::io::{Read, Write};
use std::path::{Component, Path};

use anyhow::{Context, bail};
use roce_files::{Access, FilePlace};
use roce_hosts::doctor::{Host, UNREADABLE};
use serde_json::{Map, Value, json};

/// Decompressed bytes of a recording.
const MAX_BYTES: u64 = 128 << 20;
/// Bytes of one file in it.
const MAX_FILE_BYTES: u64 = 16 << 20;
/// Entries of it.
const MAX_ENTRIES: usize = 1 << 17;
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

/// True of a path that stays below its root.
fn is_inside(path: &Path) -> bool {
    path.components().all(|part| matches!(part, Component::Normal(_)))
}

/// Reads a recording; `name` is that of the host, if the recording has none.
pub(super) fn read(from: impl Read, name: &str) -> anyhow::Result<Host> {
    let mut decoder = zstd::Decoder::new(from).context("not a recording")?;
    decoder.window_log_max(MAX_WINDOW_LOG)?;
    let mut tar = tar::Archive::new(decoder.take(MAX_BYTES));
    let mut host = Host::new(name, true);
    let mut is_recording = false;
    for (count, entry) in tar.entries().context("not a recording")?.enumerate() {
        if count >= MAX_ENTRIES {
            bail!("more than {MAX_ENTRIES} files");
        }
        let entry = entry.context("the recording is damaged or too large")?;
        if !entry.header().entry_type().is_file() {
            continue;
        }
        let path = entry.path()?.into_owned();
        let Some(text) = path.to_str().filter(|_| is_inside(&path)) else {
            continue;
        };
        let text = text.to_owned();
        let mut bytes = Vec::new();
        let size = entry.size();
        entry
            .take(MAX_FILE_BYTES)
            .read_to_end(&mut bytes)
            .context("the recording is damaged or too large")?;
        if size > bytes.len() as u64 {
            bail!("{text}: larger than {MAX_FILE_BYTES} bytes, or cut");
        }
        if text == ABOUT {
            is_recording = true;
            let about: Value = serde_json::from_slice(&bytes).unwrap_or_default();
            if let Some(name) = about.get("name").and_then(Value::as_str) {
                host.name = name.chars().take(64).collect();
            }
        }
        host.insert(&text, bytes);
    }
    if !is_recording {
        bail!("not a recording of a host\nhint: roce-analyze doctor --record FILE writes one");
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

    #[test]
    fn what_is_cut_foreign_or_bloated_is_refused() {
        let whole = write_to(&host(), Vec::new()).unwrap();
        for length in 0..whole.len() {
            // A cut recording is an error, or has fewer files; never a panic.
            let _ = read(&whole[..length], "x");
        }
        assert!(read(&b"no recording"[..], "x").is_err());
        assert!(read(zstd::encode_all(&b"text"[..], 1).unwrap().as_slice(), "x").is_err());
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
