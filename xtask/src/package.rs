//! `cargo xtask package`: a Debian package, an archive, a wheel, and the check of the package in a fresh Debian.
//!
//! debhelper makes the package from the metadata in `packages/debian`. cargo-deb was looked at and not taken: it is well kept, but it is two
//! minutes of compilation in each fresh run, and has no fragments for sysusers; debhelper is Debian's own tool and has them all.

mod chroot;
mod deb;
mod facts;
mod licences;
mod reproducible;
mod stage;
mod wheel;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::need::{self, DEBHELPER, LINTIAN, MMDEBSTRAP};
use crate::workspace::{Profile, Workspace, execute};
use facts::{Size, choose};

pub(crate) const ABOUT: &str = "a Debian package, an archive, a wheel; check: the package in a fresh Debian";
pub(crate) const ARGUMENTS: &str =
    "deb|tar|wheel|check [--profile dev|release] [--program FILE] [--features LIST]";

/// The form of a package.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    Deb,
    Tar,
    Wheel,
    /// A Debian package, which is then linted, installed, used and purged.
    Check,
}

/// A command line.
#[derive(Debug, PartialEq, Eq)]
struct Options {
    form: Form,
    is_release: bool,
    /// A program that is built already.
    program: Option<PathBuf>,
    /// Features of the build instead of the default ones.
    features: Option<String>,
}

impl Options {
    fn parse(arguments: &[String]) -> Result<Self> {
        let usage = || format!("the arguments are not understood\nhint: cargo xtask package {ARGUMENTS}");
        let (form, rest) = arguments.split_first().with_context(usage)?;
        let form = match form.as_str() {
            "deb" => Form::Deb,
            "tar" => Form::Tar,
            "wheel" => Form::Wheel,
            "check" => Form::Check,
            _ => bail!(usage()),
        };
        let mut options = Self {
            form,
            // A check is of the package, not of the compiler.
            is_release: form != Form::Check,
            program: None,
            features: None,
        };
        for pair in rest.chunks(2) {
            match pair {
                [name, value] if name == "--profile" => {
                    options.is_release = match value.as_str() {
                        "dev" => false,
                        "release" => true,
                        _ => bail!(usage()),
                    }
                }
                [name, value] if name == "--program" => options.program = Some(PathBuf::from(value)),
                [name, value] if name == "--features" => options.features = Some(value.clone()),
                _ => bail!(usage()),
            }
        }
        Ok(options)
    }
}

pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    let options = Options::parse(arguments)?;
    let features = options.features.as_deref();
    match options.form {
        Form::Deb => need::ensure(&[DEBHELPER])?,
        Form::Tar | Form::Wheel => {}
        Form::Check => possible()?,
    }
    let program = match &options.program {
        Some(program) => program.clone(),
        None if options.is_release => reproducible::build(workspace, features)?,
        None => built(workspace, features)?,
    };
    let size = if options.is_release {
        Size::Small
    } else {
        Size::Quick
    };
    let made = match options.form {
        Form::Deb => deb::make(workspace, &program, features, size)?,
        Form::Tar => stage::archive(workspace, &program, features)?,
        Form::Wheel => wheel::make(workspace, &program, features)?,
        Form::Check => return check(workspace, &program),
    };
    println!("{}", workspace.shown(&made));
    Ok(())
}

/// Checks that this machine can do all of [`check`].
pub(crate) fn possible() -> Result<()> {
    if chroot::codename().is_none() {
        bail!("this is no Debian");
    }
    if !need::is_root() {
        bail!("not root: a fresh Debian cannot be entered");
    }
    need::ensure(&[DEBHELPER, LINTIAN, MMDEBSTRAP])?;
    chroot::possible()
}

/// Packs a program that is built already, and holds the package to Debian's rules and to its use in a fresh Debian.
pub(crate) fn check(workspace: &Workspace, program: &Path) -> Result<()> {
    let package = deb::make(workspace, program, None, Size::Quick)?;
    deb::lint(workspace, &package)?;
    chroot::check(workspace, &package)
}

/// Packs a program that is built already into a wheel, installs that, uses it and removes it.
pub(crate) fn check_wheel(workspace: &Workspace, program: &Path) -> Result<()> {
    wheel::check(workspace, program)
}

/// Has the linter read the Dockerfile. `tests/command/packages.rs` holds it to the project's files.
pub(crate) fn lint_image(workspace: &Workspace, hadolint: &Path) -> Result<()> {
    // DL3008 wants versions of apt's packages: Debian 12 gives its one, with the security team's fixes.
    execute(
        workspace
            .command(hadolint)
            .args(["--ignore", "DL3008", "Dockerfile"]),
    )
}

/// The program with the profile `dev`, built unless it is there already.
pub(crate) fn built(workspace: &Workspace, features: Option<&str>) -> Result<PathBuf> {
    let mut build = workspace.cargo(["build", "--quiet", "--locked", "-p", "roce-analyze"]);
    choose(&mut build, features);
    execute(&mut build)?;
    Ok(workspace.program(Profile::Dev, "roce-analyze"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_understood() {
        let parse = |line: &str| {
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            Options::parse(&words)
        };
        let deb = parse("deb").unwrap();
        assert!(deb.is_release && deb.form == Form::Deb && deb.program.is_none());
        assert!(!parse("check").unwrap().is_release);
        let dev = parse("tar --profile dev --program a/b --features live,sim").unwrap();
        assert!(!dev.is_release);
        assert_eq!(dev.program.as_deref(), Some(Path::new("a/b")));
        assert_eq!(dev.features.as_deref(), Some("live,sim"));
        for wrong in [
            "",
            "rpm",
            "deb --profile",
            "deb --profile fast",
            "deb --moon x",
            "deb x",
        ] {
            let error = parse(wrong).unwrap_err().to_string();
            assert!(
                error.contains("hint: cargo xtask package deb|tar|wheel|check"),
                "{wrong}: {error}"
            );
        }
    }
}
