//! The program as releases have it: two builds of one commit, in whatever folders, give the same bytes.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::{Result, bail};

use super::facts::{cargo_home, choose, epoch};
use crate::workspace::{Profile, Workspace, execute};

/// Builds it. Names of folders are replaced in what rustc and the C compiler write; the linker's id is a digest of the contents.
pub(super) fn build(workspace: &Workspace, features: Option<&str>) -> Result<PathBuf> {
    let mut cargo = workspace.cargo(["build", "--release", "--locked", "-p", "roce-analyze"]);
    choose(&mut cargo, features);
    // The last one that fits is taken: the target folder may be below the sources.
    let folders = [
        (cargo_home()?, "/cargo"),
        (workspace.root.clone(), "/roce-analyze"),
        (workspace.target.clone(), "/target"),
    ];
    let mut rust: Vec<OsString> = Vec::new();
    let mut c = std::env::var_os("CFLAGS").unwrap_or_default();
    for (folder, name) in folders {
        if folder.to_string_lossy().contains(char::is_whitespace) {
            bail!(
                "{}: has a space, and flags of C compilers are separated by spaces\nhint: build the package in a folder without one",
                folder.display()
            );
        }
        let map = |option: &str| {
            let mut map = OsString::from(option);
            map.push(&folder);
            map.push("=");
            map.push(name);
            map
        };
        rust.push(map("--remap-path-prefix="));
        c.push(" ");
        c.push(map("-ffile-prefix-map="));
    }
    rust.push("-Clink-arg=-Wl,--build-id=sha1".into());
    // The separator of this variable is the unit separator: folders may have spaces.
    cargo.env("CARGO_ENCODED_RUSTFLAGS", rust.join(&OsString::from("\u{1f}")));
    cargo.env("CFLAGS", c);
    cargo.env("SOURCE_DATE_EPOCH", epoch(workspace)?.to_string());
    execute(&mut cargo)?;
    Ok(workspace.program(Profile::Release, "roce-analyze"))
}
