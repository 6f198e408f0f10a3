//! Runs of retransmissions: which PSNs they cover.

/// PSNs ahead of the begin of a run that it may cover.
const COVERED: u32 = 1 << 16;
const PSNS: u32 = 1 << 24;

/// True if `psn` lies in a run of retransmissions from `first` on.
pub(crate) fn covers(first: u32, psn: u32) -> bool {
    (psn.wrapping_sub(first) % PSNS) < COVERED
}
