//! A file from a host to here: goes on where an earlier transfer stopped, and is named once its hash is that of the host.

use std::io::{Read as _, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use roce_files::{Access, Directory};
use sha2::{Digest as _, Sha256};

use super::report::RemoteFile;
use super::script::Place;
use crate::machine::{Machine, RemoteError, quoted};

/// Time without a byte after which a transfer is given up.
const STALL: Duration = Duration::from_secs(20);
/// Connections that one transfer may use.
const MAX_TRIES: u32 = 3;
/// Pause before another connection.
const PAUSE: Duration = Duration::from_secs(1);

/// Why a file was not collected.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransferError {
    /// The host cannot be reached, or fails.
    #[error(transparent)]
    Remote(#[from] RemoteError),
    /// A file here cannot be written or read.
    #[error(transparent)]
    File(#[from] roce_files::Error),
    /// The bytes here are not those of the host.
    #[error("{name}: its SHA-256 is not that of the host, twice: the file stays there")]
    Differs {
        /// The file.
        name: String,
    },
}

/// A file that is here.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Collected {
    /// Its size.
    pub bytes: u64,
    /// Its SHA-256.
    pub sha256: String,
    /// Bytes that were here before this transfer.
    pub resumed_at: u64,
    /// The host has given a hash, and it is this one.
    pub is_verified: bool,
}

/// Where a transfer goes on, by the size of what is here and of the whole file; more than the whole file is another file.
pub fn resume_at(here: u64, whole: u64) -> u64 {
    if here <= whole { here } else { 0 }
}

/// Name of a file while it comes.
pub fn part_name(name: &str) -> String {
    format!("{name}.part")
}

/// Counts bytes that are written.
struct Counting<'a, W> {
    sink: W,
    bytes: &'a AtomicU64,
}

impl<W: Write> Write for Counting<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.sink.write(bytes)?;
        self.bytes.fetch_add(written as u64, Ordering::Relaxed);
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.sink.flush()
    }
}

/// Fetches a file of a run into `folder` as `name`. `done` counts its bytes.
///
/// # Errors
/// If it cannot be fetched, or is another file than on the host. What has come is kept: the next call goes on behind it.
pub fn collect(
    machine: &Machine,
    place: &Place,
    file: &RemoteFile,
    (folder, name): (&Directory, &str),
    done: &AtomicU64,
    goes_on: &dyn Fn() -> bool,
) -> Result<Collected, TransferError> {
    let part = part_name(name);
    let mut resumed_at = None;
    for _ in 0..2 {
        let start = fetch_all(machine, place, file, (folder, &part), done, goes_on)?;
        let resumed_at = *resumed_at.get_or_insert(start);
        let sha256 = hash(folder, &part)?;
        if file.sha256.as_ref().is_none_or(|there| *there == sha256) {
            folder.rename(&part, name)?;
            return Ok(Collected {
                bytes: file.bytes,
                sha256,
                resumed_at,
                is_verified: file.sha256.is_some(),
            });
        }
        folder.remove(&part)?;
    }
    Err(TransferError::Differs {
        name: name.to_owned(),
    })
}

/// Fetches until the part has all bytes. Returns how many it had before.
fn fetch_all(
    machine: &Machine,
    place: &Place,
    file: &RemoteFile,
    (folder, part): (&Directory, &str),
    done: &AtomicU64,
    goes_on: &dyn Fn() -> bool,
) -> Result<u64, TransferError> {
    let path = quoted([&*format!("{}/{}", place.folder(), file.name)])?;
    let mut start = None;
    let mut tries = 0;
    loop {
        let (sink, here) = folder.append(part, Access::Private)?;
        let from = resume_at(here, file.bytes);
        if from < here {
            drop(sink);
            folder.remove(part)?;
            continue;
        }
        start.get_or_insert(from);
        done.store(from, Ordering::Relaxed);
        if from == file.bytes {
            return Ok(start.unwrap_or(from));
        }
        tries += 1;
        // tail counts bytes from 1 on. A file that has grown since is cut at its size.
        let script = format!("tail -c +{} {path} | head -c {}", from + 1, file.bytes - from);
        let mut sink = Counting { sink, bytes: done };
        let result = machine.fetch(&script, &mut sink, STALL, goes_on);
        match result {
            Ok(bytes) if bytes > 0 => {}
            Ok(_) => {
                return Err(TransferError::Remote(RemoteError::Failed {
                    code: 0,
                    text: format!("{} has fewer bytes than it had", file.name),
                }));
            }
            Err(error) if tries >= MAX_TRIES || !is_passing(&error) => return Err(error.into()),
            Err(_) => std::thread::sleep(PAUSE),
        }
    }
}

/// True for errors that another connection may not have.
fn is_passing(error: &RemoteError) -> bool {
    matches!(error, RemoteError::Unreachable(_) | RemoteError::NoAnswer(_))
}

/// SHA-256 of a file in hexadecimal.
fn hash(folder: &Directory, name: &str) -> Result<String, TransferError> {
    let failed = || roce_files::Error::io("read", &folder.path_of(name));
    let mut file = folder.open(name)?;
    let mut hash = Sha256::new();
    let mut block = vec![0; 1 << 20];
    loop {
        match file.read(&mut block).map_err(|error| failed()(error))? {
            0 => break,
            read => hash.update(&block[..read]),
        }
    }
    Ok(hex(&hash.finalize()))
}

/// Bytes in hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut text = String::new();
    for byte in bytes {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::Arc;

    use roce_fabric::inventory::SshSettings;

    use super::*;

    #[test]
    fn a_transfer_goes_on_where_it_stopped() {
        assert_eq!(resume_at(0, 10), 0);
        assert_eq!(resume_at(7, 10), 7);
        assert_eq!(resume_at(10, 10), 10);
        assert_eq!(resume_at(11, 10), 0, "another file");
    }

    struct Host {
        folder: tempfile::TempDir,
        place: Place,
        machine: Machine,
    }

    /// A host with the file `capture.pcap` of these bytes.
    fn host(bytes: &[u8]) -> Host {
        let folder = tempfile::tempdir().unwrap();
        let place = Place {
            base: folder.path().to_str().unwrap().to_owned(),
            net: "1".to_owned(),
            id: "0123456789abcdef".to_owned(),
        };
        fs::create_dir(place.folder()).unwrap();
        fs::write(format!("{}/capture.pcap", place.folder()), bytes).unwrap();
        let machine = Machine::new("here", "local", None, &Arc::new(SshSettings::default()));
        Host {
            folder,
            place,
            machine,
        }
    }

    impl Host {
        fn collect(&self, file: &RemoteFile) -> Result<Collected, TransferError> {
            let here = Directory::named(&self.folder.path().join("here"), Access::Private).unwrap();
            let done = AtomicU64::new(0);
            let collected = collect(
                &self.machine,
                &self.place,
                file,
                (&here, "a.pcap"),
                &done,
                &|| true,
            );
            here.keep();
            collected
        }
    }

    #[test]
    fn files_are_resumed_and_verified() {
        let bytes: Vec<u8> = (0..700_000_u32).map(|at| (at % 251) as u8).collect();
        let host = host(&bytes);
        let file = RemoteFile {
            name: "capture.pcap".to_owned(),
            bytes: 700_000,
            sha256: Some(hex(&Sha256::digest(&bytes))),
        };
        let here = host.folder.path().join("here");
        fs::create_dir(&here).unwrap();
        fs::write(here.join("a.pcap.part"), &bytes[..123_457]).unwrap();
        let collected = host.collect(&file).unwrap();
        assert_eq!((collected.resumed_at, collected.is_verified), (123_457, true));
        assert_eq!(fs::read(here.join("a.pcap")).unwrap(), bytes);
        assert!(!here.join("a.pcap.part").exists());

        // What is here already is another file's: it is fetched whole.
        fs::write(here.join("a.pcap.part"), [0; 1000]).unwrap();
        let collected = host.collect(&file).unwrap();
        assert_eq!(collected.resumed_at, 1000);
        assert_eq!(fs::read(here.join("a.pcap")).unwrap(), bytes);
    }

    #[test]
    fn a_file_that_differs_is_no_success() {
        let host = host(b"abc");
        let file = RemoteFile {
            name: "capture.pcap".to_owned(),
            bytes: 3,
            sha256: Some("00".repeat(32)),
        };
        let error = host.collect(&file).unwrap_err();
        assert!(matches!(error, TransferError::Differs { .. }), "{error}");
        assert!(!host.folder.path().join("here/a.pcap").exists());
        // Fewer bytes than there were.
        let longer = RemoteFile { bytes: 9, ..file };
        let error = host.collect(&longer).unwrap_err();
        assert!(error.to_string().contains("fewer bytes"), "{error}");
    }
}
