//! The fixed set of copies: no violation but those that `open.txt` lists, and each of those is still one.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use roce_metamorphic::{OpenList, TRANSFORMATIONS, Table, Transformation, cells, hunt, root};

#[test]
fn copies_have_the_verdicts_of_their_captures() {
    let open =
        OpenList::parse(&fs::read_to_string(root().join("tests/crates/metamorphic/open.txt")).unwrap());
    let program = Path::new(env!("CARGO_BIN_EXE_roce-metamorphic"));
    let outcomes = hunt(&cells().unwrap(), 2, Some(program), None).unwrap();
    let tried: BTreeSet<_> = outcomes.iter().map(|outcome| outcome.transformation).collect();
    assert_eq!(tried.len(), TRANSFORMATIONS.len(), "each transformation is tried");
    let violated: BTreeSet<(&str, &str)> = outcomes
        .iter()
        .filter(|outcome| !outcome.changes.is_empty())
        .map(|outcome| (outcome.transformation, outcome.input.as_str()))
        .collect();
    let new: Vec<_> = outcomes
        .iter()
        .filter(|outcome| !outcome.changes.is_empty() && !open.has(outcome.transformation, &outcome.input))
        .cloned()
        .collect();
    assert!(new.is_empty(), "new violations:\n{}", Table::new(&new));
    let mended: Vec<_> = open
        .entries()
        .filter(|(transformation, _)| Transformation::named(transformation).is_some())
        .filter(|entry| !violated.contains(entry))
        .collect();
    assert!(
        mended.is_empty(),
        "no violations any more, their lines can go: {mended:#?}"
    );
}
