//! Messages of an endpoint to its operator.

/// Where an endpoint says what concerns its operator.
#[derive(Clone, Copy, Debug)]
pub struct Notices {
    /// Takes what needs attention.
    pub warn: fn(&str),
    /// Takes what is good to know.
    pub note: fn(&str),
}
