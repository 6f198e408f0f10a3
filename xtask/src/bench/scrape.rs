//! The cost of `metrics serve` on a host with eight RDMA ports: CPU time of a scrape, and resident memory, by the server's own metrics.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};

use super::targets::{Target, TargetBound};
use crate::workspace::{Profile, Workspace};

/// Name of the measurement for `--only`.
pub(super) const SCRAPE: &str = "scrape";
/// Scrapes over which the CPU time is averaged.
const SCRAPES: u32 = 500;
/// Time in which the host is read several times before memory is looked at.
const SETTLING: Duration = Duration::from_secs(5);

/// Measures a server of a recorded host.
pub(super) fn measure(workspace: &Workspace) -> Result<[Target; 2]> {
    let root = workspace.target.join("bench/eight_ports");
    eight_ports(&root).with_context(|| format!("cannot make {}", root.display()))?;
    let mut command = workspace.command(workspace.program(Profile::Release, "roce-analyze"));
    command.args(["metrics", "serve", "--listen", "127.0.0.1:0", "--interval", "1s"]);
    // The folder may lie where only its owner can look.
    command
        .args(["--no-sandbox", "--counters-only", "--read"])
        .arg(&root);
    let mut server = command.stderr(Stdio::piped()).spawn().context("roce-analyze")?;
    let measured = address(server.stderr.take()).and_then(|address| scrapes(&address));
    // It serves until it is ended.
    server.kill()?;
    server.wait()?;
    let (seconds, bytes) = measured?;
    Ok([
        TargetBound::AtMost.target(
            "metrics serve, 8 ports: ms of CPU for a scrape",
            20.0,
            Some(seconds * 1e3),
        ),
        TargetBound::AtMost.target(
            "metrics serve, 8 ports: MB of resident memory",
            30.0,
            Some(bytes / 1e6),
        ),
    ])
}

/// Where the server says that it listens.
fn address(errors: Option<impl Read>) -> Result<String> {
    let lines = BufReader::new(errors.context("no standard error")?).lines();
    let url = lines.map_while(Result::ok).find_map(|line| {
        let (_, rest) = line.split_once("http://")?;
        Some(rest.split_once('/')?.0.to_owned())
    });
    url.context("it serves nothing")
}

/// Seconds of CPU time for a scrape, and bytes of resident memory.
fn scrapes(address: &str) -> Result<(f64, f64)> {
    thread::sleep(SETTLING);
    let before = scrape(address)?;
    for _ in 1..SCRAPES {
        scrape(address)?;
    }
    let after = scrape(address)?;
    let cpu = |text: &str| value(text, "process_cpu_seconds_total");
    let seconds = (cpu(&after)? - cpu(&before)?) / f64::from(SCRAPES);
    Ok((seconds, value(&after, "process_resident_memory_bytes")?))
}

fn scrape(address: &str) -> Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(text)
}

fn value(text: &str, name: &str) -> Result<f64> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    Ok(line.with_context(|| format!("no {name}"))?.parse()?)
}

/// A recorded host with eight ports: 50 counters each, and the statistics of an adapter with 64 queues.
fn eight_ports(root: &Path) -> Result<()> {
    let set = |path: String, text: &str| -> Result<()> {
        let path = root.join(path);
        fs::create_dir_all(path.parent().context("a file is in a folder")?)?;
        fs::write(path, text)?;
        Ok(())
    };
    for device in 0..8 {
        let port = format!("sys/class/infiniband/mlx5_{device}/ports/1");
        set(format!("{port}/state"), "4: ACTIVE\n")?;
        set(format!("{port}/rate"), "400 Gb/sec (4X NDR)\n")?;
        for counter in 0..50 {
            set(format!("{port}/hw_counters/counter_{counter}"), "123456789\n")?;
        }
        for index in 0..256 {
            set(
                format!("{port}/gids/{index}"),
                "0000:0000:0000:0000:0000:ffff:0a4d:0001",
            )?;
        }
        set(
            format!("{port}/gid_attrs/ndevs/0"),
            &format!("ens{device}f0np0\n"),
        )?;
        let of_priorities = (0..8).flat_map(|priority| {
            let names = [
                "bytes",
                "packets",
                "pause",
                "pause_duration",
                "pause_transition",
                "discards",
            ];
            names.map(|name| format!("rx_prio{priority}_{name}"))
        });
        let of_queues = (0..64).flat_map(|queue| {
            let names = ["packets", "bytes", "csum_complete", "wqe_err", "cache_reuse"];
            names.map(|name| format!("rx{queue}_{name}"))
        });
        let lines = of_priorities
            .chain(of_queues)
            .map(|name| format!("     {name}: 123456789\n"));
        let statistics = format!("NIC statistics:\n{}", lines.collect::<String>());
        set(format!("commands/ethtool_-S_ens{device}f0np0.txt"), &statistics)?;
    }
    Ok(())
}
