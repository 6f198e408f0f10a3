//! Least privilege: a run first uses the rights that it needs, then gives them up for good, so that a
//! hostile packet finds nothing to take. `docs/internals/rights.md` has the order of a start, and the table of
//! remaining rights in each mode.

#[cfg(debug_assertions)]
mod attempts;
#[cfg(feature = "live")]
mod files;
#[cfg(feature = "live")]
mod rights;
mod syscalls;
#[cfg(feature = "live")]
mod user;

#[cfg(debug_assertions)]
pub(crate) use attempts::report as attempt;
#[cfg(feature = "live")]
pub(crate) use files::confine;
#[cfg(feature = "live")]
pub(crate) use rights::{give_up, lower, may_capture, raise};
pub(crate) use syscalls::{Needs, filter};
#[cfg(feature = "live")]
pub(crate) use user::{Identity, Outputs};

/// Restricts a process that connects to stores: no programs, no files but those below `read` and those that resolve names, no connections but to
/// `ports`, and none that others open. A kernel that cannot do this does less, which is said.
///
/// # Errors
/// The kernel has Landlock, and refuses.
#[cfg(feature = "object-store")]
pub(crate) fn confine_to_network(read: &[std::path::PathBuf], ports: &[u16]) -> anyhow::Result<()> {
    use anyhow::Context as _;

    use crate::output::messages;

    const ABOUT: &str = "rights";
    if !files::confine_to_ports(read, ports).context("connections cannot be confined")? {
        messages::warn(
            ABOUT,
            "this kernel has no Landlock: the process that connects to stores can open every file that its user may",
        );
    }
    let needs = Needs {
        connect: true,
        ..Needs::default()
    };
    if let Err(error) = filter(needs) {
        messages::warn(
            ABOUT,
            &format!("this kernel has no filter for system calls (seccomp): {error}"),
        );
    }
    Ok(())
}

/// Restricts a server that reads `folder` by processes of this program: nothing else to read but what they need, nothing to write, no other
/// program, no socket. False where the kernel has no Landlock.
///
/// # Errors
/// The kernel has Landlock, and refuses.
#[cfg_attr(
    not(feature = "live"),
    expect(
        clippy::unnecessary_wraps,
        reason = "Landlock, which can fail, is in builds with `live`"
    )
)]
pub(crate) fn confine_to_folder(folder: &std::path::Path) -> anyhow::Result<bool> {
    #[cfg(feature = "live")]
    let is_confined = {
        use anyhow::Context as _;
        files::confine_to_own_program(folder).context("the server cannot be confined")?
    };
    // Landlock is in builds with live runs.
    #[cfg(not(feature = "live"))]
    let is_confined = {
        let _ = folder;
        false
    };
    // As below, nothing is said of a kernel without such filters.
    let _ = syscalls::no_sockets();
    Ok(is_confined)
}

/// Restricts a process that starts DuckDB: only the folder for temporary files to write into, and no socket. False where the kernel has no
/// Landlock.
///
/// # Errors
/// The kernel has Landlock, and refuses.
#[cfg_attr(
    not(feature = "live"),
    expect(
        clippy::unnecessary_wraps,
        reason = "Landlock, which can fail, is in builds with `live`"
    )
)]
pub(crate) fn confine_queries() -> anyhow::Result<bool> {
    #[cfg(feature = "live")]
    let is_confined = {
        use anyhow::Context as _;
        files::confine_writes(&std::env::temp_dir()).context("questions cannot be confined")?
    };
    #[cfg(not(feature = "live"))]
    let is_confined = false;
    let _ = syscalls::no_sockets();
    Ok(is_confined)
}

/// Restricts a run that only reads files and writes results: no new programs, no sockets, no rights that it does not have already.
/// It takes about half a millisecond. Where the kernel has no such filters, the run has no more rights than its user.
pub(crate) fn offline() {
    // Nothing is said then: these runs are as safe as any other program of that user.
    let _ = filter(Needs::default());
    #[cfg(debug_assertions)]
    attempt();
}
