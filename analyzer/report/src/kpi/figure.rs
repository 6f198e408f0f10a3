//! One key figure, and the document that defines it.

use serde::Serialize;

/// The document that defines the figures.
pub(crate) const SOURCE: &str = "draft-calabria-bmwg-ai-fabric-training-bench-00";

/// One key figure.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Kpi {
    /// Its name for programs.
    pub id: &'static str,
    /// Its name in the draft.
    pub name: &'static str,
    /// The formula.
    pub formula: &'static str,
    /// Unit of the value; empty for a ratio.
    pub unit: &'static str,
    /// The value; absent where it cannot be had.
    pub value: Option<f64>,
    /// Numbers that it was computed from.
    pub inputs: Vec<(&'static str, f64)>,
    /// The reason why there is none, or what limits the value. Empty: nothing does.
    pub remark: String,
}
