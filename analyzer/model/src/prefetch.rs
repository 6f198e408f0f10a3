//! Memory is prefetched before its use.
//!
//! Once flows outgrow the caches, most of the analysis' time is waiting for memory. What many packets, rows or flows will need is
//! prefetched for all of them, before the first one's turn, so that the waits overlap. An instruction that asks, unlike one that
//! reads, does not hold up those after it.

/// Prefetches the cache line at the begin of `of`; where the processor has no way to be asked, nothing happens.
#[inline]
pub fn prefetch<T>(of: &T) {
    #[cfg(target_arch = "x86_64")]
    #[expect(unsafe_code, reason = "the only way to ask")]
    // SAFETY: any address may be asked for; nothing that the program can see is read or written.
    unsafe {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(core::ptr::from_ref(of).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = of;
}
