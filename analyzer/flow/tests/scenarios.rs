//! Scenarios: packets and what must come of them, in one readable file each. The files and their language are
//! described in `scenarios/README.md`; reading them is `parse`, running them `run`, comparing `check`.

#![expect(clippy::unwrap_used, reason = "tests, in functions of their own")]

#[path = "scenarios/check.rs"]
mod check;
#[path = "scenarios/parse.rs"]
mod parse;
#[path = "scenarios/run.rs"]
mod run;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

#[test]
fn every_scenario_holds() {
    let folder = Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").unwrap()).join("tests/scenarios");
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "txt"))
        .collect();
    files.sort();
    let (mut scenarios, mut failures) = (0, String::new());
    for file in files {
        let name = file.file_name().unwrap().to_string_lossy();
        for scenario in parse::scenarios(&name, &fs::read_to_string(&file).unwrap()) {
            scenarios += 1;
            for failure in check::failures(&scenario) {
                write!(failures, "\n{name}: {}\n    {failure}", scenario.name).unwrap();
            }
        }
    }
    assert!(failures.is_empty(), "{failures}\n");
    assert!(scenarios > 50, "only {scenarios} scenarios were found");
}
