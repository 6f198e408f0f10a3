//! One transformation, and the copy that it makes of an input.

use crate::answer::GivenRun;
use crate::compare::Relation;
use crate::draw::Draw;
use crate::input::Input;

/// A way to copy an input.
#[derive(Clone, Copy, Debug)]
pub struct Transformation {
    /// Its name.
    pub name: &'static str,
    /// Description of the transformation.
    pub about: &'static str,
    /// Relation that has to hold.
    pub relation: Relation,
    /// Makes the copy; `None` where it does not apply to an input.
    pub make: fn(&Input, &mut Draw) -> Option<InputCopy>,
}

/// A copy of an input.
#[derive(Clone, Debug)]
pub struct InputCopy {
    /// Input whose answer the copy's is compared with, where that is not the input itself.
    pub base: Option<Input>,
    /// Run that the analysis is given.
    pub given: GivenRun,
    /// Relation that has to hold, where it depends on the input.
    pub relation: Option<Relation>,
}

impl InputCopy {
    /// A copy that is compared with another input.
    pub(crate) fn of(base: Input, given: GivenRun) -> Self {
        Self {
            base: Some(base),
            ..Self::from(given)
        }
    }
}

impl From<GivenRun> for InputCopy {
    fn from(given: GivenRun) -> Self {
        Self {
            base: None,
            given,
            relation: None,
        }
    }
}
