//! `cargo xtask vm-test`: a live run with the probe, on real RDMA, in a VM; then whether what it says is true.
//!
//! QEMU emulates the processor, so that it works wherever QEMU does. What is booted is made by `tests/vm/image.sh` from Debian's
//! packages, what runs inside is `tests/vm/run.sh`, and `tests/independent/check_vm.py` holds the run's results against tcpdump's
//! files and the driver's counters. Where there is no QEMU, or nothing to make an image of, this says so and is skipped.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::need::{self, C_COMPILER, LIBPCAP, QEMU};
use crate::test::reader;
use crate::workspace::{Profile, Workspace, execute, line, on_path, step};

pub(crate) const ABOUT: &str =
    "a live run with the probe between two Soft-RoCE devices in a VM, and whether it is right";
pub(crate) const ARGUMENTS: &str = "[6.1|6.12] [--smoke]";

/// The series of Debian's kernels that it runs on; the smoke run takes the first alone.
const KERNELS: [&str; 2] = ["6.1", "6.12"];

/// After this long a VM hangs. On two busy cores the full set takes a third of it.
const LIMIT: Duration = Duration::from_mins(15);

pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    let smoke = arguments.iter().any(|argument| argument == "--smoke");
    let mut kernels = Vec::new();
    for argument in arguments.iter().filter(|argument| *argument != "--smoke") {
        match KERNELS.iter().find(|kernel| *kernel == argument) {
            Some(kernel) => kernels.push(*kernel),
            None => bail!("'{argument}' is not understood\nhint: cargo xtask vm-test {ARGUMENTS}"),
        }
    }
    if kernels.is_empty() {
        kernels.extend(if smoke { &KERNELS[..1] } else { &KERNELS[..] });
    }
    if let Err(reason) = possible() {
        println!("SKIPPED: vm-test: {reason:#}");
        return Ok(());
    }
    need::ensure(&[C_COMPILER, LIBPCAP])?;
    let python = reader(workspace)?;
    step("build what runs in the VM, and what reads its recording", || {
        let inside = ["build", "--release", "--locked", "--package", "roce-analyze"];
        let features = ["--no-default-features", "--features", "live,probe"];
        execute(workspace.cargo(inside).args(features))?;
        execute(&mut workspace.cargo(["build", "--locked", "--package", "roce-analyze"]))
    })?;
    for kernel in kernels {
        let share = workspace.target.join("vm").join(kernel).join("share");
        step(&format!("image with Debian's kernel {kernel}"), || {
            image(workspace, kernel, &share, if smoke { "smoke" } else { "full" })
        })?;
        step(&format!("VM with kernel {kernel}"), || {
            boot(workspace, kernel, &share)
        })?;
        step(&format!("results of kernel {kernel}"), || {
            check(workspace, &python, &share)
        })?;
    }
    Ok(())
}

/// Whether a VM can be made and run here.
fn possible() -> Result<()> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        bail!("its image is one for Linux on x86-64");
    }
    for program in ["apt-get", "dpkg-deb"] {
        if on_path(program).is_none() {
            bail!("its image is made of Debian's packages, and there is no {program}");
        }
    }
    need::ensure(&[QEMU])
}

/// Makes what is booted, and the folder that the VM shares.
fn image(workspace: &Workspace, kernel: &str, share: &Path, set: &str) -> Result<()> {
    let program = workspace.program(Profile::Release, "roce-analyze");
    let scripts = workspace.root.join("tests/vm");
    let mut make = workspace.command(scripts.join("image.sh"));
    make.arg(workspace.target.join("vm")).arg(kernel).arg(&program);
    execute(&mut make)?;
    let put = |from: &Path, name: &str| {
        let to = share.join(name);
        fs::copy(from, &to).with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))
    };
    let results = share.join("out");
    fs::create_dir_all(&results).with_context(|| format!("cannot make {}", results.display()))?;
    put(&program, "roce-analyze")?;
    for script in ["net.sh", "run.sh"] {
        put(&scripts.join(script), script)?;
    }
    let chosen = share.join("set");
    fs::write(&chosen, set).with_context(|| format!("cannot write {}", chosen.display()))
}

/// Runs the VM to its end; what it says is seen.
fn boot(workspace: &Workspace, kernel: &str, share: &Path) -> Result<()> {
    let folder = workspace.target.join("vm").join(kernel);
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
    .args(["-serial", "stdio"])
    .args(["-object", "rng-random,id=random,filename=/dev/urandom"])
    .args(["-device", "virtio-rng-pci,rng=random"])
    .arg("-virtfs")
    .arg(format!(
        "local,path={},mount_tag=share,security_model=none",
        share.display()
    ))
    .args([
        "-append",
        "console=ttyS0 quiet panic=-1 mitigations=off random.trust_cpu=on",
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
    loop {
        if let Some(status) = running.try_wait().context("cannot wait for qemu")? {
            if status.success() {
                return Ok(());
            }
            bail!("`{}` failed: {status}", line(&qemu));
        }
        if begun.elapsed() > LIMIT {
            running.kill().context("cannot end qemu")?;
            running.wait().context("cannot wait for qemu")?;
            bail!("the VM has not ended within {} s", LIMIT.as_secs());
        }
        sleep(Duration::from_millis(200));
    }
}

/// Makes the dataset of the recording, and has everything compared.
fn check(workspace: &Workspace, python: &Path, share: &Path) -> Result<()> {
    let results = share.join("out");
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
    execute(check.arg("tests/independent/check_vm.py").arg(results))
}
