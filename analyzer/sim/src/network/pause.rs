//! Pause frames: saying them, obeying them, and the hosts that send them of their own accord.

mod steps;

use crate::network::topology::LINK_CLASS;
use crate::scenario::PauseKindName;
use crate::units::{Picos, Rate};

/// A host whose buffer is emptied slowly.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Drain {
    pub rate: Rate,
    pub xoff: u64,
    pub xon: u64,
    pub level: u64,
    pub since: Picos,
    pub pausing: bool,
}

fn storm_class(kind: PauseKindName, priority: u8) -> u8 {
    match kind {
        PauseKindName::Pfc => priority.min(7),
        PauseKindName::Link => LINK_CLASS,
    }
}
