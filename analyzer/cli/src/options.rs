//! The options of runs: how they are written, what they mean, and the file of `--config`.

pub(crate) mod arguments;
pub(crate) mod config;
pub(crate) mod csig;
pub(crate) mod dcqcn;
pub(crate) mod dscp;
pub(crate) mod duration;
pub(crate) mod expect;
pub(crate) mod fabric;
pub(crate) mod fail_on;
pub(crate) mod format;
pub(crate) mod given;
pub(crate) mod merged;
pub(crate) mod named;
pub(crate) mod names;
pub(crate) mod nccl;
pub(crate) mod nearest;
pub(crate) mod old_words;
pub(crate) mod processes;
pub(crate) mod rate;
pub(crate) mod settings;
pub(crate) mod size;
pub(crate) mod tap_at;
pub(crate) mod training;
