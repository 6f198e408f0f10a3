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

impl crate::Value for NameList {
    type StoredValue = Cow<'static, str>;
    const KIND: crate::ColumnType = crate::ColumnType::Text;

    fn stored(&self) -> Self::StoredValue {
        Cow::Owned(self.to_string())
    }

    fn cell(&self) -> crate::Cell<'_> {
        crate::Cell::Names(self)
    }

    fn from_cell(cell: crate::Cell<'_>) -> Option<Self> {
        match cell {
            crate::Cell::Names(names) => Some(names.clone()),
            crate::Cell::Text(text) => Some(Self(
                text.split_whitespace()
                    .map(|name| Cow::Owned(name.to_owned()))
                    .collect(),
            )),
            // Documents of earlier versions have none.
            crate::Cell::Null => Some(Self::default()),
            _ => None,
        }
    }

    fn data<'a>(column: &'a crate::Values<Self::StoredValue>) -> crate::Data<'a> {
        crate::Data::Text(column)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cell, Value as _};

    #[test]
    fn names_are_separated_by_spaces() {
        let names = NameList(vec!["incast".into(), "loss.network".into()]);
        assert_eq!(names.to_string(), "incast loss.network");
        assert!(names.has("incast") && !names.has("loss"));
        assert_eq!(NameList::from_cell(names.cell()), Some(names.clone()));
        assert_eq!(
            NameList::from_cell(Cell::Text("incast loss.network")),
            Some(names)
        );
        assert_eq!(NameList::from_cell(Cell::Null), Some(NameList::default()));
        assert_eq!(NameList::from_cell(Cell::Bool(true)), None);
    }
}
