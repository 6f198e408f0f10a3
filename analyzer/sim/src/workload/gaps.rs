//! Missing PSNs at a receiver that takes packets in any order, and the times from which they count as
//! lost.
//!
//! A gap alone is no loss where packets take several paths. Loss is declared as RFC 9002 (QUIC), section 6.1, does: by time,
//! or by how far later packets have come.

use std::collections::BTreeMap;

use crate::units::Picos;

/// Limits at which a missing PSN counts as lost. With neither only a timeout of the sender helps.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Patience {
    /// This time after a later one came.
    pub after: Option<Picos>,
    /// Distance: a PSN has come that is this much higher.
    pub packets: Option<u64>,
}

/// A PSN that later ones have overtaken.
#[derive(Clone, Copy, Debug)]
struct MissingPsn {
    since: Picos,
    named: bool,
}

/// The missing PSNs of one direction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gaps {
    patience: Patience,
    /// After the highest that has come.
    highest: u64,
    missing: BTreeMap<u64, MissingPsn>,
}

impl Gaps {
    pub(crate) fn new(patience: Patience) -> Self {
        Self {
            patience,
            ..Self::default()
        }
    }

    /// After the highest PSN that has come.
    pub(crate) fn highest(&self) -> u64 {
        self.highest
    }

    /// Everything before `seq` should have come by now: what of `seqs` has not is missing.
    pub(crate) fn passed(&mut self, seqs: impl Iterator<Item = u64>, seq: u64, now: Picos) {
        for seq in seqs {
            self.missing.entry(seq).or_insert(MissingPsn {
                since: now,
                named: false,
            });
        }
        self.highest = self.highest.max(seq);
    }

    /// PSNs have come, in any order.
    pub(crate) fn arrived(&mut self, seq: u64, span: u32, now: Picos) {
        let end = seq + u64::from(span);
        self.passed(self.highest..seq, seq, now);
        self.highest = self.highest.max(end);
        for seq in seq..end {
            self.missing.remove(&seq);
        }
    }

    /// Everything before `seq` is done with.
    pub(crate) fn forget(&mut self, seq: u64) {
        self.missing = self.missing.split_off(&seq);
    }

    /// The first missing PSN that counts as lost and has not been named yet; it is named now.
    pub(crate) fn lost(&mut self, now: Picos) -> Option<u64> {
        let highest = self.highest;
        let patience = self.patience;
        let (seq, missing) = self.missing.iter_mut().find(|(_, missing)| !missing.named)?;
        let by_time = patience
            .after
            .is_some_and(|after| missing.since.plus(after) <= now);
        // The highest one that has come is `highest - 1`.
        let by_count = patience.packets.is_some_and(|packets| highest > *seq + packets);
        if !by_time && !by_count {
            return None;
        }
        missing.named = true;
        Some(*seq)
    }

    /// The first missing PSN, if it counts as lost and has not been named yet; it is named now.
    pub(crate) fn lost_first(&mut self, now: Picos) -> Option<u64> {
        if self.missing.first_key_value()?.1.named {
            return None;
        }
        self.lost(now)
    }

    /// Time at which the first missing PSN counts as lost, if it has not been NAKed yet.
    pub(crate) fn due_first(&self) -> Option<Picos> {
        let (_, first) = self.missing.first_key_value()?;
        if first.named { None } else { self.due() }
    }

    /// Time at which the next missing PSN counts as lost.
    pub(crate) fn due(&self) -> Option<Picos> {
        let after = self.patience.after?;
        let next = self.missing.values().find(|missing| !missing.named)?;
        Some(next.since.plus(after))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_is_lost_after_its_time() {
        let mut gaps = Gaps::new(Patience {
            after: Some(Picos(50)),
            packets: None,
        });
        gaps.arrived(0, 1, Picos(1));
        gaps.arrived(2, 1, Picos(10));
        gaps.arrived(4, 1, Picos(20));
        assert_eq!((gaps.due(), gaps.lost(Picos(59))), (Some(Picos(60)), None));
        assert_eq!(gaps.lost(Picos(60)), Some(1));
        assert_eq!((gaps.due(), gaps.lost(Picos(60))), (Some(Picos(70)), None));
        gaps.arrived(3, 1, Picos(65));
        assert_eq!(gaps.lost(Picos(100)), None, "1 has been named, 3 has come");
    }

    #[test]
    fn or_when_later_ones_are_far_enough() {
        let mut gaps = Gaps::new(Patience {
            after: None,
            packets: Some(3),
        });
        gaps.arrived(1, 1, Picos(1));
        gaps.arrived(2, 1, Picos(2));
        assert_eq!(gaps.lost(Picos(9)), None);
        gaps.arrived(3, 1, Picos(3));
        assert_eq!(gaps.lost(Picos(9)), Some(0));
    }
}
