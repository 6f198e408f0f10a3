//! Answers of drivers and of system calls, as JSON texts of a snapshot.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::io;
use std::path::Path;

use roce_files::FileTree;
use roce_hosts::doctor::{Host, netdev_names};
use rustix::fs::{CWD, Mode, OFlags, openat};
use serde_json::{Map, Value, json};

use super::options::SnapshotOptions;
use crate::dcb::Dcb;
use crate::discipline;
use crate::ethtool::Ethtool;

/// Programs that decide or disturb what is checked.
const PROGRAMS: [&str; 9] = [
    "lldpad",
    "lldpd",
    "irqbalance",
    "ptp4l",
    "phc2sys",
    "chronyd",
    "ntpd",
    "systemd-timesyn",
    "dcbx",
];
/// Beginnings of the variables that are read. No other variable is kept: an environment has secrets.
const VARIABLES: [&str; 4] = ["NCCL_", "UCX_", "PCIDEVICE_", "OMPI_MCA_btl"];
/// Bytes of a file with settings of NCCL.
const MAX_SETTINGS_BYTES: u64 = 64 << 10;
/// Bytes of an environment.
const MAX_ENVIRONMENT_BYTES: usize = 4 << 20;

fn put(host: &mut Host, name: &str, value: &Value) {
    host.insert(&format!("answers/{name}"), value.to_string().into_bytes());
}

fn failed(error: &io::Error) -> Value {
    let text = error.to_string();
    json!({ "error": text.split(" (os error").next().unwrap_or(&text) })
}

pub(super) fn add_answers(
    host: &mut Host,
    options: &SnapshotOptions<'_>,
    most_speed: &dyn Fn(&str) -> Option<u64>,
) {
    let uname = rustix::system::uname();
    let release = uname.release().to_string_lossy();
    put(
        host,
        "uname.json",
        &json!({ "release": release, "machine": uname.machine().to_string_lossy() }),
    );
    put(host, "clock.json", &clock());
    put(host, "programs.json", &programs());
    put(host, "nodes.json", &nodes(host));
    match environment(options.process) {
        Ok(variables) => put(host, "env.json", &variables),
        Err(error) => put(host, "env.json", &failed(&error)),
    }
    let home = std::env::var_os("HOME");
    if let Some(text) = home.and_then(|home| settings_of_nccl(Path::new(&home))) {
        host.insert("home/.nccl.conf", text);
    }
    let mut dcb = Dcb::open();
    let ethtool = Ethtool::open();
    for name in interfaces(host, options) {
        if let Ok(ethtool) = &ethtool {
            let pause = ethtool
                .pause(&name)
                .map(|(autonegotiate, rx, tx)| json!({ "autonegotiate": autonegotiate, "rx": rx, "tx": tx }));
            put(
                host,
                &format!("ethtool-pause.{name}.json"),
                &pause.unwrap_or_else(|error| failed(&error)),
            );
            let fec = ethtool
                .active_fec(&name)
                .map(|active| json!({ "active": active }));
            put(
                host,
                &format!("ethtool-fec.{name}.json"),
                &fec.unwrap_or_else(|error| failed(&error)),
            );
        }
        if let Some(most) = most_speed(&name) {
            put(
                host,
                &format!("ethtool-link.{name}.json"),
                &json!({ "max_speed_mbit": most / 1_000_000 }),
            );
        }
        if let Ok(dcb) = &mut dcb {
            match dcb.settings(&name) {
                Ok(settings) => {
                    for (question, value) in settings {
                        put(host, &format!("{question}.{name}.json"), &value);
                    }
                }
                Err(error) => put(host, &format!("dcb-pfc.{name}.json"), &failed(&error)),
            }
        }
    }
    let mut statistics = Host::new("", false);
    add_statistics(host, &mut statistics, options);
    let texts: Vec<(String, Vec<u8>)> = statistics
        .files()
        .map(|(path, bytes)| (path.to_owned(), bytes.to_vec()))
        .collect();
    for (path, bytes) in texts {
        host.insert(&path, bytes);
    }
}

/// Interfaces of RDMA devices, and those of the options.
fn interfaces(host: &Host, options: &SnapshotOptions<'_>) -> BTreeSet<String> {
    let mut names: BTreeSet<String> = netdev_names(host).into_iter().collect();
    names.extend(options.interfaces.iter().cloned());
    names
}

/// Adds the statistics of the interfaces of `host`, as `ethtool -S` prints them.
pub(super) fn add_statistics(host: &Host, into: &mut Host, options: &SnapshotOptions<'_>) {
    let Ok(mut ethtool) = Ethtool::open() else { return };
    for name in interfaces(host, options) {
        let Ok(statistics) = ethtool.statistics(&name) else {
            continue;
        };
        let mut text = "NIC statistics:\n".to_owned();
        for (name, value) in statistics {
            // Writing to a string does not fail.
            let _ = writeln!(text, "     {name}: {value}");
        }
        into.insert(&format!("commands/ethtool_-S_{name}.txt"), text.into_bytes());
    }
}

/// NCCL's settings of a user. A FIFO or a device of this name is not waited for.
fn settings_of_nccl(home: &Path) -> Option<Vec<u8>> {
    let path = home.join(".nccl.conf");
    let below = path.strip_prefix("/").ok()?.to_str()?;
    FileTree::running().ok()?.read(below, MAX_SETTINGS_BYTES).ok()
}

fn clock() -> Value {
    match discipline::read() {
        Ok(clock) => json!({
            "synchronised": clock.is_synchronised,
            "estimated_error_us": clock.estimated_error_us,
        }),
        Err(error) => failed(&error),
    }
}

/// The programs of interest that run.
fn programs() -> Value {
    let mut found = BTreeSet::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = entry.file_name();
        if !name.as_encoded_bytes().iter().all(u8::is_ascii_digit) {
            continue;
        }
        let comm = std::fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
        if let Some(program) = PROGRAMS.iter().find(|program| **program == comm.trim()) {
            found.insert(*program);
        }
    }
    json!(found)
}

/// The result of opening each node of RDMA for reading and writing.
fn nodes(host: &Host) -> Value {
    let mut all = Map::new();
    for name in host.names("dev/infiniband") {
        if !(name.starts_with("uverbs") || name == "rdma_cm") {
            continue;
        }
        let path = format!("dev/infiniband/{name}");
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened = openat(CWD, format!("/{path}"), flags, Mode::empty());
        let answer = match opened {
            Ok(_) => "ok".to_owned(),
            Err(errno) => {
                let text = io::Error::from(errno).to_string();
                text.split(" (os error").next().unwrap_or(&text).to_owned()
            }
        };
        all.insert(path, answer.into());
    }
    Value::Object(all)
}

/// Variables of interest of this process, or of another one.
fn environment(process: Option<u32>) -> io::Result<Value> {
    let Some(process) = process else {
        let all = std::env::vars_os().filter_map(|(name, value)| {
            let name = name.into_string().ok()?;
            Some((name, value.to_string_lossy().into_owned()))
        });
        return Ok(interesting(all));
    };
    // A process may make its environment as long as its memory (prctl(2), PR_SET_MM).
    let bytes =
        FileTree::running()?.read(&format!("proc/{process}/environ"), MAX_ENVIRONMENT_BYTES as u64)?;
    Ok(variables(&bytes))
}

/// The variables of interest of an environment (/proc/PID/environ), as a JSON text.
pub fn environment_json(bytes: &[u8]) -> String {
    variables(bytes).to_string()
}

/// Variables of interest in a list that ends each with a zero byte.
fn variables(bytes: &[u8]) -> Value {
    let bytes = &bytes[..bytes.len().min(MAX_ENVIRONMENT_BYTES)];
    let all = bytes.split(|byte| *byte == 0).filter_map(|entry| {
        let entry = String::from_utf8_lossy(entry).into_owned();
        let (name, value) = entry.split_once('=')?;
        Some((name.to_owned(), value.to_owned()))
    });
    interesting(all)
}

fn interesting(all: impl Iterator<Item = (String, String)>) -> Value {
    let wanted = all.filter(|(name, _)| VARIABLES.iter().any(|start| name.starts_with(start)));
    let map: Map<String, Value> = wanted.map(|(name, value)| (name, value.into())).collect();
    Value::Object(map)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_nccl_are_a_small_regular_file() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join(".nccl.conf");
        assert_eq!(settings_of_nccl(home.path()), None);
        std::fs::write(&path, "NCCL_DEBUG=INFO\n").unwrap();
        assert_eq!(settings_of_nccl(home.path()).unwrap(), b"NCCL_DEBUG=INFO\n");
        std::fs::write(&path, "#".repeat(1 << 20)).unwrap();
        assert_eq!(settings_of_nccl(home.path()).unwrap().len(), 64 << 10);
        // Nobody writes into it: whoever opens it to read waits for ever.
        std::fs::remove_file(&path).unwrap();
        rustix::fs::mknodat(CWD, &path, rustix::fs::FileType::Fifo, Mode::RUSR, 0).unwrap();
        assert_eq!(settings_of_nccl(home.path()), None);
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
        assert_eq!(settings_of_nccl(home.path()), None);
        let own = environment(Some(std::process::id())).unwrap();
        assert!(own.is_object(), "{own}");
    }

    #[test]
    fn environments_are_taken_without_their_secrets() {
        let bytes = b"HOME=/root\0NCCL_IB_HCA==mlx5_0:1\0AWS_SECRET=x\0PCIDEVICE_NVIDIA_COM_SRIOV-RDMA-VF=0000:a3:00.3\0odd";
        let all = variables(bytes);
        assert_eq!(all["NCCL_IB_HCA"], "=mlx5_0:1");
        assert_eq!(all["PCIDEVICE_NVIDIA_COM_SRIOV-RDMA-VF"], "0000:a3:00.3");
        assert_eq!(all.as_object().unwrap().len(), 2);
    }
}
