//! The sink that writes the folder of `-o`.

pub(crate) use crate::folder::dataset;
#[cfg(feature = "live")]
pub(crate) use crate::folder::live_dataset;
