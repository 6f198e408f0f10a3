//! Runs of scenarios: their captures, and their truth, which is judged from the finished run.

use std::path::PathBuf;

use roce_files::{Access, FilePlace};

use crate::Error;
use crate::counters::Counters;
use crate::engine::events::Event;
use crate::engine::run::Simulation;
use crate::mrc::run::MrcRun;
use crate::record::observer::{self, Output};
use crate::scenario::Scenario;
use crate::truth::Truth;
use crate::truth::judge;
use crate::units::Picos;

/// Destination of captures.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OutputPlan {
    /// Nowhere: only the truth is wanted.
    Discard,
    /// One capture file: `path` itself; several: the name of each is put before the extension (`out-h1.pcapng`).
    Files {
        /// The file.
        path: PathBuf,
        /// True if files that are there are replaced.
        overwrite: bool,
    },
}

/// A capture in memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Capture {
    /// Its name: that of its tap, or the `file` that several taps share.
    pub name: String,
    /// A pcapng file.
    pub bytes: Vec<u8>,
}

impl OutputPlan {
    /// True if files that are there are replaced.
    fn overwrites(&self) -> bool {
        matches!(self, Self::Files { overwrite: true, .. })
    }

    /// The paths of the files, in the order of the scenario's taps; empty when there are none.
    pub fn paths(&self, scenario: &Scenario) -> Vec<PathBuf> {
        let Self::Files { path, .. } = self else {
            return Vec::new();
        };
        let files = observer::files(scenario);
        if files.len() <= 1 {
            return files.iter().map(|_| path.clone()).collect();
        }
        let text = |part: Option<&std::ffi::OsStr>| {
            part.map(|part| part.to_string_lossy().into_owned())
                .unwrap_or_default()
        };
        let (stem, extension) = (text(path.file_stem()), text(path.extension()));
        files
            .iter()
            .map(|(name, _)| {
                let safe: String = name
                    .chars()
                    .map(|c| {
                        if c.is_ascii_alphanumeric() || c == '.' {
                            c
                        } else {
                            '-'
                        }
                    })
                    .collect();
                let mut file = format!("{stem}-{safe}");
                if !extension.is_empty() {
                    file.push('.');
                    file.push_str(&extension);
                }
                path.with_file_name(file)
            })
            .collect()
    }
}

/// Runs a scenario and writes its captures. The files have their names once all are complete.
///
/// # Errors
/// When a file cannot be written, or the scenario names what is not there.
pub fn simulate(scenario: &Scenario, plan: &OutputPlan) -> Result<Truth, Error> {
    simulate_files(scenario, plan, None).map(|(truth, _)| truth)
}

/// Runs a scenario as [`simulate`] does, and reads the counters of all ports: at the begin, each time `every` has passed, and at the
/// end.
///
/// # Errors
/// As those of [`simulate`], and when the readings are too many to be kept.
pub fn simulate_with_counters(
    scenario: &Scenario,
    plan: &OutputPlan,
    every: Picos,
) -> Result<(Truth, Counters), Error> {
    simulate_files(scenario, plan, Some(every))
}

fn simulate_files(
    scenario: &Scenario,
    plan: &OutputPlan,
    every: Option<Picos>,
) -> Result<(Truth, Counters), Error> {
    let names = observer::files(scenario);
    let paths = plan.paths(scenario);
    let mut outputs = Vec::with_capacity(names.len());
    for (place, (name, _)) in names.into_iter().enumerate() {
        outputs.push(match paths.get(place) {
            Some(path) => {
                let name = path.display().to_string();
                let file = FilePlace::named(path)?.begin(plan.overwrites(), Access::Umask)?;
                (name, Output::File(file))
            }
            None => (name, Output::Discard),
        });
    }
    let (truth, outputs, counters) = run(scenario, outputs, every)?;
    for output in outputs {
        output.finish()?;
    }
    Ok((truth, counters))
}

/// Runs a scenario and keeps its captures in memory.
///
/// # Errors
/// When the scenario names what is not there.
pub fn simulate_in_memory(scenario: &Scenario) -> Result<(Truth, Vec<Capture>), Error> {
    let names = observer::files(scenario).into_iter();
    let outputs = names.map(|(name, _)| (name, Output::Memory(Vec::new())));
    let outputs: Vec<_> = outputs.collect();
    let names: Vec<String> = outputs.iter().map(|(name, _)| name.clone()).collect();
    let (truth, outputs, _) = run(scenario, outputs, None)?;
    let captures = names.into_iter().zip(outputs).map(|(name, output)| Capture {
        name,
        bytes: output.into_bytes(),
    });
    Ok((truth, captures.collect()))
}

fn run(
    scenario: &Scenario,
    outputs: Vec<(String, Output)>,
    every: Option<Picos>,
) -> Result<(Truth, Vec<Output>, Counters), Error> {
    let files: Vec<String> = outputs.iter().map(|(name, _)| name.clone()).collect();
    if scenario.is_mrc() {
        if every.is_some() {
            return Err(Error::Scenario(
                "counters of a network of MRC are not simulated".to_owned(),
            ));
        }
        let mut run = MrcRun::new(scenario, outputs)?;
        run.go();
        let outputs = run.observer.finish()?;
        let truth = judge::mrc::truth(&run, &files);
        return Ok((truth, outputs, Counters::default()));
    }
    let mut simulation = Simulation::new(scenario, outputs)?;
    simulation.counters = Counters::new(scenario, &simulation.topology, every)?;
    if every.is_some() {
        simulation.events.at(Picos::ZERO, Event::Read);
    }
    simulation.go();
    if every.is_some() {
        simulation.read_counters();
    }
    let outputs = simulation.observer.finish()?;
    let calm = scenario.without_injections();
    let calm = match &calm {
        Some(scenario) => {
            let mut calm = Simulation::new(scenario, Vec::new())?;
            calm.go();
            Some(calm)
        }
        None => None,
    };
    let truth = judge::truth(&simulation, &files, calm.as_ref());
    Ok((truth, outputs, simulation.counters))
}
