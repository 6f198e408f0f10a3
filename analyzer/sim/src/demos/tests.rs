use super::*;
use crate::Scenario;

#[test]
fn names_are_those_of_the_files_and_distinct() {
    for demo in DEMOS {
        let scenario = Scenario::parse(demo.toml).unwrap();
        assert!(scenario.title.starts_with(demo.name), "{}", demo.name);
        assert_eq!(named(demo.name), Some(demo));
    }
    let names: std::collections::BTreeSet<_> = DEMOS.iter().map(|demo| demo.name).collect();
    assert_eq!(names.len(), DEMOS.len());
    assert_eq!(named("nothing"), None);
}
