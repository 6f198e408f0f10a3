//! Builds without live captures replay nothing: there is no player.

use roce_capture::Merge;
use roce_model::{Sink, SinkError};
use roce_pipeline::{Done, MergedInputs, Plan};
use roce_verdict::Verdicts;

use crate::options::settings::RunSettings;

/// There is none.
pub(crate) struct Player {
    none: std::convert::Infallible,
    pub(crate) has_span: bool,
}

impl Player {
    pub(crate) fn run(
        &self,
        _: Merge,
        _: &Plan,
        _: Vec<&mut dyn Sink>,
    ) -> Result<(Done<MergedInputs>, Verdicts), SinkError> {
        match self.none {}
    }

    pub(crate) fn text(&self, _: &RunSettings) -> anyhow::Result<Vec<Box<dyn Sink>>> {
        match self.none {}
    }
}
