//! Files that a run may open once it captures, by Landlock: its output, and the system's files about
//! devices. Files that are open stay open.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreated,
    RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};

/// The newest version of Landlock whose rights are taken away; of an older kernel, those that it knows.
const VERSION: ABI = ABI::V6;

/// Files and folders that are read while a run goes on: counters and addresses of devices, and what allocators and thread pools look
/// up. Others' processes are not among them.
const READ: [&str; 9] = [
    "/sys/class/infiniband",
    "/sys/class/net",
    "/sys/devices",
    "/sys/fs/cgroup",
    "/proc/self",
    "/proc/meminfo",
    "/proc/cpuinfo",
    "/proc/sys/vm",
    "/proc/sys/kernel",
];

/// Rules that take all rights away but those to read these files and folders. A path that is not there is passed over.
fn reading(always: &[&str], read: &[PathBuf]) -> Result<RulesetCreated, RulesetError> {
    let mut rules = Ruleset::default()
        .handle_access(AccessFs::from_all(VERSION))?
        .handle_access(AccessNet::from_all(VERSION))?
        .scope(Scope::from_all(VERSION))?
        .create()?;
    for path in always
        .iter()
        .map(Path::new)
        .chain(read.iter().map(PathBuf::as_path))
    {
        if let Ok(opened) = PathFd::new(path) {
            let allowed = if path.is_dir() {
                AccessFs::ReadFile | AccessFs::ReadDir
            } else {
                AccessFs::ReadFile.into()
            };
            rules = rules.add_rule(PathBeneath::new(opened, allowed))?;
        }
    }
    Ok(rules)
}

/// Leaves the calling thread, and those that it will start, these folders to write into, and the folders `read` to read. No TCP
/// connection can be made, and no process outside be signalled. False where the kernel has no Landlock.
///
/// # Errors
/// The kernel has it and refuses.
pub(crate) fn confine(folders: &[PathBuf], read: &[PathBuf]) -> Result<bool, RulesetError> {
    let mut rules = reading(&READ, read)?;
    // No programs, devices, sockets or pipes: files and folders alone.
    let output = AccessFs::ReadFile
        | AccessFs::ReadDir
        | AccessFs::WriteFile
        | AccessFs::Truncate
        | AccessFs::MakeReg
        | AccessFs::MakeDir
        | AccessFs::RemoveFile
        | AccessFs::RemoveDir
        | AccessFs::Refer;
    for folder in folders {
        if let Ok(opened) = PathFd::new(folder) {
            rules = rules.add_rule(PathBeneath::new(opened, output))?;
        }
    }
    Ok(rules.restrict_self()?.ruleset != RulesetStatus::NotEnforced)
}

/// Files and folders of a process that connects to stores: names and addresses, and what allocators and thread pools look up. Services that
/// know about networks replace files in them, so these are folders.
#[cfg(feature = "object-store")]
const NETWORK: [&str; 8] = [
    "/etc",
    "/run/systemd/resolve",
    "/run/NetworkManager",
    "/sys/fs/cgroup",
    "/proc/self",
    "/proc/meminfo",
    "/proc/cpuinfo",
    "/proc/sys",
];

/// Leaves the calling thread, and those that it will start, connections to these ports, and files that say how; nothing to write. False where
/// the kernel has no Landlock.
///
/// # Errors
/// The kernel has it and refuses.
#[cfg(feature = "object-store")]
pub(super) fn confine_to_ports(read: &[PathBuf], ports: &[u16]) -> Result<bool, RulesetError> {
    let mut rules = reading(&NETWORK, read)?;
    for port in ports {
        rules = rules.add_rule(landlock::NetPort::new(*port, AccessNet::ConnectTcp))?;
    }
    Ok(rules.restrict_self()?.ruleset != RulesetStatus::NotEnforced)
}

/// Files that processes of this program need beside those of [`READ`]: its libraries, and rules of time zones.
const LIBRARIES: [&str; 9] = [
    "/lib",
    "/lib64",
    "/usr/lib",
    "/usr/lib64",
    "/usr/local/lib",
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/usr/share/zoneinfo",
    "/dev/null",
];

/// Loaders of the C library, which the system starts for a program with libraries (ELF, `PT_INTERP`).
const LOADERS: [&str; 4] = [
    "/lib64/ld-linux-x86-64.so.2",
    "/lib/ld-linux-aarch64.so.1",
    "/lib/ld-musl-x86_64.so.1",
    "/lib/ld-musl-aarch64.so.1",
];

/// Leaves the calling thread, and all that it will start, `folder` to read, and this program itself to start: nothing to write, no other
/// program, no TCP connection. False where the kernel has no Landlock.
///
/// # Errors
/// The kernel has it and refuses.
pub(super) fn confine_to_own_program(folder: &Path) -> Result<bool, RulesetError> {
    let mut always = READ.to_vec();
    always.extend(LIBRARIES);
    let mut rules = reading(&always, &[folder.to_owned()])?;
    for program in std::iter::once("/proc/self/exe").chain(LOADERS) {
        if let Ok(opened) = PathFd::new(program) {
            rules = rules.add_rule(PathBeneath::new(opened, AccessFs::ReadFile | AccessFs::Execute))?;
        }
    }
    Ok(rules.restrict_self()?.ruleset != RulesetStatus::NotEnforced)
}

/// Leaves the calling thread, and all that it will start, every file to read and every program to start, but only `folder` to write into,
/// and no TCP connection. False where the kernel has no Landlock.
///
/// # Errors
/// The kernel has it and refuses.
pub(super) fn confine_writes(folder: &Path) -> Result<bool, RulesetError> {
    let mut rules = reading(&[], &[])?;
    let written = AccessFs::from_all(VERSION);
    for (path, allowed) in [
        (Path::new("/"), AccessFs::from_read(VERSION)),
        (folder, written),
        (Path::new("/dev/null"), AccessFs::ReadFile | AccessFs::WriteFile),
    ] {
        if let Ok(opened) = PathFd::new(path) {
            rules = rules.add_rule(PathBeneath::new(opened, allowed))?;
        }
    }
    Ok(rules.restrict_self()?.ruleset != RulesetStatus::NotEnforced)
}
