//! `cargo xtask bench-live`: what live runs cost, and how many packets a second they take without loss.
//!
//! Frames of 4,096 flows go over a veth pair in a network namespace of its own (`flood`), and a live run
//! watches the other end. Its processor time is that of its process while frames come; the kernel's work
//! for a packet is accounted to the sender. Needs root, and iproute2. Other programs on the machine
//! lower the rates.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::need::{self, C_COMPILER, LIBPCAP};
use crate::workspace::{Profile, Workspace, execute, output, step};

pub(crate) const ABOUT: &str = "what live runs cost, and the packets a second that they take without loss";
pub(crate) const ARGUMENTS: &str = "[--seconds N] [--no-build]";

/// Arguments of live runs, besides the interface.
const RUNS: [(&str, &[&str]); 4] = [
    ("libpcap", &[]),
    ("libpcap, -w FILE.zst", &["-w", "FILE"]),
    ("classifier", &["--capture", "tc"]),
    ("classifier, -w FILE.zst", &["--capture", "tc", "-w", "FILE"]),
];
/// Rates at which the cost is measured.
const RATES: [u32; 2] = [100_000, 500_000];
/// Bytes of frames: RDMA's payloads fill them, and the sender is to be fast.
const BYTES: [&str; 2] = ["256", "1082"];
/// Ticks of a second in `/proc/PID/stat` (USER_HZ).
const TICKS: f64 = 100.0;

pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    let mut seconds = 5_u32;
    let mut builds = true;
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--no-build" => builds = false,
            "--seconds" => {
                let text = arguments.next().context("--seconds needs a number")?;
                seconds = text.parse().with_context(|| format!("'{text}' is no number"))?;
            }
            _ => bail!("'{argument}' is not understood\nhint: cargo xtask bench-live {ARGUMENTS}"),
        }
    }
    if builds {
        step("build", || build(workspace))?;
    }
    step("the kernel programs, by BPF_PROG_TEST_RUN", || {
        let capture = workspace.root.join("captures/write_bw_loss.pcap");
        execute(Command::new(workspace.example(Profile::Release, "cost")).arg(capture))
    })?;
    let folder = workspace.target.join("bench");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let bench = Bench {
        program: workspace.program(Profile::Release, "roce-analyze"),
        flood: workspace.example(Profile::Release, "flood"),
        folder,
        seconds,
        namespace: Namespace::new()?,
    };
    println!("\n| what | bytes of a frame | sent, packets/s | lost | processor, % of one core |");
    println!("|---|--:|--:|--:|--:|");
    for (name, arguments) in RUNS {
        for bytes in BYTES {
            for rate in RATES {
                bench.measure(name, arguments, bytes, Some(rate))?;
            }
            bench.highest(name, arguments, bytes)?;
        }
    }
    Ok(())
}

fn build(workspace: &Workspace) -> Result<()> {
    need::ensure(&[C_COMPILER, LIBPCAP])?;
    let mut live = workspace.cargo(["build", "--release", "--locked", "--package", "roce-analyze"]);
    execute(live.args(["--no-default-features", "--features", "live"]))?;
    let mut senders = workspace.cargo(["build", "--release", "--locked", "--package", "roce-capture"]);
    execute(senders.args([
        "--features",
        "live",
        "--example",
        "flood",
        "--example",
        "bench_capture",
    ]))?;
    let mut cost = workspace.cargo(["build", "--release", "--locked", "--package", "roce-probe"]);
    execute(cost.args(["--example", "cost"]))
}

/// A network namespace with a veth pair; it goes when this does.
struct Namespace(String);

impl Namespace {
    fn new() -> Result<Self> {
        let name = format!("roce-bench-{}", std::process::id());
        execute(Command::new("ip").args(["netns", "add", &name]))
            .context("no network namespace\nhint: run this as root, with iproute2")?;
        let made = Self(name);
        let ip = |line: &str| execute(Command::new("ip").args(["-n", &made.0]).args(line.split(' ')));
        ip("link add v0 mtu 9000 type veth peer name v1 mtu 9000")?;
        ip("link set v0 up")?;
        ip("link set v1 up")?;
        Ok(made)
    }

    /// A command inside.
    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.0]).arg(program);
        command
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // The next run has another name; what is left is seen by `ip netns`.
        let _ = execute(Command::new("ip").args(["netns", "del", &self.0]));
    }
}

struct Bench {
    program: PathBuf,
    flood: PathBuf,
    folder: PathBuf,
    seconds: u32,
    namespace: Namespace,
}

/// One measurement.
struct MeasuredRate {
    /// Packets a second that were sent.
    rate: f64,
    lost: f64,
    /// Share of one core.
    share: f64,
}

impl Bench {
    /// A live run, while frames are sent at a rate, or as fast as can be.
    fn once(&self, arguments: &[&str], bytes: &str, rate: Option<u32>) -> Result<MeasuredRate> {
        let kept = self.folder.join("flood.pcapng.zst");
        let document = self.folder.join("flood.json");
        let mut live = self.namespace.command(&self.program);
        live.args(["live", "-i", "v1", "--format", "json", "--overwrite"])
            .args(arguments.iter().map(|argument| match *argument {
                "FILE" => kept.as_os_str(),
                other => other.as_ref(),
            }))
            .stdout(
                fs::File::create(&document)
                    .with_context(|| format!("cannot write {}", document.display()))?,
            )
            .stderr(Stdio::null());
        let live = RunningCapture(live.spawn().context("cannot run the live run")?);
        sleep(Duration::from_secs(2));
        let before = live.ticks()?;
        let begun = Instant::now();
        let mut flood = self.namespace.command(&self.flood);
        flood.arg("v0").arg(self.seconds.to_string());
        // As fast as possible: a rate that no processor reaches.
        flood.arg(rate.unwrap_or(u32::MAX).to_string()).arg(bytes);
        let said = output(&mut flood)?;
        let took = begun.elapsed().as_secs_f64();
        let ticks = live.ticks()? - before;
        let (sent, seconds) = said.trim().split_once(' ').context("flood says nothing")?;
        let (sent, seconds): (f64, f64) = (sent.parse()?, seconds.parse()?);
        live.end()?;
        let text =
            fs::read_to_string(&document).with_context(|| format!("cannot read {}", document.display()))?;
        let seen = number(&text, "frames")?;
        Ok(MeasuredRate {
            rate: sent / seconds,
            // Losses that the run reports, or packets that are missing without a report.
            lost: number(&text, "frames_lost")?.max(sent - seen),
            share: ticks / TICKS / took * 100.0,
        })
    }

    fn measure(
        &self,
        name: &str,
        arguments: &[&str],
        bytes: &str,
        rate: Option<u32>,
    ) -> Result<MeasuredRate> {
        let measured = self.once(arguments, bytes, rate)?;
        let MeasuredRate { rate, lost, share } = measured;
        println!("| {name} | {bytes} | {rate:.0} | {lost:.0} | {share:.0} |");
        Ok(measured)
    }

    /// The highest rate without loss, in tenths of the sender's highest rate.
    fn highest(&self, name: &str, arguments: &[&str], bytes: &str) -> Result<()> {
        let most = self.measure(name, arguments, bytes, None)?;
        let mut tenths = 9;
        while most.lost > 0.0 && tenths > 0 {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "some million packets a second"
            )]
            let rate = (most.rate * f64::from(tenths) / 10.0) as u32;
            if self.measure(name, arguments, bytes, Some(rate))?.lost == 0.0 {
                break;
            }
            tenths -= 1;
        }
        Ok(())
    }
}

/// A live run.
struct RunningCapture(Child);

impl RunningCapture {
    /// Processor time of all its threads (proc(5): fields 14 and 15 of its `stat`).
    fn ticks(&self) -> Result<f64> {
        let path = format!("/proc/{}/stat", self.0.id());
        let stat = fs::read_to_string(&path)
            .with_context(|| format!("cannot read {path}: the live run has ended"))?;
        // The name in parentheses may have blanks.
        let (_, rest) = stat.rsplit_once(") ").context("no process name")?;
        let fields: Vec<&str> = rest.split(' ').collect();
        let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok());
        ticks(11)
            .zip(ticks(12))
            .map(|(user, system)| user + system)
            .with_context(|| format!("{path} is not understood"))
    }

    fn end(mut self) -> Result<()> {
        execute(Command::new("kill").args(["-INT", &self.0.id().to_string()]))?;
        let status = self.0.wait().context("cannot wait for the live run")?;
        if !status.success() {
            bail!("the live run failed: {status}");
        }
        Ok(())
    }
}

impl Drop for RunningCapture {
    fn drop(&mut self) {
        // One that was waited for is gone.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The first number of a key in a document: those of `totals` come before all flows'.
fn number(document: &str, key: &str) -> Result<f64> {
    let (_, after) = document
        .split_once("\"totals\"")
        .and_then(|(_, totals)| totals.split_once(&format!("\"{key}\":")))
        .with_context(|| format!("the live run does not say {key}"))?;
    let text: String = after
        .trim_start()
        .chars()
        .take_while(char::is_ascii_digit)
        .collect();
    text.parse().with_context(|| format!("{key} is no number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_found() {
        let document = r#"{"run": {"frames": 1}, "totals": { "frames": 20, "frames_lost": 3 }, "flows": []}"#;
        assert!((number(document, "frames").unwrap() - 20.0).abs() < 0.1);
        assert!((number(document, "frames_lost").unwrap() - 3.0).abs() < 0.1);
        assert!(number(document, "other").is_err());
    }
}
