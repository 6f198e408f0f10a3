//! Lists of names in one cell: ids of findings, addresses of hosts.

use std::borrow::Cow;
use std::fmt;

/// Names without blanks, in an order. As text they are separated by spaces, in JSON they are an array.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NameList(pub Vec<Cow<'static, str>>);

impl NameList {
    /// True if the name is one of them.
    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|known| known == name)
    }
}

impl FromIterator<String> for NameList {
    fn from_iter<T: IntoIterator<Item = String>>(names: T) -> Self {
        Self(names.into_iter().map(Cow::Owned).collect())
    }
}

impl fmt::Display for NameList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, name) in self.0.iter().enumerate() {
            if place > 0 {
                f.write_str(" ")?;
            }
            f.write_str(name)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_separated_by_spaces() {
        let names = NameList(vec!["incast".into(), "loss.network".into()]);
        assert_eq!(names.to_string(), "incast loss.network");
        assert!(names.has("incast") && !names.has("loss"));
    }
}
