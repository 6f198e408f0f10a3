//! `roce-analyze`: everything is in the library.

use std::process::ExitCode;

/// The state of flows is looked up at random: there the C library's allocator costs more, and small pages still more.
#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Options of jemalloc: it requests huge pages, where the system gives them on request, and unmaps
/// memory that is no longer used.
#[cfg(feature = "jemalloc")]
#[expect(unsafe_code, reason = "jemalloc looks for its options behind this name")]
// SAFETY: the name is jemalloc's own for a pointer to text that ends with a zero byte, which this is.
#[unsafe(export_name = "_rjem_malloc_conf")]
pub static ALLOCATOR_OPTIONS: &[u8; 24] = b"thp:always,retain:false\0";

/// A function that runs before Rust's runtime does.
#[cfg(target_os = "linux")]
#[expect(
    unsafe_code,
    reason = "the runtime opens what is closed, so that nothing behind it can see that"
)]
#[used]
// SAFETY: the system's loader calls the functions in this section one after the other. This one asks the kernel, and sets a flag.
#[unsafe(link_section = ".init_array")]
static BEFORE_RUNTIME: extern "C" fn() = roce_analyze::before_runtime;

fn main() -> ExitCode {
    roce_analyze::main()
}
