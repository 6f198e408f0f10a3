//! Names of the taps of a run of MRC.

use crate::mrc::run::MrcRun;
use crate::record::observer;

/// Names of the taps that are bits of a word.
pub(super) fn tap_names(run: &MrcRun<'_>, bits: u64) -> Vec<String> {
    let taps = run.scenario.tap.iter().enumerate();
    taps.filter(|(place, _)| bits >> place & 1 == 1)
        .map(|(_, table)| observer::tap_name(table).to_owned())
        .collect()
}
