//! Names of inputs and runs in results: they are equal on every machine that analyses the same capture.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use roce_model::Time;
use sha2::{Digest, Sha256};

/// The name of the JSON document in a folder of results.
#[cfg(feature = "parquet")]
pub const DOCUMENT: &str = "run.json";

/// Keys of the inputs at `paths`, in their order. A relative path is its own key. Absolute paths lose the folder that they all share:
/// results name no folder of the machine that analysed.
pub fn input_keys(paths: &[PathBuf]) -> Vec<String> {
    let absolute = || paths.iter().filter(|path| path.is_absolute());
    let mut shared = absolute()
        .next()
        .and_then(|path| path.parent())
        .map(Path::to_path_buf);
    for path in absolute() {
        while let Some(folder) = &shared
            && !path.parent().is_some_and(|parent| parent.starts_with(folder))
        {
            shared = folder.parent().map(Path::to_path_buf);
        }
    }
    let key = |path: &PathBuf| {
        let shared = shared.as_deref().filter(|_| path.is_absolute());
        let key = shared.and_then(|shared| path.strip_prefix(shared).ok());
        key.unwrap_or(path).display().to_string()
    };
    paths.iter().map(key).collect()
}

/// A path in results: relative as given, of an absolute one the name alone.
pub fn path_key(path: &Path) -> String {
    input_keys(&[path.to_path_buf()]).concat()
}

/// The key of a run over inputs with these keys: that of the only one, or of the first and the number of the others.
pub fn capture_key(inputs: &[String]) -> String {
    match inputs {
        [] => String::new(),
        [only] => only.clone(),
        [first, others @ ..] => format!("{first} +{}", others.len()),
    }
}

/// Input of the hash that identifies a run.
#[derive(Clone, Debug, Default)]
pub struct RunNames<'a> {
    /// Key of the capture.
    pub capture: &'a str,
    /// Key of each input, and its size in bytes.
    pub inputs: &'a [(String, Option<u64>)],
    /// The options that shape results: name and value.
    pub options: &'a [(String, String)],
    /// Host that captured, where it was given.
    pub host: Option<&'a str>,
    /// Start of the run, of devices and streams: no two of those are the same capture.
    pub started: Option<Time>,
}

impl RunNames<'_> {
    /// The identifier: the first 63 bits of the SHA-256 over all fields, each with its length, as 16 hex digits.
    pub fn run_id(&self) -> String {
        let mut hash = Sha256::new();
        let mut add = |text: &str| {
            hash.update((text.len() as u64).to_be_bytes());
            hash.update(text);
        };
        let number = |number: Option<u64>| number.map_or_else(String::new, |number| number.to_string());
        add(self.capture);
        add(&self.inputs.len().to_string());
        for (key, bytes) in self.inputs {
            add(key);
            add(&number(*bytes));
        }
        for (name, value) in self.options {
            add(name);
            add(value);
        }
        add(self.host.unwrap_or_default());
        add(&number(self.started.map(|time| time.0)));
        let mut text = String::new();
        for (place, byte) in hash.finalize().iter().take(8).enumerate() {
            let byte = if place == 0 { byte & 0x7f } else { *byte };
            // Writing to a string does not fail.
            let _ = write!(text, "{byte:02x}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(paths: &[&str]) -> Vec<String> {
        input_keys(&paths.iter().map(PathBuf::from).collect::<Vec<_>>())
    }

    #[test]
    fn keys_are_relative_to_what_was_given() {
        assert_eq!(
            keys(&["a/b.pcap", "../c.pcap", "-"]),
            ["a/b.pcap", "../c.pcap", "-"]
        );
        assert_eq!(keys(&["/data/a/b.pcap"]), ["b.pcap"]);
        assert_eq!(keys(&["/data/a/b.pcap", "/data/a/b.pcap"]), ["b.pcap", "b.pcap"]);
        assert_eq!(
            keys(&["/data/a/b.pcap", "c.pcap", "/data/d/b.pcap"]),
            ["a/b.pcap", "c.pcap", "d/b.pcap"]
        );
        assert_eq!(keys(&["/data/b.pcap", "/data/a/b.pcap"]), ["b.pcap", "a/b.pcap"]);
        assert_eq!(keys(&["/b.pcap", "/data/b.pcap"]), ["b.pcap", "data/b.pcap"]);
    }

    #[test]
    fn several_inputs_are_one_capture() {
        assert_eq!(capture_key(&keys(&["a.pcap"])), "a.pcap");
        assert_eq!(capture_key(&keys(&["a.pcap", "b.pcap", "c.pcap"])), "a.pcap +2");
    }

    #[test]
    fn a_run_is_named_by_all_that_shapes_it() {
        let inputs = [("a.pcap".to_owned(), Some(1_000))];
        let options = [("bin_ns".to_owned(), "1000".to_owned())];
        let run = RunNames {
            capture: "a.pcap",
            inputs: &inputs,
            options: &options,
            ..RunNames::default()
        };
        // Computed apart, in Python: f = lambda s: len(s).to_bytes(8, "big") + s.encode()
        // d = hashlib.sha256(b"".join(map(f, ["a.pcap", "1", "a.pcap", "1000", "bin_ns", "1000", "", ""]))).digest()
        // (int.from_bytes(d[:8], "big") & 2**63 - 1).to_bytes(8, "big").hex()
        assert_eq!(run.run_id(), "044165314b7e12e4");
        assert_eq!(run.run_id(), run.clone().run_id());
        let others = [
            RunNames {
                capture: "b.pcap",
                ..run.clone()
            },
            RunNames {
                inputs: &[],
                ..run.clone()
            },
            RunNames {
                options: &[],
                ..run.clone()
            },
            RunNames {
                host: Some("h"),
                ..run.clone()
            },
            RunNames {
                started: Some(Time(0)),
                ..run.clone()
            },
        ];
        for other in others {
            assert_ne!(other.run_id(), run.run_id(), "{other:?}");
        }
    }
}
