//! Builds without live captures replay nothing: there is no player.

use roce_model::{Nanos, Sink};
use roce_pipeline::Replay;

use crate::options::settings::RunSettings;

/// There is none.
pub(crate) struct Player {
    none: std::convert::Infallible,
    pub(crate) has_span: bool,
}

impl Player {
    pub(crate) fn pacing(&self, _: Nanos) -> Replay {
        match self.none {}
    }

    pub(crate) fn text(&self, _: &RunSettings) -> anyhow::Result<Vec<Box<dyn Sink>>> {
        match self.none {}
    }
}
