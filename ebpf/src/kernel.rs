//! Reading structures of the kernel, and of processes, at the offsets that the probe found out.

use core::ptr;

use aya_ebpf::helpers::{
    bpf_probe_read_kernel, bpf_probe_read_kernel_str_bytes, bpf_probe_read_user,
    bpf_probe_read_user_str_bytes,
};
use roce_abi::{ABSENT, HostKind, Layout};

use crate::event;

/// Offsets of the fields in the kernel, set before loading.
#[unsafe(no_mangle)]
static LAYOUT: Layout = Layout::UNKNOWN;

/// Offsets of the fields in libibverbs, whose structures are part of its ABI (infiniband/verbs.h); set
/// before loading.
#[unsafe(no_mangle)]
static USER_LAYOUT: Layout = Layout::UNKNOWN;

/// Whose memory is read.
pub(crate) trait Memory {
    /// The offset of a field; `None` when there is no such field.
    fn offset(of: impl FnOnce(&Layout) -> *const u32) -> Option<usize>;
    /// The value at an address.
    fn read<T>(address: u64) -> Option<T>;
    /// The text at an address, ended by a zero; without one `to` stays as it is.
    fn read_text(address: u64, to: &mut [u8]);
    /// The device of a queue pair.
    fn device(queue_pair: u64) -> Option<u64>;
    /// Sends a record of the fields read from this memory.
    fn send<T: 'static>(kind: HostKind, fill: impl FnOnce(&mut T)) -> Option<()>;
}

pub(crate) struct Kernel;
pub(crate) struct User;

impl Memory for Kernel {
    #[inline(always)]
    fn offset(of: impl FnOnce(&Layout) -> *const u32) -> Option<usize> {
        known(of(&LAYOUT))
    }

    #[inline(always)]
    fn read<T>(address: u64) -> Option<T> {
        // SAFETY: the helper checks the address; every `T` here is an integer or an array of bytes.
        unsafe { bpf_probe_read_kernel(address as *const T).ok() }
    }

    #[inline(always)]
    fn read_text(address: u64, to: &mut [u8]) {
        // SAFETY: the helper checks the address.
        let _ = unsafe { bpf_probe_read_kernel_str_bytes(address as *const u8, to) };
    }

    #[inline(always)]
    fn device(queue_pair: u64) -> Option<u64> {
        field!(Kernel, queue_pair, qp_device)
    }

    #[inline(always)]
    fn send<T: 'static>(kind: HostKind, fill: impl FnOnce(&mut T)) -> Option<()> {
        event::send(kind, fill)
    }
}

impl Memory for User {
    #[inline(always)]
    fn offset(of: impl FnOnce(&Layout) -> *const u32) -> Option<usize> {
        known(of(&USER_LAYOUT))
    }

    #[inline(always)]
    fn read<T>(address: u64) -> Option<T> {
        // SAFETY: the helper checks the address; every `T` here is an integer or an array of bytes.
        unsafe { bpf_probe_read_user(address as *const T).ok() }
    }

    #[inline(always)]
    fn read_text(address: u64, to: &mut [u8]) {
        // SAFETY: the helper checks the address.
        let _ = unsafe { bpf_probe_read_user_str_bytes(address as *const u8, to) };
    }

    /// A queue pair of libibverbs knows its context, whose first field is the device.
    #[inline(always)]
    fn device(queue_pair: u64) -> Option<u64> {
        let context: u64 = field!(User, queue_pair, qp_device)?;
        User::read(context)
    }

    /// The process can have written there whatever it likes.
    #[inline(always)]
    fn send<T: 'static>(kind: HostKind, fill: impl FnOnce(&mut T)) -> Option<()> {
        event::send_claim(kind, fill)
    }
}

#[inline(always)]
fn known(offset: *const u32) -> Option<usize> {
    // SAFETY: a plain word that was set before loading; the compiler must not take its value for granted.
    let offset = unsafe { ptr::read_volatile(offset) };
    (offset != ABSENT).then_some(offset as usize)
}

/// The address of a named field of [`Layout`], in the structure at an address.
macro_rules! address {
    ($memory:ty, $structure:expr, $field:ident) => {
        <$memory as $crate::kernel::Memory>::offset(|layout| &raw const layout.$field)
            .map(|offset| $structure + offset as u64)
    };
}

/// The value of a named field of [`Layout`], in the structure at an address; `None` when it cannot be had.
macro_rules! field {
    ($memory:ty, $structure:expr, $field:ident) => {
        $crate::kernel::address!($memory, $structure, $field)
            .and_then(|address| <$memory as $crate::kernel::Memory>::read(address))
    };
}

pub(crate) use {address, field};
