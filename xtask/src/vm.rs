//! `cargo xtask vm-test`: a live run with the probe, on real RDMA, in a VM; then whether what it says is true.
//!
//! QEMU emulates the processor, so that it works wherever QEMU does. What is booted is made by `tests/vm/image.sh` from Debian's
//! packages (`packages.sh`), what runs inside is `tests/vm/run.sh`, and `tests/independent/check_vm.py` holds the run's results against
//! tcpdump's files and the driver's counters. Behind it `check_doctor.py` compares doctor's verdicts over settings that were made wrong
//! on purpose, `check_traffic.py` the runs of `traffic` between the devices, `check_fleet.py` what `fleet capture` collected from four hosts in
//! an incast, and `check_hosts.py` and a browser the samples of two hosts beside their merged captures. The smoke run takes the program that
//! the tests use, so that nothing more is built for it;
//! the full set, with floods of dropped packets, one that is optimised: an emulated processor is slow. Where there is no QEMU, or nothing
//! to make an image of, this says so and is skipped. A VM that does not come up is tried once more; what ran is judged once.
//!
//! `--captures` records the captures of `tests/data/real` in the same VM instead: `tests/vm/captures.sh` runs inside, and
//! `tests/independent/check_impaired.py` counts what happened to each packet.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::browser::Browser;
use crate::need::{self, C_COMPILER, LIBPCAP, QEMU};
use crate::python::reader;
use crate::workspace::{Profile, Workspace, execute, line, on_path, step};

pub(crate) const ABOUT: &str =
    "a live run with the probe between two Soft-RoCE devices in a VM, and whether it is right";
pub(crate) const ARGUMENTS: &str = "[6.1|6.12] [--smoke|--captures]";

/// The series of Debian's kernels that it runs on; the smoke run and the captures take the first alone.
const KERNELS: [&str; 2] = ["6.1", "6.12"];

/// After this long a VM hangs. On two busy cores the full set takes a third of it.
const LIMIT: Duration = Duration::from_mins(15);

/// Limit of the time until a VM's devices are there: many times what it takes on two busy cores.
const UP_LIMIT: Duration = Duration::from_mins(5);

/// Scenarios that run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Set {
    Smoke,
    Full,
    /// Those of `tests/data/real`, without a live run.
    Captures,
}

impl Set {
    fn name(self) -> &'static str {
        match self {
            Self::Smoke => "smoke",
            Self::Full => "full",
            Self::Captures => "captures",
        }
    }

    /// Script of `tests/vm` that runs in the VM.
    fn script(self) -> &'static str {
        match self {
            Self::Smoke | Self::Full => "run.sh",
            Self::Captures => "captures.sh",
        }
    }

    /// Build profile of the program that watches; `None` where none does.
    fn profile(self) -> Option<Profile> {
        match self {
            Self::Smoke => Some(Profile::Dev),
            Self::Full => Some(Profile::Release),
            Self::Captures => None,
        }
    }
}

pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    let mut set = Set::Full;
    let mut kernels = Vec::new();
    for argument in arguments {
        match (
            argument.as_str(),
            KERNELS.iter().find(|kernel| *kernel == argument),
        ) {
            ("--smoke", _) => set = Set::Smoke,
            ("--captures", _) => set = Set::Captures,
            (_, Some(kernel)) => kernels.push(*kernel),
            _ => bail!("'{argument}' is not understood\nhint: cargo xtask vm-test {ARGUMENTS}"),
        }
    }
    if kernels.is_empty() {
        kernels.extend(if set == Set::Full {
            &KERNELS[..]
        } else {
            &KERNELS[..1]
        });
    }
    for kernel in &kernels {
        if let Err(reason) = possible(workspace, kernel) {
            println!("SKIPPED: vm-test: {reason:#}");
            return Ok(());
        }
    }
    if set == Set::Captures {
        for kernel in kernels {
            one(workspace, Path::new("python3"), kernel, set)?;
        }
        return Ok(());
    }
    need::ensure(&[C_COMPILER, LIBPCAP])?;
    let python = reader(workspace)?;
    step("build what runs in the VM, and what reads its recording", || {
        if set == Set::Full {
            let inside = ["build", "--release", "--locked", "--package", "roce-analyze"];
            let features = ["--no-default-features", "--features", "live"];
            execute(workspace.cargo(inside).args(features))?;
        }
        execute(&mut workspace.cargo(["build", "--locked", "--package", "roce-analyze"]))
    })?;
    for kernel in kernels {
        one(workspace, &python, kernel, set)?;
    }
    Ok(())
}

/// The smoke run, by what the tests have built.
pub(crate) fn smoke(workspace: &Workspace, python: &Path) -> Result<()> {
    one(workspace, python, KERNELS[0], Set::Smoke)
}

/// Checks that the smoke run can be made here, and says why not.
pub(crate) fn smoke_possible(workspace: &Workspace) -> Result<()> {
    possible(workspace, KERNELS[0])
}

/// Checks that a VM can be made and run here, and fetches what is missing for it.
fn possible(workspace: &Workspace, kernel: &str) -> Result<()> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        bail!("its image is one for Linux on x86-64");
    }
    for program in ["apt-get", "dpkg-deb"] {
        if on_path(program).is_none() {
            bail!("its image is made of Debian's packages, and there is no {program}");
        }
    }
    need::ensure(&[QEMU])?;
    let mut packages = workspace.command("tests/vm/packages.sh");
    execute(packages.arg(folder(workspace)).arg(kernel)).with_context(|| {
        format!("its image is made of Debian's packages with kernel {kernel}, which cannot be had")
    })
}

/// Folder of images, results and fetched packages.
fn folder(workspace: &Workspace) -> PathBuf {
    workspace.target.join("vm")
}

/// One VM, from its image to the comparison of its results.
fn one(workspace: &Workspace, python: &Path, kernel: &str, set: Set) -> Result<()> {
    let share = folder(workspace).join(kernel).join("share");
    step(&format!("image with Debian's kernel {kernel}"), || {
        image(workspace, kernel, &share, set)
    })?;
    step(&format!("VM with kernel {kernel}"), || {
        if boot(workspace, kernel, &share)? {
            return Ok(());
        }
        println!("   the VM did not come up: once more");
        if boot(workspace, kernel, &share)? {
            return Ok(());
        }
        bail!(
            "the VM did not come up, twice\nhint: what it said is in {}",
            console(workspace, kernel).display()
        );
    })?;
    step(&format!("results of kernel {kernel}"), || {
        check(workspace, python, &share, set).with_context(|| {
            let console = console(workspace, kernel);
            format!(
                "kernel {kernel}; results are in {}, what the VM said in {}",
                share.display(),
                console.display()
            )
        })
    })
}

/// Makes what is booted, and the folder that the VM shares.
fn image(workspace: &Workspace, kernel: &str, share: &Path, set: Set) -> Result<()> {
    let program = set
        .profile()
        .map(|profile| workspace.program(profile, "roce-analyze"));
    let scripts = workspace.root.join("tests/vm");
    let mut make = workspace.command(scripts.join("image.sh"));
    make.arg(folder(workspace)).arg(kernel).args(&program);
    execute(&mut make)?;
    let results = share.join("out");
    fs::create_dir_all(&results).with_context(|| format!("cannot make {}", results.display()))?;
    if let Some(program) = program {
        // Its symbols are half of it, and nothing reads them there.
        let mut strip = workspace.command("strip");
        execute(strip.arg("-o").arg(share.join("roce-analyze")).arg(&program))?;
    }
    for (script, name) in [
        ("net.sh", "net.sh"),
        ("hosts.sh", "hosts.sh"),
        ("doctor.sh", "doctor.sh"),
        ("traffic.sh", "traffic.sh"),
        ("fleet.sh", "fleet.sh"),
        (set.script(), "run.sh"),
    ] {
        let (from, to) = (scripts.join(script), share.join(name));
        fs::copy(&from, &to)
            .with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))?;
    }
    let chosen = share.join("set");
    fs::write(&chosen, set.name()).with_context(|| format!("cannot write {}", chosen.display()))
}

/// Output of a VM.
fn console(workspace: &Workspace, kernel: &str) -> PathBuf {
    folder(workspace).join(kernel).join("console.txt")
}

/// Runs the VM to its end; what it says is seen, and kept. Whether it had come up.
fn boot(workspace: &Workspace, kernel: &str, share: &Path) -> Result<bool> {
    let folder = folder(workspace).join(kernel);
    let console = console(workspace, kernel);
    let mut qemu = workspace.command("qemu-system-x86_64");
    qemu.args([
        "-accel",
        "tcg,thread=multi",
        "-cpu",
        "max",
        "-smp",
        "2",
        "-m",
        "1536",
    ])
    .args([
        "-no-reboot",
        "-display",
        "none",
        "-monitor",
        "none",
        "-nic",
        "none",
    ])
    .arg("-chardev")
    .arg(format!(
        "stdio,id=console,signal=off,logfile={}",
        console.display()
    ))
    .args(["-serial", "chardev:console"])
    .args(["-object", "rng-random,id=random,filename=/dev/urandom"])
    .args(["-device", "virtio-rng-pci,rng=random"])
    .arg("-virtfs")
    .arg(format!(
        "local,path={},mount_tag=share,security_model=none",
        share.display()
    ))
    .args([
        "-append",
        // On busy cores an emulated timer fails the kernel's check of it, and the kernel stops.
        "console=ttyS0 quiet panic=-1 mitigations=off random.trust_cpu=on no_timer_check",
    ])
    .arg("-kernel")
    .arg(folder.join("vmlinuz"))
    .arg("-initrd")
    .arg(folder.join("initrd"));
    let mut running = qemu
        .stdin(Stdio::null())
        .spawn()
        .with_context(|| format!("cannot run `{}`", line(&qemu)))?;
    let begun = Instant::now();
    let up = share.join("out").join("up");
    loop {
        if let Some(status) = running.try_wait().context("cannot wait for qemu")? {
            if !status.success() {
                println!("   qemu: {status}");
            }
            return Ok(up.exists());
        }
        let is_up = up.exists();
        if begun.elapsed() > if is_up { LIMIT } else { UP_LIMIT } {
            running.kill().context("cannot end qemu")?;
            running.wait().context("cannot wait for qemu")?;
            if !is_up {
                return Ok(false);
            }
            bail!(
                "the VM has not ended within {} s\nhint: what it said is in {}",
                LIMIT.as_secs(),
                console.display()
            );
        }
        sleep(Duration::from_millis(200));
    }
}

/// Makes the dataset of the recording, and has everything compared. Captures alone are counted.
fn check(workspace: &Workspace, python: &Path, share: &Path, set: Set) -> Result<()> {
    let results = share.join("out");
    if set == Set::Captures {
        let mut count = workspace.command(python);
        count.arg("tests/independent/check_impaired.py").arg(results);
        return execute(&mut count);
    }
    let recording = results.join("live");
    if !recording.is_dir() {
        bail!(
            "the live run in the VM left no recording\nhint: what it said is in {}",
            results.join("live.txt").display()
        );
    }
    let mut analyze = workspace.command(workspace.program(Profile::Dev, "roce-analyze"));
    analyze
        .arg(&recording)
        .arg("--output")
        .arg(results.join("dataset"));
    execute(analyze.stdout(Stdio::null()))?;
    let mut check = workspace.command(python);
    execute(check.arg("tests/independent/check_vm.py").arg(&results))?;
    let mut verdicts = workspace.command(python);
    execute(verdicts.arg("tests/independent/check_doctor.py").arg(&results))?;
    let mut runs = workspace.command(python);
    execute(runs.arg("tests/independent/check_traffic.py").arg(&results))?;
    let mut fleet = workspace.command(python);
    execute(fleet.arg("tests/independent/check_fleet.py").arg(&results))?;
    two_hosts(workspace, python, &results.join("hosts"))
}

/// Joins the samples of two hosts to their captures, and has the result and its page compared.
fn two_hosts(workspace: &Workspace, python: &Path, recorded: &Path) -> Result<()> {
    let analyze = || {
        let mut analyze = workspace.command(workspace.program(Profile::Dev, "roce-analyze"));
        analyze.args(["--format", "none", "--overwrite"]);
        analyze
    };
    let joined = workspace.target.join("browser").join(Browser::TWO_HOSTS);
    let mut join = analyze();
    join.args(["--bin", "10ms", "--output"]).arg(&joined);
    for host in ["client", "server"] {
        let dataset = recorded.join(format!("{host}.dataset"));
        execute(analyze().arg(recorded.join(host)).arg("--output").arg(&dataset))?;
        join.arg("--samples").arg(&dataset);
    }
    execute(join.args(["client.pcap", "server.pcap"].map(|name| recorded.join(name))))?;
    let mut check = workspace.command(python);
    check.arg("tests/independent/check_hosts.py");
    execute(check.args(recorded.parent()).arg(&joined))?;
    match Browser::find(workspace) {
        Ok(browser) => browser.check_two_hosts(workspace, python),
        Err(reason) => {
            println!("SKIPPED: the page of two hosts in a browser: {reason:#}");
            Ok(())
        }
    }
}
