//! Many copies in several threads. What is given back is in the order of the list, whatever thread was first.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use roce_model::SinkError;

use crate::answer::{Analyst, Answer, GivenRun};
use crate::cell::Cell;
use crate::compare::{Change, compare};
use crate::draw::Draw;
use crate::input::Input;
use crate::transformation::{InputCopy, Transformation};

/// Outcome of one copy.
#[derive(Clone, Debug)]
pub struct CopyOutcome {
    /// The transformation's name.
    pub transformation: &'static str,
    /// The input's name.
    pub input: String,
    /// The ways in which it violates its relation; none if the relation holds.
    pub changes: Vec<Change>,
}

/// Makes and analyses the copies of all cells. `program` is the one that analyses standard input; copies are written into folders of `keep`,
/// by transformation and input.
///
/// # Errors
/// When an input cannot be read or a copy cannot be written.
pub fn hunt(
    cells: &[Cell],
    threads: usize,
    program: Option<&Path>,
    keep: Option<&Path>,
) -> Result<Vec<CopyOutcome>, SinkError> {
    let next = AtomicUsize::new(0);
    let outcomes: Mutex<Vec<Vec<CopyOutcome>>> = Mutex::new(vec![Vec::new(); cells.len()]);
    let work = || -> Result<(), SinkError> {
        let analyst = Analyst::new(program.map(Path::to_owned))?;
        while let Some((place, cell)) = {
            let place = next.fetch_add(1, Ordering::Relaxed);
            cells.get(place).map(|cell| (place, cell))
        } {
            let found = copies(cell, &analyst, keep)?;
            if let Ok(mut outcomes) = outcomes.lock() {
                outcomes[place] = found;
            }
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads.max(1)).map(|_| scope.spawn(work)).collect();
        let mut results = threads.into_iter().map(|thread| {
            let result = thread.join();
            result.unwrap_or_else(|_| Err("a thread panicked".into()))
        });
        results.try_for_each(|result| result)
    })?;
    Ok(outcomes
        .into_inner()
        .unwrap_or_default()
        .into_iter()
        .flatten()
        .collect())
}

fn copies(cell: &Cell, analyst: &Analyst, keep: Option<&Path>) -> Result<Vec<CopyOutcome>, SinkError> {
    let input = cell.source.load()?;
    let before = match analyst.answer(&GivenRun::of(&input)) {
        Ok(Some(answer)) => answer,
        Ok(None) => return Ok(Vec::new()),
        Err(error) => return Err(format!("{}: {error}", input.name).into()),
    };
    let mut outcomes = Vec::new();
    for transformation in &cell.transformations {
        let mut draw = Draw::new(transformation.name, &input.name);
        let Some(copied) = (transformation.make)(&input, &mut draw) else {
            continue;
        };
        if let Some(folder) = keep {
            let folder = folder
                .join(transformation.name)
                .join(input.name.replace('/', "-"));
            std::fs::create_dir_all(&folder)?;
            copied.given.write(&folder)?;
        }
        outcomes.extend(copy(transformation, &input, &copied, &before, analyst));
    }
    Ok(outcomes)
}

/// Outcome of one copy; `None` where it cannot be asked here.
fn copy(
    transformation: &Transformation,
    input: &Input,
    copied: &InputCopy,
    before: &Answer,
    analyst: &Analyst,
) -> Option<CopyOutcome> {
    let changes = || -> Result<Option<Vec<Change>>, SinkError> {
        let other = copied
            .base
            .as_ref()
            .map(|base| analyst.answer(&GivenRun::of(base)))
            .transpose()?;
        let before = other.as_ref().map_or(Some(before), Option::as_ref);
        let after = analyst.answer(&copied.given)?;
        Ok(before.zip(after).map(|(before, after)| {
            compare(copied.relation.unwrap_or(transformation.relation), before, &after)
        }))
    };
    let changes = changes().unwrap_or_else(|error| Some(vec![Change::failed(error)]))?;
    Some(CopyOutcome {
        transformation: transformation.name,
        input: input.name.clone(),
        changes,
    })
}
