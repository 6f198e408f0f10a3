//! The kernel programs: a classifier that counts RoCE packets, and probes that tell what happens to queue pairs.
//!
//! `cargo xtask build-ebpf` builds them; the object is committed, so that nobody else needs the
//! toolchain. `roce-abi` has the records that they exchange with the user's side. `roce-wire` decodes
//! packets here as there.

#![no_std]
#![no_main]

mod connection;
mod devx;
mod event;
mod kernel;
mod queue_pair;
mod traffic;
mod trouble;

/// The kernel lends its GPL-only helpers (reading its memory among them) to programs under this name alone.
#[unsafe(link_section = "license")]
#[unsafe(no_mangle)]
static LICENSE: [u8; 13] = *b"Dual MIT/GPL\0";

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // Nothing here panics: the verifier would refuse the loop.
    loop {}
}
