//! Folders of the workspace and its build results, and the commands that run there.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};

/// The workspace that this program was built from.
pub(crate) struct Workspace {
    /// Its folder.
    pub(crate) root: PathBuf,
    /// Folder of cargo's results.
    pub(crate) target: PathBuf,
}

/// A profile of cargo.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Profile {
    Dev,
    Release,
    /// The one of `cargo xtask demo`.
    Demo,
}

impl Profile {
    fn folder(self) -> &'static str {
        match self {
            Self::Dev => "debug",
            Self::Release => "release",
            Self::Demo => "demo",
        }
    }
}

impl Workspace {
    /// Asks cargo for its folders, so that its configuration and `CARGO_TARGET_DIR` count.
    pub(crate) fn find() -> Result<Self> {
        // Cargo's current value: a program that was built for another checkout in the same target folder
        // knows that one's path.
        let here = env::var_os("CARGO_MANIFEST_DIR").context("cargo runs it: `cargo xtask`")?;
        let root = Path::new(&here)
            .parent()
            .context("xtask is in no workspace")?
            .to_owned();
        let mut cargo = Command::new(cargo_program());
        cargo
            .current_dir(&root)
            .args(["metadata", "--no-deps", "--format-version", "1", "--offline"]);
        let metadata = output(&mut cargo)?;
        let target = json_text(&metadata, "target_directory")
            .context("cargo metadata does not say where the target folder is")?;
        Ok(Self {
            root,
            target: PathBuf::from(target),
        })
    }

    /// A command of cargo, in the workspace.
    pub(crate) fn cargo<I: IntoIterator<Item = S>, S: AsRef<OsStr>>(&self, arguments: I) -> Command {
        let mut cargo = self.command(cargo_program());
        cargo.args(arguments);
        cargo
    }

    /// A command, in the workspace.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.root);
        command
    }

    /// A built program.
    pub(crate) fn program(&self, profile: Profile, name: &str) -> PathBuf {
        self.target
            .join(profile.folder())
            .join(format!("{name}{}", env::consts::EXE_SUFFIX))
    }

    /// A built example.
    pub(crate) fn example(&self, profile: Profile, name: &str) -> PathBuf {
        let name = format!("{name}{}", env::consts::EXE_SUFFIX);
        self.target.join(profile.folder()).join("examples").join(name)
    }

    /// Folder of installed programs that the chores need.
    pub(crate) fn tools(&self) -> PathBuf {
        self.target.join("tools")
    }

    /// A program that `cargo install` provides: the one in the target folder, else the one of the
    /// system.
    pub(crate) fn tool(&self, name: &str) -> Option<PathBuf> {
        let own = self
            .tools()
            .join("bin")
            .join(format!("{name}{}", env::consts::EXE_SUFFIX));
        if own.is_file() { Some(own) } else { on_path(name) }
    }

    /// Installs a program into the target folder, unless there is one.
    pub(crate) fn install(&self, name: &str, version: &str) -> Result<PathBuf> {
        if let Some(tool) = self.tool(name) {
            return Ok(tool);
        }
        println!(
            "{name} is not there: installing it into {} (once)",
            self.shown(&self.tools())
        );
        let scratch = self.tools().join("build");
        let mut install = self.cargo(["install", "--locked", "--version", version, name, "--root"]);
        install.arg(self.tools()).arg("--target-dir").arg(&scratch);
        execute(&mut install)?;
        std::fs::remove_dir_all(&scratch).with_context(|| format!("cannot remove {}", scratch.display()))?;
        self.tool(name)
            .with_context(|| format!("cargo install brought no {name}"))
    }

    /// The captures in `captures/`, in order of name.
    pub(crate) fn captures(&self) -> Result<Vec<PathBuf>> {
        self.captures_of(Path::new("captures"))
    }

    /// Captures in classic pcap in a folder of the workspace, in the order of their names.
    pub(crate) fn captures_of(&self, folder: &Path) -> Result<Vec<PathBuf>> {
        let folder = self.root.join(folder);
        let mut captures = Vec::new();
        for entry in
            std::fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))?
        {
            let path = entry
                .with_context(|| format!("cannot list {}", folder.display()))?
                .path();
            if path.extension().is_some_and(|extension| extension == "pcap") {
                captures.push(path);
            }
        }
        captures.sort();
        Ok(captures)
    }

    /// A path as a person at the workspace's folder would write it.
    pub(crate) fn shown(&self, path: &Path) -> String {
        path.strip_prefix(&self.root)
            .unwrap_or(path)
            .display()
            .to_string()
    }
}

fn cargo_program() -> OsString {
    env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// The value of the only key `key` of a JSON document, when it is a text.
fn json_text(document: &str, key: &str) -> Option<String> {
    let (_, after) = document.split_once(&format!("\"{key}\":\""))?;
    let mut text = String::new();
    let mut characters = after.chars();
    loop {
        match characters.next()? {
            '"' => return Some(text),
            '\\' => text.push(characters.next()?),
            other => text.push(other),
        }
    }
}

/// Path of a program on the search path.
pub(crate) fn on_path(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path)
        .map(|folder| folder.join(format!("{name}{}", env::consts::EXE_SUFFIX)))
        .find(|candidate| candidate.is_file())
}

/// The command as a person would type it.
pub(crate) fn line(command: &Command) -> String {
    let program = Path::new(command.get_program())
        .file_name()
        .unwrap_or(command.get_program());
    std::iter::once(program)
        .chain(command.get_args())
        .map(OsStr::to_string_lossy)
        .collect::<Vec<_>>()
        .join(" ")
}

/// Runs a command to its end; what it prints is seen.
pub(crate) fn execute(command: &mut Command) -> Result<()> {
    let status = command
        .status()
        .with_context(|| format!("cannot run `{}`", line(command)))?;
    if !status.success() {
        bail!("`{}` failed: {status}", line(command));
    }
    Ok(())
}

/// Runs a command to its end; what it prints to standard output is returned.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot run `{}`", line(command)))?;
    if !output.status.success() {
        bail!("`{}` failed: {}", line(command), output.status);
    }
    String::from_utf8(output.stdout).with_context(|| format!("`{}` printed no text", line(command)))
}

/// True if a command runs and succeeds; its output is discarded.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    let quiet = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

/// Says what is done, does it, and says how long it took.
pub(crate) fn step<T>(what: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    println!("== {what}");
    let begun = Instant::now();
    let done = work()?;
    println!("   {what}: {:.1} s", begun.elapsed().as_secs_f64());
    Ok(done)
}

/// Ends a chore that takes no arguments when it got some.
pub(crate) fn no_arguments(chore: &str, arguments: &[String]) -> Result<()> {
    if let Some(argument) = arguments.first() {
        bail!("`cargo xtask {chore}` takes no arguments, and got '{argument}'");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_found_and_unescaped() {
        let document = r#"{"version":1,"target_directory":"C:\\a \"b\"/c","workspace_root":"x"}"#;
        assert_eq!(
            json_text(document, "target_directory").as_deref(),
            Some(r#"C:\a "b"/c"#)
        );
        assert_eq!(json_text(document, "other"), None);
    }
}
