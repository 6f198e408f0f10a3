//! The state of the system's clock: adjtimex(2) without a change. Needs no rights.

#![expect(unsafe_code, reason = "no safe crate of this project has adjtimex")]

use std::io;

/// The system's clock as the kernel judges it.
pub(crate) struct Discipline {
    /// False: the kernel has not been disciplined (STA_UNSYNC).
    pub(crate) is_synchronised: bool,
    /// Estimated error in microseconds.
    pub(crate) estimated_error_us: i64,
}

/// Reads the state.
pub(crate) fn read() -> io::Result<Discipline> {
    // SAFETY: all bytes of a `timex` may be zero: it has numbers alone, and no mode means that nothing is changed.
    let mut timex: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is that of a `timex` that lives until the call returns.
    let state = unsafe { libc::adjtimex(&raw mut timex) };
    if state < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(Discipline {
        is_synchronised: timex.status & libc::STA_UNSYNC == 0,
        estimated_error_us: timex.esterror,
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_clock_can_be_read_without_rights() {
        let clock = super::read().unwrap();
        assert!(clock.estimated_error_us >= 0);
    }
}
