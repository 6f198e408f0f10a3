//! Capabilities: low while arguments and files are parsed, raised to open devices, and given up for good.

use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rustix::io::Errno;
use rustix::process::geteuid;
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_keep_capabilities, set_no_new_privs,
    set_thread_groups, set_thread_res_gid, set_thread_res_uid,
};

use super::user::Identity;

const HELD: &str = "the system does not say which capabilities there are";
/// A thread that was joined has ended after this time, on slow machines, too.
const MAX_ENDING: Duration = Duration::from_secs(5);
const GIVEN_UP: &str = "rights cannot be given up";

/// No capability is in effect from here on, until [`raise`].
///
/// # Errors
/// The system refuses.
pub(crate) fn lower() -> anyhow::Result<()> {
    in_effect(|_| CapabilitySet::empty())
}

/// All capabilities that were there at the start are in effect again.
///
/// # Errors
/// The system refuses.
pub(crate) fn raise() -> anyhow::Result<()> {
    in_effect(|sets| sets.permitted)
}

fn in_effect(which: impl FnOnce(&CapabilitySets) -> CapabilitySet) -> anyhow::Result<()> {
    let mut sets = capabilities(None).context(HELD)?;
    sets.effective = which(&sets);
    set_capabilities(None, sets).context("capabilities cannot be changed")
}

/// Says what is missing to capture, and how it is given.
///
/// # Errors
/// When CAP_NET_RAW is missing.
pub(crate) fn may_capture() -> anyhow::Result<()> {
    let held = capabilities(None).context(HELD)?;
    if held.effective.contains(CapabilitySet::NET_RAW) {
        return Ok(());
    }
    let program =
        std::env::current_exe().map_or_else(|_| "roce-analyze".to_owned(), |path| path.display().to_string());
    bail!(
        "CAP_NET_RAW is missing: without it the kernel gives no packets\nhint: start it as root, or once: \
sudo setcap cap_net_raw+ep {program}"
    )
}

/// Goes on as `identity`, with the capabilities that are `needed` at the end and no others, for this thread and those that it will start.
/// No program that it might start gets any back.
///
/// # Errors
/// When the system does not take them back, or threads run that would keep theirs.
pub(crate) fn give_up(identity: Option<Identity>, needed: CapabilitySet) -> anyhow::Result<()> {
    if !is_alone() {
        bail!("{GIVEN_UP}: threads are running already");
    }
    let held = capabilities(None).context(HELD)?;
    let kept = held.permitted & needed;
    set_no_new_privs(true).context(GIVEN_UP)?;
    if held.effective.contains(CapabilitySet::SETPCAP) {
        empty_bounding_set().context(GIVEN_UP)?;
    }
    // Kernels before 4.3 have none.
    let _ = clear_ambient_capability_set();
    if let Some(Identity { uid, gid }) = identity.filter(|_| geteuid().is_root()) {
        set_keep_capabilities(true).context(GIVEN_UP)?;
        set_thread_groups(&[]).context(GIVEN_UP)?;
        set_thread_res_gid(gid, gid, gid).context(GIVEN_UP)?;
        set_thread_res_uid(uid, uid, uid).context(GIVEN_UP)?;
        set_keep_capabilities(false).context(GIVEN_UP)?;
    }
    let sets = CapabilitySets {
        effective: kept,
        permitted: kept,
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, sets).context(GIVEN_UP)
}

/// True if this is the only thread. One that was joined is listed until the kernel has ended it.
fn is_alone() -> bool {
    let begun = Instant::now();
    while std::fs::read_dir("/proc/self/task").is_ok_and(|tasks| tasks.count() > 1) {
        if begun.elapsed() > MAX_ENDING {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    true
}

/// One after the other, up to the last one that the kernel knows.
fn empty_bounding_set() -> rustix::io::Result<()> {
    for number in 0..64 {
        match remove_capability_from_bounding_set(CapabilitySet::from_bits_retain(1 << number)) {
            Ok(()) => {}
            Err(Errno::INVAL) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
