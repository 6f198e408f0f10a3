//! Compares a case class by class.

use crate::case::Case;
use crate::scores::Scores;
use crate::{
    clocks, cnps, counts, ends, episodes, findings, holes, hops, imbalance, lateness, mrc, pairing,
    provenance, reads, retransmissions, roots, times, waits,
};

/// The scores of a case of which a part of the records was analysed: whether healthy traffic is without a warning.
pub(crate) fn compare_healthy(case: &Case) -> Scores {
    let mut scores = Scores::default();
    findings::healthy(case, &mut scores);
    lateness::compare(case, &mut scores);
    scores.drop_empty();
    scores
}

/// All scores of a case.
pub(crate) fn compare(case: &Case) -> Scores {
    let mut scores = Scores::default();
    if case.parsed.is_mrc() {
        mrc::compare(case, &mut scores);
        findings::compare(case, &mut scores);
        findings::healthy(case, &mut scores);
        scores.drop_empty();
        return scores;
    }
    pairing::compare(case, scores.of_class("pairing"));
    holes::classes(case, &mut scores);
    holes::downstream(case, scores.of_class("lost downstream"));
    reads::compare(case, &mut scores);
    hops::compare(case, &mut scores);
    counts::compare(case, &mut scores);
    retransmissions::compare(case, &mut scores);
    waits::compare(case, &mut scores);
    cnps::compare(case, scores.of_class("CNP attribution"));
    episodes::compare(case, scores.of_class("episodes"));
    clocks::compare(case, scores.of_class("clocks"));
    findings::compare(case, &mut scores);
    ends::compare(case, &mut scores);
    times::compare(case, &mut scores);
    roots::compare(case, &mut scores);
    provenance::compare(case, &mut scores);
    imbalance::compare(case, &mut scores);
    lateness::compare(case, &mut scores);
    findings::healthy(case, &mut scores);
    scores.drop_empty();
    scores
}
