//! Names the commit and the target of a build, for `roce-analyze --version`.
//!
//! The commit is git's in a checkout of this repository, or the variable `ROCE_ANALYZE_COMMIT`. A source archive without both has none.
//! Nothing here depends on the folder or the time of the build.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Overrides git: packages are built from archives, and containers without the history.
const OVERRIDE: &str = "ROCE_ANALYZE_COMMIT";
/// The workspace, below which `.git` is expected.
const ROOT: &str = "../..";

fn main() -> ExitCode {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed={OVERRIDE}");
    if let Ok(target) = env::var("TARGET") {
        println!("cargo::rustc-env=ROCE_ANALYZE_BUILD_TARGET={target}");
    }
    let commit = match env::var(OVERRIDE) {
        Ok(named) if named.is_empty() => None,
        Ok(named) if is_commit(&named) => Some(named),
        Ok(_) => {
            println!("cargo::error={OVERRIDE} is not a commit: 7 to 64 hexadecimal digits are expected");
            return ExitCode::FAILURE;
        }
        Err(_) => from_git(),
    };
    if let Some(commit) = commit {
        println!("cargo::rustc-env=ROCE_ANALYZE_BUILD_COMMIT={commit}");
    }
    ExitCode::SUCCESS
}

/// An object name of git, whole or shortened.
fn is_commit(text: &str) -> bool {
    (7..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The commit that is checked out. An archive that was unpacked inside of another repository has none.
fn from_git() -> Option<String> {
    let manifest = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR")?);
    let root = manifest.join(ROOT);
    // A folder in a clone, a file in a worktree.
    if !root.join(".git").exists() {
        return None;
    }
    let commit = git(&root, &["rev-parse", "--verify", "HEAD"]).filter(|text| is_commit(text))?;
    // Cargo runs this script again when one of these changes. The log of HEAD grows with each commit, checkout and reset.
    let mut watched = vec![
        "HEAD".to_owned(),
        "logs/HEAD".to_owned(),
        "packed-refs".to_owned(),
    ];
    watched.extend(git(&root, &["symbolic-ref", "--quiet", "HEAD"]));
    for name in watched {
        let Some(path) = git(&root, &["rev-parse", "--git-path", &name]) else {
            continue;
        };
        // Joining keeps a path that is absolute already, as those of worktrees are.
        let path = root.join(path);
        // A file that does not exist would have the script run each time.
        if path.is_file() {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
    Some(commit)
}

/// The line that a command of git prints, if there is git and it has an answer.
fn git(root: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git")
        .current_dir(root)
        // Set by hooks, for another repository.
        .env_remove("GIT_DIR")
        .env_remove("GIT_WORK_TREE")
        .args(arguments)
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    let line = String::from_utf8(output.stdout).ok()?;
    Some(line.trim_end().to_owned()).filter(|line| !line.is_empty())
}
