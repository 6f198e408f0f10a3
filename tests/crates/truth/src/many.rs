//! Many cases, in several threads. What is given back is in the order of the list, whatever thread was first.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use roce_model::SinkError;

use crate::case::Case;
use crate::compare::{compare, compare_healthy};
use crate::families::Family;
use crate::scores::Scores;
use crate::thin::RecordThinning;

/// Result of one case.
#[derive(Debug)]
pub struct Outcome {
    /// Its family.
    pub family: &'static str,
    /// Its seed.
    pub seed: u64,
    /// Its scores; why there are none.
    pub scores: Result<Scores, String>,
}

/// Runs the cases of a list in `threads` threads. With a folder, captures, scenarios, truths and events of the analysis are kept there.
pub fn run_all(list: &[(&'static Family, u64)], threads: usize, folder: Option<&Path>) -> Vec<Outcome> {
    run(list, threads, &|family, seed| one(family, seed, folder))
}

/// Runs those cases of a list that are healthy by their scenario, with a part of the records of their captures.
pub fn run_thinned(
    list: &[(&'static Family, u64)],
    threads: usize,
    thinning: RecordThinning,
) -> Vec<Outcome> {
    let mut list = list.to_vec();
    list.retain(|(family, seed)| family.scenario(*seed).healthy);
    run(&list, threads, &|family, seed| {
        let folder = tempfile::tempdir()?;
        let case = Case::thinned(family, seed, folder.path(), Some(thinning))?;
        Ok(compare_healthy(&case))
    })
}

/// Gives the scores of a case.
type Compare<'a> = &'a (dyn Fn(&'static Family, u64) -> Result<Scores, SinkError> + Sync);

fn run(list: &[(&'static Family, u64)], threads: usize, compare: Compare<'_>) -> Vec<Outcome> {
    let next = AtomicUsize::new(0);
    let outcomes: Mutex<Vec<Option<Outcome>>> = Mutex::new(list.iter().map(|_| None).collect());
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                loop {
                    let place = next.fetch_add(1, Ordering::Relaxed);
                    let Some((family, seed)) = list.get(place) else {
                        break;
                    };
                    let scores = compare(family, *seed).map_err(|error| error.to_string());
                    let outcome = Outcome {
                        family: family.name,
                        seed: *seed,
                        scores,
                    };
                    if let Ok(mut outcomes) = outcomes.lock() {
                        outcomes[place] = Some(outcome);
                    }
                }
            });
        }
    });
    let outcomes = outcomes.into_inner().unwrap_or_default();
    outcomes.into_iter().flatten().collect()
}

/// The events of the analysis, one in a line, with the time since the simulation's start in nanoseconds.
fn events_of(case: &Case) -> String {
    let mut text = String::new();
    for event in &case.seen.events {
        let time = event.time.saturating_sub(case.truth.start_ns);
        let _ = writeln!(
            text,
            "{time} {} tap {} {} PSN {} {} {}",
            event.kind,
            event.tap,
            event.flow,
            event.psn,
            event.value.map_or_else(String::new, |value| value.to_string()),
            event.detail
        );
    }
    text
}

fn one(family: &'static Family, seed: u64, folder: Option<&Path>) -> Result<Scores, SinkError> {
    let temporary = tempfile::tempdir()?;
    let place = folder.unwrap_or_else(|| temporary.path());
    std::fs::create_dir_all(place)?;
    if folder.is_some() {
        let toml = family.scenario(seed).toml;
        std::fs::write(place.join(format!("{}-{seed}.toml", family.name)), toml)?;
    }
    let case = Case::run(family, seed, place)?;
    if folder.is_some() {
        std::fs::write(
            place.join(format!("{}-{seed}.json", family.name)),
            case.truth.to_json()?,
        )?;
        let name = format!("{}-{seed}.events", family.name);
        std::fs::write(place.join(name), events_of(&case))?;
    }
    Ok(compare(&case))
}
