//! Builds without live captures replay nothing: there is no player.

use roce_capture::Merge;
use roce_model::{Sink, SinkError};
use roce_pipeline::{Done, Plan, Source};
use roce_verdict::Verdicts;

use crate::options::choices::Choices;

/// There is none.
pub(crate) enum Player {}

impl Player {
    pub(crate) fn run(
        &self,
        _: Merge,
        _: &Plan,
        _: Vec<&mut dyn Sink>,
    ) -> Result<(Done<Source>, Verdicts), SinkError> {
        match *self {}
    }

    pub(crate) fn text(&self, _: &Choices) -> anyhow::Result<Vec<Box<dyn Sink>>> {
        match *self {}
    }
}
