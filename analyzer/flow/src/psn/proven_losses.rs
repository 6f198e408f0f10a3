//! Losses that the packets prove: a NAK names what was missing, and the sender repeats it, in a flow of which no packet was ever late.

use roce_model::Time;

use crate::psn::holes::MAY_STILL_ARRIVE;

/// Proven losses of one flow, in PSNs.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ProvenLosses {
    psns: u64,
    /// The latest ones of these, in [`MAY_STILL_ARRIVE`] from this time on.
    latest: u64,
    since: Time,
}

impl ProvenLosses {
    /// Adds PSNs that were lost, as the retransmission at `time` proves.
    pub(super) fn add(&mut self, psns: u64, time: Time) {
        self.psns += psns;
        if self.latest > 0 && time.since(self.since) < MAY_STILL_ARRIVE {
            self.latest += psns;
        } else {
            (self.since, self.latest) = (time, psns);
        }
    }

    /// The capture ends at `end`: what was lost just before may still come late.
    pub(super) fn doubt_latest(&mut self, end: Time) {
        if end.since(self.since) < MAY_STILL_ARRIVE {
            self.psns -= self.latest.min(self.psns);
        }
        self.latest = 0;
    }

    /// All of them.
    pub(super) fn psns(&self) -> u64 {
        self.psns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_leaves_the_latest_in_doubt() {
        let mut proven = ProvenLosses::default();
        proven.add(3, Time(1_000));
        proven.add(2, Time(MAY_STILL_ARRIVE.0 + 1_000));
        proven.add(1, Time(MAY_STILL_ARRIVE.0 + 2_000));
        assert_eq!(proven.psns(), 6);
        let mut later = proven;
        later.doubt_latest(Time(2 * MAY_STILL_ARRIVE.0 + 1_000));
        assert_eq!(later.psns(), 6, "nothing comes so late");
        proven.doubt_latest(Time(MAY_STILL_ARRIVE.0 + 3_000));
        assert_eq!(proven.psns(), 3);
    }
}
