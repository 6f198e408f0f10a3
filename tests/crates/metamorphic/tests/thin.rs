//! Thin captures answer as the whole one does, or that they cannot tell: 1 in 10, and a mirror by opcode, declared or not.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may panic, and shows its counts with --nocapture"
)]

use std::collections::BTreeMap;

use roce_metamorphic::{
    Analyst, Answer, Draw, GivenRun, InputSource, Transformation, project_sources, simulated_sources,
};

/// Ways of thinning.
const THINNED: [&str; 6] = [
    "kept-1-in-10",
    "kept-1-in-10-random",
    "ends",
    "sampled-every-10",
    "sampled-10",
    "sampled-ends",
];
/// Simulated inputs, apart from those of the fixed set.
const SEEDS: std::ops::Range<u64> = 20_001..20_121;
/// Share of answers that are equal to the whole capture's or "cannot tell".
const REACH: f64 = 0.98;

/// Relation of a thin answer to the whole capture's.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Fit {
    /// As many rules warn, of the same names.
    Equal,
    /// Rules that warn of the whole capture are silent, and the answer says that they cannot tell.
    CannotTell,
    /// It says something else, not of high confidence.
    Contrary,
    /// It says something else, of high confidence: a warning, or that nothing is wrong.
    ContraryAtHigh,
}

/// True of rules about the capture itself.
fn is_of_capture(id: &str) -> bool {
    id.starts_with("capture.") || id == "loss.capture"
}

/// True if an answer says that packets are missing in the capture, or what is not shown.
fn says_that_it_cannot_tell(answer: &Answer) -> bool {
    answer.sentence.contains("not shown")
        || answer.verdicts.iter().any(|verdict| {
            matches!(verdict.id.as_str(), "capture.thin" | "loss.capture")
                || verdict.facts.contains_key("sparse_flows")
        })
}

fn fit(whole: &Answer, thin: &Answer) -> (Fit, String) {
    let loud = |answer: &Answer| -> BTreeMap<String, u8> {
        let verdicts = answer.verdicts.iter().filter(|verdict| verdict.is_loud());
        verdicts
            .filter(|verdict| !is_of_capture(&verdict.id))
            .map(|verdict| (verdict.id.clone(), verdict.sureness()))
            .collect()
    };
    let (was, is) = (loud(whole), loud(thin));
    let new: Vec<_> = is.iter().filter(|(id, _)| !was.contains_key(*id)).collect();
    if let Some((id, sureness)) = new.iter().max_by_key(|(_, sureness)| **sureness) {
        let fit = if **sureness == 2 {
            Fit::ContraryAtHigh
        } else {
            Fit::Contrary
        };
        return (fit, format!("{id} is new"));
    }
    let gone: Vec<&String> = was.keys().filter(|id| !is.contains_key(*id)).collect();
    if gone.is_empty() {
        return (Fit::Equal, String::new());
    }
    if thin.sentence.starts_with("Nothing is wrong") {
        return (Fit::ContraryAtHigh, format!("{gone:?}: {}", thin.sentence));
    }
    if says_that_it_cannot_tell(thin) {
        return (Fit::CannotTell, String::new());
    }
    (Fit::Contrary, format!("{gone:?}: {}", thin.sentence))
}

#[test]
fn thin_captures_say_the_same_or_that_they_cannot_tell() {
    let analyst = Analyst::new(None).unwrap();
    let mut sources: Vec<InputSource> = project_sources().unwrap();
    sources.extend(simulated_sources(SEEDS));
    let mut fits: BTreeMap<(&str, Fit), u64> = BTreeMap::new();
    let (mut wrong, mut wrongly_thin) = (Vec::new(), Vec::new());
    for source in sources {
        let input = source.load().unwrap();
        let Some(whole) = analyst.answer(&GivenRun::of(&input)).unwrap() else {
            continue;
        };
        if whole.of_id("capture.thin").next().is_some() {
            wrongly_thin.push(input.name.clone());
        }
        for name in THINNED {
            let transformation = Transformation::named(name).unwrap();
            let Some(copied) = (transformation.make)(&input, &mut Draw::new(name, &input.name)) else {
                continue;
            };
            let thin = analyst.answer(&copied.given).unwrap().unwrap();
            let (fit, why) = fit(&whole, &thin);
            if name.starts_with("sampled-") {
                assert_eq!(thin.of_id("capture.thin").count(), 1, "{name} {}", input.name);
            }
            *fits.entry((name, fit)).or_default() += 1;
            if fit >= Fit::Contrary {
                wrong.push(format!("{fit:?} {name} {}: {why}", input.name));
            }
        }
    }
    assert!(
        wrongly_thin.is_empty(),
        "whole captures that count as thin: {wrongly_thin:?}"
    );
    println!("{fits:#?}\n{}", wrong.join("\n"));
    for name in THINNED {
        let count = |fit| fits.get(&(name, fit)).copied().unwrap_or_default();
        let fitting = count(Fit::Equal) + count(Fit::CannotTell);
        let others = count(Fit::Contrary) + count(Fit::ContraryAtHigh);
        assert_eq!(count(Fit::ContraryAtHigh), 0, "{name}: {wrong:#?}");
        let share =
            f64::from(u32::try_from(fitting).unwrap()) / f64::from(u32::try_from(fitting + others).unwrap());
        assert!(share >= REACH, "{name}: {share}: {wrong:#?}");
    }
}
