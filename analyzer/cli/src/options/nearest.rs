//! The known name that is most like one that is not known: for hints.

/// The name that is most like `name`.
pub(crate) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    known.min_by(|a, b| {
        let distance = |other| 1.0 - strsim::jaro_winkler(name, other);
        distance(a).total_cmp(&distance(b))
    })
}

/// The name that is most like `name`, when it is so much like it that a typing error explains the difference.
pub(crate) fn near<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    nearest(name, known).filter(|known| strsim::jaro_winkler(name, known) >= 0.8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_found_and_far_ones_are_not() {
        let known = ["demo", "replay", "compare"];
        assert_eq!(near("dmeo", known.into_iter()), Some("demo"));
        assert_eq!(near("nosuchthing", known.into_iter()), None);
        assert_eq!(nearest("replya", known.into_iter()), Some("replay"));
        assert_eq!(nearest("x", [].into_iter()), None);
    }
}
