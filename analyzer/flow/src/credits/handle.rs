//! Names of flows among those of WRITEs.

/// Handle of a flow of WRITEs.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct WriteHandle(pub(super) u32);

impl WriteHandle {
    /// A flow that is not followed.
    pub(super) const IGNORED: Self = Self(u32::MAX);

    pub(super) fn index(self) -> Option<usize> {
        (self != Self::IGNORED).then_some(self.0.checked_sub(1)? as usize)
    }
}
