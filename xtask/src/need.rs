//! Programs that must be there: looked for, and installed through apt with the user's consent.

use std::io::{IsTerminal, Write, stdin, stdout};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Result, bail};

use crate::workspace::{execute, on_path, succeeds};

/// A needed program or library, and the Debian packages that provide it.
pub(crate) struct Need {
    /// Name for people.
    pub(crate) what: &'static str,
    /// True if it is there.
    pub(crate) there: fn() -> bool,
    /// Packages of Debian and Ubuntu.
    pub(crate) packages: &'static [&'static str],
}

/// Links programs, and compiles the C of zstd and jemalloc.
pub(crate) const C_COMPILER: Need = Need {
    what: "a C compiler and make",
    there: || ["cc", "gcc", "clang"].iter().any(|name| on_path(name).is_some()) && on_path("make").is_some(),
    packages: &["gcc", "libc6-dev", "make"],
};

/// Live captures are linked with it.
pub(crate) const LIBPCAP: Need = Need {
    what: "libpcap, to link with",
    there: || {
        succeeds(Command::new("pcap-config").arg("--version"))
            || succeeds(Command::new("pkg-config").args(["--exists", "libpcap"]))
    },
    packages: &["libpcap-dev"],
};

/// Makes the environment for the independent reader of datasets.
pub(crate) const PYTHON: Need = Need {
    what: "python3 with venv",
    there: || succeeds(Command::new("python3").args(["-c", "import ensurepip, venv"])),
    packages: &["python3", "python3-venv"],
};

/// Runs Spark, which needs Java 17 or later.
pub(crate) const JAVA: Need = Need {
    what: "java 17 or later",
    there: || {
        // `openjdk 17.0.15 2025-04-15`
        let version = Command::new("java").arg("--version").output();
        let version = version.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        let number = version.ok().and_then(|text| {
            let words = text.split_whitespace().nth(1)?;
            words.split('.').next()?.parse::<u32>().ok()
        });
        number.is_some_and(|number| number >= 17)
    },
    packages: &["openjdk-17-jre-headless"],
};

/// Fails calls of the program.
pub(crate) const STRACE: Need = Need {
    what: "strace",
    there: || on_path("strace").is_some(),
    packages: &["strace"],
};

/// The live screen is tried in it.
pub(crate) const TMUX: Need = Need {
    what: "tmux",
    there: || on_path("tmux").is_some(),
    packages: &["tmux"],
};

/// Reads captures, for the golden files.
pub(crate) const TSHARK: Need = Need {
    what: "tshark",
    there: || on_path("tshark").is_some(),
    packages: &["tshark", "python3"],
};

/// Opens reports.
pub(crate) const CHROMIUM: Need = Need {
    what: "chromium",
    there: || on_path("chromium").is_some(),
    packages: &["chromium"],
};

/// Tells it what to do.
pub(crate) const NODE: Need = Need {
    what: "node 18 or later, with npm",
    there: || {
        let recent = "process.exit(parseInt(process.versions.node) >= 18 ? 0 : 1)";
        succeeds(Command::new("node").args(["-e", recent])) && on_path("npm").is_some()
    },
    packages: &["nodejs", "npm"],
};

/// Checks rules and configurations, and scrapes.
pub(crate) const PROMETHEUS: Need = Need {
    what: "prometheus, with promtool",
    there: || on_path("prometheus").is_some() && on_path("promtool").is_some(),
    packages: &["prometheus"],
};

/// Says how much time and memory a program took.
pub(crate) const TIME: Need = Need {
    what: "/usr/bin/time",
    there: || std::path::Path::new("/usr/bin/time").is_file(),
    packages: &["time"],
};

/// Runs VMs.
pub(crate) const QEMU: Need = Need {
    what: "qemu-system-x86_64",
    there: || on_path("qemu-system-x86_64").is_some(),
    packages: &["qemu-system-x86"],
};

/// libFuzzer is C++.
pub(crate) const CXX_COMPILER: Need = Need {
    what: "a C++ compiler",
    there: || {
        ["c++", "g++", "clang++"]
            .iter()
            .any(|name| on_path(name).is_some())
    },
    packages: &["g++"],
};

/// Makes Debian packages.
pub(crate) const DEBHELPER: Need = Need {
    what: "debhelper",
    there: || on_path("dh_installsysusers").is_some() && on_path("dpkg-shlibdeps").is_some(),
    packages: &["debhelper", "dpkg-dev"],
};

/// Checks Debian packages.
pub(crate) const LINTIAN: Need = Need {
    what: "lintian",
    there: || on_path("lintian").is_some(),
    packages: &["lintian"],
};

/// Makes a fresh Debian in a folder.
pub(crate) const MMDEBSTRAP: Need = Need {
    what: "mmdebstrap",
    there: || on_path("mmdebstrap").is_some(),
    packages: &["mmdebstrap"],
};

/// Sees to it that everything is there.
pub(crate) fn ensure(needs: &[Need]) -> Result<()> {
    let missing: Vec<&Need> = needs.iter().filter(|need| !(need.there)()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let what = missing
        .iter()
        .map(|need| need.what)
        .collect::<Vec<_>>()
        .join(", ");
    let packages: Vec<&str> = missing.iter().flat_map(|need| need.packages).copied().collect();
    if on_path("apt-get").is_none() {
        bail!("missing: {what}\nhint: install them with your system's package manager, then run this again");
    }
    let line = format!(
        "apt-get install -y --no-install-recommends {}",
        packages.join(" ")
    );
    println!("missing: {what}");
    let consent = Consent::new(
        CONSENTED.load(Ordering::Relaxed) || std::env::var_os("CI").is_some_and(|value| !value.is_empty()),
        stdin().is_terminal() && stdout().is_terminal(),
    );
    let sudo = !is_root();
    let line = if sudo { format!("sudo {line}") } else { line };
    match consent {
        Consent::Given => println!("running: {line}"),
        Consent::Ask if confirmed(&line)? => {}
        Consent::Ask | Consent::Refused => {
            bail!("{what}: not installed\nhint: run `{line}`, or this again with --yes")
        }
    }
    let apt = |arguments: &[&str]| {
        let mut command = Command::new(if sudo { "sudo" } else { "apt-get" });
        if sudo {
            command.args(["env", "DEBIAN_FRONTEND=noninteractive", "apt-get"]);
        } else {
            command.env("DEBIAN_FRONTEND", "noninteractive");
        }
        command.args(arguments);
        command
    };
    let mut install = vec!["install", "-y", "-qq", "--no-install-recommends"];
    install.extend(packages);
    // The lists of packages may be missing or old: they are fetched only when it does not work without.
    if !succeeds(&mut apt(&install)) {
        execute(&mut apt(&["update", "-qq"]))?;
        execute(&mut apt(&install))?;
    }
    if let Some(need) = missing.iter().find(|need| !(need.there)()) {
        bail!("{} is still missing after `{line}`", need.what);
    }
    Ok(())
}

/// True once the command line has `--yes`.
static CONSENTED: AtomicBool = AtomicBool::new(false);

/// Packages are installed without a question from now on.
pub(crate) fn consent() {
    CONSENTED.store(true, Ordering::Relaxed);
}

/// Consent to install packages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Consent {
    Given,
    Ask,
    Refused,
}

impl Consent {
    /// `is_given`: by `--yes`, or because continuous integration runs (the variable `CI` is set).
    fn new(is_given: bool, is_terminal: bool) -> Self {
        match (is_given, is_terminal) {
            (true, _) => Self::Given,
            (false, true) => Self::Ask,
            (false, false) => Self::Refused,
        }
    }
}

/// Asks the user to allow a command. Everything but `y` and `yes` is a no.
fn confirmed(line: &str) -> Result<bool> {
    print!("run `{line}`? [y/N] ");
    stdout().flush()?;
    let mut answer = String::new();
    stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// True if this process is root.
pub(crate) fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_installed_without_consent() {
        assert_eq!(Consent::new(false, false), Consent::Refused);
        assert_eq!(Consent::new(false, true), Consent::Ask);
        assert_eq!(Consent::new(true, false), Consent::Given);
        assert_eq!(Consent::new(true, true), Consent::Given);
    }
}
