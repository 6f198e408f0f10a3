//! The fixed set: which transformations of which inputs every build is tested with.

use roce_model::SinkError;

use crate::input::InputSource;
use crate::project::project_sources;
use crate::simulated::simulated_sources;
use crate::transformation::Transformation;
use crate::transformations::TRANSFORMATIONS;

/// An input and the transformations that it is copied by.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The input.
    pub source: InputSource,
    /// The transformations.
    pub transformations: Vec<&'static Transformation>,
}

/// Simulated inputs of the fixed set.
const SEEDS: u64 = 200;
/// Each simulated input of the fixed set takes one in this number of transformations, each input others.
const SHARE: usize = 8;

impl Cell {
    /// An input with all transformations.
    pub fn whole(source: InputSource) -> Self {
        Self {
            source,
            transformations: TRANSFORMATIONS.iter().collect(),
        }
    }
}

/// The fixed set.
///
/// # Errors
/// When a folder of captures cannot be read.
pub fn cells() -> Result<Vec<Cell>, SinkError> {
    let mut cells: Vec<Cell> = project_sources()?.into_iter().map(Cell::whole).collect();
    for (number, source) in simulated_sources(1..1 + SEEDS).into_iter().enumerate() {
        let transformations = TRANSFORMATIONS
            .iter()
            .skip(number % SHARE)
            .step_by(SHARE)
            .collect();
        cells.push(Cell {
            source,
            transformations,
        });
    }
    Ok(cells)
}
