//! Options whose values have names: completions offer them, the parser says what is wrong with others.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::{Arg, Command, Error};

/// A parser of values, and the names that completions offer. Help leaves long lists of names to the option's text.
#[derive(Clone, Debug)]
pub(crate) struct NamedValues<T> {
    parse: fn(&str) -> Result<T, String>,
    names: fn() -> Vec<&'static str>,
}

impl<T> NamedValues<T> {
    /// Values that `parse` accepts; `names` are the usual ones.
    pub(crate) fn new(parse: fn(&str) -> Result<T, String>, names: fn() -> Vec<&'static str>) -> Self {
        Self { parse, names }
    }
}

impl<T: Clone + Send + Sync + 'static> TypedValueParser for NamedValues<T> {
    type Value = T;

    fn parse_ref(&self, command: &Command, option: Option<&Arg>, value: &OsStr) -> Result<T, Error> {
        self.parse.parse_ref(command, option, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new((self.names)().into_iter().map(PossibleValue::new)))
    }
}
