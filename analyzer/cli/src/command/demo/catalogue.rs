//! The demos that there are: each a scenario of `roce-sim` and a lesson of the same name in `lessons`.

use anyhow::Context;

/// A demo: a scenario and a lesson of the same name.
pub(crate) struct CatalogueEntry {
    /// Name on the command line.
    pub(crate) name: &'static str,
    /// Title of one line.
    pub(crate) title: &'static str,
    /// In TOML.
    pub(crate) scenario: &'static str,
    /// In TOML.
    pub(crate) lesson: &'static str,
}

/// The texts, by the name of their scenario.
pub(super) const LESSONS: &[(&str, &str)] = &[
    ("clean", include_str!("lessons/clean.toml")),
    ("incast", include_str!("lessons/incast.toml")),
    ("no-ecn", include_str!("lessons/no-ecn.toml")),
    ("no-cnp", include_str!("lessons/no-cnp.toml")),
    ("cnp-ignored", include_str!("lessons/cnp-ignored.toml")),
    ("shared-port", include_str!("lessons/shared-port.toml")),
    ("wrong-dscp", include_str!("lessons/wrong-dscp.toml")),
    ("lossy", include_str!("lessons/lossy.toml")),
    ("rnr", include_str!("lessons/rnr.toml")),
    ("pause-storm", include_str!("lessons/pause-storm.toml")),
    ("pause-origin", include_str!("lessons/pause-origin.toml")),
    ("capture-loss", include_str!("lessons/capture-loss.toml")),
    ("span-doubled", include_str!("lessons/span-doubled.toml")),
    ("sprayed", include_str!("lessons/sprayed.toml")),
    ("ecmp-collision", include_str!("lessons/ecmp-collision.toml")),
    ("training", include_str!("lessons/training.toml")),
    ("late-rank", include_str!("lessons/late-rank.toml")),
    ("slow-link", include_str!("lessons/slow-link.toml")),
    ("mrc-bad-path", include_str!("lessons/mrc-bad-path.toml")),
];

/// All demos, in the order in which they are taught.
pub(crate) fn catalogue() -> anyhow::Result<Vec<CatalogueEntry>> {
    LESSONS
        .iter()
        .map(|(name, lesson)| {
            let scenario = roce_sim::demos::named(name).with_context(|| format!("no scenario {name}"))?;
            Ok(CatalogueEntry {
                name: scenario.name,
                title: scenario.title,
                scenario: scenario.toml,
                lesson,
            })
        })
        .collect()
}
