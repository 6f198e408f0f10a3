//! Reads or simulates inputs.

use roce_model::SinkError;

use crate::input::{Input, InputSource};
use crate::project;
use crate::simulated;

impl InputSource {
    /// Reads or simulates the input.
    ///
    /// # Errors
    /// When a capture cannot be read, or a scenario cannot be run.
    pub fn load(&self) -> Result<Input, SinkError> {
        let (tapes, arguments) = match self {
            Self::Project(paths) => (project::tapes(paths)?, Vec::new()),
            Self::Simulated(family, seed) => simulated::tapes(family, *seed)?,
        };
        Ok(Input {
            name: self.name(),
            tapes,
            arguments,
        })
    }
}
