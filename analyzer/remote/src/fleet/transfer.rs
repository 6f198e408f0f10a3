//! A file from a host to here: goes on where an earlier transfer stopped, and is named once its hash is that of the host.

use std::fs::File;
use std::io::{Read as _, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use roce_files::{Access, Directory};
use sha2::{Digest as _, Sha256};

use super::report::RemoteFile;
use super::script::HostRunNames;
use crate::machine::{Machine, RemoteError, quoted};
use crate::session::Bounds;

/// Time without a byte after which a transfer is given up.
const STALL: Duration = Duration::from_secs(20);
/// Bytes that must come in each [`PERIOD`]: a host that sends a byte now and then does not hold a run up for ever.
const MIN_BYTES: u64 = 1 << 20;
/// A slow line carries a hundred times as much in this time.
const PERIOD: Duration = Duration::from_mins(1);
/// Connections that one file may use.
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
    /// Connections ended well, and too few bytes came.
    #[error("{name}: the host has fewer bytes of it than it said")]
    Short {
        /// The file.
        name: String,
    },
    /// The host's files do not fit on this machine.
    #[error("{name}: it has {bytes} more bytes on the host, and {free} are free here: the file stays there")]
    NoRoom {
        /// The file.
        name: String,
        /// Its bytes that are not here.
        bytes: u64,
        /// Bytes that are free.
        free: u64,
    },
}

/// A file that is here.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CollectedFile {
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
struct CountingWriter<'a, W> {
    sink: W,
    bytes: &'a AtomicU64,
}

impl<W: Write> Write for CountingWriter<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.sink.write(bytes)?;
        self.bytes.fetch_add(written as u64, Ordering::Relaxed);
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.sink.flush()
    }
}

/// One file on its way.
struct Transfer<'a> {
    machine: &'a Machine,
    /// Its path there, as a word of a shell.
    path: String,
    file: &'a RemoteFile,
    folder: &'a Directory,
    part: String,
    done: &'a AtomicU64,
    goes_on: &'a dyn Fn() -> bool,
    /// Connections that were used.
    tries: u32,
}

/// Fetches a file of a run into `folder` as `name`. `done` counts its bytes. `goes_on` is asked ten times a second.
///
/// # Errors
/// If it cannot be fetched, or is another file than on the host. What has come is kept: the next call goes on behind it. Of a host that
/// sends more than `file` has nothing is kept.
pub fn collect(
    machine: &Machine,
    place: &HostRunNames,
    file: &RemoteFile,
    (folder, name): (&Directory, &str),
    done: &AtomicU64,
    goes_on: &dyn Fn() -> bool,
) -> Result<CollectedFile, TransferError> {
    let mut transfer = Transfer {
        machine,
        path: quoted([&*format!("{}/{}", place.folder(), file.name)])?,
        file,
        folder,
        part: part_name(name),
        done,
        goes_on,
        tries: 0,
    };
    let mut resumed_at = None;
    for _ in 0..2 {
        let start = transfer.fetch()?;
        let resumed_at = *resumed_at.get_or_insert(start);
        let sha256 = transfer.hash()?;
        if file.sha256.as_ref().is_none_or(|there| *there == sha256) {
            folder.rename(&transfer.part, name)?;
            return Ok(CollectedFile {
                bytes: file.bytes,
                sha256,
                resumed_at,
                is_verified: file.sha256.is_some(),
            });
        }
        folder.remove(&transfer.part)?;
    }
    Err(TransferError::Differs {
        name: name.to_owned(),
    })
}

impl Transfer<'_> {
    /// Fetches until the part has all bytes. Returns how many it had before.
    fn fetch(&mut self) -> Result<u64, TransferError> {
        let mut start = None;
        loop {
            let (sink, here) = self.folder.append(&self.part, Access::Private)?;
            let from = resume_at(here, self.file.bytes);
            if from < here {
                drop(sink);
                self.folder.remove(&self.part)?;
                continue;
            }
            start.get_or_insert(from);
            self.done.store(from, Ordering::Relaxed);
            if from == self.file.bytes {
                return Ok(start.unwrap_or(from));
            }
            let short = || TransferError::Short {
                name: self.file.name.clone(),
            };
            if self.tries >= MAX_TRIES {
                return Err(short());
            }
            self.tries += 1;
            match self.fetch_from(from, sink) {
                Ok(0) => return Err(short()),
                Ok(_) => {}
                Err(TransferError::Remote(error)) if self.tries < MAX_TRIES && is_passing(&error) => {
                    self.machine.sleep(PAUSE);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Fetches from a byte on, over one connection. Returns how many bytes came.
    fn fetch_from(&self, from: u64, sink: File) -> Result<u64, TransferError> {
        let bytes = self.file.bytes - from;
        let free = self.folder.free_bytes()?;
        if bytes > free {
            return Err(TransferError::NoRoom {
                name: self.file.name.clone(),
                bytes,
                free,
            });
        }
        // tail counts bytes from 1 on. A file that has grown since is cut at its size.
        let script = format!("tail -c +{} {} | head -c {bytes}", from + 1, self.path);
        let mut sink = CountingWriter {
            sink,
            bytes: self.done,
        };
        let bounds = Bounds {
            bytes,
            stall: STALL,
            period: PERIOD,
            least: MIN_BYTES,
        };
        let result = self.machine.fetch(&script, &mut sink, bounds, self.goes_on);
        if let Err(RemoteError::TooMuch(_)) = result {
            // It is not what was asked for.
            self.folder.remove(&self.part)?;
        }
        Ok(result?)
    }

    /// SHA-256 of the part in hexadecimal.
    fn hash(&self) -> Result<String, TransferError> {
        let failed = || roce_files::Error::io("read", &self.folder.path_of(&self.part));
        let mut file = self.folder.open(&self.part)?;
        let mut hash = Sha256::new();
        let mut block = vec![0; 1 << 20];
        loop {
            if !(self.goes_on)() {
                return Err(RemoteError::Interrupted.into());
            }
            match file.read(&mut block).map_err(|error| failed()(error))? {
                0 => break,
                read => hash.update(&block[..read]),
            }
        }
        Ok(hex(&hash.finalize()))
    }
}

/// True for errors that another connection may not have.
fn is_passing(error: &RemoteError) -> bool {
    matches!(error, RemoteError::Unreachable(_) | RemoteError::NoAnswer(_))
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

    use roce_switches::inventory::SshSettings;

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
        place: HostRunNames,
        machine: Machine,
    }

    /// A host with the file `capture.pcap` of these bytes.
    fn host(bytes: &[u8]) -> Host {
        let folder = tempfile::tempdir().unwrap();
        let place = HostRunNames {
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

    /// A host that answers each script by one of its own. The inventory's `prefix` is what runs it there.
    fn answers_with(script: &str) -> Host {
        let mut host = host(b"");
        let program = host.folder.path().join("answer");
        // Each connection leaves a line.
        let tries = host.folder.path().join("tries");
        fs::write(&program, format!("echo >> {}\n{script}\n", tries.display())).unwrap();
        let mut target = roce_switches::inventory::HostTarget::named("here");
        target.address = Some("local".to_owned());
        target.prefix = Some(format!("sh {}", program.display()));
        host.machine = Machine::host(&target, &Arc::new(SshSettings::default()));
        host
    }

    impl Host {
        fn tries(&self) -> usize {
            fs::read(self.folder.path().join("tries")).unwrap().len()
        }

        /// Bytes of what is here, whatever its name.
        fn bytes_here(&self) -> u64 {
            let entries = fs::read_dir(self.folder.path().join("here")).unwrap();
            entries
                .map(|entry| entry.unwrap().metadata().unwrap().len())
                .sum()
        }

        fn collect(&self, file: &RemoteFile) -> Result<CollectedFile, TransferError> {
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

        // The bytes here are another file's: the file is fetched whole.
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

    #[test]
    fn a_host_that_sends_more_than_it_named_fills_no_disk() {
        let file = RemoteFile {
            name: "capture.pcap".to_owned(),
            bytes: 10,
            sha256: None,
        };
        for script in ["exec cat /dev/zero", "head -c 30000000 /dev/zero"] {
            let host = answers_with(script);
            let error = host.collect(&file).unwrap_err();
            let is_too_much = matches!(error, TransferError::Remote(RemoteError::TooMuch(10)));
            assert!(is_too_much, "{script}: {error}");
            assert_eq!((host.tries(), host.bytes_here()), (1, 0), "{script}");
        }
    }

    #[test]
    fn a_host_that_sends_a_byte_at_a_time_is_not_asked_for_ever() {
        let host = answers_with("printf x");
        let file = RemoteFile {
            name: "capture.pcap".to_owned(),
            bytes: 100,
            sha256: None,
        };
        let error = host.collect(&file).unwrap_err();
        assert!(matches!(error, TransferError::Short { .. }), "{error}");
        assert_eq!(host.tries(), usize::try_from(MAX_TRIES).unwrap());
        // The hash of a whole file is wrong as often as it is fetched.
        let host = answers_with("printf abc");
        let error = host
            .collect(&RemoteFile {
                bytes: 3,
                sha256: Some("00".repeat(32)),
                ..file
            })
            .unwrap_err();
        assert!(matches!(error, TransferError::Differs { .. }), "{error}");
        assert_eq!(host.tries(), 2);
    }

    #[test]
    fn what_cannot_fit_is_not_begun() {
        let host = answers_with("exec cat /dev/zero");
        let file = RemoteFile {
            name: "capture.pcap".to_owned(),
            bytes: u64::MAX,
            sha256: None,
        };
        let error = host.collect(&file).unwrap_err();
        assert!(matches!(error, TransferError::NoRoom { .. }), "{error}");
        assert!(!host.folder.path().join("tries").exists(), "nobody was asked");
    }
}
