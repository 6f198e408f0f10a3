//! `-V` is one line for scripts; `--version` says which build it is. Expected values are cargo's, git's and libpcap's own.

use std::ffi::OsStr;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use cargo_metadata::MetadataCommand;

use crate::captures::root;
use crate::command::run;

const OVERRIDE: &str = "ROCE_ANALYZE_COMMIT";

/// Features of the command, and true for those that these tests are built with.
const FEATURES: [(&str, bool); 6] = [
    ("jemalloc", cfg!(feature = "jemalloc")),
    ("live", cfg!(feature = "live")),
    ("nxapi", cfg!(feature = "nxapi")),
    ("object-store", cfg!(feature = "object-store")),
    ("parquet", cfg!(feature = "parquet")),
    ("sim", cfg!(feature = "sim")),
];

/// The value of a line of `--version`.
fn value<'a>(text: &'a str, name: &str) -> &'a str {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap_or_else(|| panic!("{name}: {text}")).trim()
}

/// The first line that a program prints, if it is there and succeeds.
fn line(program: impl AsRef<OsStr>, arguments: &[&str], folder: &Path) -> Option<String> {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output
        .status
        .success()
        .then(|| text.lines().next().unwrap_or_default().to_owned())
}

#[test]
fn the_short_version_is_one_line_and_the_long_one_begins_with_it() {
    let short = run(&root(), ["-V"]).good().stdout;
    assert_eq!(short, format!("roce-analyze {}\n", env!("CARGO_PKG_VERSION")));
    let long = run(&root(), ["--version"]).good().stdout;
    assert!(long.starts_with(&short), "{long}");
    let names: Vec<&str> = long
        .lines()
        .skip(1)
        .filter_map(|line| line.split(' ').next())
        .collect();
    assert_eq!(names, ["commit", "target", "features", "libpcap", "sniffer"]);
    // Behind another argument, too.
    assert_eq!(run(&root(), ["a.pcap", "--version"]).good().stdout, long);
    // No folder of the build.
    assert!(!long.contains(root().to_str().unwrap()), "{long}");
}

#[test]
fn features_are_those_of_the_manifest() {
    let metadata = MetadataCommand::new()
        .manifest_path(root().join("Cargo.toml"))
        .no_deps()
        .exec()
        .unwrap();
    let package = metadata
        .packages
        .iter()
        .find(|package| package.name.as_str() == "roce-analyze")
        .unwrap();
    let named: Vec<&str> = package
        .features
        .keys()
        .map(String::as_str)
        .filter(|name| *name != "default")
        .collect();
    assert_eq!(
        named,
        FEATURES.map(|(name, _)| name),
        "a new feature belongs into `version.rs`"
    );
    let long = run(&root(), ["--version"]).good().stdout;
    let expected: Vec<&str> = FEATURES
        .iter()
        .filter(|(_, is_in)| *is_in)
        .map(|(name, _)| *name)
        .collect();
    assert_eq!(value(&long, "features"), expected.join(", "));
}

#[test]
fn the_commit_is_the_one_that_git_names() {
    let long = run(&root(), ["--version"]).good().stdout;
    let expected = std::env::var(OVERRIDE).ok().or_else(|| {
        let is_checkout = root().join(".git").exists();
        is_checkout
            .then(|| line("git", &["rev-parse", "HEAD"], &root()))
            .flatten()
    });
    assert_eq!(value(&long, "commit"), expected.as_deref().unwrap_or("unknown"));
}

/// Says what cannot be tested here. The harness keeps what is printed by macros to itself.
fn skip(why: &str) {
    let line = format!("SKIPPED: {why}\n");
    std::io::stdout().write_all(line.as_bytes()).unwrap();
}

#[cfg(feature = "live")]
#[test]
fn libpcap_is_the_one_that_its_own_tool_names() {
    let long = run(&root(), ["--version"]).good().stdout;
    let libpcap = value(&long, "libpcap");
    match line("pcap-config", &["--version"], &root()) {
        Some(version) => assert!(libpcap.starts_with(&format!("{version} (/")), "{libpcap}"),
        None => skip("version of libpcap: pcap-config does not say it"),
    }
    let devices = run(&root(), ["devices", "--format", "json"]).good().json();
    let expected = if devices["rdma_sniffer"].as_bool().unwrap() {
        "yes: "
    } else {
        "no: "
    };
    assert!(value(&long, "sniffer").starts_with(expected), "{long}");
}

/// The build script alone, compiled, and run in a copy of the folders that it knows.
struct Script {
    folder: tempfile::TempDir,
}

impl Script {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let source = root().join("analyzer/cli/build.rs");
        let built = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
            .args(["--edition", "2024", "-o"])
            .arg(folder.path().join("script"))
            .arg(source)
            .output()
            .unwrap();
        assert!(built.status.success(), "{built:?}");
        Self { folder }
    }

    /// A folder of sources, as an archive has them.
    fn sources(&self, name: &str) -> PathBuf {
        let sources = self.folder.path().join(name);
        fs::create_dir_all(sources.join("analyzer/cli")).unwrap();
        sources
    }

    /// Lines that cargo would read, or those of a failure.
    fn run(&self, sources: &Path, named: Option<&str>) -> Result<Vec<String>, String> {
        let mut script = Command::new(self.folder.path().join("script"));
        script
            .env("CARGO_MANIFEST_DIR", sources.join("analyzer/cli"))
            .env_remove(OVERRIDE);
        let output = script
            .envs(named.map(|named| (OVERRIDE, named)))
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        if !output.status.success() {
            return Err(text);
        }
        Ok(text.lines().map(str::to_owned).collect())
    }
}

fn commit_of(lines: &[String]) -> Option<&str> {
    lines
        .iter()
        .find_map(|line| line.strip_prefix("cargo::rustc-env=ROCE_ANALYZE_BUILD_COMMIT="))
}

fn watched(lines: &[String]) -> Vec<&str> {
    lines
        .iter()
        .filter_map(|line| line.strip_prefix("cargo::rerun-if-changed="))
        .collect()
}

#[test]
fn the_build_script_finds_the_commit_of_this_repository_alone() {
    if line("git", &["--version"], &root()).is_none() {
        skip("commits of builds: there is no git");
        return;
    }
    let script = Script::new();
    let git = |folder: &Path, arguments: &[&str]| {
        let mut all = vec![
            "-c",
            "user.name=a",
            "-c",
            "user.email=a@b.example",
            "-c",
            "init.defaultBranch=main",
        ];
        all.extend(arguments);
        line("git", &all, folder).unwrap_or_else(|| panic!("git {arguments:?}"))
    };

    // An archive.
    let archive = script.sources("archive");
    let lines = script.run(&archive, None).unwrap();
    assert_eq!(commit_of(&lines), None);
    assert_eq!(watched(&lines), ["build.rs"]);

    // An archive inside of somebody's repository: that one's commit is none of ours.
    let other = script.folder.path().join("other");
    fs::create_dir(&other).unwrap();
    git(&other, &["init", "-q"]);
    git(&other, &["commit", "-q", "--allow-empty", "-m", "other"]);
    let inside = script.sources("other/archive");
    assert_eq!(commit_of(&script.run(&inside, None).unwrap()), None);

    // A clone: each commit changes a file that is watched.
    let clone = script.sources("clone");
    git(&clone, &["init", "-q"]);
    assert_eq!(
        commit_of(&script.run(&clone, None).unwrap()),
        None,
        "no commit yet"
    );
    git(&clone, &["commit", "-q", "--allow-empty", "-m", "first"]);
    let first = script.run(&clone, None).unwrap();
    assert_eq!(commit_of(&first), Some(&*git(&clone, &["rev-parse", "HEAD"])));
    let contents = |lines: &[String]| -> Vec<String> {
        let files = watched(lines).into_iter().skip(1);
        files.map(|path| fs::read_to_string(path).unwrap()).collect()
    };
    let before = contents(&first);
    assert!(before.len() >= 2, "{first:?}");
    git(&clone, &["commit", "-q", "--allow-empty", "-m", "second"]);
    assert_ne!(contents(&first), before);
    let second = git(&clone, &["rev-parse", "HEAD"]);
    assert_eq!(commit_of(&script.run(&clone, None).unwrap()), Some(&*second));

    // A worktree, where .git is a file.
    git(&clone, &["worktree", "add", "-q", "../tree"]);
    let tree = script.sources("tree");
    let lines = script.run(&tree, None).unwrap();
    assert_eq!(commit_of(&lines), Some(&*second));
    assert!(watched(&lines).len() >= 3, "{lines:?}");

    // The variable overrides git, can be empty, and has to be a commit.
    let named = "0123456789abcdef";
    assert_eq!(commit_of(&script.run(&clone, Some(named)).unwrap()), Some(named));
    assert_eq!(commit_of(&script.run(&clone, Some("")).unwrap()), None);
    for wrong in ["main", "012345", "0123456\ncargo::warning=x", "v0.2.0"] {
        let error = script.run(&clone, Some(wrong)).unwrap_err();
        assert!(
            error.contains("cargo::error=ROCE_ANALYZE_COMMIT is not a commit"),
            "{error}"
        );
    }
}
