//! The password of a switch: where it comes from, and that it goes nowhere but to the switch.

use std::fmt;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use roce_switches::inventory::SwitchTarget;

use crate::reader::error::ReaderError;

/// Bytes of a file with a password.
const MAX_FILE_BYTES: u64 = 4 << 10;
/// Bits of a file's mode that let others than its owner read or change it.
const OTHERS: u32 = 0o077;

/// A text that no message, no file and no `Debug` shows.
#[derive(Clone)]
pub(super) struct Password(String);

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(left out)")
    }
}

impl Password {
    /// The password of a switch: the first line of its file, or the value of a variable.
    pub(super) fn from_target(target: &SwitchTarget) -> Result<Self, ReaderError> {
        let wrong = |text: String| Err(ReaderError::Nxapi(text));
        let text = match (&target.password_file, &target.password_env) {
            (Some(path), None) => file(Path::new(path)).map_err(ReaderError::Nxapi)?,
            (None, Some(name)) => match std::env::var(name) {
                Ok(text) => text,
                Err(std::env::VarError::NotPresent) => {
                    return wrong(format!("password_env: the variable {name} is not set"));
                }
                Err(_) => return wrong(format!("password_env: the variable {name} is not UTF-8")),
            },
            _ => return wrong("it needs password_file or password_env".to_owned()),
        };
        let line = text.lines().next().unwrap_or_default();
        if line.is_empty() {
            return wrong("the password is empty".to_owned());
        }
        Ok(Self(line.to_owned()))
    }

    /// The text itself, for the request.
    pub(super) fn shown_to_device(&self) -> &str {
        &self.0
    }

    /// A text without it.
    pub(super) fn removed_from(&self, text: &str) -> String {
        text.replace(&self.0, "(left out)")
    }
}

/// Basic authentication (RFC 7617).
pub(super) fn basic(user: &str, password: &Password) -> Password {
    Password(format!(
        "Basic {}",
        STANDARD.encode(format!("{user}:{}", password.0))
    ))
}

/// The text of a file that its owner alone may read.
fn file(path: &Path) -> Result<String, String> {
    let shown = path.display();
    let opened = roce_files::open_regular(path).map_err(|error| {
        use std::error::Error as _;
        let source = error
            .source()
            .map_or_else(String::new, |source| format!(": {source}"));
        format!("password_file: {error}{source}")
    })?;
    // The open file is judged: its name may lead to another one by now.
    let about = opened
        .metadata()
        .map_err(|error| format!("password_file: {shown}: {error}"))?;
    let mode = about.mode() & 0o7777;
    if mode & OTHERS != 0 {
        return Err(format!(
            "password_file: {shown}: its mode is {mode:04o}: others may read or change it\nhint: chmod 600 {shown}"
        ));
    }
    let mut text = String::new();
    opened
        .take(MAX_FILE_BYTES)
        .read_to_string(&mut text)
        .map_err(|error| format!("password_file: {shown}: {error}"))?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_file_that_others_may_read_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("leaf1");
        std::fs::write(&path, "canary\nsecond line\n").unwrap();
        for (mode, is_taken) in [
            (0o600, true),
            (0o400, true),
            (0o640, false),
            (0o604, false),
            (0o620, false),
            (0o777, false),
        ] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            let text = file(&path);
            assert_eq!(text.is_ok(), is_taken, "{mode:o}");
            if let Err(error) = text {
                assert!(
                    !error.contains("canary") && error.contains("chmod 600"),
                    "{error}"
                );
            }
        }
        assert!(file(folder.path()).unwrap_err().contains("a folder"));
        let missing = file(&folder.path().join("missing")).unwrap_err();
        assert!(missing.contains("No such file"), "{missing}");
    }

    #[test]
    fn a_password_shows_nowhere() {
        let password = Password("canary".to_owned());
        assert_eq!(format!("{password:?}"), "(left out)");
        assert_eq!(password.removed_from("a canary b"), "a (left out) b");
        // RFC 7617, section 2: the user "Aladdin" with the password "open sesame".
        let header = basic("Aladdin", &Password("open sesame".to_owned()));
        assert_eq!(header.shown_to_device(), "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
    }
}
