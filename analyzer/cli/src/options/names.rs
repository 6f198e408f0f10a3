//! The options that name a run in results, and their defaults.

use std::path::PathBuf;

use clap::Args;
use roce_model::{RunKey, Time};
use roce_pipeline::{RunNames, capture_key, input_keys};

/// Heading of the group of options in the help.
const HEADING: &str = "Results";

// Names of a run. (A comment for the compiler would become the help's first line.)
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Names {
    /// Host that captured, for the column `host` of all tables [default: the name of this machine]
    #[arg(long = "host-name", value_name = "NAME", value_parser = parse_name, help_heading = HEADING)]
    pub(crate) host: Option<String>,

    /// Identifier of the run, for the column `run_id` of all tables [default: a hash of the capture's key, its size and the options]
    ///
    /// Results of the same capture with the same options have the same default. For live runs and standard input it is new each time.
    #[arg(long, value_name = "ID", value_parser = parse_name, help_heading = HEADING)]
    pub(crate) run_id: Option<String>,
}

impl Names {
    /// The names of a run over captures. `capture` is the value of --capture. A recorded live run is called `recorded`.
    pub(crate) fn key_of_captures(
        &self,
        paths: &[PathBuf],
        capture: Option<&str>,
        recorded: Option<&str>,
        options: &[(String, String)],
        started: Time,
    ) -> RunKey {
        let mut keys = match recorded {
            Some(recorded) => vec![recorded.to_owned()],
            None => input_keys(paths),
        };
        if let Some(capture) = capture {
            // It takes the place of all paths: they may differ by machine.
            keys.fill(capture.to_owned());
        }
        let capture = capture.map_or_else(|| capture_key(&keys), str::to_owned);
        let sizes = paths.iter().map(|path| roce_capture::size(path));
        let inputs: Vec<(String, Option<u64>)> = keys.into_iter().zip(sizes).collect();
        let is_stream = inputs.iter().any(|(_, bytes)| bytes.is_none());
        self.key(&capture, &inputs, options, is_stream.then_some(started))
    }

    /// The names of a live run on the devices called `devices`.
    #[cfg(feature = "live")]
    pub(crate) fn key_of_devices(
        &self,
        devices: &str,
        options: &[(String, String)],
        started: Time,
    ) -> RunKey {
        self.key(devices, &[(devices.to_owned(), None)], options, Some(started))
    }

    /// The names of a run as options for its recording, as far as its command line does not have them: results of the recording
    /// have the names of the run.
    #[cfg(feature = "live")]
    pub(crate) fn recorded(&self, key: &RunKey) -> Vec<String> {
        let host = self.host.is_none().then(|| format!("--host-name={}", key.host));
        let run_id = self.run_id.is_none().then(|| format!("--run-id={}", key.run_id));
        host.into_iter().chain(run_id).collect()
    }

    /// These names, and for those that were not given the ones of `other`.
    #[cfg(feature = "live")]
    pub(crate) fn or(self, other: Self) -> Self {
        Self {
            host: self.host.or(other.host),
            run_id: self.run_id.or(other.run_id),
        }
    }

    /// The name of this host.
    #[cfg(feature = "live")]
    pub(crate) fn node(&self) -> String {
        self.host.clone().unwrap_or_else(this_machine)
    }

    fn key(
        &self,
        capture: &str,
        inputs: &[(String, Option<u64>)],
        options: &[(String, String)],
        started: Option<Time>,
    ) -> RunKey {
        let names = RunNames {
            capture,
            inputs,
            options,
            host: self.host.as_deref(),
            started,
        };
        RunKey {
            run_id: self.run_id.clone().unwrap_or_else(|| names.run_id()),
            host: self.host.clone().unwrap_or_else(this_machine),
            capture: capture.to_owned(),
        }
    }
}

/// The name of this machine.
pub(crate) fn this_machine() -> String {
    plain_name(&std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default())
}

/// A machine's name as `--host-name` takes it. A kernel whose name was never set calls itself "(none)".
pub(crate) fn plain_name(name: &str) -> String {
    let name = name.trim();
    let name = name.trim_start_matches(|char: char| !char.is_ascii_alphanumeric());
    let allowed = |char: char| char.is_ascii_alphanumeric() || "._:-".contains(char);
    let name: String = name
        .chars()
        .take(MAX_NAME)
        .map(|char| if allowed(char) { char } else { '-' })
        .collect();
    match name.as_str() {
        "" | "none-" => "unknown".to_owned(),
        _ => name,
    }
}

/// Maximum length of a name in bytes.
const MAX_NAME: usize = 128;

/// A name that is also a part of paths: letters, digits, `.`, `_`, `:` and `-`, the first a letter or a digit.
pub(crate) fn parse_name(text: &str) -> Result<String, String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._:-".contains(&byte);
    let begins = text
        .bytes()
        .next()
        .is_some_and(|byte| byte.is_ascii_alphanumeric());
    if !begins || text.len() > MAX_NAME || !text.bytes().all(is_plain) {
        return Err(format!(
            "a name has at most {MAX_NAME} letters, digits, '.', '_', ':' and '-', and begins with a letter or a digit"
        ));
    }
    Ok(text.to_owned())
}

/// Maximum length of a capture's key in bytes.
const MAX_KEY: usize = 1024;

/// The key of a capture: a relative path or any other text.
pub(crate) fn parse_key(text: &str) -> Result<String, String> {
    if text.is_empty() || text.len() > MAX_KEY || text.starts_with('/') || text.chars().any(char::is_control)
    {
        return Err(format!(
            "a key has 1 to {MAX_KEY} bytes, no control characters, and is no absolute path"
        ));
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_machine_has_a_name_that_the_option_takes() {
        assert_eq!(plain_name("h7.lan\n"), "h7.lan");
        for unnamed in ["", "(none)\n", "\u{1b}[2J"] {
            assert_eq!(
                parse_name(&plain_name(unnamed)),
                Ok(plain_name(unnamed)),
                "{unnamed:?}"
            );
        }
        assert_eq!(plain_name("(none)"), "unknown");
        assert_eq!(plain_name("a b/c"), "a-b-c");
    }

    #[test]
    fn names_are_parts_of_paths() {
        for name in [
            "h7",
            "10.0.0.1",
            "fe80::1",
            "rack7-host_2.lan",
            "0cc16b3648ffa64b",
        ] {
            assert_eq!(parse_name(name), Ok(name.to_owned()));
        }
        for name in ["", "a/b", "..", "-x", "a b", "h\u{e4}", &"x".repeat(129)] {
            assert!(parse_name(name).is_err(), "{name}");
        }
        assert_eq!(parse_key("2026/rack 7.pcap"), Ok("2026/rack 7.pcap".to_owned()));
        for key in ["", "/data/a.pcap", "a\nb", &"x".repeat(1025)] {
            assert!(parse_key(key).is_err(), "{key}");
        }
    }
}
