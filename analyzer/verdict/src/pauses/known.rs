//! Everything that roots of pauses are concluded from.

use std::collections::BTreeMap;

use roce_model::RunSummary;

use super::flows::Flows;
use super::link_ends::PauseSenders;
use super::net::Net;
use super::readings::{Key, Quantity, Readings};
use super::receivers::Receivers;
use super::series::Series;
use crate::directory::Directory;
use crate::episodes::Episode;
use crate::settings::Settings;

/// Everything that roots are concluded from.
pub(super) struct KnownFacts<'a> {
    pub(super) settings: &'a Settings,
    pub(super) run: &'a RunSummary,
    pub(super) directory: &'a Directory,
    pub(super) episodes: &'a [Episode],
    pub(super) links: PauseSenders<'a>,
    pub(super) receivers: &'a Receivers,
    pub(super) readings: &'a Readings,
    pub(super) flows: &'a Flows,
    pub(super) net: &'a Net,
    /// All series by quantity, collected once.
    pub(super) series: BTreeMap<Quantity, Vec<(Key, &'a Series)>>,
}

impl<'a> KnownFacts<'a> {
    pub(super) fn by_quantity(&self, quantity: Quantity) -> &[(Key, &'a Series)] {
        self.series.get(&quantity).map_or(&[], Vec::as_slice)
    }
}
