//! Packages that are not built by each test run: the image's steps, the release's workflow, units and examples are held to the project's files.
//! The Debian package is built and used by `cargo xtask package check`.

use std::collections::BTreeSet;
use std::fs;

use crate::captures::root;
use crate::command::run;

fn text(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// A step of a Dockerfile: its keyword, and the rest with lines joined.
struct Instruction {
    keyword: String,
    rest: String,
}

/// The steps of a Dockerfile. Comments may be between continued lines.
fn dockerfile(text: &str) -> Vec<Instruction> {
    let mut instructions = Vec::new();
    let mut begun = String::new();
    for line in text.lines().filter(|line| !line.trim_start().starts_with('#')) {
        if let Some(more) = line.strip_suffix('\\') {
            begun.push_str(more);
            begun.push(' ');
            continue;
        }
        begun.push_str(line);
        let whole = std::mem::take(&mut begun);
        if let Some((keyword, rest)) = whole.trim().split_once(' ') {
            let rest = rest.split_whitespace().collect::<Vec<_>>().join(" ");
            instructions.push(Instruction {
                keyword: keyword.to_owned(),
                rest,
            });
        }
    }
    assert_eq!(begun, "", "the last line is continued");
    instructions
}

/// Packages that a step installs through apt.
fn installed(step: &str) -> BTreeSet<String> {
    let commands = step
        .split("&&")
        .map(str::trim)
        .filter_map(|command| command.strip_prefix("apt-get install "));
    let words = commands
        .flat_map(|command| command.split(' '))
        .filter(|word| !word.starts_with('-'));
    words.map(str::to_owned).collect()
}

/// Packages of a need of `cargo xtask`.
fn needed(name: &str) -> BTreeSet<String> {
    let needs = text("xtask/src/need.rs");
    let (_, after) = needs.split_once(&format!("const {name}: Need")).unwrap();
    let (_, after) = after.split_once("packages: &[").unwrap();
    let (list, _) = after.split_once(']').unwrap();
    list.split(',')
        .map(|word| word.trim().trim_matches('"').to_owned())
        .filter(|word| !word.is_empty())
        .collect()
}

#[test]
fn steps_of_the_image_fit_the_project() {
    let steps = dockerfile(&text("Dockerfile"));
    let of = |keyword: &str| -> Vec<&str> {
        steps
            .iter()
            .filter(|step| step.keyword == keyword)
            .map(|step| step.rest.as_str())
            .collect()
    };

    // Base images: of one release of Debian, with a tag, from no named host; the compiler is the one of the manifest.
    let manifest = text("Cargo.toml");
    let rust = manifest
        .lines()
        .find_map(|line| line.strip_prefix("rust-version = "))
        .unwrap()
        .trim_matches('"');
    let arguments = of("ARG");
    assert!(
        arguments.contains(&format!("BUILDER=rust:{rust}-bookworm").as_str()),
        "{arguments:?}"
    );
    assert!(arguments.contains(&"BASE=debian:12-slim"), "{arguments:?}");
    assert_eq!(of("FROM"), ["${BUILDER} AS build", "${BASE}"]);

    // Sources: they exist, and are sent to the builder.
    let sent = text(".dockerignore");
    let sent: Vec<&str> = sent.lines().filter_map(|line| line.strip_prefix('!')).collect();
    let mut copied = BTreeSet::new();
    for copy in of("COPY").into_iter().filter(|copy| !copy.starts_with("--from=")) {
        let words: Vec<&str> = copy.split(' ').collect();
        let (_, sources) = words.split_last().unwrap();
        for source in sources {
            assert!(root().join(source).exists(), "COPY {source}");
            assert!(sent.contains(source), "{source} is left out by .dockerignore");
            copied.insert(*source);
        }
    }
    assert_eq!(copied, sent.iter().copied().collect(), "all that is sent is used");
    // All members of the workspace, and files that the sources include.
    for needed in [
        "analyzer",
        "ebpf",
        "tests",
        "xtask",
        "docs",
        "packages",
        "Cargo.lock",
    ] {
        assert!(copied.contains(needed), "{needed}");
    }
    assert_eq!(of("ADD"), [""; 0]);

    // Packages: those of `cargo xtask` for the build. No lists of packages stay.
    let installs: Vec<&str> = of("RUN")
        .into_iter()
        .filter(|run| run.contains("apt-get"))
        .collect();
    for step in &installs {
        assert!(
            step.starts_with("apt-get update && apt-get install -y --no-install-recommends "),
            "{step}"
        );
        assert!(step.contains("rm -rf /var/lib/apt/lists/*"), "{step}");
    }
    let [build, run] = installs[..] else {
        panic!("{installs:?}")
    };
    let wanted: BTreeSet<String> = needed("C_COMPILER").union(&needed("LIBPCAP")).cloned().collect();
    assert!(wanted.contains("libpcap-dev"));
    assert_eq!(installed(build), wanted);
    for package in ["libpcap0.8", "libcap2-bin", "openssh-client", "ca-certificates"] {
        assert!(installed(run).contains(package), "{package}");
    }
    assert!(
        of("RUN")
            .iter()
            .any(|run| run.contains("cargo build --release --locked -p roce-analyze"))
    );

    // The program is started directly, by a user without rights whose number Kubernetes can check.
    let users = of("USER");
    let [user] = users[..] else { panic!("{users:?}") };
    assert!(
        user.split(':')
            .all(|number| number.parse::<u32>().is_ok_and(|number| number >= 10_000)),
        "{user}"
    );
    assert_eq!(of("ENTRYPOINT"), ["[\"/usr/bin/roce-analyze\"]"]);
    // Permitted capabilities alone: with `+ep` the program would not start in a container that lacks one of them.
    let caps: Vec<&str> = of("RUN")
        .into_iter()
        .filter(|run| run.starts_with("setcap "))
        .collect();
    assert_eq!(
        caps,
        ["setcap cap_net_raw,cap_net_admin,cap_bpf,cap_perfmon=p /usr/bin/roce-analyze"]
    );
}

#[test]
fn a_dockerfile_is_split_into_steps() {
    let steps = dockerfile("# a\nRUN a \\\n # b\n  && b\n\nCOPY x y ./\n");
    let all: Vec<(&str, &str)> = steps.iter().map(|step| (&*step.keyword, &*step.rest)).collect();
    assert_eq!(all, [("RUN", "a && b"), ("COPY", "x y ./")]);
    let names = installed("apt-get update && apt-get install -y --no-install-recommends a b && rm -rf c");
    assert_eq!(names.into_iter().collect::<Vec<_>>(), ["a", "b"]);
}

#[test]
fn the_release_pins_actions_and_names_no_registry() {
    let workflow = text(".github/workflows/release.yml");
    let mut actions = 0;
    for line in workflow.lines() {
        let line = line.trim().trim_start_matches("- ");
        if let Some(action) = line.strip_prefix("uses: ") {
            let (name, pin) = action.split_once('@').unwrap();
            let (commit, tag) = pin.split_once(" # v").unwrap_or_else(|| panic!("{line}"));
            assert!(name.starts_with("actions/"), "{line}: only GitHub's own");
            assert!(
                commit.len() == 40 && commit.bytes().all(|byte| byte.is_ascii_hexdigit()),
                "{line}"
            );
            assert_eq!(tag.split('.').count(), 3, "{line}");
            actions += 1;
        }
        if let Some(image) = line.strip_prefix("container: ").or(line.strip_prefix("image: ")) {
            assert!(
                image.contains(':') && !image.contains('/'),
                "{line}: a tag, and no host"
            );
        }
    }
    assert!(actions > 5, "{actions}");
    // Rights are given where they are used, and the registry is a variable.
    let (head, jobs) = workflow.split_once("\njobs:\n").unwrap();
    assert!(head.contains("\npermissions:\n  contents: read\n"), "{head}");
    assert!(jobs.contains("vars.REGISTRY"));
    for job in ["build", "musl", "check", "release", "image"] {
        assert!(jobs.contains(&format!("\n  {job}:\n")), "{job}");
    }
    for command in [
        "cargo xtask package deb",
        "cargo xtask package tar",
        "cargo xtask package check",
        "packages/musl/libpcap.sh",
    ] {
        assert!(jobs.contains(command), "{command}");
    }
}

/// Lines `KEY=VALUE` of a unit.
fn values<'a>(unit: &'a str, key: &str) -> Vec<&'a str> {
    unit.lines()
        .filter_map(|line| line.strip_prefix(key)?.strip_prefix('='))
        .collect()
}

#[test]
fn units_start_the_packaged_program_with_what_it_understands() {
    let mut found = 0;
    for entry in fs::read_dir(root().join("packages/systemd")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if !name.ends_with(".service") {
            continue;
        }
        found += 1;
        let unit = fs::read_to_string(&path).unwrap();
        let starts = values(&unit, "ExecStart");
        let [start] = starts[..] else {
            panic!("{name}: {starts:?}")
        };
        assert!(start.starts_with("/usr/bin/roce-analyze "), "{name}: {start}");
        // No right but those that it names, and no file but its own.
        for (key, value) in [
            ("NoNewPrivileges", "yes"),
            ("ProtectSystem", "strict"),
            ("ProtectHome", "yes"),
        ] {
            assert_eq!(values(&unit, key), [value], "{name}: {key}");
        }
        assert_eq!(values(&unit, "CapabilityBoundingSet").len(), 1, "{name}");
        assert_eq!(values(&unit, "WantedBy"), ["multi-user.target"], "{name}");
    }
    assert!(found > 0);
}

#[cfg(feature = "live")]
#[test]
fn the_options_of_the_metrics_unit_are_understood() {
    let unit = text("packages/systemd/roce-analyze-metrics.service");
    let defaults = text("packages/default/roce-analyze-metrics");
    let in_unit = values(&unit, "Environment")[0]
        .trim_matches('"')
        .strip_prefix("ROCE_METRICS_OPTIONS=")
        .unwrap();
    let in_file = values(&defaults, "ROCE_METRICS_OPTIONS")[0].trim_matches('"');
    assert_eq!(in_unit, in_file, "the unit works alike without the file");
    let commented = values(&defaults, "#ROCE_METRICS_OPTIONS")[0].trim_matches('"');
    for options in [in_file, commented] {
        let start = values(&unit, "ExecStart")[0].replace("$ROCE_METRICS_OPTIONS", options);
        let matches = roce_analyze::command_line().try_get_matches_from(start.split(' '));
        matches.unwrap_or_else(|error| panic!("{start}: {error}"));
    }
    // The command prints that unit, for a program that no package has installed.
    let printed = run(&root(), ["metrics", "files", "systemd"]).good().stdout;
    assert_eq!(printed, unit.replace("/usr/bin/", "/usr/local/bin/"));
    assert!(printed.contains("\nExecStart=/usr/local/bin/roce-analyze metrics serve "));
}

#[test]
fn the_example_of_a_configuration_is_understood() {
    run(
        &root(),
        [
            "captures/rping.pcap",
            "--config",
            "packages/examples/roce-analyze.toml",
        ],
    )
    .good();
}

#[test]
fn one_version_is_in_all_places() {
    let version = env!("CARGO_PKG_VERSION");
    assert!(text("ebpf/Cargo.toml").contains(&format!("version = \"{version}\"")));
    let page = text("docs/install.md");
    for name in [
        format!("roce-analyze_{version}-1_amd64.deb"),
        format!("roce-analyze-{version}-x86_64-unknown-linux-gnu.tar.gz"),
        format!("roce-analyze {version}\n"),
    ] {
        assert!(page.contains(&name), "docs/install.md has no {name}");
    }
}
