//! Read permissions of written files and folders.

use rustix::fs::Mode;

/// Read permissions of what is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Access {
    /// Everybody whom the process's umask allows: results of captures.
    #[default]
    Umask,
    /// The owner alone: packets, and results of live runs, which name processes.
    Private,
}

impl Access {
    pub(crate) const fn file(self) -> Mode {
        Mode::from_raw_mode(match self {
            Self::Umask => 0o666,
            Self::Private => 0o600,
        })
    }

    pub(crate) const fn folder(self) -> Mode {
        Mode::from_raw_mode(match self {
            Self::Umask => 0o777,
            Self::Private => 0o700,
        })
    }
}
