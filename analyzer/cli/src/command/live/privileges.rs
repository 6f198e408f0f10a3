//! What the kernel has to allow for a capture, and giving it up once devices are open.

use anyhow::{Context, bail};
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities, set_no_new_privs};

/// Says what is missing to capture, and how it is given.
///
/// # Errors
/// When CAP_NET_RAW is missing.
pub(crate) fn may_capture() -> anyhow::Result<()> {
    let held = capabilities(None).context("the system does not say which capabilities there are")?;
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

/// Gives up every capability, for this thread and those that it will start. Who writes files as root may still write into the folders
/// of others, as root may; what is `needed` at the end stays, too.
///
/// # Errors
/// When the system does not take them back.
pub(crate) fn drop_all(writes_files: bool, needed: CapabilitySet) -> anyhow::Result<()> {
    let told = "capabilities cannot be given up";
    let held = capabilities(None).context(told)?;
    let mut kept = held.permitted & needed;
    if writes_files && rustix::process::geteuid().is_root() {
        kept |= held.permitted & CapabilitySet::DAC_OVERRIDE;
    }
    set_no_new_privs(true).context(told)?;
    set_capabilities(
        None,
        CapabilitySets {
            effective: kept,
            permitted: kept,
            inheritable: CapabilitySet::empty(),
        },
    )
    .context(told)
}
