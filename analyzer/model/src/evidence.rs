//! Evidence of findings: named facts.

use std::fmt;

/// Evidence of a finding: named facts in order. Its text is a JSON object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evidence(pub Vec<(&'static str, Fact)>);

/// One fact.
#[derive(Clone, Debug, PartialEq)]
pub enum Fact {
    /// A count, or a time in ns.
    Count(u64),
    /// A share, a ratio, a rate. What is not finite is written as null.
    Number(f64),
    /// Words: an address, a flow, a list of them.
    Text(String),
}

impl Evidence {
    /// Adds a count.
    pub fn count(&mut self, name: &'static str, value: u64) -> &mut Self {
        self.0.push((name, Fact::Count(value)));
        self
    }

    /// Adds a number.
    pub fn number(&mut self, name: &'static str, value: f64) -> &mut Self {
        self.0.push((name, Fact::Number(value)));
        self
    }

    /// Adds words.
    pub fn text(&mut self, name: &'static str, value: impl Into<String>) -> &mut Self {
        self.0.push((name, Fact::Text(value.into())));
        self
    }
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{")?;
        for (place, (name, fact)) in self.0.iter().enumerate() {
            if place > 0 {
                f.write_str(",")?;
            }
            write!(f, "\"{name}\":")?;
            match fact {
                Fact::Count(value) => write!(f, "{value}")?,
                Fact::Number(value) if value.is_finite() => write!(f, "{value}")?,
                Fact::Number(_) => f.write_str("null")?,
                Fact::Text(value) => {
                    f.write_str("\"")?;
                    for letter in value.chars() {
                        match letter {
                            '"' => f.write_str("\\\"")?,
                            '\\' => f.write_str("\\\\")?,
                            letter if letter.is_control() => write!(f, "\\u{:04x}", u32::from(letter))?,
                            letter => write!(f, "{letter}")?,
                        }
                    }
                    f.write_str("\"")?;
                }
            }
        }
        f.write_str("}")
    }
}
